import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import strategies
from spinegraph import Graph
from spinegraph.errors import ParameterError
from spinegraph.structure.pagerank import rooted_pagerank

thresholds = st.sampled_from([0.3, 0.02, 1e-3])


def assert_same(found, expected):
    for column in ("nodes", "weights", "mass", "kept", "tied_nodes", "unassigned"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))


def random_graph(nodes, edges, seed, weighted=False):
    rng = np.random.default_rng(seed)
    ends = np.unique(np.sort(rng.integers(0, nodes, (edges, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    weights = rng.random(len(ends)) + 0.1 if weighted else None
    return Graph.from_edges(ends, num_nodes=nodes, weights=weights)


@settings(max_examples=40)
@given(strategies.graphs(max_nodes=9), st.sampled_from([0.05, 0.5, 0.85]), thresholds)
def test_what_is_unassigned_is_what_all_values_lack_together(graph, continuation, threshold):
    found = rooted_pagerank(
        graph, k=len(graph), continuation=continuation, tolerance=1e-6, threshold=threshold
    )
    missing = reference.rooted_pagerank(graph, continuation) - reference.unscaled(found)
    assert missing.min() > -1e-6
    np.testing.assert_allclose(missing.sum(axis=1), found.unassigned, atol=1e-6)


@given(strategies.graphs(max_nodes=9), st.sampled_from([0.3, 1e-2, 1e-5]))
def test_without_a_threshold_no_more_than_the_tolerance_is_unassigned(graph, tolerance):
    found = rooted_pagerank(graph, k=len(graph), continuation=0.85, tolerance=tolerance)
    missing = reference.rooted_pagerank(graph, 0.85) - reference.unscaled(found)
    assert found.unassigned.max() <= tolerance
    np.testing.assert_allclose(missing.sum(axis=1), found.unassigned, atol=1e-6)


@settings(max_examples=60)
@given(strategies.graphs_and_orders(max_nodes=12, features=True), st.integers(1, 8), thresholds)
def test_relabelling_permutes_what_a_threshold_finds(case, k, threshold):
    graph, order = case
    relabelled = strategies.permuted(graph, order)
    one, other = (
        rooted_pagerank(g, k=k, continuation=0.65, tolerance=0.05, threshold=threshold)
        for g in (graph, relabelled)
    )
    np.testing.assert_allclose(other.weights, one.weights[order], atol=1e-6)
    np.testing.assert_allclose(other.mass, one.mass[order], atol=1e-9)
    smoothed = strategies.dense_features(one.smooth(graph.features))
    again = strategies.dense_features(other.smooth(relabelled.features))
    np.testing.assert_allclose(again, smoothed[order], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_root_is_the_same_alone_in_a_list_and_beside_other_networks(weighted):
    graph = random_graph(120, 400, seed=3, weighted=weighted)
    settings = {"k": 7, "continuation": 0.65, "tolerance": 0.01, "threshold": 1e-3}
    whole = rooted_pagerank(graph, **settings)  # places by node
    among_many = Graph.union([graph, random_graph(5000, 5000, seed=5, weighted=weighted)])
    alone = [rooted_pagerank(among_many, roots=[root], **settings) for root in range(len(graph))]  # by hash
    for column in ("nodes", "weights", "mass", "kept", "tied_nodes", "unassigned"):
        np.testing.assert_array_equal(
            np.concatenate([getattr(one, column) for one in alone]), getattr(whole, column)
        )
    beside = Graph.union([graph, random_graph(3000, 9000, seed=4, weighted=weighted)])
    assert_same(rooted_pagerank(beside, roots=np.arange(120), **settings), whole)


def test_a_root_passes_no_more_edges_than_its_threshold_allows():
    # Were more than 1 / (threshold (1 - b)) edges passed, a row of distinct nodes could be longer.
    graph = random_graph(3000, 60_000, seed=5)
    for threshold in (0.05, 0.01, 1e-3):
        found = rooted_pagerank(
            graph, k=3000, continuation=0.5, tolerance=1e-3, threshold=threshold, roots=[7]
        )
        reached = int((found.nodes[0] >= 0).sum())
        assert reached <= 1 + graph.degrees[7] + 2 / threshold
        assert found.unassigned[0] > 1e-3


def test_the_root_is_pushed_whatever_the_threshold():
    star = Graph.from_edges([(0, leaf) for leaf in range(1, 9)])
    found = rooted_pagerank(star, k=9, continuation=0.5, threshold=0.9, roots=[0])
    assert (found.nodes[0] >= 0).sum() == 9
    np.testing.assert_allclose(found.mass, 0.5 + 0.5 * 0.5)
    np.testing.assert_allclose(found.unassigned, 0.25)


def test_weights_too_small_to_share_are_still_met_once():
    heavy = np.array([1e30, 1e-30, 1e-30], dtype=np.float32)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weights=heavy, num_nodes=20_000)
    for roots in ([0, 1, 2, 3], np.arange(40) % 4):  # places by hash, and by node
        found = rooted_pagerank(graph, k=6, continuation=0.65, tolerance=1e-3, threshold=1e-4, roots=roots)
        for row in found.nodes:
            assert len(set(row[row >= 0])) == (row >= 0).sum()


def test_a_bad_threshold_is_named():
    with pytest.raises(ParameterError, match="threshold must be between 0 and 1; got -1"):
        rooted_pagerank(Graph.from_edges([(0, 1)]), threshold=-1)
