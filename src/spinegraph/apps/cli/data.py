"""``spine data``: describe network files, and build and check stores."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import LabelColumn, Reading, read_known
from spinegraph.errors import ParameterError

if TYPE_CHECKING:
    from spinegraph.graph.describe import Description
    from spinegraph.graph.edge_files import FileContents
    from spinegraph.graph.graph import Graph

_BAR = 32
_MAX_LABELS = 12
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)

app = typer.Typer(
    help="Describe network files, and build stores from them.", no_args_is_help=True, add_completion=False
)


@app.command()
@cli.takes(how=Reading)
def describe(
    file: Annotated[Path, typer.Argument(help="Edges: CSV, TSV, spaces, Parquet, npz, GraphML; or a store.")],
    features: Annotated[Path | None, typer.Option(help="Node features: npz, npy, CSV, Parquet.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Node labels: a table of names and labels.")] = None,
    label_column: LabelColumn = None,
    json: cli.Json = False,
    *,
    how: Reading,
) -> None:
    """Describe a network file: nodes, edges, components, degrees, features, labels.

    Example: spine data describe edges.csv --features people.parquet
    """
    from spinegraph.graph.describe import describe as describe_graph

    contents, graph = how.read(file, features, how.encoder())
    known = contents.labels
    if labels is not None:
        known = read_known(labels, graph.names, label_column, how.arguments()["node_column"])
    found = describe_graph(graph, known)
    if json:
        cli.print_json({"file": contents.path, "understood": contents.notes, **asdict(found)})
    else:
        _print_description(contents, graph, found)


@app.command()
@cli.takes(how=Reading)
def build(
    edges: Annotated[Path, typer.Argument(metavar="EDGES", help="CSV, TSV, spaces or Parquet of any size.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="The store's folder.")],
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Node features; Parquet may be of any size.")
    ] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory to use, such as 500M or 8G.")] = "2G",
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    how: Reading,
) -> None:
    """Build a store: a network on disk that may be larger than memory and works with every command.

    Example: spine data build edges.csv -o network.store --memory 2G
    """
    from spinegraph.graph.read import build_store

    size, options = _SIZE.fullmatch(memory.strip()), how.arguments()
    if size is None:
        raise typer.BadParameter(f"expected a size such as 500M or 2G; got {memory!r}", param_hint="--memory")
    if how.column:
        raise ParameterError("--column is for encoding features, but a store holds numbers; leave it out")
    options["memory"] = int(float(size[1]) * _UNITS[size[2].upper()])
    with cli.shown_progress(quiet=quiet) as report:
        graph = build_store(edges, output, features=features, progress=report, **options)
    _print_store(graph, output, json=json, quiet=quiet)


@app.command()
def check(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A store's folder, written by build.")],
    json: cli.Json = False,
    quiet: cli.Quiet = False,
) -> None:
    """Read a whole store, and verify every checksum and every rule of its content.

    Example: spine data check network.store
    """
    from spinegraph.graph.store import open_store

    _print_store(open_store(store, verify=True), store, json=json, quiet=quiet)


def _print_store(graph: "Graph", store: Path, *, json: bool, quiet: bool) -> None:
    size = sum(file.stat().st_size for file in store.iterdir())
    if json:
        facts: dict[str, Any] = {
            "store": str(store),
            "nodes": len(graph),
            "edges": graph.num_edges,
            "features": graph.num_features,
            "weighted": graph.weights is not None,
            "bytes": size,
            "report": None if graph.report is None else asdict(graph.report),
        }
        cli.print_json(facts)
    elif not quiet:
        features = f", {graph.num_features:,} features" if graph.has_features else ""
        counts = f"{len(graph):,} nodes, {graph.num_edges:,} edges{features}"
        typer.echo(f"{store}: {counts}, {size / 1e6:,.1f} MB")


def _print_description(contents: "FileContents", graph: "Graph", found: "Description") -> None:
    """Print how a file was read, its numbers, and its degrees as bars."""
    most = max(part.nodes for part in found.degrees)
    bars = [
        (
            f"{part.low:,}" if part.low == part.high else f"{part.low:,}-{part.high:,}",
            f"{part.nodes:,}",
            "█" * max(round(_BAR * part.nodes / most), 1) if part.nodes else "",
        )
        for part in found.degrees
    ]
    typer.echo("\n  ".join([contents.path, *contents.notes, *([str(graph.report)] if graph.report else [])]))
    typer.echo()
    cli.print_facts("", dict(_numbers(found)))
    cli.print_table("", ("degree", "nodes", ""), bars)


def _numbers(found: "Description") -> Iterator[tuple[str, str]]:
    yield "nodes", f"{found.nodes:,}"
    yield "edges", f"{found.edges:,}"
    yield "weights", "none" if found.weights is None else f"{found.weights[0]:.6g} to {found.weights[1]:.6g}"
    largest = f"the largest has {found.largest_component:,} nodes"
    share = f"({100 * found.largest_component / found.nodes:.1f} %)"
    yield "components", "1" if found.components == 1 else f"{found.components:,}; {largest} {share}"
    yield "isolated", f"{found.isolated:,}"
    best = f" (node {found.best_connected})" if found.degree_largest else ""
    degree = f"median {found.degree_median:g}, mean {found.degree_mean:.2f}, largest {found.degree_largest:,}"
    yield "degree", degree + best
    if found.features is None:
        yield "features", "none"
    else:
        parts = found.features
        text = f"{parts.columns:,} columns, {parts.kind}, {100 * parts.density:.3g} % not zero"
        yield "features", text + (f"; {parts.empty_rows:,} nodes have only zeros" if parts.empty_rows else "")
    if found.labels is None:
        yield "labels", "none"
        return
    counts = found.labels.counts
    shown = ", ".join(f"{label} ({count:,})" for label, count in counts[:_MAX_LABELS])
    more = f" and {len(counts) - _MAX_LABELS} more" if len(counts) > _MAX_LABELS else ""
    several = ", several per node" if found.labels.several_per_node else ""
    without = f"; {found.labels.unlabelled:,} nodes have none" if found.labels.unlabelled else ""
    yield "labels", f"{len(counts)}{several}: {shown}{more}{without}"
