"""Stores on the command line: built, checked, fitted and embedded into a folder of parts."""

import json

import numpy as np
import pytest

from command import QUICK, spine
from spinegraph import Embeddings, open_store, read_graph


@pytest.fixture(scope="module")
def stored(place, tmp_path_factory):
    """A folder with a store of the small organisation and a model of it."""
    folder = tmp_path_factory.mktemp("stored")
    run = spine("data", "build", place / "edges.csv", "-o", "net.store", "--memory", "300M", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "net.store: 12 nodes, 26 edges" in run.stdout
    run = spine("fit", "net.store", "-o", "model", *QUICK, cwd=folder)
    assert run.returncode == 0, run.stderr
    return folder


def test_a_built_store_is_the_network_and_passes_its_check(stored, place):
    built, read = open_store(stored / "net.store"), read_graph(place / "edges.csv")
    assert built.names.tolist() == read.names.tolist()
    assert (built.indices == read.indices).all()
    run = spine("data", "check", "net.store", "--json", cwd=stored)
    assert json.loads(run.stdout)["edges"] == read.num_edges
    assert (
        "a store; 26 listed edges gave 26 edges" in spine("data", "describe", "net.store", cwd=stored).stdout
    )


def test_damage_is_one_line(stored, tmp_path):
    import shutil

    shutil.copytree(stored / "net.store", tmp_path / "net.store")
    (tmp_path / "net.store" / "indices.bin").write_bytes(bytes(208))
    run = spine("data", "check", "net.store", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.startswith("error: net.store/indices.bin: its checksum does not match the header")
    assert len(run.stderr.splitlines()) == 1


def test_a_model_of_a_store_holds_no_copy_of_it_unless_asked(stored, tmp_path):
    files = ["config.json", "model.safetensors", "place.safetensors"]
    assert sorted(path.name for path in (stored / "model").iterdir()) == files
    run = spine("fit", stored / "net.store", "-o", "model", "--data", *QUICK, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "model" / "vectors.safetensors").exists()


def test_vectors_go_to_a_folder_in_parts_and_a_second_run_finds_them_done(stored, tmp_path):
    run = spine("embed", stored / "model", stored / "net.store", "-o", f"{tmp_path}/parts/")
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("parts/: 12 vectors of 8 dimensions in 1 file\n")
    part = tmp_path / "parts" / "part-00000.parquet"
    written = part.stat().st_mtime_ns
    run = spine("embed", stored / "model", stored / "net.store", "-o", f"{tmp_path}/parts/", "--json")
    assert json.loads(run.stdout)["files"] == 1
    assert part.stat().st_mtime_ns == written
    assert spine("embed", stored / "model", stored / "net.store", "-o", tmp_path / "all.npz").returncode == 0
    parts = Embeddings.load(tmp_path / "parts" / "part-00000.parquet")
    whole = Embeddings.load(tmp_path / "all.npz")
    assert parts.names.tolist() == whole.names.tolist()
    np.testing.assert_allclose(parts.vectors, whole.vectors, rtol=1e-4, atol=1e-5)
    run = spine("embed", stored / "model", stored / "net.store", "-o", f"{tmp_path}/parts/", "--nodes", "ann")
    assert run.returncode == 2
    assert "works with a file" in run.stderr


def test_features_belong_into_the_store(stored, place):
    run = spine(
        "fit", stored / "net.store", "--features", place / "people.csv", "-o", stored / "other", *QUICK
    )
    assert run.returncode == 1
    assert "is a store, which has its own features" in run.stderr


def test_sizes_are_read_as_people_write_them(place, tmp_path):
    for number, size in enumerate(("400000K", "0.5g", "1 GiB")):
        run = spine(
            "data", "build", place / "edges.csv", "-o", tmp_path / str(number), "--memory", size, "-q"
        )
        assert (run.returncode, run.stderr) == (0, "")
    run = spine("data", "build", place / "edges.csv", "-o", tmp_path / "s", "--memory", "much")
    assert run.returncode == 2
    assert "expected a size such as 500M or 2G" in " ".join(run.stderr.replace("│", " ").split())
    run = spine("data", "build", place / "edges.csv", "-o", tmp_path / "s", "--memory", "10M")
    assert run.returncode == 1
    assert "memory must be at least" in run.stderr
