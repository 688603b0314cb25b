"""The demo: SPINE fitted on a synthetic organisation, applied to an unseen one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.analysis.baselines import node2vec
from spinegraph.analysis.evaluation import probe_cv
from spinegraph.analysis.explain import explain
from spinegraph.estimator import SPINE
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.graph.synthetic import BRIDGE, Planted, planted
from spinegraph.structure.columns import structural_columns

Progress = Callable[[str, int, int], None]  # stage, done, total (0 where unknown)
Vectors = tuple[Any, Any]  # of the fitted and of the unseen organisation; None for unseen where impossible

FOLDS = 5
ALL_INPUTS = "PCA of all inputs"
REPORT, MODEL = "report.html", "model"
_DIM = 64
_THREADS = 1  # two are no faster on 600 people


@dataclass(frozen=True)
class Score:
    """Accuracy of a linear classifier of departments and roles on some vectors.

    In the fitted organisation by cross-validation. In the unseen one None, where the method has no vectors
    for people it was not trained on.
    """

    vectors: str
    community: float
    community_unseen: float | None
    role: float
    role_unseen: float | None


@dataclass(frozen=True)
class Size:
    """Size of one organisation."""

    people: int
    ties: int


@dataclass(frozen=True)
class Person:
    """A person, with the planted truth; ``acquainted`` is the share of pairs of contacts with a tie."""

    name: str
    department: str
    role: str
    ties: int
    acquainted: float


@dataclass(frozen=True)
class LookAlike:
    """A person like another, the cosine of the two vectors, and sentences that explain it."""

    person: Person
    similarity: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class LookAlikes:
    """A person, and those of the unseen organisation whose vectors are nearest."""

    of: Person
    found: tuple[LookAlike, ...]


@dataclass(frozen=True)
class Agreement:
    """Shares of people whose nearest vector in the unseen organisation is of their department, their role."""

    department: float
    role: float


@dataclass(frozen=True)
class Demo:
    """All that the demo shows.

    Attributes
    ----------
    fitted, unseen : Size
    words, departments, roles, dim : int
    scores : tuple of Score
        SPINE first, the largest class last.
    alike : LookAlikes
        Of one person of the fitted organisation, in the unseen one.
    agreement : Agreement
    folder : str or None
        Where the report and the model were written.
    """

    fitted: Size
    unseen: Size
    words: int
    departments: int
    roles: int
    dim: int
    scores: tuple[Score, ...]
    alike: LookAlikes
    agreement: Agreement
    folder: str | None = None


def run_demo(
    progress: Progress,
    folder: Path | None = None,
    *,
    communities: int = 8,
    size: int = 75,
    **settings: Any,
) -> Demo:
    """Fit SPINE on one synthetic organisation, embed another, and measure what the vectors hold.

    Parameters
    ----------
    progress : callable (stage, done, total)
    folder : Path, optional
        Where a report and the model are written.
    communities, size : int
        Of the organisations, as in ``planted``.
    settings
        Of ``SPINE``.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(_THREADS):  # BLAS threads of concurrent calls would wait for each other
        progress("making two organisations", 0, 0)
        here, there = (planted(communities, size, seed=seed) for seed in (0, 1))
        progress("SPINE: preparing (the first run compiles)", 0, 0)
        model = SPINE(**{"dim": _DIM, "threads": _THREADS, **settings})
        model.fit(here.graph, progress=lambda stage, *done: progress(f"SPINE: {stage}", *done))
        progress("embedding the unseen organisation", 0, 0)
        vectors = model.transform(here.graph).vectors, model.transform(there.graph).vectors
        progress("node2vec, which has no vectors for unseen people", 0, 0)
        others = {"node2vec": (node2vec(here.graph, dim=model.generator_.dim), None)}
        scores = _scores(here, there, {"SPINE": vectors, **others, **_controls(model, here, there)}, progress)
        cosines = _cosines(*vectors)
        alike = _look_alikes(here, there, cosines, model.generator_)
        if folder is not None:
            _write(model, here, folder, progress)
    nearest = cosines.argmax(axis=1)
    return Demo(
        Size(len(here.graph), here.graph.num_edges),
        Size(len(there.graph), there.graph.num_edges),
        len(here.graph.feature_names or ()),
        len(here.community_names),
        len(here.role_names),
        model.generator_.dim,
        scores,
        alike,
        Agreement(
            float((there.community[nearest] == here.community).mean()),
            float((there.role[nearest] == here.role).mean()),
        ),
        None if folder is None else str(folder),
    )


