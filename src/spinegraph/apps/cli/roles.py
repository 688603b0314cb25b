"""``spine roles``: roles of nodes in a network, in words, and in another network."""

import csv
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spinegraph.analysis.explain import shown
from spinegraph.analysis.roles import Agreement, RoleAssignment, Roles, Typical
from spinegraph.apps.cli.options import Json, Quiet, some_settings, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.atomic import whole_file

if TYPE_CHECKING:
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE
    from spinegraph.graph.graph import Graph


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
    """Return a share in per cent, never 0 % of something."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def verdict(nmi: float) -> str:
    """Say what an agreement means."""
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


ENDINGS = (".csv", ".parquet", ".json")


def write_roles(output: Path, found: "RoleFindings") -> None:
    """Write one row per node, whole or not at all: its name, its role, and its share in every role."""
    if str(output) == "-":
        _write_csv(sys.stdout, found)
        return
    with whole_file(output) as partial:
        if output.suffix == ".parquet":
            _write_parquet(partial, found)
        elif output.suffix == ".json":
            _write_json(partial, found)
        else:
            with partial.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, found)


def _rows(found: "RoleFindings") -> Iterator[tuple[str, str, list[float]]]:
    told = found.told
    for name, role, shares in zip(
        told.names.tolist(), told.roles.tolist(), told.memberships.tolist(), strict=True
    ):
        yield shown(name), found.roles.titles[role], shares


def _write_csv(file: Any, found: "RoleFindings") -> None:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(("node", "role", *found.roles.titles))
    for name, role, shares in _rows(found):
        table.writerow((name, role, *(f"{share:.4f}" for share in shares)))


def _write_parquet(path: Path, found: "RoleFindings") -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    told = found.told
    names = told.names if told.names.dtype == np.int64 else [shown(name) for name in told.names.tolist()]
    columns = [pa.array(names), pa.array([role for _, role, _ in _rows(found)])]
    columns += [pa.array(shares) for shares in told.memberships.T]
    parquet.write_table(pa.table(columns, names=["node", "role", *found.roles.titles]), path)


def _write_json(path: Path, found: "RoleFindings") -> None:
    import json

    nodes = [
        {"node": name, "role": role, "memberships": [round(share, 4) for share in shares]}
        for name, role, shares in _rows(found)
    ]
    text = json.dumps({"roles": found.roles.to_json(), "nodes": nodes}, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")


@takes(settings=some_settings("seed"), how=reading)
def roles(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that fit wrote.")],
    on: Annotated[
        Path | None,
        typer.Option(
            metavar="EDGES", help="Tell the roles in this network as well; they are not found anew."
        ),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --on: its node features.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="How many roles; by default as many as can be told apart."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels to compare with: a table of nodes and labels, or npz."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Every node's roles: .csv, .parquet, - to print CSV, or .json with the roles themselves.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
    how: Reading,
) -> None:
    """Find the roles that nodes play, such as hub, bridge and periphery, and say what sets each apart.

    Example: spine roles model --on later.csv --features people_later.csv -o roles.csv
    """
    from spinegraph.apps.cli.options import require_output, shown_progress

    if features is not None and on is None:
        raise typer.BadParameter("belongs to --on; pass the edges as well", param_hint="--features")
    if json and output == Path("-"):
        raise typer.BadParameter("would print JSON among the roles; name a file", param_hint="--output")
    if output is not None:
        require_output(output, ENDINGS, "roles")
    with shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        found = _find(model, on, features, labels, count, settings, how, report)
        if output is not None:
            report("writing", 0, 0)
            write_roles(output, found)
    if json:
        from json import dumps

        typer.echo(dumps(found.to_json(), indent=2, ensure_ascii=False))
    elif output != Path("-") and not (quiet and output is not None):
        print_roles(found)


def _find(
    folder: Path,
    on: Path | None,
    features: Path | None,
    labels: Path | None,
    count: int | None,
    settings: dict[str, Any],
    how: Reading,
    report: Any,
) -> "RoleFindings":
    from spinegraph.analysis.roles import Roles, agreement
    from spinegraph.apps.cli.reading import read_known

    fitted, home, vectors = _home(folder)
    graph, there = home, vectors
    if on is not None:
        graph = how.network(on, features, fitted.table_encoder_)
        there = fitted.transform(graph)
    known = None if labels is None else read_known(labels, graph.names)
    report(f"finding roles of {len(home):,} nodes", 0, 0)
    seed = settings.get("seed", fitted.config_.seed)
    found = Roles.find(home, fitted.generator_, vectors, count=count, seed=seed)
    told = at_home = found.assign(home, fitted.generator_, embeddings=vectors)
    if on is not None:
        told = found.assign(graph, fitted.generator_, embeddings=there)
    agreed = None if known is None else agreement(told.roles, known, len(found))
    name = str(folder if on is None else on)
    return RoleFindings(name, graph.num_edges, found, told, at_home.shares() if on else None, agreed)


def _home(folder: Path) -> "tuple[SPINE, Graph, Embeddings]":
    """Load a model, the network it was fitted on and its vectors; several networks lie side by side."""
    from spinegraph.analysis.plots import embeddings_of, graph_of
    from spinegraph.errors import ParameterError
    from spinegraph.estimator import SPINE

    fitted = SPINE.load(folder)
    if fitted.graph_ is None:
        raise ParameterError(
            f"{folder}: the model was saved without its network, and roles are found there; "
            "fit it again and save it with its data"
        )
    return fitted, graph_of(fitted), embeddings_of(fitted)
