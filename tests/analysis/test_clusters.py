"""Clusters: modularity against NetworkX, agreement with a known truth."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from spinegraph import Graph
from spinegraph.analysis.scores import clusters, modularity, score_clusters
from spinegraph.errors import ParameterError

KARATE = nx.karate_club_graph()


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
    assert found[0].silhouette > 0.8
    assert found[1].nmi < 0.4
    assert found[0].modularity is None


def test_only_the_direction_of_a_vector_counts_but_a_column_is_taken_as_it_is():
    ray = np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 1.0], [0.0, 7.0]])
    found = clusters(ray, 2)
    assert found[0] == found[1] != found[2] == found[3]
    column = clusters(np.array([[1.0], [1.1], [5.0], [5.1]]), 2)
    assert column[0] == column[1] != column[2] == column[3]


def test_equal_vectors_and_too_many_clusters_are_no_surprise():
    assert score_clusters({"same": np.ones((6, 2))}, 3)[0].silhouette == 0
    with pytest.raises(ParameterError, match="2 to the 6 nodes; got 7"):
        clusters(np.ones((6, 2)), 7)


def test_fewer_nodes_than_the_usual_number_of_clusters_are_evaluated_all_the_same():
    from spinegraph.apps.evaluating import Questions, Subject, Task, evaluate

    subject = Subject("file", np.arange(5), 5, None, None, np.eye(5, dtype=np.float32))
    found = evaluate(subject, None, Questions((Task.clusters,)), lambda *moment: None)
    assert found.num_clusters == 5
