"""What runs on the machines of the cluster: one shard of roots after the other, on one core each."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.embeddings import Embeddings
from spinegraph.engines.ray.cluster import require_ray
from spinegraph.engines.shard_folder import Part, write_part
from spinegraph.engines.shards import Shard, columns_shard, embed_shard
from spinegraph.errors import ClusterError, MissingFileError
from spinegraph.fingerprint import fingerprint
from spinegraph.generator import Generator
from spinegraph.graph.store import open_store
from spinegraph.inputs import profile_of
from spinegraph.structure.profile import RootedPageRank
from spinegraph.structure.similarity import owned_distances

_opened: dict[str, Any] = {}  # a process does many shards of one graph: it is opened once
_MOST_OPEN = 4


@dataclass(frozen=True, eq=False)
class Shared:
    """A value that tasks read, sent to every machine once at most.

    Attributes
    ----------
    key : str
        Names it in the processes that hold it.
    reference : tuple of one ObjectRef, or empty
        Where it lies in the object store; in a tuple, so that Ray leaves it to the task to fetch it.
    store, print : Path and str, optional
        For a graph on disk: its folder, which every machine has to see, and its fingerprint.
    """

    key: str
    reference: tuple[Any, ...] = ()
    store: Path | None = None
    print: str = ""

    @classmethod
    def of(cls, value: Any) -> "Shared":
        """Share a value: a graph of a store by its path, all else through the object store."""
        store = getattr(value, "store", None)
        if store is not None:
            return cls(uuid4().hex, store=Path(store).resolve(), print=fingerprint(value))
        return cls(uuid4().hex, reference=(require_ray().put(value),))

    def value(self) -> Any:
        """Return the value, in whatever process this is."""
        if self.key not in _opened:
            found = require_ray().get(self.reference[0]) if self.store is None else self._store(self.store)
            while len(_opened) >= _MOST_OPEN:  # those of runs before
                del _opened[next(iter(_opened))]
            _opened[self.key] = found
        return _opened[self.key]

    def _store(self, path: Path) -> Any:
        here = require_ray().util.get_node_ip_address()
        try:
            graph = open_store(path)
        except MissingFileError as fault:
            raise ClusterError(
                f"machine {here} sees no store at {path}; put it on a disk that all machines share, or a "
                "copy of it at the same path on each"
            ) from fault
        if fingerprint(graph) != self.print:
            raise ClusterError(f"machine {here} has another graph at {path}; copy the store there again")
        return graph


def profile_rows(graph: Shared, config: Config, roots: Shared, start: int, stop: int) -> RootedPageRank:
    """Return the profile of some of the roots."""
    return profile_of(graph.value(), replace(config, threads=1), roots.value()[start:stop])


def distances(table: Shared, metric: str, start: int, stop: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return the distances that rows ``start`` to ``stop`` own, and their slots; see ``owned_distances``."""
    rows, nodes = table.value()
    # A copy: what comes from the object store is read-only, and kernels would be compiled once more for it.
    return owned_distances(rows, nodes.copy(), metric, start, stop)  # type: ignore[arg-type]


def columns_of(work: Shared, graph: Shared, shard: Shard) -> NDArray[np.float32]:
    """Return the structural columns of one shard's nodes."""
    return columns_shard(_alone(work.value()), graph.value(), shard)


def vectors_of(work: Shared, graph: Shared, columns: Shared | None, shard: Shard) -> NDArray[np.float32]:
    """Return the vectors of one shard's nodes."""
    return _embedded(work, graph, columns, shard).vectors


def write_vectors(
    work: Shared, graph: Shared, columns: Shared | None, shard: Shard, folder: Path, token: str
) -> Part | Embeddings:
    """Write one shard's part where this machine sees the folder; else return the vectors."""
    found = _embedded(work, graph, columns, shard)
    return write_part(folder, shard, found) if (folder / token).exists() else found


def _embedded(work: Shared, graph: Shared, columns: Shared | None, shard: Shard) -> Embeddings:
    known = None if columns is None else columns.value()
    return embed_shard(_alone(work.value()), graph.value(), shard, known)


def _alone(generator: Generator) -> Generator:
    """Return a generator that uses one thread, since a task has one core; its matrix is writable."""
    inputs = generator.inputs
    inputs = replace(inputs, config=replace(inputs.config, threads=1))
    return replace(generator, inputs=inputs, weights=generator.weights.copy())
