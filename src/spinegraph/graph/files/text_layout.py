"""Finds out from its first lines how a text edge list is written."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, takewhile
from typing import NamedTuple

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.columns import (
    WEIGHT_NAMES,
    EdgeColumns,
    EdgeOptions,
    choose_columns,
    is_title_pair,
)
from spinegraph.graph.files.text_blocks import WHITESPACE, Block, is_skipped, shown

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

    Examples
    --------
    >>> layout = find_layout(Block(1, b"# a comment\nsource,target\n3,5\n"), "tiny.csv", EdgeOptions())
    >>> layout.delimiter, layout.has_header, layout.names
    (',', True, 'integer')
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
    """Return the fields of one line as Arrow's reader sees them.

    Examples
    --------
    >>> split_line('"Lee, Ann",bob', ","), split_line("ann bob", " ")
    (['Lee, Ann', 'bob'], ['ann', 'bob'])
    """
    if delimiter == WHITESPACE:
        return _WHITE.split(text.strip(" \t"))  # not str.split: a name may hold rarer kinds of space
    try:
        return next(csv.reader([text], delimiter=delimiter))
    except (csv.Error, StopIteration):  # a field beyond the csv module's own limit
        return text.split(delimiter)


def is_integer(text: str) -> bool:
    """Return whether a name is a whole number as it is usually written, so that the number says all of it.

    Examples
    --------
    >>> is_integer("-12"), is_integer("007"), is_integer("1" * 30)
    (True, False, False)
    """
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def decoded(raw: bytes, path: str, line: int) -> str:
    r"""Return one line of a file as text.

    Examples
    --------
    >>> decoded("Zoë".encode(), "tiny.csv", 1)
    'Zoë'
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise GraphFormatError(
            f"{path}:{line}: not UTF-8 text: {shown(raw)}; "
            "save the file as UTF-8, or check that it is text at all"
        ) from fault


def first_lines(block: Block, path: str, comments: Sequence[str]) -> list[tuple[int, str]]:
    r"""Return numbers and texts of the first lines that are data.

    Examples
    --------
    >>> first_lines(Block(1, b"# two nodes\nann bob\n"), "tiny.txt", ("#",))
    [(2, 'ann bob')]
    """
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
    """Return what parts the fields of these lines; a space stands for white space.

    Examples
    --------
    >>> find_delimiter(["ann;bob", "bob;cy"], "tiny.txt")
    ';'
    """
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
