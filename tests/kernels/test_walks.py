import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import strategies
from spinegraph import Graph
from spinegraph.kernels.walks import plain_walks
from spinegraph.structure.pagerank import rooted_pagerank

ends = np.array([(0, 1), (0, 2), (1, 2), (2, 3), (4, 5)])
small = Graph.from_edges(ends, num_nodes=7)
weighted = Graph.from_edges(ends, num_nodes=7, weights=[1, 5, 2, 0.5, 3])
both = pytest.mark.parametrize("graph", [small, weighted])


def visits(graph: Graph, **settings) -> np.ndarray:
    """Share of positions at each node, (n, n), by counting walks."""
    return reference.unscaled(rooted_pagerank(graph, k=len(graph), method="walks", **settings))


@both
def test_counts_approach_the_finite_expectation_as_the_root_of_the_number_of_walks(graph):
    expected = reference.walk_expectation(graph, 0.6, walk_length=6)
    spread = [
        np.sqrt(
            np.mean(
                [
                    (visits(graph, continuation=0.6, walks=walks, walk_length=6, seed=seed) - expected) ** 2
                    for seed in range(12)
                ]
            )
        )
        for walks in (8, 128)
    ]
    # Sixteen times the walks: a quarter of the spread.
    assert 3 < spread[0] / spread[1] < 5.3
    assert spread[1] < 0.02


@settings(max_examples=15)
@given(strategies.graphs(max_nodes=6), st.integers(1, 4), st.integers(1, 7))
def test_counts_are_whole_visits_and_all_of_them(graph, walks, walk_length):
    share = visits(graph, walks=walks, walk_length=walk_length) * walks * walk_length
    np.testing.assert_allclose(share, share.round(), atol=1e-4)
    np.testing.assert_allclose(share.sum(axis=1), walks * walk_length, rtol=1e-6)
    assert (np.diag(share) >= walks - 1e-3).all()


def test_a_walk_of_one_position_never_leaves():
    np.testing.assert_array_equal(visits(small, walks=3, walk_length=1), np.eye(7))


def test_rooted_visits_stay_where_walks_can_go():
    exact = reference.rooted_pagerank(small, 0.5)
    assert not visits(small, walks=50)[exact == 0].any()


@both
def test_plain_walks_follow_edges_and_start_at_their_roots(graph):
    roots = np.array([3, 0, 6, 5])
    walked = plain_walks(graph.adjacency(), roots, walks=3, walk_length=8, seed=1)
    assert walked.shape == (12, 8)
    np.testing.assert_array_equal(walked[:, 0], np.repeat(roots, 3))
    step = reference.transition_matrix(graph)
    for walk in np.delete(walked, [6, 7, 8], axis=0):
        assert (step[walk[:-1], walk[1:]] > 0).all()
    assert (walked[6:9, 1:] == -1).all()


@both
def test_plain_steps_pass_a_chi_square_test_against_edge_weights(graph):
    walked = plain_walks(graph.adjacency(), np.array([2]), walks=3000, walk_length=2, seed=0)
    expected = reference.transition_matrix(graph)[2] * 3000
    counts = np.bincount(walked[:, 1], minlength=7)
    allowed = expected > 0
    assert not counts[~allowed].any()
    # Chi-square with 2 degrees of freedom: 13.8 is passed once in a thousand.
    assert ((counts - expected)[allowed] ** 2 / expected[allowed]).sum() < 13.8


@both
def test_draws_depend_on_the_root_and_not_on_its_company(graph):
    whole = rooted_pagerank(graph, k=3, method="walks", walks=4, walk_length=5, seed=2)
    some = rooted_pagerank(graph, k=3, method="walks", walks=4, walk_length=5, seed=2, roots=[4, 2, 4])
    np.testing.assert_array_equal(some.nodes, whole.nodes[[4, 2, 4]])
    np.testing.assert_array_equal(some.weights, whole.weights[[4, 2, 4]])
    walked = plain_walks(graph.adjacency(), np.arange(7), walks=2, walk_length=5, seed=2)
    np.testing.assert_array_equal(
        plain_walks(graph.adjacency(), np.array([3]), walks=2, walk_length=5, seed=2), walked[6:8]
    )


def test_keys_name_the_streams_instead_of_positions():
    given = rooted_pagerank(small, method="walks", walks=3, roots=[0, 0], keys=[0, 77])
    by_position = rooted_pagerank(small, method="walks", walks=3, roots=[0])
    np.testing.assert_array_equal(given.weights[0], by_position.weights[0])
    assert not np.array_equal(given.weights[0], given.weights[1])
    other = plain_walks(
        small.adjacency(), np.array([0]), walks=9, walk_length=9, seed=0, keys=np.array([77], dtype=np.uint64)
    )
    assert not np.array_equal(other, plain_walks(small.adjacency(), np.array([0]), 9, 9, seed=0))


@pytest.mark.compiled
@pytest.mark.parametrize("weights", [False, True])
def test_walks_are_the_same_for_any_number_of_threads(weights):
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 3000, (9000, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    graph = Graph.from_edges(
        edges, weights=rng.random(len(edges)) + 0.1 if weights else None, reciprocal="sum"
    )
    one, two, eight = (
        rooted_pagerank(graph, method="walks", seed=5, threads=threads) for threads in (1, 2, 8)
    )
    for other in (two, eight):
        np.testing.assert_array_equal(one.nodes, other.nodes)
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.tied_nodes, other.tied_nodes)
    shards = [
        rooted_pagerank(graph, method="walks", seed=5, roots=part) for part in ([*range(700)], [2999, 5])
    ]
    np.testing.assert_array_equal(shards[0].nodes, one.nodes[:700])
    np.testing.assert_array_equal(shards[1].nodes, one.nodes[[2999, 5]])
    plain = [plain_walks(graph.adjacency(), np.arange(3000), 4, 9, 1, threads=threads) for threads in (1, 8)]
    np.testing.assert_array_equal(*plain)
