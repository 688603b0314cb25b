"""The service behind the routes: reads requests, hands changes to the writer, and holds what answers need."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nsmallest
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar
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
from spinegraph.apps.server.problems import ProblemError, broken
from spinegraph.apps.server.schemas import Edge, Limits, Link, NewNode, NewNodes
from spinegraph.apps.server.store import open_store, restore
from spinegraph.apps.server.writer import Writer
from spinegraph.embeddings import part_weights
from spinegraph.errors import SpineError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import quoted
from spinegraph.graph.overlay import Overlay
from spinegraph.structure.drift import Drift, NeighborDrift

Result = TypeVar("Result")
_SLASH = "\ufdd0"  # not a character of any text: stands for a slash written as %2F
_HIDDEN_SLASH = re.compile("%2f", re.IGNORECASE)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)  # buckets of histograms


class Service:
    """A fitted model that serves a changing graph.

    The graph is the one with which the folder ``store`` was created. Labels (n,) and the nodes' table (n, c)
    are for the explorer. For the tolerance see ``Live``.
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
        limits: Limits | None = None,
    ) -> None:
        self.limits, self.lookup = limits or Limits(), Lookup()
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
            waiting=self.limits.changes,
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
        """The present state; immutable, so read this property once per request."""
        return self.writer.snapshot

    def start(self) -> None:
        """Start to take changes and to draw the map."""
        self.lookup.nearest(self.snapshot, None, 1, int(self.snapshot.overlay.standing[0]))  # is compiled
        if len(self.snapshot.overlay) <= EXACT_UP_TO:
            self.writer.prepare()
        self.writer.start()  # in a large graph it prepares itself, and reading need not wait
        self.lookup.follow(self.snapshot)
        self.atlas.start(self.snapshot)

    def close(self) -> None:
        """Process waiting changes and close the store."""
        self.atlas.close()
        self.lookup.close()
        self.writer.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def vector(self, now: Snapshot, position: int) -> NDArray[np.float32]:
        """Return the vector (d,) of a node, computed now if its own edges changed since it was updated."""
        if now.due.get(position, now.version + 1) > now.version:
            return now.vector(position)
        work = partial(self.writer.live.embed, now.overlay, np.array([position]), now.known)
        return np.asarray((await self.in_thread(work))[0])

    async def write(self, change: Change | None) -> Snapshot:
        """Store a change, or compact the store if it is None; return the snapshot after it."""
        return await asyncio.wrap_future(self.writer.submit(change))

    async def in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run slow work in another thread, so that other requests are answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, work, *arguments)

    def _warm_up(self) -> None:
        """Run what changes run once, on a copy of the state, so that it is compiled."""
        now, name = self.snapshot.overlay, f"\0{token_hex(16)}"  # a name that no node has
        edges: list[tuple[Name, Name]] = [(name, other) for other in now.names_at(now.standing[:2])]
        weights = [1.0] * len(edges) if self.reader.is_weighted else None
        change = Change("add", [name], edges, weights, None if self.reader.columns is None else [([], [])])
        after = change.apply(now.branch())
        Drift(len(now), 0.5, 0.05).change(now, after)
        NeighborDrift(len(now), 0.05).change(now, after)
        known = self.snapshot.known_in(after)
        self.writer.live.embed(after, after.touched, known)

    def _on_batch(self, snapshot: Snapshot, changes: int, seconds: float) -> None:
        self.metrics.on_batch(snapshot, changes, seconds)
        self.lookup.follow(snapshot)


def find_node(snapshot: Snapshot, text: str, field: str = "path.name") -> tuple[Name, int]:
    """Return the name and position of the node called ``text``, or the integer that ``text`` writes."""
    text = restored(text)
    for name in (text, _integer(text)):
        if name is not None:
            position = snapshot.overlay.position(name)
            if position >= 0:
                return name, position
    raise ProblemError(404, f"no node {quoted(text)}", field=field, rule="a name in the graph")


def restored(text: str) -> str:
    """Return a name in a path with the slashes that ``routable_path`` hid."""
    return text.replace(_SLASH, "/")


def read_weights(text: str, parts: Mapping[str, slice]) -> dict[str, float]:
    """Return the weights of parts that a query writes as ``role=2,place=0.5``."""
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
    """Return names that hold a text in any case, and their total number.

    Those that begin with it come first, then those in which a word does; of like ones the shortest.
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
    """Return a request's path in which slashes of node names do not separate; ``restored`` undoes it."""
    if not raw.startswith((b"/v1/nodes/", b"/v1/columns/")) or b"%2" not in raw:
        return path
    return _SLASH.join(map(unquote, _HIDDEN_SLASH.split(raw.decode("ascii", "replace"))))


