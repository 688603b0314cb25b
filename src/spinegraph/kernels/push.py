"""Rooted PageRank by pushing residual mass along edges, round by round.

A node has a value, the mass assigned to it, and a residual, the mass still to be spread. Pushing a node adds
(1 - continuation) of its residual to its value and passes the rest to its neighbours. A round pushes every
node whose residual per neighbour exceeds a level; once there is none, the level falls. Roots that visit too
many edges this way are finished by sweeps, which push every node of the graph, for eight roots at once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.runtime import compiled
from spinegraph.kernels.sparse import row_of, row_strength

NO_BUDGET = 2**62
# Arbitrary fractions, so that rounding never puts equal residuals on two sides of a level.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.5671432904097838
_NEXT_BOUNDED_LEVEL = 0.2078795763507619  # with a threshold: slightly more edges, but fewer scans
LAST_LEVEL = 0.9999998765432101
# A residual mass of exactly ``tolerance`` is always pushed, whatever the order of nodes.
_MARGIN = 1.0 - 1e-7
MAX_SWEPT_NODES = 1 << 17  # sweeps need 24 numbers per node


def push_goal(continuation: float, tolerance: float) -> float:
    """Return the residual mass at which to stop, of which a last push would leave ``tolerance``."""
    return tolerance * _MARGIN / continuation


def push_budget(adjacency: Adjacency, continuation: float, goal: float) -> int:
    """Return how many edges a root may visit before sweeping costs less.

    An edge costs about 25 times as much here as in a sweep (measured). The budget is half of that, since
    switching late costs too. It is a whole number, so that the order of nodes cannot affect the decision.
    """
    if adjacency.num_nodes > MAX_SWEPT_NODES:
        return NO_BUDGET
    return int(adjacency.num_entries * _rounds_to(1.0, goal, continuation) // 50)


@compiled
def push_roots(
    adjacency, num_nodes, roots, continuation, goal, threshold, budget, top, tied_nodes, unassigned
):
    """Write the k largest values of each root into its row of ``top``; see ``keep_top``.

    A root ends at the residual mass ``goal`` or the level ``threshold`` (0: never), or after ``budget`` edges
    by sweeps, which need an adjacency without a patch. ``unassigned`` (r,) is the mass left over.
    """
    state = _new_state(adjacency, num_nodes, roots.size)
    columns = np.zeros((3, 0, _COLUMNS))
    pending = np.empty((3, _COLUMNS), dtype=np.int64)
    num_pending = np.int64(0)
    values = np.empty(0, dtype=np.float64)
    for row in range(roots.size):
        state, count, rest, edges = _push_root(
            adjacency, roots[row], continuation, goal, threshold * LAST_LEVEL, budget, state
        )
        rounds = _rounds_to(rest, goal, continuation) if edges > budget else 0
        unassigned[row] = rest * continuation ** (rounds + 1)
        if rounds > 0:
            if columns.size == 0:
                columns = np.zeros((3, num_nodes, _COLUMNS))
            _load_column(adjacency, state, count, columns, num_pending, continuation)
            pending[0, num_pending] = roots[row]
            pending[1, num_pending] = row
            pending[2, num_pending] = rounds
            num_pending += 1
            if num_pending == _COLUMNS:
                _finish_columns(
                    adjacency, num_nodes, continuation, columns, pending, num_pending, top, tied_nodes
                )
                num_pending = np.int64(0)
        else:
            if count > values.size:
                values = np.empty(state.value.size, dtype=np.float64)
            for i in range(count):
                slot = np.uint64(i if state.table.size > 0 else state.nodes[i])
                values[i] = state.value[slot] + (1.0 - continuation) * state.cells[slot, 0]
            keep_top(state.nodes, values, count, row, top, tied_nodes)
        _clear(state, count)
    if num_pending > 0:
        _finish_columns(adjacency, num_nodes, continuation, columns, pending, num_pending, top, tied_nodes)


@compiled
def _rounds_to(rest, goal, continuation):
    """Return the number of rounds in which pushing every node reduces a residual mass to the goal."""
    rounds = 0
    while rest > goal:
        rest *= continuation
        rounds += 1
    return rounds


@compiled
def _push_root(adjacency, root, continuation, goal, last_level, budget, state):
    """Push one root until it reaches goal, last level or budget; the root itself is always pushed.

    Returns (state, number of nodes reached, residual mass, edges visited).
    """
    start, stop, _ = row_of(adjacency.indptr, adjacency.rows, adjacency.patch_indptr, root)
    degree = stop - start
    slot = np.int64(root)
    state.nodes[0] = root
    if state.table.size > 0:
        entry = _find(state.table, state.shift, state.cells, root)
        state.cells[0, 2] = root
        state.table[entry] = 1
        state.entries[0] = entry
        slot = np.int64(0)
    state.cells[slot, 0] = 1.0
    state.cells[slot, 1] = degree
    state.queue[0] = slot
    # Typed, here and below: Numba gives a bare 1 its own type and would compile the rest twice.
    count = np.int64(1)
    if degree == 0:
        state.value[slot] = continuation
        return state, count, 0.0, 0
    edges = np.int64(0)
    rest = 1.0
    leaving = np.int64(1)
    level = max(_FIRST_LEVEL / degree, last_level)
    while True:
        if state.table.size > 0:
            state, count, rest, edges = _push_by_hash(
                adjacency, continuation, level, goal, budget, state, count, leaving, rest, edges
            )
        else:
            count, rest, edges = _push_by_node(
                adjacency, continuation, level, goal, budget, state, count, leaving, rest, edges
            )
        if rest <= goal or level <= last_level or edges > budget:
            return state, count, rest, edges
        level = max(level * (_NEXT_BOUNDED_LEVEL if last_level > 0 else _NEXT_LEVEL), last_level)
        leaving, rest = _queue_above(state, count, level)


@compiled
def _queue_above(state, count, level):
    """Queue the slots above the level; return (their number, sum of all residuals)."""
    table, _, _, cells, _, nodes, queue, _ = state
    rest = 0.0
    found = 0
    for i in range(count):
        slot = np.uint64(i if table.size > 0 else nodes[i])
        residual = cells[slot, 0]
        rest += residual
        queue[found] = slot
        found += residual > level * cells[slot, 1]
    return np.int64(found), rest


# Up to this size an array over all nodes costs less than hashing (measured at 80,000 and 3 million nodes),
# unless there are too many nodes per root.
MAX_NODES, MAX_NODES_PER_ROOT = 1 << 18, 1 << 12
_FIRST_BITS = 12
_HASH = np.uint64(0x9E3779B97F4A7C15)


class PushState(NamedTuple):
    """Workspace for one root: a slot for every node, or by hash a slot for every node reached."""

    table: NDArray[np.int32]  # (2^b,) by hash: slot + 1 of a node, or 0; empty by node
    shift: np.int64  # 64 - b
    entries: NDArray[np.int64]  # by hash: each slot's entry of the table
    cells: NDArray[np.float64]  # (slots, 2 or 4) residual, degree, by hash the node: in one cache line
    value: NDArray[np.float64]  # (slots,)
    nodes: NDArray[np.int64]  # in the order in which they were reached
    queue: NDArray[np.int64]  # slots to push in this round, followed by those of the next
    amount: NDArray[np.float64]  # (slots,) residuals to push in this round


@compiled
def _new_state(adjacency, num_nodes, num_roots):
    """Return an empty state: by node if that costs less, else by hash."""
    if num_nodes > min(MAX_NODES, num_roots * MAX_NODES_PER_ROOT):
        return _empty_state(1 << (_FIRST_BITS - 1), _FIRST_BITS)
    state = _empty_state(num_nodes, 0)
    for node in range(num_nodes):
        start, stop, _ = row_of(adjacency.indptr, adjacency.rows, adjacency.patch_indptr, node)
        state.cells[node, 1] = stop - start
    return state


@compiled
def _empty_state(size, bits):
    """Return a state of ``size`` slots: by hash with a table of ``bits``, or by node if they are 0."""
    return PushState(
        np.zeros(1 << bits if bits > 0 else 0, dtype=np.int32),
        np.int64(64 - bits),
        np.empty(size if bits > 0 else 0, dtype=np.int64),
        np.zeros((size, 4 if bits > 0 else 2)),
        np.zeros(size),
        np.empty(size + 1, dtype=np.int64),
        np.empty(2 * size + 1, dtype=np.int64),
        np.empty(size),
    )


@compiled
def _find(table, shift, cells, node):
    """Return the node's entry of the table, or the empty entry where it belongs."""
    mask = np.uint64(table.size - 1)
    entry = (np.uint64(node) * _HASH) >> np.uint64(shift)
    held = table[entry]
    while held != 0 and cells[held - 1, 2] != node:
        entry = (entry + np.uint64(1)) & mask
        held = table[entry]
    return entry


