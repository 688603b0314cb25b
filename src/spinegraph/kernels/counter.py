"""Counts the visits of one root and keeps the most visited nodes.

``counter`` is a plain tuple::

    keys    nodes (size,)           hash table with open addressing, -1 where a slot is free
    counts  int32 (size,)           visits of each key
    shift   int                     how far a hash is shifted to become a slot
    found   int64 (positions + 1,)  slots in the order of first visit
    sizes   int64 (positions + 1,)  nodes per count while sorting, 0 between roots
    nodes   nodes (positions + 1,)  sorted by visits, descending
    visits  int32 (positions + 1,)  as many as each of these nodes had
"""

import numpy as np

from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.topk import ROOM, write_row

_HASH = np.uint64(0x9E3779B97F4A7C15)


@compiled
def new_counter(positions, like):
    """Make room for one root's ``positions``, at nodes of the dtype of ``like``."""
    bits = 8
    while (1 << bits) < 4 * positions:
        bits += 1
    return (
        np.full(1 << bits, -1, dtype=like.dtype),
        np.zeros(1 << bits, dtype=np.int32),
        64 - bits,
        np.empty(positions + 1, dtype=np.int64),
        np.zeros(positions + 1, dtype=np.int64),
        np.empty(positions + 1, dtype=like.dtype),
        np.empty(positions + 1, dtype=np.int32),
    )


@compiled
def count_visits(counter, root, positions, seen, row, top, tied_nodes):
    """Keep the k most visited nodes; the root stands at every position that ``seen`` does not list.

    Equal counts are ordered by first visit. Writes to ``top`` and ``tied_nodes`` as ``keep_top`` does.
    """
    distinct = _tally(counter, root, positions, seen)
    _sort(counter, distinct)
    nodes, visits = counter[5], counter[6]
    kept, tied = top[3], top[4]
    k = top[0].shape[1]
    write_row(nodes, visits, distinct, positions, row, top)
    if distinct > k and visits[k] == visits[k - 1]:
        above = k - 1
        while above > 0 and visits[above - 1] == visits[k]:
            above -= 1
        stop = k + 1
        while stop < distinct and visits[stop] == visits[k]:
            stop += 1
        kept[row] = above
        if stop <= ROOM * k:
            tied[row] = stop - above
            for i in range(above, stop):
                tied_nodes[row, i - above] = nodes[i]
        elif above == 0:
            # Dropping the group would leave nothing: the root alone stands for the row.
            tied[row] = 1
            tied_nodes[row, 0] = root


@compiled
def _tally(counter, root, positions, seen):
    """Count into the hash table; returns how many distinct nodes there are."""
    keys, counts, bits, found, _, _, _ = counter
    shift = np.uint64(bits)
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


@compiled
def _sort(counter, distinct):
    """Sort the distinct nodes by count, descending, and empty the table."""
    keys, counts, _, found, sizes, nodes, visits = counter
    most = 0
    for i in range(distinct):
        count = counts[found[i]]
        sizes[count] += 1
        most = max(most, count)
    place = 0
    for count in range(most, 0, -1):
        size = sizes[count]
        sizes[count] = place
        place += size
    for i in range(distinct):
        slot = found[i]
        count = counts[slot]
        place = sizes[count]
        sizes[count] = place + 1
        nodes[place] = keys[slot]
        visits[place] = count
        keys[slot] = -1
        counts[slot] = 0
    sizes[: most + 1] = 0
