"""The routes of the service."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import PlainTextResponse, Response, StreamingResponse
from fastapi.routing import APIRoute
from numpy.typing import NDArray
from pyarrow import parquet
from pydantic import TypeAdapter, ValidationError
from starlette.types import Scope

from spinegraph import __version__
from spinegraph.analysis.explain import explain
from spinegraph.analysis.layout import ego_network
from spinegraph.analysis.plots import COLORS
from spinegraph.analysis.search import Nearest
from spinegraph.apps.server import schemas
from spinegraph.apps.server.atlas import drawn_parts
from spinegraph.apps.server.live import Change, Name, Snapshot
from spinegraph.apps.server.problems import MEDIA_TYPE, PROBLEMS, ProblemError
from spinegraph.apps.server.service import Service, find_node, read_weights, search_names, with_slashes
from spinegraph.errors import GraphFormatError
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.names import quoted
from spinegraph.graph.overlay import Overlay

_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
router = APIRouter(
    responses={status: {"description": about, "content": _PROBLEM} for status, about in PROBLEMS.items()}
)


class FoundNode(NamedTuple):
    """The node in a request's path, and the snapshot to answer from."""

    name: Name
    position: int
    now: Snapshot


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _found(request: Request, name: str) -> tuple[Service, FoundNode]:
    service = _service(request)
    now = service.snapshot
    return service, FoundNode(*find_node(now, name), now)


# Annotations instead of FastAPI dependencies, which take longer than a look-up.
PartQuery = Annotated[
    Literal["all", "content", "place", "role"], Query(description="Compare vectors by all parts, or by one.")
]
WeightsQuery = Annotated[
    str | None, Query(max_length=schemas.MAX_WEIGHTS, description="Per part, 1 by default: role=2,place=0.5.")
]


def _weights(now: Snapshot, by: str, weights: str | None) -> dict[str, float] | None:
    """Return the weights of parts for comparing vectors; None if all parts count the same."""
    given = None if weights is None else read_weights(weights, now.parts)
    if by == "all":
        return given
    _require_part(by, now, "by")
    if given is not None:
        detail = f"weights: are for all parts together; leave out weights or by={by}"
        raise ProblemError(422, detail, field="query.weights", rule="weights or one part")
    return _alone(by, now)


def _require_nonzero(now: Snapshot, by: str, name: Name, vector: NDArray[np.float32]) -> None:
    """Raise if the part to compare is zero; other nodes without it would have the score 1."""
    if by != "all" and not vector[now.parts[by]].any():
        detail = f"by: {quoted(name)} has no {by}: that part of its vector is 0; compare by another part"
        raise ProblemError(422, detail, field="query.by", rule="a part that is not zero")


def _alone(part: str, now: Snapshot) -> dict[str, float]:
    return {name: float(name == part) for name in now.parts}


def _require_part(name: str, now: Snapshot, field: str) -> None:
    if name not in ("all", *now.parts):
        detail = f"{field}: no part {quoted(name)}; vectors of this model have {', '.join(now.parts)}"
        raise ProblemError(422, detail, field=f"query.{field}", rule="a part of the vectors")


Count = Annotated[int, Query(ge=1, le=schemas.MAX_MATCHES, description="Number of results.")]
NameQuery = Annotated[str, Query(min_length=1, max_length=schemas.MAX_NAME)]


def reply(content: Any, status: int = 200) -> Response:
    """Return plain values as a JSON response."""
    # Escaped to ASCII, since names in requests and graphs may be invalid Unicode.
    body = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Response(body, status, {"Cache-Control": "no-store"}, "application/json")


# Changes


_AGAIN = "Any text that you choose: a change that is sent again with the same key is never applied twice."
KeyHeader = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=schemas.MAX_NAME, description=_AGAIN)
]


async def _key(request: Request, key: str | None) -> tuple[list[str] | None, bool]:
    """Return the idempotency key of a request with its digest, and whether its change is already stored."""
    if key is None:
        return None, False
    query = request.scope["query_string"].decode("latin-1")
    sent = f"{request.method} {request.scope['path']}?{query}\n".encode() + await request.body()
    pair = [key, blake2b(sent, digest_size=8).hexdigest()]
    return pair, _service(request).writer.is_applied(pair)


