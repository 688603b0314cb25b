import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
from spinegraph import made
from spinegraph.errors import ParameterError
from spinegraph.structure import similarity
from spinegraph.structure import similarity as candidates_module
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import (
    as_rows,
    candidates,
    comparison,
    nearest_degree,
    similar_nodes,
)

metrics = pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine"])


def pair_distances(weights, pairs, metric="dtw"):
    left, right = np.asarray(pairs, np.int64).reshape(-1, 2).T.copy()
    return comparison(metric, as_rows(weights, "weights"))(left, right)


@st.composite
def profiles_and_candidates(draw):
    """Profiles (n, k) and any candidates: in any order, one-sided or mutual, padded anywhere."""
    n, k, c = draw(st.integers(1, 8)), draw(st.integers(1, 5)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = -np.sort(-rng.dirichlet(np.full(k, 0.5), size=n).astype(np.float32), axis=1)
    chosen = np.full((n, c), -1)
    for node in range(n):
        others = rng.permutation(np.delete(np.arange(n), node))[:c]
        chosen[node, : len(others)] = np.where(rng.random(len(others)) < 0.8, others, -1)
    return weights, chosen


@given(profiles_and_candidates())
def test_weights_are_the_softmin_of_textbook_distances(case):
    rows, chosen = case
    found = similar_nodes(rows, chosen)
    for node in range(len(rows)):
        expected = sorted(other for other in chosen[node].tolist() if other >= 0)
        assert found.nodes[node].tolist() == expected + [-1] * (chosen.shape[1] - len(expected))
        distances = np.array([reference.dtw(rows[node], rows[other]) for other in expected])
        weights = np.exp(distances.min(initial=np.inf) - distances)
        scaled = weights / weights.sum() if expected else weights
        np.testing.assert_allclose(found.weights[node, : len(expected)], scaled, rtol=1e-3, atol=1e-6)
        assert not found.weights[node, len(expected) :].any()


@metrics
def test_each_unordered_pair_is_compared_once(metric, monkeypatch):
    rows = np.random.default_rng(0).dirichlet(np.ones(4), size=200)
    chosen = candidates(np.arange(200) // 7, rows, "profile")
    compared = []

    def spied(*arguments):
        compare = original(*arguments)

        def noting(left, right):
            compared.extend(frozenset(pair) for pair in zip(left.tolist(), right.tolist(), strict=True))
            return compare(left, right)

        return noting

    original = similarity.comparison
    monkeypatch.setattr(similarity, "comparison", spied)
    similar_nodes(rows, chosen, metric)
    wanted = {frozenset((node, int(other))) for node in range(200) for other in chosen[node] if other >= 0}
    assert len(compared) == len(wanted)
    assert set(compared) == wanted


def test_huge_distances_do_not_underflow():
    rows = np.zeros((3, 300))
    rows[0, 0] = 1
    rows[1] = 1 / 300
    rows[2, :2] = 0.5
    found = similar_nodes(rows, [[1, -1], [0, 2], [0, 1]])
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-6)


def test_nodes_without_candidates_get_empty_rows():
    assert similar_nodes([[1.0]], np.zeros((1, 0), dtype=int)).weights.shape == (1, 0)
    found = similar_nodes([[1.0], [1.0]], [[-1], [-1]])
    assert found.nodes.tolist() == [[-1], [-1]]
    assert found.weights.tolist() == [[0], [0]]


@metrics
@pytest.mark.compiled
def test_threads_change_no_bit(metric):
    rng = np.random.default_rng(2)
    rows = -np.sort(-rng.dirichlet(np.full(20, 0.1), size=3000).astype(np.float32), axis=1)
    chosen = candidates(rng.integers(1, 9, 3000), rows)
    alone = similar_nodes(rows, chosen, metric, threads=1)
    together = similar_nodes(rows, chosen, metric, threads=8)
    np.testing.assert_array_equal(together.nodes, alone.nodes)
    np.testing.assert_array_equal(together.weights, alone.weights)


def test_what_is_no_candidate_is_refused():
    rows = np.ones((2, 1))
    with pytest.raises(ParameterError, match=r"whole numbers \(2, c\); got int64 \(1, 1\)"):
        similar_nodes(rows, [[1]])
    with pytest.raises(ParameterError, match=r"whole numbers \(2, c\); got float64"):
        similar_nodes(rows, [[1.0], [0.0]])
    with pytest.raises(ParameterError, match="candidates must be 0 to 1, or -1; got 0 to 2"):
        similar_nodes(rows, [[2], [0]])
    with pytest.raises(ParameterError, match=r"^candidates: row 1 contains the node itself; put -1 there$"):
        similar_nodes(rows, [[1], [1]])
    with pytest.raises(ParameterError, match="row 0 contains a node twice"):
        similar_nodes(rows, [[1, 1], [0, -1]])
    with pytest.raises(ParameterError, match=r"^candidates: row 2 contains a node twice; list it once$"):
        similar_nodes(np.ones((4, 1)), [[1, 2, 3], [0, 2, 3], [0, 3, 3], [0, 1, 2]])
    with pytest.raises(ParameterError, match=r"^candidates must be 0 to 1, or -1; got -2 to 0$"):
        similar_nodes(rows, [[-2], [0]])
    with pytest.raises(ParameterError, match=r"^profile weights must be finite and >= 0; got values from -1"):
        similar_nodes(-rows, [[1], [0]])


def test_a_profile_is_compared_by_its_weights():
    graph = made.karate()
    profile = rooted_pagerank(graph, k=5)
    chosen = candidates(graph.degrees, profile.weights)
    found, expected = similar_nodes(profile, chosen), similar_nodes(profile.weights, chosen)
    np.testing.assert_array_equal(found.nodes, expected.nodes)
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_nodes_and_weights_are_of_four_bytes():
    found = similar_nodes(np.ones((100, 1)), np.roll(np.arange(100), 1)[:, None])
    assert found.nodes.dtype == np.int32
    assert found.weights.dtype == np.float32


degree_lists = st.lists(st.integers(0, 5), min_size=1, max_size=40)
methods = pytest.mark.parametrize("method", ["degree", "profile", "all"])


def profiles(degrees):
    """Some profile for each degree: as flat as the degree is large."""
    places = np.arange(8)
    rows = np.exp(-places[None, :] / (1 + np.array(degrees)[:, None]))
    return rows / rows.sum(axis=1, keepdims=True)


@methods
@given(degrees=degree_lists)
def test_no_node_is_its_own_candidate_and_none_is_named_twice(method, degrees):
    found = candidates(degrees, profiles(degrees), method)
    for node, row in enumerate(found):
        named = row[row >= 0].tolist()
        assert node not in named
        assert len(set(named)) == len(named)


@methods
@given(degrees=st.lists(st.integers(0, 5), min_size=2, max_size=40))
def test_every_node_is_a_candidate_of_some_node(method, degrees):
    found = candidates(degrees, profiles(degrees), method)
    assert set(range(len(degrees))) <= set(found.ravel().tolist())


@given(degree_lists, st.data())
def test_candidates_are_the_nodes_within_log2_n_places_in_the_order_of_degree(degrees, data):
    n = len(degrees)
    order = data.draw(st.permutations(range(n)))
    ranking = sorted(range(n), key=lambda node: (degrees[node], order[node]))
    side = math.ceil(math.log2(n))
    found = nearest_degree(degrees, order=order)
    assert found.shape == (n, 2 * side)
    for place, node in enumerate(ranking):
        near = ranking[max(0, place - side) : place] + ranking[place + 1 : place + 1 + side]
        assert found[node][found[node] >= 0].tolist() == near


def test_equal_degrees_are_ordered_by_profile():
    # 16 nodes of one degree and two kinds of profile, mixed: a node's nearest are of its own kind.
    kind = np.arange(16) % 2
    weights = np.where(kind[:, None] == 0, [[0.9, 0.1]], [[0.5, 0.5]])
    found = candidates(np.full(16, 3), weights, "profile")
    side = found.shape[1] // 2
    beside = found[:, side - 1 : side + 1]  # the two next to the node
    same = (kind[beside] == kind[:, None]) & (beside >= 0)
    assert same.any(axis=1).all()


def test_several_networks_share_their_candidates():
    found = candidates(np.concatenate([[1, 2, 3, 4], [1, 2, 3, 4]]), method="degree")
    assert all((row[row >= 0] >= 4).any() for row in found[:4])


def test_one_node_has_no_candidates():
    none = nearest_degree([])
    assert none.shape == (0, 0)
    assert none.dtype == np.int32
    assert candidates([0], [[1.0]], "profile").shape == (1, 0)
    assert candidates([0], method="all").shape == (1, 0)


def test_what_the_method_needs_is_asked_for():
    with pytest.raises(
        ParameterError, match=r'^method "profile" needs profiles: pass weights, or method="degree"$'
    ):
        candidates([1, 1])
    with pytest.raises(ParameterError, match=r"n = 2 as degrees; got \(3, 1\)"):
        candidates([1, 1], np.ones((3, 1)))
    with pytest.raises(ParameterError, match='one of "degree", "profile", "all"; got \'some\''):
        candidates([1, 1], method="some")
    with pytest.raises(
        ParameterError, match=r'^method "all" compares .* 20001 nodes, at .*: use "profile" or "degree"$'
    ):
        candidates(np.ones(20_001), method="all")


@methods
def test_positions_are_of_four_bytes(method):
    assert candidates(np.ones(100), np.ones((100, 1)), method).dtype == np.int32


def test_a_small_network_may_have_all_and_one_node_more_may_not(monkeypatch):
    monkeypatch.setattr(candidates_module, "MAX_NODES_FOR_ALL", 5)
    assert candidates(np.ones(5), method="all").shape == (5, 4)
    with pytest.raises(ParameterError, match="got 6 nodes, at most 5 are allowed"):
        candidates(np.ones(6), method="all")


# Rows in any order: only zeros at both rows' ends may be left out, whatever stands before them.
tables = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 8)),
    elements=st.one_of(st.just(0.0), st.floats(0, 1, width=32)),
)


