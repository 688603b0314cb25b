"""Round trips through other libraries' graphs, and what each converter makes of their kinds."""

import sys
import warnings

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix, csr_array, save_npz

from spinegraph import SPINE, Graph, read_graph
from spinegraph.errors import (
    DirectedInputWarning,
    EdgeCleaningWarning,
    GraphFormatError,
    MissingFeaturesError,
    MissingPackageError,
    ParameterError,
    SkippedColumnWarning,
)
from spinegraph.graph.convert import optional_package
from strategies import assert_same_graph, dense_adjacency, dense_features, graphs


def columns_of(graph):
    if not graph.has_features:
        return ()
    return graph.feature_names or tuple(f"feature_{place}" for place in range(graph.features.shape[1]))


def assert_kept(found, graph):
    """Assert that a round trip kept all; a weighted graph without edges may come back unweighted."""
    weights = graph.weights if found.num_edges else found.weights
    names = found.feature_names if graph.feature_names is None else graph.feature_names
    expected = Graph._trusted(graph._rows._replace(weights=weights), graph.names, graph.features, names)
    assert_same_graph(found, expected)


@given(graphs())
def test_networkx_and_back(graph):
    missing = "fill" if isinstance(graph.features, np.ndarray) else "zero"
    assert_kept(
        Graph.from_networkx(graph.to_networkx(), feature_attributes=columns_of(graph), missing=missing), graph
    )


@given(graphs())
def test_igraph_and_back(graph):
    missing = "fill" if isinstance(graph.features, np.ndarray) else "zero"
    assert_kept(
        Graph.from_igraph(graph.to_igraph(), feature_attributes=columns_of(graph), missing=missing), graph
    )


@given(graphs())
def test_scipy_and_back(graph):
    matrix = graph.to_scipy()
    np.testing.assert_array_equal(matrix.toarray(), dense_adjacency(graph))
    found = Graph.from_scipy(
        matrix,
        graph.features,
        graph.names,
        feature_names=graph.feature_names,
        weighted=graph.weights is not None,
    )
    assert_same_graph(found, graph)


@given(graphs(), st.booleans())
def test_pyg_and_back(graph, sparse):
    data = graph.to_pyg()
    if graph.has_features:
        features = dense_features(graph.features)
        graph = graph.with_features(csr_array(features) if sparse else features, graph.feature_names)
        data.x = data.x.to_sparse() if sparse else data.x
    assert_same_graph(Graph.from_pyg(data), graph)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
@given(graph=graphs())
def test_tables_and_back(graph, kind):
    found = Graph.from_dataframe(graph.to_dataframe(kind), nodes=graph.to_dataframe(kind, "nodes"))
    if graph.has_features:
        graph = graph.with_features(dense_features(graph.features), graph.feature_names)
    assert_kept(found, graph)


