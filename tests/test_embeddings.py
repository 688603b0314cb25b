"""Embeddings in memory and on disk."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pyarrow import parquet

from spinegraph import Embeddings
from spinegraph import embeddings as embedding_files
from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError, UnknownNodeError

ENDINGS = [".npz", ".parquet", ".csv", ".txt"]


def some(names, d=3):
    vectors = np.random.default_rng(0).standard_normal((len(names), d)).astype(np.float32)
    return Embeddings(
        np.array(names) if len(names) and isinstance(names[0], int) else _objects(names), vectors
    )


def _objects(names):
    return np.fromiter(names, dtype=object, count=len(names))


def assert_same(found, expected):
    assert found.names.tolist() == expected.names.tolist()
    assert found.vectors.dtype == np.float32
    assert found.vectors.shape == expected.vectors.shape
    assert found.vectors.tobytes() == expected.vectors.tobytes()


def test_lookup_by_name_and_by_several_names():
    emb = some(["ann", "bob", "cy"])
    np.testing.assert_array_equal(emb["bob"], emb.vectors[1])
    np.testing.assert_array_equal(emb.of(["cy", "ann"]), emb.vectors[[2, 0]])
    assert ("bob" in emb, "dee" in emb, list(emb), len(emb), emb.dim) == (
        True,
        False,
        ["ann", "bob", "cy"],
        3,
        3,
    )


def test_numpy_sees_the_vectors_and_not_the_names():
    emb = some([7, 3, 5])
    np.testing.assert_array_equal(np.asarray(emb), emb.vectors)
    assert np.asarray(emb, dtype=np.float64).dtype == np.float64
    assert np.linalg.norm(emb) == np.linalg.norm(emb.vectors)
    assert not np.shares_memory(np.array(emb), emb.vectors)


def test_what_can_be_no_name_is_not_in_it():
    assert ["ann"] not in some(["ann"])


def test_an_unknown_name_is_named():
    with pytest.raises(UnknownNodeError, match="no vector for 'dee'"):
        some(["ann"])["dee"]


def test_integer_names_are_found_by_python_and_numpy_numbers():
    emb = some([5, 3])
    np.testing.assert_array_equal(emb[3], emb[np.int64(3)])


@pytest.mark.parametrize(
    ("vectors", "rule"),
    [
        (np.zeros(2), "one row per name"),
        (np.zeros((3, 2)), "one row per name"),
        (np.array([[0.0], [np.nan]]), "finite"),
        (np.array([[0.0], [np.inf]]), "finite"),
    ],
)
def test_wrong_vectors_are_refused(vectors, rule):
    with pytest.raises(GraphFormatError, match=rule):
        Embeddings(np.arange(2), vectors)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "names",
    [
        [0, 1, 2],
        [7, -(2**63), 2**63 - 1],
        ["ann", "bob", "日本"],
        ["007", "1", "x"],
        ["\ufeffann", "\ufeff"],
        [str(2**63), "1"],
        [],
    ],
    ids=["range", "integers", "text", "odd text", "byte-order marks", "beyond 64 bits", "none"],
)
def test_every_format_gives_back_names_and_vectors_to_the_bit(tmp_path, ending, names):
    emb = some(names)
    emb.save(tmp_path / f"emb{ending}")
    assert_same(Embeddings.load(tmp_path / f"emb{ending}"), emb)
    assert os.listdir(tmp_path) == [f"emb{ending}"]


@given(
    st.lists(st.text(max_size=5), min_size=1, max_size=5, unique=True),
    st.integers(1, 3).flatmap(
        lambda d: hnp.arrays(
            np.float32, (5, d), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
        )
    ),
    st.sampled_from(ENDINGS),
)
def test_any_text_comes_back_or_is_refused_before_anything_is_written(
    tmp_path_factory, names, vectors, ending
):
    path = tmp_path_factory.mktemp("any") / f"emb{ending}"
    emb = Embeddings(_objects(names), vectors[: len(names)])
    try:
        emb.save(path)
    except GraphFormatError:
        assert not os.listdir(path.parent)
        return
    found = Embeddings.load(path)
    assert list(map(str, found)) == list(emb)
    assert found.vectors.tobytes() == emb.vectors.tobytes()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("odd", [("a", 1), 1.5, True, b"x", "mixed"])
def test_names_that_are_neither_text_nor_integers_are_refused_on_saving(tmp_path, ending, odd):
    names = [1, "ann"] if odd == "mixed" else [odd, "ann"]
    with pytest.raises(GraphFormatError, match=r"all text or all whole numbers; got .*relabel"):
        Embeddings(_objects(names), np.eye(2)).save(tmp_path / f"emb{ending}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["two words", "", "tab\tbed", "line\nbreak"])
def test_word2vec_text_refuses_names_with_white_space(tmp_path, name):
    with pytest.raises(GraphFormatError, match=r"white space; got the names .*save as .csv"):
        some([name, "ann"]).save(tmp_path / "emb.txt")


def test_word2vec_text_is_what_other_tools_read(tmp_path):
    Embeddings(_objects(["ann", "bob"]), [[1, 0.5], [-2, 0.1]]).save(tmp_path / "emb.txt")
    assert (tmp_path / "emb.txt").read_text() == "2 2\nann 1 0.5\nbob -2 0.1\n"


def test_parquet_holds_one_list_column_that_other_tools_read(tmp_path):
    emb = some(["ann", "bob"])
    emb.save(tmp_path / "emb.parquet")
    table = parquet.read_table(tmp_path / "emb.parquet")
    assert table["name"].to_pylist() == ["ann", "bob"]
    np.testing.assert_array_equal(np.stack(table["vector"].to_numpy()), emb.vectors)


def test_npz_is_what_numpy_reads(tmp_path):
    emb = some(["ann", "bob"])
    emb.save(tmp_path / "emb.npz")
    with np.load(tmp_path / "emb.npz") as arrays:
        assert arrays["names"].tolist() == ["ann", "bob"]
        np.testing.assert_array_equal(arrays["vectors"], emb.vectors)


def test_a_failing_save_leaves_the_old_file(tmp_path):
    some(["ann", "bob"]).save(tmp_path / "emb.txt")
    before = (tmp_path / "emb.txt").read_bytes()
    with pytest.raises(GraphFormatError):
        some(["two words"]).save(tmp_path / "emb.txt")
    assert (tmp_path / "emb.txt").read_bytes() == before


def test_wrong_endings_and_missing_places_are_named(tmp_path):
    with pytest.raises(ParameterError, match=r"as .npz, .parquet, .csv, .txt; got '.pkl'"):
        some(["ann"]).save(tmp_path / "emb.pkl")
    with pytest.raises(MissingFileError, match="no folder"):
        some(["ann"]).save(tmp_path / "nowhere" / "emb.npz")
    with pytest.raises(MissingFileError, match="no such file"):
        Embeddings.load(tmp_path / "emb.npz")
    (tmp_path / "emb.pkl").write_bytes(b"")
    with pytest.raises(ParameterError, match="read from"):
        Embeddings.load(tmp_path / "emb.pkl")


def _npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _parquet(columns):
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()


def _claiming_npz():
    """An npz whose header claims a matrix of 2^60 rows."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2**60, 4)}
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("vectors.npy", header.getvalue())
        archive.writestr("names.npy", header.getvalue())
    return stream.getvalue()


