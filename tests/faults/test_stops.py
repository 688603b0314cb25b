"""Commands stopped at random moments: what was there is there, what is new is whole, and a fit goes on."""

import os
import random
import re
import shutil
import signal
import sys
import time

import pytest

from command import QUICK
from injected import begin, require_plain
from spinegraph import SPINE, Embeddings
from spinegraph.apps.cli import main
from spinegraph.atomic import recover

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
FIT = ("fit", "edges.csv", "--features", "people.csv", *QUICK)
EMBED = ("embed", "model", "later.csv", "--features", "people_later.csv", "--quiet")
# What each command writes, and to what.
ORDERS = {
    "fit": ((*FIT, "-o", "model", "--force", "--quiet"), "model"),
    "embed parquet": ((*EMBED, "-o", "vectors.parquet"), "vectors.parquet"),
    "embed csv": ((*EMBED, "-o", "vectors.csv"), "vectors.csv"),
    "report": (("report", "model", "-o", "report.html", "--quiet"), "report.html"),
    "roles": (("roles", "model", "-o", "roles.json", "--quiet"), "roles.json"),
}


def content(path):
    """Return what a file or folder holds, None where there is none."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    return path.read_bytes() if path.exists() else None


def stop(order, folder, how, seconds):
    """Run a command and stop it after some seconds; return its exit status."""
    with begin(*order, cwd=folder) as run:
        time.sleep(seconds)
        run.send_signal(how)
        _, stderr = run.communicate(timeout=120)
    if how != signal.SIGKILL:
        require_plain(stderr)
        if how == signal.SIGINT and run.returncode not in (0, 1):
            # -2: it came before the program's first line was read.
            assert run.returncode in (130, -signal.SIGINT), stderr
    return run.returncode


def names(folder):
    """Return all names but those of temporary files, which are hidden and swept away in time."""
    return sorted(name for name in os.listdir(folder) if not re.fullmatch(r"\..*\.(tmp|old)", name))


def check_stops(command, place, times, injected, seed=0):
    order, output = ORDERS[command]
    old, before = content(place / output), names(place)
    start = time.monotonic()
    with begin(*order, cwd=place) as run:
        assert run.wait(timeout=300) == 0, run.stderr.read()
    whole_time, new = time.monotonic() - start, content(place / output)
    after = names(place)
    draw, early = random.Random(seed), 0
    for number in range(times):
        how = SIGNALS[number % 3]
        _restore(place / output, old)
        # Spread over the whole time, so that the first come early even if later runs are quicker.
        status = stop(order, place, how, (number + draw.random()) / times * whole_time)
        recover(place / output)  # as the next reader does
        found = content(place / output)
        assert _same(found, old) or _same(found, new), f"{output} is half written after {how!r} {number}"
        assert names(place) in (before, after)
        if how != signal.SIGKILL:
            assert sorted(os.listdir(place)) == names(place), "a stop in order leaves nothing on its way"
        early += status != 0
    assert early
    injected("stopped commands", times)


def _same(found, expected):
    if isinstance(found, bytes) and isinstance(expected, bytes) and found[:15].lower() == b"<!doctype html>":
        return len(found) > 1000 and found.rstrip().endswith(b"</html>")
    return found == expected


def _restore(path, old):
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    if isinstance(old, dict):
        path.mkdir()
        for name, data in old.items():
            (path / name).write_bytes(data)
    elif old is not None:
        path.write_bytes(old)


@pytest.mark.parametrize("command", ["embed parquet"])
def test_a_command_stopped_at_any_moment_leaves_the_old_or_the_new(place, command, injected):
    check_stops(command, place, 3, injected)


@pytest.mark.slow
@pytest.mark.parametrize("command", ORDERS)
def test_commands_stopped_at_many_moments_leave_the_old_or_the_new(place, command, injected):
    check_stops(command, place, 30, injected, seed=1)


SAVING = """
import sys
from spinegraph import SPINE
model = SPINE.load(sys.argv[1])
for ending in ("parquet", "npz", "csv"): model.embeddings_.save(f"{sys.argv[1]}.{ending}")
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
    for ending in ("parquet", "npz", "csv"): model.embeddings_.save(f"{sys.argv[1]}.{ending}")
"""


def check_saving(place, times, injected):
    expected = SPINE.load(place / "model").embeddings_.vectors.tobytes()
    draw = random.Random(5)
    for _ in range(times):
        with begin(place / "model", code=SAVING) as run:
            assert run.stdout.readline() == "ready\n", run.stderr.read()
            time.sleep(draw.random() / 4)
            run.kill()
        assert SPINE.load(place / "model").embeddings_.vectors.tobytes() == expected
        for ending in ("parquet", "npz", "csv"):
            assert Embeddings.load(place / f"model.{ending}").vectors.tobytes() == expected
    injected("killed while saving", times)


def test_saving_killed_in_the_middle_leaves_whole_files(place, injected):
    check_saving(place, 2, injected)


@pytest.mark.slow
def test_saving_killed_forty_times_leaves_whole_files(place, injected):
    check_saving(place, 40, injected)


def test_a_stop_that_compiled_code_turns_into_an_error_is_still_a_stop(monkeypatch):
    def load(arguments):
        try:
            signal.raise_signal(signal.SIGTERM)
        except SystemExit:
            raise AttributeError("partially initialized module") from None

    monkeypatch.setattr("spinegraph.apps.cli.app.app", load)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as stopped:
            main([])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped.value.code == 128 + signal.SIGTERM
