"""The files of a store: flat arrays, written with a checksum and memory-mapped."""

import mmap
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.store_header import Entry

_PIECE = 2**22  # bytes read or written at a time


def write_array(path: Path, array: NDArray[Any]) -> Entry:
    """Write an array's bytes, a piece at a time, and return what the header says of them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     entry = write_array(Path(folder) / "indptr.bin", np.array([0, 2]))
    ...     map_array(Path(folder) / "indptr.bin", entry)
    array([0, 2])
    """
    return write_pieces(path, pieces(array), array.dtype, array.shape[1:])


def write_pieces(path: Path, arrays: Iterable[NDArray[Any]], dtype: Any, row: tuple[int, ...] = ()) -> Entry:
    """Write arrays one after the other as one file of one type, rows of one shape.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pieces(Path(folder) / "a.bin", [np.array([1]), np.array([2, 3])], np.int64).shape
    (3,)
    """
    kind, digest, rows = np.dtype(dtype).newbyteorder("<"), blake2b(digest_size=16), 0
    with path.open("wb") as file:
        for piece in arrays:
            data = np.ascontiguousarray(piece, dtype=kind)
            digest.update(data.data if data.size else b"")
            file.write(data.data if data.size else b"")
            rows += len(data)
    return Entry(_name(kind), (rows, *row), digest.hexdigest())


def entry_of(path: Path, dtype: Any, row: tuple[int, ...] = ()) -> Entry:
    """Return what the header says of a file that is there already.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = (Path(folder) / "a.bin").write_bytes(bytes(16))
    ...     entry_of(Path(folder) / "a.bin", np.int64).shape
    (2,)
    """
    kind = np.dtype(dtype).newbyteorder("<")
    width = kind.itemsize * int(np.prod(row))
    return Entry(_name(kind), (path.stat().st_size // max(width, 1), *row), digest_of(path))


def map_array(path: Path, entry: Entry) -> NDArray[Any]:
    """Return a file as a read-only array; what is read of it comes into memory, and may leave it again."""
    if not path.is_file():
        raise GraphFormatError(f"{path}: is missing; copy the whole store again, or build it again")
    size = path.stat().st_size
    if size != entry.bytes:
        raise GraphFormatError(
            f"{path}: has {size:,} bytes, the header says {entry.bytes:,}: it was cut off or replaced; "
            "copy the whole store again, or build it again"
        )
    if not size:
        return np.zeros(entry.shape, dtype=entry.dtype)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype=entry.dtype).reshape(entry.shape)


def pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield an array's rows, a few megabytes at a time.

    Examples
    --------
    >>> [len(piece) for piece in pieces(np.zeros(10**6))]
    [524288, 475712]
    """
    rows = max(_PIECE // max(array.itemsize * int(np.prod(array.shape[1:])), 1), 1)
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def digest_of(path: Path) -> str:
    """Return the checksum of a file's bytes."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_PIECE):
            digest.update(chunk)
    return digest.hexdigest()


def _name(dtype: Any) -> str:
    return f"{'|' if dtype.itemsize == 1 else '<'}{dtype.kind}{dtype.itemsize}"
