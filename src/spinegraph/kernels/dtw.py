"""Dynamic time warping of descending profile rows, many pairs at once."""

import numpy as np

from spinegraph.kernels.runtime import compiled

OFFSET = 1e-3
_OFFSET, _ONE, _ZERO = np.float32(OFFSET), np.float32(1), np.float32(0)
# Larger than any distance, and still finite after a division by OFFSET.
_FAR = np.float32(1e30)
# Pairs that advance together, one per SIMD lane: enough to hide loop overhead, few enough for the cache.
_LANES = 128


@compiled(inline="always")
def _cell(a, over_a, b, over_b, up, diagonal, left):
    best = up if up < diagonal else diagonal
    best = best if best < left else left
    over_smaller = over_a if over_a > over_b else over_b
    return best + abs(a - b) * over_smaller


@compiled
def _by_length(left, right, ends_a, ends_b, k):
    """Return the order of pairs by length (m,), and the number of pairs up to each length (k + 1,)."""
    lengths = np.empty(len(left), np.int64)
    upto = np.zeros(k + 1, np.int64)
    for pair in range(len(left)):
        # One zero that both rows share is kept, if there is one.
        lengths[pair] = min(max(ends_a[left[pair]], ends_b[right[pair]]) + 1, k)
        upto[lengths[pair]] += 1
    upto = np.cumsum(upto)
    order = np.empty(len(left), np.int64)
    starts = upto.copy()
    for pair in range(len(left) - 1, -1, -1):
        starts[lengths[pair]] -= 1
        order[starts[lengths[pair]]] = pair
    return order, upto


@compiled(inline="always")
def _pack(table, slot, rows, chosen, length):
    """Copy the first ``length`` values of the ``chosen`` rows and their inverses, one row per lane.

    An odd length gets a pad in front: matching it to the other row's pad is free, to any other value costly.
    """
    pad = length & 1
    for lane in range(_LANES):
        table[2, slot, lane] = _FAR
    for i in range(length):
        for lane in range(_LANES):
            table[2 + pad + i, slot, lane] = rows[chosen[lane], i]
    for i in range(2, 2 + length + pad):
        for lane in range(_LANES):
            table[i, slot + 1, lane] = _ONE / (table[i, slot, lane] + _OFFSET)


@compiled(inline="always")
def _warp(table, length):
    """Fill the table for the packed pairs; the distances are then in ``table[length + 1, 4]``.

    A step computes two rows by two columns, so that four cells share their loads. ``table[0]`` and
    ``table[1]`` are the other inputs of a step: in one array of fixed strides, LLVM can prove that nothing
    overlaps. ``table[2:]`` has, by index: left value, its inverse, right value, its inverse, the cell above.
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


@compiled(fastmath={"nnan", "nsz"}, error_model="numpy")
def dtw_distances(rows_a, rows_b, ends_a, ends_b, left, right):
    """Return the DTW distances of ``rows_a[left]`` to ``rows_b[right]``, float32 (m,).

    Rows are zero beyond ``ends_a`` and ``ends_b``; common zeros after the first one are skipped. This is
    exact: steps between two zeros are free, so a path to the first common zero continues to the end for free,
    and moving the steps of a path beyond that zero back onto it only makes it cheaper.
    """
    m, k = len(left), rows_a.shape[1]
    distances = np.empty(m, np.float32)
    table = np.empty((k + 3, 5, _LANES), np.float32)
    some_left, some_right = np.empty(_LANES, np.int64), np.empty(_LANES, np.int64)
    order, upto = _by_length(left, right, ends_a, ends_b, k)
    length = 1
    for first in range(0, m, _LANES):
        last = min(first + _LANES, m)
        while upto[length] < last:  # up to the longest pair of the block
            length += 1
        for lane in range(_LANES):
            # A short last block repeats its last pair, so that every lane has valid numbers.
            pair = order[min(first + lane, m - 1)]
            some_left[lane] = left[pair]
            some_right[lane] = right[pair]
        _pack(table, 0, rows_a, some_left, length)
        _pack(table, 2, rows_b, some_right, length)
        even = length + (length & 1)
        _warp(table, even)
        for lane in range(last - first):
            distances[order[first + lane]] = table[even + 1, 4, lane]
    return distances


@compiled
def _slot_of(row, node):
    """Return the index of ``node`` in an ascending row, or -1."""
    slot = np.searchsorted(row, node)
    return slot if slot < len(row) and row[slot] == node else -1


@compiled
def owned_slots(candidates, start, stop):
    """Return the flat indices of pairs that rows ``start`` to ``stop`` compute, int64 (m,).

    Rows of ``candidates`` (n, c) ascend, padded with values of n or more. If both nodes have the pair, the
    row of the smaller node computes it.
    """
    n, c = candidates.shape
    slots = np.empty((stop - start) * c, np.int64)
    found = 0
    for node in range(start, stop):
        for slot in range(c):
            other = candidates[node, slot]
            if other >= n:
                break
            if node < other or _slot_of(candidates[other], node) < 0:
                slots[found] = node * c + slot
                found += 1
    return slots[:found]


@compiled
def copy_owned(candidates, values, start, stop):
    """Copy ``values`` (n, c) of pairs that other rows computed into rows ``start`` to ``stop``."""
    c = candidates.shape[1]
    for node in range(start, stop):
        for slot in range(c):
            other = candidates[node, slot]
            if other >= node:
                break
            mirror = _slot_of(candidates[other], node)
            if mirror >= 0:
                values[node, slot] = values[other, mirror]
