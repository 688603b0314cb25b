"""Reads edges: tables and queries through DuckDB, GraphML and npz directly."""

import csv
import io
import math
import os
import re
import tempfile
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations, count, islice, permutations, takewhile
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, TypeVar
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from scipy import sparse

from spinegraph.errors import GraphFormatError, OutputError, ParameterError, SpineError, SpineWarning
from spinegraph.graph.convert import optional_package
from spinegraph.graph.edges import GAPS_ALLOWED_BELOW, matrix_entries, read_listing
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import Opened, display_name, naming, opened, read_npz
from spinegraph.graph.tables import CURRENCY, NUMBERS, as_table, is_number, is_text, parse_texts, read_value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Result = TypeVar("Result")

WEIGHT_NAMES = ("weight", "weights", "w", "edgeweight", "strength")
# Titles of weights if the column holds numbers >= 0.
_AMOUNTS = ("amount", "count", "counts", "freq", "frequency", "times", "volume")
_PAIRS = (
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("i", "j")),
    *(("start", "end"), ("head", "tail"), ("node", "neighbor"), ("node", "neighbour"), ("left", "right")),
    *(("sender", "receiver"), ("sender", "recipient"), ("payer", "payee"), ("follower", "followee")),
    *(("caller", "callee"), ("citing", "cited"), ("parent", "child"), ("origin", "destination")),
    *(("who", "whom"), ("buyer", "seller"), ("user", "item"), ("debtor", "creditor"), ("von", "nach")),
    *(("manager", "employee"), ("employee", "manager"), ("quelle", "ziel"), ("origen", "destino")),
    *(("absender", "empfaenger"), ("absender", "empfanger"), ("remitente", "destinatario")),
    *(("source", "cible"), ("expediteur", "destinataire")),
)
# What both titles may end with: from_account and to_account are from and to.
_ENDING = re.compile("(?:node|account|acct|user|ip|id|name|no|nr|number|key|code)*")
MAX_WEIGHT = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class EdgeOptions:
    """How to read edges, as in :func:`~spinegraph.read_graph`; None means detect."""

    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | None = None
    weighted: bool | None = None
    header: bool | None = None
    delimiter: str | None = None
    comments: Sequence[str] = ("#", "%")
    names: str | None = None
    num_nodes: int | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and self.weighted is False:
            raise ParameterError("a weight column is given, but weighted is False; leave one of them out")
        if self.delimiter is not None and not re.fullmatch(r'[^\0"\r\n\x80-\U0010ffff]', self.delimiter):
            raise ParameterError(
                f"delimiter must be one ASCII character (' ' for white space); got {self.delimiter!r}"
            )
        if self.names not in (None, "integer", "text"):
            raise ParameterError(f"names must be 'integer', 'text' or None; got {self.names!r}")
        if isinstance(self.comments, str) or not all(isinstance(m, str) and m for m in self.comments):
            raise ParameterError(f"comments must be a tuple of texts, such as ('#',); got {self.comments!r}")
        if self.num_nodes is not None and (not isinstance(self.num_nodes, int) or self.num_nodes < 1):
            raise ParameterError(f"num_nodes must be a whole number of at least 1; got {self.num_nodes!r}")
        if self.num_nodes is not None and self.names == "text":
            raise ParameterError("num_nodes is for nodes 0 .. num_nodes-1; it does not go with names='text'")

    @property
    def columns(self) -> tuple[str | int | None, ...]:
        """Source, target and weight."""
        return self.source, self.target, self.weight


@dataclass(frozen=True, eq=False)
class FileContents:
    """The contents of an edge file, before edges are merged, dropped or made symmetric."""

    path: str
    names: NDArray[Any]  # int64 or object (n,), distinct
    edges: NDArray[np.integer[Any]]  # (m, 2) positions in 0 .. n-1
    weights: NDArray[np.floating[Any]] | None = None  # (m,)
    features: Any = None  # float32 CSR or dense array (n, f)
    feature_names: tuple[str, ...] | None = None  # (f,)
    encoder: FeatureEncoder | None = None  # of the features, if they come from a table
    labels: NDArray[Any] | None = None  # (n,) or (n, c)
    directed: bool = False  # the file says so, or lists both directions of undirected edges
    notes: tuple[str, ...] = ()  # what was detected, a sentence each


Values = Callable[[int], list[str]]  # from the position of a column to some of its values


class EdgeColumns(NamedTuple):
    """Positions of the source, target and weight columns, and a sentence on the choice."""

    source: int
    target: int
    weight: int | None
    note: str = ""
    titles: tuple[str, str] | None = None  # of both ends


def choose_columns(
    titles: Sequence[str] | None, width: int, options: EdgeOptions, place: str, values: Values = lambda _: []
) -> EdgeColumns:
    """Choose the source, target and weight columns of a table with ``width`` columns.

    ``titles`` are the column names, if any; ``place`` is the file and line, for messages; ``values`` returns
    some values of a column.
    """
    if width < 2:
        raise GraphFormatError(
            f"{place}: expected 'source target', got {width} field; pass another separator with delimiter=..."
        )
    source, target, weight = (
        None if column is None else _position(column, titles, width, place) for column in options.columns
    )
    if source is None and target is None:
        _refuse_matrix(titles, width, place, values)
    source, target = _ends(titles, width, source, target, weight, values)
    if source == target:
        raise ParameterError(f"{place}: source and target cannot both be column {source + 1}")
    others = [position for position in range(width) if position not in (source, target, weight)]
    is_guess = False
    if weight is None and options.weighted is not False:
        if options.weighted and not others:
            raise GraphFormatError(f"{place}: weighted=True needs a third column, but there are only 2")
        weight, is_guess = _weight_column(titles, others, options, values)
    shown = [str(position + 1) if titles is None else repr(titles[position]) for position in range(width)]
    note = f"source is column {shown[source]}, target is column {shown[target]}; "
    note += "no weights" if weight is None else f"weights are column {shown[weight]}"
    note += " (numbers, taken as weights; --unweighted or weighted=False ignores them)" if is_guess else ""
    column = "" if titles else "column "
    left_out = [column + shown[position] for position in others if position != weight]
    if titles is not None and weight is None and options.weighted is None:
        amounts = [position for position in others if normalized(titles[position]) in _AMOUNTS]
        note += "".join(f" ({shown[position]} is not all numbers >= 0)" for position in amounts)
        numbers = [shown[at] for at in others if titles[at].strip() and _are_amounts(values(at))]
        note += "".join(f" (--weight {one} or weight={one} uses its numbers)" for one in numbers[:1])
    if left_out:
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        note += f"; left out: {', '.join(left_out[:5])}{more}"
    ends = None if titles is None else (titles[source], titles[target])
    return EdgeColumns(source, target, weight, note, ends)


def _name_two_kinds(first: str, second: str) -> bool:
    """Return whether two titles name ids of different kinds of things: user_id, movie_id, not co_user_id."""
    titles = normalized(first), normalized(second)
    one, other = (re.sub("(?:node)?id$", "", title) for title in titles)
    if not one or not other or one == titles[0] or other == titles[1]:
        return titles == ("user", "item")
    alike = {word for pair in _PAIRS for word in pair} | {"boss", "contact", "friend", "mentor"}
    words = [{*re.findall("[A-Za-z][a-z]{2,}", title)} - {"node"} for title in (first, second)]
    is_one_kind = words[0] & words[1] or one.endswith(other) or other.endswith(one)
    return not is_one_kind and {one, other}.isdisjoint(alike - {"user", "item"})


def is_title_pair(first: str, second: str) -> bool:
    """Return whether two texts are usual titles of a source and a target column."""
    first, second = normalized(first), normalized(second)
    for size in range(min(len(first), len(second))):
        ending = first[len(first) - size :]
        is_shared = second.endswith(ending) and _ENDING.fullmatch(ending)
        if is_shared and (first.removesuffix(ending), second.removesuffix(ending)) in _PAIRS:
            return True
    numbered = (first[-1:], second[-1:]) in (("1", "2"), ("a", "b"))
    return len(first) > 2 and first[:-1] == second[:-1] and numbered


def normalized(title: str) -> str:
    """Return a title's Latin letters, without accents, and digits, in lower case; others stay as they are."""
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", title).lower()) or title.strip()


def _position(column: str | int, titles: Sequence[str] | None, width: int, place: str) -> int:
    if isinstance(column, int):
        if not 0 <= column < width:
            raise ParameterError(f"{place}: there is no column {column}; positions are 0 .. {width - 1}")
        return column
    if titles is None or column not in titles:
        known = "there is no header" if titles is None else f"the columns are {', '.join(titles)}"
        raise ParameterError(f"{place}: no column {column!r}; {known}. Positions (0, 1, ...) work too")
    return list(titles).index(column)


