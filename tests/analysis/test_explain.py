"""Explanations: shares that add up, facts that oracles confirm, sentences that say what the numbers say."""

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from spinegraph import SPINE, Graph, made, read_graph
from spinegraph.analysis.explain import Columns, Explanation, Part, Rank, Relation, Surroundings, explain
from spinegraph.analysis.search import Search
from spinegraph.config import Config, PaperConfig
from spinegraph.embeddings import Embeddings
from spinegraph.errors import MissingFeaturesError, ParameterError, UnknownNodeError
from spinegraph.parts.generator import Generator
from spinegraph.parts.paper import Inputs, PaperGenerator

QUIET = lambda stage, done, total: None  # noqa: E731


def fitted(graph, **settings_given):
    return Generator.fit(graph, Config(k=5, **{"dim": 12, **settings_given}).check(), QUIET)


def random_paper_generator(graph, seed=0, dim=6, inputs=None, **settings_given):
    """The paper's generator with random W_M: what is explained does not depend on training."""
    inputs = inputs or Inputs.of(graph, PaperConfig(k=5, **settings_given))
    rows = inputs.num_smoothed + len(inputs.columns) * inputs.columns_direct
    weights = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return PaperGenerator(inputs, weights)


@pytest.fixture(scope="module")
def office():
    """A made organisation and a model of it."""
    return SPINE(dim=32, seed=0).fit(made.planted(seed=1).graph)


weights_of_parts = st.none() | st.fixed_dictionaries(
    {}, optional={name: st.sampled_from([0.5, 2.0]) for name in ("place", "role")}
)


@given(strategies.graphs(min_nodes=3), weights_of_parts, st.sampled_from([3, 12, 60]), st.booleans())
def test_the_shares_of_parts_add_up_to_the_score_of_search(graph, weights, dim, is_known):
    generator = fitted(graph, dim=dim)
    a, b = graph.names[[0, -1]].tolist()
    known = generator.known(graph) if is_known else np.full(len(graph), -1)
    found = explain(graph, generator, a, b, weights=weights, known=known)
    assert sum(part.share for part in found.parts) == found.similarity
    vectors = generator.embed_some(graph, np.array([0, len(graph) - 1]), known)
    search = Search(Embeddings(np.arange(2), vectors, generator.parts), weights=weights)
    assert found.similarity == pytest.approx(search.cosines(0)[1], abs=2e-6)
    if found.parts[0].name != "nothing":
        assert [part.name for part in found.parts] == list(generator.parts)
        total = sum(part.weight for part in found.parts)
        for part in found.parts:
            assert abs(part.cosine) <= 1
            if all(sum(each.is_zero) != 1 for each in found.parts):
                assert part.share == pytest.approx(part.weight * part.cosine / total, abs=1e-12)
    assert 0 <= found.overlap <= 1 + 1e-6
    assert all(isinstance(sentence, str) and sentence for sentence in found.words)
    json.dumps(found.to_json(), allow_nan=False)


@given(strategies.graphs(min_nodes=3, features=True), st.sampled_from([2, 8]), st.sampled_from([0.5, 2.0]))
def test_the_shares_of_columns_add_up_to_those_of_their_part(graph, dim, weight):
    generator = fitted(graph, dim=dim, parts=("content", "role"))
    # The mean and the random features belong to no column.
    content = replace(generator.content, offset=np.zeros_like(generator.content.offset), random_features=None)
    generator = replace(generator, content=content, role=replace(generator.role, random_features=None))
    a, b = graph.names[[0, -1]].tolist()
    found = explain(graph, generator, a, b, weights={"role": weight})
    vectors = generator.embed_some(graph, np.array([0, len(graph) - 1]))
    for part in found.parts:
        chosen = found.columns.is_structural == (part.name == "role")
        if part.name == "nothing" or any(part.is_zero):
            continue
        if np.linalg.norm(vectors[:, generator.parts[part.name]], axis=1).min() < 1e-5:
            continue  # all columns are equal but for rounding
        assert found.columns.alike[chosen].sum() == pytest.approx(part.share, abs=1e-4)
        if not any(any(each.is_zero) for each in found.parts):
            expected = part.weight / sum(each.weight for each in found.parts)
            assert found.columns.weight[chosen].sum() == pytest.approx(expected, abs=1e-4)


