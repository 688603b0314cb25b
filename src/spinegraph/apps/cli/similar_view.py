"""How ``spine similar`` shows look-alikes and their reasons."""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import join
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from spinegraph.analysis.explain import Explanation, explain
from spinegraph.analysis.explain_standing import shown
from spinegraph.analysis.explain_words import column_title, short_difference, titled
from spinegraph.analysis.search import Match

if TYPE_CHECKING:
    from spinegraph.apps.cli.model_nodes import ModelNodes

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
    """Print the look-alikes of a node, most alike first.

    Examples
    --------
    >>> print_similar(Similar("ann", "embedding", [Match("bob", 0.75)], None), Console(width=80))
    0.750  bob
    """
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
