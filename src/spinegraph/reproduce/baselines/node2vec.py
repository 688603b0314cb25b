"""node2vec (Grover and Leskovec, KDD 2016): skip-gram on walks whose next step looks one step back.

Walks and window are those that the SPINE paper gives to all walk methods: 10 walks of 40 nodes, window 5.
Of p and q it says nothing, so they are 1; the skip-gram has the reference code's five negatives. Five passes
over the walks, and two over 10,000 nodes: on Cora one pass does as well as five.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.graph import Graph
from spinegraph.kernels.second_order import second_order_walks
from spinegraph.reproduce.baselines.skipgram import skip_gram


def node2vec(
    graph: Graph,
    dim: int = 200,
    seed: Any = 0,
    *,
    p: float = 1.0,
    q: float = 1.0,
    walks: int = 10,
    walk_length: int = 40,
    window: int = 5,
    epochs: int | None = None,
) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim) in which nodes that meet on walks are near.

    Parameters
    ----------
    graph : Graph
        Edge weights and features are not read.
    p, q : float
        A step back weighs 1 / p, a step to a neighbour of the node before 1, one further away 1 / q.
    epochs : int, optional
        Passes over the walks.

    Examples
    --------
    >>> node2vec(Graph.from_edges([(0, 1), (1, 2)]), dim=8).shape
    (3, 8)
    """
    walk_seed, vector_seed = np.random.SeedSequence(seed).spawn(2)
    paths = biased_walks(graph, walks, walk_length, p, q, np.random.default_rng(walk_seed))
    passes = epochs or (5 if len(graph) <= 10_000 else 2)
    return skip_gram(paths, len(graph), dim=dim, window=window, epochs=passes, negatives=5, seed=vector_seed)


def biased_walks(
    graph: Graph, walks: int, walk_length: int, p: float, q: float, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return walks from every node, int32 (walks * n, walk_length).

    Examples
    --------
    >>> pair = Graph.from_edges([(0, 1)])
    >>> biased_walks(pair, 1, 3, p=1.0, q=1.0, rng=np.random.default_rng(0)).tolist()
    [[0, 1, 0], [1, 0, 1]]
    """
    roots = np.tile(np.arange(len(graph)), walks)
    found: NDArray[np.int32] = second_order_walks(
        graph.indptr, graph.indices, roots, walk_length, 1 / p, 1 / q, rng
    )
    return found
