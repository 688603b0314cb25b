"""How ``spine data describe`` shows a graph in the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from spinegraph.graph.describe import DegreeBin, Description, LabelSummary
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.graph import Graph

_BAR = 32
_MOST_LABELS = 12


def print_description(
    contents: FileContents, graph: Graph, found: Description, console: Console | None = None
) -> None:
    """Print what was understood of a file, a table of its numbers and its degrees as bars.

    Examples
    --------
    >>> import numpy as np
    >>> from spinegraph.graph.describe import describe
    >>> graph = Graph.from_edges([(0, 1)])
    >>> contents = FileContents("tiny.csv", graph.names, np.array([[0, 1]]), notes=("commas",))
    >>> print_description(contents, graph, describe(graph), Console(width=60))
    tiny.csv
      commas
    ...
      nodes        2
      edges        1
    ...
    """
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
