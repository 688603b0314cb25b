import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from spinegraph import made
from spinegraph.errors import ParameterError
from spinegraph.structure import similarity
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import (
    candidates,
    comparable,
    comparison,
    owned_distances,
    similar_nodes,
    weights_from_distances,
)

metrics = pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine"])


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
    with pytest.raises(ParameterError, match="positions 0 to 1, or -1; got 0 to 2"):
        similar_nodes(rows, [[2], [0]])
    with pytest.raises(
        ParameterError, match=r"^candidates: row 1 names the node itself; leave it out or pad with -1$"
    ):
        similar_nodes(rows, [[1], [1]])
    with pytest.raises(ParameterError, match="row 0 names a node twice"):
        similar_nodes(rows, [[1, 1], [0, -1]])
    with pytest.raises(ParameterError, match=r"^candidates: row 2 names a node twice; name it once$"):
        similar_nodes(np.ones((4, 1)), [[1, 2, 3], [0, 2, 3], [0, 3, 3], [0, 1, 2]])
    with pytest.raises(ParameterError, match=r"^candidates must be positions 0 to 1, or -1; got -2 to 0$"):
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


def test_the_parts_of_the_work_make_the_whole():
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.ones(3), size=30).astype(np.float32)
    chosen = candidates(rng.integers(1, 4, 30), weights)
    for metric in ("dtw", "cosine"):
        rows, nodes = comparable(weights, chosen)
        distances = np.full(nodes.shape, np.inf, np.float32)
        for start in range(0, 30, 7):
            slots, found = owned_distances(comparison(metric, rows), nodes, start, min(start + 7, 30))
            assert ((slots // nodes.shape[1] >= start) & (slots // nodes.shape[1] < start + 7)).all()
            distances.reshape(-1)[slots] = found
        together, whole = weights_from_distances(nodes, distances), similar_nodes(weights, chosen, metric)
        np.testing.assert_array_equal(together.nodes, whole.nodes)
        np.testing.assert_array_equal(together.weights, whole.weights)
