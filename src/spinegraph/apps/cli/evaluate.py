"""``spine evaluate``: vectors beside controls that learn nothing, for classes, links and clusters."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from spinegraph.apps.cli.options import (
    GraphFeatures,
    Json,
    Quiet,
    Report,
    Weights,
    plain_table,
    print_json,
    shown_progress,
    some_settings,
    takes,
)
from spinegraph.apps.cli.reading import Reading, load_one_network, read_known
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinegraph.analysis.evaluation import ClassScore, ClusterScore, LinkScore
    from spinegraph.estimator import SPINE
    from spinegraph.graph.graph import Graph

Rows = dict[str, Any]  # name -> vectors (n, d), dense or sparse
_ALONE = " alone"  # ends the name of a row of one part
_DEFAULT_CLUSTERS = 8
_HALF_A_POINT = 0.005  # smaller differences do not decide
_SCORERS = ("dot", "cosine", "hadamard")


class Task(StrEnum):
    """What vectors are evaluated for."""

    classes = "classes"
    links = "links"
    clusters = "clusters"


@takes(settings=some_settings("seed", "threads", "device"), how=Reading)
def evaluate(
    source: Annotated[Path, typer.Argument(metavar="MODEL", help="A model's folder, or a file of vectors.")],
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Node labels: CSV, Parquet, or a network's npz.")
    ] = None,
    task: Annotated[
        list[Task] | None,
        typer.Option(help="What to evaluate, by default all that is possible; may be repeated."),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(metavar="EDGES", help="Another network, or the one of a file's vectors.")
    ] = None,
    features: GraphFeatures = None,
    train: Annotated[float, typer.Option(help="Share of labelled nodes that train the classifier.")] = 0.2,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits of labelled nodes.")] = 5,
    hide: Annotated[float, typer.Option(help="Share of edges to hide and predict.")] = 0.1,
    clusters: Annotated[
        int | None, typer.Option(min=2, help="Clusters; by default as many as classes, else 8.")
    ] = None,
    weights: Weights = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    settings: dict[str, Any],
    how: Reading,
) -> None:
    """Measure what vectors are worth for classes, links and clusters, beside what a sceptic would try first.

    All parts together, and each alone. For links, a model with the same settings is fitted on the network
    without the edges to be predicted.

    Example: spine evaluate model --labels teams.csv --task classes
    """
    seed = int(settings.get("seed", 0))
    with shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        from spinegraph.analysis.evaluation import class_numbers, score_clusters

        subject = Subject.open(source, graph, features, how)
        known = None if labels is None else read_known(labels, subject.names)
        tasks = _possible_tasks(subject, known is not None, task or [])
        rows = subject.rows(weights, report) if set(tasks) - {Task.links} else {}
        numbers, classes = (None, []) if known is None else class_numbers(known)
        found = Evaluation(str(source), len(subject.names), subject.dim, num_classes=len(classes) or None)
        if Task.classes in tasks:
            found.classes = _score_classes(rows, numbers, report, train=train, repeats=repeats, seed=seed)
        if Task.links in tasks:
            found.links, found.hidden = _score_links(subject, settings, hide, seed, weights, report)
        if Task.clusters in tasks:
            count = clusters or len(classes) or min(_DEFAULT_CLUSTERS, len(subject.names))
            found.num_clusters, found.clusters = count, []
            for done, (name, vectors) in enumerate(rows.items()):
                report("clusters", done, len(rows))
                row = {name: vectors}
                found.clusters += score_clusters(row, count, labels=numbers, graph=subject.graph, seed=seed)
    if json:
        print_json(asdict(found))
    else:
        _print_evaluation(found)


@dataclass(frozen=True, eq=False)
class Subject:
    """Vectors to evaluate: those of a model, or those of a file."""

    names: "NDArray[Any]"  # (n,)
    dim: int
    graph: "Graph | None"  # None only where the vectors of a file come without a network
    model: "SPINE | None" = None
    vectors: Embeddings | None = None  # those of a file

    @classmethod
    def open(cls, source: Path, edges: Path | None, features: Path | None, how: Reading) -> "Subject":
        """Open a model's folder, or a file of vectors, with the network of a file where one is given."""
        if source.is_dir():
            model, own = load_one_network(source, edges, features, how)
            return cls(own.names, model.generator_.dim, own, model)
        found = Embeddings.load(source)
        if edges is None:
            return cls(found.names, found.dim, None, None, found)
        graph = how.network(edges, features)
        some = Embeddings(graph.names, found.of(graph.names.tolist()), found.parts)
        return cls(graph.names, found.dim, graph, None, some)

    def rows(self, weights: dict[str, float] | None, report: Report) -> Rows:
        """Return the vectors, and those of their controls."""
        if self.model is not None and self.graph is not None:
            return _model_rows(self.model, self.graph, weights, report)
        assert self.vectors is not None
        rows = _part_rows("vectors", self.vectors, weights)
        if self.graph is not None:
            from spinegraph.analysis.baselines import controls

            made = controls(self.graph, self.dim)
            rows |= {name: vectors(self.graph) for name, vectors in made.items()}
        return rows


