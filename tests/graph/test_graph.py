"""The graph: what it holds, what it refuses, and the graphs made from it."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from spinegraph import Graph
from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError, UnknownNodeError
from strategies import assert_same_graph, dense_adjacency, dense_features, graphs, graphs_and_orders, permuted


@given(graphs())
def test_what_from_edges_builds_passes_the_constructors_checks(graph):
    again = Graph(
        graph.indptr, graph.indices, graph.weights, graph.names, graph.features, graph.feature_names
    )
    assert_same_graph(again, graph)


@given(graphs())
def test_degrees_strengths_and_neighbours_agree_with_the_matrix(graph):
    matrix = dense_adjacency(graph)
    assert graph.degrees.tolist() == (matrix > 0).sum(axis=1).tolist()
    np.testing.assert_allclose(graph.strengths, matrix.sum(axis=1), rtol=1e-12)
    assert graph.num_edges == (matrix > 0).sum() // 2
    for row, name in zip(matrix, graph.names, strict=True):
        assert graph.neighbors(name).tolist() == graph.names[row > 0].tolist()


@given(graphs())
def test_arrays_are_read_only_and_of_the_promised_types(graph):
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
    assert graph.weights is None or graph.weights.dtype == np.float32
    assert graph.names.dtype in (np.int64, object)
    sparse = graph.has_features and not isinstance(graph.features, np.ndarray)
    arrays = (
        [graph.features.data, graph.features.indices, graph.features.indptr] if sparse else [graph.features]
    )
    for array in [graph.indptr, graph.indices, graph.weights, graph.names, graph.degrees, *arrays]:
        assert array is None or not array.flags.writeable


@given(graphs_and_orders())
def test_a_subgraph_of_all_nodes_in_another_order_is_the_permuted_graph(case):
    graph, order = case
    found = permuted(graph, order)
    assert found.names.tolist() == graph.names[order].tolist()
    np.testing.assert_array_equal(dense_adjacency(found), dense_adjacency(graph)[np.ix_(order, order)])
    if graph.has_features:
        np.testing.assert_array_equal(dense_features(found.features), dense_features(graph.features)[order])
    Graph(found.indptr, found.indices, found.weights, found.names, found.features, found.feature_names)


@given(graphs(), st.data())
def test_a_subgraph_keeps_the_edges_among_its_nodes(graph, data):
    kept = data.draw(st.lists(st.integers(0, len(graph) - 1), min_size=1, unique=True))
    found = graph.subgraph(graph.names[kept])
    np.testing.assert_array_equal(dense_adjacency(found), dense_adjacency(graph)[np.ix_(kept, kept)])
    assert found.names.tolist() == graph.names[kept].tolist()


@given(st.lists(graphs(features=False), min_size=1, max_size=3))
def test_a_union_is_block_diagonal(parts):
    whole = Graph.union(parts, keys=range(len(parts)))
    blocks = np.zeros((len(whole), len(whole)))
    start = 0
    for part in parts:
        blocks[start : start + len(part), start : start + len(part)] = dense_adjacency(part)
        start += len(part)
    np.testing.assert_array_equal(dense_adjacency(whole), blocks)
    assert whole.names.tolist() == [
        (key, name) for key, part in enumerate(parts) for name in part.names.tolist()
    ]
    Graph(whole.indptr, whole.indices, whole.weights, whole.names)


@given(graphs(features=True), graphs(features=True))
def test_a_union_stacks_features_of_the_same_columns(first, second):
    if first.features.shape[1] != second.features.shape[1] or first.feature_names != second.feature_names:
        with pytest.raises(MissingFeaturesError, match="the same feature columns"):
            Graph.union([first, second], keys="ab")
        return
    expected = np.vstack([dense_features(first.features), dense_features(second.features)])
    np.testing.assert_array_equal(dense_features(Graph.union([first, second], keys="ab").features), expected)


def test_a_union_numbers_positions_on_and_keeps_distinct_names():
    pair = Graph.from_edges([(0, 1)])
    assert Graph.union([pair, pair]).names.tolist() == [0, 1, 2, 3]
    named = Graph.from_edges([("ann", "bob")])
    assert Graph.union([pair, named]).names.tolist() == [0, 1, "ann", "bob"]
    with pytest.raises(GraphFormatError, match=r"more than once: 'ann', 'bob'.*keys="):
        Graph.union([named, named])


def test_a_union_needs_graphs_and_a_key_for_each():
    with pytest.raises(GraphFormatError, match="at least one graph"):
        Graph.union([])
    with pytest.raises(ParameterError, match="one key per graph; got 1 for 2"):
        Graph.union([Graph.from_edges([(0, 1)])] * 2, keys="a")


def test_a_union_with_features_on_one_side_alone_is_refused():
    pair = Graph.from_edges([(0, 1)])
    assert Graph.union([pair, pair.with_features(np.zeros((2, 0)))]).num_features == 0
    with pytest.raises(MissingFeaturesError, match=r"the same feature columns; got \[0, 2\]"):
        Graph.union([pair, pair.with_features(np.eye(2))])


@given(graphs())
def test_relabel_changes_names_alone(graph):
    new = [f"node {place}" for place in range(len(graph))]
    found = graph.relabel(new)
    assert found.names.tolist() == new
    assert np.shares_memory(found.indices, graph.indices) or not len(graph.indices)
    back = found.relabel(dict(zip(new, graph.names.tolist(), strict=True)))
    assert_same_graph(back, graph)


def test_relabel_by_mapping_keeps_other_names_and_refuses_unknown_ones():
    graph = Graph.from_edges([("ann", "bob"), ("bob", "cy")])
    assert graph.relabel({"bob": "bo"}).names.tolist() == ["ann", "bo", "cy"]
    with pytest.raises(UnknownNodeError, match="'zoe'"):
        graph.relabel({"zoe": "z"})
    with pytest.raises(GraphFormatError, match="more than once: 'cy'"):
        graph.relabel({"ann": "cy"})
    with pytest.raises(GraphFormatError, match="one name per node; got 2 for 3"):
        graph.relabel(["a", "b"])


def test_named_edges_number_nodes_in_order_of_appearance():
    graph = Graph.from_edges([("bob", "ann"), ("ann", "cy")])
    assert graph.names.tolist() == ["bob", "ann", "cy"]
    assert Graph.from_edges(np.array([["b", "a"]])).names.tolist() == ["b", "a"]


def test_given_names_set_the_order_and_may_be_isolated():
    graph = Graph.from_edges([("ann", "bob")], names=["cy", "bob", "ann"])
    assert graph.names.tolist() == ["cy", "bob", "ann"]
    assert graph.degrees.tolist() == [0, 1, 1]


def test_integers_are_positions_beside_text_names_and_names_beside_integer_names():
    by_position = Graph.from_edges([(0, 1)], names=["ann", "bob"])
    assert by_position.neighbors("ann").tolist() == ["bob"]
    by_name = Graph.from_edges([(10, 30)], names=[30, 20, 10])
    assert by_name.neighbors(10).tolist() == [30]
    by_number = Graph.from_edges([(0, 1)], num_nodes=3, names=[30, 20, 10])
    assert by_number.neighbors(30).tolist() == [20]


def test_names_may_be_any_hashable():
    graph = Graph.from_edges([((0, 0), (0, 1)), ((0, 1), "end")])
    assert graph.neighbors((0, 1)).tolist() == [(0, 0), "end"]
    assert Graph.from_edges([(1, "one")]).names.tolist() == [1, "one"]


def test_isolated_nodes_no_edges_and_one_node_are_legal():
    assert Graph.from_edges([], num_nodes=3).degrees.tolist() == [0, 0, 0]
    assert Graph.from_edges(np.zeros((0, 2), int), num_nodes=1).strengths.tolist() == [0]
    assert Graph.from_edges([], names=["ann"]).neighbors("ann").tolist() == []
    assert Graph.from_edges([], num_nodes=2, weights=[]).weights.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"edges": []}, GraphFormatError, "at least one node; pass num_nodes=... or names=..."),
        ({"edges": [], "names": []}, GraphFormatError, "at least one node"),
        ({"edges": [], "num_nodes": 0}, GraphFormatError, "whole number of at least 1; got 0"),
        ({"edges": [(0, 1)], "num_nodes": 2.5}, GraphFormatError, "whole number of at least 1; got 2.5"),
        (
            {"edges": [(0, 3)], "num_nodes": 3},
            GraphFormatError,
            r"edges\[0, 1\] is 3; with 3 nodes, .* 0 .. 2",
        ),
        ({"edges": [(0, 1), (-1, 0)]}, GraphFormatError, r"edges\[1, 0\] is -1"),
        ({"edges": [(0, 10**12)]}, GraphFormatError, r"largest node id is 1000000000000.*np.unique\(edges\)"),
        ({"edges": [(0, 1, 2)]}, GraphFormatError, r"edges\[0\] must be a pair .* pass weights separately"),
        ({"edges": np.zeros((4, 3), int)}, GraphFormatError, r"must be \(m, 2\), .* got \(4, 3\)"),
        (
            {"edges": [(0, 1)], "num_nodes": 2**40},
            GraphFormatError,
            "at most 2147483647 nodes; got 1099511627776",
        ),
        ({"edges": [(0, 1.5)]}, GraphFormatError, "or names; got dtype float64"),
        (
            {"edges": [(0, 1), (1,)]},
            GraphFormatError,
            r"edges\[1\] must be a pair \(source, target\); got \(1,\)",
        ),
        (
            {"edges": [("a", "b", 2.0)]},
            GraphFormatError,
            r"edges\[0\] must be a pair.*pass weights separately",
        ),
        ({"edges": ["ab"]}, GraphFormatError, r"edges\[0\] must be a pair .* got 'ab'"),
        ({"edges": [1, 2]}, GraphFormatError, r"got \(2,\)|must be a pair"),
        ({"edges": np.zeros((2, 5), int)}, GraphFormatError, r"got \(2, 5\); pass edges.T"),
        ({"edges": np.zeros((3, 2))}, GraphFormatError, "integers .* or names; got dtype float64"),
        ({"edges": csr_array((2, 2))}, GraphFormatError, r"use Graph.from_scipy\(matrix\)"),
        ({"edges": [("a", None)]}, GraphFormatError, "is None; every node needs a name"),
        ({"edges": [("a", ["b"])]}, GraphFormatError, "must be hashable"),
        (
            {"edges": [("a", "z")], "names": ["a"]},
            GraphFormatError,
            "edges: 1 of 2 names are not in the graph: 'z'",
        ),
        ({"edges": [("a", "b")], "num_nodes": 2}, GraphFormatError, "for named edges pass names="),
        ({"edges": [(0, 1)], "num_nodes": 3, "names": ["a", "b"]}, GraphFormatError, "is 3 but 2 names"),
        ({"edges": [(0, 1)], "weights": [1, 2]}, GraphFormatError, r"listed edge, \(1,\); got \(2,\)"),
        ({"edges": [(0, 1)], "weights": [-1]}, GraphFormatError, r"weights\[0\] of edge \(0, 1\) is -1.0"),
        ({"edges": [("a", "b")], "weights": [np.nan]}, GraphFormatError, r"of edge \('a', 'b'\) is nan"),
        (
            {"edges": [(0, 1)], "weights": [np.inf]},
            GraphFormatError,
            "is inf; weights must be finite and not",
        ),
        ({"edges": [(0, 1)], "weights": ["2"]}, GraphFormatError, "weights must be numbers; got dtype"),
        ({"edges": [(0, 1)], "weights": [None]}, GraphFormatError, "is nan; weights must be finite"),
        ({"edges": [(0, 1)], "weights": [{}]}, GraphFormatError, "weights must be numbers: "),
        ({"edges": [(0, 1)], "weights": [1j]}, GraphFormatError, "weights must be numbers"),
        ({"edges": [(0, 1)], "features": [[1]]}, MissingFeaturesError, "1 feature rows for 2 nodes"),
        ({"edges": [(0, 1)], "features": [1, 2]}, GraphFormatError, r"pass features.reshape\(-1, 1\)"),
        ({"edges": [(0, 1)], "features": [["a"], ["b"]]}, GraphFormatError, "FeatureEncoder"),
        ({"edges": [(0, 1)], "features": [[1], [1, 2]]}, GraphFormatError, "rows have different lengths"),
        ({"edges": [(0, 1)], "weights": [1e300]}, GraphFormatError, r"1e\+300, more than float32 can hold"),
        (
            {"edges": [("a", "b")], "features": [[1, 2], [3, np.nan]]},
            GraphFormatError,
            r"features\[1, 1\] \(node 'b'\) is nan",
        ),
        ({"edges": [(0, 1)], "features": [[1e39], [0]]}, GraphFormatError, r"features\[0, 0\] .* is 1e\+39"),
        (
            {"edges": [(0, 1)], "features": csr_array([[0, 0, np.inf], [1, 0, 0]])},
            GraphFormatError,
            r"features\[0, 2\] \(node 0\) is inf",
        ),
        ({"edges": [(0, 1)], "features": csr_array([[1j], [0]])}, GraphFormatError, "must be real numbers"),
        ({"edges": [(0, 1)], "feature_names": ["a"]}, GraphFormatError, "without features"),
        (
            {"edges": [(0, 1)], "features": [[1], [2]], "feature_names": ["a", "b"]},
            GraphFormatError,
            "2 feature_names for 1 feature columns",
        ),
    ],
)
def test_bad_input_says_what_is_wrong(arguments, kind, message):
    with pytest.raises(kind, match=message):
        Graph.from_edges(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], []), "at least one node"),
        (([0, 1, 2], [1, 0], None, [0, 1, 2]), "CSR matrix: 3 rows of integers; got 2"),
        (([0, 1, 3], [1, 0]), "CSR matrix: "),
        (([0, 2, 1, 2], [1, 0]), "CSR matrix: "),
        (([0, 1, 2], [1.0, 0.0]), "rows of integers; got 2 of float64"),
        (([0, 1, 2], [1, 2]), "CSR matrix: indices must be < 2"),
        (([0, 1, 2], [0, 1]), "row of node 0 must be sorted, .* without the node itself"),
        (([0, 2, 3, 4], [2, 1, 0, 0]), "row of node 0 must be sorted"),
        (([0, 2, 4], [1, 1, 0, 0]), "without repeats"),
        (([0, 1, 1], [1]), "must be symmetric"),
        (([0, 1, 2], [1, 0], [1, 2]), "must be symmetric, .* with the same weight"),
        (([0, 1, 2], [1, 0], [1, 1, 1]), r"must be \(2,\) like indices; got \(3,\)"),
        (([0, 1, 2], [1, 0], [0, 0]), "finite and > 0"),
        (([0, 1, 2], [1, 0], None, ["a", "a"]), "more than once: 'a'"),
    ],
)
def test_the_constructor_refuses_arrays_that_break_a_rule(arguments, message):
    indptr, indices, *rest = arguments
    with pytest.raises(GraphFormatError, match=message):
        Graph(np.array(indptr), np.array(indices), *[None if r is None else np.array(r) for r in rest])


def test_a_sparse_matrix_with_broken_arrays_is_refused():
    broken = csr_array((2, 2), dtype=np.float32)
    broken.data, broken.indices, broken.indptr = np.ones(1, np.float32), np.array([7]), np.array([0, 1, 1])
    with pytest.raises(GraphFormatError, match="not a valid sparse matrix"):
        Graph.from_edges([(0, 1)], features=broken)


def test_sparse_features_are_brought_into_canonical_order_without_touching_the_users_matrix():
    given_matrix = csr_array((np.ones(3), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2))
    graph = Graph.from_edges([(0, 1)], features=given_matrix)
    assert graph.features.toarray().tolist() == [[1, 2], [0, 0]]
    assert given_matrix.indices.tolist() == [1, 0, 1]


def test_float32_features_are_not_copied():
    features = np.ones((2, 3), np.float32)
    assert np.shares_memory(Graph.from_edges([(0, 1)], features=features).features, features)
    sparse = csr_array(np.eye(2, 50, dtype=np.float32))
    assert np.shares_memory(Graph.from_edges([(0, 1)], features=sparse).features.data, sparse.data)
    assert features.flags.writeable
    assert sparse.data.flags.writeable


def test_the_features_of_some_nodes():
    graph = Graph.from_edges([(0, 1)], features=[[1], [2]])
    assert graph.feature_rows(np.array([1, 1, 0])).tolist() == [[2], [2], [1]]
    with pytest.raises(MissingFeaturesError, match="no features"):
        graph.with_features(None).feature_rows(np.array([0]))


def test_a_subgraph_refuses_no_names_repeats_and_strangers():
    graph = Graph.from_edges([("ann", "bob")])
    with pytest.raises(GraphFormatError, match="got no names for the subgraph"):
        graph.subgraph([])
    with pytest.raises(GraphFormatError, match="given more than once: 'ann'"):
        graph.subgraph(["ann", "bob", "ann"])
    with pytest.raises(UnknownNodeError, match="'zoe'"):
        graph.subgraph(["zoe"])


def test_a_repr_is_one_useful_line():
    assert repr(Graph.from_edges([(0, 1)])) == "Graph(2 nodes, 1 edge)"
    full = Graph.from_edges([("a", "b"), ("b", "c")], weights=[1, 2], features=csr_array(np.eye(3)))
    assert repr(full) == "Graph(3 nodes, 2 edges, weighted, 3 sparse features, names 'a', 'b', ...)"


def test_a_graph_cannot_be_changed():
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(AttributeError):
        graph.names = np.array([1, 0])
    with pytest.raises(ValueError, match="read-only"):
        graph.indices[0] = 0


def test_a_graph_survives_a_trip_to_another_process():
    graph = Graph.from_edges([("a", "b")], weights=[2], features=csr_array(np.eye(2)))
    assert graph.degrees.tolist() == [1, 1]
    assert_same_graph(pickle.loads(pickle.dumps(graph)), graph)  # noqa: S301


def test_memory_mapped_arrays_are_taken_as_they_are(tmp_path):
    graph = Graph.from_edges([(0, 1), (1, 2)])
    np.save(tmp_path / "indices.npy", graph.indices)
    mapped = np.load(tmp_path / "indices.npy", mmap_mode="r")
    assert np.shares_memory(Graph(graph.indptr, mapped).indices, mapped)