def test_a_directed_networkx_graph_is_made_symmetric_and_says_so_at_the_callers_line():
    with pytest.warns(DirectedInputWarning, match="1 directed edge made symmetric") as caught:
        graph = Graph.from_networkx(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b")]))
    assert graph.degrees.tolist() == [1, 2, 1]
    assert caught[0].filename == __file__


def test_parallel_networkx_edges_add_where_weighted_and_count_once_where_not():
    parallel = nx.MultiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    assert Graph.from_networkx(parallel).weights is None
    weighted = nx.MultiGraph()
    weighted.add_weighted_edges_from([("a", "b", 1), ("b", "a", 2.5)])
    assert Graph.from_networkx(weighted).weights.tolist() == [3.5, 3.5]
    with pytest.warns(DirectedInputWarning):
        assert Graph.from_networkx(nx.MultiDiGraph([(0, 1), (0, 1)])).num_edges == 1


def test_unequal_ways_of_a_directed_networkx_graph_need_a_rule():
    both = nx.DiGraph()
    both.add_weighted_edges_from([("a", "b", 1), ("b", "a", 2)])
    with pytest.raises(GraphFormatError, match=r"\('a', 'b'\) with 1 and \('b', 'a'\) with 2"):
        Graph.from_networkx(both)
    assert Graph.from_networkx(both, reciprocal="sum").weights.tolist() == [3, 3]


def test_networkx_edges_without_a_weight_weigh_one_beside_others():
    mixed = nx.Graph([("a", "b", {"weight": 3}), ("b", "c")])
    assert Graph.from_networkx(mixed).weights.tolist() == [3, 3, 1, 1]
    assert Graph.from_networkx(mixed, weight=None).weights is None
    assert Graph.from_networkx(mixed, weight="strength").weights is None


def test_networkx_self_loops_are_dropped_with_a_warning():
    with pytest.warns(EdgeCleaningWarning, match="1 self-loop"):
        assert Graph.from_networkx(nx.Graph([(0, 0), (0, 1)])).num_edges == 1


def test_networkx_attributes_are_features_only_when_asked_for():
    people = nx.Graph([("ann", "bob")])
    people.add_node("ann", age=31, staff=True)
    people.add_node("bob", age=45)
    assert not Graph.from_networkx(people).has_features
    graph = Graph.from_networkx(people, feature_attributes=["age"])
    assert graph.features.tolist() == [[31], [45]]
    assert graph.feature_names == ("age",)
    gaps = Graph.from_networkx(people, feature_attributes=None)
    assert gaps.feature_names == gaps.encoder.feature_names_ == ("age", "staff", "staff is missing")
    filled = Graph.from_networkx(people, feature_attributes=["age", "staff"], missing="zero")
    assert filled.features.toarray().tolist() == [[31, 1], [45, 0]]
    with pytest.raises(ParameterError, match="missing must be 'fill' or 'zero'; got 'mean'"):
        Graph.from_networkx(people, feature_attributes=["age"], missing="mean")
    for convert in (
        lambda: Graph.from_networkx(people, missing="error"),
        lambda: Graph.from_dataframe({"a": [1], "b": [2]}, missing="error"),
        lambda: Graph.from_dataframe({"a": [1], "b": [2]}, nodes={"node": [1]}, missing="error"),
    ):
        with pytest.raises(ParameterError, match="missing must be 'fill' or 'zero'; got 'error'"):
            convert()


@pytest.mark.parametrize("value", [[1, 2], 1j])
def test_attributes_that_no_encoder_reads_are_refused(value):
    people = nx.Graph()
    people.add_node("ann", team=value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedColumnWarning)
        with pytest.raises(GraphFormatError, match=r"no column is left|column 'team'"):
            Graph.from_networkx(people, feature_attributes=["team"])


def people_with_text():
    """Ten people in a ring with text, a category, a number with gaps, and one who lacks all of these."""
    ring = nx.cycle_graph(10)
    for node in range(9):
        topic = "audits invoices and ledgers" if node % 2 else "patches the kernel and compiler"
        ring.nodes[node].update(about=f"Person {node} {topic}", team="ab"[node % 2], _seen=True)
        if node:
            ring.nodes[node]["age"] = 30 + node
    return ring


@pytest.mark.parametrize("form", ["networkx", "igraph", "table"])
def test_text_categories_and_gaps_become_features_by_an_encoder(form):
    ring = people_with_text()
    if form == "networkx":
        graph = Graph.from_networkx(ring, feature_attributes=None)
    elif form == "igraph":
        graph = Graph.from_igraph(igraph.Graph.from_networkx(ring), feature_attributes=None)
    else:
        nodes = pd.DataFrame([{"node": node} | data for node, data in ring.nodes(data=True) if data]).drop(
            columns="_seen"
        )
        graph = Graph.from_dataframe(nx.to_pandas_edgelist(ring), nodes=nodes)
    assert graph.encoder.kinds_ == {"about": "text", "team": "category", "age": "number"}
    assert {"about: invoices", "team = a", "age is missing", "no row in the table"} <= set(
        graph.feature_names
    )
    assert graph.features.toarray()[9, -1] == 1
    assert graph.features.toarray()[:9, -1].sum() == 0


def graphs_of_others():
    ring = people_with_text()
    edges = nx.to_pandas_edgelist(ring)
    plain, listed = Graph.from_networkx(ring), Graph.from_dataframe(edges)
    return {
        "networkx": (ring, Graph.from_networkx(ring, feature_attributes=None)),
        "igraph": (
            igraph.Graph.from_networkx(ring),
            Graph.from_igraph(igraph.Graph.from_networkx(ring), feature_attributes=None),
        ),
        "pyg": (plain.to_pyg(), plain),
        "scipy": (plain.to_scipy(), plain),
        "scipy matrix": (csc_matrix(plain.to_scipy()), plain),
        "pandas": (edges, listed),
        "polars": (pl.from_pandas(edges), listed),
        "arrow": (pa.Table.from_pandas(edges), listed),
    }


@pytest.mark.parametrize("form", sorted(graphs_of_others()))
def test_a_model_takes_the_graphs_of_others_as_they_are(form):
    given, graph = graphs_of_others()[form]
    model = SPINE(dim=8).fit(given)
    expected = SPINE(dim=8).fit(graph)
    assert model.embeddings_.names.tolist() == expected.embeddings_.names.tolist()
    np.testing.assert_array_equal(model.embeddings_.vectors, expected.embeddings_.vectors)
    np.testing.assert_allclose(model.transform(given).vectors, model.embeddings_.vectors, atol=1e-5)


@pytest.mark.filterwarnings("ignore::spinegraph.errors.UnfamiliarDataWarning")
def test_a_model_encodes_the_attributes_of_later_graphs_as_those_it_was_fitted_on():
    model = SPINE(dim=8).fit(people_with_text())
    later = people_with_text()
    later.add_edge("new", 0)
    later.nodes["new"].update(about="A ledger, invoices", team="z", age=90)
    vectors = model.transform(later, nodes=["new", 9]).vectors
    assert np.isfinite(vectors).all()
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    later.nodes["new"]["shoes"] = 44
    with pytest.raises(MissingFeaturesError, match="unknown 'shoes'"):
        model.transform(later)


def test_what_is_no_graph_is_still_refused():
    for wrong in (np.eye(3), "edges.csv", [("a", "b")], 5):
        with pytest.raises(ParameterError, match="fit takes a Graph"):
            SPINE(dim=2).fit(wrong)


def test_an_empty_networkx_or_igraph_graph_is_refused():
    for convert, empty in ((Graph.from_networkx, nx.Graph()), (Graph.from_igraph, igraph.Graph())):
        with pytest.raises(GraphFormatError, match="at least one node"):
            convert(empty)


@pytest.mark.parametrize("convert", [Graph.from_networkx, Graph.from_igraph, Graph.from_pyg])
def test_something_else_than_the_librarys_graph_is_refused(convert):
    with pytest.raises(GraphFormatError, match=r"expected a.* got dict"):
        convert({"a": "b"})


def test_a_directed_igraph_graph_is_made_symmetric_and_says_so():
    with pytest.warns(DirectedInputWarning, match="2 directed edges"):
        graph = Graph.from_igraph(igraph.Graph([(0, 1), (1, 2)], directed=True))
    assert graph.num_edges == 2


def test_igraph_cannot_hold_a_feature_called_name():
    graph = Graph.from_edges([(0, 1)], features=[[1], [2]], feature_names=["name"])
    with pytest.raises(GraphFormatError, match="pass features=False"):
        graph.to_igraph()
    assert graph.to_igraph(features=False).vs.attributes() == []


def test_features_that_share_a_name_cannot_become_attributes():
    graph = Graph.from_edges([(0, 1)], features=np.eye(2), feature_names=["age", "age"])
    with pytest.raises(GraphFormatError, match="'age' occurs more than once"):
        graph.to_networkx()
    assert len(graph.to_networkx(features=False)) == 2


@pytest.mark.parametrize("kind", [csr_array, csc_matrix, coo_array, np.array])
def test_a_symmetric_matrix_is_not_doubled(kind):
    matrix = kind([[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]])
    graph = Graph.from_scipy(matrix)
    assert graph.weights.tolist() == [2.5, 2.5, 1, 1]
    assert graph.num_edges == 2


def test_a_matrix_of_ones_is_unweighted_unless_told_otherwise():
    matrix = csr_array([[0, 1], [1, 0]])
    assert Graph.from_scipy(matrix).weights is None
    assert Graph.from_scipy(matrix, weighted=True).weights.tolist() == [1, 1]
    assert Graph.from_scipy(matrix * 7, weighted=False).weights is None
    assert Graph.from_scipy(matrix.astype(bool)).weights is None


def test_an_asymmetric_matrix_is_directed_input():
    with pytest.warns(DirectedInputWarning, match="1 directed edge made symmetric"):
        assert Graph.from_scipy(csr_array([[0, 3], [0, 0]])).weights.tolist() == [3, 3]
    with pytest.raises(GraphFormatError, match=r"\(0, 1\) with 3 and \(1, 0\) with 4"):
        Graph.from_scipy(csr_array([[0, 3], [4, 0]]))
    assert Graph.from_scipy(csr_array([[0, 3], [4, 0]]), reciprocal="mean").weights.tolist() == [3.5, 3.5]


def test_stored_zeros_and_the_diagonal_of_a_matrix_are_dropped_with_a_warning():
    stored = coo_array(([5.0, 2, 2, 0, 0], ([0, 0, 1, 0, 2], [0, 1, 0, 2, 0])), shape=(3, 3))
    with pytest.warns(EdgeCleaningWarning, match="1 self-loop and 2 zero-weight listings dropped"):
        graph = Graph.from_scipy(stored)
    assert graph.num_edges == 1
    with pytest.warns(EdgeCleaningWarning, match="1 self-loop dropped of 3"):
        assert Graph.from_scipy(stored, weighted=False).num_edges == 1


def test_an_igraph_edge_without_a_weight_weighs_1_as_in_networkx():
    made = igraph.Graph(n=3, edges=[(0, 1), (1, 2)])
    made.es["weight"] = [2.5, None]
    assert Graph.from_igraph(made).weights.tolist() == [2.5, 2.5, 1, 1]
    made.es["weight"] = [None, None]
    assert Graph.from_igraph(made).weights is None


def test_what_a_matrix_stores_twice_adds_as_in_scipy(tmp_path):
    doubled = coo_array((np.ones(4), ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    rows = csr_array((np.ones(4), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2))
    save_npz(tmp_path / "a.npz", doubled)
    for matrix in (doubled, rows):
        assert Graph.from_scipy(matrix).weights.tolist() == [2, 2]
        assert matrix.nnz == 4, "the caller's matrix stays as it is"
    assert read_graph(tmp_path / "a.npz").weights.tolist() == [2, 2]


def test_zeros_that_a_matrix_stores_are_no_edges_and_no_weights(tmp_path, recwarn):
    ones = csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    stored = csr_array((np.r_[ones.data, 0, 0], np.r_[ones.indices, 0, 0], [0, 1, 3, 6]), shape=(3, 3))
    save_npz(tmp_path / "a.npz", stored)
    for graph in (
        Graph.from_scipy(stored),
        Graph.from_scipy(stored, weighted=False),
        read_graph(tmp_path / "a.npz"),
        read_graph(tmp_path / "a.npz", weighted=False),
    ):
        assert graph.weights is None
        assert graph.degrees.tolist() == [1, 2, 1]
    assert not recwarn.list


def test_a_file_of_one_half_of_a_matrix_is_directed_input_as_the_matrix_is(tmp_path):
    save_npz(tmp_path / "a.npz", csr_array([[0, 1], [0, 0]]))
    with pytest.warns(DirectedInputWarning, match="1 directed edge made symmetric"):
        assert read_graph(tmp_path / "a.npz").num_edges == 1


def test_a_matrix_brings_features_and_names():
    graph = Graph.from_scipy(csr_array([[0, 1], [1, 0]]), features=np.eye(2), names=["a", "b"])
    assert graph.names.tolist() == ["a", "b"]
    assert graph.features.shape == (2, 2)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (csr_array((2, 3)), r"shape \(n, n\) .*; got \(2, 3\)"),
        (np.zeros(4), r"got \(4,\)"),
        (np.zeros((0, 0)), r"got \(0, 0\)"),
        (csr_array([[0, 1j], [1j, 0]]), "real numbers; got dtype complex128"),
        (csr_array([[0, -1], [-1, 0]]), r"edge \(0, 1\) is -1.0; weights must be finite"),
        (csr_array([[0, np.nan], [1, 0]]), r"edge \(0, 1\) is nan"),
    ],
)
def test_bad_matrices_say_what_is_wrong(matrix, message):
    with pytest.raises(GraphFormatError, match=message):
        Graph.from_scipy(matrix)
    with pytest.raises(GraphFormatError, match="3 names for a matrix"):
        Graph.from_scipy(csr_array((2, 2)), names=[1, 2, 3])


@pytest.fixture(scope="module")
def pyg():
    return optional_package("torch_geometric.data")


def test_pyg_edges_in_one_direction_are_directed_input(pyg):
    with pytest.warns(DirectedInputWarning, match="1 directed edge"):
        graph = Graph.from_pyg(pyg.Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3))
    assert graph.degrees.tolist() == [1, 1, 0]
    with pytest.warns(DirectedInputWarning):
        assert len(Graph.from_pyg(pyg.Data(edge_index=torch.tensor([[0], [1]])))) == 2


