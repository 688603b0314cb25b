"""A network's links and sparse matrices on a Torch device."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import Adjacency

_MAX_ENTRIES = 1 << 30  # of a product, so that offsets fit in 32 bits


def usable_device(name: str) -> torch.device:
    """Return the Torch device of this name, or raise an error with the reason."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        reason = str(fault).split("\n")[0][:200]
        raise ParameterError(f"device {name!r} cannot be used here: {reason}; use device='cpu'") from fault
    return device


def as_tensor(array: Any, device: torch.device | str) -> Tensor:
    """Return a NumPy array as a tensor on a device; on a CPU they may share memory."""
    with warnings.catch_warnings():
        # The arrays of a graph are read-only, and tensors are not written to.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.as_tensor(array).to(device)


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """Links of a network on a device: symmetric, no loops, no duplicates."""

    indptr: Tensor  # int64 (n + 1,)
    indices: Tensor  # int32 (nnz,)
    weights: Tensor | None = None  # float32 (nnz,)

    @classmethod
    def of(cls, adjacency: Adjacency, device: torch.device | str) -> "DeviceGraph":
        """Return a copy of a graph's links on a device."""
        flat = adjacency.flat()
        weights = as_tensor(flat.weights, device).float() if len(flat.weights) else None
        return cls(as_tensor(flat.indptr, device).long(), as_tensor(flat.indices, device).int(), weights)

    def __len__(self) -> int:
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
        """Sum of each node's edge weights, float64 (n,); its degree without weights."""
        if self.weights is None:
            return self.indptr.diff().double()
        return self._up_to[self.indptr[1:]] - self._up_to[self.indptr[:-1]]

    @cached_property
    def _up_to(self) -> Tensor:
        """Sum of the weights before each entry, float64 (nnz + 1,)."""
        assert self.weights is not None
        return torch.cat([self.weights.new_zeros(1).double(), self.weights.double().cumsum(0)])

    @cached_property
    def rows(self) -> "Rows":
        """The links as a matrix of weights, or of ones without weights."""
        return Rows(self.indptr, self.indices, self.weights, len(self))

    @cached_property
    def links(self) -> "Rows":
        """The links as a matrix of ones."""
        return Rows(self.indptr, self.indices, None, len(self))

    def step(self, nodes: Tensor, draws: torch.Generator) -> Tensor:
        """Return a neighbour of each node (m,), drawn by edge weight; any node if it has no neighbours."""
        drawn = torch.rand(len(nodes), generator=draws, device=self.device, dtype=torch.float64)
        first, last = self.indptr[nodes], self.indptr[nodes + 1]
        if self.weights is None:
            entries = first + (drawn * (last - first)).long()
        else:
            low, high = self._up_to[first], self._up_to[last]
            entries = torch.searchsorted(self._up_to, low + drawn * (high - low), right=True) - 1
        entries = torch.minimum(torch.maximum(entries, first), last - 1)
        return self.indices[entries.clamp_(0, max(len(self.indices) - 1, 0))].long()


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse matrix (r, width) in CSR form on a device."""

    indptr: Tensor  # int64 (r + 1,)
    indices: Tensor  # (nnz,)
    values: Tensor | None  # float32 (nnz,); None for ones
    width: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def times(self, right: Tensor) -> Tensor:
        """Return the product with a dense matrix (width, d), (r, d)."""
        if len(self.indices) > _MAX_ENTRIES and len(self) > 1:
            half = len(self) // 2
            return torch.cat([self.part(0, half).times(right), self.part(half, len(self)).times(right)])
        if not len(self.indices):
            return right.new_zeros(len(self), right.shape[1])
        offsets = self.indptr.to(self.indices.dtype)
        return embedding_bag(
            self.indices, right, offsets, mode="sum", per_sample_weights=self.values, include_last_offset=True
        )

    def part(self, start: int, stop: int) -> "Rows":
        """Return the rows from ``start`` to ``stop``."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - first
        values = None if self.values is None else self.values[first:last]
        return Rows(indptr, self.indices[first:last], values, self.width)
