"""Reads tables of node features kept as text or Parquet: one row per node, one column of names."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.graph.files.parquet_edges import open_parquet
from spinegraph.graph.files.source import opened, shown_name
from spinegraph.graph.files.text_blocks import (
    WHITESPACE,
    Block,
    arrow_stream,
    blocks,
    is_skipped,
    plain,
    shown,
)
from spinegraph.graph.files.text_layout import (
    NUMBER,
    decoded,
    find_delimiter,
    first_lines,
    is_integer,
    split_line,
)

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
    """Read a feature table from open Parquet.

    Examples
    --------
    >>> from pyarrow import parquet
    >>> import io
    >>> stream = io.BytesIO()
    >>> parquet.write_table(pa.table({"node": ["ann"], "age": [31]}), stream)
    >>> read_parquet_table(stream, "people.parquet", None).table.column_names
    ['age']
    """
    with open_parquet(stream, path) as file:
        table = file.read()
        table.validate(full=True)  # Parquet itself does not check that text is UTF-8
    return _parted(table, node_column, path, has_titles=True, line_of=lambda row: f"{path}: row {row}")


def read_text_table(path: str | os.PathLike[str], node_column: str | int | None) -> NamedTable:
    r"""Read a feature table from CSV, TSV or white space, plain or gzip; Arrow finds the type of each column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
    ...     size = file.write(b"node,age,team\nann,31,north\nbob,45,\n"), file.flush()
    ...     read_text_table(file.name, None).table.to_pydict()
    {'age': [31, 45], 'team': ['north', None]}
    """
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
    """Return which column of a table holds the nodes' names.

    Examples
    --------
    >>> name_column(["age", "node_id"], None, "people.csv")
    1
    """
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
