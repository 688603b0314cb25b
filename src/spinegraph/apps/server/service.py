"""The service behind the routes: it parses requests, passes changes to the writer and answers reads."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nsmallest
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from scipy.sparse import issparse

from spinegraph.analysis.search import EXACT_UP_TO
from spinegraph.apps.server.atlas import Atlas, NodeTable
from spinegraph.apps.server.live import Change, Live, Name, Snapshot
from spinegraph.apps.server.lookup import Lookup, Twins
from spinegraph.apps.server.problems import ProblemError, bad_field
from spinegraph.apps.server.schemas import Edge, Link, NewNode, NewNodes
from spinegraph.apps.server.store import open_store, restore
from spinegraph.apps.server.writer import Writer
from spinegraph.embeddings import part_weights
from spinegraph.errors import SpineError
from spinegraph.graph.edge_files import is_integer
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import quoted
from spinegraph.graph.overlay import Overlay
from spinegraph.structure.drift import Drift, NeighborDrift

_SLASH = "\ufdd0"  # a noncharacter that replaces a slash written as %2F
_HIDDEN_SLASH = re.compile("%2f", re.IGNORECASE)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)  # buckets of histograms


class Service:
    """A fitted model that serves a changing graph.

    ``graph`` must be the one with which the folder ``store`` was created. ``labels`` (n,) and ``table`` of
    the nodes (n, c) are for the explorer. For ``tolerance`` see ``Live``.
    """

    def __init__(
        self,
        model: Any,
        graph: Graph,
        store: Path,
        *,
        labels: NDArray[Any] | None = None,
        table: pa.Table | None = None,
        tolerance: float | None = None,
    ) -> None:
        self.lookup = Lookup()
        opened = open_store(model, graph, store)
        rebuild = partial(restore, model, graph, opened, tolerance)
        try:
            live: Live = rebuild()
        except BaseException:
            opened.close()
            raise
        self.generator, self.familiarity, self.tolerance = live.generator, model.familiarity_, live.tolerance
        pairs = [] if labels is None else zip(graph.names.tolist(), labels.tolist(), strict=True)
        self.labels = {name: label for name, label in pairs if label is not None}
        self.writer = Writer(
            live,
            opened,
            on_batch=self._on_batch,
            rebuild=rebuild,
            num_reads=lambda: self.metrics.num_reads,
            prepare=self._warm_up,
        )
        self.atlas = Atlas(self.generator, self.lookup, store)
        self.twins = Twins(self.generator)
        self.metrics = Metrics(lambda: self.snapshot, lambda: self.writer.waiting)
        self.reader = RequestReader(graph, model.table_encoder_)
        self.table = NodeTable(graph, model.table_encoder_, table)
        self._workers = ThreadPoolExecutor(2, "worker")

    @property
    def snapshot(self) -> Snapshot:
        """The current state; immutable, so read this property once per request."""
        return self.writer.snapshot

    def start(self) -> None:
        """Start to accept changes and to draw the maps."""
        self.lookup.nearest(self.snapshot, None, 1, int(self.snapshot.overlay.remaining[0]))  # compiles
        if len(self.snapshot.overlay) <= EXACT_UP_TO:
            self.writer.prepare()
        self.writer.start()  # in a large graph it prepares itself, so that reads need not wait
        self.lookup.follow(self.snapshot)
        self.atlas.start(self.snapshot)

    def close(self) -> None:
        """Process waiting changes and close the store."""
        self.atlas.close()
        self.lookup.close()
        self.writer.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def vector(self, now: Snapshot, position: int) -> NDArray[np.float32]:
        """Return the vector (d,) of a node, recomputed if its own edges changed since its update."""
        if now.due.get(position, now.version + 1) > now.version:
            return now.vector(position)
        work = partial(self.writer.live.embed, now.overlay, np.array([position]), now.known)
        return np.asarray((await self.in_thread(work))[0])

    async def write(self, change: Change | None) -> Snapshot:
        """Store a change, or compact the store if it is None; return the resulting snapshot."""
        return await asyncio.wrap_future(self.writer.submit(change))

    async def in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run slow work in another thread, so that other requests can be answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, work, *arguments)

    def _warm_up(self) -> None:
        """Apply a change to a copy of the state, to compile the kernels that changes use."""
        now, name = self.snapshot.overlay, f"\0{token_hex(16)}"  # a name that no node has
        edges: list[tuple[Name, Name]] = [(name, other) for other in now.names_at(now.remaining[:2])]
        weights = [1.0] * len(edges) if self.reader.is_weighted else None
        change = Change("add", [name], edges, weights, None if self.reader.columns is None else [([], [])])
        after = change.apply(now.branch())
        Drift(len(now), 0.5, 0.05).change(now, after)
        NeighborDrift(len(now), 0.05).change(now, after)
        self.writer.live.embed(after, after.touched, self.snapshot.known_in(after))

    def _on_batch(self, snapshot: Snapshot, changes: int, seconds: float) -> None:
        self.metrics.on_batch(snapshot, changes, seconds)
        self.lookup.follow(snapshot)


def find_node(snapshot: Snapshot, text: str, field: str = "path.name") -> tuple[Name, int]:
    """Return the name and position of the node named ``text``, or named by the integer in ``text``."""
    text = with_slashes(text)
    for name in (text, int(text)) if is_integer(text) else (text,):
        position = snapshot.overlay.position(name)
        if position >= 0:
            return name, position
    raise ProblemError(404, f"no node {quoted(text)}", field=field, rule="a name in the graph")


def with_slashes(text: str) -> str:
    """Return a name in a path with the slashes that ``routable_path`` hid."""
    return text.replace(_SLASH, "/")


def read_weights(text: str, parts: Mapping[str, slice]) -> dict[str, float]:
    """Return the weights of parts in a query such as ``role=2,place=0.5``."""
    field, rule = "query.weights", "parts and numbers from 0, not all 0: role=2,place=0.5"
    pairs = [pair.partition("=") for pair in text.split(",")]
    try:
        found = {name.strip(): float(number) for name, _, number in pairs}
        part_weights(parts, found)
    except ValueError as error:  # a ParameterError is one
        why = str(error) if isinstance(error, SpineError) else f"got {quoted(text)}"
        raise ProblemError(422, f"weights: {why}; send {rule}", field=field, rule=rule) from error
    if len(found) < len(pairs):
        raise ProblemError(422, f"weights: a part is given twice; got {quoted(text)}", field=field, rule=rule)
    return found


def search_names(snapshot: Snapshot, text: str, limit: int) -> tuple[list[Name], int]:
    """Return names that contain a text in any case, and their total number.

    Names that begin with it come first, then names with a word that does; shorter before longer ones.
    """
    wanted, found = text.casefold(), []
    for name in snapshot.names():
        written = str(name)
        at = written.casefold().find(wanted)
        if at >= 0:
            rank = 0 if at == 0 else 1 if not written[at - 1 : at].isalnum() else 2
            found.append((rank, len(written), written, name))
    return [name for *_, name in nsmallest(limit, found, key=lambda one: one[:3])], len(found)


def routable_path(path: str, raw: bytes) -> str:
    """Return a request's path with slashes of names replaced; ``with_slashes`` undoes this."""
    if not raw.startswith((b"/v1/nodes/", b"/v1/columns/")) or b"%2" not in raw:
        return path
    return _SLASH.join(map(unquote, _HIDDEN_SLASH.split(raw.decode("ascii", "replace"))))


