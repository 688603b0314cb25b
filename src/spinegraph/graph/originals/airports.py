"""Air traffic networks from leoribeiro/struc2vec: flights, and each airport's activity quartile."""

from pathlib import Path

import numpy as np

from spinegraph.graph.originals.layout import Arrays, pack, positions_of, whole_numbers


def convert(edges: Path, labels: Path) -> Arrays:
    r"""Convert an edge list and a label table with a header.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges, labels = Path(folder) / "edges", Path(folder) / "labels"
    ...     _ = edges.write_text("7 9\n"), labels.write_text("node label\n7 0\n9 3\n")
    ...     convert(edges, labels)["labels"].tolist()
    [0, 3]
    """
    _, _, body = labels.read_bytes().partition(b"\n")
    table = whole_numbers(body, str(labels), 2)
    table = table[np.argsort(table[:, 0], kind="stable")]
    flights = positions_of(table[:, 0], whole_numbers(edges.read_bytes(), str(edges), 2), str(edges))
    return pack(flights, len(table), labels=table[:, 1], node_ids=table[:, 0])
