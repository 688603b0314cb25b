"""Embeddings in memory and on disk."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
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


THREE = {"content": slice(0, 3), "place": slice(3, 5), "role": slice(5, 6)}


def parted(names=(7, 8, 9), parts=THREE, same_network=None):
    plain = some(list(names), d=max(part.stop for part in parts.values()))
    return Embeddings(plain.names, plain.vectors, parts, same_network)


def cosine(one, other):
    one, other = one.astype(np.float64), other.astype(np.float64)
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


@st.composite
def parts_of_vectors(draw, max_width=3):
    """Parts that follow one another, and their width together."""
    names = draw(st.lists(st.sampled_from(["content", "place", "role"]), min_size=1, unique=True))
    ends = np.cumsum([draw(st.integers(1, max_width)) for _ in names]).tolist()
    return {name: slice(start, end) for name, start, end in zip(names, [0, *ends], ends, strict=False)}, ends[
        -1
    ]


def assert_same(found, expected):
    assert found.names.tolist() == expected.names.tolist()
    assert found.parts == expected.parts
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


@given(parts_of_vectors(), st.sampled_from([True, False, None]), st.sampled_from(ENDINGS), st.data())
def test_every_format_keeps_parts(tmp_path_factory, parts_and_width, same_network, ending, data):
    parts, width = parts_and_width
    path = tmp_path_factory.mktemp("parts") / f"emb{ending}"
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    vectors = data.draw(hnp.arrays(np.float32, (2, width), elements=finite))
    emb = Embeddings(np.array([4, 5]), vectors, parts, same_network)
    emb.save(path)
    found = Embeddings.load(path)
    assert_same(found, emb)
    assert list(found.parts) == list(parts)
    assert found.same_network == (None if ending == ".csv" else same_network)
    for name in parts:
        assert found.part(name).vectors.tobytes() == emb.part(name).vectors.tobytes()
    Embeddings(emb.names, vectors).save(path)  # over it
    assert Embeddings.load(path).parts == {}
    assert os.listdir(path.parent) == [path.name]


def test_a_part_is_some_of_the_columns():
    emb = parted()
    place = emb.part("place")
    np.testing.assert_array_equal(place.vectors, emb.vectors[:, 3:5])
    assert (place.dim, place.parts, place[8].shape) == (2, {"place": slice(0, 2)}, (2,))
    with pytest.raises(ParameterError, match="no part 'x'; these vectors have content, place and role"):
        emb.part("x")
    with pytest.raises(ParameterError, match=r"got {'role': 2}; for weights pass weights={...}"):
        emb.weighted({"role": 2})
    with pytest.raises(ParameterError, match="no part 'role'; these vectors have content and place"):
        parted(parts={"content": slice(0, 2), "place": slice(2, 3)}).part("role")
    with pytest.raises(ParameterError, match="no part 'role'; these vectors have no parts"):
        some([1, 2]).part("role")


def test_what_is_shown_says_which_parts_there_are():
    assert repr(some([1, 2])) == "Embeddings(2 nodes, 3 dimensions)"
    assert repr(parted()) == "Embeddings(3 nodes, 6 dimensions: content 3, place 2, role 1)"
    elsewhere = parted(same_network=False)
    assert repr(elsewhere).endswith("place 2, role 1, place zero: another network)")
    assert "place zero: another network" in elsewhere._repr_html_()


@given(parts_of_vectors(), st.data())
def test_the_cosine_of_weighted_vectors_is_the_mean_of_the_parts_cosines(parts_and_width, data):
    parts, width = parts_and_width
    value = st.sampled_from([0.0, 1.0, -1.0, 3.0, 1e-30, 1e30])
    vectors = data.draw(hnp.arrays(np.float32, (2, width), elements=value))
    weights = {name: data.draw(st.sampled_from([0.5, 1.0, 4.0])) for name in parts}
    emb = Embeddings(np.arange(2), vectors, parts)
    # A part that is zero at both does not count; one that is zero at one node counts there as 0.
    total, at = 0.0, np.zeros(2)
    for name, columns in parts.items():
        one, other = vectors[:, columns]
        at += weights[name] * np.array([one.any(), other.any()])
        total += weights[name] * cosine(one, other) if one.any() and other.any() else 0
    found = emb.weighted(weights=weights)
    assert found.parts == parts
    if at.all():
        assert cosine(*found.vectors) == pytest.approx(total / np.sqrt(at.prod()), abs=1e-5)
    np.testing.assert_array_equal(found.vectors.any(axis=1), vectors.any(axis=1))
    for name in parts:
        assert_same(emb.weighted(name), emb.part(name))


def test_weights_default_to_one_and_are_checked():
    emb = parted()
    np.testing.assert_array_equal(
        emb.weighted().vectors, emb.weighted(weights=dict.fromkeys(THREE, 1)).vectors
    )
    assert not emb.weighted(weights={"place": 0}).part("place").vectors.any()
    for weights, rule in (
        ({"place": -1}, "to numbers >= 0"),
        ({"colour": 1}, "some of 'content', 'place', 'role'"),
        ({"content": 0, "place": 0, "role": 0}, "not all of them 0"),
        ("role", "some of"),
    ):
        with pytest.raises(ParameterError, match=rule):
            emb.weighted(weights=weights)
    two = parted(parts={"place": slice(0, 2), "role": slice(2, 3)})
    with pytest.raises(ParameterError, match="no part 'content'"):
        two.weighted(weights={"content": 1})
    with pytest.raises(ParameterError, match="not be 0 for all parts of these vectors"):
        two.weighted(weights={"place": 0, "role": 0})
    with pytest.raises(ParameterError, match="weights are for all parts together"):
        emb.weighted("role", {"role": 2})


def test_vectors_without_parts_are_weighted_as_they_are():
    emb = some([1, 2])
    assert emb.weighted() is emb
    with pytest.raises(ParameterError, match="no part 'role'"):
        emb.weighted("role")
    with pytest.raises(ParameterError, match="no part 'role'"):
        emb.weighted(weights={"role": 1})


@pytest.mark.parametrize(
    "parts",
    [
        {"content": slice(0, 3)},
        {"content": slice(0, 7)},
        {"content": slice(1, 6)},
        {"content": slice(0, 3), "role": slice(4, 6)},
        {"content": slice(0, 3), "place": slice(3, 3), "role": slice(3, 6)},
        {"content": slice(0, 6), "role": slice(6, 4)},
        {"colour": slice(0, 6)},
    ],
)
def test_parts_follow_one_another_to_the_end(parts):
    with pytest.raises(GraphFormatError, match="parts must be some of content, place, role"):
        Embeddings(np.arange(2), np.zeros((2, 6)), parts)


def _rewritten(path, parts):
    """Replace the description of parts in a file by another."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            kept = {name: arrays[name] for name in ("names", "vectors")}
        names, ends = ([*parts], [*parts.values()]) if isinstance(parts, dict) else (parts, parts)
        np.savez(path, **kept, part_names=np.array(names), part_ends=np.array(ends))
    elif path.suffix == ".parquet":
        table = parquet.read_table(path)
        about = {**table.schema.metadata, b"spinegraph.parts": json.dumps({"parts": parts})}
        parquet.write_table(table.replace_schema_metadata(about), path)
    else:
        path.with_name("emb.txt.parts.json").write_text(json.dumps({"parts": parts}))


