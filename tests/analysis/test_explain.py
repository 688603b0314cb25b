"""Explanations: shares that add up, facts that oracles confirm, sentences that say what the numbers say."""

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from spinegraph import SPINE, Graph, made
from spinegraph.analysis.explain import Columns, Explanation, Part, Rank, Relation, Surroundings, explain
from spinegraph.analysis.search import Search, StructuralSearch
from spinegraph.config import Config
from spinegraph.errors import MissingFeaturesError, ParameterError, UnknownNodeError
from spinegraph.generator import Generator, Inputs, profile_of
from spinegraph.structure.similarity import warping


def random_generator(graph, seed=0, dim=6, **settings_given):
    """A generator with random W_M: what is explained does not depend on training."""
    config = Config(k=5, **settings_given)
    inputs = Inputs.of(graph, config, None, profile_of(graph, config))
    rows = inputs.num_smoothed + inputs.num_direct
    weights = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return Generator(inputs, weights)


def cosine(one, other):
    one, other = one.astype(np.float64), other.astype(np.float64)
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


@pytest.fixture(scope="module")
def office():
    """A made organisation and a model of it."""
    planted = made.planted(seed=1)
    return SPINE(dim=32, steps=30, seed=0).fit(planted.graph)


@settings(max_examples=60)
@given(
    strategies.graphs(min_nodes=2),
    st.sampled_from(["tanh", "relu", "elu", "identity"]),
    st.sampled_from(["auto", "past", "through", "none"]),
)
def test_the_shares_of_parts_and_of_columns_add_up(graph, activation, kind):
    if not graph.has_features and kind in ("past", "none"):
        return
    generator = random_generator(graph, activation=activation, structural_columns=kind)
    vectors = generator.embed(graph)
    a, b = graph.names[[0, -1]].tolist()
    found = explain(graph, generator, a, b)
    if vectors[0].any() and vectors[-1].any():
        expected = cosine(vectors[0], vectors[-1])
        assert found.similarity == pytest.approx(expected, abs=1e-4)
        assert found.columns.alike.sum() == pytest.approx(found.similarity, abs=1e-6)
        assert found.columns.weight.sum() == pytest.approx(1, abs=1e-6)
        assert sum(part.apart for part in found.parts) == pytest.approx(1 - found.similarity, abs=1e-6)
    assert sum(part.alike for part in found.parts) == pytest.approx(found.similarity, abs=1e-6)
    assert sum(part.weight for part in found.parts) == pytest.approx(1, abs=1e-6)
    assert 0 <= found.overlap <= 1 + 1e-6
    assert all(isinstance(sentence, str) and sentence for sentence in found.words)
    json.dumps(found.to_json(), allow_nan=False)


@settings(max_examples=40)
@given(strategies.graphs(min_nodes=2))
def test_an_explanation_is_the_same_from_both_sides(graph):
    generator = random_generator(graph)
    a, b = graph.names[[0, -1]].tolist()
    one, other = explain(graph, generator, a, b), explain(graph, generator, b, a)
    assert one.similarity == pytest.approx(other.similarity, abs=1e-6)
    assert [part.name for part in one.parts] == [part.name for part in other.parts]
    np.testing.assert_allclose(
        [part.alike for part in one.parts], [part.alike for part in other.parts], atol=1e-6
    )
    assert (one.a, one.b) == (other.b, other.a)
    assert one.relation == other.relation


@settings(max_examples=60)
@given(strategies.graphs(min_nodes=2, features=False))
def test_what_lies_around_is_what_networkx_counts(graph):
    generator = random_generator(graph)
    a, b = graph.names[[0, -1]].tolist()
    found = explain(graph, generator, a, b)
    known = nx.Graph(list(map(tuple, _edges(graph))))
    known.add_nodes_from(graph.names.tolist())
    for around, name in ((found.a, a), (found.b, b)):
        near = nx.single_source_shortest_path_length(known, name, cutoff=3)
        assert around.degree == known.degree[name]
        assert around.hops == tuple(sum(0 < away <= hop for away in near.values()) for hop in (1, 2, 3))
        assert around.clustering == pytest.approx(nx.clustering(known, name), abs=1e-6)
    apart = nx.shortest_path_length(known, a, b) if nx.has_path(known, a, b) else None
    assert found.relation.links_apart == (None if apart is None or apart > 6 else apart)
    assert found.relation.common == len(list(nx.common_neighbors(known, a, b)))


