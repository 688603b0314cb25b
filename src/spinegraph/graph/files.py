"""Opens input files: detects their kind, unpacks gzip and zstd within bounds, reads npz without pickle."""

import gzip
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, NamedTuple, NoReturn

from numpy.lib import format as npy_format
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFileError, SpineError

Kind = Literal["text", "parquet", "npz", "npy", "xml", "json lines", "duckdb"]
STANDARD_INPUT = "-"

# Compressed data may always grow to FREE_EXPANSION bytes, and beyond that to MAX_EXPANSION times its size.
FREE_EXPANSION = 256 * 2**20
MAX_EXPANSION = 200

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_KINDS: tuple[tuple[bytes, Kind], ...] = ((b"PAR1", "parquet"), (b"\x93NUMPY", "npy"))
_PANDAS = "python -c \"import pandas; pandas.read_excel('FILE').to_csv('edges.csv', index=False)\""
_REFUSED = (
    (b"BZh", "bzip2", "bunzip2 FILE"),
    (b"\xfd7zXZ", "xz", "unxz FILE"),
    (b"\xff\xfe", "UTF-16 text", "iconv -f utf-16 -t utf-8 FILE > utf8.csv"),
    (b"\xfe\xff", "UTF-16 text", "iconv -f utf-16 -t utf-8 FILE > utf8.csv"),
    (b"%%MatrixMarket", "Matrix Market", "Graph.from_scipy(scipy.io.mmread('FILE'))"),
    (b"%PDF-", "a PDF document", "pdftotext -layout FILE edges.txt"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Office document", _PANDAS),
    (b"SQLite format 3\0", "a SQLite database", "sqlite3 -header -csv FILE 'select * from TABLE' > a.csv"),
    *(
        (magic, "an image", "type its edges into a table, one 'source,target' per line")
        for magic in (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*")
    ),
)


class Opened(NamedTuple):
    """An open file: its name for messages, its kind, its bytes from the start, and the path of these."""

    path: str
    kind: Kind
    stream: BinaryIO
    file: str


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Opened]:
    """Open a file and detect its kind from the first bytes; ``-`` is standard input.

    Gzip and zstd are unpacked to a temporary file, so that every reader gets a plain file.
    """
    name, is_file = display_name(path), os.fsdecode(path) != STANDARD_INPUT
    if is_file:
        _require_file(name)
    try:
        with open(name if is_file else _spooled_input().name, "rb") as plain:
            packing = next((magic for magic in (_GZIP, _ZSTD) if plain.peek(4).startswith(magic)), None)
            if packing is None:
                yield Opened(name, _kind(plain, name), plain, str(plain.name))
                return
            with tempfile.NamedTemporaryFile(prefix="spine-") as unpacked:
                _unpack(plain, packing, unpacked, name)
                with open(unpacked.name, "rb") as stream:
                    yield Opened(name, _kind(stream, name), stream, unpacked.name)
    except OSError as fault:
        if isinstance(fault, MissingFileError) or fault.errno is None:
            raise
        raise GraphFormatError(f"{name}: cannot be read: {fault.strerror}") from fault


def _unpack(packed: BinaryIO, packing: bytes, output: IO[bytes], name: str) -> None:
    """Unpack gzip or zstd to a file; raises if it expands too much."""
    left = limit = expansion_limit(os.fstat(packed.fileno()).st_size)
    what, tool = ("gzip", "gunzip") if packing == _GZIP else ("zstd", "unzstd")
    try:
        source: Any = gzip.GzipFile(fileobj=packed)
        if packing == _ZSTD:
            import pyarrow as pa

            source = pa.CompressedInputStream(packed, "zstd")
        while block := source.read(min(left, 2**22) + 1):
            left -= len(block)
            if left < 0:
                raise GraphFormatError(
                    f"{name}: unpacks to more than {limit // 2**20} MiB, at least {MAX_EXPANSION} times its "
                    f"size; if you trust it, {tool} it and read the plain file"
                )
            output.write(block)
        output.flush()
    except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise GraphFormatError(f"{name}: damaged or truncated gzip data ({fault})") from fault
    except OSError as fault:
        if fault.errno is not None:
            raise
        raise GraphFormatError(f"{name}: damaged or truncated {what} data ({fault})") from fault


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Prefix errors about a file's content with the file's name."""
    try:
        yield
    except SpineError as fault:
        raise type(fault)(f"{path}: {fault}") from fault


def display_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file, for messages."""
    name = os.fsdecode(path)
    return "standard input" if name == STANDARD_INPUT else name


def expansion_limit(packed_size: int) -> int:
    """Return the number of bytes that data of this compressed size may unpack to."""
    return max(FREE_EXPANSION, MAX_EXPANSION * packed_size)


@cache
def _spooled_input() -> "tempfile._TemporaryFileWrapper[bytes]":
    """Copy standard input to a temporary file, since readers open it several times."""
    if sys.stdin is None or sys.stdin.isatty():
        raise GraphFormatError("standard input: nothing is piped in; run spine ... - < edges.csv")
    spool = tempfile.NamedTemporaryFile(prefix="spine-")  # noqa: SIM115 kept until the process ends
    shutil.copyfileobj(sys.stdin.buffer, spool)
    if not spool.tell():
        raise GraphFormatError("standard input: is empty; expected an edge list, Parquet, npz or GraphML")
    spool.flush()
    return spool


def _require_file(name: str) -> None:
    if not os.path.exists(name):
        folder = Path(name).absolute().parent
        hint = "" if folder.is_dir() else f"; the folder {folder} does not exist either"
        raise MissingFileError(f"{name!r}: no such file{hint}")
    if os.path.isdir(name):
        raise GraphFormatError(f"{name}: is a folder; pass a file inside it")
    if not os.path.isfile(name):
        raise GraphFormatError(f"{name}: is not a regular file; copy its content to a file first")
    if not os.path.getsize(name):
        raise GraphFormatError(f"{name}: is empty; expected an edge list, Parquet, npz or GraphML")


def _kind(stream: io.BufferedReader, name: str) -> Kind:
    head = stream.peek(64)
    for magic, what, way_out in _REFUSED:
        if head.startswith(magic):
            _refuse(name, what, way_out)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(head, name)
    for magic, kind in _KINDS:
        if head.startswith(magic):
            return kind
    if head[8:12] == b"DUCK":
        return "duckdb"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:15].lower().startswith(b"<!doctype html"):
        _refuse(
            name, "a web page", "python -c \"import pandas; pandas.read_html('FILE')[0].to_csv('edges.csv')\""
        )
    if b"<gexf" in text or re.match(rb"(?i)(?:(?:creator|version|comment|#)[^\n]*\n\s*)*graph\s*\[", text):
        form = "gexf" if b"<gexf" in text else "gml"
        made = f"n.write_graphml(n.read_{form}('FILE'), 'edges.graphml')"
        _refuse(name, form.upper(), f'python -c "import networkx as n; {made}"')
    if text.startswith((b"{", b"[")):
        return _json_kind(stream, name)
    return "xml" if text.startswith(b"<") else "text"


