"""Files that break a rule: each gives a SpineError that names the place, the text, the rule and a way out."""

import gzip
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from spinegraph import build_store, read_graph
from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    MissingFileError,
    MissingPackageError,
    ParameterError,
    SpineError,
)
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import read_npz


def refused(path, *parts, features=None, error=GraphFormatError, **options):
    """Assert that reading fails, that the message is short, names the file and holds all ``parts``."""
    with pytest.raises(error) as caught:
        read_graph(path, features, **options)
    message = str(caught.value)
    for part in (os.path.basename(features or path), *parts):
        assert part in message, message
    assert len(message) < 600
    return message


class TestLines:
    def test_a_row_with_too_few_fields(self, file):
        refused(file("0,1\n1,2\n2\n"), ":3: expected 'source target', got 1 field: '2'")

    def test_a_row_with_too_many_fields_points_to_weights(self, file):
        refused(
            file("0 1\n1 2 3\n", "e.txt"),
            ":2: expected 'source target', got 3 fields: '1 2 3'",
            "weighted=True",
        )

    def test_a_weighted_row_without_its_weight(self, file):
        refused(file("0 1 1\n\n# note\n1 2\n", "e.txt"), ":4: expected 'source target weight', got 2 fields")

    def test_a_wide_table_with_a_short_row(self, file):
        refused(
            file("a,b,source,target\n1,2,3,4\n1,2,3\n"), ":3: expected 4 fields as on the first line, got 3"
        )

    @pytest.mark.parametrize("weight", ["heavy", "", "0x10", "-1", "nan", "inf", "-inf", "1e400", "1e39"])
    @pytest.mark.parametrize("names", ["1,2", "ann,bob"])
    def test_a_bad_weight(self, file, weight, names):
        text = f"source,target,weight\n{names},1\n{names},{weight}\n"
        refused(file(text), f":3: the weight '{weight}' is not a number from 0 to 3.4e+38", "weighted=False")

    def test_a_bad_weight_without_a_header(self, file):
        refused(file("0,1,x\n1,2,1.0\n"), ":1: the weight 'x' is not a number from 0")
        assert read_graph(file("0,1,friend\n1,2,foe\n")).weights is None

    def test_an_empty_name(self, file):
        refused(file("a,b\nb,\n"), ":2: the target is empty")
        refused(file("1,2\n ,3\n"), ":2: the source is empty")

    def test_columns_that_are_not_there(self, file):
        refused(file("from,to\na,b\n"), "no column 'who'", source="who", error=ParameterError)
        refused(file("a,b\n"), ":1: weighted=True needs a third column", weighted=True)

    def test_no_delimiter(self, file):
        refused(file("a^b\nb^c\n"), ":1: expected 'source target', got 1 field", "delimiter=")

    def test_an_id_out_of_range(self, file):
        refused(
            file("0,1\n1,5\n"), ":2: the target '5' is out of range", "num_nodes=4", "0 .. 3", num_nodes=4
        )
        refused(file("0,1\n-1,1\n"), ":2: the source '-1' is out of range", num_nodes=4)
        refused(file("0,1\na,1\n"), ":2: the source 'a' is not an integer", num_nodes=4)

    def test_names_that_must_be_integers(self, file):
        refused(file("0,1\n07,1\n"), ":2: the source '07' is not an integer", names="integer")

    def test_text_that_is_not_utf8(self, file):
        refused(file(b"ann,bob\nzo\xeb,bob\n"), ":2: not UTF-8 text", "UTF-8")
        refused(
            file("".join(f"{i},{i + 1}\n" for i in range(2000)).encode() + b"\xff,1\n"), ":2001: not UTF-8"
        )

    def test_an_open_quote(self, file):
        refused(file('a,b\n"c,d\ne,f\n'), ":2: a quote is opened but not closed")
        refused(file('a,b\n"c,d\ne",f\n'), ":2: a quote is opened but not closed")
        refused(file('1,2\n"3,4\n5,6\n'), ":2: a quote is opened but not closed")

    def test_two_directions_with_unequal_weights(self, file):
        refused(file("a,b,1\nb,a,2\n"), "different weights", "reciprocal=")

    def test_the_line_is_right_in_a_later_block(self, file, monkeypatch):
        monkeypatch.setattr("spinegraph.graph.edge_files.BLOCK", 64)
        lines = [f"{i} {i + 1} 1.5" for i in range(100)]
        lines[77] = "77 78 -2"
        refused(
            file("from to weight\n" + "\n".join(lines), "e.txt"),
            ":79: the weight '-2' is not a number from 0",
        )

    def test_a_very_long_line(self, file):
        refused(file("a," + "b" * 2_000_000 + "\n"), ":1: a line of more than 1,048,576 bytes", "'a,bbb")
        refused(file("a,b\n" * 10 + "c" * 40_000_000), ":11: a line of more than")

    def test_a_long_bad_line_is_cut_short(self, file):
        refused(file("a,b\n" + "c" * 5000 + "\n"), ":2: expected 'source target', got 1 field", "...")


