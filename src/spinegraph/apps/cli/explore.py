"""``spine explore``: the explorer of a model in the browser."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spinegraph.apps.cli.options import Quiet, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.apps.cli.serve import Edges, Features, Labels, Model, Port, known_labels, load


@takes(how=reading)
def explore(
    model: Model,
    graph: Edges = None,
    features: Features = None,
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
    """Walk through a network in the browser: the map, roles, twins, and nodes that might join.

    Example: spine explore model
    """
    import tempfile

    from spinegraph.apps.server.app import run

    def on_start(about: dict[str, Any]) -> None:
        if not quiet:
            typer.echo(f"{about['nodes']:,} nodes at {about['url']}; stop with Ctrl+C")
        if browser:
            import webbrowser

            webbrowser.open(about["url"])

    loaded, base = load(model, graph, features, how)
    with tempfile.TemporaryDirectory(prefix="spine-") as folder:
        kept = Path(folder) if store is None else store
        run(loaded, base, kept, labels=known_labels(labels, base), port=port, on_start=on_start)
