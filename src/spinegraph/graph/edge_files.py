"""Reads edge lists kept as text or Parquet, block by block."""

import csv
import io
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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

from spinegraph.errors import GraphFormatError, ParameterError, SpineError
from spinegraph.graph.edges import GAPS_ALLOWED_BELOW, matrix_entries
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.files import opened, read_npz, shown_name

WEIGHT_NAMES = ("weight", "weights", "w", "edgeweight", "strength")
_PAIRS = (
    *(("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("i", "j")),
    *(("sourceid", "targetid"), ("srcid", "dstid"), ("fromid", "toid"), ("fromnode", "tonode")),
    *(("fromnodeid", "tonodeid"), ("sourcenode", "targetnode"), ("start", "end"), ("head", "tail")),
    *(("node1", "node2"), ("nodea", "nodeb"), ("id1", "id2"), ("node", "neighbor"), ("node", "neighbour")),
)


@dataclass(frozen=True)
class EdgeOptions:
    """What the caller says about an edge file; None means: look.

    Attributes
    ----------
    columns : two or three names or positions, optional
        Source, target and, with a third, weight.
    weighted : bool, optional
        Whether the file has a weight column.
    header : bool, optional
        Whether the first line names the columns (text only).
    delimiter : str, optional
        One character; a space stands for any white space (text only).
    comments : tuple of str
        A line that begins with one of these is skipped (text only).
    names : {"integer", "text"}, optional
        What node names are.
    num_nodes : int, optional
        Nodes are 0 .. num_nodes-1.
    """

    columns: Sequence[str | int] | None = None
    weighted: bool | None = None
    header: bool | None = None
    delimiter: str | None = None
    comments: Sequence[str] = ("#", "%")
    names: str | None = None
    num_nodes: int | None = None

    def __post_init__(self) -> None:
        for name in ("columns", "comments"):  # as they may come from a caller: any sequence
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        if self.columns is not None and (isinstance(self.columns, str) or len(self.columns) not in (2, 3)):
            raise ParameterError(
                f"columns must be (source, target) or (source, target, weight); got {self.columns!r}"
            )
        if self.columns is not None and len(self.columns) == 3 and self.weighted is False:
            raise ParameterError("columns names a weight, but weighted is False; leave one of them out")
        if self.delimiter is not None and not (
            len(self.delimiter) == 1 and self.delimiter.isascii() and self.delimiter not in '\0"\r\n'
        ):
            raise ParameterError(
                f"delimiter must be one ASCII character, ' ' for any white space; got {self.delimiter!r}"
            )
        if self.names not in (None, "integer", "text"):
            raise ParameterError(f"names must be 'integer', 'text' or None; got {self.names!r}")
        if isinstance(self.comments, str) or not all(
            isinstance(mark, str) and mark for mark in self.comments
        ):
            raise ParameterError(
                f"comments must be a tuple of line beginnings, such as ('#',); got {self.comments!r}"
            )
        if self.num_nodes is not None and (not isinstance(self.num_nodes, int) or self.num_nodes < 1):
            raise ParameterError(f"num_nodes must be a whole number of at least 1; got {self.num_nodes!r}")
        if self.num_nodes is not None and self.names == "text":
            raise ParameterError("num_nodes counts nodes 0 .. num_nodes-1; it does not go with names='text'")


@dataclass(frozen=True)
class EdgeColumns:
    """Positions of the columns that matter, and one sentence on how they were found."""

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
    """Choose the source, target and weight columns.

    Parameters
    ----------
    titles : sequence of str, optional
        Column names, where the file has them.
    width : int
        How many columns there are.
    options : EdgeOptions
        What the caller said.
    place : str
        File and line, for messages.
    third : callable
        Says what an untitled third column holds: ``"number"``, ``"nothing"`` or ``"text"``.
    """
    if options.columns is not None:
        chosen = [_position(column, titles, width, place) for column in options.columns]
        pair, weight = chosen[:2], chosen[2] if len(chosen) == 3 else None
    else:
        pair, weight = _endpoints(titles, width, place), None
    if pair[0] == pair[1]:
        raise ParameterError(f"{place}: source and target cannot both be column {pair[0] + 1}")
    if weight is None and options.weighted is not False:
        weight, note = _weight(titles, width, pair, options, place, third)
    else:
        note = "weights are not read" if weight is None else f"weights are column {weight + 1}"
    ends = f"source is {_title(titles, pair[0])}, target is {_title(titles, pair[1])}"
    return EdgeColumns(pair[0], pair[1], weight, f"{ends}; {note}")


def is_title_pair(first: str, second: str) -> bool:
    """Return whether two texts are usual titles of a source and a target column."""
    first, second = _plain(first), _plain(second)
    if (first, second) in _PAIRS:
        return True
    return (
        len(first) > 2 and first[:-1] == second[:-1] and (first[-1], second[-1]) in (("1", "2"), ("a", "b"))
    )


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9]", "", title.lower())


def _title(titles: Sequence[str] | None, position: int) -> str:
    return f"column {position + 1}" if titles is None else f"column {titles[position]!r}"


def _position(column: str | int, titles: Sequence[str] | None, width: int, place: str) -> int:
    if isinstance(column, int):
        if not 0 <= column < width:
            raise ParameterError(
                f"{place}: columns has position {column}; the file has positions 0 .. {width - 1}"
            )
        return column
    if titles is None:
        raise ParameterError(
            f"{place}: columns names {column!r}, but no header was found; "
            "pass header=True or positions such as (0, 1)"
        )
    if column not in titles:
        raise ParameterError(f"{place}: there is no column {column!r}; the columns are {', '.join(titles)}")
    return list(titles).index(column)


def _endpoints(titles: Sequence[str] | None, width: int, place: str) -> list[int]:
    if width < 2:
        raise GraphFormatError(
            f"{place}: expected 'source target', got {width} field; if another character parts the fields, "
            "pass delimiter=..."
        )
    if titles is not None:
        for first in range(width):
            for second in range(width):
                if first != second and is_title_pair(titles[first], titles[second]):
                    return [first, second]
    return [0, 1]


def _weight(
    titles: Sequence[str] | None,
    width: int,
    pair: list[int],
    options: EdgeOptions,
    place: str,
    third: Callable[[], str],
) -> tuple[int | None, str]:
    others = [position for position in range(width) if position not in pair]
    if titles is not None:
        for position in others:
            if _plain(titles[position]) in WEIGHT_NAMES:
                return position, f"weights are column {titles[position]!r}"
    if options.weighted:
        if not others:
            raise GraphFormatError(f"{place}: weighted=True needs a third column; the file has only 2")
        return others[0], f"weights are {_title(titles, others[0])}"
    if not others or options.columns is not None:
        return None, "no weights"
    if titles is not None:
        ignored = ", ".join(repr(titles[position]) for position in others[:5])
        return (
            None,
            f"no column is called weight, so {ignored} {'is' if len(others) == 1 else 'are'} not read",
        )
    if width > 3:
        raise GraphFormatError(
            f"{place}: {width} fields and no header, so it is unclear what they are; pass columns=(0, 1) for "
            "source and target, columns=(0, 1, 2) for weights too, or header=True"
        )
    what = third()
    if what == "text":
        raise GraphFormatError(
            f"{place}: the third field is not a number, so it is no weight; weighted=False leaves it out"
        )
    if what == "nothing":
        return None, "the third column holds nothing"
    return 2, "the third column holds numbers, taken as weights (weighted=False leaves them out)"


@dataclass(frozen=True, eq=False)
class FileContents:
    """Edges as positions among names, and whatever else the file tells.

    Attributes
    ----------
    path : str
    names : int64 or object array (n,)
    edges : integer array (m, 2)
        Positions in 0 .. n-1, as listed: nothing is merged or dropped yet.
    weights : float32 array (m,), optional
    features : float32 CSR or dense array (n, f), optional
    feature_names : tuple of str (f,), optional
    encoder : FeatureEncoder, optional
        What made the features of a table.
    labels : array (n,) or (n, c), optional
    directed : bool
        Whether the file says that its edges go one way, or lists both ways of those that do not.
    notes : tuple of str
        What was understood, one sentence each.
    """

    path: str
    names: NDArray[Any]
    edges: NDArray[np.integer[Any]]
    weights: NDArray[np.float32] | None = None
    features: Any = None
    feature_names: tuple[str, ...] | None = None
    encoder: FeatureEncoder | None = None
    labels: NDArray[Any] | None = None
    directed: bool = False
    notes: tuple[str, ...] = ()


BLOCK = 2**24
LONGEST_LINE = 2**20
WHITESPACE = " "
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Whole lines, each ended by a line feed, and the number of the first."""

    first_line: int
    data: bytes


def blocks(stream: BinaryIO, path: str, longest_line: int = LONGEST_LINE) -> Iterator[Block]:
    r"""Yield the lines of a stream in blocks; line ends become line feeds and a byte order mark goes."""
    line, rest, is_end = 1, b"", False
    while not is_end:
        fresh = stream.read(BLOCK)
        is_end = len(fresh) < BLOCK
        whole = rest + fresh if rest else fresh
        if line == 1 and not rest:
            whole = whole.removeprefix(_BOM)
        # Old Macs end lines by a carriage return alone: without any line feed, that is one.
        if b"\n" not in whole and b"\r" in whole[:-1]:
            whole = whole.replace(b"\r", b"\n")
        cut = len(whole) if is_end else whole.rfind(b"\n") + 1
        data, rest = whole[:cut], whole[cut:]
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if data and not data.endswith(b"\n"):
            data += b"\n"
        _require_text(data, line, path)
        _require_short_lines(data, line, path, longest_line)
        if data:
            yield Block(line, data)
        line += data.count(b"\n")
        if len(rest) > longest_line:
            raise _too_long(line, rest, path, longest_line)


def plain(data: bytes, delimiter: str, comments: Sequence[str]) -> bytes:
    r"""Return the lines without blank lines and comments, and white space as single spaces."""
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


def arrow_stream(pieces: Iterable[bytes]) -> Any:
    """Return bytes, piece after piece, as a stream in memory of Arrow's own.

    Its threads let go of what they read a moment after the reading; where Python has ended by then, as after
    an error at once, letting go of an object of Python's aborts the process.
    """
    memory = pa.BufferOutputStream()
    for piece in pieces:
        memory.write(piece)
    return pa.BufferReader(memory.getvalue())


def is_skipped(line: str, comments: Sequence[str]) -> bool:
    """Return whether a line is blank or a comment, by the same rule as :func:`plain`."""
    text = line.strip(" \t\n")
    return not text or (bool(comments) and text.startswith(tuple(comments)))


def shown(text: str | bytes, most: int = 60) -> str:
    """Return a piece of input as it may stand in a message: quoted and cut short."""
    if isinstance(text, bytes):
        text = text[: 4 * most].decode("utf-8", "backslashreplace")
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def _require_text(data: bytes, line: int, path: str) -> None:
    place = data.find(b"\0")
    if place < 0:
        return
    start, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
    line += data.count(b"\n", 0, place)
    raise GraphFormatError(
        f"{path}:{line}: binary data where text was expected: "
        f"{shown(data[start:end])}; expected an edge list as UTF-8 text, or a Parquet, npz or GraphML file"
    )


def _require_short_lines(data: bytes, line: int, path: str, longest_line: int) -> None:
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + longest_line + 1)
        if end < 0:
            raise _too_long(line + data.count(b"\n", 0, start), data[start:], path, longest_line)
        start = end + 1


def _too_long(line: int, text: bytes, path: str, longest_line: int) -> GraphFormatError:
    return GraphFormatError(
        f"{path}:{line}: a line of more than {longest_line:,} bytes, beginning {shown(text[:200])}; "
        "write one edge (or one node's features) a line"
    )


_SAMPLE_LINES, _SAMPLE_BYTES = 1000, 2**18
_WHITE = re.compile(r"[ \t]+")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE
)


class Record(NamedTuple):
    """One line of data: where it stands, its text and its fields."""

    line: int
    text: str
    fields: list[str]


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
    first_line: int  # of the block that it was found in

    @property
    def note(self) -> str:
        """Return one sentence on what was understood."""
        parted = {WHITESPACE: "white space", "\t": "tabs", ",": "commas"}.get(
            self.delimiter, repr(self.delimiter)
        )
        header = "a header" if self.has_header else "no header"
        return f"fields parted by {parted}, {header}; {self.columns.note}; names are {self.names}"

    def begins_with_header(self, block: Block) -> bool:
        """Return whether the first line of data in this block is the header."""
        return self.has_header and block.first_line == self.first_line


def find_layout(block: Block, path: str, options: EdgeOptions) -> Layout:
    r"""Find out how an edge list is written, by its first thousand lines.

    The delimiter is the first of tab, comma and semicolon that stands in every line (a comma first in a
    ``.csv`` file), else white space. The first line is a header when its names are usual ones (source, target
    and the like), or when it has words only and every line below has an integer as source or target.
    """
    lines = first_lines(block, path, options.comments)
    delimiter = options.delimiter or find_delimiter([text for _, text in lines], path)
    records = [Record(line, text, split_line(text, delimiter)) for line, text in lines]
    has_header = _is_header(records) if options.header is None else options.header
    body = records[1:] if has_header else records
    first = records[0]
    columns = choose_columns(
        [field.strip() for field in first.fields] if has_header else None,
        len(first.fields),
        options,
        f"{path}:{first.line}",
        third=lambda: _holds([record.fields[2] for record in body if len(record.fields) > 2]),
    )
    wanted = "integer" if options.num_nodes is not None else options.names
    names = wanted or ("integer" if _are_integers(body, columns) else "text")
    return Layout(path, delimiter, has_header, len(first.fields), columns, names, options, block.first_line)


def split_line(text: str, delimiter: str) -> list[str]:
    """Return the fields of one line as Arrow's reader sees them."""
    if delimiter == WHITESPACE:
        return _WHITE.split(text.strip(" \t"))  # not str.split: a name may hold rarer kinds of space
    try:
        return next(csv.reader([text], delimiter=delimiter))
    except (csv.Error, StopIteration):  # a field beyond the csv module's own limit
        return text.split(delimiter)


def is_integer(text: str) -> bool:
    """Return whether a name is a whole number as it is usually written, so that the number says all of it."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def decoded(raw: bytes, path: str, line: int) -> str:
    r"""Return one line of a file as text."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise GraphFormatError(
            f"{path}:{line}: not UTF-8 text: {shown(raw)}; "
            "save the file as UTF-8, or check that it is text at all"
        ) from fault


