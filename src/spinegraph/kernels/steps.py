"""One step of a walk: a neighbour in proportion to edge weight, from 32 random bits.

Without weights that is one multiplication. With weights it is one look into the row's alias table, which is
filled in when the row is first visited, so that a walk from ten roots never reads the whole graph.

``tables`` is a plain tuple, all empty for a graph without weights::

    filled       uint8 (n,)  1 where the node's row is filled in
    base, patch  uint64      beside ``weights`` and ``patch_weights`` of the adjacency

An edge's entry holds a threshold in its low 32 bits and the number, within the row, of another edge in its
high ones: the edge itself is taken when 32 random bits are below the threshold, else the other.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.threads import run_blocks

Tables = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
_LOW = np.uint64(0xFFFFFFFF)
_S32 = np.uint64(32)


def alias_rows(adjacency: Adjacency, visits: int, threads: int | None) -> tuple[Tables, int | None]:
    """Make the tables for about ``visits`` steps, and say on how many threads they may be taken.

    Many visits: every row is filled in at once, then only read. Few: rows are filled in as one thread
    comes by, and memory is claimed only there.
    """
    tables = (
        np.zeros(adjacency.num_nodes if adjacency.has_weights else 0, dtype=np.uint8),
        np.empty(adjacency.weights.size, dtype=np.uint64),
        np.empty(adjacency.patch_weights.size, dtype=np.uint64),
    )
    if not adjacency.has_weights:
        return tables, threads
    if visits < adjacency.indices.size:
        return tables, 1

    def fill(first: int, last: int) -> None:
        fill_rows(tuple(adjacency), tables, first, last)

    run_blocks(fill, adjacency.num_nodes, block=1 << 14, threads=threads)
    return tables, threads


@compiled
def fill_rows(adjacency, tables, first, last):
    """Write the alias tables of the rows ``first .. last - 1``."""
    indptr, _, weights, rows, patch_indptr, _, patch_weights = adjacency
    filled, base, patch = tables
    for node in range(first, last):
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        if patched:
            _fill(patch_weights[start:stop], patch[start:stop])
        else:
            _fill(weights[start:stop], base[start:stop])
        filled[node] = 1


@compiled
def _fill(weights, table):
    """Write one row's table in one sweep: light edges are topped up by the current heavy one.

    ``rest`` is what the heavy edge still has; once that is light too, the next heavy edge tops it up.
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
    """Return the first edge from ``edge`` on that is heavier than the mean, or that is not."""
    while edge < weights.size and (weights[edge] > mean) != heavy:
        edge += 1
    return edge


@compiled
def _entry(share, other):
    return (np.uint64(other) << _S32) | np.uint64(min(max(share, 0.0) * 2.0**32, 2.0**32 - 1.0))


@compiled
def take_steps(adjacency, tables, nodes, bits, count):
    """Replace each of ``nodes[:count]`` by the neighbour that its 32 bits choose; each must have one."""
    if tables[0].size > 0:
        _step_by_weight(adjacency, tables, nodes, bits, count)
    else:
        _step_evenly(adjacency, nodes, bits, count)


@compiled
def _step_evenly(adjacency, nodes, bits, count):
    indptr, indices, _, rows, patch_indptr, patch_indices, _ = adjacency
    for i in range(count):
        # Unsigned: a signed index costs a test for counting from the end, and here it shows.
        start, stop, patched = row_of(indptr, rows, patch_indptr, np.uint64(nodes[i]))
        edge = np.uint64(start) + ((np.uint64(bits[i]) * np.uint64(stop - start)) >> _S32)
        if patched:
            nodes[i] = patch_indices[edge]
        else:
            nodes[i] = indices[edge]


@compiled
def _step_by_weight(adjacency, tables, nodes, bits, count):
    indptr, indices, _, rows, patch_indptr, patch_indices, _ = adjacency
    filled, base, patch = tables
    empty = 0
    for i in range(count):
        empty += 1 - filled[np.uint64(nodes[i])]
    # Apart from the steps: a call inside their loop would slow every one of them.
    if empty > 0:
        for i in range(count):
            if filled[nodes[i]] == 0:
                fill_rows(adjacency, tables, nodes[i], nodes[i] + 1)
    for i in range(count):
        node = np.uint64(nodes[i])
        start, stop, patched = row_of(indptr, rows, patch_indptr, node)
        # The high half of the product chooses an edge, the low half stands for a second draw.
        product = np.uint64(bits[i]) * np.uint64(stop - start)
        edge = np.uint64(start) + (product >> _S32)
        if patched:
            nodes[i] = patch_indices[_or_other(patch[edge], product & _LOW, np.uint64(start), edge)]
        else:
            nodes[i] = indices[_or_other(base[edge], product & _LOW, np.uint64(start), edge)]


@compiled
def _or_other(entry, draw, start, edge):
    # All ones when below: a branch on an entry that is still on its way would hold up the steps after it.
    below = np.uint64((np.int64(draw) - np.int64(entry & _LOW)) >> 63)
    other = start + (entry >> _S32)
    return other ^ ((edge ^ other) & below)
