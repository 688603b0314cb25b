"""How well classes are read from vectors, beside the exact probe of the paper's tables."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from paper import probe as exact
from spinegraph.analysis.evaluation import probe, probe_cv
from spinegraph.errors import ParameterError
from strategies import clouds


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("as_given", [np.asarray, csr_array, lambda X: X.astype(np.float32)])
def test_accuracies_are_those_of_the_exact_probe(classes, as_given):
    X, labels = clouds(600, 20, classes, spread=3.0)
    parts = np.split(np.random.default_rng(1).permutation(600), [150, 300])
    found, expected = probe(as_given(X), labels, *parts), exact.probe(X, labels, *parts)
    assert found.accuracy == pytest.approx(expected.accuracy, abs=0.03)
    assert found.scores.shape == (300, classes)
    assert (found.classes[found.scores.argmax(axis=1)] == labels[parts[2]]).mean() == found.accuracy


def test_the_validation_nodes_choose_the_penalty():
    X, labels = clouds(300, 20, classes=3, spread=3.0)
    train, val, test = np.split(np.arange(300), [60, 180])
    found = probe(X, labels, train, val, test)
    single = [probe(X, labels, train, val, test, Cs=[C]).val_accuracy for C in (0.01, found.C, 1000.0)]
    assert found.val_accuracy == pytest.approx(max(single), abs=0.02)


@pytest.mark.parametrize("probe_cv", [probe_cv, exact.probe_cv])
def test_test_labels_choose_nothing(probe_cv):
    X, labels = clouds(300, 20, classes=3, spread=3.0)
    train, test = np.arange(200), np.arange(200, 300)
    other = labels.copy()
    other[test] = (labels[test] + 1) % 3
    found, changed = (probe_cv(X, these, train, test) for these in (labels, other))
    assert found.C == changed.C
    np.testing.assert_array_equal(found.scores, changed.scores)
    assert found.accuracy != changed.accuracy


def test_two_classes_come_with_their_auc():
    X, labels = clouds(200, 10, classes=2, spread=4.0)
    found = probe_cv(X, labels, np.arange(100), np.arange(100, 200))
    assert found.auc == pytest.approx(roc_auc_score(labels[100:], found.scores[:, 1]))
    assert probe_cv(*clouds(60, 4, classes=3), np.arange(40), np.arange(40, 60)).auc is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(5), r"labels must be one per vector, \(6,\)"),
        (np.array([0, 1, 0, 1, -1, 0]), "1 of the nodes have no known label"),
        (np.zeros(6, int), "must have at least two classes"),
    ],
)
def test_wrong_labels_are_named(labels, message):
    with pytest.raises(ParameterError, match=message):
        probe(np.eye(6), labels, [0, 1], [2, 3], [4, 5])
