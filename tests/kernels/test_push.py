import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import strategies
from spinegraph import Graph
from spinegraph.kernels.push import push_budget, push_goal
from spinegraph.structure.pagerank import rooted_pagerank


def values(graph: Graph, **settings) -> np.ndarray:
    """All values that push assigns, (r, n)."""
    return reference.unscaled(rooted_pagerank(graph, k=len(graph), **settings))


@settings(max_examples=40)
@given(
    strategies.graphs(max_nodes=8),
    st.sampled_from([0.05, 0.5, 0.85, 0.99]),
    st.sampled_from([0.3, 1e-2, 1e-5]),
)
def test_push_assigns_all_but_its_tolerance_and_never_too_much(graph, continuation, tolerance):
    exact = reference.rooted_pagerank(graph, continuation)
    found = values(graph, continuation=continuation, tolerance=tolerance)
    missing = exact - found
    # Weights are float32: 1e-6 is for their rounding.
    assert missing.min() > -1e-6
    assert missing.sum(axis=1).max() <= tolerance + 1e-6
    mass = rooted_pagerank(graph, k=2, continuation=continuation, tolerance=tolerance).mass
    largest = -np.sort(-exact, axis=1)[:, :2].sum(axis=1)
    assert ((largest - mass) <= tolerance + 1e-9).all()
    assert (mass <= largest + 1e-9).all()


def test_a_remainder_of_exactly_the_tolerance_is_pushed_on():
    # Halving is exact in floating point: the remainder meets this tolerance to the bit.
    pair = Graph.from_edges([(0, 1)])
    mass = rooted_pagerank(pair, k=2, continuation=0.5, tolerance=2.0**-6).mass
    assert (1 - mass < 2.0**-6).all()


def test_tiny_tolerances_come_to_an_end():
    path = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    exact = reference.rooted_pagerank(path, 0.9)
    np.testing.assert_allclose(values(path, continuation=0.9, tolerance=1e-300), exact, atol=1e-7)


def test_lists_and_sweeps_agree():
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 40, (80, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    graph = Graph.from_edges(edges, weights=rng.random(len(edges)) + 0.1, reciprocal="sum")
    # Beside a long path a sweep would cost too much; alone it costs next to nothing.
    far = np.arange(len(graph), len(graph) + 20_000)
    path = np.stack([far[:-1], far[1:]], axis=1)
    union = Graph.from_edges(
        np.concatenate(
            [np.stack([np.repeat(np.arange(len(graph)), graph.degrees), graph.indices], axis=1), path]
        ),
        weights=np.concatenate([graph.weights, np.ones(len(path))]),
    )
    goal = push_goal(0.7, 1e-6)
    assert push_budget(graph.adjacency(), 0.7, goal) < 200 < push_budget(union.adjacency(), 0.7, goal)
    roots = np.arange(0, len(graph), 5)
    swept = values(graph, continuation=0.7, tolerance=1e-6, roots=roots)
    listed = rooted_pagerank(union, k=len(graph), continuation=0.7, tolerance=1e-6, roots=roots)
    exact = reference.rooted_pagerank(graph, 0.7)[roots]
    np.testing.assert_allclose(swept, exact, atol=2e-6)
    np.testing.assert_allclose(reference.unscaled(listed)[:, : len(graph)], exact, atol=2e-6)


def test_a_root_has_one_result_whatever_its_company():
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 30, (50, 2))
    graph = Graph.from_edges(edges[edges[:, 0] != edges[:, 1]], num_nodes=30)
    for tolerance in (0.2, 1e-5):
        whole = rooted_pagerank(graph, k=5, continuation=0.8, tolerance=tolerance)
        for roots in ([7], [29, 7, 0], np.arange(11)):
            some = rooted_pagerank(graph, k=5, continuation=0.8, tolerance=tolerance, roots=roots)
            np.testing.assert_array_equal(some.nodes, whole.nodes[roots])
            np.testing.assert_array_equal(some.weights, whole.weights[roots])
            np.testing.assert_array_equal(some.mass, whole.mass[roots])


@pytest.mark.compiled
def test_large_graphs_are_pushed_through_a_hash_table_that_grows():
    # 5,000 leaves around a hub, spread over 300,000 positions, and more leaves around one of them.
    rng = np.random.default_rng(0)
    places = rng.choice(300_000, 8000, replace=False)
    hub, leaves, second = places[0], places[1:5001], places[5001:]
    edges = np.concatenate(
        [
            np.stack([np.full(len(leaves), hub), leaves], axis=1),
            np.stack([np.full(len(second), leaves[0]), second], axis=1),
        ]
    )
    graph = Graph.from_edges(edges, num_nodes=300_000)
    compact = Graph.from_edges(np.searchsorted(np.sort(places), edges))
    roots = places[[0, 1, 5, 6000]]
    found = rooted_pagerank(graph, k=50, continuation=0.8, tolerance=1e-6, roots=roots)
    same = rooted_pagerank(
        compact, k=50, continuation=0.8, tolerance=1e-6, roots=np.searchsorted(np.sort(places), roots)
    )
    np.testing.assert_allclose(found.weights, same.weights, atol=1e-6)
    np.testing.assert_allclose(found.mass, same.mass, atol=1e-6)
    assert (found.nodes[:, 0] == np.sort(places)[same.nodes[:, 0]]).all()


@pytest.mark.compiled
@pytest.mark.parametrize("tolerance", [0.1, 1e-4])
def test_push_is_the_same_for_any_number_of_threads(tolerance):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 2000, (5000, 2))
    graph = Graph.from_edges(edges[edges[:, 0] != edges[:, 1]])
    one, two, eight = (
        rooted_pagerank(graph, continuation=0.7, tolerance=tolerance, threads=threads)
        for threads in (1, 2, 8)
    )
    for other in (two, eight):
        np.testing.assert_array_equal(one.nodes, other.nodes)
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.tied_nodes, other.tied_nodes)
