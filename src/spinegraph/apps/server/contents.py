"""What a generator makes of each node's features: they never change, so it is computed once and kept."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.generator import Generator
from spinegraph.kernels.products import sparse_times_dense
from spinegraph.structure.smoothing import multiply


class Contents:
    """Rows of F W_M by position, filled as they are met; one thread at a time.

    Vectors of some roots are then T times these rows. Every row is a sum of its own in a fixed order,
    so that it is the same to the bit whenever and beside whichever others it is computed.

    Parameters
    ----------
    generator : Generator
        One that reads features, with no structural columns through T: those change.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> graph = made.barbell(8, bridge=4).with_features(np.eye(20, dtype=np.float32))
    >>> generator = SPINE(dim=4, steps=5).fit(graph).generator_
    >>> some = np.array([2, 5])
    >>> bool(np.allclose(Contents(generator).embed(graph, some), generator.embed(graph, some), atol=1e-6))
    True
    """

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._weights = np.ascontiguousarray(generator.weights[: generator.inputs.num_through])
        self._rows = np.empty((0, generator.dim), np.float32)
        self._is_known = np.zeros(0, bool)

    def __len__(self) -> int:
        """Return for how many nodes there is room."""
        return len(self._rows)

    def embed(self, graph: Any, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors (r, d) of some nodes, as ``Generator.embed`` does."""
        inputs = self._generator.inputs
        profile = inputs.profile(graph, positions)
        operator = profile.operator(1)
        self._fill(graph, operator.indices)
        content = sparse_times_dense(operator.indptr, operator.indices, operator.data, self._rows, 1)
        vectors = self._generator.activated(content)
        if inputs.past:
            columns = inputs.structural(graph, positions, profile)
            vectors += columns @ self._generator.weights[inputs.num_through :]
        return vectors

    def _fill(self, graph: Any, positions: NDArray[Any]) -> None:
        """Compute the rows of some nodes that are not known."""
        self._grow(len(graph))
        missing = positions[~self._is_known[positions]]
        if len(missing):
            missing = np.unique(missing).astype(np.int64)
            inputs = self._generator.inputs
            # Sparse whatever it is: a dense product's last bits depend on how many rows it has.
            self._rows[missing] = multiply(csr_array(inputs.around(graph, missing)), self._weights, 1)
            self._is_known[missing] = True

    def _grow(self, count: int) -> None:
        """Make room, and some more; rows that were never met are never written, so they take no memory."""
        if count > len(self):
            rows = np.empty((count + count // 4, self._rows.shape[1]), np.float32)
            known = np.flatnonzero(self._is_known)
            rows[known] = self._rows[known]
            self._is_known = np.concatenate((self._is_known, np.zeros(len(rows) - len(self), bool)))
            self._rows = rows


def embedder(generator: Generator) -> Callable[[Any, NDArray[np.int64]], NDArray[np.float32]]:
    """Return what computes the vectors of some nodes of a graph, and keeps what it can for the next time.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> graph = made.barbell(8, bridge=4)  # no features: nothing can be kept
    >>> embedder(SPINE(dim=4, steps=5).fit(graph).generator_)(graph, np.array([3])).shape
    (1, 4)
    """
    reads_features = generator.inputs.encoder is not None
    return Contents(generator).embed if reads_features and not generator.inputs.through else generator.embed
