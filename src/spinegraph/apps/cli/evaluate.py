"""``spine evaluate``: what vectors are worth, beside controls that learn nothing."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from spinegraph.analysis.scores import ClassScore, ClusterScore, LinkScore
from spinegraph.apps.cli.options import CheckpointFolder, Json, Quiet, Resume, some_settings, takes
from spinegraph.apps.cli.reading import Reading, reading

if TYPE_CHECKING:
    from spinegraph.apps.evaluating import Evaluation


_SCORERS = ("dot", "cosine", "hadamard")


def print_evaluation(found: "Evaluation", console: Console | None = None) -> None:
    """Print one table for each question that was asked."""
    console = console or Console(highlight=False)
    size = f"{found.nodes:,} nodes, {found.dim} dimensions"
    console.print(f"[bold]{escape(found.subject)}[/bold]  {size}\n", soft_wrap=True)
    if found.classes is not None:
        print_classes(found.classes, console, found.num_classes)
    if found.links is not None:
        _print_links(found.links, found.hidden or 0, console)
    if found.clusters is not None:
        _print_clusters(found.clusters, found.num_clusters or 0, console)


def print_classes(scores: Sequence[ClassScore], console: Console, classes: int | None = None) -> None:
    """Print accuracies in per cent."""
    named = f", {classes} classes" if classes else ""
    console.print(f"[bold]Node classification[/bold]{named}, in %")
    cells = [(score.vectors, f"{100 * score.accuracy:.1f} ± {100 * score.deviation:.1f}") for score in scores]
    _print_table(("", "right answers"), cells, console)
    splits = max(len(score.C) for score in scores)
    protocol = f"Logistic regression, C chosen on validation nodes; mean and deviation of {splits} splits."
    values = {score.vectors: score.accuracy for score in scores if score.C}
    _print_note(f"{protocol} {_verdict(values)}", console)


def _print_links(scores: Sequence[LinkScore], hidden: int, console: Console) -> None:
    console.print(f"[bold]Link prediction[/bold], {hidden:,} hidden edges among as many non-edges, in %")
    by = {(score.vectors, score.by): score for score in scores}
    names = dict.fromkeys(score.vectors for score in scores if score.by != "itself")
    titles = ("", *(f"{part}\n{scorer}" for part in ("AUC", "AP") for scorer in _SCORERS))
    cells = [
        (
            name,
            *(f"{100 * by[name, scorer].auc:.1f}" for scorer in _SCORERS),
            *(f"{100 * by[name, scorer].average_precision:.1f}" for scorer in _SCORERS),
        )
        for name in names
    ]
    measures = [score for score in scores if score.by == "itself"]
    cells += [
        (one.vectors, f"{100 * one.auc:.1f}", "", "", f"{100 * one.average_precision:.1f}", "", "")
        for one in measures
    ]
    _print_table(titles, cells, console)
    best = {name: max(by[name, scorer].auc for scorer in _SCORERS) for name in names}
    best |= {one.vectors: one.auc for one in measures}
    _print_note(
        "Everything was made from the network without the hidden edges. hadamard: logistic regression on "
        f"products of two vectors, its C chosen on other hidden edges. By the best AUC, {_verdict(best)}",
        console,
    )


def _print_clusters(scores: Sequence[ClusterScore], count: int, console: Console) -> None:
    console.print(f"[bold]Clusters[/bold], {count} by k-means")
    columns = [
        (title, [getattr(score, name) for score in scores])
        for title, name in (
            ("NMI", "nmi"),
            ("ARI", "ari"),
            ("modularity", "modularity"),
            ("silhouette", "silhouette"),
        )
    ]
    shown = [(title, values) for title, values in columns if values[0] is not None]
    cells = [
        (score.vectors, *(f"{values[place]:.3f}" for _, values in shown))
        for place, score in enumerate(scores)
    ]
    _print_table(("", *(title for title, _ in shown)), cells, console)
    compared = next((score for score in ("nmi", "modularity") if getattr(scores[0], score) is not None), None)
    note = "A silhouette is of the vectors' own space, so it does not compare rows."
    if compared is not None:
        values = {score.vectors: float(getattr(score, compared)) for score in scores}
        title = "NMI" if compared == "nmi" else "modularity"
        note = f"{note} By {title}, {_verdict(values, 1, 3)}"
    _print_note(note, console)


def _verdict(values: dict[str, float], scale: float = 100, digits: int = 1) -> str:
    """Say how the first stands to the best of the others, in the table's scale and digits."""
    (name, value), *others = values.items()
    if not others:
        return "There is no control: pass the network with --graph."
    control, best = max(others, key=lambda pair: pair[1])
    gap = round(scale * (value - best), digits)
    if not gap:
        return f"{name} is at parity with the best control, {control}."
    return f"{name} is {abs(gap):.{digits}f} {'above' if gap > 0 else 'below'} the best control, {control}."


def _print_table(titles: Iterable[str], cells: Iterable[tuple[str, ...]], console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, title in enumerate(titles):
        table.add_column(title, justify="right" if place else "left")
    for place, row in enumerate(cells):
        table.add_row(*map(escape, row), style="bold" if place == 0 else "")
    console.print(Padding(table, (0, 0, 1, 2), expand=False))


def _print_note(text: str, console: Console) -> None:
    console.print(Padding(escape(text), (0, 0, 1, 2)), style="dim")


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
    from spinegraph.apps.cli.options import interruptible, require_checkpoint, shown_progress
    from spinegraph.apps.cli.reading import read_known

    require_checkpoint(checkpoint, resume)
    with shown_progress(quiet=quiet) as report, interruptible(checkpoint):
        report("reading", 0, 0)
        from spinegraph.apps.evaluating import Questions, Subject, Task
        from spinegraph.apps.evaluating import evaluate as ask

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

    print_evaluation(found)
