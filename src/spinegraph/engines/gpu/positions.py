"""Positions of nodes for the place part, on a Torch device; see ``parts.place.positions``."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinegraph.engines.gpu.graph import DeviceGraph, Rows
from spinegraph.parts.place import CONTINUATION, LENGTH, ROUNDS, Plan

_STEPS_TOGETHER = 1 << 26  # of walks, to bound memory
_OVERSAMPLING = 16  # additional directions of the random projection


def positions(graph: DeviceGraph, width: int, seed: int) -> NDArray[np.float32]:
    """Return positions (n, p) of a graph's nodes, from the visits of random walks."""
    n = len(graph)
    plan = Plan.of(n, width)
    draws = torch.Generator(device=graph.device).manual_seed(seed)
    roots = max(1, _STEPS_TOGETHER // (plan.walks * LENGTH))
    blocks = [_ratios(graph, start, min(start + roots, n), plan, draws) for start in range(0, n, roots)]
    counts = torch.cat([block[0] for block in blocks])
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    indices, values = (torch.cat([block[i] for block in blocks]) for i in (1, 2))
    matrix = Rows(indptr, indices, values, n)
    transposed = _transposed(matrix)

    def times(right: Tensor) -> Tensor:
        return (matrix.times(right) + transposed.times(right)) / 2

    directions, scales = _main_directions(times, n, plan.width, draws)
    return (times(directions) / scales.clamp_min(1e-6).sqrt()).cpu().numpy()


def _ratios(
    graph: DeviceGraph, start: int, stop: int, plan: Plan, draws: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return, for roots from start to stop, the number of nodes kept (r,), these, and log visit ratios."""
    n, device = len(graph), graph.device
    roots = torch.arange(start, stop, device=device).repeat_interleave(plan.walks)
    degrees = graph.indptr.diff()
    here, seen = roots, [roots]
    for _ in range(LENGTH - 1):
        goes = torch.rand(len(roots), generator=draws, device=device) < CONTINUATION
        here = torch.where(goes & (degrees[here] > 0), graph.step(here, draws), roots)
        seen.append(here)
    visits = torch.stack(seen, dim=1)  # (r walks, length)
    keys, counts = torch.unique(((roots - start)[:, None] * n + visits).view(-1), return_counts=True)
    rows, nodes = keys // n, keys % n
    order = torch.argsort(rows * (plan.walks * LENGTH + 1) - counts, stable=True)
    rows, nodes, counts = rows[order], nodes[order], counts[order]
    firsts = torch.searchsorted(rows, torch.arange(stop - start, device=device))
    rank = torch.arange(len(rows), device=device) - firsts[rows]
    strengths = torch.where(graph.strengths > 0, graph.strengths, 1)
    values = (counts / (plan.walks * LENGTH) / (strengths / strengths.sum())[nodes]).log()
    is_kept = (rank < plan.visited) & (values > 0)
    rows, nodes, values = rows[is_kept], nodes[is_kept], values[is_kept]
    return torch.bincount(rows, minlength=stop - start), nodes.int(), values.float()


def _transposed(matrix: Rows) -> Rows:
    n = matrix.width
    rows = torch.repeat_interleave(torch.arange(n, device=matrix.indptr.device), matrix.indptr.diff())
    order = torch.argsort(matrix.indices, stable=True)
    counts = torch.bincount(matrix.indices, minlength=n)
    indptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return Rows(indptr, rows[order].int(), None if matrix.values is None else matrix.values[order], n)


def _main_directions(
    times: Callable[[Tensor], Tensor], n: int, count: int, draws: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the leading singular vectors (n, count) of a symmetric matrix, and its singular values."""
    found = torch.randn(n, min(count + _OVERSAMPLING, n), generator=draws, device=draws.device)
    for _ in range(2 * ROUNDS):
        found = times(_orthonormal(found))
    found = _orthonormal(found)
    small = times(found)
    squares, vectors = torch.linalg.eigh(small.T.double() @ small.double())
    directions = found @ vectors.flip(1)[:, :count].float()
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return directions * largest.sign(), squares.flip(0)[:count].clamp_min(0).sqrt().float()


def _orthonormal(columns: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh((columns.T @ columns).double())
    kept = values > 1e-10 * values.max()
    basis: Tensor = columns @ (vectors[:, kept] / values[kept].sqrt()).float()
    return basis
