"""The cluster: connected to in bounded time, or started here; its machines are asked for the package."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spinegraph import __version__
from spinegraph.engines.ray.answering import answers
from spinegraph.errors import ClusterError, MissingPackageError, ParameterError
from spinegraph.kernels.threads import thread_count

_WAIT = 10.0  # seconds for a machine to answer
_WAIT_FOR_WORKERS = 120.0  # seconds for every machine to start a process and import the package
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
_checked: set[str] = set()  # machines that have the package


def require_ray() -> Any:
    """Return the package, or say how to get it.

    >>> require_ray().__name__
    'ray'
    """
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
