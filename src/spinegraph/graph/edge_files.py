"""Reads edges from text, Parquet, GraphML and npz files."""

import csv
import io
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, permutations, takewhile
from typing import Any, BinaryIO, NamedTuple, NoReturn
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import parquet
from scipy import sparse

from spinegraph.errors import GraphFormatError, MissingPackageError, ParameterError, SpineError
from spinegraph.graph.edges import GAPS_ALLOWED_BELOW, matrix_entries
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import display_name, opened, read_npz
from spinegraph.graph.tables import as_table, is_text

WEIGHT_NAMES = ("weight", "weights", "w", "edgeweight", "strength")
_PAIRS = (
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("i", "j")),
    *(("sourceid", "targetid"), ("srcid", "dstid"), ("fromid", "toid"), ("fromnode", "tonode")),
    *(("fromnodeid", "tonodeid"), ("sourcenode", "targetnode"), ("start", "end"), ("head", "tail")),
    *(("node1", "node2"), ("nodea", "nodeb"), ("id1", "id2"), ("node", "neighbor"), ("node", "neighbour")),
)
MAX_WEIGHT = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class EdgeOptions:
    """How to read an edge file, as in :func:`~spinegraph.read_graph`; None means: detect."""

    columns: Sequence[str | int] | None = None
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
        if self.columns is not None and len(self.columns) == 3 and self.weighted is False:
            raise ParameterError("columns names a weight, but weighted is False; leave one of them out")
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
    third: Callable[[], str] = lambda: "number",
) -> EdgeColumns:
    """Choose the source, target and weight columns of a file with ``width`` columns.

    ``titles`` are the column names, if the file has them; ``place`` is the file and line, for messages;
    ``third`` says what an untitled third column holds: "number", "nothing" or "text".
    """
    weight = None
    if options.columns is not None:
        source, target, *rest = (_position(column, titles, width, place) for column in options.columns)
        weight = rest[0] if rest else None
    else:
        source, target = _endpoints(titles, width, place)
    if source == target:
        raise ParameterError(f"{place}: source and target cannot both be column {source + 1}")
    if weight is None and options.weighted is not False:
        weight, note = _weight_column(titles, width, (source, target), options, place, third)
    else:
        note = "weights are not read" if weight is None else f"weights are column {weight + 1}"
    note = f"source is {_title(titles, source)}, target is {_title(titles, target)}; {note}"
    return EdgeColumns(source, target, weight, note)


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
            raise ParameterError(f"{place}: columns has position {column}; positions are 0 .. {width - 1}")
        return column
    if titles is None:
        raise ParameterError(
            f"{place}: columns names {column!r}, but no header was found; "
            "pass header=True or positions such as (0, 1)"
        )
    if column not in titles:
        raise ParameterError(f"{place}: there is no column {column!r}; the columns are {', '.join(titles)}")
    return list(titles).index(column)


def _endpoints(titles: Sequence[str] | None, width: int, place: str) -> tuple[int, int]:
    if width < 2:
        raise GraphFormatError(
            f"{place}: expected 'source target', got {width} field; if another character separates the "
            "fields, pass delimiter=..."
        )
    for first, second in permutations(range(width), 2) if titles is not None else ():
        if is_title_pair(titles[first], titles[second]):  # type: ignore[index]
            return first, second
    return 0, 1


def _weight_column(
    titles: Sequence[str] | None,
    width: int,
    pair: tuple[int, int],
    options: EdgeOptions,
    place: str,
    third: Callable[[], str],
) -> tuple[int | None, str]:
    others = [position for position in range(width) if position not in pair]
    if titles is not None:
        for position in others:
            if _letters(titles[position]) in WEIGHT_NAMES:
                return position, f"weights are column {titles[position]!r}"
    if options.weighted:
        if not others:
            raise GraphFormatError(f"{place}: weighted=True needs a third column; the file has only 2")
        return others[0], f"weights are {_title(titles, others[0])}"
    if not others or options.columns is not None:
        return None, "no weights"
    if titles is not None:
        ignored = ", ".join(repr(titles[position]) for position in others[:5])
        return None, f"no column is called weight; not read: {ignored}"
    if width > 3:
        raise GraphFormatError(
            f"{place}: {width} fields and no header, so it is unclear what they are; pass columns=(0, 1) for "
            "source and target, columns=(0, 1, 2) for weights too, or header=True"
        )
    what = third()
    if what == "text":
        raise GraphFormatError(f"{place}: the third field is not a number; weighted=False leaves it out")
    if what == "nothing":
        return None, "the third column is empty"
    return 2, "the third column holds numbers, taken as weights (weighted=False leaves them out)"


