"""Link prediction: what is hidden stays hidden, and scores agree with slow ones."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score

from spinegraph import Graph, made
from spinegraph.analysis.scores import average_precision, hide_edges, neighbour_scores, score_links
from spinegraph.errors import ParameterError


@pytest.fixture(scope="module")
def karate():
    graph = nx.karate_club_graph()
    return Graph.from_edges(list(graph.edges), num_nodes=34, features=np.eye(34, dtype=np.float32))


def edge_set(graph):
    return {tuple(sorted((i, int(j)))) for i in range(len(graph)) for j in graph.neighbors(i)}


def test_hidden_edges_and_the_rest_make_up_the_network(karate):
    hidden = hide_edges(karate, 0.2, seed=3)
    whole, left = edge_set(karate), edge_set(hidden.graph)
    asked = [set(map(tuple, part.nodes[part.is_edge])) for part in (hidden.train, hidden.val, hidden.test)]
    assert asked[0] <= left
    assert asked[1] | asked[2] == whole - left
    assert not asked[1] & asked[2]
    assert (len(asked[2]), len(asked[1])) == (16, 8)
    assert len(hidden.graph) == 34
    np.testing.assert_array_equal(hidden.graph.features, karate.features)


def test_non_edges_are_distinct_and_no_edges(karate):
    hidden = hide_edges(karate, 0.2, seed=3)
    others = [
        tuple(pair) for part in (hidden.train, hidden.val, hidden.test) for pair in part.nodes[~part.is_edge]
    ]
    assert len(set(others)) == len(others)
    assert not set(others) & edge_set(karate)
    assert all(low < high for low, high in others)


def test_a_nearly_complete_network_still_has_its_non_edges_found():
    graph = nx.complete_graph(40)
    graph.remove_edges_from([(0, i) for i in range(1, 35)])
    hidden = hide_edges(Graph.from_edges(list(graph.edges), num_nodes=40), 0.01)
    assert {low for low, _ in hidden.test.nodes[~hidden.test.is_edge]} == {0}


def test_weights_and_names_stay_with_their_edges():
    graph = Graph.from_edges([(f"n{i}", f"n{(i + 1) % 30}") for i in range(30)], weights=np.arange(1.0, 31))
    left = hide_edges(graph, 0.2).graph
    assert left.names.tolist() == graph.names.tolist()
    for name in left.names:
        for other in left.neighbors(name):
            row, column = left.positions([name])[0], left.positions([other])[0]
            assert left.to_scipy()[row, column] == graph.to_scipy()[row, column]


@pytest.mark.parametrize("share", [0, -0.1, 0.6])
def test_a_share_outside_its_range_is_refused(karate, share):
    with pytest.raises(ParameterError, match="share of hidden edges"):
        hide_edges(karate, share)


def test_too_few_edges_and_too_dense_networks_are_refused():
    with pytest.raises(ParameterError, match="1 edges are too few"):
        hide_edges(Graph.from_edges([(0, 1)]), 0.1)
    with pytest.raises(ParameterError, match="too dense"):
        hide_edges(Graph.from_edges(list(nx.complete_graph(10).edges)), 0.1)


def test_neighbour_measures_are_networkxs(karate):
    hidden = hide_edges(karate, 0.2, seed=1)
    graph = nx.Graph(sorted(edge_set(hidden.graph)))
    graph.add_nodes_from(range(34))
    pairs = [tuple(map(int, pair)) for pair in hidden.test.nodes]
    common = [len(list(nx.common_neighbors(graph, *pair))) for pair in pairs]
    adamic = [score for _, _, score in nx.adamic_adar_index(graph, pairs)]
    product = [score for _, _, score in nx.preferential_attachment(graph, pairs)]
    for found, expected in zip(neighbour_scores(hidden), (common, adamic, product), strict=True):
        assert found.average_precision == pytest.approx(
            average_precision_score(hidden.test.is_edge, expected)
        )


def test_sparse_vectors_score_as_dense_ones(karate):
    hidden = hide_edges(karate, 0.2, seed=1)
    vectors = np.random.default_rng(0).random((34, 6)) * (np.arange(6) % 2)
    vectors[0] = 0  # a zero vector has no direction
    dense, sparse = (score_links("v", one, hidden) for one in (vectors, csr_array(vectors)))
    for one, other in zip(dense, sparse, strict=True):
        assert (one.by, one.auc) == (other.by, pytest.approx(other.auc))


def test_vectors_that_know_the_communities_predict_links_and_noise_does_not():
    planted = made.barbell(30)
    hidden = hide_edges(planted, 0.1)
    sides = np.eye(2)[np.repeat([0, 1], 30)]
    noise = np.random.default_rng(1).standard_normal((60, 8))
    assert all(score.auc > 0.95 for score in score_links("sides", sides, hidden))
    assert all(abs(score.auc - 0.5) < 0.15 for score in score_links("noise", noise, hidden))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=30))
def test_average_precision_is_scikit_learns(pairs):
    positive, scores = (np.array(part) for part in zip(*pairs, strict=True))
    if not positive.any():
        with pytest.raises(ParameterError, match="needs positives"):
            average_precision(positive, scores)
        return
    assert average_precision(positive, scores) == pytest.approx(average_precision_score(positive, scores))