def samples(table: pa.Table) -> Values:
    """Return the function from a column's position to its first values as text."""

    def values(position: int) -> list[str]:
        some = parse_texts(table[position][:1000].combine_chunks(), "number")[0]
        return ["" if value is None else str(value) for value in some.to_pylist()]

    return values


def _refuse_matrix(titles: Sequence[str] | None, width: int, place: str, values: Values) -> None:
    """Raise if a table is an adjacency matrix: its titles name its rows, or it is a square of numbers."""
    if width < 4:
        return
    first = values(0)
    is_matrix = titles is not None and first == list(titles[1:])
    if len(first) in (width, width + 1) and not is_matrix:
        rows = [values(position)[-width:] for position in range(width)]
        is_matrix = all(map(_are_amounts, rows)) and all(float(row[at]) == 0 for at, row in enumerate(rows))
    if is_matrix:
        message = "looks like an adjacency matrix, not like a list of edges; read it as an array"
        raise GraphFormatError(f"{place}: {message} and pass Graph.from_scipy(scipy.sparse.csr_array(array))")


def _ends(
    titles: Sequence[str] | None,
    width: int,
    source: int | None,
    target: int | None,
    weight: int | None,
    values: Values,
) -> tuple[int, int]:
    """Return source and target: as given, else by usual titles, else two others that may hold names."""
    for first, second in permutations(range(min(width, 64)), 2) if titles is not None else ():
        is_free = source in (None, first) and target in (None, second) and weight not in (first, second)
        if is_free and is_title_pair(titles[first], titles[second]):  # type: ignore[index]
            return first, second
    free = [position for position in range(width) if position not in (source, target, weight)]
    if len(free) > 2:
        free.sort(key=lambda position: _is_no_name(titles[position] if titles else None, values(position)))
        if titles is not None and source is target is None:
            free = [*_linked({at: values(at) for at in free[:16]}), *free]
    source = (free.pop(0) if free else 0) if source is None else source
    target = (free.pop(0) if free else 1) if target is None else target
    return source, target


def _linked(columns: dict[int, Sequence[str]]) -> tuple[int, int]:
    """Return the first two columns or, if they share no value, two columns of words that share most.

    Only such with twice as many values replace the first two, one of which is then a category.
    """
    found = {at: set(some) - {""} for at, some in columns.items()}
    one, other = list(found)[:2]
    fewest = min(len(found[one]), len(found[other]))
    words = [at for at in found if len(found[at]) >= 2 * fewest and not any(map(_is_value, found[at]))]
    shared = {(a, b): len(found[a] & found[b]) for a, b in combinations(words, 2)}
    best = max(shared, key=shared.__getitem__, default=(one, other))
    return best if found[one].isdisjoint(found[other]) and shared.get(best, 0) > 1 else (one, other)


def _is_no_name(title: str | None, values: Sequence[str]) -> bool:
    """Return whether a column holds dates, or the row numbers that pandas writes without a title."""
    some = [value for value in values if value]
    is_index = title == "" and some == [str(row) for row in range(len(some))]
    return is_index or (bool(some) and all(map(_CALENDAR.fullmatch, some)))


def _are_amounts(values: Sequence[str]) -> bool:
    numbers = [value.strip() for value in values]
    return bool(numbers) and all(NUMBER.fullmatch(number) and float(number) >= 0 for number in numbers)


def _weight_column(
    titles: Sequence[str] | None, others: Sequence[int], options: EdgeOptions, values: Values
) -> tuple[int | None, bool]:
    """Return the weight column among ``others`` or None, and whether that is a guess from its numbers."""
    known = {} if titles is None else {normalized(titles[at]): at for at in reversed(others)}
    for name in (*WEIGHT_NAMES, *_AMOUNTS):
        if name in known and (name in WEIGHT_NAMES or _are_amounts(values(known[name]))):
            return known[name], False
    if options.weighted:
        return others[0], False
    if titles is None and len(others) == 1 and not any(column is not None for column in options.columns):
        third = [value.strip() for value in values(others[0])]
        numbers = [float(value) for value in third if NUMBER.fullmatch(value)]
        # Numbers below 0 are ratings, and integers that would be times since 1973 are time stamps.
        is_time = all(value >= 1e8 and value.is_integer() for value in numbers)
        if numbers and not is_time and not (len(numbers) == len(third) and min(numbers) < 0):
            return others[0], True
    return None, False


# Text: DuckDB reads a plain file; if it or a check fails, a slow scan finds the line for the message.

BLOCK = 2**19
SMALL = 2**26  # bytes of text that Arrow reads at once
MAX_LINE, MAX_ROW = 2**20, 2**24  # bytes in a line of edges and of features
WHITESPACE = " "
_SAMPLE_LINES, _SAMPLE_SIZE = 1000, 2**18
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
NUMBER = re.compile(r"(?i)[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)")
_DATE = re.compile(r"[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}.*")
_CALENDAR = re.compile(r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4})(?:[T ].*)?")
_WORD = re.compile(r"[^\W\d_][^\W\d]*(?:[ ./()-][^\W\d]*)*")
_DELIMITER_LINE = re.compile(r"(?i)sep=([^\s\w])")  # Excel's first line
# What Python's str.strip removes; DuckDB's trim would remove spaces only.
_BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
_BLANK = r"[\s\x{b}\x{1c}-\x{1f}\x{85}\pZ]"  # the same in DuckDB's regular expressions


class Record(NamedTuple):
    """A row of a table: its file and line, for messages, its text and its fields."""

    place: str
    text: str
    fields: list[str]


@dataclass(frozen=True, eq=False)
class TextTable:
    """A text file as a table: its format, its first rows, and a plain copy for DuckDB."""

    path: str
    stream: BinaryIO
    comments: Sequence[str]
    max_line: int
    delimiter: str
    sample: list[Record]
    copy: str
    has_quotes: bool
    are_integers: bool  # whether all fields below the first line are integers in canonical form

    def relation(self, has_header: bool) -> str:
        """Return the table as a FROM clause; its columns c0, c1, ... are text."""
        quote = "" if self.delimiter == WHITESPACE else '"'
        longest = min(2 * self.max_line, os.path.getsize(self.copy) + 2**16)
        columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(self.sample[0].fields)))
        return (
            f"read_csv({literal(self.copy)}, auto_detect = false, delim = {literal(self.delimiter)}, "
            f"quote = '{quote}', escape = '{quote}', header = {has_header}, columns = {{{columns}}}, "
            f"compression = 'none', new_line = '\\n', max_line_size = {longest}, "
            f"buffer_size = {8 * longest})"
        )

    def read(self, has_header: bool, columns: Sequence[int]) -> Any:
        """Return some columns as Arrow arrays of text; for text without quotes only."""
        names = [f"c{number}" for number in range(len(self.sample[0].fields))]
        shape = {"column_names": names, "skip_rows_after_names": int(has_header)}
        read = arrow_csv.ReadOptions(block_size=2 * self.max_line, **shape)
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, quote_char=False)
        kept, kinds = [names[number] for number in columns], dict.fromkeys(names, pa.string())
        gaps = {"strings_can_be_null": True, "null_values": [""]}
        convert = arrow_csv.ConvertOptions(column_types=kinds, include_columns=kept, **gaps)
        return arrow_csv.read_csv(self.copy, read, parse, convert).columns

    def records(self, stream: BinaryIO | None = None) -> Iterator[Record]:
        """Yield every row, the header first; a slow scan, used for messages only."""
        lines = _lines(stream or self.stream, self.path, self.max_line)
        return _records(lines, self.path, self.delimiter, self.comments)

    def require_fields(self, record: Record, expected: str, way_out: str = "") -> None:
        """Raise if a row has an open quote or another number of fields than the first row."""
        found, width = len(record.fields), len(self.sample[0].fields)
        if self.delimiter != WHITESPACE and record.text.count('"') % 2:
            fault = f"a quote is opened but not closed: {excerpt(record.text)}; close it"
            raise GraphFormatError(f"{record.place}: {fault}")
        if found != width:
            fault = f"got {found} field{'s' * (found != 1)}: {excerpt(record.text)}"
            expected = f"expected {expected or f'{width} fields as on the first line'}"
            way_out = way_out or "Give every line the same number of fields"
            raise GraphFormatError(f"{record.place}: {expected}, {fault}. {way_out}")


