"""Similar nodes among live vectors: by vector, exactly or with an index, and by profile."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock, Thread, get_native_id

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.search import EXACT_UP_TO, Nearest, NearestIndex, can_index, ordered, unit_rows
from spinegraph.apps.server.live import RowBlocks, Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.embeddings import part_weights, unit_length
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay import REMOVED
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import PaperGenerator
from spinegraph.structure.similarity import comparison

_ROUNDING = 1e-5  # of a float32 product; candidates this close are ordered in float64
_CANDIDATES, _MORE_CANDIDATES = 2, 16  # times n, asked of the index: some may be removed or have moved
_QUICK = 5_000  # nodes that are compared in a millisecond
_MAX_CHANGED = 5_000  # nodes that joined or moved since the index was built, before it is rebuilt
_NICENESS = 10  # of 19, of the thread that rebuilds the index
_SAME_DIRECTION = 0.98  # cosine of a vector to its indexed one, above which it has not moved
_TIE = 1e-4  # relative; distances of profiles are float32
_MAX_NOTES = 1_000  # changes that are noted one by one
_COMPARED = 4  # times n, nodes of nearest degree that are compared at least
_PATIENCE = 4.0  # seconds that a request waits for the profiles of all nodes


class Lookup:
    """Finds the nodes whose vectors are most similar to a given one, in any snapshot.

    Similarity is the mean of the parts' cosines, with weights if given; see ``Embeddings.weighted``. Up to
    20,000 nodes, without usearch, or with weights, every node is compared. Beyond that an index proposes
    candidates, nodes that joined or moved since it was built are compared one by one, and all candidates are
    ordered by their present vectors. When such nodes are many, the index is rebuilt in the background.
    """

    def __init__(self, exact_up_to: int = EXACT_UP_TO) -> None:
        self._exact_up_to = exact_up_to
        self._index: _Index | None = None
        self._lock = Lock()
        self._building: Thread | None = None
        self._since = np.zeros(0, np.int64)  # positions updated while an index is being built
        self._latest: Snapshot | None = None
        self._is_closed = False

    def nearest(
        self,
        snapshot: Snapshot,
        vector: NDArray[np.float32],
        n: int,
        itself: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Nearest:
        """Return the ``n`` nodes most similar to a vector (d,), best first, except the node ``itself``."""
        index, query = self._index, _Query(snapshot.parts, vector, weights)
        if weights is None and index is not None and index.snapshot.overlay.base is snapshot.overlay.base:
            for times in (_CANDIDATES, _MORE_CANDIDATES):
                near = index.candidates(snapshot, query, times * n + 8)
                products = snapshot.vectors.take(near) @ query.columns
                found = _best(snapshot, near, products, query, n, itself)
                if len(found.positions) == n:
                    return found
            # Too few of the candidates are left: only comparing all nodes finds the nearest.
        products = snapshot.vectors.products(query.columns)
        return _best(snapshot, np.arange(len(products)), products, query, n, itself)

    def cosines(
        self, snapshot: Snapshot, vector: NDArray[np.float32], weights: Mapping[str, float] | None = None
    ) -> NDArray[np.float32]:
        """Return the similarity (n,) of every node to a vector (d,), in the order of ``overlay.standing``."""
        query, standing = _Query(snapshot.parts, vector, weights), snapshot.overlay.standing
        return query.cosines(snapshot.vectors.products(query.columns)[standing], snapshot.norms[standing])

    def is_quick(self, snapshot: Snapshot, weights: Mapping[str, float] | None = None) -> bool:
        """Return whether a look-up takes less than about a millisecond."""
        has_index = self._index is not None and weights is None
        return has_index or len(snapshot.overlay) <= _QUICK

    @property
    def is_ready(self) -> bool:
        """Whether no first index is being built."""
        return self._index is not None or self._building is None or not self._building.is_alive()

    def follow(self, snapshot: Snapshot) -> None:
        """Note a new snapshot; build or rebuild the index in the background if it is due."""
        if len(snapshot.overlay) <= self._exact_up_to or not can_index():
            return
        with self._lock:
            self._latest, is_due = snapshot, True
            if self._index is not None and self._index.snapshot.overlay.base is snapshot.overlay.base:
                self._index = self._index.with_changes(snapshot)
                limit = max(_MAX_CHANGED, len(snapshot.overlay) // 5)
                is_due = len(self._index.changed.positions) >= limit
            if self._building is not None and self._building.is_alive():
                self._since = np.union1d(self._since, snapshot.refreshed)
            elif is_due:
                self._since = np.zeros(0, np.int64)
                self._building = Thread(target=self._build, args=(snapshot,), name="index", daemon=True)
                self._building.start()

    def wait(self) -> None:
        """Wait for an index that is being built."""
        if self._building is not None:
            self._building.join()

    def close(self) -> None:
        """Stop building an index; the process must not end in the middle of it."""
        self._is_closed = True
        self.wait()

    def _build(self, snapshot: Snapshot) -> None:
        is_first = self._index is None
        if not is_first and sys.platform == "linux":  # requests go first; there threads have priorities
            os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
        unit = _unit(snapshot.parts, snapshot.vectors.matrix())
        index = NearestIndex(unit, 0 if is_first else 1, is_wanted=lambda: not self._is_closed)
        with self._lock:
            latest = self._latest or snapshot
            if latest.overlay.base is not snapshot.overlay.base:
                return  # compacted meanwhile: positions differ
            newer = np.arange(len(snapshot.overlay), len(latest.overlay))
            rows = np.full(len(snapshot.overlay), -1, np.int32)
            nothing = _Changed(np.zeros(0, np.int64), RowBlocks.from_matrix(unit[:0]), rows)
            changed = nothing.plus(latest, np.union1d(self._since, newer).astype(np.int64))
            self._index = _Index(index, snapshot, changed)


@dataclass(frozen=True, eq=False)
class _Changed:
    """Positions that joined or moved since an index was built, with their present unit vectors; immutable."""

    positions: NDArray[np.int64]  # (m,) in order of arrival
    unit: RowBlocks  # (m, d + 1), see ``_unit``
    rows: NDArray[np.int32]  # (n,) the row of every known position, -1 if it has none

    def plus(self, snapshot: Snapshot, positions: NDArray[np.int64]) -> "_Changed":
        """Add positions, ascending, with their vectors in a snapshot."""
        more, count = np.full(len(snapshot.overlay) - len(self.rows), -1, np.int32), len(self.positions)
        rows = np.concatenate((self.rows, more))
        new = positions[rows[positions] < 0]
        rows[new] = np.arange(count, count + len(new))
        order = np.argsort(rows[positions])
        vectors = _unit(snapshot.parts, snapshot.vectors.take(positions))[order]
        unit = self.unit.replaced(rows[positions][order].astype(np.int64), vectors, count + len(new))
        return _Changed(np.concatenate((self.positions, new)), unit, rows)

    def candidates(self, query: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Return the positions most similar to a unit vector (d + 1,), unordered."""
        products = self.unit.products(query)
        if count >= len(products):
            return self.positions
        found: NDArray[np.int64] = self.positions[np.argpartition(products, -count)[-count:]]
        return found


