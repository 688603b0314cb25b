"""npz and npy files: read without pickle and without trusting their claims of size, written whole or not."""

import io
import lzma
import os
import struct
import sys
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from spinegraph.atomic import whole_file
from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.source import MOST_EXPANSION, expansion_limit, opened

# All that the zip and header parsers are known to raise on damaged input; RuntimeError: an encrypted member.
_FAULTS = (
    *(
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
        tokenize.TokenError,
        SyntaxError,
        EOFError,
    ),
    *(
        OSError,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        NotImplementedError,
        RuntimeError,
    ),
)
_LONGEST_HEADER = 2**16
_STEP = 2**24


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read every array of an npz file; pickled objects are refused, never loaded.

    Before anything is allocated, the shape in an array's header must agree with the bytes that are there, and
    those must not be far more than the packed ones: a small file cannot claim the machine's memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, edges=np.array([[0, 1]]))
    ...     read_npz(file.name)["edges"].tolist()
    [[0, 1]]
    """
    with opened(path) as source:
        if source.kind != "npz":
            raise GraphFormatError(f"{source.path}: expected an npz archive, found {source.kind}")
        return read_archive(source.stream, source.path)


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a compressed npz, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_npz(Path(folder) / "tiny.npz", {"num_nodes": np.int64(2)})
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['tiny.npz']
    """
    with whole_file(path) as partial, partial.open("wb") as out:
        named = {key: np.asarray(value) for key, value in arrays.items()}
        np.savez_compressed(out, allow_pickle=False, **named)  # type: ignore[arg-type]


def read_archive(stream: IO[bytes], path: str) -> dict[str, NDArray[Any]]:
    """Read every array of an open npz archive.

    Examples
    --------
    >>> stream = io.BytesIO()
    >>> np.savez(stream, num_nodes=3)
    >>> read_archive(stream, "tiny.npz")
    {'num_nodes': array(3)}
    """
    with _plainly(path), zipfile.ZipFile(stream) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        packed = sum(member.compress_size for member in members)
        if sum(member.file_size for member in members) > expansion_limit(packed):
            raise GraphFormatError(
                f"{path}: unpacks to more than {expansion_limit(packed) // 2**20} MiB, {MOST_EXPANSION} "
                "times its size or more; if you trust it, save it again with np.savez (not compressed)"
            )
        arrays = {}
        for member in members:
            key = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                arrays[key] = _read_array(file, member.file_size, f"{path}, array {key!r}")
        return arrays


def read_npy(stream: IO[bytes], path: str) -> NDArray[Any]:
    """Read one array of an open npy file.

    Examples
    --------
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.eye(2))
    >>> read_npy(io.BytesIO(stream.getvalue()), "tiny.npy").shape
    (2, 2)
    """
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    with _plainly(path):
        return _read_array(stream, size, path)


@contextmanager
def _plainly(path: str) -> Iterator[None]:
    """Turn whatever a damaged archive raises into one error."""
    try:
        yield
    except GraphFormatError:
        raise
    except MemoryError as fault:
        raise GraphFormatError(f"{path}: does not fit into memory ({str(fault)[:200]}); free some") from fault
    except _FAULTS as fault:
        raise GraphFormatError(
            f"{path}: damaged or cut-off NumPy data ({str(fault)[:200]}); fetch or write the file again"
        ) from fault


def _read_array(file: IO[bytes], size: int, place: str) -> NDArray[Any]:
    """Read one array of ``size`` bytes, header included."""
    shape, is_fortran, dtype = _read_header(file, place)
    if dtype.hasobject:
        raise GraphFormatError(
            f"{place}: holds pickled Python objects, which are never loaded because they can run code; "
            "save text as a fixed-width array, np.array(names, dtype=str)"
        )
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise GraphFormatError(
            f"{place}: has the dtype {dtype}; save plain arrays, each column as one of its own"
        )
    count = 1
    for length in shape:
        count *= length
    header = file.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != size - header:
        raise GraphFormatError(
            f"{place}: its header says shape {shape} of {dtype}, {count * dtype.itemsize:,} bytes, but "
            f"{size - header:,} bytes follow; the file is cut off or damaged: write it again"
        )
    flat = _filled(file, size - header, place).view(dtype)
    if dtype.kind == "U" and count and flat.view(f"{dtype.byteorder}u4").max() > sys.maxunicode:
        raise GraphFormatError(f"{place}: holds text that is not Unicode; write it again")
    return flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)


def _read_header(file: IO[bytes], place: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy_format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise GraphFormatError(f"{place}: written in npy format {version}; save it again with a plain dtype")
    read_header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # junk in a header can look like odd Python syntax
        return read_header(file, max_header_size=_LONGEST_HEADER)


def _filled(file: IO[bytes], size: int, place: str) -> NDArray[np.uint8]:
    """Return the next ``size`` bytes, read in steps so that nothing is held twice."""
    buffer = np.empty(size, np.uint8)
    for start in range(0, size, _STEP):
        piece = file.read(min(_STEP, size - start))
        if len(piece) < min(_STEP, size - start):
            raise GraphFormatError(
                f"{place}: cut off after {start + len(piece):,} of {size:,} bytes; write it again"
            )
        buffer[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
    return buffer
