"""A service's store on a bad disk: after a stop it comes back as it was, or says that it cannot."""

import shutil
import sqlite3
from collections import Counter
from contextlib import suppress

import pytest

from injected import cuts, flips, outcome
from running_service import small_graph
from spinegraph import SPINE
from spinegraph.apps.server.live import Change
from spinegraph.apps.server.store import Entry, open_store, restore
from spinegraph.errors import SpineError

FILES = [("crashed", "store.sqlite3"), *(("stopped", name) for name in ("store.sqlite3", "base", "state"))]


@pytest.fixture(scope="module")
def model():
    return SPINE(dim=6, k=8, threads=1).fit(small_graph(n=40).with_features(None))


def written(model, folder, *, compacted):
    """Write a store of a few changes; return it and what was seen after each of them."""
    store = open_store(model, model.graph_, folder)
    live = restore(model, model.graph_, store)
    moments = [seen(live)]
    for number in range(1, 25):
        change = Change(
            "add", [f"new {number}"], [(f"new {number}", f"n{number}"), (f"new {number}", f"n{number // 2}")]
        )
        live.stage(change)
        live.update()
        store.append([Entry(number, change, is_last=True)])
        if compacted and number == 20:
            base, state = live.compacted()
            store.compact(live.snapshot.version, base, state)
            live.rebase(base, state)
        moments.append(seen(live))
    return store, moments


def seen(live):
    return (
        live.snapshot.version,
        live.snapshot.overlay.names.tolist(),
        live.snapshot.vectors.matrix().tobytes(),
    )


def read(model, folder):
    store = open_store(model, model.graph_, folder)
    try:
        return seen(restore(model, model.graph_, store))
    finally:
        store.close()


@pytest.fixture(scope="module")
def stores(model, tmp_path_factory):
    """Two stores and their moments: one left by a crash with a write-ahead log, one stopped and compacted."""
    folder = tmp_path_factory.mktemp("stores")
    store, crashed = written(model, folder / "open", compacted=False)
    shutil.copytree(folder / "open", folder / "crashed")
    store.close()
    store, stopped = written(model, folder / "stopped", compacted=True)
    store.close()
    return folder, {"crashed": crashed, "stopped": stopped}


def damaged(model, stores, kind, name, contents, tmp_path):
    folder, moments = stores
    (path,) = (folder / kind).glob(f"{name}-*.safetensors" if name in ("base", "state") else name)
    found = Counter()
    for number, content in enumerate(contents(path.read_bytes())):
        copy = shutil.copytree(folder / kind, tmp_path / str(number))
        (copy / path.name).write_bytes(content)
        files = sorted(file.name for file in copy.glob("*.safetensors"))
        came = outcome(lambda copy=copy: read(model, copy), moments[kind][-1])
        if came == "error":
            assert sorted(file.name for file in copy.glob("*.safetensors")) == files, (
                "evidence was swept away"
            )
        found[came] += 1
        shutil.rmtree(copy)
    return found


@pytest.mark.parametrize("count", [12, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kind", "name"), FILES)
def test_a_damaged_store_comes_back_as_it_was_or_not_at_all(
    model, stores, kind, name, count, tmp_path, injected
):
    found = damaged(model, stores, kind, name, lambda data: flips(data, count), tmp_path)
    assert set(found) <= {"right", "error"}, found
    injected("damaged stores", found.total())


@pytest.mark.parametrize("count", [12, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_damaged_write_ahead_log_gives_an_earlier_version_or_an_error(
    model, stores, count, tmp_path, injected
):
    """SQLite drops what follows a damaged page of it: later changes are lost, but no vector is wrong."""
    folder, moments = stores
    (path,) = (folder / "crashed").glob("*-wal")
    contents = [*flips(path.read_bytes(), count), *cuts(path.read_bytes())]
    for number, content in enumerate(contents):
        copy = shutil.copytree(folder / "crashed", tmp_path / str(number))
        (copy / path.name).write_bytes(content)
        with suppress(SpineError):
            assert read(model, copy) in moments["crashed"]
        shutil.rmtree(copy)
    injected("damaged stores", len(contents))


@pytest.mark.parametrize(
    ("kind", "name"), [("stopped", "store.sqlite3"), ("stopped", "base"), ("stopped", "state")]
)
def test_a_store_cut_short_comes_back_as_it_was_or_not_at_all(model, stores, kind, name, tmp_path, injected):
    found = damaged(model, stores, kind, name, cuts, tmp_path)
    assert set(found) <= {"right", "error"}
    injected("damaged stores", found.total())


def test_a_log_that_is_gone_does_not_start_over(model, stores, tmp_path, injected):
    copy = shutil.copytree(stores[0] / "stopped", tmp_path / "store")
    (copy / "store.sqlite3").unlink()
    assert outcome(lambda: read(model, copy), None) == "error"
    assert len(list(copy.glob("*.safetensors"))) == 2
    injected("damaged stores", 1)


def test_a_log_that_lost_its_end_is_noticed(model, stores, tmp_path, injected):
    folder, moments = stores
    for kind, delete in (
        ("stopped", "version = 24"),
        ("stopped", "version = 22"),
        ("crashed", "version > 0"),
    ):
        copy = shutil.copytree(folder / kind, tmp_path / f"{kind} {delete}")
        with sqlite3.connect(copy / "store.sqlite3") as database:
            database.execute(f"DELETE FROM changes WHERE {delete}")
        database.close()
        assert outcome(lambda copy=copy: read(model, copy), moments[kind][-1]) == "error"
        injected("damaged stores", 1)
