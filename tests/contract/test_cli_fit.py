"""``spine fit``, ``embed`` and ``evaluate`` as processes, on real data and on a small organisation."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command import ALONE, QUICK, SPINE, in_small_place, real, spine, write_cora
from spinegraph import estimator
from spinegraph.apps.cli.app import load, with_options
from spinegraph.apps.cli.evaluate import _verdict
from spinegraph.embeddings import Embeddings


@pytest.fixture(scope="module")
def cora(tmp_path_factory):
    """A folder with Cora as tables and a quick model of it."""
    folder = tmp_path_factory.mktemp("cora")
    write_cora(folder)
    files = ("cora.csv", "--features", "words.npz")
    run = spine("fit", *files, "-o", "model", "--dim", 32, "--json", cwd=folder)
    assert run.returncode == 0, run.stderr
    (folder / "fit.json").write_text(run.stdout)
    return folder


def vectors(folder, path="model"):
    return estimator.SPINE.load(folder / path).embeddings_.vectors


def test_fit_says_what_it_did_and_what_comes_next(place):
    said = (place / "fit.txt").read_text()
    for part in (
        "network   12 nodes, 26 edges",
        "encoded from a table",
        "vectors   8 numbers: content 4, place 2, role 2",
        "times as well as by chance",
        "spine embed model edges.csv --features people.",
    ):
        assert part in said
    assert "s  learning from hidden links\n" in said
    assert "\x1b" not in said


def test_a_table_of_mixed_columns_is_encoded_alike_at_fit_and_embed(place, tmp_path):
    files = ("later.csv", "--features", "people_later.csv")
    run = spine("embed", "model", *files, "-o", tmp_path / "v.parquet", "--threads", 1, cwd=place)
    assert run.returncode == 0, run.stderr
    model, found = estimator.SPINE.load(place / "model"), Embeddings.load(tmp_path / "v.parquet")
    assert model.table_encoder_.feature_names_ == ("team = north", "team = south", "age")
    assert len(found) == 13
    assert "zed" in found
    run = spine("embed", "model", "later.csv", "-o", tmp_path / "w.csv", cwd=place)
    assert run.returncode == 1
    assert (
        "fitted with 3 features per node, but this graph has 0; pass features with --features\n" in run.stderr
    )


def test_directions_that_a_model_does_not_know_are_refused_in_the_commands_words(place, tmp_path):
    run = spine("embed", "model", "edges.csv", "--directed", "-o", tmp_path / "v.csv", cwd=place)
    assert run.returncode == 1
    assert "the model was fitted on undirected links; leave out --directed" in run.stderr


@pytest.mark.parametrize("ending", ["parquet", "npz", "csv", "txt"])
def test_every_format_holds_the_same_vectors(place, tmp_path, ending):
    path = tmp_path / f"v.{ending}"
    files = ("edges.csv", "--features", "people.csv")
    run = spine("embed", "model", *files, "-o", path, "--json", cwd=place)
    facts = {"output": str(path), "nodes": 12, "dim": 8, "same_network": True}
    assert json.loads(run.stdout) == facts
    np.testing.assert_allclose(Embeddings.load(path).vectors, vectors(place), atol=1e-6)


def test_edges_come_from_a_pipe_and_vectors_go_to_one(place, tmp_path):
    edges = (place / "edges.csv").read_text()
    files = ("-", "--features", "people.csv", "-o", "-")
    run = spine("embed", "model", *files, "--nodes", "eve", "--nodes", "ann", piped=edges, cwd=place)
    lines = run.stdout.splitlines()
    (tmp_path / "printed.csv").write_text(run.stdout)
    parts = estimator.SPINE.load(place / "model").generator_.parts
    assert Embeddings.load(tmp_path / "printed.csv").parts == parts
    assert [line.split(",")[0] for line in lines[1:]] == ['"eve"', '"ann"']
    (tmp_path / "some.txt").write_text("eve\n\nann\n")
    again = spine("embed", "model", *files, "--nodes", tmp_path / "some.txt", piped=edges, cwd=place)
    assert again.stdout == run.stdout
    run = spine("fit", "-", "-o", tmp_path / "piped", *QUICK, piped=edges)
    assert run.returncode == 0
    assert len(vectors(tmp_path, "piped")) == 12
    (tmp_path / "some.txt").write_bytes(b"caf\xe9")
    broken = spine("embed", "model", *files, "--nodes", tmp_path / "some.txt", piped=edges, cwd=place)
    assert broken.returncode == 1
    assert "some.txt: expected UTF-8 text, a name per line" in broken.stderr.splitlines()[-1]


def test_nodes_are_asked_for_as_a_file_or_a_number_spells_them(tmp_path):
    (tmp_path / "edges.csv").write_text("1,2\n2,3\n3,-5\n")
    assert spine("fit", "edges.csv", "-o", "model", *QUICK, cwd=tmp_path).returncode == 0
    (tmp_path / "some.txt").write_bytes(b"\xef\xbb\xbf2\r\n-5\r\n")
    files = ("model", "edges.csv", "-o", "-", "--quiet")
    run = spine("embed", *files, "--nodes", "some.txt", cwd=tmp_path)
    assert [line.split(",")[0] for line in run.stdout.splitlines()[1:]] == ["2", "-5"]
    for name in ("--5", "007", "x" * 300):
        run = spine("embed", *files, f"--nodes={name}", cwd=tmp_path)
        assert run.returncode == 1
        assert f"error: no node '{name}' in the graph; " in run.stderr


def test_edges_come_from_a_query_of_a_database(tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "bank.duckdb")) as bank:
        bank.execute(
            "CREATE TABLE transfers AS SELECT 'p' || range AS payer, 'p' || (range * 7 + 1) % 20 AS payee, "
            "range + 1 AS amount FROM range(20)"
        )
    asked = "select payer, payee, amount from transfers where payer <> payee"
    given = ("--query", asked, "--database", "bank.duckdb", "--reciprocal", "sum")
    run = spine("fit", *given, "-o", "model", *QUICK, "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["nodes"] == 20
    assert "weights are column 'amount'" in found["understood"][0]
    wrong = spine("fit", "--query", "select 1", "-o", "other", *QUICK, cwd=tmp_path)
    assert (wrong.returncode, (tmp_path / "other").exists()) == (1, False)
    assert "the query: expected 'source target', got 1 field" in wrong.stderr


def test_columns_of_features_are_read_as_asked(tmp_path):
    (tmp_path / "edges.csv").write_text("ann,bob\nbob,cy\ncy,ann\n")
    rows = (
        "ann,01234,likes tea and maps,1",
        "bob,04321,likes maps and graphs,2",
        "cy,01234,graphs and tea,3",
    )
    (tmp_path / "people.csv").write_text("name,zip,about,level\n" + "\n".join(rows))
    files = ("edges.csv", "--features", "people.csv", "-o", "model", *QUICK)
    asked = ("--column", "zip=ignore", "--column", "about=text", "--column", "level=category")
    run = spine("fit", *files, *asked, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    encoder = estimator.SPINE.load(tmp_path / "model").table_encoder_
    assert encoder.kinds_ == {"about": "text", "level": "category", "zip": "ignore"}
    assert "about: maps" in encoder.feature_names_
    run = spine("fit", *files, "--force", "--column", "about", cwd=tmp_path)
    assert run.returncode == 2
    assert "NAME=KIND" in run.stderr


def test_several_networks_are_fitted_together(place, tmp_path):
    both = ("edges.csv", "later.csv", "--features", "people.csv", "--features", "people_later.csv")
    run = spine("fit", *both, "-o", tmp_path / "both", *QUICK, "--json", cwd=place)
    found = json.loads(run.stdout)
    assert (found["networks"], found["nodes"], found["features"]) == (2, 25, 3)
    run = spine("evaluate", tmp_path / "both", "--labels", "teams.csv", cwd=place)
    assert run.returncode == 1
    assert "saved with 2 networks; pass --graph EDGES" in run.stderr
    run = spine("fit", *both[:4], "-o", tmp_path / "other", cwd=place)
    assert "--features is given for 1 of 2 EDGES" in run.stderr


def test_names_of_several_networks_are_found_in_their_tables(tmp_path):
    for one in "ab":
        rows = "".join(f"{i},{one}{i},team {i % 2}\n" for i in range(12))
        (tmp_path / f"people_{one}.csv").write_text(f"id,name,team\n{rows}")
        (tmp_path / f"{one}.csv").write_text("".join(f"{one}{i},{one}{(i + 1) % 12}\n" for i in range(12)))
    tables = ("--features", "people_a.csv", "--features", "people_b.csv")
    run = spine("fit", "a.csv", "b.csv", *tables, "-o", "model", *QUICK, "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["features"] == 3  # id, and two teams


def test_the_papers_method_is_a_preset_with_the_settings_it_has(place, tmp_path):
    order = ("fit", "edges.csv", "--features", "people.csv", "-o", tmp_path / "m", "--preset", "paper")
    run = spine(*order, "--seed", 7, "--dim", 4, "--k", 5, "--json", cwd=place)
    found = json.loads(run.stdout)
    settings = found["settings"]
    assert (settings["k"], settings["seed"], settings["window"], settings["rpr_method"]) == (5, 7, 5, "walks")
    assert (found["parts"], found["learned"]) == ({"content": 4}, None)
    assert type(estimator.SPINE.load(tmp_path / "m")).__name__ == "PaperSPINE"
    run = spine(*order, "--far", 0.5, cwd=place)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("error: --far is not a setting of the paper's method")


def test_parts_and_weights_are_chosen(place, tmp_path):
    order = ("fit", "edges.csv", "--features", "people.csv", "--json", *QUICK)
    chosen = ("--parts", "role,content", "--weights", "role=2", "-o", tmp_path / "m")
    found = json.loads(spine(*order, *chosen, cwd=place).stdout)
    assert found["parts"] == {"content": 6, "role": 2}
    assert (found["settings"]["parts"], found["settings"]["weights"]) == (["content", "role"], {"role": 2})
    plain = json.loads(spine(*order, "--parts", "role,content", "-o", tmp_path / "n", cwd=place).stdout)
    assert plain["parts"] == found["parts"]
    weighted, other = vectors(tmp_path, "m"), vectors(tmp_path, "n")
    np.testing.assert_allclose(weighted[:, 6:], 2 * other[:, 6:], rtol=1e-6)
    np.testing.assert_allclose(weighted[:, :6], other[:, :6], rtol=1e-6)


def test_a_model_may_be_saved_without_place(place, tmp_path):
    assert spine("fit", "edges.csv", "-o", tmp_path / "m", "--no-place", *QUICK, cwd=place).returncode == 0
    run = spine("embed", tmp_path / "m", "edges.csv", "-o", tmp_path / "v.csv", "--json", cwd=place)
    assert json.loads(run.stdout)["same_network"] is False
    run = spine("embed", tmp_path / "m", "edges.csv", "-o", tmp_path / "v.csv", "--same-network", cwd=place)
    assert run.returncode == 1
    assert "needs positions, which this model was saved without" in run.stderr


def test_another_network_has_no_place_and_embed_says_so(place, tmp_path):
    assert spine("fit", "edges.csv", "-o", tmp_path / "m", *QUICK, cwd=place).returncode == 0
    names = (place / "edges.csv").read_text().split(",")
    (tmp_path / "other.csv").write_text(",other ".join(names))
    for option, is_same, is_said in (((), False, True), (("--other-network",), False, False)):
        order = ("embed", tmp_path / "m", tmp_path / "other.csv", "-o", tmp_path / "v.npz", "--json")
        run = spine(*order, *option)
        assert json.loads(run.stdout)["same_network"] is is_same
        assert ("is not the network that the model was fitted on" in run.stderr) is is_said
        found = Embeddings.load(tmp_path / "v.npz")
        assert not found.part("place").vectors.any()
        assert found.part("role").vectors.any()
    run = spine("embed", tmp_path / "m", "edges.csv", "-o", tmp_path / "v.npz", "--other-network", cwd=place)
    assert run.returncode == 0, run.stderr
    assert not Embeddings.load(tmp_path / "v.npz").part("place").vectors.any()


@pytest.mark.data
def test_cora_fits_from_tables_and_its_labels_are_predicted_beside_controls(cora):
    found = json.loads((cora / "fit.json").read_text())
    assert (found["nodes"], found["edges"], found["features"], found["dim"]) == (2708, 5278, 1433, 32)
    run = spine("evaluate", "model", "--labels", "labels.csv", "--task", "classes", "--json", cwd=cora)
    scores = {score["vectors"]: score["accuracy"] for score in json.loads(run.stdout)["classes"]}
    assert scores["SPINE"] > 0.75
    assert {"plain columns", "columns + hop means", "spectral", "node2vec", "log degree"} <= scores.keys()
    assert {"content alone", "place alone", "role alone"} <= scores.keys()
    assert scores["largest class"] == pytest.approx(818 / 2708, abs=0.01)


@pytest.mark.data
def test_cora_embeds_from_its_npz_as_from_its_tables(cora, tmp_path):
    run = spine("embed", cora / "model", real("cora.npz"), "-o", tmp_path / "v.npz")
    assert (run.returncode, run.stdout) == (0, f"{tmp_path / 'v.npz'}: 2,708 vectors of 32 dimensions\n")
    np.testing.assert_allclose(Embeddings.load(tmp_path / "v.npz").vectors, vectors(cora), atol=1e-5)


def test_evaluate_asks_for_links_and_clusters(place):
    options = ("--task", "links", "--task", "clusters", "--labels", "teams.csv", "--json")
    run = spine("evaluate", "model", *options, cwd=place)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    links = {score["vectors"]: score["auc"] for score in found["links"]}
    assert {"SPINE", "common neighbours", "preferential attachment", "place alone"} <= links.keys()
    assert all(0 <= auc <= 1 for auc in links.values())
    clusters = {score["vectors"]: score for score in found["clusters"]}
    assert -0.5 <= clusters["SPINE"]["modularity"] <= 1
    assert (found["classes"], found["num_clusters"], found["hidden"]) == (None, 2, 3)


@pytest.mark.slow
@pytest.mark.data
def test_evaluate_asks_cora_for_links_and_clusters(cora):
    options = ("--task", "links", "--task", "clusters", "--labels", "labels.csv", "--json")
    found = json.loads(spine("evaluate", "model", *options, cwd=cora).stdout)
    links = {(score["vectors"], score["by"]): score["auc"] for score in found["links"]}
    assert links["SPINE", "cosine"] > 0.8
    assert {"common neighbours", "preferential attachment", "place alone", "smoothed columns"} <= {
        name for name, _ in links
    }
    clusters = {score["vectors"]: score for score in found["clusters"]}
    assert clusters["SPINE"]["nmi"] > 0.3 > clusters["log degree"]["nmi"]
    assert clusters["SPINE"]["modularity"] > 0.4
    assert (found["classes"], found["num_clusters"], found["hidden"]) == (None, 7, 528)


@pytest.mark.data
def test_evaluate_takes_vectors_of_a_file_and_shows_a_table(cora, tmp_path):
    Embeddings(np.arange(2708), vectors(cora)).save(tmp_path / "v.npz")
    more = ("--labels", cora / "labels.csv", "--task", "classes", "--repeats", 2)
    alone = spine("evaluate", tmp_path / "v.npz", *more).stdout
    assert "There is nothing to compare with; pass the network with --graph." in alone
    run = spine("evaluate", tmp_path / "v.npz", *more, "--graph", real("cora.npz"))
    for name in ("vectors", "plain columns", "smoothed columns", "log degree", "largest class"):
        assert f"\n  {name} " in run.stdout
    assert re.search(
        r"(Use [^:]+:|There is no difference: vectors has) \d+\.\d; ", " ".join(run.stdout.split())
    )
    run = spine("evaluate", tmp_path / "v.npz", *more, "--weights", "role=2")
    assert run.returncode == 1
    assert "no part 'role'; these vectors have no parts" in run.stderr
    run = spine("evaluate", tmp_path / "v.npz", "--task", "links")
    assert run.returncode == 1
    assert "none is left to hide" in run.stderr


def test_vectors_alone_are_compared_with_nothing(tmp_path):
    Embeddings(np.arange(5), np.eye(5, dtype=np.float32)).save(tmp_path / "v.npz")
    run = spine("evaluate", tmp_path / "v.npz")
    assert (run.returncode, run.stdout) == (1, "")
    assert "comparing clusters needs labels or a network: --labels FILE, --graph EDGES" in run.stderr


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("near must be 1\nk must be 2", "--near must be 1\n--k must be 2"),
        ("x: columns names 'Bla', which is gone", "x: --column names 'Bla', which is gone"),
        ("columns={'zip code': 'ignore'} says so", "--column 'zip code'=ignore says so"),
        ("columns={'zip': 'category'} keeps it", "--column zip=category keeps it"),
        ("choose one by node_column=...", "choose one by --node-column"),
        ("pass delimiter=';' or header=False", "pass --delimiter ; or --no-header"),
    ],
)
def test_arguments_in_messages_are_options_of_the_command(message, typed):
    assert with_options(message, load("fit")) == typed


@pytest.mark.parametrize(
    ("own", "advice"),
    [
        (0.996, "Use SPINE: 99.6; "),
        (0.99, "There is no difference: SPINE has 99.0; "),
        (0.9, "Use x: "),
    ],
)
def test_half_a_point_does_not_decide(own, advice):
    assert _verdict({"SPINE": own, "x": 0.99}).startswith(advice)


def test_differences_of_few_splits_or_few_edges_do_not_decide():
    assert _verdict({"SPINE": 0.75, "x": 0.8}, slack=0.1).startswith(
        "There is no difference: SPINE has 75.0; "
    )


def test_a_part_that_is_level_with_the_best_of_the_others_is_called_level():
    chance = ("always guessing the largest class", 0.72)
    assert _verdict({"SPINE": 0.726, "x": 0.71}, 0.01, chance=chance) == (
        "Nothing here predicts clearly better than always guessing the largest class, which has 72.0."
    )
    assert _verdict({"SPINE": 0.75, "x": 0.71}, 0.01, chance=chance).startswith("Use SPINE: 75.0")
    level = _verdict({"SPINE": 0.9, "place alone": 1.0, "x": 1.0})
    assert level.startswith(
        "There is no difference: SPINE's place alone has 100.0; all parts together have 90.0"
    )
    assert _verdict({"SPINE": 0.9, "place alone": 1.0, "x": 0.98}).startswith(
        "Use SPINE's place alone: 100.0"
    )


def test_labels_are_found_in_the_column_of_names_that_features_have(tmp_path):
    rows = [f"2024-01-0{i % 9 + 1},{i + 100},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "people.csv").write_text("\n".join(["seen,number,team", *rows]))
    (tmp_path / "edges.csv").write_text(
        "\n".join(["from,to", *(f"{i + 100},{(i + 1) % 40 + 100}" for i in range(40))])
    )
    how = "--features", "people.csv", "--node-column", "number"
    assert spine("fit", "edges.csv", *how, "-o", "m", *QUICK, cwd=tmp_path).returncode == 0
    labels = (
        "--labels",
        "people.csv",
        "--label-column",
        "team",
        "--node-column",
        "number",
        "--task",
        "classes",
    )
    assert spine("evaluate", "m", *labels, cwd=tmp_path).returncode == 0


def test_labels_that_are_among_the_columns_are_noticed(tmp_path):
    names = [f"n{i}" for i in range(150)]
    rows = [f"{name},{'abc'[i % 3]},{i % 7}" for i, name in enumerate(names)]
    (tmp_path / "people.csv").write_text("\n".join(["name,team,age", *rows]))
    (tmp_path / "edges.csv").write_text("".join(f"n{i},n{(i + 1) % 150}\n" for i in range(150)))
    spine("fit", "edges.csv", "--features", "people.csv", "-o", "m", *QUICK, cwd=tmp_path)
    shown = spine(
        "evaluate", "m", "--labels", "people.csv", "--label-column", "team", "--task", "classes", cwd=tmp_path
    )
    assert "The columns alone predict nearly every class" in shown.stdout


def test_fewer_nodes_than_the_default_number_of_clusters_are_evaluated(tmp_path):
    Embeddings(np.arange(5), np.eye(5, dtype=np.float32)).save(tmp_path / "v.npz")
    (tmp_path / "e.csv").write_text("0,1\n2,3\n3,4\n")
    more = ("--task", "clusters", "--json", "--graph", tmp_path / "e.csv")
    assert json.loads(spine("evaluate", tmp_path / "v.npz", *more).stdout)["num_clusters"] == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit",), "Missing option"),
        (("fit", "-o", "m"), "pass either EDGES (files of links) or --query"),
        (("fit", "edges.csv", "--query", "select 1", "-o", "m"), "(files of links) or --query"),
        (("fit", "edges.csv"), "Missing option"),
        (
            ("fit", "edges.csv", "-o", "m", "--dim", "many"),
            "Invalid value for '--dim': must be a valid integer",
        ),
        (("fit", "edges.csv", "-o", "m", "--rpr-method", "anyhow"), "'--rpr-method': 'anyhow' is not one of"),
        (("fit", "edges.csv", "-o", "m", "--parts", "contents"), "expected some of content, place, role"),
        (("fit", "edges.csv", "-o", "m", "--weights", "role"), "such as role=2,place=0.5; got 'role'"),
        (("evaluate", "model", "--weights", "role=-1"), "expected numbers >= 0 for content"),
        (("evaluate", "model", "--weights", "content=0,place=0,role=0"), "not all 0"),
        (("fit", "edges.csv", "-o", "m", "--dimension", "8"), "No such option"),
        (("embed", "model", "edges.csv"), "Missing option"),
        (("embed", "model", "edges.csv", "-o", "-", "--json"), "would mix JSON with the vectors"),
        (("evaluate", "model", "--task", "everything"), "is not one of"),
    ],
)
def test_wrong_usage_is_exit_code_2(place, arguments, message):
    run = spine(*arguments, cwd=place)
    assert run.returncode == 2
    assert message in " ".join(run.stderr.replace("│", "").split())
    assert not (place / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "gone.csv", "-o", "m"), "'gone.csv': no such file"),
        (("fit", "edges.csv", "-o", "m", "--dim", "0"), "dim must be a whole number from 1 to 65536; got 0"),
        (("fit", "edges.csv", "-o", "edges.csv"), "edges.csv: is a file"),
        (
            ("fit", "edges.csv", "-o", "m", "--device", "warp9"),
            "device must be 'cpu', 'cuda' or a numbered GPU",
        ),
        (
            ("fit", "edges.csv", "-o", "m", "--parts", "content"),
            "parts includes content, but the graph has no",
        ),
        (
            ("fit", "edges.csv", "-o", "m", "--weights", "place=0,role=0"),
            "weights are 0 for all parts, place and role",
        ),
        (("embed", "gone", "edges.csv", "-o", "v.csv"), "gone: no such folder"),
        (("embed", "model", "edges.csv", "-o", "v.pkl"), "embeddings are saved as"),
        (
            ("embed", "model", "edges.csv", "-o", "nowhere/v.csv"),
            "the folder nowhere does not exist; create it first",
        ),
        (
            ("embed", "model", "edges.csv", "--features", "people.csv", "-o", "v.csv", "--nodes", "nobody"),
            "'nobody'",
        ),
        (("evaluate", "gone"), "gone: no such file"),
        (("evaluate", "model", "--task", "classes"), "classes need --labels FILE"),
        (("evaluate", "model", "--labels", "people.csv"), "pass --label-column team"),
    ],
)
def test_a_user_error_is_one_clear_message_and_exit_code_1(place, arguments, message):
    before = sorted(os.listdir(place))
    run = spine(*arguments, "--quiet", cwd=place)
    assert (run.returncode, run.stdout) == (1, "")
    assert message in run.stderr
    assert run.stderr.startswith("error: ")
    assert len(run.stderr.splitlines()) == 1
    assert sorted(os.listdir(place)) == before


def test_a_place_that_holds_something_else_is_refused_before_the_work(place, tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    run = spine("fit", place / "edges.csv", "-o", tmp_path, *QUICK)
    assert run.returncode == 1
    assert "contains 'mine.txt', which saving a model here would delete" in run.stderr
    assert "s  place" not in run.stderr


@pytest.mark.parametrize("command", ["fit", "embed"])
def test_a_read_only_place_is_refused_before_the_work(place, tmp_path, command):
    files = (place / "edges.csv", "--features", place / "people.csv")
    order = (*files, *QUICK) if command == "fit" else (place / "model", *files)
    run = in_small_place([SPINE, command, *order, "-o", tmp_path / "out.csv"], tmp_path, "ro")
    assert run.returncode == 1
    assert "is not writable; choose another path" in run.stderr
    assert "s  place" not in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize(
    "ending",
    [
        *("model", "v.csv"),
        *(pytest.param(other, marks=pytest.mark.slow) for other in ("v.npz", "v.parquet", "v.txt")),
    ],
)
def test_a_full_place_keeps_nothing_half_written(place, tmp_path, ending):
    files = (place / "edges.csv", "--features", place / "people.csv")
    order = ("embed", place / "model", *files, "-o", tmp_path / ending)
    if ending == "model":
        order = ("fit", *files, *QUICK, "-o", tmp_path / "unwritten")
    run = in_small_place([SPINE, *order], tmp_path, "size=4k", filled=True)
    assert run.returncode == 1, run.stderr
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "cannot be written (No space left on device); nothing was changed there" in errors[0]
    assert "Traceback" not in run.stderr
    assert set(run.stdout.splitlines()) <= {"left: filler"}


WRITING = {
    "roles": ("-o", "roles.csv"),
    "report": ("-o", "report.html"),
    "similar": ("--all", "-o", "alike.csv"),
}


@pytest.mark.parametrize("options", ["ro", "size=4k"])
@pytest.mark.parametrize("command", WRITING)
def test_other_commands_leave_nothing_half_written_either(place, tmp_path, command, options):
    *before, output = WRITING[command]
    order = [SPINE, command, place / "model", *before, tmp_path / output]
    run = in_small_place(order, tmp_path, options, filled=options != "ro")
    assert run.returncode == 1, run.stderr
    assert "Traceback" not in run.stderr
    assert len([line for line in run.stderr.splitlines() if line.startswith("error: ")]) == 1
    assert set(run.stdout.splitlines()) <= {"left: filler"}


def test_a_report_stops_at_ctrl_c_with_nothing_written(place, tmp_path):
    marker, order = tmp_path / "begun", ("report", str(place / "model"), "-o", str(tmp_path / "report.html"))
    run = waits_at("drawing the map", marker)
    code, (_, errors) = stopped([sys.executable, "-c", run, *order], marker.exists)
    assert code == 130, errors
    assert errors.splitlines()[-1].startswith("interrupted")
    assert os.listdir(tmp_path) == ["begun"]


def test_a_full_standard_output_is_one_clear_message(place):
    if not os.path.exists("/dev/full"):
        pytest.skip("this machine has no /dev/full")
    files = ("model", "edges.csv", "--features", "people.csv", "-o", "-", "-q")
    with open("/dev/full", "wb") as full:
        run = subprocess.run(
            [SPINE, "embed", *files], stdout=full, stderr=subprocess.PIPE, text=True, cwd=place, env=ALONE
        )
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert "No space left on device" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def stopped(command, is_time, **options):
    """Start a command, send Ctrl-C to its process group when it is time, and return what it said."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=ALONE,
        **options,
    ) as run:
        deadline = time.monotonic() + 120
        while run.poll() is None and not is_time() and time.monotonic() < deadline:
            time.sleep(0.01)
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGINT)
        said = run.communicate(timeout=120)
    return run.returncode, said