@dataclass
class Evaluation:
    """Scores of vectors and of their controls; None for what was not evaluated."""

    subject: str  # the model's folder, or a file
    nodes: int
    dim: int
    num_classes: int | None = None
    num_clusters: int | None = None
    hidden: int | None = None  # edges
    classes: "list[ClassScore] | None" = None
    links: "list[LinkScore] | None" = None
    clusters: "list[ClusterScore] | None" = None


def _possible_tasks(subject: Subject, has_labels: bool, tasks: Sequence[Task]) -> Sequence[Task]:
    """Return the tasks asked for, or all that are possible; raise for those that are not."""
    if Task.classes in tasks and not has_labels:
        raise ParameterError("classes need --labels FILE, a table of names and labels")
    if Task.links in tasks and subject.model is None:
        raise ParameterError(
            "links: vectors of a file were made with every edge known, none is left to predict; "
            "pass a model's folder"
        )
    possible = {Task.classes: has_labels, Task.links: subject.model is not None, Task.clusters: True}
    return tasks or [task for task, is_possible in possible.items() if is_possible]


def _model_rows(model: "SPINE", graph: "Graph", weights: dict[str, float] | None, report: Report) -> Rows:
    """Return a model's vectors of a graph's nodes and those of its controls, which learn nothing."""
    from spinegraph.analysis.baselines import methods
    from spinegraph.graph.graph import Graph

    own, generator = model.graph_, model.generator_
    train = own if isinstance(own, Graph) and own.num_features == graph.num_features else graph
    embed, rows = methods(generator, train, model.config_.seed), Rows()
    for done, (name, made) in enumerate(embed.items()):
        report(f"vectors: {name}", done, len(embed))
        rows[name] = made(graph)
    spine = Embeddings(graph.names, rows["SPINE"], generator.parts)
    return _part_rows("SPINE", spine, weights) | {name: rows[name] for name in rows if name != "SPINE"}


def _part_rows(name: str, found: Embeddings, weights: dict[str, float] | None) -> Rows:
    """Return vectors, weighted where weights are given, and each of several parts that is not zero."""
    rows = {name: (found if weights is None else found.weighted(weights=weights)).vectors}
    parts = {part: found.part(part).vectors for part in found.parts} if len(found.parts) > 1 else {}
    return rows | {f"{part}{_ALONE}": values for part, values in parts.items() if values.any()}


def class_scores(
    model: "SPINE", graph: "Graph", known: "NDArray[Any]", *, seed: int, report: Report
) -> "list[ClassScore]":
    """Return how well a classifier reads labels from a model's vectors and from its controls."""
    from spinegraph.analysis.evaluation import class_numbers

    return _score_classes(_model_rows(model, graph, None, report), class_numbers(known)[0], report, seed=seed)


def _score_classes(rows: Rows, labels: Any, report: Report, **how: Any) -> "list[ClassScore]":
    from spinegraph.analysis.evaluation import score_classes

    scores: list[ClassScore] = []
    for done, (name, vectors) in enumerate(rows.items()):
        report("node classification", done, len(rows))
        *found, largest = score_classes({name: vectors}, labels, **how)
        scores += found
    return [*scores, largest]


def _score_links(
    subject: Subject,
    settings: dict[str, Any],
    hide: float,
    seed: int,
    weights: dict[str, float] | None,
    report: Report,
) -> "tuple[list[LinkScore], int]":
    """Hide edges, fit on the rest with the model's settings, and score the hidden edges, also counted."""
    from spinegraph.analysis.evaluation import hide_edges, neighbour_scores, score_links

    assert subject.model is not None
    assert subject.graph is not None
    hidden = hide_edges(subject.graph, hide, seed=seed)
    fitted = type(subject.model)(**subject.model.config_.to_json()).set_params(**settings)
    fitted.fit(hidden.graph, progress=lambda stage, done, total: report(f"links: {stage}", done, total))
    rows = _model_rows(fitted, hidden.graph, weights, report)
    rows.pop("log degree")  # preferential attachment is the same
    scores: list[LinkScore] = []
    for done, (name, vectors) in enumerate(rows.items()):
        report("links: scoring", done, len(rows))
        scores += score_links(name, vectors, hidden)
    return [*scores, *neighbour_scores(hidden)], int(hidden.test.is_edge.sum())


