"""The rules a graph's arrays must keep, checked once at the door."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.names import quoted

Features = Any  # csr_array (float32) or NDArray[np.float32], shape (n, f)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array; the caller's own stays as it is; names on disk are so anyway.

    Examples
    --------
    >>> frozen(np.zeros(3)).flags.writeable
    False
    """
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def as_weights(
    weights: Any, sources: NDArray[Any], targets: NDArray[Any], names: NDArray[Any]
) -> NDArray[np.floating[Any]]:
    """Return one finite, non-negative weight per listed edge as a float array (m,).

    Examples
    --------
    >>> as_weights([1, 2.5], np.array([0, 1]), np.array([1, 2]), np.arange(3))
    array([1. , 2.5])
    """
    num_edges = len(sources)
    array = np.asarray(weights)
    if array.shape != (num_edges,):
        raise GraphFormatError(
            f"weights must hold one number per listed edge, shape ({num_edges},); got shape {array.shape}"
        )
    if array.dtype.kind not in "biuf":
        if array.dtype.kind != "O":
            raise GraphFormatError(f"weights must be numbers; got dtype {array.dtype}")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise GraphFormatError(f"weights must be numbers: {error}") from error
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        place = int(wrong.argmax())
        source, target = quoted(names[sources[place]]), quoted(names[targets[place]])
        raise GraphFormatError(
            f"weights[{place}] of edge ({source}, {target}) is {array[place].item()!r}; "
            "weights must be finite and not negative"
        )
    return array


def as_features(features: Any, names: NDArray[Any]) -> Features:
    """Return features as float32, sparse as csr_array and dense as C-contiguous, shape (n, f).

    Examples
    --------
    >>> as_features([[1, 0], [0, 2]], np.arange(2)).dtype
    dtype('float32')
    """
    try:
        shape = features.shape if hasattr(features, "shape") else np.shape(features)
    except ValueError as fault:  # lists of unequal length
        raise GraphFormatError(
            "features must have shape (n, f), one row per node; the rows given are of different lengths"
        ) from fault
    if len(shape) != 2:
        hint = "; for one column pass features.reshape(-1, 1)" if len(shape) == 1 else ""
        raise GraphFormatError(f"features must have shape (n, f), one row per node; got shape {shape}{hint}")
    if shape[0] != len(names):
        raise MissingFeaturesError(
            f"features have {shape[0]} rows, the graph has {len(names)} nodes; "
            "pass one row per node, in graph order"
        )
    if issparse(features):
        return _sparse_features(features, names)
    array = np.asarray(features)
    if array.dtype.kind not in "biuf":
        raise GraphFormatError(
            f"features must be real numbers; got dtype {array.dtype}. "
            "Tables with text, dates or gaps go through FeatureEncoder first"
        )
    with np.errstate(over="ignore"):  # what overflows to infinity is named below
        dense = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(dense).all():
        row, column = np.argwhere(~np.isfinite(dense))[0].tolist()
        _refuse_feature(row, column, array[row, column], names)
    return dense


def as_feature_names(
    feature_names: Iterable[Any] | None, features: Features | None
) -> tuple[str, ...] | None:
    """Return column names as a tuple of str, one per feature column.

    Examples
    --------
    >>> as_feature_names(["age", "tall"], np.zeros((3, 2), np.float32))
    ('age', 'tall')
    """
    if feature_names is None:
        return None
    if features is None:
        raise GraphFormatError("feature_names were given without features; pass features=... as well")
    listed = tuple(str(name) for name in feature_names)
    if len(listed) != features.shape[1]:
        raise GraphFormatError(f"{len(listed)} feature_names for {features.shape[1]} feature columns")
    return listed


