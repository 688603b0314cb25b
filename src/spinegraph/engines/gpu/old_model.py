"""To be removed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.generator import DeviceGenerator, bounded, columns_of, profile_of
from spinegraph.engines.gpu.graph import DeviceGraph, Rows
from spinegraph.engines.gpu.old_balance import balanced
from spinegraph.engines.gpu.old_corpus import gather_corpus
from spinegraph.engines.gpu.old_fitting import learn
from spinegraph.engines.gpu.similar import candidates, similar_nodes
from spinegraph.engines.gpu.training import DevicePairs
from spinegraph.errors import MissingFeaturesError
from spinegraph.learning.checkpoint import TrainingRecord


@dataclass(frozen=True, eq=False)
class DeviceModel:
    """What ``fit`` returns.

    Attributes
    ----------
    generator : DeviceGenerator
        ``generator.embed(graph)`` yields the vectors of any graph with the same features.
    history : list of TrainingRecord
    seconds : dict
        Time by stage.
    """

    generator: DeviceGenerator
    history: list[TrainingRecord]
    seconds: dict[str, float]


def fit(graph: DeviceGraph, config: Config | None = None) -> DeviceModel:
    """Learn a generator from a network with features that lies on a device.

    What ``SPINE.fit`` does with structural columns past T, for networks made or loaded on the device itself.
    """
    if graph.features is None:
        raise MissingFeaturesError(
            "the graph has no features; SPINE(device='cuda').fit makes columns instead"
        )
    clock = _Clock(graph.device)
    with clock("balance"):
        config = balanced(config or Config(), graph)
    with clock("walks"):
        corpus = gather_corpus(graph, config)
        degrees = graph.degrees[corpus.nodes]
    with clock("profiles of training nodes"):
        profile = profile_of(graph, config, corpus.nodes)
        columns = columns_of(graph, corpus.nodes, profile)
        mean, deviation = columns.mean(0), columns.std(0, correction=0)
        scale = torch.where(deviation > 1e-6, deviation, 1.0)
    with clock("structural twins"):
        near = candidates(degrees, profile.weights, config.candidates)
        pairs = DevicePairs(
            corpus.walks, similar_nodes(profile.weights, near, config.similarity), degrees, config
        )
    with clock("features around training nodes"):
        inputs = _smoothed(graph, profile.operator())
    with clock("training"):
        past = bounded(columns, mean, scale)
        weights, history = learn(inputs, past, pairs, config, config.norm_power)
    return DeviceModel(
        DeviceGenerator(config, weights, mean, scale, config.norm_power), history, clock.seconds
    )


def _smoothed(graph: DeviceGraph, operator: Rows) -> Tensor:
    """Return T F of some nodes, (m, f), reading only the rows of F that T needs."""
    seen, places = operator.indices.long().unique(return_inverse=True)
    features = graph.features
    assert features is not None
    rows = features.take(seen).dense() if isinstance(features, Rows) else features[seen]
    return Rows(operator.indptr, places, operator.values, len(seen)).times(rows)


class _Clock:
    """Times stages, each until the device has done it."""

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = {}
        self._settle: Callable[[], None] = (
            (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else (lambda: None)
        )

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self._settle()
        self.seconds[stage] = perf_counter() - start
