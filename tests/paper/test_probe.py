"""The probes against scikit-learn's logistic regression, and against what must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.probe import GRID, probe, probe_cv
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from paper import probe as logistic
from spinegraph.errors import ParameterError
from strategies import clouds


def sklearns(X, labels, C):
    exact = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    return OneVsRestClassifier(exact).fit(X, labels)


def solvers_weights(X, labels, Cs):
    targets = (labels[:, None] == np.unique(labels)).astype(float)
    return logistic.logistic_path(X, targets, Cs)


# Without a factored Hessian, conjugate gradients stand alone, as they do for many columns.
@pytest.mark.parametrize(("n", "d", "factored"), [(90, 3, True), (200, 40, True), (200, 40, False)])
def test_weights_equal_those_of_scikit_learn_at_every_penalty(monkeypatch, n, d, factored):
    if not factored:
        monkeypatch.setattr(logistic, "_MAX_FACTORED", 0)
    X, labels = clouds(n, d, classes=4)
    for C, weights in zip(GRID, solvers_weights(X, labels, GRID), strict=True):
        theirs = sklearns(X, labels, C).estimators_
        for column, one in zip(weights.T, theirs, strict=True):
            exact = np.append(one.coef_, one.intercept_)
            np.testing.assert_allclose(column, exact, atol=1e-4 * max(1, np.abs(exact).max()))


@pytest.mark.parametrize("as_given", [np.asarray, csr_array, lambda X: X.astype(np.float32)])
def test_scores_in_the_row_space_of_wide_vectors_equal_those_of_scikit_learn(as_given):
    X, labels = clouds(120, 300, classes=3, spread=2.0)
    X = X.astype(np.float32).astype(np.float64)
    train, test = np.arange(60), np.arange(60, 120)
    found = probe(as_given(X), labels, train, test, test, Cs=[1.0])
    np.testing.assert_allclose(
        found.scores, sklearns(X[train], labels[train], 1.0).decision_function(X[test]), atol=1e-4
    )


@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([0.02, 1.0, 300.0]))
def test_probabilities_equal_those_of_scikit_learn_on_any_clouds(seed, classes, C):
    X, labels = clouds(40, 1 + seed % 7, classes, seed, spread=0.2 + seed % 3)
    train, test = np.arange(30), np.arange(30, 40)
    found = probe(X, labels, train, test, test, Cs=[C])
    theirs = sklearns(X[train], labels[train], C)
    chances = 1 / (1 + np.exp(-found.scores))
    np.testing.assert_allclose(
        chances / chances.sum(axis=1, keepdims=True), theirs.predict_proba(X[test]), atol=1e-4
    )
    assert found.accuracy == np.mean(theirs.predict(X[test]) == labels[test])


def test_sparse_vectors_give_what_dense_ones_give():
    X, labels = clouds(200, 60, classes=3)
    X[np.random.default_rng(1).random(X.shape) < 0.97] = 0
    dense, sparse = (solvers_weights(matrix, labels, [1.0, 100.0]) for matrix in (X, csr_array(X)))
    np.testing.assert_allclose(dense, sparse, atol=1e-4)


def test_vectors_of_any_scale_are_fitted():
    X, labels = clouds(100, 8, classes=3)
    for scale in (1e-6, 1e3):
        C = 10 / scale**2  # the same problem in other units
        weights = solvers_weights(X * scale, labels, [C])[0]
        np.testing.assert_allclose(
            weights[:-1] * scale, solvers_weights(X, labels, [10.0])[0][:-1], atol=1e-3
        )


def test_the_validation_nodes_choose_the_penalty():
    X, labels = clouds(300, 20, classes=3, spread=3.0)
    train, val, test = np.split(np.arange(300), [60, 180])
    found = probe(X, labels, train, val, test)
    on_val = [sklearns(X[train], labels[train], C).score(X[val], labels[val]) for C in GRID]
    assert GRID[int(np.argmax(on_val))] == found.C
    assert found.val_accuracy == pytest.approx(max(on_val))


def test_cross_validation_deals_every_class_to_every_fold():
    X, labels = clouds(90, 5, classes=3, spread=0.1)
    found = probe_cv(X, labels, np.arange(60), np.arange(60, 90), folds=4, seed=3)
    assert found.val_accuracy == 1.0
    assert found.accuracy == 1.0


def test_a_class_that_one_fold_lacks_is_never_predicted_there():
    X, labels = clouds(40, 3, classes=2)
    labels[0] = 2
    found = probe_cv(X, labels, np.arange(30), np.arange(30, 40))
    assert found.classes.tolist() == [0, 1, 2]
    assert np.isfinite(found.scores).all()


def test_a_class_that_training_lacks_counts_as_wrong():
    X, labels = clouds(40, 3, classes=2, spread=0.01)
    labels[35:] = 7
    assert probe(X, labels, np.arange(20), np.arange(20, 30), np.arange(30, 40)).accuracy == 0.5


def test_two_classes_come_with_the_auc_of_scikit_learn():
    X, labels = clouds(200, 10, classes=2, spread=4.0)
    found = probe_cv(X, labels, np.arange(100), np.arange(100, 200))
    assert found.auc == pytest.approx(roc_auc_score(labels[100:], found.scores[:, 1]))
    assert probe_cv(*clouds(60, 4, classes=3), np.arange(40), np.arange(40, 60)).auc is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": np.zeros(6)}, "vectors must be"),
        ({"vectors": np.full((6, 2), np.nan)}, "finite"),
        ({"labels": np.arange(5)}, r"labels must be one integer per vector, \(6,\)"),
        ({"labels": np.array([0, 1, 0, 1, -1, 0])}, "test holds 1 nodes of unknown label"),
        ({"labels": np.zeros(6, int)}, "all are of class 0"),
        ({"train": []}, "train must be"),
        ({"val": [6]}, "val must lie in 0 to 5; got 6 to 6"),
        ({"Cs": [1.0, 0.0]}, "Cs must be positive"),
        ({"Cs": []}, "at least one"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    given = {
        "vectors": np.eye(6),
        "labels": np.arange(6) % 2,
        "train": [0, 1],
        "val": [2, 3],
        "test": [4, 5],
        **changes,
    }
    with pytest.raises(ParameterError, match=message):
        probe(**given)


@pytest.mark.parametrize("folds", [5, 1, 2.5])
def test_folds_outside_the_training_nodes_are_refused(folds):
    with pytest.raises(ParameterError, match=f"whole number from 2 to the 4 training nodes; got {folds}"):
        probe_cv(np.eye(6), np.arange(6) % 2, [0, 1, 2, 3], [4, 5], folds=folds)
