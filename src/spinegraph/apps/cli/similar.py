"""``spine similar``: look-alikes of a node, or of every node."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from spinegraph.analysis.explain import Explanation, column_title, explain, short_difference, shown, titled
from spinegraph.analysis.search import Match, Nearest
from spinegraph.atomic import whole_file

if TYPE_CHECKING:
    from spinegraph.apps.cli.reading import ModelNodes


_SHOWN_COLUMNS = 3
_HOW = {
    "embedding": ("vectors", "score: cosine of the vectors, 1 is the same"),
    "structure": ("role", "score: exp(-distance) of the profiles, 1 is the same role"),
    "both": (
        "vectors and role",
        "score: share of nodes that are not more alike in the worse of the two ways",
    ),
}


@dataclass(frozen=True, eq=False)
class Similar:
    """A node's look-alikes, with reasons or without.

    Attributes
    ----------
    name : str
    by : {"embedding", "structure", "both"}
    matches : sequence of Match
    reasons : list of Explanation, or None
        One per match.
    """

    name: str
    by: str
    matches: Sequence[Match]
    reasons: list[Explanation] | None

    @classmethod
    def of(
        cls, nodes: "ModelNodes", name: Any, by: str, matches: Sequence[Match], *, reasons: bool = True
    ) -> "Similar":
        """Explain each match."""
        generator, graph = nodes.model.generator_, nodes.graph
        found = [explain(graph, generator, name, match.name) for match in matches] if reasons else None
        return cls(shown(name), by, matches, found)

    def to_json(self) -> dict[str, Any]:
        """Return names, scores and reasons as plain values."""
        listed: list[dict[str, Any]] = [
            {"name": shown(match.name), "score": match.score} for match in self.matches
        ]
        for entry, found in zip(listed, self.reasons or [], strict=False):
            entry["similarity"] = found.similarity
            entry["parts"] = {part.name: part.alike for part in found.parts}
            entry["neighbors"] = found.b.degree
            entry["links_apart"] = found.relation.links_apart
            entry["profile_difference"] = found.step_difference
            entry["shared"] = [column.name for column in found.columns.shared(_SHOWN_COLUMNS)]
        return {"node": self.name, "by": self.by, "similar": listed}


def print_similar(found: Similar, console: Console | None = None) -> None:
    """Print the look-alikes of a node, most alike first."""
    console = console or Console(highlight=False)
    if found.reasons is None:
        for match in found.matches:
            console.print(f"{match.score:.3f}  {escape(shown(match.name))}", soft_wrap=True)
        return
    what, score = _HOW[found.by]
    console.print(f"[bold]Most like {escape(titled(found.name))}[/bold], by {what}")
    if not found.matches:
        console.print("  nobody: it is the only node")
        return
    own = found.reasons[0].a
    console.print(
        f"  {own.name} has {own.degree:,} neighbour{'s' * (own.degree != 1)}\n", style="dim", markup=False
    )
    console.print(Padding(_table(found), (0, 0, 1, 2), expand=False))
    console.print(f"  {score}", style="dim")
    first = shown(found.matches[0].name)
    console.print(
        f"  why: spine explain MODEL {join((found.name, first))}", style="dim", markup=False, soft_wrap=True
    )


def _table(found: Similar) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("score", justify="right")
    table.add_column("node", style="bold", overflow="fold")
    table.add_column("neighbours", justify="right")
    table.add_column("links apart", justify="right")
    table.add_column("role differs by", justify="right")
    has_content = any(part.name == "content" for reason in found.reasons or [] for part in reason.parts)
    table.add_column("alike in", overflow="fold")
    for match, reason in zip(found.matches, found.reasons or [], strict=True):
        apart = reason.relation.links_apart
        columns = reason.columns.shared(_SHOWN_COLUMNS if has_content else 1)
        table.add_row(
            f"{match.score:.3f}",
            escape(shown(match.name)),
            f"{reason.b.degree:,}",
            "more than 6" if apart is None else f"{apart}",
            short_difference(reason.step_difference),
            escape(", ".join(column_title(column.name) for column in columns)),
        )
    return table


ENDINGS = (".csv", ".parquet")
_TITLES = ("node", "rank", "match", "score")


def write_neighbors(output: str, names: NDArray[Any], found: Nearest) -> None:
    """Write what was found, whole or not at all; ``-`` prints CSV."""
    if output == "-":
        _write_csv(sys.stdout, names, found)
        return
    with whole_file(output) as partial:
        if Path(output).suffix == ".parquet":
            _write_parquet(partial, names, found)
        else:
            with partial.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, names, found)


def _write_csv(file: Any, names: NDArray[Any], found: Nearest) -> None:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(_TITLES)
    listed = [shown(name) for name in names.tolist()]
    for place, (row, scores) in enumerate(zip(found.positions.tolist(), found.scores.tolist(), strict=True)):
        for rank, (match, score) in enumerate(zip(row, scores, strict=True), start=1):
            if match >= 0:
                table.writerow((listed[place], rank, listed[match], f"{score:.6g}" if score % 1 else score))


def _write_parquet(path: Path, names: NDArray[Any], found: Nearest) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kept = found.positions.ravel() >= 0
    count = found.positions.shape[1]
    listed = (
        names if names.dtype == np.int64 else np.array([shown(name) for name in names.tolist()], dtype=object)
    )
    values = (
        np.repeat(listed, count)[kept],
        np.tile(np.arange(1, count + 1), len(names))[kept],
        listed[found.positions.ravel()[kept]],
        found.scores.ravel()[kept],
    )
    parquet.write_table(pa.table([pa.array(column) for column in values], names=list(_TITLES)), path)


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
    from spinegraph.apps.cli.reading import ModelNodes

    nodes = ModelNodes.open(model, graph, features)
    if every:
        _write_all(nodes, by, count, str(output), quiet=quiet, json=json)
        return

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
    from spinegraph.analysis.search import Search, StructuralSearch, TwofoldSearch

    if by is By.embedding:
        return Search(nodes.embeddings, exact=exact)
    profile = nodes.model.generator_.inputs.profile(nodes.graph)
    roles = StructuralSearch(nodes.graph, profile, exact=exact)
    return roles if by is By.structure else TwofoldSearch(Search(nodes.embeddings, exact=True), roles)


def _write_all(nodes: "ModelNodes", by: By, count: int, output: str, *, quiet: bool, json: bool) -> None:
    from contextlib import nullcontext

    from spinegraph.apps.cli.options import require_output, shown_progress

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
