"""Errors as problem documents (RFC 9457)."""

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from spinegraph.apps.server.writer import ClosedError
from spinegraph.errors import SpineError, UnknownNodeError

MEDIA_TYPE = "application/problem+json"
PROBLEMS = {  # status: title, description in the OpenAPI document
    400: ("bad request", "The body is not JSON."),
    401: ("token needed", "The token is missing or wrong."),
    404: ("not found", "There is no such node, edge or page."),
    405: ("method not allowed", "The method is not allowed here."),
    409: ("conflict", "The name is taken."),
    413: ("too large", "The body is too large."),
    415: ("not JSON", "The body is not sent as JSON."),
    421: ("wrong host", "The host is not this machine."),
    422: ("not acceptable", "A rule is broken; field and rule say where and which."),
    500: ("internal error", "The service failed."),
    503: ("not now", "The service is busy, or something is not ready."),
    504: ("too slow", "The answer takes too long."),
}
_FIELDS = {
    *("body", "query", "path", "nodes", "edges", "name", "features", "to", "weight", "source", "target"),
    *("q", "n", "radius", "most", "format", "other"),
}


class Problem(BaseModel):
    """What went wrong with a request."""

    type: str = Field(description="Always about:blank: the status says what kind of problem it is.")
    title: str
    status: int
    detail: str = Field(description="What is wrong, the value, and the way out.")
    field: str | None = Field(default=None, description="Where in the request, such as body.nodes.0.name.")
    rule: str | None = Field(default=None, description="The rule that is broken.")


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        rule: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.rule, self.headers = status, detail, field, rule, headers


def problem(
    status: int,
    detail: str,
    field: str | None = None,
    rule: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a problem document as a response."""
    title = PROBLEMS[status][0] if status in PROBLEMS else "problem"
    parts = {"type": "about:blank", "title": title, "status": status, "detail": detail[:2000]}
    # Escaped to ASCII: a name from a request may be invalid Unicode.
    body = json.dumps({**parts, "field": field, "rule": rule})
    return Response(body, status, headers, MEDIA_TYPE)


def install_problems(app: FastAPI) -> None:
    """Make every error of the app a problem document."""
    app.add_exception_handler(ProblemError, _on_error)
    app.add_exception_handler(SpineError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_error)


def _on_error(request: Request, error: Any) -> Response:
    if isinstance(error, ProblemError):
        return problem(error.status, error.detail, error.field, error.rule, error.headers)
    if isinstance(error, ClosedError):
        return problem(503, str(error), headers={"Retry-After": "1"})
    if isinstance(error, SpineError):
        status = 404 if isinstance(error, UnknownNodeError) else 422
        return problem(status, str(error), rule=type(error).__name__)
    return problem(500, "the service failed; its log says how")


def _on_invalid(request: Request, error: Any) -> Response:
    """Report the deepest error: of alternatives, the one that matched furthest."""
    first = max(error.errors(), key=lambda one: (len(one["loc"]), not one["type"].endswith("_type")))
    if first["type"] == "json_invalid":
        why = first.get("ctx", {}).get("error", "")
        return problem(400, f"the body is not JSON: {why}", "body", "a JSON document")
    where = _field(first["loc"], is_extra=first["type"] == "extra_forbidden")
    given = "" if first["type"] == "missing" else f"; got {repr(first.get('input'))[:80]}"
    return problem(422, f"{where}: {first['msg']}{given}", where, first["type"])


def _field(location: tuple[Any, ...], *, is_extra: bool) -> str:
    """Return the path of a value, without pydantic's names of alternatives."""
    parts = []
    for index, part in enumerate(location):
        is_column = index > 0 and str(location[index - 1]).startswith("dict[")
        if is_column or isinstance(part, int) or part in _FIELDS or (is_extra and index == len(location) - 1):
            parts.append(str(part)[:80])
    return ".".join(parts)


def _on_http_error(request: Request, error: Any) -> Response:
    if error.status_code == 400:  # raised by the framework for bytes that are not UTF-8
        return problem(400, "the body is not JSON: send it as UTF-8", "body", "a JSON document")
    return problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))
