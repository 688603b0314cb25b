"""Reads edges: tables and queries through DuckDB, GraphML and npz by themselves."""

import csv
import io
import math
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, permutations, takewhile
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, TypeVar
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import sparse

from spinegraph.errors import GraphFormatError, MissingPackageError, ParameterError, SpineError, SpineWarning
from spinegraph.graph.edges import GAPS_ALLOWED_BELOW, matrix_entries
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import Opened, display_name, opened, read_npz
from spinegraph.graph.tables import as_table, is_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Result = TypeVar("Result")

WEIGHT_NAMES = ("weight", "weights", "w", "edgeweight", "strength")
# Titles of weights where the column holds numbers, 0 or more.
_AMOUNTS = ("amount", "count", "counts", "freq", "frequency", "times", "volume")
_PAIRS = (
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("i", "j")),
    *(("sourceid", "targetid"), ("srcid", "dstid"), ("fromid", "toid"), ("fromnode", "tonode")),
    *(("fromnodeid", "tonodeid"), ("sourcenode", "targetnode"), ("start", "end"), ("head", "tail")),
    *(("node1", "node2"), ("nodea", "nodeb"), ("id1", "id2"), ("node", "neighbor"), ("node", "neighbour")),
    *(("sender", "receiver"), ("sender", "recipient"), ("payer", "payee"), ("follower", "followee")),
    *(("caller", "callee"), ("citing", "cited"), ("parent", "child"), ("origin", "destination")),
    *(("who", "whom"), ("buyer", "seller"), ("user", "item"), ("left", "right")),
)
MAX_WEIGHT = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class EdgeOptions:
    """How to read edges, as in :func:`~spinegraph.read_graph`; None means: detect.

    ``columns`` are source, target and perhaps weight.
    """

    columns: Sequence[str | int | None] | None = None
    weighted: bool | None = None
    header: bool | None = None
    delimiter: str | None = None
    comments: Sequence[str] = ("#", "%")
    names: str | None = None
    num_nodes: int | None = None

    def __post_init__(self) -> None:
        for name in ("columns", "comments"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) not in (2, 3)):
            raise ParameterError(f"columns must be (source, target[, weight]); got {self.columns!r}")
        if self.columns is not None and self.weight is not None and self.weighted is False:
            raise ParameterError("a weight column is named, but weighted is False; leave one of them out")
        if self.delimiter is not None and not (
            len(self.delimiter) == 1 and self.delimiter.isascii() and self.delimiter not in '\0"\r\n'
        ):
            raise ParameterError(
                f"delimiter must be one ASCII character (' ': white space); got {self.delimiter!r}"
            )
        if self.names not in (None, "integer", "text"):
            raise ParameterError(f"names must be 'integer', 'text' or None; got {self.names!r}")
        if isinstance(self.comments, str) or not all(isinstance(m, str) and m for m in self.comments):
            raise ParameterError(f"comments must be a tuple of texts, such as ('#',); got {self.comments!r}")
        if self.num_nodes is not None and (not isinstance(self.num_nodes, int) or self.num_nodes < 1):
            raise ParameterError(f"num_nodes must be a whole number of at least 1; got {self.num_nodes!r}")
        if self.num_nodes is not None and self.names == "text":
            raise ParameterError("num_nodes counts nodes 0 .. num_nodes-1; it does not go with names='text'")

    @property
    def weight(self) -> str | int | None:
        """The weight column, if it is named."""
        return self.columns[2] if self.columns is not None and len(self.columns) == 3 else None


@dataclass(frozen=True, eq=False)
class FileContents:
    """What an edge file holds, before edges are merged, dropped or made symmetric."""

    path: str
    names: NDArray[Any]  # int64 or object (n,)
    edges: NDArray[np.integer[Any]]  # (m, 2) positions in 0 .. n-1
    weights: NDArray[np.floating[Any]] | None = None  # (m,)
    features: Any = None  # float32 CSR or dense array (n, f)
    feature_names: tuple[str, ...] | None = None  # (f,)
    encoder: FeatureEncoder | None = None  # of the features, where they come from a table
    labels: NDArray[Any] | None = None  # (n,) or (n, c)
    directed: bool = False  # the file says so, or lists both directions of undirected edges
    notes: tuple[str, ...] = ()  # what was detected, one sentence each
    is_checked: bool = False  # names differ and positions are in range


@dataclass(frozen=True)
class EdgeColumns:
    """Positions of the source, target and weight columns, and one sentence on how they were found."""

    source: int
    target: int
    weight: int | None
    note: str


def choose_columns(
    titles: Sequence[str] | None,
    width: int,
    options: EdgeOptions,
    place: str,
    values: Callable[[int], list[str]] = lambda position: [],
) -> EdgeColumns:
    """Choose the source, target and weight columns of a table with ``width`` columns.

    ``titles`` are the column names, if it has them; ``place`` is the file and line, for messages; ``values``
    gives some values of a column.
    """
    if width < 2:
        raise GraphFormatError(
            f"{place}: expected 'source target', got {width} field; if another character separates the "
            "fields, pass delimiter=..."
        )
    named = [
        None if column is None else _position(column, titles, width, place)
        for column in options.columns or ()
    ]
    source, target, weight = (*named, None, None, None)[:3]
    source, target = _ends(titles, width, source, target, weight)
    if source == target:
        raise ParameterError(f"{place}: source and target cannot both be column {source + 1}")
    others = [position for position in range(width) if position not in (source, target, weight)]
    note = "no weights"
    if weight is not None:
        note = f"weights are {_title(titles, weight)}"
    elif options.weighted is False:
        note = "weights are not read"
    else:
        weight = _weight_column(titles, others, options, place, values)
        if weight is not None:
            note = f"weights are {_title(titles, weight)}"
            others.remove(weight)
            if titles is None and not options.weighted:
                note = "the third column holds numbers, taken as weights (weighted=False leaves them out)"
    ends = f"source is {_title(titles, source)}, target is {_title(titles, target)}; {note}"
    left_out = ", ".join(_title(titles, position).removeprefix("column ") for position in others[:5])
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    return EdgeColumns(source, target, weight, f"{ends}; ignored: {left_out}{more}" if others else ends)


def is_title_pair(first: str, second: str) -> bool:
    """Return whether two texts are usual titles of a source and a target column."""
    first, second = _letters(first), _letters(second)
    numbered = (first[-1:], second[-1:]) in (("1", "2"), ("a", "b"))
    return (first, second) in _PAIRS or (len(first) > 2 and first[:-1] == second[:-1] and numbered)


def _letters(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())


def _title(titles: Sequence[str] | None, position: int) -> str:
    return f"column {position + 1}" if titles is None else f"column {titles[position]!r}"


def _position(column: str | int, titles: Sequence[str] | None, width: int, place: str) -> int:
    if isinstance(column, int):
        if not 0 <= column < width:
            raise ParameterError(f"{place}: there is no column at {column}; positions are 0 .. {width - 1}")
        return column
    if titles is None:
        raise ParameterError(
            f"{place}: the column {column!r} is named, but there is no header; leave header=False out, or "
            "pass positions such as source=0, target=1"
        )
    if column not in titles:
        raise ParameterError(f"{place}: there is no column {column!r}; the columns are {', '.join(titles)}")
    return list(titles).index(column)


def _ends(
    titles: Sequence[str] | None, width: int, source: int | None, target: int | None, weight: int | None
) -> tuple[int, int]:
    """Return source and target: as given, else by usual titles, else the first columns that are free."""
    for first, second in permutations(range(min(width, 64)), 2) if titles is not None else ():
        is_free = source in (None, first) and target in (None, second) and weight not in (first, second)
        if is_free and is_title_pair(titles[first], titles[second]):  # type: ignore[index]
            return first, second
    free = [position for position in range(width) if position not in (source, target, weight)]
    source = free.pop(0) if source is None and free else source
    target = free.pop(0) if target is None and free else target
    return (0 if source is None else source), (1 if target is None else target)


