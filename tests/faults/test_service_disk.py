"""A service whose disk fails for a moment loses nothing, keeps nothing it refused, and writes again."""

import gc
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Event, Lock

import numpy as np
import pytest

from injected import require_plain
from running_service import Running, small_graph, small_model
from spinegraph import SPINE
from spinegraph.apps.server import live as live_module
from spinegraph.apps.server import writer as writer_module
from spinegraph.apps.server.live import Change
from spinegraph.apps.server.store import open_store, restore
from spinegraph.apps.server.writer import ClosedError, Writer
from spinegraph.errors import OutputError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    made = small_model(folder / "model", small_graph(n=40).with_features(None))
    with Running(made, folder / "warm") as running:  # what is compiled is compiled, and kept
        assert add(running, 0).status_code == 201
    return made


def add(running, number):
    body = {"name": f"new {number}", "edges": [f"n{number % 40}", f"n{(number + 7) % 40}"]}
    return running.client.post("/v1/nodes", json=body)


def limit_files(size):
    """Let no file of this process grow beyond ``size`` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # Python would keep half a compiled module
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def check(model, folder, size, injected):
    acknowledged, refused = [], []
    with Running(model, folder, before=partial(limit_files, size)) as running:
        for number in range(60):
            answer = add(running, number)
            assert answer.status_code in (201, 503), answer.text
            (acknowledged if answer.status_code == 201 else refused).append(f"new {number}")
            if refused and len(acknowledged) > 5:
                break
        assert acknowledged, "some changes must fit"
        assert refused, "the disk must fill up on the way"
        assert running.get(f"/v1/nodes/{acknowledged[-1]}")["version"] == len(acknowledged)
        running.client.close()
        running.process.kill()
        require_plain(running.process.communicate()[1])
    with Running(model, folder) as running:
        found = set(running.vectors()[1])
        assert set(acknowledged) <= found
        assert not found & set(refused)
        assert add(running, 100).status_code == 201
    injected("full disks", 1)


def test_a_full_disk_costs_no_acknowledged_change(model, tmp_path, injected):
    check(model, tmp_path / "store", 80_000, injected)


@pytest.mark.slow
@pytest.mark.parametrize("size", [40_000, 60_000, 100_000, 150_000, 200_000, 250_000])
def test_a_disk_full_at_any_size_costs_no_acknowledged_change(model, tmp_path, size, injected):
    check(model, tmp_path / "store", size, injected)


class Faults:
    """Calls of the store that fail: a stretch of them, before or after they did what they were asked to."""

    def __init__(self):
        self._lock = Lock()
        self.arm(0, 0)

    def arm(self, first, count, after=False):
        with self._lock:
            self._calls, self._first, self._last, self._after = 0, first, first + count, after
            self.hits = 0

    def around(self, work, error):
        with self._lock:
            fails = self._first <= self._calls < self._last
            self._calls += 1
            self.hits += fails
        if fails and not self._after:
            raise error()
        found = work()
        if fails:
            raise error()
        return found


FAULTS = Faults()


class FailingConnection(sqlite3.Connection):
    def execute(self, *given):
        return FAULTS.around(lambda: super(FailingConnection, self).execute(*given), full)

    def executemany(self, *given):
        return FAULTS.around(lambda: super(FailingConnection, self).executemany(*given), full)

    def __exit__(self, *given):  # commits
        return FAULTS.around(lambda: super(FailingConnection, self).__exit__(*given), full)


def full():
    return sqlite3.OperationalError("database or disk is full")


def broken():
    return OSError(5, "Input/output error")


@pytest.fixture
def failing(monkeypatch):
    """Let any call of the store fail: SQLite's statements and commits, fsync and rename."""
    connect, fsync, rename = sqlite3.connect, os.fsync, os.replace
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=FailingConnection, **k))
    monkeypatch.setattr(os, "fsync", lambda one: FAULTS.around(lambda: fsync(one), broken))
    monkeypatch.setattr(os, "replace", lambda *both: FAULTS.around(lambda: rename(*both), broken))
    yield FAULTS
    FAULTS.arm(0, 0)


@pytest.fixture(scope="module", params=["at once", "deferred"])
def fitted(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_module, "DEFERRED_FROM", 0 if request.param == "deferred" else 10**9)
        patch.setattr(writer_module, "_SAVE_EVERY", 7)
        patch.setattr(writer_module, "_PAUSES", (0.005, 0.02))
        yield SPINE(dim=6, k=8, threads=1).fit(small_graph(n=40).with_features(None))


