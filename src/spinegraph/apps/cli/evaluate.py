"""``spine evaluate``: what vectors are worth, beside controls that learn nothing."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from spinegraph.apps.cli.options import Json, Quiet, some_settings, takes
from spinegraph.apps.cli.reading import Reading, reading
from spinegraph.apps.cli.resuming import CheckpointFolder, Resume


class Asked(StrEnum):
    """What vectors are asked."""

    classes = "classes"
    links = "links"
    clusters = "clusters"


@takes(settings=some_settings("seed", "threads", "device"), how=reading)
def evaluate(
    source: Annotated[Path, typer.Argument(metavar="MODEL", help="A model's folder, or a file of vectors.")],
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Node labels: CSV, Parquet, or a network's npz.")
    ] = None,
    task: Annotated[
        list[Asked] | None,
        typer.Option(help="What to ask, by default all that can be asked; may be repeated."),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(metavar="EDGES", help="Another network, or the one of a file's vectors.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --graph: its node features.")
    ] = None,
    train: Annotated[float, typer.Option(help="Share of labelled nodes that train the classifier.")] = 0.2,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits of labelled nodes.")] = 5,
    hide: Annotated[float, typer.Option(help="Share of edges to hide and predict.")] = 0.1,
    clusters: Annotated[
        int | None, typer.Option(min=2, help="Clusters; by default as many as classes, else 8.")
    ] = None,
    checkpoint: CheckpointFolder = None,
    resume: Resume = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
    how: Reading,
) -> None:
    """Measure what vectors are worth for classes, links and clusters, beside controls that learn nothing.

    For links, a model with the same settings is fitted on the network without the edges to be predicted.

    Example: spine evaluate model --labels teams.csv --task classes
    """
    from spinegraph.apps.cli.progress import shown_progress
    from spinegraph.apps.cli.reading import read_known
    from spinegraph.apps.cli.resuming import interruptible, require_checkpoint

    require_checkpoint(checkpoint, resume)
    with shown_progress(quiet=quiet) as report, interruptible(checkpoint):
        report("reading", 0, 0)
        from spinegraph.apps.evaluating import Questions, Task
        from spinegraph.apps.evaluating import evaluate as ask
        from spinegraph.apps.evaluation_subject import Subject

        network = None if graph is None else lambda encoder: how.network(graph, features, encoder)
        subject = Subject.open(source, network)
        known = None if labels is None else read_known(labels, subject.names)
        tasks = tuple(Task(one.value) for one in task or ())
        questions = Questions(tasks, train, repeats, hide, clusters, settings, checkpoint)
        found = ask(subject, known, questions, report)
    if json:
        from dataclasses import asdict
        from json import dumps

        typer.echo(dumps(asdict(found), indent=2))
        return
    from spinegraph.apps.cli.evaluate_view import print_evaluation

    print_evaluation(found)