def open_text(
    source: Opened,
    folder: str,
    *,
    expected: str,
    delimiter: str | None = None,
    comments: Sequence[str] = ("#", "%"),
    max_line: int = MAX_LINE,
) -> TextTable:
    """Detect the format of a text file from its first thousand lines, and make a plain copy if needed.

    The delimiter is the first of tab, comma, semicolon and bar that every line has (in a ``.csv`` file, comma
    first), else white space.
    """
    lines: list[tuple[int, str]] = []
    size = 0
    for line, text in _lines(source.stream, source.path, max_line):
        if line == 1 and (named := _DELIMITER_LINE.fullmatch(text.strip())):
            delimiter, comments = delimiter or named[1], (*comments, text.strip())
        if not _is_skipped(text, comments):
            lines.append((line, text))
        size += len(text)
        if len(lines) == _SAMPLE_LINES or (size > _SAMPLE_SIZE and len(lines) > 1):
            break
    if not lines:
        raise GraphFormatError(f"{source.path}: contains no {expected}")
    delimiter = delimiter or _find_delimiter([text for _, text in lines], source.path)
    sample = list(_records(lines, source.path, delimiter, comments))
    are_integers = all(is_integer(field.strip()) for record in sample[1:] for field in record.fields)
    is_odd = is_inside = has_quotes = False
    for number, (data, is_plain) in enumerate(_blocks(source.stream)):
        clean, is_inside = _clean_lines(data, delimiter, comments, is_inside)
        is_odd = is_odd or not is_plain or clean is not data
        has_quotes = has_quotes or b'"' in clean
        below = clean[clean.find(b"\n") :] if number == 0 else clean
        are_integers = are_integers and _are_integers(below, delimiter)
    copy = source.file
    if is_odd:
        copy = os.path.join(folder, "rows")
        with open(copy, "wb") as output:
            is_inside = False
            for data, _ in _blocks(source.stream):
                clean, is_inside = _clean_lines(data, delimiter, comments, is_inside)
                output.write(clean)
    found = comments, max_line, delimiter, sample, copy, has_quotes, are_integers
    return TextTable(source.path, source.stream, *found)


def _are_integers(data: bytes, delimiter: str) -> bool:
    """Return whether lines hold only integers in canonical form: no 007, +7, -0, 1e3 or text."""
    kinds = bytearray(b"x" * 256)
    kinds[48:58] = b"0111111111"
    for mark in f"-\n{delimiter}".encode():
        kinds[mark] = 10
    found = data.translate(bytes(kinds))
    is_padded = any(found.startswith(n) or b"\n" + n in found for n in (b"00", b"01")) or b"-0" in data
    return b"x" not in found and not is_padded


def _blocks(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks of whole lines, each ended by a line feed, and whether the file has them like that."""
    stream.seek(0)
    has_mark, rest, is_end = stream.read(3) == b"\xef\xbb\xbf", b"", False
    stream.seek(3 if has_mark else 0)
    while not is_end:
        fresh = stream.read(BLOCK)
        is_end = len(fresh) < BLOCK
        whole = rest + fresh
        cut = max(whole.rfind(b"\n"), whole.rfind(b"\r", 0, -1)) + 1
        if is_end or len(whole) > 2 * max(BLOCK, MAX_ROW):  # too long to be a line
            cut = len(whole)
        data, rest = whole[:cut], whole[cut:]
        is_plain = b"\r" not in data and not has_mark
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data:
            yield data if data.endswith(b"\n") else data + b"\n", is_plain


def _lines(stream: BinaryIO, path: str, max_line: int) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line."""
    number = 0
    for data, _ in _blocks(stream):
        start = 0
        while start < len(data):
            end, number = data.index(b"\n", start), number + 1
            line, start = data[start:end], end + 1
            fault = "" if len(line) <= max_line else f"a line of more than {max_line:,} bytes, beginning "
            rule = "write one edge or one node per line"
            if b"\0" in line:
                fault, rule = "binary data where text was expected: ", "expected an edge list as UTF-8 text, "
                rule += "or a Parquet, npz or GraphML file"
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError:
                fault, text = fault or "not UTF-8 text: ", line.decode("cp1252", "replace")
                rule = f"convert it: iconv -f cp1252 -t utf-8 {os.path.basename(path)} > utf8.csv"
            if fault:
                raise GraphFormatError(f"{path}:{number}: {fault}{excerpt(text)}; {rule}")
            yield number, text


def _clean_lines(data: bytes, delimiter: str, comments: Sequence[str], is_inside: bool) -> tuple[bytes, bool]:
    """Return the lines without blank lines and comments, with white space as single spaces.

    ``is_inside`` tells whether a quoted field is open before and after them; its lines are all kept.
    """
    if delimiter == WHITESPACE:
        data = data.replace(b"\t", b" ")
        while b"  " in data:
            data = data.replace(b"  ", b" ")
        data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")
    marks = tuple(mark.encode() for mark in comments)
    is_odd = np.zeros(256, bool)
    is_odd[[*b" \t\n", *(mark[0] for mark in marks)]] = True
    found = np.frombuffer(data, np.uint8)
    if not is_odd[found[:1]].any() and not is_odd[found[np.flatnonzero(found[:-1] == 10) + 1]].any():
        has_quotes = delimiter != WHITESPACE and b'"' in data
        return data, is_inside ^ (has_quotes and data.count(b'"') % 2 == 1)
    kept = []
    for line in data.splitlines(keepends=True):
        text = line.strip(b" \t\n")
        if is_inside or (text and not text.startswith(marks)):
            kept.append(line)
            is_inside ^= delimiter != WHITESPACE and line.count(b'"') % 2 == 1
    return b"".join(kept), is_inside


def _is_skipped(line: str, comments: Sequence[str]) -> bool:
    """Return whether a line is blank or a comment, by the same rule as :func:`_clean_lines`."""
    text = line.strip(" \t\n")
    return not text or text.startswith(tuple(comments))


def _records(
    lines: Iterable[tuple[int, str]], path: str, delimiter: str, comments: Sequence[str]
) -> Iterator[Record]:
    """Yield the rows of numbered lines; a quoted field may hold line feeds."""
    rest = iter(lines)
    for line, text in rest:
        if _is_skipped(text, comments):
            continue
        if delimiter != WHITESPACE and text.count('"') % 2:
            for _, more in islice(rest, 100_000):
                text += f"\n{more}"
                if more.count('"') % 2:
                    break
        yield Record(f"{path}:{line}", text, _split_line(text, delimiter))


def _split_line(text: str, delimiter: str) -> list[str]:
    """Return the fields of a row as DuckDB splits it."""
    if delimiter == WHITESPACE:
        return re.split(r"[ \t]+", text.strip(" \t"))  # not str.split: names may contain other kinds of space
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration):  # a field beyond the csv module's limit
        return text.split(delimiter)


def excerpt(text: str | bytes, limit: int = 60) -> str:
    """Return a piece of input for a message, quoted and cut short."""
    if isinstance(text, bytes):
        text = text[: 4 * limit].decode("utf-8", "backslashreplace")
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}..."


def is_integer(text: str) -> bool:
    """Return whether a name is an int64 in canonical form: 7, but not 007, +7 or -0."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def _find_delimiter(texts: Sequence[str], path: str) -> str:
    """Return the field separator of these lines; a space stands for any white space."""
    # Numbers contain no spaces, so between them tabs and spaces are the same.
    numbers = all(NUMBER.fullmatch(field) for text in texts[1:] or texts for field in text.split())
    if numbers and len(texts[0].split()) == len(texts[-1].split()):
        return WHITESPACE
    if all(";" in text and "," not in re.sub("[0-9],[0-9]", "", text) for text in texts):
        return ";"  # commas are decimal commas
    is_csv = path.lower().removesuffix(".gz").endswith(".csv")
    for candidate in ",\t;" if is_csv else "\t,;":
        if all(candidate in text for text in texts):
            return candidate
    if all("|" in text for text in texts) and any(len(text.split()) == 1 for text in texts):
        return "|"
    # A line without the delimiter is broken; it is no reason to split all lines differently.
    for candidate in ",\t;":
        found = sum(candidate in text for text in texts)
        if 2 * found > len(texts) or (found and is_csv and candidate == ","):
            return candidate
    return WHITESPACE


def _is_header(records: Sequence[Record], options: EdgeOptions) -> tuple[bool, bool]:
    """Return whether the first row of edges is a header, and whether that is a guess to warn about."""
    if options.header is not None or any(isinstance(column, str) for column in options.columns):
        return options.header is not False, False
    first, *body = [[field.strip() for field in record.fields] for record in records]
    if len(first) < 2 or any(map(_is_value, first)):
        return False, False
    pairs = [titles for titles in permutations(first[:8], 2) if is_title_pair(*titles)]
    if pairs and not any(_continue_below(titles, body) for titles in pairs):
        return True, False
    if any(normalized(field) in WEIGHT_NAMES for field in first[2:]):
        return True, False
    columns = [[row[side] for row in body if len(row) > side] for side in range(len(first))]
    for title, below in zip(first, columns, strict=True):
        if title and any(below) and all(map(_is_value, filter(None, below))):
            return True, False
    ends = enumerate(options.columns[:2])
    source, target = (side if isinstance(side, int) else number for number, side in ends)
    if max(source, target) >= len(first):
        return False, False
    words = first[source], first[target]
    names = {*columns[source], *columns[target]}
    is_long = max(min(map(len, words)), min(map(len, names), default=0)) > 1
    is_word = is_long and all(map(_WORD.fullmatch, words))
    guessed = bool(body) and is_word and words[0] != words[1] and names.isdisjoint(words)
    return guessed, guessed


def _is_value(text: str) -> bool:
    return bool(NUMBER.fullmatch(text) or _DATE.fullmatch(text))


def _continue_below(titles: tuple[str, str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether two texts that may be titles look like the names below: node1, node2, then node3."""
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*titles, strict=False)))
    names = {field for row in body for field in row}
    is_prefix = len(shared) > 1 and any(name.startswith(shared) for name in names)
    return is_prefix or not names.isdisjoint(titles)


