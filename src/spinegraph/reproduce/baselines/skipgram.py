"""Skip-gram (word2vec) for baselines that embed nodes from walks."""

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.skipgram import train_hierarchical, train_negative

_URN = 1_000_000  # places that nodes share in proportion to count^0.75, as in word2vec


def skip_gram(
    walks: NDArray[Any],
    num_nodes: int,
    *,
    dim: int = 200,
    window: int = 5,
    epochs: int = 5,
    rate: float = 0.025,
    negatives: int = 0,
    seed: Any = 0,
) -> NDArray[np.float32]:
    """Return float32 vectors (num_nodes, dim) of the nodes on ``walks`` (w, length).

    word2vec's own settings: a window of random size up to ``window`` around each centre, plain gradient
    steps one pair at a time, their rate falling linearly from ``rate`` to a 250th of it. One thread, so the
    same seed gives the same vectors.

    Parameters
    ----------
    walks : int array (w, length)
        -1 from where a walk ends early.
    negatives : int
        Samples by count^0.75 for each pair; 0 for hierarchical softmax.

    Examples
    --------
    >>> skip_gram(np.array([[0, 1, 0, 1]]), 3, dim=4).shape
    (3, 4)
    """
    rng = np.random.default_rng(seed)
    counts = np.bincount(walks[walks >= 0].ravel(), minlength=num_nodes)
    vectors = ((rng.random((num_nodes, dim)) - 0.5) / dim).astype(np.float32)
    if negatives:
        others = np.zeros((num_nodes, dim), dtype=np.float32)
        ladder = np.cumsum(counts**0.75)
        at = (np.arange(_URN) + 0.5) / _URN * ladder[-1]
        urn = np.minimum(np.searchsorted(ladder, at, side="right"), num_nodes - 1).astype(np.int32)
    else:
        others = np.zeros((max(num_nodes - 1, 1), dim), dtype=np.float32)
        codes, inner, depths = huffman(counts)
    for epoch in range(epochs):
        shuffled = walks[rng.permutation(len(walks))]
        span = (rate * (1 - epoch / epochs), rate * (1 - (epoch + 1) / epochs))
        if negatives:
            train_negative(shuffled, vectors, others, urn, negatives, window, span, rate / 250, rng)
        else:
            train_hierarchical(shuffled, vectors, others, codes, inner, depths, window, span, rate / 250, rng)
    return vectors


def huffman(counts: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the Huffman code of each node: bits (n, h), inner nodes passed (n, h), code lengths (n,).

    Examples
    --------
    >>> huffman(np.array([5, 1, 1]))[2]
    array([1, 2, 2])
    """
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
