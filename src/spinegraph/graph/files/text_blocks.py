"""Cuts a text file into blocks of whole lines and makes each block plain enough for Arrow's CSV reader."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from spinegraph.errors import GraphFormatError

BLOCK = 2**24
LONGEST_LINE = 2**20
WHITESPACE = " "
_BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Whole lines, each ended by a line feed, and the number of the first."""

    first_line: int
    data: bytes


def blocks(stream: BinaryIO, path: str, longest_line: int = LONGEST_LINE) -> Iterator[Block]:
    r"""Yield the lines of a stream in blocks; line ends become line feeds and a byte order mark goes.

    Examples
    --------
    >>> import io
    >>> list(blocks(io.BytesIO(b"a b\r\nc d\n"), "tiny.txt"))
    [Block(first_line=1, data=b'a b\nc d\n')]
    """
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
    r"""Return the lines without blank lines and comments, and white space as single spaces.

    Examples
    --------
    >>> plain(b"# made by hand\na\t b\n\nc d \n", WHITESPACE, ("#",))
    b'a b\nc d\n'
    """
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

    Examples
    --------
    >>> arrow_stream([b"ann,", b"bob"]).read()
    b'ann,bob'
    """
    memory = pa.BufferOutputStream()
    for piece in pieces:
        memory.write(piece)
    return pa.BufferReader(memory.getvalue())


def is_skipped(line: str, comments: Sequence[str]) -> bool:
    """Return whether a line is blank or a comment, by the same rule as :func:`plain`.

    Examples
    --------
    >>> is_skipped("  % note", ("#", "%")), is_skipped("a b", ("#", "%"))
    (True, False)
    """
    text = line.strip(" \t\n")
    return not text or (bool(comments) and text.startswith(tuple(comments)))


def shown(text: str | bytes, most: int = 60) -> str:
    """Return a piece of input as it may stand in a message: quoted and cut short.

    Examples
    --------
    >>> shown("ann,bob"), shown("x" * 100, most=3)
    ("'ann,bob'", "'xxx'...")
    """
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
