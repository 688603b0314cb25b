"""Edges as a reader finds them, block by block, until somebody takes them away."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.files.codes import DistinctNames, IntegerNames


class Taken(NamedTuple):
    """Sorted distinct names (u,), edges (m, 2) as positions among them, and weights (m,) or None.

    ``names`` is an int64 array, an Arrow array of text, or a range where the number of nodes is given.
    """

    names: Any
    edges: NDArray[Any]
    weights: NDArray[np.float32] | None


class Listings:
    """Collects the endpoints and weights of blocks.

    Parameters
    ----------
    is_integer, is_weighted : bool
        What names are, and whether there are weights.
    num_nodes : int, optional
        Nodes are 0 .. num_nodes-1.
    note : str
        One sentence on what was understood of the file.

    Attributes
    ----------
    blocks : int
        How many blocks of the file were read or passed over.

    Examples
    --------
    >>> listings = Listings(is_integer=True, is_weighted=False)
    >>> listings.add(np.array([30, 10]), np.array([10, 20]))
    >>> listings.take().edges.tolist(), len(listings)
    ([[2, 0], [0, 1]], 0)
    """

    def __init__(
        self, *, is_integer: bool, is_weighted: bool, num_nodes: int | None = None, note: str = ""
    ) -> None:
        self.is_integer, self.is_weighted, self.num_nodes, self.note = (
            is_integer,
            is_weighted,
            num_nodes,
            note,
        )
        self.blocks = 0
        self._begin()

    def _begin(self) -> None:
        self._integers, self._texts = IntegerNames(), DistinctNames()
        self._weights: list[NDArray[np.float32]] = []
        self._count, self.name_bytes = 0, 0

    def __len__(self) -> int:
        """Return the number of edges collected."""
        return self._count

    def add(self, sources: Any, targets: Any, weights: NDArray[Any] | None = None) -> Any:
        """Take one block's edges, (b,) each; returns its distinct names where they are text."""
        self._count += len(sources)
        if weights is not None:
            self._weights.append(weights.astype(np.float32, copy=False))
        if self.is_integer:
            self._integers.add(sources, targets)
            return None
        names = self._texts.add(sources, targets)
        self.name_bytes += names.nbytes
        return names

    def take(self) -> Taken:
        """Give up what was collected; the next block begins anew."""
        names: Any
        if self.num_nodes is not None:
            names, edges = range(self.num_nodes), self._integers.finish_positions()
        else:
            names, edges = self._integers.finish() if self.is_integer else self._texts.finish_text()
        weights = np.concatenate([*self._weights, np.zeros(0, np.float32)]) if self.is_weighted else None
        self._begin()
        return Taken(names, edges, weights)


def named(names: Any) -> NDArray[Any]:
    """Return taken names as a graph has them: int64, or objects.

    Examples
    --------
    >>> import pyarrow as pa
    >>> named(pa.array(["ann", "bob"]))
    array(['ann', 'bob'], dtype=object)
    """
    if isinstance(names, range):
        return np.arange(len(names))
    return names if isinstance(names, np.ndarray) else names.to_numpy(zero_copy_only=False).astype(object)
