"""RayEngine: vectors of all nodes, as tasks on a Ray cluster."""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Generator as Yields
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spinegraph import __version__
from spinegraph.config import Config
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import ROWS, AnyGenerator, Progress, Shard
from spinegraph.errors import ClusterError, MissingFileError, MissingPackageError, ParameterError, SpineError
from spinegraph.graph.describe import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import open_store
from spinegraph.kernels.runtime import thread_count
from spinegraph.parts.generator import Chunk, Generator


class RayEngine(LocalEngine):
    """Makes vectors on a cluster, with the bits of the local engine; a fit runs in the calling process."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address  # see ``connect``

    def fit(self, graph: Graph, config: Config, progress: Progress, *, several: bool = False) -> Generator:
        """Fit all parts on a graph, in this process."""
        connect(self.address)  # before the work: an address may be wrong
        return super().fit(graph, config, progress, several=several)

    def embed(
        self, generator: AnyGenerator, graph: Graph, known: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes, given their training positions."""
        connect(self.address)
        if len(graph) <= ROWS:  # quick
            return LocalEngine().embed(generator, graph, known)
        return super().embed(generator, graph, known)

    def smoothed(
        self, generator: Generator, graph: Graph, chunks: list[Chunk], known: NDArray[np.int64] | None
    ) -> Iterator[tuple[Chunk, NDArray[np.float32]]]:
        """Yield the values (n, c) of chunks, each a task."""
        given = Shared.of(generator.with_config(threads=1)), Shared.of(graph), Shared.of(known)
        with closing(run_tasks(_smoothed, [(*given, chunk) for chunk in chunks])) as results:
            for index, values in results:
                yield chunks[index], values

    def role_rows(
        self, generator: Generator, graph: Graph, shards: Iterable[Shard]
    ) -> Iterator[tuple[Shard, NDArray[np.float32] | None]]:
        """Yield the role part of shards, each a task."""
        listed, around = list(shards), Shared.of(generator.surroundings(graph))
        role = replace(generator.with_config(threads=1), content=None, place=None)
        given = Shared.of(role), Shared.of(graph)
        with closing(run_tasks(_role_rows, [(*given, around, shard) for shard in listed])) as results:
            for index, values in results:
                yield listed[index], values

    def embed_to_folder(self, *given: Any, **settings: Any) -> Path:
        """Write the vectors of all nodes to a folder; see ``engines.engine.embed_to_folder``."""
        connect(self.address)
        return super().embed_to_folder(*given, **settings)


# Tasks: what a process of the cluster runs, on one core.


def _smoothed(generator: "Shared", graph: "Shared", known: "Shared", chunk: Chunk) -> Any:
    return generator.value().smoothed(graph.value(), chunk, known.value())


def _role_rows(generator: "Shared", graph: "Shared", around: "Shared", shard: Shard) -> Any:
    return generator.value().role_rows(graph.value(), np.arange(shard.start, shard.stop), around.value())


_opened: dict[str, Any] = {}  # a process runs many tasks on one graph and opens it once
_MAX_OPEN = 4


@dataclass(frozen=True, eq=False)
class Shared:
    """A value that tasks read, sent to every machine at most once."""

    key: str  # names it in the processes that hold it
    reference: tuple[Any, ...] = ()  # of one ObjectRef: Ray would fetch a bare one before the task starts
    store: Path | None = None  # folder of a graph on disk, which every machine has to see
    fingerprint: str = ""  # of that graph

    @classmethod
    def of(cls, value: Any) -> "Shared":
        """Share a value: a graph of a store by its path, all else through the object store."""
        store = getattr(value, "store", None)
        if store is not None:
            return cls(uuid4().hex, store=Path(store).resolve(), fingerprint=fingerprint(value))
        return cls(uuid4().hex, reference=(require_ray().put(value),))

    def value(self) -> Any:
        """Return the value, in any process of the cluster."""
        if self.key not in _opened:
            found = require_ray().get(self.reference[0]) if self.store is None else self._open(self.store)
            while len(_opened) >= _MAX_OPEN:  # of earlier runs
                del _opened[next(iter(_opened))]
            _opened[self.key] = found
        return _opened[self.key]

    def _open(self, path: Path) -> Graph:
        here = require_ray().util.get_node_ip_address()
        try:
            graph = open_store(path)
        except MissingFileError as fault:
            raise ClusterError(
                f"machine {here} sees no store at {path}; put it on a disk that all of them share"
            ) from fault
        if fingerprint(graph) != self.fingerprint:
            raise ClusterError(f"machine {here} has another graph at {path}; copy the store there again")
        return graph


_RETRIES = 5  # of a task whose machine or process is lost
_TASKS_AHEAD = 2  # per core, so that no core waits