# DuckDB: every table is a relation; names become positions by value or by hash.


@contextmanager
def connection(
    memory: int | None = None, place: str | None = None
) -> "Iterator[tuple[DuckDBPyConnection, str]]":
    """Open an in-memory DuckDB that loads no extensions, and a temporary folder in ``place``."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="spine-", dir=place) as folder:
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,
            "temp_directory": folder,
            **({} if memory is None else {"memory_limit": f"{memory // 2**20}MiB"}),
        }
        with duckdb.connect(":memory:", config=settings) as database:
            database.execute("SET enable_progress_bar = false")  # it would print to standard output
            yield database, folder


def literal(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a column's name as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def as_integer(column: str) -> str:
    """Return SQL for a text as an integer, NULL unless it is one in canonical form."""
    number = f"TRY_CAST({column} AS BIGINT)"
    return f"CASE WHEN CAST({number} AS VARCHAR) = {column} THEN {number} END"


class Loaded(NamedTuple):
    """Facts about the tables ``spine_edges`` and ``spine_names``."""

    listed: int  # edges
    names: int
    are_integers: bool
    are_range: bool  # names are 0, 1, ...


@dataclass(frozen=True, eq=False)
class Listing:
    """Columns of names, and perhaps weights, in a table that DuckDB reads."""

    path: str
    database: Any  # DuckDB connection; None if Arrow alone reads a small text
    relation: str  # the table as a FROM clause
    ends: tuple[str, str]  # SQL expressions of type VARCHAR or, in tables of integers, BIGINT
    weight: str | None  # SQL expression of type DOUBLE
    options: EdgeOptions
    note: str
    find_fault: Callable[[], None]  # raises an error that names the first bad row
    numbers: tuple[str, str] | None = None  # SQL of both ends as BIGINT, NULL if not an integer
    guessed_header: tuple[str, str] | None = None
    text: Callable[[], Any] | None = None  # reads the ends, and perhaps weights, of a small text
    titles: tuple[str, str] | None = None  # of both ends

    def raise_fault(self, fault: str) -> NoReturn:
        """Raise an error that names the first bad row, if one can be found."""
        for words in ("No space left on device", "max_temp_directory_size", "Out of Memory"):
            if words in fault:
                message = (
                    f"{self.path}: temporary files cannot be written ({words}); nothing was changed; free"
                )
                way_out = "space next to the store or in TMPDIR, or allow more memory, and run the same again"
                raise OutputError(f"{message} {way_out}")
        try:
            self.find_fault()
        except SpineError:
            raise
        except Exception as damage:
            fault = str(damage)
        raise GraphFormatError(f"{self.path}: cannot be read: {excerpt(fault, 200)}")

    def run(self, work: Callable[[], Result]) -> Result:
        """Run a query in another thread, so that an interrupt stops it; errors name the first bad row."""
        with ThreadPoolExecutor(1) as pool:
            try:
                return pool.submit(work).result()
            except KeyboardInterrupt:
                self.database.interrupt()
                raise
            except Exception as fault:  # of DuckDB, or its message cannot be decoded
                self.raise_fault(str(fault))

    def batches(self, query: str, rows: int) -> Iterator[Any]:
        """Yield the result of a query as Arrow batches."""
        reader = self.run(lambda: self.database.sql(query).to_arrow_reader(rows))
        while (batch := self.run(lambda: next(reader, None))) is not None:
            yield batch

    def execute(self, query: str) -> Any:
        """Run a query and return its result as an Arrow table, or None if it has none."""
        relation = self.run(lambda: self.database.sql(query))
        return None if relation is None else self.run(relation.to_arrow_table)

    def first(self, query: str) -> list[Any]:
        """Return the first row of a query's result."""
        return [column[0].as_py() for column in self.execute(query).columns]

    def read(self, *columns: str) -> tuple[list[Any], NDArray[np.float32] | None]:
        """Return SQL expressions over all rows as Arrow columns, and the checked weights."""
        weight = [] if self.weight is None else [self.weight]
        titled = ", ".join(f"{column} AS k{number}" for number, column in enumerate([*columns, *weight]))
        found = self.execute(f"SELECT {titled} FROM {self.relation}").columns
        return found, None if self.weight is None else self.checked_weights(found.pop())

    def checked_weights(self, column: Any) -> NDArray[np.float32]:
        """Return the weights of an Arrow column; missing or invalid ones raise an error."""
        values = column.to_numpy()
        # NaN, which NULL becomes too, fails the first comparison.
        if not ((values >= 0) & (values <= MAX_WEIGHT)).all():
            self.raise_fault("a weight is negative, not finite or too large")
        found: NDArray[np.float32] = values.astype(np.float32)
        return found

    def load(self) -> Loaded:
        """Create the tables ``spine_edges`` (a, b, w) and ``spine_names`` (n), ascending by n.

        The row of a name is its position.
        """
        weight = "" if self.weight is None else f", {self.weight} AS w"
        wrong = f"w IS NULL OR isnan(w) OR w < 0 OR w > {MAX_WEIGHT!r}" if weight else "false"
        for ends in self.written:
            columns = f"{ends[0]} AS a, {ends[1]} AS b{weight}"
            self.execute(f"CREATE OR REPLACE TEMP TABLE spine_edges AS SELECT {columns} FROM {self.relation}")
            listed, is_wrong = self.first(f"SELECT count(*), bool_or({wrong}) FROM spine_edges")
            if is_wrong:
                self.raise_fault("a weight is negative, not finite or too large")
            are_integers = self.number_names("a", "b", "spine_edges", ends == self.numbers)
            if are_integers is not None:
                break
        if are_integers and ends != self.numbers:
            self.execute("ALTER TABLE spine_edges ALTER a TYPE BIGINT")
            self.execute("ALTER TABLE spine_edges ALTER b TYPE BIGINT")
        number, first, last = self.first("SELECT count(*), min(n), max(n) FROM spine_names")
        n = self.options.num_nodes
        if n is not None:
            if number and not 0 <= first <= last < n:
                self.raise_fault("a node id is out of range")
            self.execute(f"CREATE OR REPLACE TEMP TABLE spine_names AS SELECT range AS n FROM range({n})")
            number, first, last, are_integers = n, 0, n - 1, True
        elif not listed:
            raise GraphFormatError(f"{self.path}: contains no edges; {self.note}")
        is_range = bool(are_integers) and (first, last) == (0, number - 1)
        return Loaded(listed, number, bool(are_integers), is_range)

    @property
    def written(self) -> list[tuple[str, str]]:
        """SQL expressions of both ends to try in turn: as integers, as they are, and trimmed."""
        forms = self.numbers, self.ends, (trim(self.ends[0]), trim(self.ends[1]))
        return list(dict.fromkeys(form for form in forms if form is not None))

    def number_names(self, one: str, other: str, edges: str, are_numbers: bool) -> bool | None:
        """Create the table ``spine_names`` (n) of distinct names, ascending.

        Returns whether they are integers, or None if the next form of ``written`` must be tried.
        """
        distinct = f"SELECT DISTINCT unnest([{one}, {other}]) AS n FROM {edges}"
        self.execute(f"CREATE OR REPLACE TEMP TABLE spine_names AS SELECT n FROM ({distinct}) ORDER BY n")
        if self.first("SELECT bool_or(n IS NULL) FROM spine_names")[0]:
            if are_numbers and self.numbers != self.ends:
                return None
            self.raise_fault("a name is empty")
        if are_numbers:
            return True
        is_wrong, has_blanks, are_integers = self.first(
            "SELECT bool_or(n = '' OR contains(n, chr(10)) OR contains(n, chr(0))), "
            f"bool_or(regexp_matches(n, '^{_BLANK}|{_BLANK}$')), "
            f"bool_and({as_integer('n')} IS NOT NULL) FROM spine_names"
        )
        if is_wrong:
            self.raise_fault("a name is empty, or a quote is not closed on its line")
        if has_blanks:
            return None
        is_asked = self.options.names == "integer" or self.options.num_nodes is not None
        if is_asked and are_integers is False:
            self.raise_fault("a name is not an integer")
        if not are_integers or self.options.names == "text":
            return False
        numbers = "SELECT n::BIGINT AS n FROM spine_names ORDER BY 1"
        self.execute(f"CREATE OR REPLACE TEMP TABLE spine_names AS {numbers}")
        return True

    def pairs(self, found: Loaded) -> str:
        """Return the query for all edges as positions x and y, and weights w."""
        weight = "" if self.weight is None else ", w"
        if found.are_range:
            return f"SELECT a AS x, b AS y{weight} FROM spine_edges"
        joined = "spine_edges JOIN spine_names AS p ON p.n = a JOIN spine_names AS q ON q.n = b"
        return f"SELECT p.rowid AS x, q.rowid AS y{weight} FROM {joined}"


