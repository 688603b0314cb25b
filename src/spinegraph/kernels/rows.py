"""How a kernel finds a node's row of neighbours in an Adjacency."""

import numba


@numba.njit(cache=True, nogil=True)
def row_of(adjacency, node):
    """Bounds of a node's row, and whether they point into the patch: (start, stop, patched)."""
    if adjacency.rows.size > 0:
        row = adjacency.rows[node]
        if row >= 0:
            return adjacency.patch_indptr[row], adjacency.patch_indptr[row + 1], True
    return adjacency.indptr[node], adjacency.indptr[node + 1], False
