"""Reads node features and labels, and joins them to the nodes of a graph by name."""

import os
import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

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
    names_of,
    normalized,
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
from spinegraph.graph.tables import as_table, is_text, parse_texts

Source = str | os.PathLike[str]

MAX_ROW = 2**24
_NAME_TITLES = ("node", "nodeid", "nodename", "id", "vertex", "name", "key", "index", "")
_LABEL_TITLES = ("label", "labels", "class", "role", "group", "community", "target", "y")
_WHOLE = re.compile(r"\.0+$")
_PADDED = "^[+-]?0[0-9xX]"
OTHER_COLUMN = "choose another column of names with node_column=..."
_GAPS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """The features in a file; without names, row ``i`` belongs to node ``i``."""

    path: str
    data: Any  # array, CSR matrix or Arrow table (r, f)
    names: NDArray[Any] | None = None  # (r,)
    feature_names: tuple[str, ...] | None = None  # (f,)
    name_title: str | None = None  # of the column of names
    place_of: Callable[[int], str] | None = None  # the line of row ``i`` of a text file, for messages

    def place(self, row: int) -> str:
        """Return the file and the line or row, for messages."""
        return f"{self.path}: row {row}" if self.place_of is None else self.place_of(row)


def read_features(given: Any, node_column: str | int | None = None, nodes: Any = None) -> FeatureFile:
    """Read node features from a file, a table in memory or a matrix; ``nodes`` helps to find the names."""
    if isinstance(given, np.ndarray) or issparse(given):
        return FeatureFile("features", given)
    if not isinstance(given, str | os.PathLike):
        return _split_names(FeatureFile("features", named_table(given)), node_column, nodes)
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
                raise GraphFormatError(f"{name}: its nodes have no attributes to use as features")
            return FeatureFile(name, table, graphml_names(graph, name), tuple(table.column_names))
        if source.kind == "text":
            return _read_text(given, source, node_column, nodes)
        if source.kind == "parquet":
            with open_parquet(source.stream, name) as file:
                table = file.read()
                table.validate(full=True)  # Parquet itself does not check that text is UTF-8
        else:
            with connection() as (database, _):
                table = database.sql(f"SELECT * FROM {open_table(source, database)[1]}").to_arrow_table()
    return _split_names(FeatureFile(name, table), node_column, nodes)


def named_table(given: Any, *, integers: bool = True) -> pa.Table:
    """Return a table in memory as an Arrow table; a pandas index of names becomes its first column.

    An unnamed index of integers may be left from filtering; ``integers`` says whether to take it for names.
    """
    index: Any = getattr(given, "index", None)
    is_pandas = type(index).__module__.startswith("pandas")
    given = given.to_frame() if is_pandas and not hasattr(given, "columns") else given  # a Series
    is_default = type(index).__name__ == "RangeIndex" and index.name is None and index.start == 0
    if is_pandas and not is_default:
        has_names = any(normalized(str(title)) in _NAME_TITLES for title in given.columns)
        if index.name is not None or index.dtype.kind not in "iu" or (integers and not has_names):
            given = given.reset_index(names=None if index.name or index.nlevels > 1 else "")
    return as_table(given)


def read_labels(
    path: Source,
    names: NDArray[Any],
    *,
    label_column: str | None = None,
    node_column: str | int | None = None,
) -> NDArray[Any]:
    """Read labels from a table as text, object (n,), in the order of ``names``; None for nodes without one.

    Names are by default in a column as ``name_column`` finds it, labels in the one titled label or class, or
    else in the only other one.
    """
    found = read_features(path, node_column, names)
    if not isinstance(found.data, pa.Table):
        raise GraphFormatError(f"{found.path}: labels must be in a table (CSV, TSV, Parquet), not a matrix")
    titles: list[str] = found.data.column_names
    if label_column is not None and label_column not in titles:
        raise ParameterError(f"{found.path}: no column {label_column!r} among {', '.join(titles[:10])}")
    known = [title for wanted in _LABEL_TITLES for title in titles if title.strip().lower() == wanted]
    if label_column is None and not known and len(titles) != 1:
        raise GraphFormatError(
            f"{found.path}: no column 'label' among {', '.join(titles[:10])}; pass label_column={titles[0]!r}"
        )
    rows = row_names(found, names)
    positions = NameIndex(names).find(rows)
    unknown = rows[positions < 0]
    if len(unknown):
        message = f"{found.path}: {len(unknown)} labels match no node: {first_few(unknown)}"
        warnings.warn(message, SpineWarning, stacklevel=2)
    labels = np.full(len(names), None, dtype=object)
    values = found.data[label_column or [*known, titles[0]][0]].to_pylist()
    for position, value in zip(positions.tolist(), values, strict=True):
        if position >= 0 and value is not None:
            labels[position] = str(value)
    return labels


