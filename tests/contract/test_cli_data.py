"""The command ``spine`` and ``spine data describe``, run as a user runs them."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import spinegraph
from command import SPINE, spine
from spinegraph.apps.cli.reading import read_known

EDGES = "source,target,weight\nann,bob,2\nbob,cy,0.5\ndan,dan,1\n"


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(EDGES)
    return path


def test_the_version_is_the_packages():
    run = spine("--version")
    assert (run.returncode, run.stdout) == (0, f"spine {spinegraph.__version__}\n")


def test_help_starts_quickly_and_loads_nothing_heavy():
    spine("--help")
    seconds = []
    for _ in range(3):
        before = os.times()
        run = spine("--help")
        after = os.times()  # of the processor: on a quiet machine that is all there is
        seconds.append(sum(after[2:4]) - sum(before[2:4]))
        assert run.returncode == 0
        assert "data" in run.stdout
    assert min(seconds) < 0.7
    heavy = "{'torch', 'numba', 'numpy', 'sklearn', 'scipy', 'pyarrow', 'networkx', 'plotly'}"
    code = f"import sys, spinegraph.apps.cli; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_describe_says_what_was_understood(edges):
    run = spine("data", "describe", edges)
    assert run.returncode == 0
    lines = [" ".join(line.split()) for line in run.stdout.splitlines()]
    assert lines[0] == str(edges)
    for expected in (
        "nodes 4",
        "edges 2",
        "weights 0.5 to 2",
        "components 2; the largest has 3 nodes (75.0 %)",
        "isolated 1",
        "degree median 1, mean 1.00, largest 2 (node bob)",
        "features none",
        "labels none",
        "3 listed edges gave 2 edges: 1 self-loop dropped.",
    ):
        assert expected in lines
    assert "weights are column 'weight'" in run.stdout
    assert "2-3 1 ████" in " ".join(run.stdout.split())
    assert run.stderr == "note: 1 self-loop dropped of 3 listed edges\n"


def test_describe_joins_features_and_labels(edges, tmp_path):
    people = {
        "node": ["dan", "cy", "bob", "ann"],
        "age": [1.0, 0.0, 0.0, 3.0],
        "height": [0.0, 0.0, 1.0, 1.0],
    }
    parquet.write_table(pa.table(people), tmp_path / "people.parquet")
    (tmp_path / "teams.csv").write_text("node,label\nann,north\nbob,north\ncy,south\n")
    run = spine(
        *("data", "describe", edges, "--features", tmp_path / "people.parquet"),
        *("--labels", tmp_path / "teams.csv", "--json"),
    )
    found = json.loads(run.stdout)
    assert found["features"] == {"columns": 2, "kind": "dense", "density": 0.5, "empty_rows": 1}
    assert found["labels"] == {
        "counts": [["north", 2], ["south", 1]],
        "unlabelled": 1,
        "several_per_node": False,
    }


def test_columns_of_features_are_listed_by_kind_and_options_are_named(tmp_path):
    lines = "".join(f"p{i},p{(i * 7 + 1) % 400},{i % 3}\n" for i in range(400))
    (tmp_path / "edges.csv").write_text(f"from,to,Anzahl Mails\n{lines}")
    rows = (f"p{i},{20 + i % 50 if i % 9 else 'n/a'},c{i % 200},x{i}y\n" for i in range(400))
    (tmp_path / "people.csv").write_text("name,age,city,id\n" + "".join(rows))
    given = ("edges.csv", "--features", "people.csv", "--node-column", "name")
    columns = "columns: age number, city category (136 values share one column), id left out"
    for command in (("data", "describe", *given), ("fit", *given, "-o", "model", "--dim", "8")):
        run = spine(*command, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        assert columns in [line.strip() for line in run.stdout.splitlines()]
        assert "(--weight 'Anzahl Mails' or" in run.stdout
        assert "column 'id' is left out: 400 of 400 values differ" in run.stderr
        assert "; --column id=category keeps it; --column id=ignore silences this warning" in run.stderr


def test_describe_reads_labels_of_npz(tmp_path):
    several = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0]], np.uint8)
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=3, labels=several)
    run = spine("data", "describe", tmp_path / "g.npz")
    assert "3, several per node: 2 (2), 0 (1), 1 (0); 1 nodes have none" in run.stdout


@pytest.mark.parametrize("name", ["g.npz", "g.npz.gz", "g.NPZ", "network"])
def test_labels_of_npz_are_known_by_their_content(tmp_path, name):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=3, labels=[2, 0, -1])
    packed = (tmp_path / "g.npz").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(packed) if name.endswith("gz") else packed)
    assert read_known(tmp_path / name, np.arange(3)).tolist() == ["2", "0", None]


def test_describe_takes_the_readers_options(tmp_path):
    path = tmp_path / "calls.txt"
    path.write_text("when|who|whom|times\n1|a|b|2\n2|b|a|3\n")
    options = ("--source", "who", "--target", "whom", "--weight", "times", "--delimiter", "|", "--json")
    assert "--reciprocal sum" in spine("data", "describe", path, *options).stderr
    found = json.loads(spine("data", "describe", path, *options, "--reciprocal", "sum").stdout)
    assert (found["edges"], found["weights"]) == (1, [5.0, 5.0])
    path.write_text("0 1 5\n")
    found = json.loads(spine("data", "describe", path, "--unweighted", "--num-nodes", 3, "--json").stdout)
    assert (found["nodes"], found["weights"], found["isolated"]) == (3, None, 1)
    found = json.loads(spine("data", "describe", path, "--source", "0", "--target", "1", "--json").stdout)
    assert found["weights"] is None


def test_a_user_error_is_one_line_and_exit_code_1(tmp_path):
    run = spine("data", "describe", tmp_path / "gone.csv")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"error: {str(tmp_path / 'gone.csv')!r}: no such file\n"
    (tmp_path / "bad.csv").write_text("a,b\nc\n")
    run = spine("data", "describe", tmp_path / "bad.csv")
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: {tmp_path / 'bad.csv'}:2: expected 'source target', got 1 field")
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    "arguments", [("data", "describe"), ("nonsense",), ("data", "describe", "x", "--reciprocal", "maybe")]
)
def test_wrong_usage_is_exit_code_2(arguments):
    run = spine(*arguments)
    assert run.returncode == 2
    assert "Usage: spine" in run.stderr


def test_an_interrupt_is_exit_code_130(edges):
    code = (
        "import sys, time, spinegraph.graph.read as read\n"
        "from spinegraph.apps.cli import main\n"
        "def slow(*arguments, **options):\n"
        "    print('reading', flush=True)\n"
        "    time.sleep(60)\n"
        "read.read_joined = slow\n"
        f"sys.argv = ['spine', 'data', 'describe', {str(edges)!r}]\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "reading\n"
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (130, "interrupted\n")


def test_a_reader_that_has_seen_enough_is_no_error(edges):
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run([SPINE, "data", "describe", edges, "--json"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (run.returncode, b"Traceback" in run.stderr) == (0, False)


@pytest.mark.data
def test_cora_reads_well():
    cora = Path(os.environ.get("SPINEGRAPH_DATA", ""), "cora.npz")
    if not cora.is_file():
        pytest.skip("SPINEGRAPH_DATA names no folder with the real networks")
    text = " ".join(spine("data", "describe", cora).stdout.split())
    assert "nodes 2,708 edges 5,278 weights none components 78; the largest has 2,485 nodes" in text
    assert "features 1,433 columns, sparse, 1.27 % not zero labels 7: 3 (818), 4 (426)" in text
