"""Reads node features and labels, and joins them to a graph's nodes by name."""

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv
from scipy.sparse import csr_array, issparse, vstack

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError, SpineError, SpineWarning
from spinegraph.graph.edge_files import (
    NUMBER,
    WHITESPACE,
    Block,
    FileContents,
    arrow_stream,
    blocks,
    decoded,
    features_of,
    find_delimiter,
    first_lines,
    is_integer,
    is_skipped,
    node_names,
    node_table,
    open_parquet,
    parse_graphml,
    plain,
    shown,
    sparse_matrix,
    split_line,
    texts_of,
)
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import opened, read_archive, read_npy, shown_name
from spinegraph.graph.names import NameIndex, as_array, as_names, concatenated, first_few

Missing = Literal["error", "zero"]


def align_features(
    names: NDArray[Any], row_names: Iterable[Any], matrix: Any, missing: Missing = "error"
) -> Any:
    """Return the rows of a named feature matrix in the order of a graph's nodes.

    Parameters
    ----------
    names : array (n,)
        The graph's node names.
    row_names : sequence (r,)
        The name of each row of ``matrix``; unique.
    matrix : array or sparse matrix (r, f)
    missing : {"error", "zero"}
        With "zero", a node without a row gets zeros, and a row without a node is left out with a warning.

    Returns
    -------
    array or csr_array (n, f)
        Sparse where ``matrix`` is.
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
    places = NameIndex(listed).find(names) if len(listed) else np.full(len(names), -1)
    without_row = np.flatnonzero(places < 0)
    is_used = np.zeros(len(listed), dtype=bool)
    is_used[places[places >= 0]] = True
    message = _mismatch(names, without_row, listed, np.flatnonzero(~is_used))
    if message and missing == "error":
        raise MissingFeaturesError(
            f"{message}; pass missing='zero' to give nodes without a row zeros and to leave other rows out"
        )
    if not is_used.all():
        warnings.warn(f"{message}; such rows are left out", SpineWarning, stacklevel=3)
    return _taken(matrix, places, without_row)


def _mismatch(
    names: NDArray[Any], without_row: NDArray[np.int64], row_names: NDArray[Any], unused: NDArray[np.int64]
) -> str:
    """Say which nodes have no row and which rows no node."""
    clauses = []
    if len(without_row):
        some = first_few(names[without_row[:6]])
        clauses.append(f"{len(without_row)} of {len(names)} nodes have no feature row: {some}")
    if len(unused):
        some = first_few(row_names[unused[:6]])
        clauses.append(f"{len(unused)} of {len(row_names)} feature rows name no node: {some}")
    return "; ".join(clauses)


def _taken(matrix: Any, places: NDArray[np.int64], without_row: NDArray[np.int64]) -> Any:
    """Take rows by place, zeros where the place is -1."""
    if issparse(matrix):
        if len(without_row):
            nothing = csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
            matrix = vstack([matrix, nothing], format="csr")  # place -1 is this last row
            places = np.where(places < 0, matrix.shape[0] - 1, places)
        return matrix[places]
    if not len(without_row):
        return matrix[places]
    taken = np.zeros((len(places), matrix.shape[1]), dtype=matrix.dtype)
    taken[places >= 0] = matrix[places[places >= 0]]
    return taken


LONGEST_ROW = 2**24
_COMMENTS = ("#", "%")
_NAME_TITLES = ("node", "nodeid", "nodename", "id", "vertex", "name", "key", "index", "")
# Arrow reads these as gaps among numbers and dates; among words they are gaps as well.
_GAPS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True)
class NamedTable:
    """Node names as written, and the other columns.

    Attributes
    ----------
    names : Arrow column (r,) of text, trimmed, or integers
    table : Arrow table (r, columns)
    has_titles : bool
        Whether the file itself names the columns.
    line_of : callable
        Returns where row ``i`` stands, for messages.
    """

    names: Any
    table: Any
    has_titles: bool
    line_of: Callable[[int], str]


def read_parquet_table(stream: Any, path: str, node_column: str | int | None) -> NamedTable:
    """Read a feature table from open Parquet."""
    with open_parquet(stream, path) as file:
        table = file.read()
        table.validate(full=True)  # Parquet itself does not check that text is UTF-8
    return _parted(table, node_column, path, has_titles=True, line_of=lambda row: f"{path}: row {row}")


def read_text_table(path: str | os.PathLike[str], node_column: str | int | None) -> NamedTable:
    r"""Read a feature table from CSV, TSV or white space, plain or gzip; Arrow finds the types."""
    name = shown_name(path)
    with opened(path) as source:
        found = blocks(source.stream, name, LONGEST_ROW)
        first = next((block for block in found if first_lines(block, name, _COMMENTS)), None)
        if first is None:
            raise GraphFormatError(f"{name}: holds no rows; expected a name and features a line")
        lines = first_lines(first, name, _COMMENTS)
        delimiter = find_delimiter([text for _, text in lines], name)
        rows = [split_line(text, delimiter) for _, text in lines]
        has_titles = _is_header(rows)
        titles = (
            [title.strip() for title in rows[0]]
            if has_titles
            else [f"column {i + 1}" for i in range(len(rows[0]))]
        )
        _require_titles(titles, f"{name}:{lines[0][0]}")
        place = name_column(titles, node_column, name) if has_titles or node_column is not None else 0
        stream = _Plain(first, found, delimiter, skip_first=has_titles)
        try:
            table = _parse(stream, titles, place, delimiter)
        except pa.ArrowInvalid as fault:
            _explain(path, delimiter, len(titles), str(fault))
    return _parted(table, place, name, has_titles=has_titles, line_of=_LineOf(path, has_titles))


def _parse(stream: "_Plain", titles: list[str], place: int, delimiter: str) -> Any:
    quote: str | bool = False if delimiter == WHITESPACE else '"'
    table = csv.read_csv(
        arrow_stream(stream),
        csv.ReadOptions(column_names=titles, block_size=2 * LONGEST_ROW),
        csv.ParseOptions(delimiter=delimiter, quote_char=quote, ignore_empty_lines=False),
        # Names are text until they meet the graph's: 007 must not become 7.
        csv.ConvertOptions(column_types={titles[place]: pa.large_string()}, null_values=list(_GAPS)),
    )
    if table.num_rows != stream.lines:
        raise pa.ArrowInvalid("a quote is not closed on its line")
    for position, column in enumerate(table.columns):
        if position != place and pa.types.is_string(column.type):
            is_gap = pc.is_in(column, pa.array(_GAPS))
            filled = pc.if_else(is_gap, pa.scalar(None, column.type), column)
            table = table.set_column(position, titles[position], filled)
    return table


def _parted(
    table: Any, node_column: str | int | None, path: str, *, has_titles: bool, line_of: Callable[[int], str]
) -> NamedTable:
    titles = table.column_names
    _require_titles(titles, path)
    place = name_column(titles, node_column, path)
    if len(titles) < 2:
        raise GraphFormatError(
            f"{path}: has one column, {titles[0]!r}; features need a column of names and others"
        )
    names = table.column(place)
    if pa.types.is_dictionary(names.type):
        names = names.cast(names.type.value_type)
    if not (
        pa.types.is_integer(names.type)
        or pa.types.is_string(names.type)
        or pa.types.is_large_string(names.type)
    ):
        raise GraphFormatError(
            f"{path}: the column of node names, {titles[place]!r}, is {names.type}; "
            "names are integers or text"
        )
    if names.null_count:
        row = names.is_null().to_pylist().index(True)
        raise GraphFormatError(f"{line_of(row)}: no node name in {titles[place]!r}; every row needs one")
    if not pa.types.is_integer(names.type):
        names = pc.utf8_trim_whitespace(names)
    return NamedTable(names, table.remove_column(place), has_titles, line_of)


def _require_titles(titles: list[str], place: str) -> None:
    twice = (
        next((title for title in titles if titles.count(title) > 1), None)
        if len(set(titles)) < len(titles)
        else None
    )
    if twice is not None:
        raise GraphFormatError(
            f"{place}: two columns are both called {shown(twice)}; column names must differ"
        )


def name_column(titles: list[str], node_column: str | int | None, path: str) -> int:
    """Return which column of a table holds the nodes' names."""
    if isinstance(node_column, int):
        if not 0 <= node_column < len(titles):
            raise ParameterError(
                f"{path}: node_column is {node_column}; there are columns 0 .. {len(titles) - 1}"
            )
        return node_column
    if node_column is not None:
        if node_column not in titles:
            raise ParameterError(f"{path}: no column {node_column!r}; they are {', '.join(titles[:10])}")
        return titles.index(node_column)
    plain_titles = [re.sub(r"[^a-z0-9]", "", title.lower()) for title in titles]
    return next((plain_titles.index(known) for known in _NAME_TITLES if known in plain_titles), 0)


