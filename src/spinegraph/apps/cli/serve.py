"""``spine serve`` and ``spine explore``: the HTTP service, and its page in the browser."""

from dataclasses import dataclass
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import LabelColumn, Network, read_known

Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")]


@dataclass(frozen=True)
class Files(Network):
    """Options of both commands for the files of a network."""

    labels: Annotated[Path | None, typer.Option(help="A table of names and labels, for the map.")] = None
    label_column: LabelColumn = None
    table: Annotated[
        Path | None, typer.Option(help="The table of nodes, to show every column as written, including text.")
    ] = None


@cli.takes(files=Files)
def serve(
    model: cli.Model,
    store: Annotated[Path, typer.Option(help="Folder for changes to the network, created if missing.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token; by default one is created in the store.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=1e-6, max=0.5, help="How far a node's PageRank may drift before its vector is updated."
        ),
    ] = None,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    files: Files,
) -> None:
    """Serve a model over HTTP: vectors, similar nodes and reasons for new nodes, without retraining.

    Example: spine serve model --store changes
    """

    def on_start(about: dict[str, Any]) -> None:
        if json:
            typer.echo(dumps(about))  # as one line, for programs that wait for it
        elif not quiet:
            typer.echo(
                f"{about['nodes']:,} nodes at {about['url']}\n"
                f"to make changes, send the token in {about['token_file']}; stop with Ctrl+C"
            )

    options = {"host": host, "port": port, "token_file": token_file, "tolerance": tolerance}
    _run_server(model, files, store=store, on_start=on_start, **options)


@cli.takes(files=Files)
def explore(
    model: cli.Model,
    store: Annotated[Path | None, typer.Option(help="Folder for changes; without it none are kept.")] = None,
    port: Port = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    quiet: cli.Quiet = False,
    *,
    files: Files,
) -> None:
    """Explore a network in the browser: map, roles, twins, and what-if nodes.

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
    """Serve a model until interrupted, with the network given by --graph or the one it was fitted on."""
    from spinegraph.apps.server.app import run

    nodes = files.open(folder, single=True)
    names, labels, table = nodes.graph.names, files.labels, files.table
    column = files.arguments()["node_column"]
    options["labels"] = None if labels is None else read_known(labels, names, files.label_column, column)
    options["table"] = None if table is None else _read_table(table, names, column)
    run(nodes.model, nodes.graph, **options)


def _read_table(path: Path, names: Any, node_column: str | int | None) -> Any:
    """Return the rows of a table for named nodes, in their order; a node without a row gets gaps."""
    import pyarrow as pa

    from spinegraph.errors import GraphFormatError
    from spinegraph.graph.feature_files import read_features, row_names
    from spinegraph.graph.names import NameIndex

    found = read_features(path, node_column, names)
    if not isinstance(found.data, pa.Table) or found.names is None:
        raise GraphFormatError(f"{found.path}: expected a table with a header and names; pass CSV or Parquet")
    rows = NameIndex(row_names(found, names)).find(names)
    return found.data.take(pa.array(rows, mask=rows < 0))
