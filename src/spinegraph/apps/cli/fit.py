"""``spine fit``: from edges to a model."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spinegraph.analysis.scores import ClassScore
from spinegraph.apps.cli.evaluate import print_classes
from spinegraph.apps.cli.options import CheckpointFolder, Json, Quiet, Resume, settings, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.config import Config
from spinegraph.errors import ParameterError, SpineWarning


def fit_facts(
    model: Any, output: Path, first_step: int | None, scores: Sequence[ClassScore] | None
) -> dict[str, Any]:
    """Return what was fitted, as JSON holds it."""
    graphs = model.graph_ if isinstance(model.graph_, list) else [model.graph_]
    features = graphs[0].features
    facts: dict[str, Any] = {
        "model": str(output),
        "networks": len(graphs),
        "nodes": sum(len(graph) for graph in graphs),
        "edges": sum(graph.num_edges for graph in graphs),
        "features": 0 if features is None else int(features.shape[1]),
        "encoded": model.table_encoder_ is not None,
        "dim": model.generator_.dim,
        "resumed_from": first_step or None,
        "steps": model.history_[-1].step if model.history_ else 0,
        "held_out_loss": [round(moment.held_out_loss, 6) for moment in model.history_],
        "settings": model.config_.to_json(),
    }
    if scores is not None:
        facts["classes"] = [asdict(score) for score in scores]
    return facts


def print_fit(
    facts: dict[str, Any],
    files: Sequence[str],
    scores: Sequence[ClassScore] | None,
    console: Console | None = None,
) -> None:
    """Print a model's size, its training, and what to do next with its ``files``, as embed takes them."""
    console = console or Console(highlight=False)
    console.print(f"[bold]{escape(facts['model'])}[/bold]", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    several = f" in {facts['networks']} networks" if facts["networks"] > 1 else ""
    grid.add_row("  nodes", f"{facts['nodes']:,}{several}, edges {facts['edges']:,}")
    table = ", encoded from a table" if facts["encoded"] else ""
    columns = f"{facts['features']:,} columns{table}" if facts["features"] else "none; structure alone"
    grid.add_row("  features", columns)
    grid.add_row("  vectors", f"{facts['dim']} dimensions")
    grid.add_row("  training", _training(facts))
    console.print(grid)
    console.print()
    if scores is not None:
        print_classes(scores, console)
    console.print("[bold]Next[/bold]")
    for words in (
        ["embed", facts["model"], *files, "-o", "vectors.parquet"],
        ["evaluate", facts["model"], "--labels", "LABELS"],
        ["similar", facts["model"], "NODE"],
    ):
        console.print(f"  spine {join(words)}", markup=False, soft_wrap=True)


def _training(facts: dict[str, Any]) -> str:
    losses = facts["held_out_loss"]
    if not losses:
        return "no steps: there was nothing to learn from pairs"
    resumed = f", resumed after {facts['resumed_from']}" if facts["resumed_from"] else ""
    return f"{facts['steps']} steps{resumed}; held-out loss {losses[0]:.3f} to {losses[-1]:.3f}"


@takes(config=settings, how=reading)
def fit(
    edges: Annotated[
        list[Path],
        typer.Argument(
            metavar="EDGES",
            help="CSV, TSV, white space, Parquet, npz or GraphML, or a store; - is the standard input. "
            "Several networks are fitted together.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model's folder.")],
    features: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Node features: npz, npy, CSV, Parquet; one for each EDGES."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Node labels, to see how well vectors tell them; never used for fitting.",
        ),
    ] = None,
    checkpoint: CheckpointFolder = None,
    resume: Resume = False,
    data: Annotated[
        bool | None,
        typer.Option(
            "--data/--no-data",
            help="Save the training network and its vectors as well; by default, unless it is a store.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: Config,
    how: Reading,
) -> None:
    """Learn from one network, or from several together, how to make vectors of nodes.

    Example: spine fit edges.csv --features people.csv -o model
    """
    from spinegraph.apps.cli.options import interruptible, require_checkpoint, shown_progress
    from spinegraph.apps.cli.reading import read_known, read_several

    require_checkpoint(checkpoint, resume)
    _require_output(output, labels, len(edges))
    with shown_progress(quiet=quiet) as report:
        graphs, encoder = read_several(edges, features or [], how, report)
        known = None if labels is None else read_known(labels, graphs[0].names)
        report("loading PyTorch", 0, 0)
        from spinegraph.estimator import SPINE

        told = _Told(report)
        model = SPINE(**config.to_json())
        with interruptible(checkpoint):
            whole = graphs if len(graphs) > 1 else graphs[0]
            data = all(graph.store is None for graph in graphs) if data is None else data
            vectors = data or known is not None  # what nobody asks for may not fit in memory
            model.fit(whole, encoder=encoder, checkpoint=checkpoint, progress=told, vectors=vectors)
        report("saving", 0, 0)
        model.save(output, data=data)
        scores = None
        if known is not None:
            from spinegraph.apps.evaluating import class_scores

            scores = class_scores(model, graphs[0], known, config.seed, report)
        if resume and told.first_step == 0:
            warnings.warn(
                f"{checkpoint}: held no state of this run (the same data and settings); it began anew",
                SpineWarning,
                stacklevel=1,
            )
    facts = fit_facts(model, output, told.first_step, scores)
    if json:
        from json import dumps

        typer.echo(dumps(facts, indent=2))
    elif not quiet:
        files = [str(edges[0]), *(["--features", str(features[0])] if features else [])]
        print_fit(facts, files, scores)


class _Told:
    """Passes progress on and remembers where training began."""

    def __init__(self, report: Any) -> None:
        self._report = report
        self.first_step: int | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage == "training" and self.first_step is None:
            self.first_step = done
        self._report(stage, done, total)


def _require_output(output: Path, labels: Path | None, networks: int) -> None:
    """Refuse before the work what would fail after it."""
    from spinegraph.atomic import require_writable
    from spinegraph.storage.model_folder import require_replaceable

    if labels is not None and networks > 1:
        raise ParameterError("--labels goes with one network; for several, run spine evaluate on each")
    require_replaceable(output)
    require_writable(output)