@router.post("/v1/nodes", status_code=201, response_model=schemas.Added, tags=["changes"])
async def add_nodes(request: Request, body: schemas.OneOrMany, key: KeyHeader = None) -> Any:
    """Store one node or several with their edges, and return their vectors."""
    service, (pair, is_stored) = _service(request), await _key(request, key)
    after = service.snapshot
    names = [node.name for node in (body.nodes if isinstance(body, schemas.NewNodes) else [body])]
    if not is_stored:
        change = service.reader.nodes(body, after.overlay)
        try:
            after = await service.write(replace(change, key=pair))
        except GraphFormatError:
            service.reader.nodes(body, service.snapshot.overlay)  # names the field if another came first
            raise
    found = after.overlay.find(names)  # nodes of a repeated request may be gone
    rows = after.vectors.take(found[found >= 0])
    there = [name for name, position in zip(names, found, strict=True) if position >= 0]
    vectors = [{"name": name, "vector": row.tolist()} for name, row in zip(there, rows, strict=True)]
    return _changed(after, 201, nodes=vectors)


@router.post("/v1/edges", status_code=201, response_model=schemas.Changed, tags=["changes"])
async def add_edges(request: Request, body: schemas.NewEdges, key: KeyHeader = None) -> Any:
    """Store edges between existing nodes; weights are added to those of existing edges."""
    service, (pair, is_stored) = _service(request), await _key(request, key)
    if is_stored:
        return _changed(service.snapshot, 201)
    change = service.reader.edges(body.edges, service.snapshot.overlay)
    return _changed(await service.write(replace(change, key=pair)), 201)


@router.delete("/v1/edges", response_model=schemas.Changed, tags=["changes"])
async def remove_edge(request: Request, source: NameQuery, target: NameQuery, key: KeyHeader = None) -> Any:
    """Remove the edge between two nodes."""
    service, (pair, is_stored) = _service(request), await _key(request, key)
    now = service.snapshot
    if is_stored:
        return _changed(now)
    one, _ = find_node(now, source, "query.source")
    other, _ = find_node(now, target, "query.target")
    if other not in now.overlay.neighbors(one).tolist():
        detail = f"no edge between {quoted(one)} and {quoted(other)}"
        raise ProblemError(404, detail, field="query", rule="an edge in the graph")
    return _changed(await service.write(Change("remove", [], [(one, other)], key=pair)))


@router.delete("/v1/nodes/{name:path}", response_model=schemas.Changed, tags=["changes"])
async def remove_node(request: Request, name: str, key: KeyHeader = None) -> Any:
    """Remove a node and its edges."""
    pair, is_stored = await _key(request, key)
    if is_stored:
        return _changed(_service(request).snapshot)
    service, node = _found(request, name)
    if node.now.overlay.num_nodes <= 2:
        raise ProblemError(409, "a graph needs at least 2 nodes", field="path.name", rule="two nodes")
    after = await service.write(Change("remove", [node.name], key=pair))
    service.atlas.forget(node.name)
    return _changed(after)


@router.post("/v1/compact", response_model=schemas.Compacted, tags=["changes"])
async def compact(request: Request) -> Any:
    """Merge all changes into a new base graph, as the service does by itself when there are many."""
    after = await _service(request).write(None)
    overlay = after.overlay
    return reply({**_versions(after), "nodes": overlay.num_nodes, "edges": overlay.num_edges})


def _changed(after: Snapshot, status: int = 200, **more: Any) -> Response:
    return reply({**_versions(after), "refreshed": len(after.refreshed), **more}, status)


def _versions(now: Snapshot) -> dict[str, int]:
    """Return the version of an answer, and the one up to which all vectors were updated."""
    return {"version": now.version, "refreshed_to": now.refreshed_to}


# Nodes


