"""Communities as directions of the vectors: they can be told in any network that the model embeds."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_COUNTS = (*range(2, 13), 14, 16, 18, 20, 24)
_SAMPLE, _STARTS, _ROUNDS = 4_000, 2, 20


def find_communities(ties: csr_array, vectors: NDArray[np.float32], seed: int = 0) -> Floats | None:
    """Find communities as directions of the vectors: the number whose parts keep most ties inside.

    Parameters
    ----------
    ties : csr_array (n, n)
    vectors : float32 array (n, d)
    seed : int

    Returns
    -------
    float64 array (k, d) or None
        Unit vectors; spherical k-means, k from 2 to 24 by modularity. None where no parting beats none.
    """
    from threadpoolctl import threadpool_limits

    # Sorted along a fixed direction before draws are made, so that node order leaves no trace.
    along = vectors.astype(np.float64) @ np.random.default_rng(0).standard_normal(vectors.shape[1])
    order = np.argsort(along, kind="stable")
    sample = order[np.linspace(0, len(order) - 1, min(len(order), _SAMPLE)).astype(np.int64)]
    points = _unit(vectors[sample].astype(np.float64))
    points = points[np.square(points).sum(axis=1) > 0.5]
    best, found = 1e-3, None
    with threadpool_limits(1):  # several BLAS threads may round differently
        for count in _COUNTS:
            if count > len(points):
                break
            centers = _spherical_means(points, count, seed)
            kept = modularity(ties, nearest_center(vectors, centers), count)
            if kept > best:
                best, found = kept, centers
    return found


def modularity(ties: csr_array, member_of: NDArray[np.int64], count: int) -> float:
    """Return the share of ties inside communities beyond what chance would put there.

    Examples
    --------
    >>> pairs = csr_array(np.kron(np.eye(2), 1 - np.eye(2)))
    >>> modularity(pairs, np.array([0, 0, 1, 1]), 2)
    0.5
    """
    ends = np.repeat(member_of, np.diff(ties.indptr)), member_of[ties.indices]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    if not known.any():
        return 0.0
    table = np.bincount(ends[0][known] * count + ends[1][known], minlength=count**2).reshape(count, count)
    shares = table / table.sum()
    return float(np.trace(shares) - np.square(shares.sum(axis=1)).sum())


def nearest_center(vectors: NDArray[np.float32], centers: Floats) -> NDArray[np.int64]:
    """Return the nearest community of each vector by its direction, -1 for a vector of zeros."""
    cosines = vectors.astype(np.float64) @ centers.T
    return np.where(np.any(vectors, axis=1), cosines.argmax(axis=1), -1)


def _spherical_means(points: Floats, count: int, seed: int) -> Floats:
    best, found, ones = -np.inf, points[:count], np.ones(len(points))
    for start in range(_STARTS):
        rng = np.random.default_rng([seed, count, start])
        centers = points[[rng.integers(len(points))]]
        while len(centers) < count:
            away = np.maximum(1 - (points @ centers.T).max(axis=1), 1e-12)
            centers = np.vstack([centers, points[rng.choice(len(points), p=away / away.sum())]])
        for _ in range(_ROUNDS):
            member_of = (points @ centers.T).argmax(axis=1)
            places = np.arange(len(points))
            sums = csr_array((ones, (member_of, places)), shape=(count, len(points))) @ points
            moved = np.where(np.any(sums, axis=1)[:, None], _unit(sums), centers)
            if np.allclose(moved, centers, atol=1e-6):
                break
            centers = moved
        kept = float((points @ centers.T).max(axis=1).sum())
        if kept > best:
            best, found = kept, centers
    return found


def _unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit
