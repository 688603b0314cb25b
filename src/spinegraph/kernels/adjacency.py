"""Adjacency: the arrays that every kernel reads, of a graph, an overlay or memory-mapped files."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Way = Literal["both", "along", "against"]  # of walks: over every edge, along directed edges or against them
DIRECTIONS: tuple[Way, Way] = ("along", "against")


def position_type(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """Return the type of nodes' positions: four bytes, where they and one number above them fit."""
    return np.int32 if num_nodes < 2**31 else np.int64


class Adjacency(NamedTuple):
    """Rows of neighbours: a base in CSR form, and whole rows that replace or extend it."""

    indptr: NDArray[np.int64]  # (n + 1,)
    indices: NDArray[Any]  # (nnz,) int32 or int64, sorted within a row, symmetric, no loops
    weights: NDArray[np.float32]  # (nnz,) empty when every edge weighs the same; 0 for no step
    rows: NDArray[np.int32]  # (n_total,) -1 for a base row, or its row of the patch; empty without a patch
    patch_indptr: NDArray[np.int64]  # (p + 1,)
    patch_indices: NDArray[Any]  # as ``indices``
    patch_weights: NDArray[np.float32]  # as ``weights``

    @classmethod
    def of(cls, indptr: NDArray[Any], indices: NDArray[Any], *others: NDArray[Any] | None) -> "Adjacency":
        """Gather the fields as read-only views of fixed types, so that kernels compile once for all.

        Fields that are left out or None are empty.
        """
        index = np.int32 if indices.dtype == np.int32 else np.int64
        types = np.int64, index, np.float32, np.int32, np.int64, index, np.float32
        given = (indptr, indices, *others, *[None] * (5 - len(others)))
        return cls(*map(_view, given, types))

    @property
    def num_nodes(self) -> int:
        """Nodes of the base and of the overlay together."""
        return self.rows.size if self.rows.size else self.indptr.size - 1

    @property
    def num_entries(self) -> int:
        """Neighbours over all rows, replaced rows not counted."""
        replaced = np.flatnonzero(self.rows[: self.indptr.size - 1] >= 0)
        gone = self.indptr[replaced + 1] - self.indptr[replaced]
        used = self.rows[self.rows >= 0]  # not every row of a patch is a node's
        added = self.patch_indptr[used + 1] - self.patch_indptr[used] if used.size else used
        return int(self.indices.size - gone.sum() + added.sum())

    @property
    def has_weights(self) -> bool:
        """Whether steps follow edge weights."""
        return self.weights.size + self.patch_weights.size > 0

    def flat(self) -> "Adjacency":
        """Return the same rows without a patch."""
        if not self.rows.size:
            return self
        indptr, entries = self._entries(np.arange(self.num_nodes))
        indices = np.concatenate([self.indices, self.patch_indices])
        weights = np.concatenate([self.weights, self.patch_weights])
        return Adjacency.of(indptr, indices[entries], weights[entries] if weights.size else None)

    def neighbors(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the rows of some nodes (r,): where each begins (r + 1,), and the neighbours."""
        indptr, entries = self._entries(nodes)
        return indptr, self._gathered(entries, self.indices, self.patch_indices)

    def steps(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the rows of some nodes like ``neighbors``, without neighbours that a walk cannot step to."""
        indptr, entries = self._entries(nodes)
        if self.has_weights:
            is_step = self._gathered(entries, self.weights, self.patch_weights) > 0
            indptr, entries = np.concatenate([[0], np.cumsum(is_step)])[indptr], entries[is_step]
        return indptr, self._gathered(entries, self.indices, self.patch_indices)

    def _gathered(
        self, entries: NDArray[np.int64], of_base: NDArray[Any], of_patch: NDArray[Any]
    ) -> NDArray[Any]:
        """Return values of entries, from the base's and then the patch's, at their cost alone."""
        found = np.empty(len(entries), of_base.dtype)
        in_base = entries < self.indices.size
        found[in_base] = of_base[entries[in_base]]
        found[~in_base] = of_patch[entries[~in_base] - self.indices.size]
        return found

    def _entries(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each row begins (r + 1,), and its entries among the base's and then the patch's."""
        row = self.rows[nodes] if self.rows.size else np.full(len(nodes), -1)
        is_base = row < 0
        starts, stops = np.zeros((2, len(nodes)), np.int64)
        starts[is_base], stops[is_base] = self.indptr[nodes[is_base]], self.indptr[nodes[is_base] + 1]
        starts[~is_base] = self.indices.size + self.patch_indptr[row[~is_base]]
        stops[~is_base] = self.indices.size + self.patch_indptr[row[~is_base] + 1]
        indptr = np.concatenate([[0], np.cumsum(stops - starts)])
        return indptr, np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], stops - starts)


def _view(array: NDArray[Any] | None, dtype: type) -> NDArray[Any]:
    view: NDArray[Any] = np.ascontiguousarray([] if array is None else np.asarray(array), dtype=dtype).view()
    view.flags.writeable = False
    return view
