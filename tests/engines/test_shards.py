"""Vectors in shards: equal to those made at once, and never lost to a stop or a full disk."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from benchmarks.growth import memory_group

from command import ALONE, Forked, in_small_place
from spinegraph import SPINE, Embeddings, Graph, made, open_store, write_store
from spinegraph.engines.engine import embed_to_folder
from spinegraph.engines.shards import MANIFEST, ShardFolder, plan, run_digest
from spinegraph.errors import GraphFormatError, ParameterError

SETTINGS = {"dim": 8, "threads": 1}


@pytest.fixture(scope="module")
def featured():
    return SPINE(**SETTINGS).fit(made.random_graph(300, 4, features=12, seed=1))


@pytest.fixture(scope="module")
def bare():
    return SPINE(**SETTINGS).fit(made.random_graph(300, 4, seed=2))


def joined(folder):
    parts = [Embeddings.load(path) for path in sorted(folder.glob("*.parquet"))]
    return np.concatenate([part.names for part in parts]), np.concatenate([part.vectors for part in parts])


@pytest.mark.parametrize("kind", ["featured", "bare"])
def test_shards_hold_the_vectors_of_transform_in_graph_order(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    folder = embed_to_folder(model.generator_, model.graph_, tmp_path / "vectors", rows=64)
    names, vectors = joined(folder)
    expected = model.transform(model.graph_)
    assert names.tolist() == expected.names.tolist()
    np.testing.assert_allclose(vectors, expected.vectors, rtol=1e-4, atol=1e-5)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["is_complete"]
    assert [part["stop"] - part["start"] for part in manifest["parts"]] == [64] * 4 + [44]
    assert sorted(os.listdir(folder)) == [MANIFEST, *(f"part-{i:05d}.parquet" for i in range(5))]


def test_shards_cover_every_node_once():
    shards = plan(1000, rows=64)
    assert [position for shard in shards for position in range(shard.start, shard.stop)] == list(range(1000))
    with pytest.raises(ParameterError, match="at least 1"):
        plan(10, rows=0)


@pytest.mark.parametrize("kind", ["featured", "bare"])
def test_a_resumed_run_ends_with_the_same_bytes(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    whole = embed_to_folder(model.generator_, model.graph_, tmp_path / "whole", rows=64)
    done = []

    def stop_after_two(stage, count, total):
        done.append((stage, count))
        if (stage, count) == ("embedding nodes", 128):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_to_folder(model.generator_, model.graph_, tmp_path / "halted", rows=64, progress=stop_after_two)
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "halted").glob("*.parquet")}
    assert len(times) == 2
    resumed = embed_to_folder(model.generator_, model.graph_, tmp_path / "halted", rows=64)
    for path in whole.iterdir():
        assert (resumed / path.name).read_bytes() == path.read_bytes()
    assert all((resumed / name).stat().st_mtime_ns == then for name, then in times.items())


def test_a_part_that_was_cut_off_or_removed_is_made_again(featured, tmp_path):
    folder = embed_to_folder(featured.generator_, featured.graph_, tmp_path / "vectors", rows=64)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "part-00001.parquet").unlink()
    (folder / "part-00003.parquet").write_bytes(before["part-00003.parquet"][:100])
    embed_to_folder(featured.generator_, featured.graph_, folder, rows=64)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_damage_of_the_same_size_is_found_by_checksum(featured, tmp_path):
    folder = embed_to_folder(featured.generator_, featured.graph_, tmp_path / "vectors", rows=64)
    shards = ShardFolder.open(folder, run_digest(featured.generator_, featured.graph_), 300, 64)
    shards.verify()
    data = bytearray((folder / "part-00002.parquet").read_bytes())
    data[50] ^= 1
    (folder / "part-00002.parquet").write_bytes(data)
    with pytest.raises(GraphFormatError, match=r"part-00002.parquet: is damaged; remove it"):
        shards.verify()


def test_vectors_of_another_model_are_never_mixed_in(featured, bare, tmp_path):
    embed_to_folder(featured.generator_, featured.graph_, tmp_path / "vectors")
    with pytest.raises(ParameterError, match="is of another model, network or setting"):
        embed_to_folder(bare.generator_, bare.graph_, tmp_path / "vectors")


def test_other_files_are_left_alone(featured, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ParameterError, match=r"has 'note.txt' but no manifest.json"):
        embed_to_folder(featured.generator_, featured.graph_, tmp_path)
    with pytest.raises(ParameterError, match="is a file"):
        embed_to_folder(featured.generator_, featured.graph_, tmp_path / "note.txt")
    assert os.listdir(tmp_path) == ["note.txt"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "other"}', '{"format": "spinegraph.shards", "version": 9}']
)
def test_a_manifest_that_cannot_be_read_is_named(featured, tmp_path, text):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(GraphFormatError, match=r"manifest.json: cannot be read .* start again"):
        embed_to_folder(featured.generator_, featured.graph_, tmp_path)


@pytest.mark.parametrize(("field", "value"), [("rows", 0), ("rows", "six"), ("parts", {}), ("parts", [1])])
def test_a_manifest_with_a_wrong_value_is_named(tmp_path, field, value):
    ShardFolder.open(tmp_path, "run", num_nodes=4, rows=2)
    about = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**about, field: value}))
    with pytest.raises(GraphFormatError, match=rf"manifest.json: cannot be read .*{field} must be"):
        ShardFolder.open(tmp_path, "run", num_nodes=4, rows=2)


def test_names_of_two_kinds_are_refused_before_anything_is_made(featured, tmp_path):
    graph = featured.graph_.relabel([*range(100), *(f"n{i}" for i in range(200))])
    with pytest.raises(GraphFormatError, match="all text or all whole numbers; got 0, 1"):
        embed_to_folder(featured.generator_, graph, tmp_path / "out", rows=100)  # each shard is of one kind
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rows", [0, -1, 2.5, "2"])
def test_rows_are_a_whole_number(featured, tmp_path, rows):
    with pytest.raises(ParameterError, match="whole number of at least 1; got"):
        embed_to_folder(featured.generator_, featured.graph_, tmp_path / "out", rows=rows)


def test_the_run_is_the_same_for_any_number_of_threads(featured):
    other = SPINE(**SETTINGS | {"threads": 2}).fit(featured.graph_)
    assert run_digest(other.generator_, other.graph_) == run_digest(featured.generator_, featured.graph_)


LOOP = """
import sys
from spinegraph import SPINE
from spinegraph.engines.engine import embed_to_folder
model = SPINE.load(sys.argv[1])
embed_to_folder(model.generator_, model.graph_, sys.argv[2], rows=int(sys.argv[3]))
"""


def embed_saved(model, folder, rows):
    model = SPINE.load(model)
    embed_to_folder(model.generator_, model.graph_, folder, rows=rows)


def test_a_killed_run_is_resumed(featured, tmp_path):
    featured.save(tmp_path / "model")
    folder = tmp_path / "vectors"
    with Forked(embed_saved, tmp_path / "model", folder, 5) as run:
        while not (folder / "part-00003.parquet").exists():
            assert run.poll() is None
            time.sleep(0.01)
        run.kill()
    assert len(list(folder.glob("*.parquet"))) < 60
    embed_to_folder(featured.generator_, featured.graph_, folder, rows=5)
    np.testing.assert_allclose(joined(folder)[1], featured.embeddings_.vectors, rtol=1e-4, atol=1e-5)


def test_finished_shards_stay_valid_on_a_full_disk_and_the_run_is_resumed(featured, tmp_path):
    featured.save(tmp_path / "model")
    place = tmp_path / "small"
    place.mkdir()
    (tmp_path / "run.py").write_text(LOOP)
    count = f"ls {place}/vectors | wc -l"
    script = f'"$@" 2>&1 | tail -1; {count}; rm {place}/filler; "$@" && {count}'
    command = [sys.executable, tmp_path / "run.py", tmp_path / "model", place / "vectors", "50"]
    begin = f"head -c 340000 /dev/zero > {place}/filler; {script}"
    run = in_small_place(["sh", "-c", begin, "sh", *command], place, "size=360k")
    assert run.returncode == 0, run.stderr
    fault, first, second, *_ = run.stdout.splitlines()
    assert "No space left on device" in fault
    assert "part-0000" in fault or "manifest" in fault
    assert 1 < int(first) < int(second) == 7


NODES, COLUMNS, LIMIT = 20_000, 5_000, 330_000_000

EMBED = """
import sys, spinegraph as sg
from spinegraph.engines.engine import embed_to_folder
model, store, folder = sys.argv[1:]
embed_to_folder(sg.SPINE.load(model).generator_, sg.open_store(store), folder)
"""


@pytest.mark.slow
def test_a_store_beyond_the_memory_limit_is_embedded(tmp_path):
    try:
        group = memory_group(LIMIT)
    except OSError as fault:
        pytest.skip(f"no memory cgroup of our own here: {fault}")
    try:
        rng = np.random.default_rng(0)
        some = made.random_graph(500, 3, seed=1).with_features(rng.random((500, COLUMNS), dtype=np.float32))
        SPINE(dim=8, threads=1).fit(some).save(tmp_path / "model", data=False)
        # Neighbours are near each other, as in most numberings: else every look is a read from disk.
        places = np.arange(NODES)
        links = Graph.from_edges(np.concatenate([np.c_[places, (places + d) % NODES] for d in (1, 2, 5)]))
        features = rng.random((NODES, COLUMNS), dtype=np.float32)
        write_store(links.with_features(features), tmp_path / "store")
        size = 0
        for file in (tmp_path / "store").iterdir():
            size += file.stat().st_size
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert size > LIMIT
        run = subprocess.run(
            [sys.executable, "-c", EMBED, *(str(tmp_path / name) for name in ("model", "store", "vectors"))],
            env=ALONE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        )
        assert run.returncode == 0, run.stderr
    finally:
        group.rmdir()
    assert json.loads((tmp_path / "vectors" / MANIFEST).read_text())["is_complete"]
    found = Embeddings.load(tmp_path / "vectors" / "part-00000.parquet")
    model, graph = SPINE.load(tmp_path / "model"), open_store(tmp_path / "store")
    expected = model.transform(graph, range(50))
    np.testing.assert_allclose(found.vectors[:50], expected.vectors, rtol=1e-3, atol=1e-4)
