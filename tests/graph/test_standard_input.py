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
    ("rows", "message"),
    [
        (b"node,x\n0,1\n1,2,3\n", b"standard input:3: expected 2 fields as on the first line, got 3"),
        (b"node,x\n0,1\n1,\n", b"standard input:3: column 'x': there is no value"),
    ],
)
def test_a_bad_row_of_features_from_a_pipe_is_named(tmp_path, rows, message):
    (tmp_path / "edges.csv").write_text("0,1\n")
    code = f"import spinegraph; spinegraph.read_graph({str(tmp_path / 'edges.csv')!r}, '-')"
    run = subprocess.run([sys.executable, "-c", code], input=rows, capture_output=True, timeout=120)
    assert message in run.stderr


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", b"standard input: is empty"), (b"a\n", b"standard input:1: expected 'source target'")],
)
def test_errors_name_the_standard_input(data, message):
    run = read_from(data, "names")
    assert run.returncode == 1
    assert message in run.stderr