def _print_evaluation(found: Evaluation) -> None:
    """Print one table for each task."""
    console = Console(highlight=False)
    size = f"{found.nodes:,} nodes, {found.dim} dimensions"
    console.print(f"[bold]{escape(found.subject)}[/bold]  {size}\n", soft_wrap=True)
    if found.classes is not None:
        print_classes(found.classes, console, found.num_classes)
    if found.links is not None:
        _print_links(found.links, found.hidden or 0, console)
    if found.clusters is not None:
        _print_clusters(found.clusters, found.num_clusters or 0, console)


def print_classes(scores: "Sequence[ClassScore]", console: Console, classes: int | None = None) -> None:
    """Print accuracies in per cent."""
    named = f", {classes} classes" if classes else ""
    console.print(f"[bold]Node classification[/bold]{named}, in %")
    cells = [(score.vectors, f"{100 * score.accuracy:.1f} ± {100 * score.deviation:.1f}") for score in scores]
    splits = max(len(score.C) for score in scores)
    protocol = f"Logistic regression, C chosen on validation nodes; mean and deviation of {splits} splits."
    values = {score.vectors: score.accuracy for score in scores if score.C}
    _print_table(("", "accuracy"), cells, f"{protocol} {_verdict(values)}", console)


def _print_links(scores: "Sequence[LinkScore]", hidden: int, console: Console) -> None:
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
    best = {name: max(by[name, scorer].auc for scorer in _SCORERS) for name in names}
    best |= {one.vectors: one.auc for one in measures}
    note = (
        "Everything was made from the network without the hidden edges. hadamard: logistic regression on "
        f"products of two vectors, its C chosen on other hidden edges. By the best AUC: {_verdict(best)}"
    )
    _print_table(titles, cells, note, console)


def _print_clusters(scores: "Sequence[ClusterScore]", count: int, console: Console) -> None:
    console.print(f"[bold]Clusters[/bold], {count} by k-means")
    titles = {"nmi": "NMI", "ari": "ARI", "modularity": "modularity", "silhouette": "silhouette"}
    known = [name for name in titles if getattr(scores[0], name) is not None]
    cells = [(score.vectors, *(f"{getattr(score, name):.3f}" for name in known)) for score in scores]
    note = "A silhouette is of the vectors' own space, so it does not compare rows."
    if compared := next((name for name in ("nmi", "modularity") if name in known), None):
        values = {score.vectors: float(getattr(score, compared)) for score in scores}
        note = f"{note} By {titles[compared]}: {_verdict(values, 1, 3)}"
    _print_table(("", *(titles[name] for name in known)), cells, note, console)


def _verdict(values: dict[str, float], scale: float = 100, digits: int = 1) -> str:
    """Say in one sentence which vectors to use: the first, one of their parts, or what is better by far."""

    def text(name: str) -> str:
        return f"{scale * values[name]:.{digits}f}"

    first, *others = [name for name in values if not name.endswith(_ALONE)]
    if not others:
        return "There is nothing to compare with: pass the network with --graph."
    best = max(others, key=lambda name: values[name])
    enough = values[best] - _HALF_A_POINT
    beside = f"the best other, {best}, has {text(best)}"
    if values[first] >= enough:
        return f"Use {first}: {text(first)}; {beside}."
    parts = [name for name in values if name.endswith(_ALONE)]
    part = max(parts, key=lambda name: values[name], default=first)
    if values[part] >= enough:
        return f"Use {first}'s {part}: {text(part)}; all parts together have {text(first)}, and {beside}."
    return f"Use {best}: {text(best)}; {first} has {text(first)}."


def _print_table(
    titles: Iterable[str], cells: Iterable[tuple[str, ...]], note: str, console: Console
) -> None:
    table = plain_table(*titles)
    for number, row in enumerate(cells):
        table.add_row(*map(escape, row), style="" if number else "bold")
    console.print(Padding(table, (0, 0, 1, 2), expand=False))
    console.print(Padding(escape(note), (0, 0, 1, 2)), style="dim")
