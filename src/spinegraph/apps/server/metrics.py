"""Numbers about the service for Prometheus."""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from spinegraph.apps.server.live import Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """Counters of one service, in a registry of its own.

    Examples
    --------
    >>> Metrics().text().startswith(b"# HELP")
    True
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter("spine_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram(
            "spine_request_seconds",
            "Time to answer.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._changes = Counter("spine_changes", "Changes brought to disk.", registry=registry)
        self._batches = Histogram(
            "spine_batch_seconds", "Time to apply and store a batch.", buckets=_SECONDS, registry=registry
        )
        self._refreshed = Counter("spine_vectors_refreshed", "Vectors computed anew.", registry=registry)
        self._nodes = Gauge("spine_nodes", "Nodes that stand.", registry=registry)
        self._waiting = Gauge("spine_changes_waiting", "Changes that wait for the writer.", registry=registry)
        self._version = Gauge("spine_version", "Changes since the store began.", registry=registry)

    def saw_request(self, scope: Any, status: int, seconds: float) -> None:
        """Count a request."""
        # Never the path itself: it may hold any name.
        known = getattr(scope.get("route"), "path", None)
        route = known or ("/v1/nodes/{name:path}/similar" if scope["path"].endswith("/similar") else "other")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)

    def saw_batch(self, snapshots: list[Snapshot], changes: int, seconds: float) -> None:
        """Count changes that were brought to disk together, and what they led to."""
        self._changes.inc(changes)
        self._batches.observe(seconds)
        self._refreshed.inc(sum(len(snapshot.refreshed) for snapshot in snapshots))

    def watch(self, snapshot: Callable[[], Snapshot], waiting: Callable[[], int]) -> None:
        """Read the present state whenever somebody asks."""
        self._nodes.set_function(lambda: snapshot().overlay.num_nodes)
        self._version.set_function(lambda: snapshot().version)
        self._waiting.set_function(waiting)

    def text(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        found: bytes = generate_latest(self._registry)
        return found
