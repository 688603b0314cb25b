"""``spine evaluate``: vectors compared with baselines on classes, links and clusters."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.apps.cli.reading import LabelColumn, Network, read_known
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError

if TYPE_CHECKING:
    from spinegraph.analysis.evaluation import ClassScore, ClusterScore, LinkScore
    from spinegraph.estimator import SPINE
    from spinegraph.graph.graph import Graph

Rows = dict[str, Any]  # name -> vectors (n, d), dense or sparse
Weights = dict[str, float] | None
_ALONE = " alone"  # suffix of the row of a single part
_DEFAULT_CLUSTERS = 8
_HALF_A_POINT = 0.005  # smaller differences do not decide
_SUSPICIOUS = 0.98  # accuracy of plain columns from which the label may be among them
_SCORERS = ("dot", "cosine", "hadamard")
Task = StrEnum("Task", ["classes", "links", "clusters"])


@cli.takes(settings=cli.some_settings("seed", "threads", "device"), how=Network)
def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model's folder, or a file of vectors.")],
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Node labels: CSV, Parquet, or a network's npz.")
    ] = None,
    task: Annotated[list[Task] | None, typer.Option(help="Default: all possible ones; repeatable.")] = None,
    train: Annotated[float, typer.Option(help="Share of labelled nodes that train the classifier.")] = 0.2,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits of labelled nodes.")] = 5,
    hide: Annotated[float, typer.Option(help="Share of edges to hide and predict.")] = 0.1,
    clusters: Annotated[
        int | None, typer.Option(min=2, help="Number of clusters; default as many as classes, else 8.")
    ] = None,
    weights: cli.Weights = None,
    label_column: LabelColumn = None,
    json: cli.Json = False,
    quiet: cli.Quiet = False,
    *,
    settings: dict[str, Any],
    how: Network,
) -> None:
    """Compare vectors with plain columns, node2vec and others: classes, links, clusters.

    All parts together, and each alone. For links, a model with the same settings is fitted on the network
    without the edges to predict. With a file of vectors, pass the network by --graph.

    Example: spine evaluate model --labels teams.csv --task classes
    """
    seed = int(settings.get("seed", 0))
    with cli.shown_progress(quiet=quiet) as report:
        report("reading", 0, 0)
        from spinegraph.analysis.evaluation import class_numbers, score_classes, score_clusters

        fitted, network, vectors = _open(model, how)
        known = (
            None
            if labels is None
            else read_known(*(labels, vectors.names, label_column, how.arguments()["node_column"]))
        )
        numbers, classes = (None, []) if known is None else class_numbers(known)
        possible = {Task.classes: known is not None, Task.links: fitted is not None, Task.clusters: True}
        tasks = task or [name for name, is_possible in possible.items() if is_possible]
        if Task.classes in tasks and known is None:
            raise ParameterError("classes need --labels FILE, a table of names and labels")
        if Task.links in tasks and fitted is None:
            raise ParameterError("links need a model: vectors in a file saw all edges; none is left to hide")
        if Task.clusters in tasks and known is None and network is None:
            raise ParameterError("comparing clusters needs labels or a network: --labels FILE, --graph EDGES")
        rows = _rows(vectors, network, fitted, weights, report) if set(tasks) - {Task.links} else {}
        found: dict[str, Any] = dict.fromkeys(("num_clusters", "hidden", "classes", "links", "clusters"))
        about = {"subject": str(model), "nodes": len(vectors), "dim": vectors.dim}
        found = {**about, "num_classes": len(classes) or None, **found}
        if Task.classes in tasks and numbers is not None:
            report("node classification", 0, 0)
            found["classes"] = score_classes(rows, numbers, train=train, repeats=repeats, seed=seed)
        if Task.links in tasks and fitted is not None and network is not None:
            found["links"], found["hidden"] = _score_links(fitted, network, settings, hide, weights, report)
        if Task.clusters in tasks:
            report("clusters", 0, 0)
            count = clusters or len(classes) or min(_DEFAULT_CLUSTERS, len(vectors))
            scores = score_clusters(rows, count, labels=numbers, graph=network, seed=seed)
            found["num_clusters"], found["clusters"] = count, scores
    if json:
        listed = {name: found[name] and [asdict(score) for score in found[name]] for name in Task}
        cli.print_json(found | listed)
        return
    typer.echo(f"{model}: {len(vectors):,} nodes, {vectors.dim} dimensions")
    for name, show, size in (
        ("classes", _print_classes, "num_classes"),
        ("links", _print_links, "hidden"),
        ("clusters", _print_clusters, "num_clusters"),
    ):
        if found[name] is not None:
            typer.echo()
            show(found[name], found[size])


def _open(source: Path, how: Network) -> "tuple[SPINE | None, Graph | None, Embeddings]":
    """Return model, network and vectors; for vectors in a file there is no model, and --graph is optional."""
    if source.is_dir():
        nodes = how.open(source, single=True)
        return nodes.model, nodes.graph, nodes.embeddings
    found = Embeddings.load(source)
    if how.graph is None:
        return None, None, found
    graph = how.network(how.graph, how.features)
    return None, graph, Embeddings(graph.names, found.of(graph.names.tolist()), found.parts)


def _rows(
    found: Embeddings, graph: "Graph | None", model: "SPINE | None", weights: Weights, report: cli.Report
) -> Rows:
    """Return the vectors, each of several parts that is not zero, and the baselines."""
    from spinegraph.analysis.baselines import controls
    from spinegraph.graph.graph import Graph

    whole = found if weights is None else found.weighted(weights=weights)
    rows: Rows = {"vectors" if model is None else "SPINE": whole.vectors}
    parts = {part: found.part(part).vectors for part in found.parts} if len(found.parts) > 1 else {}
    rows |= {f"{part}{_ALONE}": values for part, values in parts.items() if values.any()}
    if graph is None:
        return rows
    made = controls(graph, found.dim)
    if model is not None:
        own, generator = model.graph_, model.generator_
        train = own if isinstance(own, Graph) and own.num_features == graph.num_features else graph
        options: Any = {"seed": model.config_.seed, "threads": generator.config.threads}
        made = controls(train, found.dim, generator.encoder, **options)
    for done, (name, vectors) in enumerate(made.items()):
        report(f"vectors: {name}", done, len(made))
        rows[name] = vectors(graph)
    return rows


def _score_links(
    model: "SPINE", graph: "Graph", given: dict[str, Any], hide: float, weights: Weights, report: cli.Report
) -> "tuple[list[LinkScore], int]":
    """Hide edges, fit on the rest with the model's settings, and score; also returns the number hidden."""
    from spinegraph.analysis.evaluation import hide_edges, neighbour_scores, score_links

    hidden = hide_edges(graph, hide, seed=int(given.get("seed", 0)))
    fitted = type(model)(**model.config_.to_json()).set_params(**given)
    fitted.fit(hidden.graph, progress=lambda stage, done, total: report(f"links: {stage}", done, total))
    rows = _rows(cast(Embeddings, fitted.embeddings_), hidden.graph, fitted, weights, report)
    rows.pop("log degree")  # the same as preferential attachment
    report("links: scoring", 0, 0)
    scores = [score for name, vectors in rows.items() for score in score_links(name, vectors, hidden)]
    return [*scores, *neighbour_scores(hidden)], int(hidden.test.is_edge.sum())


