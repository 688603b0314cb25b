"""Mirrored and perturbed networks, and the probe of many labels at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.protocols import mirrored, perturbed, probe_multilabel
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import strategies
from spinegraph.errors import ParameterError
from spinegraph.graph import synthetic as made
from spinegraph.graph.graph import Graph


def edge_set(graph):
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    return {(int(u), int(v)) for u, v in zip(rows, graph.indices, strict=True) if u < v}


def dense(features):
    return features.toarray() if issparse(features) else np.asarray(features)


@given(strategies.graphs(), st.integers(0, 5))
def test_a_mirror_image_has_the_same_ties_weights_and_features(graph, seed):
    union, pairs = mirrored(graph, seed)
    n = len(graph)
    assert len(union) == 2 * n
    assert sorted(pairs[:, 1].tolist()) == list(range(n, 2 * n))
    assert pairs[:, 0].tolist() == list(range(n))
    image = dict(pairs.tolist())
    edges = edge_set(graph)
    assert edge_set(union) == edges | {tuple(sorted((image[u], image[v]))) for u, v in edges}
    np.testing.assert_allclose(union.strengths[pairs[:, 0]], union.strengths[pairs[:, 1]])
    if graph.has_features:
        features = dense(union.features)
        np.testing.assert_array_equal(features[pairs[:, 0]], features[pairs[:, 1]])


def test_a_mirror_is_in_random_order_and_named_apart():
    _, pairs = mirrored(made.karate(), seed=0)
    assert (pairs[:, 1] != np.arange(34, 68)).any()
    named = made.karate().relabel([f"member {number}" for number in range(34)])
    union, pairs = mirrored(named, seed=0)
    assert union.names[pairs[5, 0]] == ("original", "member 5")
    assert union.names[pairs[5, 1]] == ("mirror", "member 5")


@given(strategies.graphs(), st.floats(0, 1), st.integers(0, 5))
def test_perturbing_keeps_nodes_and_moves_one_value_a_row(graph, keep, seed):
    changed = perturbed(graph, keep, seed=seed)
    assert changed.names.tolist() == graph.names.tolist()
    assert edge_set(changed) <= edge_set(graph)
    if not graph.has_features:
        return
    before, after = dense(graph.features), dense(changed.features)
    width = before.shape[1]
    for old, new in zip(before, after, strict=True):
        assert sorted(old) == sorted(new)
        both = 0 < np.count_nonzero(old) < width
        assert ((old != 0) != (new != 0)).sum() == (2 if both else 0)


def test_perturbing_keeps_the_stated_share_of_edges_and_their_weights():
    plain = made.random_graph(2000, 10, seed=1)
    rows = np.repeat(np.arange(2000), plain.degrees)
    once = rows < plain.indices
    edges = np.column_stack([rows[once], plain.indices[once]])
    graph = Graph.from_edges(edges, num_nodes=2000, weights=edges.sum(axis=1))
    changed = perturbed(graph, keep=0.7, seed=2)
    # 19,990 coins of 0.7: four standard deviations are 0.013
    assert abs(changed.num_edges / graph.num_edges - 0.7) < 0.013
    ends = np.repeat(np.arange(2000), changed.degrees) + changed.indices
    np.testing.assert_array_equal(changed.weights, ends)
    again = perturbed(graph, keep=0.7, seed=3)
    assert edge_set(changed) != edge_set(again)
    assert edge_set(perturbed(graph, keep=1.0)) == edge_set(graph)
    assert perturbed(graph, keep=0.0).num_edges == 0


def test_the_moved_one_lands_on_every_zero_alike():
    graph = Graph.from_edges([(0, 1)], num_nodes=9000, features=np.tile([[0, 1, 0, 0, 1, 0]], (9000, 1)))
    after = dense(perturbed(graph, keep=1.0, seed=0).features).mean(axis=0)
    # Each 1 leaves with probability 1/2, each 0 is taken with probability 1/4; four deviations are 0.021.
    np.testing.assert_allclose(after, [0.25, 0.5, 0.25, 0.25, 0.5, 0.25], atol=0.021)


def test_features_stay_when_asked_and_dense_stays_dense():
    graph = Graph.from_edges([(0, 1)], features=np.eye(2, dtype=np.float32))
    kept = perturbed(graph, keep=1.0, swap_features=False)
    np.testing.assert_array_equal(dense(kept.features), np.eye(2))
    swapped = perturbed(graph, keep=1.0).features
    assert isinstance(swapped, np.ndarray)
    np.testing.assert_array_equal(swapped, np.eye(2)[::-1])


def drawn(n, labels, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 6))
    weights = np.random.default_rng(99).standard_normal((6, labels))
    return vectors, (vectors @ weights + rng.standard_normal((n, labels)) > 0.5).astype(np.uint8)


@pytest.mark.parametrize("labels", [3, 20])
def test_one_penalty_is_one_logistic_regression_per_label(labels):
    train, test = drawn(200, labels, 0), drawn(150, labels, 1)
    found = probe_multilabel(train, test, test, Cs=(0.1,))
    centre = train[0].mean(axis=0)
    scale = np.sqrt(np.square(train[0] - centre).mean())
    X, Z = ((vectors - centre) / scale for vectors in (train[0], test[0]))
    theirs = [LogisticRegression(C=0.1, tol=1e-8).fit(X, column).predict(Z) for column in train[1].T]
    predicted = np.column_stack(theirs)
    assert found.micro == pytest.approx(f1_score(test[1], predicted, average="micro"), abs=2e-3)
    assert found.macro == pytest.approx(f1_score(test[1], predicted, average="macro"), abs=2e-3)
    assert found.C == 0.1


def test_the_penalty_is_chosen_on_validation_nodes():
    train, val, test = (drawn(40, 17, seed) for seed in range(3))
    found = probe_multilabel(train, val, test)
    alone = [
        probe_multilabel(train, val, test, Cs=(C,)).val_micro for C in (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    ]
    assert found.val_micro == pytest.approx(max(alone), abs=5e-3)


def test_wrong_labels_are_refused():
    vectors, labels = drawn(10, 3, 0)
    with pytest.raises(ParameterError, match="0 or 1"):
        probe_multilabel((vectors, labels * 2), (vectors, labels), (vectors, labels))
    with pytest.raises(ParameterError, match="10"):
        probe_multilabel((vectors, labels[:5]), (vectors, labels), (vectors, labels))


def test_a_label_that_is_never_there_counts_as_zero():
    vectors, labels = drawn(60, 3, 0)
    missing = np.column_stack([labels, np.zeros(60, int)])
    all_labels, some = (probe_multilabel((vectors, y), (vectors, y), (vectors, y)) for y in (missing, labels))
    assert all_labels.micro == pytest.approx(some.micro)
    assert all_labels.macro == pytest.approx(0.75 * some.macro)


def test_a_share_of_edges_outside_0_to_1_is_refused():
    with pytest.raises(ParameterError, match=r"keep must be from 0 to 1; got 1\.5"):
        perturbed(made.karate(), keep=1.5)
