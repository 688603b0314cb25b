"""Scores of vectors: class splits, link prediction and clusters, against slow or independent ones."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import average_precision_score

from spinegraph import SPINE, Graph, made, read_graph
from spinegraph.analysis.evaluation import (
    class_numbers,
    clusters,
    hide_edges,
    modularity,
    neighbour_scores,
    random_split,
    score_classes,
    score_clusters,
    score_links,
)
from spinegraph.errors import ParameterError

KARATE = nx.karate_club_graph()


@given(
    st.lists(st.integers(3, 40), min_size=2, max_size=5),
    st.floats(0.05, 0.5),
    st.floats(0.05, 0.4),
    st.integers(0, 2**32),
)
@example([3, 3], 0.5, 0.25, 0)  # half of three is two, and one is to be tested
def test_a_split_parts_the_labelled_nodes_class_by_class(sizes, train, val, seed):
    labels = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), [-1, -1]])
    split = random_split(labels, train, val, seed)
    together = np.concatenate(split)
    assert sorted(together.tolist()) == list(range(sum(sizes)))
    for number, size in enumerate(sizes):
        assert (labels[split[0]] == number).sum() == max(1, min(round(train * size), size - 2))
        assert all(number in labels[part] for part in split)
    again = random_split(labels, train, val, seed)
    np.testing.assert_array_equal(split[2], again[2])


def test_telling_vectors_are_read_and_empty_ones_give_the_largest_class():
    labels = np.repeat([0, 1, -1], [40, 20, 5])
    rows = {"telling": labels[:, None].astype(float), "empty": np.zeros((65, 2))}
    telling, empty, largest = score_classes(rows, labels, repeats=3)
    assert (telling.accuracy, telling.deviation, len(telling.C)) == (1.0, 0.0, 3)
    assert empty.accuracy == largest.accuracy == pytest.approx(2 / 3, abs=0.02)
    assert largest.C == ()


def test_labels_become_numbers_in_the_order_of_their_names():
    numbers, classes = class_numbers(np.array(["west", None, "east", "west"], dtype=object))
    assert (numbers.tolist(), classes) == ([1, -1, 0, 1], ["east", "west"])


@pytest.mark.parametrize("labels", [[-1, -1], [0] * 10, [0, 1], [0, 1, 1]])
def test_too_few_labels_are_refused(labels):
    with pytest.raises(ParameterError, match="too few; label three"):
        random_split(np.array(labels), 0.2, 0.1, 0)


@pytest.mark.parametrize(("train", "val"), [(0, 0.1), (0.5, 0.5), (1.2, 0.1)])
def test_shares_leave_some_to_test(train, val):
    with pytest.raises(ParameterError, match="leave some for test"):
        random_split(np.repeat([0, 1], 10), train, val, 0)


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


def test_a_table_stays_one_in_every_graph_made_from_its_graph(tmp_path):
    nodes, rng = [f"n{i}" for i in range(40)], np.random.default_rng(0)
    table = {"node": nodes, "team": rng.choice(["a", "b", "c"], 40).tolist(), "age": rng.random(40).tolist()}
    edges = [(nodes[i], nodes[(i + step) % 40]) for i in range(40) for step in (1, 2)]
    graph = read_graph(pd.DataFrame(edges, columns=["from", "to"]), pd.DataFrame(table))
    model = SPINE(dim=16).fit(graph)
    model.save(tmp_path / "m")
    others = [
        hide_edges(graph, 0.2).graph,
        SPINE.load(tmp_path / "m").graph_,
        graph.with_nodes(["new"], [("new", "n0")], features=graph.features[:1]),
    ]
    for other in others:
        assert other.encoder is not None
        assert SPINE(dim=16).fit(other).generator_.content.mean.any()


def test_hidden_edges_of_a_directed_network_leave_the_direction_of_the_rest():
    pairs = [(i, (i + step) % 40) for i in range(40) for step in (1, 3)] + [(1, 0)]
    graph = Graph.from_edges(pairs, weights=np.arange(1.0, 82), directed=True)
    hidden = hide_edges(graph, 0.2)
    whole, left = graph.to_scipy(), hidden.graph.to_scipy()
    assert hidden.graph.directed
    assert (left[left.nonzero()] == whole[left.nonzero()]).all()
    gone = {tuple(sorted(pair)) for pair in zip(*(whole - left).nonzero(), strict=True)}
    assert gone == {
        tuple(map(int, pair)) for asked in (hidden.val, hidden.test) for pair in asked.nodes[asked.is_edge]
    }


@pytest.mark.parametrize("share", [0, -0.1, 0.6])
def test_a_share_outside_its_range_is_refused(karate, share):
    with pytest.raises(ParameterError, match="share of hidden edges"):
        hide_edges(karate, share)


def test_too_few_edges_and_too_dense_networks_are_refused():
    with pytest.raises(ParameterError, match="too few edges to hide 10% and learn from the rest: 1"):
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


@given(st.lists(st.integers(0, 3), min_size=34, max_size=34), st.booleans())
def test_modularity_is_networkxs(parts, weighted):
    edges = list(KARATE.edges)
    weights = np.array([KARATE.edges[edge]["weight"] for edge in edges], np.float32) if weighted else None
    graph = Graph.from_edges(edges, num_nodes=34, weights=weights)
    communities = [{i for i in range(34) if parts[i] == part} for part in set(parts)]
    expected = nx.community.modularity(KARATE, communities, weight="weight" if weighted else None)
    assert modularity(graph, parts) == pytest.approx(expected)


def test_a_network_without_edges_has_no_modularity():
    assert modularity(Graph.from_edges(np.empty((0, 2), int), num_nodes=3), [0, 1, 2]) == 0


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_clear_classes_are_found_and_noise_is_not(kind):
    labels = np.repeat([0, 1, 2, -1], 15)
    rng = np.random.default_rng(0)
    telling = np.eye(4)[labels] + 0.05 * rng.standard_normal((60, 4))
    noise = rng.standard_normal((60, 4))
    found = score_clusters({"telling": kind(telling), "noise": kind(noise)}, 4, labels=labels)
    assert found[0].nmi > 0.99
    assert found[0].ari > 0.99
    assert found[1].nmi < 0.4
    assert found[0].modularity is None


def test_only_the_direction_of_a_vector_counts_but_a_column_is_taken_as_it_is():
    ray = np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 1.0], [0.0, 7.0]])
    found = clusters(ray, 2)
    assert found[0] == found[1] != found[2] == found[3]
    column = clusters(np.array([[1.0], [1.1], [5.0], [5.1]]), 2)
    assert column[0] == column[1] != column[2] == column[3]


def test_equal_vectors_and_too_many_clusters_are_no_surprise():
    assert score_clusters({"same": np.ones((6, 2))}, 3)[0].nmi is None
    with pytest.raises(ParameterError, match="from 2 to 6, the node count; got 7"):
        clusters(np.ones((6, 2)), 7)


def test_the_probe_of_links_reads_wide_vectors_as_well_as_narrow_ones():
    planted = made.planted(seed=0)
    hidden = hide_edges(planted.graph, 0.2, seed=0)
    narrow = np.eye(planted.community.max() + 1)[planted.community]
    wide = np.repeat(narrow, 400, axis=1) / 60  # the same directions, and products a thousand times smaller
    found = [score.auc for rows in (narrow, wide) for score in score_links("", rows, hidden)]
    assert found[:3] == pytest.approx(found[3:], abs=0.01)
    assert found[5] > 0.6
