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
_TITLES = {
    400: "bad request",
    401: "token needed",
    404: "not found",
    405: "method not allowed",
    409: "conflict",
    413: "too large",
    415: "not JSON",
    421: "wrong host",
    422: "not acceptable",
    500: "internal error",
    503: "not now",
    504: "too slow",
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
    detail: str = Field(description="What was wrong, the value, and the way out.")
    field: str | None = Field(default=None, description="Where in the request, such as body.nodes.0.name.")
    rule: str | None = Field(default=None, description="The rule that was broken.")


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
        self.status, self.detail, self.field, self.rule = status, detail, field, rule
        self.headers = headers or {}


def problem_body(status: int, detail: str, field: str | None = None, rule: str | None = None) -> bytes:
    """Return a problem document as JSON."""
    whole = {
        "type": "about:blank",
        "title": _TITLES.get(status, "problem"),
        "status": status,
        "detail": detail[:2000],
        "field": field,
        "rule": rule,
    }
    # Backslashes for what is no valid text: a name from a request may be anything.
    return json.dumps(whole).encode()


def problem(
    status: int,
    detail: str,
    field: str | None = None,
    rule: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a problem document as a response."""
    return Response(problem_body(status, detail, field, rule), status, headers, MEDIA_TYPE)


def install_problems(app: FastAPI) -> None:
    """Let every error of the app end in a problem document."""
    app.add_exception_handler(ProblemError, _of_problem)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(ClosedError, _of_closed)
    app.add_exception_handler(SpineError, _of_spine)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_anything)


def _of_problem(request: Request, error: Any) -> Response:
    return problem(error.status, error.detail, error.field, error.rule, error.headers)


def _of_validation(request: Request, error: Any) -> Response:
    """Name the deepest complaint: of alternatives, the one that fitted furthest, its kind before all."""
    first = max(error.errors(), key=lambda one: (len(one["loc"]), not one["type"].endswith("_type")))
    if first["type"] == "json_invalid":
        why = first.get("ctx", {}).get("error", "")
        return problem(400, f"the body is not JSON: {why}", "body", "a JSON document")
    where = _field(first["loc"], is_extra=first["type"] == "extra_forbidden")
    given = "" if first["type"] == "missing" else f"; got {repr(first.get('input'))[:80]}"
    return problem(422, f"{where}: {first['msg']}{given}", where, first["type"])


def _field(location: tuple[Any, ...], *, is_extra: bool) -> str:
    """Return where a value stands; names of alternatives lie between those of fields."""
    parts = []
    for place, part in enumerate(location):
        is_column = place > 0 and str(location[place - 1]).startswith("dict[")
        if is_column or isinstance(part, int) or part in _FIELDS or (is_extra and place == len(location) - 1):
            parts.append(str(part)[:80])
    return ".".join(parts)


def _of_closed(request: Request, error: Any) -> Response:
    return problem(503, str(error), headers={"Retry-After": "1"})


def _of_spine(request: Request, error: Any) -> Response:
    status = 404 if isinstance(error, UnknownNodeError) else 422
    return problem(status, str(error), rule=type(error).__name__)


def _of_http(request: Request, error: Any) -> Response:
    if error.status_code == 400:  # the framework's own: bytes that are no text
        return problem(400, "the body is not JSON: send it as UTF-8", "body", "a JSON document")
    return problem(error.status_code, str(error.detail), headers=dict(error.headers or {}))


def _of_anything(request: Request, error: Any) -> Response:
    return problem(500, "the service made a mistake; its log says which")
