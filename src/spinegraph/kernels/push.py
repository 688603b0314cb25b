"""Rooted PageRank by pushing residual mass along edges, round by round."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.runtime import compiled
from spinegraph.kernels.sparse import row_of, row_strength

# Values this close at the k-th place are one group: far above rounding, far below any tolerance.
TIE = 1e-9
# A tied group that would make a row of the operator longer than this many times k is dropped.
ROOM = 4
_BUCKETS = 512
# Three mantissa bits per bucket: eight buckets an octave, so one bucket holds little more than is asked for.
_SHIFT = 49
# How many times k values are looked at to see which of the rest can matter.
_SOME = 8


class Top(NamedTuple):
    """Rows that kernels fill, one per root.

    Attributes
    ----------
    nodes, weights : arrays (r, k)
        By descending value, weights scaled to sum 1; padded with -1 and 0.
    mass : float64 array (r,)
        The sum before scaling.
    kept : int32 array (r,)
        How many leading places stay as they are.
    tied : int32 array (r,)
        How many nodes share the places after those; 0 also where the group was dropped.
    """

    nodes: NDArray[Any]
    weights: NDArray[np.float32]
    mass: NDArray[np.float64]
    kept: NDArray[np.int32]
    tied: NDArray[np.int32]


def new_top(rows: int, k: int, dtype: DTypeLike) -> Top:
    """Rows to be filled, with nodes of the given dtype."""
    return Top(
        np.empty((rows, k), dtype=dtype),
        np.empty((rows, k), dtype=np.float32),
        np.empty(rows, dtype=np.float64),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
    )


@compiled
def keep_top(nodes, values, count, row, top, tied_nodes):
    """Write the k largest of ``values[:count]`` (all > 0) into a row of ``top``, and the tied nodes.

    The root comes first in ``nodes``; ``tied_nodes`` is (r, ROOM * k).
    """
    kept, tied = top[3], top[4]
    k = top[0].shape[1]
    order = _largest(nodes, values, count, k)
    write_row(nodes[order], values[order], order.size, np.int64(1), row, top)
    if count <= k:
        return
    last = values[order[k - 1]]
    above = 0
    group = 0
    for i in range(count):
        above += values[i] > last + TIE
        group += abs(values[i] - last) <= TIE
    if above + group > k:
        kept[row] = above
        if above + group <= ROOM * k:
            for i in range(count):
                if abs(values[i] - last) <= TIE:
                    tied_nodes[row, tied[row]] = nodes[i]
                    tied[row] += 1
        elif above == 0:
            # Dropping the group would leave nothing: the root alone stands for the row.
            tied[row] = 1
            tied_nodes[row, 0] = nodes[0]


@compiled
def write_row(nodes, values, count, unit, row, top):
    """Write the first k of descending values, scaled, and their sum in the given unit; no ties."""
    out_nodes, out_weights, mass, kept, tied = top
    k = out_nodes.shape[1]
    chosen = min(k, count)
    total = values[:chosen].sum()
    for i in range(chosen):
        out_nodes[row, i] = nodes[i]
        out_weights[row, i] = values[i] / total
    for i in range(chosen, k):
        out_nodes[row, i] = -1
        out_weights[row, i] = 0.0
    mass[row] = total / unit
    kept[row] = chosen
    tied[row] = 0


@compiled
def _largest(nodes, values, count, k):
    """List at least the k largest of ``values[:count]``, descending; equal values by node."""
    order = np.empty(count, dtype=np.int64)
    some = min(count, _SOME * k)
    for i in range(some):
        order[i] = i
    found = count
    if count > k:
        # The bits of positive floats order as the floats do.
        bits = values.view(np.int64)
        # What is near the root is found first and holds most: few of the others pass its k-th value.
        least = _least(bits, order[:some], k)
        found = 0
        for i in range(count):
            order[found] = i
            found += bits[i] >= least
        if found > 2 * k:
            least = _least(bits, order[:found], k)
            passed = found
            found = 0
            for i in range(passed):
                order[found] = order[i]
                found += bits[order[i]] >= least
    order = order[:found]
    _sort_descending(order, nodes, values)
    return order


@compiled
def _least(bits, order, k):
    """Return a number that at least k of the bits in ``order`` reach, and not many more, by a histogram."""
    highest = bits[order[0]]
    for i in order:
        highest = max(highest, bits[i])
    sizes = np.zeros(_BUCKETS, dtype=np.int64)
    for i in order:
        sizes[min((highest - bits[i]) >> _SHIFT, _BUCKETS - 1)] += 1
    cut = 0
    total = sizes[0]
    while total < k:
        cut += 1
        total += sizes[cut]
    return highest - ((cut + 1) << _SHIFT) + 1 if cut < _BUCKETS - 1 else np.int64(0)


@compiled
def _sort_descending(order, nodes, values):
    """Shell sort in place: rows are short, and it compiles in a moment."""
    gap = 1
    while gap < order.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, order.size):
            held = order[i]
            value = values[held]
            j = i
            while j >= gap:
                other = order[j - gap]
                if values[other] > value or (values[other] == value and nodes[other] < nodes[held]):
                    break
                order[j] = other
                j -= gap
            order[j] = held
        gap //= 3


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


# Eight float64 are one line of the cache.
COLUMNS = 8
_ONE = np.ones(1, dtype=np.float32)


@compiled
def new_columns(num_nodes):
    """Make columns of zeros."""
    return (
        np.zeros((num_nodes, COLUMNS), dtype=np.float64),
        np.zeros((num_nodes, COLUMNS), dtype=np.float64),
        np.zeros((num_nodes, COLUMNS), dtype=np.float64),
    )


@compiled
def load_column(adjacency, places, reached, columns, column, continuation):
    """Put the values and residuals of the reached places into an empty column."""
    indptr, _, weights, rows, patch_indptr, _, patch_weights = adjacency
    table, _, _, state, assigned, nodes, _, _ = places
    value, share, _ = columns
    for i in range(reached):
        node = nodes[i]
        place = i if table.size > 0 else node
        residual = state[place, 0]
        strength = state[place, 1]
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        if patched and patch_weights.size > 0:
            strength = row_strength(patch_weights, start, stop)
        elif weights.size > 0:
            strength = row_strength(weights, start, stop)
        value[node, column] = assigned[place] + (1.0 - continuation) * residual
        share[node, column] = continuation * residual / strength


@compiled
def finish_columns(adjacency, num_nodes, continuation, columns, pending, count, top, tied_nodes):
    """Sweep the first ``count`` columns, keep the largest values of each, and clear them.

    ``pending`` (3, 8) says for each column its root, its row of ``top`` and how many rounds it needs.
    """
    indptr, indices, weights, rows, _, _, _ = adjacency
    if rows.size > 0:
        indptr, indices, weights = _flatten(adjacency, num_nodes)
    mask = np.int64(-1)
    if weights.size == 0:
        mask = np.int64(0)
        weights = _ONE
    value, share, following = columns
    nodes = np.empty(value.shape[0], dtype=np.int64)
    values = np.empty(value.shape[0], dtype=np.float64)
    for done in range(1, pending[2, :count].max() + 1):
        _sweep(indptr, indices, weights, mask, continuation, value, share, following)
        share, following = following, share
        for column in range(count):
            if pending[2, column] == done:
                found = _read_column(value, column, pending[0, column], nodes, values)
                keep_top(nodes, values, found, pending[1, column], top, tied_nodes)
    value[:, :] = 0.0
    share[:, :] = 0.0
    following[:, :] = 0.0


@compiled
def _flatten(adjacency, num_nodes):
    """Copy an overlay's rows into one CSR; the sweeps that follow read each of them many times."""
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    flat = np.zeros(num_nodes + 1, dtype=np.int64)
    for node in range(num_nodes):
        start, stop, _ = row_of(indptr, rows, patch_indptr, node)
        flat[node + 1] = flat[node] + stop - start
    flat_indices = np.empty(flat[num_nodes], dtype=indices.dtype)
    has_weights = weights.size + patch_weights.size > 0
    flat_weights = np.empty(flat[num_nodes] if has_weights else 0, dtype=np.float32)
    for node in range(num_nodes):
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        for edge in range(start, stop):
            place = flat[node] + edge - start
            flat_indices[place] = patch_indices[edge] if patched else indices[edge]
            if has_weights:
                flat_weights[place] = patch_weights[edge] if patched else weights[edge]
    return flat, flat_indices, flat_weights


