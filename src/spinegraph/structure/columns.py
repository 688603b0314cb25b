"""Structural columns: what a node looks like from its links alone, where features are absent or join them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.dtw import OFFSET
from spinegraph.kernels.neighborhoods import (
    DEGREE,
    DEVIATION,
    H_INDEX,
    MEAN,
    OVERLAPS,
    SMALLER,
    STRENGTH,
    TRIANGLES,
    WIDTH,
    neighborhoods,
    share_edges,
)
from spinegraph.kernels.threads import run_blocks
from spinegraph.structure.profile import RootedPageRank
from spinegraph.structure.rooted_pagerank import rooted_pagerank
from spinegraph.structure.roots import as_roots

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
    graph: Any,
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
        The roots' profile, where it is at hand; otherwise pushed with k = 20 and continuation 0.7.
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
    if profile is None:
        profile = rooted_pagerank(graph, k=_K, continuation=_CONTINUATION, roots=roots, threads=threads)
    if len(profile) != len(chosen):
        raise ParameterError(
            f"profile must have one row per root; got {len(profile)} rows, {len(chosen)} roots"
        )
    counts = _neighborhoods(adjacency, chosen, threads)
    columns = {**_of_neighbors(counts), **_of_profile(profile.weights)}
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise ParameterError(f"names must be among {', '.join(columns)}; got {unknown[0]!r}")
    values = np.empty((len(chosen), len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        values[:, place] = columns[name]
    return StructuralColumns(values, tuple(names))


def _neighborhoods(
    adjacency: Adjacency, roots: NDArray[np.int64], threads: int | None
) -> NDArray[np.float64]:
    """Return what the kernel of that name writes, (r, WIDTH)."""
    n = adjacency.num_nodes
    counts, shared = np.empty((len(roots), WIDTH)), np.empty(0, dtype=np.int32)
    block = max(_ROOTS_PER_BLOCK, n // _BLOCKS)

    def marks() -> NDArray[np.uint8]:
        return np.zeros(n, dtype=np.uint8)

    # Counting once for both ends costs less than once for each, where most edges are asked for.
    if 2 * len(roots) > n and not adjacency.rows.size and 0 < adjacency.indices.size <= _MOST_SHARED:
        shared = np.empty(adjacency.indices.size, dtype=np.int32)
        edges = adjacency.indptr, adjacency.indices

        def share(start: int, stop: int) -> None:
            share_edges(*edges, start, stop, marks(), shared)

        run_blocks(share, n, block=block, threads=threads)

    def describe(start: int, stop: int) -> None:
        neighborhoods(tuple(adjacency), roots[start:stop], marks(), shared, counts[start:stop])

    run_blocks(describe, len(roots), block=block, threads=threads)
    return counts


def _of_neighbors(counts: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    degree = counts[:, DEGREE]
    return {
        "log_degree": np.log1p(degree),
        "log_mean_weight": np.log(np.where(degree > 0, counts[:, STRENGTH], 1) / np.maximum(degree, 1)),
        "log_smaller_neighbors": np.log1p(counts[:, SMALLER]),
        "log_h_index": np.log1p(counts[:, H_INDEX]),
        "overlap_10": counts[:, OVERLAPS],
        "overlap_25": counts[:, OVERLAPS + 1],
        "overlap_50": counts[:, OVERLAPS + 2],
        "log_triangles": np.log1p(counts[:, TRIANGLES]),
        "clustering": counts[:, TRIANGLES] / np.maximum(degree * (degree - 1) / 2, 1),
        "neighbor_log_degree_mean": counts[:, MEAN],
        "neighbor_log_degree_deviation": counts[:, DEVIATION],
    }


def _of_profile(weights: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    value = np.zeros((len(weights), max(_K, weights.shape[1])))
    value[:, : weights.shape[1]] = weights
    spread = -(value * np.log(np.where(value > 0, value, 1))).sum(axis=1)
    logarithms = np.log(value + OFFSET)
    return {"spread": spread, **{f"log_profile_{place + 1}": row for place, row in enumerate(logarithms.T)}}