def row_names(found: FeatureFile, names: NDArray[Any]) -> NDArray[Any]:
    """Return the names of rows, which must be distinct, and some of which must be nodes of the graph."""
    place, advice = found.path, ""
    if found.name_title is not None:
        place, advice = f"{place}: column {found.name_title!r}", f"; {OTHER_COLUMN}"
    try:
        rows = as_names(names_like(names, found.names))
    except GraphFormatError as fault:
        raise MissingFeaturesError(f"{place}: {fault}{advice}") from fault
    if found.data.shape[:1] != (len(rows),):
        raise MissingFeaturesError(
            f"{found.path}: features must have one name per row; got {found.data.shape} and {len(rows)} names"
        )
    if (NameIndex(names).find(rows) < 0).all():
        raise MissingFeaturesError(f"{place}: {no_common_name(rows, names)}{advice}")
    return rows


def no_common_name(rows: NDArray[Any], names: NDArray[Any]) -> str:
    """Return the message that no name in a table is a node of the edges, with examples of both."""
    bare = [{re.sub(r"^0+(?=\d)|\.0$", "", str(name)) for name in some.tolist()} for some in (rows, names)]
    lost = "; zeros before a number, or .0 after it, were lost in one of them"
    hint = "" if bare[0].isdisjoint(bare[1]) else lost
    message = f"none of its {len(rows)} names is a node of the edges; they look like {first_few(rows, 3)}"
    return f"{message}, but the nodes look like {first_few(names, 3)}{hint}"


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
            listed = ", ".join(sorted(arrays)[:10]) or "none"
            raise GraphFormatError(f"{path}: no array 'features'; its arrays are {listed}")
        data = arrays[others[0]]
    return FeatureFile(path, data, names, None if columns is None else tuple(map(str, columns)))


def _read_text(path: Source, source: Opened, node_column: str | int | None, nodes: Any) -> FeatureFile:
    """Read a table from CSV, TSV or white space; all values of a column get the same type."""
    name, expected = source.path, "rows; expected a name and features per line"
    with connection() as (database, folder):
        text = open_text(source, folder, expected=expected, max_line=MAX_ROW)
        rows = [[field.strip() for field in record.fields] for record in text.sample]
        has_titles = _is_header(rows)
        titles = rows[0] if has_titles else [f"column {i + 1}" for i in range(len(rows[0]))]
        require_distinct(titles, text.sample[0].place)
        try:
            found = database.sql(f"SELECT * FROM {text.relation(has_titles)}").to_arrow_table()
            found = found.rename_columns(titles)
        except Exception as fault:  # of DuckDB, or its message cannot be decoded
            for record in text.records():
                text.require_fields(record, "")
            raise GraphFormatError(f"{name}: not readable as a table: {excerpt(str(fault), 200)}") from fault
    if not len(found):
        raise GraphFormatError(f"{name}: has titles but no rows; expected a name and features per line")
    position = name_column(found, node_column if has_titles else node_column or 0, name, nodes)
    columns = [
        column if number == position else _typed(column.combine_chunks(), text.delimiter != ",")
        for number, column in enumerate(found.columns)
    ]

    def place_of(row: int) -> str:
        with opened(path) as again:
            return next(islice(text.records(again.stream), row + has_titles, None)).place

    file = FeatureFile(name, pa.table(columns, names=titles), place_of=place_of)
    split = _split_names(file, position, None)
    return split if has_titles else replace(split, feature_names=None)


def _typed(column: Any, has_comma: bool) -> Any:
    """Return texts as the first type that fits all of them; 007 stays text, and 1,5 may be a number."""
    column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    column = pc.if_else(pc.is_in(column, pa.array(_GAPS, pa.large_string())), None, column)
    if column.null_count == len(column) or pc.any(pc.match_substring_regex(column, _PADDED)).as_py():
        return column
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("us")):
        with suppress(pa.ArrowInvalid):
            return column.cast(kind)
    return parse_texts(column, "number", ",")[0] if has_comma else column


def _split_names(found: FeatureFile, node_column: str | int | None, nodes: Any) -> FeatureFile:
    """Separate the column of node names from the features."""
    titles = found.data.column_names
    require_distinct(titles, found.path)
    position = name_column(found.data, node_column, found.path, nodes)
    title = titles[position]
    if len(titles) < 2:
        raise GraphFormatError(f"{found.path}: has only one column, {title!r}; expected names and features")
    names = _as_names(found.data.column(position))
    if names is None:
        kind = found.data.column(position).type
        message = f"{found.path}: the column of names, {title!r}, is {kind}; names must be integers or text;"
        raise GraphFormatError(f"{message} choose another with node_column=...")
    if names.null_count:
        row = names.is_null().to_pylist().index(True)
        message = f"no node name in {title!r}; every row needs one; {OTHER_COLUMN}"
        raise GraphFormatError(f"{found.place(row)}: {message}")
    table = found.data.remove_column(position)
    for index in (title for title in table.column_names if not title.strip()):
        if pa.types.is_integer(table[index].type):  # row numbers that pandas wrote
            table = table.drop_columns(index)
    others = tuple(table.column_names)
    return replace(found, data=table, names=names.to_numpy(), feature_names=others, name_title=title)


