"""GpuEngine: positions, smoothing, structural columns and profiles on a Torch device."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu import role as on_device
from spinegraph.engines.gpu.graph import DeviceGraph, Rows, as_tensor, usable_device
from spinegraph.engines.gpu.positions import positions
from spinegraph.engines.gpu.push import push, push_kernels
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import AnyGenerator, Progress, Shard, plan
from spinegraph.graph.graph import Graph
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.parts.content import ROUNDING, Content, encode, smoothers
from spinegraph.parts.generator import Chunk, Generator, Known, Vectors
from spinegraph.parts.paper import PaperGenerator
from spinegraph.parts.place import KNOWN_MASS, Place
from spinegraph.parts.role import PUSH_THRESHOLD, PUSH_TOLERANCE, directed_columns, log_both, profile_of
from spinegraph.structure.smoothing import Smoother, solved_by

_THREADS = 8  # of the host, to prepare rows for the device and copy results


class GpuEngine(LocalEngine):
    """Runs the costly stages on a Torch device; results are in the host's memory.

    If Torch cannot compile the push kernel, the host computes profiles. All features are copied to the
    device. Positions use other random walks than on a CPU, so vectors differ but are equally good.

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
            found = self._positions, self._columns
            return Generator.fit(graph, config, progress, several=several, builders=found)

    def embed(self, generator: AnyGenerator, graph: Graph, known: Known = None) -> Vectors:
        """Return the vectors (n, d) of all nodes, given their training positions."""
        if isinstance(generator, PaperGenerator) or 4 * len(graph) * generator.dim > self._room():
            return super().embed(generator, graph, known)
        vectors = torch.zeros((len(graph), generator.dim), device=self.device)
        chunks = generator.chunks(graph, known, self._room() // 16)
        for chunk, values in self.smoothed(generator, graph, chunks, known, on_host=False):
            vectors[:, generator.at(chunk)] = values
        found = np.empty(vectors.shape, np.float32)
        with ThreadPoolExecutor(_THREADS) as pool:  # copy finished rows while the device continues
            waiting = deque[Future[None]]()
            for shard, role in self.role_rows(generator, graph, plan(len(graph)), on_host=False):
                some = slice(shard.start, shard.stop)
                _finish(generator, vectors[some], role)
                waiting.append(pool.submit(_write, *self._staged(vectors[some]), found[some]))
                if len(waiting) > _THREADS:  # to bound memory
                    waiting.popleft().result()
            for each in waiting:
                each.result()
        return found

    def smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: Known, *, on_host: bool = True
    ) -> Iterator[tuple[Chunk, Any]]:
        """Yield the values (n, c) of chunks, in the host's memory or on the device."""
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
            yield chunk, found.cpu().numpy() if on_host else found

    def _features(self, content: Content, graph: Graph) -> list[Rows | Tensor]:
        """Return the scaled features of all nodes on the device, in blocks of rows."""

        def some(shard: Shard) -> Rows | Tensor:
            rows = encode(content.encoder, graph, np.arange(shard.start, shard.stop))
            if not issparse(rows):
                return as_tensor(rows, self.device)
            arrays = rows.indptr, rows.indices, rows.data
            indptr, indices, data = (as_tensor(each, self.device) for each in arrays)
            return Rows(indptr, indices, data, rows.shape[1])

        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(some, plan(len(graph))))

    def _content(
        self, content: Content, features: list[Rows | Tensor], around: tuple[Smoother, ...], columns: slice
    ) -> Tensor:
        """Return some columns (n, c) of the map's values; see ``Content.smoothed``."""

        def times(part: Vectors) -> Tensor:
            arrays = content.directions @ part, content.center @ part
            right, center = (as_tensor(each, self.device) for each in arrays)
            found = [one.times(right) if isinstance(one, Rows) else one @ right for one in features]
            return torch.cat(found).sub_(center)

        found = times(content.mixing[0][:, columns])
        for smoother, part in zip(around, content.mixing[1:], strict=True):
            used = np.flatnonzero(part[:, columns].any(axis=0))  # the others add 0
            if len(used):
                values = self._smooth(smoother, times(part[:, columns][:, used]))
                found[:, as_tensor(used, self.device)] += values
        return found

    def _place(self, place: Place, near: Smoother, known: NDArray[np.int64], columns: slice) -> Tensor:
        """Return some columns (n, c) of the place part; see ``Place.smoothed``."""
        some = as_tensor(np.ascontiguousarray(place.positions[:, columns]), self.device)
        at = as_tensor(known, self.device)
        is_known = (at >= 0)[:, None]
        values = torch.cat([torch.where(is_known, some[at.clamp_min(0)], 0.0), is_known.float()], dim=1)
        sums, mass = self._smooth(near, values).tensor_split([-1], dim=1)
        return torch.where(mass >= KNOWN_MASS, sums / mass.clamp_min(KNOWN_MASS), 0.0)

    def role_rows(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard], *, on_host: bool = True
    ) -> Iterator[tuple[Shard, Any]]:
        """Yield the role part of shards, in the host's memory or on the device; None if there is none."""
        role, config = generator.role, generator.config
        structure = None if role is None else self._structure(graph, config)
        for shard in shards:
            found: Any = None
            if role is not None and structure is not None:
                some = np.arange(shard.start, shard.stop)
                found = on_device.embed(role, self._some_columns(structure, graph, config, some))
                found = found.cpu().numpy() if on_host else found
            yield shard, found

    def _columns(self, graph: Graph, config: Config, nodes: NDArray[np.int64]) -> Vectors:
        """Return the columns (r, s) of some nodes; see ``columns_of``."""
        return np.asarray(self._some_columns(self._structure(graph, config), graph, config, nodes).cpu())

    def _some_columns(
        self, structure: tuple[Tensor, Tensor], graph: Graph, config: Config, nodes: NDArray[np.int64]
    ) -> Tensor:
        roots = as_tensor(nodes, self.device)
        columns = on_device.profile_columns(self._profile(graph, config, nodes))
        spread, ranked = columns.tensor_split([1], dim=1)
        return torch.cat([structure[0][roots], spread, structure[1][roots], ranked], dim=1)

    def _structure(self, graph: Graph, config: Config) -> tuple[Tensor, Tensor]:
        """Return the columns of all nodes before the profile's spread, and those after it."""
        links, (near, _, *others) = self._links(graph.adjacency()), smoothers(graph, config)
        around = [on_device.columns_around(links, self._smooth(near, on_device.moments(links)))]
        own = on_device.structural_columns(links, as_tensor(graph.strengths, self.device))
        if graph.directed:
            directed = np.column_stack(directed_columns(graph, np.arange(len(graph))))
            around.append(as_tensor(directed, self.device).float())
            around += [self._smooth(each, as_tensor(log_both(graph), self.device)) for each in others]
        return own, torch.cat(around, dim=1)

    def _profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64]) -> Tensor:
        """Return the profiles (r, k) of some nodes, computed by the host if the device has no kernel."""
        kernels = push_kernels(self.device) if config.rpr_method == "push" else None
        if kernels is None:
            return as_tensor(profile_of(graph, config, nodes).weights, self.device)
        limits = {"tolerance": PUSH_TOLERANCE, "threshold": PUSH_THRESHOLD}
        links, roots = self._links(graph.adjacency()), as_tensor(nodes, self.device)
        return push(kernels, links, roots, k=config.k, continuation=config.near, **limits)

    def _room(self) -> int:
        """Return how many more float32 numbers fit into the device's memory."""
        if self.device.type != "cuda":
            return 1 << 28
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return (torch.cuda.mem_get_info(self.device)[0] + unused) // 4

    def _staged(self, rows: Tensor) -> tuple[Tensor, Any]:
        """Start to copy rows to pinned memory; return it, and an event that marks the end."""
        if self.device.type != "cuda":
            return rows, None
        staged = torch.empty(rows.shape, pin_memory=True).copy_(rows, non_blocking=True)
        return staged, torch.cuda.current_stream(self.device).record_event()

    def _positions(self, graph: Graph, width: int, config: Config) -> Vectors:
        return positions(self._links(graph.adjacency()), width, config.seed)

    def _smooth(self, smoother: Smoother, values: Tensor) -> Tensor:
        """Return T values, (n, d); see ``Smoother.smooth``."""
        scale = as_tensor(smoother.root_degrees, self.device) if smoother.symmetric else 1.0
        return self._solved(smoother, values / scale) * scale

    def _solve(self, smoother: Smoother, values: Vectors) -> Vectors:
        """Solve (I - b P) y = (1 - b) values, for ``solved_by``."""
        return np.asarray(self._solved(smoother, as_tensor(values, self.device)).cpu())

    def _solved(self, smoother: Smoother, given: Tensor) -> Tensor:
        """Solve (I - b P) y = (1 - b) given by Chebyshev iteration, or plain iteration if directed."""
        b, rows = smoother.continuation, self._links(smoother.adjacency).rows
        scale = as_tensor(smoother.inverse, self.device)[:, None]
        loops = as_tensor(smoother.loops, self.device)[:, None]
        is_alone = scale <= 0  # keeps its values
        scale, loops = torch.where(is_alone, 1.0, scale), torch.where(is_alone, 1.0, loops)
        before, now = given, given
        for factor in (1.0, *smoother.factors()):
            around = rows.times(now).addcmul_(loops, now).mul_(factor * b * scale)
            before, now = now, around.add_(given, alpha=factor * (1 - b)).add_(before, alpha=1 - factor)
        return now

    def _links(self, adjacency: Adjacency) -> DeviceGraph:
        """Return the links on the device, cached for the last graph."""
        if self._copied is None or _places(self._copied[0]) != _places(adjacency):
            self._copied = None  # frees memory
            self._copied = adjacency, DeviceGraph.of(adjacency, self.device)
        return self._copied[1]


def _places(adjacency: Adjacency) -> list[tuple[int, int] | None]:
    """Return the address and length of each array; None for an empty one, whose address is arbitrary."""
    return [(each.ctypes.data, each.size) if each.size else None for each in adjacency]


def _finish(generator: Generator, vectors: Tensor, role: Tensor | None) -> None:
    """Turn smoothed values of some nodes, and their role part, into vectors; see ``Generator.finish``."""
    content, parts = generator.content, generator.parts
    if content is not None:
        mine = vectors[:, parts["content"]]
        values = mine[:, : len(content.offset)] - as_tensor(content.offset, vectors.device)
        values = on_device.with_random_features(values, content.random_features)
        lengths = values.norm(dim=1, keepdim=True)
        values.masked_fill_(lengths < ROUNDING, 0)
        if content.length_power:
            values *= torch.where(lengths > 0, lengths, 1.0) ** -content.length_power
        mine[:] = values * content.scale
    if role is not None:
        vectors[:, parts["role"]] = role
    for name, columns in parts.items():
        vectors[:, columns] *= generator.weights[name]


def _write(staged: Tensor, ready: Any, out: Vectors) -> None:
    if ready is not None:
        ready.synchronize()
    out[:] = staged.numpy()
