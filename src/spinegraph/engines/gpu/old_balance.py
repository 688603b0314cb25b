"""To be removed."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import DeviceGraph, Rows

# As in learning/balance.py and structure/affinity.py.
_UNKNOWN, _MOST, _NO_SIGN, _DEVIATIONS, _ODDS = 0.1, 0.5, 0.99, 3.0, 0.25
_LEAST_EDGES, _MOST_EDGES, _SHUFFLES, _STAGE = 100, 10_000, 10, 31


def balanced(config: Config, graph: DeviceGraph) -> Config:
    """Return the settings with a ``structural_share``: more, the less the features tell about links."""
    if config.structural_share is not None:
        return config
    if len(graph.indices) < 2 * _LEAST_EDGES or graph.features is None:
        return replace(config, structural_share=_UNKNOWN)
    strength, deviations = affinity(graph, config.seed)
    odds = _ODDS * ((1 - strength) / max(strength, 1e-6)) ** 2
    share = _NO_SIGN if deviations < _DEVIATIONS else min(odds / (1 + odds), _MOST)
    return replace(config, structural_share=share)


def affinity(graph: DeviceGraph, seed: int) -> tuple[float, float]:
    """Return strength and deviations of ``structure.affinity``, from the same sample of edges."""
    rng, device, nnz = np.random.default_rng([seed, _STAGE]), graph.device, len(graph.indices)
    picked = rng.integers(nnz, size=_MOST_EDGES) if nnz > _MOST_EDGES else np.arange(nnz)
    edges = torch.from_numpy(picked).to(device)
    ends = torch.stack([torch.searchsorted(graph.indptr, edges, right=True) - 1, graph.indices[edges].long()])
    seen, places = ends.unique(return_inverse=True)
    left, right = places
    features = graph.features
    rows = features.take(seen).dense() if isinstance(features, Rows) else features[seen]  # type: ignore[index]
    rows = torch.nn.functional.normalize(rows, dim=1)

    def cosines(one: Tensor, other: Tensor) -> Tensor:
        return (rows[one] * rows[other]).sum(1).double()

    def shuffled(count: int) -> Tensor:
        return torch.from_numpy(rng.permutation(count)).to(device)

    linked = cosines(left, right)
    elsewhere = cosines(left, right[shuffled(len(right))]).sort().values
    dealt = torch.stack(
        [
            cosines(order[left], order[right]).mean()
            for order in (shuffled(len(seen)) for _ in range(_SHUFFLES))
        ]
    )
    below = torch.searchsorted(elsewhere, linked) + torch.searchsorted(elsewhere, linked, right=True)
    wins = float(below.double().mean()) / (2 * len(elsewhere))
    above = float(linked.mean() - dealt.mean())
    return max(0.0, 2 * wins - 1), above / max(float(dealt.std()), 1e-12)
