"""Steps of a lazy walk: one step for all nodes and many columns, and whole walks from a few roots.

A node v of strength s passes weight w / (s + l) to a neighbour over an edge of weight w, and l / (s + l) to
itself. ``loops`` contains l for every node; a node without neighbours keeps everything.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.runtime import compiled
from spinegraph.kernels.sparse import row_of


@compiled(fastmath={"contract"})
def _add_rows(indices, weights, weighted, first, last, values, total):
    """Add the values (n, d) of a row's neighbours, times edge weights, to total (d,)."""
    for edge in range(first, last):
        source = values[indices[edge]]
        if weighted:
            weight = weights[edge]
            for column in range(total.size):
                total[column] += weight * source[column]
        else:
            for column in range(total.size):
                total[column] += source[column]


@compiled(fastmath={"contract"})
def step(adjacency, inverse, loops, values, added, previous, rates, start, stop, out):
    """Write rows ``start`` to ``stop`` of a P values + b added + c previous into ``out``; rates: (a, b, c).

    ``values``, ``added``, ``previous`` and ``out`` are (n, d); ``out`` may be ``previous``. ``inverse`` (n,)
    is 1 / (s + l), 0 for a node without neighbours.
    """
    indptr, indices, weights, rows, patch_indptr, patch_indices, patch_weights = adjacency
    weighted = weights.size + patch_weights.size > 0
    width = values.shape[1]
    total = np.empty(width, dtype=np.float32)
    move, stay, back = np.float32(rates[0]), np.float32(rates[1]), np.float32(rates[2])
    for node in range(start, stop):
        first, last, patched = row_of(indptr, rows, patch_indptr, node)
        loop = loops[node] if inverse[node] > 0 else np.float32(1.0)
        for column in range(width):
            total[column] = loop * values[node, column]
        if patched:
            _add_rows(patch_indices, patch_weights, weighted, first, last, values, total)
        else:
            _add_rows(indices, weights, weighted, first, last, values, total)
        scale = move * (inverse[node] if inverse[node] > 0 else np.float32(1.0))
        for column in range(width):
            out[node, column] = (
                scale * total[column] + stay * added[node, column] + back * previous[node, column]
            )


@compiled(fastmath={"contract"})
def solve_for(indptr, indices, weights, inverse, loops, root, value, continuation, factors, values):
    """Iterate like ``step`` from a value at one node, and return the values (n,) of all nodes.

    ``factors`` are those of the Chebyshev iteration; ``values`` (2, n) is workspace.
    """
    weighted = weights.size > 0
    values[:] = 0.0
    values[0, root] = values[1, root] = value
    now = 0
    for number in range(factors.size):
        move = np.float32(factors[number] * continuation)
        stay = np.float32(factors[number] * (1 - continuation)) * value
        back = np.float32(1 - factors[number])
        source, out = values[now], values[1 - now]
        for node in range(inverse.size):
            is_alone = inverse[node] <= 0
            total = source[node] if is_alone else loops[node] * source[node]
            if weighted:
                for edge in range(indptr[node], indptr[node + 1]):
                    total += weights[edge] * source[indices[edge]]
            else:
                for edge in range(indptr[node], indptr[node + 1]):
                    total += source[indices[edge]]
            scale = move if is_alone else move * inverse[node]
            out[node] = scale * total + back * out[node]
        out[root] += stay
        now = 1 - now
    return values[now]


class Walkers(NamedTuple):
    """Workspace for the walks from one root: dense over the nodes, with lists of the nodes in use."""

    value: NDArray[np.float64]  # (n,) share of walkers that stopped there
    residual: NDArray[np.float64]  # (2, n) walkers at each node, now and after the step
    reached: NDArray[np.int64]  # (n,) nodes with a value
    active: NDArray[np.int64]  # (2, n) nodes with walkers


def new_walkers(n: int) -> Walkers:
    """Return empty workspace for a graph of n nodes; pages that no walk reaches take no memory."""
    return Walkers(np.zeros(n), np.zeros((2, n)), np.empty(n, np.int64), np.empty((2, n), np.int64))


@compiled
def walk_from(adjacency, inverse, loops, root, continuation, least, walkers):
    """Let walkers stop with probability 1 - continuation at every node they reach, else step on.

    If fewer than ``least`` per neighbour are at a node, all stop. Returns the number of nodes with a value,
    and the share of walkers that stopped early: no sum over the values has a larger error than twice that.
    """
    value, residual, reached, active = walkers
    weighted = adjacency.weights.size + adjacency.patch_weights.size > 0
    now, count, early = 0, np.int64(0), 0.0
    residual[0, root] = 1.0
    active[0, 0] = root
    waiting = np.int64(1)
    while waiting > 0:
        after = np.int64(0)
        for i in range(waiting):
            node = active[now, i]
            rest = residual[now, node]
            residual[now, node] = 0.0
            first, last, patched = row_of(adjacency.indptr, adjacency.rows, adjacency.patch_indptr, node)
            if value[node] == 0.0:
                reached[count] = node
                count += 1
            if inverse[node] <= 0 or rest <= least * (last - first):
                value[node] += rest
                if inverse[node] > 0:
                    early += rest
                continue
            value[node] += (1.0 - continuation) * rest
            indices = adjacency.patch_indices if patched else adjacency.indices
            weights = adjacency.patch_weights if patched else adjacency.weights
            share = continuation * rest * np.float64(inverse[node])
            if loops[node] > 0:
                if residual[1 - now, node] == 0.0:
                    active[1 - now, after] = node
                    after += 1
                residual[1 - now, node] += share * np.float64(loops[node])
            for edge in range(first, last):
                other = indices[edge]
                if weighted and weights[edge] == 0:  # an edge in the other direction
                    continue
                if residual[1 - now, other] == 0.0:
                    active[1 - now, after] = other
                    after += 1
                residual[1 - now, other] += share * np.float64(weights[edge]) if weighted else share
        now, waiting = 1 - now, after
    return count, early * continuation


@compiled
def walks_from(adjacency, inverse, loops, roots, continuation, least, walkers, indptr, indices, data, early):
    """Append the values of some roots as rows of a CSR matrix; return how many roots fit.

    Rows go to ``indptr`` (r + 1,), ``indices`` and ``data``, which may be too small for all of them.
    """
    for row in range(roots.size):
        count, left = walk_from(adjacency, inverse, loops, roots[row], continuation, least, walkers)
        begin = indptr[row]
        fits = begin + count <= indices.size
        found = np.sort(walkers.reached[:count])
        for i in range(count):
            if fits:
                indices[begin + i] = found[i]
                data[begin + i] = walkers.value[found[i]]
            walkers.value[found[i]] = 0.0
        if not fits:
            return row
        indptr[row + 1] = begin + count
        early[row] = left
    return roots.size
