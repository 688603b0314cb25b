"""Random numbers by counting: draw j of a stream is a function of (seed, stage, key, j) and of nothing else.

A stream starts at a 64-bit point mixed from seed, stage and key; its draws are ``mix(start + j * GAMMA)``,
which is splitmix64. No state is shared, so threads, shards and subsets of roots cannot change a draw.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.kernels.compiled import compiled

GAMMA = np.uint64(0x9E3779B97F4A7C15)
ROOTED_WALKS = 1
PLAIN_WALKS = 2

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


def _mix(point):
    point = (point ^ (point >> _S30)) * _FIRST
    point = (point ^ (point >> _S27)) * _SECOND
    return point ^ (point >> _S31)


mix = compiled(_mix, inline="always")


def stream_starts(seed: int, stage: int, keys: ArrayLike) -> NDArray[np.uint64]:
    """Where the stream of each key starts.

    Parameters
    ----------
    seed : int
        Any whole number; its lowest 64 bits count.
    stage : int
        Which use of randomness this is, so that two stages with one seed stay independent.
    keys : uint64 array (r,)
        One key per root.

    Examples
    --------
    >>> few, many = stream_starts(7, 1, [3, 9]), stream_starts(7, 1, [9, 4, 3])
    >>> bool(few[0] == many[2] and few[1] == many[0])
    True
    """
    key = np.atleast_1d(np.asarray(keys, dtype=np.uint64))
    start = np.full(key.shape, seed & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
    for part in (np.uint64(stage), key):
        start = _mix(start + GAMMA * np.atleast_1d(_mix(np.atleast_1d(part) + GAMMA)))
    return start