@given(tables)
def test_dtw_is_the_textbook_recursions_on_rows_of_any_support(rows):
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    exact = [reference.dtw(rows[i], rows[j]) for i, j in pairs]
    np.testing.assert_allclose(pair_distances(rows, pairs), exact, rtol=1e-5, atol=1e-12)


@given(tables)
def test_long_tails_of_zeros_change_no_bit(rows):
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    one_zero, many = np.pad(rows, ((0, 0), (0, 1))), np.pad(rows, ((0, 0), (0, 30)))
    np.testing.assert_array_equal(pair_distances(one_zero, pairs), pair_distances(many, pairs))


@given(tables)
def test_euclidean_and_cosine_are_what_they_say(rows):
    pairs = np.stack([np.arange(len(rows)), np.arange(len(rows))[::-1]], axis=1)
    other = rows[::-1]
    euclidean = np.sqrt(((rows.astype(float) - other) ** 2).sum(axis=1))
    np.testing.assert_allclose(pair_distances(rows, pairs, "euclidean"), euclidean, rtol=1e-5, atol=1e-7)
    norms = np.linalg.norm(rows.astype(float), axis=1) * np.linalg.norm(other.astype(float), axis=1)
    usable = norms > 1e-12
    cosine = 1 - (rows.astype(float) * other).sum(axis=1)[usable] / norms[usable]
    np.testing.assert_allclose(pair_distances(rows, pairs, "cosine")[usable], cosine, atol=1e-6)


