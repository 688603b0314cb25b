"""A later table is encoded as the first one was, or refused: the same age is the same number."""

import copy

import numpy as np
import pytest

import spinegraph as sg
from command import spine
from spinegraph.errors import ParameterError

EDGES = "source,target\n" + "".join(f"p{i},p{(i + 1) % 12}\np{i},p{(i * 5 + 2) % 12}\n" for i in range(12))


def table(older):
    teams = ("north", "south", "east")
    return "id,team,age\n" + "".join(f"p{i},{teams[i % 3]},{30 + i + older}\n" for i in range(12))


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "people.csv").write_text(table(0))
    (tmp_path / "later.csv").write_text(table(30))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def model(graph, **how):
    return sg.SPINE(dim=8, seed=0).fit(graph, **how)


def test_a_model_keeps_what_made_its_graphs_features(files):
    graph = sg.read_graph("edges.csv", "people.csv")
    fitted = model(graph)
    assert fitted.table_encoder_ is graph.encoder
    later = sg.read_graph("edges.csv", "later.csv", encoder=fitted.table_encoder_)
    assert np.abs(fitted.transform(later).vectors - fitted.embeddings_.vectors).max() > 1e-3
    fitted.save("model")
    again = sg.SPINE.load("model")
    np.testing.assert_array_equal(again.transform(later).vectors, fitted.transform(later).vectors)


def test_an_encoder_passed_to_fit_counts_as_the_graphs_own(files):
    graph = sg.read_graph("edges.csv", "people.csv")
    bare = graph.with_features(graph.features, graph.feature_names)
    assert bare.encoder is None
    fitted = model(bare, encoder=graph.encoder)
    np.testing.assert_array_equal(fitted.embeddings_.vectors, model(graph).embeddings_.vectors)
    assert bare.encoder is None, "the graph that was passed stays as it is"
    np.testing.assert_array_equal(
        fitted.transform(bare).vectors, fitted.transform(graph).vectors, "with and without its encoder"
    )


def test_a_table_encoded_anew_is_refused_and_one_read_twice_is_not(files):
    fitted = model(sg.read_graph("edges.csv", "people.csv"))
    named = {"node": [f"p{i}" for i in range(12)]}
    for table in ("later.csv", named | {"age": range(12)}, named | {"team": list("abcdefghijkl")}):
        with pytest.raises(ParameterError, match=r"the model's encoder, .* encoder=model\.table_encoder_"):
            fitted.transform(sg.read_graph("edges.csv", table))
    again = fitted.transform(sg.read_graph("edges.csv", "people.csv"))
    np.testing.assert_array_equal(again.vectors, fitted.embeddings_.vectors)


def test_parts_of_a_graph_keep_what_made_their_features(files):
    graph = sg.read_graph("edges.csv", "people.csv")
    part = graph.subgraph([f"p{i}" for i in range(8)])
    for made in (part, graph.relabel({"p0": "ann"}), copy.copy(graph), sg.Graph.union([part], keys="a")):
        assert made.encoder is graph.encoder
    assert copy.deepcopy(graph).encoder.is_like(graph.encoder)
    assert graph.with_features(None).encoder is None
    assert len(model(part).transform(graph).vectors) == 12


def test_networks_fitted_together_are_encoded_together(files):
    one, other = sg.read_graph("edges.csv", "people.csv"), sg.read_graph("edges.csv", "later.csv")
    with pytest.raises(ParameterError, match=r"encoded separately.*read them with one encoder"):
        model([one, other])
    alike = sg.read_graph("edges.csv", "later.csv", encoder=one.encoder)
    with pytest.warns(sg.errors.SpineWarning, match="no place part"):
        assert model([one, alike]).table_encoder_ is one.encoder
    plain = one.with_features(one.features, one.feature_names)
    assert sg.Graph.union([one, plain], keys="ab").encoder is None


@pytest.mark.parametrize("order", ["embed", "similar"])
def test_a_command_refuses_a_table_that_the_model_cannot_encode(files, order):
    graph = sg.read_graph("edges.csv", "people.csv")
    model(graph.with_features(graph.features, graph.feature_names)).save("model")
    given = {
        "embed": ("embed", "model", "edges.csv", "--features", "later.csv", "-o", "vectors.npz"),
        "similar": ("similar", "model", "p0", "--graph", "edges.csv", "--features", "later.csv"),
    }[order]
    run = spine(*given)
    assert run.returncode != 0
    assert "the model has no table encoder" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (files / "vectors.npz").exists()
