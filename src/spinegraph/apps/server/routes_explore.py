"""Routes that the explorer draws from: the map, names, neighbourhoods, profiles, columns."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request

from spinegraph.analysis.ego import ego_network
from spinegraph.apps.server.limits import MOST_AROUND, MOST_MATCHES, MOST_NAME
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.replies import beside, reply, service_of
from spinegraph.apps.server.schemas import Around, Columns, Found, Map, Matches, Profile
from spinegraph.apps.server.service import Service

router = APIRouter(prefix="/v1", tags=["explorer"])


@router.get("/map", response_model=Map)
async def whole_map(request: Request) -> Any:
    """Return every node's place, degree, role and label, as columns."""
    service = service_of(request)
    now = service.snapshot
    found = await beside(service, _map, service, now)
    service.twins.prepare(now)  # who looks at the map asks for twins next
    return found


@router.get("/search", response_model=Found)
async def search(
    request: Request,
    q: Annotated[str, Query(max_length=MOST_NAME, description="The beginning of a name, in any case.")] = "",
    n: Annotated[int, Query(ge=1, le=MOST_MATCHES)] = 20,
) -> Any:
    """Return names that begin with a text, the shortest first."""
    service = service_of(request)
    now = service.snapshot
    names, total = service.directory.beginning(now, q, n)
    return reply({"version": now.version, "names": names, "total": total})


@router.get("/nodes/{name:path}/neighborhood", response_model=Around)
async def neighborhood(
    request: Request,
    name: str,
    radius: Annotated[int, Query(ge=1, le=3)] = 2,
    most: Annotated[int, Query(ge=1, le=MOST_AROUND)] = 40,
) -> Any:
    """Return the small network around a node and where to draw it."""
    service = service_of(request)
    now = service.snapshot
    found, _ = service.directory.find(now, name)
    return reply(await beside(service, _around, now, found, radius, most))


@router.get("/nodes/{name:path}/profile", response_model=Profile)
async def profile(request: Request, name: str) -> Any:
    """Return a node's largest rooted-PageRank values, scaled to sum 1, and the nodes that hold them."""
    service = service_of(request)
    now = service.snapshot
    found, position = service.directory.find(now, name)
    rows = await beside(service, service.generator.inputs.profile, now.overlay, np.array([position]))
    held = rows.nodes[0][rows.nodes[0] >= 0]
    nodes = now.overlay.names_at(held.astype(np.int64))
    weights = [round(float(weight), 7) for weight in rows.weights[0][: len(nodes)]]
    mass = float(rows.mass[0])
    return reply({"name": found, "version": now.version, "weights": weights, "nodes": nodes, "mass": mass})


@router.get("/nodes/{name:path}/twins", response_model=Matches)
async def twins(
    request: Request,
    name: str,
    n: Annotated[int, Query(ge=1, le=MOST_MATCHES, description="How many.")] = 10,
) -> Any:
    """Return a node's structural twins: those whose profiles are nearest, wherever in the graph they are."""
    service = service_of(request)
    now = service.snapshot
    found, position = service.directory.find(now, name)
    near = await beside(service, service.twins.nearest, now, position, n)
    names = now.overlay.names_at(near.positions)
    told = [{"name": twin, "score": score} for twin, score in zip(names, near.scores.tolist(), strict=True)]
    return reply({"name": found, "version": now.version, "matches": told})


@router.get("/features", response_model=Columns)
async def features(request: Request) -> Any:
    """Return the feature columns that a new node may have, and whether edges carry weights."""
    service = service_of(request)
    columns, reader = service.snapshot.overlay.feature_names, service.reader
    count = 0 if reader.columns is None else len(reader.columns)
    names = None if columns is None else list(columns)
    table = None if reader.table is None else reader.table.kinds_
    return reply({"count": count, "names": names, "table": table, "weighted": reader.is_weighted})


def _around(now: Snapshot, name: Any, radius: int, most: int) -> dict[str, Any]:
    ego = ego_network(now.overlay, name, radius=radius, most=most)
    return {
        "name": name,
        "version": now.version,
        "names": now.overlay.names_at(ego.nodes),
        "hops": ego.hops.tolist(),
        "degrees": now.overlay.degrees[ego.nodes].tolist(),
        "x": ego.places[:, 0].round(4).tolist(),
        "y": ego.places[:, 1].round(4).tolist(),
        "edges": ego.edges.tolist(),
        "left_out": int(ego.left_out),
    }


def _map(service: Service, now: Snapshot) -> Any:
    atlas, standing = service.atlas, now.overlay.standing
    names = now.overlay.names[standing].tolist()
    places, roles = atlas.places(now), atlas.roles
    told = atlas.roles_of(now)
    labels = sorted({str(label) for label in service.labels.values()})
    number = {label: place for place, label in enumerate(labels)}
    label = [number.get(str(service.labels.get(name)), -1) for name in names] if labels else None
    return reply(
        {
            "version": now.version,
            "method": atlas.method,
            "names": names,
            "x": places[:, 0].astype(np.float64).round(4).tolist(),
            "y": places[:, 1].astype(np.float64).round(4).tolist(),
            "degree": now.overlay.degrees[standing].tolist(),
            "role": None if told is None else told.roles.tolist(),
            "titles": [] if roles is None else roles.titles,
            "descriptions": [] if roles is None else roles.descriptions,
            "label": label,
            "labels": labels,
        }
    )
