"""Additions beside a base graph: the same graph as one built from all edges at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from spinegraph import Graph
from spinegraph.errors import (
    EdgeCleaningWarning,
    GraphFormatError,
    MissingFeaturesError,
    ParameterError,
    UnknownNodeError,
)
from spinegraph.graph.overlay import Overlay
from strategies import (
    assert_same_graph,
    dense_adjacency,
    dense_features,
    edge_arrays,
    feature_matrices,
    graphs,
    weights_above_zero,
)


@st.composite
def additions(draw, overlay):
    """Arguments of ``add``: new names, edges between any nodes, features and weights as the base has."""
    count = draw(st.integers(0, 4))
    new = [f"new {len(overlay) + place}" for place in range(count)]
    names = [*overlay.names.tolist(), *new]
    pairs = draw(edge_arrays(len(names), max_edges=8))
    base = overlay.base
    features = None
    if base.has_features:
        width = base.features.shape[1]
        features = draw(feature_matrices(max(count, 1), "s" if draw(st.booleans()) else "d", width))[:count]
        features = np.zeros((count, width), np.float32) if features.shape[1] != width else features
    return {
        "names": new,
        "edges": [(names[source], names[target]) for source, target in pairs],
        "features": features,
        "weights": None if base.weights is None else [draw(weights_above_zero) for _ in pairs],
    }


@st.composite
def grown(draw):
    """Return a base graph, an overlay after one to three additions, and the additions."""
    base = draw(graphs(max_nodes=7))
    overlay, steps = Overlay.of(base), []
    for _ in range(draw(st.integers(1, 3))):
        step = draw(additions(overlay))
        overlay = overlay.add(**step)
        steps.append(step)
    return base, overlay, steps


def added_up(base, steps):
    """Adjacency matrix after the additions, entry by entry: an edge that is there already grows."""
    names = base.names.tolist() + [name for step in steps for name in step["names"]]
    matrix = np.zeros((len(names), len(names)))
    matrix[: len(base), : len(base)] = dense_adjacency(base)
    place = {name: position for position, name in enumerate(names)}
    for step in steps:
        for number, (source, target) in enumerate(step["edges"]):
            at = (place[source], place[target])
            weight = matrix[at] + step["weights"][number] if step["weights"] is not None else 1
            matrix[at] = matrix[at[::-1]] = weight
    return names, matrix


@given(grown())
def test_an_overlay_is_the_graph_of_all_edges_together(case):
    base, overlay, steps = case
    names, matrix = added_up(base, steps)
    whole = overlay.materialize()
    assert whole.names.tolist() == names
    np.testing.assert_allclose(dense_adjacency(whole), matrix, rtol=1e-6)
    Graph(whole.indptr, whole.indices, whole.weights, whole.names, whole.features, whole.feature_names)


@given(grown())
def test_an_overlay_reads_like_its_materialized_graph(case):
    _, overlay, _ = case
    whole = overlay.materialize()
    assert len(overlay) == len(whole) == overlay.num_nodes
    assert overlay.num_edges == whole.num_edges
    assert overlay.names.tolist() == whole.names.tolist()
    assert overlay.positions(whole.names).tolist() == list(range(len(whole)))
    np.testing.assert_array_equal(overlay.degrees, whole.degrees)
    np.testing.assert_allclose(overlay.strengths, whole.strengths, rtol=1e-12)
    for name in whole.names:
        assert overlay.neighbors(name).tolist() == whole.neighbors(name).tolist()
    assert overlay.has_features == whole.has_features
    assert overlay.feature_names == whole.feature_names


@given(grown())
def test_kernels_read_the_rows_of_an_overlay_from_base_and_patch(case):
    _, overlay, _ = case
    whole, read = overlay.materialize(), overlay.adjacency()
    for node in range(len(overlay)):
        row = read.rows[node]
        indptr, indices, weights, at = (
            (read.indptr, read.indices, read.weights, node)
            if row < 0
            else (read.patch_indptr, read.patch_indices, read.patch_weights, row)
        )
        part = slice(indptr[at], indptr[at + 1])
        expected = slice(whole.indptr[node], whole.indptr[node + 1])
        assert indices[part].tolist() == whole.indices[expected].tolist()
        if whole.weights is not None:
            assert weights[part].tolist() == whole.weights[expected].tolist()


@given(grown(), st.data())
def test_feature_rows_are_those_of_the_whole(case, data):
    _, overlay, _ = case
    if not overlay.has_features:
        return
    wanted = np.array(data.draw(st.lists(st.integers(0, len(overlay) - 1), max_size=8)), dtype=np.int64)
    found = overlay.feature_rows(wanted)
    np.testing.assert_array_equal(dense_features(found), dense_features(overlay.features)[wanted])


@given(graphs(max_nodes=6), st.data())
def test_with_nodes_is_a_materialized_overlay(base, data):
    step = data.draw(additions(Overlay.of(base)))
    assert_same_graph(base.with_nodes(**step), base.overlay(**step).materialize())


def test_an_overlay_shares_the_arrays_of_its_base():
    base = Graph.from_edges([(0, 1), (1, 2)], weights=[1, 2], features=np.eye(3, dtype=np.float32))
    read = base.overlay([3], [(3, 0)], features=np.ones((1, 3)), weights=[5]).adjacency()
    assert np.shares_memory(read.indptr, base.indptr)
    assert np.shares_memory(read.indices, base.indices)
    assert np.shares_memory(read.weights, base.weights)


def test_adding_leaves_the_earlier_overlay_as_it_was():
    first = Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)])
    second = first.add([3], [(3, 2)])
    assert first.degrees.tolist() == [2, 1, 1]
    assert second.degrees.tolist() == [2, 1, 2, 1]


def test_an_edge_listed_again_grows_in_weight():
    base = Graph.from_edges([("ann", "bob")], weights=[1.5])
    whole = base.with_nodes([], [("bob", "ann")], weights=[2])
    assert whole.weights.tolist() == [3.5, 3.5]


def test_integers_in_added_edges_are_names():
    base = Graph.from_edges([(0, 1), (1, 2)], num_nodes=3, names=[30, 10, 20])
    assert base.overlay([40], [(40, 30)]).neighbors(40).tolist() == [30]


def test_new_nodes_may_have_another_kind_of_name():
    whole = Graph.from_edges([(0, 1)]).with_nodes(["cy"], [("cy", 0)])
    assert whole.names.tolist() == [0, 1, "cy"]


def test_new_nodes_without_edges_are_isolated():
    overlay = Graph.from_edges([(0, 1)]).overlay([2, 3], [])
    assert overlay.degrees.tolist() == [1, 1, 0, 0]
    assert overlay.neighbors(3).tolist() == []


def test_sparse_features_stay_sparse():
    base = Graph.from_edges([(0, 1)], features=csr_array(np.eye(2)))
    overlay = base.overlay([2], [(2, 0)], features=[[1, 1]])
    assert overlay.feature_rows(np.array([2, 0])).format == "csr"
    assert overlay.materialize().features.format == "csr"


def test_self_loops_in_an_addition_are_dropped_with_a_warning():
    with pytest.warns(EdgeCleaningWarning, match="1 self-loop dropped of 2 listed edges"):
        overlay = Graph.from_edges([(0, 1)]).overlay([2], [(2, 2), (2, 1)])
    assert overlay.report.self_loops == 1
    assert overlay.num_edges == 2


@pytest.mark.parametrize("grow", [Graph.overlay, Graph.with_nodes, lambda g, *a: Overlay.of(g).add(*a)])
def test_a_warning_points_at_the_line_that_added(grow):
    with pytest.warns(EdgeCleaningWarning) as caught:
        grow(Graph.from_edges([(0, 1)]), [2], [(2, 2)])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"names": ["bob"]}, GraphFormatError, "1 new names are in the graph already: 'bob'"),
        ({"names": ["cy", "cy"]}, GraphFormatError, "unique; given more than once: 'cy'"),
        ({"edges": [("ann", "zoe")]}, UnknownNodeError, "edges: 1 of 2 names are not in the graph: 'zoe'"),
        ({"edges": [("ann", "bob")], "weights": [1]}, GraphFormatError, "unweighted; leave weights out"),
        ({"names": ["cy"], "features": None}, MissingFeaturesError, "pass features=... with a row for each"),
        ({"names": ["cy"], "features": [[1, 2]]}, MissingFeaturesError, "1 features per node, new nodes 2"),
        ({"names": ["cy"], "features": [[1], [2]]}, MissingFeaturesError, "features have 2 rows"),
        (
            {"names": ["cy"], "features": [[np.nan]]},
            GraphFormatError,
            r"features\[0, 0\] \(node 'cy'\) is nan",
        ),
        ({"names": "cy"}, ParameterError, r"pass a list of names, such as \['cy'\]"),
    ],
)
def test_bad_additions_say_what_is_wrong(arguments, kind, message):
    base = Graph.from_edges([("ann", "bob")], features=[[1], [2]])
    with pytest.raises(kind, match=message):
        Overlay.of(base).add(**arguments)


def test_a_weighted_graph_asks_for_weights():
    base = Graph.from_edges([("ann", "bob")], weights=[1])
    with pytest.raises(GraphFormatError, match="the graph is weighted; pass weights="):
        base.overlay(["cy"], [("cy", "ann")])


def test_features_for_a_graph_without_any_are_refused():
    with pytest.raises(MissingFeaturesError, match="the graph has no features"):
        Graph.from_edges([(0, 1)]).overlay([2], [], features=[[1]])


def test_feature_rows_of_an_overlay_without_features_are_an_error():
    overlay = Graph.from_edges([(0, 1)]).overlay([2], [])
    with pytest.raises(MissingFeaturesError, match="no features"):
        overlay.feature_rows(np.array([2]))


def test_a_weight_that_outgrows_float32_is_refused():
    base = Graph.from_edges([("ann", "bob")], weights=[3e38])
    with pytest.raises(GraphFormatError, match="more than float32 holds"):
        base.overlay([], [("ann", "bob")], weights=[3e38])


def test_an_unknown_name_is_an_error_that_shows_names_that_are_there():
    overlay = Graph.from_edges([("ann", "bob")]).overlay(["cy"], [])
    with pytest.raises(
        UnknownNodeError, match="1 of 2 names are not in the graph: 'zoe'; its names look like"
    ):
        overlay.positions(["cy", "zoe"])