def trim(column: str) -> str:
    """Return SQL for a text without white space at its ends."""
    return f"trim({column}, {literal(_BLANKS)})"


def collect(listing: Listing) -> FileContents:
    """Read the edges of a listing into memory."""
    names, edges, weights = _by_code(listing) or _by_value(listing) or _by_hash(listing)
    if not edges.size and listing.options.num_nodes is None:
        raise GraphFormatError(f"{listing.path}: contains no edges; {listing.note}")
    warn_of_header(listing, stacklevel=5)
    warn_of_shared_ids(listing.titles, names, lambda: len(np.intersect1d(*edges)), stacklevel=5)
    note = f"{listing.note}; names are {'text' if names.dtype == object else 'integers'}"
    return FileContents(listing.path, names, edges.T, weights=weights, notes=(note,))


def warn_of_shared_ids(
    titles: tuple[str, str] | None, names: Any, shared: Callable[[], int], stacklevel: int
) -> None:
    """Warn about integers that occur in both columns if the titles suggest two kinds of things."""
    if not titles or names.dtype == object or not _name_two_kinds(*titles):
        return
    if count := shared():
        one, other = titles
        message = (
            f"numbers in both columns, {one!r} and {other!r}, are read as the same nodes: {count} of them"
        )
        way_out = f"if they are not, make them differ: edges[{one!r}] = 'u' + edges[{one!r}].astype(str), or "
        way_out += f"query=\"select 'u' || {one}, {other} from 'FILE'\""
        warnings.warn(f"{message}; {way_out}", SpineWarning, stacklevel=stacklevel)


def warn_of_header(listing: Listing, stacklevel: int) -> None:
    """Warn if the first line was guessed to be a header."""
    if listing.guessed_header is not None:
        message = f"first line read as a header ({', '.join(listing.guessed_header)})"
        message += "; pass header=False if these are nodes"
        warnings.warn(f"{listing.path}: {message}", SpineWarning, stacklevel=stacklevel)


Numbered = tuple[NDArray[Any], NDArray[np.integer[Any]], NDArray[np.float32] | None]


def _by_code(listing: Listing) -> Numbered | None:
    """Return the same as ``_by_hash`` with Arrow alone, for a small text; None for others."""
    if listing.text is None:
        return None
    try:
        one, other, *rest = listing.text()
        weights = [listing.checked_weights(_floats(column)) for column in rest]
    except pa.ArrowException as fault:
        listing.raise_fault(str(fault))
    ends = pa.chunked_array([*one.chunks, *other.chunks], pa.string())
    if ends.null_count:
        listing.raise_fault("a name is empty")
    coded = ends.dictionary_encode()
    found = coded.chunk(0).dictionary if len(coded) else pa.array([], pa.string())
    if pc.any(pc.match_substring_regex(found, rf"^{_BLANK}*$|\x00")).as_py():
        listing.raise_fault("a name is empty")
    found = pc.utf8_trim(found, _BLANKS)
    if listing.options.names != "text":
        found = _integers(found)
    is_text = pa.types.is_string(found.type)
    is_asked = listing.options.names == "integer" or listing.options.num_nodes is not None
    if is_text and len(found) and is_asked:
        listing.raise_fault("a name is not an integer")
    rank = np.from_dlpack(pc.rank(found, tiebreaker="dense")).astype(np.int32) - np.int32(1)
    names = np.empty(rank.max(initial=-1) + 1, object if is_text else np.int64)
    names[rank] = found.to_pylist()
    indices = (np.from_dlpack(chunk.indices) for chunk in coded.chunks)
    edges: NDArray[Any] = rank[np.concatenate([np.zeros(0, np.int32), *indices])].reshape(2, -1)
    return *_within(names, edges, listing), weights[0] if weights else None


def _integers(texts: Any) -> Any:
    """Return texts as integers if all are integers in canonical form, unlike 007, else as they are."""
    if all(map(is_integer, texts.slice(0, 100).to_pylist())):
        with suppress(pa.ArrowInvalid):
            numbers = texts.cast(pa.int64())
            return numbers if numbers.cast(texts.type).equals(texts) else texts
    return texts


def _floats(texts: Any) -> Any:
    """Return texts as float64."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return pc.replace_substring_regex(pc.utf8_trim(texts, _BLANKS), r"^\+", "").cast(pa.float64())


def _within(names: NDArray[Any], edges: NDArray[Any], listing: Listing) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return names and edges as they are or, if the number of nodes is given, for 0 .. num_nodes-1."""
    n = listing.options.num_nodes
    if n is None:
        return names, edges
    if len(names) and not 0 <= names[0] <= names[-1] < n:
        listing.raise_fault("a node id is out of range")
    return np.arange(n), names[edges] if len(names) else edges


def _by_value(listing: Listing) -> Numbered | None:
    """Return the names, ascending, the edges (2, m) as positions, and weights, if names are integers.

    Returns None if a name is not an integer in canonical form, or if names are far apart.
    """
    if listing.numbers is None:
        return None
    sides, weights = listing.read(*listing.numbers)
    if any(side.null_count for side in sides):
        return None
    bounds = [pc.min_max(side).as_py() for side in sides]
    low = min((bound["min"] for bound in bounds if bound["min"] is not None), default=0)
    high = max((bound["max"] for bound in bounds if bound["max"] is not None), default=-1)
    n = listing.options.num_nodes
    if n is not None:
        if low < 0 or high >= n:
            listing.raise_fault("a node id is out of range")
        low, high = 0, n - 1
    elif high - low >= max(2**22, 4 * len(sides[0])) or high - low >= 2**31:
        return None
    edges = np.empty((2, len(sides[0])), np.int32)
    present = np.full(high - low + 1, n is not None)
    for row in edges:
        np.subtract(sides.pop(0).to_numpy(), np.int64(low), out=row, casting="unsafe")
        present[row] = True
    if not present.all():
        rank = np.cumsum(present, dtype=np.int32) - np.int32(1)
        for row in edges:
            row[:] = rank[row]
    return np.flatnonzero(present) + low, edges, weights


def _by_hash(listing: Listing) -> Numbered:
    """Return the same as ``_by_value`` for any names, by hashes, which are checked to differ."""
    for ends in listing.written:
        if listing.number_names(*ends, listing.relation, ends == listing.numbers) is not None:
            break
    text = "" if ends == listing.numbers else "::VARCHAR"
    for salt in count():
        found = listing.execute(f"SELECT n, {_hashed('n' + text, salt)} AS h FROM spine_names")
        hashes = found["h"].to_numpy()
        rank = np.argsort(hashes).astype(np.int32)
        hashes = hashes[rank]
        if (hashes[1:] != hashes[:-1]).all():
            break
    # A table by the first bits of hashes; the few that share these bits with another are searched for.
    shift = np.uint64(64 - min(max(len(hashes).bit_length() + 4, 8), 26))
    slots = hashes >> shift
    table = np.zeros(2 ** (64 - int(shift)), np.int32)
    table[slots] = rank
    table[slots[1:][slots[1:] == slots[:-1]]] = -1
    is_shared = table[slots] < 0
    rank, hashes = rank[is_shared], hashes[is_shared]
    sides, weights = listing.read(*(_hashed(end, salt) for end in ends))
    edges: NDArray[Any] = np.empty((2, len(sides[0])), np.int32)
    for row in edges:
        start = 0
        for chunk in sides.pop(0).chunks:
            wanted = chunk.to_numpy()
            positions = table[wanted >> shift]
            shared = np.flatnonzero(positions < 0)
            positions[shared] = rank[np.searchsorted(hashes, wanted[shared])]
            row[start : start + len(positions)] = positions
            start += len(positions)
    return *_within(found["n"].to_numpy(), edges, listing), weights


