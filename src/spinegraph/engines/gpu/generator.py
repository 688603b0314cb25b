"""The generator on a device: profiles, T F W_M and structural columns, in chunks of nodes."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import DeviceGraph, Rows
from spinegraph.engines.gpu.old_fitting import shortened
from spinegraph.engines.gpu.push import DeviceProfile, push
from spinegraph.engines.gpu.training import ACTIVATIONS
from spinegraph.engines.gpu.walks import count_walks

COLUMNS = ("log_degree", "log_profile_3")
_OFFSET, _BOUND, _PLACE = 1e-3, 2.0, 3
_NODES_TOGETHER = 1 << 18


def profile_of(
    graph: DeviceGraph, config: Config, roots: Tensor, keys: Tensor | None = None
) -> DeviceProfile:
    """Return the profile of some nodes with the settings of a config."""
    if config.rpr_method == "push":
        bounds = {"tolerance": config.tolerance, "threshold": config.threshold}
        return push(graph, roots, k=config.k, continuation=config.continuation, **bounds)
    return count_walks(
        graph,
        roots,
        k=config.k,
        continuation=config.continuation,
        walks=config.walks,
        walk_length=config.walk_length,
        seed=config.seed,
        keys=keys,
    )


def columns_of(graph: DeviceGraph, roots: Tensor, profile: DeviceProfile) -> Tensor:
    """Return the structural columns that stand beside features, float32 (r, 2), not yet standardised."""
    third = profile.weights[:, _PLACE - 1].double() if profile.k >= _PLACE else profile.mass * 0
    return torch.stack([graph.degrees[roots].double().log1p(), (third + _OFFSET).log()], dim=1).float()


def bounded(columns: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """Return standardised columns, softly bounded as in ``Inputs.structural``."""
    return _BOUND * torch.tanh((columns - mean) / (scale * _BOUND))


@dataclass(frozen=True, eq=False)
class DeviceGenerator:
    """W_M and how its inputs are made; e = activation(T F W_M), shortened, + columns W_M.

    Attributes
    ----------
    config : Config
    weights : float32 tensor (f + s, d)
    mean, scale : float32 tensors (s,)
        Of the structural columns past T; s is 2, or 0 for none.
    power : float
        Power of the length that content is divided by.
    """

    config: Config
    weights: Tensor
    mean: Tensor
    scale: Tensor
    power: float

    def embed(
        self,
        graph: DeviceGraph,
        profile: DeviceProfile | None = None,
        keys: Tensor | None = None,
        together: int = _NODES_TOGETHER,
    ) -> Iterator[Tensor]:
        """Yield the vectors of all nodes in graph order, float32 (some, d) at a time.

        ``profile`` of all nodes saves computing it again; ``keys`` (n,) are what walks are drawn by.
        """
        n, s = len(graph), len(self.mean)
        through = self.weights[: len(self.weights) - s]
        # T F has fewer columns than T F W or more: the narrower is gathered.
        narrow = through.shape[0] <= through.shape[1]
        right = _wide(graph.features) if narrow else _times(graph.features, through)
        operator = None if profile is None else profile.operator()
        for start in range(0, n, together):
            stop = min(start + together, n)
            roots = torch.arange(start, stop, device=graph.device)
            some = None if keys is None else keys[start:stop]
            here = (
                profile_of(graph, self.config, roots, some) if profile is None else profile.part(start, stop)
            )
            rows = here.operator() if operator is None else operator.part(start, stop)
            content = rows.times(right) @ through if narrow else rows.times(right)
            vectors = shortened(ACTIVATIONS[self.config.activation](content), self.power)
            if s:
                columns = bounded(columns_of(graph, roots, here), self.mean, self.scale)
                vectors = torch.addmm(vectors, columns, self.weights[len(through) :])
            yield vectors


def _wide(features: "Rows | Tensor | None") -> Tensor:
    assert features is not None
    return features.dense() if isinstance(features, Rows) else features


def _times(features: "Rows | Tensor | None", right: Tensor) -> Tensor:
    assert features is not None
    return features.times(right) if isinstance(features, Rows) else features @ right
