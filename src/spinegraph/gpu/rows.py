"""Rows: a sparse matrix on a Torch device."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

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

    Examples
    --------
    >>> half = Rows(torch.tensor([0, 2]), torch.tensor([0, 1]), torch.tensor([0.5, 0.5]), 2)
    >>> half.times(torch.tensor([[2.0], [4.0]])).tolist(), half.dense().tolist()
    ([[3.0]], [[0.5, 0.5]])
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
