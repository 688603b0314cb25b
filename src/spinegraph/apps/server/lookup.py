"""Similar nodes in a snapshot: by vector, exactly or with an index, and by profile."""

import os
import sys
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, RLock, Thread, get_native_id
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.search import EXACT_UP_TO, Nearest, Weights, can_index, new_index, ordered
from spinegraph.apps.server.live import Snapshot, Vectors, unit_parts
from spinegraph.apps.server.problems import ProblemError
from spinegraph.embeddings import part_weights
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay import REMOVED
from spinegraph.parts.paper import AnyGenerator
from spinegraph.structure.similarity import comparison

_ROUNDING = 1e-5  # error of a float32 product; candidates this close are ordered in float64
_CANDIDATES, _MORE_CANDIDATES = 2, 16  # times n from the index, since some may be removed or have moved
_QUICK = 20_000  # nodes, which take a millisecond or two to compare
_NICENESS = 10  # of 19, for the thread that rebuilds the index
_SAME_DIRECTION = 0.95  # cosine of a vector to its indexed one, above which the index keeps that
_TIE = 1e-4  # relative difference of equal distances, which are float32
_PERIOD, _MANY = 0.1, 200  # seconds between counts of look-ups; look-ups per second that are many
_EXPANSION = 128, 64  # of a search in the index, and if there are many look-ups
_BEHIND = 100  # vectors missing from the index, above which a thread adds them
_COMPARED = 4  # times n: least number of nodes of nearest degree to compare
_PATIENCE = 4.0  # seconds that a request waits for the profiles of all nodes


class Lookup:
    """Finds the nodes whose vectors are most similar to a given one, in any snapshot.

    Similarity is the mean of the parts' cosines, with weights if given; see ``Embeddings.weighted``. Up to
    20,000 nodes, without usearch, or with weights, every node is compared. Otherwise an index returns
    candidates, which are ordered by their current vectors. It is built in the background. Each look-up adds
    one vector that is new or has moved: a thread for this would lock the index while it waits for the GIL,
    and look-ups would wait for both.
    """

    def __init__(self, exact_up_to: int = EXACT_UP_TO) -> None:
        self._exact_up_to = exact_up_to
        self._index: _Index | None = None
        self._worker, self._work = ThreadPoolExecutor(1, "index"), Future[None]()
        self._work.set_result(None)
        self._lock, self._is_closed = Lock(), False
        self._latest: Snapshot | None = None

    def nearest(
        self,
        snapshot: Snapshot,
        vector: Vectors | None,
        n: int,
        itself: int | None = None,
        weights: Weights = None,
    ) -> Nearest:
        """Return the ``n`` nodes most similar to a vector (d,), best first, without the node ``itself``.

        Without a vector, the node's own is used.
        """
        query, index = _query(snapshot, vector, itself, weights), self._index
        if weights is None and index is not None and index.base is snapshot.overlay.base:
            for times in (_CANDIDATES, _MORE_CANDIDATES):
                near = index.candidates(query, times * n + 8, len(snapshot.overlay))
                near = near[(snapshot.overlay.patch.row_ids[near] != REMOVED) & (near != itself)]
                if len(near) >= n:
                    return _ordered(snapshot, near, query, n, weights)
            # With too few candidates left, only comparing all nodes finds the nearest.
        others = snapshot.overlay.remaining[snapshot.overlay.remaining != itself]
        n = min(n, len(others))
        if not n:
            return Nearest(others, np.zeros(0))
        cosines = _cosines(snapshot, query, weights)[others]
        threshold = np.partition(cosines, len(cosines) - n)[len(cosines) - n] - _ROUNDING
        return _ordered(snapshot, others[cosines >= threshold], query, n, weights)

    def cosines(self, snapshot: Snapshot, itself: int, weights: Weights = None) -> Vectors:
        """Return the similarity (n,) of every node to one of them, in the order of ``overlay.remaining``."""
        query = _query(snapshot, None, itself, weights)
        return _cosines(snapshot, query, weights)[snapshot.overlay.remaining]

    def is_quick(self, snapshot: Snapshot, weights: Weights = None) -> bool:
        """Return whether a look-up takes less than about a millisecond."""
        return (self._index is not None and weights is None) or len(snapshot.overlay) <= _QUICK

    @property
    def is_ready(self) -> bool:
        """Whether the first index is complete, or none is being built."""
        return self._index is not None or self._work.done()

    def follow(self, snapshot: Snapshot) -> None:
        """Take a new snapshot; the index is built or updated in the background."""
        if len(snapshot.overlay) <= self._exact_up_to or not can_index():
            return
        with self._lock:
            self._latest, index = snapshot, self._index
            same = index if index is not None and index.base is snapshot.overlay.base else None
            if (same is None or same.note(snapshot) > _BEHIND) and self._work.done() and not self._is_closed:
                self._work = self._worker.submit(self._catch_up)

    def close(self) -> None:
        """Stop building an index; the process must not end in the middle of it."""
        with self._lock:
            self._is_closed = True
        self._worker.shutdown()

    def _catch_up(self) -> None:
        while not self._is_closed:
            snapshot, index = self._latest, self._index
            assert snapshot is not None
            if index is not None and index.base is snapshot.overlay.base:
                if not index.add_one():
                    return
            elif index is None:
                self._build(snapshot)
            else:  # in a separate thread, to give it a low priority
                rebuilding = Thread(target=self._build, args=(snapshot,))
                rebuilding.start()
                rebuilding.join()

    def _build(self, snapshot: Snapshot) -> None:
        is_first = self._index is None
        if not is_first and sys.platform == "linux":  # where threads have priorities; requests go first
            os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
        made = new_index(snapshot.unit.matrix(), 0 if is_first else 1, is_wanted=lambda: not self._is_closed)
        if not self._is_closed:
            with self._lock:
                self._index = _Index(made, snapshot)
                if self._latest is not None and self._latest.overlay.base is snapshot.overlay.base:
                    self._index.note(self._latest)