@compiled
def _sweep(indptr, indices, weights, mask, continuation, value, share, following):
    """Push every node of every column once: each adds up what its neighbours give it.

    An edge weighs the same both ways. Without weights ``mask`` is 0 and leads to a single 1.
    """
    for node in range(value.shape[0]):
        # Sums by name stay in registers: twice as fast as a loop over the columns.
        a = b = c = d = e = f = g = h = 0.0
        strength = 0.0
        for edge in range(indptr[node], indptr[node + 1]):
            giver = np.uint64(indices[edge])
            weight = np.float64(weights[np.uint64(edge & mask)])
            strength += weight
            a += weight * share[giver, 0]
            b += weight * share[giver, 1]
            c += weight * share[giver, 2]
            d += weight * share[giver, 3]
            e += weight * share[giver, 4]
            f += weight * share[giver, 5]
            g += weight * share[giver, 6]
            h += weight * share[giver, 7]
        if strength > 0.0:
            keep = 1.0 - continuation
            give = continuation / strength
            value[node, 0] += keep * a
            value[node, 1] += keep * b
            value[node, 2] += keep * c
            value[node, 3] += keep * d
            value[node, 4] += keep * e
            value[node, 5] += keep * f
            value[node, 6] += keep * g
            value[node, 7] += keep * h
            following[node, 0] = give * a
            following[node, 1] = give * b
            following[node, 2] = give * c
            following[node, 3] = give * d
            following[node, 4] = give * e
            following[node, 5] = give * f
            following[node, 6] = give * g
            following[node, 7] = give * h


