"""Interface of an execution backend, and the choice of one by the settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.engines import local
from spinegraph.engines.shards import ROWS, Progress
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import SimilarNodes

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord
    from spinegraph.learning.sampling import TrainingData


class Engine(Protocol):
    """Interface of an execution backend."""

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structurally similar nodes of each node of a profile, as rows of the profile."""

    def learn(
        self, data: "TrainingData", config: Config, states: "Checkpoints | None", progress: Progress
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Return W_M and the training history; see ``learning.training.learn``."""

    def embed(
        self,
        generator: Generator,
        graph: Graph,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes; their profile and columns are computed unless given."""


def engine_for(config: Config) -> Engine:
    """Return the engine that the settings ask for."""
    if config.engine == "ray":
        from spinegraph.engines.ray import RayEngine

        return RayEngine(config.address)
    if config.device.startswith("cuda"):
        from spinegraph.engines.gpu.engine import GpuEngine

        return GpuEngine(config.device)
    return local.LocalEngine()


def embed_to_folder(
    generator: Generator,
    graph: Graph,
    folder: str | Path,
    *,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts, by the engine of the generator's settings.

    See ``engines.local.embed_to_folder`` and ``engines.ray.embed_to_folder``.
    """
    config = generator.inputs.config
    if config.engine == "ray":
        from spinegraph.engines import ray

        return ray.embed_to_folder(
            generator, graph, folder, address=config.address, rows=rows, progress=progress
        )
    return local.embed_to_folder(generator, graph, folder, rows=rows, progress=progress)
