"""What an item of the paper is: its cells, how one is measured, and what the paper says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paper.cells import Cell, Values
from paper.rows import row

DIM = 200
SEEDS, SLOW_SEEDS = 10, 3
Level = str  # "smoke", "quick", "usual", "full"


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
        Printed numbers, in the unit of ``measures``.
    figure_only : tuple of str
        Rows that the paper has in a figure, without a number.
    number : int
        Raised by hand whenever the protocol changes.
    version_of : callable (case, row) -> str
        By default the row's own.
    quick : tuple of str
        Rows of a quick run, empty for all; and of ``quick_cases`` likewise.
    smoke : (case, row), optional
        The cell that a test measures; by default the first of a quick run.
    most_seeds : int
        Fewer than ten where every row is slow.
    is_drawn : bool
        Whether cases are drawn by the seed, so that even rows without chance need several.
    notes : str
        What the page says below the table.
    """

    name: str
    title: str
    cases: tuple[str, ...]
    rows: tuple[str, ...]
    measure: Callable[[str, str, int], Values]
    measures: tuple[Measure, ...]
    paper: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    figure_only: tuple[str, ...] = ()
    number: int = 1
    version_of: Callable[[str, str], str] = lambda case, name: row(name).version
    quick: tuple[str, ...] = ()
    quick_cases: tuple[str, ...] = ()
    smoke: tuple[str, str] | None = None
    most_seeds: int = SEEDS
    is_drawn: bool = True
    notes: str = ""

    def version(self, case: str, name: str) -> str:
        """Name the protocol's and the method's version."""
        return f"{self.number}.{self.version_of(case, name)}"

    def seeds(self, name: str, level: Level, wanted: int | None = None) -> int:
        """Return how many seeds a row gets."""
        method = None if name in ("GAT", "twins") else row(name)
        if method is not None and not (method.is_drawn or self.is_drawn):
            return 1
        if wanted is not None:
            return wanted
        if level in ("smoke", "quick"):
            return 1
        is_slow = method is None or method.is_slow
        most = min(SLOW_SEEDS if is_slow else SEEDS, self.most_seeds)
        return most if level == "full" else min(most, 1 if is_slow else 3)

    def cells(self, level: Level, wanted: int | None = None) -> list[Cell]:
        """Return the cells of a run, in order of worth: the first seed of everything, then the second."""
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
