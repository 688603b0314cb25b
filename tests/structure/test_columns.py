"""Structural columns, by definition and by Hypothesis."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from spinegraph import Graph, made
from spinegraph.errors import ParameterError
from spinegraph.kernels.columns import ITSELF, NEIGHBORS, TWO_HOPS
from spinegraph.structure import columns
from spinegraph.structure.columns import COLUMNS, _from_profile, structural_columns
from spinegraph.structure.pagerank import rooted_pagerank

OTHERS = ("log_triangles", "clustering", "neighbor_log_degree_mean", "neighbor_log_degree_deviation")
EVERY = COLUMNS + OTHERS


def by_definition(graph):
    """The columns of neighbourhoods, from sets of neighbours."""
    sets = [set(graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist()) for i in range(len(graph))]
    degree = [len(own) for own in sets]
    rows = {name: [] for name in EVERY if not name.startswith(("spread", "log_profile"))}
    for node, own in enumerate(sets):
        near = np.array(sorted(degree[other] for other in own))
        unions = [(own - {other}) | (sets[other] - {node}) for other in own]
        shared = [len(own & sets[other]) for other in own]
        overlaps = [count / len(union) if union else 0 for count, union in zip(shared, unions, strict=True)]
        triangles, pairs = sum(shared) / 2, max(len(own) * (len(own) - 1) / 2, 1)
        mean_weight = graph.strengths[node] / len(own) if own else 1.0
        rows["log_degree"].append(np.log1p(len(own)))
        rows["log_mean_weight"].append(np.log(mean_weight))
        rows["log_smaller_neighbors"].append(np.log1p(sum(near <= len(own) / 2)))
        rows["log_h_index"].append(np.log1p(max([h for h in range(len(own) + 1) if sum(near >= h) >= h])))
        for share in (10, 25, 50):
            rows[f"overlap_{share}"].append(np.quantile(overlaps, share / 100) if overlaps else 0)
        rows["log_triangles"].append(np.log1p(triangles))
        rows["clustering"].append(triangles / pairs)
        rows["neighbor_log_degree_mean"].append(np.log1p(near).mean() if own else 0)
        rows["neighbor_log_degree_deviation"].append(np.log1p(near).std() if own else 0)
    return rows


@given(strategies.graphs(max_nodes=14))
def test_columns_are_their_definitions(graph):
    expected = by_definition(graph)
    found = structural_columns(graph, names=tuple(expected))
    assert found.values.dtype == np.float32
    for place, name in enumerate(expected):
        np.testing.assert_allclose(found.values[:, place], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_hub_among_leaves_counts_the_same_by_search():
    # A hub of many neighbours is searched, not scanned, when a small root looks at it.
    edges = [(0, leaf) for leaf in range(1, 60)] + [(1, 2), (2, 3), (1, 3)]
    graph = Graph.from_edges(edges)
    expected = by_definition(graph)
    found = structural_columns(graph, names=("log_triangles", "overlap_50")).values
    np.testing.assert_allclose(found[:, 0], expected["log_triangles"], rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], expected["overlap_50"], rtol=1e-6)


def test_profile_columns_read_the_profile():
    graph = Graph.from_edges(np.array(nx.karate_club_graph().edges))
    weights = rooted_pagerank(graph, k=20, continuation=0.7).weights.astype(float)
    found = structural_columns(graph, names=("spread", "log_profile_3", "log_profile_20")).values
    entropy = [-sum(value * np.log(value) for value in row if value > 0) for row in weights]
    np.testing.assert_allclose(found[:, 0], entropy, rtol=1e-5)
    np.testing.assert_allclose(found[:, 1:], np.log(weights[:, [2, 19]] + 1e-3), rtol=1e-5)


@given(strategies.graphs(max_nodes=10), st.data())
def test_relabelled_nodes_keep_their_columns(graph, data):
    order = np.array(data.draw(st.permutations(range(len(graph)))))
    place = np.argsort(order)
    ends = np.repeat(np.arange(len(graph)), graph.degrees)
    once = ends < graph.indices
    edges = np.stack([place[ends[once]], place[graph.indices[once]]], axis=1)
    weights = None if graph.weights is None else graph.weights[once]
    moved = Graph.from_edges(edges, num_nodes=len(graph), weights=weights)
    found, again = structural_columns(graph, names=EVERY), structural_columns(moved, names=EVERY)
    np.testing.assert_allclose(again.values[place], found.values, atol=1e-5)


def test_mirrored_nodes_have_equal_columns():
    karate = np.array(nx.karate_club_graph().edges)
    mirrored = Graph.from_edges(np.concatenate([karate, karate + 34, [[0, 34]]]), num_nodes=68)
    found = structural_columns(mirrored, names=EVERY).values
    np.testing.assert_allclose(found[:34], found[34:], atol=1e-6)


@given(strategies.graphs(max_nodes=10), st.data())
def test_some_roots_get_the_rows_of_all(graph, data):
    roots = data.draw(st.lists(st.integers(0, len(graph) - 1), max_size=6))
    every, some = structural_columns(graph), structural_columns(graph, roots)
    assert some.values.shape == (len(roots), len(every.names))
    np.testing.assert_allclose(some.values, every.values[np.array(roots, dtype=int)], atol=1e-6)


def test_an_overlay_is_read_as_the_graph_it_stands_for():
    base = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    added = [("e", "a"), ("e", "b"), ("e", "f"), ("b", "d")]
    overlay = base.overlay(["e", "f"], added)
    whole = base.with_nodes(["e", "f"], added)
    found, expected = structural_columns(overlay, names=EVERY), structural_columns(whole, names=EVERY)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-6)


@pytest.mark.parametrize("nodes", [1, 3])
def test_nodes_without_edges_are_all_alike_and_finite(nodes):
    found = structural_columns(Graph.from_edges([], num_nodes=nodes), names=EVERY).values
    assert np.isfinite(found).all()
    assert (found == found[0]).all()


@pytest.mark.compiled
def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    edges = np.unique(np.sort(rng.integers(0, 5000, (20_000, 2)), axis=1), axis=0)
    graph = Graph.from_edges(edges[edges[:, 0] < edges[:, 1]], num_nodes=5000)
    profile = rooted_pagerank(graph, tolerance=0.2)
    alone = structural_columns(graph, profile=profile, threads=1).values
    np.testing.assert_array_equal(structural_columns(graph, profile=profile, threads=8).values, alone)


def test_bad_arguments_are_named():
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(ParameterError, match=r"names must be among log_degree, .*; got 'size'"):
        structural_columns(graph, names=("size",))
    with pytest.raises(ParameterError, match="one row per root; got 2 rows, 1 roots"):
        structural_columns(graph, [0], profile=rooted_pagerank(graph))
    with pytest.raises(ParameterError, match=r"roots must be from 0 to 1; got \[5\]"):
        structural_columns(graph, [5])
    with pytest.raises(ParameterError, match=r"roots must be from 0 to 1; got \[5\]"):
        structural_columns(graph, [5], profile=rooted_pagerank(graph, roots=[0]))


def test_columns_are_the_same_whichever_others_are_asked_for():
    # Fewer columns look less far; most roots share their counts of common neighbours, few do not.
    graph = made.random_graph(300, 8, seed=1, heavy_tailed=True)
    every = structural_columns(graph, names=EVERY).values
    few = np.arange(5, 40)
    for place, name in enumerate(EVERY):
        np.testing.assert_array_equal(structural_columns(graph, names=(name,)).values[:, 0], every[:, place])
        found = structural_columns(graph, few, names=(name,)).values[:, 0]
        np.testing.assert_allclose(found, every[few, place], atol=1e-6)


def test_entropies_are_summed_in_eight_bytes():
    weights = np.full((1, 3), 1 / 3, np.float32)
    assert _from_profile("spread", weights).dtype == np.float64
    assert _from_profile("log_profile_4", weights).tolist() == [np.log(1e-3)]


def test_every_value_of_a_profile_may_be_asked_for_and_no_other():
    graph = made.karate()
    long = rooted_pagerank(graph, k=25)
    found = structural_columns(graph, profile=long, names=("log_profile_1", "log_profile_25")).values
    np.testing.assert_allclose(found, np.log(long.weights[:, [0, 24]].astype(float) + 1e-3), rtol=1e-5)
    for profile, name in ((long, "log_profile_26"), (None, "log_profile_21"), (None, "log_profile_0")):
        with pytest.raises(ParameterError, match=f"; got '{name}'"):
            structural_columns(graph, profile=profile, names=(name,))


@pytest.fixture
def passed(monkeypatch):
    """What the kernels are called with: depths, and the arrays that they write common neighbours to."""
    passed = {"depth": [], "shared": [], "marks": []}
    count, share = columns.kernels.neighborhoods, columns.kernels.share_edges

    def counting(adjacency, roots, depth, marks, shared, counts):
        assert shared.dtype == np.int32
        passed["depth"].append(depth)
        passed["marks"].append(marks.dtype)
        count(adjacency, roots, depth, marks, shared, counts)

    def sharing(indptr, indices, start, stop, marks, shared):
        passed["shared"].append(shared.dtype)
        share(indptr, indices, start, stop, marks, shared)

    monkeypatch.setattr(columns.kernels, "neighborhoods", counting)
    monkeypatch.setattr(columns.kernels, "share_edges", sharing)
    return passed


@pytest.mark.parametrize(
    ("names", "depth"),
    [
        (("log_degree",), ITSELF),
        (("spread",), ITSELF),
        (("log_degree", "log_h_index"), NEIGHBORS),
        (("log_h_index", "overlap_10", "log_degree"), TWO_HOPS),
    ],
)
def test_no_column_looks_further_than_it_has_to(passed, names, depth):
    structural_columns(made.karate(), names=names)
    assert passed["depth"] == [depth]
    assert passed["marks"] == [np.uint8]
    assert passed["shared"] == ([np.int32] if depth == TWO_HOPS else [])


@pytest.mark.parametrize(("roots", "is_shared"), [(17, False), (18, True), (34, True), (13, False)])
def test_where_most_roots_are_asked_for_an_edge_is_counted_once_for_both_ends(passed, roots, is_shared):
    structural_columns(made.karate(), range(roots), names=("overlap_10",))
    assert bool(passed["shared"]) == is_shared


def test_neither_overlays_nor_huge_graphs_nor_none_share_their_counts(passed, monkeypatch):
    graph = made.karate()
    structural_columns(graph.overlay(["new"], [("new", 0)]), names=("overlap_10",))
    structural_columns(Graph.from_edges([], num_nodes=3), names=("overlap_10",))
    monkeypatch.setattr(columns, "MAX_SHARED", len(graph.indices) - 1)
    structural_columns(graph, names=("overlap_10",))
    assert not passed["shared"]
    monkeypatch.setattr(columns, "MAX_SHARED", len(graph.indices))
    structural_columns(graph, names=("overlap_10",))
    assert passed["shared"]


def test_blocks_of_any_length_make_the_same_columns(monkeypatch):
    graph = made.karate()
    expected = structural_columns(graph, names=EVERY).values
    monkeypatch.setattr(columns, "_ROOTS_PER_BLOCK", 1)
    monkeypatch.setattr(columns, "_BLOCKS", 5)
    np.testing.assert_array_equal(structural_columns(graph, names=EVERY).values, expected)
