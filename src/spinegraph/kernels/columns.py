"""Counts over a node's neighbours: their degrees, and the overlap of their neighbourhoods with its own."""

import numpy as np

from spinegraph.kernels.runtime import compiled
from spinegraph.kernels.sparse import row_of, row_strength

# Columns of the counts.
DEGREE, STRENGTH, SMALLER, H_INDEX, TRIANGLES, MEAN, DEVIATION, OVERLAPS = range(8)
QUANTILES = (0.1, 0.25, 0.5)
WIDTH = OVERLAPS + len(QUANTILES)
# Depths: the node itself, its neighbours' degrees, and their neighbours.
ITSELF, NEIGHBORS, TWO_HOPS = range(3)


@compiled
def share_edges(indptr, indices, start, stop, marks, shared):
    """Write the number of common neighbours of each edge into both of its entries of ``shared`` (nnz,).

    Nodes from ``start`` to ``stop`` handle their edges to nodes of smaller degree (or equal degree and
    smaller id): so each edge is handled once, at a cost of the smaller of its two degrees. ``marks`` uint8
    (n,) is zero before and after.
    """
    for node in range(start, stop):
        first, last = indptr[node], indptr[node + 1]
        for slot in range(first, last):
            marks[np.uint64(indices[slot])] = 1
        for slot in range(first, last):
            other = indices[slot]
            row, end = indptr[other], indptr[other + 1]
            if end - row > last - first or (end - row == last - first and other > node):
                continue
            common = 0
            before = 0
            for entry in range(np.uint64(row), np.uint64(end)):
                common += marks[np.uint64(indices[entry])]
                before += indices[entry] < node
            shared[slot] = common
            shared[row + before] = common
        for slot in range(first, last):
            marks[np.uint64(indices[slot])] = 0


@compiled
def neighborhoods(adjacency, roots, depth, marks, shared, counts):
    """Write one row of ``counts`` float64 (r, WIDTH) per root, up to ``depth``.

    ``shared`` int32 (nnz,) contains the counts of ``share_edges``. If it is empty, common neighbours are
    counted here, with ``marks`` uint8 (n,), zero before and after; an edge then costs the smaller of the
    neighbour's degree and the root's times a logarithm, so a hub adds little to the cost of its neighbours.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    has_weights = weights.size + patch_weights.size > 0
    overlaps, degrees, sizes = np.empty(0), np.empty(0), np.zeros(1, dtype=np.int64)
    common = np.empty(0, dtype=np.int32)
    for i in range(roots.size):
        root = roots[i]
        start, stop, patched = row_of(indptr, rows, patch_indptr, root)
        own = patch_indices[start:stop] if patched else indices[start:stop]
        degree = own.size
        row = counts[i]
        row[DEGREE] = degree
        row[STRENGTH] = degree
        if has_weights:
            row[STRENGTH] = row_strength(patch_weights if patched else weights, start, stop)
        if depth == ITSELF:
            continue
        if degree > degrees.size:
            overlaps, degrees = np.empty(2 * degree), np.empty(2 * degree)
            common = np.empty(2 * degree, dtype=np.int32)
            sizes = np.zeros(2 * degree + 1, dtype=np.int64)
        for slot in range(degree):
            first, last, _ = row_of(indptr, rows, patch_indptr, own[slot])
            degrees[slot] = last - first
        _describe_degrees(degrees[:degree], sizes, row)
        if depth == NEIGHBORS:
            continue
        if shared.size > 0:
            _read_overlaps(shared[start:stop], degrees, overlaps, row)
            continue
        for neighbor in own:
            marks[neighbor] = 1
        for slot in range(degree):
            first, last, other_patched = row_of(indptr, rows, patch_indptr, own[slot])
            other = patch_indices[first:last] if other_patched else indices[first:last]
            common[slot] = _count_shared(own, other, marks)
        for neighbor in own:
            marks[neighbor] = 0
        _read_overlaps(common[:degree], degrees, overlaps, row)


@compiled
def _read_overlaps(common, degrees, overlaps, row):
    """Write triangles and quantiles of overlap, given each neighbour's common neighbours and degree."""
    degree = common.size
    triangles = 0
    for slot in range(degree):
        triangles += common[slot]
        either = degree + degrees[slot] - common[slot] - 2  # without the two nodes themselves
        overlaps[slot] = common[slot] / either if either > 0 else 0.0
    row[TRIANGLES] = triangles / 2
    ascending = overlaps[:degree]
    ascending.sort()
    for column in range(len(QUANTILES)):
        rank = QUANTILES[column] * max(degree - 1, 0)
        below = int(rank)
        value = ascending[below] if degree > 0 else 0.0
        above = ascending[below + 1] if below + 1 < degree else value
        row[OVERLAPS + column] = value + (rank - below) * (above - value)


@compiled
def _count_shared(own, other, marks):
    shared = 0
    if other.size <= 8 * own.size:
        for node in other:
            shared += int(marks[node])
        return shared
    for node in own:
        slot = np.searchsorted(other, node)
        if slot < other.size and other[slot] == node:
            shared += 1
    return shared


@compiled
def _describe_degrees(degrees, sizes, row):
    """Write the smaller neighbours, h-index, and mean and deviation of logarithms, given neighbours' degrees.

    ``sizes`` int64, longer than ``degrees``, is zero before and after.
    """
    degree = degrees.size
    smaller, total, squares = 0, 0.0, 0.0
    for slot in range(degree):
        smaller += 2 * degrees[slot] <= degree
        sizes[min(int(degrees[slot]), degree)] += 1
        logarithm = np.log1p(degrees[slot])
        total += logarithm
        squares += logarithm * logarithm
    h_index, reaching = degree, sizes[degree]
    sizes[degree] = 0
    while reaching < h_index:
        h_index -= 1
        reaching += sizes[h_index]
        sizes[h_index] = 0
    sizes[:h_index] = 0
    mean = total / max(degree, 1)
    row[SMALLER] = smaller
    row[H_INDEX] = h_index
    row[MEAN] = mean
    row[DEVIATION] = np.sqrt(max(squares / max(degree, 1) - mean * mean, 0.0))
