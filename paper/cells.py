"""What the paper's items consist of, and the files that keep their results.

An item is a table or figure; a cell is one method on one data set and setting with one seed.
``results/ITEM.json`` holds all cells of an item, each on a line::

    {"item": "table2", "cells": [
    {"case": "cora 20", "method": "SPINE", "seed": 0, "version": 3, "values": {"accuracy": 0.87, ...}, ...}
    ]}
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paper.methods import method, version_of
from spinegraph.atomic import whole_file
from spinegraph.errors import GraphFormatError

DIM = 200
SEEDS, SLOW_SEEDS = 10, 3
Values = dict[str, Any]  # measure -> number, or anything else that JSON holds


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes
    ----------
    item : str
        Such as ``table1``.
    case : str
        Data set and setting, such as ``cora 20``.
    method : str
        Row of the table.
    seed : int
    """

    item: str
    case: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.item} · {self.case} · {self.method} · seed {self.seed}"


class Results:
    """A folder of results. Each file is read once; ``add`` reads it again."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._loaded: dict[str, list[dict[str, Any]]] = {}

    def seeds(self, item: str, case: str, name: str) -> dict[int, Values]:
        """Return seed -> values of one method, measured with its current version."""
        return {entry["seed"]: entry["values"] for entry in self._current(item, case, name)}

    def seconds(self, item: str, case: str, name: str) -> list[float]:
        """Return the time that each seed of one method took."""
        return [entry["seconds"] for entry in self._current(item, case, name)]

    def has(self, cell: Cell) -> bool:
        """Whether a cell is measured with its method's current version."""
        return cell.seed in self.seeds(cell.item, cell.case, cell.method)

    def add(self, cell: Cell, values: Values, seconds: float, device: str = "cpu") -> None:
        """Store a cell, and drop what another version of its method left. Safe with several processes."""
        version = version_of(cell.method)
        entry = {
            "case": cell.case,
            "method": cell.method,
            "seed": cell.seed,
            "version": version,
            "values": values,
            "seconds": round(seconds, 2),
            "on": device,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder):
            others = [old for old in self._read(cell.item) if not _is_replaced(old, entry)]
            cells = sorted([*others, entry], key=lambda one: (one["case"], one["method"], one["seed"]))
            lines = ",\n".join(map(json.dumps, cells))
            with whole_file(self._path(cell.item)) as partial:
                text = f'{{"item": {json.dumps(cell.item)}, "cells": [\n{lines}\n]}}\n'
                partial.write_text(text, encoding="utf-8")
        self._loaded[cell.item] = cells

    def _current(self, item: str, case: str, name: str) -> list[dict[str, Any]]:
        if item not in self._loaded:
            self._loaded[item] = self._read(item)
        wanted = case, name, version_of(name)
        return [
            entry
            for entry in self._loaded[item]
            if (entry["case"], entry["method"], entry["version"]) == wanted
        ]

    def _path(self, item: str) -> Path:
        return self.folder / f"{item}.json"

    def _read(self, item: str) -> list[dict[str, Any]]:
        path = self._path(item)
        if not path.exists():
            return []
        try:
            cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
        except (ValueError, LookupError, TypeError) as error:
            raise GraphFormatError(
                f"{path}: is no file of results ({error}); delete it to measure its cells again"
            ) from error
        return cells


def _is_replaced(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    is_same_row = (old["case"], old["method"]) == (new["case"], new["method"])
    return is_same_row and (old["seed"] == new["seed"] or old["version"] != new["version"])


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder; without ``fcntl`` (Windows) only one process may write."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Measure:
    """A number of a cell, and how it is printed."""

    key: str
    title: str
    scale: float = 1.0
    digits: int = 1


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper.

    Attributes
    ----------
    name, title : str
    cases, rows : tuple of str
        Data sets with settings, and methods.
    measure : callable (case, row, seed) -> Values
    measures : tuple of Measure
        What the tables print.
    paper : mapping (row, case, key) -> float
        The paper's numbers, in the unit of ``measures``.
    figure_only : tuple of str
        Rows that the paper has in a figure, without a number.
    quick, quick_cases : tuple of str
        Rows and cases of a quick run, empty for all.
    smoke : (case, row), optional
        The cell that a test measures; by default the first of a quick run.
    max_seeds : int
        Fewer than ten where every row is slow.
    is_random : bool
        Whether the seed draws the cases, so that deterministic rows need several seeds too.
    """

    name: str
    title: str
    cases: tuple[str, ...]
    rows: tuple[str, ...]
    measure: Callable[[str, str, int], Values]
    measures: tuple[Measure, ...]
    paper: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    figure_only: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    quick_cases: tuple[str, ...] = ()
    smoke: tuple[str, str] | None = None
    max_seeds: int = SEEDS
    is_random: bool = True

    def seeds(self, name: str, level: str, wanted: int | None = None) -> int:
        """Return how many seeds a row gets at a level: smoke, quick, usual or full."""
        row = None if name in ("GAT", "twins") else method(name)  # these two classify by themselves
        if row is not None and not (row.is_random or self.is_random):
            return 1
        if wanted is not None:
            return wanted
        if level in ("smoke", "quick"):
            return 1
        is_slow = row is None or row.is_slow
        count = min(SLOW_SEEDS if is_slow else SEEDS, self.max_seeds)
        return count if level == "full" else min(count, 1 if is_slow else 3)

    def cells(self, level: str, wanted: int | None = None) -> list[Cell]:
        """Return the cells of a run: the first seed of everything, then the second."""
        cases, rows = self.cases, self.rows
        if level == "smoke" and self.smoke is not None:
            return [Cell(self.name, *self.smoke, 0)]
        if level in ("smoke", "quick"):
            cases, rows = self.quick_cases or cases, self.quick or rows
        found = [
            Cell(self.name, case, name, seed)
            for name in rows
            for case in cases
            for seed in range(self.seeds(name, level, wanted))
        ]
        found.sort(key=lambda cell: cell.seed)
        return found[:1] if level == "smoke" else found
