"""To be removed."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.engines.gpu.walks import plain_walks

_CORPUS = 101  # as in learning/sampling.py


@dataclass(frozen=True, eq=False)
class DeviceCorpus:
    """Training nodes and walks.

    Attributes
    ----------
    nodes : int64 tensor (m,)
        Positions in the graph, ascending.
    walks : int64 tensor (w, l)
        Places in ``nodes``; -1 after a dead end.
    """

    nodes: Tensor
    walks: Tensor


def gather_corpus(graph: DeviceGraph, config: Config) -> DeviceCorpus:
    """Walk as ``learning.sampling.gather_corpus`` does; without edge weights the corpus is the same."""
    n, length, most = len(graph), config.local_walk_length, config.training_nodes
    if n <= most:
        every = torch.arange(n, device=graph.device)
        walks = plain_walks(graph, every, config.local_walks, length, config.seed)
        return DeviceCorpus(every, walks.long())
    rng = np.random.default_rng([config.seed, _CORPUS])
    roots = torch.from_numpy(rng.permutation(n)[:most]).to(graph.device)
    return _first_met(plain_walks(graph, roots, 1, length, config.seed).long(), most)


def _first_met(walks: Tensor, most: int) -> DeviceCorpus:
    """Keep the leading walks that together meet at most ``most`` nodes."""
    nodes, order = walks.view(-1).sort(stable=True)
    first = order[torch.cat([order.new_ones(1, dtype=torch.bool), nodes[1:] != nodes[:-1]])]
    new = torch.bincount(first // walks.shape[1], minlength=len(walks))
    count = int((new.cumsum(0) <= most).sum())
    kept = walks[:count] if count else walks[:1, : int(first.sort().values[most])]
    nodes = kept[kept >= 0].unique()
    places = torch.where(kept >= 0, torch.searchsorted(nodes, kept.contiguous()), -1)
    return DeviceCorpus(nodes, places)
