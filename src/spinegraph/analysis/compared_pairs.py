"""Two ways to be far apart: pairs of nodes by their profiles and by their vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.analysis.nearest import unit_rows
from spinegraph.embeddings import Embeddings
from spinegraph.kernels.dtw import OFFSET
from spinegraph.structure.distances import pair_distances

_PAIRS = 20_000
_BINS = 12
_BESIDE = 5
_LEAST = 8  # pairs in a bin worth a point


@dataclass(frozen=True, eq=False)
class ComparedPairs:
    """Distances of sampled pairs of nodes.

    Attributes
    ----------
    structural : array (m,)
        DTW distance of the profiles.
    apart : array (m,)
        1 - cosine of the vectors.
    is_near : bool array (m,)
        Whether the nodes are at most two steps apart.

    Examples
    --------
    >>> ComparedPairs(np.arange(3.0), np.arange(3.0), np.array([True, False, True])).rank_correlation()
    1.0
    """

    structural: NDArray[Any]
    apart: NDArray[Any]
    is_near: NDArray[np.bool_]

    def only(self, near: bool) -> "ComparedPairs":
        """Return the pairs that are near, or those that are not."""
        chosen = self.is_near == near
        return ComparedPairs(self.structural[chosen], self.apart[chosen], self.is_near[chosen])

    def rank_correlation(self) -> float:
        """Return Spearman's correlation of the two distances; 0 where either is constant."""
        from scipy.stats import rankdata

        ranks = [rankdata(values) for values in (self.structural, self.apart)]
        if len(ranks[0]) < 2 or any(np.ptp(rank) == 0 for rank in ranks):
            return 0.0
        return float(np.corrcoef(*ranks)[0, 1])

    def quartiles(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Cut the pairs into bins of equal count by structure: its middle, and quartiles of ``apart``."""
        if len(self.structural) < _LEAST:
            none = np.zeros(0)
            return none, none, none, none
        bins = min(_BINS, len(self.structural) // _LEAST)
        edges = np.unique(np.quantile(self.structural, np.linspace(0, 1, bins + 1)))
        bin_of = np.clip(np.searchsorted(edges, self.structural, side="right") - 1, 0, max(len(edges) - 2, 0))
        rows = []
        for place in np.unique(bin_of):
            mine = bin_of == place
            rows.append([np.median(self.structural[mine]), *np.quantile(self.apart[mine], (0.25, 0.5, 0.75))])
        middle, low, median, high = np.array(rows).T
        return middle, low, median, high


def compare_pairs(
    graph: Any, embeddings: Embeddings, weights: NDArray[np.float32], *, pairs: int = _PAIRS, seed: int = 0
) -> ComparedPairs:
    """Sample pairs of nodes and measure both distances.

    A third of the pairs is at most two steps apart, a third alike in degree and profile, a third random.

    Parameters
    ----------
    graph : Graph
    embeddings : Embeddings
        Of its nodes, in its order.
    weights : array (n, k)
        Profiles of its nodes.
    pairs : int
        How many are drawn; a node drawn with itself is left out.
    seed : int

    Examples
    --------
    >>> from spinegraph import made, rooted_pagerank
    >>> graph = made.karate()
    >>> vectors = Embeddings(graph.names, np.random.default_rng(0).normal(size=(34, 4)))
    >>> found = compare_pairs(graph, vectors, rooted_pagerank(graph).weights, pairs=100)
    >>> bool(found.is_near.any()), float(found.apart.max()) <= 2
    (True, True)
    """
    rng = np.random.default_rng(seed)
    third = pairs // 3
    near = _two_steps(graph, rng, third)
    anywhere = rng.integers(len(graph), size=(pairs - 2 * third, 2))
    far = np.concatenate([_alike(graph.degrees, weights, rng, third), anywhere])
    both = np.concatenate([near, far])
    is_near = np.concatenate([np.ones(len(near), bool), _within_two(graph, far)])
    different = both[:, 0] != both[:, 1]
    both, is_near = both[different], is_near[different]
    unit = unit_rows(embeddings.vectors)
    cosine = np.einsum("md,md->m", unit[both[:, 0]], unit[both[:, 1]])
    return ComparedPairs(pair_distances(weights, both), np.clip(1 - cosine, 0, 2), is_near)


def _alike(
    degrees: NDArray[Any], weights: NDArray[Any], rng: np.random.Generator, count: int
) -> NDArray[np.int64]:
    """Draw nodes that are close to each other in the order of degree and profile."""
    line = np.lexsort((np.log(weights + OFFSET).mean(axis=1), degrees))
    first = rng.integers(len(line), size=count)
    second = np.clip(first + rng.integers(-_BESIDE, _BESIDE + 1, size=count), 0, len(line) - 1)
    return np.column_stack([line[first], line[second]])


def _two_steps(graph: Any, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw a node that has neighbours, one of them, and half of the time a neighbour of that."""
    linked = np.flatnonzero(graph.degrees > 0)
    if not len(linked):
        return np.zeros((0, 2), np.int64)
    start = rng.choice(linked, count)
    first = _random_neighbor(graph, start, rng)
    second = _random_neighbor(graph, first, rng)
    return np.column_stack([start, np.where(rng.random(count) < 0.5, first, second)])


def _random_neighbor(graph: Any, nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    degrees = graph.degrees[nodes]
    drawn = graph.indptr[nodes] + (rng.random(len(nodes)) * degrees).astype(np.int64)
    return np.asarray(graph.indices[drawn], dtype=np.int64)


def _within_two(graph: Any, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each pair whether one is the other's neighbour or shares one with it."""
    ones = np.ones(len(graph.indices), np.int32)
    linked = csr_array((ones, graph.indices, graph.indptr), shape=(len(graph), len(graph)))
    left, right = linked[pairs[:, 0]], linked[pairs[:, 1]]
    places = csr_array(
        (np.ones(len(pairs), np.int32), (np.arange(len(pairs)), pairs[:, 1])), shape=left.shape
    )
    shared = np.asarray(left.multiply(right).sum(axis=1)).ravel()
    direct = np.asarray(left.multiply(places).sum(axis=1)).ravel()
    found: NDArray[np.bool_] = (shared > 0) | (direct > 0)
    return found
