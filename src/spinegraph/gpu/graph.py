"""DeviceGraph: a network's arrays on a Torch device."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spinegraph.gpu.rows import Rows


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

    Examples
    --------
    >>> pair = DeviceGraph(torch.tensor([0, 1, 2]), torch.tensor([1, 0], dtype=torch.int32))
    >>> len(pair), pair.degrees.tolist()
    (2, [1, 1])
    """

    indptr: Tensor
    indices: Tensor
    weights: Tensor | None = None
    features: "Rows | Tensor | None" = None

    @classmethod
    def of(cls, graph: Any, device: torch.device | str, features: Any = None) -> "DeviceGraph":
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
    """Return a NumPy array as a tensor on a device; on a CPU it may share the array's memory.

    >>> tensor_of([1, 2], "cpu").tolist()
    [1, 2]
    """
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
