"""``spine reproduce``: the paper's tables and figures, measured here."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from paper.names import NAMES
from spinegraph.apps.cli.options import Json, Quiet
from spinegraph.errors import ParameterError

What = StrEnum("What", {name: name for name in ("all", *NAMES)})  # type: ignore[misc]


def reproduce(
    what: Annotated[What, typer.Argument(metavar="WHAT", help=f"all, or one of {', '.join(NAMES)}.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed of the quick rows: all in ten minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Ten seeds, three of slow baselines: many hours.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="So many seeds of every row.")] = None,
    methods: Annotated[str | None, typer.Option(help="Only these rows, such as HOPE,SPINE.")] = None,
    cases: Annotated[
        str | None, typer.Option(help="Only data sets whose name begins so: cora,pubmed.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that measure side by side.")] = 1,
    show: Annotated[bool, typer.Option("--show", help="Measure nothing; print what there is.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where cells, tables and figures are.")] = Path(
        "results"
    ),
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page about all items too.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a table or figure of the paper, cell by cell, and print it beside the paper's numbers.

    A cell is stored as soon as it is known and not measured again, so a run can be stopped and goes on.

    Example: spine reproduce table1 --show
    """
    if quick and full:
        raise ParameterError("--quick and --full exclude each other; leave one out")
    from paper.cells import Cells
    from paper.items import item
    from paper.output import write_item
    from paper.run import State, fill
    from paper.tables import markdown, summary
    from spinegraph.apps.cli.options import shown_progress

    chosen = [item(name) for name in (NAMES if what == "all" else (str(what),))]
    level = "quick" if quick else "full" if full else "usual"
    if not show:
        wanted = [cell for one in chosen for cell in one.cells(level, seeds)]
        if methods is not None:
            wanted = [cell for cell in wanted if cell.method in methods.split(",")]
        if cases is not None:
            wanted = [cell for cell in wanted if cell.case.startswith(tuple(cases.split(",")))]
        if not wanted:
            raise ParameterError(
                f"no cell of {what} at this level has --methods {methods or 'any'} and "
                f"--cases {cases or 'any'}; rows are called as in the tables, such as HOPE,SPINE"
            )
        wanted.sort(key=lambda cell: cell.seed)  # the first seed of every item before anybody's second
        with shown_progress(quiet=quiet) as report:
            report("measuring", 0, 0)

            def tell(state: State) -> None:
                report(f"{state.last}, {state.seconds:.0f} s", state.done, state.done + state.left)

            fill(out, wanted, jobs=jobs, progress=tell)
    if not show or page is not None:
        for one in chosen:
            write_item(one, out)
    if page is not None:
        from paper.page import write_page

        write_page(out, page)
    if json:
        from json import dumps

        typer.echo(dumps([summary(one, Cells(out)) for one in chosen], indent=2))
        return
    for one in chosen:
        typer.echo(f"# {one.title}\n\n{markdown(one, Cells(out))}\n")
