"""What vectors are worth to a linear classifier: one-vs-rest logistic regression, test labels unseen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, qr
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from scipy.stats import rankdata

from spinegraph.errors import ParameterError

Matrix = Any  # float64 array or csr_array (n, p)
Solver = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_MOST_FACTORED = 600  # columns up to which a factored Hessian saves more products than it costs
_MANY = 16  # targets from which on they share one factored Hessian, that of their mean curvature
_WIDE = 4  # columns per row from which on the row space is worth its QR
_STEPS = 100
_PRECISION = 1e-10


def logistic_path(
    vectors: Matrix, targets: NDArray[np.float64], Cs: Sequence[float], *, precision: float = _PRECISION
) -> NDArray[np.float64]:
    """Fit every target at every C.

    Newton's method with a line search; steps by conjugate gradients, which the Hessian of the first step at
    each C speeds up where it is small enough to be factored.

    Parameters
    ----------
    vectors : float64 array or csr_array (n, p)
    targets : float64 array (n, t)
        0 or 1. A target that never varies gets zero weights and an infinite intercept.
    Cs : sequence of float
        Ascending is quickest.
    precision : float
        Squared error of the weights, over their squared norm or 1.

    Returns
    -------
    float64 array (len(Cs), p + 1, t)
        Weights, the intercept last.
    """
    share = targets.mean(axis=0)
    varies = (share > 0) & (share < 1)
    found = np.zeros((len(Cs), vectors.shape[1] + 1, targets.shape[1]))
    found[:, -1] = np.where(share == 0, -np.inf, np.inf)
    weights = np.zeros((vectors.shape[1] + 1, int(varies.sum())))
    for place, C in enumerate(Cs if varies.any() else ()):
        weights = _minimum(vectors, targets[:, varies], C, weights, precision)
        found[place][:, varies] = weights
    return found


def decisions(vectors: Matrix, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return w x + b for every row and target, (n, t)."""
    products: NDArray[np.float64] = vectors @ weights[:-1] + weights[-1]
    return products


def in_row_space(vectors: Matrix, others: Sequence[Matrix]) -> tuple[Matrix, list[Matrix]]:
    """Turn wide training vectors (n, p) to n coordinates, and other vectors with them.

    A solution with an L2 penalty is a combination of the training vectors, so nothing is lost.
    """
    if _WIDE * vectors.shape[0] > vectors.shape[1]:
        return vectors, list(others)
    rows = vectors.toarray() if issparse(vectors) else vectors
    basis = qr(rows.T, mode="economic", check_finite=False)[0]  # (p, n)
    return rows @ basis, [other @ basis for other in others]


def _minimum(
    vectors: Matrix,
    targets: NDArray[np.float64],
    C: float,
    weights: NDArray[np.float64],
    precision: float,
) -> NDArray[np.float64]:
    """Return the weights (p + 1, t) that minimise every target's objective, starting from ``weights``."""
    scores = decisions(vectors, weights)  # (n, t)
    value = _objective(scores, targets, C, weights)
    precondition: Solver | None = None
    for _ in range(_STEPS):
        chances = expit(scores)
        gradient = C * _gathered(vectors, chances - targets) + _penalised(weights)
        curvature = C * chances * (1 - chances)  # (n, t)
        if precondition is None:
            precondition = _factored(vectors, curvature)
        step = _newton_step(vectors, curvature, gradient, precondition)
        # The objective is 1-strongly convex in the weights: the decrement bounds their squared error.
        decrement = (step * gradient).sum(axis=0)  # (t,)
        change = decisions(vectors, step)
        size = np.ones(len(decrement))
        for _ in range(_STEPS):
            now = _objective(scores - size * change, targets, C, weights - size * step)
            rises = now > value - 1e-4 * size * decrement + 1e-12 * np.abs(value)
            if not rises.any():
                break
            size[rises] /= 2
        weights, scores, value = weights - size * step, scores - size * change, now
        if (decrement <= precision * np.maximum(1, (weights[:-1] ** 2).sum(axis=0))).all():
            break
    return weights


def _newton_step(
    vectors: Matrix, curvature: NDArray[np.float64], gradient: NDArray[np.float64], precondition: Solver
) -> NDArray[np.float64]:
    """Solve Hessian step = gradient for all targets to a tenth of the gradient, by conjugate gradients."""
    step, rest = np.zeros_like(gradient), gradient.copy()
    direction = eased = precondition(rest)
    size = first = (rest * eased).sum(axis=0)
    for _ in range(gradient.shape[0]):
        turned = _gathered(vectors, curvature * decisions(vectors, direction)) + _penalised(direction)
        length = size / np.maximum((direction * turned).sum(axis=0), np.finfo(float).tiny)
        step += length * direction
        rest -= length * turned
        eased = precondition(rest)
        before, size = size, (rest * eased).sum(axis=0)
        if (size <= 0.01 * first).all():
            break
        direction = eased + size / np.maximum(before, np.finfo(float).tiny) * direction
    return step