def _refuse(name: str, what: str, way_out: str) -> NoReturn:
    way_out = way_out.replace("FILE", os.path.basename(name))
    raise GraphFormatError(f"{name}: is {what}, which is not supported; convert it: {way_out}")


def _zip_kind(head: bytes, name: str) -> Kind:
    """Return "npz" for an archive of arrays; raise for other archives."""
    member = head[30 : 30 + int.from_bytes(head[26:28], "little")] if head[2:3] == b"\x03" else b""
    if member.startswith((b"[Content_Types]", b"_rels/", b"docProps/", b"xl/", b"mimetype")):
        _refuse(name, "an Excel or Office document", _PANDAS)
    if member and not member.endswith(b".npy") and member.isascii() and len(member) < 34:
        _refuse(name, f"a zip archive of {member.decode('ascii')!r}, not NumPy data", "unzip FILE")
    return "npz"


def _json_kind(stream: io.BufferedReader, name: str) -> Kind:
    """Return "json lines" if the first line is an object, or "text" if it is no JSON at all."""
    first = stream.readline(2**20)
    stream.seek(0)
    try:
        if isinstance(json.loads(first), dict):
            return "json lines"
    except (ValueError, RecursionError):
        if not re.match(rb"(\xef\xbb\xbf)?\s*(\{\s*(\"|$)|\[\s*([\[{\"\d]|$))", first):
            return "text"
    _refuse(name, "a JSON document, not JSON lines", "jq -c '.[]' FILE > edges.jsonl (for a list of objects)")