@dataclass(frozen=True, eq=False)
class _Index:
    """An index of the vectors of one snapshot, and the nodes that changed since."""

    index: NearestIndex
    snapshot: Snapshot
    changed: _Changed

    def with_changes(self, snapshot: Snapshot) -> "_Index":
        """Note new nodes, and nodes whose vectors turned away from the indexed ones."""
        is_indexed = snapshot.refreshed < len(self.snapshot.overlay)
        again, later = snapshot.refreshed[is_indexed], snapshot.refreshed[~is_indexed]
        indexed, now = (_unit(one.parts, one.vectors.take(again)) for one in (self.snapshot, snapshot))
        cosine = (indexed * now).sum(axis=1)
        again = again[(cosine < _SAME_DIRECTION) | (self.changed.rows[again] >= 0)]
        joined = np.arange(len(self.changed.rows), len(snapshot.overlay))
        positions = np.unique(np.concatenate((again, later, joined)))
        return replace(self, changed=self.changed.plus(snapshot, positions))

    def candidates(self, snapshot: Snapshot, query: "_Query", count: int) -> NDArray[np.int64]:
        """Return the positions nearest to a vector in the index and among the changed nodes, ascending."""
        known = self.index.nearest(query.unit, count, None).positions
        # A reader's snapshot may be newer or older than what was noted.
        newest = np.arange(min(len(self.changed.rows), len(snapshot.overlay)), len(snapshot.overlay))
        near = np.unique(np.concatenate((known, self.changed.candidates(query.unit, count), newest)))
        return near[near < len(snapshot.overlay)]


