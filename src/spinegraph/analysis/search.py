"""Who is like whom: the nodes whose vectors, or whose profiles, are nearest to a node's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.embeddings import Embeddings
from spinegraph.errors import MissingPackageError, ParameterError
from spinegraph.graph.graph import GraphLike
from spinegraph.kernels.dtw import OFFSET
from spinegraph.structure.pagerank import RootedPageRank, as_roots
from spinegraph.structure.similarity import as_rows, comparison

EXACT_UP_TO = 20_000  # nodes
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest nodes of one node (n,), or of several (m, n), most alike first.

    Attributes
    ----------
    positions : int64 array
    scores : float64 array
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float64]


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of length 1 (n, d + 1): the last place is 1 where the vector is zero, else 0."""
    # Scaled first: squares of tiny or huge numbers leave float32's range.
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    length = np.sqrt(np.square(scaled, dtype=np.float64).sum(axis=1, keepdims=True))
    rows = np.zeros((vectors.shape[0], vectors.shape[1] + 1), dtype=np.float32)
    np.divide(scaled, length, out=rows[:, :-1], where=length > 0, casting="same_kind")
    rows[:, -1] = largest[:, 0] == 0
    return rows


def best(
    unit: NDArray[np.float32],
    rough: NDArray[np.float32],
    query: NDArray[np.float32],
    n: int,
    itself: int | None,
) -> Nearest:
    """Return the ``n`` rows whose product with the query is largest, but for one.

    Parameters
    ----------
    unit : float32 array (m, d)
    rough : float32 array (m,)
        Their products with the query, as BLAS has them: equal rows may differ in the last bits. Overwritten.
    query : float32 array (d,)
    n : int
    itself : int or None
        A row that is left out.
    """
    if itself is not None:
        rough[itself] = -np.inf
    n = min(n, len(unit) - (itself is not None))
    if not n:
        return Nearest(np.zeros(0, np.int64), np.zeros(0))
    slack = 2 * len(query) * np.finfo(np.float32).eps + 10.0**-_DECIMALS  # bounds both errors of rounding
    cut = np.partition(rough, len(rough) - n)[len(rough) - n] - slack
    near = np.flatnonzero(rough >= cut)
    return ordered(unit, near, query, n)


def ordered(unit: NDArray[np.float32], near: NDArray[np.int64], query: NDArray[Any], n: int) -> Nearest:
    """Return the best ``n`` of some rows by a product that is the same for equal rows."""
    scores = np.round((unit[near] * query.astype(np.float64)).sum(axis=1), _DECIMALS).clip(-1, 1)
    order = np.argsort(-scores, kind="stable")[:n]
    return Nearest(near[order], scores[order])


def in_batches(
    nearest: Callable[[int], Nearest],
    positions: ArrayLike | None,
    size: int,
    n: int,
    progress: Callable[[int, int], None] | None = None,
) -> Nearest:
    """Ask for several nodes, or for all ``size``; one row (m, n) each, -1 and 0 where fewer were found."""
    places = as_roots(positions, size)
    n = min(n, max(size - 1, 0))
    found = Nearest(np.full((len(places), n), -1), np.zeros((len(places), n)))
    for row, place in enumerate(places.tolist()):
        one = nearest(place)
        found.positions[row, : len(one.positions)] = one.positions
        found.scores[row, : len(one.scores)] = one.scores
        if progress is not None and (row + 1) % 100 == 0:
            progress(row + 1, len(places))
    return found