@compiled
def _clear(state, count):
    """Reset the ``count`` nodes that were reached."""
    table, _, entries, cells, value, nodes, _, _ = state
    for i in range(count):
        slot = nodes[i]
        if table.size > 0:
            slot = i
            table[entries[i]] = 0
        cells[slot, 0] = 0.0
        value[slot] = 0.0


@compiled
def _grow(state, count, queued, size):
    """Return a copy of a hashed state, with ``queued`` entries of its queue, for at least ``size`` nodes."""
    bits = 64 - state.shift
    while (1 << (bits - 1)) < size:
        bits += 1
    grown = _empty_state(1 << (bits - 1), bits)
    table, shift, entries, cells, value, nodes, queue, amount = grown
    cells[:count] = state.cells[:count]
    value[:count] = state.value[:count]
    nodes[:count] = state.nodes[:count]
    queue[:queued] = state.queue[:queued]
    amount[: state.amount.size] = state.amount
    for slot in range(count):
        entry = _find(table, shift, cells, nodes[slot])
        table[entry] = slot + 1
        entries[slot] = entry
    return grown


# Residual of a node after a push: negligible mass, but not the 0 of a node that was never reached.
_TRACE = 1e-307
# Rows to prefetch: few enough to stay in the L1 cache.
_PREFETCHED = 16


