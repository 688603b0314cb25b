"""GpuEngine: positions, smoothing and profiles on a Torch device."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import DeviceGraph, as_tensor, usable_device
from spinegraph.engines.gpu.positions import positions
from spinegraph.engines.gpu.push import Limits, push, push_kernels
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import AnyGenerator, Progress, Shard
from spinegraph.graph.graph import Graph
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.parts.generator import Generator
from spinegraph.parts.role import PUSH_THRESHOLD, PUSH_TOLERANCE, profile_of
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.smoothing import Smoother, solved_by


class GpuEngine(LocalEngine):
    """Runs the costly stages on a device that Torch knows; results lie in the host's memory.

    Positions, smoothing and profiles are the device's; structural columns are the host's, and so are
    profiles where Torch cannot compile the push kernel. Positions follow from other random walks than on a
    CPU, so the two make other vectors, equally good.

    Parameters
    ----------
    device : str
        Such as "cuda" or "cuda:1".
    """

    def __init__(self, device: str) -> None:
        self.device = usable_device(device)
        self._copied: tuple[Adjacency, DeviceGraph] | None = None

    def fit(self, graph: Graph, config: Config, progress: Progress, *, several: bool = False) -> Generator:
        """Fit all parts on a graph; ``several`` if it is the union of several networks."""
        with solved_by(self._solve):
            return Generator.fit(graph, config, progress, several=several, positions=self._positions)

    def embed(
        self, generator: AnyGenerator, graph: Graph, known: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes, given their training positions."""
        with solved_by(self._solve):
            return super().embed(generator, graph, known)

    def embed_to_folder(self, *given: Any, **settings: Any) -> Path:
        """Write the vectors of all nodes to a folder; see ``engines.local.embed_to_folder``."""
        with solved_by(self._solve):
            return super().embed_to_folder(*given, **settings)

    def role_rows(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, NDArray[np.float32] | None]]:
        """Yield the role part of shards; None where the model has none."""
        around = generator.surroundings(graph)
        for shard in shards:
            some = np.arange(shard.start, shard.stop)
            profile = None if around is None else self.profile(graph, generator.config, some)
            yield shard, generator.role_rows(graph, some, around, profile)

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64]) -> RootedPageRank:
        """Return the profile of some nodes."""
        kernels = push_kernels(self.device) if config.rpr_method == "push" else None
        if kernels is None:
            return profile_of(graph, config, nodes)
        limits = Limits.of(graph.adjacency(), config.near, PUSH_TOLERANCE, PUSH_THRESHOLD)
        roots = as_tensor(nodes, self.device)
        links = self._links(graph.adjacency())
        return push(kernels, links, roots, k=config.k, continuation=config.near, limits=limits).to_host()

    def _positions(self, graph: Graph, width: int, config: Config) -> NDArray[np.float32]:
        return positions(self._links(graph.adjacency()), width, config.seed)

    def _solve(self, smoother: Smoother, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Solve (I - b P) y = (1 - b) values by Chebyshev's iteration, as ``Smoother`` does on the host."""
        b, rows = smoother.continuation, self._links(smoother.adjacency).rows
        scale = as_tensor(smoother.inverse, self.device)[:, None]
        loops = as_tensor(smoother.loops, self.device)[:, None]
        is_alone = scale <= 0  # keeps what it has
        scale, loops = torch.where(is_alone, 1.0, scale), torch.where(is_alone, 1.0, loops)
        given = as_tensor(values, self.device)
        before, now, factor = given, given, 1.0
        for factor in (1.0, *smoother.factors()):
            around = (rows.times(now) + loops * now) * scale
            before, now = now, factor * (b * around + (1 - b) * given) + (1 - factor) * before
        return now.cpu().numpy()

    def _links(self, adjacency: Adjacency) -> DeviceGraph:
        """Return the links on the device; those of the last graph stay there."""
        if self._copied is None or not _are_same(self._copied[0], adjacency):
            self._copied = adjacency, DeviceGraph.of(adjacency, self.device)
        return self._copied[1]


def _are_same(one: Adjacency, other: Adjacency) -> bool:
    """Tell whether two adjacencies are the same arrays; the first is kept, so its memory is its own."""
    arrays: Any = zip(one, other, strict=True)
    return all(a.shape == b.shape and a.ctypes.data == b.ctypes.data for a, b in arrays)
