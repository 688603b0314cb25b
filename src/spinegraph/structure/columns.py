"""Structural columns: what a node looks like from its links alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.columns import (
    DEGREE,
    DEVIATION,
    H_INDEX,
    ITSELF,
    MEAN,
    NEIGHBORS,
    OVERLAPS,
    SMALLER,
    STRENGTH,
    THEIRS,
    TRIANGLES,
    WIDTH,
    neighborhoods,
    share_edges,
)
from spinegraph.kernels.dtw import OFFSET
from spinegraph.kernels.runtime import run_blocks
from spinegraph.structure.pagerank import RootedPageRank, as_roots, rooted_pagerank

_TINY = np.finfo(np.float64).tiny
Counts = NDArray[np.float64]
# How far each column has to look, and what it makes of the counts found there.
_OF_NEIGHBORS: dict[str, tuple[int, Callable[[Counts], Counts]]] = {
    "log_degree": (ITSELF, lambda counts: np.log1p(counts[:, DEGREE])),
    "log_mean_weight": (
        ITSELF,
        lambda counts: np.log(np.maximum(counts[:, STRENGTH], _TINY) / np.maximum(counts[:, DEGREE], _TINY)),
    ),
    "log_smaller_neighbors": (NEIGHBORS, lambda counts: np.log1p(counts[:, SMALLER])),
    "log_h_index": (NEIGHBORS, lambda counts: np.log1p(counts[:, H_INDEX])),
    "overlap_10": (THEIRS, lambda counts: counts[:, OVERLAPS]),
    "overlap_25": (THEIRS, lambda counts: counts[:, OVERLAPS + 1]),
    "overlap_50": (THEIRS, lambda counts: counts[:, OVERLAPS + 2]),
    "log_triangles": (THEIRS, lambda counts: np.log1p(counts[:, TRIANGLES])),
    "clustering": (
        THEIRS,
        lambda counts: counts[:, TRIANGLES] / np.maximum(counts[:, DEGREE] * (counts[:, DEGREE] - 1) / 2, 1),
    ),
    "neighbor_log_degree_mean": (NEIGHBORS, lambda counts: counts[:, MEAN]),
    "neighbor_log_degree_deviation": (NEIGHBORS, lambda counts: counts[:, DEVIATION]),
}
_K = 20
# On the airports 0.7 tells roles a little better than 0.5: half a point to one.
_CONTINUATION = 0.7
# Each block has marks for all nodes: not too many blocks of a large graph.
_ROOTS_PER_BLOCK, _BLOCKS = 512, 256
# Entries up to which counting per edge may take four bytes each.
_MOST_SHARED = 1 << 27
COLUMNS = (
    "log_degree",
    "log_mean_weight",
    "log_smaller_neighbors",
    "log_h_index",
    "overlap_10",
    "overlap_25",
    "overlap_50",
    "spread",
    "log_profile_3",
    "log_profile_10",
)


@dataclass(frozen=True, eq=False)
class StructuralColumns:
    """Columns made from structure alone; nodes that an automorphism exchanges have equal rows.

    Attributes
    ----------
    values : float32 array (r, s)
        One row per root. Not standardised: do that with the training nodes' mean and deviation.
    names : tuple of str (s,)
        What each column holds.

    Examples
    --------
    >>> StructuralColumns(np.zeros((1, 1), np.float32), ("log_degree",)).names
    ('log_degree',)
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]