def _hashed(value: str, salt: int) -> str:
    """Return SQL for a hash of a value; values that collide differ with another salt, except by chance."""
    return f"hash(concat('{salt} ', {value}))" if salt else f"hash({value})"


# The kinds of tables, each of which gives a listing.


@contextmanager
def open_listing(
    source: Any, options: EdgeOptions, memory: int | None = None, place: str | None = None
) -> Iterator[Listing]:
    """Open an edge file or table; ``source`` is an open file, a :class:`Query` or a table in memory.

    DuckDB uses ``memory`` bytes, and a temporary folder in ``place``.
    """
    is_text = isinstance(source, Opened) and source.kind == "text"
    with ExitStack() as stack:

        def connect() -> Any:
            return stack.enter_context(connection(memory, place))[0]

        if is_text:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spine-", dir=place))
            is_small = memory is None and os.path.getsize(source.file) <= SMALL
            yield _text_listing(source, folder, connect, options, is_small)
        else:
            database = connect()
            yield _typed_listing(*open_table(source, database), database, options)


@dataclass(frozen=True)
class Query:
    """A SQL query, and the DuckDB file to run it on, if any."""

    text: str
    database: str | os.PathLike[str] | None = None


def open_table(source: Any, database: "DuckDBPyConnection") -> tuple[str, str, str]:
    """Return the name of a table for messages, the table as a FROM clause, and what it is."""
    import duckdb

    path = source.path if isinstance(source, Opened) else "the query"
    try:
        if isinstance(source, Query):
            if source.database is not None:
                with opened(source.database) as file:
                    if file.kind != "duckdb":
                        raise GraphFormatError(f"{file.path}: is not a DuckDB file, but {file.kind}")
                    database.execute(f"ATTACH {literal(file.file)} AS given (READ_ONLY)")
                database.execute("USE given")
            relation = f"({source.text.strip().rstrip(';')})"
            database.sql(f"SELECT * FROM {relation} LIMIT 0").fetchall()
            return path, relation, "a query"
        if not isinstance(source, Opened):
            database.register("listed", as_table(source))
            return "the table", "listed", "a table in memory"
        if source.kind == "duckdb":
            database.execute(f"ATTACH {literal(source.file)} AS given (READ_ONLY)")
            query = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'given'"
            tables = database.sql(query).fetchall()
            if len(tables) != 1:
                listed = ", ".join(name for _, name in tables[:10]) or "none"
                message = f"{path}: is a DuckDB file with the tables {listed}; choose one by query='select *"
                raise ParameterError(f"{message} from TABLE', database={path!r}")
            schema, table = map(identifier, tables[0])
            return path, f"given.{schema}.{table}", f"the table {table} of a DuckDB file"
        if source.kind == "parquet":
            with open_parquet(source.stream, path) as file:
                require_distinct(file.schema_arrow.names, path)
            return path, f"read_parquet({literal(source.file)})", "Parquet"
        query = f"read_json({literal(source.file)}, format = 'newline_delimited', compression = 'none')"
        database.execute(f"CREATE TEMP TABLE listed AS SELECT * FROM {query}")
        return path, "listed", "JSON lines"
    except (duckdb.Error, RuntimeError) as fault:
        raise GraphFormatError(f"{path}: cannot be read: {excerpt(str(fault), 300)}") from fault


def _text_listing(
    source: Opened, folder: str, connect: Callable[[], Any], options: EdgeOptions, is_small: bool
) -> Listing:
    form: Any = {"delimiter": options.delimiter, "comments": options.comments}
    table = open_text(source, folder, expected="edges; expected 'source target' lines", **form)
    has_header, is_guess = _is_header(table.sample, options)
    first, body = table.sample[0], table.sample[int(has_header) :]
    titles = [field.strip() for field in first.fields] if has_header else None

    marks = "." if table.delimiter == "," else ",."  # decimal marks that numbers may have

    def texts(position: int) -> list[str]:
        return [record.fields[position].strip() for record in body if len(record.fields) > position]

    def values(position: int) -> list[str]:
        mark = _decimal_mark(texts(position), marks)
        return [_plain_number(text, mark) for text in texts(position)]

    columns = choose_columns(titles, len(first.fields), options, first.place, values)
    if has_header and not body and options.num_nodes is None and len(list(islice(table.records(), 2))) < 2:
        raise GraphFormatError(f"{source.path}: has a header but no edges; expected 'source target' lines")
    shape = {
        (2, False): ("'source target'", "For weighted edges give every line a weight and pass weighted=True"),
        (3, True): ("'source target weight'", ""),
    }.get((len(first.fields), columns.weight is not None), ("", ""))

    mark = "" if columns.weight is None else _decimal_mark(texts(columns.weight), marks)

    def find_fault() -> None:
        for record in islice(table.records(), int(has_header), None):
            table.require_fields(record, *shape)
            _check_record(record, columns, options, mark)

    ends = f"c{columns.source}", f"c{columns.target}"
    numbers = None
    listed = values(columns.source) + values(columns.target)
    wholes = [text.removesuffix(".0") for text in listed]
    if options.names != "text" and all(map(is_integer, wholes)):
        bare = ends if wholes == listed else tuple(f"regexp_replace({end}, '[.]0$', '')" for end in ends)
        one, other = (f"TRY_CAST({end} AS BIGINT)" if table.are_integers else as_integer(end) for end in bare)
        numbers = one, other
    weight = None if columns.weight is None else _weight_sql(f"c{columns.weight}", mark)
    # DuckDB takes a while to start; Arrow does not, but has other rules for quotes.
    is_plain = is_small and not (numbers or table.has_quotes or is_guess or mark)
    wanted = [position for position in columns[:3] if position is not None]
    known = {WHITESPACE: "white space", "\t": "tabs", ",": "commas"}
    separator, header = known.get(table.delimiter, repr(table.delimiter)), "a" if has_header else "no"
    given: Any = None if is_plain else connect(), table.relation(has_header), ends
    note = f"fields separated by {separator}, {header} header; {columns.note}"
    guess = (titles[columns.source], titles[columns.target]) if is_guess and titles else None
    read = (lambda: table.read(has_header, wanted)) if is_plain else None
    found: Any = weight, options, note, find_fault, numbers, guess, read, columns.titles
    listing = Listing(source.path, *given, *found)
    if listing.guessed_header is not None:
        words = ", ".join(map(literal, listing.guessed_header))
        are_names = f"{trim(ends[0])} IN ({words}) OR {trim(ends[1])} IN ({words})"
        if listing.first(f"SELECT bool_or({are_names}) FROM {listing.relation}")[0]:
            return _text_listing(source, folder, connect, replace(options, header=False), is_small)
    return listing


def _weight_sql(column: str, mark: str) -> str:
    """Return SQL for text as numbers; what is not written with the decimal ``mark`` stays as it is."""
    if mark:
        before, after = f"[+-]?(?:(?:{CURRENCY}){_BLANK}*)?", f"(?:{_BLANK}*(?:{CURRENCY}))?"
        known = literal(f"{_BLANK}*{before}{NUMBERS[mark].pattern}{after}{_BLANK}*")
        digits = f"regexp_replace({column}, '{CURRENCY}|[^0-9eE{mark}+-]', '', 'g')"
        is_known = f"regexp_full_match({column}, {known})"
        column = f"CASE WHEN {is_known} THEN replace({digits}, ',', '.') ELSE {column} END"
    return f"TRY_CAST({column} AS DOUBLE)"


def _decimal_mark(texts: Sequence[str], marks: str) -> str:
    """Return the decimal mark of numbers with commas, thousands or a currency; "" for any other column."""
    known = [text for text in texts if text]
    if all(map(NUMBER.fullmatch, known)):
        return ""
    return next((mark for mark in marks if all(read_value(text, mark) is not None for text in known)), "")


def _plain_number(text: str, mark: str) -> str:
    """Return a number that is written with a decimal mark as Python writes it."""
    value = read_value(text, mark) if mark else None
    return text if value is None else repr(value)