def test_pyg_edges_are_positions_also_beside_names_that_are_whole_numbers(pyg):
    data = pyg.Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), names=[1, 0, 2])
    assert Graph.from_pyg(data).neighbors(0).tolist() == [1, 2]
    data.names = [10, 20, 30]
    assert Graph.from_pyg(data).neighbors(20).tolist() == [10, 30]


def test_pyg_tensors_of_other_kinds_are_taken(pyg):
    graph = Graph.from_pyg(
        pyg.Data(
            edge_index=torch.tensor([[0, 1], [1, 0]]),
            edge_weight=torch.tensor([2.0, 2.0], requires_grad=True),
            x=torch.tensor([[1.5], [2.5]], dtype=torch.bfloat16),
        )
    )
    assert graph.weights.tolist() == [2, 2]
    assert graph.features.tolist() == [[1.5], [2.5]]


def test_pyg_heterogeneous_data_is_refused_with_a_way_out(pyg):
    with pytest.raises(GraphFormatError, match=r"pass data.to_homogeneous\(\)"):
        Graph.from_pyg(pyg.HeteroData())
    with pytest.raises(GraphFormatError, match="with edge_index; got Data without one"):
        Graph.from_pyg(pyg.Data(x=torch.ones(2, 2)))


def frames():
    columns = {"from": ["ann", "bob"], "to": ["bob", "cy"], "calls": [2, 3]}
    return [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns), columns]


