"""The comparison with other packages, without their environments: files, processes, page and figure."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
SETTINGS = {"dim": 200, "threads": 2, "limit": 300.0}


@pytest.fixture(autouse=True)
def benchmarks_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)


def runner():
    from benchmarks.peer_runners import runner

    return runner


def ring(n=6):
    edges = np.array([(node, node + 1) for node in range(n - 1)] + [(0, n - 1)])
    features = {"data": np.ones(n), "indices": np.arange(n) % 3, "indptr": np.arange(n + 1), "shape": [n, 3]}
    features = {name: np.asarray(values) for name, values in features.items()}
    return runner().Network(edges, n, features)


class MeanOfNeighbors:
    """A peer that keeps what it has and gives a new node the mean of its neighbours."""

    packages = ("numpy",)
    tried = "the mean"

    def __init__(self, settings):
        self.dim = settings.dim

    def load(self, network):
        return network.num_nodes

    def fit(self, num_nodes):
        self.vectors = np.random.default_rng(0).random((num_nodes, self.dim))
        return self.vectors, {"epochs": 3}

    def unseen(self, whole):
        return self.vectors[whole.neighbors_of_last()].mean(axis=0), None


class StartsOver(MeanOfNeighbors):
    def unseen(self, whole):
        found = np.random.default_rng().random((whole.num_nodes, self.dim))
        return found[-1], found[:-1]


class CannotDoIt(MeanOfNeighbors):
    def unseen(self, whole):
        return {}[whole.num_nodes - 1], None


@given(st.integers(3, 9))
def test_a_network_without_its_last_node_keeps_all_else(n):
    whole = ring(n)
    held = whole.without_last()
    expected = whole.sparse().toarray()[:-1, :-1]
    assert (held.sparse().toarray() == expected).all()
    assert (held.sparse_features().toarray() == whole.sparse_features().toarray()[:-1]).all()
    assert whole.neighbors_of_last().tolist() == [0, n - 2]


def test_a_network_comes_back_from_its_file(tmp_path):
    ring().write(tmp_path / "ring.npz")
    back = runner().Network.read(tmp_path / "ring.npz")
    assert (back.sparse() != ring().sparse()).nnz == 0
    assert (back.sparse_features() != ring().sparse_features()).nnz == 0
    assert back.splits is None


@pytest.mark.parametrize(
    ("peer", "can", "answer"),
    [
        (MeanOfNeighbors, "yes", "stay as they were"),
        (StartsOver, "starts over", "100% of the others moved, and a second call gives another"),
        (CannotDoIt, "no", "KeyError: 5"),
    ],
)
def test_a_peer_writes_vectors_and_what_became_of_an_unseen_node(tmp_path, peer, can, answer):
    ring().write(tmp_path / "ring.npz")
    settings = runner().Settings(dim=4, threads=1, seed=0, limit=1.0, variant="")
    files = tmp_path / "vectors.npz", tmp_path / "report.json"
    runner().measure(peer, tmp_path / "ring.npz", tmp_path / "ring.npz", settings, *files)
    report = json.loads(files[1].read_text())
    assert report["status"] == "ok"
    assert report["epochs"] == 3
    assert report["versions"] == {"numpy": np.__version__}
    assert report["unseen"]["can"] == can
    assert answer in report["unseen"]["answer"]
    with np.load(files[0]) as file:
        assert file["vectors"].shape == (6, 4)


def test_a_peer_that_is_too_slow_says_how_slow(tmp_path):
    class Slow(MeanOfNeighbors):
        def fit(self, num_nodes):
            if num_nodes == 6:
                raise runner().TooSlowError("9 s an epoch")
            return super().fit(num_nodes)

    ring().write(tmp_path / "ring.npz")
    settings = runner().Settings(dim=4, threads=1, seed=0, limit=1.0, variant="")
    files = tmp_path / "vectors.npz", tmp_path / "report.json"
    runner().measure(Slow, tmp_path / "ring.npz", tmp_path / "ring.npz", settings, *files)
    assert json.loads(files[1].read_text())["reason"] == "9 s an epoch"
    assert not files[0].exists()


def test_what_runs_in_a_peers_environment_needs_nothing_of_ours():
    alone = "import sys; sys.modules['spinegraph'] = None; import benchmarks.peer_runners.runner"
    subprocess.run([sys.executable, "-c", alone], cwd=ROOT, check=True)


def test_processes_that_hang_or_fail_are_rows_that_say_so(tmp_path, monkeypatch):
    from benchmarks import peers

    report, limits = tmp_path / "report.json", {"threads": 1, "limit": 0.1}
    wait = peers._wait
    fails = [sys.executable, "-c", "raise ImportError('no such wheel')"]
    assert wait(fails, report, limits) == {"status": "failed", "reason": "ImportError: no such wheel"}
    begins = f"open({str(report)!r}, 'w').write('{{}}'); import time; time.sleep(60)"
    assert wait([sys.executable, "-c", begins], report, limits) == {"status": "over", "reason": "stopped"}
    monkeypatch.setattr(peers, "_START", 0.1)
    never = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert "before the fit" in wait(never, tmp_path / "no.json", limits)["reason"]


def test_an_environment_that_cannot_be_made_gives_the_reason(tmp_path, monkeypatch):
    from benchmarks import peers

    def refuse(command, **settings):
        return subprocess.CompletedProcess(command, 1, "", "looking\nERROR: no version of it\nnotice")

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(peers.InstallationError, match="ERROR: no version of it"):
        peers.python_of("pecanpy", home=tmp_path)


def test_every_environment_has_its_pinned_requirements():
    from benchmarks.peers import PEERS, REQUIREMENTS

    for environment in {peer.environment for peer in PEERS} - {None}:
        first = (REQUIREMENTS / f"{environment}.txt").read_text().split()[0]
        assert "==" in first, environment


def row(peer, network, status="ok", **figures):
    start = {
        "import_seconds": 1.0,
        "warm_seconds": 2.0,
        "load_seconds": 0.5,
        "processor": 4.0,
        "versions": {"numpy": "2.0"},
    }
    unseen = {"can": "no", "tried": "`x`", "answer": "KeyError: 'a|b'"}
    common = {
        "peer": peer,
        "network": network,
        "seed": 0,
        "status": status,
        "load_average": 0.5,
    }
    return {**common, **SETTINGS, **({**start, "unseen": unseen} if status == "ok" else {}), **figures}


def sample():
    rows = [
        row("spinegraph", "cora", seconds=3.0, peak_mb=600, accuracy=0.83),
        row("pycleora", "cora", seconds=0.6, peak_mb=80, accuracy=0.53),
        row("PecanPy", "cora", seconds=6.0, peak_mb=320, accuracy=0.72),
        row("spinegraph", "ego_twitter", seconds=10.0, peak_mb=900),
        row("PecanPy", "ego_twitter", "over", reason="stopped"),
        row("fastnode2vec", "ego_twitter", "not installed", reason="no wheel"),
    ]
    machine = {"cores": 2, "machine": "x86_64", "python": "3.11.7"}
    return {"machine": machine, "settings": SETTINGS, "rows": rows}


def test_the_page_says_who_is_ahead_and_who_did_not_come_through():
    from benchmarks.peers_page import block

    text = block(sample())
    assert "Faster: pycleora (0.60 s, 0.530).\n- More accurate: none." in text
    assert "PecanPy 2.0 times" in text
    assert "PecanPy over 30 times" in text
    assert "| PecanPy | graph | over 300 |" in text
    assert "fastnode2vec: no wheel." in text
    assert "KeyError: 'a\\|b'" in text
    cora = text.partition("## Cora")[2].partition("##")[0]
    assert cora.index("pycleora") < cora.index("**spinegraph**") < cora.index("PecanPy")


def test_new_rows_take_the_place_of_old_ones_in_the_order_of_the_table():
    from benchmarks.peers import merged

    old = sample()["rows"]
    new = row("PecanPy", "cora", seconds=5.0, peak_mb=1, accuracy=0.7)
    rows = merged(old, new)
    assert len(rows) == len(old)
    assert new in rows
    assert [each["peer"] for each in rows[:3]] == ["spinegraph", "pycleora", "PecanPy"]
    assert merged(old, {**new, "threads": 1}) == [{**new, "threads": 1}]  # not comparable with the others


def test_results_are_written_between_the_marks_and_drawn(tmp_path):
    from benchmarks.peers_page import draw, write_page

    page = tmp_path / "peers.md"
    page.write_text("before\n<!-- peers results -->\nold\n<!-- end of peers results -->\nafter\n")
    write_page(sample(), page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    draw(sample(), tmp_path)
    assert (tmp_path / "peers.png").stat().st_size > 10_000
    assert "over 300" in (tmp_path / "peers.svg").read_text()


def test_the_page_in_the_documentation_is_that_of_the_kept_results():
    from benchmarks.peers import RESULTS
    from benchmarks.peers_page import PAGE, block

    assert block(json.loads(RESULTS.read_text())) in PAGE.read_text()