def structural_columns(
    graph: GraphLike,
    roots: ArrayLike | None = None,
    *,
    profile: RootedPageRank | None = None,
    names: tuple[str, ...] = COLUMNS,
    threads: int | None = None,
) -> StructuralColumns:
    """Describe where nodes stand by a few numbers that mean the same in every network.

    ``log_degree`` and ``log_mean_weight`` (0 where every edge weighs the same); ``log_smaller_neighbors``:
    neighbours of at most half the degree; ``log_h_index``: the most neighbours h that have h neighbours each;
    ``overlap_10``, ``_25``, ``_50``: quantiles over neighbours of the share of common neighbours among all of
    both; ``spread``: entropy of the profile; ``log_profile_3`` and ``_10``: its third and tenth value, plus
    the offset of DTW. On request also the profile's other values, ``log_triangles``, ``clustering``,
    ``neighbor_log_degree_mean`` and ``_deviation``. The logarithm of a count is of 1 + the count.

    Parameters
    ----------
    graph : Graph or Overlay
    roots : int array (r,), optional
        Positions; every node by default. Only they, their neighbours' rows and their profile are visited.
    profile : RootedPageRank, optional
        The roots' profile, where it is at hand; otherwise pushed with k = 20 and continuation 0.7, if a
        column reads it.
        A model must see one kind of profile throughout: give it always or never.
    names : tuple of str
        Columns to return, in this order.
    threads : int, optional
        All cores by default. The result does not depend on it.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> structural_columns(star, roots=[0, 1], names=("log_degree", "log_smaller_neighbors")).values.round(2)
    array([[1.39, 1.39],
           [0.69, 0.  ]], dtype=float32)
    """
    adjacency = graph.adjacency()
    chosen = as_roots(roots, adjacency.num_nodes)
    reads_profile = any(name not in _OF_NEIGHBORS for name in names)
    if profile is None and reads_profile:
        profile = rooted_pagerank(graph, k=_K, continuation=_CONTINUATION, roots=roots, threads=threads)
    if profile is not None and len(profile) != len(chosen):
        raise ParameterError(
            f"profile must have one row per root; got {len(profile)} rows, {len(chosen)} roots"
        )
    values = [f"log_profile_{place + 1}" for place in range(max(_K, 0 if profile is None else profile.k))]
    known = (*_OF_NEIGHBORS, "spread", *values)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ParameterError(f"names must be among {', '.join(known)}; got {unknown[0]!r}")
    depth = max((_OF_NEIGHBORS[name][0] for name in names if name in _OF_NEIGHBORS), default=ITSELF)
    counts = _neighborhoods(adjacency, chosen, depth, threads)
    columns = np.empty((len(chosen), len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        if name in _OF_NEIGHBORS:
            columns[:, place] = _OF_NEIGHBORS[name][1](counts)
        elif profile is not None:
            columns[:, place] = _of_profile(name, profile.weights)
    return StructuralColumns(columns, tuple(names))


def _neighborhoods(
    adjacency: Adjacency, roots: NDArray[np.int64], depth: int, threads: int | None
) -> NDArray[np.float64]:
    """Return what the kernel of that name writes, (r, WIDTH)."""
    n = adjacency.num_nodes
    counts, shared = np.empty((len(roots), WIDTH)), np.empty(0, dtype=np.int32)
    block = max(_ROOTS_PER_BLOCK, n // _BLOCKS)

    def marks() -> NDArray[np.uint8]:
        return np.zeros(n, dtype=np.uint8)

    # Counting once for both ends costs less than once for each, where most edges are asked for.
    has_most = 2 * len(roots) > n and not adjacency.rows.size
    if depth == THEIRS and has_most and 0 < adjacency.indices.size <= _MOST_SHARED:
        shared = np.empty(adjacency.indices.size, dtype=np.int32)
        edges = adjacency.indptr, adjacency.indices

        def share(start: int, stop: int) -> None:
            share_edges(*edges, start, stop, marks(), shared)

        run_blocks(share, n, block=block, threads=threads)

    def describe(start: int, stop: int) -> None:
        neighborhoods(adjacency, roots[start:stop], depth, marks(), shared, counts[start:stop])

    run_blocks(describe, len(roots), block=block, threads=threads)
    return counts


def _of_profile(name: str, weights: NDArray[np.float32]) -> NDArray[Any]:
    if name == "spread":
        spread: NDArray[np.float64] = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(
            axis=1, dtype=np.float64
        )
        return spread
    place = int(name.rpartition("_")[2]) - 1
    value = weights[:, place] if place < weights.shape[1] else np.zeros(len(weights))
    logarithm: NDArray[np.float64] = np.log(value.astype(np.float64) + OFFSET)
    return logarithm


_MOST_EDGES = 10_000
_LEAST_EDGES = 100  # fewer say nothing either way
_SHUFFLES = 10
_AFFINITY = 31  # stage of the random draws


@dataclass(frozen=True)
class Affinity:
    """How much more alike linked nodes are than unlinked ones, by the cosine of their features.

    Attributes
    ----------
    strength : float
        0: links say nothing about features; 1: a linked pair is always more alike than another pair.
    deviations : float
        How far the mean cosine over links lies above its value when features are dealt out anew, in standard
        deviations of the latter: below 3 or so it may be chance.
    """

    strength: float
    deviations: float


def affinity(graph: Graph, features_of: Any, seed: int = 0) -> Affinity | None:
    """Measure the affinity of a graph on a sample of its edges, or return None where it has too few.

    Parameters
    ----------
    graph : Graph
    features_of : callable
        From positions (r,) to their features (r, f), sparse or dense.
    seed : int
    """
    if graph.num_edges < _LEAST_EDGES:
        return None
    rng = np.random.default_rng([seed, _AFFINITY])
    if len(graph.indices) > _MOST_EDGES:
        picked = rng.integers(len(graph.indices), size=_MOST_EDGES)
    else:
        picked = np.arange(len(graph.indices))
    ends = np.stack([np.searchsorted(graph.indptr, picked, side="right") - 1, graph.indices[picked]])
    seen, places = np.unique(ends, return_inverse=True)
    left, right = places.reshape(2, -1)
    rows = _unit(features_of(seen.astype(np.int64)))
    linked = _cosines(rows, left, right)
    elsewhere = _cosines(rows, left, right[rng.permutation(len(right))])
    dealt = []
    for _ in range(_SHUFFLES):
        order = rng.permutation(len(seen))
        dealt.append(_cosines(rows, order[left], order[right]).mean())
    above = linked.mean() - float(np.mean(dealt))
    deviation = max(float(np.std(dealt, ddof=1)), 1e-12)
    return Affinity(max(0.0, 2 * _wins(linked, elsewhere) - 1), float(above / deviation))


def _unit(features: Any) -> Any:
    """Return rows of length 1; empty ones stay empty."""
    if not issparse(features):
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        return features / np.where(lengths > 0, lengths, 1)
    rows = csr_array(features)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.repeat(1 / np.where(lengths > 0, lengths, 1), np.diff(rows.indptr))
    return csr_array((rows.data * scale, rows.indices, rows.indptr), shape=rows.shape)


def _cosines(rows: Any, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    if issparse(rows):
        return np.asarray(rows[left].multiply(rows[right]).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows[left], rows[right]), dtype=np.float64)


def _wins(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the chance that a draw of one is above a draw of the other, half of it where they are equal."""
    ordered = np.sort(other)
    below = np.searchsorted(ordered, one, side="left") + np.searchsorted(ordered, one, side="right")
    return float(below.mean() / (2 * len(other)))