@pytest.mark.parametrize("ending", [".npz", ".parquet", ".txt"])
@pytest.mark.parametrize(
    "parts",
    [
        {"content": 3, "place": 2, "role": 6},
        {"content": 3, "place": 5, "role": 7},
        {"content": 3, "place": 5},
        {"content": -1, "role": 6},
        {"content": 0.5, "role": 6},
        {"colour": 6},
        ["content"],
        "content",
        [[1, 2], [3, 4]],
    ],
)
def test_an_unreadable_description_of_parts_is_refused(tmp_path, ending, parts):
    path = tmp_path / f"emb{ending}"
    parted().save(path)
    _rewritten(path, {"content": 3, "place": 5, "role": 6})
    assert Embeddings.load(path).parts == THREE
    _rewritten(path, parts)
    with pytest.raises(GraphFormatError, match=r"emb\..*parts"):
        Embeddings.load(path)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"parts": null}', b"[" * 10_000, b" " * 10_000, b"\xff"]
)
def test_an_unreadable_file_of_parts_is_refused(tmp_path, text):
    parted().save(tmp_path / "emb.txt")
    (tmp_path / "emb.txt.parts.json").write_bytes(text)
    with pytest.raises(GraphFormatError, match=r"emb.txt.parts.json: .*damaged"):
        Embeddings.load(tmp_path / "emb.txt")


