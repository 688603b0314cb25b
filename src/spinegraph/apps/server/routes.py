"""The routes of the service."""

import asyncio
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from pyarrow import parquet

from spinegraph import __version__
from spinegraph.analysis.explain import explain
from spinegraph.analysis.layout import ego_network
from spinegraph.apps.server.live import Change, Name, Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.schemas import (
    MOST_AROUND,
    MOST_MATCHES,
    MOST_NAME,
    Added,
    Around,
    Changed,
    Columns,
    Compacted,
    Explanation,
    Found,
    Map,
    Matches,
    NewEdges,
    Node,
    OneOrMany,
    Profile,
    Role,
    Status,
    TriedNodes,
)
from spinegraph.apps.server.service import CONTENT_TYPE, Service, require_known, require_new
from spinegraph.errors import GraphFormatError
from spinegraph.graph.names import quoted

Result = TypeVar("Result")
_HEADERS = {"Cache-Control": "no-store"}


def reply(content: Any, status: int = 200) -> Response:
    """Return plain values, or JSON that is written already, as a JSON response."""
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


_START, _END = "/v1/nodes/", "/similar"
_USUAL = 10


class QuickSimilar:
    """Answers ``GET /v1/nodes/NAME/similar``."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def body(self, path: str, query: bytes) -> bytes | None:
        """Return the answer to a request, or None where it should go the usual way."""
        if not (path.startswith(_START) and path.endswith(_END)) or len(path) < len(_START) + len(_END):
            return None
        count, now = _count(query), self._service.snapshot
        if count is None or not self._service.lookup.is_quick(now):
            return None
        try:
            name, position = self._service.directory.find(now, path[len(_START) : -len(_END)])
        except ProblemError:
            return None
        return similar_body(self._service, now, name, position, count)


def similar_body(service: Service, now: Snapshot, name: Name, position: int, n: int) -> bytes:
    """Return a node's look-alikes as JSON."""
    found: dict[str, Any] = {"name": name, "version": now.version}
    found["matches"] = matches(service, now, now.vector(position), n, position)
    return json.dumps(found, separators=(",", ":"), allow_nan=False).encode()


def matches(service: Service, now: Snapshot, vector: Any, n: int, itself: int | None) -> list[dict[str, Any]]:
    """Return the nodes most like a vector as plain values."""
    found = service.lookup.nearest(now, vector, n, itself)
    names = now.overlay.names_at(found.positions)
    return [{"name": name, "score": score} for name, score in zip(names, found.scores.tolist(), strict=True)]


def _count(query: bytes) -> int | None:
    if not query:
        return _USUAL
    digits = query[2:]
    if not query.startswith(b"n=") or not digits.isdigit() or len(digits) > len(str(MOST_MATCHES)):
        return None
    count = int(digits)
    return count if 1 <= count <= MOST_MATCHES else None


nodes_router = APIRouter(prefix="/v1", tags=["nodes"])
Count = Annotated[int, Query(ge=1, le=MOST_MATCHES, description="How many.")]


@nodes_router.get("/nodes/{name:path}/similar", response_model=Matches)
async def similar(request: Request, name: str, n: Count = 10) -> Any:
    """Return the nodes whose vectors are most like a node's."""
    service = service_of(request)
    now = service.snapshot
    found, position = service.directory.find(now, name)
    body = await beside(service, similar_body, service, now, found, position, n)
    return reply(body)


@nodes_router.get("/nodes/{name:path}/explain/{other:path}", response_model=Explanation)
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


@nodes_router.get("/nodes/{name:path}/role", response_model=Role)
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


@nodes_router.post("/embed", response_model=TriedNodes)
async def embed(request: Request, body: OneOrMany, n: Count = 10) -> Any:
    """Return the vectors that new nodes would have, and whom they would be like; nothing is stored."""
    service = service_of(request)
    change = service.reader.nodes(body)
    require_new(body, service.snapshot.overlay)
    require_known(body, service.snapshot.overlay)
    return reply(await beside(service, _tried, service, change, n))


@nodes_router.get("/nodes/{name:path}", response_model=Node)
async def node(request: Request, name: str) -> Any:
    """Return a node's vector."""
    service = service_of(request)
    now = service.snapshot
    found, position = service.directory.find(now, name)
    degree = int(now.overlay.degrees_at(np.array([position]))[0])
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
                "warnings": service.familiarity.differences(tried, np.array([position])),
            }
        )
    return {"version": now.version, "nodes": nodes}


changes_router = APIRouter(prefix="/v1", tags=["changes"])
TextQuery = Annotated[str, Query(min_length=1, max_length=MOST_NAME)]


@changes_router.post("/nodes", status_code=201, response_model=Added)
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


@changes_router.post("/edges", status_code=201, response_model=Changed)
async def add_edges(request: Request, body: NewEdges) -> Any:
    """Store edges between nodes that are there; one that is there already stays one, its weight grows."""
    service = service_of(request)
    change = service.reader.edges(body.edges)
    require_known(body.edges, service.snapshot.overlay)
    return _changed(await _stored(service, change), 201)