def _check_record(record: Record, columns: EdgeColumns, options: EdgeOptions, mark: str) -> None:
    """Raise an error if a row of edges breaks a rule; weights are written with a decimal ``mark``."""
    n = options.num_nodes
    for role, position in (("source", columns.source), ("target", columns.target)):
        name, rule = record.fields[position].strip(), ""
        if "\n" in name:
            message = f"{record.place}: a quote is opened but not closed, or a name contains a line feed:"
            raise GraphFormatError(f"{message} {excerpt(record.text)}; close it")
        if not name:
            rule = "is empty; every edge needs two names"
            if columns.titles is not None:
                end = identifier(columns.titles[role == "target"]).replace('"', r"\"")
                query = f"from read_csv({literal(record.place.rpartition(':')[0])}) where {end} is not null"
                rule += f'; leave such rows out by query="{query}" instead of the file'
        elif (n is not None or options.names == "integer") and not is_integer(name):
            reason = "names='integer'" if n is None else "num_nodes is given"
            rule = f"is not an integer such as 7 (not 007 or +7) of at most 64 bits, but {reason}"
        elif n is not None and not 0 <= int(name) < n:
            rule = f"is out of range; with num_nodes={n}, ids are 0 .. {n - 1}"
        if rule:
            shown = f" {excerpt(name)}" if name else ""
            raise GraphFormatError(f"{record.place}: the {role}{shown} {rule}: {excerpt(record.text)}")
    if columns.weight is None:
        return
    weight = _plain_number(record.fields[columns.weight].strip(), mark)
    value = float(weight) if NUMBER.fullmatch(weight) else math.nan
    if not 0 <= value <= MAX_WEIGHT:
        rule = f"is not a number from 0 to {MAX_WEIGHT:.3g}"
        message = f"{record.place}: the weight {excerpt(weight)} {rule}: {excerpt(record.text)};"
        raise GraphFormatError(f"{message} weighted=False ignores weights")


# Equal values compress to almost nothing, so a file's size alone does not bound its number of rows.
_FREE_ROWS, _MAX_ROWS_PER_BYTE = 2**24, 200


@contextmanager
def open_parquet(stream: BinaryIO, path: str) -> Iterator[Any]:
    """Open a Parquet file, and raise GraphFormatError if it is damaged or has too many rows for its size."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        # Not our stream: Arrow's threads may release it after the interpreter has ended.
        with pa.OSFile(stream.name) as source, parquet.ParquetFile(source) as file:
            rows = file.metadata.num_rows
            groups = sum(file.metadata.row_group(number).num_rows for number in range(file.num_row_groups))
            if groups != rows:  # Arrow would allocate as many as a group claims
                raise GraphFormatError(f"{path}: damaged Parquet: {rows:,} rows, but {groups:,} in groups")
            if rows > max(_FREE_ROWS, _MAX_ROWS_PER_BYTE * size):
                message = f"{path}: {rows:,} rows in {size:,} bytes, more than {_MAX_ROWS_PER_BYTE} per byte;"
                raise GraphFormatError(f"{message} if you trust it, write it as several files or as CSV")
            yield file
    except SpineError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        raise GraphFormatError(f"{path}: damaged or truncated Parquet: {excerpt(str(fault), 150)}") from fault


def require_distinct(titles: Sequence[str], place: str) -> None:
    """Raise if two columns have the same title."""
    if len(set(titles)) < len(titles):
        twice = next(title for title in titles if titles.count(title) > 1)
        raise GraphFormatError(f"{place}: two columns are both called {excerpt(twice)}; rename one")


def _typed_listing(path: str, relation: str, what: str, database: Any, options: EdgeOptions) -> Listing:
    """Return the listing of a table with typed columns."""
    try:
        sample = database.sql(f"SELECT * FROM {relation} LIMIT 1000").to_arrow_table()
    except Exception as fault:
        raise GraphFormatError(f"{path}: damaged or truncated {what}: {excerpt(str(fault), 150)}") from fault
    titles = sample.column_names
    columns = choose_columns(titles, len(titles), options, path, samples(sample))
    wanted = [titles[position] for position in columns[:3] if position is not None]
    types = [sample.schema.field(title).type for title in wanted]
    given = [identifier(title) for title in wanted]
    for at in (0, 1):
        is_int64 = f"isfinite({given[at]}) AND abs({given[at]}) < 9.2e18 AND {given[at]} = trunc({given[at]})"
        is_whole = f"SELECT bool_and({is_int64}) FROM {relation}"
        if pa.types.is_floating(types[at]) and database.sql(is_whole).fetchall()[0][0]:
            types[at], given[at] = pa.int64(), f"CAST({given[at]} AS BIGINT)"  # 1.0 and 2.0 due to gaps
    are_integers = [pa.types.is_integer(kind) for kind in types]
    for title, kind, is_whole in zip(wanted[:2], types, are_integers, strict=False):
        if not is_whole and not is_text(getattr(kind, "value_type", kind)):
            advice = "names must be integers or text; cast it, in pandas by .astype('Int64')"
            raise GraphFormatError(f"{path}: column {title!r} is {kind}; {advice}")
    mark, weights = "", None
    if len(types) == 3 and is_text(getattr(types[2], "value_type", types[2])):
        texts = sample[wanted[2]].cast(pa.string()).drop_null().to_pylist()
        mark = _decimal_mark([text.strip() for text in texts], ".,")
        weights = _weight_sql(f"CAST({given[2]} AS VARCHAR)", mark)
    elif len(types) == 3:
        weights = f"CAST({given[2]} AS DOUBLE)"
        if not is_number(types[2]):
            kind = f"{types[2]}, not numbers; cast it, or leave it out by weighted=False"
            raise GraphFormatError(f"{path}: column {wanted[2]!r} is {kind}")
    as_integers = options.names != "text" and all(are_integers[:2])
    if not as_integers and (options.num_nodes is not None or options.names == "integer"):
        reason = "names='integer'" if options.num_nodes is None else "num_nodes needs integer columns"
        raise GraphFormatError(
            f"{path}: {wanted[0]!r} and {wanted[1]!r} are {types[0]} and {types[1]}, but {reason}; cast them"
        )
    rules = replace(options, names="integer" if as_integers else None)
    roles = EdgeColumns(0, 1, 2 if len(wanted) == 3 else None)

    def find_fault() -> None:
        query = database.execute(f"SELECT {', '.join(given)} FROM {relation}")
        for row, found in enumerate(iter(query.fetchone, None)):
            if None in found[:2]:
                way_out = f"empty; in pandas, edges.dropna(subset={wanted[:2]}) drops such rows"
                end = "source" if found[0] is None else "target"
                raise GraphFormatError(f"{path}: row {row}: the {end} is {way_out}")
            fields = ["" if value is None else str(value) for value in found]
            _check_record(Record(f"{path}: row {row}", ", ".join(fields), fields), roles, rules, mark)

    kind = "BIGINT" if as_integers else "VARCHAR"
    ends = f"CAST({given[0]} AS {kind})", f"CAST({given[1]} AS {kind})"
    read, numbers = (options, ends) if as_integers else (replace(options, names="text"), None)
    about: Any = f"{what}; {columns.note}", find_fault, numbers, None, None, columns.titles
    return Listing(path, database, relation, ends, weights, read, *about)


# GraphML and npz list their nodes, so their order is kept.


def read_graphml(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read the nodes, edges and weights of a GraphML file; nodes keep the file's order.

    Node attributes are not read as features, because drawing programs store positions and colours there; read
    them with ``read_graph(path, features=path)``.
    """
    with opened(path) as source:
        graph = parse_graphml(source.stream, source.path)
    _require_num_nodes(len(graph), options, source.path)
    names = graphml_names(graph, source.path, options.names)
    index = {node: position for position, node in enumerate(graph)}
    listed = list(graph.edges(data=True))
    edges = np.array([(index[one], index[other]) for one, other, _ in listed], np.int64).reshape(-1, 2)
    titles = dict.fromkeys(key for _, _, data in listed for key in data)
    title = next((title for title in titles if title.lower() in WEIGHT_NAMES), None)
    if options.weighted and title is None:
        raise GraphFormatError(f"{source.path}: weighted=True needs an edge attribute called weight")
    weights = None
    if title is not None and options.weighted is not False:
        weights = np.empty(len(listed))
        for row, (one, other, data) in enumerate(listed):
            try:
                weights[row] = float(data.get(title))
            except (TypeError, ValueError, OverflowError) as fault:
                edge = f"edge ({excerpt(one)}, {excerpt(other)}): the weight {excerpt(str(data.get(title)))}"
                way_out = "is not a number; weighted=False ignores weights"
                raise GraphFormatError(f"{source.path}: {edge} {way_out}") from fault
    directed = graph.is_directed()
    note = "no weights" if weights is None else f"weights are the edge attribute {title!r}"
    if any(data for _, data in graph.nodes(data=True)):
        note += "; pass the file as the features too to read node attributes"
    notes = (f"GraphML, {'directed' if directed else 'undirected'}; {note}",)
    return FileContents(source.path, names, edges, weights=weights, directed=directed, notes=notes)