def as_count(n: Any) -> int:
    """Return how many matches are wanted, or say what is wrong with the number."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"n must be a whole number >= 1; got {n!r}")
    return int(n)


_AT_ONCE = 4_096  # vectors
# Edges a node has in the index, and nodes kept in sight while one is added or sought: on vectors of 81,306
# nodes it finds 99.7 % of the nearest ten.
_CONNECTIVITY, _SIGHT_ADDING, _SIGHT_SEEKING = 16, 64, 128


def can_index() -> bool:
    """Say whether usearch is installed."""
    return find_spec("usearch") is not None


class NearestIndex:
    """An index of unit vectors: finds most of the nearest, and orders exactly what it finds.

    Parameters
    ----------
    unit : float32 array (n, d)
    threads : int
        That make it; 0 is all.
    is_wanted : callable () -> bool
        Asked from time to time while it is made; where it says no, the rest is left out.
    """

    def __init__(
        self, unit: NDArray[np.float32], threads: int = 0, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        try:
            from usearch.index import Index
        except ImportError as error:
            raise MissingPackageError(
                "an index needs usearch: pip install 'spinegraph[search]', or pass exact=True"
            ) from error
        self._unit = unit
        self._index = Index(
            ndim=unit.shape[1],
            metric="ip",
            dtype="f32",
            connectivity=_CONNECTIVITY,
            expansion_add=_SIGHT_ADDING,
            expansion_search=_SIGHT_SEEKING,
        )
        for start in range(0, len(unit), _AT_ONCE):
            if is_wanted():
                some = np.arange(start, min(start + _AT_ONCE, len(unit)))
                self._index.add(some, unit[some], threads=threads)

    def nearest(self, query: NDArray[np.float32], n: int, itself: int | None) -> Nearest:
        """Return the ``n`` nearest that are found, but for one."""
        wanted = min(n + (itself is not None), len(self._unit))
        near = np.sort(self._index.search(query, wanted).keys.astype(np.int64))
        return ordered(self._unit, near[near != itself] if itself is not None else near, query, n)


# On 81,306 nodes the nearest ten are among the 2,048 nearest in four directions in 99 of 100 cases, among
# the 4,096 of nearest degree in 85.
NUM_NEAR = 2048
_DIRECTIONS = 4


class LikeProfiles:
    """The profiles nearest to one in the directions in which their logarithms vary most.

    Logarithms, since DTW's local cost is a ratio.

    Parameters
    ----------
    rows : float32 array (n, k)
    """

    def __init__(self, rows: NDArray[np.float32]) -> None:
        from scipy.spatial import KDTree

        logarithms = np.log(rows.astype(np.float64) + OFFSET)
        centered = logarithms - logarithms.mean(axis=0)
        _, directions = np.linalg.eigh(centered.T @ centered)
        self._places = centered @ directions[:, -_DIRECTIONS:]  # (n, 4)
        self._tree = KDTree(self._places)

    def near(self, place: int, count: int = NUM_NEAR) -> NDArray[np.int64]:
        """Return the positions of the ``count`` nearest, ascending; never the place itself."""
        count = min(count, len(self._places) - 1)
        found: NDArray[np.int64] = np.atleast_1d(self._tree.query(self._places[place], k=count + 1)[1])
        # Among many equal profiles the place itself may be missing.
        return np.sort(found[found != place][:count])


_ROUNDING = 1e-4  # relative; distances are float32
_SAMPLE = 200

Progress = Callable[[int, int], None]  # done, of how many


@dataclass(frozen=True)
class Match:
    """A node that is like another one.

    Attributes
    ----------
    name : hashable
    score : float
        Higher is more alike.

    Examples
    --------
    >>> Match("ann", 0.5).name
    'ann'
    """

    name: Any
    score: float


class Search:
    """Nodes by the cosine of their vectors: built once, asked many times, from several threads if need be.

    A zero vector points in a direction of its own: its cosine is 1 to another zero vector and 0 to all
    others. Scores are rounded to six decimals, and nodes of equal score come in graph order.

    Parameters
    ----------
    embeddings : Embeddings
    exact : bool, optional
        Compare with every node, or ask usearch's index. By default exact up to 20,000 nodes, and beyond where
        usearch is not installed.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)
    >>> search = Search(Embeddings(np.array(["ann", "bob", "cy"], dtype=object), vectors))
    >>> search.similar("ann", n=1)
    [Match(name='cy', score=0.707107)]
    """

    def __init__(self, embeddings: Embeddings, *, exact: bool | None = None) -> None:
        self.embeddings = embeddings
        self._unit = unit_rows(embeddings.vectors)  # (n, d + 1)
        if exact is None:
            exact = len(embeddings) <= EXACT_UP_TO or not can_index()
        self._index = None if exact else NearestIndex(self._unit)

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def exact(self) -> bool:
        """Whether every node is compared."""
        return self._index is None

    def similar(self, node: Any, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes most like a node, most alike first; never the node itself."""
        place = self.embeddings.position(node)
        return self._matches(self._nearest(self._unit[place], as_count(n), place))

    def similar_to(self, vector: ArrayLike, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes whose vectors are most like a given one (d,).

        Examples
        --------
        >>> Search(Embeddings(np.array([7, 8]), np.eye(2, dtype=np.float32))).similar_to([0, 3], n=1)
        [Match(name=8, score=1.0)]
        """
        given = np.asarray(vector, dtype=np.float32)
        if given.shape != (self.embeddings.dim,) or not np.isfinite(given).all():
            raise ParameterError(
                f"vector must be {self.embeddings.dim} finite numbers; got shape {given.shape}"
                + (" with NaN or infinity" if given.shape == (self.embeddings.dim,) else "")
            )
        return self._matches(self._nearest(unit_rows(given[None])[0], as_count(n), None))

    def positions(self, nodes: Iterable[Any]) -> NDArray[np.int64]:
        """Return the places of some nodes among the vectors.

        Examples
        --------
        >>> Search(Embeddings(np.array([7, 8]), np.eye(2, dtype=np.float32))).positions([8])
        array([1])
        """
        return np.array([self.embeddings.position(node) for node in nodes], dtype=np.int64)

    def cosines(self, node: Any) -> NDArray[np.float32]:
        """Return the cosine of a node's vector to every node's, (n,); 1 to itself.

        Examples
        --------
        >>> Search(Embeddings(np.array([7, 8]), np.eye(2, dtype=np.float32))).cosines(8)
        array([0., 1.], dtype=float32)
        """
        place = self.embeddings.position(node)
        found: NDArray[np.float32] = np.clip(self._unit @ self._unit[place], -1, 1)
        found[place] = 1
        return found

    def neighbors(
        self, positions: ArrayLike | None = None, n: int = 10, *, progress: Progress | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like each of some nodes, or of all: the answers of ``similar``.

        Examples
        --------
        >>> search = Search(Embeddings(np.array([7, 8, 9]), np.eye(3, dtype=np.float32)))
        >>> search.neighbors(n=1).positions.tolist()
        [[1], [0], [0]]
        """
        count = as_count(n)
        return in_batches(
            lambda place: self._nearest(self._unit[place], count, place), positions, len(self), n, progress
        )

    def recall(self, n: int = 10, *, sample: int = _SAMPLE, seed: int = 0) -> float:
        """Measure what share of the true ``n`` nearest is found, over a sample of nodes; 1 where exact.

        A node counts as found as well if it is as near as the true ones: vectors may be equal.
        """
        if self.exact:
            return 1.0
        places = _sample(len(self), sample, seed)
        true = Search(self.embeddings, exact=True).neighbors(places, n).scores
        return float((self.neighbors(places, n).scores >= true[:, -1:]).mean())

    def _nearest(self, query: NDArray[np.float32], n: int, itself: int | None) -> Nearest:
        if self._index is not None:
            return self._index.nearest(query, n, itself)
        return best(self._unit, self._unit @ query, query, n, itself)

    def _matches(self, found: Nearest) -> list[Match]:
        return _named(self.embeddings.names, found)


class StructuralSearch:
    """Nodes by role: by the DTW distance of their profiles, wherever in the network they are.

    Up to 20,000 nodes every profile is compared; beyond, the 2,048 that are nearest in the four directions in
    which the profiles' logarithms vary most. The score is exp(-distance); nodes of equal distance come in
    graph order.

    Parameters
    ----------
    graph : Graph or Overlay
    profile : RootedPageRank
        Of all its nodes.
    exact : bool, optional
        Compare with every node whatever their number, or never.

    Examples
    --------
    >>> from spinegraph import made, rooted_pagerank
    >>> graph = made.barbell(4, bridge=1)
    >>> StructuralSearch(graph, rooted_pagerank(graph, k=5)).similar(3, n=1)  # its mirror image
    [Match(name=5, score=1.0)]
    """

    def __init__(self, graph: GraphLike, profile: RootedPageRank, *, exact: bool | None = None) -> None:
        if len(profile) != len(graph):
            raise ParameterError(
                f"profile must have one row per node; got {len(profile)} rows and {len(graph)} nodes"
            )
        if graph.num_nodes < len(graph):
            raise ParameterError(
                f"{len(graph) - graph.num_nodes} nodes were removed from the overlay, and would be found; "
                "pass overlay.materialize() and its profile"
            )
        self.graph = graph
        self.exact = len(graph) <= EXACT_UP_TO if exact is None else exact
        self._rows = as_rows(profile.weights, "profile")
        self._distances = comparison("dtw", self._rows)
        self._like = None if self.exact else LikeProfiles(self._rows)

    def __len__(self) -> int:
        return len(self.graph)

    def similar(self, node: Any, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes whose role is most like a node's, most alike first; never itself."""
        place = int(self.graph.positions([node])[0])
        return _named(self.graph.names, self._nearest(place, as_count(n)))

    def neighbors(
        self, positions: ArrayLike | None = None, n: int = 10, *, progress: Progress | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like each of some nodes, or of all: the answers of ``similar``."""
        count = as_count(n)
        return in_batches(lambda place: self._nearest(place, count), positions, len(self), n, progress)

    def distances(self, node: Any) -> NDArray[np.float32]:
        """Return the DTW distance of a node's profile to every node's, (n,)."""
        place = int(self.graph.positions([node])[0])
        return self.distances_to(place, np.arange(len(self)))

    def recall(self, n: int = 10, *, sample: int = _SAMPLE, seed: int = 0) -> float:
        """Measure what share of the true ``n`` nearest is found, over a sample of nodes; 1 where exact.

        A node counts as found as well if it is as near as the true ones: many profiles are equal.
        """
        if self.exact:
            return 1.0
        places = _sample(len(self), sample, seed)
        found = self.neighbors(places, n).scores
        true = np.array(
            [self._among(place, _others(len(self), place), n).scores for place in places.tolist()]
        )
        return float((found >= true[:, -1:] * (1 - _ROUNDING)).mean())

    def candidates(self, place: int) -> NDArray[np.int64]:
        """Return the positions that the node at a position is compared with, ascending."""
        return _others(len(self), place) if self._like is None else self._like.near(place)

    def distances_to(self, place: int, others: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the DTW distances of the profile at a position to those at others (m,)."""
        return self._distances(np.full(len(others), place), others)

    def _nearest(self, place: int, n: int) -> Nearest:
        return self._among(place, self.candidates(place), n)

    def _among(self, place: int, others: NDArray[np.int64], n: int) -> Nearest:
        distances = self.distances_to(place, others)
        order = np.argsort(distances, kind="stable")[:n]
        return Nearest(others[order], np.exp(-distances[order].astype(np.float64)))


def _others(size: int, place: int) -> NDArray[np.int64]:
    others = np.arange(size - 1)
    others[place:] += 1
    return others


def _sample(size: int, sample: int, seed: int) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(seed).choice(size, min(sample, size), replace=False))


def _named(names: NDArray[Any], found: Nearest) -> list[Match]:
    listed = zip(names[found.positions].tolist(), found.scores.tolist(), strict=True)
    return [Match(name, score) for name, score in listed]


class TwofoldSearch:
    """Nodes that rank high by vector and by role: the worse of the two ranks counts.

    The score is the share of the compared nodes that are not more alike in that worse way: 1 where nobody is
    more alike either way. Nodes of equal score come in the order of cosine, then of the graph. Large graphs'
    nodes are compared with the candidates of the structural search.

    Parameters
    ----------
    search : Search
    roles : StructuralSearch
        Of the same nodes in the same order.
    """

    def __init__(self, search: Search, roles: StructuralSearch) -> None:
        if len(search) != len(roles) or not np.array_equal(search.embeddings.names, roles.graph.names):
            raise ParameterError(
                f"both searches must be of the same nodes; got {len(search)} vectors and {len(roles)} nodes"
            )
        self.search, self.roles = search, roles

    def __len__(self) -> int:
        return len(self.search)

    @property
    def exact(self) -> bool:
        """Whether every node is compared."""
        return self.roles.exact

    def similar(self, node: Any, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes most like a node both ways, most alike first; never the node itself."""
        found = self._nearest(int(self.search.positions([node])[0]), as_count(n))
        names = self.search.embeddings.names[found.positions].tolist()
        return [Match(name, score) for name, score in zip(names, found.scores.tolist(), strict=True)]

    def neighbors(
        self, positions: ArrayLike | None = None, n: int = 10, *, progress: Progress | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like each of some nodes, or of all: the answers of ``similar``."""
        count = as_count(n)
        return in_batches(lambda place: self._nearest(place, count), positions, len(self), n, progress)

    def _nearest(self, place: int, n: int) -> Nearest:
        others = self.roles.candidates(place)
        name = self.search.embeddings.names[place : place + 1].tolist()[0]
        apart = np.round(-self.search.cosines(name)[others], 6)
        worse = np.maximum(_rank(apart), _rank(self.roles.distances_to(place, others)))  # (m,)
        order = np.lexsort((apart, worse))[:n]
        return Nearest(others[order], 1 - worse[order] / max(len(others), 1))


def _rank(distances: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many are strictly nearer (m,)."""
    return np.searchsorted(np.sort(distances), distances)
