"""Errors as problem documents (RFC 9457)."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from spinegraph.apps.server.writer import ClosedError, OutcomeUnknownError
from spinegraph.errors import SpineError, UnknownNodeError

MEDIA_TYPE = "application/problem+json"
PROBLEMS = {  # status: description in the OpenAPI document
    400: "The request is not valid HTTP, does not have one valid Host, or its body is not JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such node, edge or page.",
    405: "This path does not allow the method.",
    408: "The body did not arrive in time.",
    409: "The name is taken.",
    413: "The body is too large.",
    415: "The body was not sent as plain JSON.",
    421: "The Host is not a name of this machine.",
    422: "The request breaks a rule; see field and rule.",
    500: "The service failed.",
    503: "The service is busy, or something is not ready.",
    504: "The answer took too long; a change may have been stored, see Idempotency-Key.",
}
_FIELDS = {
    *("body", "query", "path", "nodes", "edges", "name", "features", "to", "weight", "source", "target"),
    *("q", "n", "by", "weights", "radius", "most", "format", "other", "header", "Idempotency-Key"),
}


class Problem(BaseModel):
    """What went wrong with a request."""

    type: str = Field(description="Always about:blank; the status is the kind of problem.")
    title: str
    status: int
    detail: str = Field(description="What is wrong, the value, and what to do.")
    field: str | None = Field(default=None, description="Where in the request, such as body.nodes.0.name.")
    rule: str | None = Field(default=None, description="The rule that is broken.")


@dataclass(eq=False)
class ProblemError(Exception):
    """Ends a request with a problem document."""

    status: int
    detail: str
    field: str | None = None
    rule: str | None = None
    headers: dict[str, str] | None = None

    def response(self) -> Response:
        """Return the problem document."""
        title = HTTPStatus(self.status).phrase
        parts = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail[:2000]}
        # Escaped to ASCII: a name from a request may be invalid Unicode.
        body = json.dumps({**parts, "field": self.field, "rule": self.rule})
        return Response(body, self.status, self.headers, MEDIA_TYPE)


def bad_field(field: str, why: str, rule: str, status: int = 422) -> ProblemError:
    """Return the problem of a field that breaks a rule."""
    return ProblemError(status, f"{field}: {why}", field, rule)


async def _respond(request: Request, error: Exception) -> Response:
    return as_problem(error).response()


# Make every error of the app a problem document.
_ERRORS = ProblemError, SpineError, RequestValidationError, HTTPException, Exception
HANDLERS: dict[Any, Any] = dict.fromkeys(_ERRORS, _respond)


def as_problem(error: Exception) -> ProblemError:
    """Return the problem document of an error."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, ClosedError):
        return ProblemError(503, str(error), rule="a working store", headers={"Retry-After": "1"})
    if isinstance(error, OutcomeUnknownError):
        return ProblemError(504, str(error), rule="a working store")
    if isinstance(error, SpineError):
        status = 404 if isinstance(error, UnknownNodeError) else 422
        return ProblemError(status, str(error), rule=type(error).__name__)
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        if error.status_code == 400:  # the framework's, for broken UTF-8 or deep nesting
            detail = "the body is not JSON in UTF-8, or is nested too deeply"
            return ProblemError(400, detail, "body", "a JSON document")
        detail = f"{error.detail}; /openapi.json lists all routes"
        return ProblemError(error.status_code, detail, headers=dict(error.headers or {}))
    return ProblemError(500, "the service failed; see its log")


def _of_validation(error: RequestValidationError) -> ProblemError:
    """Report the error at the deepest position, which is of the alternative that matched best."""
    first = max(error.errors(), key=lambda one: (len(one["loc"]), not one["type"].endswith("_type")))
    if first["type"] == "json_invalid":
        why = first.get("ctx", {}).get("error", "")
        return ProblemError(400, f"the body is not JSON: {why}", "body", "a JSON document")
    where = _field(first["loc"], is_extra=first["type"] == "extra_forbidden")
    given = "" if first["type"] == "missing" else f"; got {repr(first.get('input'))[:80]}"
    why = first["msg"].replace("Input should", "must")  # in pydantic's messages
    return ProblemError(422, f"{where}: {why}{given}", where, first["type"])


def _field(location: tuple[Any, ...], *, is_extra: bool) -> str:
    """Return the path of a value, without the names that pydantic adds for alternatives."""
    parts = []
    for index, part in enumerate(location):
        is_column = index > 0 and str(location[index - 1]).startswith("dict[")
        if is_column or isinstance(part, int) or part in _FIELDS or (is_extra and index == len(location) - 1):
            parts.append(str(part)[:80])
    return ".".join(parts)
