"""Results, cell by cell: small JSON files that a run adds to and that can be stopped at any moment.

A file holds the seeds of one method on one data set and setting::

    results/cells/table2/cora 20/GraphSAGE.json
    {"version": "1.1", "seeds": {
      "0": {"values": {"accuracy": 0.81, "strict": 0.8}, "seconds": 14.2, "on": "cpu"}
    }}
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinegraph.atomic import whole_file
from spinegraph.errors import GraphFormatError

Values = dict[str, Any]  # measure -> number, or whatever else JSON holds


@dataclass(frozen=True)
class Cell:
    """One number to be measured, or a few that come together.

    Attributes
    ----------
    item : str
        Such as ``table1``.
    case : str
        Data set and setting, such as ``cora 20``.
    method : str
        The row.
    seed : int
    """

    item: str
    case: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.item} · {self.case} · {self.method} · seed {self.seed}"


class Cells:
    """The folder of results."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def read(self, cell: Cell, version: str) -> Values | None:
        """Return what was measured, or None where nothing was or by another version."""
        return self.seeds(cell.item, cell.case, cell.method, version).get(cell.seed)

    def seeds(self, item: str, case: str, method: str, version: str | None = None) -> dict[int, Values]:
        """Return seed -> values of one row, by one version, or by any."""
        stored = self._stored(self._path(item, case, method))
        if version is not None and stored["version"] != version:
            return {}
        return {int(seed): entry["values"] for seed, entry in sorted(stored["seeds"].items())}

    def seconds(self, item: str, case: str, method: str) -> list[float]:
        """Return how long the stored cells of one row took."""
        return [entry["seconds"] for entry in self._stored(self._path(item, case, method))["seeds"].values()]

    def write(self, cell: Cell, version: str, values: Values, seconds: float, on: str = "cpu") -> None:
        """Add a cell, whole or not at all; what another version left in the file goes."""
        path = self._path(cell.item, cell.case, cell.method)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            stored = self._stored(path)
            seeds = stored["seeds"] if stored["version"] == version else {}
            seeds[str(cell.seed)] = {"values": values, "seconds": round(seconds, 2), "on": on}
            ordered = dict(sorted(seeds.items(), key=lambda entry: int(entry[0])))
            lines = ",\n".join(f'  "{seed}": {json.dumps(entry)}' for seed, entry in ordered.items())
            with whole_file(path) as partial:
                text = f'{{"version": {json.dumps(version)}, "seeds": {{\n{lines}\n}}}}\n'
                partial.write_text(text, encoding="utf-8")

    def _path(self, item: str, case: str, method: str) -> Path:
        return self.folder / "cells" / item / _plain(case) / f"{_plain(method)}.json"

    def _stored(self, path: Path) -> dict[str, Any]:
        if not path.exists():
            return {"version": None, "seeds": {}}
        try:
            stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as fault:
            raise GraphFormatError(
                f"{path}: is no cell of results ({fault}); delete it, and it is measured again"
            ) from fault
        return stored


def _plain(name: str) -> str:
    """Return a name that every file system takes."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a folder, where the system can."""
    try:
        import fcntl
    except ImportError:  # Windows: then one process at a time may fill cells
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
