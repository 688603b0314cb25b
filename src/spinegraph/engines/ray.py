"""RayEngine: the stages of a fit, and vectors in shards, as tasks on a Ray cluster."""

import collections.abc
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
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
    Shard,
    ShardFolder,
    columns_shard,
    embed_shard,
    needs_columns,
    plan,
    require_names,
    run_of,
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

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord
    from spinegraph.learning.sampling import TrainingData
    from spinegraph.learning.training import Progress


# A gRPC server answers the opening of HTTP/2 with its settings.
_OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_HEADER = 9  # bytes of a frame's header, of which the fourth is its kind
_SETTINGS = 4


def answers(address: str, seconds: float) -> str | None:
    """Return None where a gRPC server answers at HOST:PORT, else why not."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not host or int(port) > 65_535:
        return "not HOST:PORT"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as line:
            line.settimeout(seconds)
            line.sendall(_OPENING)
            head = b""
            while len(head) < _HEADER and (more := line.recv(_HEADER - len(head))):
                head += more
    except TimeoutError:
        return f"silent for {seconds:g} s"
    except OSError as fault:
        return fault.strerror or str(fault)
    return None if len(head) == _HEADER and head[3] == _SETTINGS else "something else than Ray is there"


_WAIT = 10.0  # seconds for a machine to answer
_WAIT_FOR_WORKERS = 120.0  # seconds for every machine to start a process and import the package
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
_checked: set[str] = set()  # machines that have the package


def require_ray() -> Any:
    """Return the package, or say how to get it."""
    try:
        import ray
    except ImportError as missing:
        raise MissingPackageError("the Ray engine needs Ray: pip install 'spinegraph[ray]'") from missing
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Be connected to a cluster inside; outside only if this process was before."""
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

    A process that is connected already stays so; it is an error if that is to another cluster.

    Parameters
    ----------
    address : str, optional
        ``HOST:PORT`` of the head, ``auto`` for the cluster that runs on this machine, ``local`` to start one.
        None: what RAY_ADDRESS says, else ``local``.
    """
    ray = require_ray()
    wanted = address or os.environ.get("RAY_ADDRESS") or "local"
    if ray.is_initialized():
        _require_same(wanted, ray.get_runtime_context().gcs_address)
    else:
        # A library does not report on its users.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        _begin(ray, wanted)
    require_package(ray)


def num_workers() -> int:
    """Return how many tasks the cluster runs at a time."""
    return max(1, int(require_ray().cluster_resources().get("CPU", 1)))


def _begin(ray: Any, wanted: str) -> None:
    if wanted == "local":
        ray.init(address="local", num_cpus=thread_count(None), include_dashboard=False, **_QUIET)
        return
    if wanted.startswith("ray://"):
        raise ParameterError(
            f"address {wanted!r} is one of Ray Client, which cannot train; run on a machine of the cluster "
            "with HOST:PORT or 'auto', or by 'ray job submit'"
        )
    if wanted != "auto":
        fault = answers(wanted, _WAIT)
        if fault:
            raise ClusterError(
                f"no Ray cluster answers at {wanted} ({fault}); start its head with 'ray start --head', or "
                "leave address out for a cluster of this machine's cores"
            )
    try:
        ray.init(address=wanted, **_QUIET)
    except (OSError, RuntimeError, ValueError, AssertionError) as fault:
        reason = str(fault).strip().split("\n")[0][:300]
        raise ClusterError(
            f"the Ray cluster at {wanted} cannot be used from here: {reason}; this machine has to be part of "
            "it ('ray start --address=...') and to have the same versions of Ray and Python"
        ) from fault


def _require_same(wanted: str, found: str) -> None:
    if wanted in ("auto", "local") or _is_same(wanted, found):
        return
    raise ParameterError(
        f"this process is connected to the Ray cluster at {found}, not to {wanted}; call ray.shutdown() "
        "first, or leave address out"
    )


def _is_same(wanted: str, found: str) -> bool:
    """Say whether an address by name or number is that of a head, which Ray tells by number."""
    (host, _, port), (number, _, other) = wanted.rpartition(":"), found.rpartition(":")
    try:
        known = socket.gethostbyname(host.strip("[]"))
    except OSError:
        known = host
    return port == other and (known == number or known.startswith("127."))


def require_package(ray: Any) -> None:
    """Refuse a cluster with a machine that lacks the package or has another version of it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # Sent by value, being defined in here: a machine without the package could not look it up.
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
    # A machine that says nothing in time is not waited for: its tasks are done again elsewhere.
    done, late = (
        ray.wait(list(asked), num_returns=len(asked), timeout=_WAIT_FOR_WORKERS) if asked else ([], [])
    )
    for one in late:
        ray.cancel(one, force=True)
    for one in done:
        name, found = asked[one]["NodeManagerAddress"], _said(ray, one)
        if found is not None and found != __version__:
            said = found if found.startswith("cannot") else f"has spinegraph {found}, not {__version__}"
            raise ClusterError(
                f"machine {name} (node {asked[one]['NodeID'][:8]}) {said}; there: "
                f"pip install 'spinegraph[ray]=={__version__}'"
            )
        _checked.add(asked[one]["NodeID"])


