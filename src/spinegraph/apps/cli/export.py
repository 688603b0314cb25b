"""``spine export``: a model's vectors in a database."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spinegraph.apps.cli.options import Json, Quiet, takes
from spinegraph.apps.cli.reading import Reading, reading

if TYPE_CHECKING:
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE


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
    from spinegraph.apps.cli.export_view import export_facts, print_export
    from spinegraph.apps.cli.progress import shown_progress
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
        from spinegraph.apps.cli.model_nodes import ModelNodes

        nodes = ModelNodes.open(folder, None, features)
        return nodes.model, nodes.embeddings
    from spinegraph.estimator import SPINE

    fitted = SPINE.load(folder)
    return fitted, fitted.transform(how.network(graph, features, fitted.table_encoder_))
