"""``spine fit``: from edges to a model."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from spinegraph.apps.cli.options import Json, Quiet, settings, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.apps.cli.resuming import CheckpointFolder, Resume
from spinegraph.config import Config
from spinegraph.errors import ParameterError, SpineWarning


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
    from spinegraph.apps.cli.fit_view import fit_facts, print_fit
    from spinegraph.apps.cli.progress import shown_progress
    from spinegraph.apps.cli.reading import read_known, read_several
    from spinegraph.apps.cli.resuming import interruptible, require_checkpoint

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
    from spinegraph.model_folder import require_replaceable

    if labels is not None and networks > 1:
        raise ParameterError("--labels goes with one network; for several, run spine evaluate on each")
    require_replaceable(output)
    require_writable(output)
