"""Look-alikes of live vectors: every node compared, or an index and all that is newer than it."""

from dataclasses import dataclass
from threading import Lock, Thread

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.nearest import EXACT_UP_TO, Nearest, ordered, unit_rows
from spinegraph.analysis.nearest_index import NearestIndex, can_index
from spinegraph.apps.server.live import Snapshot
from spinegraph.graph.patch import REMOVED

_ROUNDING = 1e-5  # of a float32 product; those this close are ordered by float64
_MORE = 2  # times as many are asked of the index, since some may be gone or have moved
_MOST_NEWER = 5_000  # nodes that the index does not know before it is made anew
_NEAR_ENOUGH = 0.98  # cosine to the vector that the index knows


@dataclass(frozen=True, eq=False)
class _Index:
    """An index of the vectors of one snapshot."""

    found: NearestIndex
    snapshot: Snapshot


class Lookup:
    """Finds the nodes whose vectors are most like a given one, in any snapshot.

    Up to 20,000 nodes, and where usearch is not installed, every node is compared. Beyond, an index names the
    candidates among the nodes it knows, nodes that joined or moved since are compared one by one, and all are
    ordered by their present vectors. The index is made anew, beside the work, when these are many.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.apps.server.live import Live
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(8, bridge=4))
    >>> live = Live(model.generator_, model.graph_)
    >>> live.compute_all(model.embeddings_.vectors)
    >>> len(Lookup().nearest(live.tip, live.tip.vector(0), 3, itself=0).positions)
    3
    """

    def __init__(self, exact_up_to: int = EXACT_UP_TO) -> None:
        self._exact_up_to = exact_up_to
        self._index: _Index | None = None
        self._lock = Lock()
        self._making: Thread | None = None
        self._moved = np.zeros(0, np.int64)

    def nearest(
        self, snapshot: Snapshot, vector: NDArray[np.float32], n: int, itself: int | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like a vector (d,), most alike first, but for one position."""
        index = self._index
        if index is not None and index.snapshot.overlay.base is snapshot.overlay.base:
            return self._by_index(index, snapshot, vector, n, itself)
        rough = self._products(snapshot, vector)
        rough[snapshot.overlay.patch.places == REMOVED] = -np.inf
        if itself is not None:
            rough[itself] = -np.inf
        n = min(n, int(np.count_nonzero(rough > -np.inf)))
        if not n:
            return Nearest(np.zeros(0, np.int64), np.zeros(0))
        cut = np.partition(rough, len(rough) - n)[len(rough) - n] - _ROUNDING
        return self._ordered(snapshot, np.flatnonzero(rough >= cut), vector, n)

    def is_quick(self, snapshot: Snapshot) -> bool:
        """Say whether a look-up takes less than a millisecond or so."""
        return self._index is not None or len(snapshot.overlay) <= self._exact_up_to

    def keep_up(self, snapshot: Snapshot) -> None:
        """Make the index, or make it anew, where that is due; it works beside the caller."""
        if len(snapshot.overlay) <= self._exact_up_to or not can_index():
            return
        with self._lock:
            if self._making is not None and self._making.is_alive():
                return
            index = self._index
            if index is not None and index.snapshot.overlay.base is snapshot.overlay.base:
                self._note(index, snapshot)
                newer = len(snapshot.overlay) - len(index.snapshot.overlay) + len(self._moved)
                if newer < max(_MOST_NEWER, len(snapshot.overlay) // 10):
                    return
            self._making = Thread(target=self._make, args=(snapshot,), name="index", daemon=True)
            self._making.start()

    def wait(self) -> None:
        """Wait for an index that is being made."""
        making = self._making
        if making is not None:
            making.join()

    def _make(self, snapshot: Snapshot) -> None:
        made = _Index(NearestIndex(unit_rows(snapshot.vectors.matrix())), snapshot)
        with self._lock:
            self._index, self._moved = made, np.zeros(0, np.int64)

    def _note(self, index: _Index, snapshot: Snapshot) -> None:
        """Remember nodes whose vectors are far from those that the index knows."""
        again = snapshot.refreshed[snapshot.refreshed < len(index.snapshot.overlay)]
        known, now = index.snapshot.vectors.take(again), snapshot.vectors.take(again)
        cosine = (unit_rows(known) * unit_rows(now)).sum(axis=1)
        self._moved = np.union1d(self._moved, again[cosine < _NEAR_ENOUGH])

    def _by_index(
        self, index: _Index, snapshot: Snapshot, vector: NDArray[np.float32], n: int, itself: int | None
    ) -> Nearest:
        query = unit_rows(vector[None])[0]
        known = index.found.nearest(query, _MORE * n + 8, None).positions
        newer = np.arange(len(index.snapshot.overlay), len(snapshot.overlay))
        near = np.concatenate((np.union1d(known, self._moved), newer))
        near = near[snapshot.overlay.patch.places[near] != REMOVED]
        return self._ordered(snapshot, near[near != itself], vector, n)

    def _products(self, snapshot: Snapshot, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        lengths = snapshot.lengths
        length = float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
        if length == 0:
            return np.where(lengths == 0, np.float32(1), np.float32(0))
        products = snapshot.vectors.products((vector / length).astype(np.float32))
        cosines = np.zeros(len(products), np.float32)
        np.divide(products, lengths, out=cosines, where=lengths > 0)
        return cosines

    def _ordered(
        self, snapshot: Snapshot, near: NDArray[np.int64], vector: NDArray[np.float32], n: int
    ) -> Nearest:
        unit, query = unit_rows(snapshot.vectors.take(near)), unit_rows(vector[None])[0]
        found = ordered(unit, np.arange(len(near)), query, n)
        return Nearest(near[found.positions], found.scores)
