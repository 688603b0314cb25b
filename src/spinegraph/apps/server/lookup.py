"""Look-alikes of live vectors: every node compared, or an index and all that is newer than it."""

import os
import sys
from dataclasses import dataclass
from threading import Lock, Thread, get_native_id

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.nearest import EXACT_UP_TO, Nearest, ordered, unit_rows
from spinegraph.analysis.nearest_index import NearestIndex, can_index
from spinegraph.apps.server.live import Snapshot
from spinegraph.graph.patch import REMOVED

_ROUNDING = 1e-5  # of a float32 product; those this close are ordered by float64
_MORE = 2  # times as many are asked of the index, since some may be gone or have moved
_MOST_NEWER = 5_000  # nodes that the index does not know before it is made anew
_POLITENESS = 10  # of 19, of the thread that makes the index
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
        self._moved = np.zeros(0, np.int64)  # vectors far from those that the index knows
        self._since = np.zeros(0, np.int64)  # computed anew while an index is being made

    def nearest(
        self, snapshot: Snapshot, vector: NDArray[np.float32], n: int, itself: int | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like a vector (d,), most alike first, but for one position."""
        index = self._index
        if index is not None and index.snapshot.overlay.base is snapshot.overlay.base:
            return self._by_index(index, snapshot, vector, n, itself)
        products = snapshot.vectors.products(_unit(vector))
        rough = _cosines(products, snapshot.lengths, vector)
        rough[snapshot.overlay.patch.places == REMOVED] = -np.inf
        if itself is not None:
            rough[itself] = -np.inf
        return _best(snapshot, None, rough, vector, n)

    def is_quick(self, snapshot: Snapshot) -> bool:
        """Say whether a look-up takes less than a millisecond or so."""
        return self._index is not None or len(snapshot.overlay) <= self._exact_up_to

    @property
    def is_ready(self) -> bool:
        """Whether look-ups are as quick as they get: no first index is being made."""
        return self._index is not None or self._making is None or not self._making.is_alive()

    def keep_up(self, snapshot: Snapshot) -> None:
        """Make the index, or make it anew, where that is due; it works beside the caller."""
        if len(snapshot.overlay) <= self._exact_up_to or not can_index():
            return
        with self._lock:
            if self._making is not None and self._making.is_alive():
                self._since = np.union1d(self._since, snapshot.refreshed)
                return
            index = self._index
            if index is not None and index.snapshot.overlay.base is snapshot.overlay.base:
                self._note(index, snapshot)
                newer = len(snapshot.overlay) - len(index.snapshot.overlay) + len(self._moved)
                if newer < max(_MOST_NEWER, len(snapshot.overlay) // 10):
                    return
            self._since = np.zeros(0, np.int64)
            self._making = Thread(target=self._make, args=(snapshot,), name="index", daemon=True)
            self._making.start()

    def wait(self) -> None:
        """Wait for an index that is being made."""
        making = self._making
        if making is not None:
            making.join()

    def _make(self, snapshot: Snapshot) -> None:
        unit, is_first = unit_rows(snapshot.vectors.matrix()), self._index is None
        if not is_first:  # for the first one all wait; for another one nobody should
            _yield_to_others()
        made = _Index(NearestIndex(unit, threads=0 if is_first else 1), snapshot)
        with self._lock:
            self._index, self._moved = made, self._since[self._since < len(snapshot.overlay)]

    def _note(self, index: _Index, snapshot: Snapshot) -> None:
        """Remember nodes whose vectors are far from those that the index knows."""
        again = snapshot.refreshed[snapshot.refreshed < len(index.snapshot.overlay)]
        known, now = index.snapshot.vectors.take(again), snapshot.vectors.take(again)
        cosine = (unit_rows(known) * unit_rows(now)).sum(axis=1)
        self._moved = np.union1d(self._moved, again[cosine < _NEAR_ENOUGH])

    def _by_index(
        self, index: _Index, snapshot: Snapshot, vector: NDArray[np.float32], n: int, itself: int | None
    ) -> Nearest:
        query, unit = unit_rows(vector[None])[0], _unit(vector)
        known = index.found.nearest(query, _MORE * n + 8, None).positions
        first = min(len(index.snapshot.overlay), len(snapshot.overlay))
        near = np.union1d(known, self._moved)
        near = near[near < first]  # the index may be newer than what this reader sees
        products = (snapshot.vectors.take(near) @ unit, snapshot.vectors.products(unit, first))
        near = np.concatenate((near, np.arange(first, len(snapshot.overlay))))
        rough = _cosines(np.concatenate(products), snapshot.lengths[near], vector)
        rough[(snapshot.overlay.patch.places[near] == REMOVED) | (near == itself)] = -np.inf
        return _best(snapshot, near, rough, vector, n)


def _yield_to_others() -> None:
    """Let this thread wait for others where the system tells threads apart; it may not hold Python's lock."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _POLITENESS)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.sqrt(np.square(vector, dtype=np.float64).sum())
    return (vector / length).astype(np.float32) if length > 0 else vector


def _cosines(
    products: NDArray[np.float32], lengths: NDArray[np.float32], vector: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return cosines of a float32 product; zero vectors are like each other and like nothing else."""
    if not vector.any():
        return np.where(lengths == 0, np.float32(1), np.float32(0))
    cosines = np.zeros(len(products), np.float32)
    np.divide(products, lengths, out=cosines, where=lengths > 0)
    return cosines


def _best(
    snapshot: Snapshot,
    positions: NDArray[np.int64] | None,
    rough: NDArray[np.float32],
    vector: NDArray[np.float32],
    n: int,
) -> Nearest:
    """Return the best of some positions, or of all, ordered by a float64 product."""
    n = min(n, int(np.count_nonzero(rough > -np.inf)))
    if not n:
        return Nearest(np.zeros(0, np.int64), np.zeros(0))
    cut = np.partition(rough, len(rough) - n)[len(rough) - n] - _ROUNDING
    near = np.flatnonzero(rough >= cut)
    near = near if positions is None else positions[near]
    unit, query = unit_rows(snapshot.vectors.take(near)), unit_rows(vector[None])[0]
    found = ordered(unit, np.arange(len(near)), query, n)
    return Nearest(near[found.positions], found.scores)
