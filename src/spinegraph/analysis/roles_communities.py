"""Communities as regions of the vectors: they can be told in any network that the model embeds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_CENTERS, _NODES_PER_CENTER = 64, 5
_SAMPLE, _STARTS, _ROUNDS = 4_000, 2, 15


@dataclass(frozen=True, eq=False)
class Communities:
    """Regions of the vectors, each around one or several centres.

    Attributes
    ----------
    centers : float64 array (k, d)
        Unit vectors.
    member_of : int64 array (k,)
        The community of each centre, from 0 on.

    Examples
    --------
    >>> found = Communities(np.eye(3), np.array([0, 1, 1]))
    >>> len(found), found.nearest(np.array([[0.1, 0.2, 0.9], [0.0, 0.0, 0.0]])).tolist()
    (2, [1, -1])
    """

    centers: Floats
    member_of: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.member_of.max()) + 1

    def nearest(self, gathered: Floats) -> NDArray[np.int64]:
        """Return the community of each row by its direction, (n,); -1 for a row of zeros."""
        nearest = self.member_of[(gathered @ self.centers.T).argmax(axis=1)]
        return np.where(np.any(gathered, axis=1), nearest, -1)


def gather(own: NDArray[Any], ties: csr_array, vectors: NDArray[Any]) -> Floats:
    """Return directions (r, d) of nodes and, as much again, of their neighbours on average.

    A neighbourhood says more surely than a node alone which community it belongs to.

    Parameters
    ----------
    own : float array (r, d)
    ties : csr_array (r, n)
        0/1: neighbours of these nodes.
    vectors : float array (n, d)
        Rows of nodes that are nobody's neighbour are not read.
    """
    degrees = np.maximum(np.diff(ties.indptr), 1)[:, None]
    gathered: Floats = _unit(own) + (ties @ _unit(vectors)) / degrees
    return gathered


def find_communities(ties: csr_array, vectors: NDArray[np.float32], seed: int = 0) -> Communities | None:
    """Find communities: many small regions of like vectors, joined while that keeps more ties inside.

    Parameters
    ----------
    ties : csr_array (n, n)
    vectors : float32 array (n, d)
    seed : int

    Returns
    -------
    Communities or None
        Regions by spherical k-means, joined greedily by modularity. None where all end up in one.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # several BLAS threads may round differently
        gathered = gather(vectors, ties, vectors)
        # Sorted along a fixed direction before draws are made, so that node order leaves no trace.
        along = gathered @ np.random.default_rng(0).standard_normal(vectors.shape[1])
        order = np.argsort(along, kind="stable")
        sample = order[np.linspace(0, len(order) - 1, min(len(order), _SAMPLE)).astype(np.int64)]
        points = _unit(gathered[sample])
        points = points[np.any(points, axis=1)]
        count = min(_CENTERS, len(points) // _NODES_PER_CENTER)
        if count < 2:
            return None
        centers = _spherical_means(points, count, seed)
        apart = Communities(centers, np.arange(count))
        joined = join(tie_shares(ties, apart.nearest(gathered), count))
    return Communities(centers, joined) if joined.max() > 0 else None


def tie_shares(ties: csr_array, member_of: NDArray[np.int64], count: int) -> Floats:
    """Return the shares of ties between communities, (count, count); nodes of community -1 do not count."""
    ends = np.repeat(member_of, np.diff(ties.indptr)), member_of[ties.indices]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    cells = ends[0][known] * count + ends[1][known]
    table = np.bincount(cells, minlength=count**2).reshape(count, count)
    return np.asarray(table / max(table.sum(), 1))


def join(shares: Floats) -> NDArray[np.int64]:
    """Join two communities at a time, those that gain most modularity, while any do; return who is whose.

    Examples
    --------
    >>> tied = np.array([[1, 3, 0, 0], [3, 1, 1, 0], [0, 1, 2, 3], [0, 0, 3, 2]])
    >>> join(tied / tied.sum()).tolist()
    [0, 0, 1, 1]
    """
    shares = shares.copy()
    member_of, alive = np.arange(len(shares)), np.ones(len(shares), dtype=bool)
    while alive.sum() > 1:
        ends = shares.sum(axis=1)
        gains = 2 * (shares - np.outer(ends, ends))
        gains[~alive] = gains[:, ~alive] = -np.inf
        np.fill_diagonal(gains, -np.inf)
        one, other = np.unravel_index(gains.argmax(), gains.shape)
        if gains[one, other] <= 1e-12:
            break
        shares[one] += shares[other]
        shares[:, one] += shares[:, other]
        shares[other] = shares[:, other] = 0
        member_of[member_of == other] = one
        alive[other] = False
    return np.unique(member_of, return_inverse=True)[1].astype(np.int64)


def _spherical_means(points: Floats, count: int, seed: int) -> Floats:
    best, found, ones = -np.inf, points[:count], np.ones(len(points))
    places = np.arange(len(points))
    for start in range(_STARTS):
        rng = np.random.default_rng([seed, count, start])
        centers = points[[rng.integers(len(points))]]
        away = 1 - points @ centers[0]
        while len(centers) < count:
            chances = np.maximum(away, 1e-12)
            centers = np.vstack([centers, points[rng.choice(len(points), p=chances / chances.sum())]])
            away = np.minimum(away, 1 - points @ centers[-1])
        for _ in range(_ROUNDS):
            member_of = (points @ centers.T).argmax(axis=1)
            sums = csr_array((ones, (member_of, places)), shape=(count, len(points))) @ points
            moved = np.where(np.any(sums, axis=1)[:, None], _unit(sums), centers)
            if np.allclose(moved, centers, atol=1e-6):
                break
            centers = moved
        kept = float((points @ centers.T).max(axis=1).sum())
        if kept > best:
            best, found = kept, centers
    return found


def _unit(vectors: NDArray[Any]) -> Floats:
    wide = vectors.astype(np.float64)
    unit: Floats = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    return unit
