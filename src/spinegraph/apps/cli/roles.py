"""``spine roles``: what parts nodes play in a network, in words; the same parts in another network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli.options import Json, Quiet, some_settings, takes
from spinegraph.apps.cli.reading import Reading, reading

if TYPE_CHECKING:
    from spinegraph.apps.cli.roles_view import RoleFindings
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE
    from spinegraph.graph.graph import Graph


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
    from spinegraph.apps.cli.output_file import require_output
    from spinegraph.apps.cli.progress import shown_progress
    from spinegraph.apps.cli.roles_file import ENDINGS, write_roles

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
        from spinegraph.apps.cli.roles_view import print_roles

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
    from spinegraph.analysis.roles import Roles
    from spinegraph.analysis.roles_agreement import agreement
    from spinegraph.apps.cli.reading import read_known
    from spinegraph.apps.cli.roles_view import RoleFindings

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
    from spinegraph.analysis.plot_subject import embeddings_of, graph_of
    from spinegraph.errors import ParameterError
    from spinegraph.estimator import SPINE

    fitted = SPINE.load(folder)
    if fitted.graph_ is None:
        raise ParameterError(
            f"{folder}: the model was saved without its network, and roles are found there; "
            "fit it again and save it with its data"
        )
    return fitted, graph_of(fitted), embeddings_of(fitted)
