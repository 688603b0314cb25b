"""What a graph is like in numbers, against counting by hand and by NetworkX."""

import numpy as np
import pytest
from hypothesis import given

from spinegraph import Graph
from spinegraph.errors import GraphFormatError, ParameterError, SpineWarning
from spinegraph.graph.describe import TrainingStats, describe
from spinegraph.graph.feature_files import read_labels
from strategies import dense_features, graphs


@given(graphs())
def test_the_numbers_are_those_of_networkx(graph):
    networkx = pytest.importorskip("networkx")
    made = networkx.Graph()
    made.add_nodes_from(range(len(graph)))
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    made.add_edges_from(zip(rows.tolist(), graph.indices.tolist(), strict=True))
    found = describe(graph)
    pieces = list(networkx.connected_components(made))
    degrees = [degree for _, degree in made.degree]
    assert (found.nodes, found.edges) == (made.number_of_nodes(), made.number_of_edges())
    assert (found.components, found.largest_component) == (len(pieces), max(map(len, pieces)))
    assert (found.isolated, found.degree_largest) == (degrees.count(0), max(degrees))
    assert found.degree_mean == pytest.approx(np.mean(degrees))
    for part in found.degrees:
        assert part.nodes == sum(part.low <= degree <= part.high for degree in degrees)
    assert sum(part.nodes for part in found.degrees) == len(graph)


@given(graphs(features=True))
def test_features_are_counted_alike_dense_and_sparse(graph):
    found, plain = describe(graph).features, dense_features(graph.features)
    assert found.columns == plain.shape[1]
    assert found.density == pytest.approx((plain != 0).mean())
    assert found.empty_rows == sum(not row.any() for row in plain)


def test_labels_are_counted_without_the_unknown():
    graph = Graph.from_edges([(0, 1), (1, 2)])
    found = describe(graph, np.array([4, -1, 4])).labels
    assert (found.counts, found.unlabelled) == ((("4", 2),), 1)
    found = describe(graph, np.array(["x", None, ""], dtype=object)).labels
    assert (found.counts, found.unlabelled) == ((("x", 1),), 2)
    with pytest.raises(GraphFormatError, match=r"\(3,\)"):
        describe(graph, np.zeros(2))


class TestLabelFiles:
    names = np.array(["ann", "bob", "cy"], dtype=object)

    def read(self, tmp_path, text, names=names, **options):
        (tmp_path / "labels.csv").write_text(text)
        return read_labels(tmp_path / "labels.csv", names, **options).tolist()

    def test_labels_come_in_the_graphs_order(self, tmp_path):
        assert self.read(tmp_path, "node,label\ncy,1\nann,2\n") == ["2", None, "1"]
        assert self.read(tmp_path, "id\tteam\n7\tx\n5\ty\n", np.array([5, 7])) == ["y", "x"]

    def test_the_column_is_found_by_title_or_said(self, tmp_path):
        text = "node,age,class\nann,1,x\nbob,2,y\n"
        assert self.read(tmp_path, text) == ["x", "y", None]
        assert self.read(tmp_path, text, label_column="age") == ["1", "2", None]
        with pytest.raises(ParameterError, match="no column 'team'"):
            self.read(tmp_path, text, label_column="team")
        with pytest.raises(GraphFormatError, match="no column 'label' among"):
            self.read(tmp_path, "node,age,size\nann,1,x\n")

    def test_names_that_are_not_in_the_graph_are_told(self, tmp_path):
        with pytest.warns(SpineWarning, match="1 labels match no node: 'zoe'"):
            assert self.read(tmp_path, "node,label\nzoe,x\nbob,y\n") == [None, "y", None]
        with pytest.raises(GraphFormatError, match="none of its 1 names is a node"):
            self.read(tmp_path, "node,label\nzoe,x\n")
        with pytest.raises(GraphFormatError, match="more than once"):
            self.read(tmp_path, "node,label\nann,x\nann,y\n")

    def test_other_files_are_refused(self, tmp_path):
        np.save(tmp_path / "labels.npy", np.arange(3))
        with pytest.raises(GraphFormatError, match="labels must be in a table"):
            read_labels(tmp_path / "labels.npy", self.names)


def test_a_label_that_is_not_a_number_is_none():
    found = describe(Graph.from_edges([(0, 1), (1, 2)]), np.array([1.0, np.nan, 1.0])).labels
    assert (found.counts, found.unlabelled) == ((("1.0", 2),), 1)


def test_weights_that_differ_late_are_weights():
    edges = np.stack([np.zeros(3000, np.int64), np.arange(1, 3001)], axis=1)
    weights = np.ones(3000)
    weights[-1] = 2.0
    star = Graph.from_edges(edges, weights=weights)
    assert TrainingStats.of(star).is_weighted
    assert not TrainingStats.of(Graph.from_edges(edges, weights=np.ones(3000))).is_weighted
