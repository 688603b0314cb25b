"""The role part of all nodes on a Torch device; see ``structure.columns`` and ``parts.role``."""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import pad

from spinegraph.engines.gpu.graph import DeviceGraph, as_tensor
from spinegraph.kernels.columns import QUANTILES
from spinegraph.kernels.dtw import OFFSET
from spinegraph.parts.content import RandomFeatures
from spinegraph.parts.role import BOUND, PROFILE, ROUNDING, Role

_BLOCK = 1 << 25  # entries, or pairs of them, at a time, to bound memory


def structural_columns(graph: DeviceGraph, strengths: Tensor) -> Tensor:
    """Return the first ten of ``parts.role.COLUMNS`` of all nodes, (n, 10)."""
    degrees = graph.indptr.diff()
    count, logarithms = degrees.clamp_min(1), degrees.double().log1p()
    sums = graph.links.times(torch.stack([logarithms, logarithms**2], dim=1))
    mean, square = (sums / count[:, None]).unbind(1)
    triangles = Triangles(graph)
    blocks = [_compared(graph, triangles, start, stop) for start, stop in blocks_of(graph.indptr, _BLOCK)]
    smaller, h_index, shared, *overlaps = torch.cat(blocks, dim=1)
    weight = torch.where(degrees > 0, strengths / count, 1.0).log()
    clustering = shared / (degrees * (degrees - 1)).clamp_min(2)
    deviation = (square - mean**2).clamp_min(0).sqrt()
    columns = logarithms, weight, smaller.log1p(), h_index.log1p(), clustering, mean, deviation, *overlaps
    return torch.stack([column.float() for column in columns], dim=1)


def columns_around(graph: DeviceGraph, near: Tensor) -> Tensor:
    """Return the columns (n, 3) of ``parts.role.AROUND``, given smoothed ``moments``."""
    count = graph.indptr.diff().clamp_min(1)
    values = moments(graph)[:, 0]
    for _ in range(2):
        values = (graph.links.times(values.double()[:, None])[:, 0] / count).float()
    mean, square = near.unbind(1)
    deviation = ((1 - float(ROUNDING)) * square - mean**2).clamp_min(0).sqrt()
    return torch.stack([values, mean, deviation], dim=1)


def profile_columns(weights: Tensor) -> Tensor:
    """Return the columns (r, 21) that are computed from profiles (r, k)."""
    spread = -(weights * torch.where(weights > 0, weights, 1.0).log()).sum(1, dtype=torch.float64)
    ranked = pad(weights[:, : len(PROFILE)], (0, max(len(PROFILE) - weights.shape[1], 0)))
    return torch.cat([spread[:, None], (ranked.double() + OFFSET).log()], dim=1).float()


def moments(graph: DeviceGraph) -> Tensor:
    """Return log(1 + degree) and its square for all nodes, (n, 2)."""
    values = graph.indptr.diff().double().log1p().float()
    return torch.stack([values, values**2], dim=1)


def embed(role: Role, columns: Tensor) -> Tensor:
    """Return the part (r, d) of nodes with columns (r, s); see ``Role.embed``."""
    arrays, bound = (role.mean, role.scale, role.rotation), float(BOUND)
    mean, scale, rotation = (as_tensor(each, columns.device) for each in arrays)
    values = (bound * ((columns - mean) / scale / bound).tanh()) @ rotation
    values = with_random_features(values, role.random_features)
    constant = columns.new_full((len(columns), int(role.constant > 0)), role.constant)
    return torch.cat([values, constant], dim=1)


def with_random_features(values: Tensor, random_features: RandomFeatures | None) -> Tensor:
    """Return values (r, d) with their random features appended; see ``RandomFeatures.append_to``."""
    if random_features is None:
        return values
    arrays = random_features.matrix, random_features.offset
    matrix, offset = (as_tensor(each, values.device) for each in arrays)
    return torch.cat([values, (values @ matrix + offset).clamp_min(0)], dim=1)


