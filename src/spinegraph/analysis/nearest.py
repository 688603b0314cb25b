"""The nearest vectors, exactly: float32 to find them, float64 to order them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.structure.roots import as_roots

EXACT_UP_TO = 20_000  # nodes
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest nodes of one node (n,), or of several (m, n), most alike first.

    Attributes
    ----------
    positions : int64 array
    scores : float64 array

    Examples
    --------
    >>> Nearest(np.array([3]), np.array([0.9])).positions
    array([3])
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float64]


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of length 1 (n, d + 1): the last place is 1 where the vector is zero, else 0.

    Examples
    --------
    >>> unit_rows(np.array([[3, 4], [0, 0]], dtype=np.float32)).round(3).tolist()
    [[0.6..., 0.8..., 0.0], [0.0, 0.0, 1.0]]
    """
    # Scaled first: squares of tiny or huge numbers leave float32's range.
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1)
    length = np.sqrt(np.square(scaled, dtype=np.float64).sum(axis=1, keepdims=True))
    rows = np.zeros((vectors.shape[0], vectors.shape[1] + 1), dtype=np.float32)
    np.divide(scaled, length, out=rows[:, :-1], where=length > 0, casting="same_kind")
    rows[:, -1] = largest[:, 0] == 0
    return rows


def best(
    unit: NDArray[np.float32],
    rough: NDArray[np.float32],
    query: NDArray[np.float32],
    n: int,
    itself: int | None,
) -> Nearest:
    """Return the ``n`` rows whose product with the query is largest, but for one.

    Parameters
    ----------
    unit : float32 array (m, d)
    rough : float32 array (m,)
        Their products with the query, as BLAS has them: equal rows may differ in the last bits. Overwritten.
    query : float32 array (d,)
    n : int
    itself : int or None
        A row that is left out.

    Examples
    --------
    >>> unit = np.eye(3, dtype=np.float32)
    >>> best(unit, unit @ unit[1], unit[1], 2, 1).positions
    array([0, 2])
    """
    if itself is not None:
        rough[itself] = -np.inf
    n = min(n, len(unit) - (itself is not None))
    if not n:
        return Nearest(np.zeros(0, np.int64), np.zeros(0))
    slack = 2 * len(query) * np.finfo(np.float32).eps + 10.0**-_DECIMALS  # bounds both errors of rounding
    cut = np.partition(rough, len(rough) - n)[len(rough) - n] - slack
    near = np.flatnonzero(rough >= cut)
    return ordered(unit, near, query, n)


def ordered(unit: NDArray[np.float32], near: NDArray[np.int64], query: NDArray[Any], n: int) -> Nearest:
    """Return the best ``n`` of some rows, ascending positions, by a product that is the same for equal rows.

    Examples
    --------
    >>> ordered(np.eye(2, dtype=np.float32), np.array([0, 1]), np.array([0.0, 1.0]), 1).scores
    array([1.])
    """
    scores = np.round((unit[near] * query.astype(np.float64)).sum(axis=1), _DECIMALS).clip(-1, 1)
    order = np.argsort(-scores, kind="stable")[:n]
    return Nearest(near[order], scores[order])


def in_batches(
    nearest: Callable[[int], Nearest],
    positions: ArrayLike | None,
    size: int,
    n: int,
    progress: Callable[[int, int], None] | None = None,
) -> Nearest:
    """Ask for several nodes, or for all ``size``; one row (m, n) each, -1 and 0 where fewer were found.

    Examples
    --------
    >>> in_batches(lambda place: Nearest(np.array([1 - place]), np.ones(1)), None, 2, 1).positions.tolist()
    [[1], [0]]
    """
    places = as_roots(positions, size)
    n = min(n, max(size - 1, 0))
    found = Nearest(np.full((len(places), n), -1), np.zeros((len(places), n)))
    for row, place in enumerate(places.tolist()):
        one = nearest(place)
        found.positions[row, : len(one.positions)] = one.positions
        found.scores[row, : len(one.scores)] = one.scores
        if progress is not None and (row + 1) % 100 == 0:
            progress(row + 1, len(places))
    return found


def as_count(n: Any) -> int:
    """Return how many matches are wanted, or say what is wrong with the number.

    Examples
    --------
    >>> as_count(3)
    3
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"n must be a whole number >= 1; got {n!r}")
    return int(n)
