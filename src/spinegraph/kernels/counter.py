"""Counts the visits of one root and keeps the most visited nodes."""

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.topk import ROOM

_HASH = np.uint64(0x9E3779B97F4A7C15)


class Counter(NamedTuple):
    """A hash table of visited nodes, and the room to sort them by count.

    Attributes
    ----------
    keys, counts : arrays (size,)
        Open addressing; -1 where a slot is free.
    shift : int
        How far a hash is shifted to become a slot.
    found : int64 array (positions + 1,)
        Slots in the order of first visit.
    sizes : int64 array (positions + 1,)
        Nodes per count while sorting, 0 between roots.
    nodes, visits : arrays (positions + 1,)
        Sorted by count, descending.
    """

    keys: NDArray[Any]
    counts: NDArray[np.int32]
    shift: int
    found: NDArray[np.int64]
    sizes: NDArray[np.int64]
    nodes: NDArray[Any]
    visits: NDArray[np.int32]


@numba.njit(cache=True, nogil=True)
def new_counter(positions, like):
    """Room for one root's ``positions``, at nodes of the dtype of ``like``."""
    bits = 8
    while (1 << bits) < 4 * positions:
        bits += 1
    return Counter(
        np.full(1 << bits, -1, dtype=like.dtype),
        np.zeros(1 << bits, dtype=np.int32),
        64 - bits,
        np.empty(positions + 1, dtype=np.int64),
        np.zeros(positions + 1, dtype=np.int64),
        np.empty(positions + 1, dtype=like.dtype),
        np.empty(positions + 1, dtype=np.int32),
    )


@numba.njit(cache=True, nogil=True)
def count_visits(counter, root, positions, seen, row, top, tied_nodes, used):
    """Keep the k most visited nodes; the root stands at every position that ``seen`` does not list.

    Equal counts are ordered by first visit. Writes to ``top`` and ``tied_nodes`` as ``keep_top`` does.
    """
    distinct = _tally(counter, root, positions, seen)
    _sort(counter, distinct)
    out_nodes, out_weights, out_mass, out_kept, out_tied = top
    k = out_nodes.shape[1]
    chosen = min(k, distinct)
    mass = 0
    for i in range(chosen):
        mass += counter.visits[i]
    for i in range(chosen):
        out_nodes[row, i] = counter.nodes[i]
        out_weights[row, i] = counter.visits[i] / mass
    for i in range(chosen, k):
        out_nodes[row, i] = -1
        out_weights[row, i] = 0.0
    out_mass[row] = mass / positions
    out_kept[row] = chosen
    out_tied[row] = 0
    if distinct > k and counter.visits[k] == counter.visits[k - 1]:
        above = k - 1
        while above > 0 and counter.visits[above - 1] == counter.visits[k]:
            above -= 1
        stop = k + 1
        while stop < distinct and counter.visits[stop] == counter.visits[k]:
            stop += 1
        out_kept[row] = above
        if stop <= ROOM * k:
            out_tied[row] = stop - above
            for i in range(above, stop):
                tied_nodes[used] = counter.nodes[i]
                used += 1
        elif above == 0:
            # Dropping the group would leave nothing: the root alone stands for the row.
            out_tied[row] = 1
            tied_nodes[used] = root
            used += 1
    return used


@numba.njit(cache=True, nogil=True)
def _tally(counter, root, positions, seen):
    """Count into the hash table; returns how many distinct nodes there are."""
    keys, counts, found = counter.keys, counter.counts, counter.found
    shift = np.uint64(counter.shift)
    mask = np.uint64(keys.size - 1)
    slot = (np.uint64(root) * _HASH) >> shift
    keys[slot] = root
    counts[slot] = positions - seen.size
    found[0] = slot
    distinct = 1
    for i in range(seen.size):
        node = seen[i]
        slot = (np.uint64(node) * _HASH) >> shift
        key = keys[slot]
        while key != node and key >= 0:
            slot = (slot + np.uint64(1)) & mask
            key = keys[slot]
        keys[slot] = node
        counts[slot] += 1
        found[distinct] = slot
        distinct += key < 0
    return distinct


@numba.njit(cache=True, nogil=True)
def _sort(counter, distinct):
    """Sort the distinct nodes by count, descending, and empty the table."""
    sizes = counter.sizes
    most = 0
    for i in range(distinct):
        count = counter.counts[counter.found[i]]
        sizes[count] += 1
        most = max(most, count)
    place = 0
    for count in range(most, 0, -1):
        size = sizes[count]
        sizes[count] = place
        place += size
    for i in range(distinct):
        slot = counter.found[i]
        count = counter.counts[slot]
        place = sizes[count]
        sizes[count] = place + 1
        counter.nodes[place] = counter.keys[slot]
        counter.visits[place] = count
        counter.keys[slot] = -1
        counter.counts[slot] = 0
    sizes[: most + 1] = 0