class TestFiles:
    def test_an_empty_file(self, file):
        refused(file(""), "is empty")

    def test_only_comments(self, file):
        refused(file("# nothing\n\n"), "contains no edges")

    def test_only_a_header(self, file):
        refused(file("source,target\n"), "has a header but no edges")

    def test_a_folder(self, tmp_path):
        refused(tmp_path, "is a folder")

    def test_nothing_there(self, tmp_path):
        refused(tmp_path / "gone.csv", "no such file", error=MissingFileError)
        with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist either"):
            read_graph(tmp_path / "nowhere" / "gone.csv")
        with pytest.raises(MissingFileError):
            read_graph("a\0b")

    def test_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "not a regular file")

    def test_a_file_that_may_not_be_read(self, file):
        path = file("a,b\n")
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
        refused(path, "cannot be read")

    def test_binary_junk(self, file):
        refused(file(bytes(range(256)) * 10), ":1: binary data where text was expected")
        refused(file(b"a,b\n" * 3 + b"c,\0\n"), ":4: binary data")

    @pytest.mark.parametrize("magic", [b"BZh9", b"\xfd7zXZ\0", b"\xff\xfea\0", b"%%MatrixMarket "])
    def test_formats_that_are_not_read_are_named(self, file, magic):
        refused(file(magic + b"..."), "not supported; convert it")

    def test_a_bare_array_is_no_edge_list(self, tmp_path):
        np.save(tmp_path / "x.npy", np.eye(2))
        refused(tmp_path / "x.npy", "features=")


def truncations(content):
    return [content[: int(len(content) * part)] for part in (0.3, 0.6, 0.9)] + [content[:-1]]


class TestDamage:
    def test_truncated_gzip(self, file):
        rng = np.random.default_rng(0)
        text = "\n".join(f"{a},{b}" for a, b in rng.integers(0, 10**6, (2000, 2)))
        for cut in truncations(gzip.compress(text.encode())):
            refused(file(cut, "edges.csv.gz"), "gzip")

    def test_gzip_with_a_flipped_bit(self, file):
        packed = bytearray(gzip.compress(b"1,2\n" * 500))
        packed[20] ^= 0x10
        refused(file(bytes(packed), "edges.csv.gz"), "gzip")

    def test_truncated_parquet(self, file):
        stream = io.BytesIO()
        parquet.write_table(pa.table({"source": range(1000), "target": range(1000)}), stream)
        for cut in truncations(stream.getvalue()):
            refused(file(cut, "edges.parquet"), "Parquet")

    def test_truncated_npz(self, file):
        stream = io.BytesIO()
        np.savez(stream, edges=np.arange(2000).reshape(-1, 2), num_nodes=2000)
        for cut in truncations(stream.getvalue()):
            refused(file(cut, "g.npz"), "NumPy")

    def test_truncated_features(self, file):
        stream = io.BytesIO()
        np.save(stream, np.zeros((2, 500)))
        for cut in truncations(stream.getvalue()):
            refused(file("0,1\n"), "truncated", features=file(cut, "x.npy"))

    def test_features_of_npz_that_are_one_number(self, file, tmp_path):
        np.savez(tmp_path / "f.npz", features=np.float64(1), names=np.array(["a", "b"]))
        with pytest.raises(MissingFeaturesError, match="one name per row"):
            read_graph(file("a,b\n"), tmp_path / "f.npz")

    def test_truncated_graphml(self, file):
        refused(file("<graphml>\n<graph>\n<node", "g.graphml"), ":3: not well-formed XML")


class _Explodes:
    def __reduce__(self):
        return os.mkdir, ("pickle_was_run",)