def _edges(graph):
    for place, name in enumerate(graph.names.tolist()):
        for other in graph.indices[graph.indptr[place] : graph.indptr[place + 1]]:
            yield name, graph.names[other : other + 1].tolist()[0]


def test_an_overlay_is_explained_like_the_graph_it_stands_for(office):
    graph = office.graph_
    features = graph.feature_rows(np.array([3, 4]))
    names = graph.names[[3, 10, 40]].tolist()
    edges = [("new", names[0]), ("new", names[1]), ("newer", "new"), (names[1], names[2])]
    overlay = graph.overlay(["new", "newer"], edges, features=features)
    whole = overlay.materialize()
    for a, b in (("new", names[0]), ("new", "newer"), (names[1], names[2])):
        one, other = (explain(some, office.generator_, a, b) for some in (overlay, whole))
        assert one.words == other.words
        assert (one.a, one.b, one.relation) == (other.a, other.b, other.relation)
        np.testing.assert_allclose(one.columns.alike, other.columns.alike, atol=1e-6)


def test_nodes_far_apart_share_no_place_and_neighbours_share_some(office):
    graph = office.graph_
    name = graph.names[0]
    neighbor = graph.neighbors(name)[0]
    shares = {part.name: part.alike for part in explain(graph, office.generator_, name, neighbor).parts}
    assert shares["place"] > 0.05
    two = Graph.union([graph, graph], keys=[0, 1])
    found = explain(two, office.generator_, (0, name), (1, name))
    shares = {part.name: part.alike for part in found.parts}
    assert found.similarity == pytest.approx(1, abs=1e-5)
    assert shares["place"] == 0
    assert found.overlap == 0
    assert found.relation.links_apart is None


def test_columns_that_make_nodes_alike_are_in_both_and_in_order(office):
    graph = office.graph_
    name = graph.names[5]
    found = explain(graph, office.generator_, name, graph.neighbors(name)[0])
    shared = found.columns.shared(5, structural=False)
    assert [column.name for column in shared] == [title for title, _ in found.shared_features][:5]
    assert all(min(column.values) > 0 for column in shared)
    assert [column.alike for column in shared] == sorted((c.alike for c in shared), reverse=True)
    assert {column.name for column in shared} <= set(graph.feature_names)
    apart = found.columns.apart(5)
    assert [column.apart for column in apart] == sorted((c.apart for c in apart), reverse=True)


def test_ranks_count_who_is_nearer(office):
    graph, vectors = office.graph_, office.embeddings_
    profile = office.generator_.inputs.profile(graph)
    search, roles = Search(vectors), StructuralSearch(graph, profile)
    a, b = graph.names[[7, 300]].tolist()
    found = explain(graph, office.generator_, a, b, embeddings=vectors, profile=profile)
    order = [match.name for match in search.similar(a, len(graph))]
    assert found.rank == Rank(order.index(b), len(graph) - 1)
    order = [match.name for match in roles.similar(a, len(graph))]
    assert found.role_rank == Rank(order.index(b), len(graph) - 1)
    again = explain(graph, office.generator_, a, b, embeddings=search, profile=roles)
    assert (again.rank, again.role_rank) == (found.rank, found.role_rank)
    nearest = search.similar(a, 1)[0].name
    assert explain(graph, office.generator_, a, nearest, embeddings=search).rank.nearer == 0


def test_zero_vectors_have_an_explanation():
    graph = Graph.from_edges([(0, 1), (2, 3)], features=np.array([[0.0], [0.0], [0.0], [1.0]]))
    generator = random_generator(graph, structural_columns="none", feature_scaling="none")
    both = explain(graph, generator, 0, 1)
    assert (both.similarity, both.parts) == (1, (Part("nothing", 1, 1),))
    assert "both vectors are zero" in both.words[0]
    one = explain(graph, generator, 0, 3)
    assert (one.similarity, one.parts) == (0, (Part("nothing", 0, 1),))
    assert "one of the vectors is zero" in one.words[0]


