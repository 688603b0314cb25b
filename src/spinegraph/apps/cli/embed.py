"""``spine embed``: vectors of the nodes of any network, by a model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.apps.cli.options import Json, Quiet, some_settings, takes
from spinegraph.apps.cli.reading import Reading, reading

if TYPE_CHECKING:
    from spinegraph.embeddings import Embeddings
    from spinegraph.generator import Generator
    from spinegraph.graph.graph import Graph

_STANDARD_OUTPUT = Path("-")


@takes(settings=some_settings("threads"), how=reading)
def embed(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that fit wrote.")],
    edges: Annotated[
        Path, typer.Argument(metavar="EDGES", help="Any network, seen or not; - is the standard input.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".parquet, .npz, .csv, .txt (word2vec), .projector (a folder for TensorBoard); "
            "- prints CSV.",
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
    from spinegraph.apps.cli.progress import shown_progress

    if json and output == _STANDARD_OUTPUT:
        raise typer.BadParameter("would print JSON among the vectors; name a file", param_hint="--output")
    with shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        from spinegraph.embeddings import require_savable
        from spinegraph.estimator import SPINE

        if output != _STANDARD_OUTPUT:
            require_savable(output)
        fitted = SPINE.load(model)
        if settings:
            fitted.generator_ = _changed(fitted.generator_, settings)
        graph = how.network(edges, features, fitted.table_encoder_)
        wanted = None if nodes is None else _names(nodes, graph)
        count = len(graph if wanted is None else wanted)
        report(f"embedding {count:,} nodes", 0, 0)
        vectors = fitted.transform(graph, wanted)
        report("writing", 0, 0)
        _write(vectors, output)
    if json:
        from json import dumps

        facts = {"output": str(output), "nodes": len(vectors), "dim": vectors.dim}
        typer.echo(dumps(facts, indent=2))
    elif not quiet and output != _STANDARD_OUTPUT:
        typer.echo(f"{output}: {len(vectors):,} vectors of {vectors.dim} dimensions")


def _changed(generator: "Generator", settings: dict[str, Any]) -> "Generator":
    inputs = generator.inputs
    return replace(generator, inputs=replace(inputs, config=replace(inputs.config, **settings).check()))


def _names(given: list[str], graph: "Graph") -> list[Any]:
    """Return the names asked for, as the graph has them."""
    texts: list[str] = []
    for one in given:
        path = Path(one)
        texts += path.read_text(encoding="utf-8").splitlines() if path.is_file() else [one]
    texts = [text.strip() for text in texts if text.strip()]
    if graph.names.dtype == object:
        return texts
    return [int(text) if text.lstrip("-").isdecimal() else text for text in texts]


def _write(vectors: "Embeddings", output: Path) -> None:
    if output != _STANDARD_OUTPUT:
        vectors.save(output)
        return
    import sys

    from spinegraph.embedding_files import write_csv

    write_csv(sys.stdout.buffer, vectors.names, vectors.vectors)
    sys.stdout.buffer.flush()
