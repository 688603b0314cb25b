"""What the routes share: names, requests as changes, the model, the writer, look-ups, the map."""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from scipy.sparse import issparse

from spinegraph.apps.server.atlas import Atlas
from spinegraph.apps.server.live import Change, Live, Name, Snapshot, embedder, feature_rows
from spinegraph.apps.server.lookup import Lookup, Twins
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.schemas import Edge, Limits, Link, NewNode, NewNodes
from spinegraph.apps.server.store import open_store, restore
from spinegraph.apps.server.writer import Writer
from spinegraph.errors import SpineError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import quoted
from spinegraph.graph.overlay import Overlay
from spinegraph.structure.drift import Drift, NeighborDrift

_LAST = chr(0x10FFFF)
_SLASH = "\ufdd0"  # no character of any text: stands for a slash that a percent sign hides
_NODES = b"/v1/nodes/"
_HIDDEN = re.compile("%2f", re.IGNORECASE)


class Directory:
    """Finds nodes by what a request calls them."""

    def __init__(self) -> None:
        self._base: Any = None
        self._sorted: list[tuple[str, Name]] = []
        self._lock = Lock()

    def find(self, snapshot: Snapshot, text: str, field: str = "path.name") -> tuple[Name, int]:
        """Return the node that a path names and its position: the text itself, or the number it writes."""
        text = text.replace(_SLASH, "/")
        for name in (text, _whole(text)):
            if name is not None:
                position = snapshot.overlay.position(name)
                if position >= 0:
                    return name, position
        raise ProblemError(404, f"no node {quoted(text)}", field=field, rule="a name in the graph")

    def beginning(self, snapshot: Snapshot, text: str, most: int) -> tuple[list[Name], int]:
        """Return names that begin with a text, whatever the case, shortest first, and how many there are."""
        wanted, overlay = text.casefold(), snapshot.overlay
        listed = self._listed(snapshot)
        start = bisect_left(listed, wanted, key=_text)
        stop = bisect_left(listed, wanted + _LAST, key=_text)
        names = [name for _, name in listed[start:stop]]
        names += [name for name in overlay.added.tolist() if str(name).casefold().startswith(wanted)]
        names = list(dict.fromkeys(names))
        if overlay.num_nodes < len(overlay) and names:
            names = [name for name, at in zip(names, overlay.find(names).tolist(), strict=True) if at >= 0]
        return sorted(names, key=lambda name: (len(str(name)), str(name)))[:most], len(names)

    def _listed(self, snapshot: Snapshot) -> list[tuple[str, Name]]:
        base = snapshot.overlay.base
        with self._lock:
            if self._base is not base:
                pairs = ((str(name).casefold(), name) for name in base.names.tolist())
                self._base, self._sorted = base, sorted(pairs, key=_text)
            return self._sorted


def routed(path: str, raw: bytes) -> str:
    """Return a request's path in which a slash of a node's name parts nothing; ``find`` knows it again."""
    if not raw.startswith(_NODES) or b"%2" not in raw:
        return path
    return _SLASH.join(map(unquote, _HIDDEN.split(raw.decode("ascii", "replace"))))


def alias(name: Name) -> Name | None:
    """Return the other name that a path writes alike: the text of a number, or the number of a text."""
    return str(name) if isinstance(name, int) else _whole(name)


def _text(pair: tuple[str, Name]) -> str:
    return pair[0]


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 and str(value) == text else None


def require_new(body: NewNode | NewNodes, overlay: Overlay) -> None:
    """Refuse a name that is there already, or is given twice, or that a path could not tell from another."""
    seen: set[Name] = set()
    for where, node in _nodes(body):
        other = alias(node.name)
        if other is not None and (other in seen or overlay.position(other) >= 0):
            detail = f"{where}.name: paths write {quoted(node.name)} like node {quoted(other)}; rename it"
            raise ProblemError(409, detail, field=f"{where}.name", rule="names that differ as text")
        if overlay.position(node.name) >= 0:
            detail = f"{where}.name: node {quoted(node.name)} is there already"
            raise ProblemError(409, detail, field=f"{where}.name", rule="new names")
        if node.name in seen:
            detail = f"{where}.name: {quoted(node.name)} is given twice"
            raise ProblemError(422, detail, field=f"{where}.name", rule="each name once")
        seen.add(node.name)


def require_known(body: NewNode | NewNodes | list[Edge], overlay: Overlay) -> None:
    """Refuse an edge to a name that is neither in the graph nor new."""
    new: set[Name] = set()
    if isinstance(body, list):
        ends = [(f"body.edges.{place}.source", edge.source) for place, edge in enumerate(body)]
        ends += [(f"body.edges.{place}.target", edge.target) for place, edge in enumerate(body)]
    else:
        new = {node.name for _, node in _nodes(body)}
        ends = [
            (f"{where}.edges.{place}", link.to if isinstance(link, Link) else link)
            for where, node in _nodes(body)
            for place, link in enumerate(node.edges)
        ]
    for where, name in ends:
        if name not in new and overlay.position(name) < 0:
            detail = f"{where}: no node {quoted(name)}; add it first, or in the same request"
            raise ProblemError(404, detail, field=where, rule="a name in the graph")


