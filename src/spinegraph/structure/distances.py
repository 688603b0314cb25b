"""How far apart two profiles are: exact dynamic time warping, Euclidean, cosine."""

from collections.abc import Callable
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.dtw import dtw_distances
from spinegraph.kernels.threads import run_blocks

Metric = Literal["dtw", "euclidean", "cosine"]
Rows = NDArray[np.float32]
Comparison = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]

PAIRS_PER_BLOCK = 16_384


def pair_distances(
    weights: ArrayLike, pairs: ArrayLike, metric: Metric = "dtw", *, threads: int | None = None
) -> NDArray[np.float32]:
    """Measure how far apart the profiles of given pairs of nodes are.

    Parameters
    ----------
    weights : array (n, k)
        Profiles, one row per node.
    pairs : int array (m, 2)
        Positions of the nodes.
    metric : str
        ``"dtw"`` with local cost max/min - 1 of the values plus 1e-3, ``"euclidean"`` or ``"cosine"``.
    threads : int, optional
        All cores by default. The result does not depend on it.

    Returns
    -------
    float32 array (m,)

    Examples
    --------
    >>> pair_distances([[0.5, 0.5], [0.75, 0.25]], [[0, 1], [1, 1]]).round(2)
    array([1.5, 0. ], dtype=float32)
    """
    rows = as_rows(weights, "weights")
    given = np.asarray(pairs)
    if given.size and (given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu"):
        raise ParameterError(f"pairs must be whole numbers (m, 2); got {given.dtype} {given.shape}")
    pair = given.reshape(-1, 2).astype(np.int64)
    if pair.size and (pair.min() < 0 or pair.max() >= len(rows)):
        raise ParameterError(
            f"pairs must be positions 0 to {len(rows) - 1}; got {pair.min()} to {pair.max()}"
        )
    left, right = np.ascontiguousarray(pair[:, 0]), np.ascontiguousarray(pair[:, 1])
    return _in_blocks(comparison(metric, rows, rows), left, right, threads)


def profile_distances(
    weights_a: ArrayLike, weights_b: ArrayLike, metric: Metric = "dtw", *, threads: int | None = None
) -> NDArray[np.float32]:
    """Measure how far row i of one table of profiles is from row i of another.

    Parameters
    ----------
    weights_a, weights_b : arrays (m, k)
    metric, threads
        As in :func:`pair_distances`.

    Returns
    -------
    float32 array (m,)

    Examples
    --------
    >>> profile_distances([[0.8, 0.2]], [[0.5, 0.5]], metric="cosine").round(3)
    array([0.143], dtype=float32)
    """
    rows_a, rows_b = as_rows(weights_a, "weights_a"), as_rows(weights_b, "weights_b")
    if rows_a.shape != rows_b.shape:
        raise ParameterError(
            f"weights_a and weights_b must have one shape; got {rows_a.shape} and {rows_b.shape}"
        )
    every = np.arange(len(rows_a))
    return _in_blocks(comparison(metric, rows_a, rows_b), every, every, threads)


def comparison(metric: Metric, rows_a: Rows, rows_b: Rows) -> Comparison:
    """Return the function from positions ``left`` (m,) and ``right`` (m,) to distances float32 (m,).

    Examples
    --------
    >>> rows = as_rows([[3.0, 4.0], [0.0, 0.0]], "rows")
    >>> comparison("euclidean", rows, rows)(np.array([0]), np.array([1]))
    array([5.], dtype=float32)
    """
    if metric == "dtw":
        return _warped(rows_a, rows_b)
    if metric == "euclidean":
        return lambda left, right: np.linalg.norm(rows_a[left] - rows_b[right], axis=1).astype(np.float32)
    if metric == "cosine":
        return _turned(rows_a, rows_b)
    raise ParameterError(f'metric must be one of "dtw", "euclidean", "cosine"; got {metric!r}')


def as_rows(values: ArrayLike, what: str) -> Rows:
    """Return profiles as read-only float32 (n, k), or say what is wrong with them.

    Examples
    --------
    >>> as_rows([[1, 0]], "profile").dtype
    dtype('float32')
    """
    rows = np.ascontiguousarray(values, dtype=np.float32).view()
    if rows.ndim != 2 or not rows.shape[1]:
        raise ParameterError(f"{what} must be (n, k) with k >= 1; got shape {rows.shape}")
    if rows.size and not (rows.min() >= 0 and rows.max() < np.inf):
        raise ParameterError(f"{what} must be finite and >= 0; got values from {rows.min()} to {rows.max()}")
    rows.flags.writeable = False  # kernels compile once, for read-only rows
    return rows


def _warped(rows_a: Rows, rows_b: Rows) -> Comparison:
    """DTW, with the zeros at the rows' ends left out."""
    ends_a, ends_b = _support(rows_a), _support(rows_b)
    return lambda left, right: cast(Rows, dtw_distances(rows_a, rows_b, ends_a, ends_b, left, right))


def _support(rows: Rows) -> NDArray[np.int64]:
    """Values of each row up to the last that is not zero (n,)."""
    last = rows.shape[1] - np.argmax(rows[:, ::-1] > 0, axis=1)
    return np.where(rows.any(axis=1), last, 0)


def _turned(rows_a: Rows, rows_b: Rows) -> Comparison:
    """1 - cosine; a row of zeros is at distance 1 from every row."""
    units_a, units_b = _unit(rows_a), _unit(rows_b)

    def compare(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        cosines = np.einsum("mk,mk->m", units_a[left], units_b[right])
        return cast(Rows, np.maximum(1 - cosines, 0))

    return compare


def _unit(rows: Rows) -> Rows:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


def _in_blocks(
    compare: Comparison, left: NDArray[np.int64], right: NDArray[np.int64], threads: int | None
) -> NDArray[np.float32]:
    parts = run_blocks(
        lambda start, stop: compare(left[start:stop], right[start:stop]),
        len(left),
        block=PAIRS_PER_BLOCK,
        threads=threads,
    )
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)