def _print_classes(scores: "Sequence[ClassScore]", classes: int | None = None) -> None:
    rows = [(score.vectors, f"{100 * score.accuracy:.1f} ± {100 * score.deviation:.1f}") for score in scores]
    splits = max(len(score.C) for score in scores)
    protocol = f"Logistic regression, C chosen on validation nodes; mean and deviation of {splits} splits."
    values = {score.vectors: score.accuracy for score in scores if score.C}
    best = max((score for score in scores if score.C), key=lambda score: score.accuracy)
    slack = 2 * max(scores[0].deviation, best.deviation) / splits**0.5
    verdict = _verdict(values, slack, chance=("always guessing the largest class", scores[-1].accuracy))
    if values.get("plain columns", 0) > _SUSPICIOUS:
        verdict += "\nThe columns alone predict nearly every class: is the label one of them?"
    heading = f"Node classification{f', {classes} classes' if classes else ''}, in %"
    cli.print_table(heading, ("", "accuracy"), rows, f"{protocol}\n{verdict}", bold=0)


def _print_links(scores: "Sequence[LinkScore]", hidden: int) -> None:
    measured: dict[str, list[LinkScore]] = {}
    for score in scores:
        measured.setdefault(score.vectors, []).append(score)
    rows = []
    for name, found in measured.items():
        gap = [""] * (len(_SCORERS) - len(found))  # a measure of the network has no scorer
        aucs, precisions = (
            [f"{100 * value:.1f}" for value in values]
            for values in zip(*((s.auc, s.average_precision) for s in found), strict=True)
        )
        rows.append((name, *aucs, *gap, *precisions, *gap))
    best = {name: max(score.auc for score in found) for name, found in measured.items()}
    note = (
        "All vectors were made without the hidden edges. hadamard: logistic regression on products of two "
        "vectors, with C chosen on other hidden edges.\n"
        f"Compared by the best AUC. {_verdict(best, 0.3 / max(hidden, 1) ** 0.5, chance=('guessing', 0.5))}"
    )
    heading = f"Link prediction, {hidden:,} hidden edges among as many non-edges, in %"
    titles = ("", *(f"{part}\n{scorer}" for part in ("AUC", "AP") for scorer in _SCORERS))
    cli.print_table(heading, titles, rows, note, bold=0)


