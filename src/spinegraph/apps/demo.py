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
from spinegraph.analysis.explain import explain
from spinegraph.estimator import SPINE
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.graph.synthetic import BRIDGE, Planted, planted
from spinegraph.structure.columns import structural_columns


@dataclass(frozen=True)
class Person:
    """Somebody, the truth that was planted, and what can be seen.

    Attributes
    ----------
    name, department, role : str
    ties : int
    acquainted : float
        Share of pairs of contacts that know each other.
    """

    name: str
    department: str
    role: str
    ties: int
    acquainted: float


@dataclass(frozen=True)
class LookAlike:
    """Somebody like another person.

    Attributes
    ----------
    person : Person
    similarity : float
        Cosine of the two vectors.
    reasons : tuple of str
        Where the similarity comes from, what is alike around both, and how the roles compare.
    """

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


def look_alikes(
    here: Planted, there: Planted, vectors: tuple[Any, Any], generator: Generator, count: int = 3
) -> LookAlikes:
    """Find the first bridge's nearest ``count`` people in the unseen organisation, with reasons."""
    place = int(np.flatnonzero(here.role == BRIDGE)[0])
    cosines = _cosines(vectors)[place]
    acquainted, acquainted_there = (
        structural_columns(planted.graph, names=("clustering",)).values[:, 0] for planted in (here, there)
    )
    both = _side_by_side(here.graph, there.graph)
    found = []
    for other in np.argsort(-cosines, kind="stable")[:count].tolist():
        a, b = both.names[[place, len(here.graph) + other]].tolist()
        words = explain(both, generator, a, b).words
        # Left out: the verdict, which the number gives, and that the two organisations share no link.
        reasons = (*words[1:3], words[-1])
        found.append(LookAlike(_person(there, other, acquainted_there), float(cosines[other]), reasons))
    return LookAlikes(_person(here, place, acquainted), tuple(found))


def _side_by_side(here: Graph, there: Graph) -> Graph:
    """Return both organisations as one network; who has a namesake in the first one is marked."""
    known = set(here.names.tolist())
    names = [f"{name} (unseen)" if name in known else name for name in there.names.tolist()]
    return Graph.union([here, there.relabel(names)])


def agreement(here: Planted, there: Planted, vectors: tuple[Any, Any]) -> Agreement:
    """Say how often the nearest person elsewhere shares department and role."""
    nearest = _cosines(vectors).argmax(axis=1)
    same_department = (there.community[nearest] == here.community).mean()
    return Agreement(float(same_department), float((there.role[nearest] == here.role).mean()))


def _person(planted: Planted, place: int, acquainted: NDArray[Any]) -> Person:
    return Person(
        str(planted.graph.names[place]),
        planted.community_names[planted.community[place]],
        planted.role_names[planted.role[place]],
        int(planted.graph.degrees[place]),
        float(acquainted[place]),
    )


def _cosines(vectors: tuple[Any, Any]) -> NDArray[Any]:
    unit = [values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12) for values in vectors]
    cosines: NDArray[Any] = unit[0] @ unit[1].T  # (n, n')
    return cosines


Progress = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)
Vectors = tuple[Any, Any]  # of the fitted and of the unseen organisation; None where they cannot be had

DIM = 64
FOLDS = 5
ALL_INPUTS = "PCA of all inputs"
REPORT, MODEL = "report.html", "model"
_ASKING = "asking a linear classifier"
_ASKED_AT_ONCE = 2
_THREADS = 1  # six hundred people leave a second core nothing to do but wait