def _nodes(body: NewNode | NewNodes) -> list[tuple[str, NewNode]]:
    if isinstance(body, NewNodes):
        return [(f"body.nodes.{place}", node) for place, node in enumerate(body.nodes)]
    return [("body", body)]


class Reader:
    """Reads requests: what breaks a rule of this graph is a problem that names the field.

    Parameters
    ----------
    graph : Graph
        Any with the same features and weights, or none.
    table : FeatureEncoder, optional
        What made the graph's features of a table: features by name are then a row of that table.
    """

    def __init__(self, graph: Graph, table: FeatureEncoder | None = None) -> None:
        self.is_weighted = graph.weights is not None
        self.columns: dict[str, int] | None = None
        if graph.features is not None:
            names = graph.feature_names or tuple(map(str, range(graph.features.shape[1])))
            self.columns = {name: place for place, name in enumerate(names)}
        self.table = None if self.columns is None else table

    def nodes(self, body: NewNode | NewNodes) -> Change:
        """Return new nodes and their edges as one change."""
        edges, weights = [], []
        for where, node in _nodes(body):
            for number, link in enumerate(node.edges):
                target, weight = (link.to, link.weight) if isinstance(link, Link) else (link, None)
                self._require_edge(node.name, target, weight, f"{where}.edges.{number}")
                edges.append((node.name, target))
                weights.append(weight)
        names = [node.name for _, node in _nodes(body)]
        rows = self._rows([(f"{where}.features", node.features) for where, node in _nodes(body)])
        return Change("add", names, edges, self._weights(weights), rows)

    def edges(self, edges: list[Edge]) -> Change:
        """Return new edges as one change."""
        for place, edge in enumerate(edges):
            self._require_edge(edge.source, edge.target, edge.weight, f"body.edges.{place}")
        pairs = [(edge.source, edge.target) for edge in edges]
        weights = self._weights([edge.weight for edge in edges])
        return Change("add", [], pairs, weights, None if self.columns is None else [])

    def _weights(self, weights: list[Any]) -> list[float] | None:
        return [float(weight) for weight in weights] if self.is_weighted else None

    def _require_edge(self, source: Name, target: Name, weight: float | None, where: str) -> None:
        if source == target:
            raise ProblemError(
                422, f"{where}: links {quoted(source)} to itself", field=where, rule="no loops"
            )
        if self.is_weighted != (weight is not None):
            rule = f"edges of this graph {'need a' if self.is_weighted else 'have no'} weight"
            raise ProblemError(422, f"{where}: {rule}", field=where, rule=rule)

    def _rows(self, given: list[tuple[str, Any]]) -> list[tuple[list[int], list[float]]] | None:
        if self.columns is None:
            for where, row in given:
                if row is not None:
                    detail = f"{where}: nodes of this graph have no features; leave them out"
                    raise ProblemError(422, detail, field=where, rule="no features")
            return None
        if self.table is None:
            return feature_rows([self._row(row, where, self.columns) for where, row in given])
        told = [(where, row) for where, row in given if isinstance(row, dict)]
        encoded = iter(_encoded(told, self.table) if told else ())
        return feature_rows(
            [
                next(encoded) if isinstance(row, dict) else self._row(row, where, self.columns)
                for where, row in given
            ]
        )

    def _row(self, given: Any, where: str, columns: dict[str, int]) -> NDArray[np.float32]:
        what = "column names and numbers" if self.table is None else "columns of the model's table"
        rule = f"{len(columns)} numbers, or an object of {what}"
        if given is None:
            raise ProblemError(422, f"{where}: is missing; send {rule}", field=where, rule=rule)
        row = np.zeros(len(columns), np.float32)
        if isinstance(given, list):
            if len(given) != len(columns):
                detail = f"{where}: got {len(given)} numbers; send {rule}"
                raise ProblemError(422, detail, field=where, rule=rule)
            row[:] = given
            return row
        for name, value in given.items():
            _require_column(name, columns, where)
            if isinstance(value, bool) or not isinstance(value, int | float):
                detail = f"{where}: column {quoted(name[:80])} takes a number; got {quoted(value)}"
                raise ProblemError(422, detail, field=where, rule="numbers")
            row[columns[name]] = value
        return row


def _encoded(told: list[tuple[str, dict[str, Any]]], table: FeatureEncoder) -> NDArray[np.float32]:
    """Return rows of the table that a model was fitted on as features (r, f); what is left out is a gap."""
    for where, row in told:
        for name in row:
            _require_column(name, table.kinds_, where)
    needed = [name for name, kind in table.kinds_.items() if kind not in ("text", "skip")]
    try:
        made = table.transform([{name: row.get(name) for name in needed} for _, row in told])
    except SpineError as error:
        where = told[0][0] if len(told) == 1 else "body.nodes"
        raise ProblemError(422, f"{where}: {error}", field=where, rule="a row of the table") from error
    rows: NDArray[np.float32] = made.toarray() if issparse(made) else made
    return rows


