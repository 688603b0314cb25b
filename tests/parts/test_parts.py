"""The three parts: what each holds, for seen and unseen nodes and networks."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.protocols import mirrored
from scipy.sparse import csr_array

import strategies
from spinegraph import SPINE, FeatureEncoder, Graph, made
from spinegraph.config import Config
from spinegraph.errors import MissingFeaturesError, ParameterError, SpineWarning, UnfamiliarDataWarning
from spinegraph.parts.content import Content, column_scale, learn
from spinegraph.parts.generator import Generator, divide
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


def test_learning_is_never_worse_on_hidden_links_than_its_start(planted):
    config = Config(dim=64)
    content = Content.fit(planted.graph, 40, config)
    _, gained = learn(content, planted.graph, config)
    assert gained.after >= gained.before
    shuffled = planted.graph.with_features(
        planted.graph.feature_rows(np.random.default_rng(0).permutation(len(planted.graph)))
    )
    random = Content.fit(shuffled, 40, config)
    _, none = learn(random, shuffled, config)
    assert none.after >= none.before


def test_links_are_hidden_once_and_the_rest_is_kept():
    graph = made.random_graph(300, 6, features=5, seed=1)
    rest, left, right = hidden_links(graph, 0.3, np.random.default_rng(0))
    assert rest.num_edges + len(left) == graph.num_edges
    assert rest.num_features == 5
    ends = {frozenset(pair) for pair in zip(left.tolist(), right.tolist(), strict=True)}
    assert len(ends) == len(left)
    kept = set(zip(np.repeat(np.arange(300), rest.degrees).tolist(), rest.indices.tolist(), strict=True))
    assert not any(tuple(pair) in kept for pair in ends)


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


def test_several_networks_have_no_place_and_fit_says_so():
    graphs = [made.planted(seed=seed).graph for seed in (0, 1)]
    with pytest.warns(SpineWarning, match="no place part"):
        model = SPINE(dim=32).fit(graphs)
    assert list(model.embeddings_[0].parts) == ["content", "role"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SPINE(dim=32, parts=("content", "role")).fit(graphs)
    with pytest.raises(ParameterError, match="no place in common"):
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
        ({"parts": ("colour",)}, "parts must be some of 'content', 'place', 'role'; got"),
        ({"parts": ()}, "parts must be some of"),
        ({"weights": {"colour": 1}}, "weights must give some of"),
        ({"weights": {"content": 0, "place": 0, "role": 0}}, "weights must give some of"),
        ({"weights": {"role": -1}}, "weights must give some of"),
        ({"weights": {"role": float("nan")}}, "weights must give some of"),
        ({"weights": "role"}, "weights must give some of"),
    ],
)
def test_wrong_parts_and_weights_are_refused(wrong, message):
    with pytest.raises(ParameterError, match=message):
        SPINE(**wrong).fit(made.karate())


def test_a_part_that_cannot_be_is_an_error_where_it_was_asked_for():
    with pytest.raises(MissingFeaturesError, match="parts asks for content"):
        SPINE(parts=("content", "role")).fit(made.karate())
    with pytest.raises(ParameterError, match="all parts that there are"):
        SPINE(weights={"place": 0, "role": 0}).fit(made.karate())


@pytest.mark.parametrize("threads", [2, 8])
@pytest.mark.parametrize("features", [None, 300])
def test_threads_do_not_change_a_bit(threads, features):
    graph = made.random_graph(1500, 6, features=features, seed=1)
    one, many = (SPINE(dim=48, threads=count).fit(graph).embeddings_.vectors for count in (1, threads))
    np.testing.assert_array_equal(one, many)


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
    with pytest.raises(ParameterError, match="saved without place"):
        loaded.transform(planted.graph, same_network=True)


@pytest.mark.parametrize("data", [True, False])
def test_a_saved_model_gives_the_same_vectors(model, planted, tmp_path, data):
    model.save(tmp_path / "m", data=data)
    loaded = SPINE.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(planted.graph).vectors, model.embeddings_.vectors)
    assert loaded.generator_.parts == model.generator_.parts
    assert loaded.generator_.learned == model.generator_.learned


def test_where_links_are_few_roles_count_less(planted):
    graph, rng = planted.graph, np.random.default_rng(0)
    thinned = hidden_links(graph, 0.8, rng)[0]
    whole, thin = (SPINE(dim=32).fit(each).generator_.weights["role"] for each in (graph, thinned))
    mean_degree = 2 * thinned.num_edges / len(thinned)
    assert mean_degree < 2
    assert thin == pytest.approx(whole * (mean_degree / 3) ** 2)


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
