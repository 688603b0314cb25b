"""Which nodes a stage is asked about."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError


def as_roots(roots: ArrayLike | None, num_nodes: int) -> NDArray[np.int64]:
    """Return positions of roots as int64 (r,), every node for None, or say what is wrong with them.

    Examples
    --------
    >>> as_roots(None, 3).tolist()
    [0, 1, 2]
    """
    if roots is None:
        return np.arange(num_nodes, dtype=np.int64)
    chosen = np.asarray(roots)
    if chosen.ndim != 1 or not (chosen.size == 0 or np.issubdtype(chosen.dtype, np.integer)):
        raise ParameterError(
            f"roots must be a list of node positions; got {chosen.dtype} of shape {chosen.shape}. "
            "For names, pass graph.positions(names)."
        )
    wrong = chosen[(chosen < 0) | (chosen >= num_nodes)]
    if wrong.size:
        raise ParameterError(f"roots must lie in 0 .. {num_nodes - 1}; got {wrong[:3].tolist()}")
    return np.ascontiguousarray(chosen, dtype=np.int64)