def test_a_model_of_the_paper_is_explained_without_columns():
    club = made.karate().with_features(np.random.default_rng(0).random((34, 3), np.float32))
    found = explain(club, random_paper_generator(club), 0, 33)
    assert [part.name for part in found.parts] == ["content"]
    assert (len(found.columns.names), found.same_network) == (0, None)
    assert "their similarity is" in found.words[0]


@given(strategies.graphs(min_nodes=3))
def test_an_explanation_is_the_same_from_both_sides(graph):
    generator = fitted(graph)
    a, b = graph.names[[0, -1]].tolist()
    one, other = explain(graph, generator, a, b), explain(graph, generator, b, a)
    assert one.similarity == pytest.approx(other.similarity, abs=1e-6)
    assert [part.name for part in one.parts] == [part.name for part in other.parts]
    np.testing.assert_allclose(
        [part.share for part in one.parts], [part.share for part in other.parts], atol=1e-6
    )
    assert (one.a, one.b) == (other.b, other.a)
    assert one.relation == other.relation


@given(strategies.graphs(min_nodes=2, features=False))
def test_what_lies_around_is_what_networkx_counts(graph):
    generator = fitted(graph)
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
        np.testing.assert_allclose(one.columns.alike, other.columns.alike, atol=1e-5)


def test_place_is_where_nodes_live_and_zero_in_another_network(office):
    graph = office.graph_
    name = graph.names[0]
    neighbor = graph.neighbors(name)[0]
    found = explain(graph, office.generator_, name, neighbor)
    cosines = {part.name: part.cosine for part in found.parts}
    assert found.same_network
    assert cosines["place"] > 0.5
    two = Graph.union([graph, graph], keys=[0, 1])
    found = explain(two, office.generator_, (0, name), (1, name))
    place = found.parts[1]
    assert found.similarity == pytest.approx(1, abs=1e-5)
    assert (place.name, place.weight, place.share, place.is_zero) == ("place", 0, 0, (True, True))
    assert (found.same_network, found.overlap, found.relation.links_apart) == (False, 0, None)
    assert any("the model was fitted on another network" in each for each in found.words)


def test_a_node_far_from_all_that_is_known_has_no_place(office):
    graph = office.graph_
    features = graph.feature_rows(np.array([3, 4]))
    overlay = graph.overlay(["new", "newer"], [("new", "newer")], features=features)
    found = explain(overlay, office.generator_, graph.names[0], "new")
    assert found.parts[1].is_zero == (False, True)
    assert "Place is zero at new: hardly any node nearby was in the training network." in found.words


def test_weights_decide_what_counts(office):
    graph = office.graph_
    a, b = graph.names[[0, 9]].tolist()
    found = explain(graph, office.generator_, a, b, weights={"content": 0, "place": 0})
    assert found.similarity == found.parts[2].share == found.parts[2].cosine
    assert {column.is_structural for column in found.columns.shared(9)} == {True}
    with pytest.raises(ParameterError, match="weights must map some of"):
        explain(graph, office.generator_, a, b, weights={"colour": 1})


def test_columns_that_make_nodes_alike_are_in_both_and_in_order(office):
    graph = office.graph_
    name = graph.names[5]
    found = explain(graph, office.generator_, name, graph.neighbors(name)[0])
    shared = found.columns.shared(5, structural=False)
    assert all(min(column.values) > 0 for column in shared)
    assert [column.alike for column in shared] == sorted((c.alike for c in shared), reverse=True)
    assert {column.name for column in shared} <= set(graph.feature_names)
    apart = found.columns.apart(5)
    assert [column.apart for column in apart] == sorted((c.apart for c in apart), reverse=True)


