"""``spine similar``: look-alikes of a node, or of every node."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from spinegraph.apps.cli.model_nodes import ModelNodes


class By(StrEnum):
    """What makes nodes alike."""

    embedding = "embedding"
    structure = "structure"
    both = "both"


def similar(
    model: Annotated[Path, typer.Argument(help="A folder that fit or SPINE.save wrote.")],
    node: Annotated[
        str | None, typer.Argument(help="A node's name; 1:ann is ann of the second network.")
    ] = None,
    by: Annotated[
        By, typer.Option(help="Vectors, roles (the shape of the links around a node), or high in both.")
    ] = By.embedding,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many.")] = 10,
    every: Annotated[bool, typer.Option("--all", help="Of every node, into a file.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="With --all: a .csv or .parquet file, - to print CSV."),
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Edges of another network to search in.")] = None,
    features: Annotated[Path | None, typer.Option(help="With --graph: its node features.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Names and scores alone, no progress.")
    ] = False,
) -> None:
    """Find the nodes most like a node, with reasons; or those of every node.

    Example: spine similar model ann --by both -n 5
    """
    if (node is None) != every:
        raise typer.BadParameter("pass one NODE, or --all for every node", param_hint="NODE")
    if every != (output is not None):
        raise typer.BadParameter("--all and --output FILE belong together", param_hint="--output")
    from spinegraph.apps.cli.model_nodes import ModelNodes

    nodes = ModelNodes.open(model, graph, features)
    if every:
        _write_all(nodes, by, count, str(output), quiet=quiet, json=json)
        return
    from spinegraph.apps.cli.similar_view import Similar, print_similar

    name = nodes.find(str(node))
    # One question does not pay for an index.
    matches = _searching(nodes, by, exact=True).similar(name, count)
    found = Similar.of(nodes, name, by.value, matches, reasons=not quiet)
    if json:
        from json import dumps

        typer.echo(dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        print_similar(found)


def _searching(nodes: "ModelNodes", by: By, *, exact: bool | None = None) -> Any:
    from spinegraph.analysis.search import Search, StructuralSearch
    from spinegraph.analysis.search_both import TwofoldSearch

    if by is By.embedding:
        return Search(nodes.embeddings, exact=exact)
    profile = nodes.model.generator_.inputs.profile(nodes.graph)
    roles = StructuralSearch(nodes.graph, profile, exact=exact)
    return roles if by is By.structure else TwofoldSearch(Search(nodes.embeddings, exact=True), roles)


def _write_all(nodes: "ModelNodes", by: By, count: int, output: str, *, quiet: bool, json: bool) -> None:
    from contextlib import nullcontext

    from spinegraph.apps.cli.output_file import require_output
    from spinegraph.apps.cli.progress import shown_progress
    from spinegraph.apps.cli.similar_file import ENDINGS, write_neighbors

    require_output(output, ENDINGS, "look-alikes")
    with nullcontext() if quiet else shown_progress() as report:
        if report is not None:
            report("preparing the search", 0, 0)
        search = _searching(nodes, by)
        progress = None if report is None else lambda done, total: report("searching", done, total)
        found = search.neighbors(n=count, progress=progress)
        recall = 1.0 if search.exact or by is By.both else search.recall(count)
    write_neighbors(output, nodes.graph.names, found)
    if json or quiet:
        if json:
            from json import dumps

            about = {
                "output": output,
                "nodes": len(nodes.graph),
                "n": found.positions.shape[1],
                "by": by.value,
            }
            typer.echo(dumps({**about, "exact": search.exact, "recall": recall}), err=output == "-")
        return
    how = "every node compared with every other"
    if not search.exact:
        how = f"{100 * recall:.1f} % of the true nearest found, measured on a sample of nodes"
        how = "each compared with the 2,048 nodes of most like profiles" if by is By.both else how
    typer.echo(
        f"{found.positions.shape[1]} nodes like each of {len(nodes.graph):,}; {how}", err=output == "-"
    )
