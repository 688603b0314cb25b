import hashlib

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from spinegraph.errors import ParameterError
from spinegraph.graph import synthetic as made


def edge_set(graph):
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    return {(int(u), int(v)) for u, v in zip(rows, graph.indices, strict=True) if u < v}


def dense(features):
    return features.toarray() if sp.issparse(features) else np.asarray(features)


@pytest.mark.parametrize(("clique", "bridge"), [(5, 1), (5, 0), (3, 4), (10, 10)])
def test_barbell_is_networkx_barbell(clique, bridge):
    expected = nx.barbell_graph(clique, bridge)
    graph = made.barbell(clique, bridge)
    assert len(graph) == expected.number_of_nodes()
    assert edge_set(graph) == {tuple(sorted(edge)) for edge in expected.edges}


def test_karate_is_networkx_karate():
    expected = nx.karate_club_graph()
    assert edge_set(made.karate()) == {tuple(sorted(edge)) for edge in expected.edges}


def test_the_smallest_barbell_is_one_edge():
    assert edge_set(made.barbell(1)) == {(0, 1)}


def test_random_graphs_have_random_ids_and_the_asked_edges():
    graph = made.random_graph(5000, 8, seed=4, features=30)
    assert 0.99 * 40_000 < graph.num_edges <= 40_000
    assert graph.features.shape == (5000, 30)
    assert set(np.unique(graph.features.data)) == {1.0}
    halves = graph.degrees[:2500].sum() / graph.degrees.sum()
    assert abs(halves - 0.5) < 0.02
    heavy = made.random_graph(5000, 8, seed=4, heavy_tailed=True)
    assert heavy.degrees.max() > 10 * graph.degrees.max()
    assert len(made.random_graph(1, 10)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made.barbell(0), "clique must be an integer >= 1; got 0"),
        (lambda: made.barbell(3, -1), "bridge must be"),
        (lambda: made.random_graph(0, 1), "num_nodes must be"),
        (lambda: made.random_graph(5, -1), "edges_per_node must be"),
        (lambda: made.random_graph(5, 1, features=0), "features must be"),
        (lambda: made.planted(communities=0), "communities must be"),
        (lambda: made.planted(size=9), "size must be an integer >= 10; got 9"),
        (lambda: made.planted(feature_noise=-0.1), "feature_noise must be from 0 to 1"),
        (lambda: made.planted(role_strength=float("nan")), "role_strength must be"),
    ],
)
def test_settings_out_of_range_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def fingerprint(organisation):
    graph = organisation.graph
    parts = [graph.indptr, graph.indices, graph.features.indptr, graph.features.indices, graph.features.data]
    parts += [organisation.community, organisation.role]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.asarray(part, dtype="<i8").tobytes())
    digest.update("\n".join([*graph.names, *graph.feature_names]).encode())
    return digest.hexdigest()


def test_the_default_organisation_is_frozen():
    assert fingerprint(made.planted()) == "53ee376e1a9fd936fba3f37628712bd8dab5470543e409171b610433cef6c47b"


def test_the_same_seed_makes_the_same_organisation_and_another_does_not():
    assert fingerprint(made.planted(seed=5)) == fingerprint(made.planted(seed=5))
    assert fingerprint(made.planted(seed=5)) != fingerprint(made.planted(seed=6))


def test_noise_and_topics_leave_people_and_ties_alone():
    usual, other = made.planted(), made.planted(feature_noise=0.9, topics_seed=3)
    assert edge_set(usual.graph) == edge_set(other.graph)
    assert usual.graph.names.tolist() == other.graph.names.tolist()
    assert (usual.graph.features != other.graph.features).nnz > 0


@pytest.mark.parametrize("seed", range(3))
def test_an_organisation_is_connected_with_roles_of_the_stated_shape(seed):
    organisation = made.planted(seed=seed, role_strength=1.0)
    graph, role = organisation.graph, organisation.role
    assert 550 <= len(graph) <= 650
    assert len(set(graph.names)) == len(graph)
    adjacency = sp.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr))
    assert connected_components(adjacency)[0] == 1
    degrees = {name: graph.degrees[role == number] for number, name in enumerate(organisation.role_names)}
    assert set(degrees["fringe"]) <= {1, 2}
    assert np.median(degrees["leader"]) > 1.8 * np.median(degrees["member"])
    assert abs(np.median(degrees["bridge"]) - np.median(degrees["member"])) <= 2
    spans = [
        len(
            {
                int(organisation.community[other])
                for other in graph.indices[slice(*graph.indptr[node : node + 2])]
            }
        )
        for node in range(len(graph))
    ]
    assert np.median(np.array(spans)[role == 1]) >= 2
    assert np.median(np.array(spans)[role == 2]) == 1
    leaders = np.bincount(organisation.community[role == 0], minlength=8)
    assert leaders.min() >= 1
    sizes = np.bincount(organisation.community)
    assert sizes.max() > 1.5 * sizes.min()


def test_words_tell_the_department_and_nothing_of_the_role():
    train, unseen = (made.planted(communities=6, size=300, seed=seed) for seed in (0, 1))

    def score(field):
        probe = LogisticRegression(max_iter=2000, class_weight="balanced")
        probe.fit(train.graph.features, getattr(train, field))
        return f1_score(getattr(unseen, field), probe.predict(unseen.graph.features), average="macro")

    assert score("community") > 0.7  # 1/6 by chance; topics carry over to the unseen organisation
    assert score("role") < 0.3  # 1/4 by chance


def test_no_role_strength_means_no_roles_in_the_ties():
    organisation = made.planted(communities=6, size=300, role_strength=0.0)
    means = [organisation.graph.degrees[organisation.role == role].mean() for role in range(4)]
    assert max(means) - min(means) < 0.8


def test_no_noise_means_words_of_the_own_topic_only():
    organisation = made.planted(feature_noise=0.0)
    per_person = np.diff(organisation.graph.features.indptr)
    assert 0.02 < (per_person == 0).mean() < 0.09  # one profile in twenty is empty
    used = organisation.graph.features[organisation.community == 0]
    assert len(np.unique(used.indices)) <= 14


@pytest.mark.parametrize(("communities", "size"), [(1, 10), (2, 10), (30, 12)])
def test_unusual_sizes_work(communities, size):
    organisation = made.planted(communities=communities, size=size)
    assert len(organisation.community_names) == communities
    assert organisation.community.max() == communities - 1
    assert organisation.graph.degrees.min() >= 1


def test_people_keep_different_names_in_a_large_organisation():
    names = made.planted(communities=20, size=1500).graph.names
    assert len(set(names)) == len(names) > 25_000
