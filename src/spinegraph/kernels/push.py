"""Rooted PageRank by pushing residual mass along edges, round by round.

Every node holds a value and a residual; a push keeps (1 - b) of a residual and spreads b of it over the
neighbours. A round pushes all nodes above the current level at once, by what they held when it began, so
that the order of node ids changes nothing but rounding. The level, of residual per neighbour, falls until
little enough mass is left, or to the least level that is worth its edges: pushing down to a level takes at
most 1 / ((1 - b) level) edges, whatever the graph.
"""

import numpy as np

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.places import clear_places, find_slot, new_places
from spinegraph.kernels.rounds import push_by_hash, push_by_node
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.sweep import COLUMNS, finish_columns, load_column, new_columns
from spinegraph.kernels.topk import keep_top

# Levels are odd numbers, so that nodes whose exact residuals are equal never fall on two sides by rounding.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.5671432904097838
# With a least level in sight: a few more edges, but fewer looks at all that was reached.
_NEXT_BOUNDED_LEVEL = 0.2078795763507619
_LEAST_LEVEL = 0.9999998765432101
# For the same reason: a remainder of exactly ``tolerance`` is pushed on in every labelling.
_MARGIN = 1.0 - 1e-7
# Nodes up to which columns for sweeps are worth their memory.
_MOST_SWEPT = 1 << 17


def push_goal(continuation: float, tolerance: float) -> float:
    """Return the residual mass at which to stop: what it keeps of itself is assigned, the rest is not."""
    return tolerance * _MARGIN / continuation


def push_budget(adjacency: Adjacency, continuation: float, goal: float) -> int:
    """Count the edges that a root may push through before sweeping costs less; -1 where it never sweeps.

    Measured: an edge costs about 25 times as much here as in a sweep. Half of that, since the cost of
    deciding late comes on top. A whole number, so that every labelling of the nodes decides alike.
    """
    if adjacency.num_nodes > _MOST_SWEPT:
        return -1
    return int(adjacency.num_entries * rounds_to(1.0, goal, continuation) // 50)


@compiled
def push_roots(
    adjacency, num_nodes, roots, continuation, goal, threshold, budget, top, tied_nodes, unassigned
):
    """Write the k largest values of each root into its row of ``top``, as ``keep_top`` does.

    Ends a root at the residual mass ``goal``, or at the level ``threshold`` (0: never), or hands it to sweeps
    when ``budget`` edges are spent (-1: never). ``unassigned`` (r,) is the mass left over.
    """
    places = new_places(adjacency, num_nodes, roots.size)
    columns = new_columns(0)
    pending = np.empty((3, COLUMNS), dtype=np.int64)
    waiting = np.int64(0)
    values = np.empty(0, dtype=np.float64)
    for row in range(roots.size):
        places, count, rest, edges = _push(
            adjacency, roots[row], continuation, goal, threshold * _LEAST_LEVEL, budget, places
        )
        rounds = rounds_to(rest, goal, continuation) if 0 <= budget < edges else 0
        unassigned[row] = rest * continuation ** (rounds + 1)
        if rounds > 0:
            if columns[0].size == 0:
                columns = new_columns(num_nodes)
            load_column(adjacency, places, count, columns, waiting, continuation)
            pending[0, waiting] = roots[row]
            pending[1, waiting] = row
            pending[2, waiting] = rounds
            waiting += 1
            if waiting == COLUMNS:
                finish_columns(adjacency, num_nodes, continuation, columns, pending, waiting, top, tied_nodes)
                waiting = np.int64(0)
        else:
            if count > values.size:
                values = np.empty(places[4].size, dtype=np.float64)
            _read_values(places, count, continuation, values)
            keep_top(places[5], values, count, row, top, tied_nodes)
        clear_places(places, count)
    if waiting > 0:
        finish_columns(adjacency, num_nodes, continuation, columns, pending, waiting, top, tied_nodes)


@compiled
def rounds_to(rest, goal, continuation):
    """Count the rounds in which pushing every node brings a residual mass down to the goal."""
    rounds = 0
    while rest > goal:
        rest *= continuation
        rounds += 1
    return rounds


@compiled
def _push(adjacency, root, continuation, goal, least, budget, places):
    """Push one root until goal, level or budget end it; the root itself is always pushed.

    Returns (places, how many nodes were reached, residual mass, edges passed).
    """
    degree = _start(adjacency, places, root)
    # Typed, here and below: a bare 1 has a type of its own and would compile what follows twice.
    count = np.int64(1)
    if degree == 0:
        places[4][0 if places[0].size > 0 else root] = continuation
        return places, count, 0.0, 0
    edges = np.int64(0)
    rest = 1.0
    leaving = np.int64(1)
    level = max(_FIRST_LEVEL / degree, least)
    while True:
        limits = (level, goal, budget)
        if places[0].size > 0:
            places, count, rest, edges = push_by_hash(
                adjacency, continuation, limits, places, count, leaving, rest, edges
            )
        else:
            count, rest, edges = push_by_node(
                adjacency, continuation, limits, places, count, leaving, rest, edges
            )
        if rest <= goal or level <= least or 0 <= budget < edges:
            return places, count, rest, edges
        level = max(level * (_NEXT_BOUNDED_LEVEL if least > 0 else _NEXT_LEVEL), least)
        leaving, rest = _above(places, count, level)


@compiled
def _start(adjacency, places, root):
    """Put all mass on the root, as the first place to push; returns its degree."""
    indptr, _, _, rows, patch_indptr, _, _ = adjacency
    table, shift, slots, state, _, nodes, waiting, _ = places
    start, stop, _ = row_of(indptr, rows, patch_indptr, root)
    place = np.int64(root)
    nodes[0] = root
    if table.size > 0:
        slot = find_slot(table, shift, state, root)
        state[0, 2] = root
        table[slot] = 1
        slots[0] = slot
        place = np.int64(0)
    state[place, 0] = 1.0
    state[place, 1] = stop - start
    waiting[0] = place
    return stop - start


@compiled
def _above(places, count, level):
    """List the places above the level as waiting; (how many, sum of all residuals)."""
    table, _, _, state, _, nodes, waiting, _ = places
    rest = 0.0
    found = 0
    for i in range(count):
        place = np.uint64(i if table.size > 0 else nodes[i])
        residual = state[place, 0]
        rest += residual
        waiting[found] = place
        found += residual > level * state[place, 1]
    return np.int64(found), rest


@compiled
def _read_values(places, count, continuation, values):
    """Copy what each reached node is worth; what a residual keeps at its next push is known beforehand."""
    table, _, _, state, value, nodes, _, _ = places
    for i in range(count):
        place = np.uint64(i if table.size > 0 else nodes[i])
        values[i] = value[place] + (1.0 - continuation) * state[place, 0]
