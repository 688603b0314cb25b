"""Opens a file for the readers: what it is by its first bytes, unpacked within a stated limit."""

import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

from spinegraph.errors import GraphFormatError, MissingFileError

Kind = Literal["text", "parquet", "npz", "npy", "xml"]
STANDARD_INPUT = "-"

# Packed data may always grow to FREE_EXPANSION bytes, beyond that to MOST_EXPANSION times its packed size.
FREE_EXPANSION = 256 * 2**20
MOST_EXPANSION = 200

_GZIP = b"\x1f\x8b"
_KINDS: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", "parquet"),
    (b"PK\x03\x04", "npz"),
    (b"PK\x05\x06", "npz"),
    (b"\x93NUMPY", "npy"),
)
_REFUSED = (
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ", "xz", "unxz"),
    (b"\xff\xfe", "UTF-16 text", "iconv -f utf-16 -t utf-8"),
    (b"\xfe\xff", "UTF-16 text", "iconv -f utf-16 -t utf-8"),
    (b"%%MatrixMarket", "Matrix Market", "scipy.io.mmread and Graph.from_scipy"),
)


class Opened(NamedTuple):
    """An open file: its name for messages, what it holds, and its bytes from the start."""

    path: str
    kind: Kind
    stream: BinaryIO


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Opened]:
    """Open a file, gzip or not, and say by its first bytes what it holds; ``-`` is the standard input.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
    ...     size = file.write(b"ann,bob"), file.flush()
    ...     with opened(file.name) as source:
    ...         print(source.kind, source.stream.read())
    text b'ann,bob'
    """
    name, is_file = shown_name(path), os.fsdecode(path) != STANDARD_INPUT
    if is_file:
        _require_file(name)
    try:
        with open(name, "rb") if is_file else _standard_input() as plain:
            if plain.peek(2)[:2] == _GZIP:
                with gzip.GzipFile(fileobj=plain) as packed:
                    limit = expansion_limit(os.fstat(plain.fileno()).st_size)
                    stream = io.BufferedReader(_Unpacked(packed, name, limit), 2**20)
                    kind = _kind(stream.peek(16), name)
                    # Parquet and npz are read from their ends: they need to be whole.
                    whole = kind in ("parquet", "npz", "npy")
                    yield Opened(name, kind, io.BytesIO(stream.read()) if whole else stream)
            else:
                yield Opened(name, _kind(plain.peek(16), name), plain)
    except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise GraphFormatError(
            f"{name}: damaged or cut-off gzip data ({fault}); fetch or write it again"
        ) from fault
    except OSError as fault:
        if isinstance(fault, MissingFileError) or fault.errno is None:
            raise
        raise GraphFormatError(f"{name}: cannot be read: {fault.strerror}") from fault


def shown_name(path: str | os.PathLike[str]) -> str:
    """Return what messages call a file.

    Examples
    --------
    >>> shown_name("-")
    'standard input'
    """
    name = os.fsdecode(path)
    return "standard input" if name == STANDARD_INPUT else name


def expansion_limit(packed_size: int) -> int:
    """Return how many bytes data of this packed size may unpack to.

    Examples
    --------
    >>> expansion_limit(10) == FREE_EXPANSION
    True
    """
    return max(FREE_EXPANSION, MOST_EXPANSION * packed_size)


def _standard_input() -> io.BufferedReader:
    """Open what the standard input holds, from its start."""
    copy = open(_spooled().name, "rb")  # noqa: SIM115 the caller closes it
    if not copy.peek(1):
        copy.close()
        raise GraphFormatError("standard input: is empty; expected an edge list, Parquet, npz or GraphML")
    return copy


@cache
def _spooled() -> "tempfile._TemporaryFileWrapper[bytes]":
    """Copy the standard input to a file, once: readers look at it several times. It goes with the process."""
    if sys.stdin is None or sys.stdin.isatty():
        raise GraphFormatError("standard input: nothing is piped in; write spine ... - < edges.csv")
    spool = tempfile.NamedTemporaryFile(prefix="spine-")  # noqa: SIM115 kept to the end
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.flush()
    return spool


def _require_file(name: str) -> None:
    try:
        exists = os.path.exists(name)
    except ValueError:  # a null byte in the name
        exists = False
    if not exists:
        folder = Path(name).absolute().parent if "\0" not in name else None
        hint = "" if folder is None or folder.is_dir() else f"; there is no folder {folder} either"
        raise MissingFileError(f"{name!r}: no such file{hint}")
    if os.path.isdir(name):
        raise GraphFormatError(f"{name}: is a folder; pass a file inside it")
    if not os.path.isfile(name):
        raise GraphFormatError(f"{name}: is not a regular file; write its content to a file first")
    if not os.path.getsize(name):
        raise GraphFormatError(f"{name}: is empty; expected an edge list, Parquet, npz or GraphML")


def _kind(head: bytes, name: str) -> Kind:
    for magic, what, way_out in _REFUSED:
        if head.startswith(magic):
            raise GraphFormatError(
                f"{name}: holds {what}, which is not read here; convert it with {way_out} first"
            )
    for magic, kind in _KINDS:
        if head.startswith(magic):
            return kind
    return "xml" if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<") else "text"


class _Unpacked(io.RawIOBase):
    """The bytes of a gzip file, cut off with an error at ``limit``."""

    def __init__(self, packed: gzip.GzipFile, name: str, limit: int) -> None:
        self._packed, self._name, self._left, self._limit = packed, name, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._packed.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise GraphFormatError(
                f"{self._name}: unpacks to more than {self._limit // 2**20} MiB, {MOST_EXPANSION} times "
                "its size or more; if you trust it, gunzip it and read the plain file"
            )
        return count
