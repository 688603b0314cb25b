"""Files and folders that are written whole or not at all, whenever the process or the machine stops."""

import ctypes
import glob
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from spinegraph.errors import MissingFileError, OutputError, SpineError

# What a killed process left under a temporary name; younger ones may be another process's, at work.
_FORGOTTEN_AFTER = 3600.0
_AT_THE_CURRENT_FOLDER, _RENAME_EXCHANGE = -100, 2  # from <fcntl.h> and <linux/fs.h>


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to; at the end it is brought to disk and takes the file's name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "note.txt") as partial:
    ...         size = partial.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['note.txt']
    """
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

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for text in ("old", "new"):
    ...         with whole_folder(Path(folder) / "notes") as partial:
    ...             size = (partial / "note.txt").write_text(text)
    ...     (Path(folder) / "notes" / "note.txt").read_text(), os.listdir(folder)
    ('new', ['notes'])
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
    """Refuse a place that cannot be written to, before the work whose result would go there.

    Examples
    --------
    >>> require_writable("vectors.csv")
    """
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
    """Turn what a read-only or full disk raises into one error that names the place itself.

    Examples
    --------
    >>> with explained(Path("vectors.csv")):
    ...     raise OSError(28, "full")
    Traceback (most recent call last):
    ...
    spinegraph.errors.OutputError: vectors.csv: cannot be written (No space left on device); nothing ...
    """
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
