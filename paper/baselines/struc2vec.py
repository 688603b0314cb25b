"""struc2vec (Ribeiro, Saverese, Figueiredo, KDD 2017) with its three optimisations.

First, rings are compared as (degree, how often) pairs. Second, in a graph of over 1,000 nodes a node is
compared with those of nearest degree only, ceil(log2 n) on each side. Third, there are no more than seven
layers then. Small graphs compare every pair at every layer up to the diameter. Walks and window are what the
SPINE paper gives to all walk methods in large graphs, 10 walks of 40 nodes and window 5; in small ones those
of the authors' code, 80 nodes and window 10, which serve it better there and cost four times as much. Five
passes over the walks, and two over 10,000 nodes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.kernels import layered_walks, ring_runs, summed_warping
from spinegraph.analysis.baselines import skip_gram
from spinegraph.graph.graph import Graph
from spinegraph.structure.similarity import candidates

_MOST_FOR_ALL = 1000
_LAYERS = 7


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
        At most so many; by default the diameter and one, in a large graph seven.
    """
    walk_seed, vector_seed = np.random.SeedSequence(seed).spawn(2)
    is_small = len(graph) <= _MOST_FOR_ALL
    length, reach = walk_length or (80 if is_small else 40), window or (10 if is_small else 5)
    passes = epochs or (5 if len(graph) <= 10_000 else 2)
    pairs = compared_pairs(graph, is_small if all_pairs is None else all_pairs)
    most = layers or (len(graph) if is_small else _LAYERS)
    distances = ring_distances(graph, pairs, layers=most, compressed=compressed)
    paths = context_walks(len(graph), pairs, distances, walks, length, stay, np.random.default_rng(walk_seed))
    return skip_gram(paths, len(graph), dim=dim, window=reach, epochs=passes, seed=vector_seed)


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
    held = np.diff(starts).reshape(len(graph), layers)
    depth = int((held > 0).any(axis=0).sum())
    if depth < layers:  # no ring is that far out
        places = np.add.outer(np.arange(len(graph)) * layers, np.arange(depth)).ravel()
        starts = np.append(starts[places], starts[-1])
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
    ladders, up = np.zeros(apart.shape), np.zeros((len(apart), n))
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
        ladders[layer] = total - np.concatenate([[0.0], total])[indptr[rows]]
    roots = np.concatenate([rng.permutation(n) for _ in range(walks)])
    found: NDArray[np.int64] = layered_walks(
        indptr, ends[order, 1], ladders, up, roots, walk_length, stay, rng
    )
    return found
