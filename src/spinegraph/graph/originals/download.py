"""Fetch a public file whole and checked, or not at all."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from spinegraph.errors import DownloadError

Progress = Callable[[str, int, int | None], None]

_LOCK = "checksums.json"
_CHUNK = 1 << 16
_LARGEST = 1 << 29  # bytes; the largest original is under 30 MB
_PATIENCE = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Original:
    """One public file.

    Attributes
    ----------
    file : str
        Its name in the cache.
    url : str
    sha256 : str or None
        Stated where unrelated public sources agree on it. Where it is None, the checksum of the first
        download is written down beside the file and every later one is held against it.
    """

    file: str
    url: str
    sha256: str | None = None


def fetch(original: Original, folder: Path, progress: Progress | None = None) -> Path:
    """Return the path of ``original`` in ``folder``, downloading it if it is not there or not intact.

    The file appears under its name only when it is complete and its checksum is right.

    Parameters
    ----------
    original : Original
    folder : Path
    progress : callable(file, bytes so far, bytes in all or None), optional

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fetch(Original("none.txt", "http://127.0.0.1:9/none.txt"), Path(folder))   # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    spinegraph.errors.DownloadError: http://127.0.0.1:9/none.txt: could not be fetched ...
    """
    path = folder / original.file
    known = original.sha256 or read_lock(folder).get(original.file)
    if path.is_file() and known is not None and checksum(path) == known:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{original.file}.", suffix=".part")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            found = _stream(original, out.write, progress)
        if known is not None and found != known:
            raise DownloadError(
                f"{original.url}: the file's SHA-256 must be {known}, got {found}. It was changed at its "
                f"source or on the way; nothing was kept. {_way_out(original, folder)}"
            )
        if original.sha256 is None:
            write_lock(folder, read_lock(folder) | {original.file: found})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def checksum(path: Path) -> str:
    """Return a file's SHA-256.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "empty").write_bytes(b"")
    ...     checksum(Path(folder) / "empty")[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lock(folder: Path) -> dict[str, str]:
    """Return the checksums written down at first download, file by file.

    Examples
    --------
    >>> read_lock(Path("nowhere"))
    {}
    """
    try:
        lock = json.loads((folder / _LOCK).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise DownloadError(
            f"{folder / _LOCK}: unreadable ({fault}); delete it and the files beside it"
        ) from fault
    if not isinstance(lock, dict):
        raise DownloadError(
            f"{folder / _LOCK}: expected an object of file to SHA-256; delete it and its folder"
        )
    return lock


def write_lock(folder: Path, lock: dict[str, str]) -> None:
    """Write checksums down, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_lock(Path(folder), {"a": "00"})
    ...     read_lock(Path(folder))
    {'a': '00'}
    """
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{_LOCK}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(lock, out, indent=1, sort_keys=True)
        os.replace(name, folder / _LOCK)
    finally:
        Path(name).unlink(missing_ok=True)


def _stream(original: Original, write: Callable[[bytes], object], progress: Progress | None) -> str:
    """Copy the file from the net and return its SHA-256."""
    if not original.url.startswith(("https://", "http://127.0.0.1:")):
        raise DownloadError(f"{original.url}: only https is fetched from")
    digest, done = hashlib.sha256(), 0
    try:
        request = Request(original.url, headers={"User-Agent": "spinegraph"})  # noqa: S310 checked above
        with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
            stated = answer.headers.get("Content-Length", "")
            total = int(stated) if stated.isdecimal() else None
            while chunk := answer.read(_CHUNK):
                done += len(chunk)
                if done > _LARGEST:
                    raise DownloadError(f"{original.url}: over {_LARGEST:,} bytes; stopped")
                digest.update(chunk)
                write(chunk)
                if progress is not None:
                    progress(original.file, done, total)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as fault:
        if isinstance(fault, HTTPError):
            fault.close()  # it holds the page that came instead
        raise DownloadError(
            f"{original.url}: could not be fetched ({getattr(fault, 'reason', fault)}). "
            "Check the connection, or set SPINEGRAPH_DATA to a folder that holds the npz files"
        ) from fault
    if total is not None and done != total:
        raise DownloadError(f"{original.url}: {done} of {total} bytes arrived; nothing was kept, try again")
    return digest.hexdigest()


def _way_out(original: Original, folder: Path) -> str:
    """Say what a user can do about a wrong checksum."""
    if original.sha256 is None:
        return f"If the change is known to be good, delete its line in {folder / _LOCK}"
    return "Try again later, or set SPINEGRAPH_DATA to a folder that holds the npz files"
