"""Baselines without Torch: HOPE, struc2vec, and node2vec and struc2vec side by side.

HOPE (Ou et al., KDD 2016) with rooted PageRank: the singular vectors of S = (1 - b)(I - bP)^-1 by ARPACK,
which needs products with S alone: two sparse triangular solves. Half of the dimensions are a node's left
vector, half its right one, as in the paper. With b = 0.5, which the SPINE paper gives for its walks, HOPE has
65 % on Cora and 49 % on Citeseer; 0.99 was the best of six values on both networks' validation nodes.

struc2vec (Ribeiro, Saverese, Figueiredo, KDD 2017) with its three optimisations. First, rings are compared as
(degree, count) pairs. Second, in a graph of over 1,000 nodes a node is compared with those of nearest degree
only, ceil(log2 n) on each side. Third, there are no more than seven layers then. Small graphs compare every
pair at every layer up to the diameter. Walks and window are what the SPINE paper gives to all walk methods in
large graphs, 10 walks of 40 nodes and window 5; in small ones those of the authors' code, 80 nodes and window
10, which serve it better there and cost four times as much. Five passes over the walks, and two over 10,000
nodes.
"""

import heapq
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, eye_array, hstack, issparse
from scipy.sparse.linalg import LinearOperator, splu, svds

from paper.methods import Method, Score, transductive
from spinegraph.analysis.baselines import Embed, node2vec
from spinegraph.graph.graph import Graph
from spinegraph.kernels.runtime import compiled
from spinegraph.kernels.walks import pair_step
from spinegraph.structure.similarity import candidates

_MAX_ALL_PAIRS = 1000  # nodes up to which every pair is compared
_LAYERS = 7
_RATE = 0.025


def hope(graph: Graph, dim: int = 200, *, continuation: float = 0.99) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim): U sqrt(s) beside V sqrt(s), the largest singular values first."""
    n, rank = len(graph), min(dim // 2, len(graph) - 1)
    system = csc_array(eye_array(n) - continuation * transition(graph))
    factors = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    operator = LinearOperator(
        (n, n),
        matvec=lambda vector: (1 - continuation) * factors.solve(vector.ravel()),
        rmatvec=lambda vector: (1 - continuation) * factors.solve(vector.ravel(), "T"),
        dtype=np.float64,
    )
    left, sizes, right = svds(operator, k=rank, v0=np.ones(n), solver="arpack")
    order, roots = np.argsort(-sizes), np.sqrt(np.sort(sizes)[::-1])
    return np.hstack([left[:, order] * roots, right[order].T * roots]).astype(np.float32)


def transition(graph: Graph) -> csr_array:
    """Return P (n, n); a node without neighbours stays where it is."""
    n = len(graph)
    values = np.ones(len(graph.indices)) if graph.weights is None else graph.weights.astype(np.float64)
    adjacency = csr_array((values, graph.indices, graph.indptr), shape=(n, n))
    totals = np.asarray(adjacency.sum(axis=1)).ravel()
    scaled = diags_array(1 / np.where(totals > 0, totals, 1)) @ adjacency
    return csr_array(scaled + diags_array((totals == 0).astype(np.float64)))


def struc2vec(
    graph: Graph,
    dim: int = 200,
    seed: Any = 0,
    *,
    walks: int = 10,
    walk_length: int | None = None,
    window: int | None = None,
    epochs: int | None = None,
    stay: float = 0.3,
    compressed: bool = True,
    all_pairs: bool | None = None,
    layers: int | None = None,
) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim) in which nodes of like surroundings are near, wherever they are.

    Parameters
    ----------
    graph : Graph
        Edge weights and features are not read.
    walks, walk_length : int
        Walks from each node, and the nodes on one: by default 80, in a large graph 40.
    window, epochs : int
        Of the skip-gram with hierarchical softmax that reads the walks; window 10, in a large graph 5.
    stay : float
        Probability of a step within a layer rather than to another layer; 0.3 in the paper.
    compressed : bool
        Whether rings are compared as (degree, how often) pairs.
    all_pairs : bool, optional
        Whether every node is compared with every other; by default up to 1,000 nodes.
    layers : int, optional
        Maximum number; by default the diameter plus one, in a large graph seven.
    """
    walk_seed, vector_seed = np.random.SeedSequence(seed).spawn(2)
    is_small = len(graph) <= _MAX_ALL_PAIRS
    length, reach = walk_length or (80 if is_small else 40), window or (10 if is_small else 5)
    passes = epochs or (5 if len(graph) <= 10_000 else 2)
    pairs = compared_pairs(graph, is_small if all_pairs is None else all_pairs)
    depth = layers or (len(graph) if is_small else _LAYERS)
    distances = ring_distances(graph, pairs, layers=depth, compressed=compressed)
    paths = context_walks(len(graph), pairs, distances, walks, length, stay, np.random.default_rng(walk_seed))
    return hierarchical_skip_gram(paths, len(graph), dim, reach, passes, np.random.default_rng(vector_seed))


