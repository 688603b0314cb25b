"""Rooted PageRank by pushing residual mass along edges, round by round.

Every node holds a value and a residual; a push keeps (1 - b) of a residual and spreads b of it over the
neighbours. A round pushes all nodes above the current level at once, by what they held when it began, so
that the order of node ids changes nothing but rounding.
"""

import numba
import numpy as np

from spinegraph.kernels.places import clear_places, find_slot, grow_places, new_places
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.topk import keep_top

# Levels are odd numbers, so that nodes whose exact residuals are equal never fall on two sides by rounding.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.5671432904097838
# For the same reason: a remainder of exactly ``tolerance`` is pushed on in every labelling.
_MARGIN = 1.0 - 1e-7
_FIRST_ROOM = 2048


@numba.njit(cache=True, nogil=True)
def push_roots(adjacency, num_nodes, roots, continuation, tolerance, top, tied_nodes):
    """Write the k largest values of each root into its row of ``top``, as ``keep_top`` does."""
    places = new_places(num_nodes, _FIRST_ROOM)
    nodes = np.empty(0, dtype=np.int64)
    values = np.empty(0, dtype=np.float64)
    used = 0
    for row in range(roots.size):
        places, count = _push(adjacency, num_nodes, roots[row], continuation, tolerance, places)
        cells = places[3]
        if count > nodes.size:
            nodes = np.empty(cells.size, dtype=np.int64)
            values = np.empty(cells.size, dtype=np.float64)
        for place in range(count):
            nodes[place] = cells[place]["node"]
            # What a residual would keep at its next push is known without pushing it.
            values[place] = cells[place]["value"] + (1.0 - continuation) * cells[place]["residual"]
        used = keep_top(nodes, values, count, row, top, tied_nodes, used)
        clear_places(places, count)
    return used


@numba.njit(cache=True, nogil=True)
def _push(adjacency, num_nodes, root, continuation, tolerance, places):
    """Push until at most ``tolerance`` of the mass would stay unassigned; (places, how many were reached)."""
    goal = tolerance * _MARGIN / continuation
    degree = _start(adjacency, places, root)
    if degree == 0:
        places[3][0]["value"] = continuation
        return places, 1
    count = 1
    level = _FIRST_LEVEL / degree
    while True:
        leaving, rest = _above(places, count, level)
        while leaving > 0 and rest > goal:
            rest -= (1.0 - continuation) * _take(places, leaving, continuation)
            places, count, leaving = _spread(
                adjacency, num_nodes, continuation, level, places, count, leaving
            )
        if rest <= goal:
            return places, count
        level *= _NEXT_LEVEL


@numba.njit(cache=True, nogil=True)
def _start(adjacency, places, root):
    """Put all mass on the root, the first place; returns its degree."""
    indptr, _, _, rows, patch_indptr, _, _ = adjacency
    table, shift, slots, cells, _, _, _ = places
    start, stop, _ = row_of(indptr, rows, patch_indptr, root)
    slot = find_slot(table, shift, cells, root)
    table[slot] = 1
    slots[0] = slot
    cells[0]["node"] = root
    cells[0]["degree"] = stop - start
    cells[0]["residual"] = 1.0
    cells[0]["value"] = 0.0
    return stop - start


@numba.njit(cache=True, nogil=True)
def _above(places, count, level):
    """List the places above the level as leaving; (how many, sum of all residuals)."""
    _, _, _, cells, leaving, _, _ = places
    rest = 0.0
    found = 0
    for place in range(count):
        rest += cells[place]["residual"]
        if cells[place]["residual"] > level * cells[place]["degree"]:
            leaving[found] = place
            found += 1
    return found, rest


@numba.njit(cache=True, nogil=True)
def _take(places, count, continuation):
    """Take the residuals of the leaving places, before any is spread; returns their sum."""
    _, _, _, cells, leaving, _, amount = places
    total = 0.0
    for i in range(count):
        place = leaving[i]
        residual = cells[place]["residual"]
        cells[place]["residual"] = 0.0
        cells[place]["value"] += (1.0 - continuation) * residual
        amount[i] = residual
        total += residual
    return total


@numba.njit(cache=True, nogil=True)
def _spread(adjacency, num_nodes, continuation, level, places, count, leave):
    """Spread the amounts over the neighbours; (places, reached, leaving): those above the level come next."""
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    table, shift, slots, cells, leaving, waiting, amount = places
    wait = 0
    for i in range(leave):
        start, stop, patched = row_of(indptr, rows, patch_indptr, cells[leaving[i]]["node"])
        room = min(count + stop - start, num_nodes)
        if room > cells.size:
            places = grow_places(places, num_nodes, count, leave, wait, 2 * room)
            table, shift, slots, cells, leaving, waiting, amount = places
        share = continuation * amount[i]
        if patched:
            count, wait = _pour(
                patch_indices[start:stop], patch_weights[start:stop], share, level, count, wait,
                indptr, rows, patch_indptr, table, shift, slots, cells, waiting,
            )  # fmt: skip
        else:
            count, wait = _pour(
                indices[start:stop], weights[start:stop], share, level, count, wait,
                indptr, rows, patch_indptr, table, shift, slots, cells, waiting,
            )  # fmt: skip
    for i in range(wait):
        leaving[i] = waiting[i]
    return places, count, wait


@numba.njit(cache=True, nogil=True)
def _pour(
    neighbours, weights, share, level, count, wait,
    indptr, rows, patch_indptr, table, shift, slots, cells, waiting,
):  # fmt: skip
    """Spread one amount over one row; those that it lifts above the level wait."""
    if weights.size > 0:
        strength = 0.0
        for edge in range(neighbours.size):
            strength += weights[edge]
        share /= strength
    else:
        share /= neighbours.size
    for edge in range(neighbours.size):
        node = neighbours[edge]
        slot = find_slot(table, shift, cells, node)
        place = table[slot] - 1
        if place < 0:
            start, stop, _ = row_of(indptr, rows, patch_indptr, node)
            place = count
            count += 1
            table[slot] = count
            slots[place] = slot
            cells[place]["node"] = node
            cells[place]["degree"] = stop - start
            cells[place]["residual"] = 0.0
            cells[place]["value"] = 0.0
        before = cells[place]["residual"]
        after = before + (share * weights[edge] if weights.size > 0 else share)
        cells[place]["residual"] = after
        bound = level * cells[place]["degree"]
        if before <= bound < after:
            waiting[wait] = place
            wait += 1
    return count, wait
