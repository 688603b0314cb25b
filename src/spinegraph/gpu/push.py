"""Rooted PageRank by push on a device: by the CUDA kernel where there is one, else by sorting.

Both do what kernels/push.py does, round by round and level by level, so values differ by rounding alone.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spinegraph.gpu.graph import DeviceGraph
from spinegraph.gpu.profile import DeviceProfile
from spinegraph.gpu.push_kernel import push_by_kernel, push_kernels
from spinegraph.gpu.topk import TIE, keep_top

# As in kernels/push.py, which says why.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.5671432904097838
_NEXT_BOUNDED_LEVEL = 0.2078795763507619
_LEAST_LEVEL = 0.9999998765432101
_MARGIN = 1.0 - 1e-7
_MOST_SWEPT = 1 << 17
_ROOTS_TOGETHER = 1024


@dataclass(frozen=True)
class Limits:
    """When a root's push ends.

    Attributes
    ----------
    goal : float
        Residual mass.
    least : float
        Level of residual mass per neighbour; 0: none.
    budget : int
        Edges after which every node is pushed in every round; -1: never.
    """

    goal: float
    least: float
    budget: int

    @classmethod
    def of(cls, graph: DeviceGraph, continuation: float, tolerance: float, threshold: float) -> "Limits":
        """Return the limits that the CPU keeps."""
        goal, budget = tolerance * _MARGIN / continuation, -1
        if threshold == 0 and len(graph) <= _MOST_SWEPT:
            rest, rounds = 1.0, 0
            while rest > goal:
                rest, rounds = rest * continuation, rounds + 1
            budget = len(graph.indices) * rounds // 50
        return cls(goal, threshold * _LEAST_LEVEL, budget)


def push(
    graph: DeviceGraph,
    roots: Tensor,
    *,
    k: int,
    continuation: float,
    tolerance: float,
    threshold: float = 0.0,
) -> DeviceProfile:
    """Return the profile of some roots; see ``rooted_pagerank``.

    Parameters
    ----------
    graph : DeviceGraph
    roots : int64 tensor (r,)
    k, continuation, tolerance, threshold

    Examples
    --------
    >>> pair = DeviceGraph(torch.tensor([0, 1, 2]), torch.tensor([1, 0], dtype=torch.int32))
    >>> push(pair, torch.tensor([1]), k=2, continuation=0.5, tolerance=1e-9).weights.tolist()[0]
    [0.66..., 0.33...]
    """
    limits = Limits.of(graph, continuation, tolerance, threshold)
    kernels = push_kernels(graph.device)
    if kernels is not None:
        bounds = (limits.goal, limits.least, limits.budget)
        return push_by_kernel(kernels, graph, roots, k, continuation, bounds)
    parts = [push_by_sorting(graph, some, k, continuation, limits) for some in roots.split(_ROOTS_TOGETHER)]
    return DeviceProfile.joined(parts or [push_by_sorting(graph, roots, k, continuation, limits)])


def push_by_sorting(
    graph: DeviceGraph, roots: Tensor, k: int, continuation: float, limits: Limits
) -> DeviceProfile:
    """Push several roots side by side, by Torch's operations alone."""
    state = _Residuals(graph, roots, continuation)
    degrees = graph.degrees[roots].clamp_min(1).double()
    level = (_FIRST_LEVEL / degrees).clamp_min(limits.least)  # (r,)
    falls = _NEXT_BOUNDED_LEVEL if limits.least > 0 else _NEXT_LEVEL
    running = graph.degrees[roots] > 0
    leaving = running[state.rows]  # the root is always pushed
    while bool(running.any()):
        state.push(leaving)
        over = (state.edges > limits.budget) if limits.budget >= 0 else torch.zeros_like(running)
        running &= (state.rest > limits.goal) & ~over
        leaving = state.above(level) & running[state.rows]
        busy = torch.zeros_like(running)
        busy[state.rows[leaving]] = True
        # Where no node is above the level it falls, until some node is or the last level is done.
        while bool((idle := running & ~busy).any()):
            running &= ~(idle & (level <= limits.least))
            idle &= running
            level = torch.where(idle, (level * falls).clamp_min(limits.least), level)
            leaving = state.above(level) & running[state.rows]
            busy = ~running
            busy[state.rows[leaving]] = True
    if limits.budget >= 0:
        state.sweep(state.edges > limits.budget, limits.goal)
    state.rest[graph.degrees[roots] == 0] = 0
    profile = keep_top(state.rows, state.nodes, state.values(), roots, len(graph), k, TIE)
    return replace(profile, unassigned=state.rest * continuation)


class _Residuals:
    """What the nodes that several roots reach hold; entries are ordered by root, then node."""

    def __init__(self, graph: DeviceGraph, roots: Tensor, continuation: float) -> None:
        self.graph, self.continuation, self.alone = graph, continuation, graph.degrees[roots] == 0
        self.rows, self.nodes = torch.arange(len(roots), device=graph.device), roots
        self.residual = torch.ones(len(roots), dtype=torch.float64, device=graph.device)
        self.received = self.residual.clone()
        self.rest = self.residual.clone()  # (r,)
        self.edges = torch.zeros(len(roots), dtype=torch.int64, device=graph.device)

    def above(self, level: Tensor) -> Tensor:
        """Say which entries hold more than their root's level per neighbour."""
        return self.residual > level[self.rows] * self.graph.degrees[self.nodes]

    def values(self) -> Tensor:
        """Return what each entry is worth: the part of all it received that it keeps."""
        return torch.where(self.alone[self.rows], 1.0, (1 - self.continuation) * self.received)

    def push(self, leaving: Tensor) -> None:
        """Spread the residuals of some entries, by what they held when the round began."""
        graph, amount = self.graph, self.residual[leaving]
        sources, rows = self.nodes[leaving], self.rows[leaving]
        self.residual = self.residual.masked_fill(leaving, 0.0)
        self.rest.index_add_(0, rows, -(1 - self.continuation) * amount)
        self.edges.index_add_(0, rows, graph.degrees[sources])
        edges, owners = graph.edges_of(sources)
        given = (self.continuation * amount / graph.strengths[sources])[owners]
        if graph.weights is not None:
            given = given * graph.weights[edges]
        n = len(graph)
        reached = rows[owners] * n + graph.indices[edges]
        keys, places = torch.unique(torch.cat([self.rows * n + self.nodes, reached]), return_inverse=True)
        held = len(self.rows)
        residual = self.residual.new_zeros(len(keys))
        received = residual.clone()
        residual[places[:held]], received[places[:held]] = self.residual, self.received
        self.residual = residual.index_add_(0, places[held:], given)
        self.received = received.index_add_(0, places[held:], given)
        self.rows, self.nodes = keys // n, keys % n

    def sweep(self, chosen: Tensor, goal: float) -> None:
        """Push every entry of some roots until their residual mass is down to the goal."""
        while bool((due := chosen & (self.rest > goal)).any()):
            self.push(due[self.rows] & (self.residual > 0))
