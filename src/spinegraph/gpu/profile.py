"""DeviceProfile: rooted PageRank of some roots, on a Torch device, and the matrix T that it makes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spinegraph.gpu.rows import Rows


@dataclass(frozen=True, eq=False)
class DeviceProfile:
    """The k largest rooted-PageRank values of each root, with the fields of ``RootedPageRank`` as tensors."""

    nodes: Tensor
    weights: Tensor
    mass: Tensor
    num_nodes: int
    kept: Tensor
    tied_indptr: Tensor
    tied_nodes: Tensor
    unassigned: Tensor | None = None

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self.nodes)

    @property
    def k(self) -> int:
        """Length of each profile."""
        return int(self.nodes.shape[1])

    def operator(self) -> Rows:
        """Return T, (r, n); ties at the k-th place are shared as in ``RootedPageRank.operator``."""
        device, k = self.nodes.device, self.k
        tied = self.tied_indptr.diff()
        indptr = torch.zeros(len(self) + 1, dtype=torch.int64, device=device)
        torch.cumsum(self.kept + tied, 0, out=indptr[1:])
        inside = torch.arange(k, device=device) < self.kept[:, None]  # (r, k)
        wide = self.weights.double()
        head, total = (wide * inside).sum(1), wide.sum(1)
        scale = torch.where((tied > 0) | (head == 0), 1.0, total / head.clamp_min(1e-300))
        places = (indptr[:-1, None] + torch.arange(k, device=device))[inside]
        indices = torch.empty(int(indptr[-1]), dtype=torch.int32, device=device)
        values = torch.empty(len(indices), dtype=torch.float32, device=device)
        indices[places] = self.nodes[inside]
        values[places] = (wide * scale[:, None])[inside].float()
        rows = torch.repeat_interleave(torch.arange(len(self), device=device), tied)
        place = torch.arange(len(rows), device=device) - self.tied_indptr[:-1][rows]
        places = (indptr[:-1] + self.kept)[rows] + place
        indices[places] = self.tied_nodes
        values[places] = ((total - head) / tied.clamp_min(1))[rows].float()
        return Rows(indptr, indices, values, self.num_nodes)

    def part(self, start: int, stop: int) -> "DeviceProfile":
        """Return the profiles of the roots from ``start`` to ``stop``."""
        first, last = int(self.tied_indptr[start]), int(self.tied_indptr[stop])
        return DeviceProfile(
            self.nodes[start:stop],
            self.weights[start:stop],
            self.mass[start:stop],
            self.num_nodes,
            self.kept[start:stop],
            self.tied_indptr[start : stop + 1] - first,
            self.tied_nodes[first:last],
            None if self.unassigned is None else self.unassigned[start:stop],
        )

    @classmethod
    def joined(cls, parts: "list[DeviceProfile]") -> "DeviceProfile":
        """Put the profiles of some roots after those of others."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        tied = torch.cat([part.tied_indptr.diff() for part in parts])
        return cls(
            torch.cat([part.nodes for part in parts]),
            torch.cat([part.weights for part in parts]),
            torch.cat([part.mass for part in parts]),
            first.num_nodes,
            torch.cat([part.kept for part in parts]),
            torch.cat([tied.new_zeros(1), tied.cumsum(0)]),
            torch.cat([part.tied_nodes for part in parts]),
            None if first.unassigned is None else torch.cat([part.unassigned for part in parts]),  # type: ignore[misc]
        )
