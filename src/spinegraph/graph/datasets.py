"""The paper's networks, read from a local folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError
from spinegraph.graph.edge_files import EdgeOptions, npz_contents
from spinegraph.graph.files import read_npz
from spinegraph.graph.graph import Graph
from spinegraph.graph.read import build_graph

NAMES = (
    *("airports_brazil", "airports_europe", "amazon_photo", "citeseer", "cora", "ego_twitter", "fb686"),
    *("fb_ego_414", "ppi", "pubmed", "twitch_ENGB", "twitch_ES", "twitch_PTBR", "twitch_RU"),
)

_KNOWN_KEYS = {
    *("edges", "num_nodes", "feat_data", "feat_indices", "feat_indptr", "feat_shape", "feature_names"),
    *("features", "weights", "names", "labels", "train_idx", "val_idx", "test_idx", "node_ids"),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A network with what is known about its nodes.

    Attributes
    ----------
    name : str
    graph : Graph
        Features, if any, are CSR float32 and raw, as in the original.
    labels : int64 array (n,) with -1 = unknown, or uint8 array (n, c), or None
    train, val, test : int64 arrays of node positions, or None where no public split exists
    extras : dict of arrays
        Everything else in the file, by key (``graph_id``, ``views``, ``circle_names``, ...).

    Examples
    --------
    >>> import numpy as np
    >>> tiny = Dataset("tiny", Graph.from_edges(np.array([[0, 1]])), labels=np.array([0, -1]))
    >>> len(tiny.graph), tiny.train is None
    (2, True)
    """

    name: str
    graph: Graph
    labels: NDArray[Any] | None = None
    train: NDArray[np.int64] | None = None
    val: NDArray[np.int64] | None = None
    test: NDArray[np.int64] | None = None
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def load(name: str, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load one of the paper's networks by name, from ``<name>.npz`` in a local folder.

    Parameters
    ----------
    name : str
        One of ``NAMES``, such as ``"cora"``.
    folder : path, optional
        By default the environment variable ``SPINEGRAPH_DATA``.

    Examples
    --------
    >>> load("cora").graph.num_edges   # doctest: +SKIP
    5278
    """
    if name not in NAMES:
        raise ParameterError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    path = Path(folder or os.environ.get("SPINEGRAPH_DATA") or ".") / f"{name}.npz"
    if not path.is_file():
        raise MissingFileError(
            f"{path}: no such file; set SPINEGRAPH_DATA to its folder, or make it in a clone from the public "
            f"original: python -m paper.originals {name}"
        )
    return read_dataset(path, name)


def read_dataset(path: str | os.PathLike[str], name: str | None = None) -> Dataset:
    """Read an npz file of ``edges``, ``num_nodes`` and perhaps weights, names, features, labels and splits.

    Examples
    --------
    >>> read_dataset("cora.npz").labels.shape   # doctest: +SKIP
    (2708,)
    """
    arrays = read_npz(path)
    for key in ("edges", "num_nodes"):
        if key not in arrays:
            raise GraphFormatError(f"{path}: the key {key!r} is missing; found {', '.join(sorted(arrays))}")
    contents = npz_contents(arrays, str(path), EdgeOptions())
    graph, n = build_graph(contents), len(contents.names)
    labels = _labels(arrays.get("labels"), n, path)
    train, val, test = (_split(arrays, f"{split}_idx", n, path) for split in ("train", "val", "test"))
    extras = {key: value for key, value in arrays.items() if key not in _KNOWN_KEYS}
    return Dataset(name or Path(path).stem, graph, labels, train, val, test, extras)


def _labels(labels: NDArray[Any] | None, n: int, path: object) -> NDArray[Any] | None:
    """Return labels as int64 (n,) or uint8 (n, c)."""
    if labels is None:
        return None
    if labels.ndim not in (1, 2) or len(labels) != n or labels.dtype.kind not in "iub":
        rule = f"labels must be integers of shape ({n},) or ({n}, c)"
        raise GraphFormatError(f"{path}: {rule}; got {labels.dtype} {labels.shape}")
    return labels.astype(np.int64 if labels.ndim == 1 else np.uint8)


def _split(arrays: Mapping[str, NDArray[Any]], key: str, n: int, path: object) -> NDArray[np.int64] | None:
    """Return the node positions of a split, checked."""
    found = arrays.get(key)
    if found is None:
        return None
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise GraphFormatError(f"{path}: {key} must be integers (m,); got {found.dtype} {found.shape}")
    if len(found) and not (found.min() >= 0 and found.max() < n):
        raise GraphFormatError(f"{path}: {key} must lie in 0..{n - 1}; got {found.min()}..{found.max()}")
    return found.astype(np.int64)
