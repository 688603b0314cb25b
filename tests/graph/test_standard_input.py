"""Edges from the standard input, named ``-``, in every format that a file may have."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

CODE = "import spinegraph; print(spinegraph.read_graph('-', '-' if {features} else None).{what})"


def read_from(data, what, features=False):
    code = CODE.format(what=what, features=features)
    return subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, timeout=120)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_text_is_read_from_a_pipe(pack):
    run = read_from(pack(b"ann,bob\nbob,cy\n"), "names.tolist()")
    assert (run.returncode, run.stdout) == (0, b"['ann', 'bob', 'cy']\n")


def test_an_archive_gives_edges_and_features(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=3, features=np.eye(3))
    run = read_from((tmp_path / "g.npz").read_bytes(), "features.shape", features=True)
    assert (run.returncode, run.stdout) == (0, b"(3, 3)\n")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", b"standard input: is empty"), (b"a\n", b"standard input:1: expected 'source target'")],
)
def test_errors_name_the_standard_input(data, message):
    run = read_from(data, "names")
    assert run.returncode == 1
    assert message in run.stderr
