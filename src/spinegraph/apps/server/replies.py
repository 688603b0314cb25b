"""Responses, written as JSON without a detour, and work that must not hold up other requests."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import Response

from spinegraph.apps.server.service import Service

Result = TypeVar("Result")
_HEADERS = {"Cache-Control": "no-store"}


def reply(content: Any, status: int = 200) -> Response:
    """Return plain values, or JSON that is written already, as a JSON response.

    Examples
    --------
    >>> reply({"name": "ann"}).body
    b'{"name":"ann"}'
    """
    # No text of a request or a graph is trusted to be valid Unicode, so all else is escaped.
    if not isinstance(content, bytes):
        content = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    return Response(content, status, _HEADERS, "application/json")


def service_of(request: Request) -> Service:
    """Return the service that a request is for."""
    service: Service = request.app.state.service
    return service


async def beside(service: Service, work: Callable[..., Result], *arguments: Any) -> Result:
    """Do work in another thread; other requests go on."""
    return await asyncio.get_running_loop().run_in_executor(service.workers, work, *arguments)
