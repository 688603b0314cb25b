"""GpuEngine: profiles, similar nodes, training and vectors on a Torch device."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, issparse

from spinegraph.config import Config
from spinegraph.engines.gpu.generator import COLUMNS, DeviceGenerator, profile_of
from spinegraph.engines.gpu.graph import DeviceGraph, Rows, features_of, tensor_of
from spinegraph.engines.gpu.push import DeviceProfile
from spinegraph.engines.gpu.similar import candidates, similar_nodes
from spinegraph.engines.gpu.training import DevicePairs, DeviceTrainer
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import draw_keys
from spinegraph.learning.training import learn, train, usable_device
from spinegraph.structure.pagerank import RootedPageRank, Smoothed
from spinegraph.structure.similarity import SimilarNodes

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord
    from spinegraph.learning.sampling import PairSampler, TrainingData
    from spinegraph.learning.training import Progress


_MOST_INPUTS = 1 << 31  # bytes of T F that training may hold as a dense matrix


class GpuEngine:
    """Runs the stages on a device that Torch knows; what they return lies in the host's memory.

    Parameters
    ----------
    device : str
        Such as "cuda" or "cuda:1".
    """

    def __init__(self, device: str) -> None:
        self.device = usable_device(device)
        self._copied: tuple[Any, DeviceGraph] | None = None

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        roots = np.arange(len(graph)) if nodes is None else nodes
        keys = self._keys(graph, config, roots)
        found = profile_of(self._links(graph), config, tensor_of(roots, self.device), keys)
        return RootedPageRank(
            nodes=found.nodes.cpu().numpy(),
            weights=found.weights.cpu().numpy(),
            mass=found.mass.cpu().numpy(),
            num_nodes=found.num_nodes,
            kept=found.kept.cpu().numpy(),
            tied_indptr=found.tied_indptr.cpu().numpy(),
            tied_nodes=found.tied_nodes.cpu().numpy(),
            unassigned=None if found.unassigned is None else found.unassigned.cpu().numpy(),
        )

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structural twins of the nodes of a profile, by place."""
        weights = tensor_of(profile.weights, self.device)
        near = candidates(tensor_of(degrees, self.device), weights, config.candidates)
        nodes, chances = similar_nodes(weights, near, config.similarity)
        return SimilarNodes(nodes.int().cpu().numpy(), chances.cpu().numpy())

    def learn(
        self, lesson: "TrainingData", config: Config, states: "Checkpoints | None", progress: "Progress"
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Return W_M and the training history; pairs are drawn on the device, by the same chances."""
        lesson = replace(lesson, smoothed=self._multiplied(lesson.smoothed))
        # Other pairs than a CPU draws: a run that went on from its states would end as neither does.
        states = None if states is None else states.apart("on a device")
        return learn(lesson, config, states, progress, self._train)

    def embed(
        self, generator: Generator, graph: Graph, profile: RootedPageRank | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes."""
        inputs, config = generator.inputs, generator.inputs.config
        here = inputs.columns == COLUMNS and not inputs.through
        if profile is None and inputs.columns and not here:  # other columns are made by the host
            profile = self.profile(graph, config)
        links = self._links(graph)
        features = features_of(inputs.around(graph, None, profile), self.device)
        links = replace(links, features=features)
        past = inputs.columns if inputs.past and here else ()
        rows = inputs.num_through + len(past)
        device = DeviceGenerator(
            config,
            tensor_of(generator.weights[:rows], self.device),
            tensor_of(inputs.mean[: len(past)], self.device),
            tensor_of(inputs.scale[: len(past)], self.device),
            inputs.norm_power,
        )
        keys = self._keys(graph, config, np.arange(len(graph)))
        known = None if profile is None else self._on_device(profile)
        vectors, start = np.empty((len(graph), generator.dim), dtype=np.float32), 0
        for some in device.embed(links, known, keys):
            torch.from_numpy(vectors[start : start + len(some)]).copy_(some)
            start += len(some)
        if inputs.past and not here:
            vectors += inputs.structural(graph, None, profile) @ generator.weights[inputs.num_through :]
        return vectors

    def _train(
        self,
        inputs: Any,
        start: NDArray[np.float32],
        sampler: "PairSampler",
        config: Config,
        checkpoints: "Checkpoints | None" = None,
        progress: "Progress | None" = None,
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Do what ``learning.training.train`` does, without a word to the host between steps."""
        if 4 * inputs.shape[0] * inputs.shape[1] > _MOST_INPUTS:
            return train(inputs, start, sampler, config, checkpoints, progress)
        dense = tensor_of(inputs.toarray() if issparse(inputs) else inputs, self.device)
        similar = sampler.similar
        pairs = DevicePairs(
            tensor_of(sampler.corpus.walks, self.device).long(),
            None
            if similar is None
            else (tensor_of(similar.nodes, self.device).long(), tensor_of(similar.weights, self.device)),
            tensor_of(sampler.degrees, self.device),
            config,
        )
        trainer = DeviceTrainer(dense, tensor_of(start, self.device), pairs, config)
        trained, history = trainer.train(checkpoints, progress)
        return trained.cpu().numpy(), history

    def _multiplied(self, smoothed: Smoothed) -> Smoothed:
        """Multiply T F on the device, where it is small: many products with it follow."""
        rows, columns = smoothed.shape
        if 4 * max(rows, smoothed.features.shape[0]) * columns > _MOST_INPUTS:
            return smoothed
        operator = features_of(smoothed.operator, self.device)
        features = features_of(smoothed.features, self.device)
        assert isinstance(operator, Rows)
        product = operator.times(features.dense() if isinstance(features, Rows) else features)
        return Smoothed(csr_array(eye_array(rows, dtype=np.float32)), product.cpu().numpy(), smoothed.threads)

    def _links(self, graph: Graph) -> DeviceGraph:
        """Return the links on the device; those of the last graph stay there."""
        if self._copied is None or self._copied[0] is not graph:
            self._copied = graph, DeviceGraph.of(graph, self.device)
        return self._copied[1]

    def _keys(self, graph: Graph, config: Config, roots: NDArray[np.int64]) -> torch.Tensor | None:
        """Return what the walks of some nodes are drawn by, their names; push draws nothing."""
        if config.rpr_method == "push":
            return None
        return tensor_of(draw_keys(graph.names[roots]).view(np.int64), self.device)

    def _on_device(self, profile: RootedPageRank) -> DeviceProfile:
        parts = (
            profile.nodes,
            profile.weights,
            profile.mass,
            profile.kept,
            profile.tied_indptr,
            profile.tied_nodes,
        )
        nodes, weights, mass, kept, tied_indptr, tied_nodes = (tensor_of(part, self.device) for part in parts)
        return DeviceProfile(nodes, weights, mass, profile.num_nodes, kept, tied_indptr, tied_nodes)