def parse_graphml(stream: BinaryIO, path: str) -> Any:
    """Parse an open GraphML file with NetworkX and return its graph."""
    networkx = optional_package("networkx")
    data = stream.read()
    parser = expat.ParserCreate()

    def refuse(name: str, *rest: Any) -> None:
        message = f"{path}:{parser.CurrentLineNumber}: declares the entity {excerpt(name)}, which is refused:"
        raise GraphFormatError(f"{message} entities can expand without bound")

    parser.EntityDeclHandler = refuse  # NetworkX's parser would expand entities
    try:
        parser.Parse(data, True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = networkx.read_graphml(io.BytesIO(data))
        for kind, listed in (("node", graph.nodes(data=True)), ("edge", graph.edges(data=True))):
            for *_, values in listed:
                values.update(graph.graph[f"{kind}_default"] | values)
    except GraphFormatError:
        raise
    except expat.ExpatError as fault:
        raise GraphFormatError(f"{path}:{fault.lineno}: not well-formed XML ({fault})") from fault
    except Exception as fault:  # NetworkX's parser raises almost anything on broken files
        raise GraphFormatError(f"{path}: cannot be read as GraphML: {excerpt(str(fault), 200)}") from fault
    if not len(graph):
        raise GraphFormatError(f"{path}: contains no nodes; a graph needs at least one")
    return graph


def graphml_names(network: Any, path: str, wanted: str | None = None) -> NDArray[Any]:
    """Return the node ids of a NetworkX graph in file order, as integers if all of them are."""
    wrong = next((node for node in network if not is_integer(node)), None)
    if wanted == "integer" and wrong is not None:
        raise GraphFormatError(f"{path}: node id {excerpt(wrong)} is not an integer, but names='integer'")
    if wanted != "text" and wrong is None:
        return np.fromiter(map(int, network), np.int64, len(network))
    return np.fromiter(network, object, len(network))


_MATRIX_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
_CSR_KEYS = ("feat_data", "feat_indices", "feat_indptr", "feat_shape")
Arrays = Mapping[str, NDArray[Any]]


def read_npz_network(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read a network from an npz file.

    Either as in the package's data sets: ``edges`` (m, 2) with ``num_nodes``; optionally ``weights``
    (m,), ``names`` or ``node_ids`` (n,), ``labels``, and features as a matrix ``features`` or in the CSR
    parts ``feat_data``, ``feat_indices``, ``feat_indptr``, ``feat_shape``. Or an adjacency matrix as
    ``scipy.sparse.save_npz`` writes it.
    """
    name, arrays = display_name(path), read_npz(path)
    if "edges" in arrays:
        contents = npz_contents(arrays, name, options)
    elif "format" in arrays and "shape" in arrays:
        matrix = sparse_matrix(arrays, name)
        n, width = matrix.shape
        if n != width:
            raise GraphFormatError(f"{name}: an adjacency matrix must be square; got {matrix.shape}")
        sources, targets, weights = matrix_entries(matrix, options.weighted)
        edges = np.column_stack((sources, targets))
        note = f"SciPy sparse matrix; {'no weights' if weights is None else 'weights are its values'}"
        # The matrix is directed if entries lack their mirror.
        contents = FileContents(name, np.arange(n), edges, weights, directed=True, notes=(note,))
    else:
        message = f"{name}: contains neither 'edges' (m, 2) nor a SciPy sparse matrix; its arrays are"
        raise GraphFormatError(f"{message} {', '.join(sorted(arrays)[:10]) or 'none'}")
    _require_num_nodes(len(contents.names), options, name)
    names = contents.names
    if options.names == "integer" and names.dtype == object:
        raise GraphFormatError(f"{name}: its names are text, such as {names[0]!r:.60}, but names='integer'")
    return contents if options.names != "text" else replace(contents, names=names.astype(str).astype(object))


def npz_contents(arrays: Arrays, path: str, options: EdgeOptions) -> FileContents:
    """Return the network in the arrays of an npz file."""
    edges = arrays["edges"]
    names = names_of(arrays, "names" if "names" in arrays else "node_ids", path)
    n = options.num_nodes if names is None else len(names)
    if "num_nodes" in arrays:
        found = arrays["num_nodes"]
        if found.size != 1 or found.dtype.kind not in "iu" or found.item() < 1:
            raise GraphFormatError(f"{path}: num_nodes must be an integer >= 1; got {found.tolist()!r:.60}")
        n = int(found.item())
    _require_plausible(n or 0, edges.size if names is None else len(names), path)
    with naming(path):
        sources, targets, names = read_listing(edges, n, names)
    n = len(names)
    labels, weights = arrays.get("labels"), arrays.get("weights")
    if labels is not None and labels.shape[:1] != (n,):
        raise GraphFormatError(f"{path}: labels of shape {labels.shape} for {n} nodes; every node needs one")
    if weights is None and options.weighted:
        raise GraphFormatError(f"{path}: weighted=True needs an array 'weights' (m,), but there is none")
    columns = names_of(arrays, "feature_names", path)
    given = np.column_stack((sources, targets)), None if options.weighted is False else weights
    titles = None if columns is None else tuple(map(str, columns))
    notes = (f"npz with {', '.join(sorted(arrays))}",)
    features = features_of(arrays, path)
    return FileContents(path, names, *given, features, titles, labels=labels, notes=notes)


def _require_num_nodes(n: int, options: EdgeOptions, path: str) -> None:
    if options.num_nodes not in (None, n):
        raise GraphFormatError(f"{path}: contains {n} nodes, but num_nodes={options.num_nodes} was given")


def _require_plausible(claimed: int, held: int, path: str) -> None:
    """Raise if a number of nodes or columns is out of proportion to the file's content."""
    if claimed > GAPS_ALLOWED_BELOW and claimed > 64 * held:
        raise GraphFormatError(
            f"{path}: claims {claimed:,} nodes or columns for {held:,} entries; check num_nodes, shape, ids"
        )


def sparse_matrix(arrays: Arrays, path: str) -> Any:
    """Return the matrix of ``scipy.sparse.save_npz`` as CSR or COO, with its indices checked."""
    found = arrays["format"].tolist()
    kind = found.decode("latin-1") if isinstance(found, bytes) else str(found)
    needed = ("data", *_MATRIX_PARTS.get(kind, ("format csr",)))
    lacking = [key for key in needed if key not in arrays]
    if lacking:
        raise GraphFormatError(
            f"{path}: a sparse {kind[:20]!r} matrix without {', '.join(lacking)}; save matrix.tocsr()"
        )
    shape, data, *parts = (arrays[key] for key in ("shape", *needed))
    is_flat = all(part.ndim == 1 and part.dtype.kind in "iu" for part in (shape, *parts)) and data.ndim == 1
    if not is_flat or data.dtype.kind not in "biuf" or len(shape) != 2 or (shape < 0).any():
        raise GraphFormatError(f"{path}: a sparse matrix needs 1-d arrays of numbers and a shape of two")
    _require_plausible(max(shape.tolist()), data.size, path)
    try:
        if kind == "coo":
            return sparse.coo_array((data, tuple(parts)), shape=shape.tolist())
        made = sparse.csr_array if kind == "csr" else sparse.csc_array
        matrix = made((data, *parts), shape=shape.tolist())
        matrix.check_format(full_check=True)
        return matrix.tocsr()
    except (ValueError, TypeError, OverflowError, IndexError) as fault:
        raise GraphFormatError(f"{path}: the parts of the matrix do not fit together: {fault}") from fault


def features_of(arrays: Arrays, path: str) -> Any:
    """Return the features (n, f) in an npz file, dense or CSR, or None."""
    present = [key for key in _CSR_KEYS if key in arrays]
    if not present:
        return arrays.get("features")
    if len(present) < len(_CSR_KEYS):
        raise GraphFormatError(f"{path}: features need {', '.join(_CSR_KEYS)}; found {', '.join(present)}")
    parts = {key.removeprefix("feat_"): arrays[key] for key in _CSR_KEYS}
    return sparse_matrix({**parts, "format": np.array("csr")}, path)


def names_of(arrays: Arrays, key: str, path: str) -> NDArray[Any] | None:
    """Return an array of names, integers or text, or None if there is none."""
    if key not in arrays:
        return None
    found = arrays[key]
    if found.ndim != 1 or found.dtype.kind not in "iuUS":
        raise GraphFormatError(f"{path}: {key} must be integer or text (n,); got {found.dtype} {found.shape}")
    if found.dtype.kind in "iu":
        return found
    try:
        return found.astype(str).astype(object)
    except (UnicodeDecodeError, ValueError) as fault:
        raise GraphFormatError(f"{path}: {key} holds text that cannot be decoded: {fault}") from fault