@pytest.mark.parametrize("frame", frames(), ids=["pandas", "polars", "arrow", "dict"])
def test_columns_of_any_table_are_chosen_by_name_or_place(frame):
    graph = Graph.from_dataframe(frame, source="to", target="from", weight="calls")
    assert graph.names.tolist() == ["bob", "ann", "cy"]
    assert graph.weights.tolist() == [2, 3, 2, 3]
    assert Graph.from_dataframe(frame).names.tolist() == ["ann", "bob", "cy"]
    assert Graph.from_dataframe(frame).weights is None


def test_a_weight_column_is_taken_unless_told_otherwise():
    edges = {"source": [1], "target": [2], "weight": [0.5]}
    assert Graph.from_dataframe(edges).weights.tolist() == [0.5, 0.5]
    assert Graph.from_dataframe(edges, weight=False).weights is None


def test_integers_in_tables_are_names():
    graph = Graph.from_dataframe({"source": [1001, 7], "target": [7, 3]})
    assert graph.names.tolist() == [1001, 7, 3]
    assert graph.names.dtype == np.int64


def test_a_table_of_nodes_sets_the_order_and_adds_features_and_isolated_nodes():
    nodes = pd.DataFrame({"who": ["cy", "ann", "bob"], "age": [28, 31, 45], "staff": [True, False, True]})
    graph = Graph.from_dataframe({"a": ["ann"], "b": ["bob"]}, nodes=nodes)
    assert graph.names.tolist() == ["cy", "ann", "bob"]
    assert graph.degrees.tolist() == [0, 1, 1]
    assert graph.features.tolist() == [[28, 1], [31, 0], [45, 1]]
    assert graph.feature_names == ("age", "staff")
    chosen = Graph.from_dataframe({"a": ["ann"], "b": ["bob"]}, nodes=nodes, node="who", features=["staff"])
    assert chosen.feature_names == ("staff",)