def _require_column(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        detail = f"{where}: no column {quoted(name[:80])}; GET /v1/features lists them"
        raise ProblemError(422, detail, field=where, rule="a known column")


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("spine_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram(
            "spine_request_seconds",
            "Time to answer.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._changes = Counter("spine_changes", "Changes brought to disk.", registry=registry)
        self._batches = Histogram(
            "spine_batch_seconds", "Time to apply and store a batch.", buckets=_SECONDS, registry=registry
        )
        self._refreshed = Counter("spine_vectors_refreshed", "Vectors computed anew.", registry=registry)
        self._nodes = Gauge("spine_nodes", "Nodes that stand.", registry=registry)
        self._waiting = Gauge("spine_changes_waiting", "Changes that wait for the writer.", registry=registry)
        self._version = Gauge("spine_version", "Changes since the store began.", registry=registry)

    def saw_request(self, scope: Any, status: int, seconds: float) -> None:
        """Count a request."""
        # Never the path itself: it may hold any name.
        known = getattr(scope.get("route"), "path", None)
        route = known or ("/v1/nodes/{name:path}/similar" if scope["path"].endswith("/similar") else "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)

    def saw_batch(self, snapshots: list[Snapshot], changes: int, seconds: float) -> None:
        """Count changes that were brought to disk together, and what they led to."""
        self._changes.inc(changes)
        self._batches.observe(seconds)
        self._refreshed.inc(sum(len(snapshot.refreshed) for snapshot in snapshots))

    def watch(self, snapshot: Callable[[], Snapshot], waiting: Callable[[], int]) -> None:
        """Read the present state whenever somebody asks."""
        self._nodes.set_function(lambda: snapshot().overlay.num_nodes)
        self._version.set_function(lambda: snapshot().version)
        self._waiting.set_function(waiting)

    def text(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        found: bytes = generate_latest(self._registry)
        return found


class Service:
    """A model at work on a graph that changes.

    Parameters
    ----------
    model : SPINE
        Fitted.
    graph : Graph
        As it was when the store began.
    store : Path
        Folder of the durable store.
    labels : array (n,), optional
        One label per node of ``graph``, for the map.
    tolerance : float, optional
        How far a root may move before it is computed anew; the model's own by default.
    limits : Limits
    """

    def __init__(
        self,
        model: Any,
        graph: Graph,
        store: Path,
        *,
        labels: NDArray[Any] | None = None,
        tolerance: float | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits, self.metrics, self.lookup = limits or Limits(), Metrics(), Lookup()
        opened = open_store(model, graph, store)
        try:
            self.live: Live = restore(model, graph, opened, tolerance)
        except BaseException:
            opened.close()
            raise
        self.generator, self.familiarity = self.live.generator, model.familiarity_
        told = [] if labels is None else zip(graph.names.tolist(), labels.tolist(), strict=True)
        self.labels = {name: label for name, label in told if label is not None}
        self.writer = Writer(self.live, opened, waiting=self.limits.changes, on_batch=self._saw_batch)
        self.atlas = Atlas(model, self.generator, self.lookup, store)
        self.twins = Twins(self.generator)
        self.workers = ThreadPoolExecutor(2, "worker")
        self.metrics.watch(lambda: self.snapshot, lambda: self.writer.waiting)
        self.reader, self.directory = Reader(graph, model.table_encoder_), Directory()

    @property
    def snapshot(self) -> Snapshot:
        """The present state; it never changes, so take it once a request."""
        return self.writer.snapshot

    def start(self) -> None:
        """Begin to take changes, and to draw the map."""
        self._warm()
        self.writer.start()
        self.lookup.keep_up(self.snapshot)
        self.atlas.begin(self.snapshot)

    def close(self) -> None:
        """Finish what waits and close the store."""
        self.atlas.close()
        self.lookup.close()
        self.writer.close()
        self.workers.shutdown(wait=False, cancel_futures=True)

    def _warm(self) -> None:
        """Do once what changes and look-ups do, on a state of its own: it is compiled from then on."""
        now, tried = self.snapshot.overlay, f"\0{token_hex(16)}"  # a name that is not there
        edges: list[tuple[Name, Name]] = [(tried, name) for name in now.names_at(now.standing[:2])]
        weights = [1.0] * len(edges) if self.reader.is_weighted else None
        change = Change("add", [tried], edges, weights, None if self.reader.columns is None else [([], [])])
        after = change.apply(now.branch())
        Drift(len(now), 0.5, 0.05).change(now, after)
        NeighborDrift(len(now), 0.05).change(now, after)
        for embed in (self.generator.embed, embedder(self.generator)):
            embed(after, after.touched)
        self.lookup.nearest(self.snapshot, self.snapshot.vector(int(now.standing[0])), 1)

    def _saw_batch(self, snapshots: list[Snapshot], changes: int, seconds: float) -> None:
        self.metrics.saw_batch(snapshots, changes, seconds)
        for snapshot in snapshots:
            self.lookup.keep_up(snapshot)
            self.twins.keep_up(snapshot)