def first_lines(block: Block, path: str, comments: Sequence[str]) -> list[tuple[int, str]]:
    r"""Return numbers and texts of the first lines that are data."""
    lines: list[tuple[int, str]] = []
    start, number = 0, block.first_line
    while (
        start < len(block.data) and len(lines) < _SAMPLE_LINES and (start < _SAMPLE_BYTES or len(lines) < 2)
    ):
        end = block.data.index(b"\n", start)
        text = decoded(block.data[start:end], path, number)
        if not is_skipped(text, comments):
            lines.append((number, text))
        start, number = end + 1, number + 1
    return lines


def find_delimiter(texts: Sequence[str], path: str) -> str:
    """Return what parts the fields of these lines; a space stands for white space."""
    # Numbers hold no spaces, so between them tabs and spaces are the same.
    if _all_numbers(texts[1:] or texts) and len(texts[0].split()) == len(texts[-1].split()):
        return WHITESPACE
    is_csv = path.lower().removesuffix(".gz").endswith(".csv")
    for candidate in ",\t;" if is_csv else "\t,;":
        if all(candidate in text for text in texts):
            return candidate
    # One line without the delimiter is a broken line, not a reason to part fields elsewhere.
    for candidate in ",\t;":
        count = sum(candidate in text for text in texts)
        if 2 * count > len(texts) or (count and is_csv and candidate == ","):
            return candidate
    return WHITESPACE


