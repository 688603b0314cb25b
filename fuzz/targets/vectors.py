"""Embeddings as CSV, word2vec text, Parquet and npz."""

import tempfile
from pathlib import Path

import numpy as np
from fuzz.outcome import Target

from spinegraph.embeddings import Embeddings

_ENDINGS = (".csv", ".txt", ".parquet", ".npz")


def _seeds() -> list[bytes]:
    vectors = np.array([[0.5, -1], [2, 3e-9], [0, 7]], dtype=np.float32)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for place, ending in enumerate(_ENDINGS):
            for names in (["ann", "bob", "cy"], [3, 5, 7]):
                path = Path(folder, f"vectors{ending}")
                Embeddings(np.array(names), vectors).save(path)
                found.append(bytes([place]) + path.read_bytes())
    return found


SEEDS = _seeds()


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as vectors; what it reads must be whole and finite."""

    def target(data: bytes) -> None:
        path = folder / f"vectors{_ENDINGS[data[0] % 4 if data else 0]}"
        path.write_bytes(data[1:])
        found = Embeddings.load(path)
        assert len(found.names) == len(found.vectors)
        assert np.isfinite(found.vectors).all()

    return target
