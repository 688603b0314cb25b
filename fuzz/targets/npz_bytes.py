"""npz and npy archives, byte by byte."""

import gzip
import io
from pathlib import Path

import numpy as np
from fuzz.inputs import network_or_features
from fuzz.outcome import Target
from scipy import sparse

_EDGES = np.array([[0, 1], [1, 2]])


def _made(first: bytes, write: object) -> bytes:
    stream = io.BytesIO()
    write(stream)  # type: ignore[operator]
    return first + stream.getvalue()


SEEDS = [
    _made(b"\0", lambda out: np.savez(out, edges=_EDGES, num_nodes=3)),
    _made(
        b"\0",
        lambda out: np.savez_compressed(out, edges=_EDGES, num_nodes=3, names=np.array(["a", "b", "c"])),
    ),
    _made(b"\0", lambda out: sparse.save_npz(out, sparse.eye_array(3, k=1, format="csr"))),
    _made(b"\1", lambda out: np.savez(out, features=np.eye(3))),
    _made(b"\1", lambda out: np.save(out, np.asfortranarray(np.eye(3)[:, :2]))),
    b"\0" + gzip.compress(_made(b"", lambda out: np.savez(out, edges=_EDGES, num_nodes=3))),
]


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as a network or as node features."""
    return network_or_features(folder, "arrays.npz")