def _print_clusters(scores: "Sequence[ClusterScore]", count: int) -> None:
    titles = {"nmi": "NMI", "ari": "ARI", "modularity": "modularity"}
    known = [name for name in titles if getattr(scores[0], name) is not None]  # at least one
    rows = [(score.vectors, *(f"{getattr(score, name):.3f}" for name in known)) for score in scores]
    values = {score.vectors: float(getattr(score, known[0])) for score in scores}
    note = f"Compared by {titles[known[0]]}. {_verdict(values, scale=1, digits=3)}"
    shown = ("", *(titles[name] for name in known))
    cli.print_table(f"Clusters, {count} by k-means", shown, rows, note, bold=0)


def _verdict(
    values: dict[str, float],
    slack: float = 0,
    scale: float = 100,
    digits: int = 1,
    chance: tuple[str, float] = ("", -1.0),
) -> str:
    """Return a sentence on which vectors to use: the first, one of their parts, or clearly better ones.

    Differences below ``slack``, about their error, or half a point are ignored. ``chance`` is a way to guess
    and its value.
    """
    slack = max(slack, _HALF_A_POINT)
    if max(values.values()) <= chance[1] + slack:
        return f"Nothing here predicts clearly better than {chance[0]}, which has {100 * chance[1]:.1f}."

    def text(name: str) -> str:
        return f"{scale * values[name]:.{digits}f}"

    first, *others = [name for name in values if not name.endswith(_ALONE)]
    if not others:
        return "There is nothing to compare with; pass the network with --graph."
    best = max(others, key=lambda name: values[name])
    enough = values[best] - slack
    beside = f"the best of the others, {best}, has {text(best)}"
    if values[first] >= enough:
        is_best = values[first] > values[best] + slack
        advice = f"Use {first}:" if is_best else f"There is no difference: {first} has"
        return f"{advice} {text(first)}; {beside}."
    parts = [name for name in values if name.endswith(_ALONE)]
    part = max(parts, key=lambda name: values[name], default=first)
    if values[part] >= enough:
        is_best = values[part] > values[best] + slack
        advice = f"Use {first}'s {part}:" if is_best else f"There is no difference: {first}'s {part} has"
        return f"{advice} {text(part)}; all parts together have {text(first)}, and {beside}."
    return f"Use {best}: {text(best)}; {first} has {text(first)}."
