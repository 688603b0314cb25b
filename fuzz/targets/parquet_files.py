"""Parquet as edges, as node features and as labels."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
from fuzz.outcome import Target
from pyarrow import parquet

from spinegraph.graph.feature_files import read_labels
from spinegraph.graph.read import read_graph


def _written(first: bytes, **columns: object) -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream, compression="none")
    return first + stream.getvalue()


SEEDS = [
    _written(b"\0", source=[1, 2], target=[2, 3]),
    _written(b"\0", source=["a", "b"], target=["b", "c"], weight=[1.0, 2.0]),
    _written(b"\0", source=pa.array(["a", "b"]).dictionary_encode(), target=["b", "c"]),
    _written(b"\1", node=[0, 1, 2], age=[1, None, 3], team=["a", None, "b"]),
    _written(
        b"\1", node=["0", "1", "2"], seen=pa.array([1, 2, 3], pa.timestamp("s")), ok=[True, False, None]
    ),
    _written(b"\2", node=[0, 1, 2], label=["x", "y", "x"]),
]


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as Parquet, the first byte choosing what of."""
    path, edges = folder / "table.parquet", folder / "edges.csv"
    edges.write_text("0,1\n1,2\n")

    def target(data: bytes) -> None:
        path.write_bytes(data[1:])
        role = data[0] % 3 if data else 0
        if role == 0:
            read_graph(path)
        elif role == 1:
            read_graph(edges, path)
        else:
            read_labels(path, np.arange(3))

    return target