def _weight_column(
    titles: Sequence[str] | None,
    others: Sequence[int],
    options: EdgeOptions,
    place: str,
    values: Callable[[int], list[str]],
) -> int | None:
    """Return the column of weights among ``others``, or None."""
    if options.weighted and not others:
        raise GraphFormatError(f"{place}: weighted=True needs a third column; the file has only 2")
    known = {} if titles is None else {_letters(titles[position]): position for position in reversed(others)}
    found = next((known[name] for name in WEIGHT_NAMES if name in known), None)
    if found is None:
        amounts = (known[name] for name in _AMOUNTS if name in known)
        found = next((position for position in amounts if _are_amounts(values(position))), None)
    if found is None and options.weighted:
        return others[0]
    if found is None and titles is None and len(others) == 1 and options.columns is None:
        third = [value.strip() for value in values(others[0])]
        numbers = [float(value) for value in third if NUMBER.fullmatch(value)]
        # A column of numbers below 0 is ratings, one of integers from 1973 on is time stamps.
        is_time = all(value >= 1e8 and value.is_integer() for value in numbers)
        if numbers and not is_time and not (len(numbers) == len(third) and min(numbers) < 0):
            return others[0]
    return found


def _are_amounts(values: Sequence[str]) -> bool:
    return bool(values) and all(NUMBER.fullmatch(value.strip()) and float(value) >= 0 for value in values)


# Text: DuckDB reads a plain file; where it or a check fails, a slow scan finds the line for the message.

BLOCK = 2**24
MAX_LINE = 2**20
WHITESPACE = " "
_SAMPLE_LINES, _SAMPLE_BYTES = 1000, 2**18
_BATCH = 2**18
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
NUMBER = re.compile(r"(?i)[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)")
_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}.*")
_WORD = re.compile(r"[^\W\d_][^\W\d]*(?:[ ./()-][^\W\d]*)*")


class Block(NamedTuple):
    """Whole lines, each ended by a line feed, the number of the first, and whether the file has them so."""

    first_line: int
    data: bytes
    is_plain: bool


class Record(NamedTuple):
    """One row of a text file: the number of its first line, its text and its fields."""

    line: int
    text: str
    fields: list[str]


@dataclass(frozen=True, eq=False)
class TextTable:
    """A text file as a table: how it is written, its first rows, and a plain copy for DuckDB."""

    path: str
    delimiter: str
    sample: list[Record]
    comments: Sequence[str]
    max_line: int
    copy: str
    stream: BinaryIO

    def relation(self, has_header: bool) -> str:
        """Return the table for a FROM clause; its columns c0, c1, ... are text."""
        quote = "" if self.delimiter == WHITESPACE else '"'
        longest = min(2 * self.max_line, os.path.getsize(self.copy) + 2**16)
        columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(self.sample[0].fields)))
        return (
            f"read_csv({literal(self.copy)}, auto_detect = false, delim = {literal(self.delimiter)}, "
            f"quote = '{quote}', escape = '{quote}', header = {has_header}, columns = {{{columns}}}, "
            f"compression = 'none', new_line = '\\n', max_line_size = {longest}, "
            f"buffer_size = {8 * longest})"
        )

    def records(self) -> Iterator[Record]:
        """Yield every row with its line, the header first; a slow scan, for messages alone."""
        self.stream.seek(0)
        lines = (
            (line, decode_line(raw, self.path, line))
            for block in blocks(self.stream, self.path, self.max_line)
            for line, raw in enumerate(block.data[:-1].split(b"\n"), block.first_line)
        )
        return _records(lines, self.delimiter, self.comments)


def open_text(
    source: Opened,
    folder: str,
    *,
    expected: str,
    delimiter: str | None = None,
    comments: Sequence[str] = ("#", "%"),
    max_line: int = MAX_LINE,
) -> TextTable:
    """Find out how a text file is written, from its first thousand lines, and make it plain.

    The delimiter is the first of tab, comma and semicolon that every line has (a comma first in a ``.csv``
    file), else white space.
    """
    found = blocks(source.stream, source.path, max_line)
    first = next((block for block in found if sample_lines(block, source.path, comments)), None)
    if first is None:
        raise GraphFormatError(f"{source.path}: holds no {expected}")
    lines = sample_lines(first, source.path, comments)
    delimiter = delimiter or find_delimiter([text for _, text in lines], source.path)
    sample = list(_records(lines, delimiter, comments))
    copy = _plain_copy(source, folder, delimiter, comments, max_line)
    return TextTable(source.path, delimiter, sample, comments, max_line, copy, source.stream)