def _compared(graph: DeviceGraph, triangles: "Triangles", start: int, stop: int) -> Tensor:
    """Return counts over the neighbours of the nodes from start to stop, float64 (6, r).

    Smaller neighbours, h-index, common neighbours over all neighbours, and quantiles of overlap.
    """
    degrees, device = graph.indptr.diff(), graph.device
    own, firsts = degrees[start:stop], graph.indptr[start : stop + 1] - graph.indptr[start]
    rows = torch.arange(stop - start, device=device).repeat_interleave(own)
    others = graph.indices[graph.indptr[start] : graph.indptr[stop]].long()
    theirs, mine = degrees[others], own[rows]

    def totals(values: Tensor) -> Tensor:
        return pad(values.cumsum(0), (1, 0))[firsts].diff()

    def ascending(values: Tensor) -> Tensor:
        """Sort values (e,) of 31 bits within rows."""
        return ((rows << 32) | values).sort().values.bitwise_and_((1 << 32) - 1).int()

    rank = torch.arange(len(rows), device=device) - firsts[rows]
    falling = (2**31 - 1) - ascending(2**31 - 1 - theirs)
    common = triangles.at(rows + start, others)
    either = (mine + theirs - common - 2).clamp_min(1)  # 0 if the two have no other neighbours
    bits = ascending((common.double() / either).float().view(torch.int32))
    overlaps = pad(bits, (0, 1)).view(torch.float32)
    found = [totals(2 * theirs <= mine), totals(falling > rank), totals(common)]
    last = (own - 1).clamp_min(0)
    for share in QUANTILES:
        at = share * last.double()
        below = at.long()
        low = overlaps[firsts[:-1] + below].double()
        high = overlaps[firsts[:-1] + torch.minimum(below + 1, last)].double()
        found.append(torch.where(own > 0, low + (at - below) * (high - low), 0.0))
    return torch.stack([each.double() for each in found])


class Triangles:
    """Number of triangles of each link, which is the number of common neighbours of its ends.

    Links lead from the end with fewer neighbours to the other. So no node has many, and pairs of links from
    one node find each triangle once.
    """

    def __init__(self, graph: DeviceGraph) -> None:
        n, degrees, device = len(graph), graph.indptr.diff(), graph.device
        self._n, self._rank = n, torch.empty(n, dtype=torch.int32, device=device)
        self._rank[degrees.argsort(stable=True)] = torch.arange(n, dtype=torch.int32, device=device)
        sources = torch.arange(n, dtype=torch.int32, device=device).repeat_interleave(degrees)
        leads = self._rank[sources] < self._rank[graph.indices]
        sources, targets = sources[leads], graph.indices[leads]
        self._keys = sources.long() * n + targets  # ascending
        ends = pad(torch.bincount(sources, minlength=n).cumsum(0), (1, 0))
        after = ends[1:][sources] - 1 - torch.arange(len(sources), device=device)
        self._counts = torch.zeros(len(sources), dtype=torch.int32, device=device)
        upto = pad(after.cumsum(0), (1, 0))
        for start, stop in blocks_of(upto, _BLOCK):
            first = torch.arange(start, stop, device=device).repeat_interleave(after[start:stop])
            place = torch.arange(len(first), device=device) + upto[start]
            second = first + 1 + place - upto[first]
            at, is_link = self._find(targets[first], targets[second])
            for each in (first, second, at):
                some = each[is_link]
                self._counts.index_add_(0, some, torch.ones_like(some, dtype=torch.int32))

    def at(self, ones: Tensor, others: Tensor) -> Tensor:
        """Return the counts of links (e,) between two nodes each."""
        return self._counts[self._find(ones, others)[0]]

    def _find(self, ones: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions of the links between nodes, and whether these exist."""
        is_swapped = self._rank[ones] > self._rank[others]
        keys = torch.where(is_swapped, others, ones).long() * self._n + torch.where(is_swapped, ones, others)
        at = torch.searchsorted(self._keys, keys).clamp_(0, max(len(self._keys) - 1, 0))
        return at, self._keys[at] == keys


def blocks_of(ends: Tensor, size: int) -> Iterator[tuple[int, int]]:
    """Split rows with ends (r + 1,) into blocks of about ``size`` entries, exceeded by one row at most."""
    cuts = torch.arange(0, int(ends[-1]) + 1, size, device=ends.device)
    found = (torch.searchsorted(ends, cuts, right=True) - 1).tolist()
    return pairwise(sorted({0, *found, len(ends) - 1}))
