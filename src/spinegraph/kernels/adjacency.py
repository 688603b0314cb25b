"""What kernels read of a graph: CSR arrays, and whole rows that replace some of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Adjacency(NamedTuple):
    """CSR arrays of a graph, with an optional patch of replaced and added rows.

    Without an overlay ``rows`` is empty and every row is read from the first three arrays. With one,
    ``rows[node]`` is -1 where the base row stands and ``r >= 0`` where row ``r`` of the patch replaces it.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> adjacency = Graph.from_edges([(0, 1), (1, 2)]).adjacency()
    >>> adjacency.indptr.tolist(), adjacency.indices.tolist(), len(adjacency.rows)
    ([0, 1, 3, 4], [1, 0, 2, 1], 0)
    """

    indptr: NDArray[np.int64]  # (n + 1,)
    indices: NDArray[Any]  # (nnz,) int32 or int64
    weights: NDArray[np.float32]  # (nnz,), or empty when unweighted
    rows: NDArray[np.int32]  # (n_total,), or empty without an overlay
    patch_indptr: NDArray[np.int64]  # (p + 1,)
    patch_indices: NDArray[Any]  # same dtype as indices
    patch_weights: NDArray[np.float32]  # or empty when unweighted
