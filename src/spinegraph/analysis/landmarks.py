"""Large maps: a few points placed with care, the others around them, then everybody drawn to neighbours."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float32]
Placer = Callable[[Points, int], Points]

_LANDMARKS = 2_000
_AROUND = 8  # landmarks that place a point
_NEIGHBORS = 10
_CELLS = 12  # cells searched for a point's neighbours
_ROUNDS = 150
_STRANGERS = 10  # random points that push a point away, each round
_EACH_FOR = 40  # one stranger stands for every so many points in all
_RATE = 0.1
_FARTHEST = 40.0  # of a move, before the rate
_WIDTH = 60.0  # of the map while points move: neighbours are then about 1 apart
_BLOCK = 4_096


def spread_around_landmarks(points: Points, place: Placer, seed: int) -> Points:
    """Place a sample by ``place``, the other points beside their nearest landmarks, and let all settle.

    Parameters
    ----------
    points : float32 array (n, d)
    place : callable (points, seed) -> (m, 2)
        A careful way for few points.
    seed : int

    Returns
    -------
    float32 array (n, 2)

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    >>> spread_around_landmarks(points, lambda chosen, seed: chosen[:, :2], seed=0).shape
    (5000, 2)
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(points))[:_LANDMARKS])
    landmarks = points[chosen]
    placed = place(landmarks, seed)  # (m, 2)
    nearest, squared = nearest_rows(points, landmarks, min(_AROUND, len(landmarks)))
    scale = np.maximum(squared[:, [squared.shape[1] // 2]], 1e-9)
    pull = np.exp(-2 * squared / scale)
    pull /= pull.sum(axis=1, keepdims=True)
    start = np.einsum("nm,nmc->nc", pull, placed[nearest])
    neighbors = _neighbors_in_cells(points, landmarks, nearest[:, 0])
    return _settle(start * (_WIDTH / max(float(start.std()), 1e-12)), neighbors, rng)


def nearest_rows(points: Points, others: Points, count: int) -> tuple[NDArray[np.int64], Points]:
    """Return the nearest ``count`` rows of ``others`` for each point, nearest first, and squared distances.

    Examples
    --------
    >>> nearest_rows(np.array([[0.9]], np.float32), np.array([[0.0], [1.0]], np.float32), 1)[0].tolist()
    [[1]]
    """
    found = np.empty((len(points), count), np.int64)
    squared = np.empty((len(points), count), np.float32)
    lengths = (others * others).sum(axis=1)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        away = lengths - 2 * block @ others.T  # (b, m) less the block's own squared lengths
        near = np.argpartition(away, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(away, near, axis=1), axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        found[start : start + _BLOCK] = near
        own = (block * block).sum(axis=1, keepdims=True)
        squared[start : start + _BLOCK] = np.maximum(np.take_along_axis(away, near, axis=1) + own, 0)
    return found, squared


def _neighbors_in_cells(points: Points, landmarks: Points, cell: NDArray[Any]) -> NDArray[np.int64]:
    """Find neighbours (n, k) among points of the same and the nearest cells; a few are missed."""
    order = np.argsort(cell, kind="stable")
    ends = np.searchsorted(cell[order], np.arange(len(landmarks) + 1))
    members = [order[ends[place] : ends[place + 1]] for place in range(len(landmarks))]
    close = nearest_rows(landmarks, landmarks, min(_CELLS, len(landmarks)))[0]
    found = np.repeat(np.arange(len(points))[:, None], _NEIGHBORS, axis=1)  # oneself where there are too few
    lengths = (points * points).sum(axis=1)
    for place, mine in enumerate(members):
        if not len(mine):
            continue
        near = np.concatenate([members[other] for other in close[place]])
        count = min(_NEIGHBORS, len(near) - 1)
        for start in range(0, len(mine), _BLOCK):
            some = mine[start : start + _BLOCK]
            away = lengths[near] - 2 * points[some] @ points[near].T
            away[some[:, None] == near] = np.inf
            if count > 0:
                found[some, :count] = near[np.argpartition(away, count - 1, axis=1)[:, :count]]
    return found


def _settle(places: Points, neighbors: NDArray[np.int64], rng: np.random.Generator) -> Points:
    """Draw points to their neighbours and push them from strangers, less and less."""
    places = places.astype(np.float32)
    push = np.float32(2 * len(places) / _EACH_FOR)
    for done in range(_ROUNDS):
        rate = np.float32(_RATE * (1 - done / _ROUNDS))
        towards = places[neighbors] - places[:, None]  # (n, k, 2)
        squared = np.einsum("nkc,nkc->nk", towards, towards)
        move = np.einsum("nkc,nk->nc", towards, 2 / (1 + squared))
        strangers = rng.integers(len(places), size=(len(places), _STRANGERS))
        away = places[strangers] - places[:, None]
        squared = np.einsum("nkc,nkc->nk", away, away)
        move -= np.einsum("nkc,nk->nc", away, push / ((0.01 + squared) * (1 + squared)))
        places += rate * np.clip(move, -_FARTHEST, _FARTHEST)
    return places
