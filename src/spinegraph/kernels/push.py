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
from spinegraph.kernels.places import clear_places, find_slot, grow_places, new_places
from spinegraph.kernels.rows import row_of, row_strength
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
# What a node that was pushed holds on to: no mass, but more than the 0 of one never reached.
_TRACE = 1e-307
_ONE = np.ones(1, dtype=np.float32)
# Rows that are fetched ahead: few enough to stay in the nearest cache.
_FETCHED = 16
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
            places, count, rest, edges = _push_by_hash(
                adjacency, continuation, limits, places, count, leaving, rest, edges
            )
        else:
            count, rest, edges = _push_by_node(
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


@compiled(inline="always")
def _take(state, value, waiting, amount, leaving, continuation):
    """Take the residuals of the places that leave, before any is spread; returns their sum."""
    total = 0.0
    for i in range(leaving):
        place = np.uint64(waiting[i])
        residual = state[place, 0]
        state[place, 0] = _TRACE
        value[place] += (1.0 - continuation) * residual
        amount[i] = residual
        total += residual
    return total


@compiled(inline="always")
def _give(place, given, level, state, waiting, wait):
    """Add to a place's residual; returns (was it there already?, how many wait for the next round)."""
    before = state[place, 0]
    bound = level * state[place, 1]
    after = before + given
    state[place, 0] = after
    waiting[wait] = place
    return before > 0.0, wait + np.uint64((before <= bound) & (after > bound))


@compiled(inline="always")
def _next_round(waiting, leaving, wait):
    """Move the places that wait to the front; returns how many they are."""
    for i in range(leaving, wait):
        waiting[i - leaving] = waiting[i]
    return wait - leaving


@compiled
def _push_by_node(adjacency, continuation, limits, places, count, leaving, rest, edges):
    """Push rounds until no place is above the level, or goal or budget (``limits``) end them.

    Returns (how many nodes are reached, residual mass, edges passed). One long loop, and a loop for each kind
    of row: taking the tuples apart once a round, or picking a row's array, would count references, which
    costs more than a short row.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    _, _, _, state, value, nodes, waiting, amount = places
    level, goal, budget = limits
    has_weights = weights.size + patch_weights.size > 0
    reached = np.uint64(count)
    while leaving > 0 and rest > goal and not 0 <= budget < edges:
        rest -= (1.0 - continuation) * _take(state, value, waiting, amount, leaving, continuation)
        wait = np.uint64(leaving)
        for i in range(leaving):
            start, stop, patched = row_of(indptr, rows, patch_indptr, waiting[i])
            edges += stop - start
            if has_weights:
                strength = row_strength(patch_weights if patched else weights, start, stop)
            else:
                strength = np.float64(stop - start)
            share = max(continuation * amount[i] / strength, _TRACE)
            if patched:
                for edge in range(np.uint64(start), np.uint64(stop)):
                    given = max(share * patch_weights[edge], _TRACE) if has_weights else share
                    nodes[reached] = patch_indices[edge]
                    known, wait = _give(np.uint64(patch_indices[edge]), given, level, state, waiting, wait)
                    reached += np.uint64(not known)
            elif has_weights:
                for edge in range(np.uint64(start), np.uint64(stop)):
                    nodes[reached] = indices[edge]
                    given = max(share * weights[edge], _TRACE)
                    known, wait = _give(np.uint64(indices[edge]), given, level, state, waiting, wait)
                    reached += np.uint64(not known)
            else:
                for edge in range(np.uint64(start), np.uint64(stop)):
                    nodes[reached] = indices[edge]
                    known, wait = _give(np.uint64(indices[edge]), share, level, state, waiting, wait)
                    reached += np.uint64(not known)
        leaving = _next_round(waiting, leaving, np.int64(wait))
    return np.int64(reached), rest, edges


@compiled(inline="always")
def _fetch_rows(indptr, indices, nodes, waiting, start, stop):
    """Read the first neighbour of places that wait; returns a number that is never below 0.

    Nothing depends on what is read, so that a large graph's cache misses overlap instead of adding up.
    """
    total = np.int64(0)
    for i in range(start, stop):
        total += indices[indptr[nodes[waiting[i]]]]
    return total


@compiled(inline="always")
def _fetch_degrees(indptr, indices, start, stop):
    """Read where the rows of some neighbours begin, for the same reason."""
    total = np.int64(0)
    for edge in range(start, stop):
        total += indptr[indices[edge]]
    return total


@compiled
def _push_by_hash(adjacency, continuation, limits, places, count, leaving, rest, edges):
    """Do what ``_push_by_node`` does with places by hash, which may grow: returns them first."""
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    table, shift, slots, state, value, nodes, waiting, amount = places
    level, goal, budget = limits
    has_weights = weights.size + patch_weights.size > 0
    is_plain = rows.size == 0
    while leaving > 0 and rest > goal and not 0 <= budget < edges:
        rest -= (1.0 - continuation) * _take(state, value, waiting, amount, leaving, continuation)
        wait = np.uint64(leaving)
        for i in range(leaving):
            # What is not used would not be read: the number is compared, in vain.
            if is_plain and i % _FETCHED == 0:
                last = min(i + _FETCHED, leaving)
                edges += _fetch_rows(indptr, indices, nodes, waiting, i, last) < 0
            start, stop, patched = row_of(indptr, rows, patch_indptr, nodes[waiting[i]])
            edges += stop - start
            if count + stop - start > state.shape[0]:
                places = grow_places(places, count, wait, 2 * (count + stop - start))
                table, shift, slots, state, value, nodes, waiting, amount = places
            if has_weights:
                strength = row_strength(patch_weights if patched else weights, start, stop)
            else:
                strength = np.float64(stop - start)
            share = max(continuation * amount[i] / strength, _TRACE)
            if is_plain:
                edges += _fetch_degrees(indptr, indices, start, stop) < 0
            for edge in range(start, stop):
                node = np.int64(patch_indices[edge] if patched else indices[edge])
                slot = find_slot(table, shift, state, node)
                if table[slot] == 0:
                    first, last, _ = row_of(indptr, rows, patch_indptr, node)
                    nodes[count] = node
                    slots[count] = slot
                    state[count, 1] = last - first
                    state[count, 2] = node
                    count += 1
                    table[slot] = count
                given = share
                if has_weights:
                    given = max(share * (patch_weights[edge] if patched else weights[edge]), _TRACE)
                _, wait = _give(np.uint64(table[slot] - 1), given, level, state, waiting, wait)
        leaving = _next_round(waiting, leaving, np.int64(wait))
    return places, count, rest, edges


@compiled
def _read_values(places, count, continuation, values):
    """Copy what each reached node is worth; what a residual keeps at its next push is known beforehand."""
    table, _, _, state, value, nodes, _, _ = places
    for i in range(count):
        place = np.uint64(i if table.size > 0 else nodes[i])
        values[i] = value[place] + (1.0 - continuation) * state[place, 0]
