"""Structurally similar nodes: candidates, distances of profiles, and weights from distances."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import position_type
from spinegraph.kernels.dtw import OFFSET, copy_owned, dtw_distances, owned_slots
from spinegraph.kernels.runtime import run_blocks
from spinegraph.structure.pagerank import RootedPageRank

CandidateMethod = Literal["degree", "profile", "all"]
Metric = Literal["dtw", "euclidean", "cosine"]
# From positions left (m,) and right (m,) to distances float32 (m,).
Comparison = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
MAX_NODES_FOR_ALL = 20_000
_PAIRS_PER_BLOCK = 16_384


def candidates(
    degrees: ArrayLike, weights: ArrayLike | None = None, method: CandidateMethod = "profile"
) -> NDArray[Any]:
    """Select each node's structural candidates, int32 (n, c), padded with -1; never the node itself.

    ``"degree"``, as in the paper: nodes next to a node in the order of degree, equal degrees by position.
    ``"profile"``: the same, but equal degrees by the mean logarithm of their profiles ``weights`` (n, k).
    ``"all"``: every other node; for small networks. To make nodes of several networks candidates of each
    other, concatenate their degrees and profiles.

    >>> candidates([1, 1, 3, 1], method="all").tolist()
    [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    """
    degree = np.asarray(degrees)
    n = len(degree)
    if method == "all":
        if n > MAX_NODES_FOR_ALL:
            raise ParameterError(
                f'method "all" compares all pairs of nodes; got {n} nodes, at most {MAX_NODES_FOR_ALL} are '
                'allowed: use "profile" or "degree"'
            )
        others = np.arange(max(n - 1, 0), dtype=np.int32)
        return others + (others >= np.arange(n)[:, None]).astype(np.int32)
    if method == "degree":
        return nearest_degree(degree)
    if method == "profile":
        if weights is None:
            raise ParameterError('method "profile" needs profiles: pass weights, or method="degree"')
        profile = np.asarray(weights)
        if profile.ndim != 2 or len(profile) != n:
            raise ParameterError(f"weights must be (n, k) with n = {n} as degrees; got {profile.shape}")
        # For close values, DTW's local cost is the difference of these logarithms.
        return nearest_degree(degree, order=np.log(profile + OFFSET).mean(axis=1))
    raise ParameterError(f'method must be one of "degree", "profile", "all"; got {method!r}')


def nearest_degree(degrees: ArrayLike, *, order: ArrayLike | None = None) -> NDArray[Any]:
    """Return the ceil(log2 n) nodes on each side of a node in the order of degree, (n, 2 ceil(log2 n)).

    By ascending degree, padded with -1 at both ends of the order. Equal degrees are ordered by
    ``order`` (n,), or by position.

    >>> nearest_degree([7, 1, 2, 5]).tolist()
    [[2, 3, -1, -1], [-1, -1, 2, 3], [-1, 1, 3, 0], [1, 2, 0, -1]]
    """
    degree = np.asarray(degrees)
    n = len(degree)
    if not n:
        return np.empty((0, 0), dtype=np.int32)
    ties = np.arange(n) if order is None else np.asarray(order)
    ranking = np.lexsort((ties, degree))  # (n,)
    side = math.ceil(math.log2(n))
    padding = np.full(side, -1)
    line = np.concatenate([padding, ranking, padding]).astype(position_type(n))
    windows = np.lib.stride_tricks.sliding_window_view(line, 2 * side + 1)  # (n, 2 side + 1), by rank
    chosen = np.empty((n, 2 * side), dtype=line.dtype)
    chosen[ranking, :side] = windows[:, :side]
    chosen[ranking, side:] = windows[:, side + 1 :]
    return chosen


def as_rows(values: ArrayLike, what: str) -> NDArray[np.float32]:
    """Return profiles as read-only float32 (n, k), or raise an error that names them ``what``."""
    rows: NDArray[np.float32] = np.ascontiguousarray(values, dtype=np.float32).view()
    if rows.ndim != 2 or not rows.shape[1]:
        raise ParameterError(f"{what} must be (n, k) with k >= 1; got shape {rows.shape}")
    if rows.size and not (rows.min() >= 0 and rows.max() < np.inf):
        raise ParameterError(f"{what} must be finite and >= 0; got values from {rows.min()} to {rows.max()}")
    rows.flags.writeable = False  # kernels compile once, for read-only rows
    return rows


def comparison(metric: Metric, rows: NDArray[np.float32]) -> Comparison:
    """Return a function that computes distances between rows (n, k), given pairs of positions."""
    if metric == "dtw":
        # Length of each row without trailing zeros: the kernel skips zeros that both rows end in.
        last = rows.shape[1] - np.argmax(rows[:, ::-1] > 0, axis=1)
        ends = np.where(rows.any(axis=1), last, 0)
        return lambda left, right: np.asarray(dtw_distances(rows, rows, ends, ends, left, right))
    if metric == "euclidean":
        return lambda left, right: np.linalg.norm(rows[left] - rows[right], axis=1).astype(np.float32)
    if metric == "cosine":  # a row of zeros has distance 1 to every row
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        units = (rows / np.where(norms > 0, norms, 1)).astype(np.float32)
        return lambda left, right: np.maximum(1 - np.einsum("mk,mk->m", units[left], units[right]), 0)
    raise ParameterError(f'metric must be one of "dtw", "euclidean", "cosine"; got {metric!r}')


@dataclass(frozen=True, eq=False)
class SimilarNodes:
    """Each node's candidates, and the probability of drawing each as a structural positive.

    Attributes
    ----------
    nodes : int array (n, c)
        Ascending, padded with -1; never the node itself.
    weights : float32 array (n, c)
        exp(-(distance - the row's smallest)), scaled to sum 1; 0 at padding, so all 0 without candidates.
    """

    nodes: NDArray[Any]
    weights: NDArray[np.float32]


def similar_nodes(
    profile: RootedPageRank | ArrayLike,
    candidates: ArrayLike,
    metric: Metric = "dtw",
    *,
    threads: int | None = None,
) -> SimilarNodes:
    """Weight each node's candidates by the similarity of profiles; each unordered pair is compared once.

    Parameters
    ----------
    profile : RootedPageRank, or array (n, k)
        Its ``weights`` are compared; rows of several networks may be concatenated.
    candidates : int array (n, c)
        Any order, padded with -1; without the node itself and without duplicates.
    metric : str
        ``"dtw"`` with local cost max/min - 1 of the values plus 1e-3, ``"euclidean"`` or ``"cosine"``.
    threads : int, optional
        All cores by default. The result does not depend on it.

    Examples
    --------
    >>> similar = similar_nodes(np.array([[0.6, 0.4], [0.6, 0.4], [1.0, 0.0]]), [[2, 1], [0, 2], [0, -1]])
    >>> similar.nodes.tolist(), similar.weights.round(3).tolist()
    ([[1, 2], [0, 2], [0, -1]], [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    """
    rows = as_rows(profile.weights if isinstance(profile, RootedPageRank) else profile, "profile weights")
    compare, nodes = comparison(metric, rows), _ascending(candidates, len(rows))
    n, c = nodes.shape
    distances = np.full((n, c), np.inf, dtype=np.float32)

    def fill(start: int, stop: int) -> None:
        slots = owned_slots(nodes, start, stop)  # flat indices of the pairs that no other row compares
        others = nodes.reshape(-1)[slots].astype(np.int64)
        distances.reshape(-1)[slots] = compare(slots // c, others)

    block = max(1, _PAIRS_PER_BLOCK // max(c, 1))
    run_blocks(fill, n, block=block, threads=threads)
    run_blocks(lambda start, stop: copy_owned(nodes, distances, start, stop), n, block=block, threads=threads)
    nodes[nodes >= n] = -1
    if c:
        nearest = distances.min(axis=1, keepdims=True)
        np.subtract(np.where(np.isfinite(nearest), nearest, 0), distances, out=distances)
        np.exp(distances, out=distances)
        total = distances.sum(axis=1, keepdims=True)
        distances /= np.where(total > 0, total, 1)
    return SimilarNodes(nodes, distances)


def _ascending(candidates: ArrayLike, n: int) -> NDArray[Any]:
    """Return checked candidates (n, c), ascending and padded with a number above every node."""
    given: NDArray[Any] = np.asarray(candidates)
    if given.ndim != 2 or len(given) != n or (given.size and given.dtype.kind not in "iu"):
        raise ParameterError(f"candidates must be whole numbers ({n}, c); got {given.dtype} {given.shape}")
    if given.size and (given.min() < -1 or given.max() >= n):
        raise ParameterError(f"candidates must be 0 to {n - 1}, or -1; got {given.min()} to {given.max()}")
    index = position_type(n)
    nodes: NDArray[Any] = given.astype(index)
    nodes[nodes < 0] = np.iinfo(index).max
    nodes.sort(axis=1)
    itself = (nodes == np.arange(n, dtype=index)[:, None]).any(axis=1)
    if itself.any():
        raise ParameterError(f"candidates: row {itself.argmax()} contains the node itself; put -1 there")
    twice = ((nodes[:, 1:] == nodes[:, :-1]) & (nodes[:, 1:] < n)).any(axis=1)
    if twice.any():
        raise ParameterError(f"candidates: row {twice.argmax()} contains a node twice; list it once")
    return nodes
