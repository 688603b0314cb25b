"""PPI: the GraphSAGE benchmark's 24 tissue networks, as packed with network ids by DGL.

That packing counts the few proteins outside a tissue's largest component to the first network of their split.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.originals.layout import Arrays, field, npy, pack, zip_member

_SPLITS = {"train": "train_idx", "valid": "val_idx", "test": "test_idx"}
_PARTS = ("feats", "labels", "graph_id")


def convert(path: Path) -> Arrays:
    """Convert ``ppi.zip``: nodes of the training networks first, then validation, then test.

    Examples
    --------
    >>> convert(Path("ppi.zip"))   # doctest: +SKIP
    {'edges': ...}
    """
    edges, features, labels, graph_ids, splits = [], [], [], [], {}
    start = networks = 0
    for split, key in _SPLITS.items():
        parts = {
            name: npy(zip_member(path, f"{split}_{name}.npy"), f"{path}: {split}_{name}") for name in _PARTS
        }
        n = len(parts["graph_id"])
        if (
            any(len(part) != n for part in parts.values())
            or parts["feats"].ndim != 2
            or parts["labels"].ndim != 2
        ):
            raise GraphFormatError(f"{path}: the {split} arrays do not describe the same {n} nodes")
        edges.append(
            _links(zip_member(path, f"{split}_graph.json"), f"{path}: {split}_graph.json", n) + start
        )
        ids = np.unique(parts["graph_id"], return_inverse=True)[1]
        graph_ids.append(ids + networks)
        features.append(parts["feats"])
        labels.append(parts["labels"])
        splits[key] = np.arange(start, start + n)
        start, networks = start + n, networks + int(ids.max(initial=-1)) + 1
    return pack(
        np.concatenate(edges),
        start,
        _marks(np.concatenate(features)),
        labels=np.concatenate(labels).astype(np.uint8),
        graph_id=np.concatenate(graph_ids).astype(np.int16),
        **splits,
    )


def _links(text: bytes, place: str, n: int) -> NDArray[np.int64]:
    """Read the links of a node-link JSON as (m, 2)."""
    try:
        graph: Any = json.loads(text)
        pairs = [(link["source"], link["target"]) for link in field(graph, "links", place)]
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    except (KeyError, TypeError, ValueError) as fault:
        raise GraphFormatError(f"{place}: not a node-link graph ({fault!r})") from fault
    if len(edges) and not (edges.min() >= 0 and edges.max() < n):
        raise GraphFormatError(f"{place}: links must lie in 0..{n - 1}")
    return edges


def _marks(values: NDArray[Any]) -> sp.csr_array:
    """Return content as 0/1 where it was standardised: of a column's two values the larger is 1."""
    least, most = values.min(axis=0), values.max(axis=0)
    if not ((values == least) | (values == most)).all():
        return sp.csr_array(values, dtype=np.float32)
    return sp.csr_array(((values == most) & (most > least)).astype(np.float32))
