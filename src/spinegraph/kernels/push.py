"""Rooted PageRank by pushing residual mass along edges, round by round.

Every node holds a value and a residual; a push keeps (1 - b) of a residual and spreads b of it over the
neighbours. A round pushes all nodes above the current level at once, by what they held when it began, so
that the order of node ids changes nothing but rounding.
"""

import numba
import numpy as np

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.places import clear_places, find_slot, grow_places, new_places
from spinegraph.kernels.rows import row_of, row_strength
from spinegraph.kernels.sweep import COLUMNS, finish_columns, load_column, new_columns
from spinegraph.kernels.topk import keep_top

# Levels are odd numbers, so that nodes whose exact residuals are equal never fall on two sides by rounding.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.5671432904097838
# For the same reason: a remainder of exactly ``tolerance`` is pushed on in every labelling.
_MARGIN = 1.0 - 1e-7
_FIRST_ROOM = 2048
# Nodes up to which columns for sweeps are worth their memory.
_MOST_SWEPT = 1 << 17


def push_goal(continuation: float, tolerance: float) -> float:
    """Return the residual mass at which to stop: what it keeps of itself is assigned, the rest is not."""
    return tolerance * _MARGIN / continuation


def push_budget(adjacency: Adjacency, continuation: float, goal: float) -> int:
    """Count the edges that a root may push through before sweeping costs less; -1 where it never sweeps.

    Measured: an edge costs about fifty times as much here as in a sweep. Half of that, since the cost of
    deciding late comes on top. A whole number, so that every labelling of the nodes decides alike.
    """
    if adjacency.num_nodes > _MOST_SWEPT:
        return -1
    return int(adjacency.num_entries * rounds_to(1.0, goal, continuation) // 100)


@numba.njit(cache=True, nogil=True)
def push_roots(adjacency, num_nodes, roots, continuation, goal, budget, top, tied_nodes):
    """Write the k largest values of each root into its row of ``top``, as ``keep_top`` does."""
    places = new_places(num_nodes, _FIRST_ROOM)
    columns = new_columns(0)
    pending = np.empty((3, COLUMNS), dtype=np.int64)
    waiting = np.int64(0)
    nodes = np.empty(0, dtype=np.int64)
    values = np.empty(0, dtype=np.float64)
    for row in range(roots.size):
        places, count, rest = _push(adjacency, num_nodes, roots[row], continuation, goal, budget, places)
        cells = places[3]
        if rest > goal:
            if columns[0].size == 0:
                columns = new_columns(num_nodes)
            load_column(adjacency, cells, count, columns, waiting, continuation)
            pending[0, waiting] = roots[row]
            pending[1, waiting] = row
            pending[2, waiting] = rounds_to(rest, goal, continuation)
            waiting += 1
            if waiting == COLUMNS:
                finish_columns(adjacency, num_nodes, continuation, columns, pending, waiting, top, tied_nodes)
                waiting = np.int64(0)
        else:
            if count > nodes.size:
                nodes = np.empty(cells.size, dtype=np.int64)
                values = np.empty(cells.size, dtype=np.float64)
            for place in range(count):
                nodes[place] = cells[place]["node"]
                # What a residual would keep at its next push is known without pushing it.
                values[place] = cells[place]["value"] + (1.0 - continuation) * cells[place]["residual"]
            keep_top(nodes, values, count, row, top, tied_nodes)
        clear_places(places, count)
    if waiting > 0:
        finish_columns(adjacency, num_nodes, continuation, columns, pending, waiting, top, tied_nodes)


@numba.njit(cache=True, nogil=True)
def rounds_to(rest, goal, continuation):
    """Count the rounds in which pushing every node brings a residual mass down to the goal."""
    rounds = 0
    while rest > goal:
        rest *= continuation
        rounds += 1
    return rounds


@numba.njit(cache=True, nogil=True)
def _push(adjacency, num_nodes, root, continuation, goal, budget, places):
    """Push until the residual mass is at most ``goal``, or until the budget of edges is spent.

    Returns (places, how many were reached, residual mass).
    """
    degree = _start(adjacency, places, root)
    if degree == 0:
        places[3][0]["value"] = continuation
        return places, 1, 0.0
    # Typed, here and below: a bare 1 has a type of its own and would compile what follows twice.
    count = np.int64(1)
    edges = 0
    level = _FIRST_LEVEL / degree
    while True:
        leaving, rest = _above(places, count, level)
        while leaving > 0 and rest > goal:
            rest -= (1.0 - continuation) * _take(places, leaving, continuation)
            places, count, leaving, passed = _spread(
                adjacency, num_nodes, continuation, level, places, count, leaving
            )
            edges += passed
            if 0 <= budget < edges:
                break
        if rest <= goal or 0 <= budget < edges:
            return places, count, rest
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
    """Spread the amounts over the neighbours; those that end above the level leave next.

    Returns (places, how many are reached, how many leave, edges passed). One long loop: a call per row, with
    this many arrays, would cost more than a short row.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    table, shift, slots, cells, leaving, waiting, amount = places
    has_weights = weights.size + patch_weights.size > 0
    wait = np.int64(0)
    edges = 0
    for i in range(leave):
        start, stop, patched = row_of(indptr, rows, patch_indptr, cells[leaving[i]]["node"])
        edges += stop - start
        room = min(count + stop - start, num_nodes)
        if room > cells.size:
            places = grow_places(places, num_nodes, count, leave, wait, 2 * room)
            table, shift, slots, cells, leaving, waiting, amount = places
        strength = np.float64(stop - start)
        if has_weights:
            strength = row_strength(patch_weights if patched else weights, start, stop)
        share = continuation * amount[i] / strength
        for edge in range(start, stop):
            node = np.int64(patch_indices[edge] if patched else indices[edge])
            slot = find_slot(table, shift, cells, node)
            place = table[slot] - 1
            if place < 0:
                place = count
                count += 1
                first, last, _ = row_of(indptr, rows, patch_indptr, node)
                table[slot] = count
                slots[place] = slot
                cells[place]["node"] = node
                cells[place]["degree"] = last - first
                cells[place]["residual"] = 0.0
                cells[place]["value"] = 0.0
            given = share
            if has_weights:
                given *= np.float64(patch_weights[edge] if patched else weights[edge])
            before = cells[place]["residual"]
            bound = level * cells[place]["degree"]
            cells[place]["residual"] = before + given
            if before <= bound < before + given:
                waiting[wait] = place
                wait += 1
    for i in range(wait):
        leaving[i] = waiting[i]
    return places, count, wait, edges
