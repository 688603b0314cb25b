"""Random walks on a device."""

import torch
from torch import Tensor

from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.engines.gpu.push import DeviceProfile, keep_top

ROOTED_WALKS = 1
PLAIN_WALKS = 2
_LOW = 0xFFFFFFFF


def _signed(number: int) -> int:
    """Return 64 bits as Torch holds them."""
    return (number + 2**63) % 2**64 - 2**63


_GAMMA = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def _mix(point: Tensor) -> Tensor:
    point = (point ^ _down(point, 30)) * _FIRST
    point = (point ^ _down(point, 27)) * _SECOND
    return point ^ _down(point, 31)


def _down(bits: Tensor, by: int) -> Tensor:
    """Shift as if there were no sign."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def stream_starts(seed: int, stage: int, keys: Tensor) -> Tensor:
    """Return where the stream of each key starts, int64 (r,)."""
    start = torch.full_like(keys, _signed(seed % 2**64))
    for part in (torch.full_like(keys, stage), keys):
        start = _mix(start + _GAMMA * _mix(part + _GAMMA))
    return start


def draws(starts: Tensor, number: Tensor | int) -> tuple[Tensor, Tensor]:
    """Return draw ``number`` (from 1) of each stream: its high and its low 32 bits, int64."""
    found = _mix(starts + _GAMMA * number)
    return _down(found, 32), found & _LOW


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
    """Walk without return: int32 (r * walks, length); -1 after a root without neighbours."""
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
    """Return the profile of some roots by counting the visits of walks; see ``rooted_pagerank``."""
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
