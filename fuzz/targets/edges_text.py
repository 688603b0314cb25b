"""Edge lists as text, plain or gzipped, with every combination of the reader's options."""

import gzip
from pathlib import Path

from fuzz.outcome import Target

from spinegraph.graph.read import read_graph

# The first byte chooses the options.
_OPTIONS = (
    {},
    {"weighted": True},
    {"header": False, "names": "text"},
    {"num_nodes": 4},
    {"delimiter": " "},
    {"source": 0, "target": 1},
    {"directed": True, "reciprocal": "sum"},
    {"comments": ()},
)
SEEDS = [
    b'\0source,target,weight\nann,bob,1.5\n"Lee, Cy",bob,2\n',
    b"\0# note\n0 1\n1\t2\n\n% more\n2 3\n",
    b"\0010 1 0.5\n1 2 3e-2\n",
    b"\0022;3;x\r\n4;5;y\r\n",
    b"\0030 1\n1 2\n2 3\n",
    b"\4a  b\nb \t c\n",
    b"\5a,b,c,d\n1,2,3,4\n",
    b"\6a,b,1\nb,a,2\n",
    b"\7#,b\n007,7\n0x1f,2\n",
    b"\0\xef\xbb\xbffrom\tto\n\xc3\xa9\tb\n",
    b"\0" + gzip.compress(b"ann,bob\n"),
    b"\0" + b"1 2\n" * 50,
]


def begin(folder: Path) -> Target:
    """Return a function that reads bytes as an edge list."""
    path = folder / "edges.csv"

    def target(data: bytes) -> None:
        path.write_bytes(data[1:])
        graph = read_graph(path, **_OPTIONS[data[0] % len(_OPTIONS) if data else 0])
        assert len(graph.names) == len(graph) == len(graph.indptr) - 1 > 0

    return target
