"""SPINE as its users meet it: scikit-learn's manners, every kind of graph, unseen nodes, warnings."""

import copy
import inspect
import pickle
import re
import warnings
from dataclasses import fields, replace
from functools import cache

import networkx as nx
import numpy as np
import pytest
import sklearn
from hypothesis import given
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import strategies
from spinegraph import SPINE, Config, Embeddings, Graph, errors, estimator
from spinegraph.config import PaperConfig
from spinegraph.errors import (
    MissingFeaturesError,
    ParameterError,
    SpineWarning,
    UnfamiliarDataWarning,
    UnknownNodeError,
)
from spinegraph.paper import PaperSPINE

FEW = {"dim": 8, "threads": 1}


def karate():
    return Graph.from_edges(np.array(nx.karate_club_graph().edges))


def words(n, f=12, seed=0):
    return csr_array((np.random.default_rng(seed).random((n, f)) < 0.3).astype(np.float32))


PLAIN = karate()
SPARSE = PLAIN.with_features(words(34))
DENSE = PLAIN.with_features(np.random.default_rng(1).normal(size=(34, 5)))


@pytest.fixture(scope="module")
def model():
    return SPINE(**FEW).fit(SPARSE)


def fitted(graph, **changes):
    return SPINE(**{**FEW, **changes}).fit(graph)


# Manners


def test_parameters_come_back_and_change():
    model = SPINE(dim=16, seed=3)
    assert model.get_params() == {**Config().to_json(), "dim": 16, "seed": 3}
    assert model.get_params(deep=False) == model.get_params()
    assert model.set_params(dim=5, k=7) is model
    assert (model.dim, model.k, model.seed) == (5, 7, 3)


def test_a_clone_has_the_parameters_and_nothing_learned(model):
    twin = sklearn.clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "generator_")
    paper = sklearn.clone(SPINE.paper(dim=3))
    assert type(paper) is PaperSPINE
    assert paper.get_params() == SPINE.paper(dim=3).get_params()


def test_the_papers_values_are_a_call_away():
    paper = SPINE.paper(dim=16)
    assert (paper.structural_rate, paper.rpr_method, paper.auxiliary_init, paper.dim) == (
        0.5,
        "walks",
        "random",
        16,
    )
    fitted = SPINE.paper(steps=5, dim=8, threads=1, batch_size=32).fit(SPARSE)
    assert fitted.embeddings_.parts == {"content": slice(0, 8)}
    assert [moment.step for moment in fitted.history_] == [5]
    with pytest.raises(MissingFeaturesError, match="the paper's method needs features"):
        SPINE.paper().fit(PLAIN)


@pytest.mark.parametrize("make", [SPINE.paper, lambda **kinds: SPINE().set_params(**kinds)])
def test_an_unknown_setting_is_refused_with_a_hint(make):
    with pytest.raises(ParameterError, match="no setting 'dims'; did you mean 'dim'"):
        make(dims=3)


@pytest.mark.parametrize(("model", "config"), [(SPINE, Config), (PaperSPINE, PaperConfig)])
def test_the_constructor_is_that_of_config_and_each_setting_is_documented(model, config):
    parameters = inspect.signature(model).parameters
    assert {name: one.default for name, one in parameters.items()} == config().to_json()
    assert {name: one.annotation for name, one in parameters.items()} == {
        field.name: field.type for field in fields(config)
    }
    documented = model.__doc__.partition("Parameters\n")[2].partition("Attributes\n")[0]
    titles = re.findall(r"^    (\w.*) : ", documented, re.MULTILINE)
    assert [name for title in titles for name in title.split(", ")] == list(parameters)
    with pytest.raises(TypeError, match="dims"):
        model(dims=3)


def test_parameters_are_checked_at_fit_and_all_at_once():
    model = SPINE(dim=0, near=2, rpr_method="nowhere", parts=("hub",), weights={"role": -1})
    with pytest.raises(ParameterError) as caught:
        model.fit(PLAIN)
    for name in ("dim", "near", "rpr_method", "parts", "weights"):
        assert name in str(caught.value)
    assert not hasattr(model, "generator_")


