"""What ``spine evaluate`` computes: vectors beside their controls, for classes, links and clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.classes import ClassScore, class_numbers, score_classes
from spinegraph.analysis.clusters import ClusterScore, score_clusters
from spinegraph.analysis.links import LinkScore, hide_edges, neighbour_scores, score_links
from spinegraph.apps.evaluation_subject import Progress, Rows, Subject, model_rows
from spinegraph.errors import ParameterError
from spinegraph.estimator import SPINE
from spinegraph.graph.graph import Graph

CLUSTERS = 8  # where nothing says how many


class Task(StrEnum):
    """What vectors are asked."""

    classes = "classes"
    links = "links"
    clusters = "clusters"


@dataclass(frozen=True)
class Questions:
    """What to ask, and how.

    Attributes
    ----------
    tasks : tuple of Task
        None of them: all that can be asked.
    train : float
        Share of labelled nodes that train the classifier.
    repeats : int
        Random splits of labelled nodes.
    hide : float
        Share of edges to hide and predict.
    clusters : int, optional
        By default as many as classes.
    settings : dict
        Changes to the model's settings, for links.
    checkpoint : Path, optional
        Folder for the state of the training that links need.
    """

    tasks: tuple[Task, ...] = ()
    train: float = 0.2
    repeats: int = 5
    hide: float = 0.1
    clusters: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Path | None = None

    @property
    def seed(self) -> int:
        """Of splits, hidden edges and clusters."""
        return int(self.settings.get("seed", 0))


@dataclass(frozen=True)
class Evaluation:
    """Scores of vectors and of their controls; what was not asked is None.

    Attributes
    ----------
    subject : str
        The model's folder, or a file.
    nodes, dim : int
    num_classes, num_clusters, hidden : int
        Classes among the labels, clusters, hidden edges.
    classes : list of ClassScore
    links : list of LinkScore
    clusters : list of ClusterScore
    """

    subject: str
    nodes: int
    dim: int
    num_classes: int | None = None
    num_clusters: int | None = None
    hidden: int | None = None
    classes: list[ClassScore] | None = None
    links: list[LinkScore] | None = None
    clusters: list[ClusterScore] | None = None


def evaluate(
    subject: Subject, known: NDArray[Any] | None, questions: Questions, progress: Progress
) -> Evaluation:
    """Ask vectors, and their controls, all questions.

    Parameters
    ----------
    subject : Subject
    known : object array (n,), optional
        Labels as text, None where unknown.
    questions : Questions
    progress : callable (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> subject = Subject("file", np.arange(20), 2, None, None, np.eye(2, dtype=np.float32)[[0, 1] * 10])
    >>> known = np.array(["a", "b"] * 10, dtype=object)
    >>> evaluate(subject, known, Questions((Task.classes,)), lambda *moment: None).classes[0].accuracy
    1.0
    """
    tasks = _possible(subject, known is not None, questions.tasks)
    rows = subject.rows(progress) if set(tasks) - {Task.links} else {}
    labels, classes = (None, []) if known is None else class_numbers(known)
    found: dict[str, Any] = {"num_classes": len(classes) or None}
    if Task.classes in tasks and labels is not None:
        found["classes"] = scored_classes(rows, labels, questions, progress)
    if Task.links in tasks and subject.model is not None and subject.graph is not None:
        found["links"], found["hidden"] = scored_links(subject.model, subject.graph, questions, progress)
    if Task.clusters in tasks:
        count = questions.clusters or len(classes) or min(CLUSTERS, len(subject.names))
        found["num_clusters"], found["clusters"] = count, []
        for done, (name, vectors) in enumerate(rows.items()):
            progress("clusters", done, len(rows))
            found["clusters"] += score_clusters(
                {name: vectors}, count, labels=labels, graph=subject.graph, seed=questions.seed
            )
    return Evaluation(subject.title, len(subject.names), subject.dim, **found)


def class_scores(
    model: SPINE, graph: Graph, known: NDArray[Any], seed: int, progress: Progress
) -> list[ClassScore]:
    """Return how well classes are read off a model's vectors and off its controls."""
    rows = model_rows(model, graph, progress)
    return scored_classes(rows, class_numbers(known)[0], Questions(settings={"seed": seed}), progress)


def scored_classes(
    rows: Rows, labels: NDArray[np.int64], questions: Questions, progress: Progress
) -> list[ClassScore]:
    """Return ``score_classes`` of each row, telling of progress."""
    scores: list[ClassScore] = []
    for done, (name, vectors) in enumerate(rows.items()):
        progress("node classification", done, len(rows))
        how = {"train": questions.train, "repeats": questions.repeats, "seed": questions.seed}
        *found, largest = score_classes({name: vectors}, labels, **how)  # type: ignore[arg-type]
        scores += found
    return [*scores, largest]


def scored_links(
    model: SPINE, graph: Graph, questions: Questions, progress: Progress
) -> tuple[list[LinkScore], int]:
    """Hide edges, fit anew on the rest with a model's settings, and score the hidden edges.

    Returns
    -------
    scores, number of hidden edges in the test
    """
    config = replace(model.config_, **questions.settings).check()
    hidden = hide_edges(graph, questions.hide, seed=questions.seed)
    fitted = SPINE(**config.to_json()).fit(
        hidden.graph,
        checkpoint=questions.checkpoint,
        progress=lambda stage, done, total: progress(f"links: {stage}", done, total),
    )
    rows = model_rows(fitted, hidden.graph, progress)
    rows.pop("log degree")  # preferential attachment says the same
    scores: list[LinkScore] = []
    for done, (name, vectors) in enumerate(rows.items()):
        progress("links: scoring", done, len(rows))
        scores += score_links(name, vectors, hidden)
    return [*scores, *neighbour_scores(hidden)], int(hidden.test.is_edge.sum())


def _possible(subject: Subject, has_labels: bool, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """Return the tasks asked for, or all that can be done; refuse what cannot."""
    if Task.classes in tasks and not has_labels:
        raise ParameterError("classes need --labels FILE, a table of names and labels")
    if Task.links in tasks and subject.model is None:
        raise ParameterError(
            f"{subject.title}: vectors of a file were made with every edge known, none is left to predict; "
            "pass a model's folder"
        )
    possible = {Task.classes: has_labels, Task.links: subject.model is not None, Task.clusters: True}
    return tasks or tuple(task for task, can in possible.items() if can)
