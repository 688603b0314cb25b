"""``spine serve`` and ``spine explore``: the service over HTTP, and its page in the browser."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import LabelColumn, Network, read_known

Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")]


@dataclass(frozen=True)
class Files(Network):
    """The files of a network, as both commands take them."""

    labels: Annotated[Path | None, typer.Option(help="A table of names and labels, for the map.")] = None
    label_column: LabelColumn = None
    table: Annotated[
        Path | None, typer.Option(help="The nodes' table, to show every column as written, text too.")
    ] = None


@cli.takes(files=Files)
def serve(
    model: cli.Model,
    store: Annotated[Path, typer.Option(help="Folder that keeps what is added and removed.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File that holds the token; one is made in the store if left out.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=1e-6, max=0.5, help="How far a node may move before its vector is updated."),
    ] = None,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    files: Files,
) -> None:
    """Serve a model over HTTP: new nodes get vectors, similar nodes and reasons without retraining.

    Example: spine serve model --store changes
    """

    def on_start(about: dict[str, Any]) -> None:
        if json:
            from json import dumps

            typer.echo(dumps(about))  # on one line, for programs that wait for it
        elif not quiet:
            typer.echo(
                f"{about['nodes']:,} nodes at {about['url']}\n"
                f"to write, send the token in {about['token_file']}; stop with Ctrl+C"
            )

    options = {"host": host, "port": port, "token_file": token_file, "tolerance": tolerance}
    _run_server(model, files, store=store, on_start=on_start, **options)


@cli.takes(files=Files)
def explore(
    model: cli.Model,
    store: Annotated[
        Path | None, typer.Option(help="Folder that keeps changes; by default none are kept.")
    ] = None,
    port: Port = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    quiet: cli.Quiet = False,
    *,
    files: Files,
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
        _run_server(model, files, store=store or Path(folder), port=port, on_start=on_start)


def _run_server(folder: Path, files: Files, **options: Any) -> None:
    """Serve a model until interrupted, from the network of a file or the one it was fitted on."""
    from spinegraph.apps.server.app import run

    nodes = files.open(folder, single=True)
    names, labels, table = nodes.graph.names, files.labels, files.table
    options["labels"] = None if labels is None else read_known(labels, names, files.label_column)
    run(nodes.model, nodes.graph, table=None if table is None else _read_table(table, names), **options)


def _read_table(path: Path, names: Any) -> Any:
    """Return the rows of a table for named nodes, in their order; a node without one has gaps."""
    import pyarrow as pa

    from spinegraph.errors import GraphFormatError
    from spinegraph.graph.feature_files import names_like, read_features
    from spinegraph.graph.names import NameIndex, as_names, first_few

    found = read_features(path)
    if not isinstance(found.data, pa.Table) or found.names is None:
        raise GraphFormatError(f"{found.path}: a table has titles and a column of names; pass CSV or Parquet")
    rows = NameIndex(as_names(names_like(names, found.names))).find(names)
    if (rows < 0).all():
        raise GraphFormatError(
            f"{found.path}: none of its names is a node of the graph; they look like "
            f"{first_few(found.names, 3)}, the graph's like {first_few(names, 3)}"
        )
    return found.data.take(pa.array(rows, mask=rows < 0))