class RequestReader:
    """Turns requests into changes; an invalid request raises a problem that names the field.

    If ``table`` encoded the graph's features, features by name are a row of its table.
    """

    def __init__(self, graph: Graph, table: FeatureEncoder | None = None) -> None:
        self.is_weighted = graph.weights is not None
        self.columns: dict[str, int] | None = None
        if graph.features is not None:
            names = graph.feature_names or tuple(map(str, range(graph.features.shape[1])))
            self.columns = {name: index for index, name in enumerate(names)}
        self.table = None if self.columns is None else table

    def nodes(self, body: NewNode | NewNodes, overlay: Overlay) -> Change:
        """Return new nodes and their edges as one change of an overlay."""
        listed: dict[str, Any] = {"body": body}
        if isinstance(body, NewNodes):
            listed = {f"body.nodes.{index}": node for index, node in enumerate(body.nodes)}
        links: dict[str, tuple[Any, ...]] = {}
        for where, node in listed.items():
            for index, to in enumerate(node.edges):
                end = (to.to, to.weight) if isinstance(to, Link) else (to, None)
                links[f"{where}.edges.{index}"] = node.name, *end
        edges, weights = self._edges(links, '"to": NAME')
        features = self._features([(f"{where}.features", node.features) for where, node in listed.items()])
        names = [node.name for node in listed.values()]
        _require_new([(f"{where}.name", node.name) for where, node in listed.items()], overlay)
        _require_known([(where, target) for where, (_, target, _) in links.items()], overlay, set(names))
        return Change("add", names, edges, weights, features)

    def edges(self, edges: list[Edge], overlay: Overlay) -> Change:
        """Return new edges as one change of an overlay."""
        links = {f"body.edges.{at}": (edge.source, edge.target, edge.weight) for at, edge in enumerate(edges)}
        pairs, weights = self._edges(links, '"source": NAME, "target": NAME')
        _require_known([(f"{where}.source", source) for where, (source, _, _) in links.items()], overlay)
        _require_known([(f"{where}.target", target) for where, (_, target, _) in links.items()], overlay)
        return Change("add", [], pairs, weights, None if self.columns is None else [])

    def _edges(
        self, links: dict[str, tuple[Any, ...]], ends: str
    ) -> tuple[list[tuple[Name, Name]], list[float] | None]:
        """Return edges and their weights from (source, target, weight) by field; ``ends`` is for errors."""
        for where, (source, target, weight) in links.items():
            if source == target:
                raise bad_field(where, f"connects {quoted(source)} to itself", "no loops")
            if self.is_weighted != (weight is not None):
                rule = f"edges of this graph {'need a' if self.is_weighted else 'have no'} weight"
                way_out = f'send {{{ends}, "weight": 2.5}}' if self.is_weighted else "leave it out"
                raise bad_field(where, f"{rule}; {way_out}", rule)
        weights = [float(weight) for *_, weight in links.values()] if self.is_weighted else None
        return [(source, target) for source, target, _ in links.values()], weights

    def _features(self, given: list[tuple[str, Any]]) -> list[tuple[list[int], list[float]]] | None:
        """Return sparse rows (columns, values) of the features of new nodes."""
        if self.columns is None:
            for where, row in given:
                if row is not None:
                    raise bad_field(where, "nodes of this graph have no features; omit them", "no features")
            return None
        encoded = self._encoded({where: row for where, row in given if isinstance(row, dict)})
        found = []
        for where, sent in given:
            row = encoded[where] if where in encoded else self._row(sent, where, self.columns)
            columns = np.flatnonzero(row)
            found.append((columns.tolist(), row[columns].tolist()))
        return found

    def _row(self, given: Any, where: str, columns: dict[str, int]) -> NDArray[np.float32]:
        """Return features given as a list or an object as a row (f,)."""
        what = "column names and numbers" if self.table is None else "columns of the model's table"
        rule = f"{len(columns)} numbers, or an object of {what}"
        if given is None:
            raise bad_field(where, f"is missing; send {rule}", rule)
        if isinstance(given, list):
            if len(given) != len(columns):
                raise bad_field(where, f"got {len(given)} numbers; send {rule}", rule)
            return np.array(given, np.float32)
        row = np.zeros(len(columns), np.float32)
        for name, value in given.items():
            _require_column(name, columns, where)
            if isinstance(value, bool) or not isinstance(value, int | float):
                why = f"column {quoted(name[:80])} must be a number; got {quoted(value)}"
                raise bad_field(where, why, "numbers")
            row[columns[name]] = value
        return row

    def _encoded(self, given: dict[str, dict[str, Any]]) -> dict[str, NDArray[np.float32]]:
        """Return rows of the model's table as features (f,); columns that are left out are missing."""
        if self.table is None or not given:
            return {}
        for where, row in given.items():
            for name in row:
                _require_column(name, self.table.kinds_, where)
        needed = [name for name, kind in self.table.kinds_.items() if kind != "ignore"]
        try:
            rows = [{name: row.get(name) for name in needed} for row in given.values()]
            encoded = self.table.transform(rows)
        except SpineError as error:
            where = next(iter(given)) if len(given) == 1 else "body.nodes"
            raise bad_field(where, str(error), "a row of the table") from error
        return dict(zip(given, encoded.toarray() if issparse(encoded) else encoded, strict=True))


