"""The look-up that is asked most, answered without the framework's detour: it costs half as much.

Whatever is not plain here goes the usual way, and gets the same answer or a problem there.
"""

import json
from typing import Any

from spinegraph.apps.server.changes import Name
from spinegraph.apps.server.limits import MOST_MATCHES
from spinegraph.apps.server.live import Snapshot
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.service import Service

_START, _END = "/v1/nodes/", "/similar"
_USUAL = 10


class QuickSimilar:
    """Answers ``GET /v1/nodes/NAME/similar``."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def body(self, path: str, query: bytes) -> bytes | None:
        """Return the answer to a request, or None where it should go the usual way."""
        if not (path.startswith(_START) and path.endswith(_END)) or len(path) < len(_START) + len(_END):
            return None
        count, now = _count(query), self._service.snapshot
        if count is None or not self._service.lookup.is_quick(now):
            return None
        try:
            name, position = self._service.directory.find(now, path[len(_START) : -len(_END)])
        except ProblemError:
            return None
        return similar_body(self._service, now, name, position, count)


def similar_body(service: Service, now: Snapshot, name: Name, position: int, n: int) -> bytes:
    """Return a node's look-alikes as JSON."""
    found: dict[str, Any] = {"name": name, "version": now.version}
    found["matches"] = matches(service, now, now.vector(position), n, position)
    return json.dumps(found, separators=(",", ":"), allow_nan=False).encode()


def matches(service: Service, now: Snapshot, vector: Any, n: int, itself: int | None) -> list[dict[str, Any]]:
    """Return the nodes most like a vector as plain values."""
    found = service.lookup.nearest(now, vector, n, itself)
    names = now.overlay.names_at(found.positions)
    return [{"name": name, "score": score} for name, score in zip(names, found.scores.tolist(), strict=True)]


def _count(query: bytes) -> int | None:
    if not query:
        return _USUAL
    digits = query[2:]
    if not query.startswith(b"n=") or not digits.isdigit() or len(digits) > len(str(MOST_MATCHES)):
        return None
    count = int(digits)
    return count if 1 <= count <= MOST_MATCHES else None