def hierarchical_skip_gram(
    walks: NDArray[Any], num_nodes: int, dim: int, window: int, epochs: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return float32 vectors (num_nodes, dim) of the nodes on walks (w, length), as in word2vec."""
    counts = np.bincount(walks[walks >= 0].ravel(), minlength=num_nodes)
    vectors = ((rng.random((num_nodes, dim)) - 0.5) / dim).astype(np.float32)
    others = np.zeros((max(num_nodes - 1, 1), dim), dtype=np.float32)
    codes, inner, depths = huffman(counts)
    for epoch in range(epochs):
        shuffled = walks[rng.permutation(len(walks))]
        span = (_RATE * (1 - epoch / epochs), _RATE * (1 - (epoch + 1) / epochs))
        _train_hierarchical(shuffled, vectors, others, codes, inner, depths, window, span, _RATE / 250, rng)
    return vectors


def huffman(counts: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int64]]:
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


@compiled(fastmath=True)
def _train_hierarchical(walks, vectors, inner_vectors, codes, inner, depths, window, span, least, rng):
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


def compared_pairs(graph: Graph, all_pairs: bool) -> NDArray[np.int64]:
    """Return the pairs of nodes (p, 2), each once, that have an edge in the context graph."""
    n = len(graph)
    if all_pairs:
        return np.column_stack(np.triu_indices(n, k=1)).astype(np.int64)
    near = candidates(graph.degrees, np.empty((n, 0), np.float32), "degree")
    ends = np.column_stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()])
    return np.unique(np.sort(ends[ends[:, 1] >= 0], axis=1), axis=0)


def ring_distances(
    graph: Graph, pairs: NDArray[np.int64], *, layers: int, compressed: bool = True
) -> NDArray[np.float64]:
    """Return f_k of each pair, float64 (p, depth); inf where either node has no ring at k hops.

    f_k is the sum, over hops 0 to k, of the DTW distance of the two rings' ordered degree sequences with
    local cost max / min - 1. Half a degree is added throughout, as in the authors' code: an isolated node has
    degree 0.
    """
    starts, degrees, counts = ring_runs(graph.indptr, graph.indices, graph.degrees, layers, compressed)
    sizes = np.diff(starts).reshape(len(graph), layers)
    depth = int((sizes > 0).any(axis=0).sum())
    if depth < layers:  # no ring is that far out
        kept = np.add.outer(np.arange(len(graph)) * layers, np.arange(depth)).ravel()
        starts = np.append(starts[kept], starts[-1])
    found = np.empty((len(pairs), depth))
    summed_warping(starts, degrees + 0.5, counts.astype(np.float64), depth, pairs, found)
    return found


def context_walks(
    n: int,
    pairs: NDArray[np.int64],
    distances: NDArray[np.float64],
    walks: int,
    walk_length: int,
    stay: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return walks in the multilayer context graph, int64 (walks * n, walk_length), each from layer 0.

    Within layer k the weight of a pair is exp(-f_k). Up goes weight log(e + how many of a node's pairs weigh
    more than the layer's mean), down goes weight 1.
    """
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=n))])
    rows, apart = ends[order, 0], np.concatenate([distances, distances])[order].T  # (depth, 2 p)
    weights = np.exp(-apart)
    cumulative, up = np.zeros(apart.shape), np.zeros((len(apart), n))
    for layer, (distance, weight) in enumerate(zip(apart, weights, strict=True)):
        is_pair = np.isfinite(distance)
        mean = weight[is_pair].mean() if is_pair.any() else 0.0
        odds = np.log(np.e + np.bincount(rows[weight > mean], minlength=n))
        up[layer] = odds / (odds + 1)
        # Less the row's least distance: the same odds, and no row underflows to zero.
        nearest = np.full(n, np.inf)
        np.minimum.at(nearest, rows[is_pair], distance[is_pair])
        shifted = np.zeros(len(rows))
        shifted[is_pair] = np.exp(nearest[rows[is_pair]] - distance[is_pair])
        total = np.cumsum(shifted)
        cumulative[layer] = total - np.concatenate([[0.0], total])[indptr[rows]]
    roots = np.concatenate([rng.permutation(n) for _ in range(walks)])
    found: NDArray[np.int64] = layered_walks(
        indptr, ends[order, 1], cumulative, up, roots, walk_length, stay, rng
    )
    return found


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
            for visited in queue[first:end]:
                for edge in range(indptr[visited], indptr[visited + 1]):
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
def layered_walks(indptr, neighbors, cumulative, up, roots, walk_length, stay, rng):
    """Walk within and between layers from layer 0, int64 (r, walk_length).

    ``cumulative`` (depth, nnz) are weights summed along each row, ``up`` (depth, n) the chance of going up
    rather than down. A node without neighbours in layer 0 stays where it is.
    """
    depth = len(cumulative)
    walks = np.empty((len(roots), walk_length), dtype=np.int64)
    for number in range(len(roots)):
        node, layer, position = roots[number], 0, 1
        walks[number, 0] = node
        while position < walk_length:
            start, stop = indptr[node], indptr[node + 1]
            if start == stop or cumulative[0, stop - 1] == 0:
                walks[number, position:] = node
                break
            if rng.random() < stay:
                row = cumulative[layer, start:stop]
                drawn = np.searchsorted(row, rng.random() * row[-1], side="right")
                node = neighbors[start + min(drawn, stop - start - 1)]
                walks[number, position] = node
                position += 1
            elif rng.random() < up[layer, node]:
                if layer + 1 < depth and cumulative[layer + 1, stop - 1] > 0:
                    layer += 1
            elif layer > 0:
                layer -= 1
    return walks