@router.post("/v1/embed", response_model=schemas.HypotheticalNodes, tags=["nodes"])
async def embed(
    request: Request,
    body: schemas.OneOrMany,
    by: PartQuery = "all",
    weights: WeightsQuery = None,
    n: Count = 10,
    map_by: PartQuery = "all",
    why: Annotated[bool, Query(description="Also return role and reasons, which takes longer.")] = False,
) -> Any:
    """Return the vectors that new nodes would have, and the nodes most similar to them; store nothing."""
    service = _service(request)
    now = service.snapshot
    given = _weights(now, by, weights)
    _require_part(map_by, now, "map_by")
    change = service.reader.nodes(body, now.overlay)

    def nearest(vector: NDArray[np.float32], n: int, factors: dict[str, float] | None) -> list[Any]:
        return _matches(now, service.lookup.nearest(now, vector, n, None, factors))

    def work() -> Response:
        grown, nodes = change.apply(now.overlay.branch()), []
        positions, known = np.arange(len(now.overlay), len(grown)), now.known_in(grown)
        parts = drawn_parts(now.parts, known is not None)
        vectors = service.writer.live.embed(grown, positions, known)
        for name, position, vector in zip(change.names, positions, vectors, strict=True):
            _require_nonzero(now, by, name, vector)
            located = service.atlas.locate(now, vector, by=map_by)
            answer: dict[str, Any] = {
                "name": name,
                "vector": vector.tolist(),
                "place": None if located is None else located.tolist(),
                "nearest": nearest(vector, n, given),
                "warnings": service.familiarity.differences(grown, np.array([position])),
            }
            if why:
                own = [part for part in parts if vector[now.parts[part]].any()]
                answer["role"] = _role(service, grown, name)
                answer["nearest_by_part"] = {part: nearest(vector, 1, _alone(part, now))[0] for part in own}
                pair, rows = (name, answer["nearest"][0]["name"]), _known(now, grown)
                answer["words"] = explain(grown, service.generator, *pair, known=rows).words
            nodes.append(answer)
        return reply({**_versions(now), "nodes": nodes})

    return await service.in_thread(work)


def _role(service: Service, graph: GraphLike, name: Name) -> dict[str, Any] | None:
    """Return the role of a node, or None if roles are not found yet."""
    roles = service.atlas.roles
    if roles is None:
        return None
    found = roles.assign(graph, service.generator, [name])
    number = int(found.roles[0])
    about = {"title": roles.titles[number], "description": roles.descriptions[number], "titles": roles.titles}
    return {"role": number, **about, "memberships": found.memberships[0].round(6).tolist()}


@router.get("/v1/nodes/{name:path}/similar", response_model=schemas.Matches, tags=["nodes"])
async def similar(
    request: Request, name: str, by: PartQuery = "all", weights: WeightsQuery = None, n: Count = 10
) -> Any:
    """Return the nodes with the most similar vectors: by the mean cosine of their parts, or by one part."""
    service, node = _found(request, name)
    factors = _weights(node.now, by, weights)
    _require_nonzero(node.now, by, node.name, node.now.vector(node.position))
    given = (node.now, None, n, node.position, factors)
    # A worker thread costs about 0.15 ms of processor time per request.
    if service.lookup.is_quick(node.now, factors):
        found = service.lookup.nearest(*given)
    else:
        found = await service.in_thread(service.lookup.nearest, *given)
    return _about(node, matches=_matches(node.now, found))


@router.get("/v1/nodes/{name:path}/twins", response_model=schemas.Matches, tags=["nodes"])
async def twins(request: Request, name: str, n: Count = 10) -> Any:
    """Return a node's structural twins: nodes with the nearest profiles, anywhere in the graph."""
    service, node = _found(request, name)
    found = await service.in_thread(service.twins.nearest, node.now, node.position, n)
    return _about(node, matches=_matches(node.now, found))


@router.get("/v1/nodes/{name:path}/explain/{other:path}", response_model=schemas.Explanation, tags=["nodes"])
async def explain_nodes(request: Request, name: str, other: str, weights: WeightsQuery = None) -> Any:
    """Explain in sentences and numbers why two nodes are similar or not, and by which parts."""
    service, node = _found(request, name)
    second, _ = find_node(node.now, other, "path.other")
    if node.name == second:
        detail = f"an explanation needs two nodes; got {quoted(second)} twice"
        raise ProblemError(422, detail, field="path.other", rule="another node")
    given = None if weights is None else read_weights(weights, node.now.parts)
    overlay = node.now.overlay
    work = partial(explain, weights=given, known=_known(node.now, overlay))
    found = await service.in_thread(work, overlay, service.generator, node.name, second)
    return reply({**_versions(node.now), **found.to_json()})


def _known(now: Snapshot, grown: Overlay) -> NDArray[np.int64]:
    known = now.known_in(grown)
    return np.full(len(grown), -1) if known is None else known  # None would be recomputed


