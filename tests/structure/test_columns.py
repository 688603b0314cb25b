"""Affinity: strong where friends are alike, nothing where features were dealt out at random."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import strategies
from spinegraph import Graph, made
from spinegraph.errors import ParameterError
from spinegraph.kernels.columns import ITSELF, NEIGHBORS, THEIRS
from spinegraph.structure import columns
from spinegraph.structure.columns import COLUMNS, _from_profile, _unit, affinity, structural_columns
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
    with pytest.raises(ParameterError, match=r"roots must lie in 0 \.\. 1; got \[5\]"):
        structural_columns(graph, [5])
    with pytest.raises(ParameterError, match=r"roots must lie in 0 \.\. 1; got \[5\]"):
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
        (("log_h_index", "overlap_10", "log_degree"), THEIRS),
    ],
)
def test_no_column_looks_further_than_it_has_to(passed, names, depth):
    structural_columns(made.karate(), names=names)
    assert passed["depth"] == [depth]
    assert passed["marks"] == [np.uint8]
    assert passed["shared"] == ([np.int32] if depth == THEIRS else [])


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


def two_groups(alike: float, seed: int = 0) -> Graph:
    """Sixty nodes in two groups that link inside only; a share of them has its group's feature."""
    rng = np.random.default_rng(seed)
    group = np.arange(60) % 2
    pairs = [(i, j) for i in range(60) for j in range(i) if group[i] == group[j] and rng.random() < 0.3]
    shown = np.where(rng.random(60) < alike, group, rng.integers(0, 2, 60))
    return Graph.from_edges(pairs, num_nodes=60, features=np.eye(2, dtype=np.float32)[shown])


def test_friends_with_the_same_feature_have_all_the_strength_there_is():
    found = affinity(two_groups(1.0), two_groups(1.0).feature_rows)
    # Half of the pairs elsewhere are of one group too, and count half.
    assert found.strength == pytest.approx(0.5, abs=0.03)
    assert found.deviations > 8


@pytest.mark.parametrize("seed", range(5))
def test_features_dealt_out_at_random_have_next_to_none(seed):
    graph = two_groups(1.0)
    order = np.random.default_rng(seed).permutation(60)
    dealt = graph.with_features(graph.feature_rows(order))
    found = affinity(dealt, dealt.feature_rows)
    assert found.strength < 0.15
    assert found.deviations < 3


def test_strength_grows_with_the_share_that_is_alike():
    strengths = [affinity(g := two_groups(alike), g.feature_rows).strength for alike in (0.2, 0.5, 0.8, 1.0)]
    assert strengths == sorted(strengths)


def test_sparse_and_dense_features_tell_the_same():
    graph = two_groups(0.7)
    sparse = graph.with_features(csr_array(graph.features))
    assert affinity(sparse, sparse.feature_rows) == affinity(graph, graph.feature_rows)


def test_strength_is_the_share_of_won_comparisons():
    graph = two_groups(0.6)
    rows = graph.features / np.linalg.norm(graph.features, axis=1, keepdims=True)
    cosines = rows @ rows.T
    linked = [cosines[i, j] for i in range(60) for j in graph.positions(graph.neighbors(i))]
    others = cosines[np.triu_indices(60, 1)]
    won = np.mean([(value > others).mean() + (value == others).mean() / 2 for value in linked])
    assert affinity(graph, graph.feature_rows).strength == pytest.approx(2 * won - 1, abs=0.05)


def test_a_few_edges_tell_nothing():
    graph = made.barbell(4).with_features(np.eye(8, dtype=np.float32))
    assert affinity(graph, graph.feature_rows) is None


@given(st.integers(20, 60), st.integers(0, 5))
def test_where_everybody_is_alike_it_is_nothing_and_the_seed_settles_it(num_nodes, seed):
    graph = made.random_graph(num_nodes, 12, seed=seed).with_features(
        np.ones((num_nodes, 1), dtype=np.float32)
    )
    found = affinity(graph, graph.feature_rows, seed)
    assert found == affinity(graph, graph.feature_rows, seed)
    assert found is None or found.strength == 0


def test_the_draws_are_settled_by_the_seed():
    # Other values than these would be another measure; models keep what was decided by it.
    graph = two_groups(0.6)
    found = affinity(graph, graph.feature_rows), affinity(graph, graph.feature_rows, 1)
    assert [each.strength for each in found] == pytest.approx([0.12195121951, 0.18292682927], rel=1e-9)
    assert [each.deviations for each in found] == pytest.approx([5.17701367472, 3.62700615679], rel=1e-6)


@pytest.mark.parametrize(("edges", "is_enough"), [(99, False), (100, True)])
def test_a_hundred_edges_are_enough(edges, is_enough):
    graph = Graph.from_edges([(i, i + 1) for i in range(edges)], features=np.eye(2)[np.arange(edges + 1) % 2])
    found = affinity(graph, graph.feature_rows)
    assert (found is not None) == is_enough
    # Neighbours in this line are never alike: they lose every comparison, and strength is never below 0.
    assert found is None or (found.strength == 0 and found.deviations < -3)


@pytest.mark.parametrize(("nodes", "asked"), [(5000, 5000), (5001, 4999)])
def test_many_edges_are_sampled(nodes, asked):
    ring = Graph.from_edges([(i, (i + 1) % nodes) for i in range(nodes)], features=np.ones((nodes, 1)))
    seen = []
    affinity(ring, lambda positions: seen.append(positions) or ring.feature_rows(positions))
    assert seen[0].dtype == np.int64
    assert 4500 < len(seen[0]) <= asked  # ten thousand draws of ends meet nearly everybody
    assert (len(seen[0]) == nodes) == (nodes == 5000)


def test_nodes_without_features_are_like_nobody():
    graph = two_groups(1.0)
    half = graph.features * (np.arange(60) % 3 > 0)[:, None]
    for features in (half, csr_array(half)):
        some = graph.with_features(features)
        found = affinity(some, some.feature_rows)
        assert found.strength == pytest.approx(0.24, abs=0.1)
        assert np.isfinite(found.deviations)


def test_only_the_direction_of_features_counts():
    graph = two_groups(0.6)
    lengths = 2.0 ** np.random.default_rng(0).integers(-3, 4, (60, 1))  # no rounding, so that ties stay ties
    expected = affinity(graph, graph.feature_rows)
    for features in (graph.features * lengths, csr_array(graph.features * lengths)):
        scaled = graph.with_features(features)
        assert affinity(scaled, scaled.feature_rows) == expected


def test_rows_are_brought_to_length_one_and_keep_their_columns():
    features = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    expected = [[0.6, 0.8, 0], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(_unit(features), expected)
    assert _unit(csr_array(features)).shape == (3, 3)
    np.testing.assert_allclose(_unit(csr_array(features)).toarray(), expected)
