"""npz archives that are sound as archives and hold anything: behind the checksums raw bytes rarely pass."""

import io
import zipfile
from pathlib import Path

import numpy as np
from fuzz.inputs import arrays
from fuzz.outcome import Target

from spinegraph.graph.read import read_graph

_KEYS = (
    *("edges", "num_nodes", "weights", "names", "node_ids", "labels", "features", "feature_names", "format"),
    *("shape", "data", "indices", "indptr", "row", "col"),
    *("feat_data", "feat_indices", "feat_indptr", "feat_shape"),
)
SEEDS = [bytes(range(i, i + 64)) for i in range(0, 192, 16)]


def begin(folder: Path) -> Target:
    """Return a function that draws arrays from bytes and reads them as a network and as features."""
    path, edges = folder / "arrays.npz", folder / "edges.csv"
    edges.write_text("0,1\n1,2\n")

    def target(data: bytes) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for key, array in arrays(data[1:], _KEYS).items():
                stream = io.BytesIO()
                np.save(stream, array)
                archive.writestr(f"{key}.npy", stream.getvalue())
        if data and data[0] % 2:
            read_graph(edges, path)
        else:
            read_graph(path)

    return target
