"""What a node's neighbours look like: their degrees, and how far their neighbourhoods overlap its own."""

import numba
import numpy as np

from spinegraph.kernels.rows import row_of, row_strength

# Columns of what `neighborhoods` writes.
DEGREE, STRENGTH, SMALLER, H_INDEX, TRIANGLES, MEAN, DEVIATION, OVERLAPS = range(8)
QUANTILES = (0.1, 0.25, 0.5)
WIDTH = OVERLAPS + len(QUANTILES)


@numba.njit(cache=True, nogil=True)
def neighborhoods(adjacency, roots, marks, counts):
    """Write one row of ``counts`` float64 (r, WIDTH) per root; ``marks`` uint8 (n,) is zero before and after.

    An edge costs the smaller of the neighbour's degree and the root's times a logarithm: a hub is cheap to
    its neighbours, and all edges together cost at most about m^1.5.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    for place in range(roots.size):
        root = roots[place]
        start, stop, patched = row_of(indptr, rows, patch_indptr, root)
        own = patch_indices[start:stop] if patched else indices[start:stop]
        degree = own.size
        degrees = np.empty(degree, np.float64)
        overlaps = np.empty(degree, np.float64)
        for neighbor in own:
            marks[neighbor] = 1
        triangles = 0
        for slot in range(degree):
            first, last, away = row_of(indptr, rows, patch_indptr, own[slot])
            other = patch_indices[first:last] if away else indices[first:last]
            shared = _count_shared(own, other, marks)
            triangles += shared
            degrees[slot] = other.size
            either = degree + other.size - shared - 2  # the two nodes themselves belong to neither set
            overlaps[slot] = shared / either if either > 0 else 0.0
        for neighbor in own:
            marks[neighbor] = 0
        # Sorted, so that sums do not depend on the order of node ids.
        degrees.sort()
        overlaps.sort()
        row = counts[place]
        row[DEGREE] = degree
        has_weights = weights.size + patch_weights.size > 0
        row[STRENGTH] = (
            row_strength(patch_weights if patched else weights, start, stop) if has_weights else degree
        )
        row[TRIANGLES] = triangles / 2
        _describe_degrees(degrees, row)
        for column in range(len(QUANTILES)):
            row[OVERLAPS + column] = _quantile(overlaps, QUANTILES[column])


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def _describe_degrees(degrees, row):
    """From ascending degrees of neighbours: smaller ones, h-index, mean and deviation of logarithms."""
    degree = degrees.size
    smaller, h_index, total, squares = 0, 0, 0.0, 0.0
    for slot in range(degree):
        smaller += 2 * degrees[slot] <= degree
        h_index = max(h_index, min(degree - slot, int(degrees[slot])))
        logarithm = np.log1p(degrees[slot])
        total += logarithm
        squares += logarithm * logarithm
    mean = total / max(degree, 1)
    row[SMALLER] = smaller
    row[H_INDEX] = h_index
    row[MEAN] = mean
    row[DEVIATION] = np.sqrt(max(squares / max(degree, 1) - mean * mean, 0.0))


@numba.njit(cache=True, nogil=True)
def _quantile(ascending, share):
    """Interpolate the value below which a share of the values lie; 0 of none."""
    if ascending.size == 0:
        return 0.0
    place = share * (ascending.size - 1)
    below = int(place)
    above = min(below + 1, ascending.size - 1)
    return ascending[below] + (place - below) * (ascending[above] - ascending[below])