def _records(lines: Iterable[tuple[int, str]], delimiter: str, comments: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of numbered lines; a quoted field may hold line feeds."""
    rest = iter(lines)
    for line, text in rest:
        if is_skipped(text, comments):
            continue
        if delimiter != WHITESPACE and text.count('"') % 2:
            held = [text, *_until_closed(rest)]
            text = "\n".join(held)
        yield Record(line, text, split_line(text, delimiter))


def _until_closed(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, text in islice(lines, 100_000):
        yield text
        if text.count('"') % 2:
            return


def _plain_copy(source: Opened, folder: str, delimiter: str, comments: Sequence[str], max_line: int) -> str:
    """Return a file without comments, blank lines, odd line ends and runs of blanks; the same if it is so."""
    source.stream.seek(0)
    path, output, done = os.path.join(folder, "rows"), None, 0
    try:
        for block in blocks(source.stream, source.path, max_line):
            data = clean_lines(block.data, delimiter, comments)
            if output is None and (not block.is_plain or len(data) != len(block.data) or data != block.data):
                output = open(path, "wb")  # noqa: SIM115 closed below
                with open(source.file, "rb") as plain:
                    for start in range(0, done, BLOCK):
                        output.write(plain.read(min(BLOCK, done - start)))
            if output is not None:
                output.write(data)
            done += len(block.data)
    finally:
        if output is not None:
            output.close()
    return source.file if output is None else path


def blocks(stream: BinaryIO, path: str, max_line: int = MAX_LINE) -> Iterator[Block]:
    """Yield the lines of a stream in blocks; line ends become line feeds and a byte order mark goes."""
    line, rest, is_end = 1, b"", False
    while not is_end:
        fresh = stream.read(BLOCK)
        is_end = len(fresh) < BLOCK
        whole, is_plain = rest + fresh if rest else fresh, True
        if line == 1 and whole.startswith(b"\xef\xbb\xbf"):
            whole, is_plain = whole[3:], False
        # Old Macs end lines by a carriage return alone: without any line feed, that is one.
        if b"\n" not in whole and b"\r" in whole[:-1]:
            whole, is_plain = whole.replace(b"\r", b"\n"), False
        cut = len(whole) if is_end else whole.rfind(b"\n") + 1
        data, rest = whole[:cut], whole[cut:]
        if b"\r" in data:
            data, is_plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), False
        if data and not data.endswith(b"\n"):
            data += b"\n"
        _check_lines(data, line, path, max_line)
        if data:
            yield Block(line, data, is_plain)
        line += data.count(b"\n")
        if len(rest) > max_line:
            _refuse_long_line(rest, line, path, max_line)


def _check_lines(data: bytes, line: int, path: str, max_line: int) -> None:
    zero = data.find(b"\0")
    if zero >= 0:
        start, end = data.rfind(b"\n", 0, zero) + 1, data.find(b"\n", zero)
        line += data.count(b"\n", 0, zero)
        raise GraphFormatError(
            f"{path}:{line}: binary data where text was expected: {excerpt(data[start:end])}; "
            "expected an edge list as UTF-8 text, or a Parquet, npz or GraphML file"
        )
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + max_line + 1)
        if end < 0:
            _refuse_long_line(data[start:], line + data.count(b"\n", 0, start), path, max_line)
        start = end + 1


def _refuse_long_line(text: bytes, line: int, path: str, max_line: int) -> NoReturn:
    raise GraphFormatError(
        f"{path}:{line}: a line of more than {max_line:,} bytes, beginning {excerpt(text[:200])}; "
        "write one edge (or one node's features) a line"
    )


def clean_lines(data: bytes, delimiter: str, comments: Sequence[str]) -> bytes:
    """Return the lines without blank lines and comments, and white space as single spaces."""
    # Everything here is a search or replacement in C; Python sees no single line of a tidy file.
    if delimiter == WHITESPACE:
        if b"\t" in data:
            data = data.replace(b"\t", b" ")
        while b"  " in data:
            data = data.replace(b"  ", b" ")
        if b" \n" in data:
            data = data.replace(b" \n", b"\n")
        if b"\n " in data or data.startswith(b" "):
            data = data.replace(b"\n ", b"\n").removeprefix(b" ")
    marks = [mark.encode() for mark in comments]
    is_marked = any(mark in data for mark in marks)
    is_blank = b"\n\n" in data or data.startswith(b"\n") or b" \n" in data or b"\t\n" in data
    if (is_marked or is_blank) and delimiter != WHITESPACE and b'"' in data:
        return b"".join(_outside_quotes(data, tuple(marks)))
    if is_marked:
        alternatives = b"|".join(re.escape(mark) for mark in marks)
        data = re.sub(rb"^[ \t]*(?:" + alternatives + rb")[^\n]*\n", b"", data, flags=re.MULTILINE)
    return re.sub(rb"^[ \t]*\n", b"", data, flags=re.MULTILINE) if is_blank else data


def _outside_quotes(data: bytes, marks: tuple[bytes, ...]) -> Iterator[bytes]:
    """Yield the lines that are neither blank nor comments; quoted text keeps all of its lines."""
    is_inside = 0
    for line in data.splitlines(keepends=True):
        text = line.strip(b" \t\n")
        if is_inside or (text and not text.startswith(marks)):
            yield line
            is_inside ^= line.count(b'"') % 2


def is_skipped(line: str, comments: Sequence[str]) -> bool:
    """Return whether a line is blank or a comment, by the same rule as :func:`clean_lines`."""
    text = line.strip(" \t\n")
    return not text or (bool(comments) and text.startswith(tuple(comments)))


def excerpt(text: str | bytes, limit: int = 60) -> str:
    """Return a piece of input for a message: quoted and cut short."""
    if isinstance(text, bytes):
        text = text[: 4 * limit].decode("utf-8", "backslashreplace")
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}..."


def split_line(text: str, delimiter: str) -> list[str]:
    """Return the fields of one row as DuckDB sees them."""
    if delimiter == WHITESPACE:
        return re.split(r"[ \t]+", text.strip(" \t"))  # not str.split: a name may hold rarer kinds of space
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration):  # a field beyond the csv module's own limit
        return text.split(delimiter)


def is_integer(text: str) -> bool:
    """Return whether a name is an int64 in its usual form: 7, but not 007 or +7."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def decode_line(raw: bytes, path: str, line: int) -> str:
    """Return one line of a file as text."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise GraphFormatError(
            f"{path}:{line}: not UTF-8 text: {excerpt(raw)}; "
            "save the file as UTF-8, or check that it is text at all"
        ) from fault


def sample_lines(block: Block, path: str, comments: Sequence[str]) -> list[tuple[int, str]]:
    """Return numbers and texts of the first lines that are data."""
    lines: list[tuple[int, str]] = []
    start, number = 0, block.first_line
    while (
        start < len(block.data) and len(lines) < _SAMPLE_LINES and (start < _SAMPLE_BYTES or len(lines) < 2)
    ):
        end = block.data.index(b"\n", start)
        text = decode_line(block.data[start:end], path, number)
        if not is_skipped(text, comments):
            lines.append((number, text))
        start, number = end + 1, number + 1
    return lines


def find_delimiter(texts: Sequence[str], path: str) -> str:
    """Return the field separator of these lines; a space stands for white space."""
    # Numbers hold no spaces, so between them tabs and spaces are the same.
    numbers = all(NUMBER.fullmatch(field) for text in texts[1:] or texts for field in text.split())
    if numbers and len(texts[0].split()) == len(texts[-1].split()):
        return WHITESPACE
    is_csv = path.lower().removesuffix(".gz").endswith(".csv")
    for candidate in ",\t;" if is_csv else "\t,;":
        if all(candidate in text for text in texts):
            return candidate
    # One line without the delimiter is a broken line, not a reason to split elsewhere.
    for candidate in ",\t;":
        count = sum(candidate in text for text in texts)
        if 2 * count > len(texts) or (count and is_csv and candidate == ","):
            return candidate
    return WHITESPACE


def _is_header(records: Sequence[Record], options: EdgeOptions) -> tuple[bool, bool]:
    """Return whether the first row of edges is a header, and whether that is a guess to be told."""
    if options.header is not None or any(isinstance(column, str) for column in options.columns or ()):
        return options.header is not False, False
    first, body = [field.strip() for field in records[0].fields], records[1:]
    if len(first) < 2 or any(NUMBER.fullmatch(field) or _DATE.fullmatch(field) for field in first):
        return False, False
    pairs = [titles for titles in permutations(first[:8], 2) if is_title_pair(*titles)]
    if pairs and not any(_continue_below(titles, body) for titles in pairs):
        return True, False
    if any(_letters(field) in WEIGHT_NAMES for field in first[2:]):
        return True, False
    for side, title in enumerate(first):
        below = [record.fields[side].strip() for record in body if len(record.fields) > side]
        if title and any(below) and all(map(_is_value, filter(None, below))):
            return True, False
    ends = (options.columns or (0, 1))[:2]
    source, target = (side if isinstance(side, int) else number for number, side in enumerate(ends))
    if max(source, target) >= len(first):
        return False, False
    words = [first[source], first[target]]
    again = {
        record.fields[side].strip()
        for record in body
        for side in (source, target)
        if len(record.fields) > side
    }
    is_word = all(len(word) > 1 and _WORD.fullmatch(word) for word in words)
    guessed = bool(body) and is_word and words[0] != words[1] and again.isdisjoint(words)
    return guessed, guessed


def _is_value(text: str) -> bool:
    return bool(NUMBER.fullmatch(text) or _DATE.fullmatch(text))


def _continue_below(titles: tuple[str, str], body: Sequence[Record]) -> bool:
    """Return whether texts that may be titles are names like those below: node1, node2, then node3."""
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*titles, strict=False)))
    names = {field.strip() for record in body for field in record.fields}
    is_prefix = len(shared) > 1 and any(name.startswith(shared) for name in names)
    return is_prefix or not names.isdisjoint(titles)


# DuckDB: every table is one relation; names become positions by value or by hash.


@contextmanager
def connection(
    memory: int | None = None, place: str | None = None
) -> "Iterator[tuple[DuckDBPyConnection, str]]":
    """Open a DuckDB of its own that loads nothing from elsewhere, and a temporary folder in ``place``."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="spine-", dir=place) as folder:
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,
            "temp_directory": folder,
            **({} if memory is None else {"memory_limit": f"{memory // 2**20}MiB"}),
        }
        opened_connection = duckdb.connect(":memory:", config=settings)
        try:
            yield opened_connection, folder
        finally:
            opened_connection.close()


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a column's name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def interruptible(database: "DuckDBPyConnection", work: Callable[[], Result]) -> Result:
    """Run a query that may take long in another thread, so that an interrupt stops it."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            database.interrupt()
            raise


@dataclass(frozen=True, eq=False)
class Listing:
    """Columns of names, and perhaps weights, of a table that DuckDB reads."""

    path: str
    database: "DuckDBPyConnection"
    relation: Callable[[], str]  # the table for a FROM clause; called for every query
    source: str  # SQL expressions
    target: str
    weight: str | None
    kind: str | None  # of names: "integer", "text" or, in text files, None: as they are written
    is_text: bool  # columns are text, whatever they hold
    num_nodes: int | None
    find_fault: Callable[[str], NoReturn]  # raises an error that names the first bad row
    note: str
    looks_like_integers: bool = True
    guessed_header: tuple[str, str] | None = None
    readers: list[Any] = field(default_factory=list)

    def explain(self, fault: str) -> NoReturn:
        """Raise an error that names the first bad row."""
        self._close()
        self.find_fault(fault)

    def _close(self) -> None:
        while self.readers:  # DuckDB answers one query at a time
            self.readers.pop().close()

    def ends(self, as_integers: bool) -> tuple[str, str]:
        """Return the SQL of both ends; in text files an integer not in its usual form is NULL."""
        ends = self.source, self.target
        if not as_integers:
            return ends if self.is_text else tuple(f"CAST({end} AS VARCHAR)" for end in ends)  # type: ignore[return-value]
        if not self.is_text:
            return tuple(f"CAST({end} AS BIGINT)" for end in ends)  # type: ignore[return-value]
        return tuple(  # type: ignore[return-value]
            f"CASE WHEN CAST(TRY_CAST({end} AS BIGINT) AS VARCHAR) = {end} THEN TRY_CAST({end} AS BIGINT) END"
            for end in ends
        )

    def batches(self, *columns: str) -> Iterator[Any]:
        """Yield Arrow batches of some SQL expressions, and of the weight as the last column."""
        weight = [] if self.weight is None else [f"TRY_CAST({self.weight} AS DOUBLE)"]
        titled = ", ".join(f"{column} AS k{number}" for number, column in enumerate([*columns, *weight]))
        query = f"SELECT {titled} FROM {self.relation()}"
        try:
            reader = interruptible(self.database, lambda: self.database.sql(query).to_arrow_reader(_BATCH))
            self.readers.append(reader)
            while (batch := interruptible(self.database, lambda: next(reader, None))) is not None:
                yield batch
        except SpineError:
            raise
        except Exception as fault:  # DuckDB's, Arrow's, or an error of DuckDB that is no text
            self.explain(str(fault))
        finally:
            self._close()

    def weights(self, batch: Any) -> NDArray[np.float32] | None:
        """Return the weights of a batch; a bad one is explained."""
        if self.weight is None:
            return None
        column = batch.column(batch.num_columns - 1)
        values = column.to_numpy(zero_copy_only=False)
        # NaN fails the first comparison, so one pass finds every kind of bad weight.
        if column.null_count or not ((values >= 0) & (values <= MAX_WEIGHT)).all():
            self.explain("a weight is negative, not finite or too large")
        return np.asarray(values, dtype=np.float32)

    def make_names(self) -> None:
        """Create the table ``names`` of the distinct names ``n`` as they are written."""
        ends = self.ends(as_integers=self.kind == "integer" and not self.is_text)
        both = f"SELECT DISTINCT unnest([{ends[0]}, {ends[1]}]) AS n FROM {self.relation()}"
        try:
            interruptible(self.database, lambda: self.database.execute(f"CREATE TEMP TABLE names AS {both}"))
        except Exception as fault:
            self.explain(str(fault))


class IntegerNames:
    """Collects integer endpoints, then numbers the distinct ones in ascending order."""

    _FREE_SPAN = 2**22  # ids that span up to this many values are counted in a table

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._low, self._high, self._count = 2**63 - 1, -(2**63), 0

    def add(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Add the endpoints of one block, (b,) each."""
        if not len(sources):
            return
        low = min(int(sources.min()), int(targets.min()))
        high = max(int(sources.max()), int(targets.max()))
        dtype = np.int32 if low >= -(2**31) and high < 2**31 else np.int64  # half the memory where it fits
        self._blocks.append((sources.astype(dtype), targets.astype(dtype)))
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._count += len(sources)

    @property
    def is_wide(self) -> bool:
        """Whether the ids span too many values to be counted in a table."""
        return self._high - self._low >= max(self._FREE_SPAN, min(4 * self._count, 2**31))

    def finish(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the names (n,), ascending, and the edges (m, 2) as positions; releases the blocks."""
        if not self._count:
            return np.zeros(0, np.int64), np.zeros((0, 2), np.int32)
        span, low = self._high - self._low + 1, np.int64(self._low)
        present = np.zeros(span, dtype=bool)
        for sources, targets in self._blocks:
            present[sources - low] = True
            present[targets - low] = True
        names = np.flatnonzero(present)
        edges = self.joined(low)
        if len(names) < span:
            rank = np.cumsum(present, dtype=np.int32) - np.int32(1)
            for column in edges.T:
                column[:] = rank[column]
        return names + low, edges

    def joined(self, low: np.int64) -> NDArray[np.int32]:
        """Return all endpoints less ``low`` as one array (m, 2), columns contiguous; releases the blocks."""
        edges, start = np.empty((2, self._count), np.int32), 0
        while self._blocks:
            sources, targets = self._blocks.pop(0)
            end = start + len(sources)
            np.subtract(sources, low, out=edges[0, start:end], casting="unsafe")
            np.subtract(targets, low, out=edges[1, start:end], casting="unsafe")
            start = end
        return edges.T


class NotHeaderError(Exception):
    """The first line was guessed to be a header, but its words are names."""


def collect(listing: Listing) -> FileContents:
    """Read the edges of a listing into memory."""
    n, found = listing.num_nodes, None
    if listing.kind == "integer" or (listing.kind is None and listing.looks_like_integers):
        found = _by_value(listing)
    names, edges, weights = found or _by_hash(listing)
    if not len(edges) and n is None:
        raise GraphFormatError(f"{listing.path}: holds no edges; {listing.note}")
    if n is not None and found is None:
        if names.dtype == object or names[0] < 0 or names[-1] >= n:
            listing.explain("a node id is out of range")
        names, edges = np.arange(n), names[edges]
    warn_of_header(listing, stacklevel=5)
    note = f"{listing.note}; names are {'text' if names.dtype == object else 'integers'}"
    return FileContents(listing.path, names, edges, weights=weights, notes=(note,), is_checked=True)


def warn_of_header(listing: Listing, stacklevel: int) -> None:
    """Tell that the first line was guessed to be a header."""
    if listing.guessed_header is not None:
        message = f"first line read as header ({', '.join(listing.guessed_header)})"
        message += "; use --no-header (header=False) if these are nodes"
        warnings.warn(f"{listing.path}: {message}", SpineWarning, stacklevel=stacklevel)


def _by_value(listing: Listing) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32] | None] | None:
    """Return integers numbered by value; None where some name is no integer, or they lie far apart."""
    ids, weights, n = IntegerNames(), [], listing.num_nodes
    for batch in listing.batches(*listing.ends(as_integers=True)):
        sides = batch.columns[:2]
        if any(side.null_count for side in sides):
            if listing.is_text:
                return None
            listing.explain("a name is empty")
        sources, targets = (side.to_numpy() for side in sides)
        if n is not None and len(sources) and any(s.min() < 0 or s.max() >= n for s in (sources, targets)):
            listing.explain("a node id is out of range")
        ids.add(sources, targets)
        weights.append(listing.weights(batch))
    if n is None and ids.is_wide:
        return None
    names, edges = ids.finish() if n is None else (np.arange(n), ids.joined(np.int64(0)))
    return names, edges, _joined_weights(listing, weights)


def _joined_weights(listing: Listing, parts: Sequence[Any]) -> NDArray[np.float32] | None:
    return np.concatenate([*parts, np.zeros(0, np.float32)]) if listing.weight is not None else None


def _by_hash(listing: Listing) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float32] | None]:
    """Return names numbered by the hashes of their texts, which are checked to differ."""
    as_integers = listing.kind == "integer" and not listing.is_text
    listing.make_names()
    names, rank, salt = (
        *_ranked(listing, listing.database.sql("SELECT n FROM names").to_arrow_table()["n"]),
        0,
    )
    while True:
        query = f"SELECT hash(n, {salt}) AS h FROM names"
        table = _HashTable(listing.database.sql(query).to_arrow_table()["h"].to_numpy(), rank)
        if table.is_unique:
            break
        salt += 1
    edges: list[NDArray[np.int32]] = []
    weights = []
    ends = listing.ends(as_integers)
    for batch in listing.batches(*(f"hash({end}, {salt})" for end in ends)):
        edges.append(np.stack([table.find(side.to_numpy()) for side in batch.columns[:2]]))
        weights.append(listing.weights(batch))
    joined = np.concatenate([*edges, np.zeros((2, 0), np.int32)], axis=1)
    return names, joined.T, _joined_weights(listing, weights)


def _ranked(listing: Listing, written: Any) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return distinct names in ascending order (n,), and the position of each name as it is written."""
    if written.null_count:
        listing.explain("a name is empty")
    keys = written.combine_chunks() if isinstance(written, pa.ChunkedArray) else written
    if isinstance(keys, pa.ChunkedArray):
        keys = pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], written.type)
    if is_text(keys.type):
        keys = pc.utf8_trim_whitespace(keys.cast(pa.large_string()))
        if pc.any(pc.or_(pc.equal(keys, ""), pc.match_substring(keys, "\n"))).as_py():
            listing.explain("a name is empty, or a quote is not closed on its line")
        if (
            listing.guessed_header
            and pc.any(pc.is_in(keys, pa.array(listing.guessed_header, keys.type))).as_py()
        ):
            raise NotHeaderError
        if listing.kind != "text":
            integers = _as_integers(keys) if listing.is_text else None
            if integers is None and listing.kind == "integer":
                listing.explain("a name is not an integer")
            keys = keys if integers is None else integers
    order = pc.sort_indices(keys).to_numpy()
    ordered = keys.take(pa.array(order))
    is_new = np.ones(len(keys), dtype=bool)
    if len(keys) > 1:
        is_new[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    rank = np.empty(len(keys), np.int32)
    rank[order] = np.cumsum(is_new, dtype=np.int32) - 1
    names = ordered.filter(pa.array(is_new)).to_numpy(zero_copy_only=False)
    return names.astype(object) if is_text(keys.type) else names, rank


def _as_integers(keys: Any) -> Any:
    """Return texts as integers, or None where one is not written as an integer is."""
    if not pc.all(pc.match_substring_regex(keys, f"^(?:{_INTEGER.pattern})$")).as_py():
        return None
    try:
        return keys.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond int64
        return None


class _HashTable:
    """Finds values by 64-bit hashes: in a table of their first bits, or where two share these, by search."""

    def __init__(self, hashes: NDArray[np.uint64], values: NDArray[np.int32]) -> None:
        order = np.argsort(hashes)
        self._hashes, self._values = hashes[order], values[order]
        self.is_unique = bool((self._hashes[1:] != self._hashes[:-1]).all())
        bits = min(max(len(hashes).bit_length() + 4, 8), 26)
        self._shift = np.uint64(64 - bits)
        slots = self._hashes >> self._shift
        self._table = np.zeros(2**bits, np.int32)
        self._table[slots] = self._values
        self._table[slots[1:][slots[1:] == slots[:-1]]] = -1

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the value of each hash."""
        found = self._table[hashes >> self._shift]
        shared = np.flatnonzero(found < 0)
        found[shared] = self._values[np.searchsorted(self._hashes, hashes[shared])]
        return np.asarray(found)


# The kinds of tables: each gives a listing.


@contextmanager
def open_listing(
    source: Any, options: EdgeOptions, memory: int | None = None, place: str | None = None
) -> Iterator[Listing]:
    """Open an edge file or table; ``source`` is an open file, a :class:`Query` or a table in memory.

    DuckDB uses ``memory`` bytes, and a temporary folder in ``place``.
    """
    with connection(memory, place) as (database, folder):
        if isinstance(source, Opened) and source.kind == "text":
            yield _text_listing(source, folder, database, options)
        elif isinstance(source, Opened) and source.kind == "parquet":
            with open_parquet(source.stream, source.path) as file:
                yield _parquet_listing(file, source.path, database, options)
        else:
            path, relation, what = open_table(source, database)
            schema = database.sql(f"SELECT * FROM {relation} LIMIT 0").to_arrow_table().schema
            yield _typed_listing(path, what, schema, lambda: relation, database, options)


@dataclass(frozen=True)
class Query:
    """A query in SQL, and the DuckDB file it is asked of, if any."""

    text: str
    database: str | os.PathLike[str] | None = None


def open_table(source: Any, database: "DuckDBPyConnection") -> tuple[str, str, str]:
    """Return the name of a table for messages, the table for a FROM clause, and what it is."""
    import duckdb

    try:
        if isinstance(source, Query):
            if source.database is not None:
                with opened(source.database) as file:
                    if file.kind != "duckdb":
                        raise GraphFormatError(f"{file.path}: is no DuckDB file, but {file.kind}")
                    database.execute(f"ATTACH {literal(file.file)} AS given (READ_ONLY)")
                database.execute("USE given")
            relation = f"({source.text.strip().rstrip(';')})"
            database.sql(f"SELECT * FROM {relation} LIMIT 0").fetchall()
            return "the query", relation, "a query"
        if isinstance(source, Opened) and source.kind == "duckdb":
            database.execute(f"ATTACH {literal(source.file)} AS given (READ_ONLY)")
            query = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'given'"
            tables = database.sql(query).fetchall()
            if len(tables) != 1:
                listed = ", ".join(name for _, name in tables[:10]) or "none"
                raise ParameterError(
                    f"{source.path}: is a DuckDB file whose tables are {listed}; name one by "
                    f"query='select * from TABLE', database={source.path!r}"
                )
            schema, table = map(identifier, tables[0])
            return source.path, f"given.{schema}.{table}", f"the table {table} of a DuckDB file"
        if isinstance(source, Opened):
            query = f"read_json({literal(source.file)}, format = 'newline_delimited', compression = 'none')"
            database.execute(f"CREATE TEMP TABLE listed AS SELECT * FROM {query}")
            return source.path, "listed", "JSON lines"
    except (duckdb.Error, RuntimeError) as fault:
        place = source.path if isinstance(source, Opened) else "the query"
        raise GraphFormatError(f"{place}: cannot be read: {excerpt(str(fault), 300)}") from fault
    database.register("listed", as_table(source))
    return "the table", "listed", "a table in memory"


def _text_listing(
    source: Opened, folder: str, database: "DuckDBPyConnection", options: EdgeOptions
) -> Listing:
    table = open_text(
        source,
        folder,
        expected="edges; expected 'source target' lines",
        delimiter=options.delimiter,
        comments=options.comments,
    )
    has_header, is_guess = _is_header(table.sample, options)
    first, body = table.sample[0], table.sample[1:] if has_header else table.sample
    titles = [field.strip() for field in first.fields] if has_header else None

    def values(position: int) -> list[str]:
        return [record.fields[position] for record in body if len(record.fields) > position]

    columns = choose_columns(titles, len(first.fields), options, f"{source.path}:{first.line}", values)
    wanted = "integer" if options.num_nodes is not None else options.names
    common = {WHITESPACE: "white space", "\t": "tabs", ",": "commas"}
    separator = common.get(table.delimiter, repr(table.delimiter))
    note = f"fields separated by {separator}, {'a header' if has_header else 'no header'}; {columns.note}"
    ends = columns.source, columns.target

    def explain(fault: str) -> NoReturn:
        for record in islice(table.records(), int(has_header), None):
            _check_record(record, len(first.fields), columns, table.delimiter, options, source.path)
        raise GraphFormatError(f"{source.path}: cannot be read: {excerpt(fault, 200)}")

    if has_header and options.num_nodes is None and not body and len(list(islice(table.records(), 2))) < 2:
        raise GraphFormatError(f"{source.path}: holds a header but no edges; expected 'source target' lines")
    return Listing(
        source.path,
        database,
        lambda: table.relation(has_header),
        f"c{ends[0]}",
        f"c{ends[1]}",
        None if columns.weight is None else f"c{columns.weight}",
        wanted,
        True,
        options.num_nodes,
        explain,
        note,
        all(is_integer(value.strip()) for end in ends for value in values(end)),
        (first.fields[ends[0]].strip(), first.fields[ends[1]].strip()) if is_guess else None,
    )


def _check_record(
    record: Record, width: int, columns: EdgeColumns, delimiter: str, options: EdgeOptions, path: str
) -> None:
    """Raise an error where a row of an edge list breaks a rule."""
    place, found = f"{path}:{record.line}", excerpt(record.text)
    ends = ("source", columns.source), ("target", columns.target)
    if delimiter != WHITESPACE and (
        record.text.count('"') % 2
        or any("\n" in record.fields[position] for _, position in ends if position < len(record.fields))
    ):
        raise GraphFormatError(f"{place}: a quote is opened but not closed: {found}; close or remove it")
    if len(record.fields) != width:
        expected, way_out = f"{width} fields as on the first line", "Give every line the same fields"
        if width == 2:
            expected = "'source target'"
            way_out = "For weighted edges give every line a weight and pass weighted=True"
        elif width == 3 and columns.weight is not None:
            expected = "'source target weight'"
        count = f"{len(record.fields)} field{'s' * (len(record.fields) != 1)}"
        raise GraphFormatError(f"{place}: expected {expected}, got {count}: {found}. {way_out}")
    for role, position in ends:
        _check_name(record.fields[position].strip(), role, place, found, options)
    if columns.weight is None:
        return
    weight = record.fields[columns.weight].strip()
    if not NUMBER.fullmatch(weight):
        rule = "is not a number"
    elif not math.isfinite(float(weight)):
        rule = "is not finite"
    elif float(weight) < 0:
        rule = "is negative"
    elif float(weight) > MAX_WEIGHT:
        rule = "is more than float32 holds"
    else:
        return
    raise GraphFormatError(
        f"{place}: the weight {excerpt(weight)} {rule}: {found}. Weights are finite numbers, 0 or more; "
        "weighted=False leaves them out"
    )


def _check_name(name: str, role: str, place: str, found: str, options: EdgeOptions) -> None:
    n = options.num_nodes
    if not name:
        raise GraphFormatError(f"{place}: the {role} is empty: {found}; every edge needs two names")
    if n is None and options.names != "integer":
        return
    if not is_integer(name):
        wanted = "num_nodes is given" if n is not None else "names='integer'"
        raise GraphFormatError(f"{place}: the {role} {excerpt(name)} is not an integer, but {wanted}")
    if n is not None and not 0 <= int(name) < n:
        rule = f"with num_nodes={n}, ids are 0 .. {n - 1}"
        raise GraphFormatError(f"{place}: the {role} {name} is out of range: {found}; {rule}")


# A run of equal values packs to almost nothing, so the size of a file does not bound its rows: this does.
_FREE_ROWS, _MAX_ROWS_PER_BYTE = 2**24, 200


@contextmanager
def open_parquet(stream: BinaryIO, path: str) -> Iterator[Any]:
    """Open a Parquet file whose number of rows is in proportion to its size; damage is a GraphFormatError."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        # Arrow's own file: its threads may release a stream after the interpreter has ended.
        with pa.OSFile(stream.name) as source, parquet.ParquetFile(source) as file:
            rows = file.metadata.num_rows
            if rows > max(_FREE_ROWS, _MAX_ROWS_PER_BYTE * size):
                raise GraphFormatError(
                    f"{path}: {rows:,} rows in {size:,} bytes, more than {_MAX_ROWS_PER_BYTE} a byte; "
                    "if you trust it, write it as several files or as CSV"
                )
            yield file
    except SpineError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        raise GraphFormatError(f"{path}: damaged or cut-off Parquet: {excerpt(str(fault), 150)}") from fault


def _parquet_listing(file: Any, path: str, database: "DuckDBPyConnection", options: EdgeOptions) -> Listing:
    """List the edges of a Parquet file: Arrow reads it, whose reader withstands damage, in batches."""
    schema = file.schema_arrow

    def relation() -> str:
        def batches() -> Iterator[Any]:
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                batch.validate(full=True)  # Parquet itself does not check that text is UTF-8
                yield batch

        chosen = pa.schema([schema.field(name) for name in schema.names if name in wanted])
        database.register("listed", pa.RecordBatchReader.from_batches(chosen, batches()))
        return "listed"

    def values(position: int) -> list[str]:
        batch = next(file.iter_batches(batch_size=1000, columns=[schema.names[position]]), None)
        return [] if batch is None else [str(value) for value in batch.column(0).to_pylist()]

    columns = choose_columns(schema.names, len(schema.names), options, path, values)
    ends = columns.source, columns.target, columns.weight
    wanted = [schema.names[position] for position in ends if position is not None]
    return _typed_listing(path, "Parquet", schema, relation, database, options, columns)


def _typed_listing(
    path: str,
    what: str,
    schema: Any,
    relation: Callable[[], str],
    database: "DuckDBPyConnection",
    options: EdgeOptions,
    columns: EdgeColumns | None = None,
) -> Listing:
    """List the edges of a table whose columns have types."""
    titles = list(schema.names)

    def values(position: int) -> list[str]:
        query = f"SELECT {identifier(titles[position])} FROM {relation()} LIMIT 1000"
        return [str(value) for (value,) in database.sql(query).fetchall()]

    columns = columns or choose_columns(titles, len(titles), options, path, values)
    ends = columns.source, columns.target, columns.weight
    wanted = [titles[position] for position in ends if position is not None]
    for title in wanted:
        if titles.count(title) > 1:
            raise GraphFormatError(f"{path}: two columns are both called {title!r}; rename one")
    types = [schema.field(title).type for title in wanted]
    for title, kind in zip(wanted[:2], types, strict=False):
        if not pa.types.is_integer(kind) and not is_text(getattr(kind, "value_type", kind)):
            raise GraphFormatError(f"{path}: column {title!r} is {kind}; names are integers or text")
    if len(types) == 3 and not (
        pa.types.is_integer(types[2]) or pa.types.is_floating(types[2]) or pa.types.is_decimal(types[2])
    ):
        raise GraphFormatError(f"{path}: column {wanted[2]!r} is {types[2]}, not numbers")
    as_integers = options.names != "text" and all(map(pa.types.is_integer, types[:2]))
    if options.num_nodes is not None and not as_integers:
        raise GraphFormatError(f"{path}: num_nodes goes with integer columns; got {types[0]}, {types[1]}")
    if options.names == "integer" and not as_integers:
        raise GraphFormatError(
            f"{path}: columns {wanted[0]!r} and {wanted[1]!r} are {types[0]} and {types[1]}, but "
            "names='integer'; cast them first"
        )

    def explain(fault: str) -> NoReturn:
        row = 0
        query = f"SELECT {', '.join(map(identifier, wanted))} FROM {relation()}"
        try:
            for batch in database.sql(query).to_arrow_reader(_BATCH):
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    _check_values(values, wanted, f"{path}: row {row}", options)
                    row += 1
        except SpineError:
            raise
        except Exception as damage:
            fault = f"damaged or cut-off {what}: {damage}"
        raise GraphFormatError(f"{path}: cannot be read: {excerpt(fault, 200)}")

    note = f"{what}; {columns.note}"
    expressions = [identifier(title) for title in wanted]
    weight = expressions[2] if len(expressions) == 3 else None
    kind = "integer" if as_integers else "text"
    return Listing(
        *(path, database, relation, expressions[0], expressions[1], weight, kind, False, options.num_nodes),
        explain,
        note,
    )


def _check_values(values: Sequence[Any], titles: Sequence[str], place: str, options: EdgeOptions) -> None:
    """Raise an error where a row of a table breaks a rule."""
    for value, title in zip(values[:2], titles, strict=False):
        rule = ""
        if value is None:
            rule = "is empty; every edge needs two names"
        elif isinstance(value, str) and (not value.strip() or "\n" in value):
            rule = "is blank; every edge needs two names" if not value.strip() else "holds a line feed"
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            place = place.rpartition(": row")[0]
            rule = "does not fit int64"
        elif isinstance(value, int) and options.num_nodes and not 0 <= value < options.num_nodes:
            rule = f"is {value}, out of range; with num_nodes={options.num_nodes}, ids are below it"
        if rule:
            raise GraphFormatError(f"{place}: {title!r} {rule}")
    if len(values) == 3 and not (values[2] is not None and 0 <= values[2] <= MAX_WEIGHT):
        rule = "weights are finite numbers, 0 or more, that fit float32"
        raise GraphFormatError(f"{place}: {titles[2]!r} is {values[2]}; {rule}")


def read_graphml(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read the nodes, edges and weights of a GraphML file; nodes keep the file's order.

    Node attributes are not read as features here, since drawing programs store positions and colours there;
    ask for them with ``read_graph(path, features=path)``.
    """
    with opened(path) as source:
        graph = parse_graphml(source.stream, source.path)
    _require_num_nodes(len(graph), options, source.path)
    names = graphml_names(graph, source.path, options.names)
    index = {node: position for position, node in enumerate(graph)}
    listed = list(graph.edges(data=True))
    edges = np.array([(index[one], index[other]) for one, other, _ in listed], np.int64).reshape(-1, 2)
    weights, note = None, "no edge attribute is called weight"
    titles = dict.fromkeys(key for _, _, data in listed for key in data)
    title = next((title for title in titles if title.lower() in WEIGHT_NAMES), None)
    if options.weighted and title is None:
        raise GraphFormatError(f"{source.path}: weighted=True needs an edge attribute called weight")
    if title is not None and options.weighted is not False:
        weights = np.empty(len(listed))
        for row, (one, other, data) in enumerate(listed):
            value = data.get(title)
            try:
                weights[row] = float(value)
            except (TypeError, ValueError, OverflowError) as fault:
                raise GraphFormatError(
                    f"{source.path}: edge ({excerpt(one)}, {excerpt(other)}): the weight "
                    f"{excerpt(str(value))} is not a number; weighted=False leaves weights out"
                ) from fault
        note = f"weights are the edge attribute {title!r}"
    directed = graph.is_directed()
    notes = (f"GraphML, {'directed' if directed else 'undirected'}; {note}",)
    return FileContents(source.path, names, edges, weights=weights, directed=directed, notes=notes)


def parse_graphml(stream: BinaryIO, path: str) -> Any:
    """Parse an open GraphML file with NetworkX, and return its graph."""
    try:
        import networkx
    except ImportError as missing:
        raise MissingPackageError("GraphML needs NetworkX: pip install 'spinegraph[graphs]'") from missing
    data = stream.read()
    _refuse_entities(data, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = networkx.read_graphml(io.BytesIO(data))
        for kind, listed in (
            ("node_default", graph.nodes(data=True)),
            ("edge_default", graph.edges(data=True)),
        ):
            for *_, values in listed:
                values.update(graph.graph[kind] | values)
    except Exception as fault:  # a third-party parser of somebody else's file: anything may come
        raise GraphFormatError(f"{path}: not readable as GraphML: {excerpt(str(fault), 200)}") from fault
    if not len(graph):
        raise GraphFormatError(f"{path}: holds no nodes; a graph needs at least one")
    return graph


def _refuse_entities(data: bytes, path: str) -> None:
    """Refuse broken XML, and entities, which NetworkX's parser would expand without bound."""
    parser = expat.ParserCreate()

    def refuse(name: str, *rest: Any) -> None:
        raise GraphFormatError(
            f"{path}:{parser.CurrentLineNumber}: declares the entity {excerpt(name)}, which is refused: "
            "entities can expand without bound"
        )

    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as fault:
        raise GraphFormatError(f"{path}:{fault.lineno}: not well-formed XML ({fault})") from fault
    except (ValueError, LookupError) as fault:  # an encoding that Python does not know
        if isinstance(fault, GraphFormatError):
            raise
        raise GraphFormatError(f"{path}: not readable as XML: {fault}") from fault


def graphml_names(network: Any, path: str, wanted: str | None = None) -> NDArray[Any]:
    """Return the node ids of a NetworkX graph in file order, as integers where all of them are."""
    wrong = next((node for node in network if not is_integer(node)), None)
    if wanted == "integer" and wrong is not None:
        raise GraphFormatError(f"{path}: node id {excerpt(wrong)} is not an integer, but names='integer'")
    if wanted != "text" and wrong is None:
        return np.fromiter(map(int, network), np.int64, len(network))
    return np.fromiter(network, object, len(network))


def graphml_table(network: Any, path: str) -> Any:
    """Return the node attributes of a NetworkX graph as an Arrow table, one row per node."""
    try:
        table = as_table([data for _, data in network.nodes(data=True)])
    except GraphFormatError as fault:
        raise GraphFormatError(f"{path}: {fault}") from fault
    if not table.num_columns:
        raise GraphFormatError(f"{path}: its nodes have no attributes, so there are no features in it")
    return table


_MATRIX_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
_CSR_KEYS = ("feat_data", "feat_indices", "feat_indptr", "feat_shape")
Arrays = Mapping[str, NDArray[Any]]


def read_npz_network(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read a network from an npz file.

    Either the layout of the package's data sets: ``edges`` (m, 2) with ``num_nodes``; optionally ``weights``
    (m,), ``names`` or ``node_ids`` (n,), ``labels``, and features as a matrix ``features`` or in the CSR
    parts ``feat_data``, ``feat_indices``, ``feat_indptr``, ``feat_shape``. Or an adjacency matrix as
    ``scipy.sparse.save_npz`` writes it.
    """
    name, arrays = display_name(path), read_npz(path)
    if "edges" in arrays:
        return _from_layout(arrays, name, options)
    if "format" in arrays and "shape" in arrays:
        return _from_matrix(sparse_matrix(arrays, name), name, options)
    raise GraphFormatError(
        f"{name}: holds neither 'edges' (m, 2) nor a SciPy sparse matrix; its arrays are "
        f"{', '.join(sorted(arrays)[:10]) or 'none'}"
    )


def _from_layout(arrays: Arrays, path: str, options: EdgeOptions) -> FileContents:
    edges = arrays["edges"]
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise GraphFormatError(
            f"{path}: edges must be integers of shape (m, 2); got {edges.dtype} {edges.shape}"
        )
    names = names_of(arrays, "names" if "names" in arrays else "node_ids", path)
    n = _num_nodes(arrays, names, edges, path, options)
    wrong = (edges < 0) | (edges >= n)
    if wrong.any():
        row, side = np.argwhere(wrong)[0].tolist()
        value = int(edges[row, side])
        raise GraphFormatError(f"{path}: edges[{row}, {side}] is {value}, out of range; ids are 0 .. {n - 1}")
    labels = arrays.get("labels")
    if labels is not None and labels.shape[:1] != (n,):
        raise GraphFormatError(f"{path}: labels of shape {labels.shape} for {n} nodes; every node needs one")
    weights = arrays.get("weights") if options.weighted is not False else None
    if weights is None and options.weighted:
        raise GraphFormatError(f"{path}: weighted=True needs an array 'weights' (m,); there is none")
    columns = names_of(arrays, "feature_names", path)
    return FileContents(
        path,
        _as_requested(np.arange(n) if names is None else names, options, path),
        edges,
        weights=weights,
        features=features_of(arrays, path),
        feature_names=None if columns is None else tuple(map(str, columns)),
        labels=labels,
        notes=(f"npz with {', '.join(sorted(arrays))}",),
    )


def _from_matrix(matrix: Any, path: str, options: EdgeOptions) -> FileContents:
    n = matrix.shape[0]
    if matrix.shape[1] != n:
        raise GraphFormatError(f"{path}: an adjacency matrix is square; got {matrix.shape}")
    _require_num_nodes(n, options, path)
    sources, targets, weights = matrix_entries(matrix, options.weighted)
    note = "every value is 1, so no weights" if weights is None else "weights are the matrix's values"
    if options.weighted is not None:
        note = f"weighted={options.weighted}"
    return FileContents(
        path,
        _as_requested(np.arange(n), options, path),
        np.column_stack((sources, targets)),
        weights=weights,
        directed=True,  # entries without their mirror are what makes a matrix directed
        notes=(f"SciPy sparse matrix; {note}",),
    )


def _as_requested(names: NDArray[Any], options: EdgeOptions, path: str) -> NDArray[Any]:
    if options.names == "integer" and names.dtype == object:
        raise GraphFormatError(f"{path}: its names are text, {names[0]!r:.60} the first, but names='integer'")
    return names.astype(str).astype(object) if options.names == "text" else names


def _num_nodes(
    arrays: Arrays, names: NDArray[Any] | None, edges: NDArray[Any], path: str, options: EdgeOptions
) -> int:
    if "num_nodes" in arrays:
        found = arrays["num_nodes"]
        if found.size != 1 or found.dtype.kind not in "iu" or found.item() < 1:
            raise GraphFormatError(
                f"{path}: num_nodes must be one number above 0; got {found.tolist()!r:.60}"
            )
        n = found.item()
    elif names is not None:
        n = len(names)
    else:
        n = options.num_nodes or (int(edges.max()) + 1 if len(edges) else 0)
    _require_num_nodes(n, options, path)
    if names is not None and len(names) != n:
        raise GraphFormatError(f"{path}: {len(names)} names for {n} nodes; every node needs one name")
    if n < 1:
        raise GraphFormatError(f"{path}: no edges, so no nodes; a graph has at least one node")
    _require_plausible(n, len(names) if names is not None else len(edges), path)
    return int(n)


def _require_num_nodes(n: int, options: EdgeOptions, path: str) -> None:
    if options.num_nodes not in (None, n):
        raise GraphFormatError(f"{path}: holds {n} nodes, but num_nodes={options.num_nodes} was asked for")


def _require_plausible(claimed: int, held: int, path: str) -> None:
    """Refuse a number of nodes or columns that is out of proportion to what the file holds."""
    if claimed > GAPS_ALLOWED_BELOW and claimed > 64 * held:
        raise GraphFormatError(
            f"{path}: claims {claimed:,} nodes or columns but holds {held:,} entries; "
            "check num_nodes, the shape and the ids"
        )


def sparse_matrix(arrays: Arrays, path: str) -> Any:
    """Return the matrix of ``scipy.sparse.save_npz``, as CSR or COO, its indices checked."""
    found = arrays["format"].tolist()
    kind = found.decode("latin-1") if isinstance(found, bytes) else str(found)
    if kind not in _MATRIX_PARTS:
        raise GraphFormatError(f"{path}: a sparse matrix in format {kind[:20]!r}; save matrix.tocsr()")
    needed = ("data", *_MATRIX_PARTS[kind])
    lacking = [key for key in needed if key not in arrays]
    if lacking:
        raise GraphFormatError(f"{path}: a sparse matrix without {', '.join(lacking)}; write it again")
    shape = arrays["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise GraphFormatError(f"{path}: the shape of a matrix is two numbers; got {shape.tolist()}")
    _require_plausible(max(shape.tolist()), arrays["data"].size, path)
    data, *parts = (arrays[key] for key in needed)
    is_flat = all(part.ndim == 1 for part in (data, *parts))
    if not is_flat or data.dtype.kind not in "biuf" or any(part.dtype.kind not in "iu" for part in parts):
        raise GraphFormatError(f"{path}: the parts of a sparse matrix must be rows of numbers")
    try:
        if kind == "coo":
            return sparse.coo_array((data, tuple(parts)), shape=shape.tolist())
        made = sparse.csr_array if kind == "csr" else sparse.csc_array
        matrix = made((data, *parts), shape=shape.tolist())
        matrix.check_format(full_check=True)
        return matrix.tocsr()
    except (ValueError, TypeError, OverflowError, IndexError) as fault:
        raise GraphFormatError(f"{path}: the parts of a matrix do not fit together: {fault}") from fault


def features_of(arrays: Arrays, path: str) -> Any:
    """Return the features (n, f) that an npz file holds, dense or CSR, or None."""
    present = [key for key in _CSR_KEYS if key in arrays]
    if not present:
        return arrays.get("features")
    if len(present) < len(_CSR_KEYS):
        raise GraphFormatError(f"{path}: features need {', '.join(_CSR_KEYS)}; found {', '.join(present)}")
    parts = {key.removeprefix("feat_"): arrays[key] for key in _CSR_KEYS}
    return sparse_matrix({**parts, "format": np.array("csr")}, path)


def names_of(arrays: Arrays, key: str, path: str) -> NDArray[Any] | None:
    """Return an array of names, integers or text, or None where there is none."""
    if key not in arrays:
        return None
    found = arrays[key]
    if found.ndim != 1 or found.dtype.kind not in "iuUS":
        raise GraphFormatError(
            f"{path}: {key} must be integers or text (n,); got {found.dtype} {found.shape}"
        )
    if found.dtype.kind in "iu":
        return found
    try:
        return found.astype(str).astype(object)
    except (UnicodeDecodeError, ValueError) as fault:
        raise GraphFormatError(f"{path}: {key} holds text that cannot be decoded: {fault}") from fault
