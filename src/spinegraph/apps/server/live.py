"""The state of a running service: a pure function of the base graph and the sequence of changes since."""

import json
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import groupby, pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.analysis.search import unit_rows
from spinegraph.embeddings import Parts, part_weights, unit_length
from spinegraph.errors import SpineError
from spinegraph.graph.edges import frozen
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay import REMOVED, Overlay
from spinegraph.kernels.sparse import times_vector
from spinegraph.parts.generator import AroundAll, Generator
from spinegraph.parts.paper import Inputs, PaperGenerator
from spinegraph.structure.drift import Drift, NeighborDrift, reads_neighbors

Name = str | int
Vectors = NDArray[np.float32]
Positions = NDArray[np.int64]
BLOCK_ROWS = 128  # few enough to copy cheaply, enough for fast products
TOLERANCE = 0.05  # by which a node's rooted PageRank may drift before its vector is updated
DEFERRED_FROM = 5_000  # edges of the base graph from which moved vectors are updated after the answer
_UPDATED_TOGETHER = 32  # vectors
_MAX_ROUNDS = 4  # of updates of smoothed columns, in models of 0.1.0


@dataclass(frozen=True)
class Change:
    """Nodes and edges to add together, or to remove together."""

    kind: str  # "add" or "remove"
    names: list[Name] = field(default_factory=list)
    edges: list[tuple[Name, Name]] = field(default_factory=list)
    weights: list[float] | None = None  # of added edges, if the graph is weighted
    features: list[tuple[list[int], list[float]]] | None = None  # columns, values of each added node
    key: list[str] | None = None  # idempotency key, and a digest of the request
    vectors: str | None = None  # of added nodes, as returned by the request: float32 (a, d) in base64

    def apply(self, overlay: Overlay) -> Overlay:
        """Return an overlay with this change."""
        if self.kind == "remove":
            return overlay.remove(self.names, self.edges)
        return overlay.add(self.names, self.edges, self._feature_matrix(overlay), self.weights)

    def _feature_matrix(self, overlay: Overlay) -> csr_array | None:
        if self.features is None or overlay.base.features is None:
            return None
        lengths = [len(columns) for columns, _ in self.features]
        indices = np.array([column for columns, _ in self.features for column in columns], np.int32)
        data = np.array([value for _, values in self.features for value in values], np.float32)
        indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return csr_array((data, indices, indptr), shape=(len(self.names), overlay.base.features.shape[1]))

    @property
    def is_plain(self) -> bool:
        """Whether this adds nodes and can be applied together with other such changes."""
        return self.kind == "add" and bool(self.names) and self.weights is None and self.key is None

    def to_text(self) -> str:
        """Return the change as JSON, with exact numbers."""
        parts = {key: part for key, part in vars(self).items() if part is not None}
        return json.dumps(parts, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Change":
        """Read what ``to_text`` wrote."""
        parts = json.loads(text)
        parts["edges"] = [(source, target) for source, target in parts["edges"]]
        return cls(**parts)


def checksum(text: str) -> str:
    """Return a checksum of a text, of 16 hexadecimal digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class RowBlocks:
    """An immutable matrix (n, d) in blocks of rows; changed copies share their unchanged blocks."""

    __slots__ = ("_blocks", "_length", "width")

    def __init__(self, blocks: list[Vectors], length: int, width: int) -> None:
        self._blocks, self._length, self.width = blocks, length, width

    def __len__(self) -> int:
        return self._length

    def take(self, positions: Positions) -> Vectors:
        """Return some rows, (r, d)."""
        rows = np.empty((len(positions), self.width), np.float32)
        for row, position in enumerate(positions.tolist()):
            rows[row] = self._blocks[position // BLOCK_ROWS][position % BLOCK_ROWS]
        return rows

    def changed(self, before: "RowBlocks") -> Positions:
        """Return the positions of rows that are new, or differ from those of another version; ascending."""
        found = [
            np.flatnonzero((now != old).any(axis=1)) + number * BLOCK_ROWS
            for number, (now, old) in enumerate(zip(self._blocks, before._blocks, strict=False))
            if now is not old
        ]
        some = np.concatenate([*found, np.arange(len(before), len(self))])
        return np.unique(some[some < len(self)]).astype(np.int64)

    def replaced(self, positions: Positions, rows: Vectors, length: int) -> "RowBlocks":
        """Return a matrix of ``length`` >= n rows, with rows (r, d) at some ascending positions."""
        blocks = list(self._blocks)
        while len(blocks) * BLOCK_ROWS < length:
            blocks.append(frozen(np.zeros((BLOCK_ROWS, self.width), np.float32)))
        for number in np.unique(positions // BLOCK_ROWS).tolist():
            some = slice(*np.searchsorted(positions, (number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)))
            block = blocks[number].copy()
            block[positions[some] % BLOCK_ROWS] = rows[some]
            blocks[number] = frozen(block)
        return RowBlocks(blocks, length, self.width)

    def products(self, right: Vectors) -> Vectors:
        """Return every row times a vector (d,): (n,)."""
        found = np.empty(len(self._blocks) * BLOCK_ROWS, np.float32)
        for number, block in enumerate(self._blocks):
            times_vector(block, right, found[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS])
        return found[: self._length]

    def matrix(self) -> Vectors:
        """Return a copy of all rows as one array."""
        return np.concatenate([*self._blocks, np.zeros((0, self.width), np.float32)])[: self._length]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All data that a reader needs, at one version; immutable."""

    version: int  # number of changes since the store was created
    overlay: Overlay
    parts: dict[str, slice]  # p parts: their columns of the vectors
    known: Positions | None  # (n,) positions in the training network, or -1; None in another network
    vectors: RowBlocks  # (n, d) by position; rows of removed nodes are 0
    unit: RowBlocks  # (n, d + 1) in the form for comparison; see ``unit_parts``
    has: NDArray[np.bool_]  # (n, p) which parts of a vector are not 0
    refreshed: Positions  # positions whose vectors were updated last
    refreshed_to: int  # version up to which all vectors were updated
    due: dict[int, int]  # positions whose own edges changed since they were updated, and the version

    def vector(self, position: int) -> Vectors:
        """Return the vector (d,) of one node."""
        return np.asarray(self.vectors.take(np.array([position]))[0])

    def names(self) -> list[Any]:
        """Return the names of the remaining nodes, in the order of ``overlay.remaining``."""
        return list(self.overlay.names[self.overlay.remaining].tolist())

    def known_in(self, grown: Overlay) -> Positions | None:
        """Return ``known`` for an overlay with more nodes, none of which is in the training network."""
        return None if self.known is None else _padded(self.known, len(grown), -1)


class Live:
    """Applies changes in sequence, and updates the vectors that they affect.

    A vector is updated when the node's rooted PageRank with the near continuation may have drifted by
    ``tolerance``. Far means move slightly with every change; they are updated only with the rest of the
    vector. A new node is not in the training network, so it gets its place from its neighbours. ``version``
    is that of the base graph.

    In a graph of 5,000 edges or more, or if ``is_deferred``, a change computes only the vectors of its new
    nodes. Other affected vectors wait for :meth:`refresh`, which handles all changes so far as one;
    ``boundary`` is the last version that it handled, to be written to the log.
    """

    def __init__(
        self,
        generator: Generator | PaperGenerator,
        base: Graph,
        tolerance: float | None = None,
        *,
        version: int = 0,
        is_deferred: bool | None = None,
    ) -> None:
        self.generator = generator.with_config(threads=1)  # the other cores serve readers
        self.tolerance = TOLERANCE if tolerance is None else tolerance
        self._smoothing: Inputs | None = None  # of a model that smooths structural columns
        if isinstance(generator, PaperGenerator):
            self._continuation, inputs = generator.config.continuation, generator.inputs
            self._reads_neighbors = any(map(reads_neighbors, inputs.columns))
            self._smoothing = inputs if inputs.columns_smoothed else None
        else:
            self._continuation, self._reads_neighbors = generator.config.near, generator.role is not None
        self._lock = Lock()
        self._around: tuple[Graph | None, AroundAll | None] = None, None  # of the current base graph
        self.is_deferred = base.num_edges >= DEFERRED_FROM if is_deferred is None else is_deferred
        self._reset(Overlay.of(base), version, self.generator.known(base))

    def embed(self, overlay: Overlay, positions: Positions, known: Positions | None) -> Vectors:
        """Return the vectors (r, d) of some nodes in an overlay of the base."""
        if not isinstance(self.generator, Generator):
            return self.generator.embed_some(overlay, positions, known)
        with self._lock:  # any thread may be first
            base, around = self._around
            if base is not overlay.base:
                whole = self.generator.with_config(threads=None)
                around = whole.around_all(overlay.base, None if known is None else known[: len(overlay.base)])
                self._around = overlay.base, around
        return self.generator.embed_some(overlay, positions, known, around)

    def _reset(self, overlay: Overlay, version: int, known: Positions | None) -> None:
        """Start from a graph without vectors."""
        count, parts = len(overlay), self.generator.parts
        self.drift = Drift(count, self._continuation, self.tolerance)
        # In a small graph vectors are cheap to update, and effects that are not tracked are larger.
        self.neighbor_drift = NeighborDrift(count, self.tolerance / (1 if self.is_deferred else 5))
        vectors, unit = (RowBlocks([], 0, width) for width in (self.generator.dim, self.generator.dim + 1))
        has, none = np.zeros((0, len(parts)), bool), np.zeros(0, np.int64)
        self.snapshot = Snapshot(version, overlay, parts, known, vectors, unit, has, none, version, {})
        self._smoothed = np.zeros((0, 0), np.float32)  # (n, s) structural columns that the model smooths
        self._staged: Overlay = overlay
        self._touched: list[Positions] = []  # of each staged change
        self.boundary: int | None = None
        self._graph = overlay  # includes all changes that the drifts include
        self._target = version  # of that graph
        self._waiting: Positions | None = None  # to update for that graph; None until they are known
        self.is_between = True  # whether no group of changes is half done, as :meth:`state` requires
        self._later: deque[tuple[int, Positions]] = deque()  # later versions and the positions they touched
        self._groups: deque[list[Change]] = deque()  # of the log, whose vectors were updated together

    def compute_all(self, vectors: Vectors | None = None) -> None:
        """Compute the vectors of all nodes, or use given ones (n, d).

        Updates, which compute single nodes, agree with them within the tolerance of the generator.
        """
        graph = self.snapshot.overlay
        if vectors is None:
            vectors = self.generator.embed(graph, self.snapshot.known)
            vectors[np.setdiff1d(np.arange(len(graph)), graph.remaining)] = 0
        if self._smoothing is not None:
            self._smoothed = self._smoothing.structural(graph)
        self.snapshot = self._with_vectors(np.arange(len(graph)), vectors)

    def stage(self, *changes: Change) -> None:
        """Apply changes only to the graph; :meth:`update` then updates vectors for all of them at once.

        If a change is invalid, this raises and stages none.
        """
        self._staged, touched = _with_changes(self._staged, changes)
        self._touched += touched

    def stage_together(self, changes: Sequence[Change]) -> bool:
        """Stage inserts in one step; return False and stage none unless each is valid by itself."""
        later = {name for change in changes for name in change.names}
        for change in changes:
            later -= set(change.names)
            if any(target in later for _, target in change.edges):
                return False
        with suppress(SpineError):
            self.stage(*changes)
            return True
        return False

    def unstage(self) -> None:
        """Discard the staged changes."""
        self._staged, self._touched = self.snapshot.overlay, []

    def joining(self) -> Vectors:
        """Return the vectors (a, d) of staged new nodes; 0 if one is removed again."""
        new = np.arange(len(self.snapshot.overlay), len(self._staged))
        vectors = np.zeros((len(new), self.generator.dim), np.float32)
        is_there = self._staged.patch.row_ids[new] != REMOVED
        if is_there.any():
            vectors[is_there] = self.embed(self._staged, new[is_there], self.snapshot.known_in(self._staged))
        return vectors

    def update(self, joined: Vectors | None = None) -> Snapshot:
        """Apply the staged changes and return the new snapshot.

        All affected vectors are updated or, if that is deferred, only those of new nodes, which are
        ``joined`` if given.
        """
        now, version = self.snapshot, self.snapshot.version + len(self._touched)
        if self.is_deferred and joined is None:
            joined = self.joining()
        after = _touching(self._staged, self._touched)
        self._staged, self._touched = after, []
        is_gone = after.patch.row_ids[: len(now.overlay)] == REMOVED
        gone = np.flatnonzero(is_gone & (now.overlay.patch.row_ids != REMOVED))
        known, refreshed_to = now.known_in(after), version
        if joined is None:
            new = self._affected(self._graph, after)
            self._graph, joined = after, self.embed(after, new, known)
        else:
            new, refreshed_to = np.arange(len(now.overlay), len(after)), now.refreshed_to
            self._later.append((version, after.touched))
            for position in after.touched[after.touched < len(now.overlay)].tolist():
                now.due[position] = version
        rows = np.concatenate((np.zeros((len(gone), self.generator.dim), np.float32), joined))
        at = {"version": version, "overlay": after, "known": known, "refreshed_to": refreshed_to}
        self.snapshot = self._with_vectors(np.concatenate((gone, new)), rows, refreshed=new, **at)
        return self.snapshot

    def _affected(self, before: Overlay, after: Overlay) -> Positions:
        """Return the positions whose vectors may have moved too far, ascending, and reset their bounds."""
        stale = self.drift.change(before, after)
        if self._reads_neighbors:
            stale = np.union1d(stale, self.neighbor_drift.change(before, after))
            self.neighbor_drift.reset(stale)
            self.drift.reset(stale)
        else:
            self.neighbor_drift.moved = _padded(self.neighbor_drift.moved, len(after))
        return stale if self._smoothing is None else self._follow_columns(self._smoothing, after, stale)

    def _follow_columns(self, inputs: Inputs, graph: Overlay, stale: Positions) -> Positions:
        """Return stale nodes, nodes whose vectors use their smoothed columns, and so on in turn."""
        found, columns = stale, _padded(self._smoothed, len(graph))
        self._smoothed = columns
        for _ in range(_MAX_ROUNDS):
            now = inputs.structural(graph, stale)
            # Columns are between -2 and 2, so half their change counts like a change of the profile.
            change = np.abs(now - columns[stale]).max(axis=1, initial=0) / 2
            columns[stale] = now
            reached = self.drift.reach(graph, stale, change)
            stale = self.drift.reset(np.sort(reached[self.drift.is_over(reached)]))
            found = np.union1d(found, stale)
            if not len(stale):
                break
        return found

    @property
    def is_behind(self) -> bool:
        """Whether vectors wait to be updated."""
        return self.snapshot.refreshed_to < self.snapshot.version

    def refresh(self) -> Snapshot:
        """Update all vectors that wait."""
        while (work := self.next_work()) is not None:
            self.take(work())
        return self.snapshot

    def next_work(self) -> Callable[[], NDArray[Any]] | None:
        """Return the next task that updates waiting vectors, or None if there are none.

        It may run in another thread while changes are applied; pass its result to :meth:`take`.
        """
        if not self.is_behind:
            return None
        if self._waiting is None:
            self.is_between, before = False, self._graph
            self._begin_group()
            return partial(self._affected, before, self._graph)
        known = None if self.snapshot.known is None else self.snapshot.known[: len(self._graph)]
        return partial(self.embed, self._graph, self._waiting[:_UPDATED_TOGETHER], known)

    def take(self, found: NDArray[Any]) -> Snapshot:
        """Apply the result of :meth:`next_work`; return the new snapshot."""
        some, due = np.zeros(0, np.int64), self.snapshot.due
        if self._waiting is None:
            self._waiting = found
        else:
            some, self._waiting = np.split(self._waiting, [_UPDATED_TOGETHER])
            is_there = self.snapshot.overlay.patch.row_ids[some] != REMOVED
            for position in some.tolist():
                if due.get(position, self._target + 1) <= self._target:
                    del due[position]
            some, found = some[is_there], found[is_there]
            self.snapshot = self._with_vectors(some, found)
        if not len(self._waiting):
            self._waiting, self.is_between = None, True
            for position, version in list(due.items()):
                if version <= self._target:  # such nodes were removed meanwhile
                    del due[position]
            self.snapshot = replace(self.snapshot, refreshed_to=self._target)
        self.snapshot = replace(self.snapshot, refreshed=some)
        return self.snapshot

    def _begin_group(self) -> None:
        """Start with the next group of changes of the log, or else all changes so far."""
        if self._groups:
            changes = self._groups.popleft()
            self._target += len(changes)
            self._graph = _touching(*_with_changes(self._graph.branch(), changes))
            while self._later and self._later[0][0] <= self._target:
                self._later.popleft()
        else:
            self._target = self.boundary = self.snapshot.version
            self._graph = _touching(self.snapshot.overlay, [touched for _, touched in self._later])
            self._later.clear()

    def _with_vectors(self, positions: Positions, vectors: Vectors, **changes: Any) -> Snapshot:
        """Return the snapshot with new vectors (r, d) at some positions, and with other changed fields."""
        now = replace(self.snapshot, **changes)
        order, count = np.argsort(positions), len(now.overlay)
        positions, vectors = positions[order], vectors[order]
        has = _padded(now.has, count)
        for index, columns in enumerate(now.parts.values()):
            has[positions, index] = vectors[:, columns].any(axis=1)
        rows = now.vectors.replaced(positions, vectors, count)
        unit = now.unit.replaced(positions, unit_parts(now.parts, vectors), count)
        return replace(now, vectors=rows, unit=unit, has=has)

    def replay(self, changes: Sequence[Change]) -> None:
        """Apply changes only to the graph; :meth:`load_state` must follow."""
        overlay, _ = _with_changes(self.snapshot.overlay, changes)
        self.snapshot = replace(self.snapshot, version=self.snapshot.version + len(changes), overlay=overlay)

    def resume(self, changes: Sequence[tuple[Change, bool]]) -> None:
        """Apply the changes of the log, each with whether vectors were updated after it.

        If updates are deferred, they are left to :meth:`refresh`.
        """
        if not self.is_deferred:
            for change, is_last in changes:
                self.stage(change)
                if is_last:
                    self.update()
            return
        listed = [change for change, _ in changes]
        ends = [0, *(count for count, (_, is_last) in enumerate(changes, start=1) if is_last)]
        self._groups.extend(listed[start:stop] for start, stop in pairwise(ends))
        self._join(listed[: ends[-1]])
        self._later.clear()  # groups compute again which positions they touched
        self._join(listed[ends[-1] :])

    def _join(self, changes: Sequence[Change]) -> None:
        """Apply changes whose new nodes have vectors in the log."""
        for (kind, is_new), run in groupby(changes, key=lambda one: (one.kind, one.vectors is None)):
            some = list(run)
            self.stage(*some)
            kept = b"".join(b64decode(change.vectors or "") for change in some)
            rows = np.frombuffer(kept, np.float32).reshape(-1, self.generator.dim)
            self.update(None if is_new and kind == "add" else rows)

    def state(self, *, with_vectors: bool = True) -> dict[str, NDArray[Any]]:
        """Return all state that depends on the order of changes, at ``refreshed_to``, as arrays (n, ...)."""
        now, count = self.snapshot, len(self._graph)
        return {
            **({"vectors": now.vectors.matrix()[:count]} if with_vectors else {}),
            **({"known": now.known[:count]} if now.known is not None else {}),
            "moved": self.drift.moved.copy(),
            "pending": self.drift.pending.copy(),
            "near": self.neighbor_drift.moved.copy(),
            **({"columns": self._smoothed.copy()} if self._smoothing is not None else {}),
        }

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what :meth:`state` returned for the current graph."""
        overlay = self.snapshot.overlay
        self._reset(overlay, self.snapshot.version, state.get("known"))
        self.drift.moved[:], self.drift.pending[:] = state["moved"], state["pending"]
        self.neighbor_drift.moved[:] = state["near"]
        self._smoothed = state.get("columns", self._smoothed)
        self.snapshot = self._with_vectors(np.arange(len(overlay)), state["vectors"])

    def compacted(self) -> tuple[Graph, dict[str, NDArray[Any]]]:
        """Return a new base graph with all changes, and the state by its positions, with vectors updated."""
        self.refresh()
        overlay = self.snapshot.overlay
        state = {name: array[overlay.remaining] for name, array in self.state().items()}
        return overlay.materialize(), state

    def rebase(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Snapshot:
        """Continue from what :meth:`compacted` returned."""
        self._reset(Overlay.of(graph), self.snapshot.version, None)
        self.load_state(state)
        return self.snapshot


def unit_parts(parts: Parts, vectors: Vectors, weights: Mapping[str, float] | None = None) -> Vectors:
    """Return vectors (m, d) like ``Embeddings.weighted``, of length 1, (m, d + 1); see ``unit_rows``."""
    found = np.empty_like(vectors)
    for name, factor in part_weights(parts, weights).items():
        found[:, parts[name]] = unit_length(vectors[:, parts[name]]) * np.float32(np.sqrt(factor))
    return unit_rows(found)


def encoded(vectors: Vectors) -> str:
    """Return vectors (a, d) in the form that changes contain."""
    return b64encode(np.ascontiguousarray(vectors).data).decode()


def _with_changes(overlay: Overlay, changes: Sequence[Change]) -> tuple[Overlay, list[Positions]]:
    """Return an overlay with changes, merged to few, and the touched positions, padded to one per change."""
    touched = []
    for change in _merged(changes):
        overlay = change.apply(overlay)
        touched.append(overlay.touched)
    return overlay, touched + [np.zeros(0, np.int64)] * (len(changes) - len(touched))


def _merged(changes: Sequence[Change]) -> Iterator[Change]:
    """Yield fewer changes with the same effect; weighted ones stay separate, so that sums have one order."""
    for kind, run in groupby(changes, key=lambda change: change.kind):
        some = list(run)
        if kind == "remove" or any(change.weights is not None for change in some):
            yield from some
            continue
        names = [name for change in some for name in change.names]
        edges = [edge for change in some for edge in change.edges]
        features = [row for change in some for row in change.features or ()]
        yield Change(kind, names, edges, features=None if some[0].features is None else features)


def _touching(overlay: Overlay, touched: Sequence[Positions]) -> Overlay:
    """Return an overlay whose ``touched`` is that of several changes."""
    found = np.unique(np.concatenate((np.zeros(0, np.int64), *touched)))
    return replace(overlay, touched=found[overlay.patch.row_ids[found] != REMOVED])


def _padded(values: NDArray[Any], count: int, value: int = 0) -> NDArray[Any]:
    """Return a copy with ``count`` rows, new ones filled with a value."""
    more = np.full((count - len(values), *values.shape[1:]), value, values.dtype)
    return np.concatenate((values, more))