_MAX_HEADER = 2**16


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read every array of an npz file; pickled objects are refused, never loaded.

    Sizes are checked before anything is allocated, so that a small file cannot use up the memory.
    """
    with opened(path) as source:
        if source.kind != "npz":
            raise GraphFormatError(f"{source.path}: expected an npz archive, found {source.kind}")
        return read_archive(source.stream, source.path)


def read_archive(stream: IO[bytes], path: str) -> dict[str, NDArray[Any]]:
    """Read every array of an open npz archive."""
    with _damage_errors(path), zipfile.ZipFile(stream) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        packed = sum(member.compress_size for member in members)
        if sum(member.file_size for member in members) > expansion_limit(packed):
            raise GraphFormatError(
                f"{path}: unpacks to more than {expansion_limit(packed) // 2**20} MiB, at least "
                f"{MAX_EXPANSION} times its size; if you trust it, save it again with np.savez (uncompressed)"
            )
        arrays = {}
        for member in members:
            key = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                arrays[key] = _read_array(file, member.file_size, f"{path}, array {key!r}")
        return arrays


def read_npy(stream: IO[bytes], path: str) -> NDArray[Any]:
    """Read one array of an open npy file."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    with _damage_errors(path):
        return _read_array(stream, size, path)


@contextmanager
def _damage_errors(path: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about Python syntax in a damaged header
            yield
    except GraphFormatError:
        raise
    except MemoryError as fault:
        raise GraphFormatError(f"{path}: does not fit into memory ({str(fault)[:200]}); free some") from fault
    except Exception as fault:  # a damaged header or archive can raise almost anything
        raise GraphFormatError(f"{path}: damaged or truncated NumPy data: {str(fault)[:200]}") from fault


def _read_array(file: IO[bytes], size: int, place: str) -> NDArray[Any]:
    """Read an array of ``size`` bytes, including its header."""
    version = npy_format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise GraphFormatError(f"{place}: written in npy format {version}; save it again with a plain dtype")
    read_header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, _, dtype = read_header(file, max_header_size=_MAX_HEADER)
    if dtype.hasobject:
        message = f"{place}: contains pickled Python objects, which are not loaded, as they can run code;"
        raise GraphFormatError(f"{message} save text as a fixed-width array, np.array(names, dtype=str)")
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise GraphFormatError(f"{place}: has the dtype {dtype}; save plain arrays, one per column")
    claimed, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or claimed != held:
        message = f"{place}: its header says shape {shape} of {dtype}, {claimed:,} bytes, but {held:,} bytes"
        raise GraphFormatError(f"{message} follow; the file is truncated or damaged: write it again")
    file.seek(0)
    array = npy_format.read_array(file, allow_pickle=False, max_header_size=_MAX_HEADER)
    flat = array.ravel(order="K")
    if dtype.kind == "U" and flat.size and flat.view(f"{dtype.byteorder}u4").max() > sys.maxunicode:
        raise GraphFormatError(f"{place}: contains text that is not Unicode; write it again")
    return array
