"""Access: the token, the host, and limits on size, number and time."""

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from spinegraph.apps.server.problems import MEDIA_TYPE, problem_body
from spinegraph.apps.server.schemas import Limits
from spinegraph.errors import MissingFileError, ParameterError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
_LEAST_TOKEN = 16  # characters
_LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
_OPEN = ("/healthz", "/readyz")  # to everybody, always: they say nothing about the data
_UNBOUNDED = "/v1/export"
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]

_NO_STORE = (b"cache-control", b"no-store")


def read_token(file: Path) -> str:
    """Return the token that a file holds, or say what is wrong with it."""
    if not file.is_file():
        raise MissingFileError(
            f"{file}: no such file; write a token of {_LEAST_TOKEN} or more characters to it"
        )
    token = file.read_text(encoding="utf-8").strip()
    if len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ParameterError(
            f"{file}: a token is {_LEAST_TOKEN} or more plain characters without spaces; got {len(token)}. "
            "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def make_token(file: Path) -> str:
    """Make a token, keep it in a file that only its owner may read, and return it."""
    token = secrets.token_urlsafe(32)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(f"{token}\n")
    return token


def is_write(method: str, path: str) -> bool:
    """Say whether a request changes what the service holds; trying out a node does not."""
    return method not in ("GET", "HEAD", "OPTIONS") and path != "/v1/embed"


class Guard:
    """The outermost layer: refuses before the service sees a request.

    Parameters
    ----------
    app : ASGI application
    token : str
    is_local : bool
        Whether the service listens on loopback: then reading needs no token, and the host must be a name of
        this machine, so that no other site's page can reach it by a name of its own.
    limits : Limits
    is_page : callable (path) -> bool
        Which paths are plain pages without data.
    routed : callable (path, raw path) -> path
        By which path a request finds its route.
    quick : callable (path, query) -> JSON or None
        Answers to GET that need no framework.
    observe : callable (scope, status, seconds), optional
    """

    def __init__(
        self,
        app: Any,
        *,
        token: str,
        is_local: bool,
        limits: Limits,
        is_page: Callable[[str], bool],
        routed: Callable[[str, bytes], str] = lambda path, raw: path,
        quick: Callable[[str, bytes], bytes | None] = lambda path, query: None,
        observe: Callable[[Scope, int, float], None] | None = None,
    ) -> None:
        self._app, self._limits, self._is_local = app, limits, is_local
        self._digest = hashlib.sha256(token.encode()).digest()
        self._is_page, self._routed, self._quick = is_page, routed, quick
        self._observe = observe or (lambda scope, status, seconds: None)
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        started, answer = loop.time(), _Answer(send)
        self._at_work += 1
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await answer.problem(*refusal)
            elif scope["path"] == _UNBOUNDED:
                await self._app(scope, receive, answer)
            else:
                async with asyncio.timeout(self._limits.seconds):
                    await self._bounded(scope, receive, answer)
        except TimeoutError:
            detail = f"no answer within {self._limits.seconds:g} seconds; ask for less"
            await answer.problem(504, detail, "seconds")
        finally:
            self._at_work -= 1
            self._observe(scope, answer.status, loop.time() - started)

    def _refusal(self, scope: Scope) -> tuple[Any, ...] | None:
        """Return status, detail and rule of a refusal, or None."""
        headers = {name: value for name, value in scope["headers"] if name in _READ}
        path, method = scope["path"], scope["method"]
        if self._at_work > self._limits.requests:
            detail = f"{self._limits.requests} requests are worked on; try again in a second"
            return 503, detail, "requests", [(b"retry-after", b"1")]
        if self._is_local and _host(headers.get(b"host", b"")) not in _LOCAL_NAMES:
            return 421, "this service answers to localhost alone; ask http://127.0.0.1", "host"
        if self._needs_token(method, path) and not self._has_token(headers.get(b"authorization", b"")):
            detail = "send the token: Authorization: Bearer TOKEN; docs/service.md says where it is"
            return 401, detail, "token", [(b"www-authenticate", b'Bearer realm="spinegraph"')]
        if method in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                return 415, "send JSON with Content-Type: application/json", "content-type"
            if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
                return 415, "send JSON as it is, not compressed: no Content-Encoding", "content-encoding"
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._limits.body:
            return self._too_large()
        return None

    def _needs_token(self, method: str, path: str) -> bool:
        if is_write(method, path):
            return True
        return not (self._is_local or path in _OPEN or self._is_page(path))

    def _has_token(self, header: bytes) -> bool:
        scheme, _, given = header.partition(b" ")
        # Digests have one length, so the comparison tells nothing about the token's.
        digest = hashlib.sha256(given.strip()).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == b"bearer"

    def _too_large(self) -> tuple[Any, ...]:
        return 413, f"a body holds at most {self._limits.body} bytes; send several requests", "body"

    async def _bounded(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Read the body, no more than is allowed, and pass it on in one piece."""
        scope["path"] = self._routed(scope["path"], scope.get("raw_path") or b"")
        if scope["method"] == "HEAD":  # as GET; the web server leaves the body out
            await self._app({**scope, "method": "GET"}, receive, answer)
            return
        if scope["method"] == "GET":
            known = self._quick(scope["path"], scope["query_string"])
            if known is None:
                await self._app(scope, receive, answer)
            else:
                await answer.json(known)
            return
        pieces, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
            if size > self._limits.body:
                await answer.problem(*self._too_large())
                return
        body = [{"type": "http.request", "body": b"".join(pieces), "more_body": False}]

        async def read() -> Scope:
            return body.pop() if body else await receive()

        await self._app(scope, read, answer)


class _Answer:
    """Sends a response on, with the headers that every response has, and keeps its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Scope) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        await self._send(message)

    async def json(self, body: bytes) -> None:
        length = str(len(body)).encode()
        listed = [(b"content-type", b"application/json"), (b"content-length", length), _NO_STORE]
        await self({"type": "http.response.start", "status": 200, "headers": listed})
        await self._send({"type": "http.response.body", "body": body})

    async def problem(
        self, status: int, detail: str, rule: str, headers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        if self.status:
            return  # the response has begun; all that is left is to end the connection
        body = problem_body(status, detail, rule=rule)
        listed = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *(headers or []),
        ]
        await self({"type": "http.response.start", "status": status, "headers": listed})
        await self._send({"type": "http.response.body", "body": body})


_READ = {b"host", b"authorization", b"content-type", b"content-encoding", b"content-length"}


def _host(header: bytes) -> str:
    """Return the name in a Host header, without its port."""
    text = header.decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
