"""Files that may not be read and folders that may not be written to, as any user but root meets them."""

import os
import shutil
import subprocess
import sys

import pytest

from command import ALONE, QUICK
from injected import MAIN, require_plain

FIT = ("fit", "edges.csv", "--features", "people.csv", *QUICK, "--quiet")
EMBED = ("embed", "model", "later.csv", "--features", "people_later.csv", "--quiet")
# What may not be touched, what it may still be, and the command that meets it.
UNREADABLE = {
    "edges": ("edges.csv", ("data", "describe", "edges.csv")),
    "features": ("people.csv", (*FIT, "-o", "new")),
    "settings": ("model/config.json", (*EMBED, "-o", "out.csv")),
    "weights": ("model/model.safetensors", (*EMBED, "-o", "out.csv")),
    "model": ("model", (*EMBED, "-o", "out.csv")),
    "labels": ("teams.csv", ("evaluate", "model", "--labels", "teams.csv")),
    "roles": ("model/graph.safetensors", ("roles", "model", "-o", "roles.json", "--quiet")),
}
READ_ONLY = {
    "fit": (*FIT, "-o", "closed/new"),
    "embed": (*EMBED, "-o", "closed/out.parquet"),
    "report": ("report", "model", "-o", "closed/report.html", "--quiet"),
    "roles": ("roles", "model", "-o", "closed/roles.json", "--quiet"),
    "serve": ("serve", "model", "--store", "closed/store", "--port", "0"),
}


def denied(order, folder):
    """Run a command without root's right to pass over permissions."""
    command = [sys.executable, "-c", MAIN, *order]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root may read and write everything, and there is no setpriv to take that away")
        without = "-dac_override,-dac_read_search,-fowner"
        command = [setpriv, f"--bounding-set={without}", f"--inh-caps={without}", *command]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=ALONE)
    if run.returncode == 127 or "setpriv: " in run.stderr:
        pytest.skip(f"setpriv cannot take rights away here: {run.stderr.strip()}")
    return run


def check(run, where):
    require_plain(run.stderr)
    if run.returncode == 2:  # refused with the usage, before anything was read
        assert f"'{where}' is not readable" in run.stderr
        return
    assert run.returncode == 1, run.stderr
    (line,) = [line for line in run.stderr.splitlines() if not line.startswith("note: ")]
    assert line.startswith("error: ")
    assert where in line
    assert "may not be" in line or "cannot be" in line or "Permission denied" in line


def check_unreadable(place, kind, injected):
    name, order = UNREADABLE[kind]
    (place / name).chmod(0)
    try:
        check(denied(order, place), name.split("/")[0])
    finally:
        (place / name).chmod(0o755)
    assert not (place / "new").exists()
    assert not (place / "out.csv").exists()
    injected("denied reading", 1)


def check_read_only(place, kind, injected):
    (place / "closed").mkdir()
    (place / "closed").chmod(0o555)
    try:
        check(denied(READ_ONLY[kind], place), "closed")
        assert os.listdir(place / "closed") == []
    finally:
        (place / "closed").chmod(0o755)
    injected("denied writing", 1)


@pytest.mark.parametrize("kind", ["edges", "settings"])
def test_what_may_not_be_read_is_one_line(place, kind, injected):
    check_unreadable(place, kind, injected)


@pytest.mark.parametrize("kind", ["embed", "serve"])
def test_where_nothing_may_be_written_is_one_line(place, kind, injected):
    check_read_only(place, kind, injected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNREADABLE)
def test_nothing_that_may_not_be_read_is_a_traceback(place, kind, injected):
    check_unreadable(place, kind, injected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READ_ONLY)
def test_nowhere_that_may_not_be_written_is_a_traceback(place, kind, injected):
    check_read_only(place, kind, injected)
