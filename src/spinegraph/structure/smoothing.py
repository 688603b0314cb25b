"""T F as two factors: multiplied with what comes after it, never densified."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.kernels.products import sparse_times_dense


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The matrix T F (r, f), kept as T and F.

    Attributes
    ----------
    operator : csr_array (r, n)
        T.
    features : csr_array or float32 array (n, f)
    threads : int, optional

    Examples
    --------
    >>> half = csr_array(np.array([[0.5, 0.5]], dtype=np.float32))
    >>> Smoothed(half, np.array([[2.0], [4.0]], dtype=np.float32)).times(np.ones((1, 1), np.float32))
    array([[3.]], dtype=float32)
    """

    operator: csr_array
    features: Any
    threads: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of T F."""
        return self.operator.shape[0], self.features.shape[1]

    def matrix(self) -> Any:
        """Return T F itself; sparse stays sparse."""
        return self.operator @ self.features

    def times(self, right: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return T F right, (r, d), in the cheaper order of T (F right) and (T F) right."""
        if self._is_cheaper_smoothed(right.shape[1]):
            return multiply(self.matrix(), right, self.threads)
        return multiply(self.operator, multiply(self.features, right, self.threads), self.threads)

    def transposed_times(self, left: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (T F)' left, (f, d)."""
        return multiply(self.features.T, multiply(self.operator.T, left, self.threads), self.threads)

    def _is_cheaper_smoothed(self, width: int) -> bool:
        filled = self.features.size  # of a sparse matrix, the entries it holds
        per_row = filled / max(self.features.shape[0], 1)
        sums = self.operator.nnz * per_row  # work for T F
        smoothed = min(self.operator.shape[0] * self.features.shape[1], sums)
        return bool(sums + smoothed * width < (filled + self.operator.nnz) * width)


def multiply(left: Any, right: NDArray[np.float32], threads: int | None = None) -> NDArray[np.float32]:
    """Return left @ right as dense float32: BLAS where left is dense, our own threads where it is sparse."""
    right = np.ascontiguousarray(right, dtype=np.float32)
    if not issparse(left):
        return np.asarray(left @ right, dtype=np.float32)
    rows = csr_array(left)
    return sparse_times_dense(
        rows.indptr, rows.indices, rows.data.astype(np.float32, copy=False), right, threads
    )


def principal_directions(smoothed: Smoothed, count: int, seed: int) -> NDArray[np.float32]:
    """Return the leading right singular vectors (f, count) of T F, found by random projection.

    >>> line = Smoothed(csr_array(np.eye(3, dtype=np.float32)), np.diag([3.0, 2.0, 1.0]).astype(np.float32))
    >>> abs(principal_directions(line, 1, seed=0)).round(3).ravel().tolist()
    [1.0, 0.0, 0.0]
    """
    rows, columns = smoothed.shape
    width = min(count + 20, rows, columns)
    rng = np.random.default_rng([seed, 17])
    found = smoothed.times(rng.standard_normal((columns, width)).astype(np.float32))
    for _ in range(3):
        found = smoothed.transposed_times(_orthonormal(found))
        found = smoothed.times(_orthonormal(found))
    return signed(_orthonormal(smoothed.transposed_times(_orthonormal(found)))[:, :count])


def signed(directions: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return directions (f, r) turned so that each one's largest entry is positive.

    Either sign is right, and which one comes out depends on rounding, so on the number of BLAS's threads.

    >>> signed(np.array([[-2.0, 1.0], [1.0, 3.0]])).tolist()
    [[2.0, 1.0], [-1.0, 3.0]]
    """
    if not directions.size:
        return np.ascontiguousarray(directions, dtype=np.float32)
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.ascontiguousarray(directions * np.sign(largest), dtype=np.float32)


def _orthonormal(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return an orthonormal basis of the columns' span, main directions first, by their small Gram matrix."""
    values, vectors = np.linalg.eigh(columns.T.astype(np.float64) @ columns)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > max(1e-10 * values.max(initial=0), 1e-300)
    return np.asarray(columns @ (vectors[:, kept] / np.sqrt(values[kept])), dtype=np.float32)
