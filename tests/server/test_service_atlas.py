"""The process that draws the map and finds roles: it ends with the service, and what it made is kept."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from command import ALONE
from command import SPINE as COMMAND
from running_service import Running, small_graph
from spinegraph import SPINE
from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import Roles
from spinegraph.apps.server.atlas import MAP, draw, read_map, start_draw
from spinegraph.apps.server.live import Live


def snapshot_of(model):
    live = Live(model.generator_, model.graph_)
    live.compute_all(model.embeddings_.vectors)
    return live.snapshot


@pytest.fixture(scope="module")
def model():
    return SPINE(dim=32, k=10).fit(small_graph())


def test_it_makes_the_map_and_the_roles_of_the_snapshot(model, tmp_path):
    now = snapshot_of(model)
    process, done = start_draw(tmp_path, model.generator_, now)
    assert [done.recv() for _ in range(4)] == ["all", *model.embeddings_.parts]
    process.join(120)
    assert process.exitcode == 0
    arrays, roles = read_map(tmp_path / MAP, now)
    np.testing.assert_array_equal(arrays["places.all"], layout(model.embeddings_.vectors))
    for part in model.embeddings_.parts:
        np.testing.assert_array_equal(arrays[f"places.{part}"], layout(model.embeddings_.part(part).vectors))
        counts = np.bincount(arrays[f"groups.{part}"])
        assert counts.sum() == 90
        assert (np.diff(counts) <= 0).all()  # the largest first
    assert roles.titles == Roles.find(model.graph_, model.generator_, model.embeddings_).titles


def test_a_map_of_another_version_or_a_damaged_one_is_none(model, tmp_path):
    now = snapshot_of(model)
    _, told = Pipe()
    about = now.version, now.overlay.remaining, True
    draw(tmp_path, model.generator_, model.graph_, model.embeddings_.vectors, about, told)
    live = Live(model.generator_, model.graph_, version=3)
    assert read_map(tmp_path / MAP, live.snapshot) is None
    (tmp_path / MAP).write_bytes((tmp_path / MAP).read_bytes()[:-7])
    assert read_map(tmp_path / MAP, now) is None
    assert read_map(tmp_path / "nothing", now) is None


def until(is_so, seconds=60):
    """Wait for something; say whether it came."""
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)
    return is_so()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_ends_with_a_service_that_is_killed(model_folder, tmp_path):
    with Running(model_folder, tmp_path / "store", draws=True) as running:
        pid = running.process.pid
        drawn_already = tmp_path / "store" / MAP
        assert until(lambda: drawn_already.exists() or started_by(pid))
        begun = started_by(pid)
        running.kill()
    assert until(lambda: not any(Path(f"/proc/{child}").exists() for child in begun))


def started_by(pid):
    """Return the processes that a service started, from all its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(one) for task in tasks for one in (task / "children").read_text().split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_ends_with_a_service_that_stops(model_folder, tmp_path):
    with Running(model_folder, tmp_path / "store", draws=True) as running:
        until(lambda: started_by(running.process.pid), seconds=5)
        begun = started_by(running.process.pid)
        running.stop()
    assert until(lambda: not any(Path(f"/proc/{child}").exists() for child in begun))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("delay", [0, 1.5])  # while the process starts, and while it draws
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_stops_it_without_complaints(model_folder, number, delay):
    """As Ctrl+C in a terminal does."""
    with subprocess.Popen(
        [COMMAND, "explore", str(model_folder), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ALONE,
        start_new_session=True,
    ) as process:
        assert "nodes at" in process.stdout.readline()
        until(lambda: any("spawn_main" in command_of(child) for child in started_by(process.pid)))
        time.sleep(delay)
        os.killpg(process.pid, number)
        said = process.communicate(timeout=60)[1]
    assert said in ("interrupted\n", "")


def command_of(pid):
    """Return the command line of a process, or nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