def test_fit_leaves_parameters_as_they_were_given():
    model = SPINE(**{**FEW, "dim": np.int64(8)}).fit(PLAIN)
    assert type(model.dim) is np.int64
    assert type(model.config_.dim) is int


@pytest.mark.parametrize("use", [lambda m: m.transform(PLAIN), lambda m: m.save("nowhere")])
def test_what_is_not_fitted_says_so_as_scikit_learn_does(use):
    with pytest.raises(SklearnNotFittedError, match=r"not fitted yet; call fit\(graph\)") as caught:
        use(SPINE())
    assert isinstance(caught.value, errors.NotFittedError)
    assert isinstance(caught.value, errors.SpineError)


def test_scikit_learn_can_tell_whether_a_model_is_fitted(model):
    check_is_fitted(model)
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(SPINE())


def test_a_model_shows_what_was_changed_and_what_it_saw(model):
    assert repr(SPINE(dim=3)) == "SPINE(dim=3)"
    assert repr(model).endswith("fitted on 34 nodes")


def test_a_model_is_copied_whole(model):
    expected = model.transform(SPARSE).vectors
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        np.testing.assert_array_equal(twin.transform(SPARSE).vectors, expected)


def test_fit_returns_the_model_and_fit_transform_the_vectors():
    model = SPINE(**FEW)
    assert model.fit(PLAIN, None) is model
    np.testing.assert_array_equal(SPINE(**FEW).fit_transform(PLAIN).vectors, model.embeddings_.vectors)


def test_a_pipeline_classifies_by_the_vectors():
    labels = np.arange(34) % 2
    line = make_pipeline(SPINE(**FEW), LogisticRegression()).fit(SPARSE, labels)
    vectors = SPINE(**FEW).fit(SPARSE).embeddings_.vectors
    alone = LogisticRegression().fit(vectors, labels)
    np.testing.assert_array_equal(line.predict(SPARSE), alone.predict(vectors))


@pytest.mark.parametrize("stage", ["content", "place", "role", "embedding"])
def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(stage):
    model = SPINE(**FEW).fit(PLAIN)
    before = dict(vars(model))

    def interrupt(now, done, total):
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(SPARSE, progress=interrupt)
    assert vars(model) == before


def test_progress_names_the_parts():
    calls = []
    fitted = SPINE(**FEW).fit(SPARSE, progress=lambda *call: calls.append(call))
    stages = list(dict.fromkeys(stage for stage, _, _ in calls))
    assert stages == ["content", "learning from hidden links", "place", "role", "embedding"]
    assert fitted.generator_.learned.after >= fitted.generator_.learned.before


def test_progress_and_history_tell_of_the_papers_training():
    calls = []
    model = SPINE.paper(dim=8, threads=1, steps=60, batch_size=64)
    model.fit(SPARSE, progress=lambda *call: calls.append(call))
    stages = list(dict.fromkeys(stage for stage, _, _ in calls))
    assert stages[:3] == ["walks", "rooted PageRank", "structural twins"]
    assert stages[-2:] == ["training", "embedding"]
    assert [done for stage, done, _ in calls if stage == "training"] == [0, 25, 50, 60]
    assert [moment.step for moment in model.history_] == [25, 50, 60]
    assert all(np.isfinite([moment.loss, moment.held_out_loss]).all() for moment in model.history_)


@pytest.mark.parametrize(
    "data",
    [None, 5, "edges.csv", [], [1, 2], np.eye(3), [PLAIN, None]],
)
def test_what_is_no_graph_is_refused(data):
    with pytest.raises(ParameterError, match=r"a list of Graphs; got .*; (read_graph\(file\)|pass over)"):
        SPINE(**FEW).fit(data)


def test_an_overlay_is_fitted_once_it_is_a_graph():
    overlay = PLAIN.overlay(["new"], [("new", 0)])
    with pytest.raises(ParameterError, match=r"got Overlay; .*materialize"):
        SPINE(**FEW).fit(overlay)
    assert "new" in fitted(overlay.materialize()).embeddings_


