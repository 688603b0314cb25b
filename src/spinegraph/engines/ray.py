"""RayEngine: vectors of all nodes, computed as tasks on a Ray cluster."""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from spinegraph import __version__
from spinegraph.config import Config
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import ROWS, AnyGenerator, Progress, Shard
from spinegraph.errors import ClusterError, MissingFileError, MissingPackageError, ParameterError, SpineError
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import open_store
from spinegraph.kernels.runtime import thread_count
from spinegraph.parts.generator import Chunk, Generator, Known, Vectors


class RayEngine(LocalEngine):
    """Computes vectors on a cluster, bit-identical to the local engine; fits run in the calling process."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def fit(self, graph: Graph, config: Config, progress: Progress, *, several: bool = False) -> Generator:
        """Fit all parts on a graph, in this process."""
        connect(self.address)  # before the fit, so that a wrong address fails at once
        return super().fit(graph, config, progress, several=several)

    def embed(self, generator: AnyGenerator, graph: Graph, known: Known = None) -> Vectors:
        """Return the vectors (n, d) of all nodes, given their training positions."""
        connect(self.address)
        if len(graph) <= ROWS:  # faster than tasks
            return LocalEngine().embed(generator, graph, known)
        return super().embed(generator, graph, known)

    def smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: Known
    ) -> Iterator[tuple[Chunk, Vectors]]:
        """Yield the values (n, c) of chunks, one task each."""
        given = Shared.of(generator.with_config(threads=1)), Shared.of(graph), Shared.of(known)
        return run_tasks(_smoothed, given, chunks)

    def role_rows(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, Vectors | None]]:
        """Yield the role part of shards, one task each."""
        role = replace(generator.with_config(threads=1), content=None, place=None)
        given = Shared.of(role), Shared.of(graph), Shared.of(generator.surroundings(graph))
        return run_tasks(_role_rows, given, list(shards))

    def embed_to_folder(self, *given: Any, **settings: Any) -> Path:
        """Write the vectors of all nodes to a folder; see ``engines.engine.embed_to_folder``."""
        connect(self.address)
        return super().embed_to_folder(*given, **settings)


# Tasks, which a process of the cluster runs on one core.


def _smoothed(generator: "Shared", graph: "Shared", known: "Shared", chunk: Chunk) -> Any:
    return generator.value().smoothed(graph.value(), chunk, known.value())


def _role_rows(generator: "Shared", graph: "Shared", around: "Shared", shard: Shard) -> Any:
    return generator.value().role_rows(graph.value(), np.arange(shard.start, shard.stop), around.value())


_opened: dict[str, Any] = {}  # by key, since a process runs many tasks on one graph
_MAX_OPEN = 4


@dataclass(frozen=True, eq=False)
class Shared:
    """A value that tasks use, sent to every machine at most once."""

    key: str  # in ``_opened`` of each process
    reference: tuple[Any, ...] = ()  # one ObjectRef; Ray would fetch a bare one before the task starts
    store: Path | None = None  # folder of a graph on disk, which every machine must be able to read
    fingerprint: str = ""  # of that graph

    @classmethod
    def of(cls, value: Any) -> "Shared":
        """Share a value: a graph in a store by its path, anything else through the object store."""
        store = getattr(value, "store", None)
        if store is not None:
            return cls(uuid4().hex, store=Path(store).resolve(), fingerprint=fingerprint(value))
        return cls(uuid4().hex, reference=(require_ray().put(value),))

    def value(self) -> Any:
        """Return the value, in any process of the cluster."""
        if self.key not in _opened:
            found = require_ray().get(self.reference[0]) if self.store is None else self._open(self.store)
            while len(_opened) >= _MAX_OPEN:  # from earlier runs
                del _opened[next(iter(_opened))]
            _opened[self.key] = found
        return _opened[self.key]

    def _open(self, path: Path) -> Graph:
        here = require_ray().util.get_node_ip_address()
        try:
            graph = open_store(path)
        except MissingFileError as fault:
            raise ClusterError(f"machine {here} has no store at {path}; use a disk that all share") from fault
        if fingerprint(graph) != self.fingerprint:
            raise ClusterError(f"machine {here} has a different graph at {path}; copy the store there again")
        return graph


_RETRIES = 5  # if a task's machine or process is lost
_TASKS_AHEAD = 2  # per core, so that no core waits


def run_tasks(
    function: Callable[..., Any], given: tuple["Shared", ...], items: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """Run a function for every item as a task on one core; yield (item, result) as they finish.

    At most two tasks per core are submitted at a time, so that results do not pile up. A task whose machine
    is lost is retried elsewhere. After an error, submitted tasks run to their end: cancelling one that just
    ended aborts this process (a check in Ray 2.60, "Tried to complete task that was not pending").
    """
    ray = require_ray()
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(function)
    running: dict[Any, Any] = {}
    waiting = deque(items)
    while waiting or running:
        limit = _TASKS_AHEAD * num_workers()  # machines come and go
        while waiting and len(running) < limit:
            item = waiting.popleft()
            running[task.remote(*given, item)] = item
        done, _ = ray.wait(list(running), num_returns=1)
        yield running.pop(done[0]), _result(ray, done[0])


def _result(ray: Any, reference: Any) -> Any:
    """Return a task's result, or raise its error as if the task had run here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        if isinstance(fault.cause, SpineError):
            raise fault.cause from None
        if isinstance(fault.cause, ImportError):
            raise ClusterError(
                f"machine {getattr(fault, 'ip', '?')} lacks a package ({fault.cause}); run there: "
                "pip install 'spinegraph[ray]'"
            ) from fault
        raise
    except ray.exceptions.RayError as fault:
        why = f"a task was lost {_RETRIES + 1} times ({_first_line(fault)})"
        raise ClusterError(f"{why}; run the same command again to resume") from fault