class TestNeverUnpickled:
    def test_an_object_array_in_npz(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        evil = np.array([_Explodes()], dtype=object)
        np.savez(tmp_path / "g.npz", edges=evil, num_nodes=1)
        refused(tmp_path / "g.npz", "'edges'", "pickled", "not loaded")
        assert not (tmp_path / "pickle_was_run").exists()

    def test_an_object_array_as_features(self, file, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        np.save(tmp_path / "x.npy", np.array([_Explodes()], dtype=object))
        refused(file("0,1\n"), "pickled", features=tmp_path / "x.npy")
        assert not (tmp_path / "pickle_was_run").exists()

    def test_a_plain_pickle(self, file, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        refused(file(pickle.dumps(_Explodes()), "g.npz"))
        refused(file("0,1\n"), features=file(pickle.dumps(_Explodes()), "x.npy"))
        assert not (tmp_path / "pickle_was_run").exists()


def npy_header(shape, descr="<i8"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


class TestClaimsOfSize:
    """Small files that claim to be huge are refused before anything is allocated."""

    @pytest.fixture(autouse=True)
    def little_memory(self):
        limits = resource.getrlimit(resource.RLIMIT_AS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, limits[1]))
        yield
        resource.setrlimit(resource.RLIMIT_AS, limits)

    @pytest.mark.parametrize("shape", [(10**15, 2), (10**30, 2), (-1, 2), (2**63, 2**63), (0, 10**30)])
    def test_a_shape_that_the_bytes_do_not_back(self, file, tmp_path, shape):
        with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
            archive.writestr("edges.npy", npy_header(shape) + b"\0" * 16)
        refused(tmp_path / "g.npz")
        refused(file("0,1\n"), features=file(npy_header(shape) + b"\0" * 16, "x.npy"))

    def test_items_of_no_size(self, file):
        refused(file("0,1\n"), "dtype", features=file(npy_header((10**12, 2), "<U0"), "x.npy"))

    def test_a_zip_bomb(self, tmp_path):
        rows = 300 * 2**20 // 16
        packing = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": 6}
        with (
            zipfile.ZipFile(tmp_path / "g.npz", "w", **packing) as archive,
            archive.open("edges.npy", "w") as member,
        ):
            member.write(npy_header((rows, 2)))
            for _ in range(300):
                member.write(bytes(2**20))
        refused(tmp_path / "g.npz", "unpacks to more than 256 MiB", "np.savez")

    def test_a_gzip_bomb(self, file, monkeypatch):
        monkeypatch.setattr("spinegraph.graph.files.FREE_EXPANSION", 2**20)
        refused(file(gzip.compress(b"0,1\n" * 2**20), "e.csv.gz"), "unpacks to more than 1 MiB", "gunzip")

    def test_a_parquet_of_too_many_rows(self, tmp_path, monkeypatch):
        monkeypatch.setattr("spinegraph.graph.edge_files._FREE_ROWS", 1000)
        monkeypatch.setattr("spinegraph.graph.edge_files._MAX_ROWS_PER_BYTE", 1)
        column = pa.array(np.zeros(10**6, np.int64))
        parquet.write_table(pa.table({"source": column, "target": column}), tmp_path / "e.parquet")
        refused(tmp_path / "e.parquet", "1,000,000 rows")

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
    def test_a_sparse_matrix_of_absurd_shape(self, tmp_path, kind):
        size = 10**12
        parts = {"row": np.array([0]), "col": np.array([1])}
        if kind != "coo":
            parts = {"indices": np.array([1]), "indptr": np.array([0, 1])}
        np.savez(tmp_path / "a.npz", format=kind, shape=[size, size], data=np.ones(1), **parts)
        refused(tmp_path / "a.npz", "claims 1,000,000,000,000")

    def test_absurd_num_nodes(self, tmp_path):
        np.savez(tmp_path / "g.npz", edges=np.array([[0, 1]]), num_nodes=10**12)
        refused(tmp_path / "g.npz", "claims 1,000,000,000,000 nodes")

    def test_entities_in_graphml(self, file):
        lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 9))
        text = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{lol}]><graphml>&l8;</graphml>'
        refused(file(text, "g.graphml"), ":1: declares the entity 'l0', which is refused")

    def test_an_outside_entity_is_not_fetched(self, file):
        text = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><graphml>&e;</graphml>'
        refused(file(text, "g.graphml"), "entity 'e'")

    def test_graphml_nested_without_end(self, file):
        refused(file("<graphml>" + "<a>" * 10**6, "g.graphml"), "not well-formed XML")
        refused(file("<graphml>" + "<a>" * 10**5 + "</a>" * 10**5 + "</graphml>", "g.graphml"), "GraphML")


