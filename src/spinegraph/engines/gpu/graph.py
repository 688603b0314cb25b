"""A network's links and sparse matrices on a Torch device."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from spinegraph.graph.graph import Graph

_MAX_ENTRIES = 1 << 30  # of a product: offsets fit in 32 bits


def as_tensor(array: Any, device: torch.device | str) -> Tensor:
    """Return a NumPy array as a tensor on a device; on a CPU it may share the array's memory."""
    with warnings.catch_warnings():
        # The arrays of a graph are read-only, and only read here.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.as_tensor(array).to(device)


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """Links of a network on a device: symmetric, no loops, no duplicates."""

    indptr: Tensor  # int64 (n + 1,)
    indices: Tensor  # int32 (nnz,)
    weights: Tensor | None = None  # float32 (nnz,)

    @classmethod
    def of(cls, graph: Graph, device: torch.device | str) -> "DeviceGraph":
        """Copy a graph's links to a device."""
        return cls(
            as_tensor(graph.indptr, device).long(),
            as_tensor(graph.indices, device).int(),
            None if graph.weights is None else as_tensor(graph.weights, device),
        )

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.indptr) - 1

    @property
    def device(self) -> torch.device:
        """Device of the arrays."""
        return self.indptr.device

    @cached_property
    def neighbor_degrees(self) -> Tensor:
        """Degree of the neighbour of each entry, int32 (nnz,)."""
        return self.indptr.diff().int()[self.indices]

    @cached_property
    def strengths(self) -> Tensor:
        """Sum of each node's edge weights, float64 (n,); needs weights."""
        assert self.weights is not None
        rows = torch.repeat_interleave(torch.arange(len(self), device=self.device), self.indptr.diff())
        zeros = torch.zeros(len(self), dtype=torch.float64, device=self.device)
        return zeros.index_add_(0, rows, self.weights.double())


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse matrix (r, width) in CSR form on a device."""

    indptr: Tensor  # int64 (r + 1,)
    indices: Tensor  # (nnz,)
    values: Tensor  # float32 (nnz,)
    width: int

    @classmethod
    def of(cls, matrix: Any, device: torch.device | str) -> "Rows":
        """Copy a SciPy CSR matrix to a device."""
        parts = (as_tensor(part, device) for part in (matrix.indptr, matrix.indices, matrix.data))
        indptr, indices, values = parts
        return cls(indptr.long(), indices, values, matrix.shape[1])

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.indptr) - 1

    def times(self, right: Tensor) -> Tensor:
        """Return the product with a dense matrix (width, d), float32 (r, d)."""
        if len(self.indices) > _MAX_ENTRIES and len(self) > 1:
            half = len(self) // 2
            return torch.cat([self.part(0, half).times(right), self.part(half, len(self)).times(right)])
        if not len(self.indices):
            return right.new_zeros(len(self), right.shape[1])
        return embedding_bag(
            self.indices,
            right,
            self.indptr.to(self.indices.dtype),
            mode="sum",
            per_sample_weights=self.values,
            include_last_offset=True,
        )

    def part(self, start: int, stop: int) -> "Rows":
        """Return the rows from ``start`` to ``stop``."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - first
        return Rows(indptr, self.indices[first:last], self.values[first:last], self.width)

    def dense(self) -> Tensor:
        """Return the matrix as a dense tensor."""
        owners = torch.arange(len(self), device=self.indptr.device).repeat_interleave(self.indptr.diff())
        filled = self.values.new_zeros(len(self) * self.width)
        filled.index_add_(0, owners * self.width + self.indices, self.values)
        return filled.view(len(self), self.width)
