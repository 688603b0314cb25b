"""Sparse times dense, row by row: the product behind T F W."""

import numba
import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.threads import run_blocks

_ROWS_PER_BLOCK = 512


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def multiply_rows(indptr, indices, data, dense, start, stop, out):
    """Rows ``start`` to ``stop`` of a CSR matrix (r, c) times a dense one (c, d), into out (r, d)."""
    width = dense.shape[1]
    for row in range(start, stop):
        total = out[row]
        for column in range(width):
            total[column] = 0
        for entry in range(indptr[row], indptr[row + 1]):
            value, source = data[entry], dense[indices[entry]]
            for column in range(width):
                total[column] += value * source[column]


def sparse_times_dense(
    indptr: NDArray[np.integer],
    indices: NDArray[np.integer],
    data: NDArray[np.float32],
    dense: NDArray[np.float32],
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return a CSR matrix (r, c) times a dense one (c, d); each row is summed in order, whatever the threads.

    >>> one = np.array([1.0, 2.0], dtype=np.float32)
    >>> sparse_times_dense(np.array([0, 2]), np.array([0, 1]), one, np.eye(2, dtype=np.float32))
    array([[1., 2.]], dtype=float32)
    """
    rows = len(indptr) - 1
    out = np.empty((rows, dense.shape[1]), dtype=np.float32)

    def task(start: int, stop: int) -> None:
        multiply_rows(indptr, indices, data, dense, start, stop, out)

    run_blocks(task, rows, block=_ROWS_PER_BLOCK, threads=threads)
    return out
