"""``spine data``: what files hold."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spinegraph.apps.cli.options import Json, takes
from spinegraph.apps.cli.reading import Reading, reading

app = typer.Typer(help="Look at network files.", no_args_is_help=True, add_completion=False)


@app.callback()
def _data() -> None:
    pass


@app.command()
@takes(how=reading)
def describe(
    file: Annotated[Path, typer.Argument(help="Edges: CSV, TSV, white space, Parquet, npz or GraphML.")],
    features: Annotated[Path | None, typer.Option(help="Node features: npz, npy, CSV, Parquet.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Node labels: a table of names and labels.")] = None,
    json: Json = False,
    *,
    how: Reading,
) -> None:
    """Say what was understood of a network file: nodes, edges, pieces, degrees, features, labels.

    Example: spine data describe edges.csv --features people.parquet
    """
    from spinegraph.apps.cli.describe_view import print_description
    from spinegraph.graph.describe import describe as describe_graph
    from spinegraph.graph.files.labels import read_labels

    contents = how.contents(file, features)
    graph = how.graph(contents)
    known = contents.labels if labels is None else read_labels(labels, graph.names)
    found = describe_graph(graph, known)
    if json:
        from json import dumps

        typer.echo(dumps({"file": contents.path, "understood": contents.notes, **asdict(found)}, indent=2))
    else:
        print_description(contents, graph, found)
