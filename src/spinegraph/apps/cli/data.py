"""``spine data``: what files hold, and stores made of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from spinegraph.apps.cli.options import Json, Quiet, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.graph.describe import DegreeBin, Description, LabelSummary
from spinegraph.graph.edge_files import FileContents
from spinegraph.graph.graph import Graph

_BAR = 32
_MOST_LABELS = 12


def print_description(
    contents: FileContents, graph: Graph, found: Description, console: Console | None = None
) -> None:
    """Print what was understood of a file, a table of its numbers and its degrees as bars."""
    console = console or Console(highlight=False)
    console.print(f"[bold]{escape(contents.path)}[/bold]", soft_wrap=True)
    for note in contents.notes:
        console.print(f"  {escape(note)}", style="dim", soft_wrap=True)
    if graph.report is not None and str(graph.report):
        console.print(f"  {escape(str(graph.report))}", style="dim", soft_wrap=True)
    console.print()
    numbers = Table.grid(padding=(0, 2))
    numbers.add_column(style="bold")
    numbers.add_column()
    for title, text in _numbers(found):
        numbers.add_row(title, escape(text))
    console.print(Padding(numbers, (0, 0, 1, 2), expand=False))
    console.print(Padding(_bars(found.degrees), (0, 0, 0, 2), expand=False))


def _numbers(found: Description) -> Iterator[tuple[str, str]]:
    yield "nodes", f"{found.nodes:,}"
    yield "edges", f"{found.edges:,}"
    yield "weights", "none" if found.weights is None else f"{found.weights[0]:.6g} to {found.weights[1]:.6g}"
    yield "components", _components(found)
    yield "isolated", f"{found.isolated:,}"
    best = f" (node {found.best_connected})" if found.degree_largest else ""
    degree = f"median {found.degree_median:g}, mean {found.degree_mean:.2f}, largest {found.degree_largest:,}"
    yield "degree", degree + best
    if found.features is None:
        yield "features", "none"
    else:
        parts = found.features
        text = f"{parts.columns:,} columns, {parts.kind}, {100 * parts.density:.3g} % not zero"
        yield "features", text + (f"; {parts.empty_rows:,} nodes have none" if parts.empty_rows else "")
    yield "labels", "none" if found.labels is None else _labels(found.labels)


def _components(found: Description) -> str:
    if found.components == 1:
        return "1"
    share = 100 * found.largest_component / found.nodes
    return f"{found.components:,}; the largest has {found.largest_component:,} nodes ({share:.1f} %)"


def _labels(found: LabelSummary) -> str:
    shown = ", ".join(f"{label} ({count:,})" for label, count in found.counts[:_MOST_LABELS])
    more = f" and {len(found.counts) - _MOST_LABELS} more" if len(found.counts) > _MOST_LABELS else ""
    several = ", several a node" if found.several_per_node else ""
    without = f"; {found.unlabelled:,} nodes have none" if found.unlabelled else ""
    return f"{len(found.counts)}{several}: {shown}{more}{without}"


def _bars(degrees: Sequence[DegreeBin]) -> Table:
    bars = Table.grid(padding=(0, 2))
    bars.add_column(justify="right")
    bars.add_column(justify="right")
    bars.add_column()
    bars.add_row("degree", "nodes", "", style="bold")
    most = max(part.nodes for part in degrees)
    for part in degrees:
        degree = f"{part.low:,}" if part.low == part.high else f"{part.low:,}-{part.high:,}"
        bars.add_row(degree, f"{part.nodes:,}", _bar(part.nodes / most))
    return bars


def _bar(share: float) -> str:
    """Return a bar in eighths of a character, at least a sliver for what is not 0."""
    eighths = max(round(8 * _BAR * share), 1 if share else 0)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)

app = typer.Typer(
    help="Look at network files, and build stores of them.", no_args_is_help=True, add_completion=False
)


@app.callback()
def _data() -> None:
    pass


@app.command()
@takes(how=reading)
def describe(
    file: Annotated[
        Path, typer.Argument(help="Edges: CSV, TSV, white space, Parquet, npz or GraphML; or a store.")
    ],
    features: Annotated[Path | None, typer.Option(help="Node features: npz, npy, CSV, Parquet.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Node labels: a table of names and labels.")] = None,
    json: Json = False,
    *,
    how: Reading,
) -> None:
    """Say what was understood of a network file: nodes, edges, pieces, degrees, features, labels.

    Example: spine data describe edges.csv --features people.parquet
    """
    from spinegraph.graph.describe import describe as describe_graph
    from spinegraph.graph.feature_files import read_labels

    contents, graph = _opened(file, features, how)
    known = contents.labels if labels is None else read_labels(labels, graph.names)
    found = describe_graph(graph, known)
    if json:
        from json import dumps

        typer.echo(dumps({"file": contents.path, "understood": contents.notes, **asdict(found)}, indent=2))
    else:
        print_description(contents, graph, found)


@app.command()
@takes(how=reading)
def build(
    edges: Annotated[
        Path, typer.Argument(metavar="EDGES", help="CSV, TSV, white space or Parquet, of any size.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="The store's folder.")],
    features: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Node features; Parquet of numbers may be of any size."),
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory to work with, such as 500M or 8G.")
    ] = "2G",
    json: Json = False,
    quiet: Quiet = False,
    *,
    how: Reading,
) -> None:
    """Build a store: a network on disk that may be larger than memory, for every command that reads networks.

    A build that was stopped goes on when the same command is run again.

    Example: spine data build edges.csv -o network.store --memory 2G
    """
    from spinegraph.apps.cli.options import shown_progress
    from spinegraph.graph.store_build import build_store

    room, options = _bytes(memory), how.build_options()
    with shown_progress(quiet=quiet) as report:
        graph = build_store(edges, output, features=features, memory=room, progress=report, **options)
    _say(graph, output, json=json, quiet=quiet)


@app.command()
def check(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A folder that build made.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read a store through once: every checksum, and every rule that its content has to keep.

    Example: spine data check network.store
    """
    from spinegraph.graph.store import open_store

    _say(open_store(store, verify=True), store, json=json, quiet=quiet)


def _say(graph: "Graph", store: Path, *, json: bool, quiet: bool) -> None:
    size = sum(file.stat().st_size for file in store.iterdir())
    facts = {
        "store": str(store),
        "nodes": len(graph),
        "edges": graph.num_edges,
        "features": graph.num_features,
    }
    if json:
        from json import dumps

        report = None if graph.report is None else asdict(graph.report)
        typer.echo(
            dumps({**facts, "weighted": graph.weights is not None, "bytes": size, "report": report}, indent=2)
        )
    elif not quiet:
        features = f", {graph.num_features:,} features" if graph.has_features else ""
        typer.echo(
            f"{store}: {len(graph):,} nodes, {graph.num_edges:,} edges{features}, {size / 1e6:,.1f} MB"
        )


def _opened(file: Path, features: Path | None, how: Reading) -> "tuple[FileContents, Graph]":
    """Return what a file or a store holds, and its graph."""
    from spinegraph.graph.edge_files import FileContents
    from spinegraph.graph.store import is_store

    if not is_store(file):
        contents = how.contents(file, features)
        return contents, how.graph(contents)
    graph = how.network(file, features)
    note = "a store" if graph.report is None else f"a store; {graph.report}"
    return FileContents(str(file), graph.names, graph.indices[:0], notes=(note,)), graph


def _bytes(text: str) -> int:
    """Return a size such as 500M or 2G in bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"expected a size such as 500M or 2G; got {text!r}", param_hint="--memory")
    return int(float(found[1]) * _UNITS[found[2].upper()])
