"""``spine explain``: why two nodes are alike, or not."""

from pathlib import Path
from typing import Annotated

import typer


def explain(
    model: Annotated[Path, typer.Argument(help="A folder that fit or SPINE.save wrote.")],
    a: Annotated[str, typer.Argument(help="A node's name; 1:ann is ann of the second network.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write words and figures to this file; it opens offline.")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Edges of another network that holds the nodes.")] = None,
    features: Annotated[Path | None, typer.Option(help="With --graph: its node features.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the words alone.")] = False,
) -> None:
    """Say why two nodes are alike, or not: in words first, then in numbers.

    Example: spine explain model ann bob --html why.html
    """
    from spinegraph.analysis.explain import explain as explained
    from spinegraph.apps.cli.model_nodes import ModelNodes

    nodes = ModelNodes.open(model, graph, features)
    first, second = nodes.find(a), nodes.find(b)
    generator = nodes.model.generator_
    found = explained(
        nodes.graph,
        generator,
        first,
        second,
        embeddings=nodes.embeddings,
        profile=generator.inputs.profile(nodes.graph),
    )
    if html is not None:
        from spinegraph.apps.cli.explain_html import write_page

        write_page(found, html)
    if json:
        from json import dumps

        typer.echo(dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    from spinegraph.apps.cli.explain_view import print_explanation

    print_explanation(found, words_only=quiet)
    if html is not None and not quiet:
        typer.echo(f"Figures: {html}")