def _vectors(d, values):
    return pa.FixedSizeListArray.from_arrays(pa.array(values, pa.float32()), d)


HOSTILE = {
    "empty.npz": b"",
    "junk.npz": b"junk",
    "one array.npz": _npz(names=np.arange(2)),
    "uneven.npz": _npz(names=np.arange(2), vectors=np.zeros((3, 1), np.float32)),
    "flat.npz": _npz(names=np.arange(2), vectors=np.zeros(2, np.float32)),
    "nan.npz": _npz(names=np.arange(1), vectors=np.array([[np.nan]])),
    "objects.npz": _npz(names=np.array([{}], dtype=object), vectors=np.zeros((1, 1))),
    "floats.npz": _npz(names=np.zeros(1), vectors=np.zeros((1, 1))),
    "words.npz": _npz(names=np.arange(1), vectors=np.array([["a"]])),
    "beyond unicode.npz": _npz(
        names=np.array([0x7FFFFFFF], dtype=np.uint32).view("<U1"), vectors=np.zeros((1, 1))
    ),
    "claims.npz": _claiming_npz(),
    "junk.parquet": b"PAR1junk",
    "columns.parquet": _parquet({"name": [1], "x": [1.0]}),
    "lists.parquet": _parquet({"name": [1], "vector": [[1.0]]}),
    "empty.parquet": _parquet({"name": pa.array([None], pa.int64()), "vector": _vectors(1, [0])}),
    "gap.parquet": _parquet({"name": [1], "vector": _vectors(2, [0, None])}),
    "nan.parquet": _parquet({"name": [1], "vector": _vectors(1, [np.nan])}),
    "dates.parquet": _parquet({"name": pa.array([1], pa.date32()), "vector": _vectors(1, [1])}),
    "no head.txt": b"ann 1 2\n",
    "claims.txt": b"1 999999999999999999\nann 1\n",
    "too few.txt": b"2 1\nann 1\n",
    "too many.txt": b"1 1\nann 1\nbob 2\n",
    "short row.txt": b"2 2\nann 1 2\nbob 1\n",
    "long row.txt": b"1 1\nann 1 2\n",
    "word.txt": b"1 1\nann x\n",
    "nan.txt": b"1 1\nann nan\n",
    "infinity.txt": b"1 1\nann inf\n",
    "latin.txt": b"1 1\n\xe9 1\n",
    "header alone.txt": b"1 1\n",
    "empty.csv": b"",
    "one column.csv": b"name\nann\n",
    "titles.csv": b"name,x\nann,1\n",
    "word.csv": b"name,0\nann,x\n",
    "gap.csv": b"name,0\nann,\n",
    "quote.csv": b'name,0\n"ann,1\n',
    "zeros.csv": b"\0" * 100,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_by_name(tmp_path, name):
    (tmp_path / name).write_bytes(HOSTILE[name])
    with pytest.raises(GraphFormatError):
        Embeddings.load(tmp_path / name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_cut_off_anywhere_is_refused(tmp_path, ending):
    path = tmp_path / f"emb{ending}"
    some([f"node-{number}" for number in range(4)]).save(path)
    content = path.read_bytes()
    for size in range(0, len(content), 3):
        if ending == ".csv" and content[size - 1 : size] == b"\n":
            continue  # the one format that does not say how much follows
        path.write_bytes(content[:size])
        with pytest.raises(GraphFormatError):
            Embeddings.load(path)


def test_a_parquet_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    some(["ann", "bob"]).save(tmp_path / "emb.parquet")
    monkeypatch.setattr(embedding_files, "expansion_limit", lambda size: 20)
    with pytest.raises(GraphFormatError, match="claims 24 bytes of vectors in a file of"):
        Embeddings.load(tmp_path / "emb.parquet")


def test_a_folder_is_no_file(tmp_path):
    Path(tmp_path / "emb.npz").mkdir()
    with pytest.raises(GraphFormatError, match="is a folder"):
        Embeddings.load(tmp_path / "emb.npz")
