"""GpuEngine: positions, smoothing, structural columns and profiles on a Torch device."""

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
from spinegraph.engines.gpu.push import DeviceProfile, Limits, push, push_kernels
from spinegraph.engines.gpu.role import (
    columns_around,
    embed,
    moments,
    profile_columns,
    structural_columns,
    with_ramps,
)
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import AnyGenerator, Progress, Shard, plan
from spinegraph.graph.graph import Graph
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.parts.content import Content, encode, smoothers
from spinegraph.parts.generator import Chunk, Generator
from spinegraph.parts.paper import PaperGenerator
from spinegraph.parts.place import KNOWN_MASS, Place
from spinegraph.parts.role import PUSH_THRESHOLD, PUSH_TOLERANCE, directed_columns, log_both, profile_of
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.smoothing import Smoother, solved_by

_THREADS = 8  # of the host, that prepare rows for the device and copy what it found


class GpuEngine(LocalEngine):
    """Runs the costly stages on a device that Torch knows; results lie in the host's memory.

    Profiles are the host's where Torch cannot compile the push kernel. All features are copied to the device.
    Positions follow from other random walks than on a CPU, so the two make other vectors, equally good.

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
            found = {"positions": self._positions, "profile": self.profile}
            return Generator.fit(graph, config, progress, several=several, **found)  # type: ignore[arg-type]

    def embed(
        self, generator: AnyGenerator, graph: Graph, known: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes, given their training positions."""
        with solved_by(self._solve):
            if isinstance(generator, PaperGenerator) or 4 * len(graph) * generator.dim > self._room():
                return super().embed(generator, graph, known)
            vectors = torch.zeros((len(graph), generator.dim), device=self.device)
            chunks = generator.chunks(graph, known, self._room() // 16)
            for chunk, values in self._smoothed(generator, graph, chunks, known):
                vectors[:, generator.at(chunk)] = values
            found = np.empty(vectors.shape, np.float32)
            with ThreadPoolExecutor(_THREADS) as pool:  # copy what is finished, while the device goes on
                waiting = deque[Future[None]]()
                for shard, role in self._roles(generator, graph, plan(len(graph))):
                    some = slice(shard.start, shard.stop)
                    _finish(generator, vectors[some], role)
                    waiting.append(pool.submit(_write, *self._staged(vectors[some]), found[some]))
                    if len(waiting) > _THREADS:  # bounds memory
                        waiting.popleft().result()
                for each in waiting:
                    each.result()
            return found

    def embed_to_folder(self, *given: Any, **settings: Any) -> Path:
        """Write the vectors of all nodes to a folder; see ``engines.engine.embed_to_folder``."""
        with solved_by(self._solve):
            return super().embed_to_folder(*given, **settings)

    def smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: NDArray[np.int64] | None
    ) -> Iterator[tuple[Chunk, NDArray[np.float32]]]:
        """Yield the values (n, c) of chunks."""
        for chunk, found in self._smoothed(generator, graph, chunks, known):
            yield chunk, found.cpu().numpy()

    def _smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: NDArray[np.int64] | None
    ) -> Iterator[tuple[Chunk, Tensor]]:
        """Yield the values (n, c) of chunks on the device."""
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
            yield chunk, found

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
            right = as_tensor(content.directions @ part, self.device)
            return torch.cat(
                [rows.times(right) if isinstance(rows, Rows) else rows @ right for rows in features]
            )

        found = times(content.mixing[0][:, columns])
        for smoother, part in zip(around, content.mixing[1:], strict=True):
            used = np.flatnonzero(part[:, columns].any(axis=0))  # the others stay 0
            if len(used):
                found[:, as_tensor(used, self.device)] += self._smooth(
                    smoother, times(part[:, columns][:, used])
                )
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
        for shard, found in self._roles(generator, graph, shards):
            yield shard, None if found is None else found.cpu().numpy()

    def _roles(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, Tensor | None]]:
        """Yield the role part of shards on the device; None where the model has none."""
        role, config = generator.role, generator.config
        columns = None if role is None else self._columns(graph, config)
        for shard in shards:
            if role is None or columns is None:
                yield shard, None
                continue
            own, around = (each[shard.start : shard.stop] for each in columns)
            weights = self._profile(graph, config, np.arange(shard.start, shard.stop)).weights
            spread, ranked = profile_columns(as_tensor(weights, self.device)).tensor_split([1], dim=1)
            yield shard, embed(role, torch.cat([own, spread, around, ranked], dim=1))

    def _columns(self, graph: Graph, config: Config) -> tuple[Tensor, Tensor]:
        """Return the columns of all nodes that come before the profile's spread, and those after it."""
        links, (near, _, *ways) = self._links(graph.adjacency()), smoothers(graph, config)
        around = [columns_around(links, self._smooth(near, moments(links)))]
        own = structural_columns(links, as_tensor(graph.strengths, self.device))
        if graph.directed:
            directed = np.column_stack(directed_columns(graph, np.arange(len(graph))))
            around.append(as_tensor(directed, self.device).float())
            around += [self._smooth(way, as_tensor(log_both(graph), self.device)) for way in ways]
        return own, torch.cat(around, dim=1)

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64]) -> RootedPageRank:
        """Return the profile of some nodes."""
        found = self._profile(graph, config, nodes)
        return found.to_host() if isinstance(found, DeviceProfile) else found

    def _profile(
        self, graph: Graph, config: Config, nodes: NDArray[np.int64]
    ) -> RootedPageRank | DeviceProfile:
        """Return the profile of some nodes, on the device where it has the kernel."""
        kernels = push_kernels(self.device) if config.rpr_method == "push" else None
        if kernels is None:
            return profile_of(graph, config, nodes)
        limits = Limits.of(graph.adjacency(), config.near, PUSH_TOLERANCE, PUSH_THRESHOLD)
        roots = as_tensor(nodes, self.device)
        links = self._links(graph.adjacency())
        return push(kernels, links, roots, k=config.k, continuation=config.near, limits=limits)

    def _room(self) -> int:
        """Return how many more numbers the device's memory holds."""
        if self.device.type != "cuda":
            return 1 << 28
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return (torch.cuda.mem_get_info(self.device)[0] + unused) // 4

    def _staged(self, rows: Tensor) -> tuple[Tensor, Any]:
        """Begin to copy rows to memory that the device reaches; return it, and when it is there."""
        if self.device.type != "cuda":
            return rows, None
        staged = torch.empty(rows.shape, pin_memory=True).copy_(rows, non_blocking=True)
        return staged, torch.cuda.current_stream(self.device).record_event()

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
            around = rows.times(now).addcmul_(loops, now).mul_(factor * b * scale)
            before, now = now, around.add_(given, alpha=factor * (1 - b)).add_(before, alpha=1 - factor)
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


def _finish(generator: Generator, vectors: Tensor, role: Tensor | None) -> None:
    """Turn what smoothing made of some nodes, and their role part, into vectors, as ``Generator.finish``."""
    content, parts = generator.content, generator.parts
    if content is not None:
        mine = vectors[:, parts["content"]]
        values = mine[:, : len(content.offset)] - as_tensor(content.offset, vectors.device)
        values = with_ramps(values, content.ramps)
        if content.length_power:
            lengths = values.norm(dim=1, keepdim=True)
            values *= torch.where(lengths > 0, lengths, 1.0) ** -content.length_power
        mine[:] = values * content.scale
    if role is not None:
        vectors[:, parts["role"]] = role
    for name, columns in parts.items():
        vectors[:, columns] *= generator.weights[name]


def _write(staged: Tensor, ready: Any, out: NDArray[np.float32]) -> None:
    """Copy rows to where they belong in the host's memory, once they are there."""
    if ready is not None:
        ready.synchronize()
    out[:] = staged.numpy()
