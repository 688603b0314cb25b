"""The restricted reader of the Planetoid files' pickles: arrays come out, or an error, and nothing runs."""

import pickle
from pathlib import Path

import numpy as np
from fuzz.outcome import Target
from paper.originals import read_pickle
from scipy import sparse

SEEDS = [
    pickle.dumps(np.arange(6, dtype=np.float32).reshape(2, 3), protocol=2),
    pickle.dumps(sparse.csr_matrix(np.eye(2)), protocol=2),
    pickle.dumps({0: [1, 2], 1: [0]}, protocol=2),
    b"cos\nsystem\n(S'true'\ntR.",
]


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as an old pickle; only plain values may come out."""
    path = folder / "ind.tiny.x"

    def target(data: bytes) -> None:
        path.write_bytes(data)
        found = read_pickle(path)
        assert not callable(found), type(found)

    return target