@router.get("/v1/nodes/{name:path}/role", response_model=schemas.Role, tags=["nodes"])
async def role(request: Request, name: str) -> Any:
    """Return the role of a node."""
    service, node = _found(request, name)
    found = await service.in_thread(_role, service, node.now.overlay, node.name)
    if found is None:
        detail = "roles are still being found; try again in a few seconds"
        raise ProblemError(503, detail, rule="roles found", headers={"Retry-After": "5"})
    return _about(node, **found)


@router.get("/v1/nodes/{name:path}/row", response_model=schemas.VersionedResponse, tags=["nodes"])
async def row(request: Request, name: str) -> Any:
    """Return a node's row of the table, and the names of columns without stored values."""
    service, node = _found(request, name)
    table = service.table
    values = await service.in_thread(table.row, node.now, node.name, node.position)
    return _about(node, row=values, lost=[name for name, kind in table.kinds.items() if kind == "lost"])


@router.get("/v1/nodes/{name:path}/likeness", response_model=schemas.VersionedResponse, tags=["nodes"])
async def likeness(request: Request, name: str, by: PartQuery = "all", weights: WeightsQuery = None) -> Any:
    """Return the similarity of every node to one, in the order of the map, by all parts or by one."""
    service, node = _found(request, name)
    factors = _weights(node.now, by, weights)
    found = await service.in_thread(service.lookup.cosines, node.now, node.position, factors)
    return _about(node, values=found.astype(np.float64).round(4).tolist())


@router.get("/v1/nodes/{name:path}/neighborhood", response_model=schemas.Neighborhood, tags=["nodes"])
async def neighborhood(
    request: Request,
    name: str,
    radius: Annotated[int, Query(ge=1, le=3, description="Steps from the node.")] = 2,
    most: Annotated[int, Query(ge=1, le=schemas.MAX_AROUND, description="Largest number of nodes.")] = 40,
) -> Any:
    """Return a small network around a node, with coordinates to draw it."""
    service, node = _found(request, name)
    overlay = node.now.overlay
    ego = await service.in_thread(lambda: ego_network(overlay, node.name, radius=radius, most=most))
    x, y = ego.coordinates.round(4).T.tolist()
    degrees, edges = overlay.degrees_at(ego.nodes).tolist(), ego.edges.tolist()
    found = {"names": overlay.names_at(ego.nodes), "hops": ego.hops.tolist(), "degrees": degrees}
    return _about(node, **found, x=x, y=y, edges=edges, left_out=int(ego.left_out))


@router.get("/v1/nodes/{name:path}/profile", response_model=schemas.Profile, tags=["nodes"])
async def profile(request: Request, name: str) -> Any:
    """Return a node's largest rooted-PageRank values, scaled to sum 1, and the nodes they belong to."""
    service, node = _found(request, name)
    rows = await service.in_thread(service.generator.profile, node.now.overlay, np.array([node.position]))
    nodes = node.now.overlay.names_at(rows.nodes[0][rows.nodes[0] >= 0].astype(np.int64))
    weights = [round(float(weight), 7) for weight in rows.weights[0][: len(nodes)]]
    return _about(node, weights=weights, nodes=nodes, mass=float(rows.mass[0]))


# After the routes above, since its name matches any path.
@router.get("/v1/nodes/{name:path}", response_model=schemas.Node, tags=["nodes"])
async def vector(request: Request, name: str) -> Any:
    """Return the vector, its parts and the degree of a node."""
    service, node = _found(request, name)
    degree = int(node.now.overlay.degrees_at(np.array([node.position]))[0])
    parts = {name: [columns.start, columns.stop] for name, columns in node.now.parts.items()}
    row = await service.vector(node.now, node.position)
    return _about(node, degree=degree, vector=row.tolist(), parts=parts)


def _about(node: FoundNode, **parts: Any) -> Response:
    return reply({"name": node.name, **_versions(node.now), **parts})


def _matches(now: Snapshot, found: Nearest) -> list[dict[str, Any]]:
    names = now.overlay.names_at(found.positions)
    return [{"name": name, "score": score} for name, score in zip(names, found.scores.tolist(), strict=True)]


# The whole graph


@router.get("/v1/map", response_model=schemas.VersionedResponse, tags=["graph"])
async def whole_map(request: Request) -> Any:
    """Return the coordinates, degree, role and label of every node, as columns."""
    service = _service(request)
    return await service.in_thread(_map, service, service.snapshot)


