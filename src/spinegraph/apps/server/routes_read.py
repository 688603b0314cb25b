"""Routes that answer about nodes: vectors, look-alikes, reasons, roles."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request

from spinegraph.analysis.explain import explain
from spinegraph.apps.server.limits import MOST_MATCHES
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.quick import matches, similar_body
from spinegraph.apps.server.replies import beside, reply, service_of
from spinegraph.apps.server.requests import require_known, require_new
from spinegraph.apps.server.schemas import Explanation, Matches, Node, OneOrMany, Role, TriedNodes
from spinegraph.apps.server.service import Service
from spinegraph.graph.names import quoted
from spinegraph.graph.patch import row_lengths

router = APIRouter(prefix="/v1", tags=["nodes"])
Count = Annotated[int, Query(ge=1, le=MOST_MATCHES, description="How many.")]


@router.get("/nodes/{name:path}/similar", response_model=Matches)
async def similar(request: Request, name: str, n: Count = 10) -> Any:
    """Return the nodes whose vectors are most like a node's."""
    service = service_of(request)
    now = service.snapshot
    found, position = service.directory.find(now, name)
    body = await beside(service, similar_body, service, now, found, position, n)
    return reply(body)


@router.get("/nodes/{name:path}/explain/{other:path}", response_model=Explanation)
async def explain_nodes(request: Request, name: str, other: str) -> Any:
    """Say in sentences and numbers why two nodes are alike, or not."""
    service = service_of(request)
    now = service.snapshot
    first, _ = service.directory.find(now, name)
    second, _ = service.directory.find(now, other, "path.other")
    if first == second:
        detail = f"an explanation needs two nodes; got {quoted(first)} twice"
        raise ProblemError(422, detail, field="path.other", rule="another node")
    found = await beside(service, explain, now.overlay, service.generator, first, second)
    return reply({"version": now.version, **found.to_json()})


@router.get("/nodes/{name:path}/role", response_model=Role)
async def role(request: Request, name: str) -> Any:
    """Return the role that a node plays."""
    service = service_of(request)
    now, roles = service.snapshot, service.atlas.roles
    found, _ = service.directory.find(now, name)
    if roles is None:
        detail = "roles are being found; try again in a few seconds"
        raise ProblemError(503, detail, rule="roles found", headers={"Retry-After": "5"})
    told = await beside(service, roles.assign, now.overlay, service.generator, [found])
    number = int(told.roles[0])
    return reply(
        {
            "name": found,
            "version": now.version,
            "role": number,
            "title": roles.titles[number],
            "description": roles.descriptions[number],
            "memberships": told.memberships[0].round(6).tolist(),
            "titles": roles.titles,
        }
    )


@router.post("/embed", response_model=TriedNodes)
async def embed(request: Request, body: OneOrMany, n: Count = 10) -> Any:
    """Return the vectors that new nodes would have, and whom they would be like; nothing is stored."""
    service = service_of(request)
    change = service.reader.nodes(body)
    require_new(body, service.snapshot.overlay)
    require_known(body, service.snapshot.overlay)
    return reply(await beside(service, _tried, service, change, n))


@router.get("/nodes/{name:path}", response_model=Node)
async def node(request: Request, name: str) -> Any:
    """Return a node's vector."""
    service = service_of(request)
    now = service.snapshot
    found, position = service.directory.find(now, name)
    degree = int(row_lengths(now.overlay.base, now.overlay.patch, np.array([position]))[0])
    vector = now.vector(position).tolist()
    return reply({"name": found, "version": now.version, "degree": degree, "vector": vector})


def _tried(service: Service, change: Any, n: int) -> dict[str, Any]:
    now = service.snapshot
    tried = change.apply(now.overlay.branch())
    positions = np.arange(len(now.overlay), len(tried))
    vectors = service.generator.embed(tried, positions)
    nodes = []
    for name, position, vector in zip(change.names, positions, vectors, strict=True):
        place = service.atlas.place(now, vector)
        nodes.append(
            {
                "name": name,
                "vector": vector.tolist(),
                "place": None if place is None else [float(part) for part in place],
                "nearest": matches(service, now, vector, n, None),
                "warnings": service.familiarity.oddities(tried, np.array([position])),
            }
        )
    return {"version": now.version, "nodes": nodes}