class _Index:
    """A usearch index of the unit vectors of all positions below ``_count``, for one base graph."""

    def __init__(self, index: Any, snapshot: Snapshot) -> None:
        self._index, self._latest, self._count = index, snapshot, len(snapshot.overlay)
        self._moved = deque[int]()
        self._begun, self._searches = time.monotonic(), 0  # of the current period
        self._lock = RLock()  # usearch may move its memory when it grows

    @property
    def base(self) -> Graph:
        """The base graph of all snapshots' overlays."""
        return self._latest.overlay.base

    def note(self, snapshot: Snapshot) -> int:
        """Take a new snapshot; return how many vectors the index lacks."""
        self._latest = snapshot
        self._moved.extend(snapshot.refreshed[snapshot.refreshed < self._count].tolist())
        return len(snapshot.overlay) - self._count + len(self._moved)

    def add_one(self) -> bool:
        """Add a new node, or update one that may have moved; return whether there was any."""
        with self._lock:
            unit = self._latest.unit
            if self._count < len(unit):
                self._index.add(self._count, unit.take(np.array([self._count]))[0], threads=1)
                self._count += 1
            elif self._moved:
                position = self._moved.popleft()
                vector = unit.take(np.array([position]))[0]
                if np.asarray(self._index.get(position, dtype=np.float32)).ravel() @ vector < _SAME_DIRECTION:
                    self._index.remove(position)
                    self._index.add(position, vector, threads=1)
            else:
                return False
            return True

    def candidates(self, query: Vectors, count: int, length: int) -> NDArray[np.int64]:
        """Return positions below ``length`` near a unit vector (d + 1,), and those not in the index yet."""
        with self._lock:
            self.add_one()
            self._searches += 1
            if (now := time.monotonic()) > self._begun + _PERIOD:
                is_many = self._searches > _MANY * (now - self._begun)
                self._index.expansion_search = _EXPANSION[is_many]
                self._begun, self._searches = now, 0
            near = self._index.search(query, count, threads=1).keys.astype(np.int64)
            return np.concatenate((near[near < length], np.arange(self._count, length)))


def _query(snapshot: Snapshot, vector: Vectors | None, itself: int | None, weights: Weights) -> Vectors:
    """Return a vector, or that of a node, in the form for comparison: (d + 1,) of length 1."""
    if vector is None and weights is None:
        return np.asarray(snapshot.unit.take(np.array([itself]))[0])
    vector = snapshot.vectors.take(np.array([itself]))[0] if vector is None else vector
    return np.asarray(unit_parts(snapshot.parts, vector[None], weights)[0])