@changes_router.delete("/edges", response_model=Changed)
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


@changes_router.delete("/nodes/{name:path}", response_model=Changed)
async def remove_node(request: Request, name: str) -> Any:
    """Remove a node and its edges; no other node's name, draws or position change."""
    service = service_of(request)
    found, _ = service.directory.find(service.snapshot, name)
    if service.snapshot.overlay.num_nodes <= 2:
        raise ProblemError(409, "the last nodes stay", field="path.name", rule="a graph has nodes")
    after = await _stored(service, Change("remove", [found]))
    service.atlas.forget(found)
    return _changed(after)


@changes_router.post("/compact", response_model=Compacted)
async def compact(request: Request) -> Any:
    """Fold all changes into a new base graph; the service does so by itself when they are many."""
    after = await asyncio.wrap_future(service_of(request).writer.submit(None))
    overlay = after.overlay
    return reply({"version": after.version, "nodes": overlay.num_nodes, "edges": overlay.num_edges})


async def _stored(service: Service, change: Change) -> Snapshot:
    return await asyncio.wrap_future(service.writer.submit(change))


def _changed(after: Snapshot, status: int = 200) -> Any:
    return reply({"version": after.version, "refreshed": len(after.refreshed)}, status)


explorer_router = APIRouter(prefix="/v1", tags=["explorer"])


@explorer_router.get("/map", response_model=Map)
async def whole_map(request: Request) -> Any:
    """Return every node's place, degree, role and label, as columns."""
    service = service_of(request)
    now = service.snapshot
    found = await beside(service, _map, service, now)
    service.twins.prepare(now)  # who looks at the map asks for twins next
    return found


@explorer_router.get("/search", response_model=Found)
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


@explorer_router.get("/nodes/{name:path}/neighborhood", response_model=Around)
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


@explorer_router.get("/nodes/{name:path}/profile", response_model=Profile)
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


@explorer_router.get("/nodes/{name:path}/twins", response_model=Matches)
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


@explorer_router.get("/features", response_model=Columns)
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
        "x": ego.coordinates[:, 0].round(4).tolist(),
        "y": ego.coordinates[:, 1].round(4).tolist(),
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


export_router = APIRouter(prefix="/v1", tags=["export"])
_ROWS = 8_192  # a piece


class Format(StrEnum):
    """What an export may be."""

    parquet = "parquet"
    arrow = "arrow"


_TYPES = {"parquet": "application/vnd.apache.parquet", "arrow": "application/vnd.apache.arrow.stream"}


@export_router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _TYPES.values()}
        }
    },
)
async def export(request: Request, format: Annotated[Format, Query()] = Format.parquet) -> Any:
    """Stream the names and vectors of all nodes: columns name and vector."""
    now = service_of(request).snapshot
    headers = {
        "Content-Disposition": f'attachment; filename="vectors.{format.value}"',
        "X-Spine-Version": str(now.version),
        "Cache-Control": "no-store",
    }
    return StreamingResponse(pieces(now, format.value), 200, headers, _TYPES[format.value])


def pieces(snapshot: Snapshot, format: str) -> Iterator[bytes]:
    """Return an export piece by piece: Parquet as ``Embeddings.load`` reads it, or an Arrow stream."""
    sink = _Sink()
    names = snapshot.overlay.names[snapshot.overlay.standing]
    kind = pa.int64() if names.dtype == np.int64 else pa.string()
    schema = pa.schema([("name", kind), ("vector", pa.list_(pa.float32(), snapshot.vectors.width))])
    with pa.PythonFile(sink, "w") as file:
        opened = (
            parquet.ParquetWriter(file, schema, use_dictionary=["name"])
            if format == "parquet"
            else pa.ipc.new_stream(file, schema)
        )
        with opened as writer:
            for start in range(0, len(names), _ROWS):
                some = snapshot.overlay.standing[start : start + _ROWS]
                listed = names[start : start + _ROWS].tolist()
                column = listed if kind == pa.int64() else [str(name) for name in listed]
                rows = pa.array(snapshot.vectors.take(some).reshape(-1))
                vectors = pa.FixedSizeListArray.from_arrays(rows, snapshot.vectors.width)
                writer.write_table(pa.table([pa.array(column, kind), vectors], schema=schema))
                yield sink.taken()
        yield sink.taken()
    yield sink.taken()


class _Sink:
    """A file that is only written to, and emptied as it fills."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        return len(self._parts[-1])

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


health_router = APIRouter(tags=["health"])


@health_router.get("/healthz", response_model=dict[str, str])
async def healthz() -> Any:
    """Say that the process answers."""
    return reply({"status": "ok"})


@health_router.get("/readyz", response_model=Status)
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


@health_router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Any:
    """Return counters and times for Prometheus."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE)
