"""The paper's generator and estimator: what is read, what comes out, for which nodes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from spinegraph import SPINE, Graph, made
from spinegraph.config import PaperConfig
from spinegraph.errors import MissingFeaturesError, ModelFormatError, ParameterError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.overlay import Overlay
from spinegraph.paper import PaperSPINE
from spinegraph.parts.paper import Inputs, PaperGenerator

SETTINGS = {"dim": 8, "steps": 30, "batch_size": 32, "local_walks": 2, "threads": 1}
COLUMNS = ("log_degree", "log_profile_3")
rng = np.random.default_rng(0)
DENSE = made.random_graph(60, 2, seed=1).with_features(rng.normal(size=(60, 5)).astype(np.float32))
SPARSE = DENSE.with_features(csr_array((rng.random((60, 12)) < 0.2).astype(np.float32)))


def fitted(graph, **changes):
    return SPINE.paper(**{**SETTINGS, **changes}).fit(graph)


def former(graph, kind, activation="identity"):
    """Return a generator as 0.1.0 made them: with structural columns beside features, or alone."""
    config = PaperConfig(dim=6, k=10, continuation=0.7, rpr_method="push", activation=activation, threads=1)
    encoder = None if kind == "alone" else FeatureEncoder.for_matrix(graph.features)
    mean, scale = np.array([1.2, -3.0], np.float32), np.array([0.5, 0.7], np.float32)
    smoothed, direct, power = (True, False, 0.0) if encoder is None else (False, True, 0.5)
    inputs = Inputs(config, encoder, COLUMNS, mean, scale, smoothed, direct, power)
    rows = 2 + (0 if encoder is None else encoder.num_features)
    return PaperGenerator(inputs, np.random.default_rng(3).normal(size=(rows, 6)).astype(np.float32))


GENERATORS = {
    "walks, relu, sparse": lambda: (fitted(SPARSE).generator_, SPARSE),
    "push, elu, dense": lambda: (fitted(DENSE, rpr_method="push", activation="elu").generator_, DENSE),
    "columns beside features": lambda: (former(SPARSE, "beside"), SPARSE),
    "columns beside dense features": lambda: (former(DENSE, "beside", "tanh"), DENSE),
    "columns alone": lambda: (former(DENSE, "alone"), DENSE),
}


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_row_has_the_same_bits_whichever_others_are_asked_for(kind):
    generator, graph = GENERATORS[kind]()
    everyone = generator.embed_some(graph, np.arange(60))
    np.testing.assert_allclose(everyone, generator.embed(graph), atol=2e-6)
    for size in (0, 1, 2, 3, 17):
        some = np.random.default_rng(size).permutation(60)[:size]
        assert generator.embed_some(graph, some).tobytes() == everyone[some].tobytes()
        assert generator.embed_some(Overlay.of(graph), some).tobytes() == everyone[some].tobytes()
    assert generator.with_config(threads=2).embed_some(graph, some).tobytes() == everyone[some].tobytes()


def test_vectors_are_those_of_equation_4():
    generator = fitted(DENSE, activation="tanh").generator_
    smoothed = generator.profile(DENSE).smooth(generator.encoder.transform(DENSE.features))
    expected = np.tanh(smoothed.astype(np.float64) @ generator.weights)
    np.testing.assert_allclose(generator.embed(DENSE), expected, atol=1e-5)


def test_models_of_earlier_versions_divide_content_and_add_columns():
    generator = former(DENSE, "beside")
    inputs, weights = generator.inputs, generator.weights.astype(np.float64)
    operator, features = inputs.smoothed(DENSE, generator.profile(DENSE))
    content = operator @ features @ weights[:5]
    content /= np.sqrt(np.linalg.norm(content, axis=1, keepdims=True))
    expected = content + inputs.structural(DENSE) @ weights[5:]
    np.testing.assert_allclose(generator.embed(DENSE), expected, atol=1e-5)


def test_a_generator_has_one_part_and_no_place():
    content, alone = former(DENSE, "beside"), former(DENSE, "alone")
    assert (content.parts, alone.parts) == ({"content": slice(0, 6)}, {"role": slice(0, 6)})
    assert content.known(DENSE) is None
    assert alone.encoder is None
    alone.require_features(made.karate())
    with pytest.raises(MissingFeaturesError, match="fitted with 5 features per node, but this graph has 0"):
        content.require_features(made.karate())
    with pytest.raises(MissingFeaturesError, match="but this graph has 12"):
        content.embed(SPARSE)


def test_a_matrix_of_another_shape_or_with_gaps_is_refused():
    generator = former(DENSE, "beside")
    with pytest.raises(ModelFormatError, match=r"one row per input, 7; got shape \(6, 6\)"):
        replace(generator, weights=generator.weights[1:])
    with pytest.raises(ModelFormatError, match="must be finite"):
        replace(generator, weights=generator.weights * np.float32(np.nan))


def test_changed_settings_are_checked():
    generator = former(DENSE, "alone")
    assert generator.with_config(threads=3).config.threads == 3
    with pytest.raises(ParameterError, match="threads must be"):
        generator.with_config(threads=0)


def test_a_fit_without_features_says_what_does_without():
    with pytest.raises(MissingFeaturesError, match=r"needs features, but the graph has none.*SPINE\(\)"):
        SPINE.paper().fit(made.karate())


def test_the_paper_has_its_own_settings():
    model = SPINE.paper(dim=16, window=7)
    assert isinstance(model, PaperSPINE)
    assert repr(model) == "PaperSPINE(dim=16, window=7)"
    assert PaperSPINE(**model.get_params()).get_params() == model.get_params()
    assert PaperSPINE().get_params() == PaperConfig().to_json()
    for former_setting in ("structural_share", "kept", "device", "checkpoint"):
        with pytest.raises(ParameterError, match=f"no setting '{former_setting}'"):
            SPINE.paper(**{former_setting: 1})


def test_a_fit_has_the_attributes_of_spine_and_a_history():
    model = fitted(SPARSE)
    assert model.embeddings_.parts == {"content": slice(0, 8)}
    assert [record.step for record in model.history_] == [25, 30]
    assert model.config_ == PaperConfig(**SETTINGS)
    assert model.graph_ is SPARSE
    assert len(model.familiarity_) == 60
    assert model.fingerprint_
    found = model.transform(SPARSE)
    assert found.same_network is None
    np.testing.assert_array_equal(found.vectors, model.embeddings_.vectors)
    some = model.transform(SPARSE, nodes=[5, 3]).vectors
    np.testing.assert_allclose(some, model.embeddings_.vectors[[5, 3]], atol=1e-6)
    assert fitted(SPARSE, seed=1).embeddings_.vectors.tobytes() != model.embeddings_.vectors.tobytes()
    assert fitted(SPARSE, threads=2).embeddings_.vectors.tobytes() == model.embeddings_.vectors.tobytes()


def test_several_networks_train_one_generator():
    other = SPARSE.subgraph(SPARSE.names[:30])
    model = fitted([SPARSE, other])
    assert [len(each) for each in model.embeddings_] == [60, 30]
    assert SPINE.paper(**SETTINGS).fit([SPARSE], vectors=False).embeddings_ is None


def test_a_sample_trains_and_everybody_is_embedded():
    model = fitted(SPARSE, training_nodes=20, local_walk_length=5)
    assert model.embeddings_.vectors.shape == (60, 8)
    np.testing.assert_array_equal(model.transform(SPARSE).vectors, model.embeddings_.vectors)


def test_a_saved_model_gives_the_same_vectors(tmp_path):
    model = fitted(SPARSE)
    model.save(tmp_path / "model")
    again = SPINE.load(tmp_path / "model")
    assert isinstance(again, PaperSPINE)
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.transform(SPARSE).vectors, model.embeddings_.vectors)


def test_an_interrupted_fit_leaves_the_model_as_it_was():
    model = fitted(SPARSE)
    before = model.generator_

    def stop(stage, done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(DENSE, progress=stop)
    assert model.generator_ is before


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_a_graph_without_edges_is_fitted(num_nodes):
    graph = Graph.from_edges([], num_nodes=num_nodes, features=np.eye(num_nodes, 4, dtype=np.float32))
    assert np.isfinite(fitted(graph).embeddings_.vectors).all()
