"""Random walks on a device: the CPU's own without weights, alike in distribution with them."""

import torch
from torch import Tensor

from spinegraph.gpu.graph import DeviceGraph
from spinegraph.gpu.profile import DeviceProfile
from spinegraph.gpu.rng import PLAIN_WALKS, ROOTED_WALKS, draws, stream_starts
from spinegraph.gpu.topk import keep_top

_POSITIONS_TOGETHER = 1 << 26
_HALF_A_VISIT = 0.5


def step(graph: DeviceGraph, nodes: Tensor, bits: Tensor) -> Tensor:
    """Return the neighbour that 32 random bits choose for each node; each must have one."""
    start, degrees = graph.indptr[nodes], graph.degrees[nodes]
    if graph.weights is None:
        edges = start + ((bits * degrees) >> 32)
    else:
        sums = graph.weight_sums
        before = torch.where(start > 0, sums[(start - 1).clamp_min(0)], 0.0)
        edges = torch.searchsorted(sums, before + bits * graph.strengths[nodes] / 2**32, right=True)
        edges = torch.minimum(torch.maximum(edges, start), start + degrees - 1)
    return graph.indices[edges].long()


def plain_walks(graph: DeviceGraph, roots: Tensor, walks: int, length: int, seed: int) -> Tensor:
    """Walk without return: int32 (r * walks, length); -1 after a root without neighbours.

    >>> pair = DeviceGraph(torch.tensor([0, 1, 2]), torch.tensor([1, 0], dtype=torch.int32))
    >>> plain_walks(pair, torch.tensor([1]), walks=2, length=4, seed=0).tolist()
    [[1, 0, 1, 0], [1, 0, 1, 0]]
    """
    starts = stream_starts(seed, PLAIN_WALKS, roots).repeat_interleave(walks)
    first = torch.arange(walks, device=roots.device).repeat(len(roots)) * length
    at = roots.repeat_interleave(walks)
    out = torch.full((len(at), length), -1, dtype=torch.int32, device=roots.device)
    out[:, 0] = at.int()
    going = graph.degrees[at] > 0
    at, starts, first = at[going], starts[going], first[going]
    lines = going.nonzero().ravel()
    for position in range(1, length):
        at = step(graph, at, draws(starts, first + position)[0])
        out[lines, position] = at.int()
    return out


def count_walks(
    graph: DeviceGraph,
    roots: Tensor,
    *,
    k: int,
    continuation: float,
    walks: int,
    walk_length: int,
    seed: int,
    keys: Tensor | None = None,
) -> DeviceProfile:
    """Return the profile of some roots by counting the visits of walks; see ``rooted_pagerank``.

    Examples
    --------
    >>> pair = DeviceGraph(torch.tensor([0, 1, 2]), torch.tensor([1, 0], dtype=torch.int32))
    >>> settings = {"continuation": 0.5, "walks": 9, "walk_length": 9, "seed": 0}
    >>> count_walks(pair, torch.tensor([1]), k=2, **settings).nodes.tolist()
    [[1, 0]]
    """
    starts = stream_starts(seed, ROOTED_WALKS, roots if keys is None else keys)
    together = max(1, _POSITIONS_TOGETHER // (walks * walk_length))
    parts = [
        _counted(graph, *some, k, continuation, walks, walk_length)
        for some in zip(roots.split(together), starts.split(together), strict=True)
    ]
    return DeviceProfile.joined(parts)


def _counted(
    graph: DeviceGraph, roots: Tensor, starts: Tensor, k: int, continuation: float, walks: int, length: int
) -> DeviceProfile:
    r, n, device = len(roots), len(graph), roots.device
    visits = roots[:, None, None].repeat(1, walks, length)  # (r, walks, length)
    at = roots[:, None].repeat(1, walks)
    first = torch.arange(walks, device=device) * (length - 1)
    # A root without neighbours never leaves; no other node without neighbours can be reached.
    leaves = (graph.degrees[roots] > 0)[:, None]
    threshold = round(continuation * 2**32)
    for position in range(1, length):
        high, low = draws(starts[:, None], first + position)
        goes = (high < threshold) & leaves
        at = torch.where(goes, at, roots[:, None])
        at[goes] = step(graph, at[goes], low[goes])
        visits[:, :, position] = at
    places = (torch.arange(r, device=device)[:, None] * n + visits.view(r, -1)).view(-1)
    places, order = torch.sort(places, stable=True)
    found, counts = torch.unique_consecutive(places, return_counts=True)
    first_visit = order[counts.cumsum(0) - counts]
    by_visit = torch.sort(first_visit).indices
    found, counts = found[by_visit], counts[by_visit].double()
    profile = keep_top(found // n, found % n, counts, roots, n, k, _HALF_A_VISIT)
    profile.mass.div_(walks * length)
    return profile