@compiled
def _push_by_node(adjacency, continuation, level, goal, budget, state, count, leaving, rest, edges):
    """Push rounds until no slot is above the level, or goal or budget is reached.

    Returns (number of nodes reached, residual mass, edges visited). This is one long function with a loop for
    each kind of row: unpacking the tuples once per round, or selecting a row's array, would count references,
    which costs more than a short row.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    _, _, _, cells, value, nodes, queue, amount = state
    has_weights = weights.size + patch_weights.size > 0
    reached = np.uint64(count)
    while leaving > 0 and rest > goal and edges <= budget:
        rest -= (1.0 - continuation) * _take(cells, value, queue, amount, leaving, continuation)
        end = np.uint64(leaving)
        for i in range(leaving):
            start, stop, patched = row_of(indptr, rows, patch_indptr, queue[i])
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
                    known, end = _give(np.uint64(patch_indices[edge]), given, level, cells, queue, end)
                    reached += np.uint64(not known)
            elif has_weights:
                for edge in range(np.uint64(start), np.uint64(stop)):
                    nodes[reached] = indices[edge]
                    given = max(share * weights[edge], _TRACE)
                    known, end = _give(np.uint64(indices[edge]), given, level, cells, queue, end)
                    reached += np.uint64(not known)
            else:
                for edge in range(np.uint64(start), np.uint64(stop)):
                    nodes[reached] = indices[edge]
                    known, end = _give(np.uint64(indices[edge]), share, level, cells, queue, end)
                    reached += np.uint64(not known)
        leaving = _next_round(queue, leaving, np.int64(end))
    return np.int64(reached), rest, edges


@compiled
def _push_by_hash(adjacency, continuation, level, goal, budget, state, count, leaving, rest, edges):
    """Do the same as ``_push_by_node`` with a hashed state, which may grow and is returned first."""
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    table, shift, entries, cells, value, nodes, queue, amount = state
    has_weights = weights.size + patch_weights.size > 0
    is_plain = rows.size == 0
    while leaving > 0 and rest > goal and edges <= budget:
        rest -= (1.0 - continuation) * _take(cells, value, queue, amount, leaving, continuation)
        end = np.uint64(leaving)
        for i in range(leaving):
            # Reads without dependencies let a large graph's cache misses overlap instead of adding up.
            # Their sums are used, though never below 0, so that the compiler keeps the prefetch.
            if is_plain and i % _PREFETCHED == 0:
                total = np.int64(0)
                for ahead in range(i, min(i + _PREFETCHED, leaving)):
                    total += indices[indptr[nodes[queue[ahead]]]]
                edges += total < 0
            start, stop, patched = row_of(indptr, rows, patch_indptr, nodes[queue[i]])
            edges += stop - start
            if count + stop - start > cells.shape[0]:
                state = _grow(state, count, end, 2 * (count + stop - start))
                table, shift, entries, cells, value, nodes, queue, amount = state
            if has_weights:
                strength = row_strength(patch_weights if patched else weights, start, stop)
            else:
                strength = np.float64(stop - start)
            share = max(continuation * amount[i] / strength, _TRACE)
            if is_plain:
                total = np.int64(0)
                for edge in range(start, stop):
                    total += indptr[indices[edge]]
                edges += total < 0
            for edge in range(start, stop):
                node = np.int64(patch_indices[edge] if patched else indices[edge])
                entry = _find(table, shift, cells, node)
                if table[entry] == 0:
                    first, last, _ = row_of(indptr, rows, patch_indptr, node)
                    nodes[count] = node
                    entries[count] = entry
                    cells[count, 1] = last - first
                    cells[count, 2] = node
                    count += 1
                    table[entry] = count
                given = share
                if has_weights:
                    given = max(share * (patch_weights[edge] if patched else weights[edge]), _TRACE)
                _, end = _give(np.uint64(table[entry] - 1), given, level, cells, queue, end)
        leaving = _next_round(queue, leaving, np.int64(end))
    return state, count, rest, edges


@compiled(inline="always")
def _take(cells, value, queue, amount, leaving, continuation):
    """Take the residuals of the slots to push before any is spread; return their sum."""
    total = 0.0
    for i in range(leaving):
        slot = np.uint64(queue[i])
        residual = cells[slot, 0]
        cells[slot, 0] = _TRACE
        value[slot] += (1.0 - continuation) * residual
        amount[i] = residual
        total += residual
    return total


@compiled(inline="always")
def _give(slot, given, level, cells, queue, end):
    """Add to a slot's residual; return (whether it was reached before, the end of the queue)."""
    before = cells[slot, 0]
    bound = level * cells[slot, 1]
    after = before + given
    cells[slot, 0] = after
    queue[end] = slot
    return before > 0.0, end + np.uint64((before <= bound) & (after > bound))


