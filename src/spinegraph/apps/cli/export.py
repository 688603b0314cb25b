"""``spine export``: a model's vectors in a database."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spinegraph.apps.cli.options import Json, Quiet, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.apps.postgres import Written

if TYPE_CHECKING:
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE


_INDEX = {"made": "HNSW by cosine, made now", "kept": "HNSW by cosine, kept", "none": "none made"}


def export_facts(written: Written) -> dict[str, Any]:
    """Return what was written, as JSON holds it."""
    return {**asdict(written), "seconds": round(written.seconds, 3), "notes": list(written.notes)}


def print_export(written: Written, console: Console | None = None) -> None:
    """Print what was written, and a query to begin with."""
    console = console or Console(highlight=False)
    console.print(f"[bold]{escape(written.table)}[/bold] in {escape(written.to)}", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("  vectors", f"{written.nodes:,} of {written.type}")
    grid.add_row(
        "  rows",
        f"{written.inserted:,} added, {written.updated:,} changed, {written.unchanged:,} as they were, "
        f"{written.deleted:,} deleted",
    )
    grid.add_row("  index", _INDEX[written.index])
    grid.add_row("  took", f"{written.seconds:.1f} s")
    console.print(grid)
    for note in written.notes:
        console.print(f"  note: {note}", markup=False, soft_wrap=True)
    console.print("\n[bold]Ten look-alikes of a node[/bold]")
    for line in (
        f"SELECT name FROM {written.table} WHERE name <> NODE ORDER BY embedding <=>",
        f"(SELECT embedding FROM {written.table} WHERE name = NODE) LIMIT 10",
    ):
        console.print(f"  {line}", markup=False, soft_wrap=True)


@takes(how=reading)
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that fit wrote.")],
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
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --graph: its node features.")
    ] = None,
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

    Nodes that are there are updated, others added.

    Example: spine export model --to postgresql://ann@localhost/app --table people
    """
    from spinegraph.apps.cli.options import shown_progress
    from spinegraph.apps.postgres import database, model_fingerprint

    with shown_progress(quiet=quiet) as report:
        report("connecting", 0, 0)
        with database(to, table) as place:  # before the work of making vectors
            report("making vectors", 0, 0)
            fitted, vectors = _vectors(model, graph, features, how)
            written = place.write(
                vectors, model_fingerprint(fitted), index=index, delete_missing=delete_missing, told=report
            )
    if json:
        from json import dumps

        typer.echo(dumps(export_facts(written), indent=2, ensure_ascii=False))
    elif not quiet:
        print_export(written)


def _vectors(
    folder: Path, graph: Path | None, features: Path | None, how: Reading
) -> "tuple[SPINE, Embeddings]":
    if graph is None:
        from spinegraph.apps.cli.reading import ModelNodes

        nodes = ModelNodes.open(folder, None, features)
        return nodes.model, nodes.embeddings
    from spinegraph.estimator import SPINE

    fitted = SPINE.load(folder)
    return fitted, fitted.transform(how.network(graph, features, fitted.table_encoder_))
