"""Reads node features and labels, and joins them to a graph's nodes by name."""

import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError, SpineWarning
from spinegraph.graph.edge_files import (
    NUMBER,
    FileContents,
    connection,
    excerpt,
    features_of,
    graphml_names,
    is_integer,
    letters,
    names_of,
    open_parquet,
    open_table,
    open_text,
    parse_graphml,
    require_distinct,
    sparse_matrix,
)
from spinegraph.graph.edges import as_features, stacked
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import Opened, naming, opened, read_archive, read_npy
from spinegraph.graph.names import NameIndex, as_array, as_names, concatenated, first_few
from spinegraph.graph.tables import as_table, is_text

Missing = Literal["error", "zero"]
Source = str | os.PathLike[str]

MAX_ROW = 2**24
_NAME_TITLES = ("node", "nodeid", "nodename", "id", "vertex", "name", "key", "index", "")
_LABEL_TITLES = ("label", "labels", "class", "role", "group", "community", "target", "y")
_PADDED = "^[+-]?0[0-9xX]"
_GAPS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """Features as a file holds them; without names, row ``i`` belongs to node ``i``."""

    path: str
    data: Any  # array, CSR matrix or Arrow table (r, f)
    names: NDArray[Any] | None = None  # (r,)
    feature_names: tuple[str, ...] | None = None  # (f,)
    place_of: Callable[[int], str] | None = None  # the line of row ``i`` of a text file, for messages

    def place(self, row: int) -> str:
        """Return the file and the line or row, for messages."""
        return f"{self.path}: row {row}" if self.place_of is None else self.place_of(row)


def read_features(given: Any, node_column: str | int | None = None) -> FeatureFile:
    """Read node features from a file, a table in memory or a matrix."""
    if isinstance(given, np.ndarray) or issparse(given):
        return FeatureFile("features", given)
    if not isinstance(given, str | os.PathLike):
        is_named = type(getattr(given, "index", None)).__module__.startswith("pandas")
        if is_named and type(given.index).__name__ != "RangeIndex":  # an index that holds names
            given = given.reset_index()
        return _split_names(FeatureFile("features", as_table(given)), node_column)
    with opened(given) as source:
        name = source.path
        if source.kind == "npy":
            return FeatureFile(name, read_npy(source.stream, name))
        if source.kind == "npz":
            return _from_npz(read_archive(source.stream, name), name)
        if source.kind == "xml":
            graph = parse_graphml(source.stream, name)
            with naming(name):
                table = as_table([data for _, data in graph.nodes(data=True)])
            if not table.num_columns:
                raise GraphFormatError(
                    f"{name}: its nodes have no attributes, so there are no features in it"
                )
            return FeatureFile(name, table, graphml_names(graph, name), tuple(table.column_names))
        if source.kind == "text":
            return _read_text(given, source, node_column)
        if source.kind == "parquet":
            with open_parquet(source.stream, name) as file:
                table = file.read()
                table.validate(full=True)  # Parquet itself does not check that text is UTF-8
        else:
            with connection() as (database, _):
                table = database.sql(f"SELECT * FROM {open_table(source, database)[1]}").to_arrow_table()
    return _split_names(FeatureFile(name, table), node_column)


def read_labels(
    path: Source,
    names: NDArray[Any],
    *,
    node_column: str | int | None = None,
    label_column: str | None = None,
) -> NDArray[Any]:
    """Read labels from a table, as text, object (n,), in the order of ``names``; None where there is none.

    By default names are in the column titled node, id or name, else the first, and labels in that titled
    label or class, else the only other one.
    """
    found = read_features(path, node_column)
    if not isinstance(found.data, pa.Table):
        raise GraphFormatError(
            f"{found.path}: labels come from a table (CSV, TSV or Parquet), not from a matrix"
        )
    titles: list[str] = found.data.column_names
    if label_column is not None and label_column not in titles:
        raise ParameterError(f"{found.path}: no column {label_column!r}; they are {', '.join(titles[:10])}")
    known = [title for wanted in _LABEL_TITLES for title in titles if title.strip().lower() == wanted]
    if label_column is None and not known and len(titles) != 1:
        raise GraphFormatError(
            f"{found.path}: no column is called label, among {', '.join(titles[:10])}; choose one by "
            f"label_column={titles[0]!r}"
        )
    rows = _row_names(found, names)
    positions = NameIndex(names).find(rows)
    unknown = rows[positions < 0]
    if len(unknown):
        message = f"{found.path}: {len(unknown)} labels name no node: {first_few(unknown)}"
        warnings.warn(message, SpineWarning, stacklevel=2)
    labels = np.full(len(names), None, dtype=object)
    values = found.data[label_column or [*known, titles[0]][0]].to_pylist()
    for position, value in zip(positions.tolist(), values, strict=True):
        if position >= 0 and value is not None:
            labels[position] = str(value)
    return labels


