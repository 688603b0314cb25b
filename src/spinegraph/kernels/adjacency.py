"""Adjacency: the arrays that every kernel takes, of a graph, an overlay or memory-mapped files."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Direction = Literal["both", "along", "against"]  # of walks: over all edges, or along or against directed ones
DIRECTIONS: tuple[Direction, Direction] = ("along", "against")


def position_type(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """Return the integer type of node positions: four bytes if they and one larger number fit."""
    return np.int32 if num_nodes < 2**31 else np.int64


class Adjacency(NamedTuple):
    """Rows of neighbours: a base in CSR form, and whole rows that replace or extend it."""

    indptr: NDArray[np.int64]  # (n + 1,)
    indices: NDArray[Any]  # (nnz,) int32 or int64, sorted within a row, symmetric, no loops
    weights: NDArray[np.float32]  # (nnz,) empty if all are equal; 0 for an entry without a step
    rows: NDArray[np.int32]  # (n_total,) a row of the patch, or -1 for the base row; empty without a patch
    patch_indptr: NDArray[np.int64]  # (p + 1,)
    patch_indices: NDArray[Any]  # as ``indices``
    patch_weights: NDArray[np.float32]  # as ``weights``

    @classmethod
    def of(cls, indptr: NDArray[Any], indices: NDArray[Any], *others: NDArray[Any] | None) -> "Adjacency":
        """Return an adjacency of read-only views with fixed types, so that kernels compile only once.

        Fields that are missing or None are empty.
        """
        index = np.int32 if indices.dtype == np.int32 else np.int64
        types = np.int64, index, np.float32, np.int32, np.int64, index, np.float32
        given = (indptr, indices, *others, *[None] * (5 - len(others)))
        return cls(*map(_view, given, types))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the base and the overlay."""
        return self.rows.size if self.rows.size else self.indptr.size - 1

    @property
    def num_entries(self) -> int:
        """Number of neighbours over all rows, without replaced rows."""
        replaced = np.flatnonzero(self.rows[: self.indptr.size - 1] >= 0)
        gone = self.indptr[replaced + 1] - self.indptr[replaced]
        used = self.rows[self.rows >= 0]  # a patch may have unused rows
        added = self.patch_indptr[used + 1] - self.patch_indptr[used] if used.size else used
        return int(self.indices.size - gone.sum() + added.sum())

    @property
    def has_weights(self) -> bool:
        """Whether steps follow edge weights."""
        return self.weights.size + self.patch_weights.size > 0

    def flat(self) -> "Adjacency":
        """Return the same rows as a single CSR matrix without a patch."""
        if not self.rows.size:
            return self
        indptr, entries = self.entries(np.arange(self.num_nodes))
        indices = np.concatenate([self.indices, self.patch_indices])
        weights = np.concatenate([self.weights, self.patch_weights])
        return Adjacency.of(indptr, indices[entries], weights[entries] if weights.size else None)

    def neighbors(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the rows of some nodes (r,): starts (r + 1,), and the neighbours."""
        indptr, entries = self.entries(nodes)
        return indptr, self.gathered(entries, self.indices, self.patch_indices)

    def steps(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the rows of some nodes like ``neighbors``, but only neighbours that a walk can step to."""
        indptr, entries = self.entries(nodes)
        if self.has_weights:
            is_step = self.gathered(entries, self.weights, self.patch_weights) > 0
            indptr, entries = np.concatenate([[0], np.cumsum(is_step)])[indptr], entries[is_step]
        return indptr, self.gathered(entries, self.indices, self.patch_indices)

    def gathered(self, entries: NDArray[Any], of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        """Return values of entries, numbered through base and patch; cost depends on their number alone."""
        found = np.empty(len(entries), of_base.dtype)
        in_base = entries < self.indices.size
        found[in_base] = of_base[entries[in_base]]
        found[~in_base] = of_patch[entries[~in_base] - self.indices.size]
        return found

    def entries(self, nodes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the start of each row (r + 1,), and its entries, numbered through base and patch."""
        starts, stops = self.bounds(nodes)
        indptr = np.concatenate([[0], np.cumsum(stops - starts)])
        return indptr, np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], stops - starts)

    def bounds(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the first entry of each row and the one after its last, (2, r)."""
        row = self.rows[nodes] if self.rows.size else np.full(len(nodes), -1)
        is_base, found = row < 0, np.empty((2, len(nodes)), np.int64)
        base, patch = nodes[is_base], row[~is_base]
        for end, step in zip(found, (0, 1), strict=True):
            end[is_base] = self.indptr[base + step]
            end[~is_base] = self.indices.size + self.patch_indptr[patch + step]
        return found


def _view(array: NDArray[Any] | None, dtype: type) -> NDArray[Any]:
    view: NDArray[Any] = np.ascontiguousarray([] if array is None else np.asarray(array), dtype=dtype).view()
    view.flags.writeable = False
    return view
