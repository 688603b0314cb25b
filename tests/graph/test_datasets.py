import os
from pathlib import Path

import numpy as np
import pytest
from paper.originals import pack, write_npz

from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError
from spinegraph.graph import datasets

DATA = Path(os.environ.get("SPINEGRAPH_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(
    not (DATA / "cora.npz").is_file(), reason="the real networks are not in SPINEGRAPH_DATA"
)


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "width", "split"),
    [
        ("cora", 2708, 5278, 1433, (140, 500, 1000)),
        ("citeseer", 3327, 4552, 3703, (120, 500, 1000)),
        ("pubmed", 19717, 44324, 500, (60, 500, 1000)),
        ("ppi", 56944, 793632, 50, (44906, 6514, 5524)),
    ],
)
def test_the_papers_networks_load_from_the_local_folder(name, nodes, edges, width, split):
    dataset = datasets.load(name, DATA)
    assert (len(dataset.graph), dataset.graph.num_edges) == (nodes, edges)
    assert dataset.graph.features.shape == (nodes, width)
    assert (len(dataset.train), len(dataset.val), len(dataset.test)) == split


def test_the_folder_given_comes_before_the_variable(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    for folder, edges in ((tmp_path, [[0, 1]]), (tmp_path / "other", [[0, 1], [1, 2]])):
        write_npz(folder / "cora.npz", pack(np.array(edges), 3))
    monkeypatch.setenv("SPINEGRAPH_DATA", str(tmp_path))
    assert datasets.load("cora").graph.num_edges == 1
    assert datasets.load("cora", tmp_path / "other").graph.num_edges == 2


def test_an_unknown_name_and_an_empty_folder_are_clear_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPINEGRAPH_DATA", raising=False)
    with pytest.raises(ParameterError, match=r"must be one of .*cora.*; got 'kora'"):
        datasets.load("kora")
    for folder, shown in ((tmp_path, tmp_path / "cora.npz"), (None, "cora.npz")):
        message = rf"^{shown}: no such file; set SPINEGRAPH_DATA .*: python -m paper.originals cora$"
        with pytest.raises(MissingFileError, match=message):
            datasets.load("cora", folder)


class Payload:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"num_nodes": np.array(2)}, "the key 'edges' is missing"),
        ({"edges": np.zeros((0, 2), int), "num_nodes": np.zeros(2)}, "num_nodes must be an integer >= 1"),
        ({"edges": np.array([[0, 5]]), "num_nodes": np.array(2)}, "tiny.npz: "),
        (
            {**pack(np.array([[0, 1]]), 2), "labels": np.zeros(3, int)},
            r"labels of shape \(3,\) for 2 nodes",
        ),
        ({**pack(np.array([[0, 1]]), 2), "labels": np.zeros(2)}, "labels must be integers"),
        (
            {**pack(np.array([[0, 1]]), 2), "train_idx": np.array([2])},
            r"train_idx must lie in 0\.\.1; got 2\.\.2",
        ),
        ({**pack(np.array([[0, 1]]), 2), "val_idx": np.zeros((1, 1), int)}, "val_idx must be integers"),
        ({**pack(np.array([[0, 1]]), 2), "feat_data": np.ones(1)}, "found feat_data$"),
        (
            {**pack(np.array([[0, 1]]), 2, np.eye(2)), "feat_shape": np.array([2.0, 2.0])},
            "a sparse matrix needs 1-d arrays of numbers and a shape of two",
        ),
        ({**pack(np.array([[0, 1]]), 2, np.eye(2)), "feat_indices": np.array([0, 9])}, "do not fit together"),
        (
            {**pack(np.array([[0, 1]]), 2, np.eye(2)), "feat_data": np.array([1, np.nan])},
            "nan; features must be finite",
        ),
        ({**pack(np.array([[0, 1]]), 2, np.eye(3))}, "tiny.npz: "),
    ],
)
def test_a_broken_dataset_file_is_a_clear_error(arrays, message, tmp_path):
    write_npz(tmp_path / "tiny.npz", arrays)
    with pytest.raises(GraphFormatError, match=message):
        datasets.read_dataset(tmp_path / "tiny.npz")


def test_a_dataset_file_with_pickled_objects_or_cut_short_is_refused(tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "tiny.npz"
    np.savez(path, edges=np.array([Payload(os.system, f"touch {trace}")], dtype=object))
    with pytest.raises(GraphFormatError, match="contains pickled Python objects, which are not loaded"):
        datasets.read_dataset(path)
    assert not trace.exists()
    write_npz(path, pack(np.array([[0, 1]]), 2))
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:size])
        with pytest.raises(GraphFormatError, match=r"tiny\.npz"):
            datasets.read_dataset(path)
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(GraphFormatError, match="expected an npz archive, found npy"):
        datasets.read_dataset(tmp_path / "one.npy")
    with pytest.raises(MissingFileError, match="no such file"):
        datasets.read_dataset(tmp_path / "gone.npz")
    with pytest.raises(GraphFormatError, match="is a folder"):
        datasets.read_dataset(tmp_path)


def test_a_failed_write_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(tmp_path / "tiny.npz", {"bad": np.array([{}], dtype=object)})
    assert not list(tmp_path.iterdir())


def test_weights_names_and_dense_features_of_a_file_are_read_too(tmp_path):
    parts = {"edges": [[0, 1]], "num_nodes": 2, "weights": [3.0], "names": ["ann", "bob"], "more": [7]}
    np.savez(tmp_path / "own.npz", features=np.eye(2), **parts)
    found = datasets.read_dataset(tmp_path / "own.npz")
    assert found.graph.weights.tolist() == [3, 3]
    assert found.graph.names.tolist() == ["ann", "bob"]
    assert found.graph.features.tolist() == [[1, 0], [0, 1]]
    assert list(found.extras) == ["more"]
