"""``spine similar``: the nodes most like a node, or those of every node."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Network, given_options
from spinegraph.embeddings import Embeddings, require_savable


@cli.takes(how=Network)
def similar(
    model: cli.Model,
    node: Annotated[
        str | None, typer.Argument(metavar="NODE", help="A node's name; 1:ann is ann in the second network.")
    ] = None,
    by: Annotated[
        Literal["all", "content", "place", "role"],
        typer.Option(help="What to compare: all, what nodes are about, where they are, or their links."),
    ] = "all",
    weights: cli.Weights = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many to find.")] = 10,
    every: Annotated[bool, typer.Option("--all", help="Find them for every node and write a file.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="With --all: a .csv or .parquet file; - prints CSV.")
    ] = None,
    json: cli.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print names and scores only.")] = False,
    *,
    how: Network,
) -> None:
    """Find the nodes most like a node, with reasons, or those of every node.

    Example: spine similar model ann --by role -n 5
    """
    if (node is None) != every:
        raise typer.BadParameter("pass either one NODE or --all", param_hint="NODE")
    if every != (output is not None):
        raise typer.BadParameter("--all and --output FILE go together", param_hint="--output")
    if weights is not None and by != "all":
        raise typer.BadParameter("is for all parts together; leave out --by", param_hint="--weights")
    from spinegraph.analysis.explain import shown
    from spinegraph.analysis.explain import similar as similar_nodes

    nodes = how.open(model)
    if output is not None:
        _write_all(nodes.embeddings, by, weights, count, output, quiet=quiet, json=json)
        return
    asked = nodes.graph, nodes.model.generator_, nodes.embeddings
    found = similar_nodes(*asked, nodes.find(str(node)), by=by, n=count, weights=weights)
    if json:
        cli.print_json(found.to_json())
    elif quiet:
        for match in found:
            typer.echo(f"{match.score:z.3f}  {shown(match.name)}")
    else:
        cli.print_table(*found.table())
        if found.matches:
            pair = shown(found.node), shown(found[0].name)
            given = ",".join(f"{part}={weight:g}" for part, weight in (weights or {}).items())
            chosen = ["--weights", given] if given else []
            cli.print_next(["explain", str(model), *pair, *chosen, *given_options(how)])


def _write_all(
    vectors: Embeddings, by: str, weights: Any, count: int, output: Path, *, quiet: bool, json: bool
) -> None:
    """Write the nodes most like each node, and print how they were found."""
    import numpy as np

    from spinegraph.analysis.explain import plural, search_by, shown

    is_printed = str(output) == cli.STANDARD_OUTPUT
    if not is_printed:
        require_savable(output, "similar nodes", (".csv", ".parquet"))
    with cli.shown_progress(quiet=quiet) as report:
        report("preparing the search", 0, 0)
        search = search_by(vectors, by=by, weights=weights)
        found = search.neighbors(n=count, progress=lambda done, total: report("searching", done, total))
        recall = search.recall(count)
    names, (n, count) = vectors.names, found.positions.shape
    if names.dtype != np.int64:
        names = np.array([shown(name) for name in names.tolist()], dtype=object)
    is_match = found.positions.ravel() >= 0
    columns = {
        "node": np.repeat(names, count)[is_match],
        "rank": np.tile(np.arange(1, count + 1), n)[is_match],
        "match": names[found.positions.ravel()[is_match]],
        "score": found.scores.ravel()[is_match],
    }
    cli.write_table(output, columns)
    if json:
        facts = {"output": str(output), "nodes": n, "n": count, "by": by}
        cli.print_json({**facts, "exact": search.exact, "recall": recall}, err=is_printed)
    elif not quiet:
        how = "every node compared with every other"
        if not search.exact:
            how = f"{100 * recall:.1f} % of the true nearest found, measured on a sample of nodes"
        typer.echo(f"the {plural(count, 'node')} most like each of {n:,}; {how}", err=is_printed)
