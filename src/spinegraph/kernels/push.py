"""Rooted PageRank by pushing residual mass along edges, round by round.

Every node holds a value and a residual; a push keeps (1 - b) of a residual and spreads b of it over the
neighbours. A round pushes all nodes above the current level at once, by what they held when it began, so
that the order of node ids changes nothing but rounding.
"""

import numba

from spinegraph.kernels.places import add_place, clear_places, find_slot, grow_places, new_places
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.topk import keep_top

# Levels are odd numbers, so that nodes whose exact residuals are equal never fall on two sides by rounding.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.2718281828459045
# For the same reason: a remainder of exactly ``tolerance`` is pushed on in every labelling.
_MARGIN = 1.0 - 1e-7


@numba.njit(cache=True, nogil=True)
def push_roots(adjacency, num_nodes, roots, continuation, tolerance, top, tied_nodes):
    """Write the k largest values of each root into its row of ``top``, as ``keep_top`` does."""
    places = new_places(num_nodes, 2048)
    used = 0
    for row in range(roots.size):
        places, count = _push(adjacency, num_nodes, roots[row], continuation, tolerance, places)
        # What a residual would keep at its next push is known without pushing it.
        for place in range(count):
            places.value[place] += (1.0 - continuation) * places.residual[place]
        used = keep_top(places.nodes, places.value, count, row, top, tied_nodes, used)
        clear_places(places, count)
    return used


@numba.njit(cache=True, nogil=True)
def _push(adjacency, num_nodes, root, continuation, tolerance, places):
    """Push until at most ``tolerance`` of the mass would stay unassigned; (places, how many were reached)."""
    add_place(places, adjacency, root, find_slot(places, root), 0)
    count = 1
    places.residual[0] = 1.0
    if places.degree[0] == 0.0:
        places.value[0] = continuation
        return places, count
    goal = tolerance * _MARGIN / continuation
    level = _FIRST_LEVEL / places.degree[0]
    while True:
        rest = 0.0
        active = 0
        for place in range(count):
            rest += places.residual[place]
            if places.residual[place] > level * places.degree[place]:
                places.active[active] = place
                active += 1
        while active > 0 and rest > goal:
            rest -= (1.0 - continuation) * _take(places, active, continuation)
            places, count, active = _spread(adjacency, num_nodes, continuation, level, places, count, active)
        if rest <= goal:
            return places, count
        level *= _NEXT_LEVEL


@numba.njit(cache=True, nogil=True)
def _take(places, active, continuation):
    """Take the residuals of the active places, before any is spread; returns their sum."""
    total = 0.0
    for i in range(active):
        place = places.active[i]
        amount = places.residual[place]
        places.amount[i] = amount
        places.residual[place] = 0.0
        places.value[place] += (1.0 - continuation) * amount
        total += amount
    return total


@numba.njit(cache=True, nogil=True)
def _spread(adjacency, num_nodes, continuation, level, places, count, active):
    """Spread the amounts over the neighbours; (places, reached, active): those above the level come next."""
    waiting = 0
    for i in range(active):
        node = places.nodes[places.active[i]]
        start, stop, patched = row_of(adjacency, node)
        room = min(count + stop - start, num_nodes)
        if room > places.nodes.size:
            places = grow_places(places, num_nodes, count, active, waiting, 2 * room)
        indices = adjacency.patch_indices if patched else adjacency.indices
        weights = adjacency.patch_weights if patched else adjacency.weights
        share = continuation * places.amount[i]
        if weights.size > 0:
            strength = 0.0
            for edge in range(start, stop):
                strength += weights[edge]
            share /= strength
        else:
            share /= stop - start
        for edge in range(start, stop):
            slot = find_slot(places, indices[edge])
            place = places.table[slot] - 1
            if place < 0:
                place = count
                add_place(places, adjacency, indices[edge], slot, count)
                count += 1
            before = places.residual[place]
            after = before + (share * weights[edge] if weights.size > 0 else share)
            places.residual[place] = after
            bound = level * places.degree[place]
            if before <= bound < after:
                places.waiting[waiting] = place
                waiting += 1
    for i in range(waiting):
        places.active[i] = places.waiting[i]
    return places, count, waiting
