"""Seals on what a store holds: whatever a disk changed or lost is an error when the service starts again.

SQLite itself checks neither the rows of a table nor how many there are, and it passes over whatever follows a
damaged page of its write-ahead log as if it had never been written.
"""

import struct
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from spinegraph.errors import ModelFormatError

KNOWN = frozenset(("format", "owner", "base", "state", "last", "seal"))
_HEAD, _FRAME = 32, 24  # bytes of a write-ahead log's header, and of the header of each page in it
_MAGIC = (0x377F0682, 0x377F0683)


def sealed_row(version: int, text: str, is_last: bool) -> str:
    """Return a change's text behind a seal of all that its row says.

    Examples
    --------
    >>> opened_row(1, sealed_row(1, "{}", True), True)
    '{}'
    """
    return f"{_seal(f'{version} {is_last:d} {text}')} {text}"


def opened_row(version: int, text: str, is_last: bool) -> str:
    """Return the text of ``sealed_row``, or raise; rows of older stores have no seal and begin with ``{``."""
    if text.startswith("{"):
        return text
    seal, _, rest = text.partition(" ")
    if seal != _seal(f"{version} {is_last:d} {rest}"):
        raise ModelFormatError(f"change {version} is not what was written: the disk damaged it")
    return rest


def about_seal(rows: Mapping[str, str]) -> str:
    """Return the seal of what a store says about itself."""
    return _seal("\n".join(f"{key} {rows[key]}" for key in sorted(rows) if key != "seal"))


def require_sealed(rows: Mapping[str, str]) -> None:
    """Refuse what a store says about itself where it is not what was written.

    Examples
    --------
    >>> require_sealed({"base": "3", "seal": about_seal({"base": "2"})})
    Traceback (most recent call last):
        ...
    spinegraph.errors.ModelFormatError: what the store says about itself is not what was written: ...
    """
    if not rows.keys() <= KNOWN or rows.get("seal", about_seal(rows)) != about_seal(rows):
        raise ModelFormatError(
            "what the store says about itself is not what was written: the disk damaged it"
        )


def require_whole_log(path: Path) -> None:
    """Refuse a write-ahead log with a page that is damaged before its last transaction.

    What a crash cut off is the last transaction, which nobody was told of. A damaged page with a later
    transaction behind it was on disk once: SQLite would drop all that follows.

    Examples
    --------
    >>> require_whole_log(Path("there is none"))
    """
    if not path.exists():
        return
    data = path.read_bytes()
    if len(data) <= _HEAD:
        return
    magic, _, size = struct.unpack(">III", data[:12])
    order = ">" if magic == _MAGIC[1] else "<"
    sums = _sums(data[:24], (0, 0), order)
    if magic not in _MAGIC or sums != struct.unpack(">II", data[24:_HEAD]):
        raise ModelFormatError(f"{path.name} is damaged in its header, so that all it holds would be lost")
    salt, damaged, length = data[16:24], False, _FRAME + size
    for place in range(_HEAD, len(data) - length + 1, length):
        frame = data[place : place + length]
        if frame[8:16] != salt and not damaged:
            # Left from before the log began anew, unless more of this log follows.
            damaged = salt in (data[at + 8 : at + 16] for at in range(place, len(data) - _FRAME, length))
            if not damaged:
                return
        if damaged:
            if _is_commit(frame) and _has_commit(data, place + length, length, salt):
                raise ModelFormatError(f"{path.name} is damaged in its middle: what follows would be lost")
            continue
        sums = _sums(frame[:8], sums, order)
        sums = _sums(frame[_FRAME:], sums, order)
        damaged = sums != struct.unpack(">II", frame[16:_FRAME])
        if damaged and _is_commit(frame) and _has_commit(data, place + length, length, salt):
            raise ModelFormatError(f"{path.name} is damaged in its middle: what follows would be lost")


def _is_commit(frame: bytes) -> bool:
    return frame[4:8] != b"\0\0\0\0"


def _has_commit(data: bytes, start: int, length: int, salt: bytes) -> bool:
    """Say whether a transaction of this log ends behind a place."""
    return any(
        data[place + 8 : place + 16] == salt and _is_commit(data[place : place + _FRAME])
        for place in range(start, len(data) - length + 1, length)
    )


def _sums(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Go on with the two running sums of a write-ahead log."""
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _seal(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
