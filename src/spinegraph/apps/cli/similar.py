"""``spine similar``: the nodes most like a node, or those of every node."""

from collections.abc import Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from spinegraph.apps.cli.options import (
    STANDARD_OUTPUT,
    GraphFeatures,
    Json,
    Model,
    Weights,
    plain_table,
    print_json,
    require_output,
    shown_progress,
    takes,
    write_table,
)
from spinegraph.apps.cli.reading import ModelNodes, Reading, given_options

if TYPE_CHECKING:
    from spinegraph.analysis.explain import Similar


@takes(how=Reading)
def similar(
    model: Model,
    node: Annotated[
        str | None, typer.Argument(help="A node's name; 1:ann is ann of the second network.")
    ] = None,
    by: Annotated[
        Literal["all", "content", "place", "role", "profile"],
        typer.Option(help="All parts of the vectors, one of them, or the profile (DTW distance)."),
    ] = "all",
    weights: Weights = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many.")] = 10,
    every: Annotated[bool, typer.Option("--all", help="Of every node, into a file.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="With --all: a .csv or .parquet file, - to print CSV."),
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Edges of another network to search in.")] = None,
    features: GraphFeatures = None,
    json: Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Names and scores alone, no progress.")
    ] = False,
    *,
    how: Reading,
) -> None:
    """Find the nodes most like a node, with reasons; or those of every node.

    Example: spine similar model ann --by role -n 5
    """
    if (node is None) != every:
        raise typer.BadParameter("pass one NODE, or --all for every node", param_hint="NODE")
    if every != (output is not None):
        raise typer.BadParameter("--all and --output FILE belong together", param_hint="--output")
    if weights is not None and by != "all":
        raise typer.BadParameter("is for all parts together; leave out --by", param_hint="--weights")
    from spinegraph.analysis.explain import shown
    from spinegraph.analysis.explain import similar as similar_nodes

    nodes = ModelNodes.open(model, graph, features, how)
    if output is not None:
        _write_all(nodes, by, weights, count, output, quiet=quiet, json=json)
        return
    name = nodes.find(str(node))
    found = similar_nodes(
        nodes.graph, nodes.model.generator_, nodes.embeddings, name, by=by, n=count, weights=weights
    )
    if json:
        print_json(found.to_json())
    elif quiet:
        for match in found:
            typer.echo(f"{match.score:.3f}  {shown(match.name)}")
    else:
        reading = [] if graph is None else ["--graph", str(graph)]
        reading += [] if features is None else ["--features", str(features)]
        print_similar(found, str(model), [*reading, *given_options(how)])


def print_similar(found: "Similar", model: str, reading: Sequence[str] = ()) -> None:
    """Print the nodes most like a node, most alike first; ``reading`` are options of the next command."""
    from spinegraph.analysis.explain import HOW, plural, shown, titled

    console = Console(highlight=False)
    what, score = HOW[found.by]
    console.print(f"[bold]Most like {escape(titled(shown(found.node)))}[/bold], by {what}")
    if not found.matches:
        console.print("  none: it is the only node")
        return
    own = found.reasons[0].a
    console.print(f"  {own.name} has {plural(own.degree, 'neighbour')}\n", style="dim", markup=False)
    titles, rows = found.rows()
    table = plain_table(*titles, align=f"rl{'r' * len(found.parts)}rrl", header_style="dim")
    table.columns[1].style = "bold"
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(Padding(table, (0, 0, 1, 2), expand=False))
    console.print(f"  {score}", style="dim")
    command = ["spine", "explain", model, shown(found.node), shown(found[0].name), *reading]
    console.print(f"  Next: {join(command)}", style="dim", markup=False, soft_wrap=True)


def _write_all(
    nodes: ModelNodes,
    by: str,
    weights: dict[str, float] | None,
    count: int,
    output: Path,
    *,
    quiet: bool,
    json: bool,
) -> None:
    """Write the nodes most like each node, and print how they were found."""
    import numpy as np

    from spinegraph.analysis.explain import plural, search_by, shown

    require_output(output, (".csv", ".parquet"), "similar nodes")
    with shown_progress(quiet=quiet) as report:
        report("preparing the search", 0, 0)
        vectors, generator = nodes.embeddings, nodes.model.generator_
        search = search_by(nodes.graph, generator, vectors, by=by, weights=weights)
        found = search.neighbors(n=count, progress=lambda done, total: report("searching", done, total))
        recall = search.recall(count)
    names, (n, count) = nodes.graph.names, found.positions.shape
    if names.dtype != np.int64:
        names = np.array([shown(name) for name in names.tolist()], dtype=object)
    is_match = found.positions.ravel() >= 0
    columns = (
        np.repeat(names, count)[is_match],
        np.tile(np.arange(1, count + 1), n)[is_match],
        names[found.positions.ravel()[is_match]],
        found.scores.ravel()[is_match],
    )
    write_table(output, ("node", "rank", "match", "score"), columns, ".6g")
    is_printed = str(output) == STANDARD_OUTPUT
    if json:
        facts = {"output": str(output), "nodes": n, "n": count, "by": by}
        print_json({**facts, "exact": search.exact, "recall": recall}, err=is_printed)
    elif not quiet:
        how = "every node compared with every other"
        if not search.exact:
            how = f"{100 * recall:.1f} % of the true nearest found, measured on a sample of nodes"
        typer.echo(f"{plural(count, 'node')} like each of {n:,}; {how}", err=is_printed)
