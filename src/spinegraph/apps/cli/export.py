"""``spine export``: a model's vectors in a database."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spinegraph.apps.cli.options import GraphFeatures, Json, Model, Quiet, print_json, shown_progress, takes
from spinegraph.apps.cli.reading import ModelNodes, Reading

if TYPE_CHECKING:
    from spinegraph.apps.postgres import Written

_INDEX = {"made": "HNSW by cosine, made now", "kept": "HNSW by cosine, kept", "none": "none"}


@takes(how=Reading)
def export(
    model: Model,
    to: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="postgresql://user@host/app; what is left out, as the password should be, comes from "
            "PGPASSWORD and its like, or ~/.pgpass.",
        ),
    ],
    table: Annotated[
        str,
        typer.Option(metavar="NAME", help="NAME or SCHEMA.NAME, made if missing; letters keep their case."),
    ] = "node_vectors",
    graph: Annotated[
        Path | None, typer.Option(metavar="EDGES", help="Embed this network in place of the fitted one.")
    ] = None,
    features: GraphFeatures = None,
    index: Annotated[
        bool, typer.Option(help="Make an HNSW index for cosines, if there is none; or make none.")
    ] = True,
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Delete the rows of nodes that are not exported.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    how: Reading,
) -> None:
    """Write vectors into a PostgreSQL table that pgvector searches: all of them, or nothing.

    Existing nodes are updated, new ones added.

    Example: spine export model --to postgresql://ann@localhost/app --table people
    """
    from spinegraph.apps.postgres import connect, model_fingerprint

    with shown_progress(quiet=quiet) as report:
        report("connecting", 0, 0)
        with connect(to, table) as database:  # before the work of making vectors
            report("making vectors", 0, 0)
            nodes = ModelNodes.open(model, graph, features, how)
            written = database.write(
                nodes.embeddings,
                model_fingerprint(nodes.model),
                index=index,
                delete_missing=delete_missing,
                progress=report,
            )
    if json:
        print_json({**asdict(written), "seconds": round(written.seconds, 3)})
    elif not quiet:
        _print_export(written)


def _print_export(written: "Written") -> None:
    """Print what was written, and a query to begin with."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(written.table)}[/bold] in {escape(written.to)}", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("  vectors", f"{written.nodes:,} of {written.type}")
    grid.add_row(
        "  rows",
        f"{written.inserted:,} added, {written.updated:,} changed, {written.unchanged:,} unchanged, "
        f"{written.deleted:,} deleted",
    )
    grid.add_row("  index", _INDEX[written.index])
    grid.add_row("  time", f"{written.seconds:.1f} s")
    console.print(grid)
    for note in written.notes:
        console.print(f"  note: {note}", markup=False, soft_wrap=True)
    console.print("\n[bold]Ten nodes most like a node[/bold]")
    for line in (
        f"SELECT name FROM {written.table} WHERE name <> NODE ORDER BY embedding <=>",
        f"(SELECT embedding FROM {written.table} WHERE name = NODE) LIMIT 10",
    ):
        console.print(f"  {line}", markup=False, soft_wrap=True)
