"""Requests to the service, in process: any method, path and body of those it knows, or of none."""

import asyncio
import json
import tempfile
import weakref
from pathlib import Path

from fuzz.outcome import Target

from spinegraph.apps.server.app import create_app
from spinegraph.apps.server.service import Service
from spinegraph.estimator import SPINE
from spinegraph.graph.graph import Graph

_TOKEN = "a-token-for-fuzzing"
_ROUTES = (
    ("POST", "/v1/nodes"),
    ("POST", "/v1/embed"),
    ("POST", "/v1/edges"),
    ("GET", None),
    ("DELETE", None),
    ("POST", None),
)
_BODIES = (
    b'\0{"name": "new", "edges": ["a", "b"], "features": {"x": 1}}',
    b'\0{"nodes": [{"name": 7, "edges": [{"to": "a"}], "features": [0, 1]}]}',
    b'\1{"name": "try", "edges": ["a"], "features": [1, 2]}',
    b'\1{"nodes": [{"name": "p", "edges": ["q"], "features": {}}, {"name": "q", "edges": []}]}',
    b'\2{"edges": [{"source": "a", "target": "c"}]}',
    *(
        b"\3" + path
        for path in (
            *(b"/v1/nodes/a", b"/v1/nodes/a/similar?n=3", b"/v1/nodes/a/explain/b", b"/v1/nodes/a/role"),
            *(
                b"/v1/features",
                b"/v1/search?q=a&n=5",
                b"/v1/nodes/a/twins?n=3",
                b"/v1/export?format=csv",
                b"/v1/map",
                b"/v1/nodes/a/profile",
                b"/metrics",
            ),
            *(b"/v1/nodes/%C3%A9/neighborhood", b"/openapi.json", b"/", b"/healthz", b"/readyz"),
        )
    ),
    b"\4/v1/nodes/new",
    b"\4/v1/edges?source=a&target=b",
    b"\5/v1/compact\0{}",
)
SEEDS = list(_BODIES)
_MOST = 1500  # requests before the service begins anew, so that what was stored does not slow it down


def begin(folder: Path) -> Target:
    """Return a function that sends one request and wants an answer below 500 that is what it says."""
    names = [*"abcdefgh"]
    edges = [(one, other) for one, other in zip(names, names[1:] + names[:1], strict=True)]
    features = [[i % 2, i] for i in range(8)]
    graph = Graph.from_edges([*edges, ("a", "d")], names=names, features=features, feature_names=["x", "y"])
    model = SPINE(dim=3, k=4, threads=1).fit(graph)
    served = _Served(model, graph, folder)

    def target(data: bytes) -> None:
        method, path = _ROUTES[data[0] % len(_ROUTES) if data else 0]
        body = data[1:]
        if path is None:
            line, _, body = body.partition(b"\0")
            path = "/" + line.decode("latin1").lstrip("/")
        served.ask(method, path, body)

    return target


class _Served:
    """A service without a socket."""

    def __init__(self, model: SPINE, graph: Graph, folder: Path) -> None:
        self._model, self._graph, self._folder = model, graph, folder
        self._loop, self._asked = asyncio.new_event_loop(), _MOST
        weakref.finalize(self, self._loop.close)
        self._service: Service | None = None

    def ask(self, method: str, path: str, body: bytes) -> None:
        if self._asked >= _MOST:
            self._begin()
        self._asked += 1
        status, kind, answer = self._loop.run_until_complete(self._answer(method, path, body))
        assert status < 500 or status == 503, (status, method, path, body, answer)
        if kind.endswith(b"json") and method != "HEAD":
            json.loads(answer)

    def _begin(self) -> None:
        if self._service is not None:
            self._service.close()
        self._asked = 0
        store = Path(tempfile.mkdtemp(dir=self._folder))
        self._service = Service(self._model, self._graph, store)
        self._service.start()
        self._app = create_app(self._service, _TOKEN)

    async def _answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes, bytes]:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("latin1"),
            "query_string": query.encode("latin1"),
            "root_path": "",
            "headers": [
                (b"host", b"127.0.0.1"),
                (b"content-type", b"application/json"),
                (b"authorization", f"Bearer {_TOKEN}".encode()),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        sent: list[dict[str, object]] = []
        asked = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, object]:
            return asked.pop() if asked else {"type": "http.disconnect"}

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        headers = dict(sent[0]["headers"])
        answer = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], headers.get(b"content-type", b""), answer
