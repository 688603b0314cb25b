"""Any bytes at all give a Graph or a SpineError, in bounded memory; ``python -m fuzz`` tries many more."""

import contextlib
import gzip
import io
import resource
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from spinegraph import Graph, read_graph
from spinegraph.errors import SpineError, SpineWarning

ROOM = 2**30  # what reading a few hundred bytes may ask for beyond what the process already has
fuzz = settings(suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """Let the process grow by no more than ROOM: a reader that trusts a claimed size fails at once."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("needs Linux to bound memory")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def try_reading(content, name="edges.csv", as_features=False):
    """Read the bytes; anything but a Graph or a SpineError fails the test."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SpineWarning)
        path = Path(folder, name)
        path.write_bytes(content)
        edges = Path(folder, "plain.csv")
        edges.write_text("0,1\n1,2\n")
        with contextlib.suppress(SpineError):
            graph = read_graph(edges, path) if as_features else read_graph(path)
            assert isinstance(graph, Graph)
            assert len(graph.indptr) == len(graph.names) + 1 == len(graph) + 1


def made(write):
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


KEYS = [
    *("edges", "num_nodes", "weights", "names", "labels", "features", "feature_names", "format", "shape"),
    *("data", "indices", "indptr", "row", "col", "feat_data", "feat_indices", "feat_indptr", "feat_shape"),
]
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
TABLE = pa.table({"node": ["0", "1", "2"], "age": [1, 2, 3], "team": ["a", None, "b"]})
GRAPHML = b"""<?xml version="1.0" encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="weight" attr.type="double"><default>1.0</default></key>
<key id="d1" for="node" attr.name="age" attr.type="int"/><graph edgedefault="undirected">
<node id="0"><data key="d1">3</data></node><node id="1"/><edge source="0" target="1"><data key="d0">2.5</data>
</edge></graph></graphml>"""
SEEDS = {
    "csv": b'source,target,weight\nann,bob,1.5\n"Lee, Cy",bob,2\n',
    "txt": b"# note\n0 1\n1\t2\n\n% more\n2 3\n",
    "three": b"0 1 0.5\n1 2 3e-2\n",
    "npz": made(lambda out: np.savez(out, edges=EDGES, num_nodes=4, names=np.array(["a", "b", "c", "d"]))),
    "packed": made(lambda out: np.savez_compressed(out, edges=EDGES, num_nodes=4, labels=np.arange(4))),
    "scipy": made(lambda out: sparse.save_npz(out, sparse.eye_array(4, k=1, format="csr"))),
    "parquet": made(lambda out: parquet.write_table(pa.table({"source": [1, 2], "target": [2, 3]}), out)),
    "graphml": GRAPHML,
    "people": b"node,age,team\n0,31,north\n1,45,\n2,1.5,south\n",
    "npy": made(lambda out: np.save(out, np.eye(3))),
    "table": made(lambda out: parquet.write_table(TABLE, out)),
}
SEEDS["gzip"] = gzip.compress(SEEDS["csv"])
SEEDS["gzipped npz"] = gzip.compress(SEEDS["npz"])


@st.composite
def damaged(draw):
    """Take a sound file and cut, flip, drop, double or overwrite pieces of it."""
    content = bytearray(SEEDS[draw(st.sampled_from(sorted(SEEDS)))])
    for _ in range(draw(st.integers(1, 4))):
        if not content:
            break
        place = draw(st.integers(0, len(content) - 1))
        kind = draw(st.sampled_from(["cut", "flip", "set", "insert", "drop", "double", "number"]))
        if kind == "cut":
            del content[place:]
        elif kind == "flip":
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "set":
            content[place] = draw(st.sampled_from([0, 1, 10, 13, 34, 44, 127, 128, 255]))
        elif kind == "insert":
            content[place:place] = draw(st.binary(max_size=8))
        elif kind == "drop":
            del content[place : place + draw(st.integers(1, 16))]
        elif kind == "double":
            content[place:place] = content[place : place + draw(st.integers(1, 64))]
        else:
            width = draw(st.sampled_from([1, 2, 4, 8]))
            content[place : place + width] = draw(st.integers(0, 2 ** (8 * width) - 1)).to_bytes(
                width, "little"
            )
    return bytes(content)


@fuzz
@given(st.binary(max_size=400))
@example(b"PAR1")
@example(b"PK\x03\x04")
@example(b"PK\x05\x06" + bytes(18))
@example(b"\x93NUMPY\x01\x00\x10\x00((((((((((((((((")
@example(b"\x1f\x8b")
@example(b"\xef\xbb\xbf")
@example(b"<")
@example(b'"')
@example(b"\r")
def test_any_bytes_give_a_graph_or_a_spine_error(content):
    try_reading(content)
    try_reading(content, as_features=True)


@fuzz
@given(
    st.text(alphabet="ab0179-+.,;\t \n\r\"#%xeE'é\u2028\x00", max_size=60),
    st.sampled_from(["e.csv", "e.txt"]),
)
@example("0,1\n1,2,\n", "e.csv")
@example('"a\n",b\n', "e.csv")
@example("a\u2028b c\n", "e.txt")
def test_any_text_gives_a_graph_or_a_spine_error(text, name):
    try_reading(text.encode(), name)
    try_reading(text.encode(), name, as_features=True)


@fuzz
@given(damaged())
@example(GRAPHML.replace(b"utf-8", b"uutf-8"))
@example(made(lambda out: zipfile.ZipFile(out, "w").writestr(zipfile.ZipInfo(""), b"")))
@example(SEEDS["table"].replace(b"\x01\x00\x00\x001", b"\x01\x00\x00\x00\xff"))
def test_a_damaged_file_gives_a_graph_or_a_spine_error(content):
    try_reading(content)
    try_reading(content, as_features=True)


@pytest.mark.slow
@settings(fuzz, max_examples=20_000)
@given(damaged())
def test_many_damaged_files_give_a_graph_or_a_spine_error(content):
    try_reading(content)
    try_reading(content, as_features=True)


@st.composite
def odd_arrays(draw):
    """Take a valid npz whose arrays have the right keys and anything for values."""
    keys = st.sampled_from(KEYS)
    shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    kinds = st.sampled_from(["<i8", "<u8", "<i4", "<f8", "<f4", "|b1", "<U3", "|S3", "<c16", "<M8[s]", "|V4"])
    arrays = {}
    for key in draw(st.lists(keys, unique=True, max_size=7)):
        kind, shape = np.dtype(draw(kinds)), draw(shapes)
        count = int(np.prod(shape))
        if draw(st.booleans()) and kind.kind in "iu":
            values = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
            arrays[key] = np.array(values, kind).reshape(shape)
        else:
            size = count * kind.itemsize
            arrays[key] = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), kind).reshape(shape)
    return arrays


@fuzz
@given(odd_arrays())
@example({"edges": EDGES, "num_nodes": np.array(2**62)})
@example({"format": np.array("csr"), "shape": np.array([4, 4]), "data": np.ones(1)})
@example({"edges": EDGES, "num_nodes": np.array(4), "names": np.array([b"\xff", b"a", b"b", b"c"])})
@example({"edges": EDGES.astype(np.uint64) + 2**63, "num_nodes": np.array(4)})
def test_an_npz_of_odd_arrays_gives_a_graph_or_a_spine_error(arrays):
    def write(out):
        with zipfile.ZipFile(out, "w") as archive:
            for key, array in arrays.items():
                archive.writestr(f"{key}.npy", made(lambda inner, array=array: np.save(inner, array)))

    try_reading(made(write))
    try_reading(made(write), as_features=True)
