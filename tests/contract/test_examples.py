"""The scripts in ``examples/`` run as they stand and say what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "new_node.py": ["Support"],
    "roles_elsewhere.py": ["of 600 people of an unseen organisation", "leader", "bridge", "fringe"],
}


def test_every_example_is_listed_here():
    assert sorted(SAYS) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(name, tmp_path):
    # Spare threads of two tests at a time would hold each other up.
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env=alone,
    )
    assert (run.returncode, run.stderr) == (0, "")
    for words in SAYS[name]:
        assert words in run.stdout
    assert list(tmp_path.iterdir()) == []
