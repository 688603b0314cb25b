"""GpuEngine: positions, smoothing and profiles on a Torch device."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import DeviceGraph, Rows, as_tensor, usable_device
from spinegraph.engines.gpu.positions import positions
from spinegraph.engines.gpu.push import Limits, push, push_kernels
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import AnyGenerator, Progress, Shard, plan
from spinegraph.graph.graph import Graph
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.parts.content import Content, encode, smoothers
from spinegraph.parts.generator import Chunk, Generator
from spinegraph.parts.place import KNOWN_MASS, Place
from spinegraph.parts.role import PUSH_THRESHOLD, PUSH_TOLERANCE, profile_of
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.smoothing import Smoother, solved_by

_THREADS = 4  # of the host, that prepare rows for the device and read what it found


class GpuEngine(LocalEngine):
    """Runs the costly stages on a device that Torch knows; results lie in the host's memory.

    Positions, content, smoothing and profiles are the device's; structural columns are the host's, and so
    are profiles where Torch cannot compile the push kernel. All features are copied to the device. Positions
    follow from other random walks than on a CPU, so the two make other vectors, equally good.

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

    def smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: NDArray[np.int64] | None
    ) -> Iterator[tuple[Chunk, NDArray[np.float32]]]:
        """Yield the values (n, c) of chunks."""
        around, features = smoothers(graph, generator.config), None
        for chunk in chunks:
            if chunk.part == "content":
                assert generator.content is not None
                features = self._features(generator.content, graph) if features is None else features
                found = self._content(generator.content, features, around, chunk.columns)
            else:
                assert generator.place is not None
                assert known is not None
                found = self._place(generator.place, around[0], known, chunk.columns)
            yield chunk, found.cpu().numpy()

    def _features(self, content: Content, graph: Graph) -> list[Rows | Tensor]:
        """Return the scaled features of all nodes on the device, some rows each."""

        def some(shard: Shard) -> Rows | Tensor:
            rows = encode(content.encoder, graph, np.arange(shard.start, shard.stop))
            if not issparse(rows):
                return as_tensor(rows, self.device)
            indptr, indices, data = (
                as_tensor(each, self.device) for each in (rows.indptr, rows.indices, rows.data)
            )
            return Rows(indptr, indices, data, rows.shape[1])

        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(some, plan(len(graph))))

    def _content(
        self, content: Content, features: list[Rows | Tensor], around: tuple[Smoother, ...], columns: slice
    ) -> Tensor:
        """Return some columns (n, c) of the map's values, as ``Content.smoothed``."""

        def times(part: NDArray[np.float32]) -> Tensor:
            right = as_tensor(content.directions @ part[:, columns], self.device)
            return torch.cat(
                [rows.times(right) if isinstance(rows, Rows) else rows @ right for rows in features]
            )

        found = times(content.mixing[0])
        for smoother, part in zip(around, content.mixing[1:], strict=True):
            found += self._smooth(smoother, times(part))
        return found

    def _place(self, place: Place, near: Smoother, known: NDArray[np.int64], columns: slice) -> Tensor:
        """Return some columns (n, c) of places, as ``Place.smoothed``."""
        some = as_tensor(np.ascontiguousarray(place.positions[:, columns]), self.device)
        at = as_tensor(known, self.device)
        is_known = (at >= 0)[:, None]
        values = torch.cat([torch.where(is_known, some[at.clamp_min(0)], 0.0), is_known.float()], dim=1)
        sums, mass = self._smooth(near, values).tensor_split([-1], dim=1)
        return torch.where(mass >= KNOWN_MASS, sums / mass.clamp_min(KNOWN_MASS), 0.0)

    def role_rows(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, NDArray[np.float32] | None]]:
        """Yield the role part of shards; None where the model has none."""
        around, waiting = generator.surroundings(graph), deque[tuple[Shard, Future[Any]]]()
        with ThreadPoolExecutor(_THREADS) as pool:
            for shard in shards:
                some = np.arange(shard.start, shard.stop)
                profile = None if around is None else self.profile(graph, generator.config, some)
                waiting.append((shard, pool.submit(generator.role_rows, graph, some, around, profile)))
                if len(waiting) > 2 * _THREADS:  # bounds memory
                    first, found = waiting.popleft()
                    yield first, found.result()
            for shard, found in waiting:
                yield shard, found.result()

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

    def _smooth(self, smoother: Smoother, values: Tensor) -> Tensor:
        """Return T values, (n, d), as ``Smoother.smooth``."""
        scale = as_tensor(smoother.root_degrees, self.device) if smoother.symmetric else 1.0
        return self._solved(smoother, values / scale) * scale

    def _solve(self, smoother: Smoother, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Solve (I - b P) y = (1 - b) values, as ``Smoother`` does on the host."""
        found: NDArray[np.float32] = self._solved(smoother, as_tensor(values, self.device)).cpu().numpy()
        return found

    def _solved(self, smoother: Smoother, given: Tensor) -> Tensor:
        """Solve (I - b P) y = (1 - b) given by Chebyshev's iteration, or plainly for directed walks."""
        b, rows = smoother.continuation, self._links(smoother.adjacency).rows
        scale = as_tensor(smoother.inverse, self.device)[:, None]
        loops = as_tensor(smoother.loops, self.device)[:, None]
        is_alone = scale <= 0  # keeps what it has
        scale, loops = torch.where(is_alone, 1.0, scale), torch.where(is_alone, 1.0, loops)
        before, now, factor = given, given, 1.0
        for factor in (1.0, *smoother.factors()):
            around = (rows.times(now) + loops * now) * scale
            before, now = now, factor * (b * around + (1 - b) * given) + (1 - factor) * before
        return now

    def _links(self, adjacency: Adjacency) -> DeviceGraph:
        """Return the links on the device; those of the last graph stay there."""
        if self._copied is None or not _are_same(self._copied[0], adjacency):
            self._copied = adjacency, DeviceGraph.of(adjacency, self.device)
        return self._copied[1]


def _are_same(one: Adjacency, other: Adjacency) -> bool:
    """Tell whether two adjacencies are the same arrays; the first is kept, so its memory is its own."""
    arrays: Any = zip(one, other, strict=True)
    return all(a.shape == b.shape and a.ctypes.data == b.ctypes.data for a, b in arrays)
