"""Which profiles are worth comparing by DTW, where there are too many to compare all."""

import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.dtw import OFFSET

# On 81,306 nodes the nearest ten are among the 2,048 nearest in four directions in 99 of 100 cases, among
# the 4,096 of nearest degree in 85.
NUM_NEAR = 2048
_DIRECTIONS = 4


class LikeProfiles:
    """The profiles nearest to one in the directions in which their logarithms vary most.

    Logarithms, since DTW's local cost is a ratio.

    Parameters
    ----------
    rows : float32 array (n, k)

    Examples
    --------
    >>> rows = np.array([[0.5, 0.5], [0.9, 0.1], [0.6, 0.4]], dtype=np.float32)
    >>> LikeProfiles(rows).near(0, 1)
    array([2])
    """

    def __init__(self, rows: NDArray[np.float32]) -> None:
        from scipy.spatial import KDTree

        logarithms = np.log(rows.astype(np.float64) + OFFSET)
        centered = logarithms - logarithms.mean(axis=0)
        _, directions = np.linalg.eigh(centered.T @ centered)
        self._places = centered @ directions[:, -_DIRECTIONS:]  # (n, 4)
        self._tree = KDTree(self._places)

    def near(self, place: int, count: int = NUM_NEAR) -> NDArray[np.int64]:
        """Return the positions of the ``count`` nearest, ascending; never the place itself."""
        count = min(count, len(self._places) - 1)
        found: NDArray[np.int64] = np.atleast_1d(self._tree.query(self._places[place], k=count + 1)[1])
        # Among many equal profiles the place itself may be missing.
        return np.sort(found[found != place][:count])