def _require_column(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        raise bad_field(where, f"no column {quoted(name[:80])}; see GET /v1/features", "a known column")


def _require_new(names: list[tuple[str, Name]], overlay: Overlay) -> None:
    """Raise if names exist, are given twice, or are the same in a path: 7 and "7"."""
    seen: set[Name] = set()
    for where, name in names:
        other = str(name) if isinstance(name, int) else int(name) if is_integer(name) else name
        if other != name and (other in seen or overlay.position(other) >= 0):
            why = f"{quoted(name)} and node {quoted(other)} are the same in a path; rename it"
            raise bad_field(where, why, "names that differ as text", 409)
        if overlay.position(name) >= 0:
            raise bad_field(where, f"node {quoted(name)} already exists", "new names", 409)
        if name in seen:
            raise bad_field(where, f"{quoted(name)} is given twice", "each name once")
        seen.add(name)


def _require_known(names: list[tuple[str, Name]], overlay: Overlay, new: Collection[Name] = ()) -> None:
    """Raise if names are neither in the graph nor new."""
    for where, name in names:
        if name not in new and overlay.position(name) < 0:
            why = f"no node {quoted(name)}; add it first, or in the same request"
            raise bad_field(where, why, "a name in the graph", 404)


class Metrics:
    """Prometheus metrics of one service, in a registry of its own."""

    def __init__(self, snapshot: Callable[[], Snapshot], waiting: Callable[[], int]) -> None:
        own: Any = {"registry": CollectorRegistry()}
        timed: Any = {"buckets": _SECONDS, **own}
        self._registry, self.num_reads = own["registry"], 0
        self._requests = Counter("spine_requests", "Requests answered.", ("method", "route", "status"), **own)
        self._seconds = Histogram("spine_request_seconds", "Time to answer.", ("method", "route"), **timed)
        self._changes = Counter("spine_changes", "Changes written to disk.", **own)
        self._batches = Histogram("spine_batch_seconds", "Time to apply and store a batch.", **timed)
        self._refreshed = Counter("spine_vectors_refreshed", "Vectors updated.", **own)
        for name, about, value in (
            ("spine_nodes", "Nodes in the graph.", lambda: snapshot().overlay.num_nodes),
            ("spine_version", "Changes since the store was created.", lambda: snapshot().version),
            ("spine_refreshed_to", "Version that all vectors have.", lambda: snapshot().refreshed_to),
            ("spine_changes_waiting", "Changes that wait to be written.", waiting),
        ):
            Gauge(name, about, **own).set_function(value)

    def on_request(self, scope: Any, status: int, seconds: float) -> None:
        """Count a request by its route, never by its path, which may contain any name."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)
        self.num_reads += method == "GET"

    def on_batch(self, snapshot: Snapshot, changes: int, seconds: float) -> None:
        """Count changes that were written together."""
        self._changes.inc(changes)
        self._batches.observe(seconds)
        self._refreshed.inc(len(snapshot.refreshed))

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return bytes(generate_latest(self._registry))
