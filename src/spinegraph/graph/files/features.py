"""Files of node features, and how they are joined to the nodes of a graph by name."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError, SpineError
from spinegraph.graph.align import Missing, align_features
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.files.feature_tables import NamedTable, read_parquet_table, read_text_table
from spinegraph.graph.files.graphml import node_names, node_table
from spinegraph.graph.files.graphml_xml import parse_graphml
from spinegraph.graph.files.network_npz import features_of, sparse_matrix, texts_of
from spinegraph.graph.files.npz import read_archive, read_npy
from spinegraph.graph.files.source import opened
from spinegraph.graph.files.text_layout import is_integer
from spinegraph.graph.names import NameIndex, as_array, concatenated

Extra = Literal["error", "isolated"]


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """Features as a file holds them: a matrix of numbers or an Arrow table, with or without names.

    Attributes
    ----------
    path : str
    data : array, CSR matrix or Arrow table (r, f)
    names : array (r,), optional
        Without names, row ``i`` belongs to node ``i``.
    feature_names : tuple of str (f,), optional
    line_of : callable
        Returns where row ``i`` stands, for messages.
    """

    path: str
    data: Any
    names: NDArray[Any] | None
    feature_names: tuple[str, ...] | None
    line_of: Callable[[int], str]


def read_features(path: str | os.PathLike[str], node_column: str | int | None = None) -> FeatureFile:
    """Read node features from npz, npy, CSV, TSV, Parquet or GraphML, plain or gzip.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file, np.eye(3)), file.flush()
    ...     read_features(file.name).data.shape
    (None, None)
    (3, 3)
    """
    with opened(path) as source:
        name = source.path
        if source.kind == "npy":
            return FeatureFile(
                name, read_npy(source.stream, name), None, None, lambda row: f"{name}: row {row}"
            )
        if source.kind == "npz":
            return _from_npz(read_archive(source.stream, name), name)
        if source.kind == "parquet":
            return _from_table(read_parquet_table(source.stream, name, node_column), name)
        if source.kind == "xml":
            found = parse_graphml(source.stream, name)
            table, names = node_table(found, name), node_names(found, name)
            return FeatureFile(
                name, table, names, tuple(table.column_names), lambda row: f"{name}: node {names[row]}"
            )
    return _from_table(read_text_table(path, node_column), name)


def join_features(
    contents: FileContents,
    found: FeatureFile,
    *,
    missing: Missing = "error",
    extra: Extra = "error",
    encoder: FeatureEncoder | None = None,
) -> FileContents:
    """Give the nodes of a file their features, by name.

    Parameters
    ----------
    contents : FileContents
    found : FeatureFile
    missing : {"error", "zero"}
        See :func:`~spinegraph.graph.align.align_features`.
    extra : {"error", "isolated"}
        With "isolated", a row that names no node makes one, without edges.
    encoder : FeatureEncoder, optional
        Encodes the features; one that is not fitted yet is fitted on them first.

    Examples
    --------
    >>> contents = FileContents("edges.csv", np.array([3, 5]), np.array([[0, 1]]))
    >>> rows = FeatureFile("rows.npz", np.array([[1.0], [2.0]]), np.array([5, 3]), None, str)
    >>> join_features(contents, rows).features.tolist()
    [[2.0], [1.0]]
    """
    if extra not in ("error", "isolated"):
        raise ParameterError(f"extra must be one of 'error', 'isolated'; got {extra!r}")
    if encoder is None and not is_plain(found.data):
        encoder = FeatureEncoder()
    matrix, feature_names, note = _encoded(found, encoder)
    if found.names is None:
        contents = _by_position(contents, matrix.shape[0], found.path)
        row_names = contents.names
    else:
        row_names = names_like(contents.names, found.names)
        if extra == "isolated":
            fresh = row_names[NameIndex(contents.names).find(row_names) < 0]
            contents = replace(contents, names=concatenated(contents.names, fresh))
    try:
        aligned = align_features(contents.names, row_names, matrix, missing)
    except MissingFeaturesError as fault:
        has_others = found.names is not None and (NameIndex(contents.names).find(row_names) < 0).any()
        way_out = "; pass extra='isolated' to make nodes without edges of such rows" if has_others else ""
        raise MissingFeaturesError(f"{found.path}: {fault}{way_out}") from None
    notes = (*contents.notes, f"features from {found.path}: {note}")
    return replace(contents, features=aligned, feature_names=feature_names, encoder=encoder, notes=notes)


def _from_npz(arrays: dict[str, NDArray[Any]], path: str) -> FeatureFile:
    names = texts_of(arrays, "names" if "names" in arrays else "node_ids", path)
    columns = texts_of(arrays, "feature_names", path)
    if "format" in arrays and "shape" in arrays:
        data = sparse_matrix(arrays, path).tocsr()
    else:
        data = features_of(arrays, path)
    if data is None:
        others = [key for key in arrays if key not in ("names", "node_ids", "feature_names")]
        if len(others) != 1:
            raise GraphFormatError(
                f"{path}: no array is called 'features'; "
                f"its arrays are {', '.join(sorted(arrays)[:10]) or 'none'}"
            )
        data = arrays[others[0]]
    titles = None if columns is None else tuple(map(str, columns))
    return FeatureFile(path, data, names, titles, lambda row: f"{path}: row {row}")


def _from_table(found: NamedTable, path: str) -> FeatureFile:
    names = found.names.to_numpy()
    titles = tuple(found.table.column_names) if found.has_titles else None
    return FeatureFile(path, found.table, names, titles, found.line_of)


def _encoded(found: FeatureFile, encoder: FeatureEncoder | None) -> tuple[Any, tuple[str, ...] | None, str]:
    """Return the matrix (r, f), its column names and a sentence on how it came about."""
    if encoder is None:
        is_table = isinstance(found.data, pa.Table)
        matrix = _table_as_matrix(found) if is_table else _checked_matrix(found)
        return matrix, found.feature_names, f"{matrix.shape[1]} columns of numbers, taken as they are"
    try:
        matrix = encoder.transform(found.data) if encoder.is_fitted else encoder.fit_transform(found.data)
    except SpineError as fault:
        raise type(fault)(f"{found.path}: {fault}") from fault
    return matrix, encoder.feature_names_, f"encoded into {matrix.shape[1]} columns by FeatureEncoder"


def is_plain(data: Any) -> bool:
    """Say whether features are numbers throughout, so that they can be taken as they are.

    Examples
    --------
    >>> is_plain(np.eye(2)), is_plain(pa.table({"team": ["north"]}))
    (True, False)
    """
    return not isinstance(data, pa.Table) or all(is_number(column.type) for column in data.columns)


def is_number(kind: Any) -> bool:
    """Say whether an Arrow type is one of numbers, or of true and false.

    Examples
    --------
    >>> is_number(pa.int8()), is_number(pa.string())
    (True, False)
    """
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _table_as_matrix(found: FeatureFile) -> NDArray[np.float32]:
    matrix = np.empty((found.data.num_rows, found.data.num_columns), np.float32)
    with np.errstate(over="ignore"):  # what overflows to infinity is named below
        for place, column in enumerate(found.data.columns):
            matrix[:, place] = column.cast(pa.float64(), safe=False).to_numpy()
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, place = wrong[0].tolist()
        value = found.data.column(place)[row].as_py()
        rule = "there is no value" if value is None else f"the value {value} is not a finite float32 number"
        raise GraphFormatError(
            f"{found.line_of(row)}: column {found.data.column_names[place]!r}: {rule}. Fill it, or pass "
            "encoder=FeatureEncoder(), which standardises numbers and marks gaps"
        )
    return matrix


def _checked_matrix(found: FeatureFile) -> Any:
    data = found.data
    if data.ndim != 2 or data.dtype.kind not in "biuf":
        raise GraphFormatError(
            f"{found.path}: features must be numbers of shape (n, f); got {data.dtype} {data.shape}"
        )
    values = data if isinstance(data, np.ndarray) else data.data
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(values.astype(np.float32))
    if not is_finite.all():
        if isinstance(data, np.ndarray):
            row, column = np.argwhere(~is_finite)[0].tolist()
        else:
            place = int(np.argmin(is_finite))
            row, column = int(np.searchsorted(data.indptr, place, side="right")) - 1, int(data.indices[place])
        raise GraphFormatError(
            f"{found.path}: features[{row}, {column}] is {data[row, column]}, "
            "not a finite float32 number; fill it first"
        )
    return data.astype(np.float32)


def _by_position(contents: FileContents, rows: int, path: str) -> FileContents:
    """Return the contents with nodes 0 .. rows-1: a bare matrix says how many nodes there are."""
    names = contents.names
    if names.dtype.kind not in "iu":
        raise MissingFeaturesError(
            f"{path}: rows without names cannot be joined to nodes named by text; "
            "save an npz with 'names' and 'features', or a table with a column of names"
        )
    if rows == 0 or int(names.min()) < 0 or int(names.max()) >= rows:
        raise MissingFeaturesError(
            f"{path}: {rows} rows without names are those of nodes 0 .. {rows - 1}, but the edges name nodes "
            f"{int(names.min())} .. {int(names.max())}; give every node a row, or the rows names"
        )
    return replace(contents, names=np.arange(rows), edges=names[contents.edges])


def names_like(names: NDArray[Any], row_names: NDArray[Any]) -> NDArray[Any]:
    """Return the names of a file's rows as integers or text, whichever the graph's names are.

    Where those are integers, a name that is none stays text.

    Examples
    --------
    >>> names_like(np.arange(2), np.array(["1", "0"], dtype=object))
    array([1, 0])
    """
    if names.dtype == object and row_names.dtype != object:
        return row_names.astype(str).astype(object)
    if names.dtype != object and row_names.dtype == object:
        return as_array([int(name) if is_integer(name) else name for name in row_names])
    return row_names
