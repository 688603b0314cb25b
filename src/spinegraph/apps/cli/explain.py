"""``spine explain``: why two nodes are alike, or not."""

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Network

if TYPE_CHECKING:
    from spinegraph.analysis.explain import Explanation
    from spinegraph.graph.graph import GraphLike


@cli.takes(how=Network)
def explain(
    model: cli.Model,
    a: Annotated[str, typer.Argument(metavar="A", help="A node; 1:ann is ann in the second network.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another node.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write words and figures to this file, which opens offline.")
    ] = None,
    weights: cli.Weights = None,
    json: cli.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the words only.")] = False,
    *,
    how: Network,
) -> None:
    """Explain why two nodes are alike, or not: in words first, then in numbers.

    Example: spine explain model ann bob --html why.html
    """
    from spinegraph.analysis.explain import explain as explain_nodes

    nodes = how.open(model)
    pair, generator = [nodes.find(a), nodes.find(b)], nodes.model.generator_
    found = explain_nodes(nodes.graph, generator, *pair, embeddings=nodes.embeddings, weights=weights)
    if html is not None:
        _write_page(found, nodes.graph, pair, html)
    if json:
        cli.print_json(found.to_json())
        return
    console = Console(highlight=False)
    first, *more = (sentence.replace(" %", "\u00a0%") for sentence in found.words)
    console.print(Text(first, style="" if quiet else "bold"))
    for sentence in more:
        console.print(Padding(Text(sentence), (0, 0, 0, 0) if quiet else (1, 0, 0, 2)))
    for heading, titles, rows in [] if quiet else found.tables():
        console.print()
        cli.print_table(heading, titles, rows)
    if html is not None and not quiet:
        typer.echo(f"Figures: {html}")


def _write_page(found: "Explanation", graph: "GraphLike", nodes: list[Any], path: Path) -> None:
    """Write the words, tables and figures of an explanation as one HTML page, whole or not at all."""
    from plotly.io import to_html

    from spinegraph.analysis import plots
    from spinegraph.analysis.explain import titled
    from spinegraph.atomic import whole_file

    drawn = to_html(plots.twins(graph, *nodes), full_html=False, config={"displayModeBar": False})
    title = escape(f"Why {titled(found.a.name)} and {titled(found.b.name)} are alike, or not")
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ font: 16px/1.55 {plots.FONT}; max-width: 60rem; margin: 2.5rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; }} h2 {{ font-size: 1.1rem; }} table {{ margin: .5rem 0 1.5rem; }}</style></head>
<body><h1>{title}</h1>{found._repr_html_()}
<h2>The network around each</h2>{drawn}</body></html>
"""
    with whole_file(path) as partial:
        partial.write_text(page, encoding="utf-8")
