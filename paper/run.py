"""Measures the cells that are missing, in one or more processes, and writes tables and figures."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from paper import classification, identity, runtime
from paper.cells import Cell, Item, Results
from paper.figures import draw
from paper.methods import accelerator, shared_fit
from paper.tables import markdown
from spinegraph.atomic import whole_file

_FOUND = {**classification.ITEMS, **identity.ITEMS, **runtime.ITEMS}
_ORDER = ("table1", "table2", "ppi", "runtime", "mirror", "perturbation", "mirror-inductive", "correlation")
ITEMS: dict[str, Item] = {name: _FOUND[name] for name in (*_ORDER, "alpha", "lambda", "case-study")}
_TORCH = ("GAT", "GraphSAGE", "SDNE")  # trained on a GPU where there is one

Progress = Callable[[Cell, int, int], None]  # the cell just measured, cells done, cells in all


def missing(folder: str | Path, cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that have no result by the current version of their method."""
    results = Results(folder)
    return [cell for cell in cells if not results.has(cell)]


def fill(
    folder: str | Path, cells: Iterable[Cell], *, jobs: int = 1, progress: Progress | None = None
) -> int:
    """Measure the missing cells and return how many there were.

    Each cell is stored as soon as it is measured, so that an interrupted run can be resumed.

    Parameters
    ----------
    folder : path
        Where the results are.
    cells : iterable of Cell
        The most important first.
    jobs : int
        Processes; each takes cells that share a fit.
    """
    waiting = missing(folder, cells)
    done = 0

    def report(cell: Cell) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(cell, done, len(waiting))

    if jobs == 1:
        for cell in (cell for bundle in bundles(waiting) for cell in bundle):
            measure(folder, cell)
            report(cell)
        return done
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running: set[Future[list[Cell]]] = {
            pool.submit(_measure_all, folder, bundle) for bundle in bundles(waiting)
        }
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                for cell in future.result():
                    report(cell)
    return done


def bundles(cells: list[Cell]) -> list[list[Cell]]:
    """Return the cells in bundles that share a fit, in the order of each bundle's first."""
    found: dict[tuple[str, str, int, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.item, cell.case, cell.seed, shared_fit(cell.method)), []).append(cell)
    return list(found.values())


def measure(folder: str | Path, cell: Cell) -> None:
    """Measure one cell and store it."""
    started = time.perf_counter()
    values = ITEMS[cell.item].measure(cell.case, cell.method, cell.seed)
    seconds = time.perf_counter() - started
    Results(folder).add(cell, values, seconds, accelerator() if cell.method in _TORCH else "cpu")


def _measure_all(folder: str | Path, bundle: list[Cell]) -> list[Cell]:
    for cell in bundle:
        measure(folder, cell)
    return bundle


def write_item(item: Item, folder: str | Path) -> list[Path]:
    """Write ``ITEM.md`` and the item's figures from the folder's results, and return the files."""
    results = Results(folder)
    figures = draw(item, results, results.folder)
    text = f"# {item.title}\n\n{markdown(item, results)}\n"
    if figures:
        text += f"\n![{item.title}]({item.name}.png)\n"
    page = results.folder / f"{item.name}.md"
    with whole_file(page) as partial:
        partial.write_text(text, encoding="utf-8")
    return [page, *figures]