def _as_names(column: Any) -> Any:
    """Return a column as integers or trimmed text, or None if it has other values."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    with suppress(pa.ArrowInvalid):  # because of gaps, 1 and 2 may be stored as 1.0 and 2.0
        column = column.cast(pa.int64()) if pa.types.is_floating(column.type) else column
    if is_text(column.type):
        return pc.utf8_trim_whitespace(column)
    return column if pa.types.is_integer(column.type) else None


def name_column(
    table: pa.Table, node_column: str | int | None, path: str, nodes: Any = None, index: Any = None
) -> int:
    """Return the position of the column of node names: one titled so or the first, if it has ``nodes``.

    If it has none, or holds row numbers without a title, a column of which half or more are nodes is taken.
    """
    titles: list[str] = table.column_names
    if isinstance(node_column, int) and 0 <= node_column < len(titles):
        return node_column
    if node_column is not None:
        if node_column not in titles:
            raise ParameterError(f"{path}: no column {node_column!r} among {', '.join(titles[:10])}")
        return titles.index(str(node_column))
    known = [normalized(title) for title in titles]
    likely = [*(known.index(title) for title in _NAME_TITLES if title in known), 0]
    if nodes is None:
        return likely[0]
    index = index or NameIndex(nodes)

    @cache
    def first_names(position: int) -> list[Any]:
        names = _as_names(table.column(position)[:1000])
        return [] if names is None else names_like(nodes, names.drop_null().to_numpy()).tolist()

    @cache
    def share(position: int) -> float:
        """Return how many of a column's first values are nodes."""
        return float(np.mean(index.find(first_names(position)) >= 0)) if first_names(position) else 0.0

    found = next((position for position in likely if share(position)), likely[0])
    numbers = [str(row) for row in range(len(first_names(found)))]
    is_index = not titles[found].strip() and [str(name) for name in first_names(found)] == numbers
    if share(found) and not is_index:
        return found
    enough = max(share(found), 0.5)
    distinct = [at for at in range(len(titles)) if len(set(first_names(at))) == len(first_names(at))]
    others = [position for position in distinct if titles[position].strip() and share(position) >= enough]
    return max(others, key=share, default=found)


