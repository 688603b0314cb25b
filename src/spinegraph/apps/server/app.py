"""The web application: access control, routes, errors and pages, and the process that serves them."""

import asyncio
import errno
import gc
import hashlib
import hmac
import re
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from spinegraph import __version__
from spinegraph.apps.server.problems import HANDLERS, MEDIA_TYPE, Problem, ProblemError, as_problem
from spinegraph.apps.server.routes import answer_quickly, router
from spinegraph.apps.server.service import Service, routable_path
from spinegraph.apps.server.writer import MAY_BE_STORED
from spinegraph.errors import MissingFileError, ParameterError
from spinegraph.graph.graph import Graph

_MIN_TOKEN = 16  # characters
_SECONDS, _BODY_SECONDS = 30, 20  # for an answer, and for a body to arrive
_MAX_REQUESTS = 256  # active reads, and as many active writes
_MAX_BODY = 4 * 2**20  # bytes
_LOCAL_NAMES = (b"localhost", b"127.0.0.1", b"::1")
_OPEN = ("/healthz", "/readyz")  # never need the token: they reveal nothing about the data
_UNBOUNDED = "/v1/export"  # may take longer than other requests
_HOST = re.compile(rb"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.IGNORECASE)
_ONCE = (b"authorization", b"idempotency-key")  # and Host
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]