# Text: blocks of whole lines go to Arrow; where it fails, a slow scan finds the line for the message.

BLOCK = 2**24
MAX_LINE = 2**20
WHITESPACE = " "
_SAMPLE_LINES, _SAMPLE_BYTES = 1000, 2**18
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
NUMBER = re.compile(r"(?i)[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf(?:inity)?)")


class Block(NamedTuple):
    """Whole lines, each ended by a line feed, and the number of the first."""

    first_line: int
    data: bytes


class Record(NamedTuple):
    """One line of data: its number, text and fields."""

    line: int
    text: str
    fields: list[str]


class NotIntegersError(Exception):
    """Some name is not an integer, though the names before it are."""


class _BlockError(Exception):
    """A block that breaks a rule; :func:`explain_fault` finds the line."""


def read_text_edges(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read an edge list; names are integers where every name in the file is one, else text."""
    try:
        return _read_text(path, options)
    except NotIntegersError:  # far down the file: read it again with text names
        return _read_text(path, replace(options, names="text"))


def _read_text(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    with opened(path) as source:
        for found in scan_text(source.stream, source.path, options):  # noqa: B007 the last one counts
            pass
    if not len(found) and found.num_nodes is None:
        raise GraphFormatError(f"{source.path}: holds a header but no edges; expected 'source target' lines")
    return found.contents(source.path)


def scan_text(stream: BinaryIO, path: str, options: EdgeOptions, skip: int = 0) -> Iterator["EdgeCollector"]:
    """Read an edge list block by block, and yield the collected edges after each; skips ``skip`` blocks."""
    found = blocks(stream, path)
    first = next((block for block in found if sample_lines(block, path, options.comments)), None)
    if first is None:
        raise GraphFormatError(f"{path}: holds no edges; expected 'source target' lines")
    layout = find_layout(first, path, options)
    reader = _BlockReader(layout)
    for number, block in enumerate(chain([first], found)):
        fault = None
        try:
            if number >= skip:
                reader.add(block)
        except (pa.ArrowInvalid, _BlockError) as error:
            fault = str(error)
        if fault is not None:
            explain_fault(block, layout, fault)
        reader.edges.blocks = number + 1
        yield reader.edges


class _BlockReader:
    """Parses blocks of one layout and collects endpoints and weights."""

    def __init__(self, layout: "Layout") -> None:
        self._layout = layout
        columns = layout.columns
        is_integer, is_weighted = layout.names == "integer", columns.weight is not None
        self.edges = EdgeCollector(is_integer, is_weighted, layout.options.num_nodes, layout.note)
        titles = [f"other {number}" for number in range(layout.width)]
        titles[columns.source], titles[columns.target] = "source", "target"
        if columns.weight is not None:
            titles[columns.weight] = "weight"
        self._reading = arrow_csv.ReadOptions(column_names=titles, block_size=2 * MAX_LINE)
        self._parsing = parse_options(layout.delimiter)

    def add(self, block: Block) -> None:
        layout, edges = self._layout, self.edges
        data = clean_lines(block.data, layout.delimiter, layout.options.comments)
        if layout.begins_with_header(block):
            data = data[data.index(b"\n") + 1 :]
        if not data:
            return
        kind = pa.int64() if edges.is_integer else pa.dictionary(pa.int32(), pa.string())
        table = self._parse(data, kind, edges.is_weighted)
        weights = table["weight"].to_numpy() if edges.is_weighted else None
        # NaN fails the first comparison, so one pass finds every kind of bad weight.
        if weights is not None and not ((weights >= 0) & (weights <= MAX_WEIGHT)).all():
            raise _BlockError("a weight is negative, not finite or too large")
        if not edges.is_integer:
            names = edges.add(table["source"], table["target"], weights)
            if pc.any(pc.equal(pc.utf8_trim_whitespace(names), "")).as_py():
                raise _BlockError("a name is empty")
            if pc.any(pc.match_substring(names, "\n")).as_py():
                raise _BlockError("a quote is not closed on its line")
            return
        if _may_be_padded(data, layout.delimiter):
            texts = self._parse(data, pa.string(), False)
            for side in ("source", "target"):  # 007 is not 7
                if pc.any(pc.match_substring_regex(texts[side], r"^\s*-?0[0-9xX]")).as_py():
                    raise _BlockError("a name is not an integer")
        ids, n = (table["source"].to_numpy(), table["target"].to_numpy()), layout.options.num_nodes
        if n is not None and any(side.min() < 0 or side.max() >= n for side in ids):
            raise _BlockError("a node id is out of range")
        edges.add(*ids, weights)

    def _parse(self, data: bytes, name_type: Any, is_weighted: bool) -> Any:
        types = {"source": name_type, "target": name_type} | ({"weight": pa.float64()} if is_weighted else {})
        converting = arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
        )
        table = arrow_csv.read_csv(arrow_stream([data]), self._reading, self._parsing, converting)
        if len(table) != data.count(b"\n"):
            raise _BlockError("a quote is not closed on its line")
        return table


def _may_be_padded(data: bytes, delimiter: str) -> bool:
    """Return whether some field begins like 007, -007 or 0x1f, in one pass over the bytes."""
    text = np.frombuffer(b"\n" + data, np.uint8)  # (b,); the last byte is a line feed
    before, after = text[:-2], text[2:]
    is_begin = np.isin(before, np.frombuffer(f'\n "-{delimiter}'.encode(), np.uint8))
    is_begin &= text[1:-1] == ord("0")
    return bool(np.isin(after[is_begin], np.frombuffer(b"0123456789xX", np.uint8)).any())


def blocks(stream: BinaryIO, path: str, max_line: int = MAX_LINE) -> Iterator[Block]:
    """Yield the lines of a stream in blocks; line ends become line feeds and a byte order mark goes."""
    line, rest, is_end = 1, b"", False
    while not is_end:
        fresh = stream.read(BLOCK)
        is_end = len(fresh) < BLOCK
        whole = rest + fresh if rest else fresh
        if line == 1 and not rest:
            whole = whole.removeprefix(b"\xef\xbb\xbf")
        # Old Macs end lines by a carriage return alone: without any line feed, that is one.
        if b"\n" not in whole and b"\r" in whole[:-1]:
            whole = whole.replace(b"\r", b"\n")
        cut = len(whole) if is_end else whole.rfind(b"\n") + 1
        data, rest = whole[:cut], whole[cut:]
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data and not data.endswith(b"\n"):
            data += b"\n"
        _check_lines(data, line, path, max_line)
        if data:
            yield Block(line, data)
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
    if any(mark in data for mark in marks):
        alternatives = b"|".join(re.escape(mark) for mark in marks)
        data = re.sub(rb"^[ \t]*(?:" + alternatives + rb")[^\n]*\n", b"", data, flags=re.MULTILINE)
    if b"\n\n" in data or data.startswith(b"\n") or b" \n" in data or b"\t\n" in data:
        data = re.sub(rb"^[ \t]*\n", b"", data, flags=re.MULTILINE)
    return data


def is_skipped(line: str, comments: Sequence[str]) -> bool:
    """Return whether a line is blank or a comment, by the same rule as :func:`clean_lines`."""
    text = line.strip(" \t\n")
    return not text or (bool(comments) and text.startswith(tuple(comments)))


def arrow_stream(pieces: Iterable[bytes]) -> Any:
    """Return bytes as a stream in Arrow's own memory.

    Arrow's threads release a stream shortly after reading it; releasing a Python object after the interpreter
    has ended aborts the process.
    """
    memory = pa.BufferOutputStream()
    for piece in pieces:
        memory.write(piece)
    return pa.BufferReader(memory.getvalue())


def parse_options(delimiter: str) -> Any:
    """Return how Arrow splits lines: quotes count unless fields are separated by white space."""
    quote: str | bool = False if delimiter == WHITESPACE else '"'
    return arrow_csv.ParseOptions(delimiter=delimiter, quote_char=quote, ignore_empty_lines=False)


def excerpt(text: str | bytes, limit: int = 60) -> str:
    """Return a piece of input for a message: quoted and cut short."""
    if isinstance(text, bytes):
        text = text[: 4 * limit].decode("utf-8", "backslashreplace")
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}..."


@dataclass(frozen=True)
class Layout:
    """How an edge list is written."""

    path: str
    delimiter: str
    has_header: bool
    width: int
    columns: EdgeColumns
    names: str  # "integer" or "text"
    options: EdgeOptions
    first_line: int  # of the block in which the layout was found

    @property
    def note(self) -> str:
        """One sentence on what was detected."""
        common = {WHITESPACE: "white space", "\t": "tabs", ",": "commas"}
        separator = common.get(self.delimiter, repr(self.delimiter))
        header = "a header" if self.has_header else "no header"
        return f"fields separated by {separator}, {header}; {self.columns.note}; names are {self.names}"

    def begins_with_header(self, block: Block) -> bool:
        """Return whether the first line of data in this block is the header."""
        return self.has_header and block.first_line == self.first_line


def find_layout(block: Block, path: str, options: EdgeOptions) -> Layout:
    """Find out how an edge list is written, from its first thousand lines.

    The delimiter is the first of tab, comma and semicolon that every line has (a comma first in a ``.csv``
    file), else white space. The first line is a header when its names are usual ones (source, target and the
    like), or when it has words only and every line below has an integer as source or target.
    """
    lines = sample_lines(block, path, options.comments)
    delimiter = options.delimiter or find_delimiter([text for _, text in lines], path)
    records = [Record(line, text, split_line(text, delimiter)) for line, text in lines]
    has_header = _is_header(records) if options.header is None else options.header
    first, body = records[0], records[1:] if has_header else records
    columns = choose_columns(
        [field.strip() for field in first.fields] if has_header else None,
        len(first.fields),
        options,
        f"{path}:{first.line}",
        third=lambda: _kind_of_values([record.fields[2] for record in body if len(record.fields) > 2]),
    )
    ends = columns.source, columns.target
    whole = [record.fields for record in body if len(record.fields) > max(ends)]
    are_integers = all(is_integer(fields[end].strip()) for fields in whole for end in ends)
    wanted = "integer" if options.num_nodes is not None else options.names
    names = wanted or ("integer" if are_integers else "text")
    return Layout(path, delimiter, has_header, len(first.fields), columns, names, options, block.first_line)


def split_line(text: str, delimiter: str) -> list[str]:
    """Return the fields of one line as Arrow's reader sees them."""
    if delimiter == WHITESPACE:
        return re.split(r"[ \t]+", text.strip(" \t"))  # not str.split: a name may hold rarer kinds of space
    try:
        return next(csv.reader([text], delimiter=delimiter))
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


def _is_header(records: Sequence[Record]) -> bool:
    first, body = [field.strip() for field in records[0].fields], records[1:]
    if len(first) < 2 or any(NUMBER.fullmatch(field) for field in first):
        return False
    pairs = [titles for titles in permutations(first[:8], 2) if is_title_pair(*titles)]
    if pairs and not any(_continue_below(titles, body) for titles in pairs):
        return True
    if len(first) == 3 and first[2].lower() in WEIGHT_NAMES:
        return True
    return bool(body) and any(
        all(len(record.fields) > side and is_integer(record.fields[side].strip()) for record in body)
        for side in (0, 1)
    )


def _continue_below(titles: tuple[str, str], body: Sequence[Record]) -> bool:
    """Return whether texts that may be titles are names like those below: node1, node2, then node3."""
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*titles, strict=False)))
    names = {field.strip() for record in body for field in record.fields}
    is_prefix = len(shared) > 1 and any(name.startswith(shared) for name in names)
    return is_prefix or not names.isdisjoint(titles)