def test_wrong_nodes_and_wrong_graphs_are_refused(office):
    graph = office.graph_
    name = graph.names[0]
    with pytest.raises(ParameterError, match="twice"):
        explain(graph, office.generator_, name, name)
    with pytest.raises(UnknownNodeError, match="nobody"):
        explain(graph, office.generator_, name, "nobody")
    with pytest.raises(MissingFeaturesError):
        explain(made.karate(), office.generator_, 0, 1)


def example(similarity=0.8, rank=None, parts=(), step=0.1, **changes):
    row = np.array([0.5, 0.3, 0.2], dtype=np.float32)
    other = row.copy()
    other[0] = 0.5 * (1 + 3 * step)
    values = np.array([[1.0, 0.0], [1.0, 2.0]])
    columns = Columns(
        np.array(["pricing", "chess"]), values, np.array([0.5, 0.1]), np.array([0.5, 0.4]), np.zeros(2, bool)
    )
    given = {
        "a": Surroundings("Ann", 3, (3, 8, 20), 1 / 3, 4.0),
        "b": Surroundings("12", 1, (1, 4, 9), 0.0, 3.0),
        "relation": Relation(2, 1, ("Bob",)),
        "similarity": similarity,
        "parts": parts
        or (Part("content", 0.5, 0.7), Part("place", 0.31, 0.28), Part("structure", -0.01, 0.02)),
        "overlap": 0.25,
        "columns": columns,
        "profiles": np.stack([row, other]),
        "warping": warping(row, other),
        "rank": rank,
    }
    return Explanation(**{**given, **changes})


def test_words_say_what_the_numbers_say():
    words = example(rank=Rank(0, 41)).words
    assert words[0] == (
        "Ann and node 12 are much alike: their similarity is 0.80, 1 being the same and 0 unrelated. "
        "Of the 41 other nodes none is more like Ann."
    )
    assert words[1] == (
        "Of the 0.80, 0.50 is content (what describes the nodes around them) and 0.31 is place (nodes that "
        "both have around them); structure (the shape of the links around them) takes 0.01 away."
    )
    assert words[2] == "What makes them alike most: pricing."
    assert words[3] == (
        "They are 2 links apart, with 1 neighbour in common (Bob), and 25 % of what lies around one lies "
        "around the other."
    )
    assert words[4].startswith(
        "They play similar roles: Ann has 3 neighbours, node 12 has 1; within 3 links lie 20"
    )


@pytest.mark.parametrize(
    ("similarity", "words"),
    [
        (0.95, "nearly the same"),
        (0.5, "alike in part"),
        (0.3, "a little alike"),
        (0.1, "not alike"),
        (-0.4, "not alike"),
    ],
)
def test_the_verdict_follows_the_similarity(similarity, words):
    assert f"are {words}: their similarity is {similarity:.2f}" in example(similarity).words[0]


def test_what_sets_unlike_nodes_apart_is_named():
    words = example(0.1).words
    assert words[1].startswith("Hardly anything agrees: content, 70 % of their vectors, gives 0.50; ")
    assert words[2] == "What sets them apart most: chess (more at node 12)."


def test_many_that_are_nearer_are_worth_a_yet():
    assert (
        "Yet of the 41 other nodes 20 are more like Ann than node 12 is."
        in example(rank=Rank(20, 41)).words[0]
    )
    assert "only 1 is more like Ann" in example(rank=Rank(1, 41)).words[0]


def test_a_model_of_structure_alone_has_no_content():
    club = made.karate()
    found = explain(club, random_generator(club), 0, 33)
    assert [part.name for part in found.parts] == ["place", "structure"]
    assert found.shared_features == []


def test_columns_that_part_two_nodes_by_equal_values_leave_no_broken_sentence():
    club = made.karate()
    found = explain(club, random_generator(club), 0, 33)
    one = np.ones(1)
    equal = Columns(np.array(["age"]), np.ones((2, 1)), 0.1 * one, 0.5 * one, np.zeros(1, bool))
    apart = replace(found, similarity=0.3, columns=equal)
    assert not any("apart most: ." in sentence for sentence in apart.words)
