"""Kernels of the paper's baselines."""

import numpy as np

from spinegraph.kernels.runtime import compiled


@compiled
def ring_runs(indptr, indices, degrees, depth, compressed):
    """Ordered degrees of the nodes exactly 0 .. depth - 1 hops from each node.

    Returns ``starts`` (n * depth + 1,), and values and counts at ``starts[node * depth + hop]`` onwards:
    equal degrees as one run if ``compressed``, else one by one.
    """
    n = len(indptr) - 1
    starts = np.zeros(n * depth + 1, dtype=np.int64)
    values, counts = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    filled = 0
    for node in range(n):
        queue[0], seen[node] = node, node
        first, last = 0, 1
        for hop in range(depth):
            ring = np.sort(degrees[queue[first:last]])
            if filled + len(ring) > len(values):
                room = np.empty(len(values) + len(ring), dtype=np.int64)
                values, counts = np.concatenate((values, room)), np.concatenate((counts, room))
            begun = filled
            for degree in ring:
                if compressed and filled > begun and values[filled - 1] == degree:
                    counts[filled - 1] += 1
                else:
                    values[filled], counts[filled] = degree, 1
                    filled += 1
            starts[node * depth + hop + 1] = filled
            end = last
            for place in range(first, end):
                for edge in range(indptr[queue[place]], indptr[queue[place] + 1]):
                    other = indices[edge]
                    if seen[other] != node:
                        seen[other] = node
                        queue[last] = other
                        last += 1
            first = end
    return starts, values[:filled].copy(), counts[:filled].copy()


@compiled
def summed_warping(starts, degrees, counts, depth, pairs, found):
    """Write f_k of each pair, its rings' DTW distances summed over hops 0 to k, into ``found`` (p, depth).

    ``degrees`` and ``counts`` are float64; inf from the first hop on at which either node has no ring.
    """
    for number in range(len(pairs)):
        total = 0.0
        found[number] = np.inf
        for hop in range(depth):
            a, b = pairs[number, 0] * depth + hop, pairs[number, 1] * depth + hop
            if starts[a] == starts[a + 1] or starts[b] == starts[b + 1]:
                break
            one, two = slice(starts[a], starts[a + 1]), slice(starts[b], starts[b + 1])
            total += _warping(degrees[one], counts[one], degrees[two], counts[two])
            found[number, hop] = total


@compiled
def _warping(first, first_counts, second, second_counts):
    """DTW distance of two sequences of degrees that each stand for some equal ones."""
    above = np.full(len(second) + 1, np.inf)
    above[0] = 0.0
    here = np.empty(len(second) + 1)
    for i in range(len(first)):
        here[0] = np.inf
        for j in range(len(second)):
            cost = max(first[i], second[j]) / min(first[i], second[j]) - 1.0
            cost *= max(first_counts[i], second_counts[j])
            here[j + 1] = cost + min(above[j], above[j + 1], here[j])
        above, here = here, above
    return above[len(second)]


@compiled
def layered_walks(indptr, neighbors, ladders, up, roots, walk_length, stay, rng):
    """Walk within and between layers from layer 0, int64 (r, walk_length).

    ``ladders`` (depth, nnz) are weights summed along each row, ``up`` (depth, n) the chance of going up
    rather than down. A node without neighbours in layer 0 stays where it is.
    """
    depth = len(ladders)
    walks = np.empty((len(roots), walk_length), dtype=np.int64)
    for number in range(len(roots)):
        node, layer, place = roots[number], 0, 1
        walks[number, 0] = node
        while place < walk_length:
            start, stop = indptr[node], indptr[node + 1]
            if start == stop or ladders[0, stop - 1] == 0:
                walks[number, place:] = node
                break
            if rng.random() < stay:
                ladder = ladders[layer, start:stop]
                drawn = np.searchsorted(ladder, rng.random() * ladder[-1], side="right")
                node = neighbors[start + min(drawn, stop - start - 1)]
                walks[number, place] = node
                place += 1
            elif rng.random() < up[layer, node]:
                if layer + 1 < depth and ladders[layer + 1, stop - 1] > 0:
                    layer += 1
            elif layer > 0:
                layer -= 1
    return walks


@compiled
def vector_dtw(vectors, pairs, found):
    """Write the DTW distance of each pair of rows, local cost |a - b|, into ``found`` (m,)."""
    length = vectors.shape[1]
    above, here = np.empty(length + 1), np.empty(length + 1)
    for number in range(len(pairs)):
        first, second = vectors[pairs[number, 0]], vectors[pairs[number, 1]]
        above[:] = np.inf
        above[0] = 0.0
        for i in range(length):
            here[0] = np.inf
            for j in range(length):
                here[j + 1] = abs(first[i] - second[j]) + min(above[j], above[j + 1], here[j])
            above, here = here, above
        found[number] = above[length]
