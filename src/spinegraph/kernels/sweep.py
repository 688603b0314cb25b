"""Rounds that push every node, for eight roots side by side: cheaper once a root reaches most nodes.

``columns`` is a plain tuple of float64 arrays (n, 8), one column per root::

    value   what is assigned so far
    share   what each node gives, per unit of edge weight, in this round
    next    what it gives in the next
"""

import numpy as np

from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.rows import row_of, row_strength
from spinegraph.kernels.topk import keep_top

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