def waits_at(stage, marker):
    """Return the code of the command, which makes a file as it comes to a stage, and waits there."""
    return (
        "import pathlib, sys, time\n"
        "from spinegraph.apps.cli import main, options\n"
        "def call(stage, done, total):\n"
        f"    if stage == {stage!r}:\n"
        f"        pathlib.Path({str(marker)!r}).touch()\n"
        "        time.sleep(60)\n"
        "options._line_callback = lambda console: call\n"
        "main(sys.argv[1:])\n"
    )


def test_ctrl_c_in_a_fit_leaves_nothing(place, tmp_path):
    marker, order = tmp_path / "begun", ("fit", "edges.csv", "-o", str(tmp_path / "m"))
    run = waits_at("role", marker)
    ended, (_, errors) = stopped([sys.executable, "-c", run, *order], marker.exists, cwd=place)
    assert ended == 130
    assert errors.splitlines()[-1] == "interrupted"
    assert os.listdir(tmp_path) == ["begun"]


def test_ctrl_c_in_the_middle_of_writing_leaves_what_was_there(place, tmp_path):
    path = tmp_path / "v.csv"
    order = ("embed", str(place / "model"), "edges.csv", "--features", "people.csv", "-o", str(path))
    assert spine(*order, cwd=place).returncode == 0
    shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name} before"))
    marker = tmp_path.with_name(f"{tmp_path.name} writing")
    code = (
        "import pathlib, sys, time\n"
        "from spinegraph import atomic\n"
        "from spinegraph.apps.cli import main\n"
        "def slow(path):\n"
        f"    pathlib.Path({str(marker)!r}).touch()\n"
        "    time.sleep(60)\n"
        "atomic.sync = slow\n"  # all is written, nothing is in its place yet
        "main(sys.argv[1:])\n"
    )
    ended, (_, errors) = stopped([sys.executable, "-c", code, *order], marker.exists, cwd=place)
    assert ended == 130
    assert errors.splitlines()[-1] == "interrupted"
    before = tmp_path.with_name(f"{tmp_path.name} before")
    assert subprocess.run(["diff", "-r", before, tmp_path]).returncode == 0


