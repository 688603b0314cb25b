"""Memory that runs out at any point: the result, or one line that says so, and nothing half written."""

import sys

import pytest

from command import QUICK, spine
from injected import begin, require_plain
from spinegraph import SPINE
from spinegraph.apps.cli import app

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory by Linux's means")
# Loads and compiles everything by running the command once; then as little more as the first argument says.
LIMITED = """
import contextlib, os, resource, sys
from spinegraph.apps.cli import main

order, room = sys.argv[2:], int(sys.argv[1])
with contextlib.suppress(SystemExit):
    main(order)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room,) * 2)
print("limited", flush=True)
main(order)
"""
ORDERS = {
    "describe": (("data", "describe", "large.csv", "--json"), None),
    "embed": (("embed", "model", "large.csv", "-o", "out.parquet", "--quiet"), "out.parquet"),
    "fit": (("fit", "large.csv", "-o", "new", *QUICK, "--quiet"), "new"),
}
ROOMS = [2**20, 8 * 2**20, 32 * 2**20, 128 * 2**20]


@pytest.fixture
def large(place):
    """Add a network whose reading and embedding needs tens of megabytes, and a model without features."""
    n = 30_000
    lines = [f"{i},{(i + step) % n}\n" for i in range(n) for step in (1, 7, 101)]
    (place / "large.csv").write_text("".join(lines))
    (place / "model").rename(place / "other")
    run = spine("fit", "edges.csv", "-o", "model", *QUICK, "--quiet", cwd=place)
    assert run.returncode == 0, run.stderr
    return place


def check(place, kind, room, injected):
    order, output = ORDERS[kind]
    with begin(room, *order, code=LIMITED, cwd=place) as run:
        stdout, stderr = run.communicate(timeout=500)
    assert "limited" in stdout, stderr
    require_plain(stderr)
    lines = [line for line in stderr.splitlines() if not line.startswith("note: ")]
    if run.returncode:
        assert run.returncode == 1, (run.returncode, stderr)
        assert "memory" in lines[-1].lower(), stderr
    if output == "new":
        assert SPINE.load(place / "new").embeddings_ is not None
    assert not [file.name for file in place.iterdir() if file.name.endswith(".tmp")]
    injected("too little memory", 1)
    return run.returncode


@pytest.mark.parametrize("words", ["DefaultCPUAllocator: can't allocate memory", "CUDA out of memory"])
def test_what_pytorch_says_of_memory_is_understood(words):
    assert app.error_message(RuntimeError(words)).startswith("out of memory")
    assert app.error_message(RuntimeError("shapes do not match")) is None


@pytest.mark.parametrize("room", ROOMS[:1])
def test_a_command_without_memory_says_so(large, room, injected):
    assert check(large, "embed", room, injected) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("room", ROOMS)
def test_memory_that_runs_out_anywhere_is_one_line(large, kind, room, injected):
    check(large, kind, room, injected)
