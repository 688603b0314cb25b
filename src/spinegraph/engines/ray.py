"""RayEngine: the stages of a fit, and vectors in shards, as tasks on a Ray cluster."""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Generator as Yields
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spinegraph import __version__
from spinegraph.config import Config
from spinegraph.embeddings import Embeddings
from spinegraph.engines.local import LocalEngine
from spinegraph.engines.shards import (
    ROWS,
    Part,
    Progress,
    Shard,
    ShardFolder,
    columns_shard,
    embed_shard,
    join_profiles,
    plan,
    write_part,
)
from spinegraph.errors import ClusterError, MissingFileError, MissingPackageError, ParameterError, SpineError
from spinegraph.generator import Generator, profile_of
from spinegraph.graph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import open_store
from spinegraph.kernels.runtime import thread_count
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import (
    SimilarNodes,
    candidates,
    comparable,
    comparison,
    owned_distances,
    weights_from_distances,
)

_MIN_ROOTS = 1024  # per task: below that, starting a task costs more than running it
_TASKS_PER_CORE = 4


class RayEngine(LocalEngine):
    """Runs the stages on a cluster, with the bits of the local engine.

    Rows of a stage depend on their root and the seed alone, so it does not matter which machine computes
    them. Training runs in the calling process: a step is too short to share.

    Parameters
    ----------
    address : str, optional
        See ``connect``.
    """

    def __init__(self, address: str | None = None) -> None:
        self.address = address
        self._graph: tuple[Graph, Shared] | None = None

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        connect(self.address)
        roots = np.arange(len(graph)) if nodes is None else np.asarray(nodes)
        shared, given = self._shared(graph), Shared.of(roots)
        calls = [(shared, config, given, shard) for shard in _plan_tasks(len(roots))]
        parts: dict[int, RootedPageRank] = dict(run_tasks(_profile_rows, calls))
        return join_profiles([parts[index] for index in range(len(calls))])

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structurally similar nodes of each node of a profile, as rows of the profile."""
        connect(self.address)
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        rows, nodes = comparable(profile, near)
        found = np.full(nodes.shape, np.inf, dtype=np.float32)
        table = Shared.of((rows, nodes))
        calls = [(table, config.similarity, shard) for shard in _plan_tasks(len(nodes))]
        for _, (slots, distances) in run_tasks(_distance_rows, calls if nodes.shape[1] else []):
            found.reshape(-1)[slots] = distances
        return weights_from_distances(nodes, found, config.threads)

    def embed(
        self,
        generator: Generator,
        graph: Graph,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes."""
        connect(self.address)
        if profile is not None or len(graph) <= ROWS:  # quick
            return super().embed(generator, graph, profile, columns)
        shards = plan(len(graph), ROWS)
        given = _share(generator, self._shared(graph), shards)
        vectors = np.empty((len(graph), generator.dim), dtype=np.float32)
        for index, found in run_tasks(_embed, [(*given, shard) for shard in shards]):
            vectors[shards[index].start : shards[index].stop] = found.vectors
        return vectors

    def _shared(self, graph: Graph) -> "Shared":
        """Return the graph as tasks read it; sent once for all stages."""
        if self._graph is None or self._graph[0] is not graph:
            self._graph = graph, Shared.of(graph)
        return self._graph[1]


