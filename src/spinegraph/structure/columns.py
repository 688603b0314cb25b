"""Structural columns: numbers that describe a node by its links alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import GraphLike
from spinegraph.kernels import columns as kernels
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.columns import ITSELF, NEIGHBORS, TWO_HOPS, WIDTH
from spinegraph.kernels.dtw import OFFSET
from spinegraph.kernels.runtime import run_blocks
from spinegraph.structure.pagerank import RootedPageRank, as_roots, rooted_pagerank

# Columns of a model without features.
COLUMNS = (
    *("log_degree", "log_mean_weight", "log_smaller_neighbors", "log_h_index"),
    *("overlap_10", "overlap_25", "overlap_50", "spread", "log_profile_3", "log_profile_10"),
)
Counts = NDArray[np.float64]
_TINY = np.finfo(np.float64).tiny


def _clustering(counts: Counts) -> Counts:
    degree = counts[kernels.DEGREE]
    return np.asarray(counts[kernels.TRIANGLES] / np.maximum(degree * (degree - 1) / 2, 1))


# Column -> how far it looks, and its values given the counts (WIDTH, r).
_FROM_COUNTS: dict[str, tuple[int, Callable[[Counts], Counts]]] = {
    "log_degree": (ITSELF, lambda counts: np.log1p(counts[kernels.DEGREE])),
    "log_mean_weight": (
        ITSELF,
        lambda counts: np.log(
            np.maximum(counts[kernels.STRENGTH], _TINY) / np.maximum(counts[kernels.DEGREE], _TINY)
        ),
    ),
    "log_smaller_neighbors": (NEIGHBORS, lambda counts: np.log1p(counts[kernels.SMALLER])),
    "log_h_index": (NEIGHBORS, lambda counts: np.log1p(counts[kernels.H_INDEX])),
    "overlap_10": (TWO_HOPS, lambda counts: counts[kernels.OVERLAPS]),
    "overlap_25": (TWO_HOPS, lambda counts: counts[kernels.OVERLAPS + 1]),
    "overlap_50": (TWO_HOPS, lambda counts: counts[kernels.OVERLAPS + 2]),
    "log_triangles": (TWO_HOPS, lambda counts: np.log1p(counts[kernels.TRIANGLES])),
    "clustering": (TWO_HOPS, _clustering),
    "neighbor_log_degree_mean": (NEIGHBORS, lambda counts: counts[kernels.MEAN]),
    "neighbor_log_degree_deviation": (NEIGHBORS, lambda counts: counts[kernels.DEVIATION]),
}
# Settings of the profile if none is given. On the airports, 0.7 separates roles slightly better than 0.5.
_K, _CONTINUATION = 20, 0.7
# Each block allocates marks for all nodes, so a large graph must not have too many blocks.
_ROOTS_PER_BLOCK, _BLOCKS = 512, 256
MAX_SHARED = 1 << 27  # most entries, of four bytes each, to count common neighbours per edge


@dataclass(frozen=True, eq=False)
class StructuralColumns:
    """Columns computed from structure alone; nodes that an automorphism exchanges have equal rows.

    Attributes
    ----------
    values : float32 array (r, s)
        One row per root. Not standardised: use the training nodes' mean and standard deviation for that.
    names : tuple of str (s,)
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
    """Describe the positions of nodes in a network by a few numbers that mean the same in every network.

    ``log_degree`` and ``log_mean_weight`` (0 if all weights are equal); ``log_smaller_neighbors``: neighbours
    of at most half the degree; ``log_h_index``: the largest h such that h neighbours have h neighbours each;
    ``overlap_10``, ``_25``, ``_50``: quantiles over neighbours of the share of common neighbours among all of
    both; ``spread``: entropy of the profile; ``log_profile_3`` and ``_10``: its third and tenth value, plus
    the offset of DTW. On request also the profile's other values, ``log_triangles``, ``clustering``,
    ``neighbor_log_degree_mean`` and ``_deviation``. Logarithms of counts are log(1 + count).

    Parameters
    ----------
    graph : Graph or Overlay
    roots : int array (r,), optional
        Positions; every node by default. Only they, their neighbours' rows and their profile are visited.
    profile : RootedPageRank, optional
        The roots' profile; otherwise computed with k = 20 and continuation 0.7 if a column needs it. A model
        must see one kind of profile throughout: always pass it, or never.
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
    reads_profile = any(name not in _FROM_COUNTS for name in names)
    if profile is None and reads_profile:
        profile = rooted_pagerank(graph, k=_K, continuation=_CONTINUATION, roots=roots, threads=threads)
    if profile is not None and len(profile) != len(chosen):
        raise ParameterError(
            f"profile must have one row per root; got {len(profile)} rows, {len(chosen)} roots"
        )
    profile_columns = [f"log_profile_{i + 1}" for i in range(max(_K, 0 if profile is None else profile.k))]
    known = (*_FROM_COUNTS, "spread", *profile_columns)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ParameterError(f"names must be among {', '.join(known)}; got {unknown[0]!r}")
    depth = max((_FROM_COUNTS[name][0] for name in names if name in _FROM_COUNTS), default=ITSELF)
    counts = _neighborhoods(adjacency, chosen, depth, threads).T
    columns = np.empty((len(chosen), len(names)), dtype=np.float32)
    for i, name in enumerate(names):
        if name in _FROM_COUNTS:
            columns[:, i] = _FROM_COUNTS[name][1](counts)
        elif profile is not None:
            columns[:, i] = _from_profile(name, profile.weights)
    return StructuralColumns(columns, tuple(names))


def _neighborhoods(
    adjacency: Adjacency, roots: NDArray[np.int64], depth: int, threads: int | None
) -> NDArray[np.float64]:
    """Return the counts by the kernel of that name, (r, WIDTH)."""
    n = adjacency.num_nodes
    counts, shared = np.empty((len(roots), WIDTH)), np.empty(0, dtype=np.int32)
    block = max(_ROOTS_PER_BLOCK, n // _BLOCKS)

    def marks() -> NDArray[np.uint8]:
        return np.zeros(n, dtype=np.uint8)

    # If most edges are needed, counting once for both ends costs less than once for each.
    has_most = 2 * len(roots) > n and not adjacency.rows.size
    if depth == TWO_HOPS and has_most and 0 < adjacency.indices.size <= MAX_SHARED:
        shared = np.empty(adjacency.indices.size, dtype=np.int32)
        edges = adjacency.indptr, adjacency.indices

        def share(start: int, stop: int) -> None:
            kernels.share_edges(*edges, start, stop, marks(), shared)

        run_blocks(share, n, block=block, threads=threads)

    def describe(start: int, stop: int) -> None:
        kernels.neighborhoods(adjacency, roots[start:stop], depth, marks(), shared, counts[start:stop])

    run_blocks(describe, len(roots), block=block, threads=threads)
    return counts


def _from_profile(name: str, weights: NDArray[np.float32]) -> NDArray[np.float64]:
    if name == "spread":
        entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(axis=1, dtype=np.float64)
        return np.asarray(entropy)
    index = int(name.rpartition("_")[2]) - 1
    value = weights[:, index] if index < weights.shape[1] else np.zeros(len(weights))
    return np.asarray(np.log(value.astype(np.float64) + OFFSET))
