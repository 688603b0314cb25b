"""The nodes that one root reaches, numbered as they are found, so that work never grows with the graph.

``places`` is a plain tuple, since a compiled kernel's cache must not depend on a class of ours::

    table    int32          place of a node plus one, 0 where there is none
    shift    int            0: the table is indexed by node; else how far a hash is shifted to become a slot
    slots    int64 (room,)  where in the table each place stands
    cells    CELL (room,)   what each place holds
    leaving  int64 (room,)  places pushed in this round
    waiting  int64 (room,)  places to push in the next
    amount   float64 (room,)  what each of ``leaving`` gives away
"""

import numba
import numpy as np

CELL = np.dtype(
    [("node", np.int64), ("degree", np.float64), ("residual", np.float64), ("value", np.float64)], align=True
)
# Up to here a table by node costs less than hashing (measured at 80,000 nodes and at 3 million).
_PLAIN = 1 << 18
_HASH = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True, nogil=True)
def new_places(num_nodes, room):
    """Make empty places for at least ``room`` nodes."""
    if num_nodes <= _PLAIN:
        room = num_nodes
        size = num_nodes
        shift = 0
    else:
        bits = 1
        while (1 << bits) < 2 * room:
            bits += 1
        room = 1 << (bits - 1)
        size = 1 << bits
        shift = 64 - bits
    return (
        np.zeros(size, dtype=np.int32),
        shift,
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=CELL),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.float64),
    )


@numba.njit(cache=True, nogil=True)
def find_slot(table, shift, cells, node):
    """Return the slot of the table that holds the node, or the empty one where it belongs."""
    if shift == 0:
        return np.uint64(node)
    mask = np.uint64(table.size - 1)
    slot = (np.uint64(node) * _HASH) >> np.uint64(shift)
    held = table[slot]
    while held != 0 and cells[held - 1]["node"] != node:
        slot = (slot + np.uint64(1)) & mask
        held = table[slot]
    return slot


@numba.njit(cache=True, nogil=True)
def clear_places(places, count):
    """Forget the first ``count`` places, at their cost alone."""
    table, _, slots, _, _, _, _ = places
    for place in range(count):
        table[slots[place]] = 0


@numba.njit(cache=True, nogil=True)
def grow_places(places, num_nodes, count, leaving, waiting, room):
    """Move the places, and the first ``leaving`` and ``waiting``, to columns for at least ``room`` nodes."""
    grown = new_places(num_nodes, room)
    table, shift, slots, cells, _, _, _ = grown
    cells[:count] = places[3][:count]
    grown[4][:leaving] = places[4][:leaving]
    grown[5][:waiting] = places[5][:waiting]
    grown[6][:leaving] = places[6][:leaving]
    for place in range(count):
        slot = find_slot(table, shift, cells, cells[place]["node"])
        table[slot] = place + 1
        slots[place] = slot
    return grown