def _kind_of_values(values: Sequence[str]) -> str:
    """Say what an untitled third column holds."""
    if all(value.strip() in ("", "{}") for value in values):
        return "nothing"  # NetworkX writes {} where an edge has no data
    return "number" if any(NUMBER.fullmatch(value.strip()) for value in values) else "text"


def explain_fault(block: Block, layout: Layout, fault: str) -> NoReturn:
    """Raise a GraphFormatError that names the first bad line of a block.

    Raises NotIntegersError where the only thing wrong is a text name among integers.
    """
    line, skip_header = block.first_line, layout.begins_with_header(block)
    for line, raw in enumerate(block.data.split(b"\n"), block.first_line):
        text = decode_line(raw, layout.path, line)
        if is_skipped(text, layout.options.comments):
            continue
        if not skip_header:
            _check_record(Record(line, text, split_line(text, layout.delimiter)), layout)
        skip_header = False
    lines = f"lines {block.first_line} to {line}"
    raise GraphFormatError(f"{layout.path}: {lines} cannot be read: {excerpt(fault, 200)}")


def _check_record(record: Record, layout: Layout) -> None:
    place, columns, found = f"{layout.path}:{record.line}", layout.columns, excerpt(record.text)
    if layout.delimiter != WHITESPACE and record.text.count('"') % 2:
        raise GraphFormatError(f"{place}: a quote is opened but not closed: {found}; close or remove it")
    if len(record.fields) != layout.width:
        expected, way_out = f"{layout.width} fields as on the first line", "Give every line the same fields"
        if layout.width == 2:
            expected = "'source target'"
            way_out = "For weighted edges give every line a weight and pass weighted=True"
        elif layout.width == 3 and columns.weight is not None:
            expected = "'source target weight'"
        count = f"{len(record.fields)} field{'s' * (len(record.fields) != 1)}"
        raise GraphFormatError(f"{place}: expected {expected}, got {count}: {found}. {way_out}")
    for role, position in (("source", columns.source), ("target", columns.target)):
        _check_name(record.fields[position].strip(), role, place, found, layout)
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


