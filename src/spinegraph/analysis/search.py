"""Who is like whom: the nodes whose vectors, or whose profiles, are nearest to a node's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.analysis.like_profiles import LikeProfiles
from spinegraph.analysis.nearest import EXACT_UP_TO, Nearest, as_count, best, in_batches, unit_rows
from spinegraph.analysis.nearest_index import NearestIndex, can_index
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.structure.distances import as_rows, comparison
from spinegraph.structure.profile import RootedPageRank

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

    def __init__(self, graph: Any, profile: RootedPageRank, *, exact: bool | None = None) -> None:
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
        self._distances = comparison("dtw", self._rows, self._rows)
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
