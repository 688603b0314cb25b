"""A service as a process: the socket, the token, the web server and its end."""

import gc
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spinegraph.apps.server.limits import Limits, is_loopback
from spinegraph.errors import MissingPackageError, ParameterError
from spinegraph.graph.graph import Graph

_TURN = 0.001  # seconds that a thread computes before another one may
_KEEP_ALIVE = 30  # seconds that a quiet connection stays open
_GRACE = 5  # seconds that requests have to end when the service stops


def run(
    model: Any,
    graph: Graph,
    store: Path,
    *,
    labels: NDArray[Any] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    token_file: Path | None = None,
    tolerance: float | None = None,
    limits: Limits | None = None,
    told: Callable[[dict[str, Any]], None] = lambda about: None,
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    model : SPINE
    graph : Graph
    store : Path
    labels : array (n,), optional
    host, port
        Where to listen; port 0 is any that is free.
    token_file : Path, optional
        By default ``token`` in the store, made where it is missing.
    tolerance, limits
        See ``Service``.
    told : callable (about)
        Told once, when requests are answered: url, token_file, nodes, version.
    """
    try:
        import uvicorn

        from spinegraph.apps.server.app import create_app
        from spinegraph.apps.server.gathered import http_protocol
        from spinegraph.apps.server.security import make_token, read_token
        from spinegraph.apps.server.service import Service
    except ImportError as error:
        raise MissingPackageError(f"serving needs {error.name}: pip install 'spinegraph[serve]'") from error
    listening = _listen(host, port)
    try:
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = store / "token" if token_file is None else token_file
        token = make_token(file) if token_file is None and not file.exists() else read_token(file)
        service = Service(model, graph, store, labels=labels, tolerance=tolerance, limits=limits)
    except BaseException:
        listening.close()
        raise
    _settle_down()
    app = create_app(service, token, is_local=is_loopback(host))
    config = uvicorn.Config(
        app,
        http=http_protocol(),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
        lifespan="on",
    )
    address = f"[{host}]" if ":" in host else host
    about = {
        "url": f"http://{address}:{listening.getsockname()[1]}",
        "token_file": str(file),
        "nodes": service.snapshot.overlay.num_nodes,
        "version": service.snapshot.version,
    }
    _server_that_tells(uvicorn, config, lambda: told(about)).run(sockets=[listening])


def _settle_down() -> None:
    """Keep the interpreter's own pauses short: for threads that wait, and for garbage among what stays."""
    sys.setswitchinterval(_TURN)
    gc.collect()
    gc.freeze()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as fault:
        listening.close()
        raise ParameterError(
            f"cannot listen on {host} port {port}: {fault.strerror or fault}; "
            "choose another with --host and --port"
        ) from fault
    return listening


def _server_that_tells(uvicorn: Any, config: Any, tell: Callable[[], None]) -> Any:
    """Return a server that calls back when it answers requests."""

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                tell()

    return Server(config)