def _is_header(rows: list[list[str]]) -> bool:
    """Return whether the first row holds titles: words where numbers follow, or a usual title for names.

    Words above words are titles too, unless numbers stand between them: those are values.
    """
    first, body = [field.strip() for field in rows[0]], [[field.strip() for field in row] for row in rows[1:]]
    if re.sub(r"[^a-z0-9]", "", first[0].lower()) in _NAME_TITLES:
        return True
    words = [place for place, field in enumerate(first) if place and not NUMBER.fullmatch(field)]
    if len(words) == len(first) - 1 and words:
        return True
    for place in words:
        below = [row[place] for row in body if len(row) > place]
        if (
            first[place] not in _GAPS
            and below
            and all(field in _GAPS or NUMBER.fullmatch(field) for field in below)
        ):
            return True
    return bool(body) and not is_integer(first[0]) and all(is_integer(row[0]) for row in body if row)


class _Plain:
    """The plain lines of a text table, piece after piece, and how many there were so far."""

    def __init__(self, first: Block, rest: Iterator[Block], delimiter: str, *, skip_first: bool) -> None:
        self._blocks, self._delimiter = chain([first], rest), delimiter
        self._skip_first, self.lines = skip_first, 0

    def __iter__(self) -> Iterator[bytes]:
        for place, block in enumerate(self._blocks):
            data = plain(block.data, self._delimiter, _COMMENTS)
            if self._skip_first and place == 0:
                data = data[data.index(b"\n") + 1 :]
            self.lines += data.count(b"\n")
            yield data