def _is_header(rows: list[list[str]]) -> bool:
    """Return whether the first row holds titles: words above numbers, or a usual title for names.

    Words above words are titles too, unless the row also has numbers, which are values.
    """
    first, body = rows[0], rows[1:]
    if normalized(first[0]) in _NAME_TITLES:
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

    Rows that match no node become isolated nodes, and nodes without a row get gaps, each with a warning.
    Duplicate names raise an error.
    """
    if found.names is not None:
        contents, found = _aligned(contents, found)
    matrix, feature_names, encoder = encoded(found, encoder)
    note = "of numbers, used as they are" if encoder is None else "by FeatureEncoder"
    if found.names is None:
        contents = _numbered(contents, matrix.shape[0], found.path)
    with naming(found.path):
        features = as_features(matrix, contents.names)
    columns = (feature_names or ()) if encoder is None else encoder.summary_
    note = f"features from {found.path}: {matrix.shape[1]} column{'s' * (matrix.shape[1] != 1)} {note}"
    listed = ", ".join([*columns[:20], "..."][: len(columns)])
    notes = (*contents.notes, note, *[f"columns: {listed}"] * bool(listed))
    return replace(contents, features=features, feature_names=feature_names, encoder=encoder, notes=notes)


def _aligned(contents: FileContents, found: FeatureFile) -> tuple[FileContents, FeatureFile]:
    """Return the contents with isolated nodes for new names, and the rows in the order of all nodes."""
    rows = row_names(found, contents.names)
    fresh = rows[NameIndex(contents.names).find(rows) < 0]
    names = concatenated(contents.names, fresh)
    order = NameIndex(rows).find(names)
    without = names[order < 0]
    if len(fresh):
        counted = f"{len(fresh)} of {len(rows)} rows match no node of the edges"
        message = f"{found.path}: {counted} and become isolated nodes: {first_few(fresh)}"
        warnings.warn(message, SpineWarning, stacklevel=5)
    if len(without):
        message = f"{found.path}: {len(without)} of {len(names)} nodes have no row and get gaps: "
        warnings.warn(message + first_few(without), SpineWarning, stacklevel=5)
    if isinstance(found.data, pa.Table):
        taken = found.data.take(pa.array(order, mask=order < 0))
    else:
        taken = _take(found.data, order)
        if len(without) and not issparse(taken) and taken.dtype.kind in "biuf":
            taken = taken.astype(np.float32)
            taken[order < 0] = np.asarray(found.data).mean(axis=0)
    placed = replace(found, data=taken, place_of=lambda row: found.place(int(order[row])))
    return replace(contents, names=names), placed


def encoded(
    found: FeatureFile, encoder: FeatureEncoder | None
) -> tuple[Any, tuple[str, ...] | None, FeatureEncoder | None]:
    """Return the matrix (r, f), its column names and its encoder, if a table needs one."""
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
    """Return whether features are all numbers without gaps, so that they need no encoder."""
    return not isinstance(data, pa.Table) or not other_columns(data)


def other_columns(table: Any) -> list[str]:
    """Return the titles of columns that have gaps or values other than numbers and booleans."""
    gaps = (pc.any(column.is_null(nan_is_null=True)).as_py() for column in table.columns)
    fields = zip(table.schema, gaps, strict=True)
    return [field.name for field, has_gaps in fields if has_gaps or not is_number(field.type)]


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is numeric or boolean."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _table_matrix(found: FeatureFile) -> NDArray[np.float32]:
    """Return a table of numbers as a matrix (r, f); raises if a value is not finite."""
    matrix = np.empty(found.data.shape, np.float32)
    with np.errstate(over="ignore"):  # overflow to infinity is reported below
        for number, column in enumerate(found.data.columns):
            matrix[:, number] = column.cast(pa.float64(), safe=False).to_numpy()
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, number = wrong[0].tolist()
        place, value = f"column {found.data.column_names[number]!r}", found.data.column(number)[row]
        message = f"{found.place(row)}: {place}: the value {value} is not a finite float32 number. Fill it,"
        way_out = "or pass encoder=FeatureEncoder(), which standardises numbers and marks gaps"
        raise GraphFormatError(f"{message} {way_out}")
    return matrix


def _numbered(contents: FileContents, rows: int, path: str) -> FileContents:
    """Return the contents with nodes 0 .. rows-1, since a matrix without names determines their number."""
    names = contents.names
    if names.dtype.kind not in "iu":
        message = f"{path}: rows without names cannot be joined to nodes with text names; save an npz with"
        raise MissingFeaturesError(f"{message} 'names' and 'features', or a table with a column of names")
    if rows == 0 or int(names.min()) < 0 or int(names.max()) >= rows:
        raise MissingFeaturesError(
            f"{path}: {rows} rows without names belong to nodes 0 .. {rows - 1}, but the edges have nodes "
            f"{int(names.min())} .. {int(names.max())}; give every node a row, or give the rows names"
        )
    return replace(contents, names=np.arange(rows), edges=names[contents.edges])


def names_like(names: NDArray[Any], row_names: Any) -> NDArray[Any]:
    """Return the names of a file's rows as integers or text, like the graph's names.

    If those are integers, a name that is not an integer stays text.
    """
    if names.dtype == object and row_names.dtype != object:
        return np.asarray(row_names.astype(str).astype(object))
    if names.dtype != object and row_names.dtype == object:
        wholes = [_WHOLE.sub("", name) for name in row_names]  # 12.0 is 12, if all are written so
        texts = wholes if all(map(is_integer, wholes)) else row_names
        return as_array([int(name) if is_integer(name) else name for name in texts])
    return np.asarray(row_names)


def align_features(names: NDArray[Any], rows: NDArray[Any], matrix: Any) -> Any:
    """Return the rows of a matrix (r, f) with distinct names in the order of a graph's nodes, (n, f).

    Nodes without a row get zeros, and rows without a node are left out, with a warning.
    """
    order = NameIndex(rows).find(names)
    without, unused = names[order < 0], np.delete(rows, order[order >= 0])
    warn_of_rows(f"{len(without)} of {len(names)}", without, f"{len(unused)} of {len(rows)}", unused)
    return _take(matrix, order)


def _take(matrix: Any, rows: NDArray[np.int64]) -> Any:
    """Return rows of a matrix by position, zeros for -1."""
    if (rows >= 0).all():
        return matrix[rows]
    empty = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    rows_and_empty = stacked([matrix, empty if issparse(matrix) else empty.toarray()])
    return rows_and_empty[np.where(rows < 0, matrix.shape[0], rows)]


def warn_of_rows(empty: str, without: Iterable[Any], unused: str, strangers: Iterable[Any]) -> None:
    """Warn about nodes without a feature row and rows that match no node, with counts and examples."""
    if some := first_few(without):
        warnings.warn(f"{empty} nodes have no feature row and get zeros: {some}", SpineWarning, stacklevel=4)
    if some := first_few(strangers):
        message = f"{unused} feature rows match no node and are left out: {some}"
        warnings.warn(message, SpineWarning, stacklevel=4)