@compiled(inline="always")
def _next_round(queue, leaving, end):
    """Move the slots of the next round to the front; return their number."""
    for i in range(leaving, end):
        queue[i - leaving] = queue[i]
    return end - leaving


# Roots swept together: eight float64 are one cache line.
_COLUMNS = 8
_ONE = np.ones(1, dtype=np.float32)


@compiled
def _load_column(adjacency, state, count, columns, column, continuation):
    """Write values and residuals into an empty column; ``columns`` (3, n, 8): value, share, next share."""
    indptr, _, weights, _, _, _, _ = adjacency
    table, _, _, cells, assigned, nodes, _, _ = state
    value, share = columns[0], columns[1]
    for i in range(count):
        node = nodes[i]
        slot = i if table.size > 0 else node
        residual = cells[slot, 0]
        strength = cells[slot, 1]
        if weights.size > 0:
            strength = row_strength(weights, indptr[node], indptr[node + 1])
        value[node, column] = assigned[slot] + (1.0 - continuation) * residual
        share[node, column] = continuation * residual / strength


@compiled
def _finish_columns(adjacency, num_nodes, continuation, columns, pending, count, top, tied_nodes):
    """Sweep the first ``count`` columns, keep the largest values of each, and clear them.

    ``pending`` (3, 8) contains each column's root, its row of ``top`` and the number of rounds it needs.
    """
    indptr, indices, weights, _, _, _, _ = adjacency
    mask = np.int64(-1)
    if weights.size == 0:
        mask = np.int64(0)
        weights = _ONE
    value, share, following = columns[0], columns[1], columns[2]
    nodes = np.empty(num_nodes, dtype=np.int64)
    values = np.empty(num_nodes, dtype=np.float64)
    for done in range(1, pending[2, :count].max() + 1):
        _sweep(indptr, indices, weights, mask, continuation, value, share, following)
        share, following = following, share
        for column in range(count):
            if pending[2, column] == done:
                nodes[0] = pending[0, column]
                values[0] = value[nodes[0], column]
                found = 1
                for node in range(num_nodes):
                    if node != nodes[0] and value[node, column] > 0.0:
                        nodes[found] = node
                        values[found] = value[node, column]
                        found += 1
                keep_top(nodes, values, found, pending[1, column], top, tied_nodes)
    columns[:] = 0.0


@compiled
def _sweep(indptr, indices, weights, mask, continuation, value, share, following):
    """Push every node of every column once: each node sums the shares of its neighbours.

    Edges have the same weight both ways. Without weights ``mask`` is 0 and selects a single 1.
    """
    for node in range(value.shape[0]):
        # Named sums stay in registers, which is twice as fast as a loop over the columns.
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
            for column, total in enumerate((a, b, c, d, e, f, g, h)):
                value[node, column] += (1.0 - continuation) * total
                following[node, column] = continuation / strength * total


class Top(NamedTuple):
    """Rows that kernels fill, one per root."""

    nodes: NDArray[Any]  # (r, k) by descending value, padded with -1
    weights: NDArray[np.float32]  # (r, k) scaled to sum 1, padded with 0
    mass: NDArray[np.float64]  # (r,) the sum before scaling
    kept: NDArray[np.int32]  # (r,) number of leading nodes that keep their own weight
    tied: NDArray[np.int32]  # (r,) number of nodes that share the rest; 0 if the group was dropped

    @classmethod
    def empty(cls, rows: int, k: int, dtype: DTypeLike) -> "Top":
        """Return uninitialised rows, with nodes of the given dtype."""
        nodes, weights = np.empty((rows, k), dtype=dtype), np.empty((rows, k), dtype=np.float32)
        kept, tied = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
        return cls(nodes, weights, np.empty(rows, dtype=np.float64), kept, tied)

    def rows(self, some: slice) -> "Top":
        """Return views of some rows."""
        nodes, weights, mass, kept, tied = self
        return Top(nodes[some], weights[some], mass[some], kept[some], tied[some])


