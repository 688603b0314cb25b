"""Scaling of features that are already one matrix of numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError
from spinegraph.graph.rows import row_sums

# In standard deviations: keeps a value of 1e300 finite in float32 without touching real outliers.
FARTHEST = 1e6
_PIECE = 2**22  # values looked at a time
SCALINGS = ("auto", "row", "row_sum", "column", "none")

Matrix: TypeAlias = Any  # scipy.sparse.csr_array or NDArray[np.float32]: SciPy has no types


@dataclass(frozen=True, eq=False)
class MatrixScaling:
    """How a matrix (n, f) is scaled.

    Attributes
    ----------
    scaling : str
        "row" divides each row by its Euclidean length and "row_sum" by its sum of absolute values (rows
        of zeros stay); "column" standardises each column, without centring where the matrix is sparse,
        since centring would fill it; "none" leaves every value as it is.
    width : int
        The number of columns f.
    mean, scale : float64 arrays (f,), or None
        What "column" learned; ``mean`` is None where the matrix was sparse.
    """

    scaling: str
    width: int
    mean: NDArray[np.float64] | None = None
    scale: NDArray[np.float64] | None = None

    @classmethod
    def fit(cls, matrix: Any, scaling: str = "auto") -> "MatrixScaling":
        """Choose the scaling and learn what it needs."""
        if scaling not in SCALINGS:
            raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}; got {scaling!r}")
        checked = check_matrix(matrix)
        if scaling == "auto":
            scaling = "row" if looks_like_counts(checked) else "column"
        width = checked.shape[1]
        if scaling != "column":
            return cls(scaling, width)
        rows = max(checked.shape[0], 1)
        if sp.issparse(checked):
            mean = None
            scale = np.sqrt(_squares(checked) / rows)
        else:
            mean = checked.sum(axis=0, dtype=np.float64) / rows
            some = _pieces(checked, _PIECE // max(width, 1))
            squares = sum((((piece - mean) ** 2).sum(axis=0) for piece in some), start=np.zeros(width))
            scale = np.sqrt(squares / rows)
            # A constant column has a spread of rounding errors only.
            scale[scale <= 1e-7 * np.abs(mean)] = 1.0
        scale[scale == 0] = 1.0
        return cls(scaling, width, mean, scale)

    def apply(self, matrix: Any) -> Matrix:
        """Scale a matrix (n, f): dense stays dense and sparse stays sparse."""
        checked = check_matrix(matrix)
        if checked.shape[1] != self.width:
            raise MissingFeaturesError(
                f"the encoder was fitted on {self.width} features per node, this matrix has "
                f"{checked.shape[1]}; pass the same columns in the same order"
            )
        if self.scaling == "none":
            return checked.copy()
        if self.scale is None:
            return scale_rows(checked, self.scaling)
        with np.errstate(over="ignore"):
            if sp.issparse(checked) and self.mean is None:
                scaled = checked.copy()
                scaled.data = _near(checked.data / self.scale[checked.indices])
                return scaled
            dense = checked.toarray() if sp.issparse(checked) else checked
            return _near((dense - (0.0 if self.mean is None else self.mean)) / self.scale)


def _squares(matrix: sp.csr_array) -> NDArray[np.float64]:
    """Return the sum of squares of each column, (f,)."""
    total = np.zeros(matrix.shape[1])
    both = zip(_pieces(matrix.indices, _PIECE), _pieces(matrix.data, _PIECE), strict=True)
    for columns, values in both:
        total += np.bincount(columns, values.astype(np.float64) ** 2, minlength=len(total))
    return total


def _pieces(array: NDArray[Any], rows: int) -> Iterator[NDArray[Any]]:
    """Yield some rows at a time: an array may be a memory map larger than memory."""
    for start in range(0, len(array), max(rows, 1)):
        yield array[start : start + max(rows, 1)]


def _near(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return standardised values as float32."""
    return np.clip(values, -FARTHEST, FARTHEST).astype(np.float32)


def check_matrix(matrix: Any) -> Matrix:
    """Return finite numbers (n, f) as float32: CSR if they were sparse, else a C-contiguous array.

    Examples
    --------
    >>> check_matrix([[1, 2], [3, 4]]).dtype.name
    'float32'
    """
    sparse = sp.issparse(matrix)
    found = np.asarray(matrix) if not sparse else matrix
    if sparse and not isinstance(matrix, sp.csr_array):
        found = sp.csr_array(matrix)
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        raise GraphFormatError(
            f"a feature matrix must hold numbers in two dimensions; got {found.dtype} of shape {found.shape}"
        )
    with np.errstate(over="ignore"):
        found = found.astype(np.float32, copy=False)
    values: NDArray[Any] = found.data if sparse else found  # type: ignore[assignment]
    if not all(np.isfinite(piece).all() for piece in _pieces(values, _PIECE)):
        row, column = first_unusable(found)
        raise GraphFormatError(
            f"features must be finite 32-bit floats; row {row}, column {column} is not (NaN, infinite or too "
            "large). Fill gaps first, or pass a table, whose missing values an encoder fills"
        )
    return found if sparse else np.ascontiguousarray(found)


def first_unusable(matrix: Matrix) -> tuple[int, int]:
    """Return the row and column of the first value that is not finite.

    Examples
    --------
    >>> first_unusable(np.array([[0.0, 1.0], [2.0, np.nan]]))
    (1, 1)
    """
    if sp.issparse(matrix):
        place = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        return int(np.searchsorted(matrix.indptr, place, side="right") - 1), int(matrix.indices[place])
    row, column = np.argwhere(~np.isfinite(matrix))[0]
    return int(row), int(column)


def looks_like_counts(matrix: Matrix) -> bool:
    """Say whether a matrix is like word counts or TF-IDF: no value below 0 and, if dense, half of them 0.

    Examples
    --------
    >>> looks_like_counts(np.eye(5)), looks_like_counts(np.ones((5, 5)) * 0.3)
    (True, False)
    """
    if sp.issparse(matrix):
        return bool(matrix.nnz == 0 or matrix.data.min() >= 0)
    return bool(matrix.size and matrix.min() >= 0 and np.count_nonzero(matrix) <= matrix.size / 2)


def scale_rows(matrix: Matrix, scaling: str = "row") -> Matrix:
    """Divide each row by its Euclidean length ("row") or sum of absolute values ("row_sum").

    Examples
    --------
    >>> scale_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).round(1).tolist()
    [[0.6..., 0.8...], [0.0, 0.0]]
    """
    sparse = sp.issparse(matrix)
    magnitudes = np.abs(matrix.data if sparse else matrix).astype(np.float64)
    if scaling == "row":
        magnitudes **= 2
    size = row_sums(matrix.indptr, magnitudes) if sparse else magnitudes.sum(axis=1)  # (n,)
    size = np.sqrt(size) if scaling == "row" else size
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    if sparse:
        data = (matrix.data * np.repeat(inverse, np.diff(matrix.indptr))).astype(np.float32)
        return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.asarray(matrix * inverse[:, None], dtype=np.float32)
