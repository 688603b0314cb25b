"""The nodes that one root reaches, by their own number or numbered as they are found.

``places`` is a plain tuple, since a compiled kernel's cache must not depend on a class of ours::

    table    int32                   place of a node plus one, 0 where there is none; empty: a place is a node
    shift    int                     how far a hash is shifted to become a slot of the table
    slots    int64 (room,)           where in the table each place stands
    state    float64 (room, 2 or 4)  residual, 0 where not reached yet; number of neighbours; by hash, node
    value    float64 (room,)         what is assigned
    nodes    int64 (room + 1,)       the nodes reached, in the order of finding
    waiting  int64 (2 room + 1,)     places pushed in this round, then those to push in the next
    amount   float64 (room,)         what each place pushed in this round gives away

Places by node take time and memory in proportion to the graph, once for many roots. Places by hash take what
the root reaches. Both are met in the same order, so that every sum is the same to the bit.
"""

import numpy as np

from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.rows import row_of

# Up to here a table by node costs less than hashing (measured at 80,000 nodes and at 3 million) ...
_MOST_NODES = 1 << 18
# ... once there are no more nodes than this for each root that it serves.
_MOST_NODES_A_ROOT = 1 << 12
_FIRST_BITS = 12
_HASH = np.uint64(0x9E3779B97F4A7C15)


@compiled
def new_places(adjacency, num_nodes, num_roots):
    """Make empty places: by node where that pays, else by hash."""
    if num_nodes > min(_MOST_NODES, num_roots * _MOST_NODES_A_ROOT):
        return _hashed_places(_FIRST_BITS)
    indptr, _, _, rows, patch_indptr, _, _ = adjacency
    state = np.zeros((num_nodes, 2))
    for node in range(num_nodes):
        start, stop, _ = row_of(indptr, rows, patch_indptr, node)
        state[node, 1] = stop - start
    return (
        np.empty(0, dtype=np.int32),
        0,
        np.empty(0, dtype=np.int64),
        state,
        np.zeros(num_nodes),
        np.empty(num_nodes + 1, dtype=np.int64),
        np.empty(2 * num_nodes + 1, dtype=np.int64),
        np.empty(num_nodes),
    )


@compiled
def _hashed_places(bits):
    room = 1 << (bits - 1)
    return (
        np.zeros(1 << bits, dtype=np.int32),
        64 - bits,
        np.empty(room, dtype=np.int64),
        np.zeros((room, 4)),
        np.zeros(room),
        np.empty(room + 1, dtype=np.int64),
        np.empty(2 * room + 1, dtype=np.int64),
        np.empty(room),
    )


@compiled
def find_slot(table, shift, state, node):
    """Return the slot of the table that holds the node, or the empty one where it belongs."""
    mask = np.uint64(table.size - 1)
    slot = (np.uint64(node) * _HASH) >> np.uint64(shift)
    held = table[slot]
    while held != 0 and state[held - 1, 2] != node:
        slot = (slot + np.uint64(1)) & mask
        held = table[slot]
    return slot


@compiled
def clear_places(places, count):
    """Forget the first ``count`` nodes that were reached, at their cost alone."""
    table, _, slots, state, value, nodes, _, _ = places
    for i in range(count):
        place = nodes[i]
        if table.size > 0:
            place = i
            table[slots[i]] = 0
        state[place, 0] = 0.0
        value[place] = 0.0


@compiled
def grow_places(places, count, waiting, room):
    """Move hashed places, and the first ``waiting`` of those to push, to room for ``room`` nodes or more."""
    bits = 64 - places[1]
    while (1 << (bits - 1)) < room:
        bits += 1
    grown = _hashed_places(bits)
    table, shift, slots, state, value, nodes, _, amount = grown
    state[:count] = places[3][:count]
    value[:count] = places[4][:count]
    nodes[:count] = places[5][:count]
    grown[6][:waiting] = places[6][:waiting]
    amount[: places[7].size] = places[7]
    for place in range(count):
        slot = find_slot(table, shift, state, nodes[place])
        table[slot] = place + 1
        slots[place] = slot
    return grown
