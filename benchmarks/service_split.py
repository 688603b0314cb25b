"""Where an insert's processor time goes, HTTP and threads aside: ``python -m benchmarks.service_split``.

Nodes with three edges are added to Cora one by one, as the service's writer does it, and the parts are timed.
"""

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from benchmarks.service import fitted
from benchmarks.service_load import Requests

_PARTS = (  # what, where its function is
    ("the overlay: names, edges, rows, features", "spinegraph.apps.server.live.Live.stage"),
    ("whom it concerns: pushing back", "spinegraph.structure.drift.Drift.change"),
    ("rooted PageRank of these", "spinegraph.generator.Inputs.profile"),
    ("vectors from it, all but the former", "spinegraph.apps.server.live.ContentCache.embed"),
    ("new blocks of vectors", "spinegraph.apps.server.live.Live._set_vectors"),
    ("SQLite, to disk", "spinegraph.apps.server.store.Store.append"),
)


def split(folder, store, count):
    """Return milliseconds of each part of an insert, and how many vectors it computed anew."""
    from spinegraph import SPINE
    from spinegraph.apps.server.schemas import NewNode
    from spinegraph.apps.server.service import RequestReader
    from spinegraph.apps.server.store import Entry, open_store, restore

    model = SPINE.load(folder)
    reader, inserts = RequestReader(model.graph_), Requests(model.graph_).inserts()
    changes = [reader.nodes(NewNode(**next(inserts)[2]), model.graph_.overlay([], [])) for _ in range(count)]
    times, refreshed = {}, 0
    with ExitStack() as stack:
        for what, where in _PARTS:
            stack.enter_context(patch(where, _timed(times, what, where)))
        opened = open_store(model, model.graph_, store)
        stack.callback(opened.close)
        live = restore(model, model.graph_, opened)
        live.apply(changes[0])  # compiles
        times.update((what, 0.0) for what, _ in _PARTS)
        for change in changes:
            snapshot = live.snapshot if change is changes[0] else live.apply(change)
            refreshed += len(snapshot.refreshed)
            opened.append([Entry(snapshot.version, change, True)])
    times[_PARTS[3][0]] -= times[_PARTS[2][0]]
    return {what: times[what] / count * 1000 for what, _ in _PARTS}, refreshed / count


def _timed(times, what, where):
    owner, _, name = where.rpartition(".")
    module, _, kind = owner.rpartition(".")
    inner = getattr(getattr(__import__(module, fromlist=[kind]), kind), name)

    def run(*given, **named):
        before = time.thread_time()
        try:
            return inner(*given, **named)
        finally:
            times[what] = times.get(what, 0.0) + time.thread_time() - before

    return run


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, help="folder that keeps the fitted model for the next time")
    parser.add_argument("--count", type=int, default=1000, help="of inserts")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = fitted("cora", given.models or Path(folder))
        found, refreshed = split(model, Path(folder) / "store", given.count)
    for what, milliseconds in found.items():
        print(f"{what:<44}{milliseconds:6.2f} ms")
    print(f"{'together':<44}{sum(found.values()):6.2f} ms, {refreshed:.1f} vectors computed anew")
