"""The three parts: what each holds, for seen and unseen nodes and networks."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.protocols import mirrored
from scipy.sparse import csr_array, issparse
from scipy.sparse import random_array as random_sparse
from threadpoolctl import threadpool_limits

import reference
import strategies
from spinegraph import SPINE, FeatureEncoder, Graph, made
from spinegraph.config import Config
from spinegraph.errors import MissingFeaturesError, ParameterError, SpineWarning, UnfamiliarDataWarning
from spinegraph.parts import content as content_module
from spinegraph.parts import generator as generator_module
from spinegraph.parts.content import (
    Content,
    RandomFeatures,
    Round,
    column_scale,
    contrastive_gradient,
    feature_homophily,
    learn,
    link_covariances,
    times_chance,
)
from spinegraph.parts.generator import Generator, _balance, _core, divide
from spinegraph.parts.place import KNOWN_MASS, hidden_links, share_nearer
from spinegraph.parts.role import names_of


def quiet(stage, done, total):
    pass


@pytest.fixture(scope="module")
def planted():
    return made.planted(seed=0)


@pytest.fixture(scope="module")
def model(planted):
    return SPINE(dim=64).fit(planted.graph)


def test_parts_are_named_slices_of_the_vectors(model):
    parts = model.embeddings_.parts
    assert list(parts) == ["content", "place", "role"]
    assert [part.start for part in parts.values()] == [0, parts["content"].stop, parts["place"].stop]
    assert parts["role"].stop == model.embeddings_.dim == 64
    whole = np.hstack([model.embeddings_.part(name).vectors for name in parts])
    np.testing.assert_array_equal(whole, model.embeddings_.vectors)


@given(st.integers(1, 300), st.integers(0, 600), st.sampled_from(["cpr", "cp", "cr", "pr", "c", "p", "r"]))
def test_the_width_is_divided_without_a_rest(dim, num_features, wanted):
    names = tuple(name for name in ("content", "place", "role") if name[0] in wanted)
    graph = Graph.from_edges([(0, 1)], features=csr_array((2, max(num_features, 1)), dtype=np.float32))
    widths = divide(dim, names, graph)
    assert sum(widths.values()) == dim
    assert all(width > 0 for width in widths.values())
    assert list(widths) == list(names[: len(widths)])


@given(strategies.graphs(max_nodes=9), st.integers(1, 40))
def test_any_network_gets_finite_vectors_of_the_asked_length(graph, dim):
    model = SPINE(dim=dim).fit(graph)
    assert model.embeddings_.vectors.shape == (len(graph), dim)
    some = model.transform(graph, nodes=graph.names[:1].tolist()).vectors
    assert np.isfinite(some).all()


@given(strategies.graphs(min_nodes=3, max_nodes=9, features=True), st.randoms())
def test_content_and_role_do_not_depend_on_the_order_of_nodes(graph, random):
    order = np.array(random.sample(range(len(graph)), len(graph)))
    moved = graph.subgraph(graph.names[order].tolist())
    generator = Generator.fit(graph, Config(dim=40, parts=("content", "role")), quiet)
    np.testing.assert_allclose(generator.embed(moved), generator.embed(graph)[order], atol=1e-3)


def test_some_nodes_get_the_vectors_of_all_within_the_tolerance(model, planted):
    graph, positions = planted.graph, np.array([5, 17, 300])
    some = model.generator_.embed_some(graph, positions, np.arange(len(graph)))
    whole = model.embeddings_.vectors[positions]
    for part in model.embeddings_.parts.values():
        apart = np.linalg.norm(some[:, part] - whole[:, part], axis=1)
        assert (apart <= 0.03 * np.linalg.norm(whole[:, part], axis=1)).all()
    alone = model.generator_.embed_some(graph, positions[1:2], np.arange(len(graph)))
    np.testing.assert_array_equal(alone[0], some[1])


def test_own_columns_are_kept_where_there_is_room():
    rng = np.random.default_rng(0)
    own = rng.standard_normal((200, 6)).astype(np.float32)
    graph = made.random_graph(200, 5, seed=1).with_features(own)
    content = SPINE(dim=30, parts=("content",)).fit(graph).embeddings_.vectors
    weights, *_ = np.linalg.lstsq(np.c_[content, np.ones(200)], own, rcond=None)
    np.testing.assert_allclose(np.c_[content, np.ones(200)] @ weights, own, atol=1e-2)


def test_a_category_of_fifty_values_counts_as_much_as_a_number():
    rng = np.random.default_rng(0)
    table = {
        "age": rng.normal(size=400),
        "city": np.array([f"city {value}" for value in rng.integers(50, size=400)], object),
    }
    encoder = FeatureEncoder().fit(table)
    graph = made.random_graph(400, 5, seed=1).with_features(encoder.transform(table))._encoded_by(encoder)
    scale = column_scale(graph, graph.features)
    scaled = graph.features.toarray() * scale
    variance = np.bincount(encoder.column_of_feature, scaled.var(axis=0))
    np.testing.assert_allclose(variance[variance > 1e-6], 1, rtol=1e-3)


def with_shuffled_features(graph):
    """Return the graph with features that say nothing about its links."""
    return graph.with_features(graph.feature_rows(np.random.default_rng(0).permutation(len(graph))))


def test_learning_is_never_worse_on_links_that_it_never_saw(planted):
    config = Config(dim=64)
    content = Content.fit(planted.graph, 40, config)
    _, gained = learn(content, planted.graph, config)
    assert gained.after > gained.before > 2
    random = with_shuffled_features(planted.graph)
    content = Content.fit(random, 40, config)
    found, none = learn(replace(content, homophily=1.0), random, config)
    assert 0.95 < none.before <= none.after < 1.1  # links that were learned from would be guessed better
    found, none = learn(content, random, config)
    unchanged = np.linalg.norm(found.mixing - content.mixing) / np.linalg.norm(content.mixing)
    assert unchanged < 0.05


@pytest.mark.parametrize("sparse", [True, False])
@given(graph=strategies.graphs(min_nodes=3, max_nodes=9, features=True), seed=st.integers(0, 99))
def test_homophily_is_counted_node_by_node(graph, seed, sparse):
    if not graph.num_edges:
        return
    features = np.asarray(
        graph.features.toarray() if issparse(graph.features) else graph.features, np.float64
    )
    features = features + np.random.default_rng(seed).random(features.shape) / 100  # no ties but for rounding
    scale = np.linspace(0.5, 2, features.shape[1]).astype(np.float32)
    rng = np.random.default_rng([seed, 43])
    nodes = np.sort(rng.permutation(np.flatnonzero(graph.degrees)))
    share = reference.resemblance(graph, features * scale, nodes, nodes[rng.permutation(len(nodes))])
    found = feature_homophily(graph, csr_array(features) if sparse else features, scale, seed)
    assert found == pytest.approx(np.clip((2 * share - 1) / 0.3, 0, 1))


def test_where_neighbors_are_not_alike_own_features_count_most(planted):
    graph = with_shuffled_features(planted.graph)
    config = Config(dim=80, parts=("content",))
    homophily = [Generator.fit(each, config, quiet).content.homophily for each in (planted.graph, graph)]
    assert homophily[0] == 1
    assert homophily[1] < 0.3
    own = graph.features.toarray() - graph.features.toarray().mean(axis=0)
    vectors = SPINE(dim=80, parts=("content",)).fit(graph).embeddings_.vectors
    assert np.corrcoef((own @ own.T).ravel(), (vectors @ vectors.T).ravel())[0, 1] > 0.6


@pytest.mark.parametrize("value", ["ACME", True, 1.0, 7])
def test_a_constant_column_of_a_table_changes_nothing(value):
    for n in (399, 490, 1001):  # sums in float32 rounded differently for each
        rng = np.random.default_rng(n)
        table = {
            "age": rng.normal(size=n),
            "city": np.array([f"c{i}" for i in rng.integers(9, size=n)], object),
        }
        found = []
        for more in ({}, {"same": np.array([value] * n, object if value == "ACME" else None)}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                encoder = FeatureEncoder().fit(table | more)
                features = encoder.transform(table | more)
            graph = made.random_graph(n, 3, seed=1).with_features(features)._encoded_by(encoder)
            found.append(Content.fit(graph, 40, Config(learning=False)))
        used = np.abs(found[1].directions).sum(axis=1) > 0
        assert used.sum() == len(found[0].directions)


@pytest.mark.parametrize("value", [0.0, 3.5])
@pytest.mark.parametrize(("nodes", "dim"), [(1, 20), (30, 20), (30, 1500)])
def test_many_columns_that_are_all_constant_are_no_obstacle(nodes, dim, value, tmp_path):
    graph = made.random_graph(nodes, 2, seed=1).with_features(np.full((nodes, 300), value))
    model = SPINE(dim=dim).fit(graph)
    model.save(tmp_path / "model")
    found = SPINE.load(tmp_path / "model").transform(graph).vectors
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, model.embeddings_.vectors)


def test_a_column_that_hardly_varies_is_no_picture_of_degrees():
    n, graph = 600, made.random_graph(600, 2, seed=1, heavy_tailed=True)
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=n), "city": np.array([f"c{i}" for i in rng.integers(9, size=n)], object)}
    table["same"] = np.array(["X"] * (n - 1) + ["Y"], object)
    encoder = FeatureEncoder().fit(table)
    graph = graph.with_features(encoder.transform(table))._encoded_by(encoder)
    content = SPINE(dim=60, parts=("content",), learning=False).fit(graph).embeddings_.vectors
    degrees = np.log1p(graph.degrees) - np.log1p(graph.degrees).mean()
    explained = np.square(degrees @ (content - content.mean(axis=0))).sum() / (degrees @ degrees)
    assert explained < 0.05 * np.square(content).sum()


@given(st.integers(2, 9), st.integers(1, 12), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_covariances_over_links_are_those_of_the_listed_ends(nodes, links, first, seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(nodes, size=(2, links))
    values = rng.standard_normal((nodes, 4)).astype(np.float32)
    apart, spread = link_covariances(Round(left, right, values), first)
    kept = values[:, first:].astype(np.float64)
    difference, ends = kept[left] - kept[right], np.concatenate([kept[left], kept[right]])
    np.testing.assert_allclose(apart, difference.T @ difference / (2 * links), atol=1e-9)
    np.testing.assert_allclose(spread, np.cov(ends.T, ddof=0).reshape(spread.shape), atol=1e-9)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_slope_of_the_contrast_is_that_of_its_definition(pairs, width, seed):
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((2, pairs, width))
    change = 0.3 * rng.standard_normal((width, width))
    nodes = rng.integers(4, size=pairs)
    same = nodes[:, None] == nodes
    expected = reference.slope(lambda: reference.contrast_of_links(change, left, right, same), change)
    found = contrastive_gradient(*(each.astype(np.float32) for each in (change, left, right)), same)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3 * max(1, np.abs(expected).max()))


def test_links_are_hidden_once_and_the_rest_is_kept():
    graph = made.random_graph(300, 6, features=5, seed=1)
    rest, left, right = hidden_links(graph, 0.3, np.random.default_rng(0))
    assert rest.num_edges + len(left) == graph.num_edges
    ends = {frozenset(pair) for pair in zip(left.tolist(), right.tolist(), strict=True)}
    assert len(ends) == len(left)
    kept = set(zip(np.repeat(np.arange(300), rest.degrees).tolist(), rest.indices.tolist(), strict=True))
    assert not any(tuple(pair) in kept for pair in ends)


def test_links_are_guessed_by_chance_where_ends_are_as_near_as_others():
    rng = np.random.default_rng(0)
    left, right = rng.permutation(1200).reshape(2, 600)
    values = rng.standard_normal((1200, 30)).astype(np.float32)
    assert times_chance(values, left, right) == pytest.approx(1, abs=0.02)
    values[right] = values[left]
    assert 100 < times_chance(values, left, right) <= 512
    assert times_chance(values, left[:0], right[:0]) == 1.0
    few = rng.integers(5, size=600)  # ends of the same node are no choice
    assert times_chance(rng.standard_normal((1200, 30)).astype(np.float32), few, right) == pytest.approx(
        1, abs=0.05
    )


def test_a_hundred_thousand_columns_need_no_square_of_them():
    rows = random_sparse((300, 100_000), density=2e-4, format="csr", dtype=np.float32, rng=0)
    graph = made.random_graph(300, 4, seed=0).with_features(rows)
    tracemalloc.start()
    SPINE(dim=32, learning=False).fit(graph)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e9


def test_share_nearer_counts_ties_by_half():
    values = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    one, two, three = (np.array([i]) for i in range(3))
    assert share_nearer(values, one, two, three) == 1.0
    assert share_nearer(values, one, three, two) == 0.0
    assert share_nearer(values, one, two, two) == 0.5


# Place


def test_a_later_node_gets_its_place_from_its_neighbours(planted, model):
    first = planted.graph.names[:3].tolist()
    features = planted.graph.feature_rows(np.array([0]))
    grown = planted.graph.overlay(["new"], [("new", name) for name in first], features)
    found = model.transform(grown, nodes=["new"])
    assert found.same_network is True
    new = found.part("place")["new"]
    near = model.embeddings_.part("place").of(first).mean(axis=0)
    far = model.embeddings_.part("place").vectors
    cosines = far @ new / np.maximum(np.linalg.norm(far, axis=1) * np.linalg.norm(new), 1e-9)
    assert near @ new > 0.5 * np.linalg.norm(near) * np.linalg.norm(new)
    assert cosines[:3].mean() > np.median(cosines)


def test_in_another_network_place_is_zero_and_said(model):
    other = made.planted(seed=1).graph
    found = model.transform(other)
    assert found.same_network is False
    assert not found.part("place").vectors.any()
    assert "another network" in repr(found)


def test_whole_numbers_as_names_are_no_reason_to_be_the_same_network():
    first, other = made.random_graph(400, 6, seed=1), made.random_graph(400, 6, seed=2)
    model = SPINE(dim=24).fit(first)
    assert model.transform(first).same_network is True
    assert model.transform(other).same_network is False
    assert not model.transform(other).part("place").vectors.any()
    told = model.transform(other, same_network=True)
    assert told.same_network is True
    assert told.part("place").vectors.any()
    assert model.transform(first, same_network=False).same_network is False


def test_the_network_is_recognised_after_many_changes():
    graph = made.random_graph(400, 6, seed=1).relabel([f"n{i}" for i in range(400)])
    model = SPINE(dim=24).fit(graph)
    kept = graph.names[np.random.default_rng(0).permutation(400)[:150]].tolist()
    assert model.transform(graph.subgraph(kept)).same_network is True


def test_nodes_far_from_all_that_is_known_have_no_place():
    graph = made.karate()
    model = SPINE(dim=16).fit(graph)
    chain = [(0, "a"), *zip("abcdefgh", "bcdefghi", strict=False)]
    found = model.transform(graph.overlay(list("abcdefghi"), chain)).part("place")
    lengths = [np.linalg.norm(found[name]) for name in "abcdefghi"]
    assert lengths[0] > 0
    assert lengths[-1] == 0
    assert 0 < KNOWN_MASS < 1


def test_a_node_without_links_has_no_place_until_it_is_linked():
    club = made.karate()
    ends = np.stack([np.repeat(np.arange(34), np.diff(club.indptr)), club.indices], axis=1)
    with_isolated = Graph.from_edges(ends[ends[:, 0] < ends[:, 1]], num_nodes=40)
    model, plain = SPINE(dim=16).fit(with_isolated), SPINE(dim=16).fit(club)
    place = model.embeddings_.part("place").vectors
    assert not place[34:].any()
    assert place[:34].any(axis=1).all()
    np.testing.assert_array_equal(model.generator_.place.positions, plain.generator_.place.positions)
    later = with_isolated.overlay([], [(34, 0), (34, 1)])
    linked = model.transform(later, nodes=[34]).part("place")[34]
    new = model.transform(club.overlay(["new"], [("new", 0), ("new", 1)]), nodes=["new"]).part("place")["new"]
    np.testing.assert_allclose(linked, new, atol=1e-6)
    with pytest.raises(ParameterError, match="39 has no place: no links"):
        model.similar(39, by="place")


def test_a_network_without_links_has_no_place():
    model = SPINE(dim=16).fit(Graph.from_edges(np.zeros((0, 2), np.int64), num_nodes=5))
    assert not model.embeddings_.part("place").vectors.any()


def test_several_networks_have_no_place_and_fit_says_so():
    graphs = [made.planted(seed=seed).graph for seed in (0, 1)]
    with pytest.warns(SpineWarning, match="no place part"):
        model = SPINE(dim=32).fit(graphs)
    assert list(model.embeddings_[0].parts) == ["content", "role"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SPINE(dim=32, parts=("content", "role")).fit(graphs)
    with pytest.raises(ParameterError, match="several networks share no place"):
        SPINE(dim=32, parts=("place",)).fit(graphs)


# Role


def test_mirrored_nodes_have_equal_roles():
    union, pairs = mirrored(made.random_graph(80, 5, features=6, seed=1), seed=1)
    order = np.random.default_rng(5).permutation(len(union))
    shuffled = union.with_features(union.feature_rows(order))
    role = SPINE(dim=60).fit(shuffled).embeddings_.part("role").vectors
    np.testing.assert_allclose(role[pairs[:, 0]], role[pairs[:, 1]], atol=1e-5)


@pytest.mark.filterwarnings("ignore:several networks:spinegraph.errors.SpineWarning")
@pytest.mark.parametrize("dim", [2, 8, 60])
def test_nodes_that_are_all_alike_but_for_rounding_have_finite_roles(dim):
    pairs = Graph.from_edges([(f"a{i}", f"b{i}") for i in range(24)])
    for graph in (pairs, [pairs, pairs]):
        found = SPINE(dim=dim).fit(graph).embeddings_
        assert np.isfinite((found[0] if isinstance(found, list) else found).vectors).all()


def test_roles_are_scaled_alike_in_every_network():
    here, there = made.random_graph(300, 5, seed=1), made.random_graph(300, 7, seed=2)
    model = SPINE(dim=40).fit(here)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfamiliarDataWarning)
        role = model.transform(there).part("role").vectors
    alone = SPINE(dim=40).fit(there).embeddings_.part("role").vectors
    assert np.linalg.norm(role.mean(axis=0)) > np.linalg.norm(alone.mean(axis=0)) * 1.05
    assert len(names_of(directed=False)) == 34


# Settings


def test_weights_scale_parts(planted):
    plain = SPINE(dim=32).fit(planted.graph).embeddings_
    heavy = SPINE(dim=32, weights={"role": 2, "place": 0}).fit(planted.graph).embeddings_
    np.testing.assert_allclose(heavy.part("role").vectors, 2 * plain.part("role").vectors, rtol=1e-5)
    np.testing.assert_array_equal(heavy.part("content").vectors, plain.part("content").vectors)
    assert not heavy.part("place").vectors.any()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parts": ("colour",)}, "parts must be one or more of 'content', 'place', 'role'; got"),
        ({"parts": ()}, "parts must be one or more of"),
        ({"weights": {"colour": 1}}, "weights must map some of"),
        ({"weights": {"content": 0, "place": 0, "role": 0}}, "weights must map some of"),
        ({"weights": {"role": -1}}, "weights must map some of"),
        ({"weights": {"role": float("nan")}}, "weights must map some of"),
        ({"weights": "role"}, "weights must map some of"),
    ],
)
def test_wrong_parts_and_weights_are_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        SPINE(**wrong).fit(made.karate())


def test_a_part_that_cannot_be_is_an_error_where_it_was_asked_for():
    with pytest.raises(MissingFeaturesError, match="parts includes content"):
        SPINE(parts=("content", "role")).fit(made.karate())
    with pytest.raises(ParameterError, match="weights are 0 for all parts, "):
        SPINE(weights={"place": 0, "role": 0}).fit(made.karate())


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("features", [None, 300])
def test_threads_do_not_change_a_bit(threads, features):
    graph = made.random_graph(1500, 6, features=features, seed=1)
    one, many = (SPINE(dim=48, threads=count).fit(graph).embeddings_.vectors for count in (1, threads))
    np.testing.assert_array_equal(one, many)


def test_threads_of_blas_do_not_change_a_bit():
    graph = made.random_graph(1500, 6, features=300, seed=1)
    found = []
    for threads in (1, 4):  # a machine of other cores has others
        with threadpool_limits(threads):
            model = SPINE(dim=48).fit(graph)
            found.append((model.embeddings_.vectors, model.transform(graph).vectors))
    np.testing.assert_array_equal(*found)


def test_a_network_of_more_nodes_than_are_fitted_on():
    graph = made.random_graph(3000, 6, features=300, seed=1)
    model = SPINE(dim=48, training_nodes=500).fit(graph)
    assert model.embeddings_.vectors.shape == (3000, 48)
    assert np.isfinite(model.embeddings_.vectors).all()


def test_a_model_saved_without_place_says_so(model, planted, tmp_path):
    model.save(tmp_path / "m", data=False, place=False)
    loaded = SPINE.load(tmp_path / "m")
    found = loaded.transform(planted.graph)
    assert found.same_network is False
    assert not found.part("place").vectors.any()
    np.testing.assert_array_equal(found.part("content").vectors, model.embeddings_.part("content").vectors)
    with pytest.raises(ParameterError, match="needs positions, which this model was saved without"):
        loaded.transform(planted.graph, same_network=True)


def test_stored_vectors_of_a_model_saved_without_place_have_none(model, planted, tmp_path):
    model.save(tmp_path / "m", place=False)
    loaded = SPINE.load(tmp_path / "m")
    assert not loaded.embeddings_.part("place").vectors.any()
    np.testing.assert_array_equal(
        loaded.embeddings_.part("role").vectors, model.embeddings_.part("role").vectors
    )
    assert model.embeddings_.part("place").vectors.any()
    with pytest.raises(ParameterError, match="a model saved without place have no place"):
        loaded.similar(planted.graph.names[0], by="place")


def test_many_nodes_are_embedded_with_the_whole_graph():
    graph = made.random_graph(3000, 6, features=30, seed=1)
    model = SPINE(dim=32).fit(graph, vectors=False)
    some, few = (model.transform(graph, nodes=graph.names[:count]).vectors for count in (200, 20))
    whole = model.transform(graph).vectors
    np.testing.assert_array_equal(some, whole[:200])
    np.testing.assert_allclose(few, whole[:20], atol=0.02)


def test_rows_are_computed_in_blocks_with_the_same_bits(model, planted, monkeypatch):
    graph, nodes = planted.graph, np.arange(0, 120, 5)
    known = model.generator_.known(graph)
    together = model.generator_.embed_some(graph, nodes, known)
    monkeypatch.setattr(generator_module, "_ENTRIES", 1)
    monkeypatch.setattr(content_module, "_VALUES", 1)
    model.generator_.content._cache._of.clear()
    np.testing.assert_array_equal(model.generator_.embed_some(graph, nodes, known), together)


def test_where_neighbours_are_unlike_nothing_is_learned():
    rng, n = np.random.default_rng(3), 600
    edges = rng.integers(0, n, (2000, 2))
    edges = edges[edges[:, 0] % 2 != edges[:, 1] % 2]  # links join the two classes
    features = np.hstack([5 * np.eye(2)[np.arange(n) % 2], rng.random((n, 300)) < 0.02]).astype(np.float32)
    graph = Graph.from_edges(edges, num_nodes=n, features=csr_array(features))
    generator = SPINE(dim=64).fit(graph).generator_
    assert generator.content.homophily == 0
    assert generator.learned is None


def test_a_network_of_small_components_is_sampled_widely():
    starts = np.arange(0, 9000, 3)
    edges = np.concatenate([np.stack([starts + i, starts + j], axis=1) for i, j in ((0, 1), (1, 2), (0, 2))])
    nodes, _ = _core(Graph.from_edges(edges), Config(training_nodes=2000))
    assert 1000 < len(nodes) <= 2000


def test_dense_features_far_from_zero_keep_their_content():
    rng, n = np.random.default_rng(0), 400
    labels = np.arange(n) % 4
    edges = np.array([(i, j) for i, j in rng.integers(0, n, (4000, 2)) if labels[i] == labels[j] and i != j])
    features = (np.eye(4)[labels] + 0.1 * rng.standard_normal((n, 4))).astype(np.float32)
    for offset in (0, 3000):
        graph = Graph.from_edges(edges, num_nodes=n, features=features + np.float32(offset))
        model = SPINE(dim=24, parts=("content",), feature_scaling="none").fit(graph)
        near = [labels[model.similar(node, n=1)[0].name] == labels[node] for node in range(40)]
        assert np.mean(near) > 0.9


def test_random_features_leave_out_what_is_rounding():
    values = np.random.default_rng(0).standard_normal((100, 3)).astype(np.float32)
    values[:, 2] = 1e-7 * values[:, 0]
    found = RandomFeatures.fit(values, 20, seed=0)
    assert not found.matrix[2].any()
    assert found.matrix[:2].all()


@pytest.mark.parametrize("data", [True, False])
def test_a_saved_model_gives_the_same_vectors(model, planted, tmp_path, data):
    model.save(tmp_path / "m", data=data)
    loaded = SPINE.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(planted.graph).vectors, model.embeddings_.vectors)
    assert loaded.generator_.parts == model.generator_.parts
    assert loaded.generator_.learned == model.generator_.learned


def test_where_links_are_few_roles_count_less(planted):
    graph, rng = planted.graph, np.random.default_rng(0)
    thinned = hidden_links(graph, 0.8, rng)[0].with_features(graph.features)
    whole, thin = (SPINE(dim=32).fit(each).generator_.weights["role"] for each in (graph, thinned))
    mean_degree = 2 * thinned.num_edges / len(thinned)
    assert mean_degree < 2
    assert thin == pytest.approx(whole * (mean_degree / 3) ** 2)


def test_where_links_are_few_roles_count_less_without_features_too():
    whole, thin = (_balance(has_content=False, strength=0.7, neighbors=mean) for mean in (3, 1.5))
    odds = [given["role"] / given["place"] for given in (whole, thin)]
    assert odds[1] == pytest.approx(odds[0] / 4)
    assert thin["role"] ** 2 + thin["place"] ** 2 == pytest.approx(1)
    alone = SPINE(dim=8, parts=("role",)).fit(made.random_graph(50, 0.2, seed=0))
    assert alone.generator_.weights == {"role": 1}


def test_of_very_many_nodes_the_best_connected_have_positions(planted, monkeypatch, tmp_path):
    graph = planted.graph.with_features(None)
    everywhere = SPINE(dim=32).fit(graph)
    monkeypatch.setattr("spinegraph.parts.place.MAX_POSITIONS", 300)
    model = SPINE(dim=32).fit(graph)
    place = model.generator_.place
    assert len(place.positions) == len(place.names) == 300
    is_positioned = np.isin(graph.names, place.names)
    assert graph.degrees[is_positioned].min() >= graph.degrees[~is_positioned].max()
    others = model.embeddings_.part("place").vectors[~is_positioned]
    assert (np.abs(others).max(axis=1) > 0).mean() > 0.9
    model.save(tmp_path / "model")
    loaded = SPINE.load(tmp_path / "model").transform(graph)
    np.testing.assert_array_equal(loaded.vectors, model.embeddings_.vectors)
    departments = (nearest_share(each.embeddings_, planted.community) for each in (everywhere, model))
    assert next(departments) - next(departments) < 0.1


def nearest_share(embeddings, labels):
    """Return the share of nodes whose nearest by place has the same label."""
    values = embeddings.part("place").vectors
    unit = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    return (labels[cosines.argmax(axis=1)] == labels).mean()


def test_columns_that_are_smoothed_together_do_not_change_a_bit(model, planted, monkeypatch):
    monkeypatch.setattr("spinegraph.parts.generator._VALUES", 1)
    assert len(model.generator_.chunks(planted.graph, np.arange(len(planted.graph)))) > 4
    np.testing.assert_array_equal(model.transform(planted.graph).vectors, model.embeddings_.vectors)
