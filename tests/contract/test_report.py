"""``spine report``: one page, complete, in a real browser, whatever names hold."""

import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import spinegraph as sg
from browser import lone_page
from command import real, spine
from spinegraph.analysis.report import find_examples, notes, write_report
from spinegraph.analysis.search import Match
from spinegraph.errors import ParameterError
from spinegraph.graph.describe import describe

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
SECTIONS = ["data-notes", "map-section", "roles", "look-alikes", "fit"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model whose first node and first column have names that are markup."""
    made = sg.made.planted(communities=3, size=30, seed=0)
    names = [HOSTILE, *made.graph.names[1:].tolist()]
    columns = [HOSTILE, *made.graph.feature_names[1:]]
    graph = made.graph.relabel(names).with_features(made.graph.features, columns)
    folder = tmp_path_factory.mktemp("report") / "model & co"
    sg.SPINE(dim=16, threads=1).fit(graph).save(folder)
    lines = ["node,label,team"]
    lines += [
        f'"{name}",{made.community_names[place]},{place}{HOSTILE if place else ""}'
        for name, place in zip(names, made.community.tolist(), strict=True)
    ]
    (folder.parent / "labels.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def written(model):
    output = model.parent / "new" / "report.html"
    labels = model.parent / "labels.csv"
    run = spine("report", model, "-o", output, "--labels", labels, "--title", "<b>bold</b>")
    assert (run.returncode, run.stderr.count("error")) == (0, 0)
    assert str(output) in run.stdout
    return output


def test_every_section_is_drawn_without_an_error_and_without_a_network(written):
    with lone_page() as (page, faults):
        page.goto(written.as_uri())
        page.wait_for_selector("body[data-drawn=yes]")
        for section in SECTIONS:
            assert page.locator(f"#{section}").bounding_box()["height"] > 60
        figures = page.locator(".figure")
        assert figures.count() >= 3
        for place in range(figures.count()):
            assert figures.nth(place).locator("svg.main-svg").count() > 0
        assert page.locator("#map .scatterlayer .point").count() == 90
        assert page.locator(".card").count() >= 2
        assert page.locator(".twins").count() >= 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert faults == []


def test_the_map_changes_colour_and_finds_nodes(written):
    with lone_page() as (page, faults):
        page.goto(written.as_uri())
        page.wait_for_selector("body[data-drawn=yes]")
        offered = page.locator("#color option").all_inner_texts()
        assert offered[:2] == ["role", "label"]
        assert len(offered) > 5
        page.select_option("#color", label="label")
        assert page.locator("#map .legend .traces").count() == 3
        page.select_option("#color", label="neighbours (logarithm)")
        assert page.locator("#map .colorbar").count() == 1
        page.fill("#find", "nobody of this name")
        assert page.inner_text("#found") == "not on the map"
        page.fill("#find", "</script>")
        assert page.inner_text("#found").startswith("</script><script>window.hacked")
    assert faults == []


def test_names_that_are_markup_are_text(written):
    text = written.read_text(encoding="utf-8")
    assert HOSTILE not in text
    assert "window.hacked = 1</script>" not in text
    with lone_page() as (page, faults):
        page.goto(written.as_uri())
        page.wait_for_selector("body[data-drawn=yes]")
        for option in page.locator("#color option").all():
            page.select_option("#color", value=option.get_attribute("value"))
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 0
        assert page.inner_text("h1") == "<b>bold</b>"
    assert faults == []


def test_it_prints_on_a_few_pages_with_figures_as_wide_as_the_paper(written, tmp_path):
    with lone_page() as (page, faults):
        page.goto(written.as_uri())
        page.wait_for_selector("body[data-drawn=yes]")
        page.evaluate(
            "addEventListener('beforeprint', () => {"
            "window.widths = [...document.querySelectorAll('.figure')].map((f) => f._fullLayout.width)})"
        )
        printed = page.pdf(format="A4", print_background=True)
        widths = page.evaluate("window.widths")
    assert faults == []
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 2 <= pages <= 8
    assert max(widths) == 700


@pytest.mark.data
@pytest.mark.slow
def test_the_report_of_cora_is_whole_and_under_ten_megabytes(tmp_path):
    data = sg.datasets.load("cora", real("cora.npz").parent)
    output = tmp_path / "cora.html"
    write_report(sg.SPINE().fit(data.graph), output, labels=data.labels.astype(str).astype(object))
    assert output.stat().st_size < 10e6
    with lone_page() as (page, faults):
        page.goto(output.as_uri())
        page.wait_for_selector("body[data-drawn=yes]")
        assert page.locator("#map .scatterlayer .point").count() == len(data.graph)
    assert faults == []


def test_json_says_what_was_found(model, tmp_path):
    run = spine("report", model, "-o", tmp_path / "r.html", "--color", "degree", "--json")
    found = json.loads(run.stdout)
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "r.html").stat().st_size < 10e6
    assert found["colors"][0] == "degree"
    assert found["nodes"] == found["on_map"] == 90
    assert found["roles"]


def test_a_column_of_the_labels_file_colours_the_map(model, tmp_path):
    labels = model.parent / "labels.csv"
    run = spine("report", model, "-o", tmp_path / "r.html", "--labels", labels, "--color", "team", "--json")
    assert json.loads(run.stdout)["colors"][:2] == ["team", "role"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["report", "nowhere"], 1, "nowhere: no such folder"),
        (["report", "MODEL", "--color", "hair"], 1, "no column 'hair'"),
        (["report", "MODEL", "--labels", "none.csv"], 1, "none.csv"),
        (["report", "MODEL", "-o", "MODEL/config.json/r.html"], 1, "r.html: cannot be written"),
        (["report"], 2, "Missing argument"),
    ],
)
def test_mistakes_are_one_clear_line_and_write_nothing(model, tmp_path, arguments, code, words):
    arguments = [part.replace("MODEL", str(model)) for part in arguments]
    run = spine(*arguments, cwd=tmp_path)
    assert run.returncode == code
    assert words in run.stderr
    assert "Traceback" not in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_its_data_is_refused_with_a_way_out(model, tmp_path):
    sg.SPINE.load(model).save(tmp_path / "bare", data=False)
    run = spine("report", tmp_path / "bare", "-o", tmp_path / "r.html")
    assert run.returncode == 1
    assert "fit it with --data" in run.stderr
    assert not (tmp_path / "r.html").exists()


def test_the_report_of_several_graphs_and_of_one_without_features(tmp_path):
    graphs = [sg.made.barbell(6, bridge=2), sg.made.karate()]
    found = write_report(sg.SPINE(dim=8, parts=("role",)).fit(graphs), tmp_path / "r.html")
    assert len(found.graph) == 48
    assert any("no features" in note.text for note in found.notes)
    assert "A vector has 8 numbers: 8 for role (" in (tmp_path / "r.html").read_text()


def test_the_page_says_which_parts_vectors_have_and_what_learning_gained(model, tmp_path):
    fitted = sg.SPINE.load(model)
    found = write_report(fitted, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    for name, part in fitted.generator_.parts.items():
        assert f"{part.stop - part.start} for {name} (" in text
    assert f"predicted {fitted.generator_.learned.before:.1f} times as well as by chance, and " in text
    for example in found.examples:
        best = max(example.explanation.parts, key=lambda part: part.share)
        assert f"similarity {example.score:.2f}, mostly by {best.name}" in text


def test_the_report_of_the_papers_model(tmp_path):
    graph = sg.made.planted(communities=3, size=30, seed=0).graph
    found = write_report(sg.SPINE.paper(dim=8, steps=5).fit(graph), tmp_path / "r.html")
    assert [part.name for part in found.examples[0].explanation.parts] == ["content"]
    assert "8 for content (" in (tmp_path / "r.html").read_text()


def test_an_unknown_column_is_refused_before_the_work(model, tmp_path):
    with pytest.raises(ParameterError, match="no column 'label'"):
        write_report(sg.SPINE.load(model), tmp_path / "r.html", color="label")


def test_labels_are_one_per_node_or_by_name(tmp_path):
    ring = sg.Graph.from_edges([(f"n{i}", f"n{(i + 1) % 9}") for i in range(9)])
    model, output = sg.SPINE(dim=8).fit(ring), tmp_path / "report.html"
    listed = [None, *("ab" * 4)]
    by_name = dict(zip(ring.names[::-1].tolist(), listed[::-1], strict=True))
    for labels in (listed, by_name, pd.Series(by_name)):
        assert model.report(output, labels=labels).labels.tolist() == listed
    assert model.report(output, labels={"n3": "a"}).labels.tolist() == [None] * 3 + ["a"] + [None] * 5
    for wrong, words in (
        (["a", "b"], r"one entry for each of the 9 nodes, .* got shape \(2,\)"),
        ({"m": 1}, "no node"),
    ):
        with pytest.raises(ParameterError, match=words):
            model.report(output, labels=wrong)


def test_look_alikes_are_more_than_two_steps_apart(tmp_path):
    near = sg.Graph.from_edges([(i, j) for i in range(6) for j in range(i)])
    for graph in (near, sg.made.karate(), sg.made.barbell(8, bridge=4)):
        found = sg.SPINE(dim=8).fit(graph).report(tmp_path / "report.html")
        assert all((each.explanation.relation.links_apart or 9) > 2 for each in found.examples)
        assert re.fullmatch(r"Findings\(\d+ nodes, \d roles?, \d notes?, \d pairs?\)", repr(found))
        assert bool(found.examples) == (graph is not near)


def test_notes_give_numbers_and_put_warnings_first():
    edges = [(0, place) for place in range(1, 60)] + [(60, 61), (60, 61), (5, 5)]
    features = np.zeros((70, 3), np.float32)
    features[:30, 0] = 1
    with pytest.warns(sg.errors.EdgeCleaningWarning):
        graph = sg.Graph.from_edges(edges, num_nodes=70, features=features)
    vectors = sg.Embeddings(graph.names, np.ones((70, 2)))
    labels = np.array(["a"] * 60 + ["b"] * 3 + [None] * 7, dtype=object)
    found = notes(graph, describe(graph, labels), vectors)
    texts = " ".join(note.text for note in found)
    for words in (
        "8 of 70 nodes (11 %) have no neighbours",
        "2 unconnected pieces",
        "0 is linked to 86 % of all nodes",
        "40 of 70 nodes (57 %) have no non-zero feature",
        "2 of 3 feature columns (67 %) are the same",
        "70 of 70 nodes (100 %) share their vector",
        "7 of 70 nodes (10 %) have no label",
        "62 listed edges gave 60 edges",
    ):
        assert words in texts
    levels = [note.level for note in found]
    assert levels == sorted(levels, reverse=True)


def test_look_alikes_near_a_hub_cost_no_copy_of_all_nodes():
    count = 300_000
    star = sg.Graph.from_edges(np.column_stack([np.zeros(count - 1, int), np.arange(1, count)]))
    roles = SimpleNamespace(
        shares=lambda: np.ones(1), examples=lambda role, most: list(range(1, 9)), roles=np.zeros(count, int)
    )

    def seconds(matches):
        search = SimpleNamespace(similar=lambda name, n: [Match(i, 1.0) for i in range(100, 100 + matches)])
        began = time.process_time()
        assert find_examples(star, SimpleNamespace(known=lambda graph: None), search, roles) == []
        return time.process_time() - began

    alone = seconds(0)
    assert seconds(100) < 3 * alone + 0.05