def _factored(vectors: Matrix, curvature: NDArray[np.float64]) -> Solver:
    """Return the solver of the Hessians at ``curvature``, or nothing but a copy where they are large."""
    p = vectors.shape[1]
    if p > _MOST_FACTORED or issparse(vectors):
        return np.copy
    rows = np.column_stack([vectors, np.ones(len(vectors))])
    factors = []
    is_shared = curvature.shape[1] >= _MANY
    for column in [curvature.mean(axis=1)] if is_shared else curvature.T:
        scaled = np.sqrt(column)[:, None] * rows
        hessian = scaled.T @ scaled
        # The intercept has no penalty; the little that it gets here only changes how fast the steps converge.
        hessian[np.diag_indices(p + 1)] += np.append(np.ones(p), 1e-8)
        factors.append(cho_factor(hessian, overwrite_a=True, check_finite=False))
    if is_shared:
        return lambda rest: cho_solve(factors[0], rest, check_finite=False)
    return lambda rest: np.column_stack(
        [
            cho_solve(factor, column, check_finite=False)
            for factor, column in zip(factors, rest.T, strict=True)
        ]
    )


def _objective(
    scores: NDArray[np.float64], targets: NDArray[np.float64], C: float, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each target's objective (t,)."""
    losses = np.logaddexp(0, scores) - targets * scores
    value: NDArray[np.float64] = C * losses.sum(axis=0) + 0.5 * (weights[:-1] ** 2).sum(axis=0)
    return value


def _gathered(vectors: Matrix, residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the products of the vectors, and of the intercept's ones, with residuals (n, t): (p + 1, t)."""
    return np.vstack([vectors.T @ residuals, residuals.sum(axis=0)])


def _penalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights with the intercept's place at zero."""
    kept = weights.copy()
    kept[-1] = 0
    return kept


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


_MULTILABEL_PRECISION = 1e-4  # no decision on PPI differs from those at 1e-10, in two thirds of the time


@dataclass(frozen=True)
class MultilabelResult:
    """How well one logistic regression per label did on test nodes.

    Attributes
    ----------
    micro, macro : float
        F1 over all (node, label) decisions together, and the mean F1 of the labels (0 for a label that is
        neither there nor predicted).
    C : float
        The inverse penalty that was chosen.
    val_micro : float
        Its micro-F1 on the validation nodes, which chose it.
    """

    micro: float
    macro: float
    C: float
    val_micro: float


def probe_multilabel(
    train: tuple[Any, ArrayLike],
    val: tuple[Any, ArrayLike],
    test: tuple[Any, ArrayLike],
    Cs: Sequence[float] = GRID,
) -> MultilabelResult:
    """Fit all labels at once; C is the one with the best micro-F1 on validation nodes.

    Parameters
    ----------
    train, val, test : (vectors (n, d), labels 0/1 (n, c))
        Vectors are standardised by the training nodes' mean and one common scale.
    """
    parts = [(_dense(vectors), _label_matrix(labels)) for vectors, labels in (train, val, test)]
    for vectors, labels in parts:
        if len(vectors) != len(labels):
            raise ParameterError(f"one row of labels per vector; got {len(labels)} and {len(vectors)}")
    centre = parts[0][0].mean(axis=0)
    scale = max(float(np.sqrt(np.square(parts[0][0] - centre).mean())), 1e-12)
    scaled = [(vectors - centre) / scale for vectors, _ in parts]
    path = logistic_path(scaled[0], parts[0][1], Cs, precision=_MULTILABEL_PRECISION)
    found = [f1_scores(decisions(scaled[1], weights) > 0, parts[1][1])[0] for weights in path]
    best = int(np.argmax(found))
    micro, macro = f1_scores(decisions(scaled[2], path[best]) > 0, parts[2][1])
    return MultilabelResult(micro, macro, float(Cs[best]), float(found[best]))


def f1_scores(predicted: ArrayLike, labels: ArrayLike) -> tuple[float, float]:
    """Return micro- and macro-F1 of predictions (n, c)."""
    is_predicted, is_there = np.asarray(predicted, dtype=bool), np.asarray(labels, dtype=bool)
    right = (is_predicted & is_there).sum(axis=0)
    named = is_predicted.sum(axis=0) + is_there.sum(axis=0)
    each = np.divide(2 * right, named, out=np.zeros(len(named)), where=named > 0)
    return float(2 * right.sum() / max(named.sum(), 1)), float(each.mean())


def _dense(vectors: Any) -> NDArray[np.float64]:
    return np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)


def _label_matrix(labels: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(labels)
    if found.ndim != 2 or not np.isin(found, (0, 1)).all():
        raise ParameterError(f"labels must be 0 or 1, (n, c); got {found.dtype} of shape {found.shape}")
    return found.astype(np.float64)
