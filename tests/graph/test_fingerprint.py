"""Equal data, equal fingerprint; other data, another one."""

import numpy as np
from hypothesis import given
from scipy.sparse import csr_array

import strategies
from spinegraph import Graph
from spinegraph.graph.describe import fingerprint

EDGES = [(0, 1), (1, 2)]
NAMES = ["ann", "bob", "cy"]


@given(strategies.graphs())
def test_a_rebuilt_graph_has_the_same_fingerprint(graph):
    rebuilt = Graph(
        graph.indptr.copy(),
        graph.indices.astype(np.int64),
        graph.weights,
        graph.names,
        graph.features,
        graph.feature_names,
    )
    assert fingerprint(rebuilt) == fingerprint(graph)


def test_every_part_of_a_graph_counts():
    eye = np.eye(3, dtype=np.float32)
    different = [
        Graph.from_edges(EDGES),
        Graph.from_edges([(0, 1), (0, 2)]),
        Graph.from_edges(EDGES, num_nodes=4),
        Graph.from_edges(EDGES, weights=[1, 1]),
        Graph.from_edges(EDGES, weights=[1, 2]),
        Graph.from_edges(EDGES, num_nodes=3, names=NAMES),
        Graph.from_edges(EDGES, num_nodes=3, names=[5, 6, 7]),
        Graph.from_edges(EDGES, num_nodes=3, names=["5", "6", "7"]),
        Graph.from_edges(EDGES, num_nodes=3, names=[5, "6", "7"]),
        Graph.from_edges(EDGES, num_nodes=3, names=[(0, "a"), (0, "b"), (1, "a")]),
        Graph.from_edges(EDGES, features=eye),
        Graph.from_edges(EDGES, features=-eye),
        Graph.from_edges(EDGES, features=csr_array(eye)),
        Graph.from_edges(EDGES, features=csr_array(np.hstack([eye, np.zeros((3, 1), np.float32)]))),
        Graph.from_edges(EDGES, features=eye, feature_names=NAMES),
        Graph.from_edges(EDGES, features=np.zeros((3, 0), np.float32)),
    ]
    assert len({fingerprint(graph) for graph in different}) == len(different)


def test_numpy_text_and_integers_count_as_plain_ones():
    numpy_names = np.array([np.str_("ann"), np.int64(3), "cy"], dtype=object)
    found = fingerprint(Graph.from_edges(EDGES, num_nodes=3, names=numpy_names))
    assert found == fingerprint(Graph.from_edges(EDGES, num_nodes=3, names=["ann", 3, "cy"]))


def test_a_name_that_no_encoding_has_is_no_obstacle():
    assert fingerprint(Graph.from_edges([("\ud800", "b")])) != fingerprint(
        Graph.from_edges([("\ud801", "b")])
    )
