"""The league: two quick methods on a small setup, what is measured, stored and shown."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def league(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import league

    return league


def test_cells_are_measured_once_in_processes_of_their_own(league, tmp_path, monkeypatch, capsys):
    command = [sys.executable, "-m", "benchmarks.league", "--setups", "organisation"]
    command += [
        "--methods",
        "plain columns,log degree",
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "league.json"),
    ]
    first = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stderr
    cells = json.loads((tmp_path / "league.json").read_text())["cells"]
    assert sorted(cells) == ["organisation|log degree|0|cpu", "organisation|plain columns|0|cpu"]
    roles = "another network: roles of a made organisation"
    departments = "another network: departments of a made organisation"
    plain, degree = cells["organisation|plain columns|0|cpu"], cells["organisation|log degree|0|cpu"]
    assert plain["scores"][departments] > 60 > degree["scores"][departments]
    assert degree["scores"][roles] > plain["scores"][roles]
    assert plain["memory_mb"] > 10
    assert plain["threads"] == 1
    monkeypatch.setattr(sys, "argv", [*command[2:], "--list"])
    league.main()
    assert capsys.readouterr().out.strip() == ""


def test_a_method_that_fails_is_stored_as_such_and_measured_again_on_demand(league, tmp_path):
    store = league.Store(tmp_path / "league.json")
    store.cells["organisation|SPINE|0|cpu"] = {"error": "ValueError: no"}
    store.write(is_last=True)
    arguments = league.argparse.Namespace(
        setups="organisation",
        methods="SPINE",
        seeds="1",
        device="cpu",
        threads=1,
        retry=False,
        fresh=False,
        times=False,
        jobs=1,
        gpu_jobs=1,
    )
    store = league.Store(tmp_path / "league.json")
    assert "organisation|SPINE|0|cpu" not in [key for key, *_ in league.wanted(arguments, store)]
    arguments.retry = True
    assert "organisation|SPINE|0|cpu" in [key for key, *_ in league.wanted(arguments, store)]
    assert "ValueError: no" in "\n".join(league.tables(store.cells))


def test_methods_do_only_what_they_can(league):
    runs = {
        (title, name)
        for title, method in league.METHODS.items()
        for name in league.SETUPS
        if league.is_run(method, name)
    }
    assert ("node2vec 200", "whole alone cora") in runs
    assert not any(title == "node2vec 200" and name.startswith(("later", "twitch")) for title, name in runs)
    assert not any(title == "plain columns" and "alone" in name for title, name in runs)
    assert ("SPINE place", "later alone cora") in runs
    assert ("SPINE place", "organisation") not in runs
    assert {name for title, name in runs if title == "SPINE"} == set(league.SETUPS)


def test_links_alone_stand_for_both_and_distances_are_to_the_best(league):
    cells = {
        "whole alone cora|node2vec 200|0|cpu": {"scores": {"few labels, links alone: cora": 70.0}},
        "whole cora|SPINE|0|cpu": {"scores": {"few labels: cora": 84.0}},
        "whole cora|SPINE|1|cpu": {"scores": {"few labels: cora": 82.0}},
    }
    scores = league.scores_of(cells)
    assert scores["few labels: cora"]["node2vec 200"] == {0: 70.0}
    below = league.distances(scores)
    assert below["SPINE"] == {"few labels: cora": 0.0}
    assert below["node2vec 200"] == {"few labels: cora": 13.0, "few labels, links alone: cora": 0.0}
    assert "| SPINE | **83.0** ± 1.4 |" in "\n".join(league.task_tables(scores))
    assert "| node2vec 200 | 1 | 84.0 | 70.0 | 1 |" in "\n".join(league.paired_table(scores))


@pytest.mark.parametrize("name", ["GraphSAGE", "DGI", "CCA-SSG", "GraphMAE"])
def test_neural_methods_embed_later_nodes_by_the_same_encoder(league, name):
    from benchmarks import league_neural

    from spinegraph import made

    whole = made.planted(seed=0).graph
    train = whole.subgraph(whole.names[:500])
    embed = league_neural.fit(name, train, 16, seed=0, epochs=3)
    assert embed(train).shape == (500, 16)
    assert embed(whole).shape == (len(whole), 16)
    copy = whole.subgraph(whole.names[:500])  # the same network, read again
    np.testing.assert_allclose(embed(copy), embed(train), atol=1e-5)


def test_a_node_keeps_its_random_columns_when_the_network_grows(league):
    from benchmarks import league_neural

    from spinegraph import made

    whole = made.karate()
    part = whole.subgraph(whole.names[3:20])
    grown, small = (league_neural.made_columns(graph, seed=0) for graph in (whole, part))
    np.testing.assert_array_equal(small[:, :-1], grown[3:20, :-1])


def test_times_are_those_of_two_cores_where_they_were_measured(league):
    cell = {"scores": {}, "seconds": 3.0, "memory_mb": 70.0, "gpu_mb": None, "jobs": 7}
    on_gpu = cell | {"scores": {"few labels: cora": 80.0}, "seconds": 0.5, "gpu_mb": 900.0}
    cells = {"whole cora|DGI 512|0|two cores": cell, "whole cora|DGI 512|0|cuda": on_gpu}
    assert league.spent("DGI 512", league.costs(cells)) == ("two cores", {"cora": (3.0, 70.0)})
    assert league.scores_of(cells) == {"few labels: cora": {"DGI 512": {0: 80.0}}}
    assert league.is_timed(league.METHODS["node2vec 200"], "whole alone cora")
    assert not league.is_timed(league.METHODS["DGI 512"], "whole alone cora")


def test_the_pages_show_every_stored_score(league):
    from benchmarks import accuracy

    study = (ROOT / "docs" / "study.md").read_text()
    assert f"{accuracy.FIRST}\n" + "\n".join(accuracy.lines(accuracy.read())) in study, (
        "python -m benchmarks --pages"
    )
    cells = league.Store(league.RESULTS).cells
    assert "\n".join(league.tables(cells)).rstrip() in league.PAGE.read_text(), "python -m benchmarks --pages"
    assert "\n".join(league.readme_table(league.scores_of(cells))) in league.README.read_text()
