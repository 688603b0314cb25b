"""The state of a running service: a pure function of the base graph and the changes since, in their order."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.errors import SpineError
from spinegraph.generator import Generator
from spinegraph.graph.edges import frozen
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.overlay import REMOVED, Overlay
from spinegraph.kernels.sparse import sparse_times_dense
from spinegraph.structure.drift import Drift, NeighborDrift, reads_neighbors
from spinegraph.structure.pagerank import multiply

Name = str | int


@dataclass(frozen=True)
class Change:
    """Nodes and edges that come together, or go together.

    Attributes
    ----------
    kind : {"add", "remove"}
    names : list
    edges : list of pairs of names
    weights : list of float or None
        Of added edges, where the graph is weighted.
    features : list of (columns, values), or None
        One sparse row per added node, where the graph has features.
    """

    kind: str
    names: list[Name] = field(default_factory=list)
    edges: list[tuple[Name, Name]] = field(default_factory=list)
    weights: list[float] | None = None
    features: list[tuple[list[int], list[float]]] | None = None

    def apply(self, overlay: Overlay) -> Overlay:
        """Return the overlay with this change."""
        if self.kind == "remove":
            return overlay.remove(self.names, self.edges)
        return overlay.add(self.names, self.edges, self._matrix(overlay), self.weights)

    def _matrix(self, overlay: Overlay) -> csr_array | None:
        if self.features is None or overlay.base.features is None:
            return None
        lengths = [len(columns) for columns, _ in self.features]
        indices = np.array([column for columns, _ in self.features for column in columns], np.int32)
        data = np.array([value for _, values in self.features for value in values], np.float32)
        width = overlay.base.features.shape[1]
        indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return csr_array((data, indices, indptr), shape=(len(self.names), width))

    def to_text(self) -> str:
        """Return the change as JSON; numbers come back exactly."""
        whole: dict[str, Any] = {"kind": self.kind, "names": self.names, "edges": self.edges}
        if self.weights is not None:
            whole["weights"] = self.weights
        if self.features is not None:
            whole["features"] = self.features
        return json.dumps(whole, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Change":
        """Read what ``to_text`` wrote."""
        whole = json.loads(text)
        features = whole.get("features")
        return cls(
            whole["kind"],
            whole["names"],
            [(source, target) for source, target in whole["edges"]],
            whole.get("weights"),
            None if features is None else [(columns, values) for columns, values in features],
        )


def feature_rows(rows: list[NDArray[np.float32]]) -> list[tuple[list[int], list[float]]]:
    """Return dense rows (f,) as columns and values that are not zero."""
    found = []
    for row in rows:
        columns = np.flatnonzero(row)
        found.append((columns.tolist(), row[columns].tolist()))
    return found


SIZE = 128  # rows a block: small to copy, large enough that a product over all blocks costs little more


class Chunks:
    """A matrix (n, d) that never changes; changed ones share the blocks that are the same."""

    __slots__ = ("_blocks", "_length", "width")

    def __init__(self, blocks: list[NDArray[np.float32]], length: int, width: int) -> None:
        self._blocks, self._length, self.width = blocks, length, width

    @classmethod
    def of(cls, matrix: NDArray[np.float32]) -> "Chunks":
        """Cut a matrix into blocks."""
        empty = cls([], 0, matrix.shape[1])
        return empty.replaced(np.arange(len(matrix)), matrix, len(matrix))

    def __len__(self) -> int:
        return self._length

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some rows, (r, d)."""
        if len(positions) == 1:
            return np.array(self._blocks[positions[0] // SIZE][positions % SIZE])
        rows = np.empty((len(positions), self.width), np.float32)
        numbers = positions // SIZE
        bounds = np.concatenate((np.flatnonzero(np.diff(numbers, prepend=-1)), [len(positions)])).tolist()
        for start, stop in pairwise(bounds):
            rows[start:stop] = self._blocks[numbers[start]][positions[start:stop] % SIZE]
        return rows

    def replaced(self, positions: NDArray[np.int64], rows: NDArray[np.float32], length: int) -> "Chunks":
        """Return a matrix of ``length`` rows with some rows replaced; rows that are new and not given are 0.

        Parameters
        ----------
        positions : int64 array (r,)
            Ascending.
        rows : float32 array (r, d)
        length : int
            Not below the present one.
        """
        blocks = list(self._blocks)
        while len(blocks) * SIZE < length:
            blocks.append(frozen(np.zeros((SIZE, self.width), np.float32)))
        numbers = positions // SIZE
        bounds = np.concatenate((np.flatnonzero(np.diff(numbers, prepend=-1)), [len(positions)])).tolist()
        for start, stop in pairwise(bounds):
            block = blocks[numbers[start]].copy()
            block[positions[start:stop] % SIZE] = rows[start:stop]
            blocks[numbers[start]] = frozen(block)
        return Chunks(blocks, length, self.width)

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Return the rows block after block, (<= SIZE, d) each."""
        for number, block in enumerate(self._blocks):
            yield block[: self._length - number * SIZE]

    def products(self, vector: NDArray[np.float32], start: int = 0) -> NDArray[np.float32]:
        """Return the product of every row from ``start`` on with a vector (d,), (n - start,)."""
        first = start // SIZE
        found = np.empty((len(self._blocks) - first) * SIZE, np.float32)
        for number, block in enumerate(self._blocks[first:]):
            np.dot(block, vector, out=found[number * SIZE : (number + 1) * SIZE])
        return found[start - first * SIZE : self._length - first * SIZE]

    def matrix(self) -> NDArray[np.float32]:
        """Return all rows in one piece, a copy."""
        whole = np.concatenate([*self._blocks, np.zeros((0, self.width), np.float32)])
        return whole[: self._length]


class Contents:
    """Rows of F W_M by position, filled as they are met; one thread at a time.

    Vectors of some roots are then T times these rows. Every row is a sum of its own in a fixed order,
    so that it is the same to the bit whenever and beside whichever others it is computed.

    Parameters
    ----------
    generator : Generator
        One that reads features, with no structural columns through T: those change.
    """

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._weights = np.ascontiguousarray(generator.weights[: generator.inputs.num_through])
        self._rows = np.empty((0, generator.dim), np.float32)
        self._is_known = np.zeros(0, bool)

    def __len__(self) -> int:
        """Return for how many nodes there is room."""
        return len(self._rows)

    def embed(self, graph: GraphLike, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors (r, d) of some nodes, as ``Generator.embed`` does."""
        inputs = self._generator.inputs
        profile = inputs.profile(graph, positions)
        operator = profile.operator(1)
        self._fill(graph, operator.indices)
        content = sparse_times_dense(operator.indptr, operator.indices, operator.data, self._rows, 1)
        vectors = self._generator.activated(content)
        if inputs.past:
            columns = inputs.structural(graph, positions, profile)
            vectors += columns @ self._generator.weights[inputs.num_through :]
        return vectors

    def _fill(self, graph: GraphLike, positions: NDArray[Any]) -> None:
        """Compute the rows of some nodes that are not known."""
        self._grow(len(graph))
        missing = positions[~self._is_known[positions]]
        if len(missing):
            missing = np.unique(missing).astype(np.int64)
            inputs = self._generator.inputs
            # Sparse whatever it is: a dense product's last bits depend on how many rows it has.
            self._rows[missing] = multiply(csr_array(inputs.around(graph, missing)), self._weights, 1)
            self._is_known[missing] = True

    def _grow(self, count: int) -> None:
        """Make room, and some more; rows that were never met are never written, so they take no memory."""
        if count > len(self):
            rows = np.empty((count + count // 4, self._rows.shape[1]), np.float32)
            known = np.flatnonzero(self._is_known)
            rows[known] = self._rows[known]
            self._is_known = np.concatenate((self._is_known, np.zeros(len(rows) - len(self), bool)))
            self._rows = rows


def embedder(generator: Generator) -> Callable[[Any, NDArray[np.int64]], NDArray[np.float32]]:
    """Return what computes the vectors of some nodes of a graph, and keeps what it can for the next time."""
    reads_features = generator.inputs.encoder is not None
    return Contents(generator).embed if reads_features and not generator.inputs.through else generator.embed


_MOST_ROUNDS = 4  # of columns that move columns, in models whose columns go through T


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a reader may need, at one moment; it never changes.

    Attributes
    ----------
    version : int
        Number of changes since the store began.
    overlay : Overlay
    vectors : Chunks (n, d)
        By position; rows of removed nodes are 0.
    lengths : float32 array (n,)
        Of the vectors.
    refreshed : int64 array
        Positions that the last change computed anew.
    """

    version: int
    overlay: Overlay
    vectors: Chunks
    lengths: NDArray[np.float32]
    refreshed: NDArray[np.int64]

    def vector(self, position: int) -> NDArray[np.float32]:
        """Return one node's vector (d,)."""
        found: NDArray[np.float32] = self.vectors.take(np.array([position]))[0]
        return found


class Live:
    """Applies changes one after the other, and computes anew what they concern.

    Parameters
    ----------
    generator : Generator
    base : Graph
    tolerance : float, optional
        How far a root's rooted PageRank may move before it is computed anew; the model's own by default.
    """

    def __init__(
        self, generator: Generator, base: Graph, tolerance: float | None = None, *, version: int = 0
    ) -> None:
        config = replace(generator.inputs.config, threads=1)  # the other core is the readers'
        self.generator = Generator(replace(generator.inputs, config=config), generator.weights)
        self.tolerance = config.tolerance if tolerance is None else tolerance
        self._graph: Overlay  # as taken so far
        self._reads_neighbors = any(map(reads_neighbors, generator.inputs.columns))
        self._begin(Overlay.of(base), version)

    def _begin(self, overlay: Overlay, version: int) -> None:
        count, dim = len(overlay), self.generator.dim
        self.drift = Drift(count, self.generator.inputs.config.continuation, self.tolerance)
        self.near = NeighborDrift(count, self.tolerance)
        inputs = self.generator.inputs
        self.columns = np.zeros((count, len(inputs.columns) * inputs.through), np.float32)
        vectors = Chunks.of(np.zeros((count, dim), np.float32))
        self.tip = Snapshot(version, overlay, vectors, np.zeros(count, np.float32), np.zeros(0, np.int64))
        self._embed = embedder(self.generator)
        self._begin_taking(overlay)

    def compute_all(self, vectors: NDArray[np.float32] | None = None) -> None:
        """Compute every node's vector anew, or take those that are known."""
        graph = self.tip.overlay
        if vectors is None:
            vectors = self.generator.embed(graph)
            vectors[np.setdiff1d(np.arange(len(graph)), graph.standing)] = 0
        if self.generator.inputs.through:
            self.columns = self.generator.inputs.structural(graph)
        self._take(np.arange(len(graph)), vectors)

    def apply(self, change: Change) -> Snapshot:
        """Apply one change and return the new snapshot; one that breaks a rule raises and changes nothing."""
        self.take(change)
        return self.settle()

    def take(self, change: Change) -> None:
        """Apply a change to the graph alone; :meth:`settle` computes what it and others before it concern.

        One that breaks a rule raises and changes nothing. Between two settlements changes are of one kind,
        so that what came and what went is seen from the graphs before and after.
        """
        after: Overlay = change.apply(self._graph)  # all that may break a rule
        self._touched.append(after.touched)
        self._graph = after

    def settle(self) -> Snapshot:
        """Compute, once for all changes since the last time, what they concern; return the new snapshot."""
        before, count = self.tip.overlay, len(self._touched)
        touched = np.unique(np.concatenate((np.zeros(0, np.int64), *self._touched)))
        touched = touched[self._graph.patch.row_ids[touched] != REMOVED]
        after = replace(self._graph, touched=touched)
        self._begin_taking(after)
        try:
            return self._go_on(before, after, self.tip.version + count)
        except SpineError as fault:
            raise RuntimeError(f"a change that keeps the rules failed: {fault}") from fault

    def _begin_taking(self, overlay: Overlay) -> None:
        self._graph = overlay
        self._touched: list[NDArray[np.int64]] = []  # of each change since

    def _go_on(self, before: Overlay, after: Overlay, version: int) -> Snapshot:
        stale = self.drift.change(before, after)
        if self._reads_neighbors:
            stale = np.union1d(stale, self.near.change(before, after))
            self.near.computed(stale)
            self.drift.computed(stale)
        else:
            self.near.moved = _grown(self.near.moved, len(after))
        places, was = after.patch.row_ids[: len(before)], before.patch.row_ids
        gone = np.flatnonzero((places == REMOVED) & (was != REMOVED))
        vectors = self.tip.vectors.replaced(gone, _zeros(gone, self.tip.vectors), len(after))
        lengths = _grown(self.tip.lengths, len(after))
        lengths[gone] = 0
        self.tip = Snapshot(version, after, vectors, lengths, stale)
        self._refresh(stale)
        return self.tip

    def pass_over(self, change: Change) -> None:
        """Apply a change to the graph alone; :meth:`resume` brings what it led to."""
        self.tip = replace(self.tip, version=self.tip.version + 1, overlay=change.apply(self.tip.overlay))
        self._begin_taking(self.tip.overlay)

    def state(self, *, with_vectors: bool = True) -> dict[str, NDArray[Any]]:
        """Return all that depends on the order of changes, as arrays (n, ...)."""
        vectors = {"vectors": self.tip.vectors.matrix()} if with_vectors else {}
        return {
            **vectors,
            "moved": self.drift.moved.copy(),
            "pending": self.drift.pending.copy(),
            "near": self.near.moved.copy(),
            "columns": self.columns.copy(),
        }

    def resume(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what :meth:`state` returned, for the graph as it is now."""
        overlay, version = self.tip.overlay, self.tip.version
        self._begin(overlay, version)
        self.drift.moved[:], self.drift.pending[:] = state["moved"], state["pending"]
        self.near.moved[:], self.columns[:] = state["near"], state["columns"]
        self._take(np.arange(len(overlay)), state["vectors"])

    def rebase(self) -> Graph:
        """Fold all changes into a new base graph and go on from there; return it."""
        kept, state, version = self.tip.overlay.standing, self.state(), self.tip.version
        graph = self.tip.overlay.materialize()
        self._begin(Overlay.of(graph), version)
        self.resume({name: array[kept] for name, array in state.items()})
        return graph

    def _refresh(self, stale: NDArray[np.int64]) -> None:
        graph, inputs = self.tip.overlay, self.generator.inputs
        self._take(stale, self._embed(graph, stale))
        self.columns = _grown(self.columns, len(graph))
        if not inputs.through:
            return
        for _ in range(_MOST_ROUNDS):
            columns = inputs.structural(graph, stale)
            # Columns lie between -2 and 2, so half their change counts like a change of the profile.
            change = np.abs(columns - self.columns[stale]).max(axis=1, initial=0) / 2
            self.columns[stale] = columns
            reached = self.drift.reach(graph, stale, change)
            stale = np.sort(reached[self.drift.is_over(reached)])
            if not len(stale):
                return
            self.drift.computed(stale)
            self._take(stale, self._embed(graph, stale))
            self.tip = replace(self.tip, refreshed=np.union1d(self.tip.refreshed, stale))

    def _take(self, positions: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        lengths = self.tip.lengths.copy()
        lengths[positions] = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1))
        rows = self.tip.vectors.replaced(positions, vectors, len(self.tip.overlay))
        self.tip = replace(self.tip, vectors=rows, lengths=lengths)


def _grown(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a copy with rows of 0 behind, ``count`` in all."""
    return np.concatenate((values, np.zeros((count - len(values), *values.shape[1:]), values.dtype)))


def _zeros(positions: NDArray[np.int64], like: Chunks) -> NDArray[np.float32]:
    return np.zeros((len(positions), like.width), np.float32)
