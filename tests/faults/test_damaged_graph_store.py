"""A graph on disk and vectors in shards, cut and with flipped bits: as they were, or an error."""

import shutil
from collections import Counter

import numpy as np
import pytest

from injected import cuts, flips, outcome
from spinegraph import SPINE, Embeddings, made
from spinegraph.engines.shards import ShardFolder
from spinegraph.graph.store import open_store, write_store

COUNTS = [6, pytest.param(1500, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def graph():
    plain = made.barbell(6, bridge=3)
    features = np.random.default_rng(0).integers(0, 2, (len(plain), 5)).astype(np.float32)
    return plain.relabel([f"node {i}" for i in range(len(plain))]).with_features(features, list("abcde"))


def seen(graph):
    return (
        *(array.tobytes() for array in (graph.indptr, graph.indices)),
        graph.names.tolist(),
        np.asarray(
            graph.features.todense() if hasattr(graph.features, "todense") else graph.features
        ).tobytes(),
        graph.feature_names,
        graph.positions(graph.names.tolist()).tolist(),
    )


@pytest.mark.parametrize("count", COUNTS)
def test_a_verified_store_is_the_same_graph_or_an_error(graph, tmp_path, count, injected):
    write_store(graph, tmp_path / "store")
    expected, found = seen(open_store(tmp_path / "store", verify=True)), Counter()
    files = sorted(file.name for file in (tmp_path / "store").iterdir())
    assert len(files) > 5
    for name in files:
        path = tmp_path / "store" / name
        whole = path.read_bytes()
        for content in (*cuts(whole), *flips(whole, count)):
            path.write_bytes(content)
            found[outcome(lambda: seen(open_store(tmp_path / "store", verify=True)), expected)] += 1
        path.write_bytes(whole)
    assert set(found) <= {"right", "error"}, found
    injected("damaged graph stores", found.total())


def test_a_store_cut_short_is_noticed_without_reading_it(graph, tmp_path, injected):
    write_store(graph, tmp_path / "store")
    for path in sorted((tmp_path / "store").iterdir()):
        whole = path.read_bytes()
        for content in cuts(whole):
            path.write_bytes(content)
            assert outcome(lambda: open_store(tmp_path / "store"), None) == "error", path.name
            injected("damaged graph stores", 1)
        path.write_bytes(whole)


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_shards_are_the_same_vectors_or_an_error_or_made_again(graph, tmp_path, count, injected):
    model = SPINE(dim=4, k=6, threads=1).fit(graph)
    shards = ShardFolder.open(tmp_path / "whole", "run", len(graph), rows=6)
    shards.fill((shard, vectors_of(model, shard)) for shard in shards.missing())
    files = sorted(file.name for file in (tmp_path / "whole").iterdir())
    expected = read(tmp_path / "whole", model, graph)
    found = Counter()
    for name in files:
        whole = (tmp_path / "whole" / name).read_bytes()
        for content in (*cuts(whole), *flips(whole, count)):
            copy = shutil.copytree(tmp_path / "whole", tmp_path / "copy")
            (copy / name).write_bytes(content)
            found[outcome(lambda copy=copy: read(copy, model, graph), expected)] += 1
            shutil.rmtree(copy)
    assert set(found) <= {"right", "error"}, found
    injected("damaged shards", found.total())


def vectors_of(model, shard):
    some = slice(shard.start, shard.stop)
    return Embeddings(model.embeddings_.names[some], model.embeddings_.vectors[some], model.embeddings_.parts)


def read(folder, model, graph):
    """Resume a run, verify it and read all its vectors."""
    shards = ShardFolder.open(folder, "run", len(graph), rows=6)
    shards.fill((shard, vectors_of(model, shard)) for shard in shards.missing())
    shards.verify()
    parts = [Embeddings.load(folder / shard.file) for shard in shards.shards]
    names = [name for part in parts for name in part.names.tolist()]
    return names, np.concatenate([part.vectors for part in parts]).tobytes()
