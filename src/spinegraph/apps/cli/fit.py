"""``spine fit``: from edges to a model."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Reading, given_options
from spinegraph.config import Config, PaperConfig
from spinegraph.errors import GraphFormatError, ParameterError

if TYPE_CHECKING:
    from spinegraph.estimator import SPINE
    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.graph import Graph


@cli.takes(config=cli.settings, how=Reading)
def fit(
    edges: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="EDGES",
            help="CSV, TSV, white space, Parquet, JSON lines, npz, GraphML, a DuckDB file or a store; - is "
            "the standard input. Several networks are fitted together.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="The model's folder.")
    ] = ...,  # type: ignore[assignment]
    query: Annotated[str | None, typer.Option(help="SQL whose result is the edges.")] = None,
    database: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The DuckDB file that --query is asked of.")
    ] = None,
    features: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Node features: npz, npy, CSV, Parquet; one for each EDGES."),
    ] = None,
    data: Annotated[
        bool | None,
        typer.Option(help="Save the network and its vectors, too; by default, unless it is a store."),
    ] = None,
    place: Annotated[
        bool, typer.Option(help="Save the positions of the training nodes; else the model gives no place.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace the model in that folder.")] = False,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    config: Config | PaperConfig,
    how: Reading,
) -> None:
    """Learn from one network, or from several together, how to make vectors of nodes.

    Example: spine fit edges.csv --features people.csv -o model
    """
    from spinegraph.atomic import require_writable

    sources: list[Path | None] = [*edges] if edges else [None]
    if (query is not None) == bool(edges):
        raise typer.BadParameter("pass EDGES, files of links, or --query; one of them")
    cli.require_free(output, is_replaced=force)
    require_writable(output)
    with cli.shown_progress(quiet=quiet) as report:
        understood, graphs, encoder = _read_networks(sources, features or [], how, report, query, database)
        from spinegraph.estimator import SPINE

        model = (SPINE if isinstance(config, Config) else SPINE.paper)(**config.to_json())
        data = all(graph.store is None for graph in graphs) if data is None else data
        # Vectors of a store may not fit in memory.
        model.fit(graphs if len(graphs) > 1 else graphs[0], encoder=encoder, progress=report, vectors=data)
        report("saving", 0, 0)
        model.save(output, data=data, place=place)
    learned = getattr(model.generator_, "learned", None)
    facts = {
        "model": str(output),
        "networks": len(graphs),
        "nodes": sum(len(graph) for graph in graphs),
        "edges": sum(graph.num_edges for graph in graphs),
        "directed": graphs[0].directed,
        "understood": understood,
        "features": graphs[0].num_features,
        "encoded": model.table_encoder_ is not None,
        "dim": model.generator_.dim,
        "parts": {name: part.stop - part.start for name, part in model.generator_.parts.items()},
        "learned": None if learned is None else asdict(learned),
        "settings": model.config_.to_json(),
    }
    if json:
        cli.print_json(facts)
    elif not quiet:
        files = [str(sources[0] or "-"), *(["--features", str(features[0])] if features else [])]
        files += given_options(how)
        _print_fit(facts, _next_commands(model, output, files, data))


def _next_commands(model: "SPINE", output: Path, files: Sequence[str], data: bool) -> list[list[str]]:
    """Return commands to try on a model; ``files`` are its first network and how that is read."""
    from spinegraph.analysis.explain import shown

    graphs: Any = model.graph_
    folder, is_list = str(output), isinstance(graphs, list)
    first = graphs[0] if is_list else graphs
    node = f"{'0:' * is_list}{shown(first.names[0])}"
    if files[0] == "-":  # the standard input is used up; a query is not repeated
        again, network = [], []
    else:
        again, network = [["embed", folder, *files, "-o", "vectors.parquet"]], ["--graph", *files]
    if not data:
        node = node.removeprefix("0:" * is_list)
        return [["similar", folder, node, *network], ["explore", folder, *network], *again] if network else []
    listed = [["similar", folder, node, "--by", "role"], ["roles", folder], ["report", folder]]
    listed += [["explore", folder, *network]] if is_list and network else [["explore", folder]]
    return [*listed, *again, ["evaluate", folder, *(network if is_list else [])]]


def _read_networks(
    files: Sequence[Path | None],
    features: Sequence[Path],
    how: Reading,
    report: cli.Report,
    query: str | None,
    database: Path | None,
) -> "tuple[list[str], list[Graph], FeatureEncoder | None]":
    """Read networks to be fitted together; one encoder is fitted where their features are mixed tables.

    Returns what was understood as well, two lines a network.
    """
    if features and len(features) != len(files):
        raise ParameterError(
            f"{len(features)} files of features for {len(files)} of edges; give one for each, or none"
        )
    report("reading", 0, len(files))
    understood: list[str] = []
    encoder, graphs = how.encoder() if len(files) == 1 else _fit_encoder(features, how), []
    for number, edges in enumerate(files):
        table = features[number] if features else None
        if len(files) > 1 and edges is not None:
            graph = how.network(edges, table, encoder)
        else:
            contents, graph = how.read(edges, table, encoder, query, database)
            encoder = graph.encoder or encoder
            understood += [f"{contents.path}: {contents.notes[0]}"]
            understood += ["; ".join([*contents.notes[1:], str(graph.report or "")]).strip("; ")]
            if graph.report is not None and 0 < 2 * graph.report.reciprocal < graph.report.edges:
                understood.append("few edges are listed both ways; add --directed if direction matters")
        graphs.append(graph)
        report("reading", number + 1, len(files))
    return [line for line in understood if line], graphs, encoder


def _fit_encoder(features: Sequence[Path], how: Reading) -> "FeatureEncoder | None":
    """Fit an encoder on all tables together, where one holds gaps or other columns than numbers."""
    import pyarrow as pa

    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.feature_files import is_numeric, read_features

    column = how.arguments()["node_column"]
    tables = [read_features(path, column).data for path in features]
    if not how.column and all(is_numeric(table) for table in tables):
        return None
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as fault:
        raise GraphFormatError(f"the tables of features do not fit together: {fault}") from fault
    return (how.encoder() or FeatureEncoder()).fit(whole)


def _print_fit(facts: dict[str, Any], commands: Sequence[Sequence[str]]) -> None:
    """Print a model's size and what it learned, and the next commands."""
    from spinegraph.analysis.explain import plural

    for line in facts["understood"]:
        typer.echo(line)
    several = f" in {facts['networks']} networks" if facts["networks"] > 1 else ""
    encoded = ", encoded from a table" if facts["encoded"] else ""
    edges = plural(facts["edges"], "directed edge" if facts["directed"] else "edge")
    shown = {
        "network": f"{plural(facts['nodes'], 'node')}{several}, {edges}",
        "features": f"{plural(facts['features'], 'column')}{encoded}"
        if facts["features"]
        else "none; structure alone",
        "vectors": f"{facts['dim']} numbers: "
        + ", ".join(f"{name} {width}" for name, width in facts["parts"].items()),
    }
    if facts["learned"] is not None:
        before, after = facts["learned"]["before"], facts["learned"]["after"]
        shown["learning"] = (
            f"{100 * after:.1f} % of hidden links recognised, {100 * before:.1f} % without it"
            if after > before
            else f"nothing gained; {100 * before:.1f} % of hidden links recognised"
        )
    cli.print_facts(facts["model"], shown)
    typer.echo()
    if commands:
        cli.print_next(*commands)
