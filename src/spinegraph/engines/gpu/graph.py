"""A network's arrays and sparse matrices on a Torch device."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from spinegraph.graph.graph import Graph

_MOST_ENTRIES = 1 << 30  # of a product: offsets fit in 32 bits


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse matrix (r, width) in CSR form.

    Attributes
    ----------
    indptr : int64 tensor (r + 1,)
    indices : int tensor (nnz,)
    values : float32 tensor (nnz,)
    width : int
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    width: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.indptr) - 1

    def times(self, right: Tensor) -> Tensor:
        """Return the product with a dense matrix (width, d), float32 (r, d)."""
        if len(self.indices) > _MOST_ENTRIES and len(self) > 1:
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

    def take(self, places: Tensor) -> "Rows":
        """Return the rows at some places."""
        lengths = self.indptr.diff()[places]
        indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        owners = torch.repeat_interleave(torch.arange(len(places), device=places.device), lengths)
        entries = self.indptr[places][owners] + torch.arange(len(owners), device=places.device)
        entries = entries - indptr[owners]
        return Rows(indptr, self.indices[entries], self.values[entries], self.width)

    def dense(self) -> Tensor:
        """Return the matrix itself."""
        owners = torch.repeat_interleave(
            torch.arange(len(self), device=self.indptr.device), self.indptr.diff()
        )
        filled = self.values.new_zeros(len(self) * self.width)
        filled.index_add_(0, owners * self.width + self.indices, self.values)
        return filled.view(len(self), self.width)


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """Links and encoded features of a network, on one device.

    Attributes
    ----------
    indptr : int64 tensor (n + 1,)
    indices : int32 tensor (nnz,)
        Symmetric, no loops, no duplicates.
    weights : float32 tensor (nnz,), optional
    features : Rows or float32 tensor (n, f), optional
        Already scaled.
    """

    indptr: Tensor
    indices: Tensor
    weights: Tensor | None = None
    features: "Rows | Tensor | None" = None

    @classmethod
    def of(cls, graph: Graph, device: torch.device | str, features: Any = None) -> "DeviceGraph":
        """Copy a Graph's links, and features as they are to be used (CSR or dense), to a device."""
        return cls(
            tensor_of(graph.indptr, device).long(),
            tensor_of(graph.indices, device).int(),
            None if graph.weights is None else tensor_of(graph.weights, device),
            None if features is None else features_of(features, device),
        )

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.indptr) - 1

    @property
    def device(self) -> torch.device:
        """Where the arrays lie."""
        return self.indptr.device

    @cached_property
    def degrees(self) -> Tensor:
        """Neighbours of each node, int64 (n,)."""
        return self.indptr.diff()

    @cached_property
    def neighbor_degrees(self) -> Tensor:
        """Neighbours of the node at the other end of each entry, int32 (nnz,)."""
        return self.degrees.int()[self.indices]

    @cached_property
    def weight_sums(self) -> Tensor:
        """Sum of the weights up to each entry, float64 (nnz,); needs weights."""
        assert self.weights is not None
        return self.weights.double().cumsum(0)

    @cached_property
    def strengths(self) -> Tensor:
        """Sum of each node's edge weights, float64 (n,)."""
        if self.weights is None:
            return self.degrees.double()
        rows = torch.repeat_interleave(torch.arange(len(self), device=self.device), self.degrees)
        zeros = torch.zeros(len(self), dtype=torch.float64, device=self.device)
        return zeros.index_add_(0, rows, self.weights.double())

    def edges_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the entries of some rows, one row after the other, and which of ``nodes`` each is of."""
        degrees = self.degrees[nodes]
        owners = torch.repeat_interleave(torch.arange(len(nodes), device=self.device), degrees)
        before = degrees.cumsum(0) - degrees
        places = torch.arange(len(owners), device=self.device) - before[owners]
        return self.indptr[nodes][owners] + places, owners


def tensor_of(array: Any, device: torch.device | str) -> Tensor:
    """Return a NumPy array as a tensor on a device; on a CPU it may share the array's memory."""
    with warnings.catch_warnings():
        # Read-only arrays, which are only read here.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.as_tensor(array).to(device)


def features_of(features: Any, device: torch.device | str) -> "Rows | Tensor":
    """Copy features, CSR or dense, to a device."""
    if hasattr(features, "indptr"):
        indptr, indices = tensor_of(features.indptr, device), tensor_of(features.indices, device)
        return Rows(indptr.long(), indices, tensor_of(features.data, device), features.shape[1])
    return tensor_of(features, device).float()
