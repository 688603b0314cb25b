"""What a fitted model answers in Python, and what scikit-learn does with its vectors."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline

import spinegraph as sg
from spinegraph.analysis.plots import COLORS
from spinegraph.analysis.search import Search
from spinegraph.errors import NotFittedError, ParameterError, UnknownNodeError

EXPLORER = Path(sg.__file__).parent / "apps" / "explorer"


@pytest.fixture(scope="module")
def office():
    return sg.made.planted(communities=3, size=30, seed=0)


@pytest.fixture(scope="module")
def model(office):
    return sg.SPINE(dim=24, threads=1).fit(office.graph)


@pytest.fixture(scope="module")
def loaded(model, tmp_path_factory):
    """The model, from a folder with its network, and from one without."""
    folder = tmp_path_factory.mktemp("models")
    model.save(folder / "whole")
    model.save(folder / "bare", data=False)
    return sg.SPINE.load(folder / "whole"), sg.SPINE.load(folder / "bare")


def test_similar_nodes_are_those_of_the_search_and_become_a_table(model, office):
    name = office.graph.names[3]
    for by in ("all", "content", "place", "role"):
        found = model.similar(name, by=by, n=4)
        assert list(found) == Search(model.embeddings_, by=by).similar(name, 4)
        table = found.to_pandas()
        assert table.index.tolist() == [match.name for match in found]
        assert list(table)[:4] == ["score", "content", "place", "role"]
        if by != "all":
            assert table[by].tolist() == pytest.approx(table["score"].tolist(), abs=0.02)
    lines = repr(model.similar(name, n=2)).splitlines()
    assert lines[0] == f"Most like {name}, by all parts"
    assert len(lines) == 6
    assert max(map(len, lines)) <= 100
    assert found[0].name in found._repr_html_()


def test_weights_are_passed_on(model, office):
    name, weights = office.graph.names[3], {"role": 5.0, "place": 0.0}
    expected = Search(model.embeddings_, weights=weights).similar(name, 3)
    assert list(model.similar(name, n=3, weights=weights)) == expected
    with pytest.raises(ParameterError, match="weights are for all parts together"):
        model.similar(name, by="role", weights=weights)
    with pytest.raises(ParameterError, match=r"by must be one of 'all', 'content'.*got 'structure'"):
        model.similar(name, by="structure")


def test_an_explanation_prints_as_sentences_and_its_parts_become_a_table(model, office):
    a, b = office.graph.names[[3, 40]].tolist()
    found = model.explain(a, b)
    assert " ".join(repr(found).split()) == " ".join(found.words)
    assert found.rank.others == len(office.graph) - 1
    assert found.to_pandas()["share"].sum() == pytest.approx(found.similarity)
    assert found.columns.to_pandas()["part"].isin(["content", "role"]).all()
    assert all(sentence.split()[0] in found._repr_html_() for sentence in found.words)


def test_roles_are_listed_by_node_and_assigned_elsewhere(model, office):
    found = model.roles()
    table = found.to_pandas()
    assert table.index.tolist() == office.graph.names.tolist()
    assert table[found.roles.titles].sum(axis=1).to_numpy() == pytest.approx(1)
    assert found[office.graph.names[5]] == table["role"].iloc[5]
    assert repr(found).startswith(f"{len(found.roles)} roles of {len(office.graph)} nodes\n")
    assert len(model.roles(2).roles) == 2
    there = sg.made.planted(communities=3, size=20, seed=1).graph
    elsewhere = model.roles(graph=there)
    assert elsewhere.roles.titles == found.roles.titles
    assert len(elsewhere) == len(there)
    with pytest.raises(UnknownNodeError, match="no node 'nobody'"):
        found["nobody"]


def test_an_answer_in_another_network_knows_no_place(model):
    there = sg.made.planted(communities=3, size=20, seed=1).graph
    name = there.names[0]
    assert {match.name for match in model.similar(name, graph=there)} <= set(there.names)
    assert any("Place is zero" in words for words in model.explain(name, there.names[1], graph=there).words)
    with pytest.raises(
        ParameterError, match="nodes of another network have no place; search by content or by role"
    ):
        model.similar(name, by="place", graph=there)


def test_given_weights_are_named(model, office):
    found = model.similar(office.graph.names[3], weights={"role": 2, "place": 0}, n=1)
    assert ", by all parts, role times 2, place times 0" in repr(found)
    assert "weighted mean of the cosines" in repr(found)


def test_a_loaded_model_answers_from_its_folder_and_else_asks_for_a_graph(model, loaded, office, tmp_path):
    whole, bare = loaded
    name = office.graph.names[3]
    assert list(whole.similar(name)) == list(model.similar(name))
    assert list(bare.similar(name, graph=office.graph)) == list(model.similar(name))
    for ask in (
        lambda: bare.similar(name),
        lambda: bare.explain(name, office.graph.names[4]),
        lambda: bare.roles(),
        lambda: bare.report(tmp_path / "report.html"),
        lambda: bare.plot(),
    ):
        with pytest.raises(ParameterError, match="saved without its network"):
            ask()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NotFittedError):
        sg.SPINE().similar(name)
    with pytest.raises(UnknownNodeError, match="'nobody'"):
        model.similar("nobody")


def test_nodes_of_several_networks_are_named_by_number():
    model = sg.SPINE(dim=8, parts=("role",)).fit([sg.made.karate(), sg.made.barbell(4, 1)])
    assert model.similar((1, 3), n=1)[0].name == (1, 5)
    assert "1:5" in repr(model.similar((1, 3), n=1))
    assert model.similar((1, 3), n=1).to_pandas().index.tolist() == [(1, 5)]


def test_a_report_is_an_html_page(model, office, tmp_path):
    with pytest.raises(
        ParameterError, match=r"x.pdf: a report is an HTML page; choose a name that ends in .html"
    ):
        model.report(tmp_path / "x.pdf")
    assert list(tmp_path.iterdir()) == []
    names = [office.community_names[one] for one in office.community]
    found = model.report(tmp_path / "r.html", title="Our office", labels=names, label_title="team")
    assert [coloring.title for coloring in found.colorings][:2] == ["role", "team"]
    assert "Our office" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_map_is_coloured_by_role_and_drawn_by_any_part(model):
    titles = model.roles().roles.titles
    figure = model.plot(method="pca")
    assert [trace.name for trace in figure.data] == titles
    assert [trace.marker.color for trace in figure.data] == list(COLORS[: len(titles)])
    by_role = model.plot("degree", by="role", method="pca")
    assert len(by_role.data) == 1
    assert not np.allclose(by_role.data[0].x, model.plot("degree", method="pca").data[0].x)


def test_scikit_learn_takes_vectors_as_rows(model, office):
    vectors, y = model.embeddings_, office.community
    classifier = LogisticRegression(max_iter=500)
    assert classifier.fit(vectors, y).score(vectors, y) > 0.9
    plain = cross_val_score(classifier, vectors.vectors, y)
    assert cross_val_score(classifier, vectors, y).tolist() == plain.tolist()


def test_a_pipeline_fits_and_predicts_on_one_graph(office):
    steps = [("vectors", sg.SPINE(dim=16, threads=1)), ("model", LogisticRegression(max_iter=500))]
    line = Pipeline(steps).fit(office.graph, office.community)
    assert (line.predict(office.graph) == office.community).mean() > 0.9
    assert line.set_params(vectors__dim=8).fit(office.graph, office.community)[0].embeddings_.dim == 8


def test_rows_are_chosen_as_of_an_array_and_a_single_value_is_a_name():
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    numbered = sg.Embeddings(np.array([3, 2, 1, 0]), rows)
    assert numbered[0].tolist() == numbered[np.int64(0)].tolist() == rows[3].tolist()
    for key in ([0, 2], slice(1, 3), np.array([True, False, True, False]), np.array([3])):
        assert numbered[key].tolist() == rows[key].tolist()
        assert numbered[key, ...].tolist() == rows[key].tolist()
    assert numbered[:, [1]].tolist() == rows[:, [1]].tolist()
    keyed = np.empty(4, dtype=object)
    keyed[:] = [(0, "ann"), (0, "bob"), (1, "ann"), (1, "bob")]
    assert sg.Embeddings(keyed, rows)[1, "ann"].tolist() == rows[2].tolist()
    for wrong in ([9], ["ann"], np.array([True])):
        with pytest.raises(ParameterError, match="select rows by a slice, by integers below 4"):
            numbered[wrong]
    assert numbered.to_pandas().loc[2].tolist() == rows[1].tolist()
