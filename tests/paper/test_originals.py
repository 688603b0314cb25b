import os
import pickle
import re
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from paper.originals import (
    SOURCES,
    DownloadError,
    Original,
    checksum,
    fetch,
    fingerprint,
    load_ppi,
    pack,
    read_pickle,
    split_by_graph,
)

import original_files
from paper import originals
from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.graph import datasets
from spinegraph.graph.files import read_npz
from spinegraph.graph.graph import Graph
from spinegraph.graph.synthetic import random_graph

DATA = Path(os.environ.get("SPINEGRAPH_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(
    not (DATA / "cora.npz").is_file(), reason="the real networks are not in SPINEGRAPH_DATA"
)

WRITERS = {
    "airports_brazil": partial(original_files.airports, "brazil"),
    "airports_europe": partial(original_files.airports, "europe"),
    "amazon_photo": original_files.amazon,
    "citeseer": partial(original_files.planetoid, "citeseer"),
    "cora": partial(original_files.planetoid, "cora"),
    "fb686": partial(original_files.facebook, 686),
    "fb_ego_414": partial(original_files.facebook, 414),
    "ppi": original_files.ppi,
    "pubmed": partial(original_files.planetoid, "pubmed"),
    "twitch_ENGB": partial(original_files.twitch, "ENGB"),
    "twitch_ES": partial(original_files.twitch, "ES"),
    "twitch_PTBR": partial(original_files.twitch, "PTBR"),
    "twitch_RU": partial(original_files.twitch, "RU"),
}


def small_network(name, seed=0):
    """A little network of 40 nodes with everything that ``name``'s original holds."""
    rng = np.random.default_rng(seed)
    graph = random_graph(40, 3, seed=seed, features=3170 if "twitch" in name else 12)
    rows = np.repeat(np.arange(40), graph.degrees)
    edges = np.column_stack([rows, graph.indices])
    labels = rng.integers(3, size=40)
    extras = {}
    features = graph.features
    if name in ("cora", "citeseer", "pubmed"):
        extras = {"train_idx": np.arange(6), "val_idx": np.arange(6, 20), "test_idx": np.arange(20, 40)}
        if name == "citeseer":
            extras["test_idx"] = np.setdiff1d(np.arange(20, 40), [25, 31])
            labels[[25, 31]] = -1
            features = features.multiply((labels >= 0)[:, None])
    if "twitch" in name:
        labels = rng.integers(2, size=40)
        extras = {key: rng.integers(2, size=40) for key in ("partner", "views", "days")}
    if "fb" in name:
        labels = rng.integers(2, size=(40, 3)).astype(np.uint8)
        extras = {
            "node_ids": np.arange(40) * 3 + 7,
            "circle_names": np.array(["circle0", "circle1", "circle10"]),
        }
        extras["feature_names"] = np.array([f"school;anonymized feature {number}" for number in range(12)])
    if "airports" in name:
        features, extras = None, {"node_ids": np.arange(40) + 100}
    if name == "ppi":
        labels = rng.integers(2, size=(40, 5)).astype(np.uint8)
        graph_id = np.repeat([0, 1, 2, 3], 10)
        edges = edges[graph_id[edges[:, 0]] == graph_id[edges[:, 1]]]
        extras = {"train_idx": np.arange(20), "val_idx": np.arange(20, 30), "test_idx": np.arange(30, 40)}
        extras["graph_id"] = graph_id.astype(np.int16)
    return pack(edges, 40, features, labels=labels, **extras)


@pytest.fixture
def server(tmp_path):
    """A real HTTP server on this machine, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", folder
        running.shutdown()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.delenv("SPINEGRAPH_DATA", raising=False)
    monkeypatch.setenv("SPINEGRAPH_CACHE", str(folder))
    return folder


def publish(server, monkeypatch, name, files, **changes):
    """Serve files as the originals of ``name``."""
    address, folder = server
    for file, data in files.items():
        (folder / file).write_bytes(data)
    source = SOURCES[name]
    originals = tuple(replace(each, url=f"{address}/{each.file}", sha256=None) for each in source.originals)
    monkeypatch.setitem(SOURCES, name, replace(source, originals=originals, **changes))


def assert_same_arrays(found, expected):
    assert set(found) == set(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


@pytest.mark.parametrize("name", WRITERS)
def test_a_small_original_is_downloaded_converted_and_cached(name, server, cache, monkeypatch):
    arrays = small_network(name)
    content = fingerprint(arrays, SOURCES[name].parts)
    publish(server, monkeypatch, name, WRITERS[name](arrays), fingerprint=content)
    seen = []
    dataset = originals.load(name, progress=lambda *step: seen.append(step))
    assert_same_arrays(read_npz(cache / f"{name}.npz"), arrays)
    assert len(dataset.graph) == 40
    assert dataset.graph.num_edges == len(arrays["edges"])
    for file, done, total in seen:
        assert 0 < done <= total == (server[1] / file).stat().st_size
    assert {step[0] for step in seen} == {original.file for original in SOURCES[name].originals}
    for file in server[1].iterdir():
        file.unlink()
    np.testing.assert_array_equal(originals.load(name).labels, dataset.labels)  # from the cache, no server
    (cache / f"{name}.npz").unlink()
    assert originals.load(name).graph.num_edges == dataset.graph.num_edges  # from the kept originals
    assert not list(cache.rglob("*.part"))


def test_twitter_is_downloaded_with_its_own_ids(server, cache, monkeypatch):
    arrays = pack(np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), 4)
    ids = np.array([12, 9_000_000_001, 9_000_000_002, 9_000_000_007])
    files = original_files.twitter(arrays, ids)
    publish(server, monkeypatch, "ego_twitter", files, fingerprint=fingerprint(arrays))
    assert originals.load("ego_twitter").graph.neighbors(12).tolist() == [9_000_000_001, 9_000_000_007]


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_local_files_have_the_fingerprints_that_downloads_are_held_against(name):
    arrays = read_npz(DATA / f"{name}.npz")
    assert fingerprint(arrays, SOURCES[name].parts) == SOURCES[name].fingerprint


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", ["cora", "citeseer", "fb686", "twitch_PTBR", "airports_europe"])
def test_a_real_network_in_its_original_format_converts_back_exactly(name, server, cache, monkeypatch):
    arrays = read_npz(DATA / f"{name}.npz")
    publish(server, monkeypatch, name, WRITERS[name](arrays))
    originals.load(name)
    assert_same_arrays(read_npz(cache / f"{name}.npz"), arrays)


@pytest.mark.data
@needs_data
def test_ppi_loads_as_twenty_four_networks(monkeypatch):
    monkeypatch.setenv("SPINEGRAPH_DATA", str(DATA))
    tissues = load_ppi()
    assert [len(tissue.train) > 0 for tissue in tissues] == [True] * 20 + [False] * 4
    assert (
        sum(len(tissue.val) > 0 for tissue in tissues) == sum(len(tissue.test) > 0 for tissue in tissues) == 2
    )
    assert sum(tissue.graph.num_edges for tissue in tissues) == 793632
    assert all(tissue.extras["labels_are_approximate"] for tissue in tissues)
    assert all(tissue.labels.shape == (len(tissue.graph), 121) for tissue in tissues)
    assert all(len(tissue.extras["entrez_gene_id"]) == len(tissue.graph) for tissue in tissues)


def test_a_dataset_of_one_network_cannot_be_split():
    with pytest.raises(ParameterError, match="it has no graph_id"):
        split_by_graph(datasets.Dataset("one", Graph.from_edges([(0, 1)])))


def nothing_left(cache):
    return not [path for path in cache.rglob("*") if path.is_file()]


def test_a_wrong_checksum_is_refused_and_nothing_is_left_behind(server, tmp_path):
    address, folder = server
    (folder / "file.bin").write_bytes(b"tampered with")
    original = Original("file.bin", f"{address}/file.bin", "0" * 64)
    with pytest.raises(DownloadError, match=r"SHA-256 must be 000.*nothing was kept"):
        fetch(original, tmp_path / "cache")
    assert nothing_left(tmp_path / "cache")


def test_a_damaged_file_is_fetched_again_where_its_checksum_is_known(server, tmp_path):
    address, folder = server
    (folder / "file.bin").write_bytes(b"as published")
    original = Original("file.bin", f"{address}/file.bin", checksum(folder / "file.bin"))
    path = fetch(original, tmp_path / "cache")
    path.write_bytes(b"damaged on disk")
    assert fetch(original, tmp_path / "cache").read_bytes() == b"as published"


@pytest.mark.parametrize("sent", [b"", b"only half"])
def test_a_cut_connection_leaves_nothing(sent, tmp_path):
    class Cut(SimpleHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Cut) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        with pytest.raises(DownloadError, match=r"of 1000 bytes arrived|could not be fetched"):
            fetch(
                Original("file.bin", f"http://127.0.0.1:{running.server_port}/file.bin"), tmp_path / "cache"
            )
        running.shutdown()
    assert nothing_left(tmp_path / "cache")


def test_a_missing_page_an_unreachable_host_and_an_endless_file_are_download_errors(
    server, tmp_path, monkeypatch
):
    address, folder = server
    for url in (f"{address}/nothing", "http://127.0.0.1:9/nothing"):
        with pytest.raises(DownloadError, match=r"could not be fetched.*SPINEGRAPH_DATA"):
            fetch(Original("nothing", url), tmp_path / "cache")
    (folder / "long").write_bytes(b"x" * 2000)
    monkeypatch.setattr(originals, "_MAX_DOWNLOAD", 1000)
    with pytest.raises(DownloadError, match="over 1,000 bytes"):
        fetch(Original("long", f"{address}/long"), tmp_path / "cache")
    assert nothing_left(tmp_path / "cache")


def test_content_that_is_not_the_published_network_is_refused(server, cache, monkeypatch):
    publish(
        server, monkeypatch, "airports_brazil", WRITERS["airports_brazil"](small_network("airports_brazil"))
    )
    with pytest.raises(DownloadError, match="content must have fingerprint ba555d84548b23dc"):
        originals.load("airports_brazil")
    assert not (cache / "airports_brazil.npz").exists()


class Payload:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("call", [os.system, eval, exec, __import__])
def test_a_hostile_pickle_is_refused_and_not_run(tmp_path, protocol, call):
    trace = tmp_path / "trace"
    argument = f"touch {trace}" if call is os.system else f"open({str(trace)!r}, 'w')"
    path = tmp_path / "ind.cora.x"
    path.write_bytes(pickle.dumps(Payload(call, argument), protocol=protocol))
    with pytest.raises(GraphFormatError, match=r"ind.cora.x: refused: the pickle asks for"):
        read_pickle(path)
    assert not trace.exists()


def global_call(module, name, rest):
    return b"\x80\x02c" + module + b"\n" + name + b"\n" + rest


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a readable pickle"),
        (b"junk", "not a readable pickle"),
        (b"\x80\x02]q\x00(K\x01", "not a readable pickle"),
        (pickle.dumps(np.array(["a"], dtype=object), protocol=2), "plain numbers|not those of an array"),
        (pickle.dumps(np.array([1 + 2j]), protocol=2), "plain numbers"),
        (pickle.dumps(Payload(__import__("_codecs").encode, "x", "rot13"), protocol=2), "codec 'rot13'"),
        (global_call(b"numpy", b"dtype", b"}b."), "not a readable pickle"),
        (global_call(b"collections", b"defaultdict", b"}b."), "may not change a function"),
        (global_call(b"numpy.core.multiarray", b"scalar", b"."), "refused"),
        (b"\x80\x02Pq\x00.", "not a readable pickle"),
        (b"\x80\x02]r\xff\xff\xff\x7f.", "9 bytes may not remember a value at place 2147483647"),
        (b"]p4294967295\n.", "14 bytes may not remember a value at place 4294967295"),
    ],
)
def test_a_strange_pickle_is_a_clear_error(tmp_path, data, message):
    path = tmp_path / "ind.cora.x"
    path.write_bytes(data)
    with pytest.raises(GraphFormatError, match=message):
        read_pickle(path)


def test_an_array_whose_bytes_do_not_fit_its_shape_is_refused(tmp_path):
    data = original_files.python2_pickle(np.arange(4, dtype=np.int64))
    path = tmp_path / "y"
    path.write_bytes(data.replace(b"K\x04\x85", b"K\x7f\x85"))
    with pytest.raises(GraphFormatError, match="must hold 127 numbers"):
        read_pickle(path)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i4", "|u1", "|b1"])
def test_arrays_of_every_plain_kind_come_back(tmp_path, order, kind):
    array = np.asarray(np.arange(6).reshape(2, 3) % 2, dtype=kind, order=order)
    for data in (original_files.python2_pickle(array), pickle.dumps(array, protocol=2)):
        (tmp_path / "y").write_bytes(data)
        np.testing.assert_array_equal(read_pickle(tmp_path / "y"), array)


def damaged(name, change):
    files = WRITERS[name](small_network(name))
    change(files)
    return files


def set_item(key, value):
    return lambda files: files.__setitem__(key, value)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cora", set_item("ind.cora.test.index", b"5\n6\n"), "expected 20 different nodes from 20 up"),
        ("cora", set_item("ind.cora.test.index", b"five\n"), "expected 1 integers a line"),
        ("cora", set_item("ind.cora.graph", pickle.dumps({0: [99]}, protocol=2)), r"outside 0\.\.39"),
        ("cora", set_item("ind.cora.graph", pickle.dumps({0: ["a"]}, protocol=2)), "nodes must be integers"),
        ("cora", set_item("ind.cora.graph", pickle.dumps([1], protocol=2)), "dict of node to list"),
        ("cora", set_item("ind.cora.allx", pickle.dumps([1], protocol=2)), "expected a CSR matrix"),
        ("cora", set_item("ind.cora.ally", pickle.dumps([1], protocol=2)), "one row of class marks"),
        ("fb686", set_item("facebook.tar.gz", b"junk"), "not a readable tar file"),
        (
            "fb686",
            lambda files: files.update(original_files.facebook(1, small_network("fb686"))),
            "686.edges is not in",
        ),
        ("twitch_RU", set_item("twitch.zip", b"PK junk"), "not a readable zip file"),
        ("twitch_RU", set_item("twitch.zip", original_files.zipped({"a": "b"})), "not in the archive"),
        ("ppi", set_item("ppi.zip", b""), "not a readable zip file"),
        ("amazon_photo", set_item("amazon_electronics_photo.npz", b"PK"), "not a readable zip file"),
        (
            "airports_brazil",
            set_item("brazil-airports.edgelist", b"100 999\n"),
            "node 999 is named here and nowhere",
        ),
        (
            "airports_brazil",
            set_item("labels-brazil-airports.txt", b"node label\n1 x\n"),
            "expected 2 integers a line",
        ),
    ],
)
def test_a_damaged_original_is_a_clear_error(name, change, message, server, cache, monkeypatch):
    publish(server, monkeypatch, name, damaged(name, change))
    with pytest.raises(GraphFormatError, match=message):
        originals.load(name)
    assert not (cache / f"{name}.npz").exists()


def test_every_download_is_pinned():
    for name, source in SOURCES.items():
        assert re.fullmatch(r"[0-9a-f]{16,64}", source.fingerprint), (
            f"{name} has no fingerprint of its content"
        )
        for original in source.originals:
            assert original.url.startswith("https://"), original.url
            assert original.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", original.sha256)
    assert sorted(SOURCES) == list(datasets.NAMES)


def test_the_cache_is_where_the_system_keeps_caches(monkeypatch):
    monkeypatch.delenv("SPINEGRAPH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr(originals.sys, "platform", "linux")
    assert originals.cache_folder() == Path("/somewhere/spinegraph")
    monkeypatch.setattr(originals.sys, "platform", "darwin")
    assert originals.cache_folder().parts[-3:] == ("Library", "Caches", "spinegraph")
    monkeypatch.setattr(originals.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert originals.cache_folder() == Path("/local/spinegraph")
