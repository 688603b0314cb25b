"""The web application: routes, errors, pages, and the process that serves it."""

import gc
import socket
import sys
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, Response
from numpy.typing import NDArray

from spinegraph import __version__
from spinegraph.apps.server.problems import MEDIA_TYPE, Problem, install_problems
from spinegraph.apps.server.routes import (
    QuickSimilar,
    changes_router,
    explorer_router,
    export_router,
    health_router,
    nodes_router,
)
from spinegraph.apps.server.schemas import Limits, is_loopback
from spinegraph.apps.server.security import Guard, is_write
from spinegraph.apps.server.service import Service, routed
from spinegraph.errors import MissingPackageError, ParameterError
from spinegraph.graph.graph import Graph

_PROBLEMS = {
    "400": "The body is not JSON.",
    "401": "The token is missing or wrong.",
    "404": "There is no such node, edge or page.",
    "405": "The method is not allowed here.",
    "409": "The name is taken.",
    "413": "The body is too large.",
    "415": "The body is not sent as JSON.",
    "421": "The host is not this machine.",
    "422": "A rule is broken; field and rule say where and which.",
    "500": "The service made a mistake.",
    "503": "Not now: too much to do, or something is not ready.",
    "504": "It would take too long.",
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    ":root{color-scheme:light dark}code{font-family:ui-monospace,monospace}"
    "h2{margin-top:2rem;font-size:1.1rem}td,th{text-align:left;padding:.1rem .8rem .1rem 0}"
)


def install_openapi(app: FastAPI) -> None:
    """Give the app an OpenAPI document that tells of problems and of the token."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    whole = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = whole.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    told = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            for status, words in _PROBLEMS.items():
                operation["responses"][status] = {"description": words, "content": {MEDIA_TYPE: told}}
            operation["security"] = [{"token": []}] if is_write(method.upper(), path) else [{}, {"token": []}]
    return whole


def openapi_page(document: dict[str, Any]) -> str:
    """Return a page about every route: what it does, what it takes, whether it needs the token."""
    parts = [f"<h1>{escape(document['info']['title'])} {escape(document['info']['version'])}</h1>"]
    parts.append('<p>The document for programs is <a href="/openapi.json">/openapi.json</a>.</p>')
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            token = " · token" if operation["security"] == [{"token": []}] else ""
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code>{token}</h2>")
            parts.append(f"<p>{escape(operation.get('description', ''))}</p>")
            rows = [_row(one["name"], one["in"], one["schema"]) for one in operation.get("parameters", [])]
            if "requestBody" in operation:
                rows.append(
                    _row("body", "body", operation["requestBody"]["content"]["application/json"]["schema"])
                )
            if rows:
                parts.append(f"<table>{''.join(rows)}</table>")
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        rows = [_row(key, "", value) for key, value in schema.get("properties", {}).items()]
        parts.append(
            f'<h2 id="{escape(name)}">{escape(name)}</h2><p>{escape(schema.get("description", ""))}</p>'
        )
        parts.append(f"<table>{''.join(rows)}</table>")
    title = escape(document["info"]["title"])
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'


def _row(name: str, where: str, schema: dict[str, Any]) -> str:
    words = escape(schema.get("description", ""))
    cells = (where, _kind(schema), words)
    return f"<tr><th><code>{escape(name)}</code></th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _kind(schema: dict[str, Any]) -> str:
    """Say in a few words what a value is."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("type", "anything")))


_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
# Nothing comes from anywhere but here, and no text may become markup or code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


class Page(NamedTuple):
    """A file's bytes and what they are."""

    body: bytes
    media_type: str


def read_pages() -> dict[str, Page]:
    """Return the explorer's files by path."""
    root = Path(str(files("spinegraph.apps"))) / "explorer"
    found = {}
    for file in sorted(root.rglob("*")) if root.is_dir() else []:
        if file.is_file() and file.suffix in _TYPES:
            path = f"/{file.relative_to(root).as_posix()}"
            found[path] = Page(file.read_bytes(), _TYPES[file.suffix])
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


class GatheredWrites:
    """A transport that sends what was written in one turn of the event loop together.

    Parameters
    ----------
    transport : asyncio transport
    loop : event loop
    """

    def __init__(self, transport: Any, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send data at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def flush(self) -> None:
        """Send what was written."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Send what was written, and close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def http_protocol() -> type:
    """Return uvicorn's HTTP protocol, the quicker one where httptools is installed, with gathered writes."""
    if find_spec("httptools") is not None:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
    else:
        from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]

    class GatheredProtocol(Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(GatheredWrites(transport, self.loop))  # type: ignore[arg-type]

    return GatheredProtocol


def create_app(service: Service, token: str, *, is_local: bool = True) -> Guard:
    """Return the web application of a service, ready for an ASGI server.

    Parameters
    ----------
    service : Service
    token : str
        Needed for writing, and for everything that tells of data when ``is_local`` is false.
    is_local : bool
        Whether the server listens on loopback.
    """
    pages = read_pages()
    app = FastAPI(
        title="spinegraph",
        version=__version__,
        description="Vectors, look-alikes and reasons for nodes that arrive now.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = service
    install_problems(app)
    # The route of a node itself ends in any path, so it comes last.
    for router in (explorer_router, changes_router, export_router, health_router, nodes_router):
        app.include_router(router)
    install_openapi(app)
    app.add_api_route("/docs", _docs(app), include_in_schema=False)
    for path, page in pages.items():
        app.add_api_route(path, _page(page), include_in_schema=False, name=f"page {path}")
    return Guard(
        app,
        token=token,
        is_local=is_local,
        limits=service.limits,
        is_page=lambda path: path in pages,
        routed=routed,
        quick=QuickSimilar(service).body,
        observe=service.metrics.saw_request,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.service.start()
    yield
    app.state.service.close()


def _docs(app: FastAPI) -> Any:
    async def docs() -> HTMLResponse:
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(openapi_page(app.openapi()), headers=policy)

    return docs


def _page(page: Page) -> Any:
    async def show() -> Response:
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Response(page.body, headers=headers, media_type=page.media_type)

    return show


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
