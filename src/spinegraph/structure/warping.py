"""Why two profiles are near or far: the path on which one is warped onto the other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.dtw import warping_table
from spinegraph.structure.distances import as_rows


@dataclass(frozen=True, eq=False)
class Warping:
    """The cheapest way to match the values of one profile to those of another, in order.

    Attributes
    ----------
    path : int64 array (p, 2)
        Places matched, from (0, 0) on: at each step one place or both go on by one.
    costs : float64 array (p,)
        What each step adds to the distance.
    distance : float
        Their sum, the DTW distance.
    share : float64 array (p,)
        Each step's part of the distance; zeros where the profiles are equal.

    Examples
    --------
    >>> found = warping([0.5, 0.5, 0.0], [0.5, 0.25, 0.25])
    >>> found.path[found.share.argmax()].tolist()
    [2, 2]
    """

    path: NDArray[np.int64]
    costs: NDArray[np.float64]
    distance: float

    @property
    def share(self) -> NDArray[np.float64]:
        """Each step's part of the distance (p,)."""
        return self.costs / self.distance if self.distance > 0 else np.zeros_like(self.costs)


def warping(row_a: ArrayLike, row_b: ArrayLike) -> Warping:
    """Find the warping path between two profiles; steps where both have ended in zeros are left out.

    Parameters
    ----------
    row_a, row_b : arrays (k,)
        Profiles, descending.

    Examples
    --------
    >>> found = warping([0.5, 0.5], [0.75, 0.25])
    >>> found.path.tolist(), found.costs.round(2).tolist(), round(found.distance, 2)
    ([[0, 0], [1, 1]], [0.5, 1.0], 1.5)
    """
    first, second = _as_row(row_a, "row_a"), _as_row(row_b, "row_b")
    if len(first) != len(second):
        raise ParameterError(f"row_a and row_b must be of one length; got {len(first)} and {len(second)}")
    rows = as_rows(np.stack([first, second]), "row_a and row_b").astype(np.float64)
    used = np.flatnonzero(rows.any(axis=0))
    # One common zero is kept while the path is found: a row that ends may be matched to it.
    length = min(int(used[-1]) + 2 if used.size else 1, rows.shape[1])
    table, costs = warping_table(rows[0, :length], rows[1, :length])
    path = _walk_back(table)
    while len(path) > 1 and not rows[0, path[-1][0]] and not rows[1, path[-1][1]]:
        path.pop()
    steps = np.array(path)
    return Warping(steps, costs[steps[:, 0], steps[:, 1]], float(table[-1, -1]))


def _walk_back(table: NDArray[Any]) -> list[tuple[int, int]]:
    """Follow the cheapest cells from the last to the first; both rows go on together where costs tie."""
    i, j = table.shape[0] - 1, table.shape[1] - 1
    path = [(i, j)]
    while i or j:
        before = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min((cell for cell in before if min(cell) >= 0), key=lambda cell: float(table[cell]))
        path.append((i, j))
    return path[::-1]


def _as_row(row: ArrayLike, what: str) -> NDArray[Any]:
    values: NDArray[Any] = np.asarray(row)
    if values.ndim != 1 or not len(values):
        raise ParameterError(f"{what} must be one profile (k,) with k >= 1; got shape {values.shape}")
    return values
