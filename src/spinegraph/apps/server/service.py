"""What the routes share: the model, the writer, look-ups, the map."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from typing import Any

from numpy.typing import NDArray

from spinegraph.apps.server.atlas import Atlas
from spinegraph.apps.server.changes import Change, Name
from spinegraph.apps.server.contents import embedder
from spinegraph.apps.server.directory import Directory
from spinegraph.apps.server.limits import Limits
from spinegraph.apps.server.live import Live, Snapshot
from spinegraph.apps.server.lookup import Lookup
from spinegraph.apps.server.metrics import Metrics
from spinegraph.apps.server.requests import Reader
from spinegraph.apps.server.restore import open_store, restore
from spinegraph.apps.server.twins import Twins
from spinegraph.apps.server.writer import Writer
from spinegraph.graph.graph import Graph
from spinegraph.structure.drift import Drift, NeighborDrift


class Service:
    """A model at work on a graph that changes.

    Parameters
    ----------
    model : SPINE
        Fitted.
    graph : Graph
        As it was when the store began.
    store : Path
        Folder of the durable store.
    labels : array (n,), optional
        One label per node of ``graph``, for the map.
    tolerance : float, optional
        How far a root may move before it is computed anew; the model's own by default.
    limits : Limits
    """

    def __init__(
        self,
        model: Any,
        graph: Graph,
        store: Path,
        *,
        labels: NDArray[Any] | None = None,
        tolerance: float | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits, self.metrics, self.lookup = limits or Limits(), Metrics(), Lookup()
        opened = open_store(model, graph, store)
        try:
            self.live: Live = restore(model, graph, opened, tolerance)
        except BaseException:
            opened.close()
            raise
        self.generator, self.familiarity = self.live.generator, model.familiarity_
        told = [] if labels is None else zip(graph.names.tolist(), labels.tolist(), strict=True)
        self.labels = {name: label for name, label in told if label is not None}
        self.writer = Writer(self.live, opened, waiting=self.limits.changes, on_batch=self._saw_batch)
        self.atlas = Atlas(model, self.generator, self.lookup, store)
        self.twins = Twins(self.generator)
        self.workers = ThreadPoolExecutor(2, "worker")
        self.metrics.watch(lambda: self.snapshot, lambda: self.writer.waiting)
        self.reader, self.directory = Reader(graph, model.table_encoder_), Directory()

    @property
    def snapshot(self) -> Snapshot:
        """The present state; it never changes, so take it once a request."""
        return self.writer.snapshot

    def start(self) -> None:
        """Begin to take changes, and to draw the map."""
        self._warm()
        self.writer.start()
        self.lookup.keep_up(self.snapshot)
        self.atlas.begin(self.snapshot)

    def close(self) -> None:
        """Finish what waits and close the store."""
        self.atlas.close()
        self.lookup.close()
        self.writer.close()
        self.workers.shutdown(wait=False, cancel_futures=True)

    def _warm(self) -> None:
        """Do once what changes and look-ups do, on a state of its own: it is compiled from then on."""
        now, tried = self.snapshot.overlay, f"\0{token_hex(16)}"  # a name that is not there
        edges: list[tuple[Name, Name]] = [(tried, name) for name in now.names_at(now.standing[:2])]
        weights = [1.0] * len(edges) if self.reader.is_weighted else None
        change = Change("add", [tried], edges, weights, None if self.reader.columns is None else [([], [])])
        after = change.apply(now.branch())
        Drift(len(now), 0.5, 0.05).change(now, after)
        NeighborDrift(len(now), 0.05).change(now, after)
        for embed in (self.generator.embed, embedder(self.generator)):
            embed(after, after.touched)
        self.lookup.nearest(self.snapshot, self.snapshot.vector(int(now.standing[0])), 1)

    def _saw_batch(self, snapshots: list[Snapshot], changes: int, seconds: float) -> None:
        self.metrics.saw_batch(snapshots, changes, seconds)
        for snapshot in snapshots:
            self.lookup.keep_up(snapshot)
            self.twins.keep_up(snapshot)
