"""Rows of CSR arrays and of features, gathered and joined."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from spinegraph.graph.checks import Features


def row_places(indptr: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return where the entries of the given CSR rows lie, row after row.

    Examples
    --------
    >>> row_places(np.array([0, 2, 3, 6]), np.array([2, 0]))
    array([3, 4, 5, 0, 1])
    """
    starts, lengths = indptr[rows], indptr[rows + 1] - indptr[rows]
    ends = np.cumsum(lengths)
    shifts = np.repeat(starts - (ends - lengths), lengths)
    places: NDArray[np.int64] = shifts + np.arange(len(shifts))
    return places


def pointers(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the CSR ``indptr`` of rows of the given lengths.

    Examples
    --------
    >>> pointers(np.array([2, 0, 3]))
    array([0, 2, 2, 5])
    """
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def stacked(blocks: Sequence[Features]) -> Features:
    """Put feature rows below each other; one sparse block makes all of them sparse.

    Examples
    --------
    >>> stacked([np.zeros((1, 2), np.float32), csr_array((2, 2), dtype=np.float32)]).shape
    (3, 2)
    """
    if any(issparse(block) for block in blocks):
        return csr_array(vstack([csr_array(block) for block in blocks], format="csr"))
    return np.concatenate(blocks)


def rows_at(features: Features, positions: NDArray[Any]) -> Features:
    """Return feature rows at the given positions, by plain gathers: much quicker than SciPy for a few.

    Examples
    --------
    >>> rows_at(csr_array(np.diag([1.0, 2.0])), np.array([1])).toarray().tolist()
    [[0.0, 2.0]]
    """
    if not issparse(features):
        return features[positions]
    places = row_places(features.indptr, positions)
    indptr = pointers(features.indptr[positions + 1] - features.indptr[positions])
    return csr_array(
        (features.data[places], features.indices[places], indptr),
        shape=(len(positions), features.shape[1]),
    )


def rows_of_two(first: Features, second: Features, positions: NDArray[Any]) -> Features:
    """Return rows at the given positions of two blocks below each other, both dense or both sparse.

    Examples
    --------
    >>> rows_of_two(np.array([[1.0], [2.0]]), np.array([[3.0]]), np.array([2, 0])).tolist()
    [[3.0], [1.0]]
    """
    is_first = positions < first.shape[0]
    one, other = rows_at(first, positions[is_first]), rows_at(second, positions[~is_first] - first.shape[0])
    if not issparse(first):
        dense = np.empty((len(positions), first.shape[1]), dtype=first.dtype)
        dense[is_first], dense[~is_first] = one, other
        return dense
    lengths = np.empty(len(positions), dtype=np.int64)
    lengths[is_first], lengths[~is_first] = np.diff(one.indptr), np.diff(other.indptr)
    from_first = np.repeat(is_first, lengths)
    indices = np.empty(len(from_first), dtype=one.indices.dtype)
    data = np.empty(len(from_first), dtype=one.data.dtype)
    indices[from_first], indices[~from_first] = one.indices, other.indices
    data[from_first], data[~from_first] = one.data, other.data
    return csr_array((data, indices, pointers(lengths)), shape=(len(positions), first.shape[1]))


def row_sums(indptr: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return the sum of each row's weights, (n,); their number where there are none.

    Examples
    --------
    >>> row_sums(np.array([0, 2, 2]), np.array([0.5, 1], np.float32))
    array([1.5, 0. ])
    """
    lengths = np.diff(indptr)
    if weights is None:
        return lengths.astype(np.float64)
    sums = np.zeros(len(lengths))
    filled = np.flatnonzero(lengths)  # reduceat would read the next row for an empty one
    if len(filled):
        sums[filled] = np.add.reduceat(weights, indptr[filled], dtype=np.float64)
    return sums


def each_edge_once(
    indptr: NDArray[Any], indices: NDArray[Any], weights: NDArray[np.float32] | None
) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]:
    """Return sources, targets and weights of every undirected edge once, source before target.

    Examples
    --------
    >>> each_edge_once(np.array([0, 1, 2]), np.array([1, 0]), None)
    (array([0]), array([1]), None)
    """
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    is_first = rows < indices
    return rows[is_first], indices[is_first], None if weights is None else weights[is_first]
