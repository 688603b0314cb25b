"""SciPy sparse matrices to and from Graph."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.graph import Graph
from spinegraph.graph.listing import matrix_entries
from spinegraph.graph.names import as_names


def from_scipy(
    matrix: Any,
    features: Any = None,
    names: Iterable[Any] | None = None,
    *,
    feature_names: Iterable[str] | None = None,
    weighted: bool | None = None,
    reciprocal: Reciprocal = "error",
    stacklevel: int = 1,
) -> Graph:
    """Convert; see :meth:`Graph.from_scipy`."""
    shape = np.shape(matrix) if not issparse(matrix) else matrix.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise GraphFormatError(f"an adjacency matrix has shape (n, n) with n of at least 1; got {shape}")
    if not issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.dtype.kind not in "biuf":
        raise GraphFormatError(f"an adjacency matrix holds real numbers; got dtype {matrix.dtype}")
    found = np.arange(shape[0]) if names is None else as_names(names)
    if len(found) != shape[0]:
        raise GraphFormatError(f"{len(found)} names for a matrix of shape {shape}")
    sources, targets, weights = matrix_entries(matrix, weighted)
    return Graph._from_positions(
        sources,
        targets,
        found,
        weights,
        features,
        feature_names,
        directed=True,  # entries without their mirror are what makes a matrix directed
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def to_scipy(graph: Graph) -> csr_array:
    """Convert; see :meth:`Graph.to_scipy`."""
    data = np.ones(len(graph.indices), np.float32) if graph.weights is None else graph.weights
    return csr_array((data, graph.indices, graph.indptr), shape=(len(graph),) * 2, copy=True)