_CONNECT_SECONDS = 10.0
_PACKAGE_SECONDS = 120.0  # for every machine to start a process and import the package
_WAIT = "RAY_gcs_server_port_wait_time_s"
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
_checked: set[str] = set()  # machines that have the package


def require_ray() -> Any:
    """Return Ray, or raise an error that says how to install it."""
    try:
        import ray
    except ImportError as missing:
        raise MissingPackageError("the Ray engine needs Ray: pip install 'spinegraph[ray]'") from missing
    return ray


def num_workers() -> int:
    """Return the number of tasks that the cluster runs at a time."""
    return max(1, int(require_ray().cluster_resources().get("CPU", 1)))


def connect(address: str | None) -> None:
    """Connect this process to the cluster at an address, or start one on this machine's cores.

    An existing connection is kept. For the address see the setting of that name.
    """
    ray = require_ray()
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a library must not report on its users
        _start(ray, address or os.environ.get("RAY_ADDRESS") or "local")
    require_package(ray)


def _start(ray: Any, wanted: str) -> None:
    if wanted == "local":
        ray.init(address="local", num_cpus=thread_count(None), include_dashboard=False, **_QUIET)
        return
    if wanted.startswith("ray://"):
        raise ParameterError(f"Ray Client ({wanted!r}) is not supported; run on the cluster with HOST:PORT")
    if wanted != "auto":  # fail within seconds if nothing listens; Ray would try for minutes
        host, _, port = wanted.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
        except (OSError, ValueError, OverflowError) as fault:
            why = f"no Ray cluster answers at {wanted} ({fault})"
            raise ClusterError(f"{why}; start its head with 'ray start --head'") from fault
    # If something else listens, Ray would try twenty times, half a minute each; once is enough.
    is_set = _WAIT in os.environ
    os.environ.setdefault(_WAIT, "1")
    try:
        ray.init(address=wanted, **_QUIET)
    except (OSError, RuntimeError, ValueError, AssertionError) as fault:
        raise ClusterError(
            f"the Ray cluster at {wanted} cannot be used from here: {_first_line(fault)}; this machine must "
            "be part of it ('ray start --address=...') and have the same versions of Ray and Python"
        ) from fault
    finally:
        if not is_set:
            del os.environ[_WAIT]


def require_package(ray: Any) -> None:
    """Raise if a machine of the cluster lacks the package or has another version of it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # Defined here, so that Ray sends it by value: a machine without the package could not import it.
    def version() -> str:
        try:
            from spinegraph import __version__ as found
        except ImportError as fault:
            return f"cannot import spinegraph ({fault})"
        return found

    task = ray.remote(num_cpus=0, max_retries=0)(version)
    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU") and node["NodeID"] not in _checked:
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[task.options(scheduling_strategy=strategy).remote()] = node
    # Machines that do not answer in time, or are lost, are skipped: their tasks are retried elsewhere.
    done, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_PACKAGE_SECONDS)
    for reference in done:
        node, found = asked[reference], __version__
        with suppress(ray.exceptions.RayError):
            found = ray.get(reference)
        if found != __version__:
            problem = found if found.startswith("cannot") else f"has spinegraph {found}, not {__version__}"
            raise ClusterError(
                f"machine {node['NodeManagerAddress']} (node {node['NodeID'][:8]}) {problem}; run there: "
                f"pip install 'spinegraph[ray]=={__version__}'"
            )
        _checked.add(node["NodeID"])


def _first_line(fault: BaseException) -> str:
    return str(fault).strip().split("\n")[0][:300]
