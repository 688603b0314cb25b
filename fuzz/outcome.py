"""What a reader may do with any bytes, and what is kept of those that made it do something else."""

import hashlib
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from spinegraph.errors import SpineError, SpineWarning

Target = Callable[[bytes], None]


def strict_warnings() -> None:
    """Let every warning but the package's own count as a fault: a user would see it as noise."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SpineWarning)


def fault_of(target: Target, data: bytes) -> BaseException | None:
    """Return what a target raised, unless it is a plain SpineError of one line.

    Examples
    --------
    >>> fault_of(lambda data: None, b"") is None
    True
    >>> fault_of(lambda data: data[9], b"")
    IndexError('index out of range')
    """
    try:
        target(data)
    except SpineError as error:
        words = str(error).strip()
        return None if words and "\n" not in words else AssertionError(f"not one line of words: {error!r}")
    except Exception as fault:
        return fault
    return None


class Findings:
    """Keeps the first input of every kind of fault, and goes on.

    Parameters
    ----------
    folder : Path
        Gets one file per kind of fault: where in the package it came from and what it was.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._seen = folder, set[str]()
        folder.mkdir(parents=True, exist_ok=True)

    def note(self, fault: BaseException, data: bytes) -> None:
        """Write an input down if its fault is new, and say so."""
        kind = _kind(fault)
        if kind in self._seen:
            return
        self._seen.add(kind)
        name = hashlib.sha256(kind.encode()).hexdigest()[:12]
        (self.folder / name).write_bytes(data)
        print(f"FOUND {name} {kind}: {str(fault)[:200]!r}", file=sys.stderr, flush=True)
        traceback.print_exception(fault, limit=-6)


def _kind(fault: BaseException) -> str:
    frames = traceback.extract_tb(fault.__traceback__)
    ours = [frame for frame in frames if "spinegraph" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else str(fault)[:60]
    return f"{type(fault).__name__} {where}"
