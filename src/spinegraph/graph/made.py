"""Made networks, each from a seed: small shapes with known roles, mirrors, perturbed copies, random graphs.

``planted``, the made organisation of the demo, lives in :mod:`spinegraph.graph.planted` and is public here.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.graph.planted import Planted, planted
from spinegraph.kernels.adjacency import position_type

__all__ = ["Planted", "barbell", "karate", "mirrored", "perturbed", "planted", "random_graph"]

# Zachary (1977): who met whom outside the club, node 0 the instructor and node 33 the president.
_KARATE = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}


def barbell(clique: int, bridge: int = 0) -> Graph:
    """Return two cliques joined by a path of ``bridge`` nodes; 2 * clique + bridge nodes in all.

    Nodes 0 .. clique-1 are one clique, then comes the path, then the other clique.

    Examples
    --------
    >>> barbell(5, bridge=1)
    Graph(11 nodes, 22 edges)
    """
    _at_least("clique", clique, 1)
    _at_least("bridge", bridge, 0)
    one = np.column_stack(np.triu_indices(clique, k=1))  # (clique * (clique - 1) / 2, 2)
    path = np.arange(clique - 1, clique + bridge)
    edges = np.concatenate([one, np.column_stack([path, path + 1]), one + clique + bridge])
    return Graph.from_edges(edges, num_nodes=2 * clique + bridge)


def karate() -> Graph:
    """Return Zachary's karate club: 34 members, 78 ties.

    Examples
    --------
    >>> karate()
    Graph(34 nodes, 78 edges)
    """
    edges = [(member, other) for member, others in _KARATE.items() for other in others]
    return Graph.from_edges(np.array(edges))


def mirrored(graph: Graph, seed: int = 0) -> tuple[Graph, NDArray[np.int64]]:
    """Return a graph beside a copy of itself whose nodes come in random order, and who mirrors whom.

    Parameters
    ----------
    graph : Graph
        n nodes; weights and features go along into the copy.
    seed : int
        Decides the order of the copy.

    Returns
    -------
    union : Graph
        2n nodes: first the original, then the copy. Names are positions where the graph's are, else
        ``("original", name)`` and ``("mirror", name)``.
    pairs : int64 array (n, 2)
        Positions of each node and of its mirror image.

    Examples
    --------
    >>> union, pairs = mirrored(karate(), seed=1)
    >>> len(union), bool((union.degrees[pairs[:, 0]] == union.degrees[pairs[:, 1]]).all())
    (68, True)
    """
    n = len(graph)
    order = np.random.default_rng(seed).permutation(n)  # the copy's place i holds node order[i]
    copy = graph.subgraph(graph.names[order])
    if np.array_equal(graph.names, np.arange(n)):
        union = Graph.union([graph, copy.relabel(np.arange(n))])
    else:
        union = Graph.union([graph, copy], keys=["original", "mirror"])
    images = np.empty(n, dtype=np.int64)
    images[order] = n + np.arange(n)
    return union, np.column_stack([np.arange(n), images])


def perturbed(graph: Graph, keep: float, swap_features: bool = True, seed: int = 0) -> Graph:
    """Return a graph that kept each edge with probability ``keep``, its features slightly moved.

    In each feature row one value other than 0 swaps place with one 0, where the row has both. Nodes left
    without an edge stay. Two independent perturbations take two seeds.

    Examples
    --------
    >>> first, second = (perturbed(karate(), keep=0.9, seed=seed) for seed in (1, 2))
    >>> len(first) == len(second) == 34
    True
    """
    if not 0 <= keep <= 1:
        raise ParameterError(f"keep must be from 0 to 1; got {keep!r}")
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    once = rows < graph.indices  # each edge once
    chosen = np.flatnonzero(once)[rng.random(int(once.sum())) < keep]
    features = graph.features
    if features is not None and swap_features:
        features = _swapped(features, rng)
    return Graph.from_edges(
        np.column_stack([rows[chosen], graph.indices[chosen]]),
        num_nodes=len(graph),
        weights=None if graph.weights is None else graph.weights[chosen],
        features=features,
        names=graph.names,
        feature_names=graph.feature_names,
    )


def random_graph(
    num_nodes: int,
    edges_per_node: float,
    seed: int = 0,
    features: int | None = None,
    heavy_tailed: bool = False,
) -> Graph:
    """Return a graph with edges between nodes drawn at random, for measuring speed.

    Parameters
    ----------
    num_nodes : int
    edges_per_node : float
        Edges drawn for each node; the mean degree is twice that, less the few drawn more than once.
    seed : int
    features : int, optional
        Columns of sparse 0/1 features, up to ten ones a row.
    heavy_tailed : bool
        Draw nodes in proportion to a Pareto variable, so that degrees follow a power law of exponent
        near 2.5; hubs lie at random positions.

    Examples
    --------
    >>> graph = random_graph(1000, edges_per_node=10, seed=3, features=50)
    >>> graph.num_edges > 9_800, graph.features.shape
    (True, (1000, 50))
    """
    _at_least("num_nodes", num_nodes, 1)
    if edges_per_node < 0:
        raise ParameterError(f"edges_per_node must be at least 0; got {edges_per_node!r}")
    rng = np.random.default_rng(seed)
    count = 0 if num_nodes == 1 else round(num_nodes * edges_per_node)
    ends = np.empty((count, 2), dtype=position_type(num_nodes))
    if heavy_tailed:
        reach = np.cumsum((1.0 - rng.random(num_nodes)) ** (-1 / 1.5))
        for column in ends.T:
            column[:] = np.searchsorted(reach, rng.random(count) * reach[-1], side="right")
        ends = ends[ends[:, 0] != ends[:, 1]]
    else:
        ends[:, 0] = rng.integers(num_nodes, size=count)
        ends[:, 1] = rng.integers(max(num_nodes - 1, 1), size=count)
        ends[:, 1] += ends[:, 1] >= ends[:, 0]  # skips the node itself, so that no loop is drawn
    table = None if features is None else _random_features(num_nodes, features, rng)
    return Graph.from_edges(ends, num_nodes=num_nodes, features=table)


def _random_features(num_nodes: int, columns: int, rng: np.random.Generator) -> sp.csr_array:
    """Return (n, columns) with up to ten ones a row."""
    _at_least("features", columns, 1)
    ones = min(10, columns)
    chosen = rng.integers(columns, size=(num_nodes, ones), dtype=np.int32)
    pointers = np.arange(num_nodes + 1, dtype=np.int64) * ones
    matrix = sp.csr_array((np.ones(chosen.size, np.float32), chosen.ravel(), pointers), (num_nodes, columns))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _swapped(features: Any, rng: np.random.Generator) -> Any:
    """Return features (n, f) with one value other than 0 moved to where a 0 was, row by row."""
    matrix = sp.csr_array(features, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    width, counts = matrix.shape[1], np.diff(matrix.indptr)
    rows = np.flatnonzero((counts > 0) & (counts < width))
    leaving = matrix.indptr[rows] + rng.integers(counts[rows])
    # The r-th zero of a row lies at column r plus the stored columns before it. Sorted column c at place p
    # has c - p zeros before it, so it comes before the r-th zero if that is at most r.
    rank = rng.integers(width - counts[rows])  # (rows,)
    ranks = np.full(matrix.shape[0], -1, dtype=np.int64)
    ranks[rows] = rank
    place = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
    before = matrix.indices - place <= np.repeat(ranks, counts)
    owner = np.repeat(np.arange(matrix.shape[0]), counts)
    matrix.indices[leaving] = rank + np.bincount(owner[before], minlength=matrix.shape[0])[rows]
    matrix.has_sorted_indices = False
    matrix.sort_indices()
    return matrix if sp.issparse(features) else matrix.toarray()


def _at_least(name: str, value: int, least: int) -> None:
    """Check a count."""
    if not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be an integer of at least {least}; got {value!r}")