class _LineOf:
    """Finds the line of a row by reading the file again: only run when something is wrong."""

    def __init__(self, path: str | os.PathLike[str], has_titles: bool) -> None:
        self._path, self._has_titles = path, has_titles

    def __call__(self, row: int) -> str:
        left = row + self._has_titles
        with opened(self._path) as source:
            for block in blocks(source.stream, source.path, LONGEST_ROW):
                for line, raw in enumerate(block.data[:-1].split(b"\n"), block.first_line):
                    if is_skipped(raw.decode("utf-8", "replace"), _COMMENTS):
                        continue
                    if left == 0:
                        return f"{source.path}:{line}"
                    left -= 1
        return f"{source.path}: row {row}"


def _explain(given: str | os.PathLike[str], delimiter: str, width: int, fault: str) -> NoReturn:
    """Raise an error that names the first line with another number of fields, or that is not text."""
    path = shown_name(given)
    with opened(given) as source:
        for block in blocks(source.stream, path, LONGEST_ROW):
            for line, raw in enumerate(block.data[:-1].split(b"\n"), block.first_line):
                text = decoded(raw, path, line)
                if is_skipped(text, _COMMENTS):
                    continue
                if delimiter != WHITESPACE and text.count('"') % 2:
                    raise GraphFormatError(f"{path}:{line}: a quote is opened but not closed: {shown(text)}")
                found = len(split_line(text, delimiter))
                if found != width:
                    raise GraphFormatError(
                        f"{path}:{line}: expected {width} fields as on the first line, "
                        f"got {found}: {shown(text)}"
                    )
    if fault.startswith("Empty CSV"):
        raise GraphFormatError(f"{path}: holds titles but no rows; expected a name and features a line")
    raise GraphFormatError(f"{path}: cannot be read as a table: {shown(fault, 200)}")


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
    """Read node features from npz, npy, CSV, TSV, Parquet or GraphML, plain or gzip."""
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
        See :func:`~spinegraph.graph.feature_files.align_features`.
    extra : {"error", "isolated"}
        With "isolated", a row that names no node makes one, without edges.
    encoder : FeatureEncoder, optional
        Encodes the features; one that is not fitted yet is fitted on them first.
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
    """Say whether features are numbers throughout, so that they can be taken as they are."""
    return not isinstance(data, pa.Table) or all(is_number(column.type) for column in data.columns)