# Values this close to the k-th are tied with it: far above rounding errors, far below any tolerance.
TIE = 1e-9
# A tied group that would make a row of the operator longer than this many times k is dropped.
ROOM = 4


@compiled
def keep_top(nodes, values, count, row, top, tied_nodes):
    """Write the k largest of ``values[:count]`` (all > 0) into a row of ``top``, and the tied nodes.

    The root comes first in ``nodes``; ``tied_nodes`` is (r, ROOM * k).
    """
    k = top.nodes.shape[1]
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
        top.kept[row] = above
        if above + group <= ROOM * k:
            for i in range(count):
                if abs(values[i] - last) <= TIE:
                    tied_nodes[row, top.tied[row]] = nodes[i]
                    top.tied[row] += 1
        elif above == 0:
            # Dropping the group would leave the row empty, so it gets the root alone.
            top.tied[row] = 1
            tied_nodes[row, 0] = nodes[0]


@compiled
def write_row(nodes, values, count, unit, row, top):
    """Write the first k of descending values, scaled to sum 1, and their sum over ``unit``; no ties."""
    k = top.nodes.shape[1]
    chosen = min(k, count)
    total = values[:chosen].sum()
    for i in range(chosen):
        top.nodes[row, i] = nodes[i]
        top.weights[row, i] = values[i] / total
    for i in range(chosen, k):
        top.nodes[row, i] = -1
        top.weights[row, i] = 0.0
    top.mass[row] = total / unit
    top.kept[row] = chosen
    top.tied[row] = 0


# The first _FIRST_READ * k values give a bound that most of the others do not reach.
_FIRST_READ = 8
_BUCKETS = 512
# Three mantissa bits per bucket: eight buckets per octave, so that the last one adds few values beyond k.
_SHIFT = 49


@compiled
def _largest(nodes, values, count, k):
    """Return indices of at least the k largest of ``values[:count]``, descending; equal values by node."""
    order = np.empty(count, dtype=np.int64)
    some = min(count, _FIRST_READ * k)
    for i in range(some):
        order[i] = i
    found = count
    if count > k:
        # The bits of positive floats have the same order as the floats.
        bits = values.view(np.int64)
        # Nodes near the root come first and have most of the mass: few others reach their k-th value.
        bound = _bound(bits, order[:some], k)
        found = 0
        for i in range(count):
            order[found] = i
            found += bits[i] >= bound
        if found > 2 * k:
            bound = _bound(bits, order[:found], k)
            passed = found
            found = 0
            for i in range(passed):
                order[found] = order[i]
                found += bits[order[i]] >= bound
    order = order[:found]
    _sort_descending(order, nodes, values)
    return order


@compiled
def _bound(bits, order, k):
    """Return a bound that at least k of the bits in ``order`` reach, and few more, by a histogram."""
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
    """Sort in place by Shell sort, since rows are short and it compiles quickly."""
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


@compiled
def push_back(adjacency, starts, residual, influence, marks, continuation, bound):
    """Push residuals back along the edges until none of the nodes reached has more than ``bound``.

    Let g(i) = sum over u of pi_i(u) w(u), the mass that root i puts on nodes of weight w, and let the caller
    add w to ``residual`` float64 (n,). Then for every i

        influence(i) + sum over j of pi_i(j) residual(j)  =  its previous value  +  g(i),

    and since pi_i sums to one, the second term is at most the largest residual. ``starts`` are the nodes
    whose residual was raised; ``marks`` uint8 (n,) is zero before and after. Returns the nodes whose
    influence grew, in the order in which they were first reached.
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
        if amount <= bound:
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
            first, last, near_patched = row_of(indptr, rows, patch_indptr, near)
            strength, weight = np.float64(last - first), 1.0
            if has_weights:
                strength = row_strength(patch_weights if near_patched else weights, first, last)
                weight = np.float64(patch_weights[edge] if patched else weights[edge])
            residual[near] += continuation * amount * weight / strength
            if residual[near] > bound and marks[near] & 1 == 0:
                marks[near] |= 1
                queue.append(near)
    for node in grown:
        marks[node] = 0
    return np.array(grown)
