"""``spine similar`` and ``spine explain``, run as a user runs them."""

import csv
import io
import json
import os
import re
import resource
import shlex
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from browser import lone_page
from command import SPINE as SPINE_COMMAND
from command import spine
from spinegraph import SPINE, datasets, made
from spinegraph.analysis.search import Search

DATA = Path(os.environ.get("SPINEGRAPH_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
needs_cora = pytest.mark.skipif(not (DATA / "cora.npz").is_file(), reason=f"no cora.npz in {DATA}")


def joined(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A model of a made organisation: its folder, and the model."""
    folder = tmp_path_factory.mktemp("models") / "office"
    model = SPINE(dim=32, seed=0).fit(made.planted(seed=1).graph)
    model.save(folder)
    return folder, model


@pytest.fixture(scope="module")
def two_clubs(tmp_path_factory):
    """A model of two networks whose names overlap."""
    folder = tmp_path_factory.mktemp("models") / "clubs"
    SPINE(dim=8, parts=("role",)).fit([made.karate(), made.barbell(4, 1)]).save(folder)
    return folder


@pytest.fixture(scope="module")
def cora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "cora"
    graph = datasets.load("cora", DATA).graph
    graph = graph.with_features(graph.features, [f"word {place}" for place in range(graph.features.shape[1])])
    SPINE(dim=32, seed=0).fit(graph).save(folder)
    return folder


def test_similar_lists_whom_the_search_finds_with_reasons(office):
    folder, model = office
    name = model.graph_.names[3]
    run = spine("similar", folder, name, "-n", 4, columns=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"Most like {name}, by all parts")
    for match in Search(model.embeddings_).similar(name, 4):
        line = next(line for line in run.stdout.splitlines() if match.name in line)
        assert f"{match.score:.3f}" in line
    assert any(word in run.stdout for word in model.graph_.feature_names)
    assert re.search(r"score +node +content +place +role +links +apart +alike in", run.stdout)


@pytest.mark.parametrize("by", ["all", "content", "place", "role"])
def test_similar_prints_json(office, by):
    folder, model = office
    name = model.graph_.names[3]
    run = spine("similar", folder, name, "--by", by, "-n", 3, "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["node"], found["by"], len(found["similar"])) == (name, by, 3)
    for match in found["similar"]:
        assert sum(match["parts"].values()) == pytest.approx(match["similarity"], abs=1e-5)
    search = Search(model.embeddings_, by=by)
    assert [match["name"] for match in found["similar"]] == [m.name for m in search.similar(name, 3)]


def test_parts_are_weighed_in_a_question(office):
    folder, model = office
    name = model.graph_.names[3]
    weights = {"role": 5.0, "place": 0.0}
    run = spine("similar", folder, name, "--weights", "role=5,place=0", "-n", 3, "--json")
    assert run.returncode == 0, run.stderr
    found, expected = json.loads(run.stdout)["similar"], Search(model.embeddings_, weights=weights)
    assert [match["name"] for match in found] == [m.name for m in expected.similar(name, 3)]
    assert all(match["similarity"] == pytest.approx(match["score"], abs=0.01) for match in found)
    other = found[0]["name"]
    run = spine("explain", folder, name, other, "--weights", "role=5,place=0", "--json")
    why = json.loads(run.stdout)
    assert {part["name"]: part["weight"] for part in why["parts"]} == {"content": 1, **weights}
    assert why["similarity"] == pytest.approx(found[0]["similarity"], abs=1e-6)


def test_quiet_similar_prints_scores_and_names_alone(office):
    folder, model = office
    name = model.graph_.names[3]
    run = spine("similar", folder, name, "-q", "-n", 2)
    expected = [f"{match.score:.3f}  {match.name}" for match in Search(model.embeddings_).similar(name, 2)]
    assert run.stdout.splitlines() == expected
    assert run.stderr == ""


@pytest.mark.parametrize("by", ["all", "role"])
def test_all_nodes_go_into_a_table(office, tmp_path, by):
    folder, model = office
    run = spine("similar", folder, "--all", "--by", by, "-n", 2, "-o", tmp_path / "twins.parquet")
    assert run.returncode == 0, run.stderr
    assert "every node compared with every other" in run.stdout
    table = parquet.read_table(tmp_path / "twins.parquet").to_pydict()
    assert list(table) == ["node", "rank", "match", "score"]
    assert table["node"][::2] == model.graph_.names.tolist()
    assert table["rank"][:4] == [1, 2, 1, 2]
    first = Search(model.embeddings_, by=by).similar(table["node"][0], 2)
    assert table["match"][:2] == [match.name for match in first]
    assert table["score"][:2] == [match.score for match in first]


def test_all_nodes_can_be_printed(two_clubs):
    run = spine("similar", two_clubs, "--all", "-n", 1, "-o", "-")
    assert run.returncode == 0, run.stderr
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert len(rows) == 34 + 9
    assert {row["node"] for row in rows} >= {"0:0", "1:8"}
    assert all(float(row["score"]) <= 1 for row in rows)
    run = spine("similar", two_clubs, "--all", "-n", 1, "-o", "-", "-q")
    assert run.stderr == ""


def test_nodes_of_several_networks_are_named_by_number(two_clubs):
    run = spine("similar", two_clubs, "3")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"error: '3' could be 2 nodes of {two_clubs}; choose one of 0:3, 1:3\n"
    assert spine("similar", two_clubs, "1:3", "-q").returncode == 0
    assert spine("similar", two_clubs, "33", "-q").returncode == 0
    run = spine("explain", two_clubs, "1:3", "1:5", "-q")
    assert run.returncode == 0, run.stderr
    assert joined(run.stdout).startswith(
        "Node 1:3 and node 1:5 are nearly the same: their similarity is 1.00"
    )


def test_an_unknown_node_gives_names_that_are_close(office):
    folder, model = office
    name = model.graph_.names[3]
    run = spine("similar", folder, name.lower()[:-1])
    assert run.returncode == 1
    assert run.stdout == ""
    assert re.fullmatch(r"error: no node '.*' among the [\d,]+ of .*; did you mean .*\?\n", run.stderr)
    assert repr(name) in run.stderr
    run = spine("explain", folder, name, "Qqqq Xxxx")
    assert run.returncode == 1
    assert "names look like" in run.stderr


def test_explain_says_it_in_words_first_and_numbers_after(office):
    folder, model = office
    name = model.graph_.names[3]
    other = Search(model.embeddings_).similar(name, 1)[0].name
    run = spine("explain", folder, name, other)
    assert run.returncode == 0, run.stderr
    text = joined(run.stdout)
    assert text.startswith(f"{name} and {other} are ")
    assert "█" in run.stdout
    assert f"none is more like {name}." in text
    headings = ["Where the similarity comes from", "What makes them alike", "What sets them apart"]
    headings += ["Side by side"]
    assert [line for line in run.stdout.splitlines() if line in headings] == headings


def test_explain_prints_json_whose_parts_add_up(office):
    folder, model = office
    a, b = model.graph_.names[[3, 200]].tolist()
    run = spine("explain", folder, a, b, "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    vectors = model.embeddings_.weighted().of([a, b]).astype(np.float64)
    cosine = vectors[0] @ vectors[1] / np.linalg.norm(vectors, axis=1).prod()
    assert found["similarity"] == pytest.approx(cosine, abs=0.01)  # of one node alone: within the tolerance
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(found["similarity"], abs=1e-6)
    assert [part["name"] for part in found["parts"]] == ["content", "place", "role"]
    assert found["a"]["degree"] == model.graph_.degrees[3]
    assert found["rank"]["others"] == len(model.graph_) - 1


def test_explain_writes_a_page_that_needs_no_network(office, tmp_path):
    folder, model = office
    a, b = model.graph_.names[[3, 200]].tolist()
    page = tmp_path / "why.html"
    run = spine("explain", folder, a, b, "--html", page)
    assert run.returncode == 0, run.stderr
    assert f"Figures: {page}" in run.stdout
    text = page.read_text()
    assert f"Why {a} and {b} are alike, or not" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", text)
    assert page.stat().st_size < 6_000_000


def test_the_page_is_drawn_without_an_error(tmp_path):
    club = made.karate().relabel([f"<b>member {place}</b>" for place in range(34)])
    SPINE(dim=8).fit(club).save(tmp_path / "model")
    a, b = club.names[[0, 33]].tolist()
    assert spine("explain", tmp_path / "model", a, b, "--html", tmp_path / "why.html", "-q").returncode == 0
    with lone_page() as (page, faults):
        page.goto((tmp_path / "why.html").as_uri())
        page.wait_for_selector(".plotly .scatterlayer .trace")
        assert page.locator("h1").inner_text() == f"Why {a} and {b} are alike, or not"
        assert page.locator("svg .trace").count() >= 4
    assert faults == []


def test_a_model_without_its_network_asks_for_one(office, tmp_path):
    _, model = office
    model.save(tmp_path / "bare", data=False)
    a, b = model.graph_.names[[3, 200]].tolist()
    run = spine("explain", tmp_path / "bare", a, b)
    assert run.returncode == 1
    assert "saved without its network; pass --graph EDGES" in run.stderr


def test_another_network_is_searched_with_graph(tmp_path):
    club = made.karate()
    SPINE(dim=8).fit(club).save(tmp_path / "model", data=False)
    edges = tmp_path / "other.csv"
    edges.write_text("source,target\nann,bob\nbob,cy\ncy,dan\ncy,ann\n")
    run = spine("similar", tmp_path / "model", "ann", "--graph", edges, "-q")
    assert run.returncode == 0, run.stderr
    assert {line.split()[1] for line in run.stdout.splitlines()} == {"bob", "cy", "dan"}
    run = spine("explain", tmp_path / "model", "ann", "bob", "--graph", edges, "-q")
    assert joined(run.stdout).startswith("ann and bob are nearly the same")
    run = spine("similar", tmp_path / "model", "ann", "--graph", edges, "--by", "place")
    assert run.returncode == 1
    assert "nodes of another network have no place; search by content or by role" in run.stderr
    run = spine("similar", tmp_path / "model", "ann", "--features", edges)
    assert run.returncode == 1
    assert "--features needs --graph" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["similar", "MODEL"], 2, "pass either one NODE or --all"),
        (["similar", "MODEL", "x", "--all", "-o", "out.csv"], 2, "pass either one NODE or --all"),
        (["similar", "MODEL", "--all"], 2, "--all and --output FILE go together"),
        (["similar", "MODEL", "x", "-o", "out.csv"], 2, "--all and --output FILE go together"),
        (["similar", "MODEL", "x", "-n", "0"], 2, "Invalid value for '-n' / '--count'"),
        (["similar", "MODEL", "x", "--by", "magic"], 2, "'magic' is not one of"),
        (["similar", "MODEL", "0:1", "--by", "place"], 1, "no part 'place'; these vectors have role"),
        (["similar", "MODEL", "x", "--weights", "role"], 2, "such as role=2,place=0.5; got 'role'"),
        (["similar", "MODEL", "x", "--weights", "role=2", "--by", "role"], 2, "for all parts together"),
        (["explain", "MODEL", "0:1", "0:2", "--weights", "role=0"], 1, "must not be 0 for all parts"),
        (["similar", "MODEL", "--all", "-o", "out.xlsx"], 1, "similar nodes are saved as .csv, .parquet"),
        (
            ["similar", "MODEL", "--all", "-o", "nowhere/out.csv"],
            1,
            "the folder nowhere does not exist; create it first",
        ),
        (["similar", "missing", "x"], 1, "missing: no such folder"),
        (["explain", "missing", "x", "y"], 1, "missing: no such folder"),
        (["explain", "MODEL", "x"], 2, "Missing argument"),
        (["explain", "MODEL", "0:1", "0:1"], 1, "needs two nodes"),
        (["explain", "MODEL", "0:1", "0:2", "--html", "nowhere/why.html"], 1, "nowhere"),
        (["similar", "MODEL", "0:1", "--graph", "none.csv"], 1, "none.csv"),
    ],
)
def test_bad_arguments_end_in_one_clear_message(two_clubs, tmp_path, arguments, code, message):
    given = [str(two_clubs) if one == "MODEL" else one for one in arguments]
    run = spine(*given, cwd=tmp_path, columns=200)
    assert run.returncode == code, run.stderr
    assert message in joined(run.stderr)
    assert "Traceback" not in run.stderr
    assert list(tmp_path.iterdir()) == []
    if code == 1:
        assert run.stderr.startswith("error: ")


def test_a_full_place_leaves_nothing_half_written(office, tmp_path):
    folder, _ = office
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))}
    full["env"] = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python would keep half a compiled module
    run = spine("similar", folder, "--all", "-o", tmp_path / "twins.csv", "-q", **full)
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("error: ")
    assert "Traceback" not in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.data
@needs_cora
def test_cora_is_searched_and_explained(cora, tmp_path):
    model = SPINE.load(cora)
    run = spine("similar", cora, "35", "--json")
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)["similar"]
    assert [match["name"] for match in found] == [str(m.name) for m in Search(model.embeddings_).similar(35)]
    run = spine("explain", cora, "35", found[0]["name"])
    assert run.returncode == 0, run.stderr
    text = joined(run.stdout)
    assert text.startswith(f"Node 35 and node {found[0]['name']} are ")
    assert "Of the 2,707 other nodes none is more like node 35." in text
    assert re.search(r"What makes them most alike: [^.]*word \d+", text)
    run = spine("similar", cora, "--all", "-n", 3, "--by", "role", "-o", tmp_path / "roles.csv")
    assert run.returncode == 0, run.stderr
    assert len((tmp_path / "roles.csv").read_text().splitlines()) == 1 + 3 * 2708
    run = spine("explain", cora, "35", "99999")
    assert run.returncode == 1
    assert "did you mean" in run.stderr


@pytest.mark.data
@needs_cora
def test_interrupting_the_search_of_all_leaves_nothing(cora, tmp_path):
    command = [
        SPINE_COMMAND,
        "similar",
        str(cora),
        "--all",
        "--by",
        "role",
        "-o",
        str(tmp_path / "twins.csv"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "searching" in line:
                break
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.wait(60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert list(tmp_path.iterdir()) == []


def test_the_command_that_is_shown_runs_as_printed(tmp_path):
    edges = tmp_path / "our friends.txt"
    edges.write_text("O'Brien;$HOME\n$HOME;cy\ncy;dan\ncy;O'Brien\ndan;eve\n")
    reading = ("--delimiter", ";", "--no-header")
    assert spine("fit", edges, *reading, "-o", tmp_path / "model", "--no-data", "-q").returncode == 0
    run = spine("similar", tmp_path / "model", "O'Brien", "--graph", edges, *reading)
    assert run.returncode == 0, run.stderr
    typed = shlex.split(run.stdout.partition("Next:")[2])
    assert typed[:4] == ["spine", "explain", str(tmp_path / "model"), "O'Brien"]
    assert typed[5:] == ["--graph", str(edges), "--no-header", "--delimiter", ";"]
    assert spine(*typed[1:]).returncode == 0