def _map(service: Service, now: Snapshot) -> Response:
    service.twins.prepare(now)  # the explorer requests twins next
    names, roles, assigned = now.names(), service.atlas.roles, service.atlas.roles_of(now)
    kinds = service.table.kinds.items()
    labels = sorted({str(label) for label in service.labels.values()})
    number = {label: index for index, label in enumerate(labels)}
    found = {
        **_versions(now),
        **_layout(service, now),
        "names": names,
        "degree": now.overlay.degrees[now.overlay.remaining].tolist(),
        "role": None if assigned is None else assigned.roles.tolist(),
        "titles": [] if roles is None else roles.titles,
        "descriptions": [] if roles is None else roles.descriptions,
        "label": [number.get(str(service.labels.get(name)), -1) for name in names] if labels else None,
        "labels": labels,
        "parts": [name for name in now.parts if name != "place" or now.known is not None],
        "groups": service.atlas.groups(now),
        "columns": [{"name": name, "kind": kind} for name, kind in kinds if kind != "lost"],
        "colors": list(COLORS),
    }
    return reply(found)


@router.get("/v1/layout", response_model=schemas.VersionedResponse, tags=["graph"])
async def whole_layout(request: Request, by: PartQuery = "all") -> Any:
    """Return coordinates of every node on the map by one part of the vectors, in the order of the map."""
    service = _service(request)
    now = service.snapshot
    _require_part(by, now, "by")
    return await service.in_thread(lambda: reply({**_versions(now), "by": by, **_layout(service, now, by)}))


def _layout(service: Service, now: Snapshot, by: str = "all") -> dict[str, Any]:
    method, coordinates = service.atlas.method(by), service.atlas.coordinates(now, by)
    x, y = coordinates.astype(np.float64).round(4).T.tolist()
    return {"method": method, "x": x, "y": y}


@router.get("/v1/columns/{name:path}", response_model=schemas.VersionedResponse, tags=["graph"])
async def column(request: Request, name: str) -> Any:
    """Return a column's value for every node, in the order of the map."""
    service = _service(request)
    now, name = service.snapshot, with_slashes(name)
    if service.table.kinds.get(name, "lost") == "lost":
        detail = f"no column {quoted(name[:80])}; GET /v1/map lists them"
        raise ProblemError(404, detail, field="path.name", rule="a known column")
    values = await service.in_thread(service.table.column, now, name)
    return reply({**_versions(now), "name": name, "kind": service.table.kinds[name], "values": values})


@router.get("/v1/search", response_model=schemas.FoundNames, tags=["graph"])
async def search(
    request: Request,
    q: Annotated[str, Query(max_length=schemas.MAX_NAME, description="A part of a name, in any case.")] = "",
    n: Count = 20,
) -> Any:
    """Return names that contain a text, those that begin with it first."""
    service = _service(request)
    now = service.snapshot
    names, total = await service.in_thread(search_names, now, q, n)
    return reply({**_versions(now), "names": names, "total": total})


@router.get("/v1/features", response_model=schemas.Columns, tags=["graph"])
async def features(request: Request) -> Any:
    """Return the feature columns that a new node may have, and whether edges have weights."""
    service = _service(request)
    names, reader = service.snapshot.overlay.feature_names, service.reader
    about = {
        "count": len(reader.columns or ()),
        "names": None if names is None else list(names),
        "table": None if reader.table is None else reader.table.kinds_,
        "weighted": reader.is_weighted,
        "fields": service.table.fields(),
    }
    return reply(about)


_ROWS = 8_192  # of an export, sent at a time
_TYPES = {"parquet": "application/vnd.apache.parquet", "arrow": "application/vnd.apache.arrow.stream"}
_BINARY = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/v1/export",
    response_class=StreamingResponse,
    responses={200: {"content": dict.fromkeys(_TYPES.values(), _BINARY)}},
    tags=["graph"],
)
async def export(request: Request, format: Literal["parquet", "arrow"] = "parquet") -> Any:
    """Stream the names and vectors of all nodes: columns name and vector."""
    now = _service(request).snapshot
    headers = {"Content-Disposition": f'attachment; filename="vectors.{format}"', "Cache-Control": "no-store"}
    headers |= {"X-Spine-Version": str(now.version), "X-Spine-Refreshed-To": str(now.refreshed_to)}
    return StreamingResponse(_export(now, format), 200, headers, _TYPES[format])