def _cosines(snapshot: Snapshot, query: Vectors, weights: Weights) -> Vectors:
    """Return the cosines (n,) of all vectors to one of length 1."""
    if weights is None:
        return snapshot.unit.products(query)
    factors = np.array([*part_weights(snapshot.parts, weights).values()], np.float32)
    counted = snapshot.has @ factors  # (n,) total weight of the parts that a vector has
    if query[-1]:  # zero vectors are similar only to each other
        return np.asarray(counted == 0, np.float32)
    scaled = query.copy()
    for factor, columns in zip(factors, snapshot.parts.values(), strict=True):
        scaled[columns] *= np.sqrt(factor)
    lengths = np.sqrt(snapshot.has.sum(axis=1) / np.where(counted > 0, counted, np.inf))
    return np.asarray(snapshot.unit.products(scaled) * lengths, np.float32)


def _ordered(now: Snapshot, near: NDArray[np.int64], query: Vectors, n: int, weights: Weights) -> Nearest:
    """Return the best ``n`` of some positions, by float64 scores and then by position."""
    near = np.sort(near)
    rows = now.unit.take(near) if weights is None else unit_parts(now.parts, now.vectors.take(near), weights)
    found = ordered(rows, np.arange(len(near)), query, n)
    return Nearest(near[found.positions], found.scores)


class Twins:
    """Finds structural twins: nodes of similar degree whose profiles are nearest by dynamic time warping.

    Only nodes with half to twice as many links are compared, since profiles alone do not distinguish a hub
    from its leaves. The profiles of all nodes are computed in the background on the first request; later
    requests recompute those of nodes whose vectors changed since.
    """

    def __init__(self, generator: AnyGenerator) -> None:
        self._generator, self._lock = generator, Lock()
        self._computing: Thread | None = None
        # A snapshot and the profiles (n, k) of its nodes.
        self._known: tuple[Snapshot, Vectors] | None = None

    def prepare(self, snapshot: Snapshot) -> None:
        """Start to compute the profiles of all nodes unless they are known; return at once."""
        with self._lock:
            is_computing = self._computing is not None and self._computing.is_alive()
            if not (is_computing or self._is_known(snapshot)):
                self._computing = Thread(target=self._compute, args=(snapshot,), name="twins", daemon=True)
                self._computing.start()

    def _is_known(self, snapshot: Snapshot) -> bool:
        return self._known is not None and self._known[0].overlay.base is snapshot.overlay.base

    def _compute(self, snapshot: Snapshot) -> None:
        rows = self._generator.profile(snapshot.overlay).weights
        with self._lock:
            self._known = snapshot, rows

    def nearest(self, snapshot: Snapshot, position: int, n: int) -> Nearest:
        """Return the ``n`` nodes with the nearest profiles and exp(-distance), best first.

        Nodes with equal profiles are ordered by similarity of their vectors.
        """
        rows, others = self._profiles(snapshot), snapshot.overlay.remaining
        others = others[others != position]
        n = min(n, len(others))
        if not n:
            return Nearest(others, np.zeros(0))
        # Nodes with half to twice as many links or, if there are few, those of nearest degree.
        degrees, count = np.log2(snapshot.overlay.degrees + 1.0), min(_COMPARED * n, len(others))
        differences = np.abs(degrees[others] - degrees[position])
        others = others[differences <= max(1.0, float(np.partition(differences, count - 1)[count - 1]))]
        distances = comparison("dtw", rows)(np.full(len(others), position), others)
        last = np.partition(distances, n - 1)[n - 1]
        near = np.flatnonzero(distances <= last * (1 + _TIE) + _TIE)
        others, distances = others[near], distances[near].astype(np.float64)
        cosines = snapshot.unit.take(others) @ snapshot.unit.take(np.array([position]))[0]
        order = np.lexsort((-cosines, np.round(distances / _TIE)))[:n]
        return Nearest(others[order], np.exp(-distances[order]))

    def _profiles(self, snapshot: Snapshot) -> Vectors:
        """Return the profiles of all positions (n, k), as an array that never changes."""
        self.prepare(snapshot)
        if self._computing is not None:
            self._computing.join(_PATIENCE)
        with self._lock:
            if self._known is None or not self._is_known(snapshot):
                detail = "the profiles of all nodes are still being computed; try again in a few seconds"
                raise ProblemError(503, detail, rule="profiles known", headers={"Retry-After": "5"})
            before, known = self._known
            stale = snapshot.vectors.changed(before.vectors)
            if len(stale):
                rows = np.zeros((len(snapshot.overlay), known.shape[1]), np.float32)
                rows[: len(known)] = known[: len(rows)]
                rows[stale] = self._generator.profile(snapshot.overlay, stale).weights
                known = rows
            self._known = snapshot, known
            return known
