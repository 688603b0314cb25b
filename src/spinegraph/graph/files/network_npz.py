"""Networks kept as npz: the layout of the package's data sets, and SciPy's sparse matrices."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.columns import EdgeOptions
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.files.npz import read_npz
from spinegraph.graph.files.source import shown_name
from spinegraph.graph.listing import ROOMY, matrix_entries

_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
_CSR_KEYS = ("feat_data", "feat_indices", "feat_indptr", "feat_shape")


def read_npz_network(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read a network from an npz file.

    Either the layout of the package's data sets: ``edges`` (m, 2) with ``num_nodes``; optionally ``weights``
    (m,), ``names`` or ``node_ids`` (n,), ``labels``, and features as a matrix ``features`` or in the CSR
    parts ``feat_data``, ``feat_indices``, ``feat_indptr``, ``feat_shape``. Or an adjacency matrix as
    ``scipy.sparse.save_npz`` writes it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, edges=np.array([[0, 1]]), num_nodes=3)
    ...     read_npz_network(file.name, EdgeOptions()).names.tolist()
    [0, 1, 2]
    """
    name, arrays = shown_name(path), read_npz(path)
    if "edges" in arrays:
        return _from_layout(arrays, name, options)
    if "format" in arrays and "shape" in arrays:
        return _from_matrix(sparse_matrix(arrays, name), name, options)
    raise GraphFormatError(
        f"{name}: holds neither 'edges' (m, 2) nor a SciPy sparse matrix; its arrays are "
        f"{', '.join(sorted(arrays)[:10]) or 'none'}"
    )


