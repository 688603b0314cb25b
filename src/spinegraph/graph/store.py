"""A graph on disk: flat arrays under a JSON header, memory-mapped, so that it may be larger than memory.

::

    header.json            format, version, types, shapes and checksums of the files, fingerprint
    indptr.bin             int64 (n + 1,)   where each node's row begins
    indices.bin            int32 (nnz,)     neighbours, sorted within rows
    weights.bin            float32 (nnz,)   if edges have weights
    names.bin              int64 (n,)       whole numbers; or names_text.bin and names_ends.bin, text
    names_order.bin        int64 (n,)       positions by name, if names do not ascend
    features.bin           float32 (n, f)   or features_data, features_indices and features_indptr, sparse
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.atomic import make_folder, whole_folder
from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import NameIndex, first_few, is_range
from spinegraph.graph.store_check import check_content
from spinegraph.graph.store_files import map_array, write_array, write_pieces
from spinegraph.graph.store_header import HEADER, SPARSE, Entry, Header, is_store
from spinegraph.graph.store_names import ENCODING, StoredNameIndex, StoredNames

_NAMES_AT_A_TIME = 2**16


def write_store(graph: Graph, folder: str | Path) -> None:
    """Write a graph as a store, whole or not at all; a store that is there is replaced.

    Parameters
    ----------
    graph : Graph
        Its names are whole numbers throughout, or text throughout.
    folder : path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_store(Graph.from_edges([("ann", "bob")]), f"{place}/store")
    ...     open_store(f"{place}/store")
    Graph(2 nodes, 1 edge, names 'ann', 'bob')
    """
    folder = Path(folder)
    require_store_place(folder)
    make_folder(folder.resolve().parent)
    with whole_folder(folder) as partial:
        files = {
            "indptr.bin": write_array(partial / "indptr.bin", graph.indptr),
            "indices.bin": write_array(partial / "indices.bin", graph.indices),
        }
        if graph.weights is not None:
            files["weights.bin"] = write_array(partial / "weights.bin", graph.weights)
        kind, is_sorted = _write_names(graph.names, partial, files)
        width = write_features(graph.features, partial, files)
        columns = graph.feature_names
        Header(kind, is_sorted, width, columns, graph.report, fingerprint(graph), files).write(partial)


def open_store(folder: str | Path, *, verify: bool = False) -> Graph:
    """Return the graph of a store; its arrays are read-only memory maps, so opening takes no time.

    Parameters
    ----------
    folder : path
    verify : bool
        Read everything once and refuse what fails its checksum or is not a graph. Do so once with a store
        that comes from elsewhere: without it only the header and the sizes of files are checked.

    Raises
    ------
    GraphFormatError
        The store is cut off, damaged or of a newer version; the message names the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_store(Graph.from_edges([(0, 1), (1, 2)]), f"{place}/store")
    ...     open_store(f"{place}/store", verify=True).store.name
    'store'
    """
    folder = Path(folder)
    header = Header.read(folder)
    arrays = {name: map_array(folder / name, entry) for name, entry in header.files.items()}
    if verify:
        check_content(folder, header, arrays)
    graph = graph_of(header, arrays)
    kept = {"store": folder.resolve(), "known_fingerprint": header.fingerprint}
    for field, value in kept.items():
        object.__setattr__(graph, field, value)
    return graph


def graph_of(header: Header, arrays: dict[str, NDArray[Any]]) -> Graph:
    """Return the graph that the files of a header make up."""
    order = arrays.get("names_order.bin")
    names: Any
    index: NameIndex | StoredNameIndex
    if header.names == "text":
        names = StoredNames(arrays["names_text.bin"], arrays["names_ends.bin"])
        index = StoredNameIndex(names, order)
    else:
        names = arrays["names.bin"]
        index = NameIndex.known(names, order, covers_range=header.names == "range")
    graph = Graph._trusted(
        arrays["indptr.bin"],
        arrays["indices.bin"],
        arrays.get("weights.bin"),
        names,
        _features(header, arrays),
        header.feature_names,
        header.report,
    )
    object.__setattr__(graph, "_name_index", index)
    return graph


def require_store_place(folder: Path) -> None:
    """Refuse to put a store in place of anything but a store or an empty folder."""
    if not folder.exists() or is_store(folder):
        return
    if not folder.is_dir():
        raise ParameterError(f"{folder}: is a file; choose another name for the store's folder")
    others = sorted(file.name for file in folder.iterdir())
    if others:
        raise ParameterError(
            f"{folder}: holds {', '.join(map(repr, others[:3]))} and is no store (it has no {HEADER}); "
            "choose another folder, or empty this one"
        )


def _write_names(names: Any, folder: Path, files: dict[str, Entry]) -> tuple[str, bool]:
    """Write names and return what they are, and whether they ascend."""
    if names.dtype == np.int64:
        files["names.bin"] = write_array(folder / "names.bin", names)
        if is_range(names):
            return "range", True
        is_sorted = bool((names[1:] > names[:-1]).all())
        order = None if is_sorted else np.argsort(names)
    else:
        _write_text(names, folder, files)
        listed = names.tolist()
        is_sorted = all(one < other for one, other in pairwise(listed))
        order = None if is_sorted else np.array(sorted(range(len(listed)), key=listed.__getitem__))
    if order is not None:
        files["names_order.bin"] = write_array(folder / "names_order.bin", order)
    return "integer" if names.dtype == np.int64 else "text", is_sorted


def _write_text(names: Any, folder: Path, files: dict[str, Entry]) -> None:
    lengths: list[NDArray[np.int64]] = []

    def encoded() -> Iterator[NDArray[np.uint8]]:
        for start in range(0, len(names), _NAMES_AT_A_TIME):
            some = names[start : start + _NAMES_AT_A_TIME].tolist()
            other = [name for name in some if not isinstance(name, str)]
            if other:
                raise GraphFormatError(
                    f"in a store node names are all text or all whole numbers; got {first_few(other, 3)}. "
                    "Give the graph such names first: graph.relabel(map(str, graph.names))"
                )
            texts = [name.encode(*ENCODING) for name in some]
            lengths.append(np.fromiter(map(len, texts), np.int64, len(texts)))
            yield np.frombuffer(b"".join(texts), np.uint8)

    files["names_text.bin"] = write_pieces(folder / "names_text.bin", encoded(), np.uint8)
    ends = np.cumsum(np.concatenate(lengths))
    files["names_ends.bin"] = write_array(folder / "names_ends.bin", ends)


def write_features(features: Any, folder: Path, files: dict[str, Entry]) -> int | None:
    """Write features and return the number of columns, if there are any features."""
    if features is None:
        return None
    if not issparse(features):
        files["features.bin"] = write_array(folder / "features.bin", features)
        return int(features.shape[1])
    # One type for both, the one SciPy itself would choose, so that it need not copy them.
    index = np.int32 if max(features.nnz, *features.shape) < 2**31 else np.int64
    parts = (
        features.data,
        features.indices.astype(index, copy=False),
        features.indptr.astype(index, copy=False),
    )
    for name, part in zip(SPARSE, parts, strict=True):
        files[name] = write_array(folder / name, part)
    return int(features.shape[1])


def _features(header: Header, arrays: dict[str, NDArray[Any]]) -> Any:
    if header.num_features is None or "features.bin" in arrays:
        return arrays.get("features.bin")
    data, indices, indptr = (arrays[name] for name in SPARSE)
    if indptr[0] != 0 or indptr[-1] != len(data):
        raise GraphFormatError(
            "features_indptr.bin must rise from 0 to the number of values; build the store again"
        )
    return csr_array((data, indices, indptr), shape=(header.num_nodes, header.num_features))
