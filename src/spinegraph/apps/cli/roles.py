"""``spine roles``: the roles of nodes in a network, and the same roles in another network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.bar import Bar
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spinegraph.apps.cli.options import (
    STANDARD_OUTPUT,
    Json,
    Model,
    Quiet,
    plain_table,
    print_json,
    require_output,
    shown_progress,
    some_settings,
    takes,
    write_table,
)
from spinegraph.apps.cli.reading import ModelNodes, Reading, read_known

if TYPE_CHECKING:
    from spinegraph.analysis.roles import Agreement, NodeRoles, Typical

_BAR, _WIDTH, _MAX_LABELS = 20, 100, 12


@takes(settings=some_settings("seed"), how=Reading)
def roles(
    model: Model,
    on: Annotated[
        Path | None,
        typer.Option(metavar="EDGES", help="Another network: assign the roles of the model's network there."),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --on: its node features.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="How many roles; by default as many as are distinct."),
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
    """Find the roles of nodes, such as hub, bridge and periphery, and describe what sets each apart.

    Example: spine roles model --on later.csv --features people_later.csv -o roles.csv
    """
    if features is not None and on is None:
        raise typer.BadParameter("belongs to --on; pass the edges as well", param_hint="--features")
    is_printed = output is not None and str(output) == STANDARD_OUTPUT
    if json and is_printed:
        raise typer.BadParameter("would print JSON among the roles; name a file", param_hint="--output")
    if output is not None:
        require_output(output, (".csv", ".parquet", ".json"), "roles")
    with shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        from spinegraph.analysis.roles import find_roles

        home = ModelNodes.open(model, advice="roles are found there: fit again and save it with its data")
        fitted, graph, vectors = home.model, None, None
        if on is not None:
            graph = how.network_for(fitted, on, features)
            vectors = fitted.transform(graph)
        known = None if labels is None else read_known(labels, (graph or home.graph).names)
        report(f"finding roles of {len(home.graph):,} nodes", 0, 0)
        seed = settings.get("seed", fitted.config_.seed)
        own = home.graph, fitted.generator_, home.embeddings
        found = find_roles(*own, graph, vectors, count=count, labels=known, seed=seed)
        if output is not None:
            report("writing", 0, 0)
            _write(output, found)
    if json:
        print_json({"network": str(on or model), **found.to_json()})
    elif not is_printed and not (quiet and output is not None):
        _print_roles(str(on or model), found)


def _write(output: Path, found: "NodeRoles") -> None:
    """Write each node's name, role and share in every role, whole or not at all."""
    import numpy as np

    from spinegraph.analysis.explain import shown
    from spinegraph.atomic import whole_file

    assigned, titles = found.assigned, found.roles.titles
    names = [shown(name) for name in assigned.names.tolist()]
    played = [titles[role] for role in assigned.roles.tolist()]
    if output.suffix != ".json":
        nodes = assigned.names if assigned.names.dtype == np.int64 else names
        write_table(output, ("node", "role", *titles), (nodes, played, *assigned.memberships.T), ".4f")
        return
    import json

    listed = [
        {"node": name, "role": role, "memberships": [round(share, 4) for share in shares]}
        for name, role, shares in zip(names, played, assigned.memberships.tolist(), strict=True)
    ]
    text = json.dumps({"roles": found.roles.to_json(), "nodes": listed}, ensure_ascii=False)
    with whole_file(output) as partial:
        partial.write_text(text, encoding="utf-8")


def _print_roles(name: str, found: "NodeRoles") -> None:
    """Print each role in words, then typical numbers, then notes on all of them."""
    from spinegraph.analysis.explain import plural, shown
    from spinegraph.analysis.roles import percent

    console = Console(highlight=False)
    titles, count = found.roles.titles, len(found.roles)
    size = f"{plural(len(found), 'node')}, {plural(found.edges, 'edge')}"
    console.print(f"[bold]{escape(name)}[/bold]  {size}", soft_wrap=True)
    many = f"{count} roles, from the centre to the rim"
    console.print(f"{'1 role: all nodes have the same position' if count == 1 else many}\n")
    shares = found.assigned.shares()
    for role, nodes in enumerate(found.counts):
        like = ", ".join(shown(name) for name in found.assigned.examples(role))
        examples = f"{plural(nodes, 'node')}{f', such as {like}' * bool(like)}"
        head = Table.grid(padding=(0, 2))
        head.add_column(style="bold", min_width=max(map(len, titles)), no_wrap=True)
        head.add_column(justify="right", min_width=5, no_wrap=True)
        head.add_column(no_wrap=True)
        head.add_column(style="dim")
        length = max(shares[role] / max(shares.max(), 1e-9), 1 / (8 * _BAR)) if nodes else 0
        bar = Bar(1, 0, length, width=_BAR, color="cyan")
        head.add_row(
            titles[role], percent(shares[role]), bar, Text(examples, no_wrap=True, overflow="ellipsis")
        )
        console.print(Padding(head, (0, 0, 0, 2)))
        words = found.roles.descriptions[role]
        _print_paragraph(f"{words[0].upper()}{words[1:]}.\n", 4, console)
    console.print(Padding(_numbers(found), (0, 0, 1, 2), expand=False))
    for note in _notes(found):
        _print_paragraph(note, 2, console, style="dim")
    if found.agreement is not None:
        console.print()
        _print_agreement(found.agreement, titles, console)


