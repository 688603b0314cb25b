"""How likely each of a node's candidates is to stand for it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import position_type
from spinegraph.kernels.pairs import copy_owned, owned_slots
from spinegraph.kernels.threads import run_blocks
from spinegraph.structure.distances import PAIRS_PER_BLOCK, Comparison, Metric, as_rows, comparison


@dataclass(frozen=True, eq=False)
class SimilarNodes:
    """Each node's candidates, and the probability of drawing each as a structural positive.

    Attributes
    ----------
    nodes : int array (n, c)
        Ascending, padded with -1; never the node itself.
    weights : float32 array (n, c)
        exp(-(distance - the row's smallest)), scaled to sum 1; 0 at padding, so all 0 without candidates.

    Examples
    --------
    >>> SimilarNodes(np.array([[1], [0]]), np.ones((2, 1), np.float32)).nodes.shape
    (2, 1)
    """

    nodes: NDArray[Any]
    weights: NDArray[np.float32]


def similar_nodes(
    profile: Any, candidates: ArrayLike, metric: Metric = "dtw", *, threads: int | None = None
) -> SimilarNodes:
    """Weigh each node's candidates by how alike their profiles are; each unordered pair is compared once.

    Parameters
    ----------
    profile : RootedPageRank, or array (n, k)
        Its ``weights`` are compared; rows of several networks may be concatenated.
    candidates : int array (n, c)
        Any order, padded with -1; neither the node itself nor a node twice.
    metric : str
        ``"dtw"``, ``"euclidean"`` or ``"cosine"``, as in ``pair_distances``.
    threads : int, optional
        All cores by default. The result does not depend on it.

    Examples
    --------
    >>> similar = similar_nodes(np.array([[0.6, 0.4], [0.6, 0.4], [1.0, 0.0]]), [[2, 1], [0, 2], [0, -1]])
    >>> similar.nodes.tolist(), similar.weights.round(3).tolist()
    ([[1, 2], [0, 2], [0, -1]], [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    """
    rows, nodes = compared(profile, candidates)
    compare = comparison(metric, rows, rows)
    n, c = nodes.shape
    distances = np.full((n, c), np.inf, dtype=np.float32)

    def fill(start: int, stop: int) -> None:
        slots = owned_slots(nodes, start, stop)
        distances.reshape(-1)[slots] = _distances(compare, nodes, slots)

    run_blocks(fill, n, block=max(1, PAIRS_PER_BLOCK // max(c, 1)), threads=threads)
    return settled(nodes, distances, threads)


def compared(profile: Any, candidates: ArrayLike) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return what is compared: rows (n, k), and candidates (n, c) ascending, with a high number for padding.

    >>> compared(np.ones((2, 1)), [[1], [-1]])[1].tolist()
    [[1], [2147483647]]
    """
    rows = as_rows(getattr(profile, "weights", profile), "profile weights")
    return rows, _ascending(candidates, len(rows))


def owned_distances(
    rows: NDArray[np.float32], nodes: NDArray[Any], metric: Metric, start: int, stop: int
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return the slots of the pairs that rows ``start`` to ``stop`` own, each pair once, and their distances.

    >>> rows, nodes = compared(np.array([[0.6, 0.4], [0.6, 0.4]]), [[1], [0]])
    >>> [part.tolist() for part in owned_distances(rows, nodes, "dtw", 0, 2)]
    [[0], [0.0]]
    """
    slots = owned_slots(nodes, start, stop)
    return slots, _distances(comparison(metric, rows, rows), nodes, slots)


def settled(nodes: NDArray[Any], distances: NDArray[np.float32], threads: int | None = None) -> SimilarNodes:
    """Return what comes of the distances that every row owns, infinite elsewhere; both are written over.

    >>> settled(np.array([[1], [0]], dtype=np.int32), np.array([[2], [np.inf]], np.float32)).weights.tolist()
    [[1.0], [1.0]]
    """
    n, c = nodes.shape
    block = max(1, PAIRS_PER_BLOCK // max(c, 1))
    run_blocks(lambda start, stop: copy_owned(nodes, distances, start, stop), n, block=block, threads=threads)
    nodes[nodes >= n] = -1
    return SimilarNodes(nodes, _softmin(distances))


def _distances(compare: Comparison, nodes: NDArray[Any], slots: NDArray[Any]) -> NDArray[np.float32]:
    return compare(slots // nodes.shape[1], nodes.reshape(-1)[slots].astype(np.int64))


def _softmin(distances: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn distances (n, c), infinite at padding, into rows that sum to 1, or 0 where all are; in place."""
    if distances.shape[1]:
        nearest = distances.min(axis=1, keepdims=True)
        np.subtract(np.where(np.isfinite(nearest), nearest, 0), distances, out=distances)
        np.exp(distances, out=distances)
        total = distances.sum(axis=1, keepdims=True)
        distances /= np.where(total > 0, total, 1)
    return distances


def _ascending(candidates: ArrayLike, n: int) -> NDArray[Any]:
    """Sort each row, with a number above every node for padding, and refuse what is no candidate."""
    given: NDArray[Any] = np.asarray(candidates)
    if given.ndim != 2 or len(given) != n or (given.size and given.dtype.kind not in "iu"):
        raise ParameterError(f"candidates must be whole numbers ({n}, c); got {given.dtype} {given.shape}")
    if given.size and (given.min() < -1 or given.max() >= n):
        raise ParameterError(
            f"candidates must be positions 0 to {n - 1}, or -1; got {given.min()} to {given.max()}"
        )
    index = position_type(n)
    nodes: NDArray[Any] = given.astype(index)
    nodes[nodes < 0] = np.iinfo(index).max
    nodes.sort(axis=1)
    itself = (nodes == np.arange(n, dtype=index)[:, None]).any(axis=1)
    if itself.any():
        raise ParameterError(
            f"candidates: row {itself.argmax()} names the node itself; leave it out or pad with -1"
        )
    twice = ((nodes[:, 1:] == nodes[:, :-1]) & (nodes[:, 1:] < n)).any(axis=1)
    if twice.any():
        raise ParameterError(f"candidates: row {twice.argmax()} names a node twice; name it once")
    return nodes
