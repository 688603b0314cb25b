"""Stores built by sorting on disk: what read_graph reads, in bounded memory, whatever interrupts."""

import gzip
import os
import signal
import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet
from test_store import assert_same

from command import in_small_place
from spinegraph import FeatureEncoder, build_store, read_graph
from spinegraph.errors import (
    EdgeCleaningWarning,
    GraphFormatError,
    MissingFeaturesError,
    MissingFileError,
    ParameterError,
    SpineWarning,
)
from spinegraph.graph import read as store_build

whole_numbers = st.one_of(st.integers(0, 12), st.integers(-(2**40), 2**40))
words = st.text(alphabet="abcxyzéß日0", min_size=1, max_size=4)
weights = st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.25])


@pytest.fixture
def tiny_runs(monkeypatch):
    make_tiny(monkeypatch)


def make_tiny(monkeypatch):
    """Let pieces hold a few entries."""
    monkeypatch.setattr(store_build, "_ENTRIES", 5)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def outcome(function, *arguments, **options):
    """Return a graph and its warnings, or the kind of error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            graph = function(*arguments, **options)
        except (GraphFormatError, ParameterError) as fault:
            return None, type(fault)
    return graph, sorted(str(warning.message) for warning in caught)


@given(
    names=st.sampled_from([whole_numbers, words, st.integers(0, 9)]),
    data=st.data(),
    is_weighted=st.booleans(),
    kind=st.sampled_from(["csv", "txt", "csv.gz", "parquet"]),
    reciprocal=st.sampled_from(["error", "sum", "mean", "max"]),
    directed=st.booleans(),
)
def test_a_store_is_the_graph_that_is_read(
    tmp_path_factory, names, data, is_weighted, kind, reciprocal, directed
):
    listed = data.draw(st.lists(st.tuples(names, names, weights), min_size=1, max_size=40))
    place = tmp_path_factory.mktemp("place")
    path = place / f"edges.{kind}"
    width = 3 if is_weighted else 2
    if kind == "parquet":
        titles = ["source", "target", "weight"][:width]
        columns = list(zip(*listed, strict=True))[:width]
        parquet.write_table(pa.table(dict(zip(titles, columns, strict=True))), path, row_group_size=7)
    else:
        mark = " " if kind == "txt" else ","
        head = ["source", "target", "weight"][:width]
        text = "".join(mark.join(map(str, row[:width])) + "\n" for row in [head, *listed])
        path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    options = {"directed": True} if directed else {"reciprocal": reciprocal}
    expected, told = outcome(read_graph, path, **options)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        found, notes = outcome(build_store, path, place / "store", **options)
    assert told == notes
    if expected is not None:
        assert_same(found, expected)
        assert found.store == place / "store"
        assert sorted(os.listdir(place)) == [path.name, "store"]


@given(n=st.integers(1, 12), data=st.data())
def test_nodes_may_be_numbered_beyond_those_listed(tmp_path_factory, n, data):
    place = tmp_path_factory.mktemp("place")
    ids = st.integers(0, n - 1)
    listed = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=20))
    (place / "edges.txt").write_text("".join(f"{one} {other}\n" for one, other in listed))
    expected, told = outcome(read_graph, place / "edges.txt", num_nodes=n)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        found, notes = outcome(build_store, place / "edges.txt", place / "store", num_nodes=n)
    assert told == notes
    assert_same(found, expected)


def test_a_name_that_is_text_far_down_makes_all_names_text(tmp_path, tiny_runs):
    lines = [f"{i} {i + 1}" for i in range(100)] + ["7 ann"]
    (tmp_path / "edges.txt").write_text("\n".join(lines))
    found = build_store(tmp_path / "edges.txt", tmp_path / "store")
    assert_same(found, read_graph(tmp_path / "edges.txt"))
    assert found.names[0] == "0"


@pytest.fixture
def people(tmp_path):
    names = [f"p{i:02d}" for i in range(20)]
    lines = [f"{names[i]},{names[(i * 7 + 3) % 20]}" for i in range(20)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(lines))
    rng = np.random.default_rng(0)
    order = rng.permutation(20)
    table = {"node": [names[i] for i in order], "age": rng.random(20), "is_new": rng.random(20) < 0.5}
    parquet.write_table(pa.table(table), tmp_path / "people.parquet", row_group_size=6)
    return tmp_path, table


def test_features_are_joined_by_name_as_in_read_graph(people):
    place, table = people
    np.savez(place / "people.npz", names=np.array(table["node"]), features=np.random.rand(20, 3))
    for file in ("people.parquet", "people.npz"):
        found = build_store(place / "edges.csv", place / "store", features=place / file)
        assert_same(found, read_graph(place / "edges.csv", place / file))


def test_a_bare_matrix_says_how_many_nodes_there_are(tmp_path):
    from scipy.sparse import random_array, save_npz

    (tmp_path / "edges.txt").write_text("0 1\n1 5\n")
    np.save(tmp_path / "rows.npy", np.random.rand(8, 2))
    save_npz(tmp_path / "rows.npz", random_array((8, 30), density=0.2).tocsr())
    for file in ("rows.npy", "rows.npz"):
        found = build_store(tmp_path / "edges.txt", tmp_path / "store", features=tmp_path / file)
        assert len(found) == 8
        assert_same(found, read_graph(tmp_path / "edges.txt", tmp_path / file))


def test_rows_without_a_node_and_nodes_without_a_row_are_named(people):
    place, table = people
    some = {key: list(values)[:15] for key, values in table.items()}
    parquet.write_table(pa.table(some), place / "some.parquet")
    with pytest.warns(SpineWarning, match=r"5 of 20 nodes have no feature row and get zeros: 'p"):
        found = build_store(place / "edges.csv", place / "store", features=place / "some.parquet")
    assert (np.asarray(found.features)[[name in some["node"] for name in found.names]] != 0).any()
    assert not np.asarray(found.features)[[name not in some["node"] for name in found.names]].any()
    stranger = {key: [*values, "nobody" if isinstance(values[0], str) else 0] for key, values in some.items()}
    parquet.write_table(pa.table(stranger), place / "stranger.parquet")
    with pytest.warns(SpineWarning) as caught:
        build_store(place / "edges.csv", place / "store", features=place / "stranger.parquet")
    assert "1 feature rows match no node and are left out: 'nobody'" in str(caught[-1].message)
    twice = pa.concat_tables([pa.table(some), pa.table(some)])
    parquet.write_table(twice, place / "twice.parquet")
    with pytest.raises(MissingFeaturesError, match="given more than once"):
        build_store(place / "edges.csv", place / "store", features=place / "twice.parquet")
    parquet.write_table(pa.table({**table, "age": [float("nan")] * 20}), place / "nan.parquet")
    with pytest.raises(GraphFormatError, match=r"node 'p00': column 'age' has no finite float32 number"):
        build_store(place / "edges.csv", place / "store", features=place / "nan.parquet")


@pytest.mark.parametrize("kind", ["parquet", "csv", "npz"])
def test_features_of_other_nodes_are_refused_as_by_read_graph(people, kind):
    place, file = people[0], people[0] / f"others.{kind}"
    others = pa.table({"node": [f"q{i}" for i in range(9)], "age": np.arange(9.0)})
    if kind == "npz":
        np.savez(file, names=np.array(others["node"], str), features=np.ones((9, 2)))
    else:
        (csv.write_csv if kind == "csv" else parquet.write_table)(others, file)
    said = []
    for call in (read_graph, lambda edges, rows: build_store(edges, place / "store", features=rows)):
        with pytest.raises(
            MissingFeaturesError, match="none of its 9 names is a node of the edges"
        ) as caught:
            call(place / "edges.csv", file)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert not (place / "store").exists()


@pytest.mark.parametrize("names", ["integer", "text"])
def test_the_column_of_names_in_parquet_is_that_of_read_graph(tmp_path, names):
    ids = list(range(100, 111)) if names == "integer" else [f"p{i}" for i in range(100, 111)]
    pairs = pairwise(ids)
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    columns = {"age": list(range(11)), "person": ids, "pay": [2.0 * i for i in range(11)]}
    for table in (columns, {"": list(range(11)), **columns}):
        parquet.write_table(pa.table(table), tmp_path / "people.parquet")
        found = build_store(tmp_path / "edges.csv", tmp_path / "store", features=tmp_path / "people.parquet")
        assert found.feature_names == ("age", "pay")
        assert_same(found, read_graph(tmp_path / "edges.csv", tmp_path / "people.parquet"))


def test_columns_of_words_need_an_encoder(people):
    place, table = people
    mixed = pa.table({**table, "team": ["north", "south"] * 10})
    parquet.write_table(mixed, place / "mixed.parquet")
    with pytest.raises(MissingFeaturesError, match=r"mixed.parquet: 'team' have gaps or are not numbers"):
        build_store(place / "edges.csv", place / "store", features=place / "mixed.parquet")
    with pytest.raises(ParameterError, match="encoder must be fitted"):
        build_store(place / "edges.csv", place / "store", encoder=FeatureEncoder())
    encoder = FeatureEncoder().fit(mixed.drop_columns(["node"]))
    found = build_store(
        place / "edges.csv", place / "store", features=place / "mixed.parquet", encoder=encoder
    )
    assert_same(found, read_graph(place / "edges.csv", place / "mixed.parquet", encoder=encoder))


def test_other_kinds_of_files_are_read_and_written(tmp_path):
    np.savez(tmp_path / "net.npz", edges=np.array([[0, 1], [1, 2]]), num_nodes=4)
    assert_same(build_store(tmp_path / "net.npz", tmp_path / "store"), read_graph(tmp_path / "net.npz"))


def test_what_is_wrong_is_said_before_or_where_it_stands(tmp_path):
    (tmp_path / "edges.txt").write_text("1 2\n3\n")
    with pytest.raises(GraphFormatError, match=r"edges.txt:2: expected 'source target'"):
        build_store(tmp_path / "edges.txt", tmp_path / "store")
    with pytest.raises(ParameterError, match=r"memory must be at least 268,435,456 bytes"):
        build_store(tmp_path / "edges.txt", tmp_path / "store", memory=1000)
    with pytest.raises(ParameterError, match="a store is built from files"):
        build_store("-", tmp_path / "store")
    with pytest.raises(MissingFileError):
        build_store(tmp_path / "nowhere.txt", tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("shared", [2, 0])
def test_ids_of_two_kinds_are_warned_of_as_by_read_graph(tmp_path, shared):
    path = tmp_path / "edges.csv"
    path.write_text("user_id,movie_id\n1,2\n1,3\n2,1\n" if shared else "user_id,movie_id\n1,2\n1,3\n")
    said = outcome(read_graph, path)[1]
    assert outcome(build_store, path, tmp_path / "store")[1] == said
    assert [f"are read as the same nodes: {shared} of them" in one for one in said] == [True] * bool(shared)


def test_losses_are_warned_of(tmp_path):
    (tmp_path / "edges.txt").write_text("1 1 1\n1 2 0\n2 3 1\n")
    with pytest.warns(EdgeCleaningWarning, match="1 self-loop and 1 zero-weight listing dropped of 3"):
        build_store(tmp_path / "edges.txt", tmp_path / "store")


@pytest.mark.parametrize(
    "stage", ["reading edges", "sorting names", "sorting edges", "merging edges", "checksums"]
)
def test_a_stop_at_any_stage_leaves_nothing_behind(tmp_path, tiny_runs, stage):
    rng = np.random.default_rng(1)
    listed = rng.integers(0, 40, (120, 2))
    (tmp_path / "edges.txt").write_text("".join(f"n{one} n{other}\n" for one, other in listed))

    def stop(reached, done, total):
        if reached == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_store(tmp_path / "edges.txt", tmp_path / "store", progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = build_store(tmp_path / "edges.txt", tmp_path / "store")
        assert_same(found, read_graph(tmp_path / "edges.txt"))


def test_a_killed_build_leaves_no_store_and_the_next_one_is_whole(tmp_path):
    rng = np.random.default_rng(2)
    (tmp_path / "edges.txt").write_text("".join(f"{a} {b}\n" for a, b in rng.integers(0, 500, (4000, 2))))
    code = (
        "import sys, time, spinegraph\n"
        "wait = lambda stage, *_: (print(stage, flush=True), time.sleep(60 * (stage == 'merging edges')))\n"
        "spinegraph.build_store(sys.argv[1], sys.argv[2], progress=wait)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "edges.txt"), str(tmp_path / "store")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        while run.stdout.readline() != "merging edges\n":
            assert run.poll() is None
        run.send_signal(signal.SIGKILL)
    assert not (tmp_path / "store").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = build_store(tmp_path / "edges.txt", tmp_path / "store")
        assert_same(found, read_graph(tmp_path / "edges.txt"))


def test_a_build_on_a_full_disk_leaves_nothing_there(tmp_path):
    rng = np.random.default_rng(3)
    (tmp_path / "edges.txt").write_text("".join(f"{a} {b}\n" for a, b in rng.integers(0, 3000, (9000, 2))))
    place = tmp_path / "small"
    place.mkdir()
    code = "import sys, spinegraph; spinegraph.build_store(sys.argv[1], sys.argv[2])"
    build = [sys.executable, "-W", "ignore", "-c", code, tmp_path / "edges.txt", place / "store"]
    fill, empty = f"head -c 900000 /dev/zero > {place}/filler", f"rm {place}/filler"
    script = f'{fill}; "$@" 2>&1 | tail -1; ls -A {place}; {empty}; "$@" && ls -A {place}/store'
    run = in_small_place(["sh", "-c", script, "sh", *build], place, "size=1000k")
    assert run.returncode == 0, run.stdout + run.stderr
    fault, left, *files = run.stdout.splitlines()
    assert "cannot be written" in fault
    assert "No space left on device" in fault
    assert left == "filler"
    assert "header.json" in files


def test_features_on_a_full_disk_are_no_damaged_file(tmp_path):
    (tmp_path / "edges.csv").write_text("".join(f"{i},{i + 1}\n" for i in range(8999)))
    table = {"node": np.arange(9000)} | {f"x{i}": np.random.rand(9000) for i in range(40)}
    parquet.write_table(pa.table(table), tmp_path / "x.parquet")
    place = tmp_path / "small"
    place.mkdir()
    code = "import sys, spinegraph; spinegraph.build_store(sys.argv[1], sys.argv[2], features=sys.argv[3])"
    build = [sys.executable, "-c", code, tmp_path / "edges.csv", place / "store", tmp_path / "x.parquet"]
    script = f'"$@" 2>&1 | tail -1; ls -A {place}'
    run = in_small_place(["sh", "-c", script, "sh", *build], place, "size=1000k")
    assert run.returncode == 0, run.stdout + run.stderr
    (fault,) = run.stdout.splitlines()
    assert "OutputError" in fault
    assert "No space left on device" in fault
    assert "damaged" not in fault


def test_features_that_are_not_there_are_missed_before_anything_is_built(tmp_path):
    (tmp_path / "edges.csv").write_text("1,2\n")
    with pytest.raises(MissingFileError, match=r"nobody.csv': no such file"):
        build_store(tmp_path / "edges.csv", tmp_path / "store", features=tmp_path / "nobody.csv", num_nodes=3)
    with pytest.raises(ParameterError, match="a store is built from files"):
        build_store(tmp_path / "edges.csv", tmp_path / "store", features="-")
    assert [file.name for file in tmp_path.iterdir()] == ["edges.csv"]


@pytest.mark.slow
def test_memory_stays_within_what_was_asked_for(tmp_path):
    """The listed edges alone are as large as the bound, before they are sorted."""
    rng = np.random.default_rng(4)
    path, count = tmp_path / "edges.parquet", 16_000_000
    writer = parquet.ParquetWriter(path, pa.schema([("source", pa.int64()), ("target", pa.int64())]))
    for _ in range(8):
        ends = rng.integers(0, 10**6, (2, count // 8))
        writer.write_table(pa.table({"source": ends[0], "target": ends[1]}))
    writer.close()
    code = (
        "import sys, warnings, spinegraph as sg; from benchmarks.machine import resident\n"
        "warnings.simplefilter('ignore')\n"
        "sg.build_store(sys.argv[1], sys.argv[2], memory=2**28 * 2)\n"
        "print(resident('VmHWM'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, path, tmp_path / "store"], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) < 2**28 * 2 / 1e6 * 1.1
