"""Graphs on disk: the same graph, nothing copied, and nothing trusted that was damaged."""

import json
import os
import pickle
import subprocess
import sys
from copy import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import issparse

import strategies
from command import in_small_place
from spinegraph import SPINE, Graph, made, open_store, read_graph, write_store
from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError, UnknownNodeError
from spinegraph.graph import store as store_names
from spinegraph.graph.describe import computed_fingerprint, describe, fingerprint
from spinegraph.graph.store import VERSION


def assert_same(one, other):
    for field in ("indptr", "indices", "weights", "outward", "inward"):
        first, second = getattr(one, field), getattr(other, field)
        assert (first is None) == (second is None)
        if first is not None:
            assert first.dtype == second.dtype
            assert (first == second).all()
    assert one.names.tolist() == other.names.tolist()
    assert (one.features is None) == (other.features is None)
    if one.features is not None:
        assert issparse(one.features) == issparse(other.features)
        dense = [g.features.toarray() if issparse(g.features) else g.features for g in (one, other)]
        assert (dense[0] == dense[1]).all()
    assert one.feature_names == other.feature_names
    assert one.report == other.report


@given(graph=strategies.graphs())
def test_a_store_holds_the_same_graph(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("place") / "store"
    write_store(graph, folder)
    stored = open_store(folder, verify=True)
    assert_same(stored, graph)
    assert fingerprint(stored) == fingerprint(graph) == computed_fingerprint(stored)
    for name in graph.names.tolist():
        assert stored.positions([name]).tolist() == graph.positions([name]).tolist()
        assert stored.neighbors(name).tolist() == graph.neighbors(name).tolist()
    assert stored.positions(stored.names.tolist()).tolist() == list(range(len(graph)))
    assert repr(stored) == repr(graph)


@given(
    names=st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=60, unique=True),
    wanted=st.lists(st.one_of(st.text(max_size=4), st.integers()), max_size=40),
    piece=st.integers(1, 9),
)
def test_text_names_are_found_by_search_and_by_scan(tmp_path_factory, names, wanted, piece):
    graph = Graph.from_edges([(0, 0)] * 0, num_nodes=len(names), names=names)
    folder = tmp_path_factory.mktemp("place") / "store"
    write_store(graph, folder)
    index = open_store(folder)._name_index
    places = {name: place for place, name in enumerate(names)}
    expected = [places.get(name, -1) for name in wanted]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_names, "_NAMES", piece)
        assert list(map(index.find_one, wanted)) == expected
        assert index._find_by_scan(wanted).tolist() == expected
        assert list(open_store(folder).names) == names


def test_arrays_are_read_only_maps_and_stay_so_in_derived_graphs(tmp_path):
    write_store(made.random_graph(50, 3, features=5), tmp_path / "store")
    graph = open_store(tmp_path / "store")
    assert graph.store == tmp_path / "store"
    for array in (graph.indptr, graph.indices, graph.names, graph.features.data, graph.features.indices):
        base = array
        while isinstance(base, np.ndarray):
            assert not base.flags.writeable
            base = base.base
        assert type(base.obj if isinstance(base, memoryview) else base).__name__ == "mmap"
    assert graph.with_features(None).store is None
    assert fingerprint(graph.with_features(None)) != fingerprint(graph)