def _check_name(name: str, role: str, place: str, found: str, layout: Layout) -> None:
    n = layout.options.num_nodes
    if not name:
        raise GraphFormatError(f"{place}: the {role} is empty: {found}; every edge needs two names")
    if layout.names == "text":
        return
    if not is_integer(name):
        if layout.options.names != "integer" and n is None:
            raise NotIntegersError
        wanted = "num_nodes is given" if n is not None else "names='integer'"
        raise GraphFormatError(f"{place}: the {role} {excerpt(name)} is not an integer, but {wanted}")
    if n is not None and not 0 <= int(name) < n:
        rule = f"with num_nodes={n}, ids are 0 .. {n - 1}"
        raise GraphFormatError(f"{place}: the {role} {name} is out of range: {found}; {rule}")


_FREE_SPAN = 2**22  # ids that span up to this many values are counted in a table


class EdgeCollector:
    """Collects the endpoints and weights of blocks; ``note`` says what was detected in the file."""

    def __init__(self, is_integer: bool, is_weighted: bool, num_nodes: int | None, note: str) -> None:
        self.is_integer, self.is_weighted = is_integer, is_weighted
        self.num_nodes, self.note = num_nodes, note
        self.blocks = 0  # of the file that were read or skipped
        self._clear()

    def _clear(self) -> None:
        self._integers, self._texts = IntegerNames(), DistinctNames()
        self._weights: list[NDArray[np.float32]] = []
        self._count, self.name_bytes = 0, 0

    def __len__(self) -> int:
        """Return the number of edges collected."""
        return self._count

    def add(self, sources: Any, targets: Any, weights: NDArray[Any] | None = None) -> Any:
        """Add one block's edges, (b,) each; returns its distinct names where they are text."""
        self._count += len(sources)
        if weights is not None:
            self._weights.append(weights.astype(np.float32, copy=False))
        if self.is_integer:
            self._integers.add(sources, targets)
            return None
        names = self._texts.add(sources, targets)
        self.name_bytes += names.nbytes
        return names

    def take(self) -> tuple[Any, NDArray[Any], NDArray[np.float32] | None]:
        """Return sorted distinct names (n,), edges (m, 2) as positions and weights (m,), and start over.

        Names are an int64 array, an Arrow array of text, or a range where the number of nodes is given.
        """
        names: Any
        if self.num_nodes is not None:
            names, edges = range(self.num_nodes), self._integers.joined(np.int64(0))
        else:
            names, edges = self._integers.finish() if self.is_integer else self._texts.finish()
        weights = np.concatenate([*self._weights, np.zeros(0, np.float32)]) if self.is_weighted else None
        self._clear()
        return names, edges, weights

    def contents(self, path: str) -> FileContents:
        """Return what was collected as the contents of a file."""
        names, edges, weights = self.take()
        if isinstance(names, range):
            names = np.arange(len(names))
        elif not isinstance(names, np.ndarray):
            names = names.to_numpy(zero_copy_only=False).astype(object)
        return FileContents(path, names, edges, weights=weights, notes=(self.note,))


