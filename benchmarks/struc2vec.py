"""struc2vec (Ribeiro, Saverese, Figueiredo, KDD 2017), for graphs of up to a few thousand nodes.

The method as the paper has it, with every pair of nodes and every layer up to the diameter compared; its
shortcuts for large graphs (fewer pairs, fewer layers) are left out, the compressed degree sequences are an
option. Walks, window and passes are those of the authors' code (10 walks of 80 nodes, window 10, 5 passes),
which serve it better than the 10 x 40 with window 5 that the SPINE paper gives to all walk methods.
``python -m benchmarks.struc2vec`` prints the mirror figure of FB-686 (see :func:`main`).
"""

import argparse
import json
import time

import numba
import numpy as np
from benchmarks.skipgram import skip_gram
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path


def struc2vec(
    graph,
    dim=200,
    seed=0,
    *,
    walks=10,
    walk_length=80,
    window=10,
    epochs=5,
    stay=0.3,
    compressed=True,
    layers=None,
):
    """Return float32 vectors (n, dim) in which nodes of like surroundings are near, wherever they are.

    Parameters
    ----------
    graph : Graph
        Edge weights and features are not read.
    walks, walk_length : int
        Walks from each node, and the nodes on one.
    window, epochs : int
        Of the skip-gram with hierarchical softmax that reads the walks.
    stay : float
        Probability of a step within a layer rather than to another layer; 0.3 in the paper.
    compressed : bool
        Whether sequences are compared as (degree, how often) pairs, the paper's first shortcut.
    layers : int, optional
        The most hops looked at; default: the diameter.
    """
    walk_seed, vector_seed = np.random.SeedSequence(seed).spawn(2)
    distances = ring_distances(graph, compressed=compressed, layers=layers)
    paths = context_walks(distances, walks, walk_length, stay, np.random.default_rng(walk_seed))
    return skip_gram(paths, len(graph), dim=dim, window=window, epochs=epochs, seed=vector_seed)


def ring_distances(graph, *, compressed=True, layers=None):
    """Return f_k of every pair, float64 (layers, n, n); inf where either node has no ring at k hops.

    f_k is the sum, over hops 0 to k, of the DTW distance of the two rings' ordered degree sequences with
    local cost max / min - 1. Half a degree is added throughout, as in the authors' code: an isolated node has
    degree 0.
    """
    n = len(graph)
    adjacency = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    hops = shortest_path(adjacency, unweighted=True)  # (n, n), inf across components
    rows, columns = np.nonzero(np.isfinite(hops))
    hops = hops[rows, columns].astype(np.int64)
    if layers is not None:
        near = hops <= layers
        rows, columns, hops = rows[near], columns[near], hops[near]
    depth = int(hops.max()) + 1
    rings = rows * depth + hops
    degrees = graph.degrees[columns]
    order = np.lexsort((degrees, rings))
    rings, degrees = rings[order], degrees[order]
    counts = np.ones(len(rings), dtype=np.int64)
    if compressed:
        (rings, degrees), counts = _runs(np.stack([rings, degrees], axis=1))
    starts = np.searchsorted(rings, np.arange(n * depth + 1))
    return _sum_over_hops(starts, degrees + 0.5, counts.astype(np.float64), n, depth)


def _runs(ordered):
    """Return the distinct rows of an ordered array, as columns, and how often each occurs."""
    is_first = np.ones(len(ordered), dtype=bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    first = np.flatnonzero(is_first)
    return ordered[first].T, np.diff(np.append(first, len(ordered)))


@numba.njit(cache=True, parallel=True)
def _sum_over_hops(starts, degrees, counts, n, depth):
    found = np.full((depth, n, n), np.inf)
    for left in numba.prange(n):
        for right in range(left, n):
            total = 0.0
            for hop in range(depth):
                a, b = left * depth + hop, right * depth + hop
                if starts[a] == starts[a + 1] or starts[b] == starts[b + 1]:
                    break
                first, second = slice(starts[a], starts[a + 1]), slice(starts[b], starts[b + 1])
                total += _warping(degrees[first], counts[first], degrees[second], counts[second])
                found[hop, left, right] = found[hop, right, left] = total
    return found


@numba.njit(cache=True)
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


def context_walks(distances, walks, walk_length, stay, rng):
    """Return walks in the multilayer context graph, int64 (walks * n, walk_length), each from layer 0.

    Within layer k the weight of a pair is exp(-f_k). Up goes weight log(e + how many of a node's pairs weigh
    more than the layer's mean), down goes weight 1.
    """
    depth, n, _ = distances.shape
    cumulative = np.zeros(distances.shape)
    up = np.zeros((depth, n))
    for layer in range(depth):
        distance = distances[layer].copy()
        np.fill_diagonal(distance, np.inf)
        weights = np.exp(-distance)
        is_pair = np.isfinite(distance)
        mean = weights[is_pair].mean() if is_pair.any() else 0.0
        odds = np.log(np.e + (weights > mean).sum(axis=1))
        up[layer] = odds / (odds + 1)
        # Less the row's least distance: the same odds, and no row underflows to zero.
        nearest = np.where(is_pair.any(axis=1), distance.min(axis=1), 0.0)
        cumulative[layer] = np.exp(-(distance - nearest[:, None])).cumsum(axis=1)
    starts = np.concatenate([rng.permutation(n) for _ in range(walks)])
    return _walk(cumulative, up, starts, walk_length, stay, rng)


@numba.njit(cache=True)
def _walk(cumulative, up, starts, walk_length, stay, rng):
    depth = len(cumulative)
    paths = np.empty((len(starts), walk_length), dtype=np.int64)
    for number in range(len(starts)):
        node, layer, place = starts[number], 0, 1
        paths[number, 0] = node
        while place < walk_length:
            total = cumulative[layer, node, -1]
            if total == 0:  # a graph of one node: nowhere to go
                paths[number, place:] = node
                break
            if rng.random() < stay:
                node = np.searchsorted(cumulative[layer, node], rng.random() * total, side="right")
                paths[number, place] = node
                place += 1
            elif rng.random() < up[layer, node]:
                if layer + 1 < depth and cumulative[layer + 1, node, -1] > 0:
                    layer += 1
            elif layer > 0:
                layer -= 1
    return paths


def mirror_ratio(vectors, graph, pairs):
    """Return E[Pa] / E[Pm]: the mean distance of connected nodes over that of mirrored ones."""
    sources = np.repeat(np.arange(len(graph)), graph.degrees)
    mirrored = np.linalg.norm(vectors[pairs[:, 0]] - vectors[pairs[:, 1]], axis=1).mean()
    connected = np.linalg.norm(vectors[sources] - vectors[graph.indices], axis=1).mean()
    return float(connected / mirrored)


def main():
    """Print E[Pa] / E[Pm] on FB-686 beside its mirror image, for several seeds and numbers of passes."""
    from spinegraph import datasets, made

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--full", action="store_true", help="compare whole degree sequences")
    arguments = parser.parse_args()
    loaded = datasets.load("fb686").graph
    original = loaded.subgraph(loaded.names[loaded.degrees > 0])
    for seed in range(arguments.seeds):
        union, pairs = made.mirrored(original, seed=seed)
        for epochs in arguments.epochs:
            started = time.perf_counter()
            vectors = struc2vec(union, seed=seed, compressed=not arguments.full, epochs=epochs)
            seconds = round(time.perf_counter() - started, 1)
            ratio = round(mirror_ratio(vectors, union, pairs), 2)
            print(
                json.dumps({"seed": seed, "epochs": epochs, "ratio": ratio, "seconds": seconds}), flush=True
            )


if __name__ == "__main__":
    main()
