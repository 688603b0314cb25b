"""Tables of node features and of labels as text; what is read once is encoded and encoded again."""

from pathlib import Path

import numpy as np
from fuzz.outcome import Target

from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import read_labels
from spinegraph.graph.read import read_graph

SEEDS = [
    b"\0node,age,team\n0,31,north\n1,45,\n2,1.5,south\n",
    b"\0id\tseen\tok\n0\t2020-01-01\ttrue\n1\t2021-02-03 04:05:06\tfalse\n2\t\t\n",
    b"\0000 1 2.5\n1 3 nan\n2 -4e9 0\n",
    b"\1node;label\n0;x\n1;y\n2;x\n",
    b"\1name,class\n0,1\n1,2\n",
    b'\0node,words\n0,"a, ""b"""\n1,\'c\'\n2,d\n',
    b"\2node,age\n0,1\n1,2\n7,3\n",
]


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as a table."""
    path, edges = folder / "table.csv", folder / "edges.csv"
    edges.write_text("0,1\n1,2\n")

    def target(data: bytes) -> None:
        path.write_bytes(data[1:])
        role = data[0] % 3 if data else 0
        if role == 1:
            assert len(read_labels(path, np.arange(3))) == 3
            return
        encoder = FeatureEncoder()
        first = read_graph(edges, path, encoder=encoder)
        again = read_graph(edges, path, encoder=encoder)
        assert first.features is not None
        assert again.features is not None
        assert first.features.shape == again.features.shape

    return target