def test_opening_takes_no_memory_for_nodes(tmp_path):
    n = 2_000_000
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    write_store(Graph.from_edges(ring), tmp_path / "store")
    code = """
import sys
from spinegraph import open_store
from benchmarks.machine import resident
open_store(sys.argv[1])
before = resident("RssAnon")
graph = open_store(sys.argv[1])
graph.neighbors(1_000_000)
print(resident("RssAnon") - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "store"], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) < 2  # megabytes; the files have 72


@pytest.mark.parametrize("features", [None, 6])
def test_a_store_is_fitted_embedded_and_described_like_the_graph(tmp_path, features):
    graph = made.random_graph(120, 3, features=features, seed=4).relabel([f"node {i}" for i in range(120)])
    write_store(graph, tmp_path / "store")
    stored = open_store(tmp_path / "store")
    settings = {"dim": 8, "threads": 1}
    one, other = SPINE(**settings).fit(graph), SPINE(**settings).fit(stored)
    assert (one.embeddings_.vectors == other.embeddings_.vectors).all()
    assert one.fingerprint_ == other.fingerprint_
    assert (one.transform(stored, ["node 7"])["node 7"] == one.transform(graph, ["node 7"])["node 7"]).all()
    assert describe(stored) == describe(graph)
    other.save(tmp_path / "model")
    assert SPINE.load(tmp_path / "model").embeddings_.names.tolist() == graph.names.tolist()
    grown = stored.overlay(
        ["new"], [("new", "node 3")], features=None if features is None else np.ones((1, 6))
    )
    assert one.transform(grown, ["new"]).vectors.shape == (1, 8)


def test_a_store_is_read_as_a_graph_and_pickled_as_its_path(tmp_path):
    write_store(Graph.from_edges([("ann", "bob"), ("bob", "cy")]), tmp_path / "store")
    graph = read_graph(tmp_path / "store")
    assert graph.store == tmp_path / "store"
    assert len(pickle.dumps(graph)) < 400
    assert_same(copy(graph), graph)
    with pytest.raises(ParameterError, match="is a store, which has its own features"):
        read_graph(tmp_path / "store", tmp_path / "people.csv")
    with pytest.raises(
        UnknownNodeError, match=r"1 of 2 names are not in the graph: 'zed'; .* 'ann', 'bob', 'cy'"
    ):
        graph.positions(["ann", "zed"])


def test_mixed_names_are_refused_with_a_way_out(tmp_path):
    graph = Graph.from_edges([(0, 1)]).with_nodes(["new"], [("new", 0)])
    with pytest.raises(GraphFormatError, match=r"all text or all whole numbers; got 0, 1.*relabel"):
        write_store(graph, tmp_path / "store")
    assert os.listdir(tmp_path) == []


def test_only_a_store_is_replaced(tmp_path):
    graph = Graph.from_edges([(0, 1)])
    write_store(graph, tmp_path / "store")
    write_store(Graph.from_edges([(0, 1), (1, 2)]), tmp_path / "store")
    assert len(open_store(tmp_path / "store")) == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("mine")
    with pytest.raises(ParameterError, match=r"contains 'note.txt' and is not a store"):
        write_store(graph, tmp_path / "mine")
    with pytest.raises(ParameterError, match="is a file"):
        write_store(graph, tmp_path / "mine" / "note.txt")


@pytest.fixture
def folder(tmp_path):
    graph = Graph.from_edges(
        [("cy", "ann"), ("ann", "bob")], weights=[1, 2], features=np.eye(3), names=["cy", "ann", "bob"]
    )
    write_store(graph, tmp_path / "store")
    return tmp_path / "store"


def test_a_missing_folder_or_header_is_named(tmp_path, folder):
    with pytest.raises(MissingFileError, match="no such folder; pass a store"):
        open_store(tmp_path / "nowhere")
    (folder / "header.json").unlink()
    with pytest.raises(MissingFileError, match=r"has no header.json"):
        open_store(folder)


@pytest.mark.parametrize(
    "name", ["indptr.bin", "indices.bin", "weights.bin", "names_text.bin", "features.bin"]
)
def test_a_file_that_is_cut_off_or_gone_is_named(folder, name):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(
        GraphFormatError, match=rf"{name}: has \d+ bytes, but the header says \d+: it is damaged"
    ):
        open_store(folder)
    (folder / name).unlink()
    with pytest.raises(GraphFormatError, match=f"{name}: is missing"):
        open_store(folder)


@pytest.mark.parametrize(
    "name",
    [
        "indptr.bin",
        "indices.bin",
        "weights.bin",
        "names_text.bin",
        "names_ends.bin",
        "names_order.bin",
        "features.bin",
    ],
)
def test_a_flipped_bit_fails_the_checksum(folder, name):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 4
    (folder / name).write_bytes(data)
    with pytest.raises(GraphFormatError, match=f"{name}: its checksum does not match the header"):
        open_store(folder, verify=True)


def rewritten(folder, change):
    header = json.loads((folder / "header.json").read_text())
    change(header)
    header.pop("digest", None)  # somebody who means harm would sign it anew
    (folder / "header.json").write_text(json.dumps(header))


def test_a_newer_version_says_so(folder):
    rewritten(folder, lambda header: header.update(version=VERSION + 1))
    with pytest.raises(GraphFormatError, match=r"header.json: is version 2, .* reads up to 1: upgrade it"):
        open_store(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(format="other"), "format must be 'spinegraph.store'"),
        (lambda h: h["files"].pop("indices.bin"), "expected the files"),
        (lambda h: h["files"].update({"../x.bin": {}}), "is not a file of a store"),
        (lambda h: h["files"]["indptr.bin"].update(dtype="O"), "dtype must be '<i8'"),
        (lambda h: h["files"]["indptr.bin"].update(shape=[2**63]), "shape must be 1 sizes"),
        (lambda h: h["files"]["indptr.bin"].update(shape=[0]), "a graph must have 1 to"),
        (lambda h: h["files"]["weights.bin"].update(shape=[3]), r"must have shape \(4,\)"),
        (lambda h: h.update(num_features=7), r"must have shape \(3, 7\)"),
        (lambda h: h.update(feature_names=["one"]), "feature_names must have 3 entries"),
        (lambda h: h.update(names="integer"), "expected the files"),
        (lambda h: h.update(report={"listed": -1}), "listed must be from 0"),
        (lambda h: h.update(fingerprint=None), "fingerprint must be of type str"),
    ],
)
def test_a_header_is_trusted_in_nothing(folder, change, message):
    rewritten(folder, change)
    with pytest.raises(GraphFormatError, match=rf"header.json: .*{message}"):
        open_store(folder)


@pytest.mark.parametrize("text", ["", "[1]", "{", "9" * 5000, "[" * 100_000])
def test_a_header_that_is_no_json_object_is_named(folder, text):
    (folder / "header.json").write_text(text)
    with pytest.raises(GraphFormatError, match=r"header.json: "):
        open_store(folder)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("indptr.bin", np.array([0, 9, 3, 4]), "indptr.bin must rise"),
        ("indices.bin", np.array([1, 0, 7, 1], np.int32), r"must lie in 0 .. 2"),
        ("indices.bin", np.array([1, 2, 0, 1], np.int32), "must ascend"),
        ("weights.bin", np.array([1, -1, 1, 1], np.float32), "finite numbers above 0"),
        ("features.bin", np.full((3, 3), np.nan, np.float32), "finite numbers;"),
        ("names_ends.bin", np.array([5, 2, 8]), "names must be distinct"),
        ("names_order.bin", np.array([0, 0, 1]), "names must be distinct"),
        ("names_order.bin", np.array([0, 5, 1]), "names must be distinct"),
    ],
)
def test_verifying_finds_content_that_is_no_graph_though_checksums_agree(folder, name, values, message):
    from spinegraph.graph.store import digest_of

    (folder / name).write_bytes(values.tobytes())
    rewritten(folder, lambda header: header["files"][name].update(digest=digest_of(folder / name)))
    with pytest.raises(GraphFormatError, match=message):
        open_store(folder, verify=True)


def test_a_full_disk_leaves_no_half_store(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    code = (
        "import sys, spinegraph as sg\nsg.write_store(sg.made.random_graph(5000, 5), sys.argv[1] + '/store')"
    )
    run = in_small_place([sys.executable, "-c", code, place], place, "size=64k")
    assert run.returncode == 1
    assert "store: cannot be written (No space left on device)" in run.stderr
    assert "left:" not in run.stdout


def test_stored_text_names_go_everywhere_that_names_go(tmp_path):
    graph = Graph.from_edges([("cy", "ann"), ("ann", "bob")], names=["cy", "ann", "bob"])
    write_store(graph, tmp_path / "store")
    stored = open_store(tmp_path / "store")
    assert stored.overlay([], [("cy", "bob")]).names.tolist() == ["cy", "ann", "bob"]
    assert stored.overlay([], [("cy", "bob")]).neighbors("cy").tolist() == ["ann", "bob"]
    assert set(stored.to_networkx().nodes) == {"ann", "bob", "cy"}
    assert_same(Graph.from_dataframe(stored.to_dataframe()), Graph.from_dataframe(graph.to_dataframe()))
    assert stored.subgraph(["bob", "ann"]).names.tolist() == ["bob", "ann"]
    assert stored.relabel({"ann": "amy"}).names.tolist() == ["cy", "amy", "bob"]
    assert Graph.union([stored, graph], keys="ab").names.tolist()[3] == ("b", "cy")
    assert "cy, ann, bob" in stored._repr_html_()
    write_store(stored, tmp_path / "copy")
    assert_same(open_store(tmp_path / "copy"), stored)