def _all_numbers(texts: Sequence[str]) -> bool:
    return all(NUMBER.fullmatch(field) for text in texts for field in text.split())


def _is_header(records: Sequence[Record]) -> bool:
    first, body = [field.strip() for field in records[0].fields], records[1:]
    if len(first) < 2 or any(NUMBER.fullmatch(field) for field in first):
        return False
    named = [titles for titles in permutations(first[:8], 2) if is_title_pair(*titles)]
    if named and not any(_go_on_below(titles, body) for titles in named):
        return True
    if len(first) == 3 and first[2].lower() in WEIGHT_NAMES:
        return True
    return bool(body) and any(
        all(len(record.fields) > place and is_integer(record.fields[place].strip()) for record in body)
        for place in (0, 1)
    )


def _go_on_below(titles: tuple[str, str], body: Sequence[Record]) -> bool:
    """Return whether texts that may be titles are names like those below: node1, node2, then node3."""
    shared = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*titles, strict=False)))
    names = {field.strip() for record in body for field in record.fields}
    return not names.isdisjoint(titles) or (
        len(shared) > 1 and any(name.startswith(shared) for name in names)
    )


def _holds(values: Sequence[str]) -> str:
    """Say what an untitled third column holds."""
    if all(value.strip() in ("", "{}") for value in values):
        return "nothing"  # NetworkX writes {} where an edge has no data
    return "text" if not any(NUMBER.fullmatch(value.strip()) for value in values) else "number"


def _are_integers(body: Sequence[Record], columns: EdgeColumns) -> bool:
    last = max(columns.source, columns.target)
    return all(
        is_integer(record.fields[place].strip())
        for record in body
        for place in (columns.source, columns.target)
        if len(record.fields) > last
    )


_LARGEST_WEIGHT = float(np.finfo(np.float32).max)


class NotIntegersError(Exception):
    """Some name is no integer, though the file began as if all were."""


def explain_fault(block: Block, layout: Layout, fault: str) -> NoReturn:
    r"""Raise a GraphFormatError that names the first bad line of a block.

    Raises NotIntegersError instead where the line is sound but for a name that is text.
    """
    line, skip_header = block.first_line, layout.begins_with_header(block)
    for line, raw in enumerate(block.data.split(b"\n"), block.first_line):
        text = decoded(raw, layout.path, line)
        if is_skipped(text, layout.options.comments):
            continue
        if skip_header:
            skip_header = False
            continue
        _check_record(Record(line, text, split_line(text, layout.delimiter)), layout)
    raise GraphFormatError(
        f"{layout.path}: lines {block.first_line} to {line} cannot be read: {shown(fault, 200)}"
    )