def check_adjacency(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    weights: NDArray[Any] | None,
    names: Sequence[Any] | NDArray[Any],
) -> None:
    """Refuse CSR arrays that are not those of a clean undirected graph.

    Examples
    --------
    >>> check_adjacency(np.array([0, 1, 2]), np.array([1, 0]), None, np.arange(2))
    """
    n = len(names)
    if n == 0:
        raise GraphFormatError("a graph has at least one node")
    if indptr.shape != (n + 1,):
        raise GraphFormatError(f"indptr must have shape (n + 1,) = ({n + 1},); got {indptr.shape}")
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise GraphFormatError(
            f"indices must be one-dimensional integers; got {indices.dtype} {indices.shape}"
        )
    degrees = np.diff(indptr)
    if indptr[0] != 0 or indptr[-1] != len(indices) or (degrees < 0).any():
        raise GraphFormatError(
            f"indptr must rise from 0 to len(indices) = {len(indices)}; got {indptr[0]} .. {indptr[-1]}"
        )
    if len(indices) and (indices.min() < 0 or indices.max() >= n):
        raise GraphFormatError(f"indices must lie in 0 .. {n - 1}; got {indices.min()} .. {indices.max()}")
    if weights is not None:
        if weights.shape != indices.shape:
            raise GraphFormatError(
                f"weights must have shape {indices.shape} like indices; got {weights.shape}"
            )
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise GraphFormatError(
                "weights must be finite and above 0; Graph.from_edges drops edges of weight 0"
            )
    _check_rows(degrees, indices, names)
    _check_symmetry(indptr, indices, weights, names)


def _check_rows(degrees: NDArray[Any], indices: NDArray[Any], names: Any) -> None:
    rows = np.repeat(np.arange(len(names)), degrees)
    wrong = np.zeros(len(indices), dtype=bool)
    np.logical_and(rows[1:] == rows[:-1], indices[1:] <= indices[:-1], out=wrong[1:])
    wrong |= rows == indices
    if wrong.any():
        raise GraphFormatError(
            f"the row of node {quoted(names[rows[wrong.argmax()]])} must be sorted, without repeats and "
            "without the node itself; Graph.from_edges cleans any list of edges"
        )


def _check_symmetry(
    indptr: NDArray[Any], indices: NDArray[Any], weights: NDArray[Any] | None, names: Any
) -> None:
    carried = np.ones(len(indices), np.int8) if weights is None else weights
    turned = csr_array((carried, indices, indptr), shape=(len(names),) * 2).tocsc()
    same = np.array_equal(turned.indptr, indptr) and np.array_equal(turned.indices, indices)
    if not same or (weights is not None and not np.array_equal(turned.data, weights)):
        raise GraphFormatError(
            "the arrays must be symmetric, edge (u, v) as well as (v, u) with the same weight; "
            "Graph.from_scipy(matrix) makes directed input symmetric"
        )


def _sparse_features(features: Any, names: NDArray[Any]) -> csr_array:
    if features.dtype.kind not in "biuf":
        raise GraphFormatError(f"features must be real numbers; got dtype {features.dtype}")
    with np.errstate(over="ignore"):  # what overflows to infinity is named below
        matrix = csr_array(features, dtype=np.float32)
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise GraphFormatError(f"features are not a valid sparse matrix: {error}") from error
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        place = int((~np.isfinite(matrix.data)).argmax())
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        _refuse_feature(row, int(matrix.indices[place]), matrix.data[place], names)
    return matrix


def frozen_features(features: Features | None) -> Features | None:
    """Return features over read-only views of the same arrays.

    Examples
    --------
    >>> frozen_features(csr_array(np.eye(2, dtype=np.float32))).data.flags.writeable
    False
    """
    if features is None or isinstance(features, np.ndarray):
        return None if features is None else frozen(features)
    view = copy(features)  # the constructor could copy the index arrays into another dtype
    view.data, view.indices, view.indptr = frozen(view.data), frozen(view.indices), frozen(view.indptr)
    return view


def _refuse_feature(row: int, column: int, value: Any, names: NDArray[Any]) -> None:
    raise GraphFormatError(
        f"features[{row}, {column}] (node {quoted(names[row])}) is {value}; "
        "features must be finite float32 numbers. Fill gaps first, or let FeatureEncoder mark them"
    )