class TestNpz:
    def save(self, tmp_path, **arrays):
        np.savez(tmp_path / "g.npz", **arrays)
        return tmp_path / "g.npz"

    def test_arrays_of_something_else(self, tmp_path):
        refused(self.save(tmp_path, x=np.eye(2)), "neither 'edges'", "x")
        refused(self.save(tmp_path), "none")

    def test_edges_of_the_wrong_shape_or_dtype(self, tmp_path):
        refused(self.save(tmp_path, edges=np.zeros((2, 3), int), num_nodes=4), "edges must be (m, 2)")
        refused(self.save(tmp_path, edges=np.zeros((2, 2)), num_nodes=4), "integers", "float64")

    def test_ids_out_of_range(self, tmp_path):
        refused(
            self.save(tmp_path, edges=[[0, 1], [1, 7]], num_nodes=3),
            "edges[1, 1] is 7; with 3 nodes",
            "0 .. 2",
        )
        refused(self.save(tmp_path, edges=[[0, 1], [-1, 0]], num_nodes=3), "edges[1, 0] is -1")

    def test_num_nodes_that_is_no_number(self, tmp_path):
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes="many"), "num_nodes must be an integer")
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=0), "num_nodes must be an integer")
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=2), "num_nodes=9", num_nodes=9)
        refused(self.save(tmp_path, edges=np.zeros((0, 2), int)), "at least one node")

    def test_weights_that_break_the_rule(self, tmp_path):
        for weights, part in (([-1.0], "-1.0"), ([np.nan], "nan"), ([1.0, 2.0], "(1,)"), (["x"], "numbers")):
            refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=2, weights=weights), "weights", part)
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=2), "'weights'", weighted=True)

    def test_names_that_do_not_fit(self, tmp_path):
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=2, names=["a"]), "num_nodes is 2 but 1 names")
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=2, names=["a", "a"]), "unique", "'a'")
        refused(self.save(tmp_path, edges=[[0, 1]], num_nodes=2, names=[0.5, 1]), "integer or text")

    def test_features_that_do_not_fit(self, tmp_path):
        edges = {"edges": [[0, 1]], "num_nodes": 2}
        rows = np.zeros((3, 2))
        refused(self.save(tmp_path, **edges, features=rows), "3 feature rows", error=MissingFeaturesError)
        refused(self.save(tmp_path, **edges, features=[[np.nan], [1]]), "nan")
        refused(self.save(tmp_path, **edges, feat_data=[1.0]), "features need feat_data", "found feat_data")
        csr = {"feat_indices": [9], "feat_indptr": [0, 1, 1], "feat_shape": [2, 2]}
        refused(self.save(tmp_path, **edges, feat_data=[1.0], **csr), "do not fit together")

    def test_a_sparse_matrix_with_parts_missing_or_odd(self, tmp_path):
        whole = {"format": "csr", "shape": [2, 2], "data": [1.0], "indices": [1], "indptr": [0, 1, 1]}
        for lacking in ("data", "indices", "indptr"):
            parts = {key: value for key, value in whole.items() if key != lacking}
            refused(self.save(tmp_path, **parts), f"without {lacking}")
        refused(self.save(tmp_path, **whole | {"data": ["x"]}), "1-d arrays of numbers")
        refused(self.save(tmp_path, **whole | {"shape": [2]}), "and a shape of two")
        refused(self.save(tmp_path, **whole), "num_nodes=5", num_nodes=5)

    def test_a_matrix_that_is_not_square(self, tmp_path):
        sparse.save_npz(tmp_path / "a.npz", sparse.csr_array((2, 3)))
        refused(tmp_path / "a.npz", "square")

    def test_a_sparse_format_that_is_not_read(self, tmp_path):
        sparse.save_npz(tmp_path / "a.npz", sparse.eye_array(4, format="dia"))
        refused(tmp_path / "a.npz", "'dia'", "tocsr")

    def test_a_directed_matrix_with_unequal_weights(self, tmp_path):
        sparse.save_npz(tmp_path / "a.npz", sparse.csr_array([[0, 1.0], [3.0, 0]]))
        refused(tmp_path / "a.npz", "reciprocal=")

    def test_another_zip(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
            archive.writestr("readme.txt", "hello")
        refused(tmp_path / "g.npz", "NumPy data")
        (tmp_path / "x.npy").write_bytes(npy_header((1, 1)) + bytes(8))
        with pytest.raises(SpineError, match="expected an npz"):
            read_npz(tmp_path / "x.npy")


class TestParquet:
    def save(self, tmp_path, **columns):
        parquet.write_table(pa.table(columns), tmp_path / "e.parquet")
        return tmp_path / "e.parquet"

    def test_a_gap_in_a_name(self, tmp_path):
        refused(self.save(tmp_path, source=[1, None], target=[2, 3]), "row 1: the source is empty")
        refused(self.save(tmp_path, source=["a", " "], target=["b", "c"]), "row 1: the source is empty")

    @pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None, 1e39])
    def test_a_bad_weight(self, tmp_path, weight):
        path = self.save(tmp_path, source=[1, 2], target=[2, 3], weight=pa.array([1.0, weight]))
        refused(path, "row 1: the weight", "from 0 to")

    def test_columns_of_the_wrong_type(self, tmp_path):
        refused(self.save(tmp_path, source=[1.5], target=[2.5]), "'source' is double", "integers or text")
        refused(
            self.save(tmp_path, source=[1], target=[2], weight=["x"]), "row 0: the weight 'x' is not a number"
        )

    def test_ids_out_of_range(self, tmp_path):
        refused(
            self.save(tmp_path, source=[1], target=[5]), "row 0: the target '5' is out of range", num_nodes=5
        )
        refused(
            self.save(tmp_path, source=["a"], target=["b"]),
            "num_nodes needs integer columns",
            num_nodes=5,
        )

    def test_ids_too_large_for_int64(self, tmp_path):
        huge = pa.array([2**64 - 1], pa.uint64())
        refused(
            self.save(tmp_path, source=huge, target=huge),
            "row 0: the source '18446744073709551615' is not an integer",
            "64 bits",
        )

    def test_two_columns_of_one_name(self, tmp_path):
        parquet.write_table(pa.table([[1], [2]], names=["source", "source"]), tmp_path / "e.parquet")
        refused(tmp_path / "e.parquet", "both called 'source'")

    def test_too_few_columns_or_rows(self, tmp_path):
        refused(self.save(tmp_path, source=[1]), "got 1 field")
        empty = pa.array([], pa.int64())
        refused(self.save(tmp_path, source=empty, target=empty), "contains no edges")


