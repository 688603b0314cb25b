"""``spine similar``: the nodes most like a node, or those of every node."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    write_table,
)
from spinegraph.apps.cli.reading import ModelNodes
from spinegraph.errors import ParameterError

if TYPE_CHECKING:
    from spinegraph.analysis.explain import Explanation
    from spinegraph.analysis.search import Match

_COLUMNS = 3  # shown of those that two nodes share
_COSINE = "score: cosine of that part, 1 is the same"
_HOW = {
    "all": ("all parts", "score: mean of the cosines of the parts, 1 is the same"),
    "content": ("content", _COSINE),
    "place": ("place", _COSINE),
    "role": ("role", _COSINE),
    "profile": ("profile", "score: exp(-distance) of the profiles, 1 is the same"),
}


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
) -> None:
    """Find the nodes most like a node, with reasons; or those of every node.

    Example: spine similar model ann --by role -n 5
    """
    if (node is None) != every:
        raise typer.BadParameter("pass one NODE, or --all for every node", param_hint="NODE")
    if every != (output is not None):
        raise typer.BadParameter("--all and --output FILE belong together", param_hint="--output")
    from spinegraph.analysis.explain import explain, shown

    if weights is not None and by != "all":
        raise typer.BadParameter("is for all parts together; leave out --by", param_hint="--weights")
    nodes = ModelNodes.open(model, graph, features)
    if output is not None:
        _write_all(nodes, by, weights, count, output, quiet=quiet, json=json)
        return
    name = nodes.find(str(node))
    # An index does not pay for one query.
    matches = _search(nodes, by, weights, exact=True).similar(name, count)
    generator, reasons = nodes.model.generator_, None
    if not quiet:
        known = generator.known(nodes.graph)
        reasons = [
            explain(nodes.graph, generator, name, match.name, weights=weights, known=known)
            for match in matches
        ]
    found = Similar(shown(name), by, matches, reasons)
    if json:
        print_json(found.to_json())
    else:
        print_similar(found)


@dataclass(frozen=True, eq=False)
class Similar:
    """The nodes most like a node, with an explanation of each or without."""

    name: str
    by: str  # a key of _HOW
    matches: "Sequence[Match]"
    reasons: "list[Explanation] | None"  # one per match

    def to_json(self) -> dict[str, Any]:
        """Return names, scores and reasons as plain values."""
        from spinegraph.analysis.explain import shown

        listed: list[dict[str, Any]] = [
            {"name": shown(match.name), "score": match.score} for match in self.matches
        ]
        for entry, found in zip(listed, self.reasons or [], strict=False):
            entry["similarity"] = found.similarity
            entry["parts"] = {part.name: part.share for part in found.parts}
            entry["neighbors"] = found.b.degree
            entry["links_apart"] = found.relation.links_apart
            entry["profile_difference"] = found.step_difference
            entry["shared"] = [column.name for column in found.columns.shared(_COLUMNS)]
        return {"node": self.name, "by": self.by, "similar": listed}


def print_similar(found: Similar, console: Console | None = None) -> None:
    """Print the nodes most like a node, most alike first."""
    from spinegraph.analysis.explain import column_title, shown, titled

    console = console or Console(highlight=False)
    if found.reasons is None:
        for match in found.matches:
            console.print(f"{match.score:.3f}  {escape(shown(match.name))}", soft_wrap=True)
        return
    what, score = _HOW[found.by]
    console.print(f"[bold]Most like {escape(titled(found.name))}[/bold], by {what}")
    if not found.matches:
        console.print("  none: it is the only node")
        return
    own = found.reasons[0].a
    neighbors = f"{own.degree:,} neighbour{'s' * (own.degree != 1)}"
    console.print(f"  {own.name} has {neighbors}\n", style="dim", markup=False)
    parts = [part.name for part in max((reason.parts for reason in found.reasons), key=len)]
    titles = ("score", "node", *parts, "neighbours", "links apart", "alike in")
    table = plain_table(*titles, align=f"rl{'r' * len(parts)}rrl", header_style="dim")
    table.columns[1].style = "bold"
    has_content = "content" in parts
    for match, reason in zip(found.matches, found.reasons, strict=True):
        apart = reason.relation.links_apart
        columns = reason.columns.shared(_COLUMNS if has_content else 1)
        cosines = {part.name: "-" if all(part.is_zero) else f"{part.cosine:.2f}" for part in reason.parts}
        table.add_row(
            f"{match.score:.3f}",
            escape(shown(match.name)),
            *(cosines.get(part, "") for part in parts),
            f"{reason.b.degree:,}",
            "more than 6" if apart is None else f"{apart}",
            escape(", ".join(column_title(column.name) for column in columns)),
        )
    console.print(Padding(table, (0, 0, 1, 2), expand=False))
    console.print(f"  {score}", style="dim")
    command = f"spine explain MODEL {join((found.name, shown(found.matches[0].name)))}"
    console.print(f"  why: {command}", style="dim", markup=False, soft_wrap=True)


def _search(
    nodes: ModelNodes, by: str, weights: dict[str, float] | None, *, exact: bool | None = None
) -> Any:
    from spinegraph.analysis.search import Search, StructuralSearch

    if by == "profile":
        return StructuralSearch(nodes.graph, nodes.model.generator_.profile(nodes.graph), exact=exact)
    if by == "place" and nodes.embeddings.same_network is False:
        raise ParameterError(
            "this is another network than the fitted one, so its nodes have no place; "
            "search by content or by role"
        )
    return Search(nodes.embeddings, by=by, weights=weights, exact=exact)


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

    from spinegraph.analysis.explain import shown

    require_output(output, (".csv", ".parquet"), "similar nodes")
    with shown_progress(quiet=quiet) as report:
        report("preparing the search", 0, 0)
        search = _search(nodes, by, weights)
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
        typer.echo(f"{count} nodes like each of {n:,}; {how}", err=is_printed)
