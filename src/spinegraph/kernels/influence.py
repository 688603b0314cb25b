"""How far a change at some nodes reaches the rooted PageRank of others, by pushing against the walk."""

import numpy as np

from spinegraph.kernels.compiled import compiled
from spinegraph.kernels.rows import row_of, row_strength


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
