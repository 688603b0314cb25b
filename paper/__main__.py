"""Measure a table or figure of the paper, cell by cell, and print it beside the paper's numbers.

A cell is stored as soon as it is measured and not measured again, so that an interrupted run can be resumed.
Examples: ``python -m paper table1 --quick``, ``python -m paper all --show``.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from paper.cells import Cell, Results
from paper.run import ITEMS, fill, write_item
from paper.tables import markdown, page, summary
from spinegraph.atomic import whole_file


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "item", choices=("all", *ITEMS), metavar="ITEM", help=f"all, or one of {', '.join(ITEMS)}"
    )
    level = parser.add_mutually_exclusive_group()
    level.add_argument("--quick", action="store_true", help="one seed of the quick rows: ten minutes for all")
    level.add_argument("--full", action="store_true", help="ten seeds, three of slow baselines: many hours")
    level.add_argument("--show", action="store_true", help="measure nothing, print the stored results")
    parser.add_argument("--seeds", type=int, metavar="N", help="number of seeds of every row")
    parser.add_argument("--methods", metavar="NAMES", help="only these rows, such as HOPE,SPINE")
    parser.add_argument(
        "--cases", metavar="NAMES", help="only data sets whose name begins so, such as cora,pubmed"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="default: results")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write a page about all items")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)

    chosen = [ITEMS[name] for name in (ITEMS if options.item == "all" else (options.item,))]
    if not options.show:
        wanted = [cell for item in chosen for cell in item.cells(_level(options), options.seeds)]
        if options.methods is not None:
            wanted = [cell for cell in wanted if cell.method in options.methods.split(",")]
        if options.cases is not None:
            wanted = [cell for cell in wanted if cell.case.startswith(tuple(options.cases.split(",")))]
        if not wanted:
            parser.error(
                f"no cell of {options.item} at this level has --methods {options.methods or 'any'} and "
                f"--cases {options.cases or 'any'}; rows are called as in the tables, such as HOPE,SPINE"
            )
        wanted.sort(key=lambda cell: cell.seed)  # the first seed of every item before the second of any
        started = time.perf_counter()

        def report(cell: Cell, done: int, total: int) -> None:
            print(f"{done}/{total}  {time.perf_counter() - started:.0f} s  {cell}", file=sys.stderr)

        fill(options.out, wanted, jobs=options.jobs, progress=report)
    if not options.show or options.page is not None:
        for item in chosen:
            write_item(item, options.out)
    results = Results(options.out)
    if options.page is not None:
        with whole_file(options.page) as partial:
            partial.write_text(page(ITEMS.values(), results, options.page), encoding="utf-8")
    if options.json:
        print(json.dumps([summary(item, results) for item in chosen], indent=2))
        return
    for item in chosen:
        print(f"# {item.title}\n\n{markdown(item, results)}\n")


def _level(options: argparse.Namespace) -> str:
    return "quick" if options.quick else "full" if options.full else "usual"


if __name__ == "__main__":
    main()