def _controls(model: SPINE, here: Planted, there: Planted) -> dict[str, Vectors]:
    """Return vectors that need no learning, by name."""
    generator, graphs = model.generator_, (here.graph, there.graph)
    inputs = [_dense(generator.inputs.matrix(graph)) for graph in graphs]
    smoothed = [values[:, : generator.inputs.num_smoothed] for values in inputs]
    words = [_dense(graph.features) for graph in graphs]
    degrees = [np.log1p(graph.degrees)[:, None] for graph in graphs]
    return {
        "raw features": (words[0], words[1]),
        "PCA of T F": _principal(generator.dim, *smoothed),
        ALL_INPUTS: _principal(generator.dim, *inputs),
        "log degree": (degrees[0], degrees[1]),
    }


def _dense(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64)


def _principal(dim: int, fitted: NDArray[Any], unseen: NDArray[Any]) -> Vectors:
    """Project both on the principal directions of the first."""
    centre = fitted.mean(axis=0)
    directions = np.linalg.svd(fitted - centre, full_matrices=False)[2][:dim].T
    return (fitted - centre) @ directions, (unseen - centre) @ directions


def _scores(
    here: Planted, there: Planted, vectors: dict[str, Vectors], progress: Progress
) -> tuple[Score, ...]:
    def score(name: str) -> Score:
        communities = _accuracies(vectors[name], here.community, there.community)
        return Score(name, *communities, *_accuracies(vectors[name], here.role, there.role))

    scores, stage = [], "fitting a linear classifier"
    progress(stage, 0, len(vectors))
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(score, vectors):
            scores.append(found)
            progress(stage, len(scores), len(vectors))
    largest = [
        float((labels == np.bincount(known).argmax()).mean())
        for known, other in ((here.community, there.community), (here.role, there.role))
        for labels in (known, other)
    ]
    return (*scores, Score("largest class", *largest))


def _accuracies(
    vectors: Vectors, known: NDArray[np.int64], other: NDArray[np.int64]
) -> tuple[float, float | None]:
    """Return accuracy by cross-validation in the fitted organisation, and of its classifier in the unseen."""
    fitted, unseen = vectors
    part = np.random.default_rng(0).permutation(len(known)) % FOLDS
    right = 0.0
    for fold in range(FOLDS):
        test = np.flatnonzero(part == fold)
        right += probe_cv(fitted, known, np.flatnonzero(part != fold), test).accuracy * len(test)
    if unseen is None:
        return right / len(known), None
    train, test = np.split(np.arange(len(known) + len(other)), [len(known)])
    both = np.vstack([fitted, unseen])
    return right / len(known), probe_cv(both, np.concatenate([known, other]), train, test).accuracy


def _cosines(fitted: NDArray[Any], unseen: NDArray[Any]) -> NDArray[Any]:
    unit = [
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (fitted, unseen)
    ]
    cosines: NDArray[Any] = unit[0] @ unit[1].T  # (n, n')
    return cosines


def _look_alikes(
    here: Planted, there: Planted, cosines: NDArray[Any], generator: Generator, count: int = 3
) -> LookAlikes:
    """Find the first bridge's nearest people in the unseen organisation, with reasons."""
    person = int(np.flatnonzero(here.role == BRIDGE)[0])
    known = set(here.graph.names.tolist())
    names = [f"{name} (unseen)" if name in known else name for name in there.graph.names.tolist()]
    both = Graph.union([here.graph, there.graph.relabel(names)])
    found = []
    for other in np.argsort(-cosines[person], kind="stable")[:count].tolist():
        a, b = both.names[[person, len(here.graph) + other]].tolist()
        words = explain(both, generator, a, b).words
        # Left out: the verdict, which the number gives, and that the two organisations share no link.
        reasons = (*words[1:3], words[-1])
        found.append(LookAlike(_person(there, other), float(cosines[person, other]), reasons))
    return LookAlikes(_person(here, person), tuple(found))


def _person(planted: Planted, node: int) -> Person:
    return Person(
        str(planted.graph.names[node]),
        planted.community_names[planted.community[node]],
        planted.role_names[planted.role[node]],
        int(planted.graph.degrees[node]),
        float(structural_columns(planted.graph, names=("clustering",)).values[node, 0]),
    )


def _write(model: SPINE, here: Planted, folder: Path, progress: Progress) -> None:
    """Write the report on the fitted organisation, and its model."""
    from spinegraph.analysis.report.page import write_report

    write_report(
        model,
        folder / REPORT,
        title="A synthetic organisation",
        labels=np.array(here.community_names, dtype=object)[here.community],
        label_title="department",
        progress=lambda stage, *done: progress(f"report: {stage}", *done),
    )
    model.save(folder / MODEL)
