"""The probe of the paper's tables and of the benchmarks: one-vs-rest logistic regression, solved exactly.

Its penalty is chosen on validation nodes or by cross-validation; test labels choose nothing. The command
``spine evaluate`` takes scikit-learn's multinomial regression instead: quicker, and within a point.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, qr
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from spinegraph.analysis.evaluation import GRID, ProbeResult, folds_by_class
from spinegraph.errors import ParameterError

Matrix = Any  # float64 array or csr_array (n, p)
Floats = NDArray[np.float64]

_DENSE_FROM = 0.05  # share of non-zeros from which dense products are quicker


def probe(
    vectors: Any,
    labels: ArrayLike,
    train: ArrayLike,
    val: ArrayLike,
    test: ArrayLike,
    Cs: Sequence[float] = GRID,
) -> ProbeResult:
    """Classify test nodes by their vectors; arguments as in ``spinegraph.analysis``'s ``probe``.

    >>> line = np.arange(12.0)[:, None]
    >>> probe(line, np.arange(12) // 6, train=[0, 1, 10, 11], val=[3, 8], test=[2, 5, 6, 9]).accuracy
    1.0
    """
    matrix, known, (train, val, test) = _checked(vectors, labels, Cs, train=train, val=val, test=test)
    X, (X_val, X_test) = in_row_space(matrix[train], [matrix[val], matrix[test]])
    classes, targets = _targets(known[train])
    path = logistic_path(X, targets, Cs)
    found = np.array([_accuracy(_scores(X_val, weights), classes, known[val]) for weights in path])
    return _result(found, Cs, path, classes, X_test, known[test])


def probe_cv(
    vectors: Any,
    labels: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    folds: int = 3,
    seed: int = 0,
    Cs: Sequence[float] = GRID,
) -> ProbeResult:
    """Classify test nodes by their vectors; arguments as in ``spinegraph.analysis``'s ``probe_cv``.

    >>> line = np.arange(12.0)[:, None]
    >>> probe_cv(line, np.arange(12) // 6, train=[0, 1, 3, 8, 10, 11], test=[2, 5, 6, 9]).accuracy
    1.0
    """
    matrix, known, (train, test) = _checked(vectors, labels, Cs, train=train, test=test)
    if not isinstance(folds, int | np.integer) or not 2 <= folds <= len(train):
        raise ParameterError(
            f"folds must be a whole number from 2 to the {len(train)} training nodes; got {folds!r}"
        )
    X, (X_test,) = in_row_space(matrix[train], [matrix[test]])
    trained = known[train]
    classes, targets = _targets(trained)
    fold_of, correct = folds_by_class(trained, folds, seed), np.zeros(len(Cs))
    for fold in range(folds):
        inside, outside = fold_of != fold, fold_of == fold
        path, X_val = logistic_path(X[inside], targets[inside], Cs), X[outside]
        found = [_accuracy(_scores(X_val, weights), classes, trained[outside]) for weights in path]
        correct += np.array(found) * outside.sum()
    path = logistic_path(X, targets, Cs)
    return _result(correct / len(train), Cs, path, classes, X_test, known[test])


def _result(
    val_accuracy: Floats,
    Cs: Sequence[float],
    path: Floats,
    classes: NDArray[np.int64],
    X_test: Matrix,
    test_labels: NDArray[np.int64],
) -> ProbeResult:
    """Apply the chosen C to the test nodes."""
    best = int(np.argmax(val_accuracy))
    scores = _scores(X_test, path[best])
    auc = None
    if len(classes) == 2 and np.isin(classes, test_labels).all():
        auc = float(roc_auc_score(test_labels == classes[1], scores[:, 1]))
    accuracy = _accuracy(scores, classes, test_labels)
    return ProbeResult(accuracy, float(Cs[best]), float(val_accuracy[best]), auc, classes, scores)


def _scores(X: Matrix, weights: Floats) -> Floats:
    """Return decision values (n, c); two classes are one target, seen from both sides."""
    found = decisions(X, weights)
    return np.column_stack([-found, found]) if found.shape[1] == 1 else found


def _accuracy(scores: Floats, classes: NDArray[np.int64], labels: NDArray[np.int64]) -> float:
    return float((classes[scores.argmax(axis=1)] == labels).mean())


def _targets(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
    """Return the classes (c,) and the 0/1 targets (n, c), or (n, 1) for the second of two classes."""
    classes = np.unique(labels)
    if len(classes) == 1:
        raise ParameterError(f"training nodes must be of two classes at least; all are of class {classes[0]}")
    targets = (labels[:, None] == classes).astype(np.float64)
    return classes, targets[:, 1:] if len(classes) == 2 else targets


def _checked(
    vectors: Any, labels: ArrayLike, Cs: Sequence[float], **parts: ArrayLike
) -> tuple[Matrix, NDArray[np.int64], list[NDArray[np.int64]]]:
    """Return vectors as float64 (sparse only where that is quicker), labels, and positions of known label."""
    matrix: Matrix = (
        csr_array(vectors, dtype=np.float64) if issparse(vectors) else np.asarray(vectors, np.float64)
    )
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise ParameterError(f"vectors must be (n, d) with d >= 1; got shape {matrix.shape}")
    if not np.isfinite(matrix.data if issparse(matrix) else matrix).all():
        raise ParameterError("vectors must be finite; got NaN or infinity")
    if issparse(matrix) and matrix.nnz > _DENSE_FROM * matrix.shape[0] * matrix.shape[1]:
        matrix = matrix.toarray()
    n, known = matrix.shape[0], np.asarray(labels)
    if known.ndim != 1 or known.dtype.kind not in "iub" or len(known) != n:
        raise ParameterError(
            f"labels must be one integer per vector, ({n},); got {known.dtype} {known.shape}"
        )
    known = known.astype(np.int64)
    if not len(Cs) or not all(0 < C < np.inf for C in Cs):
        raise ParameterError(f"Cs must be positive numbers, at least one; got {Cs!r}")
    positions = []
    for what, given in parts.items():
        rows = np.asarray(given)
        if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
            raise ParameterError(
                f"{what} must be a list of positions, not empty; got {rows.dtype} {rows.shape}"
            )
        if rows.min() < 0 or rows.max() >= n:
            raise ParameterError(f"{what} must lie in 0 to {n - 1}; got {rows.min()} to {rows.max()}")
        unknown = int((known[rows] < 0).sum())
        if unknown:
            raise ParameterError(f"{what} holds {unknown} nodes of unknown label (-1); leave them out")
        positions.append(rows.astype(np.int64))
    return matrix, known, positions


# All targets and penalties at once: on the public splits of Cora and Citeseer 5 to 11 times quicker than
# scikit-learn's lbfgs of the same precision and accuracies (0.09 s instead of 0.46 s for Cora's vectors).
_MAX_FACTORED = 600  # columns up to which a factored Hessian saves more products than it costs
_MIN_COLUMNS_PER_ROW = 4  # from here on the row space is worth its QR decomposition
_MAX_STEPS = 100


def in_row_space(vectors: Matrix, others: Sequence[Matrix]) -> tuple[Matrix, list[Matrix]]:
    """Turn wide training vectors (n, p) to n coordinates, and other vectors with them.

    A solution with an L2 penalty is a combination of the training vectors, so nothing is lost.
    """
    if _MIN_COLUMNS_PER_ROW * vectors.shape[0] > vectors.shape[1]:
        return vectors, list(others)
    rows = vectors.toarray() if issparse(vectors) else vectors
    basis = qr(rows.T, mode="economic", check_finite=False)[0]  # (p, n)
    return rows @ basis, [other @ basis for other in others]


def logistic_path(
    vectors: Matrix, targets: Floats, Cs: Sequence[float], *, precision: float = 1e-10
) -> Floats:
    """Return the weights of every 0/1 target (n, t) at every C, intercept last: (len(Cs), p + 1, t).

    Newton's method with a line search; steps by conjugate gradients, preconditioned where the Hessian is
    small enough to be factored. Ascending Cs are quickest. ``precision`` is the squared error of the weights,
    over their squared norm or 1. A target that never varies gets zero weights and an infinite intercept.
    """
    share = targets.mean(axis=0)
    varies = (share > 0) & (share < 1)
    found = np.zeros((len(Cs), vectors.shape[1] + 1, targets.shape[1]))
    found[:, -1] = np.where(share == 0, -np.inf, np.inf)
    weights = np.zeros((vectors.shape[1] + 1, int(varies.sum())))
    for row, C in enumerate(Cs if varies.any() else ()):
        weights = _minimum(vectors, targets[:, varies], C, weights, precision)
        found[row][:, varies] = weights
    return found


def decisions(vectors: Matrix, weights: Floats) -> Floats:
    """Return w x + b for every row and target, (n, t)."""
    products: Floats = vectors @ weights[:-1] + weights[-1]
    return products


def _minimum(vectors: Matrix, targets: Floats, C: float, weights: Floats, precision: float) -> Floats:
    """Return the weights (p + 1, t) that minimise every target's objective, starting from ``weights``."""
    scores = decisions(vectors, weights)  # (n, t)
    value, factor = _objective(scores, targets, C, weights), None
    for _ in range(_MAX_STEPS):
        chances = expit(scores)
        gradient = C * _gathered(vectors, chances - targets) + _penalised(weights)
        curvature = C * chances * (1 - chances)  # (n, t)
        if factor is None and vectors.shape[1] <= _MAX_FACTORED and not issparse(vectors):
            factor = _factored_hessian(vectors, curvature.mean(axis=1))
        step = _newton_step(vectors, curvature, gradient, factor)
        # The objective is 1-strongly convex in the weights: the decrement bounds their squared error.
        decrement = (step * gradient).sum(axis=0)  # (t,)
        change = decisions(vectors, step)
        size = np.ones(len(decrement))
        for _ in range(_MAX_STEPS):
            now = _objective(scores - size * change, targets, C, weights - size * step)
            rises = now > value - 1e-4 * size * decrement + 1e-12 * np.abs(value)
            if not rises.any():
                break
            size[rises] /= 2
        weights, scores, value = weights - size * step, scores - size * change, now
        if (decrement <= precision * np.maximum(1, (weights[:-1] ** 2).sum(axis=0))).all():
            break
    return weights


def _newton_step(vectors: Matrix, curvature: Floats, gradient: Floats, factor: Any) -> Floats:
    """Solve Hessian step = gradient for all targets to a tenth of the gradient, by conjugate gradients."""

    def precondition(rest: Floats) -> Floats:
        return rest.copy() if factor is None else np.asarray(cho_solve(factor, rest, check_finite=False))

    tiny = np.finfo(float).tiny
    step, rest = np.zeros_like(gradient), gradient.copy()
    direction = solved = precondition(rest)
    size = first = (rest * solved).sum(axis=0)
    for _ in range(gradient.shape[0]):
        turned = _gathered(vectors, curvature * decisions(vectors, direction)) + _penalised(direction)
        length = size / np.maximum((direction * turned).sum(axis=0), tiny)
        step += length * direction
        rest -= length * turned
        solved = precondition(rest)
        before, size = size, (rest * solved).sum(axis=0)
        if (size <= 0.01 * first).all():
            break
        direction = solved + size / np.maximum(before, tiny) * direction
    return step


def _factored_hessian(vectors: Floats, curvature: Floats) -> Any:
    """Return the Cholesky factor of the Hessian at the targets' mean curvature (n,)."""
    p = vectors.shape[1]
    scaled = np.sqrt(curvature)[:, None] * np.column_stack([vectors, np.ones(len(vectors))])
    hessian = scaled.T @ scaled
    # The intercept has no penalty; the little that it gets here only changes how fast the steps converge.
    hessian[np.diag_indices(p + 1)] += np.append(np.ones(p), 1e-8)
    return cho_factor(hessian, overwrite_a=True, check_finite=False)


def _objective(scores: Floats, targets: Floats, C: float, weights: Floats) -> Floats:
    """Return each target's objective (t,)."""
    losses = np.logaddexp(0, scores) - targets * scores
    value: Floats = C * losses.sum(axis=0) + 0.5 * (weights[:-1] ** 2).sum(axis=0)
    return value


def _gathered(vectors: Matrix, residuals: Floats) -> Floats:
    """Return the products of the vectors, and of the intercept's ones, with residuals (n, t): (p + 1, t)."""
    return np.vstack([vectors.T @ residuals, residuals.sum(axis=0)])


def _penalised(weights: Floats) -> Floats:
    """Return the weights with 0 for the intercept."""
    return np.vstack([weights[:-1], np.zeros(weights.shape[1])])