def test_ranks_count_who_is_nearer(office):
    graph, vectors = office.graph_, office.embeddings_
    search = Search(vectors)
    a, b = graph.names[[7, 300]].tolist()
    found = explain(graph, office.generator_, a, b, embeddings=vectors)
    order = [match.name for match in search.similar(a, len(graph))]
    assert found.rank == Rank(order.index(b), len(graph) - 1)
    assert explain(graph, office.generator_, a, b, embeddings=search).rank == found.rank
    nearest = search.similar(a, 1)[0].name
    assert explain(graph, office.generator_, a, nearest, embeddings=search).rank.nearer == 0


def test_zero_vectors_have_an_explanation():
    graph = Graph.from_edges([(0, 1), (2, 3)], features=np.array([[0.0], [0.0], [0.0], [1.0]]))
    generator = random_paper_generator(graph, feature_scaling="none", activation="identity")
    both = explain(graph, generator, 0, 1)
    assert (both.similarity, both.parts) == (1, (Part("nothing", 1, 1, 1, (True, True)),))
    assert "both vectors are zero" in both.words[0]
    one = explain(graph, generator, 0, 3)
    assert (one.similarity, one.parts) == (0, (Part("nothing", 0, 1, 0, (True, False)),))
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
        or (Part("content", 1.5, 1, 0.5), Part("place", 0.93, 1, 0.31), Part("role", -0.03, 1, -0.01)),
        "overlap": 0.25,
        "columns": columns,
        "profiles": np.stack([row, other]),
        "profile_difference": step,
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
        "Of the 0.80, 0.50 is content (what they and the nodes around them are about) and 0.31 place (where "
        "in the network they live); role (the shape of the links around them) takes 0.01 away."
    )
    assert words[2] == "What makes them most alike: pricing."
    assert words[3] == (
        "They are 2 links apart, with 1 neighbour in common (Bob), and share 25 % of their surroundings."
    )
    assert words[4].startswith(
        "They play different roles: Ann has 3 neighbours, node 12 has 1; within 3 links are 20"
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
    assert words[1] == "Hardly anything agrees: content gives 0.50, place gives 0.31 and role gives -0.01."
    assert words[2] == "What sets them apart most: chess (more at node 12)."


def test_many_that_are_nearer_are_worth_a_yet():
    assert (
        "Yet of the 41 other nodes 20 are more like Ann than node 12 is."
        in example(rank=Rank(20, 41)).words[0]
    )
    assert "only 1 is more like Ann" in example(rank=Rank(1, 41)).words[0]


def test_a_model_of_structure_alone_has_no_content():
    club = made.karate()
    found = explain(club, fitted(club), 0, 33)
    assert [part.name for part in found.parts] == ["place", "role"]
    assert found.columns.shared(9, structural=False) == []
    alone = explain(club, fitted(club, parts=("place",)), 0, 33)
    assert len(alone.columns.names) == 0
    assert alone.words


def test_columns_that_part_two_nodes_by_equal_values_leave_no_broken_sentence():
    club = made.karate()
    found = explain(club, fitted(club), 0, 33)
    one = np.ones(1)
    equal = Columns(np.array(["age"]), np.ones((2, 1)), 0.1 * one, 0.5 * one, np.zeros(1, bool))
    apart = replace(found, similarity=0.3, columns=equal)
    assert not any("apart most: ." in sentence for sentence in apart.words)


def test_the_planted_organisation_is_explained_in_words_of_a_free_text_column(tmp_path):
    planted = made.planted(communities=4, size=40, seed=1)
    plain, rng = planted.graph, np.random.default_rng(0)
    common = np.array(["we", "the", "of", "our", "with", "mostly", "works", "on"])
    rows = []
    for position, name in enumerate(plain.names.tolist()):
        words = np.array(plain.feature_names)[plain.feature_rows(np.array([position])).indices]
        text = " ".join(rng.permutation([*words, *rng.choice(common, 6)])) if len(words) else None
        rows.append({"node": name, "about": text, "age": int(rng.integers(20, 60))})
    edges = plain.to_dataframe("arrow")
    graph = Graph.from_dataframe(edges, nodes=rows)
    assert graph.encoder.kinds_ == {"about": "text", "age": "number"}
    model = SPINE(dim=64).fit(graph)
    model.save(tmp_path / "model")
    model = SPINE.load(tmp_path / "model")
    vocabulary, said = set(plain.feature_names), 0
    search = Search(model.embeddings_, by="content")
    for name in plain.names[:5].tolist():
        match = search.similar(name, 1)[0].name
        found = explain(graph, model.generator_, name, match)
        text = " ".join(found.words)
        assert " # " not in text
        sentence = next(
            (each for each in found.words if "Words in about that they, or nodes around them, share" in each),
            "",
        )
        words = sentence.partition(": ")[2].rstrip(".").replace(" and ", ", ").split(", ")
        said += bool(set(words) & vocabulary)
        assert not set(words) & set(common) or set(words) & vocabulary
    assert said == 5


def test_what_a_table_gives_to_nearly_all_makes_nobody_alike():
    rng = np.random.default_rng(0)
    table = {
        "node": [f"n{i}" for i in range(200)],
        "team": rng.choice([f"t{i}" for i in range(5)], 200).tolist(),
        "age": rng.normal(40, 9, 200).tolist(),
        "here": np.where(rng.random(200) < 0.95, "yes", "no").tolist(),
    }
    edges = np.array(table["node"])[rng.integers(200, size=(700, 2))]
    graph = read_graph(pd.DataFrame(edges[edges[:, 0] != edges[:, 1]]), pd.DataFrame(table))
    model = SPINE(dim=64).fit(graph)
    for a, b in rng.permutation(graph.names.tolist())[:20].reshape(-1, 2):
        found = model.explain(a, b)
        columns = found.columns
        added = columns.alike[~columns.is_structural].sum()
        assert added == pytest.approx(found.parts[0].share, abs=5e-3)
        for column in columns.shared(5, structural=False):  # nobody is alike in a team that both lack
            if column.name.startswith("team"):
                own = {table["team"][table["node"].index(name)] for name in (a, b)}
                near = {*graph.neighbors(a).tolist(), *graph.neighbors(b).tolist()}
                near_teams = {table["team"][table["node"].index(name)] for name in near}
                assert column.name.removeprefix("team = ") in own | near_teams
        common = columns.alike[columns.names == "here = yes"]
        if (columns.values[:, columns.names == "here = yes"] > 0).all():
            assert common < 0.02


def test_of_a_column_that_both_lack_neither_has_more():
    model = SPINE(dim=8).fit(made.karate())
    found = model.explain(0, 33)
    columns = Columns(
        np.array(["x", "y", "z"], dtype=object),
        np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 2.0]]),
        *(np.zeros(3), np.array([3.0, 2.0, 1.0]), np.zeros(3, bool)),
    )
    (table,) = [rows for heading, _, rows in replace(found, columns=columns).tables() if "apart" in heading]
    assert [(row[0], row[-1]) for row in table] == [("x", ""), ("y", "0"), ("z", "33")]


def test_all_other_values_of_a_category_make_nobody_alike():
    cities = [f"city {i % 50}" for i in range(100)]
    edges = {"source": range(100), "target": [(i + 1) % 100 for i in range(100)]}
    from spinegraph.graph.encoder import FeatureEncoder

    encoder = FeatureEncoder({"city": "category"}, max_levels=4)
    graph = read_graph(edges, {"id": range(100), "city": cities, "age": range(100)}, encoder=encoder)
    model = SPINE(dim=8, seed=0).fit(graph)
    assert "city = other" in graph.feature_names
    columns = explain(graph, model.generator_, 40, 41, embeddings=model.embeddings_).columns
    assert "city = other" in columns.names.tolist()
    assert "city = other" not in [column.name for column in columns.shared(50)]
