"""RayEngine: the stages of a fit as tasks on a Ray cluster, with the local engine's results."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.ray import tasks
from spinegraph.engines.ray.cluster import connect, num_workers
from spinegraph.engines.ray.flights import finished
from spinegraph.engines.ray.tasks import Shared
from spinegraph.engines.shards import ROWS, Shard, needs_columns, plan
from spinegraph.generator import Generator
from spinegraph.structure.candidates import candidates
from spinegraph.structure.profile import RootedPageRank
from spinegraph.structure.similarity import SimilarNodes, compared, settled

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints
    from spinegraph.learning.history import Moment
    from spinegraph.learning.lesson import Lesson
    from spinegraph.learning.training import Progress

_LEAST_ROOTS = 1024  # in a task: below that, handing it out costs more than doing it
_TASKS_PER_CORE = 4


class RayEngine:
    """Runs the stages on a cluster.

    Rows of a stage depend on nothing but their root and the seed, so whoever computes them, and in whatever
    portions, they are the same bits. Training stays here unless ``training_workers`` are asked for.

    Parameters
    ----------
    address : str, optional
        See ``cluster.connect``.
    """

    def __init__(self, address: str | None = None) -> None:
        self.address = address
        self._graph: tuple[Any, Shared] | None = None

    def __repr__(self) -> str:
        return f"RayEngine({self.address!r})"

    def profile(self, graph: Any, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        connect(self.address)
        roots = np.arange(len(graph)) if nodes is None else np.asarray(nodes)
        shared, places = self._shared(graph), Shared.of(roots)
        calls = [(shared, config, places, one.start, one.stop) for one in _portions(len(roots))]
        parts: dict[int, RootedPageRank] = dict(finished(tasks.profile_rows, calls))
        return _joined([parts[place] for place in range(len(calls))])

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structural twins of the nodes of a profile, by place."""
        connect(self.address)
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        rows, nodes = compared(profile, near)
        found = np.full(nodes.shape, np.inf, dtype=np.float32)
        table = Shared.of((rows, nodes))
        calls = [(table, config.similarity, one.start, one.stop) for one in _portions(len(nodes))]
        for _, (slots, distances) in finished(tasks.distances, calls if nodes.shape[1] else []):
            found.reshape(-1)[slots] = distances
        return settled(nodes, found, config.threads)

    def learn(
        self, lesson: "Lesson", config: Config, states: "Checkpoints | None", progress: "Progress"
    ) -> "tuple[NDArray[np.float32], list[Moment]]":
        """Return W_M and the training history; by Ray Train where workers are asked for, else here."""
        workers = config.training_workers
        if workers is None:
            return LocalEngine().learn(lesson, config, states, progress)
        from spinegraph.engines.ray.training import train
        from spinegraph.learning.fitting import learn
        from spinegraph.learning.sharded import SHARDS

        connect(self.address)
        # Sums in shards round otherwise: their states are not those of a run without.
        states = None if states is None else states.apart(f"in {SHARDS} shards")
        return learn(lesson, config, states, progress, partial(train, workers))

    def embed(
        self, generator: Generator, graph: Any, profile: RootedPageRank | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes."""
        connect(self.address)
        if profile is not None or len(graph) <= ROWS:  # soon done
            return LocalEngine().embed(generator, graph, profile)
        shared, work, shards = self._shared(graph), Shared.of(generator), plan(len(graph), ROWS)
        columns = columns_of(work, shared, generator, shards) if needs_columns(generator) else None
        vectors = np.empty((len(graph), generator.dim), dtype=np.float32)
        calls = [(work, shared, columns, shard) for shard in shards]
        for place, found in finished(tasks.vectors_of, calls):
            vectors[shards[place].start : shards[place].stop] = found
        return vectors

    def _shared(self, graph: Any) -> Shared:
        """Return the graph as tasks read it; sent once for all stages."""
        if self._graph is None or self._graph[0] is not graph:
            self._graph = graph, Shared.of(graph)
        return self._graph[1]


def columns_of(work: Shared, graph: Shared, generator: Generator, shards: list[Shard]) -> Shared:
    """Share the structural columns of all nodes, (n, s), which the shards of such a generator read."""
    found = np.empty((shards[-1].stop, len(generator.inputs.columns)), dtype=np.float32)
    for place, part in finished(tasks.columns_of, [(work, graph, shard) for shard in shards]):
        found[shards[place].start : shards[place].stop] = part
    return Shared.of(found)


def _portions(count: int) -> list[Shard]:
    """Cut rows so that every core gets several; how they are cut does not show in the result."""
    return plan(count, max(_LEAST_ROOTS, -(-count // (_TASKS_PER_CORE * num_workers()))))


def _joined(parts: list[RootedPageRank]) -> RootedPageRank:
    """Put the rows of several profiles below each other."""
    ends = np.cumsum([0, *(part.tied_indptr[-1] for part in parts)])
    starts = [part.tied_indptr[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    stacked = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("nodes", "weights", "mass", "kept", "tied_nodes")
    }
    left = [part.unassigned for part in parts if part.unassigned is not None]
    return replace(
        parts[0],
        **stacked,  # type: ignore[arg-type]
        tied_indptr=np.concatenate([*starts, ends[-1:]]),
        unassigned=np.concatenate(left) if left else None,
    )
