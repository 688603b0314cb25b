"""Look-alikes among live vectors: by vector, by index, and by profile."""

import os
import sys
from dataclasses import dataclass, replace
from threading import Lock, Thread, get_native_id
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.search import EXACT_UP_TO, Nearest, NearestIndex, can_index, ordered, unit_rows
from spinegraph.apps.server.live import Chunks, Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay import REMOVED
from spinegraph.structure.similarity import comparison


@dataclass(frozen=True, eq=False)
class Fresh:
    """Positions and their present unit vectors, in order of coming; it never changes.

    Attributes
    ----------
    positions : int64 array (m,)
    unit : Chunks (m, d + 1)
        As ``unit_rows`` makes them.
    rows : int32 array (n,)
        The row of every position known so far, -1 where it has none.
    """

    positions: NDArray[np.int64]
    unit: Chunks
    rows: NDArray[np.int32]

    @classmethod
    def none(cls, snapshot: Snapshot) -> "Fresh":
        """Return an empty one."""
        unit = unit_rows(np.zeros((0, snapshot.vectors.width), np.float32))
        return cls(np.zeros(0, np.int64), Chunks.of(unit), np.full(len(snapshot.overlay), -1, np.int32))

    def __len__(self) -> int:
        return len(self.positions)

    def holds(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which positions are here."""
        found = np.zeros(len(positions), bool)
        known = positions < len(self.rows)
        found[known] = self.rows[positions[known]] >= 0
        return found

    def taken(self, snapshot: Snapshot, positions: NDArray[np.int64]) -> "Fresh":
        """Return one that holds some more positions, ascending, as they are in a snapshot."""
        more = np.full(len(snapshot.overlay) - len(self.rows), -1, np.int32)
        rows = np.concatenate((self.rows, more))
        new = positions[rows[positions] < 0]
        rows[new] = np.arange(len(self), len(self) + len(new))
        order = np.argsort(rows[positions])
        vectors = unit_rows(snapshot.vectors.take(positions))[order]
        unit = self.unit.replaced(rows[positions][order].astype(np.int64), vectors, len(self) + len(new))
        return Fresh(np.concatenate((self.positions, new)), unit, rows)

    def candidates(self, query: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Return the positions most like a unit vector (d + 1,), in no order."""
        products = self.unit.products(query)
        if count >= len(products):
            return self.positions
        found: NDArray[np.int64] = self.positions[np.argpartition(products, -count)[-count:]]
        return found


_ROUNDING = 1e-5  # of a float32 product; those this close are ordered by float64
_MORE = 2  # times as many are asked of the index, since some may be gone or have moved
_MANY_MORE = 16  # the same where so many are gone that too few are left
_MOST_FRESH = 5_000  # nodes that the index does not know as they are, before it is made anew
_POLITENESS = 10  # of 19, of the thread that makes the index
_NEAR_ENOUGH = 0.98  # cosine to the vector that the index knows


@dataclass(frozen=True, eq=False)
class _Index:
    """An index of the vectors of one snapshot, and those that came or moved since."""

    found: NearestIndex
    snapshot: Snapshot
    fresh: Fresh


class Lookup:
    """Finds the nodes whose vectors are most like a given one, in any snapshot.

    Up to 20,000 nodes, and where usearch is not installed, every node is compared. Beyond, an index names the
    candidates among the nodes it knows, nodes that joined or moved since are compared one by one, and all are
    ordered by their present vectors. The index is made anew, beside the work, when these are many.
    """

    def __init__(self, exact_up_to: int = EXACT_UP_TO) -> None:
        self._exact_up_to = exact_up_to
        self._index: _Index | None = None
        self._lock = Lock()
        self._making: Thread | None = None
        self._since = np.zeros(0, np.int64)  # computed anew while an index is being made
        self._latest: Snapshot | None = None
        self._is_closed = False

    def nearest(
        self, snapshot: Snapshot, vector: NDArray[np.float32], n: int, itself: int | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like a vector (d,), most alike first, but for one position."""
        index = self._index
        if index is not None and index.snapshot.overlay.base is snapshot.overlay.base:
            for count in (_MORE * n + 8, _MANY_MORE * n + 8):
                found = _by_index(index, snapshot, vector, n, itself, count)
                if len(found.positions) == n:
                    return found
            # Hardly anybody is left where the vector lies: who is nearest then, only all of them tell.
        products = snapshot.vectors.products(_unit(vector))
        rough = _cosines(products, snapshot.lengths, vector)
        rough[snapshot.overlay.patch.row_ids == REMOVED] = -np.inf
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
            self._latest, index = snapshot, self._index
            is_of_base = index is not None and index.snapshot.overlay.base is snapshot.overlay.base
            if index is not None and is_of_base:
                self._index = replace(index, fresh=_noted(index, snapshot))
            if self._making is not None and self._making.is_alive():
                self._since = np.union1d(self._since, snapshot.refreshed)
                return
            most = max(_MOST_FRESH, len(snapshot.overlay) // 5)
            if is_of_base and self._index is not None and len(self._index.fresh) < most:
                return
            self._since = np.zeros(0, np.int64)
            self._making = Thread(target=self._make, args=(snapshot,), name="index", daemon=True)
            self._making.start()

    def wait(self) -> None:
        """Wait for an index that is being made."""
        making = self._making
        if making is not None:
            making.join()

    def close(self) -> None:
        """End the making of an index; the process may not end in the middle of it."""
        self._is_closed = True
        self.wait()

    def _make(self, snapshot: Snapshot) -> None:
        unit, is_first = unit_rows(snapshot.vectors.matrix()), self._index is None
        if not is_first:  # for the first one all wait; for another one nobody should
            _yield_to_others()
        found = NearestIndex(unit, 0 if is_first else 1, is_wanted=lambda: not self._is_closed)
        with self._lock:
            latest = self._latest or snapshot
            if latest.overlay.base is not snapshot.overlay.base:
                return  # compacted meanwhile: positions are others
            newer = np.arange(len(snapshot.overlay), len(latest.overlay))
            fresh = Fresh.none(snapshot).taken(latest, np.union1d(self._since, newer).astype(np.int64))
            self._index = _Index(found, snapshot, fresh)


def _by_index(
    index: _Index, snapshot: Snapshot, vector: NDArray[np.float32], n: int, itself: int | None, count: int
) -> Nearest:
    """Return the best ``n`` of the ``count`` nearest that the index knows, and of all that is newer."""
    query = unit_rows(vector[None])[0]
    known = index.found.nearest(query, count, None).positions
    # A reader may see more than was noted yet, or less.
    newest = np.arange(min(len(index.fresh.rows), len(snapshot.overlay)), len(snapshot.overlay))
    near = np.unique(np.concatenate((known, index.fresh.candidates(query, count), newest)))
    near = near[near < len(snapshot.overlay)]
    rough = _cosines(snapshot.vectors.take(near) @ _unit(vector), snapshot.lengths[near], vector)
    rough[(snapshot.overlay.patch.row_ids[near] == REMOVED) | (near == itself)] = -np.inf
    return _best(snapshot, near, rough, vector, n)


def _noted(index: _Index, snapshot: Snapshot) -> Fresh:
    """Return what an index does not know: new nodes, and those far from the vectors that it knows."""
    again = snapshot.refreshed[snapshot.refreshed < len(index.snapshot.overlay)]
    known, now = index.snapshot.vectors.take(again), snapshot.vectors.take(again)
    cosine = (unit_rows(known) * unit_rows(now)).sum(axis=1)
    again = again[(cosine < _NEAR_ENOUGH) | index.fresh.holds(again)]
    added = np.arange(len(index.fresh.rows), len(snapshot.overlay))
    later = snapshot.refreshed[snapshot.refreshed >= len(index.snapshot.overlay)]
    return index.fresh.taken(snapshot, np.unique(np.concatenate((again, later, added))))


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


_EQUAL = 1e-4  # relative; distances are float32
_MOST_NOTES = 1_000  # changes that are noted one by one
_ENOUGH = 4  # times as many nodes are compared as are asked for
_PATIENCE = 4.0  # seconds that a request waits for the profiles of all nodes


class Twins:
    """Compares a node's profile by dynamic time warping with those of nodes of like degree.

    Those are the nodes with half to twice as many links; a profile alone does not tell a hub from its leaves.

    Profiles of all nodes are computed beside the work when first asked for. From then on only those are
    computed anew whose vectors were, by the same rule and within the same tolerance.

    Parameters
    ----------
    generator : Generator
    """

    def __init__(self, generator: Any) -> None:
        self._inputs = generator.inputs
        self._lock, self._noting = Lock(), Lock()  # the second is never held for long: the writer takes it
        self._making: Thread | None = None
        self._base: Graph | None = None
        self._rows = np.zeros((0, 0), np.float32)
        self._stale: list[tuple[int, NDArray[np.int64]]] = []  # version, what it computed anew

    def keep_up(self, snapshot: Snapshot) -> None:
        """Note what a change concerns."""
        with self._noting:
            self._stale.append((snapshot.version, snapshot.refreshed))
            if len(self._stale) > _MOST_NOTES:
                noted = np.unique(np.concatenate([positions for _, positions in self._stale]))
                self._stale = [(snapshot.version, noted)]

    def prepare(self, snapshot: Snapshot) -> None:
        """Begin to compute the profiles of all nodes, where they are not known; returns at once."""
        with self._noting:
            is_at_work = self._making is not None and self._making.is_alive()
            if not is_at_work and self._base is not snapshot.overlay.base:
                self._making = Thread(target=self._make, args=(snapshot,), name="twins", daemon=True)
                self._making.start()

    def _make(self, snapshot: Snapshot) -> None:
        rows = self._inputs.profile(snapshot.overlay).weights
        with self._lock:
            self._base, self._rows = snapshot.overlay.base, rows

    def nearest(self, snapshot: Snapshot, position: int, n: int) -> Nearest:
        """Return the ``n`` nodes whose profiles are nearest and exp(-distance), nearest first.

        Of equal profiles those come first whose vectors are more alike.
        """
        rows = self._profiles(snapshot)
        others = np.flatnonzero(snapshot.overlay.patch.row_ids != REMOVED)
        others = _alike_in_degree(snapshot, position, others[others != position], n)
        apart = comparison("dtw", rows)(np.full(len(others), position), others)
        n = min(n, len(others))
        if not n:
            return Nearest(others, np.zeros(0))
        last = np.partition(apart, n - 1)[n - 1]
        near = np.flatnonzero(apart <= last * (1 + _EQUAL) + _EQUAL)
        others, apart = others[near], apart[near].astype(np.float64)
        order = np.lexsort((-_profile_cosines(snapshot, position, others), np.round(apart / _EQUAL)))[:n]
        return Nearest(others[order], np.exp(-apart[order]))

    def _profiles(self, snapshot: Snapshot) -> NDArray[np.float32]:
        """Return the profiles of all positions (n, k); rows that were given out never change."""
        overlay = snapshot.overlay
        self.prepare(snapshot)
        if self._making is not None:
            self._making.join(_PATIENCE)
        with self._lock:
            if self._base is not overlay.base:
                detail = "the profiles of all nodes are being computed; try again in a few seconds"
                raise ProblemError(503, detail, rule="profiles known", headers={"Retry-After": "5"})
            known = len(self._rows)
            with self._noting:
                seen = [positions for version, positions in self._stale if version <= snapshot.version]
                # What a later change concerns is left to those who see that change.
                self._stale = [note for note in self._stale if note[0] > snapshot.version]
            stale = np.concatenate([*seen, np.arange(known, len(overlay))]).astype(np.int64)
            anew = np.unique(stale[stale < len(overlay)])
            if len(anew):
                rows = np.zeros((max(known, len(overlay)), self._rows.shape[1]), np.float32)
                rows[:known] = self._rows
                rows[anew] = self._inputs.profile(overlay, anew).weights
                self._rows = rows
            return self._rows[: len(overlay)]


def _alike_in_degree(
    snapshot: Snapshot, position: int, others: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return nodes with half to twice as many links, or where these are few those of nearest degree."""
    degrees = np.log2(snapshot.overlay.degrees + 1.0)
    apart = np.abs(degrees[others] - degrees[position])
    enough = min(_ENOUGH * n, len(others))
    if not enough:
        return others
    furthest = max(1.0, float(np.partition(apart, enough - 1)[enough - 1]))
    kept: NDArray[np.int64] = others[apart <= furthest]
    return kept


def _profile_cosines(snapshot: Snapshot, position: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
    vector, lengths = snapshot.vector(position), snapshot.lengths[others]
    products = snapshot.vectors.take(others) @ vector
    both = np.maximum(lengths.astype(np.float64) * float(snapshot.lengths[position]), 1e-12)
    return np.asarray(products / both, np.float64)
