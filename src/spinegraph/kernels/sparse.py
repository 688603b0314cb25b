"""Rows of an adjacency, products of sparse and dense matrices, and rows of the operator T."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.runtime import compiled, run_blocks


@compiled
def row_of(indptr, rows, patch_indptr, node):
    """Return the bounds of a node's row and whether it is in the patch: (start, stop, patched)."""
    if rows.size > 0:
        row = rows[node]
        if row >= 0:
            return patch_indptr[row], patch_indptr[row + 1], True
    return indptr[node], indptr[node + 1], False


@compiled
def row_strength(weights, start, stop):
    """Return the sum of the weights of a row."""
    strength = 0.0
    for edge in range(start, stop):
        strength += np.float64(weights[edge])
    return strength


_ROWS_PER_BLOCK = 512


@compiled(fastmath={"contract"})
def multiply_rows(indptr, indices, data, dense, out, start, stop):
    """Add rows ``start`` to ``stop`` of a CSR matrix (r, c) times a dense one (c, d) to ``out`` (r, d)."""
    width = dense.shape[1]
    for row in range(start, stop):
        total = out[row]
        for entry in range(indptr[row], indptr[row + 1]):
            value, source = data[entry], dense[indices[entry]]
            for column in range(width):
                total[column] += value * source[column]


@compiled(fastmath={"contract", "reassoc"}, nogil=False)
def times_vector(rows, vector, out):
    """Write rows (r, d) times a vector (d,) to out (r,).

    It keeps the GIL: between many small products, other threads would take it each time.
    """
    for row in range(len(rows)):
        total = np.float32(0)
        for column in range(len(vector)):
            total += rows[row, column] * vector[column]
        out[row] = total


def sparse_times_dense(
    indptr: NDArray[np.integer],
    indices: NDArray[np.integer],
    data: NDArray[np.float32],
    dense: NDArray[np.float32],
    threads: int | None = None,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return a CSR matrix (r, c) times a dense one (c, d), plus ``out``; each row is summed in order."""
    rows = len(indptr) - 1
    out = np.zeros((rows, dense.shape[1]), dtype=np.float32) if out is None else out
    task = partial(multiply_rows, indptr, indices, data, dense, out)
    run_blocks(task, rows, block=_ROWS_PER_BLOCK, threads=threads)
    return out


@compiled
def operator_rows(profile, indptr, start, stop, indices, data):
    """Write rows ``start`` to ``stop`` of T in CSR form, sorted within rows; see ``RootedPageRank.operator``.

    ``profile`` is (nodes, weights, kept, tied_indptr, tied_nodes).
    """
    nodes, weights, kept, tied_indptr, tied_nodes = profile
    for row in range(start, stop):
        head, total = 0.0, 0.0
        for i in range(nodes.shape[1]):
            total += np.float64(weights[row, i])
            if i < kept[row]:
                head += np.float64(weights[row, i])
        first, last = tied_indptr[row], tied_indptr[row + 1]
        scale = 1.0 if last > first or head == 0.0 else total / head
        at = indptr[row]
        for i in range(kept[row]):
            _insert(indices, data, indptr[row], at, nodes[row, i], np.float64(weights[row, i]) * scale)
            at += 1
        for tied in range(first, last):
            _insert(indices, data, indptr[row], at, tied_nodes[tied], (total - head) / (last - first))
            at += 1


@compiled
def _insert(indices, data, first, at, node, value):
    """Insert an entry by node into the sorted ones from ``first`` to ``at``; rows are short."""
    while at > first and indices[at - 1] > node:
        indices[at] = indices[at - 1]
        data[at] = data[at - 1]
        at -= 1
    indices[at] = node
    data[at] = value
