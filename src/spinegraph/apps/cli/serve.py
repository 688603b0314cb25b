"""``spine serve``: the service over HTTP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli.options import Json, Quiet, takes
from spinegraph.apps.cli.reading import Reading, reading

if TYPE_CHECKING:
    from spinegraph.estimator import SPINE
    from spinegraph.graph.graph import Graph


Model = Annotated[Path, typer.Argument(help="A folder that fit or SPINE.save wrote.")]
Edges = Annotated[
    Path | None, typer.Option("--graph", help="Edges to start from; the model's own if left out.")
]
Features = Annotated[Path | None, typer.Option(help="With --graph: its node features.")]
Labels = Annotated[Path | None, typer.Option(help="A table of names and labels, for the map.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")]


@takes(how=reading)
def serve(
    model: Model,
    store: Annotated[Path, typer.Option(help="Folder that keeps what is added and removed.")],
    graph: Edges = None,
    features: Features = None,
    labels: Labels = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File that holds the token; one is made in the store if left out.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=1e-6, max=0.5, help="How far a node may move before its vector is computed anew."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    how: Reading,
) -> None:
    """Serve a model over HTTP: new nodes get vectors, look-alikes and reasons without retraining.

    Example: spine serve model --store changes
    """
    from spinegraph.apps.server.app import run

    loaded, base = load(model, graph, features, how)
    run(
        loaded,
        base,
        store,
        labels=known_labels(labels, base),
        host=host,
        port=port,
        token_file=token_file,
        tolerance=tolerance,
        on_start=lambda about: _tell(about, json=json, quiet=quiet),
    )


def load(folder: Path, edges: Path | None, features: Path | None, how: Reading) -> "tuple[SPINE, Graph]":
    """Load a model, and the graph to serve: that of a file, or the one it was fitted on."""
    from spinegraph.errors import ParameterError
    from spinegraph.estimator import SPINE
    from spinegraph.graph.graph import Graph

    model = SPINE.load(folder)
    if edges is not None:
        return model, how.network(edges, features, model.table_encoder_)
    if not isinstance(model.graph_, Graph):
        what = "without its network" if model.graph_ is None else "with several networks"
        raise ParameterError(
            f"{folder}: the model was saved {what}; "
            "pass --graph EDGES, and --features FILE if it reads features"
        )
    return model, model.graph_


def known_labels(file: Path | None, graph: "Graph") -> Any:
    """Return the labels of a graph's nodes as text, None where unknown; None without a file."""
    from spinegraph.apps.cli.reading import read_known

    return None if file is None else read_known(file, graph.names)


def _tell(about: dict[str, Any], *, json: bool, quiet: bool) -> None:
    if json:
        from json import dumps

        typer.echo(dumps(about))
    elif not quiet:
        typer.echo(
            f"{about['nodes']:,} nodes at {about['url']}\n"
            f"to write, send the token in {about['token_file']}; stop with Ctrl+C"
        )
