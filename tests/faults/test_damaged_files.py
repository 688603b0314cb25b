"""Files cut short or with flipped bits: what was written comes back, or an error; never another vector."""

import json

import numpy as np
import pytest
from paper.originals import write_npz

from injected import cuts, damage, flips
from spinegraph import SPINE, Embeddings, made, read_graph

MODEL_FILES = ["config.json", *(f"{name}.safetensors" for name in ("graph", "model", "place", "vectors"))]
# CSV and word2vec text have no room for a digest that other programs would not trip over.
SIGNED, UNSIGNED = [".parquet", ".npz"], [".csv", ".txt"]
FEW, MANY = 60, 3000


def contents_of(content, count):
    return [*cuts(content), *flips(content, count)]


@pytest.fixture(scope="module")
def model():
    graph = made.barbell(6, bridge=3)
    features = np.random.default_rng(0).integers(0, 2, (len(graph), 5)).astype(np.float32)
    return SPINE(dim=6, k=8, threads=1).fit(graph.with_features(features))


def seen_of(model):
    """Everything of a model that decides a vector, and the vectors."""
    graph = model.graph_
    return (
        model.get_params(),
        model.embeddings_.vectors.tobytes(),
        model.transform(graph).vectors.tobytes(),
        graph.names.tolist(),
        model.generator_.weights,
    )


def check_model(model, folder, name, count, injected):
    model.save(folder / "model")
    path = folder / "model" / name
    found = damage(
        path,
        contents_of(path.read_bytes(), count),
        lambda: seen_of(SPINE.load(folder / "model")),
        seen_of(model),
    )
    assert found["wrong"] == 0
    assert found["error"] > count // 2
    injected("damaged model files", found.total())


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_damaged_model_is_the_same_model_or_an_error(model, tmp_path, name, injected):
    check_model(model, tmp_path, name, FEW, injected)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_model_damaged_in_many_places_is_the_same_model_or_an_error(model, tmp_path, name, injected):
    check_model(model, tmp_path, name, MANY, injected)


def check_vectors(model, folder, ending, count, injected):
    path = folder / f"vectors{ending}"
    kept = Embeddings(
        np.array([f"node {i}".replace(" ", "_") for i in range(len(model.graph_))], object),
        model.embeddings_.vectors,
    )
    kept.save(path)

    def read():
        found = Embeddings.load(path)
        return found.names.tolist(), found.vectors.tobytes()

    found = damage(
        path, contents_of(path.read_bytes(), count), read, (kept.names.tolist(), kept.vectors.tobytes())
    )
    assert ending in UNSIGNED or found["wrong"] == 0
    assert found["error"] > count // 4
    injected("damaged vectors", found.total())


@pytest.mark.parametrize("ending", [*SIGNED, *UNSIGNED])
def test_damaged_vectors_are_the_same_vectors_or_an_error(model, tmp_path, ending, injected):
    check_vectors(model, tmp_path, ending, 400, injected)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [*SIGNED, *UNSIGNED])
def test_vectors_damaged_in_many_places_are_the_same_or_an_error(model, tmp_path, ending, injected):
    check_vectors(model, tmp_path, ending, 20_000, injected)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_damaged_data_set_is_the_same_network_or_an_error(tmp_path, count, injected):
    path = tmp_path / "network.npz"
    edges = np.random.default_rng(0).integers(0, 40, (90, 2))
    write_npz(path, {"edges": edges[edges[:, 0] != edges[:, 1]], "num_nodes": np.int64(40)})

    def read():
        graph = read_graph(path)
        return graph.indptr.tolist(), graph.indices.tolist()

    found = damage(path, contents_of(path.read_bytes(), count), read, read())
    assert found["wrong"] == 0
    injected("damaged data sets", found.total())


def test_a_model_of_an_edited_setting_says_so(model, tmp_path, injected):
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    about = json.loads(path.read_text())
    about["settings"]["continuation"] = 0.4
    found = damage(
        path, [json.dumps(about).encode()], lambda: seen_of(SPINE.load(tmp_path / "model")), seen_of(model)
    )
    assert found == {"error": 1}
    injected("damaged model files", 1)