@pytest.mark.parametrize("networks", [1, 2])
@pytest.mark.parametrize("data", [(), ("--no-data",)])
def test_the_next_commands_run_as_printed(networks, data, tmp_path):
    lines = [f"ann {i};bob {i * step % 11};{i}" for i in range(24) for step in range(1, 2 + i % 4)]
    for number in range(networks):
        (tmp_path / f"ties {number}.txt").write_text("\n".join(["who;whom;often", *lines]))
    files = [f"ties {number}.txt" for number in range(networks)]
    reading = ("--source", "who", "--target", "whom", "--unweighted", "--header", "--delimiter", ";")
    run = spine("fit", *files, *reading, *data, "-o", "our model", *QUICK, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    commands = [shlex.split(line) for line in run.stdout.partition("Next:")[2].splitlines() if line]
    named = [words[1] for words in commands]
    whole = ["similar", "roles", "report", "explore", "embed", "evaluate"]
    assert named == (["similar", "explore", "embed"] if data else whole)
    for words in commands:
        more = ("--task", "clusters") if words[1] == "evaluate" else ()
        if words[1] != "explore":  # runs until it is stopped
            ran = spine(*words[1:], *more, cwd=tmp_path)
            assert ran.returncode == 0, f"{words}\n{ran.stderr}"
        elif "--graph" in words:
            assert words[3:] == ["--graph", files[0], *reading]


def test_a_model_is_replaced_only_by_force(place, tmp_path):
    shutil.copytree(place / "model", tmp_path / "model")
    before = (tmp_path / "model" / "config.json").read_bytes()
    again = ("fit", place / "edges.csv", "-o", tmp_path / "model", "--dim", 4, "-q")
    run = spine(*again)
    assert run.returncode == 1
    assert "holds a model; add --force to replace it" in run.stderr
    assert (tmp_path / "model" / "config.json").read_bytes() == before
    run = spine(*again, "--force")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "model" / "config.json").read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "edges.csv", "-o", "new", "--near", "2"], "--near must be "),
        (["fit", "edges.csv", "-o", "new", "--device", "cuda:99"], "use --device cpu"),
        (["roles", "model", "--count", "40"], "--count must be a whole number from 1 to 12"),
        (
            ["report", "model", "-o", "x.pdf"],
            "x.pdf: a report is an HTML page; choose a name that ends in .html",
        ),
    ],
)
def test_errors_name_options(place, arguments, message):
    run = spine(*arguments, cwd=place)
    assert run.returncode == 1
    assert message in run.stderr
    assert not (place / "new").exists()
    assert not (place / "x.pdf").exists()


def test_a_table_given_as_a_second_network_is_noticed(place, tmp_path):
    run = spine("fit", "edges.csv", "people.csv", "-o", tmp_path / "m", *QUICK, cwd=place)
    assert "if it is a table of nodes, add it by --features people.csv" in run.stderr