def is_number(kind: Any) -> bool:
    """Say whether an Arrow type is one of numbers, or of true and false."""
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
    """
    if names.dtype == object and row_names.dtype != object:
        return row_names.astype(str).astype(object)
    if names.dtype != object and row_names.dtype == object:
        return as_array([int(name) if is_integer(name) else name for name in row_names])
    return row_names


_LABEL_TITLES = ("label", "labels", "class", "role", "group", "community", "target", "y")


def read_labels(
    path: str | os.PathLike[str],
    names: NDArray[Any],
    *,
    node_column: str | int | None = None,
    label_column: str | None = None,
) -> NDArray[Any]:
    r"""Read one label per node from CSV, TSV or Parquet.

    Parameters
    ----------
    path : path
        A table with a column of node names and one of labels.
    names : array (n,)
        The graph's node names.
    node_column : str or int, optional
        By default the column titled node, id or name, else the first.
    label_column : str, optional
        By default the column titled label or class, else the only other one.

    Returns
    -------
    object array (n,)
        Labels as text in the order of ``names``; None where the file has none.
    """
    with opened(path) as source:
        name, kind = source.path, source.kind
        if kind not in ("text", "parquet"):
            raise GraphFormatError(f"{name}: labels are read from CSV, TSV or Parquet; this is {kind}")
        table = read_parquet_table(source.stream, name, node_column) if kind == "parquet" else None
    found = table or read_text_table(path, node_column)
    title = _label_title(found, label_column, name)
    try:
        row_names = as_names(names_like(names, found.names.to_numpy()))
    except GraphFormatError as fault:
        raise GraphFormatError(f"{name}: {fault}") from fault
    places = NameIndex(names).find(row_names)
    unknown = row_names[places < 0]
    if len(unknown) == len(row_names):
        raise GraphFormatError(
            f"{name}: none of its {len(row_names)} names is a node of the graph; they look like "
            f"{first_few(row_names, 3)}, the graph's like {first_few(names, 3)}"
        )
    if len(unknown):
        some = first_few(unknown)
        warnings.warn(f"{name}: {len(unknown)} labels name no node: {some}", SpineWarning, stacklevel=2)
    labels = np.full(len(names), None, dtype=object)
    values = np.array([None if v is None else str(v) for v in found.table[title].to_pylist()] + [None])[:-1]
    labels[places[places >= 0]] = values[places >= 0]
    return labels


def _label_title(found: NamedTable, label_column: str | None, path: str) -> str:
    titles: list[str] = found.table.column_names
    if label_column is not None:
        if label_column not in titles:
            raise ParameterError(f"{path}: no column {label_column!r}; they are {', '.join(titles[:10])}")
        return label_column
    known = [title for wanted in _LABEL_TITLES for title in titles if title.strip().lower() == wanted]
    if not known and len(titles) != 1:
        raise GraphFormatError(
            f"{path}: no column is called label; say which of {', '.join(titles[:10])} holds the labels"
        )
    return known[0] if known else titles[0]