class _Query:
    """A vector (d,) that the vectors of a snapshot are compared with."""

    def __init__(
        self,
        parts: Mapping[str, slice],
        vector: NDArray[np.float32],
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self._parts, self._weights = parts, weights
        self._factors = np.array([*part_weights(parts, weights).values()], np.float32)
        self.unit = self.unit_rows(vector[None])[0]  # (d + 1,)
        self.columns = np.zeros((len(vector), len(parts)), np.float32)  # (d, p): their products add up
        for index, columns in enumerate(parts.values()):
            self.columns[columns, index] = self.unit[columns] * np.sqrt(self._factors[index])

    def unit_rows(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return vectors (m, d) as they are compared, of length 1, (m, d + 1)."""
        return _unit(self._parts, vectors, self._weights)

    def cosines(self, products: NDArray[np.float32], norms: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the cosines (m,) to rows, given products with ``columns`` and norms of their parts, (m, p).

        Zero vectors are similar to each other and to nothing else.
        """
        counted = (norms > 0) @ self._factors  # (m,) weight of the parts that a row has
        if not self.columns.any():
            return np.asarray(counted == 0, np.float32)
        cosines = np.einsum("ij,ij->i", products, 1 / np.where(norms > 0, norms, np.float32(np.inf)))
        return np.asarray(cosines / np.sqrt(np.where(counted > 0, counted, 1)))


def _unit(
    parts: Mapping[str, slice], vectors: NDArray[np.float32], weights: Mapping[str, float] | None = None
) -> NDArray[np.float32]:
    """Return vectors (m, d) as ``Embeddings.weighted`` does, of length 1, (m, d + 1); see ``unit_rows``."""
    found = np.empty_like(vectors)
    for name, factor in part_weights(parts, weights).items():
        found[:, parts[name]] = unit_length(vectors[:, parts[name]]) * np.float32(np.sqrt(factor))
    return unit_rows(found)


def _best(
    snapshot: Snapshot,
    positions: NDArray[np.int64],
    products: NDArray[np.float32],
    query: _Query,
    n: int,
    itself: int | None,
) -> Nearest:
    """Return the best ``n`` of some positions, chosen by float32 products and ordered in float64."""
    cosines = query.cosines(products, snapshot.norms[positions])
    cosines[(snapshot.overlay.patch.row_ids[positions] == REMOVED) | (positions == itself)] = -np.inf
    n = min(n, int(np.count_nonzero(cosines > -np.inf)))
    if not n:
        return Nearest(np.zeros(0, np.int64), np.zeros(0))
    threshold = np.partition(cosines, len(cosines) - n)[len(cosines) - n] - _ROUNDING
    near = positions[cosines >= threshold]
    found = ordered(query.unit_rows(snapshot.vectors.take(near)), np.arange(len(near)), query.unit, n)
    return Nearest(near[found.positions], found.scores)


class Twins:
    """Finds structural twins: nodes of similar degree whose profiles are nearest by dynamic time warping.

    Nodes with half to twice as many links are compared; a profile alone does not tell a hub from its leaves.
    The profiles of all nodes are computed in the background when first asked for. After a change, those are
    updated whose vectors were.
    """

    def __init__(self, generator: Generator | PaperGenerator) -> None:
        self._generator = generator
        self._lock, self._note_lock = Lock(), Lock()  # the second is held only briefly: the writer takes it
        self._computing: Thread | None = None
        self._base: Graph | None = None
        self._rows = np.zeros((0, 0), np.float32)
        self._stale: list[tuple[int, NDArray[np.int64]]] = []  # version, positions it updated

    def follow(self, snapshot: Snapshot) -> None:
        """Note which positions a change updated."""
        with self._note_lock:
            self._stale.append((snapshot.version, snapshot.refreshed))
            if len(self._stale) > _MAX_NOTES:
                noted = np.unique(np.concatenate([positions for _, positions in self._stale]))
                self._stale = [(snapshot.version, noted)]

    def prepare(self, snapshot: Snapshot) -> None:
        """Start to compute the profiles of all nodes unless they are known; returns at once."""
        with self._note_lock:
            is_computing = self._computing is not None and self._computing.is_alive()
            if not is_computing and self._base is not snapshot.overlay.base:
                self._computing = Thread(target=self._compute, args=(snapshot,), name="twins", daemon=True)
                self._computing.start()

    def _compute(self, snapshot: Snapshot) -> None:
        rows = self._generator.profile(snapshot.overlay).weights
        with self._lock:
            self._base, self._rows = snapshot.overlay.base, rows

    def nearest(self, snapshot: Snapshot, position: int, n: int) -> Nearest:
        """Return the ``n`` nodes with the nearest profiles and exp(-distance), best first.

        Among equal profiles those with more similar vectors come first.
        """
        rows, others = self._profiles(snapshot), snapshot.overlay.standing
        others = others[others != position]
        n = min(n, len(others))
        if not n:
            return Nearest(others, np.zeros(0))
        # Half to twice as many links; or, if these are few, those of nearest degree.
        degrees, count = np.log2(snapshot.overlay.degrees + 1.0), min(_COMPARED * n, len(others))
        differences = np.abs(degrees[others] - degrees[position])
        others = others[differences <= max(1.0, float(np.partition(differences, count - 1)[count - 1]))]
        distances = comparison("dtw", rows)(np.full(len(others), position), others)
        last = np.partition(distances, n - 1)[n - 1]
        near = np.flatnonzero(distances <= last * (1 + _TIE) + _TIE)
        others, distances = others[near], distances[near].astype(np.float64)
        query = _Query(snapshot.parts, snapshot.vector(position))
        cosines = query.cosines(snapshot.vectors.take(others) @ query.columns, snapshot.norms[others])
        order = np.lexsort((-cosines, np.round(distances / _TIE)))[:n]
        return Nearest(others[order], np.exp(-distances[order]))

    def _profiles(self, snapshot: Snapshot) -> NDArray[np.float32]:
        """Return the profiles of all positions (n, k); an array once returned never changes."""
        overlay = snapshot.overlay
        self.prepare(snapshot)
        if self._computing is not None:
            self._computing.join(_PATIENCE)
        with self._lock:
            if self._base is not overlay.base:
                detail = "the profiles of all nodes are being computed; try again in a few seconds"
                raise ProblemError(503, detail, rule="profiles known", headers={"Retry-After": "5"})
            known = len(self._rows)
            with self._note_lock:
                seen = [positions for version, positions in self._stale if version <= snapshot.version]
                # Later changes are left to readers of later snapshots.
                self._stale = [note for note in self._stale if note[0] > snapshot.version]
            stale = np.concatenate([*seen, np.arange(known, len(overlay))]).astype(np.int64)
            stale = np.unique(stale[stale < len(overlay)])
            if len(stale):
                rows = np.zeros((max(known, len(overlay)), self._rows.shape[1]), np.float32)
                rows[:known] = self._rows
                rows[stale] = self._generator.profile(overlay, stale).weights
                self._rows = rows
            return self._rows[: len(overlay)]
