"""Skip-gram and the second-order walks of node2vec, for the baseline of the same name."""

import numpy as np

from spinegraph.kernels.runtime import compiled


@compiled
def second_order_walks(indptr, indices, roots, walk_length, back, away, rng):
    """Walk from each root, int32 (r, walk_length); -1 after a root without neighbours.

    Having come from t to v, a neighbour x of v is taken with weight ``back`` if it is t, 1 if it is a
    neighbour of t, and ``away`` otherwise: drawn evenly and refused in proportion, so no table is built.
    """
    most = max(back, max(away, 1.0))
    walks = np.full((len(roots), walk_length), -1, dtype=np.int32)
    for number in range(len(roots)):
        node = roots[number]
        before = -1
        walks[number, 0] = node
        start, stop = indptr[node], indptr[node + 1]
        for position in range(1, walk_length):
            if start == stop:
                break
            while True:
                drawn = indices[start + int(rng.random() * (stop - start))]
                if before < 0 or rng.random() * most < _weight(indptr, indices, before, drawn, back, away):
                    break
            before, node = node, drawn
            walks[number, position] = node
            start, stop = indptr[node], indptr[node + 1]
    return walks


@compiled
def _weight(indptr, indices, before, drawn, back, away):
    if drawn == before:
        return back
    low, high = indptr[before], indptr[before + 1]
    entry = low + np.searchsorted(indices[low:high], drawn)
    return 1.0 if entry < high and indices[entry] == drawn else away


@compiled(fastmath=True)
def train_negative(walks, vectors, contexts, urn, negatives, window, span, least, rng):
    """Tell each node of a window from ``negatives`` others, drawn evenly from ``urn``, int32 (u,)."""
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
                    drawn = urn[int(rng.random() * len(urn))]
                    if drawn != centre:
                        pair_step(vector, contexts[drawn], 0, rate, step)
                for axis in range(dim):
                    vector[axis] += step[axis]


@compiled(fastmath=True)
def pair_step(vector, other, target, rate, step):
    """Move ``other`` along the gradient of one decision, and add ``vector``'s own move to ``step``."""
    score = np.float32(0)
    for axis in range(len(vector)):
        score += vector[axis] * other[axis]
    pull = np.float32((target - 1 / (1 + np.exp(-score))) * rate)
    for axis in range(len(vector)):
        step[axis] += pull * other[axis]
        other[axis] += pull * vector[axis]
