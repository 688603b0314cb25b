"""Who may stand for whom: the few nodes that a node's profile is compared with."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import position_type
from spinegraph.kernels.dtw import OFFSET

CandidateMethod = Literal["degree", "profile", "all"]

_MOST_FOR_ALL = 20_000


def candidates(
    degrees: ArrayLike, weights: ArrayLike | None = None, method: CandidateMethod = "profile"
) -> NDArray[Any]:
    """Choose each node's structural candidates; never the node itself, and every node is somebody's.

    Nodes of several networks become each other's candidates when their degrees and profiles are concatenated.

    Parameters
    ----------
    degrees : array (n,)
        Neighbours of each node.
    weights : array (n, k), optional
        Profiles, for ``"profile"``.
    method : str
        ``"degree"``: the paper's, nodes beside a node in the order of degree, equal degrees by position.
        ``"profile"``: the same, equal degrees by the mean logarithm of their profiles.
        ``"all"``: every other node; for small networks.

    Returns
    -------
    int32 array (n, c)
        Padded with -1.

    Examples
    --------
    >>> candidates([1, 1, 3, 1], method="all").tolist()
    [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    """
    degree = np.asarray(degrees)
    if method == "all":
        return _everyone(len(degree))
    if method == "degree":
        return nearest_degree(degree)
    if method == "profile":
        if weights is None:
            raise ParameterError(
                'method "profile" orders nodes by their profiles: pass weights, or method="degree"'
            )
        profile = np.asarray(weights)
        if profile.ndim != 2 or len(profile) != len(degree):
            raise ParameterError(
                f"weights must be (n, k) with n = {len(degree)} as degrees; got {profile.shape}"
            )
        # Where two values are close, DTW's local cost is the difference of these logarithms.
        return nearest_degree(degree, order=np.log(profile + OFFSET).mean(axis=1))
    raise ParameterError(f'method must be one of "degree", "profile", "all"; got {method!r}')


def nearest_degree(degrees: ArrayLike, *, order: ArrayLike | None = None) -> NDArray[Any]:
    """Take ceil(log2 n) nodes on each side of a node's place in the order of degree.

    Parameters
    ----------
    degrees : array (n,)
    order : array (n,), optional
        Orders nodes of equal degree; their position does otherwise.

    Returns
    -------
    int32 array (n, 2 ceil(log2 n))
        From the smaller degree to the larger; -1 where the order has ended.

    Examples
    --------
    >>> nearest_degree([7, 1, 2, 5]).tolist()
    [[2, 3, -1, -1], [-1, -1, 2, 3], [-1, 1, 3, 0], [1, 2, 0, -1]]
    """
    degree = np.asarray(degrees)
    n = len(degree)
    if not n:
        return np.empty((0, 0), dtype=np.int32)
    ties = np.arange(n) if order is None else np.asarray(order)
    ranking = np.lexsort((ties, degree))  # (n,)
    side = math.ceil(math.log2(n))
    ended = np.full(side, -1)
    line = np.concatenate([ended, ranking, ended]).astype(position_type(n))
    windows = np.lib.stride_tricks.sliding_window_view(line, 2 * side + 1)  # (n, 2 side + 1), by place
    chosen = np.empty((n, 2 * side), dtype=line.dtype)
    chosen[ranking, :side] = windows[:, :side]
    chosen[ranking, side:] = windows[:, side + 1 :]
    return chosen


def _everyone(n: int) -> NDArray[Any]:
    if n > _MOST_FOR_ALL:
        raise ParameterError(
            f'method "all" compares every two nodes; got {n} nodes, at most {_MOST_FOR_ALL} are allowed: '
            'use "profile" or "degree"'
        )
    others = np.arange(max(n - 1, 0), dtype=np.int32)
    return others + (others >= np.arange(n)[:, None]).astype(np.int32)
