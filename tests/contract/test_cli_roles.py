"""``spine roles``, run as a user runs it."""

import csv
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from command import spine
from spinegraph import SPINE, datasets, made

DATA = Path(os.environ.get("SPINEGRAPH_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
needs_cora = pytest.mark.skipif(not (DATA / "cora.npz").is_file(), reason=f"no cora.npz in {DATA}")


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def write_network(folder, name, planted):
    """Write an organisation as a user keeps it: edges, features and the true roles."""
    graph, names = planted.graph, planted.graph.names
    ends = np.repeat(np.arange(len(graph)), graph.degrees)
    once = ends < graph.indices
    with (folder / f"{name}.csv").open("w") as file:
        csv.writer(file).writerows(
            [("source", "target"), *zip(names[ends[once]], names[graph.indices[once]], strict=True)]
        )
    with (folder / f"{name}_words.csv").open("w") as file:
        rows = zip(names, graph.features.toarray().astype(int).tolist(), strict=True)
        csv.writer(file).writerows([("name", *graph.feature_names), *((who, *row) for who, row in rows)])
    with (folder / f"{name}_roles.csv").open("w") as file:
        known = (planted.role_names[role] for role in planted.role)
        csv.writer(file).writerows([("name", "role"), *zip(names, known, strict=True)])


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A model of one organisation, and another organisation in files."""
    folder = tmp_path_factory.mktemp("office")
    here, there = (made.planted(5, 40, feature_noise=0.3, role_strength=1.0, seed=seed) for seed in (42, 43))
    SPINE(dim=32).fit(here.graph).save(folder / "model")
    write_network(folder, "here", here)
    write_network(folder, "there", there)
    return folder


@pytest.fixture(scope="module")
def cora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "cora"
    SPINE(dim=32).fit(datasets.load("cora", DATA).graph).save(folder)
    return folder


@pytest.mark.data
@needs_cora
def test_the_roles_of_cora_are_described_in_words_and_numbers(cora):
    run = spine("roles", cora, columns=100)
    assert run.returncode == 0, run.stderr
    assert re.search(r"^\d roles of 2,708 nodes$", run.stdout, re.M)
    text = " ".join(run.stdout.split())
    for words in ("hub", "neighbours (typically", "know each other", "communities", "such as"):
        assert words in text
    assert max(map(len, run.stdout.splitlines())) <= 100
    again = json.loads(spine("roles", cora, "--json", "--quiet").stdout)
    assert sum(role["nodes"] for role in again["roles"]) == 2708
    assert again["roles"][0]["title"] == "hub"


def test_the_same_roles_are_found_again_and_in_an_unseen_network(office):
    asked = ("roles", office / "model", "--json", "--quiet")
    runs = [spine(*asked, env={**os.environ, "OMP_NUM_THREADS": number}) for number in "12"]
    assert runs[0].stdout == runs[1].stdout
    home = json.loads(runs[0].stdout)
    assert home["nodes"] == sum(role["nodes"] for role in home["roles"])
    files = ("--on", office / "there.csv", "--features", office / "there_words.csv")
    away = json.loads(spine(*asked, *files).stdout)
    assert [role["description"] for role in away["roles"]] == [role["description"] for role in home["roles"]]
    assert away["unlike_every_role"] < 0.1
    shown = spine("roles", office / "model", *files)
    assert shown.returncode == 0, shown.stderr
    assert "in training" in shown.stdout
    assert "of these nodes fit no role" in shown.stdout
    assert f"finding roles of {away['nodes']:,} nodes" in shown.stderr
    medians = [role["typical"]["neighbors"] for role in away["roles"]]
    assert all(f"{median} (" in shown.stdout for median in medians)


def test_every_nodes_roles_are_written(office, tmp_path):
    model = office / "model"
    for ending in ("csv", "parquet"):
        run = spine("roles", model, "-o", tmp_path / f"roles.{ending}", "--quiet")
        assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    rows = rows_of(tmp_path / "roles.csv")
    titles = list(rows[0])[2:]
    memberships = np.array([[float(row[title]) for title in titles] for row in rows])
    np.testing.assert_allclose(memberships.sum(axis=1), 1, atol=1e-3)
    assert [row["role"] for row in rows] == [titles[place] for place in memberships.argmax(axis=1)]
    table = parquet.read_table(tmp_path / "roles.parquet")
    assert table.column_names == ["node", "role", *titles]
    assert table["node"].to_pylist() == [row["node"] for row in rows]
    printed = spine("roles", model, "-o", "-", "--quiet").stdout
    assert list(csv.DictReader(io.StringIO(printed))) == rows


def test_the_number_of_roles_can_be_chosen(office):
    found = json.loads(spine("roles", office / "model", "--count", 2, "--json", "--quiet").stdout)
    assert (len(found["roles"]), found["criterion"]) == (2, {})


def test_a_model_of_several_networks_without_features(tmp_path):
    SPINE(dim=8, parts=("role",)).fit([made.karate(), made.barbell(6, 2)]).save(tmp_path / "clubs")
    run = spine("roles", tmp_path / "clubs")
    assert run.returncode == 0, run.stderr
    assert "48 nodes" in run.stdout
    assert "communities" not in run.stdout
    assert "such as 0:" in run.stdout


def test_wrong_input_is_one_clear_line(office, tmp_path):
    model = office / "model"
    SPINE(dim=8).fit(made.karate()).save(tmp_path / "bare", data=False)
    cases = [
        (("roles", tmp_path / "gone"), "gone"),
        (("roles", tmp_path / "bare"), "saved without its network"),
        (("roles", model, "--count", 0), "count must be a whole number from 1 to 12"),
        (("roles", model, "--on", tmp_path / "gone.csv"), "gone.csv"),
        (("roles", model, "--on", office / "there.csv"), "features per node, but this graph has 0"),
        (("roles", model, "-o", tmp_path / "roles.txt"), ".csv, .parquet; got '.txt'"),
        (("roles", model, "-o", tmp_path / "no" / "roles.csv"), "does not exist; create it first"),
    ]
    for arguments, words in cases:
        run = spine(*arguments, "--quiet")
        assert run.returncode == 1, arguments
        assert run.stdout == ""
        assert words in run.stderr, arguments
        assert len(run.stderr.splitlines()) == 1
        assert run.stderr.startswith("error: ")


def test_wrong_usage_is_exit_code_2(office):
    for arguments in (("--features", "f.csv"), ("--count", "many"), ("--json", "-o", "-")):
        run = spine("roles", office / "model", *arguments)
        assert (run.returncode, run.stdout) == (2, ""), arguments


def test_a_place_that_cannot_be_written_keeps_what_was_there(office, tmp_path):
    (tmp_path / "taken.csv").mkdir()
    run = spine("roles", office / "model", "-o", tmp_path / "taken.csv", "--quiet")
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.csv"]
