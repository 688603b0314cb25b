"""Dynamic time warping of descending profile rows, many pairs at once.

The local cost of two values is ``max / min - 1`` of the values plus `OFFSET`. That is ``|a - b| / min``, and
in this form nothing cancels: a cost is right to a few float32 roundings however small it is, costs only add
up, and so the float32 distance is within 1e-5 of the float64 one, relative.
"""

import numba
import numpy as np

OFFSET = 1e-3
_OFFSET = np.float32(OFFSET)
_ONE = np.float32(1)
_ZERO = np.float32(0)
# Larger than any distance, and still finite after a division by OFFSET.
_FAR = np.float32(1e30)
# Pairs that advance together, one per SIMD lane: enough to hide the loop around them, few enough for L1.
_LANES = 64


@numba.njit(cache=True, inline="always")
def _cell(a, over_a, b, over_b, up, diagonal, left):
    best = up if up < diagonal else diagonal
    best = best if best < left else left
    over_smaller = over_a if over_a > over_b else over_b
    return best + abs(a - b) * over_smaller


@numba.njit(cache=True, inline="always")
def _pack(table, slot, rows, chosen, first, length):
    """Copy the first ``length`` values of 64 rows, one row per lane, and their inverses.

    An odd length gets a pad in front: it costs nothing against the other row's pad, and is far from all else.
    """
    pad = length & 1
    for lane in range(_LANES):
        # A short last block repeats its last pair: every lane then holds real numbers.
        row = chosen[min(first + lane, len(chosen) - 1)]
        table[2, slot, lane] = _FAR
        for i in range(length):
            table[2 + pad + i, slot, lane] = rows[row, i]
    for i in range(2, 2 + length + pad):
        for lane in range(_LANES):
            table[i, slot + 1, lane] = _ONE / (table[i, slot, lane] + _OFFSET)


@numba.njit(cache=True, inline="always")
def _warp(table, length):
    """Fill the table for 64 packed pairs; the distances end in ``table[length + 1, 4]``.

    Two rows by two columns a step, so that four cells share their loads. ``table[0]`` and ``table[1]`` hold
    what a step reads besides column ``j``: in one array of fixed strides LLVM proves that nothing overlaps.
    ``table[2:]`` holds, by place: left value, its inverse, right value, its inverse, the cell above.
    """
    for i in range(2, length + 2):
        for lane in range(_LANES):
            table[i, 4, lane] = _FAR
    for i in range(2, length + 2, 2):
        for lane in range(_LANES):
            table[0, 0, lane] = table[i, 0, lane]
            table[0, 1, lane] = table[i, 1, lane]
            table[0, 2, lane] = table[i + 1, 0, lane]
            table[0, 3, lane] = table[i + 1, 1, lane]
            table[0, 4, lane] = _FAR
            table[1, 0, lane] = _FAR
            table[1, 1, lane] = _FAR if i > 2 else _ZERO
        for j in range(2, length + 2, 2):
            for lane in range(_LANES):
                a0 = table[0, 0, lane]
                over_a0 = table[0, 1, lane]
                a1 = table[0, 2, lane]
                over_a1 = table[0, 3, lane]
                b0 = table[j, 2, lane]
                over_b0 = table[j, 3, lane]
                b1 = table[j + 1, 2, lane]
                over_b1 = table[j + 1, 3, lane]
                up0 = table[j, 4, lane]
                up1 = table[j + 1, 4, lane]
                left0 = table[0, 4, lane]
                left1 = table[1, 0, lane]
                corner = table[1, 1, lane]
                d00 = _cell(a0, over_a0, b0, over_b0, up0, corner, left0)
                d01 = _cell(a0, over_a0, b1, over_b1, up1, up0, d00)
                d10 = _cell(a1, over_a1, b0, over_b0, d00, left0, left1)
                d11 = _cell(a1, over_a1, b1, over_b1, d01, d00, d10)
                table[j, 4, lane] = d10
                table[j + 1, 4, lane] = d11
                table[0, 4, lane] = d01
                table[1, 0, lane] = d11
                table[1, 1, lane] = up1


@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz"}, error_model="numpy")
def dtw_distances(rows_a, rows_b, left, right, lengths):
    """DTW distances of ``rows_a[left]`` to ``rows_b[right]``, float32 (m,), over ``lengths`` (m,) values.

    A length is k, or leaves out only places where both rows are zero and keeps one such place. 64 pairs share
    their longest length, so pairs of like length should stand together.
    """
    m, k = len(left), rows_a.shape[1]
    distances = np.empty(m, np.float32)
    table = np.empty((k + 3, 5, _LANES), np.float32)
    for first in range(0, m, _LANES):
        last = min(first + _LANES, m)
        length = lengths[first:last].max()
        _pack(table, 0, rows_a, left, first, length)
        _pack(table, 2, rows_b, right, first, length)
        even = length + (length & 1)
        _warp(table, even)
        for lane in range(last - first):
            distances[first + lane] = table[even + 1, 4, lane]
    return distances


@numba.njit(cache=True, nogil=True)
def warping_table(row_a, row_b):
    """Cheapest cost of warping ``row_a[:i + 1]`` onto ``row_b[:j + 1]``, and the local costs: (k, k)."""
    costs = np.empty((len(row_a), len(row_b)))
    table = np.empty((len(row_a), len(row_b)))
    for i in range(len(row_a)):
        for j in range(len(row_b)):
            costs[i, j] = abs(row_a[i] - row_b[j]) / (min(row_a[i], row_b[j]) + OFFSET)
            best = np.inf if i + j else 0.0
            if i and j:
                best = min(best, table[i - 1, j - 1])
            if i:
                best = min(best, table[i - 1, j])
            if j:
                best = min(best, table[i, j - 1])
            table[i, j] = best + costs[i, j]
    return table, costs
