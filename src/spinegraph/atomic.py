"""Files on disk: atomic writes, JSON that is checked as it is read, arrays as safetensors."""

import glob
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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

# Temporary files older than this, in seconds, may be left from killed processes; others may be in use.
_STALE_AFTER = 3600.0
_WRITER = re.compile(r"\.(\d+)-[0-9a-f]{8}\.tmp$")  # process id and random part of a temporary name


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it is synced to disk and renamed to ``path``."""
    path = Path(path)
    with output_errors(path):
        partial = _temporary_path(path)
        try:
            yield partial
            sync(partial)
            os.replace(partial, path)
            sync(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder to write files to; at the end it replaces ``path`` as a whole.

    The caller decides whether ``path`` may be replaced.
    """
    path = Path(path).resolve()  # of a link, the target is replaced and the link stays
    with output_errors(path):
        recover(path)
        partial = _temporary_path(path)
        try:
            partial.mkdir()
            yield partial
            for file in partial.iterdir():
                sync(file)
            sync(partial)
            # The old folder is moved aside first, where ``recover`` finds it if this process is killed.
            aside = _backup_path(path)
            while partial.exists():  # repeated if a reader recovered the old folder in between
                if path.exists():
                    shutil.rmtree(aside, ignore_errors=True)  # left by a writer killed between renames
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
            shutil.rmtree(partial, ignore_errors=True)  # unfinished files, or the old ones


def recover(path: Path) -> None:
    """Restore a folder that a killed writer had moved aside; readers and writers call this first."""
    with suppress(OSError, ValueError):  # another process was quicker, or the path is invalid
        path = path.resolve()
        if not path.exists() and _backup_path(path).is_dir():
            os.rename(_backup_path(path), path)


def _backup_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def make_folder(path: Path) -> None:
    """Create a folder and its parents unless it exists."""
    with output_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise early if a path cannot be written to."""
    folder = Path(path).resolve().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        reason = "is not writable" if folder.is_dir() else "is not a folder"
        raise OutputError(f"{path}: cannot be written, since {folder} {reason}; choose another path")


def sweep(folder: Path, name: str) -> None:
    """Remove temporary files of ``name``, a glob pattern, that are an hour old and whose writer has ended."""
    for left in folder.glob(f".{name}.*.tmp"):
        is_folder = left.is_dir() and not left.is_symlink()
        # The time of a folder does not change while a file in it grows.
        newest = max(at.lstat().st_mtime for at in (left, *(left.iterdir() if is_folder else ())))
        if time.time() - newest <= _STALE_AFTER or _is_running(_WRITER.search(left.name)):
            continue
        if is_folder:
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _is_running(writer: re.Match[str] | None) -> bool:
    """Return whether the process that made a temporary name is still running on this machine."""
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
def output_errors(path: Path) -> Iterator[None]:
    """Turn errors of a read-only or full disk into an OutputError that names the path."""
    try:
        yield
    except SpineError:
        raise
    except OSError as fault:
        reason = os.strerror(fault.errno) if fault.errno else str(fault)
        raise OutputError(f"{path}: cannot be written ({reason}); nothing was changed there") from fault


def sync(path: Path) -> None:
    """Sync a file's content, or a folder's entries, to disk."""
    if path.is_dir() and sys.platform == "win32":
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _temporary_path(path: Path) -> Path:
    """Return a free temporary name in the same folder, so that a rename never crosses file systems."""
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: the folder {path.parent} does not exist; create it first")
    sweep(path.parent, glob.escape(path.name))
    return path.with_name(f".{path.name}.{os.getpid()}-{token_hex(4)}.tmp")


class JsonObject:
    """A parsed JSON object whose values are checked as they are read; messages begin with ``place``."""

    def __init__(self, meta: Any, place: str) -> None:
        if not isinstance(meta, dict):
            raise ModelFormatError(f"{place}: expected a JSON object, got {type(meta).__name__}")
        self.meta, self.place = meta, place

    def _checked(self, key: str, is_sound: Callable[[Any], bool], rule: str) -> Any:
        value = self.meta.get(key)
        if not is_sound(value):
            raise ModelFormatError(f"{self.place}: {key} must be {rule}; got {value!r:.60}")
        return value

    def get(self, key: str, kind: type) -> Any:
        """Return a value of one type."""
        return self._checked(key, lambda value: type(value) is kind, f"of type {kind.__name__}")

    def one_of(self, key: str, *allowed: Any) -> Any:
        """Return a value that is one of those allowed."""
        known = [(type(each), each) for each in allowed]
        return self._checked(key, lambda one: (type(one), one) in known, " or ".join(map(repr, allowed)))

    def list_of(self, key: str, kind: type) -> list[Any]:
        """Return a list of one type."""
        values: list[Any] = self.get(key, list)
        self._checked(key, lambda _: {*map(type, values)} <= {kind}, f"a list of {kind.__name__}")
        return values

    def whole(self, key: str, least: int, largest: int) -> int:
        """Return an integer in a range."""
        self.get(key, int)
        value: int = self._checked(key, lambda value: least <= value <= largest, f"from {least} to {largest}")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        rule, largest = "a finite number", sys.float_info.max
        value: float = self._checked(key, lambda one: type(one) in (int, float) and abs(one) <= largest, rule)
        return float(value)


_DIGEST = "digest"


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], about: dict[str, str] | None = None) -> None:
    """Write arrays by name; raises OSError if the path cannot be written."""
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, about)
        path.chmod(mode)  # safetensors ignores the umask
    except SafetensorError as fault:
        number = re.search(r"os error (\d+)", str(fault))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault


def write_signed(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays and metadata with a digest of both, which ``read_signed`` checks."""
    write_arrays(path, arrays, {**metadata, _DIGEST: digest(arrays, metadata)})


def read_signed(path: Path, keys: tuple[str, ...] = ()) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read every array and the metadata; raises ValueError if the digest does not match.

    A file of an older version may have no digest. Metadata other than ``keys`` is refused, so that renaming
    the digest does not disable it.
    """
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata() or {})
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    written = metadata.pop(_DIGEST, None)
    if not metadata.keys() <= set(keys):
        raise ValueError(f"unknown metadata {min(metadata.keys() - set(keys))!r:.40}")
    if written is not None and written != digest(arrays, metadata):
        raise ValueError("its checksum does not match: it is damaged")
    return arrays, metadata


def digest(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> str:
    """Return 32 hexadecimal digits that depend on every name, type, shape, number and metadata."""
    found = blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).data)
    for key, text in sorted((metadata or {}).items()):
        found.update(f"{len(key)} {key} {len(text)} {text}\n".encode())
    return found.hexdigest()