def _integer(text: str) -> int | None:
    """Return the 64-bit integer that a text writes, or None."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 and str(value) == text else None


class RequestReader:
    """Turns requests into changes; an invalid request is a problem that names the field.

    If ``table`` made the graph's features from a table, features by name are a row of that table.
    """

    def __init__(self, graph: Graph, table: FeatureEncoder | None = None) -> None:
        self.is_weighted = graph.weights is not None
        self.columns: dict[str, int] | None = None
        if graph.features is not None:
            names = graph.feature_names or tuple(map(str, range(graph.features.shape[1])))
            self.columns = {name: index for index, name in enumerate(names)}
        self.table = None if self.columns is None else table

    def nodes(self, body: NewNode | NewNodes, overlay: Overlay) -> Change:
        """Return new nodes and their edges as one change to an overlay."""
        if isinstance(body, NewNodes):
            nodes = [(f"body.nodes.{index}", node) for index, node in enumerate(body.nodes)]
        else:
            nodes = [("body", body)]
        edges, weights, targets = [], [], []
        for where, node in nodes:
            for index, link in enumerate(node.edges):
                target, weight = (link.to, link.weight) if isinstance(link, Link) else (link, None)
                self._require_edge(node.name, target, weight, f"{where}.edges.{index}")
                edges.append((node.name, target))
                weights.append(weight)
                targets.append((f"{where}.edges.{index}", target))
        features = self._features([(f"{where}.features", node.features) for where, node in nodes])
        names = [node.name for _, node in nodes]
        _require_new([(f"{where}.name", node.name) for where, node in nodes], overlay)
        _require_known(targets, overlay, set(names))
        return Change("add", names, edges, self._weights(weights), features)

    def edges(self, edges: list[Edge], overlay: Overlay) -> Change:
        """Return new edges as one change to an overlay."""
        for index, edge in enumerate(edges):
            self._require_edge(edge.source, edge.target, edge.weight, f"body.edges.{index}")
        ends = [(f"body.edges.{index}.source", edge.source) for index, edge in enumerate(edges)]
        ends += [(f"body.edges.{index}.target", edge.target) for index, edge in enumerate(edges)]
        _require_known(ends, overlay)
        weights = self._weights([edge.weight for edge in edges])
        pairs = [(edge.source, edge.target) for edge in edges]
        return Change("add", [], pairs, weights, None if self.columns is None else [])

    def _weights(self, weights: list[Any]) -> list[float] | None:
        return [float(weight) for weight in weights] if self.is_weighted else None

    def _require_edge(self, source: Name, target: Name, weight: float | None, where: str) -> None:
        if source == target:
            raise broken(where, f"links {quoted(source)} to itself", "no loops")
        if self.is_weighted != (weight is not None):
            rule = f"edges of this graph {'need a' if self.is_weighted else 'have no'} weight"
            raise broken(where, rule, rule)

    def _features(self, given: list[tuple[str, Any]]) -> list[tuple[list[int], list[float]]] | None:
        """Return sparse rows (columns, values) of the features of new nodes."""
        if self.columns is None:
            for where, row in given:
                if row is not None:
                    raise broken(where, "nodes of this graph have no features; leave them out", "no features")
            return None
        encoded = self._encoded({where: row for where, row in given if isinstance(row, dict)})
        found = []
        for where, sent in given:
            row = encoded[where] if where in encoded else self._row(sent, where, self.columns)
            columns = np.flatnonzero(row)
            found.append((columns.tolist(), row[columns].tolist()))
        return found

    def _row(self, given: Any, where: str, columns: dict[str, int]) -> NDArray[np.float32]:
        """Return a list or object of numbers as a row (f,)."""
        what = "column names and numbers" if self.table is None else "columns of the model's table"
        rule = f"{len(columns)} numbers, or an object of {what}"
        if given is None:
            raise broken(where, f"is missing; send {rule}", rule)
        row = np.zeros(len(columns), np.float32)
        if isinstance(given, list):
            if len(given) != len(columns):
                raise broken(where, f"got {len(given)} numbers; send {rule}", rule)
            row[:] = given
            return row
        for name, value in given.items():
            _require_column(name, columns, where)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise broken(
                    where, f"column {quoted(name[:80])} takes a number; got {quoted(value)}", "numbers"
                )
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
            raise broken(where, str(error), "a row of the table") from error
        return dict(zip(given, encoded.toarray() if issparse(encoded) else encoded, strict=True))


def _require_column(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        raise broken(where, f"no column {quoted(name[:80])}; GET /v1/features lists them", "a known column")


def _require_new(names: list[tuple[str, Name]], overlay: Overlay) -> None:
    """Refuse names that exist, are given twice, or read the same in a path: 7 and "7"."""
    seen: set[Name] = set()
    for where, name in names:
        other = str(name) if isinstance(name, int) else _integer(name)
        if other is not None and (other in seen or overlay.position(other) >= 0):
            why = f"paths write {quoted(name)} like node {quoted(other)}; rename it"
            raise broken(where, why, "names that differ as text", 409)
        if overlay.position(name) >= 0:
            raise broken(where, f"node {quoted(name)} is there already", "new names", 409)
        if name in seen:
            raise broken(where, f"{quoted(name)} is given twice", "each name once")
        seen.add(name)


def _require_known(names: list[tuple[str, Name]], overlay: Overlay, new: Collection[Name] = ()) -> None:
    """Refuse edges to names that are neither in the graph nor new."""
    for where, name in names:
        if name not in new and overlay.position(name) < 0:
            why = f"no node {quoted(name)}; add it first, or in the same request"
            raise broken(where, why, "a name in the graph", 404)


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
            ("spine_refreshed_to", "Version of all vectors.", lambda: snapshot().refreshed_to),
            ("spine_changes_waiting", "Changes that wait for the writer.", waiting),
        ):
            Gauge(name, about, **own).set_function(value)

    def on_request(self, scope: Any, status: int, seconds: float) -> None:
        """Count a request by its route; never by its path, which may hold any name."""
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
