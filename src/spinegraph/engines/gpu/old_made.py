"""To be removed."""

import torch

from spinegraph.engines.gpu.graph import DeviceGraph, Rows

_ONES = 10


def random_graph(
    num_nodes: int,
    edges_per_node: int,
    features: int,
    *,
    seed: int = 0,
    heavy_tailed: bool = False,
    device: torch.device | str = "cuda",
) -> DeviceGraph:
    """Return a graph like that of ``made.random_graph``, its features scaled to rows of length 1.

    Parameters
    ----------
    num_nodes, edges_per_node : int
        The mean degree is twice ``edges_per_node``, less the few edges drawn more than once.
    features : int
        Columns of sparse features, up to ten of them a node.
    heavy_tailed : bool
        Degrees follow a power law of exponent near 2.5.
    """
    draw = torch.Generator(device=device).manual_seed(seed)
    count = num_nodes * edges_per_node
    if heavy_tailed:
        chances = torch.rand(num_nodes, generator=draw, device=device, dtype=torch.float64)
        reach = ((1 - chances) ** (-1 / 1.5)).cumsum(0)
        place = torch.rand(2, count, generator=draw, device=device, dtype=torch.float64) * reach[-1]
        ends = torch.searchsorted(reach, place, right=True).clamp_max(num_nodes - 1)
    else:
        ends = torch.randint(num_nodes, (2, count), generator=draw, device=device)
    ends = ends[:, ends[0] != ends[1]]
    keys = torch.cat([ends[0] * num_nodes + ends[1], ends[1] * num_nodes + ends[0]])
    del ends
    keys = torch.sort(keys).values
    keys = keys[torch.cat([keys.new_ones(1, dtype=torch.bool), keys[1:] != keys[:-1]])]
    places = torch.arange(num_nodes + 1, device=device) * num_nodes
    indptr, indices = torch.searchsorted(keys, places), (keys % num_nodes).int()
    return DeviceGraph(indptr, indices, features=_features(num_nodes, features, draw))


def _features(num_nodes: int, columns: int, draw: torch.Generator) -> Rows:
    ones, device = min(_ONES, columns), draw.device
    chosen = torch.randint(columns, (num_nodes, ones), generator=draw, device=device, dtype=torch.int32)
    chosen = chosen.sort(dim=1).values
    fresh = torch.ones_like(chosen, dtype=torch.bool)
    fresh[:, 1:] = chosen[:, 1:] != chosen[:, :-1]
    lengths = fresh.sum(1)
    indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    values = lengths.float().rsqrt()[:, None].expand(-1, ones)[fresh]
    return Rows(indptr, chosen[fresh], values, columns)