def _row_names(found: FeatureFile, names: NDArray[Any]) -> NDArray[Any]:
    """Return the names of rows, distinct and some of them nodes of the graph."""
    try:
        rows = as_names(names_like(names, found.names))
    except GraphFormatError as fault:
        raise MissingFeaturesError(f"{found.path}: rows: {fault}") from fault
    if found.data.shape[:1] != (len(rows),):
        raise MissingFeaturesError(
            f"{found.path}: features must have one name per row; got {found.data.shape} and {len(rows)} names"
        )
    if (NameIndex(names).find(rows) < 0).all():
        raise MissingFeaturesError(
            f"{found.path}: none of its {len(rows)} names is a node of the edges; they look like "
            f"{first_few(rows, 3)}, the nodes like {first_few(names, 3)}; name the column of nodes "
            "by node_column=... (--node-column)"
        )
    return rows


def _from_npz(arrays: dict[str, NDArray[Any]], path: str) -> FeatureFile:
    names = names_of(arrays, "names" if "names" in arrays else "node_ids", path)
    columns = names_of(arrays, "feature_names", path)
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
    return FeatureFile(path, data, names, None if columns is None else tuple(map(str, columns)))


def _read_text(path: Source, source: Opened, node_column: str | int | None) -> FeatureFile:
    """Read a table from CSV, TSV or white space; a column of numbers or dates is one throughout."""
    name, expected = source.path, "rows; expected a name and features a line"
    with connection() as (database, folder):
        text = open_text(source, folder, expected=expected, max_line=MAX_ROW)
        rows = [[field.strip() for field in record.fields] for record in text.sample]
        has_titles = _is_header(rows)
        titles = rows[0] if has_titles else [f"column {i + 1}" for i in range(len(rows[0]))]
        require_distinct(titles, text.sample[0].place)
        position = name_column(titles, node_column, name) if has_titles or node_column is not None else 0
        try:
            found = database.sql(f"SELECT * FROM {text.relation(has_titles)}").to_arrow_table()
        except Exception as fault:  # DuckDB's, or an error of it that is no text
            for record in text.records():
                text.require_fields(record, "")
            raise GraphFormatError(
                f"{name}: cannot be read as a table: {excerpt(str(fault), 200)}"
            ) from fault
    if not len(found):
        raise GraphFormatError(f"{name}: holds titles but no rows; expected a name and features a line")
    columns = [
        column if number == position else _typed(column.combine_chunks(), text.delimiter != ",")
        for number, column in enumerate(found.columns)
    ]

    def place_of(row: int) -> str:
        with opened(path) as again:
            return next(islice(text.records(again.stream), row + has_titles, None)).place

    file = FeatureFile(name, pa.table(columns, names=titles), place_of=place_of)
    split = _split_names(file, position)
    return split if has_titles else replace(split, feature_names=None)


def _typed(column: Any, has_comma: bool) -> Any:
    """Return texts as the first type that all of them have; 007 stays text, and 1,5 may be a number."""
    column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    column = pc.if_else(pc.is_in(column, pa.array(_GAPS, pa.large_string())), None, column)
    if column.null_count == len(column) or pc.any(pc.match_substring_regex(column, _PADDED)).as_py():
        return column
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us")):
        with suppress(pa.ArrowInvalid):
            return column.cast(kind)
    with suppress(pa.ArrowInvalid):
        return pc.replace_substring(column, ",", ".").cast(pa.float64()) if has_comma else column
    return column


def _split_names(found: FeatureFile, node_column: str | int | None) -> FeatureFile:
    """Separate the column of node names from the features."""
    titles = found.data.column_names
    require_distinct(titles, found.path)
    position = name_column(titles, node_column, found.path)
    title = titles[position]
    if len(titles) < 2:
        raise GraphFormatError(f"{found.path}: has one column, {title!r}; features need names and others")
    names = found.data.column(position)
    if pa.types.is_dictionary(names.type):
        names = names.cast(names.type.value_type)
    if not pa.types.is_integer(names.type) and not is_text(names.type):
        raise GraphFormatError(
            f"{found.path}: the names, {title!r}, is {names.type}; names are integers or text"
        )
    if names.null_count:
        row = names.is_null().to_pylist().index(True)
        raise GraphFormatError(f"{found.place(row)}: no node name in {title!r}; every row needs one")
    if is_text(names.type):
        names = pc.utf8_trim_whitespace(names)
    table = found.data.remove_column(position)
    return replace(found, data=table, names=names.to_numpy(), feature_names=tuple(table.column_names))


