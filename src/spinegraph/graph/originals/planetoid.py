"""Cora, Citeseer and Pubmed from the eight ``ind.<name>.*`` files of kimiyoung/planetoid."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.originals.layout import Arrays, pack, whole_numbers
from spinegraph.graph.originals.unpickle import read_pickle

PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_VALIDATION = 500


def convert(files: Mapping[str, Path]) -> Arrays:
    """Convert the files, given by part name, with the public split.

    ``allx`` and ``ally`` describe the first nodes, of which ``y`` counts the training ones; row i of ``tx``
    and ``ty`` describes node ``test.index[i]``. Nodes that neither describes (15 of Citeseer's) get no
    content and label -1.

    Examples
    --------
    >>> convert({part: Path(f"ind.cora.{part}") for part in PARTS})   # doctest: +SKIP
    {'edges': ...}
    """
    read = {part: read_pickle(files[part]) for part in PARTS[:-1]}
    for part in ("tx", "allx"):
        if not isinstance(read[part], sp.csr_array):
            raise GraphFormatError(f"{files[part]}: expected a CSR matrix")
    test = whole_numbers(files["test.index"].read_bytes(), str(files["test.index"]), 1)[:, 0]
    known, n = read["allx"].shape[0], int(test.max(initial=-1)) + 1
    if (
        len(test) != read["tx"].shape[0]
        or len(np.unique(test)) < len(test)
        or test.min(initial=known) < known
    ):
        raise GraphFormatError(
            f"{files['test.index']}: expected {read['tx'].shape[0]} different nodes from {known} up"
        )
    labels = np.full(n, -1, dtype=np.int64)
    labels[:known] = _classes(read["ally"], known, files["ally"])
    labels[test] = _classes(read["ty"], len(test), files["ty"])
    stacked = sp.vstack([read["allx"], read["tx"]], format="csr")
    rows = np.concatenate([np.arange(known), test])
    # Row i of the stack becomes row rows[i]; rows that nobody describes stay empty.
    place = sp.csr_array((np.ones(len(rows), np.float32), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
    train = len(_classes(read["y"], read["x"].shape[0], files["y"]))
    return pack(
        _edges(read["graph"], files["graph"]),
        n,
        place @ stacked.astype(np.float32),
        labels=labels,
        train_idx=np.arange(train),
        val_idx=np.arange(train, min(train + _VALIDATION, known)),
        test_idx=np.sort(test),
    )


def _classes(one_hot: Any, rows: int, path: Path) -> NDArray[np.int64]:
    """Return the class of each row, -1 where none is marked."""
    if not isinstance(one_hot, np.ndarray) or one_hot.ndim != 2 or len(one_hot) != rows:
        raise GraphFormatError(f"{path}: expected one row of class marks for each of {rows} nodes")
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1).astype(np.int64)


def _edges(graph: Any, path: Path) -> NDArray[np.int64]:
    """Return the listed neighbours as pairs (m, 2)."""
    if not isinstance(graph, dict) or not all(isinstance(others, list) for others in graph.values()):
        raise GraphFormatError(f"{path}: expected a dict of node to list of neighbours")
    pairs = [(node, other) for node, others in graph.items() for other in others]
    if not all(type(node) is int and type(other) is int for node, other in pairs):
        raise GraphFormatError(f"{path}: nodes must be integers")
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
