"""LocalEngine: every stage in this process, on its cores."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.generator import Generator, profile_of
from spinegraph.structure.candidates import candidates
from spinegraph.structure.profile import RootedPageRank
from spinegraph.structure.similarity import SimilarNodes, similar_nodes
from spinegraph.structure.smoothing import Smoothed

if TYPE_CHECKING:
    from spinegraph.learning.history import Moment
    from spinegraph.learning.sampling import PairSampler
    from spinegraph.learning.training import Progress


@dataclass(frozen=True)
class LocalEngine:
    """Runs the stages here; the engine that others are compared with."""

    def profile(self, graph: Any, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        return profile_of(graph, config, nodes)

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structural twins of the nodes of a profile, by place."""
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        return similar_nodes(profile, near, config.similarity, threads=config.threads)  # type: ignore[arg-type]

    def learn(
        self,
        smoothed: Smoothed,
        past: NDArray[np.float32] | None,
        sampler: "PairSampler",
        config: Config,
        data: str,
        power: float,
        checkpoint: str | Path | None,
        progress: "Progress",
    ) -> "tuple[NDArray[np.float32], list[Moment]]":
        """Return W_M and the training history."""
        from spinegraph.learning.fitting import learn

        return learn(smoothed, past, sampler, config, data, power, checkpoint, progress)

    def embed(
        self, generator: Generator, graph: Any, profile: RootedPageRank | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes."""
        return generator.embed(graph, profile=profile)