class TestGraphML:
    def refused(self, file, inside, *parts, **options):
        refused(file(f"<graphml>\n{inside}</graphml>", "g.graphml"), *parts, **options)

    def test_other_xml(self, file):
        refused(file("<html></html>", "g.graphml"), "cannot be read as GraphML")
        self.refused(file, "", "cannot be read as GraphML")

    def test_no_nodes(self, file):
        self.refused(file, "<graph></graph>", "contains no nodes")

    def test_what_networkx_does_not_read(self, file):
        self.refused(file, "<graph><hyperedge/></graph>", "hyperedges")
        mixed = '<graph edgedefault="directed"><edge source="a" target="b" directed="false"/></graph>'
        self.refused(file, mixed, "directed=false edge found in directed graph")

    @pytest.mark.parametrize("weight", ["x", "-1", "nan", "inf", ""])
    def test_a_bad_weight(self, file, weight):
        key = '<key id="w" for="edge" attr.name="weight" attr.type="string"/>'
        edge = f'<edge source="a" target="b"><data key="w">{weight}</data></edge>'
        inside = f'{key}<graph><node id="a"/><node id="b"/>\n{edge}</graph>'
        self.refused(file, inside, "('a', 'b')", weight)

    def test_some_weights_missing(self, file):
        key = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
        edges = '<edge source="a" target="b"><data key="w">1</data></edge>\n<edge source="a" target="b"/>'
        inside = f'{key}<graph><node id="a"/><node id="b"/>\n{edges}</graph>'
        self.refused(file, inside, "edge ('a', 'b'): the weight 'None' is not a number", "weighted=False")
        nodes = '<graph><node id="a"/></graph>'
        self.refused(file, nodes, "weighted=True needs", weighted=True)
        self.refused(file, nodes, "not an integer", names="integer")
        self.refused(file, nodes, "num_nodes=5", num_nodes=5)

    def test_attributes_that_are_not_what_they_say(self, file):
        key = '<key id="d" for="node" attr.name="age" attr.type="int"/>'
        path = file(
            f'<graphml>{key}<graph><node id="a"><data key="d">old</data></node></graph></graphml>',
            "g.graphml",
        )
        refused(path, "invalid literal for int()", features=path)
        bare = file('<graphml><graph><node id="a"/></graph></graphml>', "b.graphml")
        refused(bare, "no attributes", features=bare)

    def test_networkx_that_is_not_installed(self, file, monkeypatch):
        monkeypatch.setitem(sys.modules, "networkx", None)
        path = file('<graphml><graph><node id="a"/></graph></graphml>', "g.graphml")
        with pytest.raises(MissingPackageError, match=r"pip install 'spinegraph\[graphs\]'"):
            read_graph(path)