def embed_to_folder(
    generator: Generator,
    graph: Graph,
    folder: str | Path,
    *,
    address: str | None = None,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts; resumes an interrupted run of any engine.

    The files are those of the local engine; see there. A store is opened by its path on every machine,
    another graph is sent to each of them once. A machine that sees the folder writes its parts there itself;
    the vectors of others are sent here and written here.
    """
    parts = ShardFolder.of_run(folder, generator, graph, rows)
    missing = parts.missing()
    if not missing:
        parts.fill([], progress)
        return parts.folder
    # Machines that find this file see the same folder.
    marker = parts.folder.resolve() / f".seen-{uuid4().hex}"
    with connected(address):
        marker.touch()
        try:
            given = _share(generator, Shared.of(graph), parts.shards)
            calls = [(*given, shard, marker) for shard in missing]
            with closing(run_tasks(_embed, calls)) as results:  # an interruption cancels the others
                parts.fill(((missing[index], _written(found, marker)) for index, found in results), progress)
        finally:
            marker.unlink(missing_ok=True)
    return parts.folder


def _written(found: Embeddings | Part, marker: Path) -> Embeddings | Part:
    """Return a result, having checked that a part which another machine wrote is here."""
    if isinstance(found, Part):
        path = marker.parent / found.file
        if not path.is_file() or path.stat().st_size != found.bytes:
            raise ClusterError(f"{path}: a machine wrote it and it is not here; run the same command again")
    return found


def _plan_tasks(count: int) -> list[Shard]:
    """Cut rows so that every core gets several tasks; results do not depend on it."""
    return plan(count, max(_MIN_ROOTS, -(-count // (_TASKS_PER_CORE * num_workers()))))


def _share(
    generator: Generator, graph: "Shared", shards: list[Shard]
) -> "tuple[Shared, Shared, Shared | None]":
    """Share what every task of embedding reads: generator, graph, and the columns that T smooths, if any."""
    shared, columns = Shared.of(generator), None
    if generator.inputs.columns_smoothed:
        found = np.empty((shards[-1].stop, len(generator.inputs.columns)), dtype=np.float32)
        for index, part in run_tasks(_columns, [(shared, graph, shard) for shard in shards]):
            found[shards[index].start : shards[index].stop] = part
        columns = Shared.of(found)
    return shared, graph, columns


# Tasks: what a process of the cluster runs, on one core.


def _profile_rows(graph: "Shared", config: Config, roots: "Shared", shard: Shard) -> RootedPageRank:
    return profile_of(graph.value(), replace(config, threads=1), roots.value()[shard.start : shard.stop])


def _distance_rows(table: "Shared", metric: str, shard: Shard) -> tuple[NDArray[Any], NDArray[np.float32]]:
    rows, nodes = table.value()
    # A copy: arrays of the object store are read-only, and kernels would be compiled once more for them.
    return owned_distances(comparison(metric, rows), nodes.copy(), shard.start, shard.stop)  # type: ignore[arg-type]


def _columns(generator: "Shared", graph: "Shared", shard: Shard) -> NDArray[np.float32]:
    return columns_shard(_on_one_core(generator.value()), graph.value(), shard)


def _embed(
    generator: "Shared", graph: "Shared", columns: "Shared | None", shard: Shard, marker: Path | None = None
) -> Embeddings | Part:
    """Return the vectors of a shard; where this machine sees the marker, write them beside it."""
    known = None if columns is None else columns.value()
    found = embed_shard(_on_one_core(generator.value()), graph.value(), shard, known)
    return write_part(marker.parent, shard, found) if marker is not None and marker.exists() else found


def _on_one_core(generator: Generator) -> Generator:
    """Return a generator that uses one thread, with a writable matrix."""
    inputs = replace(generator.inputs, config=replace(generator.inputs.config, threads=1))
    return replace(generator, inputs=inputs, weights=generator.weights.copy())


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
                f"machine {here} sees no store at {path}; put it on a disk that all machines share, or a "
                "copy of it at the same path on each"
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
            f"a task was lost {_RETRIES + 1} times ({_first_line(fault)}); finished parts are kept, run the "
            "same again"
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


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connect to a cluster, and disconnect afterwards unless this process was connected before."""
    ray = require_ray()
    was_connected = ray.is_initialized()
    connect(address)
    try:
        yield
    finally:
        if not was_connected:
            ray.shutdown()


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
                f"this process is connected to the Ray cluster at {found}, not to {wanted}; call "
                "ray.shutdown() first, or leave address out"
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
            f"address {wanted!r} is one of Ray Client, which cannot train; run on a machine of the cluster "
            "with HOST:PORT or 'auto', or by 'ray job submit'"
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
            f"no Ray cluster answers at {address} ({fault}); start its head with 'ray start --head', or "
            "leave address out for a cluster of this machine's cores"
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