def _said(ray: Any, answer: Any) -> str | None:
    try:
        return str(ray.get(answer))
    except ray.exceptions.RayError:
        return None  # lost meanwhile


RETRIES = 5  # of a task whose machine or process is lost
_AHEAD = 2  # tasks per core that are handed out, so that none waits for the next one


def finished(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> "collections.abc.Generator[tuple[int, Any], None, None]":
    """Run calls of a function as tasks of one core each; yield (place, result) as they finish.

    So many are under way that every core has one and one waits for it: results that nobody has taken yet do
    not pile up. A task whose machine is lost is done again elsewhere. On an error the others are cancelled.

    Parameters
    ----------
    function : callable
        Of a module; its arguments and result travel, so large ones are passed by reference.
    calls : list of tuples
    """
    ray = require_ray()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
    running: dict[Any, int] = {}
    given = 0
    try:
        while given < len(calls) or running:
            most = _AHEAD * num_workers()  # machines come and go
            while given < len(calls) and len(running) < most:
                running[task.remote(*calls[given])] = given
                given += 1
            done, _ = ray.wait(list(running), num_returns=1)
            place = running.pop(done[0])
            yield place, _result(ray, done[0])
    finally:
        for one in running:
            ray.cancel(one)


def _result(ray: Any, reference: Any) -> Any:
    """Return a task's result, or raise what went wrong in it as if it had been called here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        cause = fault.cause
        if isinstance(cause, SpineError):
            raise cause from None
        if isinstance(cause, ImportError):
            raise ClusterError(
                f"machine {getattr(fault, 'ip', '?')} lacks a package ({cause}); there: "
                "pip install 'spinegraph[ray]'"
            ) from fault
        raise
    except ray.exceptions.RayError as fault:
        reason = str(fault).strip().split("\n")[0][:300]
        raise ClusterError(
            f"a task was lost {RETRIES + 1} times ({reason}); what is finished stays, run the same again"
        ) from fault


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


def distance_rows(
    table: Shared, metric: str, start: int, stop: int
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    """Return the distances that rows ``start`` to ``stop`` own, and their slots; see ``owned_distances``."""
    rows, nodes = table.value()
    # A copy: what comes from the object store is read-only, and kernels would be compiled once more for it.
    return owned_distances(comparison(metric, rows), nodes.copy(), start, stop)  # type: ignore[arg-type]


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


_LEAST_ROOTS = 1024  # in a task: below that, handing it out costs more than doing it
_TASKS_PER_CORE = 4


class RayEngine:
    """Runs the stages on a cluster.

    Rows of a stage depend on nothing but their root and the seed, so whoever computes them, and in whatever
    portions, they are the same bits. Training runs in the calling process.

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

    def profile(self, graph: Graph, config: Config, nodes: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile of all nodes, or of those at some positions."""
        connect(self.address)
        roots = np.arange(len(graph)) if nodes is None else np.asarray(nodes)
        shared, places = self._shared(graph), Shared.of(roots)
        calls = [(shared, config, places, one.start, one.stop) for one in _portions(len(roots))]
        parts: dict[int, RootedPageRank] = dict(finished(profile_rows, calls))
        return _joined([parts[place] for place in range(len(calls))])

    def similar(self, profile: RootedPageRank, degrees: NDArray[np.int64], config: Config) -> SimilarNodes:
        """Return the structural twins of the nodes of a profile, by place."""
        connect(self.address)
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        rows, nodes = comparable(profile, near)
        found = np.full(nodes.shape, np.inf, dtype=np.float32)
        table = Shared.of((rows, nodes))
        calls = [(table, config.similarity, one.start, one.stop) for one in _portions(len(nodes))]
        for _, (slots, distances) in finished(distance_rows, calls if nodes.shape[1] else []):
            found.reshape(-1)[slots] = distances
        return weights_from_distances(nodes, found, config.threads)

    def learn(
        self, lesson: "TrainingData", config: Config, states: "Checkpoints | None", progress: "Progress"
    ) -> "tuple[NDArray[np.float32], list[TrainingRecord]]":
        """Return W_M and the training history; a step is too short to share with other machines."""
        return LocalEngine().learn(lesson, config, states, progress)

    def embed(
        self, generator: Generator, graph: Graph, profile: RootedPageRank | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors (n, d) of all nodes."""
        connect(self.address)
        if profile is not None or len(graph) <= ROWS:  # soon done
            return LocalEngine().embed(generator, graph, profile)
        shared, work, shards = self._shared(graph), Shared.of(generator), plan(len(graph), ROWS)
        columns = _columns_by_tasks(work, shared, generator, shards) if needs_columns(generator) else None
        vectors = np.empty((len(graph), generator.dim), dtype=np.float32)
        calls = [(work, shared, columns, shard) for shard in shards]
        for place, found in finished(vectors_of, calls):
            vectors[shards[place].start : shards[place].stop] = found
        return vectors

    def _shared(self, graph: Graph) -> Shared:
        """Return the graph as tasks read it; sent once for all stages."""
        if self._graph is None or self._graph[0] is not graph:
            self._graph = graph, Shared.of(graph)
        return self._graph[1]


def _columns_by_tasks(work: Shared, graph: Shared, generator: Generator, shards: list[Shard]) -> Shared:
    """Share the structural columns of all nodes, (n, s), which the shards of such a generator read."""
    found = np.empty((shards[-1].stop, len(generator.inputs.columns)), dtype=np.float32)
    for place, part in finished(columns_of, [(work, graph, shard) for shard in shards]):
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


def embed_to_folder(
    generator: Generator,
    graph: Graph,
    folder: str | Path,
    *,
    address: str | None = None,
    rows: int = ROWS,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Write the vectors of all nodes to a folder of Parquet parts, the same as the local engine's.

    A machine that sees the folder writes its parts there itself; the vectors of one that does not come back
    and are written here. What a stopped run left is gone on from, by either engine.

    Parameters
    ----------
    generator : Generator
    graph : Graph
        One of a store is opened by its path on every machine; another is sent to each of them once.
    folder : path
    address : str, optional
        See ``cluster.connect``.
    rows : int
        Nodes a shard, which is what one core does at a time.
    progress : callable (stage, done, total), optional

    Returns
    -------
    Path
        The folder: part-00000.parquet and so on, in graph order, and manifest.json.
    """
    require_names(graph, folder)
    shards = ShardFolder.open(folder, run_of(generator, graph), len(graph), rows)
    missing = shards.missing()
    told = progress or (lambda stage, done, total: None)
    done = shards.num_nodes - sum(shard.stop - shard.start for shard in missing)
    told("embedding nodes", done, shards.num_nodes)
    if not missing:
        return shards.folder
    here, token = shards.folder.resolve(), here_token()
    with connected(address):
        (here / token).touch()
        try:
            shared, work = Shared.of(graph), Shared.of(generator)
            columns = (
                _columns_by_tasks(work, shared, generator, shards.shards)
                if needs_columns(generator)
                else None
            )
            calls = [(work, shared, columns, shard, here, token) for shard in missing]
            with closing(finished(write_vectors, calls)) as parts:  # a stop stops them too
                for place, found in parts:
                    _keep(shards, missing[place], found)
                    done += missing[place].stop - missing[place].start
                    told("embedding nodes", done, shards.num_nodes)
        finally:
            (here / token).unlink(missing_ok=True)
    return shards.folder


def here_token() -> str:
    """Return the name of a file by which machines know that they see the same folder."""
    return f".seen-{uuid4().hex}"


def _keep(shards: ShardFolder, shard: Any, found: Any) -> None:
    """List a part that a machine wrote, or write the vectors that it sent."""
    if not isinstance(found, Part):
        shards.write(shard, found)
        return
    path = shards.folder / found.file
    if not path.is_file() or path.stat().st_size != found.bytes:
        raise ClusterError(f"{path}: a machine wrote it and it is not here; run the same command again")
    shards.record(found)
