"""Logistic regression to high precision, for many targets and many penalties at once.

Each target's problem is scikit-learn's: min 0.5 |w|^2 + C sum_i log(1 + exp(-y_i (w x_i + b))), the intercept
b free of penalty. All targets share every product with the vectors; each penalty starts where the one before
ended.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, qr
from scipy.sparse import issparse
from scipy.special import expit

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

    Examples
    --------
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> logistic_path(X, y, Cs=[1.0, 100.0]).round(3)[:, 0, 0]
    array([1.007, 3.945])
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
    """Return w x + b for every row and target, (n, t).

    Examples
    --------
    >>> decisions(np.array([[2.0]]), np.array([[3.0], [1.0]]))
    array([[7.]])
    """
    products: NDArray[np.float64] = vectors @ weights[:-1] + weights[-1]
    return products


def in_row_space(vectors: Matrix, others: Sequence[Matrix]) -> tuple[Matrix, list[Matrix]]:
    """Turn wide training vectors (n, p) to n coordinates, and other vectors with them.

    A solution with an L2 penalty is a combination of the training vectors, so nothing is lost.

    Examples
    --------
    >>> wide = np.arange(10.0)[None, :]
    >>> turned, (other,) = in_row_space(wide, [2 * wide])
    >>> turned.shape, bool(np.isclose(turned @ other.T, wide @ (2 * wide).T).all())
    ((1, 1), True)
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
