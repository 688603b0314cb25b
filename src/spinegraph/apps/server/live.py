"""The state of a running service: a pure function of the base graph and of the ordered changes since."""

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.graph.edges import frozen
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay import REMOVED, Overlay
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import PaperGenerator
from spinegraph.structure.drift import Drift, NeighborDrift, reads_neighbors

Name = str | int
BLOCK_ROWS = 128  # cheap to copy, yet large enough for fast products
TOLERANCE = 0.05  # by which a node's rooted PageRank may drift before its vector is updated
_MAX_ROUNDS = 4  # updates of columns that change other columns, in models of 0.1.0 that smooth their columns


@dataclass(frozen=True)
class Change:
    """Nodes and edges that are added together, or removed together."""

    kind: str  # "add" or "remove"
    names: list[Name] = field(default_factory=list)
    edges: list[tuple[Name, Name]] = field(default_factory=list)
    weights: list[float] | None = None  # of added edges, if the graph is weighted
    features: list[tuple[list[int], list[float]]] | None = (
        None  # (columns, values) per added node, if it has any
    )

    def apply(self, overlay: Overlay) -> Overlay:
        """Return the overlay with this change."""
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

    def to_text(self) -> str:
        """Return the change as JSON; numbers survive exactly."""
        parts = {key: part for key, part in vars(self).items() if part is not None}
        return json.dumps(parts, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Change":
        """Read what ``to_text`` wrote."""
        parts = json.loads(text)
        parts["edges"] = [(source, target) for source, target in parts["edges"]]
        return cls(**parts)


class RowBlocks:
    """An immutable matrix (n, d) in blocks of rows; changed copies share the blocks that stay the same."""

    __slots__ = ("_blocks", "_length", "width")

    def __init__(self, blocks: list[NDArray[np.float32]], length: int, width: int) -> None:
        self._blocks, self._length, self.width = blocks, length, width

    @classmethod
    def from_matrix(cls, matrix: NDArray[np.float32]) -> "RowBlocks":
        """Copy a matrix into blocks."""
        return cls([], 0, matrix.shape[1]).replaced(np.arange(len(matrix)), matrix, len(matrix))

    def __len__(self) -> int:
        return self._length

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some rows, (r, d)."""
        if len(positions) == 1:
            return np.array(self._blocks[positions[0] // BLOCK_ROWS][positions % BLOCK_ROWS])
        rows = np.empty((len(positions), self.width), np.float32)
        for number, some in _runs(positions):
            rows[some] = self._blocks[number][positions[some] % BLOCK_ROWS]
        return rows

    def replaced(self, positions: NDArray[np.int64], rows: NDArray[np.float32], length: int) -> "RowBlocks":
        """Return a matrix of ``length`` >= n rows, some at ascending positions replaced by rows (r, d)."""
        blocks = list(self._blocks)
        while len(blocks) * BLOCK_ROWS < length:
            blocks.append(frozen(np.zeros((BLOCK_ROWS, self.width), np.float32)))
        for number, some in _runs(positions):
            block = blocks[number].copy()
            block[positions[some] % BLOCK_ROWS] = rows[some]
            blocks[number] = frozen(block)
        return RowBlocks(blocks, length, self.width)

    def products(self, right: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return every row times a matrix (d, p) or a vector (d,): (n, p) or (n,)."""
        found = np.empty((len(self._blocks) * BLOCK_ROWS, *right.shape[1:]), np.float32)
        for number, block in enumerate(self._blocks):
            np.dot(block, right, out=found[number * BLOCK_ROWS : (number + 1) * BLOCK_ROWS])
        return found[: self._length]

    def matrix(self) -> NDArray[np.float32]:
        """Return a copy of all rows as one array."""
        rows = np.concatenate([*self._blocks, np.zeros((0, self.width), np.float32)])
        return rows[: self._length]


def _runs(positions: NDArray[np.int64]) -> list[tuple[int, slice]]:
    """Return the block number and the slice of every run of positions within one block."""
    numbers = positions // BLOCK_ROWS
    bounds = np.concatenate((np.flatnonzero(np.diff(numbers, prepend=-1)), [len(positions)])).tolist()
    return [(int(numbers[start]), slice(start, stop)) for start, stop in pairwise(bounds)]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a reader needs, at one version; immutable."""

    version: int  # number of changes since the store was created
    overlay: Overlay
    parts: dict[str, slice]  # p parts: their columns of the vectors
    known: NDArray[np.int64] | None  # (n,) positions in the training network, -1; None in another network
    vectors: RowBlocks  # (n, d) by position; rows of removed nodes are 0
    norms: NDArray[np.float32]  # (n, p) of the parts of the vectors
    refreshed: NDArray[np.int64]  # positions whose vectors the last change updated

    def vector(self, position: int) -> NDArray[np.float32]:
        """Return the vector (d,) of one node."""
        return np.asarray(self.vectors.take(np.array([position]))[0])

    def names(self) -> list[Any]:
        """Return the names of the nodes that were not removed, in the order of ``overlay.standing``."""
        return list(self.overlay.names[self.overlay.standing].tolist())

    def known_in(self, grown: Overlay) -> NDArray[np.int64] | None:
        """Return ``known`` for an overlay with more nodes, which the training network does not have."""
        return None if self.known is None else _padded(self.known, len(grown), -1)


class Live:
    """Applies changes one after the other, and updates the vectors that they affect.

    A vector is updated when the rooted PageRank of what is near the node may have drifted by ``tolerance``.
    Features far around, which every change moves a little, are refreshed together with the rest of the vector
    alone. A new node is not in the training network, so it gets its place from its neighbours. ``version`` is
    that of the base graph.
    """

    def __init__(
        self,
        generator: Generator | PaperGenerator,
        base: Graph,
        tolerance: float | None = None,
        *,
        version: int = 0,
    ) -> None:
        self.generator = generator.with_config(threads=1)  # the other cores serve readers
        self.tolerance = TOLERANCE if tolerance is None else tolerance
        if isinstance(generator, PaperGenerator):
            self._continuation = generator.config.continuation
            self._reads_neighbors = any(map(reads_neighbors, generator.inputs.columns))
            self._smooths_columns = generator.inputs.columns_smoothed
        else:
            self._continuation = generator.config.near
            self._reads_neighbors = generator.role is not None
            self._smooths_columns = False
        self._touched: list[NDArray[np.int64]]  # by each staged change
        self._reset(Overlay.of(base), version, self.generator.known(base))

    def _reset(self, overlay: Overlay, version: int, known: NDArray[np.int64] | None) -> None:
        """Start from a graph whose vectors are not known yet."""
        count, parts = len(overlay), self.generator.parts
        self.drift = Drift(count, self._continuation, self.tolerance)
        self.neighbor_drift = NeighborDrift(count, self.tolerance)
        vectors = RowBlocks.from_matrix(np.zeros((count, self.generator.dim), np.float32))
        norms, none = np.zeros((count, len(parts)), np.float32), np.zeros(0, np.int64)
        self.snapshot = Snapshot(version, overlay, parts, known, vectors, norms, none)
        self._smoothed: NDArray[np.float32] | None = None  # (n, s) structural columns that the model smooths
        self._staged, self._touched = overlay, []

    def compute_all(self, vectors: NDArray[np.float32] | None = None) -> None:
        """Compute the vectors of all nodes, or take known ones (n, d).

        They agree with those of single nodes, which updates compute, within the tolerance of the generator.
        """
        graph = self.snapshot.overlay
        if vectors is None:
            vectors = self.generator.embed(graph, self.snapshot.known)
            vectors[np.setdiff1d(np.arange(len(graph)), graph.standing)] = 0
        if isinstance(self.generator, PaperGenerator) and self._smooths_columns:
            self._smoothed = self.generator.inputs.structural(graph)
        self._set_vectors(np.arange(len(graph)), vectors)

    def apply(self, change: Change) -> Snapshot:
        """Apply one change and return the new snapshot; an invalid one raises and changes nothing."""
        self.stage(change)
        return self.update()

    def stage(self, change: Change) -> None:
        """Apply a change to the graph alone; :meth:`update` then updates vectors once for all staged changes.

        An invalid change raises and is not staged. Changes staged together are of one kind, so that the
        graphs before and after show what was added or removed.
        """
        after = change.apply(self._staged)  # validates
        self._touched.append(after.touched)
        self._staged = after

    def update(self) -> Snapshot:
        """Update the vectors that the staged changes affect; return the new snapshot."""
        before, version = self.snapshot.overlay, self.snapshot.version + len(self._touched)
        touched = np.unique(np.concatenate((np.zeros(0, np.int64), *self._touched)))
        touched = touched[self._staged.patch.row_ids[touched] != REMOVED]
        after = replace(self._staged, touched=touched)
        self._staged, self._touched = after, []
        stale = self.drift.change(before, after)
        if self._reads_neighbors:
            stale = np.union1d(stale, self.neighbor_drift.change(before, after))
            self.neighbor_drift.computed(stale)
            self.drift.computed(stale)
        else:
            self.neighbor_drift.moved = _padded(self.neighbor_drift.moved, len(after))
        is_gone = after.patch.row_ids[: len(before)] == REMOVED
        gone = np.flatnonzero(is_gone & (before.patch.row_ids != REMOVED))
        zeros = np.zeros((len(gone), self.generator.dim), np.float32)
        vectors = self.snapshot.vectors.replaced(gone, zeros, len(after))
        norms = _padded(self.snapshot.norms, len(after))
        norms[gone] = 0
        known = self.snapshot.known_in(after)
        self.snapshot = Snapshot(version, after, self.snapshot.parts, known, vectors, norms, stale)
        self._set_vectors(stale, self.generator.embed_some(after, stale, known))
        if isinstance(self.generator, PaperGenerator) and self._smoothed is not None:
            self._follow_columns(self.generator, _padded(self._smoothed, len(after)), stale)
        return self.snapshot

    def _follow_columns(
        self, generator: PaperGenerator, columns: NDArray[np.float32], stale: NDArray[np.int64]
    ) -> None:
        """Update vectors of nodes that smooth columns of stale nodes, and of others that smooth theirs."""
        graph, self._smoothed = self.snapshot.overlay, columns
        for _ in range(_MAX_ROUNDS):
            now = generator.inputs.structural(graph, stale)
            # Columns lie between -2 and 2, so half their change counts like a change of the profile.
            change = np.abs(now - columns[stale]).max(axis=1, initial=0) / 2
            columns[stale] = now
            reached = self.drift.reach(graph, stale, change)
            stale = self.drift.computed(np.sort(reached[self.drift.is_over(reached)]))
            if not len(stale):
                return
            self._set_vectors(stale, self.generator.embed_some(graph, stale))
            self.snapshot = replace(self.snapshot, refreshed=np.union1d(self.snapshot.refreshed, stale))

    def _set_vectors(self, positions: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        norms = self.snapshot.norms.copy()
        for index, columns in enumerate(self.snapshot.parts.values()):
            squares = np.square(vectors[:, columns], dtype=np.float64)
            norms[positions, index] = np.sqrt(squares.sum(axis=1))
        rows = self.snapshot.vectors.replaced(positions, vectors, len(self.snapshot.overlay))
        self.snapshot = replace(self.snapshot, vectors=rows, norms=norms)

    def replay(self, change: Change) -> None:
        """Apply a change to the graph alone, when :meth:`load_state` follows."""
        overlay = change.apply(self.snapshot.overlay)
        self.snapshot = replace(self.snapshot, version=self.snapshot.version + 1, overlay=overlay)

    def state(self, *, with_vectors: bool = True) -> dict[str, NDArray[Any]]:
        """Return all that depends on the order of changes, as arrays (n, ...)."""
        now = self.snapshot
        return {
            **({"vectors": now.vectors.matrix()} if with_vectors else {}),
            **({"known": now.known} if now.known is not None else {}),
            "moved": self.drift.moved.copy(),
            "pending": self.drift.pending.copy(),
            "near": self.neighbor_drift.moved.copy(),
            **({"columns": self._smoothed.copy()} if self._smoothed is not None else {}),
        }

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what :meth:`state` returned for the present graph."""
        overlay = self.snapshot.overlay
        self._reset(overlay, self.snapshot.version, state.get("known"))
        self.drift.moved[:], self.drift.pending[:] = state["moved"], state["pending"]
        self.neighbor_drift.moved[:] = state["near"]
        self._smoothed = state["columns"] if self._smooths_columns else None
        self._set_vectors(np.arange(len(overlay)), state["vectors"])

    def compact(self) -> Graph:
        """Fold all changes into a new base graph, continue from it, and return it."""
        overlay, state = self.snapshot.overlay, self.state()
        graph = overlay.materialize()
        self._reset(Overlay.of(graph), self.snapshot.version, None)
        self.load_state({name: array[overlay.standing] for name, array in state.items()})
        return graph


def _padded(values: NDArray[Any], count: int, value: int = 0) -> NDArray[Any]:
    """Return a copy with ``count`` rows, the new ones filled with a value."""
    more = np.full((count - len(values), *values.shape[1:]), value, values.dtype)
    return np.concatenate((values, more))