def test_a_row_of_zeros_is_at_cosine_distance_one():
    assert pair_distances([[0.0, 0.0], [1.0, 0.0]], [[0, 1]], "cosine").tolist() == [1.0]


@pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine"])
def test_no_pairs_have_no_distances(metric):
    for none in (np.zeros((0, 2)), []):
        found = pair_distances(np.ones((2, 3)), none, metric)
        assert found.shape == (0,)
        assert found.dtype == np.float32


def test_what_is_no_profile_is_refused():
    with pytest.raises(ParameterError, match=r"\(n, k\) with k >= 1; got shape \(2,\)"):
        pair_distances([1.0, 2.0], [[0, 0]])
    with pytest.raises(ParameterError, match=r"finite and >= 0; got values from -1\.0"):
        pair_distances([[-1.0]], [[0, 0]])
    with pytest.raises(ParameterError, match="finite and >= 0"):
        pair_distances([[np.nan]], [[0, 0]])
    with pytest.raises(ParameterError, match=r"^weights must be finite and >= 0; got values from 1.0 to inf"):
        pair_distances([[1.0, np.inf]], [[0, 0]])
    with pytest.raises(ParameterError, match='one of "dtw", "euclidean", "cosine"; got \'l1\''):
        pair_distances([[1.0]], [[0, 0]], "l1")


def test_rows_are_read_only_and_of_four_bytes():
    given = np.array([[0.1, 0.2]])
    rows = as_rows(given, "rows")
    assert rows.dtype == np.float32
    assert not rows.flags.writeable
    assert given.flags.writeable
    for metric in ("dtw", "euclidean", "cosine"):
        assert pair_distances(given, [[0, 0]], metric).dtype == np.float32
