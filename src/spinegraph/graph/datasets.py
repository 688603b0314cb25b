"""The paper's networks: from a local folder, or converted from the public originals and cached.

A network is looked for in the folder that ``SPINEGRAPH_DATA`` names, then in the cache
(:func:`cache_folder`), and is downloaded into the cache when it is in neither. What is checked then:
:func:`spinegraph.graph.originals.convert_original`.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFileError, ParameterError
from spinegraph.graph.edge_files import features_of
from spinegraph.graph.files import read_npz
from spinegraph.graph.graph import Graph
from spinegraph.graph.originals import SOURCES, Progress, convert_original

NAMES = tuple(sorted(SOURCES))

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
        Features, where there are any, are CSR float32 and as raw as the original has them.
    labels : int64 array (n,) with -1 = unknown, or uint8 array (n, c), or None
    train, val, test : int64 arrays of node positions, or None where no public split exists
    extras : dict of arrays
        Whatever else the file holds, under its own key (``graph_id``, ``views``, ``circle_names`` ...).

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

    @property
    def has_approximate_labels(self) -> bool:
        """Say whether the labels were re-derived: compare methods on them, never quote the scores."""
        return bool(self.extras.get("labels_are_approximate", False))


def load(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """Load one of the paper's networks by name.

    Parameters
    ----------
    name : str
        One of ``NAMES``, such as ``"cora"``.
    folder : path, optional
        Look here and nowhere else for ``<name>.npz``.
    download : bool
        Whether to fetch the public original when the network is in no local folder.
    progress : callable(file, bytes so far, bytes in all or None), optional

    Examples
    --------
    >>> load("cora").graph.num_edges   # doctest: +SKIP
    5278
    """
    if name not in NAMES:
        raise ParameterError(f"name must be one of {', '.join(NAMES)}; got {name!r}")
    path = _find(name, folder)
    if path is None:
        if not download:
            raise MissingFileError(
                f"{name}.npz is neither in SPINEGRAPH_DATA (now {os.environ.get('SPINEGRAPH_DATA')!r}) "
                f"nor in {cache_folder()}; allow the download, or set SPINEGRAPH_DATA"
            )
        path = convert_original(name, cache_folder(), progress)
    return read_dataset(path, name)


def load_ppi(
    folder: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    progress: Progress | None = None,
) -> list[Dataset]:
    """Load PPI as its 24 tissue networks, in order of id: 20 to train on, 2 to validate, 2 to test.

    A tissue's whole node set is its ``train``, ``val`` or ``test``; the other two are empty. The
    parameters are those of :func:`load`.

    Examples
    --------
    >>> len(load_ppi())   # doctest: +SKIP
    24
    """
    return split_by_graph(load("ppi", folder, download=download, progress=progress))


def split_by_graph(dataset: Dataset) -> list[Dataset]:
    """Split a data set that holds several networks into one per value of ``extras["graph_id"]``.

    Examples
    --------
    >>> import numpy as np
    >>> both = Graph.from_edges(np.array([[0, 1], [2, 3]]))
    >>> parts = split_by_graph(Dataset("two", both, extras={"graph_id": np.array([0, 0, 1, 1])}))
    >>> [part.graph.num_edges for part in parts]
    [1, 1]
    """
    graph, extras = dataset.graph, dict(dataset.extras)
    if "graph_id" not in extras:
        raise ParameterError(f"{dataset.name} is one network: it has no graph_id")
    graph_id, titles = extras.pop("graph_id"), extras.pop("graph_names", None)
    splits = {"train": dataset.train, "val": dataset.val, "test": dataset.test}
    parts = []
    for index, number in enumerate(np.unique(graph_id)):
        members = np.flatnonzero(graph_id == number)
        title = f"{dataset.name}/{number if titles is None else titles[index]}"
        parts.append(
            Dataset(
                title,
                graph.subgraph(graph.names[members]),
                labels=None if dataset.labels is None else dataset.labels[members],
                **{
                    split: None if chosen is None else np.flatnonzero(np.isin(members, chosen))
                    for split, chosen in splits.items()
                },
                extras={
                    key: value[members] if value.shape[:1] == (len(graph),) else value
                    for key, value in extras.items()
                },
            )
        )
    return parts


def read_dataset(path: str | os.PathLike[str], name: str | None = None) -> Dataset:
    """Read one npz file of the layout: ``edges``, ``num_nodes``, weights, names, features, labels, splits.

    Examples
    --------
    >>> read_dataset("cora.npz").labels.shape   # doctest: +SKIP
    (2708,)
    """
    arrays = read_npz(path)
    for key in ("edges", "num_nodes"):
        if key not in arrays:
            raise GraphFormatError(f"{path}: the key {key!r} is missing; found {', '.join(sorted(arrays))}")
    if arrays["num_nodes"].shape != () or arrays["num_nodes"].dtype.kind not in "iu":
        raise GraphFormatError(f"{path}: num_nodes must be one integer; got {arrays['num_nodes']!r}")
    num_nodes = int(arrays["num_nodes"])
    columns, features = arrays.get("feature_names"), features_of(arrays, str(path))
    try:
        graph = Graph.from_edges(
            arrays["edges"],
            num_nodes=num_nodes,
            weights=arrays.get("weights"),
            names=arrays.get("names", arrays.get("node_ids")),
            features=features,
            feature_names=None if columns is None else tuple(map(str, columns.tolist())),
        )
    except GraphFormatError as fault:
        raise GraphFormatError(f"{path}: {fault}") from fault
    return Dataset(
        name or Path(path).stem,
        graph,
        labels=_labels(arrays.get("labels"), num_nodes, path),
        **{split: _split(arrays, f"{split}_idx", num_nodes, path) for split in ("train", "val", "test")},
        extras={key: value for key, value in arrays.items() if key not in _KNOWN_KEYS},
    )


def cache_folder() -> Path:
    """Return the folder that downloads are kept in: ``SPINEGRAPH_CACHE``, or the system's usual place.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    if chosen := os.environ.get("SPINEGRAPH_CACHE"):
        return Path(chosen).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "spinegraph"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "spinegraph"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "spinegraph"


def _find(name: str, folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the file of ``name``, or None where it is in no local folder."""
    if folder is not None:
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            raise MissingFileError(f"{path}: no such file; leave folder out to look in SPINEGRAPH_DATA")
        return path
    data = os.environ.get("SPINEGRAPH_DATA")
    places = [Path(data), cache_folder()] if data else [cache_folder()]
    return next((place / f"{name}.npz" for place in places if (place / f"{name}.npz").is_file()), None)


def _labels(labels: NDArray[Any] | None, n: int, path: object) -> NDArray[Any] | None:
    """Return labels as int64 (n,) or uint8 (n, c)."""
    if labels is None:
        return None
    if labels.ndim not in (1, 2) or len(labels) != n or labels.dtype.kind not in "iub":
        raise GraphFormatError(
            f"{path}: labels must be integers of shape ({n},) or ({n}, c); got {labels.dtype} {labels.shape}"
        )
    return labels.astype(np.int64 if labels.ndim == 1 else np.uint8)


def _split(arrays: Mapping[str, NDArray[Any]], key: str, n: int, path: object) -> NDArray[np.int64] | None:
    """Return a split's node positions, checked."""
    found = arrays.get(key)
    if found is None:
        return None
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise GraphFormatError(f"{path}: {key} must be one row of integers; got {found.dtype} {found.shape}")
    if len(found) and not (found.min() >= 0 and found.max() < n):
        raise GraphFormatError(f"{path}: {key} must lie in 0..{n - 1}; got {found.min()}..{found.max()}")
    return found.astype(np.int64)
