"""The probe of many labels beside scikit-learn's own classifiers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from spinegraph.analysis.evaluation import f1_scores, probe_multilabel
from spinegraph.errors import ParameterError


def drawn(n, labels, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 6))
    weights = np.random.default_rng(99).standard_normal((6, labels))
    return vectors, (vectors @ weights + rng.standard_normal((n, labels)) > 0.5).astype(np.uint8)


@pytest.mark.parametrize("labels", [3, 20])  # few have a Hessian each, many share one
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


def test_a_label_that_is_never_there_counts_as_zero():
    labels = np.array([[1, 0], [0, 0], [1, 0]])
    assert f1_scores(labels, labels) == (1.0, 0.5)


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
