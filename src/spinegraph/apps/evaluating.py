"""What ``spine evaluate`` computes: vectors beside their controls, for classes, links and clusters."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.scores import (
    ClassScore,
    ClusterScore,
    LinkScore,
    class_numbers,
    hide_edges,
    neighbour_scores,
    score_classes,
    score_clusters,
    score_links,
)
from spinegraph.config import Config
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError, SpineWarning
from spinegraph.estimator import SPINE
from spinegraph.generator import Inputs, profile_of
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph

Progress = Callable[[str, int, int], None]
Rows = dict[str, Any]  # name -> vectors (n, d), dense or sparse
_MOST_VALUES = 2**28  # of T F, made dense for its principal components


@dataclass(frozen=True, eq=False)
class Subject:
    """Whose vectors are evaluated.

    Attributes
    ----------
    title : str
        The model's folder or the file.
    names : array (n,)
    dim : int
    graph : Graph or None
        Always there with a model.
    model : SPINE or None
    vectors : array (n, d) or None
        Those of a file.
    """

    title: str
    names: NDArray[Any]
    dim: int
    graph: Graph | None
    model: SPINE | None = None
    vectors: NDArray[np.float32] | None = None

    @classmethod
    def open(cls, source: Path, network: Callable[[FeatureEncoder | None], Graph] | None) -> "Subject":
        """Open a model's folder, or a file of vectors.

        Parameters
        ----------
        source : Path
        network : callable, optional
            Reads another network, with the model's encoder of tables.
        """
        if source.is_dir():
            model = SPINE.load(source)
            own: Any = model.graph_ if network is None else network(model.table_encoder_)
            if not isinstance(own, Graph):
                why = "was saved without its network" if own is None else f"has {len(own)} networks"
                raise ParameterError(f"{source}: {why}; name the one to evaluate with --graph EDGES")
            return cls(str(source), own.names, model.generator_.dim, own, model)
        found = Embeddings.load(source)
        graph = None if network is None else network(None)
        if graph is None:
            return cls(str(source), found.names, found.dim, None, None, found.vectors)
        return cls(str(source), graph.names, found.dim, graph, None, found.of(graph.names.tolist()))

    def rows(self, progress: Progress) -> Rows:
        """Return the vectors, and those of their controls."""
        if self.model is not None and self.graph is not None:
            return model_rows(self.model, self.graph, progress)
        assert self.vectors is not None
        return file_rows(self.vectors, self.graph)


def model_rows(model: SPINE, graph: Graph, progress: Progress) -> Rows:
    """Return a model's vectors of a graph's nodes and those of its controls, which learn nothing."""
    from spinegraph.analysis.baselines import methods

    train = model.graph_ if isinstance(model.graph_, Graph) else graph
    embed = methods(model.generator_, train, model.config_.seed, role=True)
    width = model.generator_.inputs.num_smoothed
    if max(len(train), len(graph)) * width > _MOST_VALUES:
        embed = {name: made for name, made in embed.items() if "T F" not in name}
        _warn_of_width(len(graph), width)
    rows = {}
    for done, (name, made) in enumerate(embed.items()):
        progress("vectors and their controls", done, len(embed))
        rows[name] = made(graph)
    return rows


def file_rows(vectors: NDArray[np.float32], graph: Graph | None) -> Rows:
    """Return vectors of a file and, where their network is at hand, controls made with default settings."""
    from spinegraph.analysis.baselines import principal

    rows: Rows = {"vectors": vectors}
    if graph is None:
        return rows
    config = Config()
    profile = profile_of(graph, config)
    inputs = Inputs.of(graph, config, None, profile)
    if inputs.encoder is not None:
        rows["raw features"] = inputs.encoder.transform(graph.features)
    if len(graph) * inputs.num_smoothed <= _MOST_VALUES:
        rows["T F"] = inputs.smoothed(graph, profile).matrix()
        rows["PCA of T F"] = principal(lambda graph: rows["T F"], graph, vectors.shape[1])(graph)
    else:
        _warn_of_width(len(graph), inputs.num_smoothed)
    return {**rows, "log degree": np.log1p(graph.degrees)[:, None]}


def _warn_of_width(nodes: int, columns: int) -> None:
    warnings.warn(
        f"{nodes:,} nodes times {columns:,} columns are too many for the controls made of T F; left out. "
        "Evaluate a part of the network to have them",
        SpineWarning,
        stacklevel=3,
    )


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