def test_titles_of_csv_name_the_parts(tmp_path):
    parted().save(tmp_path / "emb.csv")
    first = (tmp_path / "emb.csv").read_text().splitlines()[0]
    titles = first.replace('"', "").split(",")
    assert titles == ["name", "content_0", "content_1", "content_2", "place_0", "place_1", "role_0"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("odd", [("a", 1), 1.5, True, b"x", "mixed"])
def test_names_that_are_neither_text_nor_integers_are_refused_on_saving(tmp_path, ending, odd):
    names = [1, "ann"] if odd == "mixed" else [odd, "ann"]
    with pytest.raises(GraphFormatError, match=r"all text or all whole numbers; got .*relabel"):
        Embeddings(_objects(names), np.eye(2)).save(tmp_path / f"emb{ending}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["two words", "", "tab\tbed", "line\nbreak"])
def test_word2vec_text_refuses_names_with_white_space(tmp_path, name):
    with pytest.raises(GraphFormatError, match=r"white space, such as .*save as .csv"):
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
    with pytest.raises(MissingFileError, match=r"the folder .*nowhere does not exist"):
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
    "lists.parquet": _parquet({"name": [1, 2], "vector": [[1.0], [1.0, 2.0]]}),
    "no-width.parquet": _parquet(
        {"name": [1], "vector": [[]]},
    ),
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
    "mixed.csv": b"name,content_0,1\nann,1,2\n",
    "gap in a part.csv": b"name,content_0,content_2\nann,1,2\n",
    "a part twice.csv": b"name,role_0,place_0,role_1\nann,1,2,3\n",
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
        if ending == ".csv" and (content[size - 1 : size] == b"\n" or content[:size].count(b",") % 3 == 0):
            continue  # the one format that does not say how much follows
        path.write_bytes(content[:size])
        with pytest.raises(GraphFormatError):
            Embeddings.load(path)


def test_files_that_people_changed_on_purpose_load(tmp_path):
    found = some(["ann", "bob", "cy"])
    found.save(tmp_path / "emb.csv")
    text = (tmp_path / "emb.csv").read_text().rstrip("\n")
    (tmp_path / "emb.csv").write_text(text)
    assert Embeddings.load(tmp_path / "emb.csv").names.tolist() == ["ann", "bob", "cy"]
    found.save(tmp_path / "emb.parquet")
    arrow = parquet.read_table(tmp_path / "emb.parquet")
    frame = pd.read_parquet(tmp_path / "emb.parquet")
    wide = frame.assign(vector=[row.astype(float) for row in frame["vector"]], label="x")
    for changed in (
        arrow.slice(1),
        pa.Table.from_pandas(frame.iloc[1:]),
        pa.Table.from_pandas(wide.iloc[1:]),
    ):
        parquet.write_table(changed, tmp_path / "changed.parquet")
        loaded = Embeddings.load(tmp_path / "changed.parquet")
        assert loaded.names.tolist() == ["bob", "cy"]
        assert np.array_equal(loaded.vectors, found.vectors[1:])
    pl.read_parquet(tmp_path / "emb.parquet").head(2).write_parquet(tmp_path / "changed.parquet")
    assert Embeddings.load(tmp_path / "changed.parquet").names.tolist() == ["ann", "bob"]


def test_a_parquet_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    some(["ann", "bob"]).save(tmp_path / "emb.parquet")
    monkeypatch.setattr(embedding_files, "expansion_limit", lambda size: 20)
    with pytest.raises(GraphFormatError, match="claims 24 bytes of vectors in a file of"):
        Embeddings.load(tmp_path / "emb.parquet")


def test_a_folder_is_no_file(tmp_path):
    Path(tmp_path / "emb.npz").mkdir()
    with pytest.raises(GraphFormatError, match="is a folder"):
        Embeddings.load(tmp_path / "emb.npz")
