"""Where a store is built: a folder beside it that survives a stop, with a journal of what is done."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.atomic import make_folder, put_in_place, sync, whole_file
from spinegraph.errors import OutputError, SpineError
from spinegraph.graph.store_files import pieces

_JOURNAL = "journal.json"


class Workplace:
    """The unfinished parts of a store, kept until it is whole.

    Parameters
    ----------
    store : Path
        The store to be built; the workplace is the hidden folder ``.NAME.building`` beside it.
    job : dict
        What is built from what; unfinished parts of another job are removed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     work = Workplace(Path(place) / "store", {"edges": "people.csv"})
    ...     work.note("names", count=3)
    ...     Workplace(Path(place) / "store", {"edges": "people.csv"}).noted("names")
    {'count': 3}
    """

    def __init__(self, store: Path, job: dict[str, Any]) -> None:
        self.store = store.resolve()
        self.folder = self.store.with_name(f".{self.store.name}.building")
        with self.explained():
            make_folder(self.folder)
            self._notes = self._read()
            if self._notes.get("job") != job:
                self._begin(job)
            self.files = self.folder / "store"
            self.files.mkdir(exist_ok=True)

    def path(self, name: str) -> Path:
        """Return where a part lies."""
        return self.folder / name

    def noted(self, step: str) -> Any:
        """Return what was noted of a finished step, or None."""
        return self._notes.get(step)

    def note(self, step: str, **facts: Any) -> None:
        """Note that a step is finished: what it wrote is on disk."""
        self._notes[step] = facts
        with whole_file(self.folder / _JOURNAL) as partial:
            partial.write_text(json.dumps(self._notes), encoding="utf-8")

    def begin_anew(self) -> None:
        """Forget every step, and remove what it wrote."""
        self._begin(self._notes["job"])
        self.files.mkdir(exist_ok=True)

    def finish(self) -> None:
        """Let the finished files take the store's place, and remove the workplace."""
        put_in_place(self.files, self.store)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what a full disk raises into an error that says how to go on."""
        try:
            yield
        except OutputError as fault:
            if self._way_on in str(fault):
                raise
            raise OutputError(f"{fault}; {self._way_on}") from fault
        except SpineError:
            raise
        except OSError as fault:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            raise OutputError(f"{self.store}: cannot be written ({reason}); {self._way_on}") from fault

    @property
    def _way_on(self) -> str:
        return f"what is finished is kept in {self.folder}: make space and run the same again to go on"

    def _begin(self, job: dict[str, Any]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        make_folder(self.folder)
        self._notes = {"job": job}

    def _read(self) -> dict[str, Any]:
        try:
            notes = json.loads((self.folder / _JOURNAL).read_bytes())
        except (OSError, ValueError):
            return {}
        return notes if isinstance(notes, dict) else {}


def put(path: Path, array: NDArray[Any]) -> None:
    """Write an array's bytes and bring them to disk."""
    with Output(path) as file:
        for piece in pieces(array):
            file.add(piece)


class Output:
    """A file that arrays are appended to and that is on disk when it is closed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with Output(Path(place) / "a.bin") as file:
    ...         file.add(np.arange(3))
    ...     (Path(place) / "a.bin").stat().st_size
    24
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("wb")

    def add(self, array: NDArray[Any]) -> None:
        """Append an array's bytes."""
        if array.size:
            self._file.write(np.ascontiguousarray(array).data)

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *fault: Any) -> None:
        self._file.close()
        if fault[0] is None:
            sync(self._path)
