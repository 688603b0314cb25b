"""How ``spine roles`` shows roles: words first, a table of numbers after."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spinegraph.analysis.explain_standing import shown
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.analysis.roles_agreement import Agreement
from spinegraph.analysis.roles_words import Typical

_BAR, _SURE, _EXAMPLES, _MOST_LABELS = 20, 0.8, 3, 12
_WIDTH = 100


@dataclass(frozen=True, eq=False)
class RoleFindings:
    """Roles of a network, and how they were told there.

    Attributes
    ----------
    name : str
        Of the model, or of the other network.
    edges : int
    roles : Roles
    told : RoleAssignment
    shares_at_home : float64 array (r,) or None
        Of the network that the roles were found on, where ``told`` is of another one.
    agreement : Agreement or None
        With given labels.
    """

    name: str
    edges: int
    roles: Roles
    told: RoleAssignment
    shares_at_home: NDArray[np.float64] | None
    agreement: Agreement | None

    @property
    def sure(self) -> float:
        """Share of nodes that belong to one role by 80 % or more."""
        return float((self.told.memberships.max(axis=1) >= _SURE).mean())

    def examples(self, role: int) -> list[str]:
        """Name the most typical nodes of a role."""
        return [shown(name) for name in self.told.examples(role, _EXAMPLES)]

    def to_json(self) -> dict[str, Any]:
        """Return what is printed as plain values."""
        counts = np.bincount(self.told.roles, minlength=len(self.roles)).tolist()
        home = self.shares_at_home
        listed = [
            {
                "title": self.roles.titles[place],
                "description": self.roles.descriptions[place],
                "nodes": counts[place],
                "share": float(self.told.shares()[place]),
                **({} if home is None else {"share_at_home": float(home[place])}),
                "typical": self.roles.typical[place].to_json(),
                "examples": self.told.examples(place, _EXAMPLES),
            }
            for place in range(len(self.roles))
        ]
        return {
            "network": self.name,
            "nodes": len(self.told.names),
            "edges": self.edges,
            "roles": listed,
            "sure": self.sure,
            "unlike_every_role": float(self.told.is_strange.mean()),
            "criterion": {str(number): score for number, score in self.roles.scores.items()},
            "agreement": None if self.agreement is None else asdict(self.agreement),
        }


def print_roles(found: RoleFindings, console: Console | None = None) -> None:
    """Print each role in words, then typical numbers, then what can be said about all of them."""
    console = console or Console(highlight=False)
    roles, count = found.roles, len(found.roles)
    size = f"{len(found.told.names):,} nodes, {found.edges:,} edges"
    console.print(f"[bold]{escape(found.name)}[/bold]  {size}", soft_wrap=True)
    kinds = (
        "1 role: its nodes all stand alike" if count == 1 else f"{count} roles, from the centre to the rim"
    )
    console.print(f"{kinds}\n")
    shares, counts = found.told.shares(), np.bincount(found.told.roles, minlength=count).tolist()
    for place, (title, words) in enumerate(zip(roles.titles, roles.descriptions, strict=True)):
        like = ", ".join(found.examples(place))
        nodes = f"{counts[place]:,} node{'s' * (counts[place] != 1)}"
        head = Text.assemble(
            (f"  {title:{max(map(len, roles.titles))}}", "bold"),
            f"  {percent(shares[place]):>5}  ",
            (f"{_bar(shares[place] / max(shares.max(), 1e-9)):{_BAR}}", "cyan"),
            (f"  {nodes}, such as {like}" if like else f"  {nodes}", "dim"),
        )
        console.print(head, no_wrap=True, overflow="ellipsis")
        text = f"{words[0].upper()}{words[1:]}."
        _print_within(escape(text), 4, console)
        console.print()
    console.print(Padding(_numbers(found), (0, 0, 1, 2), expand=False))
    for note in _notes(found):
        _print_within(escape(note), 2, console, style="dim")
    if found.agreement is not None:
        console.print()
        _print_agreement(found.agreement, roles.titles, console)


def percent(share: float) -> str:
    """Return a share in per cent, never 0 % of something.

    Examples
    --------
    >>> percent(0.314), percent(0.001), percent(0.0)
    ('31 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def verdict(nmi: float) -> str:
    """Say what an agreement means.

    Examples
    --------
    >>> verdict(0.01)
    'the roles cut across the labels: they say something the labels do not'
    """
    if nmi < 0.05:
        return "the roles cut across the labels: they say something the labels do not"
    if nmi < 0.3:
        return "the roles are loosely related to the labels"
    return "the roles go along with the labels" if nmi < 0.6 else "the roles are largely the labels"


def _numbers(found: RoleFindings) -> Table:
    has_communities = found.roles.whole.communities is not None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("typically")
    home = found.shares_at_home
    titles = ["nodes\nhere", "\nat home"] if home is not None else ["\nnodes"]
    titles += ["neighbours\n(most have)", "which know\neach other", "neighbours\nof those"]
    for title in [*titles, *["communities\nspanned"] * has_communities]:
        table.add_column(title, justify="right")
    shares = found.told.shares()
    for place, (title, typical) in enumerate(zip(found.roles.titles, found.roles.typical, strict=True)):
        beside = [] if home is None else [percent(home[place])]
        table.add_row(title, percent(shares[place]), *beside, *_cells(typical, has_communities))
    whole = [percent(1.0)] * (1 if home is None else 2)
    table.add_row("all", *whole, *_cells(found.roles.whole, has_communities), style="dim")
    return table


def _cells(typical: Typical, has_communities: bool) -> list[str]:
    low, high = typical.neighbors_low, typical.neighbors_high
    spread = f"({low:,})" if low == high else f"({low:,} to {high:,})"
    cells = [
        f"{typical.neighbors:,} {spread}",
        "" if typical.acquainted is None else f"{100 * typical.acquainted:.0f} %",
        f"{typical.connected:.0f}",
    ]
    return cells + ([f"{typical.communities:.1f}"] if has_communities else [])


def _notes(found: RoleFindings) -> list[str]:
    scores, count = found.roles.scores, len(found.roles)
    notes = [
        "Typically: medians and means over the network that the roles were found on; most: the middle 80 %.",
        "Neighbours know each other where an edge joins them. Elsewhere: the nodes of all other roles.",
    ]
    if found.roles.communities is not None:
        groups = len(found.roles.communities)
        notes.append(f"Communities: {groups} groups of nodes whose vectors are alike.")
    if count > 1:
        notes.append(f"Roles are soft: {percent(found.sure)} of the nodes belong to one by 80 % or more.")
    if scores:
        most = "; more are not tried" if count == max(scores) else ""
        notes.append(
            f"Of {min(scores)} to {max(scores)} roles, {count} explain the nodes best while they can be told "
            f"apart (integrated completed likelihood{most})."
        )
    if found.shares_at_home is not None:
        strange = float(found.told.is_strange.mean())
        notes.append(f"Unlike every role are {percent(strange)} of these nodes, and 1 % at home.")
    return notes


def _print_within(text: str, indent: int, console: Console, style: str = "") -> None:
    """Print a paragraph that is no wider than one reads with ease."""
    width = max(min(console.width, _WIDTH) - indent, 20)
    for line in Text.from_markup(text).wrap(console, width):
        line.rstrip()
        console.print(Text(" " * indent) + line, style=style, soft_wrap=True)


def _print_agreement(found: Agreement, titles: list[str], console: Console) -> None:
    console.print(f"[bold]Beside {len(found.labels)} labels[/bold] of {found.nodes:,} nodes, in %")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("label")
    table.add_column("nodes", justify="right")
    for title in titles:
        table.add_column(title, justify="right")
    for label, row in list(zip(found.labels, found.counts, strict=True))[:_MOST_LABELS]:
        shares = (f"{100 * count / max(sum(row), 1):.0f}" for count in row)
        table.add_row(escape(label), f"{sum(row):,}", *shares)
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
    if len(found.labels) > _MOST_LABELS:
        console.print(f"  and {len(found.labels) - _MOST_LABELS} more labels", style="dim")
    text = f"NMI {found.nmi:.2f}, ARI {found.ari:.2f}: {verdict(found.nmi)}."
    console.print(f"\n  {text}", soft_wrap=True)


def _bar(share: float) -> str:
    eighths = max(round(8 * _BAR * share), 1 if share else 0)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
