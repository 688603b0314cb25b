"""A store larger than the memory that a process may use is embedded all the same."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from benchmarks.growth import memory_group

from command import ALONE
from spinegraph import SPINE, Embeddings, Graph, made, open_store, write_store
from spinegraph.engines.shards import MANIFEST

NODES, COLUMNS, LIMIT = 20_000, 5_000, 330_000_000

EMBED = """
import sys, spinegraph as sg
from spinegraph.engines.local import embed_to_folder
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
        SPINE(dim=8, steps=5, threads=1).fit(some).save(tmp_path / "model", data=False)
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
