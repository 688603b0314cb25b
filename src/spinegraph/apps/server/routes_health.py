"""Routes for those who look after the service."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from spinegraph import __version__
from spinegraph.apps.server.metrics import CONTENT_TYPE
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.replies import reply, service_of
from spinegraph.apps.server.schemas import Status

router = APIRouter(tags=["health"])


@router.get("/healthz", response_model=dict[str, str])
async def healthz() -> Any:
    """Say that the process answers."""
    return reply({"status": "ok"})


@router.get("/readyz", response_model=Status)
async def readyz(request: Request) -> Any:
    """Say that the service takes changes and answers at full speed, and what it serves."""
    service = service_of(request)
    if service.writer.fault is not None or not service.writer.is_alive():
        raise ProblemError(503, service.writer.fault or "the writer has stopped", rule="a working store")
    if not service.lookup.is_ready:
        detail = "the index of look-alikes is being made; look-ups compare every node until then"
        raise ProblemError(503, detail, rule="warmed up", headers={"Retry-After": "5"})
    now, model = service.snapshot, service.generator
    about = {"dim": model.dim, "package": __version__, "tolerance": service.live.tolerance}
    return reply({"status": "ready", "version": now.version, "nodes": now.overlay.num_nodes, "model": about})


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Any:
    """Return counters and times for Prometheus."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE)
