"""``spine explore``: the explorer of a model in the browser."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from spinegraph.apps.cli.options import GraphFeatures, Model, Quiet, takes
from spinegraph.apps.cli.reading import Reading
from spinegraph.apps.cli.serve import Edges, Labels, Port, run_server


@takes(how=Reading)
def explore(
    model: Model,
    graph: Edges = None,
    features: GraphFeatures = None,
    labels: Labels = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder that keeps changes; by default none are kept.")
    ] = None,
    port: Port = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    quiet: Quiet = False,
    *,
    how: Reading,
) -> None:
    """Explore a network in the browser: the map, roles, twins, and nodes that might join.

    Example: spine explore model
    """

    def on_start(about: dict[str, Any]) -> None:
        if not quiet:
            typer.echo(f"{about['nodes']:,} nodes at {about['url']}; stop with Ctrl+C")
        if browser:
            import webbrowser

            webbrowser.open(about["url"])

    with TemporaryDirectory(prefix="spine-") as folder:
        run_server(
            model, graph, features, labels, how, store=store or Path(folder), port=port, on_start=on_start
        )
