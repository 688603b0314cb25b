"""``spine fit``: from edges to a model."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Reading, given_options
from spinegraph.config import Config, PaperConfig
from spinegraph.errors import GraphFormatError, ParameterError, SpineWarning

if TYPE_CHECKING:
    from spinegraph.estimator import SPINE
    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.graph import Graph


@cli.takes(config=cli.settings, how=Reading)
def fit(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model's folder.")],
    edges: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="EDGES",
            help="CSV, TSV, white space, Parquet, JSON lines, npz, GraphML, a DuckDB file or a store; - is "
            "standard input. Several networks are fitted together.",
        ),
    ] = None,
    query: Annotated[str | None, typer.Option(help="SQL whose result is the edges.")] = None,
    database: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The DuckDB file for --query.")
    ] = None,
    features: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Node features: npz, npy, CSV, Parquet; one file per EDGES."),
    ] = None,
    data: Annotated[
        bool | None, typer.Option(help="Save the network and the vectors too; default unless it is a store.")
    ] = None,
    place: Annotated[
        bool, typer.Option(help="Save the positions of the training nodes, without which place is zero.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace the model in that folder.")] = False,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    config: Config | PaperConfig,
    how: Reading,
) -> None:
    """Fit a model on one network, or on several together.

    Example: spine fit edges.csv --features people.csv -o model
    """
    from spinegraph.atomic import require_writable

    sources: list[Path | None] = [*edges] if edges else [None]
    if (query is not None) == bool(edges):
        raise typer.BadParameter("pass either EDGES (files of links) or --query")
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
    learned, parts = getattr(model.generator_, "learned", None), model.generator_.parts
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
        "parts": {name: part.stop - part.start for name, part in parts.items()},
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
    """Return commands to try on a model; ``files`` is its first network with the options to read it."""
    from spinegraph.analysis.explain import shown

    graphs: Any = model.graph_
    folder, is_list = str(output), isinstance(graphs, list)
    node = shown((graphs[0] if is_list else graphs).names[0])
    # Standard input is used up, and a query is not repeated.
    network = [] if files[0] == "-" else ["--graph", *files]
    again = [["embed", folder, *files, "-o", "vectors.parquet"]] if network else []
    if not data:
        return [["similar", folder, node, *network], ["explore", folder, *network], *again] if network else []
    one = network if is_list else []  # for commands on a single network
    listed = [["similar", folder, f"{'0:' * is_list}{node}", "--by", "role"], ["roles", folder]]
    return [*listed, ["report", folder], ["explore", folder, *one], *again, ["evaluate", folder, *one]]


def _read_networks(
    files: Sequence[Path | None],
    features: Sequence[Path],
    how: Reading,
    report: cli.Report,
    query: str | None,
    database: Path | None,
) -> "tuple[list[str], list[Graph], FeatureEncoder | None]":
    """Read networks to fit together; mixed tables of features get one encoder, fitted on all of them.

    Also returns how the files were understood, in two lines per network.
    """
    if features and len(features) != len(files):
        raise ParameterError(
            f"--features is given for {len(features)} of {len(files)} EDGES; pass one for each, or none"
        )
    report("reading", 0, len(files))
    understood: list[str] = []
    encoder, graphs = how.encoder() if len(files) == 1 else _fit_encoder(files, features, how), []
    for number, edges in enumerate(files):
        table = features[number] if features else None
        if len(files) > 1 and edges is not None:
            graph = how.network(edges, table, encoder)
        else:
            contents, graph = how.read(edges, table, encoder, query, database)
            encoder = graph.encoder or encoder
            understood += [f"{contents.path}: {contents.notes[0]}", *contents.notes[1:]]
            understood += [str(graph.report or "")]
            if graph.report is not None and 0 < 2 * graph.report.reciprocal < graph.report.edges:
                understood.append("few edges are listed in both directions; if those matter, add --directed")
        graphs.append(graph)
        report("reading", number + 1, len(files))
        shared = set(graph.names.tolist()) & set(graphs[0].names.tolist()) if number and not features else ()
        if shared and 2 * len(shared) >= max(graph.num_edges, len(graph)):
            message = (
                f"{edges} has names of {files[0]}; if it is a table of nodes, add it by --features {edges}"
            )
            warnings.warn(message, SpineWarning, stacklevel=1)
    return [line for line in understood if line], graphs, encoder


def _fit_encoder(
    files: Sequence[Path | None], features: Sequence[Path], how: Reading
) -> "FeatureEncoder | None":
    """Fit an encoder on all tables together if one of them has gaps or columns other than numbers."""
    import pyarrow as pa

    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.feature_files import is_numeric, read_features

    column, nodes, tables = how.arguments()["node_column"], None, []
    for edges, path in zip(files, features, strict=False):
        if column is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they come when the network is read for good
                nodes = how.read(edges, None)[1].names
        tables.append(read_features(path, column, nodes).data)
    if not how.column and all(is_numeric(table) for table in tables):
        return None
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as fault:
        raise GraphFormatError(f"the feature tables do not fit together: {fault}") from fault
    return (how.encoder() or FeatureEncoder()).fit(whole)


def _print_fit(facts: dict[str, Any], commands: Sequence[Sequence[str]]) -> None:
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
        else "none; structure only",
        "vectors": f"{facts['dim']} numbers: "
        + ", ".join(f"{name} {width}" for name, width in facts["parts"].items()),
    }
    if facts["learned"] is not None:
        before, after = facts["learned"]["before"], facts["learned"]["after"]
        shown["learning"] = (
            f"hidden links guessed {after:.1f} times as well as by chance, {before:.1f} before"
            if after > before
            else f"nothing gained; hidden links guessed {before:.1f} times as well as by chance"
        )
    cli.print_facts(facts["model"], shown)
    typer.echo()
    if commands:
        cli.print_next(*commands)
