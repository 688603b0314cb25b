"""Structurally similar nodes on a device."""

import math

import torch
from torch import Tensor

from spinegraph.errors import ParameterError

_OFFSET = 1e-3  # as in kernels/dtw.py
_FAR = 1e30
_PAIRS_TOGETHER = 1 << 21
_MOST_FOR_ALL = 20_000


def candidates(degrees: Tensor, weights: Tensor, method: str) -> Tensor:
    """Return each node's candidates by place, int64 (n, c), padded with -1; see ``structure.candidates``."""
    n = len(degrees)
    if method == "all":
        if n > _MOST_FOR_ALL:
            raise ParameterError(
                f'candidates="all" compares every two nodes; got {n}, at most {_MOST_FOR_ALL}'
            )
        others = torch.arange(n - 1, device=degrees.device)
        return others + (others >= torch.arange(n, device=degrees.device)[:, None])
    ranking = torch.arange(n, device=degrees.device)
    if method == "profile":
        ranking = torch.sort((weights + _OFFSET).log().mean(1), stable=True).indices
    ranking = ranking[torch.sort(degrees[ranking], stable=True).indices]
    side = math.ceil(math.log2(n)) if n > 1 else 0
    ended = ranking.new_full((side,), -1)
    windows = torch.cat([ended, ranking, ended]).unfold(0, 2 * side + 1, 1)  # (n, 2 side + 1)
    chosen = torch.empty(n, 2 * side, dtype=torch.int64, device=degrees.device)
    chosen[ranking] = torch.cat([windows[:, :side], windows[:, side + 1 :]], dim=1)
    return chosen


def similar_nodes(weights: Tensor, near: Tensor, metric: str = "dtw") -> tuple[Tensor, Tensor]:
    """Return the candidates (n, c), ascending, and how likely each is drawn; see ``SimilarNodes``."""
    n, c = near.shape
    near = torch.where(near < 0, n, near).sort(dim=1).values
    found = torch.full((n * c,), math.inf, device=weights.device)
    slots = (near.view(-1) < n).nonzero().ravel()
    for some in slots.split(_PAIRS_TOGETHER):
        found[some] = distances(weights, some // c, near.view(-1)[some], metric)
    nearest = found.view(n, c).amin(1, keepdim=True) if c else found.view(n, c)
    chances = (torch.where(nearest.isfinite(), nearest, 0.0) - found.view(n, c)).exp()
    chances = chances / chances.sum(1, keepdim=True).clamp_min(1e-30)
    return torch.where(near < n, near, -1), chances


def distances(weights: Tensor, left: Tensor, right: Tensor, metric: str = "dtw") -> Tensor:
    """Return the distances of profiles ``weights[left]`` to ``weights[right]``, float32 (m,)."""
    if metric == "euclidean":
        return (weights[left] - weights[right]).square().sum(1).sqrt()
    if metric == "cosine":
        units = torch.nn.functional.normalize(weights, dim=1)
        return (1 - (units[left] * units[right]).sum(1)).clamp_min(0)
    return _warped(weights[left].T.contiguous(), weights[right].T.contiguous())


def _warped(a: Tensor, b: Tensor) -> Tensor:
    """Dynamic time warping of columns (k, m), one diagonal of the table at a time."""
    k, m = a.shape
    b = b.flip(0)  # the cells of a diagonal then lie side by side in both
    over_a, over_b = 1 / (a + _OFFSET), 1 / (b + _OFFSET)
    # Cells by row, from 1 on; row 0 and what a diagonal does not have are far.
    before, last = (a.new_full((k + 1, m), _FAR) for _ in range(2))
    before[0] = 0  # the corner above the first cell
    for diagonal in range(2 * k - 1):
        low, high = max(0, diagonal - k + 1), min(diagonal, k - 1) + 1
        shift = k - 1 - diagonal
        other = slice(low + shift, high + shift)
        cost = (a[low:high] - b[other]).abs() * torch.maximum(over_a[low:high], over_b[other])
        best = torch.minimum(torch.minimum(last[low:high], last[low + 1 : high + 1]), before[low:high])
        before.fill_(_FAR)
        torch.add(best, cost, out=before[low + 1 : high + 1])
        before, last = last, before
    return last[k]
