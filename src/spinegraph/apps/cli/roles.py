"""``spine roles``: the roles of nodes in a network, and the same roles in another network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Network, Reading


@cli.takes(settings=cli.some_settings("seed"), how=Reading)
def roles(
    model: cli.Model,
    on: Annotated[
        Path | None,
        typer.Option(
            "--on", "--graph", metavar="EDGES", help="Another network, to assign the model's roles in."
        ),
    ] = None,
    features: Annotated[Path | None, typer.Option(metavar="FILE", help="With --on: its features.")] = None,
    count: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Number of roles; default as many as are distinct.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="All nodes: .csv or .parquet; - prints CSV."),
    ] = None,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    settings: dict[str, Any],
    how: Reading,
) -> None:
    """Find the roles of nodes, such as hub, bridge and periphery, and describe what sets each apart.

    Example: spine roles model --on later.csv --features people_later.csv -o roles.csv
    """
    if features is not None and on is None:
        raise typer.BadParameter("needs --on; pass the edges too", param_hint="--features")
    is_printed = output is not None and str(output) == cli.STANDARD_OUTPUT
    if json and is_printed:
        raise typer.BadParameter("would mix JSON with the roles; name a file", param_hint="--output")
    if output is not None and not is_printed:
        from spinegraph.embeddings import require_savable

        require_savable(output, "roles", (".csv", ".parquet"))
    with cli.shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        import numpy as np

        from spinegraph.analysis.explain import shown
        from spinegraph.analysis.roles import find_roles

        home = Network().open(model, "roles are found in it; fit again with --data")
        fitted, graph, vectors = home.model, None, None
        if on is not None:
            graph = how.network_for(fitted, on, features)
            vectors = fitted.transform(graph)
        report(f"finding roles of {len(home.graph if graph is None else graph):,} nodes", 0, 0)
        seed = settings.get("seed", fitted.config_.seed)
        own = home.graph, fitted.generator_, home.embeddings
        found = find_roles(*own, graph, vectors, count=count, seed=seed)
        if output is not None:
            report("writing", 0, 0)
            assigned, titles = found.assigned, found.roles.titles
            names: Any = assigned.names
            names = names if names.dtype == np.int64 else [shown(name) for name in names.tolist()]
            played = [titles[role] for role in assigned.roles.tolist()]
            shares = dict(zip(titles, assigned.memberships.T.round(4), strict=True))
            cli.write_table(output, {"node": names, "role": played, **shares})
    if json:
        cli.print_json({"network": str(on or model), **found.to_json()})
    elif not is_printed and not (quiet and output is not None):
        cli.print_table(*found.table())
