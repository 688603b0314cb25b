"""Files on disk: written whole or not at all, JSON read without trust, arrays as safetensors."""

import ctypes
import glob
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from spinegraph.errors import MissingFileError, ModelFormatError, OutputError, SpineError

# What a killed process left under a temporary name; younger ones may be another process's, at work.
_FORGOTTEN_AFTER = 3600.0
_AT_THE_CURRENT_FOLDER, _RENAME_EXCHANGE = -100, 2  # from <fcntl.h> and <linux/fs.h>


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to; at the end it is brought to disk and takes the file's name."""
    path = Path(path)
    with explained(path):
        partial = _beside(path)
        try:
            yield partial
            sync(partial)
            os.replace(partial, path)
            sync(path.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary folder to write files to; at the end it takes the place of ``path``, whole.

    Where the system can swap two folders in one step (Linux), there is never a moment without a whole one;
    elsewhere there is an instant between two renames. Whether ``path`` may be replaced is up to the caller.
    """
    path = Path(path).resolve()  # where it is a link, its target is replaced and the link stays
    with explained(path):
        partial = _beside(path)
        try:
            partial.mkdir()
            yield partial
            put_in_place(partial, path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # unfinished, or swapped: then it holds the old files


def put_in_place(partial: Path, path: Path) -> None:
    """Bring a finished folder of files to disk and let it take the place of ``path`` in one step.

    Both lie on one file system. Where ``path`` was there, ``partial`` may hold its old files afterwards.
    """
    for file in partial.iterdir():
        sync(file)
    sync(partial)
    _take_place(partial, path)
    sync(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    with explained(path):
        path.mkdir(parents=True, exist_ok=True)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a place that cannot be written to, before the work whose result would go there."""
    place = Path(path).resolve().parent
    while not place.exists():
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        reason = "may not be written to" if place.is_dir() else "is no folder"
        raise OutputError(f"{path}: cannot be written, {place} {reason}; choose another place")


def sweep(folder: Path, name: str) -> None:
    """Remove what killed processes left of writing ``name``, a pattern, an hour ago or earlier."""
    for left in folder.glob(f".{name}.*.tmp"):
        if time.time() - left.lstat().st_mtime > _FORGOTTEN_AFTER:
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what a read-only or full disk raises into one error that names the place itself."""
    try:
        yield
    except SpineError:
        raise
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else str(fault)
        raise OutputError(f"{path}: cannot be written ({reason}); nothing was changed there") from fault


def sync(path: Path) -> None:
    """Bring a file's content, or a folder's list of names, to disk."""
    if path.is_dir() and sys.platform == "win32":
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _beside(path: Path) -> Path:
    """Return a free temporary name in the same folder, so that a rename never crosses file systems."""
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {path.parent}; make it first")
    sweep(path.parent, glob.escape(path.name))
    return path.with_name(f".{path.name}.{token_hex(4)}.tmp")


def _take_place(partial: Path, path: Path) -> None:
    if not path.exists():
        os.rename(partial, path)
    elif not _exchange(partial, path):
        # Not a name that is swept away: it may be the only whole one if we are killed here.
        old = partial.with_suffix(".old")
        os.rename(path, old)
        try:
            os.rename(partial, path)
        except BaseException:
            os.rename(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    here = _AT_THE_CURRENT_FOLDER
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), _RENAME_EXCHANGE) == 0)


class JsonObject:
    """A JSON object of a model folder whose values are checked as they are taken.

    Parameters
    ----------
    meta : dict
        What the JSON parser returned; anything else is refused.
    place : str
        What messages begin with.
    """

    def __init__(self, meta: Any, place: str) -> None:
        if not isinstance(meta, dict):
            raise ModelFormatError(f"{place}: expected a JSON object, got {type(meta).__name__}")
        self.meta, self.place = meta, place

    def get(self, key: str, kind: type) -> Any:
        """Take a value of one type."""
        value = self.meta.get(key)
        if type(value) is not kind:
            raise ModelFormatError(f"{self.place}: {key} must be a {kind.__name__}; got {value!r:.60}")
        return value

    def one_of(self, key: str, *allowed: Any) -> Any:
        """Take one of a few values."""
        value = self.meta.get(key)
        if not any(type(value) is type(each) and value == each for each in allowed):
            raise ModelFormatError(
                f"{self.place}: {key} must be {' or '.join(map(repr, allowed))}; got {value!r:.60}"
            )
        return value

    def list_of(self, key: str, kind: type) -> list[Any]:
        """Take a list of one type."""
        values: list[Any] = self.get(key, list)
        if any(type(value) is not kind for value in values):
            raise ModelFormatError(f"{self.place}: {key} must be a list of {kind.__name__}")
        return values

    def whole(self, key: str, least: int, largest: int) -> int:
        """Take an integer in a range."""
        value: int = self.get(key, int)
        if not least <= value <= largest:
            raise ModelFormatError(f"{self.place}: {key} must be from {least} to {largest}; got {value}")
        return value

    def number(self, key: str) -> float:
        """Take a finite number."""
        value: Any = self.meta.get(key)
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ModelFormatError(f"{self.place}: {key} must be a finite number; got {value!r:.60}")
        return float(value)


_DIGEST = "digest"


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays by name; a place that cannot be written is an OSError, as with any file."""
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, metadata)
    except SafetensorError as fault:
        number = re.search(r"os error (\d+)", str(fault))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault


def write_signed(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and metadata with a digest of both, which ``read_signed`` checks."""
    write_arrays(path, arrays, {**metadata, _DIGEST: digest(arrays, metadata)})


def read_signed(path: Path, keys: tuple[str, ...] = ()) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read every array and the metadata; ValueError where they are not what was written.

    Parameters
    ----------
    path : Path
        A file without a digest, of an older version of this package, is read as it is.
    keys : tuple of str
        Metadata that may be there; any other is refused, so that no digest is lost by its name.
    """
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    written = metadata.pop(_DIGEST, None)
    if not metadata.keys() <= set(keys):
        raise ValueError(f"unknown metadata {min(metadata.keys() - set(keys))!r:.40}")
    if written is not None and written != digest(arrays, metadata):
        raise ValueError("its content is not what was written: it was damaged")
    return arrays, metadata


def digest(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> str:
    """Return 32 hexadecimal digits that any change of a name, type, shape, number or metadata changes."""
    found = blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).data)
    for key, text in sorted((metadata or {}).items()):
        found.update(f"{len(key)} {key} {len(text)} {text}\n".encode())
    return found.hexdigest()
