import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import strategies
from spinegraph import Graph
from spinegraph.errors import ParameterError
from spinegraph.kernels.push import ROOM, Top, keep_top, push_budget, push_goal
from spinegraph.kernels.walks import count_visits, new_counter
from spinegraph.structure.pagerank import RootedPageRank, rooted_pagerank


def values(graph: Graph, **settings) -> np.ndarray:
    """All values that push assigns, (r, n)."""
    return reference.unscaled(rooted_pagerank(graph, k=len(graph), **settings))


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


def kept(values: np.ndarray, k: int) -> RootedPageRank:
    """Profile of one root, node 0, from all values (n,)."""
    top, tied_nodes = Top.empty(1, k, np.int32), np.empty((1, ROOM * k), dtype=np.int32)
    nodes = np.flatnonzero(values > 0)
    keep_top(nodes, values[nodes].astype(np.float64), len(nodes), 0, top, tied_nodes)
    return profile(top, tied_nodes, len(values))


def counted(root: int, seen: list[int], positions: int, k: int, n: int) -> RootedPageRank:
    """Profile of one root from the nodes its walks arrived at."""
    top, tied_nodes = Top.empty(1, k, np.int32), np.empty((1, ROOM * k), dtype=np.int32)
    visits = np.array(seen, dtype=np.int32)
    with np.errstate(over="ignore"):
        counter = new_counter(positions, visits)
        for _ in range(2):  # the second time, the table must be as empty as the first
            count_visits(counter, root, positions, visits, 0, top, tied_nodes)
    return profile(top, tied_nodes, n)


def profile(top, tied_nodes, n):
    tied = tied_nodes[0, : top.tied[0]]
    return RootedPageRank(top.nodes, top.weights, top.mass, n, top.kept, np.array([0, len(tied)]), tied)


rows = st.lists(
    st.sampled_from([0.0, 1e-30, 1e-12, 0.01, 0.01 + 3e-10, 0.02, 0.3, 0.5]), min_size=1, max_size=40
)


@given(rows, st.integers(1, 6))
def test_the_largest_values_are_kept_and_ties_shared(values, k):
    values = np.array([0.25, *values])
    found = kept(values, k)
    largest = -np.sort(-values)[:k]
    np.testing.assert_allclose(found.mass, largest.sum())
    np.testing.assert_allclose(found.weights[0, : len(largest)], largest / largest.sum(), rtol=1e-6)
    expected = reference.shared_ties_operator(values[None, :], k)
    np.testing.assert_allclose(found.operator().toarray(), expected, atol=1e-6)


@given(st.integers(1, 400), st.integers(1, 30), st.integers(0, 1000))
def test_many_values_over_many_octaves_are_ordered(count, k, seed):
    values = np.exp(-np.random.default_rng(seed).uniform(0, 60, count))
    found = kept(values, k)
    np.testing.assert_array_equal(found.nodes[0, :count], np.argsort(-values)[:k])


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 5), st.integers(1, 9))
def test_visits_are_counted_and_their_ties_shared(seen, k, stays):
    positions = len(seen) + stays
    share = np.bincount([*seen, *[0] * stays], minlength=13) / positions
    found = counted(0, seen, positions, k, 13)
    largest = -np.sort(-share)[:k]
    np.testing.assert_allclose(found.mass, largest.sum())
    np.testing.assert_allclose(found.weights[0], largest / largest.sum(), rtol=1e-6)
    np.testing.assert_allclose(
        found.operator().toarray(), reference.shared_ties_operator(share[None, :], k), atol=1e-6
    )


@pytest.mark.parametrize("by_visits", [False, True])
def test_a_row_whose_every_place_ties_in_too_large_a_group_is_the_root_alone(by_visits):
    found = counted(0, [*range(1, 9)], 9, 2, 9) if by_visits else kept(np.full(9, 0.1), 2)
    np.testing.assert_array_equal(found.operator().toarray(), [[1, 0, 0, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_allclose(found.weights, [[0.5, 0.5]])