def sparse_matrix(arrays: Mapping[str, NDArray[Any]], path: str) -> Any:
    """Return the matrix of ``scipy.sparse.save_npz``, as CSR or COO, its indices checked.

    Examples
    --------
    >>> parts = {"format": np.array(b"coo"), "shape": np.array([2, 2]), "data": np.ones(1)}
    >>> sparse_matrix({**parts, "row": np.array([0]), "col": np.array([1])}, "tiny.npz").nnz
    1
    """
    found = arrays["format"].tolist()
    kind = found.decode("latin-1") if isinstance(found, bytes) else str(found)
    needed = _PARTS.get(kind)
    if needed is None:
        raise GraphFormatError(
            f"{path}: a sparse matrix in format {kind[:20]!r}; save matrix.tocsr() instead"
        )
    lacking = [key for key in ("data", *needed) if key not in arrays]
    if lacking:
        raise GraphFormatError(f"{path}: a sparse matrix without {', '.join(lacking)}; write it again")
    shape = arrays["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise GraphFormatError(f"{path}: the shape of a matrix is two numbers; got {shape.tolist()}")
    require_modest(max(shape.tolist()), arrays["data"].size, path)
    return _checked(arrays, kind, needed, tuple(shape.tolist()), path)


def features_of(arrays: Mapping[str, NDArray[Any]], path: str) -> Any:
    """Return the features (n, f) that an npz file holds, dense or CSR, or None.

    Examples
    --------
    >>> features_of({"features": np.eye(2)}, "tiny.npz").shape
    (2, 2)
    """
    present = [key for key in _CSR_KEYS if key in arrays]
    if not present:
        return arrays.get("features")
    if len(present) < len(_CSR_KEYS):
        raise GraphFormatError(
            f"{path}: features need {', '.join(_CSR_KEYS)}; found only {', '.join(present)}"
        )
    parts = {key.removeprefix("feat_"): arrays[key] for key in _CSR_KEYS}
    return sparse_matrix({**parts, "format": np.array("csr")}, path)


def require_modest(claimed: int, held: int, path: str) -> None:
    """Refuse a number of nodes or columns that is out of all proportion to what the file holds.

    Examples
    --------
    >>> require_modest(1000, 0, "tiny.npz")
    """
    if claimed > ROOMY and claimed > 64 * held:
        raise GraphFormatError(
            f"{path}: claims {claimed:,} nodes or columns but holds {held:,} entries; "
            "check num_nodes, the shape and the ids"
        )


def texts_of(arrays: Mapping[str, NDArray[Any]], key: str, path: str) -> NDArray[Any] | None:
    """Return an array of names, integers or text, or None where there is none.

    Examples
    --------
    >>> texts_of({"names": np.array(["ann", "bob"])}, "names", "tiny.npz")
    array(['ann', 'bob'], dtype=object)
    """
    if key not in arrays:
        return None
    found = arrays[key]
    if found.ndim != 1 or found.dtype.kind not in "iuUS":
        raise GraphFormatError(
            f"{path}: {key} must be a row of integers or text; got {found.dtype} {found.shape}"
        )
    if found.dtype.kind in "iu":
        return found
    try:
        return found.astype(str).astype(object)
    except (UnicodeDecodeError, ValueError) as fault:
        raise GraphFormatError(f"{path}: {key} holds text that cannot be decoded: {fault}") from fault


def _from_layout(arrays: Mapping[str, NDArray[Any]], path: str, options: EdgeOptions) -> FileContents:
    edges = arrays["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise GraphFormatError(
            f"{path}: edges must be integers of shape (m, 2); got {edges.dtype} {edges.shape}"
        )
    names = texts_of(arrays, "names" if "names" in arrays else "node_ids", path)
    n = _num_nodes(arrays, names, edges, path, options)
    _require_in_range(edges, n, path)
    labels = arrays.get("labels")
    if labels is not None and labels.shape[:1] != (n,):
        raise GraphFormatError(f"{path}: labels of shape {labels.shape} for {n} nodes; every node needs one")
    weights = arrays.get("weights") if options.weighted is not False else None
    if weights is None and options.weighted:
        raise GraphFormatError(f"{path}: weighted=True needs an array 'weights' (m,); there is none")
    columns = texts_of(arrays, "feature_names", path)
    return FileContents(
        path,
        _as_asked(np.arange(n) if names is None else names, options, path),
        edges,
        weights=weights,
        features=features_of(arrays, path),
        feature_names=None if columns is None else tuple(map(str, columns)),
        labels=labels,
        notes=(f"npz with {', '.join(sorted(arrays))}",),
    )


def _as_asked(names: NDArray[Any], options: EdgeOptions, path: str) -> NDArray[Any]:
    """Return names as integers or text, whichever the caller wants."""
    if options.names == "integer" and names.dtype == object:
        raise GraphFormatError(f"{path}: its names are text, {names[0]!r:.60} the first, but names='integer'")
    return names.astype(str).astype(object) if options.names == "text" else names


def _num_nodes(
    arrays: Mapping[str, NDArray[Any]],
    names: NDArray[Any] | None,
    edges: NDArray[Any],
    path: str,
    options: EdgeOptions,
) -> int:
    if "num_nodes" in arrays:
        found = arrays["num_nodes"]
        if found.size != 1 or found.dtype.kind not in "iu" or int(found.reshape(())) < 1:
            raise GraphFormatError(
                f"{path}: num_nodes must be one number, 1 or more; got {found.tolist()!r:.60}"
            )
        n = int(found.reshape(()))
    else:
        n = (
            len(names)
            if names is not None
            else options.num_nodes or (int(edges.max()) + 1 if len(edges) else 0)
        )
    if options.num_nodes not in (None, n):
        raise GraphFormatError(f"{path}: holds {n} nodes, but num_nodes={options.num_nodes} was asked for")
    if names is not None and len(names) != n:
        raise GraphFormatError(f"{path}: {len(names)} names for {n} nodes; every node needs one name")
    if n < 1:
        raise GraphFormatError(f"{path}: no edges, so no nodes; a graph has at least one node: add num_nodes")
    require_modest(n, len(names) if names is not None else len(edges), path)
    return n


def _require_in_range(edges: NDArray[Any], n: int, path: str) -> None:
    if len(edges) and (int(edges.min()) < 0 or int(edges.max()) >= n):
        row, side = np.argwhere((edges < 0) | (edges >= n))[0].tolist()
        raise GraphFormatError(
            f"{path}: edges[{row}, {side}] is {int(edges[row, side])}, out of range; ids are 0 .. {n - 1}"
        )


def _checked(
    arrays: Mapping[str, NDArray[Any]], kind: str, needed: tuple[str, ...], shape: tuple[int, int], path: str
) -> Any:
    parts = [arrays[key] for key in needed]
    data = arrays["data"]
    if (
        data.ndim != 1
        or data.dtype.kind not in "biuf"
        or any(p.ndim != 1 or p.dtype.kind not in "iu" for p in parts)
    ):
        raise GraphFormatError(
            f"{path}: the parts of a sparse matrix must be rows of numbers; write it again"
        )
    try:
        if kind == "coo":
            return sparse.coo_array((data, (parts[0], parts[1])), shape=shape)
        matrix = (sparse.csr_array if kind == "csr" else sparse.csc_array)((data, *parts), shape=shape)
        matrix.check_format(full_check=True)
        return matrix.tocsr()
    except (ValueError, TypeError, OverflowError, IndexError) as fault:
        raise GraphFormatError(
            f"{path}: the parts of the sparse matrix do not fit together: {fault}"
        ) from fault


def _from_matrix(matrix: Any, path: str, options: EdgeOptions) -> FileContents:
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphFormatError(
            f"{path}: an adjacency matrix is square; got {matrix.shape}. Features go in features=..."
        )
    n = matrix.shape[0]
    if options.num_nodes not in (None, n):
        raise GraphFormatError(f"{path}: holds {n} nodes, but num_nodes={options.num_nodes} was asked for")
    sources, targets, weights = matrix_entries(matrix, options.weighted)
    note = "every value is 1, so no weights" if weights is None else "weights are the matrix's values"
    if options.weighted is not None:
        note = f"weighted={options.weighted}"
    return FileContents(
        path,
        _as_asked(np.arange(n), options, path),
        np.column_stack((sources, targets)),
        weights=weights,
        directed=True,  # entries without their mirror are what makes a matrix directed
        notes=(f"SciPy sparse matrix; {note}",),
    )
