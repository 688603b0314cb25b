"""Skip-gram by plain gradient steps, one pair at a time: hierarchical softmax or negative samples.

Both walk ``walks`` (w, length) once, up to the first -1 of each, with a window of random size around each
node, and change the matrices in place. ``span`` is the rate at the first and after the last walk.
"""

import numpy as np

from spinegraph.kernels.compiled import compiled


@compiled(fastmath=True)
def train_hierarchical(walks, vectors, inner_vectors, codes, inner, depths, window, span, least, rng):
    """Predict each node of a window along its Huffman code: bits and inner nodes passed (n, h), lengths."""
    length, dim = walks.shape[1], vectors.shape[1]
    step = np.zeros(dim, dtype=np.float32)
    for number in range(len(walks)):
        rate = max(span[0] + (span[1] - span[0]) * number / len(walks), least)
        walk = walks[number]
        for place in range(length):
            centre = walk[place]
            if centre < 0:
                break
            reach = 1 + int(rng.random() * window)
            for other in range(max(0, place - reach), min(length, place + reach + 1)):
                if other == place or walk[other] < 0:
                    continue
                vector = vectors[walk[other]]
                step[:] = 0
                for level in range(depths[centre]):
                    pair_step(
                        vector, inner_vectors[inner[centre, level]], 1 - codes[centre, level], rate, step
                    )
                for axis in range(dim):
                    vector[axis] += step[axis]


@compiled(fastmath=True)
def train_negative(walks, vectors, contexts, urn, negatives, window, span, least, rng):
    """Tell each node of a window from ``negatives`` others, drawn evenly from ``urn``, int32 (u,)."""
    length, dim = walks.shape[1], vectors.shape[1]
    step = np.zeros(dim, dtype=np.float32)
    for number in range(len(walks)):
        rate = max(span[0] + (span[1] - span[0]) * number / len(walks), least)
        walk = walks[number]
        for place in range(length):
            centre = walk[place]
            if centre < 0:
                break
            reach = 1 + int(rng.random() * window)
            for other in range(max(0, place - reach), min(length, place + reach + 1)):
                if other == place or walk[other] < 0:
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