def _export(now: Snapshot, format: str) -> Iterator[bytes]:
    """Yield an export in blocks: Parquet for ``Embeddings.load``, or an Arrow stream."""
    buffer, names, remaining = io.BytesIO(), now.names(), now.overlay.remaining
    kind = pa.int64() if now.overlay.names.dtype == np.int64 else pa.string()
    ends = {name: columns.stop for name, columns in now.parts.items()}
    same_network = now.known is not None if "place" in now.parts else None
    about = {"spinegraph.parts": json.dumps({"parts": ends, "same_network": same_network})}
    schema = pa.schema([("name", kind), ("vector", pa.list_(pa.float32(), now.vectors.width))], about)
    if format == "parquet":
        opened = parquet.ParquetWriter(buffer, schema, use_dictionary=["name"])
    else:
        opened = pa.ipc.new_stream(buffer, schema)
    with opened as writer:
        for start in range(0, len(names), _ROWS):
            some = slice(start, start + _ROWS)
            column = names[some] if kind == pa.int64() else list(map(str, names[some]))
            rows = pa.array(now.vectors.take(remaining[some]).reshape(-1))
            vectors = pa.FixedSizeListArray.from_arrays(rows, now.vectors.width)
            writer.write_table(pa.table([pa.array(column, kind), vectors], schema=schema))
            yield _drained(buffer)
    yield _drained(buffer)


def _drained(buffer: io.BytesIO) -> bytes:
    written = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return written


# Health


@router.get("/healthz", response_model=dict[str, str], tags=["health"])
async def healthz() -> Any:
    """Report that the process answers."""
    return reply({"status": "ok"})


@router.get("/readyz", response_model=schemas.Status, tags=["health"])
async def readyz(request: Request) -> Any:
    """Report that the service accepts changes and answers at full speed, and what it serves."""
    service = _service(request)
    if service.writer.fault is not None or not service.writer.is_alive():
        raise ProblemError(503, service.writer.fault or "the writer has stopped", rule="a working store")
    if not (service.lookup.is_ready and service.writer.is_prepared):
        detail = "the service is warming up; until it is done, the first changes and look-ups take seconds"
        raise ProblemError(503, detail, rule="warmed up", headers={"Retry-After": "5"})
    now, tolerance = service.snapshot, service.tolerance
    about = {"dim": service.generator.dim, "package": __version__, "tolerance": tolerance}
    return reply({"status": "ready", **_versions(now), "nodes": now.overlay.num_nodes, "model": about})


@router.get("/metrics", response_class=PlainTextResponse, tags=["health"])
async def metrics(request: Request) -> Any:
    """Return counters and times for Prometheus."""
    return Response(_service(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


# Frequent requests


_SIMILAR = re.compile("/v1/nodes/(.*)/similar")
_COUNT = re.compile(rb"n=([1-9][0-9]{0,2})")
_BODY: TypeAdapter[schemas.NewNode | schemas.NewNodes] = TypeAdapter(schemas.OneOrMany)
_ROUTES = {route.name: route for route in router.routes if isinstance(route, APIRoute)}


async def answer_quickly(app: Any, scope: Scope, body: bytes) -> Any:
    """Answer simple look-ups, inserts and removals; return None for all other requests.

    FastAPI answers those, but takes longer to find and call a route than most answers take.
    """
    method, path, query, request = scope["method"], scope["path"], scope["query_string"], Request(scope)
    scope["app"] = app
    if method == "GET" and (found := _SIMILAR.fullmatch(path)):
        count = _COUNT.fullmatch(query or b"n=10")
        scope["route"] = _ROUTES["similar"]
        return count and await similar(request, found[1], n=int(count[1]))
    if any(name == b"idempotency-key" for name, _ in scope["headers"]):
        return None
    if method == "POST" and path == "/v1/nodes":
        try:
            given = _BODY.validate_json(body)
        except ValidationError:  # reported by FastAPI
            return None
        scope["route"] = _ROUTES["add_nodes"]
        return await add_nodes(request, given)
    if method == "DELETE" and path.startswith("/v1/nodes/"):
        scope["route"] = _ROUTES["remove_node"]
        return await remove_node(request, path.removeprefix("/v1/nodes/"))
    return None