def _check_record(record: Record, layout: Layout) -> None:
    place = f"{layout.path}:{record.line}"
    if layout.delimiter != WHITESPACE and record.text.count('"') % 2:
        raise GraphFormatError(
            f"{place}: a quote is opened but not closed: {shown(record.text)}; close or remove it"
        )
    if len(record.fields) != layout.width:
        raise GraphFormatError(
            f"{place}: {_expected(layout)}, got {_count(record)}: {shown(record.text)}{_way(layout)}"
        )
    for role, position in (("source", layout.columns.source), ("target", layout.columns.target)):
        _check_name(record, record.fields[position].strip(), role, place, layout)
    if layout.columns.weight is not None:
        _check_weight(record, record.fields[layout.columns.weight].strip(), place)


def _expected(layout: Layout) -> str:
    if layout.width == 2:
        return "expected 'source target'"
    if layout.width == 3 and layout.columns.weight is not None:
        return "expected 'source target weight'"
    return f"expected {layout.width} fields as on the first line"


def _count(record: Record) -> str:
    return f"{len(record.fields)} field{'' if len(record.fields) == 1 else 's'}"


def _way(layout: Layout) -> str:
    if layout.width == 2:
        return ". For weighted edges give every line a weight and pass weighted=True"
    return ". Give every line the same fields"


def _check_name(record: Record, name: str, role: str, place: str, layout: Layout) -> None:
    n = layout.options.num_nodes
    if not name:
        raise GraphFormatError(
            f"{place}: the {role} is empty: {shown(record.text)}; every edge needs two names"
        )
    if layout.names == "integer" and not is_integer(name):
        if layout.options.names == "integer" or n is not None:
            wanted = "num_nodes is given" if n is not None else "names='integer'"
            raise GraphFormatError(
                f"{place}: the {role} {shown(name)} is not an integer, but {wanted}: {shown(record.text)}"
            )
        raise NotIntegersError
    if n is not None and layout.names == "integer" and not 0 <= int(name) < n:
        raise GraphFormatError(
            f"{place}: the {role} {name} is out of range: {shown(record.text)}; "
            f"with num_nodes={n}, ids are 0 .. {n - 1}"
        )


def _check_weight(record: Record, weight: str, place: str) -> None:
    if not NUMBER.fullmatch(weight):
        rule = f"the weight {shown(weight)} is not a number"
    elif not math.isfinite(float(weight)):
        rule = f"the weight {shown(weight)} is not finite"
    elif float(weight) < 0:
        rule = f"the weight {shown(weight)} is negative"
    elif float(weight) > _LARGEST_WEIGHT:
        rule = f"the weight {shown(weight)} is more than float32 holds"
    else:
        return
    raise GraphFormatError(
        f"{place}: {rule}: {shown(record.text)}. Weights are finite numbers, 0 or more; "
        "weighted=False leaves them out"
    )


_SPARE = 2**22  # a table of this many node ids costs nothing worth mention


