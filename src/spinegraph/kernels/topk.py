"""The k largest values of one root, and the nodes that tie at the last place."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinegraph.kernels.compiled import compiled

# Values this close at the k-th place are one group: far above rounding, far below any tolerance.
TIE = 1e-9
# A tied group that would make a row of the operator longer than this many times k is dropped.
ROOM = 4
_BUCKETS = 512
# Three mantissa bits per bucket: eight buckets an octave, so one bucket holds little more than is asked for.
_SHIFT = 49
# How many times k values are looked at to see which of the rest can matter.
_SOME = 8


class Top(NamedTuple):
    """Rows that kernels fill, one per root.

    Attributes
    ----------
    nodes, weights : arrays (r, k)
        By descending value, weights scaled to sum 1; padded with -1 and 0.
    mass : float64 array (r,)
        The sum before scaling.
    kept : int32 array (r,)
        How many leading places stay as they are.
    tied : int32 array (r,)
        How many nodes share the places after those; 0 also where the group was dropped.
    """

    nodes: NDArray[Any]
    weights: NDArray[np.float32]
    mass: NDArray[np.float64]
    kept: NDArray[np.int32]
    tied: NDArray[np.int32]


def new_top(rows: int, k: int, dtype: DTypeLike) -> Top:
    """Rows to be filled, with nodes of the given dtype."""
    return Top(
        np.empty((rows, k), dtype=dtype),
        np.empty((rows, k), dtype=np.float32),
        np.empty(rows, dtype=np.float64),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
    )


@compiled
def keep_top(nodes, values, count, row, top, tied_nodes):
    """Write the k largest of ``values[:count]`` (all > 0) into a row of ``top``, and the tied nodes.

    The root comes first in ``nodes``; ``tied_nodes`` is (r, ROOM * k).
    """
    kept, tied = top[3], top[4]
    k = top[0].shape[1]
    order = _largest(nodes, values, count, k)
    write_row(nodes[order], values[order], order.size, np.int64(1), row, top)
    if count <= k:
        return
    last = values[order[k - 1]]
    above = 0
    group = 0
    for i in range(count):
        above += values[i] > last + TIE
        group += abs(values[i] - last) <= TIE
    if above + group > k:
        kept[row] = above
        if above + group <= ROOM * k:
            for i in range(count):
                if abs(values[i] - last) <= TIE:
                    tied_nodes[row, tied[row]] = nodes[i]
                    tied[row] += 1
        elif above == 0:
            # Dropping the group would leave nothing: the root alone stands for the row.
            tied[row] = 1
            tied_nodes[row, 0] = nodes[0]


@compiled
def write_row(nodes, values, count, unit, row, top):
    """Write the first k of descending values, scaled, and their sum in the given unit; no ties."""
    out_nodes, out_weights, mass, kept, tied = top
    k = out_nodes.shape[1]
    chosen = min(k, count)
    total = values[:chosen].sum()
    for i in range(chosen):
        out_nodes[row, i] = nodes[i]
        out_weights[row, i] = values[i] / total
    for i in range(chosen, k):
        out_nodes[row, i] = -1
        out_weights[row, i] = 0.0
    mass[row] = total / unit
    kept[row] = chosen
    tied[row] = 0


@compiled
def _largest(nodes, values, count, k):
    """List at least the k largest of ``values[:count]``, descending; equal values by node."""
    order = np.empty(count, dtype=np.int64)
    some = min(count, _SOME * k)
    for i in range(some):
        order[i] = i
    found = count
    if count > k:
        # The bits of positive floats order as the floats do.
        bits = values.view(np.int64)
        # What is near the root is found first and holds most: few of the others pass its k-th value.
        least = _least(bits, order[:some], k)
        found = 0
        for i in range(count):
            order[found] = i
            found += bits[i] >= least
        if found > 2 * k:
            least = _least(bits, order[:found], k)
            passed = found
            found = 0
            for i in range(passed):
                order[found] = order[i]
                found += bits[order[i]] >= least
    order = order[:found]
    _sort_descending(order, nodes, values)
    return order


@compiled
def _least(bits, order, k):
    """Return a number that at least k of the bits in ``order`` reach, and not many more, by a histogram."""
    highest = bits[order[0]]
    for i in order:
        highest = max(highest, bits[i])
    sizes = np.zeros(_BUCKETS, dtype=np.int64)
    for i in order:
        sizes[min((highest - bits[i]) >> _SHIFT, _BUCKETS - 1)] += 1
    cut = 0
    total = sizes[0]
    while total < k:
        cut += 1
        total += sizes[cut]
    return highest - ((cut + 1) << _SHIFT) + 1 if cut < _BUCKETS - 1 else np.int64(0)


@compiled
def _sort_descending(order, nodes, values):
    """Shell sort in place: rows are short, and it compiles in a moment."""
    gap = 1
    while gap < order.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, order.size):
            held = order[i]
            value = values[held]
            j = i
            while j >= gap:
                other = order[j - gap]
                if values[other] > value or (values[other] == value and nodes[other] < nodes[held]):
                    break
                order[j] = other
                j -= gap
            order[j] = held
        gap //= 3
