"""Figures: what they show, of what, and that no name is read as markup."""

import json

import numpy as np
import pytest

import spinegraph as sg
from spinegraph.analysis.layout import ego_network
from spinegraph.analysis.plots import color_nodes, embeddings_of
from spinegraph.errors import ParameterError, UnknownNodeError

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def model():
    graph = sg.made.barbell(8, bridge=5)
    names = [HOSTILE, *(f"n{place}" for place in range(1, len(graph)))]
    features = np.random.default_rng(0).random((len(graph), 3)).astype(np.float32)
    named = graph.relabel(names).with_features(features, ["age", HOSTILE, "size"])
    return sg.SPINE(dim=8).fit(named)


def plain(figure):
    """Return what the browser would get; it must hold no tag of a name."""
    text = figure.to_json()
    assert HOSTILE not in text
    return json.loads(text)


def test_a_map_shows_every_node_once_in_its_group(model):
    groups = ["left"] * 8 + ["middle"] * 5 + ["right"] * 8
    shown = plain(sg.plot.map(model, color=groups))["data"]
    assert [trace["name"] for trace in shown] == ["left", "right", "middle"]
    assert (
        sorted(name for trace in shown for name in trace["text"])[0]
        == "&lt;script&gt;alert(1)&lt;/script&gt;"
    )
    assert sum(len(trace["text"]) for trace in shown) == 21


@pytest.mark.parametrize("column", ["age", HOSTILE, "log_degree", "degree", "clustering"])
def test_a_map_is_coloured_by_any_column(model, column):
    assert plain(sg.plot.map(model, color=column))["data"]


def test_a_map_is_coloured_by_a_category_of_the_table():
    table = {"node": list("abcd"), "team": ["x", "y", None, "x"], "age": [1.0, 2.0, 3.0, 4.0]}
    graph = sg.read_graph({"from": list("abcd"), "to": list("bcda")}, table)
    shown = plain(sg.plot.map(sg.SPINE(dim=8).fit(graph), color="team"))["data"]
    assert {trace["name"]: len(trace["text"]) for trace in shown} == {"x": 2, "y": 1, "none": 1}


def test_a_map_of_vectors_alone_and_of_given_places(model):
    places = np.zeros((21, 2))
    (shown,) = plain(sg.plot.map(model.embeddings_, places=places))["data"]
    assert len(shown["text"]) == 21


def test_an_unknown_column_is_an_error_with_some_known_ones(model):
    with pytest.raises(ParameterError, match="no column 'agee' in age"):
        sg.plot.map(model, color="agee")


def test_twins_put_the_two_nodes_in_the_middle_of_two_drawings(model):
    figure = plain(sg.plot.twins(model, HOSTILE, "n20"))
    assert [note["text"] for note in figure["layout"]["annotations"]][1] == "n20"
    edges = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    nodes = [trace for trace in figure["data"] if trace["mode"] == "markers"]
    assert len(edges) == len(nodes) == 2
    assert {trace.get("xaxis", "x") for trace in nodes} == {"x", "x2"}


def test_twins_of_an_unknown_node_are_an_error(model):
    with pytest.raises(UnknownNodeError, match="nobody"):
        sg.plot.twins(model, "n1", "nobody")


def test_a_model_of_several_graphs_is_drawn_as_one():
    graphs = [sg.made.barbell(5, bridge=1), sg.made.barbell(6, bridge=2)]
    model = sg.SPINE(dim=4, parts=("role",)).fit(graphs)
    assert sum(len(trace.text) for trace in sg.plot.map(model).data) == 25
    assert embeddings_of(model).parts == model.embeddings_[0].parts
    assert sg.plot.twins(model, (0, 1), (1, 1)).layout.annotations[1].text == "(1, 1)"


@pytest.mark.parametrize("draw", [sg.plot.map, lambda it: sg.plot.twins(it, 0, 1)])
def test_what_is_not_fitted_is_refused(draw):
    with pytest.raises(ParameterError, match="SPINE that is not fitted"):
        draw(sg.SPINE())


def test_an_ego_network_keeps_the_nearest_and_best_connected():
    graph = sg.made.karate()
    ego = ego_network(graph, 0, radius=2, most=12)
    assert len(ego.nodes) == 12
    assert ego.left_out == 34 - 12 - sum(1 for hop in hops_from(graph, 0) if hop > 2)
    assert ego.hops.tolist() == [0] + [1] * 11
    rest = set(graph.neighbors(0)) - set(ego.nodes.tolist())
    assert min(graph.degrees[ego.nodes[1:]]) >= max(graph.degrees[list(rest)])
    assert ego.coordinates[0] == pytest.approx([0, 0])
    assert np.isfinite(ego.coordinates).all()


def hops_from(graph, root):
    hops, ring = {root: 0}, [root]
    while ring:
        new = sorted({int(other) for node in ring for other in graph.neighbors(node)} - set(hops))
        hops |= dict.fromkeys(new, hops[ring[0]] + 1)
        ring = new
    return [hops[node] for node in range(len(graph))]


def test_distances_on_a_drawing_follow_steps():
    chain = sg.Graph.from_edges([(place, place + 1) for place in range(4)])
    ego = ego_network(chain, 2, radius=2)
    lengths = np.linalg.norm(ego.coordinates[ego.edges[:, 0]] - ego.coordinates[ego.edges[:, 1]], axis=1)
    assert lengths == pytest.approx(np.ones(4), abs=0.05)
    assert ego_network(sg.Graph.from_edges([(0, 1)], num_nodes=3), 2).coordinates.tolist() == [[0, 0]]


def test_an_ego_network_of_an_overlay_has_its_new_edges():
    overlay = sg.Graph.from_edges([("ann", "bob")]).overlay(["cy"], [("cy", "ann")])
    assert ego_network(overlay, "ann").hops.tolist() == [0, 1, 1]


def test_small_groups_of_many_become_one_and_gaps_another():
    values = [f"g{place % 40}" for place in range(100)] + [None, ""]
    found = color_nodes("group", values)
    assert found.groups[-2:] == ("29 other groups", "unknown")
    assert np.bincount(found.codes).sum() == 102
    assert (found.codes == len(found.groups) - 1).sum() == 2


@pytest.mark.parametrize(
    "wrong", [{"color": [1.5, 2.5]}, {"color": ["a", "b"]}, {"places": np.zeros((2, 2))}]
)
def test_a_map_takes_one_colour_and_one_place_per_node(wrong):
    vectors = sg.Embeddings(np.arange(4), np.eye(4, dtype=np.float32))
    with pytest.raises(
        ParameterError, match=r"places must be \(4, 2\) and color one value for each of 4 nodes"
    ):
        sg.plot.map(vectors, **wrong)