class IntegerNames:
    """Collects integer endpoints, then numbers the distinct ones in ascending order."""

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._low, self._high, self._count = 2**63 - 1, -(2**63), 0

    def add(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take the endpoints of one block, (b,) each."""
        if not len(sources):
            return
        low = min(int(sources.min()), int(targets.min()))
        high = max(int(sources.max()), int(targets.max()))
        dtype = np.int32 if low >= -(2**31) and high < 2**31 else np.int64  # half the memory where it fits
        self._blocks.append((sources.astype(dtype), targets.astype(dtype)))
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._count += len(sources)

    def finish_positions(self) -> NDArray[np.int32]:
        """Return the edges (m, 2) where names are positions already; the blocks are given up."""
        return self._joined(np.int64(0))

    def finish(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the names (n,), ascending, and the edges (m, 2) as positions; the blocks are given up."""
        if not self._count:
            return np.zeros(0, np.int64), np.zeros((0, 2), np.int32)
        span, low = self._high - self._low + 1, np.int64(self._low)
        if span > max(_SPARE, min(4 * self._count, 2**31)):
            return self._finish_sparse()
        present = np.zeros(span, dtype=bool)
        for sources, targets in self._blocks:
            present[sources - low] = True
            present[targets - low] = True
        names = np.flatnonzero(present)
        edges = self._joined(low)
        if len(names) < span:
            rank = np.cumsum(present, dtype=np.int32) - np.int32(1)
            for column in edges.T:
                column[:] = rank[column]
        return names + low, edges

    def _joined(self, low: np.int64) -> NDArray[np.int32]:
        """Return all endpoints less ``low`` as one (m, 2) array whose columns are contiguous."""
        edges, start = np.empty((2, self._count), np.int32), 0
        while self._blocks:
            sources, targets = self._blocks.pop(0)
            end = start + len(sources)
            np.subtract(sources, low, out=edges[0, start:end], casting="unsafe")
            np.subtract(targets, low, out=edges[1, start:end], casting="unsafe")
            start = end
        return edges.T

    def _finish_sparse(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        coder = DistinctNames()
        while self._blocks:
            sources, targets = self._blocks.pop(0)
            coder.add(pa.array(sources.astype(np.int64)), pa.array(targets.astype(np.int64)))
        return coder.finish()


class DistinctNames:
    """Collects endpoints of any Arrow type, then numbers the distinct ones in ascending order."""

    def __init__(self) -> None:
        self._codes: list[NDArray[np.int32]] = []  # (2, b) codes into the block's own names
        self._names: list[Any] = []

    def add(self, sources: Any, targets: Any) -> Any:
        """Take the endpoints of one block, (b,) each, and return the block's distinct names."""
        both = pa.chunked_array([*_chunks(sources), *_chunks(targets)])
        if not len(both):
            return both
        both = both.unify_dictionaries() if pa.types.is_dictionary(both.type) else both.dictionary_encode()
        codes = [chunk.indices.to_numpy() for chunk in both.chunks]
        self._codes.append(np.concatenate(codes).astype(np.int32, copy=False).reshape(2, -1))
        self._names.append(both.chunk(both.num_chunks - 1).dictionary)
        return self._names[-1]

    def finish(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the names (n,), ascending, and the edges (m, 2) as positions; the blocks are given up."""
        found, edges = self.finish_text()
        names = found.to_numpy(zero_copy_only=False)
        return names if names.dtype == np.int64 and len(names) else names.astype(object), edges

    def finish_text(self) -> tuple[Any, NDArray[np.int32]]:
        """Return what ``finish`` does, the names still as an Arrow array."""
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


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _trimmed(names: Any) -> Any:
    """Return text names without the white space around them, in a type that may grow beyond 2 GiB."""
    is_text = pa.types.is_string(names.type) or pa.types.is_large_string(names.type)
    return pc.utf8_trim_whitespace(names).cast(pa.large_string()) if is_text else names


class Taken(NamedTuple):
    """Sorted distinct names (u,), edges (m, 2) as positions among them, and weights (m,) or None.

    ``names`` is an int64 array, an Arrow array of text, or a range where the number of nodes is given.
    """

    names: Any
    edges: NDArray[Any]
    weights: NDArray[np.float32] | None


class Listings:
    """Collects the endpoints and weights of blocks.

    Parameters
    ----------
    is_integer, is_weighted : bool
        What names are, and whether there are weights.
    num_nodes : int, optional
        Nodes are 0 .. num_nodes-1.
    note : str
        One sentence on what was understood of the file.

    Attributes
    ----------
    blocks : int
        How many blocks of the file were read or passed over.
    """

    def __init__(
        self, *, is_integer: bool, is_weighted: bool, num_nodes: int | None = None, note: str = ""
    ) -> None:
        self.is_integer, self.is_weighted, self.num_nodes, self.note = (
            is_integer,
            is_weighted,
            num_nodes,
            note,
        )
        self.blocks = 0
        self._begin()

    def _begin(self) -> None:
        self._integers, self._texts = IntegerNames(), DistinctNames()
        self._weights: list[NDArray[np.float32]] = []
        self._count, self.name_bytes = 0, 0

    def __len__(self) -> int:
        """Return the number of edges collected."""
        return self._count

    def add(self, sources: Any, targets: Any, weights: NDArray[Any] | None = None) -> Any:
        """Take one block's edges, (b,) each; returns its distinct names where they are text."""
        self._count += len(sources)
        if weights is not None:
            self._weights.append(weights.astype(np.float32, copy=False))
        if self.is_integer:
            self._integers.add(sources, targets)
            return None
        names = self._texts.add(sources, targets)
        self.name_bytes += names.nbytes
        return names

    def take(self) -> Taken:
        """Give up what was collected; the next block begins anew."""
        names: Any
        if self.num_nodes is not None:
            names, edges = range(self.num_nodes), self._integers.finish_positions()
        else:
            names, edges = self._integers.finish() if self.is_integer else self._texts.finish_text()
        weights = np.concatenate([*self._weights, np.zeros(0, np.float32)]) if self.is_weighted else None
        self._begin()
        return Taken(names, edges, weights)


def named(names: Any) -> NDArray[Any]:
    """Return taken names as a graph has them: int64, or objects."""
    if isinstance(names, range):
        return np.arange(len(names))
    return names if isinstance(names, np.ndarray) else names.to_numpy(zero_copy_only=False).astype(object)


def read_text_edges(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    r"""Read an edge list; names are integers where every name in the file is one, else text."""
    try:
        with opened(path) as source:
            return _read(source.stream, source.path, options)
    except NotIntegersError:
        # Far down the file stands a name that is no integer, so all names are text: read it again as such.
        with opened(path) as source:
            return _read(source.stream, source.path, replace(options, names="text"))


def _read(stream: BinaryIO, path: str, options: EdgeOptions) -> FileContents:
    for listings in scan_text(stream, path, options):  # noqa: B007 it is the last that counts
        pass
    names, edges, weights = listings.take()
    if not len(names):
        raise GraphFormatError(
            f"{path}: holds a header but no edges; expected 'source target' lines below it"
        )
    return FileContents(path, named(names), edges, weights=weights, notes=(listings.note,))


def scan_text(stream: BinaryIO, path: str, options: EdgeOptions, skip: int = 0) -> Iterator[Listings]:
    r"""Read an edge list block by block, and yield after each what was collected since it was last taken.

    Parameters
    ----------
    stream, path
        An open file and its name for messages.
    options : EdgeOptions
    skip : int
        So many blocks are passed over unread.
    """
    found = blocks(stream, path)
    first = next((block for block in found if first_lines(block, path, options.comments)), None)
    if first is None:
        raise GraphFormatError(
            f"{path}: holds no edges, only comments or blank lines; expected 'source target' lines"
        )
    layout = find_layout(first, path, options)
    reader = _BlockReader(layout)
    for place, block in enumerate(chain([first], found)):
        fault = None
        try:
            if place >= skip:
                reader.take(block)
        except (pa.ArrowInvalid, _BlockError) as error:
            fault = str(error)
        if fault is not None:
            explain_fault(block, layout, fault)
        reader.listings.blocks = place + 1
        yield reader.listings


class _BlockReader:
    """Parses block after block by one layout and keeps endpoints and weights."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.listings = Listings(
            is_integer=layout.names == "integer",
            is_weighted=layout.columns.weight is not None,
            num_nodes=layout.options.num_nodes,
            note=layout.note,
        )
        titles = [f"other {place}" for place in range(layout.width)]
        titles[layout.columns.source], titles[layout.columns.target] = "source", "target"
        if layout.columns.weight is not None:
            titles[layout.columns.weight] = "weight"
        quote: str | bool = False if layout.delimiter == WHITESPACE else '"'
        self._reading = arrow_csv.ReadOptions(column_names=titles, block_size=2 * LONGEST_LINE)
        self._parsing = arrow_csv.ParseOptions(
            delimiter=layout.delimiter, quote_char=quote, ignore_empty_lines=False
        )

    def take(self, block: Block) -> None:
        """Keep what a block holds, or raise without a place: :func:`explain_fault` finds that."""
        layout = self._layout
        data = plain(block.data, layout.delimiter, layout.options.comments)
        if layout.begins_with_header(block):
            data = data[data.index(b"\n") + 1 :]
        if not data:
            return
        is_weighted, is_integer = self.listings.is_weighted, self.listings.is_integer
        kind = pa.int64() if is_integer else pa.dictionary(pa.int32(), pa.string())
        table = self._parse(data, kind, is_weighted)
        sources, targets = table["source"], table["target"]
        weights = _checked_weights(table["weight"].to_numpy()) if is_weighted else None
        if not is_integer:
            _require_names(self.listings.add(sources, targets, weights))
            return
        if _may_be_padded(data, layout.delimiter):
            _require_unpadded(self._parse(data, pa.string(), False))
        ids = sources.to_numpy(), targets.to_numpy()
        _require_in_range(*ids, layout.options.num_nodes)
        self.listings.add(*ids, weights)

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


def _require_unpadded(table: Any) -> None:
    """Refuse integers that would lose what they say as numbers: 007 is not 7."""
    for side in ("source", "target"):
        if pc.any(pc.match_substring_regex(table[side], r"^\s*-?0[0-9xX]")).as_py():
            raise _BlockError("a name is not an integer")


def _require_in_range(sources: NDArray[np.int64], targets: NDArray[np.int64], n: int | None) -> None:
    for ids in (sources, targets):
        if n is not None and len(ids) and (ids.min() < 0 or ids.max() >= n):
            raise _BlockError("a node id is out of range")


def _require_names(names: Any) -> None:
    if len(names) and pc.any(pc.equal(pc.utf8_trim_whitespace(names), "")).as_py():
        raise _BlockError("a name is empty")
    if len(names) and pc.any(pc.match_substring(names, "\n")).as_py():
        raise _BlockError("a quote is not closed on its line")


def _checked_weights(weights: NDArray[np.float64]) -> NDArray[np.float32]:
    # NaN fails the first comparison, so one pass finds every kind of bad weight.
    if not ((weights >= 0) & (weights <= _LARGEST_WEIGHT)).all():
        raise _BlockError("a weight is negative, not finite or too large")
    return weights.astype(np.float32)


class _BlockError(Exception):
    """A block that breaks a rule; the slow scan says where."""


_BATCH = 2**18
# A run of equal values packs to almost nothing, so the size of a file does not bound its rows: this does.
_FREE_ROWS, _MOST_ROWS_PER_BYTE = 2**24, 200


def read_parquet_edges(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read an edge table; integer columns give integer names, others text."""
    with opened(path) as source:
        for listings in scan_parquet(source.stream, source.path, options):  # noqa: B007
            pass
    names, edges, weights = listings.take()
    if not len(names):
        raise GraphFormatError(f"{source.path}: holds no edges; {listings.note}")
    return FileContents(source.path, named(names), edges, weights=weights, notes=(listings.note,))


def scan_parquet(stream: BinaryIO, path: str, options: EdgeOptions, skip: int = 0) -> Iterator[Listings]:
    """Read an edge table batch by batch, and yield after each what was collected since it was last taken.

    Parameters and values are those of :func:`~spinegraph.graph.edge_files.scan_text`.
    """
    with open_parquet(stream, path) as file:
        titles = list(file.schema_arrow.names)
        columns = choose_columns(titles, len(titles), options, path)
        wanted = [
            titles[place] for place in (columns.source, columns.target, columns.weight) if place is not None
        ]
        if len(set(wanted)) < len(wanted) or any(titles.count(title) > 1 for title in wanted):
            raise GraphFormatError(f"{path}: two columns are both called {wanted[0]!r}; rename one")
        types = [file.schema_arrow.field(title).type for title in wanted[:2]]
        is_integer = options.names != "text" and all(map(_is_integer, types))
        if options.num_nodes is not None and not is_integer:
            raise GraphFormatError(f"{path}: num_nodes goes with integer columns; got {types[0]}, {types[1]}")
        if options.names == "integer" and not is_integer:
            raise GraphFormatError(
                f"{path}: columns {wanted[0]!r} and {wanted[1]!r} are {types[0]} and {types[1]}, but "
                "names='integer'; cast them first"
            )
        note = f"Parquet; {columns.note}; names are {'integer' if is_integer else 'text'}"
        listings = Listings(
            is_integer=is_integer, is_weighted=len(wanted) == 3, num_nodes=options.num_nodes, note=note
        )
        yield listings
        first_row = 0
        for place, batch in enumerate(file.iter_batches(batch_size=_BATCH, columns=wanted)):
            if place >= skip:
                batch.validate(full=True)  # Parquet itself does not check that text is UTF-8
                reader = _Batch(batch, first_row, path, options.num_nodes)
                sources, targets = (reader.names(title, as_integers=is_integer) for title in wanted[:2])
                listings.add(sources, targets, reader.weights(wanted[2]) if len(wanted) == 3 else None)
            listings.blocks, first_row = place + 1, first_row + len(batch)
            yield listings


@contextmanager
def open_parquet(stream: BinaryIO, path: str) -> Iterator[Any]:
    """Open a Parquet file whose number of rows is in proportion to its size; damage is a GraphFormatError."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        with _of_arrow(stream) as source, parquet.ParquetFile(source) as file:
            rows = file.metadata.num_rows
            if rows > max(_FREE_ROWS, _MOST_ROWS_PER_BYTE * size):
                raise GraphFormatError(
                    f"{path}: {rows:,} rows in {size:,} bytes, more than {_MOST_ROWS_PER_BYTE} a byte; "
                    "if you trust it, write it as several files or as CSV"
                )
            yield file
    except SpineError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        raise GraphFormatError(
            f"{path}: damaged or cut-off Parquet ({shown(str(fault), 150)}); fetch or write it again"
        ) from fault


def _of_arrow(stream: BinaryIO) -> Any:
    """Return a file or bytes as what Arrow's threads may hold on to; see ``arrow_stream``."""
    return arrow_stream([stream.read()]) if isinstance(stream, io.BytesIO) else pa.OSFile(stream.name)


class _Batch:
    """Some rows of an edge table, each column checked as it is taken."""

    def __init__(self, batch: Any, first_row: int, path: str, num_nodes: int | None) -> None:
        self._batch, self._first_row, self._path, self._num_nodes = batch, first_row, path, num_nodes

    def names(self, title: str, *, as_integers: bool) -> Any:
        """Return a column of node names, an int64 array or an Arrow array of text."""
        column = self._batch[title]
        if column.null_count:
            self._fail(
                title,
                int(np.argmax(column.is_null().to_numpy(False))),
                "is empty; every edge needs two names",
            )
        if as_integers:
            values = self._cast(column, pa.int64(), title).to_numpy()
            n = self._num_nodes
            if n is not None and len(values) and (values.min() < 0 or values.max() >= n):
                place = int(np.argmax((values < 0) | (values >= n)))
                self._fail(
                    title,
                    place,
                    f"is {values[place]}, out of range; with num_nodes={n}, ids are 0 .. {n - 1}",
                )
            return values
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not is_text and not _is_integer(column.type):
            raise GraphFormatError(
                f"{self._path}: column {title!r} is {column.type}; names are integers or text: cast it first"
            )
        text = self._cast(column, pa.large_string(), title)
        blank = pc.equal(pc.utf8_trim_whitespace(text), "").to_numpy(False)
        if blank.any():
            self._fail(title, int(blank.argmax()), "is blank; every edge needs two names")
        return text

    def weights(self, title: str) -> NDArray[np.float64]:
        """Return a column of weights."""
        column = self._batch[title]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise GraphFormatError(
                f"{self._path}: weight column {title!r} is {column.type}, not numbers; cast it first"
            )
        values: NDArray[np.float64] = self._cast(column, pa.float64(), title).to_numpy(False)
        wrong = ~((values >= 0) & (values <= np.finfo(np.float32).max))
        if wrong.any():
            place = int(wrong.argmax())
            self._fail(
                title, place, f"is {column[place]}; weights are finite numbers, 0 or more, that fit float32"
            )
        return values

    def _cast(self, column: Any, kind: Any, title: str) -> Any:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as fault:
            raise GraphFormatError(
                f"{self._path}: column {title!r} does not fit {kind}: {shown(str(fault), 100)}"
            ) from fault

    def _fail(self, title: str, place: int, rule: str) -> NoReturn:
        raise GraphFormatError(f"{self._path}: row {self._first_row + place}: {title!r} {rule}")


def _is_integer(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind))


_STEP = 2**20
_DEEPEST = 64


@dataclass(frozen=True)
class Attribute:
    """A declared ``key``: what it is called, its type and the value where an element has none."""

    name: str
    kind: str
    default: str | None = None


@dataclass
class GraphML:
    """What a GraphML file holds, as written.

    Attributes
    ----------
    nodes : dict of id to its data (key id to text)
    edges : list of (source id, target id, data, line)
    attributes : dict of (domain, key id) to Attribute
        The domain is ``"node"`` or ``"edge"``.
    directed : bool
    """

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    edges: list[tuple[str, str, dict[str, str], int]] = field(default_factory=list)
    attributes: dict[tuple[str, str], Attribute] = field(default_factory=dict)
    directed: bool = False


def parse_graphml(stream: BinaryIO, path: str) -> GraphML:
    """Parse an open GraphML file."""
    handler = _Handler(path)
    try:
        while piece := stream.read(_STEP):
            handler.parser.Parse(piece, False)
        handler.parser.Parse(b"", True)
    except expat.ExpatError as fault:
        message = expat.errors.messages.get(fault.code, str(fault))
        raise GraphFormatError(
            f"{path}:{fault.lineno}: not well-formed XML ({message}); write it again"
        ) from fault
    except (ValueError, LookupError) as fault:  # an encoding that Python does not know
        if isinstance(fault, GraphFormatError):
            raise
        raise GraphFormatError(f"{path}: not readable as XML: {fault}") from fault
    if handler.graphs == 0:
        raise GraphFormatError(f"{path}: XML without a <graph> element; expected GraphML")
    return handler.found


class _Handler:
    """Collects nodes, edges and data as expat meets them."""

    def __init__(self, path: str) -> None:
        self.path, self.found, self.graphs = path, GraphML(), 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.EntityDeclHandler = self.refuse_entity
        self._stack: list[str] = []
        self._owner: dict[str, str] | None = None  # where <data> of the current node or edge goes
        self._key = ""  # what the text being read belongs to
        self._pieces: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        self._stack.append(tag)
        if len(self._stack) > _DEEPEST:
            self.fail(f"elements nested more than {_DEEPEST} deep; GraphML needs a handful")
        if len(self._stack) == 1 and tag != "graphml":
            self.fail(f"the document is <{tag}>, expected <graphml>")
        if tag == "graph":
            self._start_graph(attributes)
        elif tag == "key":
            self._declare(attributes)
        elif tag == "node":
            node = self.need(attributes, "id")
            if node in self.found.nodes:
                self.fail(f"node {shown(node)} is given twice; ids must be unique")
            self._owner = self.found.nodes[node] = {}
        elif tag == "edge":
            self._start_edge(attributes)
        elif tag == "hyperedge":
            self.fail("hyperedges are not supported; list them as edges between two nodes")
        elif tag in ("data", "default"):
            self._key = attributes.get("key", self._key)
            self._pieces = []

    def end(self, tag: str) -> None:
        tag = tag.rpartition(" ")[2]
        self._stack.pop()
        if tag in ("node", "edge"):
            self._owner = None
        elif tag in ("data", "default") and self._pieces is not None:
            value = "".join(self._pieces).strip()
            self._pieces = None
            if tag == "data" and self._owner is not None:
                self._owner[self._key] = value
            elif tag == "default":
                for domain in ("node", "edge"):
                    if (known := self.found.attributes.get((domain, self._key))) is not None:
                        self.found.attributes[domain, self._key] = Attribute(known.name, known.kind, value)

    def text(self, text: str) -> None:
        if self._pieces is not None:
            self._pieces.append(text)

    def refuse_entity(self, name: str, *rest: Any) -> None:
        self.fail(f"declares the entity {shown(name)}, which is refused: entities can swell without bound")

    def need(self, attributes: dict[str, str], key: str) -> str:
        if key not in attributes:
            self.fail(f"<{self._stack[-1]}> without {key}=...; GraphML requires it")
        return attributes[key]

    def fail(self, message: str) -> NoReturn:
        raise GraphFormatError(f"{self.path}:{self.parser.CurrentLineNumber}: {message}")

    def _start_graph(self, attributes: dict[str, str]) -> None:
        self.graphs += 1
        if self.graphs > 1:
            self.fail("a second <graph>; only one flat graph a file is read: split the file")
        self.found.directed = attributes.get("edgedefault") == "directed"

    def _start_edge(self, attributes: dict[str, str]) -> None:
        self._owner = {}
        source, target = self.need(attributes, "source"), self.need(attributes, "target")
        self.found.edges.append((source, target, self._owner, self.parser.CurrentLineNumber))
        if attributes.get("directed") == "true":
            self.found.directed = True

    def _declare(self, attributes: dict[str, str]) -> None:
        self._key = self.need(attributes, "id")
        attribute = Attribute(attributes.get("attr.name", self._key), attributes.get("attr.type", "string"))
        domain = attributes.get("for", "all")
        for known in ("node", "edge"):
            if domain in (known, "all"):
                self.found.attributes[known, self._key] = attribute


_ARROW_TYPES = {
    "boolean": pa.bool_(),
    **dict.fromkeys(("int", "long"), pa.int64()),
    **dict.fromkeys(("float", "double"), pa.float64()),
}


def read_graphml(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read the nodes, edges and weights of a GraphML file; nodes keep the file's order.

    Node attributes are not read as features here, since drawing programs store positions and colours there;
    ask for them with ``read_graph(path, features=path)``.
    """
    with opened(path) as source:
        found = parse_graphml(source.stream, source.path)
    name = shown_name(path)
    if not found.nodes:
        raise GraphFormatError(f"{name}: holds no nodes; a graph needs at least one")
    if options.num_nodes not in (None, len(found.nodes)):
        raise GraphFormatError(
            f"{name}: holds {len(found.nodes)} nodes, but num_nodes={options.num_nodes} was asked for"
        )
    position = {node: place for place, node in enumerate(found.nodes)}
    edges = np.empty((len(found.edges), 2), np.int64)
    for row, (source_id, target_id, _, line) in enumerate(found.edges):
        for side, node in enumerate((source_id, target_id)):
            if node not in position:
                raise GraphFormatError(
                    f"{name}:{line}: an edge names node {shown(node)}, which is not in the file"
                )
            edges[row, side] = position[node]
    weights, note = _weights(found, name, options)
    names = node_names(found, name, options.names)
    notes = (f"GraphML, {'directed' if found.directed else 'undirected'}; {note}",)
    return FileContents(name, names, edges, weights=weights, directed=found.directed, notes=notes)


def node_names(found: GraphML, path: str, wanted: str | None = None) -> Any:
    """Return the node ids in file order, as integers where all of them are."""
    if wanted != "text" and all(map(is_integer, found.nodes)):
        return np.fromiter(map(int, found.nodes), np.int64, len(found.nodes))
    if wanted == "integer":
        wrong = next(node for node in found.nodes if not is_integer(node))
        raise GraphFormatError(f"{path}: node id {shown(wrong)} is not an integer, but names='integer'")
    return np.array([*found.nodes, None], dtype=object)[:-1]


def node_table(found: GraphML, path: str) -> Any:
    """Return the node attributes as an Arrow table, one row per node, by their declared types."""
    columns = {}
    for (domain, key), attribute in found.attributes.items():
        if domain != "node":
            continue
        if attribute.name in columns:
            raise GraphFormatError(
                f"{path}: two node attributes are both called {shown(attribute.name)}; names must differ"
            )
        values = pa.array([data.get(key, attribute.default) for data in found.nodes.values()], pa.string())
        try:
            columns[attribute.name] = values.cast(_ARROW_TYPES.get(attribute.kind, pa.string()))
        except pa.ArrowInvalid as fault:
            raise GraphFormatError(
                f"{path}: node attribute {attribute.name!r} is declared {attribute.kind}: {str(fault)[:100]}"
            ) from fault
    if not columns:
        raise GraphFormatError(f"{path}: its nodes have no attributes, so there are no features in it")
    return pa.table(columns)


def _weights(found: GraphML, path: str, options: EdgeOptions) -> tuple[Any, str]:
    titles = {key: attribute for (domain, key), attribute in found.attributes.items() if domain == "edge"}
    used = Counter(key for _, _, data, _ in found.edges for key in data)
    keys = [key for key, attribute in titles.items() if attribute.name.lower() in WEIGHT_NAMES]
    keys = [key for key in keys if used[key] or titles[key].default is not None]
    if options.weighted is False or (not keys and not options.weighted):
        return None, "weights are not read" if keys else "no edge attribute is called weight"
    if not keys:
        raise GraphFormatError(f"{path}: weighted=True needs an edge attribute called weight; there is none")
    weights = np.empty(len(found.edges))
    for row, (_, _, data, line) in enumerate(found.edges):
        value = data.get(keys[0], titles[keys[0]].default)
        if value is None:
            raise GraphFormatError(
                f"{path}:{line}: an edge without a weight, while others have one; give it one, or a default "
                "for all; weighted=False leaves weights out"
            )
        if not NUMBER.fullmatch(value) or not 0 <= float(value) < math.inf:
            raise GraphFormatError(
                f"{path}:{line}: the weight {shown(value)} is not a finite number of 0 or more; "
                "weighted=False leaves weights out"
            )
        weights[row] = float(value)
    return weights, "weights are the edge attribute 'weight'"


_PARTS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
_CSR_KEYS = ("feat_data", "feat_indices", "feat_indptr", "feat_shape")


def read_npz_network(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read a network from an npz file.

    Either the layout of the package's data sets: ``edges`` (m, 2) with ``num_nodes``; optionally ``weights``
    (m,), ``names`` or ``node_ids`` (n,), ``labels``, and features as a matrix ``features`` or in the CSR
    parts ``feat_data``, ``feat_indices``, ``feat_indptr``, ``feat_shape``. Or an adjacency matrix as
    ``scipy.sparse.save_npz`` writes it.
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
    """Return the matrix of ``scipy.sparse.save_npz``, as CSR or COO, its indices checked."""
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
    """Return the features (n, f) that an npz file holds, dense or CSR, or None."""
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
    """Refuse a number of nodes or columns that is out of all proportion to what the file holds."""
    if claimed > GAPS_ALLOWED_BELOW and claimed > 64 * held:
        raise GraphFormatError(
            f"{path}: claims {claimed:,} nodes or columns but holds {held:,} entries; "
            "check num_nodes, the shape and the ids"
        )


def texts_of(arrays: Mapping[str, NDArray[Any]], key: str, path: str) -> NDArray[Any] | None:
    """Return an array of names, integers or text, or None where there is none."""
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
    _require_known_nodes(edges, n, path)
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


def _require_known_nodes(edges: NDArray[Any], n: int, path: str) -> None:
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
