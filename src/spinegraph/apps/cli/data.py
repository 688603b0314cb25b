"""``spine data``: what files hold."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Missing(StrEnum):
    """What becomes of nodes without features."""

    error = "error"
    zero = "zero"


class Extra(StrEnum):
    """What becomes of features without a node."""

    error = "error"
    isolated = "isolated"


class Reciprocal(StrEnum):
    """How two directions of unequal weight become one edge."""

    error = "error"
    sum = "sum"
    mean = "mean"
    max = "max"


app = typer.Typer(help="Look at network files.", no_args_is_help=True, add_completion=False)


@app.callback()
def _data() -> None:
    pass


@app.command()
def describe(
    file: Annotated[Path, typer.Argument(help="Edges: CSV, TSV, white space, Parquet, npz or GraphML.")],
    features: Annotated[Path | None, typer.Option(help="Node features: npz, npy, CSV, Parquet.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Node labels: a table of names and labels.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Source, target and perhaps weight, such as who,whom or 0,1,2.")
    ] = None,
    weighted: Annotated[
        bool | None, typer.Option("--weighted/--unweighted", help="Read weights, or leave them out.")
    ] = None,
    header: Annotated[bool | None, typer.Option(help="Whether the first line is titles.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="What parts the fields.")] = None,
    num_nodes: Annotated[int | None, typer.Option(help="Nodes are 0 .. this number - 1.")] = None,
    missing: Annotated[Missing, typer.Option(help="Nodes without features.")] = Missing.error,
    extra: Annotated[Extra, typer.Option(help="Features without a node.")] = Extra.error,
    reciprocal: Annotated[
        Reciprocal, typer.Option(help="Two directions of unequal weight.")
    ] = Reciprocal.error,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what was understood of a network file: nodes, edges, pieces, degrees, features, labels.

    Example: spine data describe edges.csv --features people.parquet
    """
    from spinegraph.apps.cli.describe_view import print_description
    from spinegraph.graph.describe import describe as describe_graph
    from spinegraph.graph.files.columns import EdgeOptions
    from spinegraph.graph.files.labels import read_labels
    from spinegraph.graph.read import build_graph, read_joined

    options = EdgeOptions(_columns(columns), weighted, header, delimiter, num_nodes=num_nodes)
    contents = read_joined(file, features, options, missing=missing.value, extra=extra.value)
    graph = build_graph(contents, reciprocal=reciprocal.value)
    known = contents.labels if labels is None else read_labels(labels, graph.names)
    found = describe_graph(graph, known)
    if json:
        _print_json({"file": contents.path, "understood": contents.notes, **asdict(found)})
    else:
        print_description(contents, graph, found)


def _columns(text: str | None) -> tuple[str | int, ...] | None:
    if text is None:
        return None
    return tuple(int(part) if part.strip().isdecimal() else part.strip() for part in text.split(","))


def _print_json(value: dict[str, Any]) -> None:
    import json

    typer.echo(json.dumps(value, indent=2))