# Every kind of graph


PART_CHOICES = [("content", "place", "role"), ("content",), ("place",), ("role",), ("content", "role")]


@pytest.mark.parametrize("graph", [PLAIN, SPARSE, DENSE], ids=["plain", "sparse", "dense"])
@pytest.mark.parametrize("parts", PART_CHOICES, ids=",".join)
def test_any_parts_give_a_vector_to_every_node(graph, parts):
    if graph is PLAIN and "content" in parts and len(parts) < 3:
        with pytest.raises(
            MissingFeaturesError, match="parts includes content, but the graph has no features"
        ):
            fitted(graph, parts=parts)
        return
    model = fitted(graph, parts=parts)
    emb = model.embeddings_
    assert isinstance(emb, Embeddings)
    assert list(emb.parts) == [part for part in parts if part != "content" or graph is not PLAIN]
    assert emb.names.tolist() == list(range(34))
    assert emb.vectors.shape == (34, 8)
    assert emb.vectors.dtype == np.float32
    assert all(emb.part(part).vectors.std() > 0 for part in emb.parts)
    assert model.graph_ is graph
    np.testing.assert_allclose(model.transform(graph).vectors, emb.vectors, atol=1e-5)


def test_weights_multiply_parts_and_may_not_all_be_zero():
    plain, weighted = (fitted(SPARSE, weights=weights).embeddings_ for weights in (None, {"role": 3}))
    np.testing.assert_allclose(weighted.part("role").vectors, 3 * plain.part("role").vectors, rtol=1e-5)
    np.testing.assert_array_equal(weighted.part("content").vectors, plain.part("content").vectors)
    assert not fitted(SPARSE, weights={"place": 0}).embeddings_.part("place").vectors.any()
    with pytest.raises(
        ParameterError, match="weights are 0 for all parts, place and role; leave one above 0"
    ):
        fitted(PLAIN, weights={"place": 0, "role": 0})


@pytest.mark.parametrize(
    "changes",
    [
        {"rpr_method": "walks"},
        {"near": 0.8, "far": 0.5},
        {"tolerance": 1e-6},
        {"learning": False},
        {"feature_scaling": "column"},
        {"k": 1},
        {"k": 200},
        {"training_nodes": 10},
        {"seed": 2**63 - 1},
    ],
    ids=str,
)
def test_every_setting_works(changes):
    model = fitted(SPARSE, **changes)
    assert np.isfinite(model.embeddings_.vectors).all()
    assert model.embeddings_.vectors.std() > 0
    np.testing.assert_allclose(model.transform(SPARSE).vectors, model.embeddings_.vectors, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"rpr_method": "push"},
        {"candidates": "profile"},
        {"candidates": "all", "similarity": "cosine"},
        {"similarity": "euclidean"},
        {"activation": "identity"},
        {"activation": "elu", "auxiliary_init": "node2vec"},
        {"activation": "tanh"},
        {"dropout": 0.5, "patience": 1},
        {"structural_rate": 1.0},
        {"structural_rate": 0.0, "negatives": 0.0},
        {"lambda1": 1.0, "lambda2": 0.0},
        {"lambda1": 0.0, "lambda2": 1.0},
        {"steps": 0},
        {"batch_size": 1},
        {"training_nodes": 10},
    ],
    ids=str,
)
def test_every_setting_of_the_paper_works(changes):
    model = SPINE.paper(**{"dim": 8, "threads": 1, "steps": 20, "batch_size": 64, **changes}).fit(SPARSE)
    assert np.isfinite(model.embeddings_.vectors).all()
    assert model.embeddings_.vectors.std() > 0
    np.testing.assert_allclose(model.transform(SPARSE).vectors, model.embeddings_.vectors, atol=1e-4)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 13, 100])
@pytest.mark.parametrize("graph", [PLAIN, SPARSE], ids=["plain", "sparse"])
def test_vectors_have_the_length_asked_for(graph, dim):
    assert fitted(graph, dim=dim).embeddings_.vectors.shape == (34, dim)