def test_names_are_what_was_asked_for_or_an_error(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=2)
    assert read_graph(tmp_path / "g.npz", names="text").names.tolist() == ["0", "1"]
    np.savez(tmp_path / "t.npz", edges=[[0, 1]], num_nodes=2, names=["ann", "bob"])
    refused(tmp_path / "t.npz", "its names are text, such as 'ann', but names='integer'", names="integer")
    parquet.write_table(pa.table({"source": ["1"], "target": ["2"]}), tmp_path / "t.parquet")
    refused(tmp_path / "t.parquet", "'source' and 'target' are string", "names='integer'", names="integer")


def test_labels_of_another_number_than_nodes(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=3, labels=[0, 1])
    refused(tmp_path / "g.npz", "labels of shape (2,) for 3 nodes")


def test_columns_go_with_tables(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1]], num_nodes=2)
    refused(tmp_path / "g.npz", "npz and GraphML files have no columns", source="a", error=ParameterError)


class TestFeatures:
    def test_nan_and_infinity_in_a_table(self, file):
        edges = file("ann,bob\n")
        for value in ("inf", "-inf", "1e39"):
            people = file(f"# who\nnode,age\nann,31\nbob,{value}\n", "people.csv")
            refused(edges, ":4: column 'age'", "FeatureEncoder", features=people)

    def test_nan_and_infinity_in_a_matrix(self, file, tmp_path):
        for value in (np.nan, np.inf, 1e39):
            np.save(tmp_path / "x.npy", np.array([[0, 1], [2, value]]))
            refused(file("0,1\n"), "features[1, 1] (node 1) is", features=tmp_path / "x.npy")
            sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(np.array([[0, 1], [2, value]])))
            refused(file("0,1\n"), "features[1, 1] (node 1) is", features=tmp_path / "x.npz")

    def test_names_whose_zeros_were_lost(self, file):
        people = file("node,age\n7,1\n8,2\n", "people.csv")
        words = "zeros before a number, or .0 after it, were lost in one of them"
        refused(file("007,008\n"), words, features=people, error=MissingFeaturesError)

    def test_a_name_given_twice(self, file):
        people = file("node,age\nann,31\nbob,1\nann,2\n", "people.csv")
        said = refused(
            file("ann,bob\n"), "more than once: 'ann'", features=people, error=MissingFeaturesError
        )
        assert "isolated" not in said, "that would not help"

    def test_a_row_without_a_name(self, file, tmp_path):
        parquet.write_table(pa.table({"node": ["a", None], "x": [1, 2]}), tmp_path / "x.parquet")
        refused(file("a,b\n"), "row 1: no node name", features=tmp_path / "x.parquet")

    def test_a_row_without_a_name_where_the_column_is_chosen(self, file):
        people = file("age,id\n31,1\n45,\n22,3\n", "people.csv")
        refused(file("1,2\n2,3\n"), "people.csv:3: no node name in 'id'", features=people)
        table = pa.table({"age": [31, 45], "id": ["1", None]})
        with pytest.raises(GraphFormatError, match="row 1: no node name in 'id'"):
            read_graph(file("1,2\n"), table)

    def test_a_column_of_ends_with_a_gap(self):
        pandas = pytest.importorskip("pandas")
        edges = pandas.DataFrame({"source": [1, None], "target": [2, 3]})
        for table, words in (
            (edges, r"row 1: the source is empty; .*edges\.dropna\(subset=\['source', 'target'\]\) drops"),
            (edges.astype("Int64"), "row 1"),
            (edges + 0.5, r"'source' is double; .* \.astype\('Int64'\)"),
        ):
            with pytest.raises(GraphFormatError, match=words):
                read_graph(table)
        assert read_graph(edges.astype("Int64").dropna()).names.tolist() == [1, 2]

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    def test_a_column_of_ends_that_no_integer_holds(self, tmp_path, value):
        parquet.write_table(pa.table({"source": [1.0, value], "target": [2, 3]}), tmp_path / "e.parquet")
        refused(tmp_path / "e.parquet", "column 'source' is double; names must be integers or text")
        with pytest.raises(GraphFormatError, match="column 'source' is double"):
            build_store(tmp_path / "e.parquet", tmp_path / "store")

    def test_a_column_of_names_that_are_none(self, file, tmp_path):
        parquet.write_table(pa.table({"node": [0.5, 1.5], "x": [1, 2]}), tmp_path / "x.parquet")
        refused(
            file("a,b\n"),
            "the column of names, 'node', is double; names must be integers or text",
            features=tmp_path / "x.parquet",
        )

    def test_what_an_encoder_refuses(self, file):
        encoder = FeatureEncoder().fit({"team": ["north"]})
        people = file("node,age\nann,1\nbob,2\n", "people.csv")
        refused(
            file("ann,bob\n"), "missing 'team'", features=people, encoder=encoder, error=MissingFeaturesError
        )

    def test_a_bare_matrix_needs_integer_names_within_it(self, file, tmp_path):
        np.save(tmp_path / "x.npy", np.eye(2))
        refused(file("ann,bob\n"), "with text names", features=tmp_path / "x.npy", error=MissingFeaturesError)
        refused(file("0,2\n"), "nodes 0 .. 1", features=tmp_path / "x.npy", error=MissingFeaturesError)
        refused(file("-1,0\n"), "nodes -1 .. 0", features=tmp_path / "x.npy", error=MissingFeaturesError)

    def test_a_matrix_of_the_wrong_shape_or_dtype(self, file, tmp_path):
        for wrong in (np.zeros(3), np.zeros((2, 2), complex), np.array([["a"], ["b"]])):
            np.save(tmp_path / "x.npy", wrong)
            refused(file("0,1\n"), "numbers of shape (n, f)", features=tmp_path / "x.npy")

    def test_npz_without_features(self, file, tmp_path):
        np.savez(tmp_path / "x.npz", a=np.eye(2), b=np.eye(2))
        refused(file("0,1\n"), "no array 'features'", "a, b", features=tmp_path / "x.npz")

    def test_a_row_with_the_wrong_number_of_fields(self, file):
        people = file("node,age,height\nann,31,170\nbob,45\n", "people.csv")
        refused(file("ann,bob\n"), ":3: expected 3 fields as on the first line, got 2", features=people)

    def test_tables_of_odd_shape(self, file):
        edges = file("ann,bob\n")
        refused(edges, "titles but no rows", features=file("node,age\n", "people.csv"))
        refused(edges, "has only one column", features=file("node\nann\nbob\n", "people.csv"))
        refused(edges, "both called 'age'", features=file("node,age,age\nann,1,2\n", "people.csv"))
        refused(edges, "contains no rows", features=file("# nothing\n", "people.csv"))
        refused(
            edges, ":3: a quote is opened", features=file('node,age\nann,"3"\nbob,"4\ncy,5\n', "people.csv")
        )

    def test_a_name_column_that_is_not_there(self, file):
        people = file("node,age\nann,1\n", "people.csv")
        for column in ("login", 7):
            refused(file("ann,bob\n"), error=SpineError, features=people, node_column=column)

    def test_a_missing_feature_file(self, file, tmp_path):
        refused(file("a,b\n"), "no such file", features=tmp_path / "gone.csv", error=MissingFileError)

    def test_a_truncated_gzip_of_features(self, file):
        rows = "\n".join(f"n{i},{i * 7919 % 1000}" for i in range(3000))
        packed = gzip.compress(f"node,x\n{rows}\n".encode())
        refused(file("n0,n1\n"), "gzip", features=file(packed[:-400], "x.csv.gz"))

    def test_a_very_long_row(self, file):
        refused(file("a,b\n"), ":1: a line of more than", features=file(b"x" * 40_000_000, "x.csv"))


def test_reading_does_not_import_what_it_does_not_need():
    heavy = "{'torch', 'numba', 'sklearn', 'networkx', 'pandas'}"
    code = f"import sys, spinegraph; spinegraph.read_graph; print({heavy} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
