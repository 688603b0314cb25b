"""Rounds of pushing at one level: the inner loops of rooted PageRank; see ``push``."""

import numpy as np

from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.places import find_slot, grow_places
from spinegraph.kernels.rows import row_of, row_strength

# What a node that was pushed holds on to: no mass, but more than the 0 of one never reached.
_TRACE = 1e-307
# Rows that are fetched ahead: few enough to stay in the nearest cache.
_FETCHED = 16


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
def push_by_node(adjacency, continuation, limits, places, count, leaving, rest, edges):
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
def push_by_hash(adjacency, continuation, limits, places, count, leaving, rest, edges):
    """Do what ``push_by_node`` does with places by hash, which may grow: returns them first."""
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
