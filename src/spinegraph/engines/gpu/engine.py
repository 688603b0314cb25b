"""GpuEngine: profiles, training and vectors on a Torch device."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, issparse
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import DeviceGraph, Rows, as_tensor
from spinegraph.engines.gpu.push import DeviceProfile, Limits, push, push_kernels
from spinegraph.engines.gpu.training import DeviceTrainer
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import join_profiles
from spinegraph.generator import Generator, profile_of
from spinegraph.graph.graph import Graph
from spinegraph.learning.training import ACTIVATIONS, learn, train, usable_device
from spinegraph.structure.pagerank import RootedPageRank, Smoothed

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord
    from spinegraph.learning.sampling import PairSampler, TrainingData
    from spinegraph.learning.training import Progress

_MAX_INPUT_BYTES = 1 << 31  # of T F as a dense matrix
_ROOTS_TOGETHER = 1 << 18  # bounds the memory for ties and vectors


class GpuEngine(LocalEngine):
    """Runs the costly stages on a device that Torch knows; results lie in the host's memory.

    Push and training are the device's own; structurally similar nodes, walks and structural columns are the
    host's, and so are profiles where Torch cannot compile the push kernel.

    Parameters
    ----------
    device : str
        Such as "cuda" or "cuda:1".
    """

    def __init__(self, device: str) -> None:
        self.device = usable_device(device)
        self._copied: tuple[Graph, DeviceGraph] | None = None

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        roots = np.arange(len(graph)) if nodes is None else nodes
        starts = range(0, max(len(roots), 1), _ROOTS_TOGETHER)
        parts = (self._push(graph, config, roots[start : start + _ROOTS_TOGETHER]) for start in starts)
        found = [part.to_host() for part in parts if part is not None]
        return join_profiles(found) if found else profile_of(graph, config, nodes)

    def learn(
        self, data: "TrainingData", config: Config, states: "Checkpoints | None", progress: "Progress"
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Return W_M and the training history; pairs are drawn on the device, by the same chances."""
        data = replace(data, smoothed=self._multiplied(data.smoothed))
        # A device draws other pairs than a CPU, so neither resumes from the other's states.
        states = None if states is None else states.apart("on a device")
        return learn(data, config, states, progress, self._train)

    def embed(
        self,
        generator: Generator,
        graph: Graph,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes."""
        inputs, config = generator.inputs, generator.inputs.config
        if profile is None and inputs.columns_smoothed:  # T smooths columns of all nodes
            profile = self.profile(graph, config)
        operator = None if profile is None else Rows.of(profile.operator(config.threads), self.device)
        if columns is None and profile is not None and inputs.columns:
            columns = inputs.structural(graph, None, profile)
        weights = as_tensor(generator.weights, self.device)
        smoothed_weights, direct_weights = weights[: inputs.num_smoothed], weights[inputs.num_smoothed :]
        features = self._features(inputs.around(graph, None, profile, columns))
        # T multiplies the narrower of F and F W.
        smooth_first = smoothed_weights.shape[0] <= smoothed_weights.shape[1]
        right = _dense(features) if smooth_first else _times(features, smoothed_weights)
        vectors = np.empty((len(graph), generator.dim), dtype=np.float32)
        for start in range(0, len(graph), _ROOTS_TOGETHER):
            positions = np.arange(start, min(start + _ROOTS_TOGETHER, len(graph)))
            some = slice(start, start + len(positions))
            if operator is None:
                here, rows = self._smoothing(graph, config, positions)
                direct = inputs.structural(graph, positions, here) if inputs.columns_direct else None
            else:
                rows = operator.part(some.start, some.stop)
                direct = columns[some] if inputs.columns_direct and columns is not None else None
            content = rows.times(right) @ smoothed_weights if smooth_first else rows.times(right)
            found = _shortened(ACTIVATIONS[generator.activation](content), inputs.norm_power)
            if direct is not None:
                found = torch.addmm(found, as_tensor(direct, self.device), direct_weights)
            torch.from_numpy(vectors[some]).copy_(found)
        return vectors

    def _push(self, graph: Graph, config: Config, roots: NDArray[np.int64]) -> DeviceProfile | None:
        """Return the profile of some roots; None where the host has to compute it."""
        kernels = push_kernels(self.device) if config.rpr_method == "push" else None
        if kernels is None:
            return None
        limits = Limits.of(graph.adjacency(), config.continuation, config.tolerance, config.threshold)
        links, some = self._links(graph), as_tensor(roots, self.device)
        return push(kernels, links, some, k=config.k, continuation=config.continuation, limits=limits)

    def _smoothing(
        self, graph: Graph, config: Config, positions: NDArray[np.int64]
    ) -> tuple[RootedPageRank, Rows]:
        """Return the profile of some nodes and their rows of T."""
        found = self._push(graph, config, positions)
        if found is not None:
            return found.to_host(), found.operator()
        profile = profile_of(graph, config, positions)
        return profile, Rows.of(profile.operator(config.threads), self.device)

    def _train(
        self,
        inputs: Any,
        start: NDArray[np.float32],
        sampler: "PairSampler",
        config: Config,
        checkpoints: "Checkpoints | None" = None,
        progress: "Progress | None" = None,
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        config = replace(config, device=str(self.device))
        if 4 * inputs.shape[0] * inputs.shape[1] > _MAX_INPUT_BYTES:
            return train(inputs, start, sampler, config, checkpoints, progress)
        dense = inputs.toarray() if issparse(inputs) else inputs
        return DeviceTrainer(dense, start, sampler, config).train(checkpoints, progress)

    def _multiplied(self, smoothed: Smoothed) -> Smoothed:
        """Multiply T F on the device where it is small, since many products with it follow."""
        rows, columns = smoothed.shape
        if 4 * max(rows, smoothed.features.shape[0]) * columns > _MAX_INPUT_BYTES:
            return smoothed
        features = _dense(self._features(smoothed.features))
        product = Rows.of(smoothed.operator, self.device).times(features)
        return Smoothed(csr_array(eye_array(rows, dtype=np.float32)), product.cpu().numpy(), smoothed.threads)

    def _links(self, graph: Graph) -> DeviceGraph:
        """Return the links on the device; those of the last graph stay there."""
        if self._copied is None or self._copied[0] is not graph:
            self._copied = graph, DeviceGraph.of(graph, self.device)
        return self._copied[1]

    def _features(self, features: Any) -> Rows | Tensor:
        if issparse(features):
            return Rows.of(features, self.device)
        return as_tensor(features, self.device).float()


def _dense(features: Rows | Tensor) -> Tensor:
    return features.dense() if isinstance(features, Rows) else features


def _times(features: Rows | Tensor, right: Tensor) -> Tensor:
    return features.times(right) if isinstance(features, Rows) else features @ right


def _shortened(vectors: Tensor, power: float) -> Tensor:
    """Divide every vector by a power of its length, as ``generator.divide_by_length`` does."""
    if power == 0:
        return vectors
    lengths = vectors.norm(dim=1, keepdim=True)
    return vectors * torch.where(lengths > 0, lengths, 1.0) ** -power