ODD_GRAPHS = {
    "one node": Graph.from_edges([], num_nodes=1),
    "two nodes": Graph.from_edges([(0, 1)]),
    "two strangers": Graph.from_edges([], num_nodes=2),
    "no edges": Graph.from_edges([], num_nodes=7),
    "isolated": Graph.from_edges([(0, 1), (1, 2), (2, 0)], num_nodes=6),
    "pairs": Graph.from_edges([(0, 1), (2, 3), (4, 5)]),
    "star": Graph.from_edges([(0, i) for i in range(1, 9)]),
    "ring": Graph.from_edges([(i, (i + 1) % 9) for i in range(9)]),
    "everyone": Graph.from_edges([(i, j) for i in range(8) for j in range(i)]),
    "weights far apart": Graph.from_edges([(0, 1), (1, 2), (2, 3)], weights=[1e-20, 1, 1e20]),
}
ODD_FEATURES = {
    "none": None,
    "zeros": lambda n: np.zeros((n, 3)),
    "sparse zeros": lambda n: csr_array((n, 3), dtype=np.float32),
    "some zero rows": lambda n: np.eye(n, 3),
    "one column": lambda n: np.arange(n, dtype=float)[:, None],
    "constant": lambda n: np.ones((n, 4)),
    "huge": lambda n: np.eye(n, 3) * 1e38,
    "no columns": lambda n: np.zeros((n, 0)),
}


@pytest.mark.filterwarnings("ignore::spinegraph.errors.UnfamiliarDataWarning")
@pytest.mark.parametrize("features", ODD_FEATURES)
@pytest.mark.parametrize("graph", ODD_GRAPHS)
def test_odd_graphs_have_finite_vectors(graph, features):
    data = ODD_GRAPHS[graph]
    if features != "none":
        data = data.with_features(ODD_FEATURES[features](len(data)))
    for dim in (1, 30):
        model = fitted(data, dim=dim)
        assert model.embeddings_.vectors.shape == (len(data), dim)
        found = model.transform(data)
        np.testing.assert_allclose(found.vectors, model.embeddings_.vectors, atol=1e-4)
        last = data.names[-1]
        np.testing.assert_allclose(model.transform(data, nodes=[last])[last], found[last], atol=1e-4)


def test_nodes_alike_in_everything_have_the_same_role():
    vectors = fitted(ODD_GRAPHS["ring"]).embeddings_.part("role").vectors
    np.testing.assert_allclose(vectors, np.broadcast_to(vectors[0], vectors.shape), atol=1e-6)


def test_a_structure_never_seen_is_not_drowned_by_its_difference():
    ring = fitted(ODD_GRAPHS["ring"])
    with pytest.warns(UnfamiliarDataWarning):
        vectors = ring.transform(ODD_GRAPHS["star"]).vectors
    assert np.abs(vectors).max() < 100


# Several graphs


def test_several_graphs_are_learned_together_and_parted_again():
    parts = [SPARSE, SPARSE.subgraph(range(20)), SPARSE.relabel([f"n{i}" for i in range(34)])]
    model = fitted(parts, tolerance=1e-7, parts=("content", "role"))
    assert isinstance(model.embeddings_, list)
    assert [len(emb) for emb in model.embeddings_] == [34, 20, 34]
    assert model.embeddings_[2].names[0] == "n0"
    assert all(one is other for one, other in zip(model.graph_, parts, strict=True))
    np.testing.assert_allclose(model.embeddings_[0].vectors, model.embeddings_[2].vectors, atol=1e-6)
    for part, emb in zip(parts, model.embeddings_, strict=True):
        # Within the tolerance of push, which may stop elsewhere in a larger graph.
        np.testing.assert_allclose(model.transform(part).vectors, emb.vectors, atol=1e-5)