def test_a_pandas_index_or_a_column_titled_name_names_the_nodes():
    edges = {"a": ["ann"], "b": ["bob"]}
    people = pd.DataFrame({"age": [31, 45], "pay": [2, 3]}, index=["ann", "bob"])
    titled = people.rename_axis("who")
    last = people.reset_index(names="name")[["age", "pay", "name"]]
    for nodes in (people, titled, last, titled.reset_index().set_index(pd.Index([3, 7]))):
        graph = Graph.from_dataframe(edges, nodes=nodes)
        assert graph.names.tolist() == ["ann", "bob"]
        assert graph.feature_names == ("age", "pay")


def test_nodes_that_the_node_table_lacks_are_filled_or_zeros():
    edges, nodes = {"s": ["a"], "t": ["b"]}, {"node": ["a"], "age": [3.0], "team": ["x"]}
    zeros = Graph.from_dataframe(edges, nodes=nodes, features=["age"], missing="zero")
    assert zeros.features.tolist() == [[3], [0]]
    filled = Graph.from_dataframe(edges, nodes=nodes)
    assert filled.feature_names == ("age", "team = x", "no row in the table")
    assert filled.features.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]


EDGES = {"s": ["a"], "t": ["b"]}


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"edges": {"s": ["a"]}}, GraphFormatError, "two columns, source and target; got .'s'."),
        ({"edges": EDGES, "source": "s"}, ParameterError, "pass source and target together"),
        (
            {"edges": EDGES, "source": "s", "target": "z"},
            ParameterError,
            "edges: no column 'z'; the columns are s, t",
        ),
        ({"edges": EDGES, "weight": "w"}, ParameterError, "edges: no column 'w'"),
        (
            {"edges": EDGES, "source": "s", "target": "t", "weight": "s"},
            GraphFormatError,
            "column 's': expected numbers",
        ),
        ({"edges": {**EDGES, "weight": [None]}}, GraphFormatError, r"edge \('a', 'b'\) is nan"),
        ({"edges": {**EDGES, "weight": [-2]}}, GraphFormatError, r"edge \('a', 'b'\) is -2.0"),
        ({"edges": {"s": ["a", None], "t": ["b", "c"]}}, GraphFormatError, "'s' has no name in row 1"),
        (
            {"edges": {"s": [1.5], "t": [2.0]}},
            GraphFormatError,
            "'s' holds double; convert names to integers or strings",
        ),
        ({"edges": {"s": [], "t": []}}, GraphFormatError, "at least one node; got none"),
        ({"edges": EDGES, "node": "n"}, ParameterError, "pass nodes=... too"),
        ({"edges": EDGES, "nodes": {}}, GraphFormatError, "no columns"),
        (
            {"edges": EDGES, "nodes": {"n": ["a", "b"]}, "node": "z"},
            GraphFormatError,
            "nodes have no column 'z'",
        ),
        (
            {"edges": EDGES, "nodes": {"age": [3, 4], "who": ["x", "y"]}},
            MissingFeaturesError,
            "nodes: none of its 2 names is a node of the edges; "
            "they look like 3, 4, but the nodes look like 'a', 'b'",
        ),
        ({"edges": EDGES, "nodes": {"n": ["a", "b", "a"]}}, MissingFeaturesError, "more than once: 'a'"),
        (
            {"edges": EDGES, "nodes": {"n": ["a", "b"], "x": [1, 1e39]}},
            GraphFormatError,
            r"nodes: row 1: column 'x': the value 1e\+39 is not a finite float32",
        ),
    ],
)
def test_bad_tables_say_what_is_wrong(arguments, kind, message):
    with pytest.raises(kind, match=message):
        Graph.from_dataframe(**arguments)


