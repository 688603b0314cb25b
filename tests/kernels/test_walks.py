import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import strategies
from spinegraph import Graph
from spinegraph.kernels.walks import GAMMA, alias_tables, mix, plain_walks, stream_starts, take_steps
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


def draws(start: np.uint64, count: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([mix(start + GAMMA * np.uint64(j)) for j in range(1, count + 1)], dtype=np.uint64)


def test_draws_are_splitmix64():
    # The sequence that splitmix64 is published with, for seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert draws(np.uint64(1234567), 4).tolist() == expected


def test_a_stream_depends_on_its_own_key_alone():
    keys = np.arange(100, dtype=np.uint64)
    whole = stream_starts(3, 1, keys)
    assert np.array_equal(stream_starts(3, 1, keys[::-1]), whole[::-1])
    assert stream_starts(3, 1, [42]) == whole[42]


@pytest.mark.parametrize("other", [(4, 1), (3, 2), (3 + 2**63, 1), (-3, 1)])
def test_seeds_and_stages_give_other_streams(other):
    keys = np.arange(1000, dtype=np.uint64)
    assert not np.intersect1d(stream_starts(3, 1, keys), stream_starts(*other, keys)).size


def test_streams_of_many_keys_start_apart_and_evenly():
    starts = stream_starts(0, 1, np.arange(65536))
    assert len(np.unique(starts)) == len(starts)
    counts = np.bincount((starts >> np.uint64(60)).astype(int), minlength=16)
    # Chi-square with 15 degrees of freedom: 37.7 is passed once in a thousand.
    assert ((counts - 4096) ** 2 / 4096).sum() < 37.7


def test_neighbouring_streams_are_not_correlated():
    first = np.array([draws(start, 1)[0] for start in stream_starts(0, 1, np.arange(2000))])
    unit = first / 2.0**64
    assert abs(np.corrcoef(unit[:-1], unit[1:])[0, 1]) < 0.1


weights = st.lists(st.floats(0.125, 1e6, width=32), min_size=1, max_size=30)


def star(leaf_weights: list[float] | None, leaves: int | None = None) -> Graph:
    """Node 0 and its leaves 1, 2, ..."""
    ends = np.arange(1, (leaves or len(leaf_weights)) + 1)
    return Graph.from_edges(np.stack([np.zeros_like(ends), ends], axis=1), weights=leaf_weights)


def steps_from_hub(graph: Graph, count: int, visits: int = 10**9) -> np.ndarray:
    """Where ``count`` steps arrive, with tables made for that many ``visits``."""
    adjacency = graph.adjacency()
    tables, _ = alias_tables(adjacency, visits, 1)
    nodes = np.zeros(count, dtype=np.int32)
    bits = (stream_starts(0, 9, np.arange(count)) >> np.uint64(32)).astype(np.uint32)
    with np.errstate(over="ignore"):
        take_steps(adjacency, tables, nodes, bits, count)
    return nodes


@given(weights)
def test_alias_tables_hold_the_weights_exactly(leaf_weights):
    adjacency = star(leaf_weights).adjacency()
    tables, _ = alias_tables(adjacency, 10**9, 1)
    degree = len(leaf_weights)
    chance = np.zeros(degree)
    for edge, entry in enumerate(tables[1][:degree].tolist()):
        other, threshold = entry >> 32, (entry & 0xFFFFFFFF) / 2**32
        chance[edge] += threshold / degree
        chance[other] += (1 - threshold) / degree
    expected = np.array(leaf_weights, dtype=np.float32).astype(float)
    np.testing.assert_allclose(chance, expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("leaf_weights", [[1, 2, 3, 4, 5, 6, 7, 8], [100, 1, 1, 1, 1, 1, 1, 1], None])
def test_steps_follow_the_edge_weights(leaf_weights):
    counts = np.bincount(steps_from_hub(star(leaf_weights, leaves=8), 8000))[1:]
    expected = np.array(leaf_weights or [1] * 8) / np.sum(leaf_weights or [1] * 8) * 8000
    # Chi-square with 7 degrees of freedom: 24.3 is passed once in a thousand.
    assert ((counts - expected) ** 2 / expected).sum() < 24.3


def test_rows_filled_in_on_the_way_give_the_same_steps_as_all_at_once():
    graph = star([3, 1, 2, 8, 5, 1, 1, 9])
    tables, threads = alias_tables(graph.adjacency(), 1, 2)
    assert threads == 1
    assert not tables[0].any()
    assert alias_tables(graph.adjacency(), 10**9, 2)[0][0].all()
    np.testing.assert_array_equal(steps_from_hub(graph, 50, visits=1), steps_from_hub(graph, 50))
