import networkx as nx
import numpy as np

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.columns import (
    DEGREE,
    H_INDEX,
    SMALLER,
    STRENGTH,
    TRIANGLES,
    TWO_HOPS,
    WIDTH,
    neighborhoods,
    share_edges,
)


def described(graph, weights=None):
    matrix = nx.to_scipy_sparse_array(graph, format="csr")
    adjacency = Adjacency.of(matrix.indptr, matrix.indices, weights)
    marks = np.zeros(len(graph), dtype=np.uint8)
    shared = np.empty(len(adjacency.indices), dtype=np.int32)
    for start in range(0, len(graph), 7):
        stop = min(start + 7, len(graph))
        share_edges(adjacency.indptr, adjacency.indices, start, stop, marks, shared)
    one, other = np.empty((2, len(graph), WIDTH))
    neighborhoods(adjacency, np.arange(len(graph)), TWO_HOPS, marks, np.empty(0, np.int32), one)
    neighborhoods(adjacency, np.arange(len(graph)), TWO_HOPS, marks, shared, other)
    assert not marks.any()
    np.testing.assert_array_equal(one, other)
    return one


def test_triangles_are_those_of_networkx():
    graph = nx.barabasi_albert_graph(60, 3, seed=1)
    graph.add_edges_from((0, node) for node in range(1, 60))  # a hub, so that small rows search it
    assert described(graph)[:, TRIANGLES].tolist() == list(nx.triangles(graph).values())


def test_a_star_is_a_hub_of_smaller_neighbors():
    counts = described(nx.star_graph(4), weights=np.full(8, 0.5, dtype=np.float32))
    assert counts[:, DEGREE].tolist() == [4, 1, 1, 1, 1]
    assert counts[:, STRENGTH].tolist() == [2, 0.5, 0.5, 0.5, 0.5]
    assert counts[:, SMALLER].tolist() == [4, 0, 0, 0, 0]
    assert counts[:, H_INDEX].tolist() == [1, 1, 1, 1, 1]