def test_the_kind_of_table_is_one_of_three():
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(ParameterError, match="kind must be one of 'pandas', 'polars', 'arrow'; got 'excel'"):
        graph.to_dataframe("excel")
    with pytest.raises(ParameterError, match="table must be one of 'edges', 'nodes'; got 'both'"):
        graph.to_dataframe(table="both")


def test_names_and_features_that_fill_no_column_are_refused():
    with pytest.raises(GraphFormatError, match="one simple type"):
        Graph.from_edges([(1, "one")]).to_dataframe("arrow")
    graph = Graph.from_edges([(0, 1)], features=[[1], [2]], feature_names=["node"])
    with pytest.raises(GraphFormatError, match="the name 'node' of a feature is taken"):
        graph.to_dataframe("arrow", "nodes")


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("networkx", lambda graph: graph.to_networkx()),
        ("igraph", lambda graph: graph.to_igraph()),
        ("torch_geometric", lambda graph: graph.to_pyg()),
        ("pandas", lambda graph: graph.to_dataframe("pandas")),
        ("polars", lambda graph: graph.to_dataframe("polars")),
    ],
)
def test_a_missing_package_is_an_error_with_the_pip_line(package, call, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # import then raises ImportError
    title = package.replace("_", "-")
    wanted = title if package in ("igraph", "torch_geometric") else r"'spinegraph\[graphs\]'"
    said = rf"^{title} is needed here .* pip install {wanted}$"
    with pytest.raises(MissingPackageError, match=said):
        call(Graph.from_edges([(0, 1)]))