def read_token(file: Path) -> str:
    """Return the token in a file; raise if it is missing or weak."""
    if not file.is_file():
        raise MissingFileError(f"{file}: no such file; write a token of {_MIN_TOKEN} or more characters")
    token = file.read_text(encoding="utf-8").strip()
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ParameterError(
            f"{file}: a token must be {_MIN_TOKEN} or more ASCII characters, no spaces; got {len(token)}. "
            "Create one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def make_token(file: Path) -> str:
    """Write a random token to a new file that only its owner may read, and return it."""
    token = secrets.token_urlsafe(32)
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(f"{token}\n", encoding="utf-8")
    return token


def _too_large() -> ProblemError:
    """Return a new error: one that is raised again keeps the bodies of all requests in its traceback."""
    return ProblemError(413, f"a body has at most {_MAX_BODY} bytes; send several requests", rule="body")


def is_write(method: str, path: str) -> bool:
    """Return whether a request may change the store; embedding a node without storing it does not."""
    return method not in ("GET", "HEAD", "OPTIONS") and path != "/v1/embed"


class Guard:
    """The outermost ASGI layer, which rejects requests before the application sees them.

    If the service is local, on loopback, neither reads nor nodes added by its own page need a token, and the
    host must be a name of this machine, so that no other site can reach the service by its own host name.
    ``pages`` are paths without data, which never need the token.
    """

    def __init__(
        self, app: ASGIApp, service: Service, token: str, *, is_local: bool, pages: Collection[str] = ()
    ) -> None:
        self._app, self._service, self._is_local, self._pages = app, service, is_local, pages
        self._digest = hashlib.sha256(token.encode()).digest()
        self._active = {False: 0, True: 0}  # requests that read, and that write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # lifespan, since the web server accepts no websockets
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        started, status = loop.time(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        try:
            await self._answer(scope, receive, send_on)
        except Exception as error:
            problem = as_problem(error)
            if not status:  # else the response has started, and the connection just ends
                await problem.response()(scope, receive, send_on)
            if problem.status == 500:
                raise  # to be logged
        finally:
            self._service.metrics.on_request(scope, status, loop.time() - started)

    def _check(self, scope: Scope) -> None:
        """Raise if the head of a request breaks a rule."""
        headers, path, method = dict(scope["headers"]), scope["path"], scope["method"]
        listed = [name for name, _ in scope["headers"]]
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise ProblemError(400, "send Content-Length or Transfer-Encoding, not both", rule="one length")
        for name in _ONCE:
            if listed.count(name) > 1:
                raise ProblemError(400, f"{name.decode()}: sent twice; send it once", rule="sent once")
        hosts = [_HOST.fullmatch(value) for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1 or None in hosts:
            detail = "send one Host header: a name or address, and a port unless it is 80"
            raise ProblemError(400, detail, field="header.host", rule="host")
        names = [(host[1] or host[2]).lower() for host in hosts if host]
        if self._is_local and (not names or names[0] not in _LOCAL_NAMES):
            raise ProblemError(421, "this service answers only localhost; use http://127.0.0.1", rule="host")
        is_open = self._is_local or path in _OPEN or path in self._pages
        # The service's own page may add nodes: no other site's page can name this origin.
        own = b"http://" + headers.get(b"host", b"")
        is_page = self._is_local and (method, path) == ("POST", "/v1/nodes") and headers.get(b"origin") == own
        given = headers.get(b"authorization", b"")
        if not is_page and (is_write(method, path) or not is_open) and not self._has_token(given):
            why = "the token is wrong" if given else "no token was sent"
            detail = f"{why}; send it as Authorization: Bearer TOKEN; see docs/service.md for where it is"
            scheme = 'Bearer realm="spinegraph"' + ', error="invalid_token"' * bool(given)
            raise ProblemError(401, detail, rule="token", headers={"WWW-Authenticate": scheme})
        if method in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise ProblemError(415, "send JSON with Content-Type: application/json", rule="content-type")
            if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
                raise ProblemError(415, "send uncompressed JSON", rule="content-encoding")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > _MAX_BODY:
            raise _too_large()

    def _has_token(self, header: bytes) -> bool:
        scheme, _, given = header.partition(b" ")
        # All digests have the same length, so the time to compare reveals nothing about the token.
        digest = hashlib.sha256(given.strip()).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == b"bearer"

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        body = b""
        self._check(scope)
        scope["path"] = routable_path(path, scope.get("raw_path") or b"")
        if method == "HEAD":  # answered as GET; the web server leaves the body out
            scope = {**scope, "method": "GET"}
        elif method != "GET":
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    body = await self._body(Request(scope, receive))
            except ClientDisconnect:
                return
            except TimeoutError:
                detail = f"the body did not arrive within {_BODY_SECONDS} seconds; send it again"
                close = {"Connection": "close"}
                raise ProblemError(408, detail, field="body", rule="seconds", headers=close) from None
            messages = [{"type": "http.request", "body": body, "more_body": False}]
            wait = receive

            async def receive() -> Message:
                return messages.pop() if messages else await wait()

        writes = is_write(method, path)
        if path in _OPEN:  # health checks are always answered
            await self._app(scope, receive, send)
            return
        if self._active[writes] >= _MAX_REQUESTS:
            detail = f"{_MAX_REQUESTS} requests are active; try again in a second"
            raise ProblemError(503, detail, rule="requests", headers={"Retry-After": "1"})
        self._active[writes] += 1
        try:
            async with asyncio.timeout(None if path == _UNBOUNDED else _SECONDS):
                response = await answer_quickly(self._app, scope, body)
                await (self._app if response is None else response)(scope, receive, send)
        except TimeoutError:
            way_out = MAY_BE_STORED if writes else "request less"
            detail = f"no answer within {_SECONDS} seconds; {way_out}"
            raise ProblemError(504, detail, rule="seconds") from None
        finally:
            self._active[writes] -= 1

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > _MAX_BODY:
                raise _too_large()
        return bytes(body)


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's connection, which is closed if the headers of a request do not arrive in time.

    If file descriptors run short, the connection that has waited longest for headers is closed for a new one.
    """

    _open: ClassVar[dict["Connection", None]] = {}  # oldest first
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start a connection."""
        super().connection_made(transport)
        self._open[self] = None
        self._watch()
        if len(self._open) > max_connections():
            others = [one for one in self._open if one is not self]
            slow = [one for one in others if one.awaits_headers] or [one for one in others if one.awaits_body]
            oldest = slow[0] if slow else self
            self._open.pop(oldest, None)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        """End a connection."""
        self._open.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(error)

    @property
    def awaits_headers(self) -> bool:
        """Whether no request is being received or answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def awaits_body(self) -> bool:
        """Whether the body of a request is being received."""
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_started

    def _watch(self) -> None:
        if self._deadline is not None and not self.awaits_headers:
            self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None and self.awaits_headers:
            self._deadline = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def send_400_response(self, message: str) -> None:
        """Answer an invalid HTTP request, or one with two hosts, with a problem document."""
        detail = "this is not valid HTTP/1.1; send each of Host and Content-Length once"
        body = ProblemError(400, detail, rule="HTTP").response().body
        head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()


def max_connections() -> int:
    """Return how many connections may be open, so that file descriptors are left for the store."""
    if sys.platform == "win32":
        return _MAX_CONNECTIONS
    from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

    limit = getrlimit(RLIMIT_NOFILE)[0]
    room = _MAX_CONNECTIONS if limit == RLIM_INFINITY else max(limit - _KEPT_DESCRIPTORS, limit // 2)
    return min(_MAX_CONNECTIONS, room)


_KEEP_ALIVE = 30  # seconds that an idle connection stays open
_HEADER_SECONDS = 10  # for the headers of a request, from the connection or their first byte
_MAX_CONNECTIONS, _KEPT_DESCRIPTORS = 4_096, 128  # open at a time; for files and connections to be rejected
_GRACE = 5  # seconds for requests to finish when the service stops
_SWITCH_INTERVAL = 0.00005  # seconds until threads switch
_MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
# Nothing may be loaded from elsewhere, and no text may become markup or code.
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
    on_start: Callable[[dict[str, Any]], None],
    host: str = "127.0.0.1",
    port: int = 0,
    token_file: Path | None = None,
    **options: Any,
) -> None:
    """Serve a fitted model until interrupted; options are those of ``Service``.

    Port 0 is any free port. Without ``token_file`` the token is in the store, created if it is missing. Once
    requests are answered, ``on_start`` is called with url, token_file, nodes and version.
    """
    with _listen(host, port) as listening:
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = store / "token" if token_file is None else token_file
        token = make_token(file) if token_file is None and not file.exists() else read_token(file)
        service = Service(model, graph, store, **options)
        about = {
            "url": f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}",
            "token_file": str(file),
            "nodes": service.snapshot.overlay.num_nodes,
            "version": service.snapshot.version,
        }

        def announce() -> None:
            listening.listen()  # requests that arrive before uvicorn accepts them wait
            on_start(about)

        app = create_app(service, token, is_local=_is_loopback(host), on_start=announce)
        settings: Any = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
        settings |= {"timeout_keep_alive": _KEEP_ALIVE, "timeout_graceful_shutdown": _GRACE}
        settings |= {"lifespan": "on", "http": Connection, "proxy_headers": False}
        # Freeze long-lived objects, so that garbage collection skips them.
        sys.setswitchinterval(_SWITCH_INTERVAL)
        gc.collect()
        gc.freeze()
        uvicorn.Server(uvicorn.Config(app, **settings)).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends responses without delay only on connections with this protocol.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as fault:
        listening.close()
        option = "--port" if fault.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        why = f"cannot listen on {host} port {port}: {fault.strerror or fault}"
        raise ParameterError(f"{why}; choose another {option}") from fault
    return listening


def _is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached only from this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def create_app(
    service: Service, token: str, *, is_local: bool = True, on_start: Callable[[], None] = lambda: None
) -> Guard:
    """Return the web application of a service; ``is_local`` if the ASGI server listens on loopback."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        on_start()
        yield
        service.close()

    app = _Application(
        title="spinegraph",
        version=__version__,
        description="Vectors, similar nodes and explanations of nodes, including new ones.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        routes=router.routes,  # including the router would match every path twice
        exception_handlers=HANDLERS,
    )
    app.state.service = service
    pages = _pages()

    async def page(request: Request) -> Response:
        body, kind = pages[request.scope["path"]]
        headers = {"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-cache"}
        return Response(body, headers=headers, media_type=kind)

    for path in pages:
        app.add_api_route(path, page, include_in_schema=False)
    return Guard(app, service, token, is_local=is_local, pages=pages.keys())


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document with the problem schema and the token."""
        if self.openapi_schema is None:
            document = super().openapi()
            document["components"]["schemas"]["Problem"] = Problem.model_json_schema()
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, methods in document["paths"].items():
                for method, operation in methods.items():
                    needs_token = is_write(method.upper(), path)
                    operation["security"] = [{"token": []}] if needs_token else [{}, {"token": []}]
        return super().openapi()


def _pages() -> dict[str, tuple[bytes, str]]:
    """Return the explorer's files and their media types by path."""
    root = Path(str(files("spinegraph.apps"))) / "explorer"
    shown = [file for file in sorted(root.rglob("*")) if file.suffix in _MEDIA_TYPES]
    found = {f"/{file.relative_to(root).as_posix()}": file for file in shown}
    found["/"] = root / "index.html"
    return {path: (file.read_bytes(), _MEDIA_TYPES[file.suffix]) for path, file in found.items()}
