"""``spine embed``: vectors of the nodes of any network, by a model."""

import os
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli.options import Json, Quiet, some_settings, takes
from spinegraph.apps.cli.reading import Reading, reading

if TYPE_CHECKING:
    from spinegraph.apps.cli.options import Report
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE
    from spinegraph.generator import Generator
    from spinegraph.graph.graph import Graph

_STANDARD_OUTPUT = "-"


@takes(settings=some_settings("threads", "engine", "address"), how=reading)
def embed(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that fit wrote.")],
    edges: Annotated[
        Path,
        typer.Argument(
            metavar="EDGES", help="Any network, seen or not, or a store; - is the standard input."
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".parquet, .npz, .csv, .txt (word2vec), .projector (a folder for TensorBoard); "
            "- prints CSV. A folder, FOLDER/, gets Parquet parts, and goes on after a stop.",
        ),
    ],
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Node features, with the columns of the fitted ones.")
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this node, or those in this file, a name a line; repeatable."
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
    how: Reading,
) -> None:
    """Make vectors of the nodes of a network, the fitted one or another; nothing is trained.

    Example: spine embed model later.csv --features people_later.csv -o vectors.parquet
    """
    from spinegraph.apps.cli.options import shown_progress

    if json and output == _STANDARD_OUTPUT:
        raise typer.BadParameter("would print JSON among the vectors; name a file", param_hint="--output")
    with shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        from spinegraph.embeddings import require_savable
        from spinegraph.estimator import SPINE

        is_folder = _is_folder(output, edges)
        if is_folder and nodes is not None:
            raise typer.BadParameter("goes with a file, not with a folder of all nodes", param_hint="--nodes")
        if output != _STANDARD_OUTPUT and not is_folder:
            require_savable(Path(output))
        fitted = SPINE.load(model)
        if settings:
            fitted.set_params(**settings).generator_ = _changed(fitted.generator_, settings)
        graph = how.network(edges, features, fitted.table_encoder_)
        wanted = None if nodes is None else _names(nodes, graph)
        count = len(graph if wanted is None else wanted)
        facts: dict[str, Any] = {"output": output, "nodes": count, "dim": fitted.generator_.dim}
        if is_folder:
            facts |= _write_shards(fitted, graph, Path(output), report)
        else:
            report(f"embedding {count:,} nodes", 0, 0)
            vectors = fitted.transform(graph, wanted)
            report("writing", 0, 0)
            _write(vectors, output)
    if json:
        from json import dumps

        typer.echo(dumps(facts, indent=2))
    elif not quiet and output != _STANDARD_OUTPUT:
        typer.echo(f"{output}: {count:,} vectors of {facts['dim']} dimensions{_rate(facts)}")


def _is_folder(output: str, edges: Path) -> bool:
    from spinegraph.graph.store import is_store

    suffix = Path(output).suffix
    is_named = output.endswith("/") or (Path(output).is_dir() and suffix != ".projector")
    return is_named or (not suffix and output != _STANDARD_OUTPUT and is_store(edges))


def _write_shards(fitted: "SPINE", graph: "Graph", folder: Path, report: "Report") -> dict[str, Any]:
    """Write all vectors to a folder, and return how many parts there are and how quickly this run went."""
    from spinegraph.engines.engine import embed_to_folder

    if fitted.generator_.inputs.encoder is not None:
        fitted.generator_.inputs.require_features(graph)
    fitted.familiarity_.warn(graph)
    first: list[int] = []

    def told(stage: str, done: int, total: int) -> None:
        first.append(done)
        report(stage, done, total)

    start = perf_counter()
    embed_to_folder(fitted.generator_, graph, folder, progress=told)
    seconds = perf_counter() - start
    made = len(graph) - first[0]
    parts = len(list(folder.glob("part-*.parquet")))
    return {"parts": parts, "embedded_now": made, "nodes_per_second": round(made / max(seconds, 1e-9), 1)}


def _rate(facts: dict[str, Any]) -> str:
    if "parts" not in facts:
        return ""
    parts = f" in {facts['parts']} part{'s' * (facts['parts'] != 1)}"
    return parts + (f", {facts['nodes_per_second']:,.0f} nodes a second" if facts["embedded_now"] else "")


def _changed(generator: "Generator", settings: dict[str, Any]) -> "Generator":
    inputs = generator.inputs
    return replace(generator, inputs=replace(inputs, config=replace(inputs.config, **settings).check()))


def _names(given: list[str], graph: "Graph") -> list[Any]:
    """Return the names asked for, as the graph has them."""
    from spinegraph.graph.edge_files import is_integer

    texts: list[str] = []
    for one in given:
        texts += _lines(Path(one)) if os.path.isfile(one) else [one]  # a long name is no error to os.path
    texts = [text.strip() for text in texts if text.strip()]
    if graph.names.dtype == object:
        return texts
    return [int(text) if is_integer(text) else text for text in texts]


def _lines(path: Path) -> list[str]:
    from spinegraph.errors import GraphFormatError

    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as fault:
        raise GraphFormatError(
            f"{path}: expected names as UTF-8 text, one a line ({fault.reason})"
        ) from fault


def _write(vectors: "Embeddings", output: str) -> None:
    if output != _STANDARD_OUTPUT:
        vectors.save(Path(output))
        return
    import sys

    from spinegraph.embeddings import write_csv

    write_csv(sys.stdout.buffer, vectors.names, vectors.vectors)
    sys.stdout.buffer.flush()