def run_tasks(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Yields[tuple[int, Any], None, None]:
    """Run calls of a function as tasks of one core each; yield (index, result) as they finish.

    Two tasks per core are in flight, so that results do not pile up. A task whose machine is lost is retried
    elsewhere. On an error the others are cancelled. Arguments are sent, so large ones are ``Shared``.
    """
    ray = require_ray()
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(function)
    running: dict[Any, int] = {}
    started = 0
    try:
        while started < len(calls) or running:
            limit = _TASKS_AHEAD * num_workers()  # machines come and go
            while started < len(calls) and len(running) < limit:
                running[task.remote(*calls[started])] = started
                started += 1
            done, _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done[0]), _result(ray, done[0])
    finally:
        for reference in running:
            ray.cancel(reference)


def _result(ray: Any, reference: Any) -> Any:
    """Return a task's result, or raise its error as if it had been called here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        if isinstance(fault.cause, SpineError):
            raise fault.cause from None
        if isinstance(fault.cause, ImportError):
            raise ClusterError(
                f"machine {getattr(fault, 'ip', '?')} lacks a package ({fault.cause}); there: "
                "pip install 'spinegraph[ray]'"
            ) from fault
        raise
    except ray.exceptions.RayError as fault:
        raise ClusterError(
            f"a task was lost {_RETRIES + 1} times ({_first_line(fault)}); run the same again, it resumes"
        ) from fault


_CONNECT_SECONDS = 10.0
_PACKAGE_SECONDS = 120.0  # for every machine to start a process and import the package
_WAIT = "RAY_gcs_server_port_wait_time_s"
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
_checked: set[str] = set()  # machines that have the package


def require_ray() -> Any:
    """Return the package, or say how to get it."""
    try:
        import ray
    except ImportError as missing:
        raise MissingPackageError("the Ray engine needs Ray: pip install 'spinegraph[ray]'") from missing
    return ray


def num_workers() -> int:
    """Return how many tasks the cluster runs at a time."""
    return max(1, int(require_ray().cluster_resources().get("CPU", 1)))


def connect(address: str | None) -> None:
    """Connect this process to the cluster at an address, or start one of this machine's cores.

    A process that is connected already stays so; it is an error if that is to another cluster. For the
    address see the setting of that name.
    """
    ray = require_ray()
    wanted = address or os.environ.get("RAY_ADDRESS") or "local"
    if ray.is_initialized():
        found = ray.get_runtime_context().gcs_address
        if wanted not in ("auto", "local") and not _is_same(wanted, found):
            raise ParameterError(
                f"connected to the Ray cluster at {found}, not to {wanted}; call ray.shutdown() first"
            )
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a library does not report on its users
        _start(ray, wanted)
    require_package(ray)


def _start(ray: Any, wanted: str) -> None:
    if wanted == "local":
        ray.init(address="local", num_cpus=thread_count(None), include_dashboard=False, **_QUIET)
        return
    if wanted.startswith("ray://"):
        raise ParameterError(
            f"{wanted!r} is an address of Ray Client; run on a machine of the cluster with HOST:PORT"
        )
    if wanted != "auto":
        _require_listener(wanted)
    # Where something else listens Ray tries twenty times, half a minute each: once is enough.
    is_set = _WAIT in os.environ
    os.environ.setdefault(_WAIT, "1")
    try:
        ray.init(address=wanted, **_QUIET)
    except (OSError, RuntimeError, ValueError, AssertionError) as fault:
        raise ClusterError(
            f"the Ray cluster at {wanted} cannot be used from here: {_first_line(fault)}; this machine has "
            "to be part of it ('ray start --address=...') and to have the same versions of Ray and Python"
        ) from fault
    finally:
        if not is_set:
            del os.environ[_WAIT]


def _require_listener(address: str) -> None:
    """Fail within seconds where nothing listens; Ray alone would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as fault:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({fault}); start its head with 'ray start --head'"
        ) from fault


def _is_same(wanted: str, found: str) -> bool:
    """Say whether an address, by name or number, is that of the head, which Ray gives by number."""
    (host, _, port), (number, _, other) = wanted.rpartition(":"), found.rpartition(":")
    with suppress(OSError):
        host = socket.gethostbyname(host.strip("[]"))
    return port == other and (host == number or host.startswith("127."))


def require_package(ray: Any) -> None:
    """Refuse a cluster with a machine that lacks the package or has another version of it."""
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
    if not asked:
        return
    # Machines that do not answer in time are skipped: their tasks are retried elsewhere.
    done, late = ray.wait(list(asked), num_returns=len(asked), timeout=_PACKAGE_SECONDS)
    for reference in late:
        ray.cancel(reference, force=True)
    for reference in done:
        node = asked[reference]
        try:
            found = ray.get(reference)
        except ray.exceptions.RayError:
            continue  # lost meanwhile
        if found != __version__:
            problem = found if found.startswith("cannot") else f"has spinegraph {found}, not {__version__}"
            raise ClusterError(
                f"machine {node['NodeManagerAddress']} (node {node['NodeID'][:8]}) {problem}; there: "
                f"pip install 'spinegraph[ray]=={__version__}'"
            )
        _checked.add(node["NodeID"])


def _first_line(fault: BaseException) -> str:
    return str(fault).strip().split("\n")[0][:300]