@compiled
def _read_column(value, column, root, nodes, values):
    """Copy the positive values of a column to ``nodes`` and ``values``, the root first; returns how many."""
    nodes[0] = root
    values[0] = value[root, column]
    count = 1
    for node in range(value.shape[0]):
        if node != root and value[node, column] > 0.0:
            nodes[count] = node
            values[count] = value[node, column]
            count += 1
    return count


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


@compiled
def push_back(adjacency, starts, residual, influence, marks, continuation, least):
    """Push residuals back along the edges until none of the nodes reached holds more than ``least``.

    With g(i) = sum over u of pi_i(u) w(u), the mass that root i puts on nodes of weight w, and w added to
    ``residual`` float64 (n,) by the caller, this keeps for every i

        influence(i) + sum over j of pi_i(j) residual(j)  =  what it was  +  g(i),

    and since pi_i sums to one, the second term is at most the largest residual. ``starts`` are the nodes
    whose residual was raised; ``marks`` uint8 (n,) is zero before and after. Returns the nodes whose
    influence grew, in the order in which they were reached first.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    has_weights = weights.size + patch_weights.size > 0
    queue = [np.int64(node) for node in starts]
    grown = [np.int64(0) for _ in range(0)]
    for node in queue:
        marks[node] |= 1
    at = 0
    while at < len(queue):
        node = queue[at]
        at += 1
        marks[node] &= 2
        amount = residual[node]
        if amount <= least:
            continue
        residual[node] = 0.0
        influence[node] += (1.0 - continuation) * amount
        if marks[node] & 2 == 0:
            marks[node] |= 2
            grown.append(node)
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        if start == stop:
            influence[node] += continuation * amount  # it steps to itself
        for edge in range(start, stop):
            near = np.int64(patch_indices[edge] if patched else indices[edge])
            first, last, away = row_of(indptr, rows, patch_indptr, near)
            strength, weight = np.float64(last - first), 1.0
            if has_weights:
                strength = row_strength(patch_weights if away else weights, first, last)
                weight = np.float64(patch_weights[edge] if patched else weights[edge])
            residual[near] += continuation * amount * weight / strength
            if residual[near] > least and marks[near] & 1 == 0:
                marks[near] |= 1
                queue.append(near)
    for node in grown:
        marks[node] = 0
    return np.array(grown)
