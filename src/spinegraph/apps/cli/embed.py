"""``spine embed``: vectors of the nodes of any network, by a fitted model."""

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import Reading
from spinegraph.errors import GraphFormatError, SpineWarning

if TYPE_CHECKING:
    from spinegraph.graph.graph import Graph


@cli.takes(settings=cli.some_settings("threads", "engine", "address"), how=Reading)
def embed(
    model: cli.Model,
    edges: Annotated[Path, typer.Argument(metavar="EDGES", help="A network or store; - is standard input.")],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".parquet, .npz, .csv or .txt (word2vec); - prints CSV. "
            "FOLDER/ gets a folder of Parquet files; an interrupted run is resumed.",
        ),
    ],
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Node features, with the same columns as in the fit.")
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this node, or those in a file, one per line; repeatable."),
    ] = None,
    same_network: Annotated[
        bool | None,
        typer.Option(
            "--same-network/--other-network",
            help="Whether EDGES is the fitted network, perhaps changed; detected unless given.",
            show_default=False,
        ),
    ] = None,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    settings: dict[str, Any],
    how: Reading,
) -> None:
    """Make vectors for the nodes of a network, the fitted one or another, without training.

    Example: spine embed model later.csv --features people_later.csv -o vectors.parquet
    """
    if json and output == cli.STANDARD_OUTPUT:
        raise typer.BadParameter("would mix JSON with the vectors; name a file", param_hint="--output")
    with cli.shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        from spinegraph.analysis.explain import plural
        from spinegraph.embeddings import require_savable, write_csv
        from spinegraph.engines.engine import embed_to_folder
        from spinegraph.estimator import SPINE
        from spinegraph.graph.store import is_store

        # With FOLDER/, an existing folder, or a store and no suffix, vectors go to a folder of files.
        is_folder = output.endswith("/") or Path(output).is_dir()
        is_folder |= not Path(output).suffix and output != cli.STANDARD_OUTPUT and is_store(edges)
        if is_folder and (nodes is not None or same_network is not None):
            option = "--same-network" if nodes is None else "--nodes"
            raise typer.BadParameter("works with a file, not with a folder of all nodes", param_hint=option)
        if output != cli.STANDARD_OUTPUT and not is_folder:
            require_savable(Path(output))
        fitted = SPINE.load(model)
        if settings:
            fitted.generator_ = fitted.set_params(**settings).generator_.with_config(**settings)
        graph = how.network_for(fitted, edges, features)
        wanted = None if nodes is None else _names(nodes, graph)
        count = len(graph if wanted is None else wanted)
        facts: dict[str, Any] = {"output": output, "nodes": count, "dim": fitted.generator_.dim}
        if is_folder:
            generator = fitted.generator_
            generator.require_features(graph)
            fitted.familiarity_.warn(graph)
            embed_to_folder(generator, graph, Path(output), progress=report)
            is_same = generator.known(graph) is not None if "place" in generator.parts else None
            facts |= {"same_network": is_same, "files": len(list(Path(output).glob("part-*.parquet")))}
        else:
            report(f"embedding {plural(count, 'node')}", 0, 0)
            vectors = fitted.transform(graph, wanted, same_network=same_network)
            facts["same_network"] = vectors.same_network
            report("writing", 0, 0)
            if output == cli.STANDARD_OUTPUT:
                write_csv(sys.stdout.buffer, vectors)
                sys.stdout.buffer.flush()
            else:
                vectors.save(Path(output))
        if facts["same_network"] is False and same_network is None:
            reason = f"{edges} is not the network that the model was fitted on"
            advice = "" if is_folder else "; if it is the same, add --same-network"
            if not len(fitted.generator_.place.positions):  # type: ignore[union-attr]
                reason, advice = "the model was saved without place (--no-place)", ""
            message = f"{reason}, so nodes have no place: that part is zero{advice}"
            warnings.warn(message, SpineWarning, stacklevel=1)
    if json:
        cli.print_json(facts)
    elif not quiet and output != cli.STANDARD_OUTPUT:
        files = f" in {plural(facts['files'], 'file')}" if is_folder else ""
        typer.echo(f"{output}: {plural(count, 'vector')} of {facts['dim']} dimensions{files}")


def _names(given: list[str], graph: "Graph") -> list[Any]:
    """Return the names in ``--nodes``, given by name or by file, with the type of the graph's names."""
    from spinegraph.graph.edge_files import is_integer

    texts: list[str] = []
    for one in given:
        if not os.path.isfile(one):
            texts.append(one)
            continue
        try:
            texts += Path(one).read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError as fault:
            raise GraphFormatError(f"{one}: expected UTF-8 text, a name per line ({fault.reason})") from fault
    texts = [text.strip() for text in texts if text.strip()]
    if graph.names.dtype == object:
        return texts
    return [int(text) if is_integer(text) else text for text in texts]
