"""Skip-gram with hierarchical softmax (word2vec), for baselines that embed nodes from walks."""

import heapq

import numba
import numpy as np


def skip_gram(walks, num_nodes, *, dim=200, window=5, epochs=5, rate=0.025, seed=0):
    """Return float32 vectors (num_nodes, dim) of the nodes on ``walks`` (w, length).

    word2vec's own settings: a window of random size up to ``window`` around each centre, plain gradient
    steps one pair at a time, their rate falling linearly from ``rate`` to a 250th of it. One thread, so the
    same seed gives the same vectors.
    """
    rng = np.random.default_rng(seed)
    codes, inner, depths = huffman(np.bincount(walks.ravel(), minlength=num_nodes))
    vectors = ((rng.random((num_nodes, dim)) - 0.5) / dim).astype(np.float32)
    inner_vectors = np.zeros((max(num_nodes - 1, 1), dim), dtype=np.float32)
    for epoch in range(epochs):
        shuffled = walks[rng.permutation(len(walks))]
        span = (rate * (1 - epoch / epochs), rate * (1 - (epoch + 1) / epochs))
        _train(shuffled, vectors, inner_vectors, codes, inner, depths, window, span, rate / 250, rng)
    return vectors


def huffman(counts):
    """Return the Huffman code of each node: bits (n, h), inner nodes passed (n, h), code lengths (n,)."""
    n = len(counts)
    heap = [(int(count), node) for node, count in enumerate(counts)]
    heapq.heapify(heap)
    parent = np.full(2 * n - 1, -1, dtype=np.int64)
    is_right = np.zeros(2 * n - 1, dtype=np.int8)
    for made in range(n, 2 * n - 1):
        (few, left), (more, right) = heapq.heappop(heap), heapq.heappop(heap)
        parent[left] = parent[right] = made
        is_right[right] = 1
        heapq.heappush(heap, (few + more, made))
    paths = []
    for node in range(n):
        bits, passed = [], []
        while parent[node] >= 0:
            bits.append(is_right[node])
            node = parent[node]
            passed.append(node - n)
        paths.append((bits, passed))
    depths = np.array([len(bits) for bits, _ in paths])
    codes = np.zeros((n, max(depths.max(), 1)), dtype=np.int8)
    inner = np.zeros(codes.shape, dtype=np.int64)
    for node, (bits, passed) in enumerate(paths):
        codes[node, : len(bits)], inner[node, : len(bits)] = bits, passed
    return codes, inner, depths


@numba.njit(cache=True, fastmath=True)
def _train(walks, vectors, inner_vectors, codes, inner, depths, window, span, least, rng):
    """Make one pass over the walks, changing both matrices in place."""
    length, dim = walks.shape[1], vectors.shape[1]
    step = np.zeros(dim, dtype=np.float32)
    for number in range(len(walks)):
        share = number / len(walks)
        rate = max(span[0] + (span[1] - span[0]) * share, least)
        walk = walks[number]
        for place in range(length):
            reach = 1 + int(rng.random() * window)
            centre = walk[place]
            for other in range(max(0, place - reach), min(length, place + reach + 1)):
                if other == place:
                    continue
                vector = vectors[walk[other]]
                step[:] = 0
                for level in range(depths[centre]):
                    decision = inner_vectors[inner[centre, level]]
                    score = np.float32(0)
                    for axis in range(dim):
                        score += vector[axis] * decision[axis]
                    chance = 1 / (1 + np.exp(-score))
                    pull = np.float32((1 - codes[centre, level] - chance) * rate)
                    for axis in range(dim):
                        step[axis] += pull * decision[axis]
                        decision[axis] += pull * vector[axis]
                for axis in range(dim):
                    vector[axis] += step[axis]
