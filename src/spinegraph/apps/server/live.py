"""The state of a running service: a pure function of the base graph and the changes since, in their order."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.apps.server.changes import Change
from spinegraph.apps.server.chunks import Chunks
from spinegraph.apps.server.contents import embedder
from spinegraph.errors import SpineError
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay import Overlay
from spinegraph.graph.patch import REMOVED
from spinegraph.structure.drift import Drift, NeighborDrift, reads_neighbors

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

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> graph = made.barbell(8, bridge=4)
    >>> live = Live(SPINE(dim=4, steps=5).fit(graph).generator_, graph)
    >>> after = live.apply(Change("add", ["new"], [("new", 0)]))
    >>> after.version, after.vectors.matrix().shape
    (1, (21, 4))
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
        touched = touched[self._graph.patch.places[touched] != REMOVED]
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
        places, was = after.patch.places[: len(before)], before.patch.places
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