def test_several_graphs_have_no_place_and_fit_says_so():
    with pytest.warns(SpineWarning, match=r"share no place.*; pass parts=\('role',\) if that is intended"):
        model = fitted([PLAIN, PLAIN])
    assert list(model.embeddings_[0].parts) == ["role"]
    with pytest.raises(ParameterError, match="parts includes place, but several networks share no place"):
        fitted([PLAIN, PLAIN], parts=("place",))


def test_a_list_of_one_is_a_list():
    model = fitted([PLAIN], parts=("role",))
    assert isinstance(model.embeddings_, list)
    assert isinstance(model.graph_, list)


def test_a_tuple_or_generator_of_graphs_will_do():
    expected = fitted([PLAIN, PLAIN], parts=("role",)).embeddings_[0].vectors
    for data in ((PLAIN, PLAIN), (graph for graph in (PLAIN, PLAIN))):
        np.testing.assert_array_equal(fitted(data, parts=("role",)).embeddings_[0].vectors, expected)


def test_graphs_of_different_features_are_refused():
    with pytest.raises(MissingFeaturesError, match="same feature columns"):
        fitted([SPARSE, DENSE])
    with pytest.raises(MissingFeaturesError, match="same feature columns"):
        fitted([SPARSE, PLAIN])


# Seeds and threads


@pytest.mark.parametrize("graph", [PLAIN, SPARSE, DENSE], ids=["plain", "sparse", "dense"])
@pytest.mark.parametrize("changes", [{}, {"rpr_method": "walks", "dim": 64}], ids=str)
def test_vectors_depend_on_the_seed_and_not_on_threads(graph, changes):
    one = fitted(graph, **changes).embeddings_.vectors
    for threads in (1, 2, None):
        again = fitted(graph, threads=threads, **changes).embeddings_.vectors
        assert again.tobytes() == one.tobytes()
    assert not np.array_equal(one, fitted(graph, seed=1, **changes).embeddings_.vectors)


def test_transform_does_not_depend_on_threads():
    model = fitted(SPARSE)
    expected = model.transform(SPARSE).vectors
    model.set_params(threads=2).generator_ = model.generator_.with_config(threads=2)
    assert model.transform(SPARSE).vectors.tobytes() == expected.tobytes()


# Unseen nodes and networks


@pytest.mark.parametrize("graph", [PLAIN, SPARSE, DENSE], ids=["plain", "sparse", "dense"])
@pytest.mark.parametrize("changes", [{}, {"rpr_method": "walks"}], ids=str)
def test_some_nodes_get_what_they_get_among_all(graph, changes):
    model = fitted(graph, **changes, tolerance=1e-6)  # whole and some are smoothed in different ways
    whole, chosen = model.transform(graph), [33, 0, 5, 5]
    some = model.transform(graph, nodes=chosen)
    assert some.names.tolist() == chosen
    np.testing.assert_allclose(some.vectors, whole.of(chosen), atol=1e-4)
    one = model.transform(graph, nodes=iter([7]))
    np.testing.assert_allclose(one[7], whole[7], atol=1e-4)


def test_no_nodes_get_no_vectors(model):
    assert model.transform(SPARSE, nodes=[]).vectors.shape == (0, 8)


def test_new_nodes_are_embedded_in_a_graph_and_in_an_overlay(model):
    rows = words(1, seed=5)
    grown = SPARSE.with_nodes(["new"], [("new", 0), ("new", 33)], features=rows)
    overlay = SPARSE.overlay(["new"], [("new", 0), ("new", 33)], features=rows)
    whole = model.transform(grown)
    np.testing.assert_allclose(model.transform(overlay, nodes=["new"])["new"], whole["new"], atol=1e-5)
    np.testing.assert_allclose(model.transform(overlay).vectors, whole.vectors, atol=1e-5)


def test_an_unseen_network_is_embedded(model):
    edges = nx.connected_watts_strogatz_graph(30, 4, 0.3, seed=1).edges
    other = Graph.from_edges([(f"node {u}", f"node {v}") for u, v in edges])
    emb = model.transform(other.with_features(words(30, seed=2)))
    assert emb.vectors.shape == (30, 8)
    assert emb.names.tolist() == other.names.tolist()
    assert emb.same_network is False
    assert not emb.part("place").vectors.any()
    assert repr(emb).endswith("place zero: another network)")


