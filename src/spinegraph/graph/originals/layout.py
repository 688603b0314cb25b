"""The one npz layout that every original is converted to."""

import io
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError

Arrays = dict[str, NDArray[Any]]

_LARGEST = 1 << 30  # bytes of one unpacked member


def pack(edges: NDArray[Any], num_nodes: int, features: sp.csr_array | None = None, **others: Any) -> Arrays:
    """Return a network as arrays: each undirected edge once, u < v, no loops; features as CSR parts.

    Examples
    --------
    >>> pack(np.array([[1, 0], [0, 1], [2, 2]]), 3)["edges"].tolist()
    [[0, 1]]
    """
    ends = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
    if len(ends) and (ends[:, 0].min() < 0 or ends[:, 1].max() >= num_nodes):
        raise GraphFormatError(f"an edge names a node outside 0..{num_nodes - 1}")
    ends = ends[ends[:, 0] != ends[:, 1]]
    keys = np.unique(ends[:, 0] * num_nodes + ends[:, 1])
    arrays: Arrays = {
        "edges": np.column_stack(np.divmod(keys, max(num_nodes, 1))).astype(np.int32),
        "num_nodes": np.array(num_nodes, dtype=np.int64),
    }
    if features is not None:
        matrix = sp.csr_array(features, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        arrays |= {"feat_data": matrix.data, "feat_indices": matrix.indices, "feat_indptr": matrix.indptr}
        arrays["feat_shape"] = np.array(matrix.shape, dtype=np.int64)
    return arrays | {key: np.asarray(value) for key, value in others.items() if value is not None}


def zip_member(path: Path, name: str) -> bytes:
    """Return one member of a zip file, in bounded memory and without writing it anywhere.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(Path(folder) / "a.zip", "w") as archive:
    ...         archive.writestr("one.txt", "1")
    ...     zip_member(Path(folder) / "a.zip", "one.txt")
    b'1'
    """
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_only(archive.namelist(), name, path)) as member:
            return _bounded(member.read(_LARGEST + 1), path, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as fault:
        raise GraphFormatError(
            f"{path}: not a readable zip file ({fault}); delete it and load again"
        ) from fault


def tar_member(path: Path, name: str) -> bytes:
    """Return one member of a gzipped tar file, in bounded memory and without writing it anywhere.

    Examples
    --------
    >>> tar_member(Path("none.tar.gz"), "one.txt")
    Traceback (most recent call last):
        ...
    FileNotFoundError: ...
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            member = archive.extractfile(_only(archive.getnames(), name, path))
            if member is None:
                raise GraphFormatError(f"{path}: {name} is not a plain file")
            return _bounded(member.read(_LARGEST + 1), path, name)
    except (tarfile.TarError, zlib.error, EOFError) as fault:
        raise GraphFormatError(
            f"{path}: not a readable tar file ({fault}); delete it and load again"
        ) from fault


def npy(data: bytes, place: str) -> NDArray[Any]:
    """Return the array of an npy file's bytes; pickled objects are refused.

    Examples
    --------
    >>> buffer = io.BytesIO()
    >>> np.save(buffer, np.arange(3))
    >>> npy(buffer.getvalue(), "a.npy").tolist()
    [0, 1, 2]
    """
    try:
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, EOFError, OSError) as fault:
        raise GraphFormatError(f"{place}: not a readable npy array ({fault})") from fault


def whole_numbers(text: bytes, place: str, columns: int) -> NDArray[np.int64]:
    r"""Return white-space separated integers as (rows, columns).

    Examples
    --------
    >>> whole_numbers(b"1 2\n3 4\n", "edges", 2).tolist()
    [[1, 2], [3, 4]]
    """
    try:
        return np.array(text.split(), dtype=np.int64).reshape(-1, columns)
    except (ValueError, OverflowError) as fault:
        raise GraphFormatError(f"{place}: expected {columns} integers a line ({fault})") from fault


def positions_of(ids: NDArray[np.int64], asked: NDArray[np.int64], place: str) -> NDArray[np.int64]:
    """Return where each asked id stands in the ascending ``ids``.

    Examples
    --------
    >>> positions_of(np.array([3, 5, 9]), np.array([[9, 3]]), "edges").tolist()
    [[2, 0]]
    """
    found = np.minimum(np.searchsorted(ids, asked), max(len(ids) - 1, 0))
    strange = asked[ids[found] != asked] if len(ids) else asked
    if strange.size:
        raise GraphFormatError(f"{place}: node {strange.flat[0]} is named here and nowhere described")
    return found


def _only(names: list[str], name: str, path: Path) -> str:
    """Return ``name`` if the archive has it."""
    if name not in names:
        raise GraphFormatError(f"{path}: {name} is not in the archive; it holds {', '.join(names[:5])} ...")
    return name


def _bounded(data: bytes, path: Path, name: str) -> bytes:
    """Refuse a member that unpacks to more than any original does."""
    if len(data) > _LARGEST:
        raise GraphFormatError(f"{path}: {name} unpacks to over {_LARGEST:,} bytes")
    return data


def field(record: Mapping[str, Any], key: str, place: str) -> Any:
    """Return a field of a JSON object.

    Examples
    --------
    >>> field({"nodes": []}, "nodes", "graph.json")
    []
    """
    if not isinstance(record, dict) or key not in record:
        raise GraphFormatError(f"{place}: the field {key!r} is missing")
    return record[key]
