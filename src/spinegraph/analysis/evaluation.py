"""What vectors are worth to a linear classifier: one-vs-rest logistic regression, test labels unseen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.stats import rankdata

from spinegraph.analysis.logistic import Matrix, decisions, in_row_space, logistic_path
from spinegraph.errors import ParameterError

GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

_DENSE_FROM = 0.05  # share of non-zeros from which dense products are quicker


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """How well a classifier did on test nodes.

    Attributes
    ----------
    accuracy : float
        Share of test nodes classified rightly; one class per node, so this is also the micro-F1.
    C : float
        The inverse penalty that was chosen; the smallest where several are equally good.
    val_accuracy : float
        Its accuracy on the nodes that chose it.
    auc : float or None
        For two classes, the probability that a node of the second class is ranked above one of the first.
    classes : int array (c,)
        Classes among the training nodes.
    scores : float64 array (t, c)
        Decision values of the test nodes.

    Examples
    --------
    >>> ProbeResult(0.8, 1.0, 0.75, None, np.arange(3), np.zeros((5, 3))).accuracy
    0.8
    """

    accuracy: float
    C: float
    val_accuracy: float
    auc: float | None
    classes: NDArray[np.int64]
    scores: NDArray[np.float64]


def probe(
    vectors: Any,
    labels: ArrayLike,
    train: ArrayLike,
    val: ArrayLike,
    test: ArrayLike,
    Cs: Sequence[float] = GRID,
) -> ProbeResult:
    """Classify test nodes by their vectors; C is the one that does best on validation nodes.

    Parameters
    ----------
    vectors : array or sparse matrix (n, d)
    labels : int array (n,)
        Read at train, val and test only; unknown (-1) may stand elsewhere.
    train, val, test : int arrays of positions
    Cs : sequence of float
        Inverse penalties to choose from.

    Examples
    --------
    >>> line = np.arange(12.0)[:, None]
    >>> probe(line, np.arange(12) // 6, train=[0, 1, 10, 11], val=[3, 8], test=[2, 5, 6, 9]).accuracy
    1.0
    """
    matrix = _matrix(vectors)
    classes_of = _labels(labels, matrix.shape[0])
    rows = [
        _positions(part, classes_of, what) for part, what in ((train, "train"), (val, "val"), (test, "test"))
    ]
    X, (X_val, X_test) = in_row_space(matrix[rows[0]], [matrix[rows[1]], matrix[rows[2]]])
    classes, targets = _targets(classes_of[rows[0]])
    path = logistic_path(X, targets, _grid(Cs))
    found = np.array([_accuracy(_scores(X_val, weights), classes, classes_of[rows[1]]) for weights in path])
    return _result(found, _grid(Cs), path, classes, X_test, classes_of[rows[2]])


def probe_cv(
    vectors: Any,
    labels: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    folds: int = 3,
    seed: int = 0,
    Cs: Sequence[float] = GRID,
) -> ProbeResult:
    """Classify test nodes by their vectors; C is chosen by cross-validation inside the training nodes.

    Parameters
    ----------
    vectors : array or sparse matrix (n, d)
    labels : int array (n,)
        Read at train and test only.
    train, test : int arrays of positions
    folds : int
        Parts of the training nodes, each with its share of every class.
    seed : int
        Decides who is in which part.
    Cs : sequence of float

    Examples
    --------
    >>> line = np.arange(12.0)[:, None]
    >>> probe_cv(line, np.arange(12) // 6, train=[0, 1, 3, 8, 10, 11], test=[2, 5, 6, 9]).accuracy
    1.0
    """
    matrix = _matrix(vectors)
    classes_of = _labels(labels, matrix.shape[0])
    train, test = _positions(train, classes_of, "train"), _positions(test, classes_of, "test")
    X, (X_test,) = in_row_space(matrix[train], [matrix[test]])
    known = classes_of[train]
    classes, targets = _targets(known)
    path = logistic_path(X, targets, _grid(Cs))
    right = np.zeros(len(path))
    part_of = _parts(known, folds, seed)
    for part in range(folds):
        inside, outside = part_of != part, part_of == part
        fitted = logistic_path(X[inside], targets[inside], _grid(Cs))
        scored = X[outside]
        right += [
            _accuracy(_scores(scored, weights), classes, known[outside]) * outside.sum() for weights in fitted
        ]
    return _result(right / len(train), _grid(Cs), path, classes, X_test, classes_of[test])


def ranking_auc(positive: ArrayLike, scores: ArrayLike) -> float:
    """Return the probability that a positive is scored above a negative; ties count half.

    Parameters
    ----------
    positive : bool array (n,)
    scores : float array (n,)

    Examples
    --------
    >>> ranking_auc([False, True, True], [0.1, 0.1, 0.7])
    0.75
    """
    is_positive = np.asarray(positive, dtype=bool)
    positives = int(is_positive.sum())
    negatives = len(is_positive) - positives
    if not positives or not negatives:
        raise ParameterError(f"AUC needs positives and negatives; got {positives} and {negatives}")
    above = rankdata(np.asarray(scores))[is_positive].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def _result(
    val_accuracy: NDArray[np.float64],
    Cs: tuple[float, ...],
    path: NDArray[np.float64],
    classes: NDArray[np.int64],
    X_test: Matrix,
    test_labels: NDArray[np.int64],
) -> ProbeResult:
    """Apply the chosen C to the test nodes."""
    best = int(np.argmax(val_accuracy))
    scores = _scores(X_test, path[best])
    auc = None
    if len(classes) == 2 and np.isin(classes, test_labels).all():
        auc = ranking_auc(test_labels == classes[1], scores[:, 1])
    accuracy = _accuracy(scores, classes, test_labels)
    return ProbeResult(accuracy, Cs[best], float(val_accuracy[best]), auc, classes, scores)


def _scores(X: Matrix, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return decision values (n, c); two classes are one target, seen from both sides."""
    found = decisions(X, weights)
    return np.column_stack([-found, found]) if found.shape[1] == 1 else found


def _accuracy(scores: NDArray[np.float64], classes: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    return float((classes[scores.argmax(axis=1)] == labels).mean())


def _targets(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the classes (c,), and who is in each as 0 or 1 (n, c), or (n, 1) for the second of two."""
    classes = np.unique(labels)
    if len(classes) == 1:
        raise ParameterError(f"training nodes must be of two classes at least; all are of class {classes[0]}")
    targets = (labels[:, None] == classes).astype(np.float64)
    return classes, targets[:, 1:] if len(classes) == 2 else targets


def _parts(labels: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Deal the nodes out to parts 0 .. folds - 1, class after class."""
    if not isinstance(folds, int | np.integer) or not 2 <= folds <= len(labels):
        raise ParameterError(
            f"folds must be a whole number from 2 to the {len(labels)} training nodes; got {folds!r}"
        )
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    part_of = np.empty(len(labels), dtype=np.int64)
    part_of[order] = np.arange(len(labels)) % folds
    return part_of


def _matrix(vectors: Any) -> Matrix:
    """Return the vectors as float64, sparse only where that is quicker."""
    matrix: Matrix = (
        csr_array(vectors, dtype=np.float64) if issparse(vectors) else np.asarray(vectors, np.float64)
    )
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise ParameterError(f"vectors must be (n, d) with d >= 1; got shape {matrix.shape}")
    if not np.isfinite(matrix.data if issparse(matrix) else matrix).all():
        raise ParameterError("vectors must be finite; got NaN or infinity")
    if issparse(matrix) and matrix.nnz > _DENSE_FROM * matrix.shape[0] * matrix.shape[1]:
        return matrix.toarray()
    return matrix


def _labels(labels: ArrayLike, n: int) -> NDArray[np.int64]:
    found = np.asarray(labels)
    if found.ndim != 1 or found.dtype.kind not in "iub" or len(found) != n:
        raise ParameterError(
            f"labels must be one integer per vector, ({n},); got {found.dtype} {found.shape}"
        )
    return found.astype(np.int64)


def _positions(given: ArrayLike, labels: NDArray[np.int64], what: str) -> NDArray[np.int64]:
    """Return positions whose labels are known."""
    rows = np.asarray(given)
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise ParameterError(f"{what} must be a list of positions, not empty; got {rows.dtype} {rows.shape}")
    if rows.min() < 0 or rows.max() >= len(labels):
        raise ParameterError(f"{what} must lie in 0 to {len(labels) - 1}; got {rows.min()} to {rows.max()}")
    unknown = int((labels[rows] < 0).sum())
    if unknown:
        raise ParameterError(f"{what} holds {unknown} nodes of unknown label (-1); leave them out")
    return rows.astype(np.int64)


def _grid(Cs: Sequence[float]) -> tuple[float, ...]:
    grid = tuple(float(C) for C in Cs)
    if not grid or not all(0 < C < np.inf for C in grid):
        raise ParameterError(f"Cs must be positive numbers, at least one; got {Cs!r}")
    return grid