def name_column(titles: list[str], node_column: str | int | None, path: str) -> int:
    """Return the position of the column of node names."""
    if isinstance(node_column, int) and 0 <= node_column < len(titles):
        return node_column
    if node_column is not None:
        if node_column not in titles:
            raise ParameterError(f"{path}: no column {node_column!r}; they are {', '.join(titles[:10])}")
        return titles.index(str(node_column))
    known = [letters(title) for title in titles]
    return next((known.index(title) for title in _NAME_TITLES if title in known), 0)


def _is_header(rows: list[list[str]]) -> bool:
    """Return whether the first row holds titles: words where numbers follow, or a usual title for names.

    Words above words are titles too, unless the row has numbers as well: those are values.
    """
    first, body = rows[0], rows[1:]
    if letters(first[0]) in _NAME_TITLES:
        return True
    words = [number for number, field in enumerate(first) if number and not NUMBER.fullmatch(field)]
    if len(words) == len(first) - 1 and words:
        return True
    for number in words:
        below = [row[number] for row in body if len(row) > number]
        are_numbers = all(field in _GAPS or NUMBER.fullmatch(field) for field in below)
        if first[number] not in _GAPS and below and are_numbers:
            return True
    return bool(body) and not is_integer(first[0]) and all(is_integer(row[0]) for row in body if row)


def join_features(
    contents: FileContents, found: FeatureFile, encoder: FeatureEncoder | None = None
) -> FileContents:
    """Give nodes their features by name.

    Rows that name no node become nodes without edges; nodes without a row get gaps. Each is counted in a
    warning; names given twice are an error.
    """
    if found.names is not None:
        contents, found = _aligned(contents, found)
    matrix, feature_names, encoder = encoded(found, encoder)
    note = "columns of numbers, taken as they are" if encoder is None else "columns by FeatureEncoder"
    if found.names is None:
        contents = _numbered(contents, matrix.shape[0], found.path)
    with naming(found.path):
        features = as_features(matrix, contents.names)
    notes = (*contents.notes, f"features from {found.path}: {matrix.shape[1]} {note}")
    return replace(contents, features=features, feature_names=feature_names, encoder=encoder, notes=notes)


def _aligned(contents: FileContents, found: FeatureFile) -> tuple[FileContents, FeatureFile]:
    """Return the contents with isolated nodes of new names, and the rows in the order of all nodes."""
    rows = _row_names(found, contents.names)
    fresh = rows[NameIndex(contents.names).find(rows) < 0]
    names = concatenated(contents.names, fresh)
    order = NameIndex(rows).find(names)
    without = names[order < 0]
    if len(fresh):
        counted = f"{len(fresh)} of {len(rows)} rows name no node of the edges"
        message = f"{found.path}: {counted} and become isolated nodes: {first_few(fresh)}"
        warnings.warn(message, SpineWarning, stacklevel=5)
    if len(without):
        message = f"{found.path}: {len(without)} of {len(names)} nodes have no row and get gaps: "
        warnings.warn(message + first_few(without), SpineWarning, stacklevel=5)
    if isinstance(found.data, pa.Table):
        taken = found.data.take(pa.array(order, mask=order < 0))
    else:
        taken = align_features(names, rows, found.data, "zero")
        if len(without) and not issparse(taken) and taken.dtype.kind in "biuf":
            taken = taken.astype(np.float32)
            taken[order < 0] = np.asarray(found.data).mean(axis=0)
    placed = replace(found, data=taken, place_of=lambda row: found.place(int(order[row])))
    return replace(contents, names=names), placed


def encoded(
    found: FeatureFile, encoder: FeatureEncoder | None
) -> tuple[Any, tuple[str, ...] | None, FeatureEncoder | None]:
    """Return the matrix (r, f), its column names and its encoder, made where a table needs one."""
    if encoder is None and is_numeric(found.data):
        matrix = _table_matrix(found) if isinstance(found.data, pa.Table) else found.data
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            shown = f"{matrix.dtype} {matrix.shape}"
            raise GraphFormatError(f"{found.path}: features must be numbers of shape (n, f); got {shown}")
        return matrix, found.feature_names, None
    encoder = encoder or FeatureEncoder()
    with naming(found.path):
        matrix = encoder.transform(found.data) if encoder.is_fitted else encoder.fit_transform(found.data)
    return matrix, encoder.feature_names_, encoder