@lru_cache(maxsize=4)
def walk_vectors(name: str, graph: Graph, dim: int, seed: int) -> NDArray[np.float32]:
    """Return node2vec's or struc2vec's vectors (n, dim); several rows read them, so the last are kept."""
    if name == "node2vec":
        return node2vec(graph, dim, seed)
    return struc2vec(graph, dim, seed)


def beside(blocks: list[Any]) -> Any:
    """Return matrices side by side, each scaled to unit mean row norm; one sparse block makes all sparse."""
    scaled = [block / max(float(np.sqrt((block**2).sum(axis=1)).mean()), 1e-12) for block in blocks]
    if any(issparse(block) for block in scaled):
        return csr_array(hstack([csr_array(block) for block in scaled]))
    return np.hstack(scaled)


def _fit_hope(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    return transductive(graph, hope(graph, dim))


def _by_walks(*parts: str) -> Method:
    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        found = [
            graph.features if part == "features" else walk_vectors(part, graph, dim, seed) for part in parts
        ]
        return transductive(graph, found[0] if len(found) == 1 else beside(found))

    return Method(fit, is_slow=True)


METHODS = {
    "HOPE": Method(_fit_hope, is_random=False),
    "node2vec": _by_walks("node2vec"),
    "struc2vec": _by_walks("struc2vec"),
    "n+s": _by_walks("node2vec", "struc2vec"),
    "n+s+f": _by_walks("node2vec", "struc2vec", "features"),
}
