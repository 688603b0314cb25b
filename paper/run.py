"""Filling cells: what is missing is measured, in order of worth, by one or more processes."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from paper.cells import Cell, Cells
from paper.items import item
from paper.method import accelerator
from paper.rows import VARIANTS

_TORCH = ("GAT", "GraphSAGE", "SDNE")  # trained on a GPU where there is one
_WALKS = ("node2vec", "struc2vec", "n+s", "n+s+f")


@dataclass(frozen=True)
class State:
    """How far a run is.

    Attributes
    ----------
    done, left : int
        Cells measured in this run, and still to do.
    seconds : float
        Since it began.
    last : Cell
    """

    done: int
    left: int
    seconds: float
    last: Cell


def missing(folder: str | Path, cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that have no result by today's versions."""
    stored = Cells(folder)
    return [
        cell for cell in cells if stored.read(cell, item(cell.item).version(cell.case, cell.method)) is None
    ]


def fill(
    folder: str | Path,
    cells: Iterable[Cell],
    *,
    jobs: int = 1,
    progress: Callable[[State], None] | None = None,
) -> int:
    """Measure what is missing and return how many cells that was.

    Every cell is stored as soon as it is known, so a run that is stopped goes on where it was.

    Parameters
    ----------
    folder : path
        Where ``cells/`` is.
    cells : iterable of Cell
        In the order in which they matter.
    jobs : int
        Processes; each takes cells that share a fit.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    waiting = missing(folder, cells)
    started, done = time.perf_counter(), 0

    def tell(cell: Cell) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(State(done, len(waiting) - done, time.perf_counter() - started, cell))

    if jobs == 1:
        for cell in (cell for bundle in bundles(waiting) for cell in bundle):
            measure(folder, cell)
            tell(cell)
        return done
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        under_way: set[Future[list[Cell]]] = {
            pool.submit(_measure_all, folder, bundle) for bundle in bundles(waiting)
        }
        while under_way:
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in finished:
                for cell in future.result():
                    tell(cell)
    return done


def bundles(cells: list[Cell]) -> list[list[Cell]]:
    """Return the cells in bundles that share a fit, in the order of each bundle's first."""
    found: dict[tuple[str, str, int, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.item, cell.case, cell.seed, _family(cell.method)), []).append(cell)
    return list(found.values())


def measure(folder: str | Path, cell: Cell) -> None:
    """Measure one cell and store it."""
    chosen = item(cell.item)
    started = time.perf_counter()
    values = chosen.measure(cell.case, cell.method, cell.seed)
    seconds = time.perf_counter() - started
    on = accelerator() if cell.method in _TORCH else "cpu"
    Cells(folder).write(cell, chosen.version(cell.case, cell.method), values, seconds, on)


def _measure_all(folder: str | Path, bundle: list[Cell]) -> list[Cell]:
    for cell in bundle:
        measure(folder, cell)
    return bundle


def _family(method: str) -> str:
    """Name what rows share: walks, or a fit of SPINE."""
    if method in _WALKS:
        return "walks"
    if method in ("HOPE", "SDNE", "GraphSAGE", "GAT", "Random"):
        return method
    if method.endswith(" by walks"):
        return "SPINE by walks"
    return method if method in VARIANTS else "SPINE"
