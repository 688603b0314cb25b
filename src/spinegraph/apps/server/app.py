"""The web application: routes, errors and pages, and the process that serves them."""

import gc
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from numpy.typing import NDArray

from spinegraph import __version__
from spinegraph.apps.server.problems import MEDIA_TYPE, PROBLEMS, Problem, install_problems
from spinegraph.apps.server.routes import router
from spinegraph.apps.server.schemas import Limits
from spinegraph.apps.server.security import Guard, is_write, make_token, read_token
from spinegraph.apps.server.service import Service
from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph

_KEEP_ALIVE = 30  # seconds that an idle connection stays open
_GRACE = 5  # seconds for requests to end when the service stops
_SWITCH_INTERVAL = 0.001  # seconds that a thread computes before another may
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing is loaded from elsewhere, and no text may become markup or code.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


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
    on_start: Callable[[dict[str, Any]], None] = lambda about: None,
) -> None:
    """Serve a fitted model until interrupted.

    Port 0 is any free one. Without ``token_file`` the token is in the store, made if it is missing. Once
    requests are answered, ``on_start`` is called with url, token_file, nodes and version.
    """
    with _listen(host, port) as listening:
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = store / "token" if token_file is None else token_file
        token = make_token(file) if token_file is None and not file.exists() else read_token(file)
        service = Service(model, graph, store, labels=labels, tolerance=tolerance, limits=limits)
        about = {
            "url": f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}",
            "token_file": str(file),
            "nodes": service.snapshot.overlay.num_nodes,
            "version": service.snapshot.version,
        }

        def announce() -> None:
            listening.listen()  # requests that come before uvicorn accepts them wait
            on_start(about)

        app = create_app(service, token, is_local=_is_loopback(host), on_start=announce)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_GRACE,
            lifespan="on",
        )
        # Short pauses: threads that wait get their turn soon, and garbage is not sought in what stays.
        sys.setswitchinterval(_SWITCH_INTERVAL)
        gc.collect()
        gc.freeze()
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
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


def _is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address to listen on."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def create_app(
    service: Service, token: str, *, is_local: bool = True, on_start: Callable[[], None] = lambda: None
) -> Guard:
    """Return the web application of a service, for an ASGI server that is local if it listens on loopback."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        on_start()
        yield
        service.close()

    app = FastAPI(
        title="spinegraph",
        version=__version__,
        description="Vectors, similar nodes and explanations for nodes that arrive now.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    install_problems(app)
    app.include_router(router)
    pages = _pages()
    for path, page in pages.items():
        app.add_api_route(path, page, include_in_schema=False, name=f"page {path}")
    observe, limits = service.metrics.on_request, service.limits
    return Guard(app, token=token, is_local=is_local, limits=limits, pages=pages.keys(), observe=observe)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document with our problems and the token."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = document["components"]
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        parts["schemas"]["Problem"] = Problem.model_json_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                for status, (_, description) in PROBLEMS.items():
                    operation["responses"][str(status)] = {"description": description, "content": content}
                needs_token = is_write(method.upper(), path)
                operation["security"] = [{"token": []}] if needs_token else [{}, {"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


def _pages() -> dict[str, Callable[[], Any]]:
    """Return the explorer's files as endpoints by path; they are read once, here."""
    root, found = Path(str(files("spinegraph.apps"))) / "explorer", {}
    for file in sorted(root.rglob("*")):
        if file.suffix in _MEDIA_TYPES:
            path = f"/{file.relative_to(root).as_posix()}"
            found[path] = _page(file.read_bytes(), _MEDIA_TYPES[file.suffix])
    found["/"] = found["/index.html"]
    return found


def _page(body: bytes, media_type: str) -> Callable[[], Any]:
    async def page() -> Response:
        headers = {"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-cache"}
        return Response(body, headers=headers, media_type=media_type)

    return page