def is_numeric(data: Any) -> bool:
    """Return whether features are numbers throughout, without gaps, so that they need no encoder."""
    return not isinstance(data, pa.Table) or not other_columns(data)


def other_columns(table: Any) -> list[str]:
    """Return the titles of columns that have gaps or hold other than numbers and booleans."""
    return [
        title
        for title, column in zip(table.column_names, table.columns, strict=True)
        if not is_number(column.type)
        or column.null_count
        or (pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py())
    ]


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is numeric or boolean."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _table_matrix(found: FeatureFile) -> NDArray[np.float32]:
    """Return a table of numbers as a matrix (r, f); a value that is not finite is an error."""
    matrix = np.empty(found.data.shape, np.float32)
    with np.errstate(over="ignore"):  # what overflows to infinity is named below
        for number, column in enumerate(found.data.columns):
            matrix[:, number] = column.cast(pa.float64(), safe=False).to_numpy()
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, number = wrong[0].tolist()
        raise GraphFormatError(
            f"{found.place(row)}: column {found.data.column_names[number]!r}: the value "
            f"{found.data.column(number)[row]} is not a finite float32 number. Fill it, or pass "
            "encoder=FeatureEncoder(), which standardises numbers and marks gaps"
        )
    return matrix


def _numbered(contents: FileContents, rows: int, path: str) -> FileContents:
    """Return the contents with nodes 0 .. rows-1: a matrix without names says how many nodes there are."""
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


def names_like(names: NDArray[Any], row_names: Any) -> NDArray[Any]:
    """Return the names of a file's rows as integers or text, whichever the graph's names are.

    Where those are integers, a name that is not an integer stays text.
    """
    if names.dtype == object and row_names.dtype != object:
        return np.asarray(row_names.astype(str).astype(object))
    if names.dtype != object and row_names.dtype == object:
        return as_array([int(name) if is_integer(name) else name for name in row_names])
    return np.asarray(row_names)


def align_features(
    names: NDArray[Any], row_names: Iterable[Any], matrix: Any, missing: Missing = "error"
) -> Any:
    """Return the rows of a named matrix (r, f) in the order of a graph's nodes, (n, f); sparse where it is.

    With "zero", a node without a row gets zeros, and a row without a node is left out with a warning.
    """
    if missing not in ("error", "zero"):
        raise ParameterError(f"missing must be one of 'error', 'zero'; got {missing!r}")
    matrix = csr_array(matrix) if issparse(matrix) else np.asarray(matrix)
    try:
        listed = as_names(row_names)
    except GraphFormatError as error:
        raise MissingFeaturesError(f"feature rows: {error}") from error
    if matrix.ndim != 2 or len(listed) != matrix.shape[0]:
        raise MissingFeaturesError(
            "features must have shape (r, f) with one name per row; "
            f"got {matrix.shape} and {len(listed)} names"
        )
    rows = NameIndex(listed).find(names) if len(listed) else np.full(len(names), -1)
    without_row = np.flatnonzero(rows < 0)
    is_used = np.zeros(len(listed), dtype=bool)
    is_used[rows[rows >= 0]] = True
    unused = np.flatnonzero(~is_used)
    message = mismatch(
        f"{len(without_row)} of {len(names)}",
        names[without_row[:6]],
        f"{len(unused)} of {len(listed)}",
        listed[unused[:6]],
    )
    if message and missing == "error":
        raise MissingFeaturesError(f"{message}{MISSING_ZERO}")
    if not is_used.all():
        warnings.warn(f"{message}; such rows are left out", SpineWarning, stacklevel=3)
    if not len(without_row):
        return matrix[rows]
    empty = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    rows_and_empty = stacked([matrix, empty if issparse(matrix) else empty.toarray()])
    return rows_and_empty[np.where(rows < 0, len(listed), rows)]


MISSING_ZERO = "; pass missing='zero' to give nodes without a row zeros and to leave other rows out"


def mismatch(empty: str, without: Iterable[Any], unused: str, strangers: Iterable[Any]) -> str:
    """Say which nodes have no feature row and which rows name no node: counts and examples."""
    clauses = []
    if some := first_few(without):
        clauses.append(f"{empty} nodes have no feature row: {some}")
    if some := first_few(strangers):
        clauses.append(f"{unused} feature rows name no node: {some}")
    return "; ".join(clauses)
