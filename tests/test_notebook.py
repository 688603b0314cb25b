"""What a notebook shows of a graph, of vectors and of a model."""

import re

import numpy as np
import pytest

import spinegraph as sg

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def graph():
    graph = sg.made.karate().relabel([HOSTILE, *(f"n{place}" for place in range(1, 34))])
    return graph.with_features(np.eye(34, 3, dtype=np.float32), [HOSTILE, "age", "size"])


@pytest.fixture(scope="module")
def model(graph):
    return sg.SPINE(dim=8).fit(graph)


def text_of(value):
    html = value._repr_html_()
    assert "<script" not in html
    return re.sub(r"<[^>]+>", " ", html)


def test_a_graph_shows_size_degrees_features_and_names(graph):
    text = text_of(graph)
    for words in ("34 nodes, 78 edges", "at most 17", "3, dense", "&lt;script&gt;", "n4, ..."):
        assert words in text


def test_a_graph_shows_what_cleaning_did():
    with pytest.warns(sg.errors.EdgeCleaningWarning):
        graph = sg.Graph.from_edges([(0, 1), (1, 1)], weights=[0.5, 1])
    assert "2 listed edges gave 1 edge: 1 self-loop dropped." in text_of(graph)
    assert "0.5 to 0.5" in text_of(graph)


def test_vectors_show_their_first_rows(model):
    text = text_of(model.embeddings_)
    assert "34 nodes, 8 dimensions: content" in text
    assert "... and 29 more" in text
    assert f"{model.embeddings_.vectors[1, 0]:.3f}" in text


def test_a_model_shows_settings_data_and_parts(model):
    text = text_of(model)
    for words in ("fitted on 34 nodes", "dim=8", "content", "role", "&lt;script&gt;", "similar(name)"):
        assert words in text
    assert "not fitted" in text_of(sg.SPINE())
    assert "all default" in text_of(sg.SPINE())


def test_a_model_without_its_data_and_one_of_several_graphs_can_be_shown(model, tmp_path):
    model.save(tmp_path / "bare", data=False)
    assert "fitted on 34 nodes" in text_of(sg.SPINE.load(tmp_path / "bare"))
    several = sg.SPINE(dim=4, parts="role").fit([sg.made.karate(), sg.made.barbell(5, bridge=1)])
    assert "Graph(11 nodes" in text_of(several)
