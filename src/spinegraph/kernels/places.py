"""The nodes that one root reaches, numbered as they are found, so that work never grows with the graph.

Small graphs map node to place by a plain array, large ones by a hash table that grows with what is reached.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.rows import row_of

# Measured: up to here clearing and missing in the plain array cost less than hashing.
_PLAIN = 1 << 18
_HASH = np.uint64(0x9E3779B97F4A7C15)
_LEAST = 10


class Places(NamedTuple):
    """Columns over the reached nodes, and the table that finds them.

    Attributes
    ----------
    table : int32 array
        Place of a node plus one, 0 where there is none.
    shift : int
        0 for a plain array, else how far a hash is shifted to become a slot.
    slot : int64 array (room,)
        Where in ``table`` each place stands.
    nodes : int64 array (room,)
    degree, value, residual, amount : float64 arrays (room,)
    active, waiting : int64 arrays (room,)
        Places pushed in this round, and in the next.
    """

    table: NDArray[np.int32]
    shift: int
    slot: NDArray[np.int64]
    nodes: NDArray[np.int64]
    degree: NDArray[np.float64]
    value: NDArray[np.float64]
    residual: NDArray[np.float64]
    amount: NDArray[np.float64]
    active: NDArray[np.int64]
    waiting: NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def new_places(num_nodes, room):
    """Empty columns for at least ``room`` nodes."""
    bits = _LEAST
    if num_nodes <= _PLAIN:
        room = num_nodes
        size = num_nodes
        shift = 0
    else:
        while (1 << bits) < 2 * room:
            bits += 1
        room = 1 << (bits - 1)
        size = 1 << bits
        shift = 64 - bits
    return Places(
        np.zeros(size, dtype=np.int32),
        shift,
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.float64),
        np.empty(room, dtype=np.float64),
        np.empty(room, dtype=np.float64),
        np.empty(room, dtype=np.float64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
    )


@numba.njit(cache=True, nogil=True)
def find_slot(places, node):
    """Slot of the table that holds the node, or the empty one where it belongs."""
    if places.shift == 0:
        return node
    mask = places.table.size - 1
    slot = np.int64((np.uint64(node) * _HASH) >> np.uint64(places.shift))
    while True:
        held = places.table[slot]
        if held == 0 or places.nodes[held - 1] == node:
            return slot
        slot = (slot + 1) & mask


@numba.njit(cache=True, nogil=True)
def add_place(places, adjacency, node, slot, count):
    """Give the node place number ``count``, with nothing on it."""
    start, stop, _ = row_of(adjacency, node)
    places.table[slot] = count + 1
    places.slot[count] = slot
    places.nodes[count] = node
    places.degree[count] = stop - start
    places.value[count] = 0.0
    places.residual[count] = 0.0


@numba.njit(cache=True, nogil=True)
def clear_places(places, count):
    """Forget the first ``count`` places, at their cost alone."""
    for place in range(count):
        places.table[places.slot[place]] = 0


@numba.njit(cache=True, nogil=True)
def grow_places(places, num_nodes, count, active, waiting, room):
    """Move the places, and the first ``active`` and ``waiting``, to columns for at least ``room`` nodes."""
    grown = new_places(num_nodes, room)
    grown.nodes[:count] = places.nodes[:count]
    grown.degree[:count] = places.degree[:count]
    grown.value[:count] = places.value[:count]
    grown.residual[:count] = places.residual[:count]
    grown.amount[:active] = places.amount[:active]
    grown.active[:active] = places.active[:active]
    grown.waiting[:waiting] = places.waiting[:waiting]
    for place in range(count):
        slot = find_slot(grown, grown.nodes[place])
        grown.table[slot] = place + 1
        grown.slot[place] = slot
    return grown
