"""``spine explain``: why two nodes are alike, or not."""

from html import escape as html_escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.bar import Bar
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spinegraph.apps.cli.options import GraphFeatures, Json, Model, Weights, plain_table, print_json, takes
from spinegraph.apps.cli.reading import ModelNodes, Reading

if TYPE_CHECKING:
    from spinegraph.analysis.explain import Explanation
    from spinegraph.graph.graph import GraphLike

_WIDTH = 100
_BAR = 28  # characters of a bar
_COLUMNS = 6  # shown at most
_COLORS = {"content": "cyan", "place": "green", "role": "magenta"}
_MEANING = (
    "Similarity is the mean of the cosines of the vectors' parts, which add up to it: <b>content</b> is "
    "what the two and the nodes around them are about, <b>place</b> where in the training network they "
    "live, <b>role</b> the shape of the links around them. A profile is how a walk that keeps going back "
    "to its start spends its time, largest share first."
)


@takes(how=Reading)
def explain(
    model: Model,
    a: Annotated[str, typer.Argument(help="A node's name; 1:ann is ann of the second network.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write words and figures to this file; it opens offline.")
    ] = None,
    weights: Weights = None,
    graph: Annotated[Path | None, typer.Option(help="Edges of another network that holds the nodes.")] = None,
    features: GraphFeatures = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the words alone.")] = False,
    *,
    how: Reading,
) -> None:
    """Explain why two nodes are alike, or not: in words first, then in numbers.

    Example: spine explain model ann bob --html why.html
    """
    from spinegraph.analysis.explain import explain as explain_nodes

    nodes = ModelNodes.open(model, graph, features, how)
    first, second, generator = nodes.find(a), nodes.find(b), nodes.model.generator_
    found = explain_nodes(
        nodes.graph,
        generator,
        first,
        second,
        embeddings=nodes.embeddings,
        profile=generator.profile(nodes.graph),
        weights=weights,
    )
    if html is not None:
        _write_page(found, nodes.graph, [first, second], html)
    if json:
        print_json(found.to_json())
        return
    _print_explanation(found, words_only=quiet)
    if html is not None and not quiet:
        typer.echo(f"Figures: {html}")


def _print_explanation(found: "Explanation", *, words_only: bool) -> None:
    """Print an explanation: words first, then numbers."""
    console = Console(highlight=False)
    console.width = min(console.width, _WIDTH)
    if words_only:
        for sentence in found.words:
            console.print(escape(sentence))
        return
    first, *more = (sentence.replace(" %", "\u00a0%") for sentence in found.words)
    console.print(Text(f"{first}\n", style="bold"))
    for sentence in more:
        console.print(Padding(Text(sentence), (0, 0, 1, 2)))
    shared, apart = _column_tables(found)
    for title, body in (
        ("Where the similarity comes from", _parts_table(found)),
        ("What makes them alike", shared),
        ("What sets them apart", apart),
        ("Side by side", _numbers_table(found)),
    ):
        if body.row_count:
            console.print(f"[bold]{title}[/bold]")
            console.print(Padding(body, (0, 0, 1, 2), expand=False))


def _parts_table(found: "Explanation") -> Table:
    table = plain_table("", "cosine", "weight", "adds", "", align="lrrrl", header_style="dim")
    for part in found.parts:
        color = _COLORS.get(part.name, "white")
        bar = Bar(1, 0, max(part.share, 0), width=_BAR, color=color)
        cosine = "zero" if any(part.is_zero) else f"{part.cosine:.3f}"
        share = f"{round(part.share, 3) + 0.0:.3f}"  # no -0.000
        table.add_row(Text(part.name, style=color), cosine, f"{part.weight:g}", share, bar)
    table.add_row("together", "", "", f"{found.similarity:.3f}", "", style="bold")
    return table


def _column_tables(found: "Explanation") -> tuple[Table, Table]:
    """Return the columns that make two nodes alike, and those that set them apart."""
    from spinegraph.analysis.explain import column_title

    alike, apart = found.columns.shared(_COLUMNS), found.columns.apart(_COLUMNS)
    largest = max([*(column.alike for column in alike), *(column.apart for column in apart), 1e-9])
    tables = (
        plain_table("", "adds", "", align="lrl", header_style="dim"),
        plain_table("", "takes", "", "more of it at", align="lrll", header_style="dim"),
    )
    for column in alike:
        color = _COLORS["role" if column.is_structural else "content"]
        bar = Bar(largest, 0, column.alike, width=_BAR, color=color)
        tables[0].add_row(escape(column_title(column.name)), f"{column.alike:.3f}", bar)
    for column in apart:
        more = found.a.name if column.values[0] > column.values[1] else found.b.name
        bar = Bar(largest, 0, column.apart, width=_BAR, color="yellow")
        tables[1].add_row(escape(column_title(column.name)), f"{column.apart:.3f}", bar, escape(more))
    return tables


def _numbers_table(found: "Explanation") -> Table:
    from spinegraph.analysis.explain import percent

    nodes = found.a, found.b
    table = plain_table("", *(escape(node.name) for node in nodes), header_style="dim")
    table.add_row("neighbours", *(f"{node.degree:,}" for node in nodes))
    for hop in range(2, len(found.a.hops) + 1):
        table.add_row(f"nodes within {hop} links", *(f"{node.hops[hop - 1]:,}" for node in nodes))
    linked = (percent(node.clustering) if node.degree > 1 else "-" for node in nodes)
    table.add_row("pairs of neighbours that are linked", *linked)
    around = (f"{node.neighbor_degree:.1f}" if node.degree else "-" for node in nodes)
    table.add_row("neighbours of a neighbour, typically", *around)
    return table


def _write_page(found: "Explanation", graph: "GraphLike", nodes: list[Any], path: Path) -> None:
    """Write the words, tables and figures of an explanation as one HTML page, whole or not at all."""
    from plotly.io import to_html

    from spinegraph.analysis import plots
    from spinegraph.analysis.explain import column_title, titled
    from spinegraph.atomic import whole_file
    from spinegraph.graph.describe import html_table

    style = f"""
body {{ font: 16px/1.55 {plots.FONT}; color: {plots.INK}; max-width: 60rem; margin: 2.5rem auto; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; }} h2 {{ font-size: 1.1rem; margin: 2rem 0 0; }}
table {{ margin: .5rem 0 1.5rem; }} footer {{ color: {plots.QUIET}; font-size: .85rem; }}
"""
    alike, apart = found.columns.shared(_COLUMNS), found.columns.apart(_COLUMNS)
    adds = [(column_title(column.name), f"{column.alike:.3f}") for column in alike]
    takes_away = [(column_title(column.name), f"{column.apart:.3f}") for column in apart]
    figures = {
        "The network around each": plots.twins(graph, *nodes),
        "Profiles, matched step by step": plots.profile_curves([found.a.name, found.b.name], found.profiles),
    }
    title = html_escape(f"Why {titled(found.a.name)} and {titled(found.b.name)} are alike, or not")
    body = [
        f"<h1>{title}</h1>{found._repr_html_()}",
        html_table("What makes them alike", adds, ("column", "adds")),
        html_table("What sets them apart", takes_away, ("column", "takes")),
    ]
    for number, (heading, figure) in enumerate(figures.items()):
        drawn = to_html(
            figure, include_plotlyjs=not number, full_html=False, config={"displayModeBar": False}
        )
        body.append(f"<h2>{heading}</h2>{drawn}")
    body.append(f"<footer>{_MEANING}</footer>")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f"<body>{''.join(body)}</body></html>"
    )
    with whole_file(path) as partial:
        partial.write_text(page, encoding="utf-8")
