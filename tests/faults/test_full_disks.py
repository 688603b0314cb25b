"""Disks that fill up: a file system of a few kilobytes, and a limit that makes writing fail at byte n."""

import shutil

import pytest

from command import QUICK, in_small_place
from command import SPINE as COMMAND
from injected import begin, require_plain
from spinegraph import SPINE

FIT = ("fit", "edges.csv", "--features", "people.csv", *QUICK, "--quiet")
EMBED = ("embed", "model", "later.csv", "--features", "people_later.csv", "--quiet")
ORDERS = {
    "fit": (*FIT, "-o", "new"),
    "fit over a model": (*FIT, "-o", "model", "--force"),
    "embed parquet": (*EMBED, "-o", "out.parquet"),
    "embed npz": (*EMBED, "-o", "out.npz"),
    "embed csv": (*EMBED, "-o", "out.csv"),
    "report": ("report", "model", "-o", "report.html", "--quiet"),
    "roles": ("roles", "model", "-o", "roles.json", "--quiet"),
}
OUTPUTS = ("new", "out.parquet", "out.npz", "out.csv", "report.html", "roles.json")
LIMITED = """
import resource, signal, sys
from spinegraph.apps.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python would keep half a compiled module
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
main(sys.argv[2:])
"""


def check_limited(place, kind, size, injected):
    """Let no file grow beyond ``size`` bytes."""
    before = sorted(file.name for file in place.iterdir())
    old = SPINE.load(place / "model").embeddings_.vectors.tobytes()
    with begin(size, *ORDERS[kind], code=LIMITED, cwd=place) as run:
        _, stderr = run.communicate(timeout=300)
    require_plain(stderr)
    assert run.returncode == 1, stderr
    assert stderr.count("\n") == 1 or kind.startswith("fit"), stderr
    assert "error: " in stderr.splitlines()[-1]
    assert "cannot be written" in stderr
    left = sorted(file.name for file in place.iterdir())
    assert [name for name in left if name != "states"] == before
    assert SPINE.load(place / "model").embeddings_.vectors.tobytes() == old
    injected("writing that fails at a byte", 1)


@pytest.mark.parametrize(("kind", "size"), [("embed parquet", 100), ("fit over a model", 300)])
def test_writing_that_fails_at_a_byte_is_one_line_and_changes_nothing(place, kind, size, injected):
    check_limited(place, kind, size, injected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("size", [0, 1, 100, 300])
def test_writing_that_fails_at_any_byte_changes_nothing(place, kind, size, injected):
    check_limited(place, kind, size, injected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("size", ["4k", "8k", "16k"])
def test_a_full_disk_is_one_line_and_nothing_is_left(place, tmp_path, kind, size, injected):
    small = tmp_path / "small"
    small.mkdir()
    order = [small / part if part in OUTPUTS else part for part in ORDERS[kind]]
    order = [place / part if (place / str(part)).exists() else part for part in order]
    order = [small / "states" if part == "states" else part for part in order]
    if kind == "fit over a model":
        shutil.rmtree(place / "model")
        order = [small / "model" if part == "model" else part for part in order]
    run = in_small_place([COMMAND, *order], small, f"size={size}")
    require_plain(run.stderr)
    lines = [line for line in run.stderr.splitlines() if not line.startswith("note: ")]
    if run.returncode:
        assert run.returncode == 1, run.stderr
        assert len(lines) == 1, run.stderr
        assert lines[0].startswith("error: "), run.stderr
        kept = [line for line in run.stdout.splitlines() if line.startswith("left: ")]
        assert set(kept) <= {"left: states"}
    injected("full disks", 1)
