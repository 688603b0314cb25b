"""Files on disk: written whole or not at all, JSON that is checked as it is read, arrays as safetensors."""

import glob
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from spinegraph.errors import MissingFileError, ModelFormatError, OutputError, SpineError

# Temporary files older than this, in seconds, are of killed processes; others may be in use.
_STALE_AFTER = 3600.0
_WRITER = re.compile(r"\.(\d+)-[0-9a-f]{8}\.tmp$")  # process and random part of a temporary name


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it is synced to disk and takes the file's name."""
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
    """Yield a temporary folder to write files to; at the end it takes the place of ``path``, whole.

    Whether ``path`` may be replaced is up to the caller.
    """
    path = Path(path).resolve()  # where it is a link, its target is replaced and the link stays
    with explained(path):
        recover(path)
        partial = _beside(path)
        try:
            partial.mkdir()
            yield partial
            for file in partial.iterdir():
                sync(file)
            sync(partial)
            # The old folder is moved aside first, where ``recover`` finds it if this process is killed.
            aside = _aside(path)
            while partial.exists():  # again, where a reader recovered the old folder in between
                if path.exists():
                    shutil.rmtree(aside, ignore_errors=True)  # of a writer killed after its second rename
                    os.rename(path, aside)
                try:
                    os.rename(partial, path)
                except OSError:
                    if not path.exists():
                        raise
            if aside.exists():
                os.rename(aside, partial)
            sync(path.parent)
        finally:
            recover(path)
            shutil.rmtree(partial, ignore_errors=True)  # unfinished, or the old files


def recover(path: Path) -> None:
    """Move a folder back that a killed writer had moved aside; readers and writers call this first."""
    with suppress(OSError, ValueError):  # another process was quicker, or this is no path at all
        path = path.resolve()
        if not path.exists() and _aside(path).is_dir():
            os.rename(_aside(path), path)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    with explained(path):
        path.mkdir(parents=True, exist_ok=True)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise unless a path can be written to, before the work whose result would go there."""
    folder = Path(path).resolve().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        reason = "may not be written to" if folder.is_dir() else "is no folder"
        raise OutputError(f"{path}: cannot be written, {folder} {reason}; choose another place")


def sweep(folder: Path, name: str) -> None:
    """Remove temporary files for ``name``, a pattern, whose writer has ended and that are an hour old."""
    for left in folder.glob(f".{name}.*.tmp"):
        is_folder = left.is_dir() and not left.is_symlink()
        # A folder's own time does not change while a file in it grows.
        newest = max(at.lstat().st_mtime for at in (left, *(left.iterdir() if is_folder else ())))
        if time.time() - newest <= _STALE_AFTER or _is_running(_WRITER.search(left.name)):
            continue
        if is_folder:
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _is_running(writer: re.Match[str] | None) -> bool:
    """Tell whether the process that a temporary name was made by still runs on this machine."""
    if writer is None or sys.platform == "win32":
        return False
    try:
        os.kill(int(writer[1]), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the errors of a read-only or full disk into one that names the path."""
    try:
        yield
    except SpineError:
        raise
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else str(fault)
        raise OutputError(f"{path}: cannot be written ({reason}); nothing was changed there") from fault


def sync(path: Path) -> None:
    """Sync a file's content, or a folder's list of names, to disk."""
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
    return path.with_name(f".{path.name}.{os.getpid()}-{token_hex(4)}.tmp")


class JsonObject:
    """A parsed JSON object whose values are checked as they are read; ``place`` begins every message."""

    def __init__(self, meta: Any, place: str) -> None:
        if not isinstance(meta, dict):
            raise ModelFormatError(f"{place}: expected a JSON object, got {type(meta).__name__}")
        self.meta, self.place = meta, place

    def get(self, key: str, kind: type) -> Any:
        """Return a value of one type."""
        value = self.meta.get(key)
        if type(value) is not kind:
            raise ModelFormatError(f"{self.place}: {key} must be a {kind.__name__}; got {value!r:.60}")
        return value

    def one_of(self, key: str, *allowed: Any) -> Any:
        """Return one of a few values."""
        value = self.meta.get(key)
        if not any(type(value) is type(each) and value == each for each in allowed):
            raise ModelFormatError(
                f"{self.place}: {key} must be {' or '.join(map(repr, allowed))}; got {value!r:.60}"
            )
        return value

    def list_of(self, key: str, kind: type) -> list[Any]:
        """Return a list of one type."""
        values: list[Any] = self.get(key, list)
        if any(type(value) is not kind for value in values):
            raise ModelFormatError(f"{self.place}: {key} must be a list of {kind.__name__}")
        return values

    def whole(self, key: str, least: int, largest: int) -> int:
        """Return an integer in a range."""
        value: int = self.get(key, int)
        if not least <= value <= largest:
            raise ModelFormatError(f"{self.place}: {key} must be from {least} to {largest}; got {value}")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        value: Any = self.meta.get(key)
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            raise ModelFormatError(f"{self.place}: {key} must be a finite number; got {value!r:.60}")
        return float(value)


_DIGEST = "digest"


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: dict[str, str] | None = None
) -> None:
    """Write arrays by name; raises OSError where the path cannot be written, as with any file."""
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
    """Read every array and the metadata; ValueError where the digest does not match.

    A file of an older version may have no digest. ``keys`` are the metadata that may be there; any other is
    refused, so that renaming the digest does not disable it.
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
