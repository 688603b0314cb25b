"""``spine roles``: the roles of nodes in a network, and the same roles in another network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli.options import (
    STANDARD_OUTPUT,
    Json,
    Model,
    Quiet,
    print_json,
    print_table,
    require_output,
    shown_progress,
    some_settings,
    takes,
    write_table,
)
from spinegraph.apps.cli.reading import LabelColumn, ModelNodes, Reading, read_known

if TYPE_CHECKING:
    from spinegraph.analysis.roles import Agreement, NodeRoles

_MAX_LABELS = 12


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
    label_column: LabelColumn = None,
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
        known = None if labels is None else read_known(labels, (graph or home.graph).names, label_column)
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
        print_table(*found.table())
        if found.agreement is not None:
            typer.echo()
            _print_agreement(found.agreement, found.roles.titles)


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


def _print_agreement(found: "Agreement", titles: list[str]) -> None:
    rows = [
        (label, f"{sum(row):,}", *(f"{100 * count / max(sum(row), 1):.0f}" for count in row))
        for label, row in zip(found.labels, found.counts, strict=True)
    ][:_MAX_LABELS]
    verdicts = {
        0.05: "the roles cut across the labels: they add information",
        0.3: "the roles are loosely related to the labels",
        0.6: "the roles follow the labels",
    }
    verdict = next(
        (words for most, words in verdicts.items() if found.nmi < most), "the roles are the labels"
    )
    more = f"and {len(found.labels) - _MAX_LABELS} more labels\n" if len(found.labels) > _MAX_LABELS else ""
    heading = f"Beside {len(found.labels)} labels of {found.nodes:,} nodes, in %"
    note = f"{more}NMI {found.nmi:.2f}, ARI {found.ari:.2f}: {verdict}."
    print_table(heading, ("label", "nodes", *titles), rows, note)