class IntegerNames:
    """Collects integer endpoints, then numbers the distinct ones in ascending order."""

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

    def finish(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the names (n,), ascending, and the edges (m, 2) as positions; releases the blocks."""
        if not self._count:
            return np.zeros(0, np.int64), np.zeros((0, 2), np.int32)
        span, low = self._high - self._low + 1, np.int64(self._low)
        if span > max(_FREE_SPAN, min(4 * self._count, 2**31)):
            distinct = DistinctNames()
            while self._blocks:
                distinct.add(*(pa.array(side.astype(np.int64)) for side in self._blocks.pop(0)))
            found, edges = distinct.finish()
            return found.to_numpy(), edges
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


class DistinctNames:
    """Collects endpoints of any Arrow type, then numbers the distinct ones in ascending order."""

    def __init__(self) -> None:
        self._codes: list[NDArray[np.int32]] = []  # (2, b) codes into the block's own names
        self._names: list[Any] = []

    def add(self, sources: Any, targets: Any) -> Any:
        """Add the endpoints of one block, (b,) each, and return the block's distinct names."""
        sides = (
            side if isinstance(side, pa.ChunkedArray) else pa.chunked_array([side])
            for side in (sources, targets)
        )
        both = pa.chunked_array([chunk for side in sides for chunk in side.chunks])
        if not len(both):
            return both
        both = both.unify_dictionaries() if pa.types.is_dictionary(both.type) else both.dictionary_encode()
        codes = [chunk.indices.to_numpy() for chunk in both.chunks]
        self._codes.append(np.concatenate(codes).astype(np.int32, copy=False).reshape(2, -1))
        self._names.append(both.chunk(both.num_chunks - 1).dictionary)
        return self._names[-1]

    def finish(self) -> tuple[Any, NDArray[np.int32]]:
        """Return the names (n,), ascending, as an Arrow array, and the edges (m, 2) as positions."""
        if not self._codes:
            return pa.array([], pa.large_string()), np.zeros((0, 2), np.int32)
        merged = pa.chunked_array([_trimmed(names) for names in self._names]).dictionary_encode()
        self._names.clear()
        distinct = merged.chunk(merged.num_chunks - 1).dictionary
        order = pc.sort_indices(distinct)
        rank = np.empty(len(distinct), np.int32)
        rank[order.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
        edges, start = np.empty((2, sum(codes.shape[1] for codes in self._codes)), np.int32), 0
        for chunk in merged.chunks:
            codes = self._codes.pop(0)
            end = start + codes.shape[1]
            edges[:, start:end] = rank[chunk.indices.to_numpy()][codes]
            start = end
        return distinct.take(order), edges.T


def _trimmed(names: Any) -> Any:
    """Return text names without the white space around them, in a type that may grow beyond 2 GiB."""
    return pc.utf8_trim_whitespace(names).cast(pa.large_string()) if is_text(names.type) else names


_BATCH = 2**18
# A run of equal values packs to almost nothing, so the size of a file does not bound its rows: this does.
_FREE_ROWS, _MAX_ROWS_PER_BYTE = 2**24, 200


def read_parquet_edges(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read an edge table; integer columns give integer names, others text."""
    with opened(path) as source:
        for found in scan_parquet(source.stream, source.path, options):  # noqa: B007 the last one counts
            pass
    if not len(found) and found.num_nodes is None:
        raise GraphFormatError(f"{source.path}: holds no edges; {found.note}")
    return found.contents(source.path)


def scan_parquet(stream: BinaryIO, path: str, options: EdgeOptions, skip: int = 0) -> Iterator[EdgeCollector]:
    """Read an edge table batch by batch, as :func:`scan_text` does."""
    with open_parquet(stream, path) as file:
        titles = list(file.schema_arrow.names)
        columns = choose_columns(titles, len(titles), options, path)
        ends = columns.source, columns.target, columns.weight
        wanted = [titles[position] for position in ends if position is not None]
        if len(set(wanted)) < len(wanted) or any(titles.count(title) > 1 for title in wanted):
            raise GraphFormatError(f"{path}: two columns are both called {wanted[0]!r}; rename one")
        types = [file.schema_arrow.field(title).type for title in wanted[:2]]
        as_integers = options.names != "text" and all(map(pa.types.is_integer, types))
        if options.num_nodes is not None and not as_integers:
            raise GraphFormatError(f"{path}: num_nodes goes with integer columns; got {types[0]}, {types[1]}")
        if options.names == "integer" and not as_integers:
            raise GraphFormatError(
                f"{path}: columns {wanted[0]!r} and {wanted[1]!r} are {types[0]} and {types[1]}, but "
                "names='integer'; cast them first"
            )
        note = f"Parquet; {columns.note}; names are {'integer' if as_integers else 'text'}"
        is_weighted = len(wanted) == 3
        edges = EdgeCollector(as_integers, is_weighted, options.num_nodes, note)
        yield edges
        first_row = 0
        for number, batch in enumerate(file.iter_batches(batch_size=_BATCH, columns=wanted)):
            if number >= skip:
                batch.validate(full=True)  # Parquet itself does not check that text is UTF-8
                reader = _Batch(batch, first_row, path)
                read = reader.integers if as_integers else reader.texts
                sources, targets = (read(title, options.num_nodes) for title in wanted[:2])
                edges.add(sources, targets, reader.weights(wanted[2]) if is_weighted else None)
            edges.blocks, first_row = number + 1, first_row + len(batch)
            yield edges


@contextmanager
def open_parquet(stream: BinaryIO, path: str) -> Iterator[Any]:
    """Open a Parquet file whose number of rows is in proportion to its size; damage is a GraphFormatError."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        # See arrow_stream: Arrow's threads must not hold a Python object.
        native = arrow_stream([stream.read()]) if isinstance(stream, io.BytesIO) else pa.OSFile(stream.name)
        with native as source, parquet.ParquetFile(source) as file:
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


class _Batch:
    """Some rows of an edge table; each column is checked as it is taken."""

    def __init__(self, batch: Any, first_row: int, path: str) -> None:
        self._batch, self._first_row, self._path = batch, first_row, path

    def integers(self, title: str, num_nodes: int | None) -> NDArray[np.int64]:
        values: NDArray[np.int64] = self._cast(self._names(title), pa.int64(), title).to_numpy()
        if num_nodes is not None:
            rule = f"is {{}}, out of range; with num_nodes={num_nodes}, ids are 0 .. {num_nodes - 1}"
            self._refuse((values < 0) | (values >= num_nodes), title, rule)
        return values

    def texts(self, title: str, num_nodes: int | None = None) -> Any:
        column = self._names(title)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not is_text(column.type) and not pa.types.is_integer(column.type):
            raise GraphFormatError(
                f"{self._path}: column {title!r} is {column.type}; names are integers or text"
            )
        text = self._cast(column, pa.large_string(), title)
        blank = pc.equal(pc.utf8_trim_whitespace(text), "").to_numpy(False)
        self._refuse(blank, title, "is blank; every edge needs two names")
        return text

    def weights(self, title: str) -> NDArray[np.float64]:
        column = self._batch[title]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise GraphFormatError(f"{self._path}: column {title!r} is {column.type}, not numbers")
        values: NDArray[np.float64] = self._cast(column, pa.float64(), title).to_numpy(False)
        rule = "is {}; weights are finite numbers, 0 or more, that fit float32"
        self._refuse(~((values >= 0) & (values <= MAX_WEIGHT)), title, rule)
        return values

    def _names(self, title: str) -> Any:
        column = self._batch[title]
        self._refuse(column.is_null().to_numpy(False), title, "is empty; every edge needs two names")
        return column

    def _cast(self, column: Any, kind: Any, title: str) -> Any:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as fault:
            raise GraphFormatError(f"{self._path}: column {title!r} does not fit {kind}") from fault

    def _refuse(self, wrong: NDArray[np.bool_], title: str, rule: str) -> None:
        if wrong.any():
            row = int(wrong.argmax())
            rule = rule.format(self._batch[title][row])
            raise GraphFormatError(f"{self._path}: row {self._first_row + row}: {title!r} {rule}")


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
