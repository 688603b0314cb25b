"""Random walks: random streams, steps by edge weight, walks with and without restart, and node2vec."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.push import ROOM, write_row
from spinegraph.kernels.runtime import compiled, run_blocks
from spinegraph.kernels.sparse import row_of

# Stages, each with its own random streams.
ROOTED_WALKS, PLAIN_WALKS = 1, 2

GAMMA = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64, like the numbers below
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)
# Steps taken together: enough to hide memory latency, few enough to stay in the L1 cache.
_BATCH = 1600


def _mix(point):
    point = (point ^ (point >> _S30)) * _FIRST
    point = (point ^ (point >> _S27)) * _SECOND
    return point ^ (point >> _S31)


mix = compiled(_mix, inline="always")


def stream_starts(seed: int, stage: int, keys: ArrayLike) -> NDArray[np.uint64]:
    """Return the start of each key's random stream in a stage, uint64 (r,)."""
    key = np.atleast_1d(np.asarray(keys, dtype=np.uint64))
    start = np.full(key.shape, seed & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
    for part in (np.uint64(stage), key):
        start = _mix(start + GAMMA * np.atleast_1d(_mix(np.atleast_1d(part) + GAMMA)))
    return start


def plain_walks(
    adjacency: Adjacency,
    roots: NDArray[np.int64],
    walks: int,
    walk_length: int,
    seed: int,
    threads: int | None = None,
) -> NDArray[Any]:
    """Walk without restart, each step to a neighbour in proportion to edge weight.

    Draws depend on seed and root alone. Returns an array (r * walks, walk_length) with the dtype of the
    adjacency's indices: the walks of each root in turn, root first; one without neighbours is followed by -1.
    """
    tables, threads = alias_tables(adjacency, roots.size * walks * walk_length, threads)
    streams = stream_starts(seed, PLAIN_WALKS, roots)
    out = np.empty((roots.size * walks, walk_length), dtype=adjacency.indices.dtype)

    def task(start: int, stop: int) -> None:
        lines = out[start * walks : stop * walks]
        _plain_walks(adjacency, tables, roots[start:stop], streams[start:stop], walks, lines)

    run_blocks(task, roots.size, block=1024, threads=threads)
    return out


@compiled
def _plain_walks(adjacency, tables, roots, starts, walks, out):
    """Write walks without restart into ``out`` (r * walks, length); -1 after a root without neighbours."""
    length = out.shape[1]
    group = max(1, _BATCH // walks)
    nodes = np.empty(group * walks, dtype=out.dtype)
    streams = np.empty(group * walks, dtype=np.uint64)
    lines = np.empty(group * walks, dtype=np.int64)
    bits = np.empty(group * walks, dtype=np.uint32)
    for first in range(0, roots.size, group):
        count = 0
        for row in range(first, min(first + group, roots.size)):
            start, stop, _ = row_of(adjacency.indptr, adjacency.rows, adjacency.patch_indptr, roots[row])
            for walk in range(walks):
                line = row * walks + walk
                out[line, 0] = roots[row]
                if start == stop:
                    out[line, 1:] = -1
                    continue
                nodes[count] = roots[row]
                streams[count] = starts[row] + GAMMA * np.uint64(walk * length)
                lines[count] = line
                count += 1
        for position in range(1, length):
            for i in range(count):
                streams[i] += GAMMA
                bits[i] = mix(streams[i]) >> _S32
            take_steps(adjacency, tables, nodes, bits, count)
            for i in range(count):
                out[lines[i], position] = nodes[i]


class AliasTables(NamedTuple):
    """For every edge, a threshold in the low 32 bits, and in the high ones the alternative edge."""

    filled: NDArray[np.uint8]  # (n,) whether a row is filled; empty without weights
    base: NDArray[np.uint64]  # one entry per weight of the adjacency
    patch: NDArray[np.uint64]


def alias_tables(adjacency: Adjacency, visits: int, threads: int | None) -> tuple[AliasTables, int | None]:
    """Return the tables for about ``visits`` steps, and the number of threads that may use them.

    For many visits, every row is filled at once, then only read. For few, one thread fills rows as it reaches
    them, so that other rows take no memory.
    """
    filled = np.zeros(adjacency.num_nodes if adjacency.has_weights else 0, dtype=np.uint8)
    sizes = adjacency.weights.size, adjacency.patch_weights.size
    tables = AliasTables(filled, *(np.empty(size, dtype=np.uint64) for size in sizes))
    if adjacency.has_weights and visits < adjacency.indices.size:
        return tables, 1
    if adjacency.has_weights:
        fill = partial(_fill_rows, adjacency, tables)
        run_blocks(fill, adjacency.num_nodes, block=1 << 14, threads=threads)
    return tables, threads


@compiled
def _fill_rows(adjacency, tables, first, last):
    """Write the alias tables of the rows ``first .. last - 1``."""
    indptr, _, weights, rows, patch_indptr, _, patch_weights = adjacency
    filled, base, patch = tables
    for node in range(first, last):
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        if patched:
            _fill_row(patch_weights[start:stop], patch[start:stop])
        else:
            _fill_row(weights[start:stop], base[start:stop])
        filled[node] = 1


@compiled
def _fill_row(weights, table):
    """Fill one row's table in one pass: the current heavy edge fills up light ones (Walker's alias method).

    ``rest`` is the weight left of the heavy edge; once that is light too, the next heavy edge fills it up.
    """
    if weights.size == 0:
        return
    total = 0.0
    for edge in range(weights.size):
        total += np.float64(weights[edge])
        table[edge] = (np.uint64(edge) << _S32) | _LOW
    mean = total / weights.size
    light = _next(weights, 0, mean, False)
    heavy = _next(weights, 0, mean, True)
    rest = np.float64(weights[heavy]) if heavy < weights.size else 0.0
    while heavy < weights.size:
        if rest > mean:
            if light == weights.size:
                return
            weight = np.float64(weights[light])
            table[light] = _entry(weight / mean, heavy)
            rest -= mean - weight
            light = _next(weights, light + 1, mean, False)
        else:
            following = _next(weights, heavy + 1, mean, True)
            if following == weights.size:
                return
            table[heavy] = _entry(rest / mean, following)
            rest += np.float64(weights[following]) - mean
            heavy = following


@compiled
def _next(weights, edge, mean, heavy):
    """Return the first edge from ``edge`` on that is heavier than the mean, or is not, as ``heavy`` says."""
    while edge < weights.size and (weights[edge] > mean) != heavy:
        edge += 1
    return edge


@compiled
def _entry(share, other):
    return (np.uint64(other) << _S32) | np.uint64(min(max(share, 0.0) * 2.0**32, 2.0**32 - 1.0))


@compiled
def take_steps(adjacency, tables, nodes, bits, count):
    """Replace each of ``nodes[:count]`` by the neighbour that its 32 bits select; each must have one."""
    if tables.filled.size > 0:
        _step_by_weight(adjacency, tables, nodes, bits, count)
    else:
        _step_evenly(adjacency, nodes, bits, count)


@compiled
def _step_evenly(adjacency, nodes, bits, count):
    indptr, indices, _, rows, patch_indptr, patch_indices, _ = adjacency
    for i in range(count):
        # Unsigned, since a signed index costs a test for negative values, which matters here.
        start, stop, patched = row_of(indptr, rows, patch_indptr, np.uint64(nodes[i]))
        edge = np.uint64(start) + ((np.uint64(bits[i]) * np.uint64(stop - start)) >> _S32)
        nodes[i] = patch_indices[edge] if patched else indices[edge]


@compiled
def _step_by_weight(adjacency, tables, nodes, bits, count):
    indptr, indices, _, rows, patch_indptr, patch_indices, _ = adjacency
    filled, base, patch = tables
    empty = 0
    for i in range(count):
        empty += 1 - filled[np.uint64(nodes[i])]
    # In a separate loop, since a call inside the loop of steps would slow every step.
    if empty > 0:
        for i in range(count):
            if filled[nodes[i]] == 0:
                _fill_rows(adjacency, tables, nodes[i], nodes[i] + 1)
    for i in range(count):
        node = np.uint64(nodes[i])
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        # The high half of the product selects an edge, the low half serves as a second draw.
        product = np.uint64(bits[i]) * np.uint64(stop - start)
        edge = np.uint64(start) + (product >> _S32)
        if patched:
            nodes[i] = patch_indices[_or_other(patch[edge], product & _LOW, np.uint64(start), edge)]
        else:
            nodes[i] = indices[_or_other(base[edge], product & _LOW, np.uint64(start), edge)]


@compiled
def _or_other(entry, draw, start, edge):
    # All ones if below: a branch on an entry that is not loaded yet would delay the next steps.
    below = np.uint64((np.int64(draw) - np.int64(entry & _LOW)) >> 63)
    other = start + (entry >> _S32)
    return other ^ ((edge ^ other) & below)


class _Plan(NamedTuple):
    """Steps of several roots' walks, one after another, and the active walks."""

    bits: NDArray[np.uint32]  # random bits that select each step's neighbour
    leaves_root: NDArray[np.uint8]
    visits: NDArray[Any]  # node that each step reaches
    steps: NDArray[np.int64]  # of active walks: the step to take, the node, the bits
    nodes: NDArray[Any]
    draws: NDArray[np.uint32]


@compiled
def walk_roots(adjacency, tables, roots, starts, walks, walk_length, threshold, top, tied_nodes):
    """Count visits of rooted walks, and write the k most visited nodes of each root into its row of ``top``.

    ``starts`` (r,) are the roots' random streams; a walk continues if 32 random bits are below ``threshold``,
    else it returns to the root. For ``top`` and ``tied_nodes`` see ``keep_top``.
    """
    most = walks * (walk_length - 1)
    group = max(1, _BATCH // max(most, 1))
    size = group * most + 1
    plan = _Plan(
        np.empty(size, dtype=np.uint32),
        np.empty(size, dtype=np.uint8),
        np.empty(size, dtype=adjacency.indices.dtype),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=adjacency.indices.dtype),
        np.empty(size, dtype=np.uint32),
    )
    ends = np.empty(group, dtype=np.int64)
    counter = new_counter(walks * walk_length, adjacency.indices)
    for first in range(0, roots.size, group):
        last = min(first + group, roots.size)
        under_way = 0
        steps = 0
        for row in range(first, last):
            root = roots[row]
            start, stop, _ = row_of(adjacency.indptr, adjacency.rows, adjacency.patch_indptr, root)
            # A root without neighbours never leaves; no other node without neighbours can be reached.
            if stop > start:
                steps, under_way = _draw(
                    plan, root, starts[row], walks, walk_length, threshold, steps, under_way
                )
            ends[row - first] = steps
        plan.leaves_root[steps] = 1
        _advance(adjacency, tables, plan, under_way)
        steps = 0
        for row in range(first, last):
            seen = plan.visits[steps : ends[row - first]]
            count_visits(counter, roots[row], walks * walk_length, seen, row, top, tied_nodes)
            steps = ends[row - first]


@compiled
def _draw(plan, root, stream, walks, walk_length, threshold, steps, under_way):
    """Draw which steps of one root's walks continue or return; return (steps, under_way) including these."""
    bits, leaves_root, _, at, nodes, _ = plan
    for _ in range(walks):
        leaves = np.int64(1)
        for _ in range(walk_length - 1):
            stream += GAMMA
            draw = mix(stream)
            goes = np.int64((draw >> _S32) < threshold)
            bits[steps] = draw & _LOW
            leaves_root[steps] = leaves
            at[under_way] = steps
            nodes[under_way] = root
            under_way += goes & leaves
            steps += goes
            leaves = 1 - goes
    return steps, under_way


@compiled
def _advance(adjacency, tables, plan, under_way):
    """Take every planned step: first steps from the root, then second ones, until none is left."""
    bits, leaves_root, visits, at, nodes, draws = plan
    while under_way > 0:
        for i in range(under_way):
            draws[i] = bits[at[i]]
        take_steps(adjacency, tables, nodes, draws, under_way)
        ahead = np.int64(0)
        for i in range(under_way):
            step = at[i]
            visits[step] = nodes[i]
            at[ahead] = step + 1
            nodes[ahead] = nodes[i]
            ahead += 1 - np.int64(leaves_root[step + 1])
        under_way = ahead


class VisitCounter(NamedTuple):
    """A hash table from node to visits, and workspace to sort them."""

    keys: NDArray[Any]  # -1 if empty
    counts: NDArray[np.int32]
    shift: int
    found: NDArray[np.int64]  # table entries in the order of first visits
    sizes: NDArray[np.int64]  # number of nodes by number of visits
    nodes: NDArray[Any]  # sorted
    visits: NDArray[np.int32]


@compiled
def new_counter(positions, like):
    """Return an empty counter for one root's ``positions``, with nodes of the dtype of ``like``."""
    bits = 8
    while (1 << bits) < 4 * positions:
        bits += 1
    return VisitCounter(
        np.full(1 << bits, -1, dtype=like.dtype),
        np.zeros(1 << bits, dtype=np.int32),
        64 - bits,
        np.empty(positions + 1, dtype=np.int64),
        np.zeros(positions + 1, dtype=np.int64),
        np.empty(positions + 1, dtype=like.dtype),
        np.empty(positions + 1, dtype=np.int32),
    )


@compiled
def count_visits(counter, root, positions, seen, row, top, tied_nodes):
    """Keep the k most visited nodes; positions not in ``seen`` are at the root.

    Equal counts are ordered by first visit. For ``top`` and ``tied_nodes`` see ``keep_top``.
    """
    distinct = _tally(counter, root, positions, seen)
    _sort(counter, distinct)
    nodes, visits = counter.nodes, counter.visits
    k = top.nodes.shape[1]
    write_row(nodes, visits, distinct, positions, row, top)
    if distinct > k and visits[k] == visits[k - 1]:
        above = k - 1
        while above > 0 and visits[above - 1] == visits[k]:
            above -= 1
        stop = k + 1
        while stop < distinct and visits[stop] == visits[k]:
            stop += 1
        top.kept[row] = above
        if stop <= ROOM * k:
            top.tied[row] = stop - above
            for i in range(above, stop):
                tied_nodes[row, i - above] = nodes[i]
        elif above == 0:
            # Dropping the group would leave the row empty, so it gets the root alone.
            top.tied[row] = 1
            tied_nodes[row, 0] = root


@compiled
def _tally(counter, root, positions, seen):
    """Count visits in the hash table; return the number of distinct nodes."""
    keys, counts, bits, found, _, _, _ = counter
    shift = np.uint64(bits)
    mask = np.uint64(keys.size - 1)
    entry = (np.uint64(root) * GAMMA) >> shift
    keys[entry] = root
    counts[entry] = positions - seen.size
    found[0] = entry
    distinct = 1
    for i in range(seen.size):
        node = seen[i]
        entry = (np.uint64(node) * GAMMA) >> shift
        key = keys[entry]
        while key != node and key >= 0:
            entry = (entry + np.uint64(1)) & mask
            key = keys[entry]
        keys[entry] = node
        counts[entry] += 1
        found[distinct] = entry
        distinct += key < 0
    return distinct


@compiled
def _sort(counter, distinct):
    """Sort the distinct nodes by count, descending, and empty the table."""
    keys, counts, _, found, sizes, nodes, visits = counter
    most = 0
    for i in range(distinct):
        count = counts[found[i]]
        sizes[count] += 1
        most = max(most, count)
    start = 0
    for count in range(most, 0, -1):
        size = sizes[count]
        sizes[count] = start
        start += size
    for i in range(distinct):
        entry = found[i]
        count = counts[entry]
        target = sizes[count]
        sizes[count] = target + 1
        nodes[target] = keys[entry]
        visits[target] = count
        keys[entry] = -1
        counts[entry] = 0
    sizes[: most + 1] = 0


@compiled
def uniform_walks(indptr, indices, roots, walk_length, rng):
    """Return uniform walks from each root, int32 (r, walk_length); -1 after a root without neighbours."""
    walks = np.full((len(roots), walk_length), -1, dtype=np.int32)
    for number in range(len(roots)):
        node = roots[number]
        walks[number, 0] = node
        for position in range(1, walk_length):
            start, stop = indptr[node], indptr[node + 1]
            if start == stop:
                break
            node = indices[start + int(rng.random() * (stop - start))]
            walks[number, position] = node
            if position > 1:
                rng.random()  # one more draw, as with p and q, so that stored baselines stay valid
    return walks


@compiled(fastmath=True)
def train_negative(walks, vectors, contexts, noise_table, negatives, window, span, least, rng):
    """Train each node of a window against ``negatives`` others, drawn from ``noise_table``, int32 (u,)."""
    length, dim = walks.shape[1], vectors.shape[1]
    step = np.zeros(dim, dtype=np.float32)
    for number in range(len(walks)):
        rate = max(span[0] + (span[1] - span[0]) * number / len(walks), least)
        walk = walks[number]
        for position in range(length):
            centre = walk[position]
            if centre < 0:
                break
            reach = 1 + int(rng.random() * window)
            for other in range(max(0, position - reach), min(length, position + reach + 1)):
                if other == position or walk[other] < 0:
                    continue
                vector = vectors[walk[other]]
                step[:] = 0
                pair_step(vector, contexts[centre], 1, rate, step)
                for _ in range(negatives):
                    drawn = noise_table[int(rng.random() * len(noise_table))]
                    if drawn != centre:
                        pair_step(vector, contexts[drawn], 0, rate, step)
                for axis in range(dim):
                    vector[axis] += step[axis]


@compiled(fastmath=True)
def pair_step(vector, other, target, rate, step):
    """Move ``other`` along the gradient of one pair's loss, and add the move of ``vector`` to ``step``."""
    score = np.float32(0)
    for axis in range(len(vector)):
        score += vector[axis] * other[axis]
    pull = np.float32((target - 1 / (1 + np.exp(-score))) * rate)
    for axis in range(len(vector)):
        step[axis] += pull * other[axis]
        other[axis] += pull * vector[axis]