def test_names_that_are_the_same_by_accident_give_no_place(model):
    edges = nx.connected_watts_strogatz_graph(34, 4, 0.9, seed=1).edges
    other = Graph.from_edges(np.array(edges)).with_features(words(34))
    assert model.transform(other).same_network is False
    assert model.transform(other, same_network=True).part("place").vectors.any()
    assert not model.transform(SPARSE, same_network=False).part("place").vectors.any()
    assert model.transform(SPARSE).same_network is True


@given(strategies.graphs_and_orders(features=True, feature_kinds="d"))
def test_renaming_and_reordering_nodes_permutes_their_vectors(pair):
    graph, order = pair
    model = fitted(graph, tolerance=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfamiliarDataWarning)
        before = model.transform(graph).vectors
        after = model.transform(strategies.permuted(graph, order)).vectors
    np.testing.assert_allclose(after, before[order], atol=1e-4)


@given(strategies.graphs_and_orders(features=False, max_nodes=8))
def test_a_model_of_structure_alone_does_not_see_the_order_of_nodes(pair):
    graph, order = pair
    other = strategies.permuted(graph, order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfamiliarDataWarning)
        before, after = (_structural_model().transform(each).vectors for each in (graph, other))
    np.testing.assert_allclose(after, before[order], atol=1e-4)


@cache
def _structural_model():
    return fitted(PLAIN)


def test_unknown_nodes_are_named(model):
    with pytest.raises(UnknownNodeError, match="'nobody'"):
        model.transform(SPARSE, nodes=[0, "nobody"])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [1e20, -1e25, 3e38])
def test_unscaled_features_too_large_to_square_are_refused(value, sparse):
    few = words(34).toarray()
    many = few.copy()
    many[3, 3] = value
    small, large = (PLAIN.with_features(csr_array(part) if sparse else part) for part in (few, many))
    model = fitted(small, feature_scaling="none")
    for use in (model.transform, lambda graph: model.transform(graph, nodes=[3]), model.fit):
        with pytest.raises(ParameterError, match="at most 1e\\+15 with feature_scaling='none'; got"):
            use(large)
    assert np.isfinite(fitted(large).transform(small).vectors).all()


@pytest.mark.parametrize("nodes", ["nobody", b"x", 5])
def test_one_name_is_no_list_of_names(model, nodes):
    with pytest.raises(ParameterError, match=r"nodes must be a list of names, such as \["):
        model.transform(SPARSE, nodes=nodes)


@pytest.mark.parametrize("fitted_on", [PLAIN, SPARSE], ids=["structure", "features"])
@pytest.mark.parametrize("data", [None, [PLAIN, PLAIN], (SPARSE,), np.eye(3), "edges.csv"])
def test_what_is_no_graph_is_not_embedded(fitted_on, data):
    way_out = "once per graph" if isinstance(data, list | tuple) else "read_graph"
    with pytest.raises(ParameterError, match=f"takes a Graph or an Overlay; got .*{way_out}"):
        fitted(fitted_on).transform(data)


def test_other_features_are_refused(model):
    with pytest.raises(
        MissingFeaturesError, match=r"12 features per node, but this graph has 0; .* features="
    ):
        model.transform(PLAIN)
    with pytest.raises(MissingFeaturesError, match="fitted with 12 features per node, but this graph has 5"):
        model.transform(DENSE)


def test_columns_in_another_order_are_refused():
    columns = [f"word {i}" for i in range(12)]
    model = fitted(PLAIN.with_features(words(34), columns))
    model.transform(PLAIN.with_features(words(34)))  # without names there is nothing to compare
    with pytest.raises(MissingFeaturesError, match="'word 11' instead of 'word 0'"):
        model.transform(PLAIN.with_features(words(34), columns[::-1]))


def test_features_that_the_model_does_not_know_are_ignored():
    model = fitted(PLAIN)
    np.testing.assert_array_equal(model.transform(SPARSE).vectors, model.transform(PLAIN).vectors)