def _print_paragraph(text: str, indent: int, console: Console, style: str = "") -> None:
    width = max(min(console.width, _WIDTH) - indent, 20)
    for line in Text(text).wrap(console, width):
        line.rstrip()
        console.print(Text(" " * indent) + line, style=style, soft_wrap=True)


def _numbers(found: "NodeRoles") -> Table:
    from spinegraph.analysis.roles import percent

    has_communities = found.roles.whole.communities is not None
    home, shares = found.shares_at_home, found.assigned.shares()
    titles = ["\nnodes"] if home is None else ["nodes\nhere", "\nat home"]
    titles += ["neighbours\n(most have)", "which know\neach other", "neighbours\nof those"]
    table = plain_table("typically", *titles, *["communities\nspanned"] * has_communities)
    for role, title in enumerate(found.roles.titles):
        cells = [percent(shares[role]), *([] if home is None else [percent(home[role])])]
        table.add_row(title, *cells, *_cells(found.roles.typical[role], has_communities))
    whole = ["100 %"] * (1 if home is None else 2)
    table.add_row("all", *whole, *_cells(found.roles.whole, has_communities), style="dim")
    return table


def _cells(typical: "Typical", has_communities: bool) -> list[str]:
    low, high = typical.neighbors_low, typical.neighbors_high
    spread = f"({low:,})" if low == high else f"({low:,} to {high:,})"
    cells = [
        f"{typical.neighbors:,} {spread}",
        "" if typical.acquainted is None else f"{100 * typical.acquainted:.0f} %",
        f"{typical.connected:.0f}",
    ]
    return cells + ([f"{typical.communities:.1f}"] if has_communities else [])


def _notes(found: "NodeRoles") -> list[str]:
    from spinegraph.analysis.roles import percent

    scores, count = found.roles.scores, len(found.roles)
    notes = [
        "Typically: medians and means over the network that the roles were found in; most: the middle 80 %.",
        "Neighbours know each other where an edge joins them. Elsewhere: the nodes of all other roles.",
    ]
    if found.roles.communities is not None:
        groups = len(found.roles.communities)
        notes.append(f"Communities: {groups} groups of nodes whose content is alike.")
    if count > 1:
        notes.append(f"Roles are soft: {percent(found.sure)} of the nodes belong to one by 80 % or more.")
    if scores:
        most = "; more are not tried" if count == max(scores) else ""
        notes.append(
            f"Of {min(scores)} to {max(scores)} roles, {count} explain the nodes best while they remain "
            f"distinct (integrated completed likelihood{most})."
        )
    if found.shares_at_home is not None:
        strange = float(found.assigned.is_strange.mean())
        notes.append(f"Unlike every role are {percent(strange)} of these nodes, and 1 % at home.")
    return notes


def _print_agreement(found: "Agreement", titles: list[str], console: Console) -> None:
    console.print(f"[bold]Beside {len(found.labels)} labels[/bold] of {found.nodes:,} nodes, in %")
    table = plain_table("label", "nodes", *titles)
    for label, row in list(zip(found.labels, found.counts, strict=True))[:_MAX_LABELS]:
        shares = (f"{100 * count / max(sum(row), 1):.0f}" for count in row)
        table.add_row(escape(label), f"{sum(row):,}", *shares)
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
    if len(found.labels) > _MAX_LABELS:
        console.print(f"  and {len(found.labels) - _MAX_LABELS} more labels", style="dim")
    verdicts = {
        0.05: "the roles cut across the labels: they add information",
        0.3: "the roles are loosely related to the labels",
        0.6: "the roles follow the labels",
    }
    verdict = next(
        (words for most, words in verdicts.items() if found.nmi < most), "the roles are the labels"
    )
    console.print(f"\n  NMI {found.nmi:.2f}, ARI {found.ari:.2f}: {verdict}.", soft_wrap=True)
