"""Routes that change the graph; every one needs the token."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from spinegraph.apps.server.changes import Change
from spinegraph.apps.server.limits import MOST_NAME
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.replies import reply, service_of
from spinegraph.apps.server.requests import require_known, require_new
from spinegraph.apps.server.schemas import Added, Changed, Compacted, NewEdges, OneOrMany
from spinegraph.apps.server.service import Service
from spinegraph.errors import GraphFormatError
from spinegraph.graph.names import quoted

router = APIRouter(prefix="/v1", tags=["changes"])
TextQuery = Annotated[str, Query(min_length=1, max_length=MOST_NAME)]


@router.post("/nodes", status_code=201, response_model=Added)
async def add_nodes(request: Request, body: OneOrMany) -> Any:
    """Store one node or many with their edges, and return their vectors."""
    service = service_of(request)
    change = service.reader.nodes(body)
    names = change.names
    require_new(body, service.snapshot.overlay)
    require_known(body, service.snapshot.overlay)
    try:
        after = await _stored(service, change)
    except GraphFormatError:
        require_new(body, service.snapshot.overlay)  # another request was first
        raise
    rows = after.vectors.take(after.overlay.positions(names))
    vectors = [{"name": name, "vector": row.tolist()} for name, row in zip(names, rows, strict=True)]
    return reply({"version": after.version, "refreshed": len(after.refreshed), "nodes": vectors}, 201)


@router.post("/edges", status_code=201, response_model=Changed)
async def add_edges(request: Request, body: NewEdges) -> Any:
    """Store edges between nodes that are there; one that is there already stays one, its weight grows."""
    service = service_of(request)
    change = service.reader.edges(body.edges)
    require_known(body.edges, service.snapshot.overlay)
    return _changed(await _stored(service, change), 201)


@router.delete("/edges", response_model=Changed)
async def remove_edge(request: Request, source: TextQuery, target: TextQuery) -> Any:
    """Remove the edge between two nodes."""
    service = service_of(request)
    now = service.snapshot
    ends = (
        service.directory.find(now, source, "query.source")[0],
        service.directory.find(now, target, "query.target")[0],
    )
    if ends[1] not in now.overlay.neighbors(ends[0]).tolist():
        detail = f"no edge between {quoted(ends[0])} and {quoted(ends[1])}"
        raise ProblemError(404, detail, field="query", rule="an edge in the graph")
    return _changed(await _stored(service, Change("remove", [], [ends])))


@router.delete("/nodes/{name:path}", response_model=Changed)
async def remove_node(request: Request, name: str) -> Any:
    """Remove a node and its edges; no other node's name, draws or position change."""
    service = service_of(request)
    found, _ = service.directory.find(service.snapshot, name)
    if service.snapshot.overlay.num_nodes <= 2:
        raise ProblemError(409, "the last nodes stay", field="path.name", rule="a graph has nodes")
    after = await _stored(service, Change("remove", [found]))
    service.atlas.forget(found)
    return _changed(after)


@router.post("/compact", response_model=Compacted)
async def compact(request: Request) -> Any:
    """Fold all changes into a new base graph; the service does so by itself when they are many."""
    after = await asyncio.wrap_future(service_of(request).writer.submit(None))
    overlay = after.overlay
    return reply({"version": after.version, "nodes": overlay.num_nodes, "edges": overlay.num_edges})


async def _stored(service: Service, change: Change) -> Snapshot:
    return await asyncio.wrap_future(service.writer.submit(change))


def _changed(after: Snapshot, status: int = 200) -> Any:
    return reply({"version": after.version, "refreshed": len(after.refreshed)}, status)