# Unfamiliar data


def odd_warnings(model, graph, nodes=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.transform(graph, nodes)
    return [str(each.message) for each in caught if each.category is UnfamiliarDataWarning]


def test_what_was_seen_in_training_is_no_surprise(model):
    assert odd_warnings(model, SPARSE) == []
    assert odd_warnings(model, SPARSE, nodes=[0, 1]) == []


def test_degrees_never_seen_are_counted(model):
    hub = Graph.from_edges([(0, i) for i in range(1, 80)]).with_features(words(80))
    (message,) = odd_warnings(model, hub)
    assert "1 of 80 nodes have a degree outside the 1 to 17 seen in training, up to 79" in message
    assert message.endswith("refit with such data included.")
    lonely = Graph.from_edges([(0, 1)], num_nodes=4).with_features(words(4))
    assert "2 of 4 nodes have a degree outside the 1 to 17" in odd_warnings(model, lonely)[0]


def test_empty_features_are_counted(model):
    blank = words(34).toarray()
    blank[:17] = 0
    (message,) = odd_warnings(model, PLAIN.with_features(csr_array(blank)))
    assert "of 34 nodes have empty features, " in message
    half = fitted(PLAIN.with_features(csr_array(blank)))
    assert odd_warnings(half, PLAIN.with_features(csr_array(blank)), nodes=[0]) == []


def test_columns_that_were_empty_in_training_are_counted():
    seen, unseen = np.zeros((34, 4)), np.zeros((34, 4))
    seen[:, :2], unseen[:, 1:] = 1, 1
    model = fitted(PLAIN.with_features(seen))
    (message,) = odd_warnings(model, PLAIN.with_features(unseen))
    assert "67% of feature values are in columns that were empty in training" in message


def test_weights_that_come_or_go_are_no_secret(tmp_path):
    edges = np.array(nx.karate_club_graph().edges)
    weighted = Graph.from_edges(edges, weights=1 + np.arange(len(edges)) % 3)
    alike = Graph.from_edges(edges, weights=np.full(len(edges), 2.0))
    with_weights, without = fitted(weighted), fitted(PLAIN)
    lost, gained = odd_warnings(with_weights, PLAIN)[0], odd_warnings(without, weighted, [0])[0]
    assert "edges had weights in training, but these have none" in lost
    assert lost.endswith("if any exist, name their column with weight=....")
    assert "edges had no weights in training, but these do" in gained
    assert gained.endswith("pass weighted=False to ignore them.")
    for model, graph in (
        (with_weights, weighted),
        (without, PLAIN),
        (without, alike),
        (fitted(alike), PLAIN),
    ):
        assert odd_warnings(model, graph) == []
    with_weights.save(tmp_path / "model")
    again = SPINE.load(tmp_path / "model")
    assert again.familiarity_ == with_weights.familiarity_
    assert odd_warnings(again, PLAIN) == odd_warnings(with_weights, PLAIN)


def test_a_warning_points_at_the_callers_line(model):
    hub = Graph.from_edges([(0, i) for i in range(1, 80)]).with_features(words(80))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.transform(hub)
    assert caught[0].filename == __file__


def test_transform_of_a_whole_graph_runs_on_the_device_that_is_set(monkeypatch):
    devices = []
    engine_for = estimator.engine_for

    def on_cpu(config):
        devices.append(config.device)
        return engine_for(replace(config, device="cpu"))

    model = fitted(PLAIN).set_params(device="cuda")
    monkeypatch.setattr(estimator, "engine_for", on_cpu)
    model.transform(PLAIN)
    assert devices == ["cuda"]


def test_fit_of_two_tables_says_how_they_are_read_together():
    edges, people = {"a": ["x", "y"], "b": ["y", "z"]}, {"who": ["x", "y", "z"], "age": [1, 2, 3]}
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ParameterError, match=r"fit takes one graph; read_graph\(edges, table\) adds a table"):
        SPINE().fit(pandas.DataFrame(edges), pandas.DataFrame(people))