@dataclass(frozen=True)
class Score:
    """Shares of departments and roles that a linear classifier reads off some vectors.

    Attributes
    ----------
    vectors : str
        Which vectors.
    community, community_unseen, role, role_unseen : float
        Accuracy, by cross-validation in the fitted organisation, and in the unseen one; None where the
        method has no vectors for people it was not trained on.
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
        What everybody's nearest vectors have in common.
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
    """Fit SPINE on one made organisation, embed another, and see what the vectors hold.

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

    # Waiting threads of several BLAS calls would hold each other up on a busy machine.
    with threadpool_limits(_THREADS):
        progress("making two organisations", 0, 0)
        here, there = (planted(communities, size, seed=seed) for seed in (0, 1))
        progress("SPINE: reading where everybody stands (the first run compiles)", 0, 0)
        model = SPINE(**{"dim": DIM, "threads": _THREADS, **settings})
        model.fit(here.graph, progress=lambda stage, *done: progress(f"SPINE: {stage}", *done))
        progress("embedding the unseen organisation", 0, 0)
        vectors = model.transform(here.graph).vectors, model.transform(there.graph).vectors
        progress("node2vec, which knows no unseen people", 0, 0)
        others = {"node2vec": (node2vec(here.graph, dim=model.generator_.dim), None)}
        controls = _controls(model, here, there, _inputs(model, here, there))
        scores = _scores(here, there, {"SPINE": vectors, **others, **controls}, progress)
        alike = look_alikes(here, there, vectors, model.generator_)
        if folder is not None:
            _write(model, here, folder, progress)
    return Demo(
        Size(len(here.graph), here.graph.num_edges),
        Size(len(there.graph), there.graph.num_edges),
        len(here.graph.feature_names or ()),
        len(here.community_names),
        len(here.role_names),
        model.generator_.dim,
        scores,
        alike,
        agreement(here, there, vectors),
        None if folder is None else str(folder),
    )


def _write(model: SPINE, here: Planted, folder: Path, progress: Progress) -> None:
    """Write the report on the fitted organisation, and its model to ask further."""
    from spinegraph.analysis.report.page import write_report

    departments = np.array(here.community_names, dtype=object)[here.community]
    write_report(
        model,
        folder / REPORT,
        title="A made organisation",
        labels=departments,
        label_title="department",
        progress=lambda stage, *done: progress(f"report: {stage}", *done),
    )
    model.save(folder / MODEL)


def _inputs(model: SPINE, here: Planted, there: Planted) -> Vectors:
    """Return all that the generator reads, dense, of both organisations."""
    return _dense(model.generator_.inputs.matrix(here.graph)), _dense(
        model.generator_.inputs.matrix(there.graph)
    )


def _controls(model: SPINE, here: Planted, there: Planted, inputs: Vectors) -> dict[str, Vectors]:
    """Return vectors that need no learning, by name."""
    through, dim = model.generator_.inputs.num_smoothed, model.generator_.dim
    graphs = (here.graph, there.graph)
    smoothed = inputs[0][:, :through], inputs[1][:, :through]
    words, degree = zip(
        *((_dense(graph.features), np.log1p(graph.degrees)[:, None]) for graph in graphs), strict=True
    )
    return {
        "raw features": (words[0], words[1]),
        "PCA of T F": _principal(smoothed, dim),
        ALL_INPUTS: _principal(inputs, dim),
        "log degree": (degree[0], degree[1]),
    }


def _scores(
    here: Planted, there: Planted, vectors: dict[str, Vectors], progress: Progress
) -> tuple[Score, ...]:
    def ask(name: str) -> Score:
        pair = vectors[name]
        return Score(
            name,
            *_accuracies(pair, here.community, there.community),
            *_accuracies(pair, here.role, there.role),
        )

    scores = []
    progress(_ASKING, 0, len(vectors))
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        for score in pool.map(ask, vectors):
            scores.append(score)
            progress(_ASKING, len(scores), len(vectors))
    largest = [
        float((labels == np.bincount(known).argmax()).mean())
        for known, other in ((here.community, there.community), (here.role, there.role))
        for labels in (known, other)
    ]
    return (*scores, Score("largest class", *largest))


def _accuracies(
    pair: Vectors, known: NDArray[np.int64], other: NDArray[np.int64]
) -> tuple[float, float | None]:
    """Return accuracy by cross-validation at home, and elsewhere of a classifier that learned at home."""
    from spinegraph.analysis.evaluation import probe_cv

    home, away = pair
    part = np.random.default_rng(0).permutation(len(known)) % FOLDS
    right = 0.0
    for fold in range(FOLDS):
        test = np.flatnonzero(part == fold)
        right += probe_cv(home, known, np.flatnonzero(part != fold), test).accuracy * len(test)
    if away is None:
        return right / len(known), None
    everybody = np.arange(len(known))
    elsewhere = len(known) + np.arange(len(other))
    both = np.vstack([home, away])
    unseen = probe_cv(both, np.concatenate([known, other]), everybody, elsewhere)
    return right / len(known), unseen.accuracy


def _principal(pair: Vectors, dim: int) -> Vectors:
    """Project both on the principal directions of the first."""
    centre = pair[0].mean(axis=0)
    directions = np.linalg.svd(pair[0] - centre, full_matrices=False)[2][:dim].T
    return (pair[0] - centre) @ directions, (pair[1] - centre) @ directions


def _dense(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64)