class Client:
    """Adds and removes nodes of its own and compacts; knows what must be there and what must not."""

    def __init__(self, name):
        self.name, self.there, self.gone, self.count = name, [], [], 0

    def work(self, writer, rng, count):
        for _ in range(count):
            kind = rng.random()
            if kind < 0.15:
                self.told(writer, None)
            elif kind < 0.35 and self.there:
                name = self.there[int(rng.integers(len(self.there)))]
                if self.told(writer, Change("remove", [name])):
                    self.there.remove(name)
                    self.gone.append(name)
            else:
                self.count += 1
                name = f"{self.name} {self.count}"
                ends = rng.choice(40, 2, replace=False)
                done = self.told(writer, Change("add", [name], [(name, f"n{end}") for end in ends]))
                (self.there if done else self.gone).append(name)

    def told(self, writer, change):
        try:
            writer.submit(change).result(30)
            return True
        except ClosedError:
            return False


def require(names, clients):
    for client in clients:
        assert set(client.there) <= names, "an acknowledged change is lost"
        assert not names & set(client.gone), "a refused change, or one undone, is there"


def faulty_round(fitted, folder, clients, rng, begin, end):
    """Work while the store fails for a moment; return once it writes again and was read from a copy."""
    store, copy = open_store(fitted, fitted.graph_, folder), folder.parent / "copy"
    is_last = Event()

    def on_batch(snapshots, changes, seconds):
        if changes and is_last.is_set():  # in the writer's thread, so that nobody writes meanwhile
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.tmp"))

    rebuild = partial(restore, fitted, fitted.graph_, store)
    writer = Writer(rebuild(), store, on_batch=on_batch, rebuild=rebuild)
    writer.start()
    require(set(writer.snapshot.names()), clients)
    with ThreadPoolExecutor(len(clients)) as pool:
        begin()
        seeds = rng.integers(2**31, size=len(clients))
        work = lambda client, seed: client.work(writer, np.random.default_rng(seed), 5)  # noqa: E731
        list(pool.map(work, clients, seeds))
        end()
    until = time.monotonic() + 20
    last = clients[0]
    while writer.fault is not None:  # it resumes without a restart
        assert writer.is_alive()
        assert time.monotonic() < until, writer.fault
        time.sleep(0.002)
    is_last.set()
    last.count += 1
    name = f"{last.name} {last.count}"
    assert last.told(writer, Change("add", [name], [(name, "n1")]))
    last.there.append(name)
    require(set(writer.snapshot.names()), clients)
    writer.close()
    for one in (copy, folder):  # as a kill leaves it, and as it was closed
        store = open_store(fitted, fitted.graph_, one)
        live = restore(fitted, fitted.graph_, store)
        store.close()
        assert live.snapshot.version == writer.snapshot.version
        require(set(live.snapshot.names()), clients)
    live.refresh()
    writer.live.refresh()
    found, expected = live.snapshot, writer.live.snapshot
    np.testing.assert_array_equal(
        found.vectors.take(found.overlay.remaining), expected.vectors.take(expected.overlay.remaining)
    )
    shutil.rmtree(copy)


@pytest.mark.parametrize("rounds", [12, pytest.param(250, marks=pytest.mark.slow)])
def test_an_error_at_any_call_of_the_store_costs_nothing(fitted, tmp_path, rounds, failing, injected):
    clients, rng, hits = [Client(name) for name in "abc"], np.random.default_rng(rounds), 0
    for _ in range(rounds):
        first, count, after = rng.integers(60), rng.integers(1, 12), rng.random() < 0.4

        def begin(first=first, count=count, after=after):
            failing.arm(int(first), int(count), bool(after))

        def end():
            nonlocal hits
            hits += failing.hits
            failing.arm(0, 0)

        faulty_round(fitted, tmp_path / "store", clients, rng, begin, end)
    assert hits > rounds / 2
    injected("faults of a store that pass", rounds)


@pytest.fixture(autouse=True)
def _without_garbage_of_others():
    """Collect what other packages left unclosed in tests before: the store collects garbage after a fault.

    What is left is not looked through again at each fault, which took nine tenths of the time.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def small_disk(tmp_path):
    """A real disk of 600 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(place)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(made, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("rounds", [6, pytest.param(250, marks=pytest.mark.slow)])
def test_a_disk_that_is_full_for_a_moment_costs_nothing(fitted, small_disk, tmp_path, rounds, injected):
    clients, rng, filler = [Client(name) for name in "abc"], np.random.default_rng(1), small_disk / "filler"
    link = tmp_path / "store"
    (small_disk / "store").mkdir()
    link.symlink_to(small_disk / "store")
    for _ in range(rounds):
        left = int(rng.integers(0, 40)) * 1024  # bytes that are free

        def begin(left=left):
            stats = os.statvfs(small_disk)
            with suppress(OSError), open(filler, "wb", buffering=0) as file:
                file.write(bytes(max(stats.f_bavail * stats.f_frsize - left, 0)))

        faulty_round(fitted, link, clients, rng, begin, lambda: filler.unlink(missing_ok=True))
    injected("faults of a store that pass", rounds)


def test_a_read_only_store_is_called_so(fitted, small_disk, injected):
    open_store(fitted, fitted.graph_, small_disk / "store").close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OutputError, match="the store is read-only"):
        open_store(fitted, fitted.graph_, small_disk / "store")
    injected("denied writing", 1)
