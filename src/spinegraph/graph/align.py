"""Feature rows brought into a graph's order, joined by node name."""

import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError, SpineWarning
from spinegraph.graph.names import NameIndex, as_names, first_few

Missing = Literal["error", "zero"]


def align_features(
    names: NDArray[Any], row_names: Iterable[Any], matrix: Any, missing: Missing = "error"
) -> Any:
    """Return the rows of a named feature matrix in the order of a graph's nodes.

    Parameters
    ----------
    names : array (n,)
        The graph's node names.
    row_names : sequence (r,)
        The name of each row of ``matrix``; unique.
    matrix : array or sparse matrix (r, f)
    missing : {"error", "zero"}
        With "zero", a node without a row gets zeros, and a row without a node is left out with a warning.

    Returns
    -------
    array or csr_array (n, f)
        Sparse where ``matrix`` is.

    Examples
    --------
    >>> align_features(np.array([7, 8, 9]), [9, 7], np.array([[1.0], [2.0]]), missing="zero").tolist()
    [[2.0], [0.0], [1.0]]
    """
    if missing not in ("error", "zero"):
        raise ParameterError(f"missing must be one of 'error', 'zero'; got {missing!r}")
    matrix = csr_array(matrix) if issparse(matrix) else np.asarray(matrix)
    try:
        listed = as_names(row_names)
    except GraphFormatError as error:
        raise MissingFeaturesError(f"feature rows: {error}") from error
    if matrix.ndim != 2 or len(listed) != matrix.shape[0]:
        raise MissingFeaturesError(
            "features must have shape (r, f) with one name per row; "
            f"got {matrix.shape} and {len(listed)} names"
        )
    places = NameIndex(listed).find(names) if len(listed) else np.full(len(names), -1)
    without_row = np.flatnonzero(places < 0)
    is_used = np.zeros(len(listed), dtype=bool)
    is_used[places[places >= 0]] = True
    message = _mismatch(names, without_row, listed, np.flatnonzero(~is_used))
    if message and missing == "error":
        raise MissingFeaturesError(
            f"{message}; pass missing='zero' to give nodes without a row zeros and to leave other rows out"
        )
    if not is_used.all():
        warnings.warn(f"{message}; such rows are left out", SpineWarning, stacklevel=3)
    return _taken(matrix, places, without_row)


def _mismatch(
    names: NDArray[Any], without_row: NDArray[np.int64], row_names: NDArray[Any], unused: NDArray[np.int64]
) -> str:
    """Say which nodes have no row and which rows no node."""
    clauses = []
    if len(without_row):
        some = first_few(names[without_row[:6]])
        clauses.append(f"{len(without_row)} of {len(names)} nodes have no feature row: {some}")
    if len(unused):
        some = first_few(row_names[unused[:6]])
        clauses.append(f"{len(unused)} of {len(row_names)} feature rows name no node: {some}")
    return "; ".join(clauses)


def _taken(matrix: Any, places: NDArray[np.int64], without_row: NDArray[np.int64]) -> Any:
    """Take rows by place, zeros where the place is -1."""
    if issparse(matrix):
        if len(without_row):
            nothing = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
            matrix = vstack([matrix, nothing], format="csr")  # place -1 is this last row
            places = np.where(places < 0, matrix.shape[0] - 1, places)
        return matrix[places]
    if not len(without_row):
        return matrix[places]
    taken = np.zeros((len(places), matrix.shape[1]), dtype=matrix.dtype)
    taken[places >= 0] = matrix[places[places >= 0]]
    return taken
