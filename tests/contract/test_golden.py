"""Folders that earlier versions wrote open with the present one and give the same vectors."""

import shutil
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest

import spinegraph as sg
from running_service import Running

FOLDER = Path(__file__).parents[1] / "golden" / "0.1.0"
TOLERANCE = 1e-4  # another processor may round differently
pytestmark = pytest.mark.filterwarnings("ignore::spinegraph.errors.SpineWarning")


def assert_as_stored(key, names, vectors):
    with np.load(FOLDER / "vectors.npz") as stored:
        assert list(names) == stored[f"{key}_names"].tolist()
        np.testing.assert_allclose(vectors, stored[key], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", ["model_features", "model_graph_alone", "model_table"])
def test_a_model_of_an_earlier_version_gives_its_vectors(name):
    model = sg.SPINE.load(FOLDER / name)
    assert_as_stored(f"{name}.embeddings", model.embeddings_.names.tolist(), model.embeddings_.vectors)
    if model.table_encoder_ is None:
        later = sg.open_store(FOLDER / "graph_store", verify=True)
    else:
        tables = FOLDER / "later_edges.csv", FOLDER / "later_people.csv"
        later = sg.read_graph(*tables, encoder=model.table_encoder_)
    found = model.transform(later)
    assert_as_stored(f"{name}.transform", found.names.tolist(), found.vectors)


@pytest.mark.parametrize(
    ("store", "model"),
    [
        ("service_store", "model_table"),
        ("service_store_killed", "model_graph_alone"),
        ("service_store_compacted", "model_features"),
    ],
)
def test_a_store_of_an_earlier_version_is_served(store, model, tmp_path):
    shutil.copytree(FOLDER / store, tmp_path / "store")
    with Running(FOLDER / model, tmp_path / "store") as running:
        address = f"{running.url}/v1/export"
        answer = httpx.get(address, params={"format": "arrow"}, trust_env=False, timeout=30)
        table = pa.ipc.open_stream(answer.raise_for_status().content).read_all()
    assert_as_stored(f"{store}.served", table["name"].to_pylist(), table["vector"].to_pylist())
