"""The methods that fill the rows of the tables: SPINE, the paper's own method, controls, baselines."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from spinegraph.analysis.baselines import Embed, dense
from spinegraph.config import PaperConfig
from spinegraph.errors import ParameterError, SpineWarning
from spinegraph.estimator import SPINE
from spinegraph.graph.graph import Graph
from spinegraph.parts.paper import Inputs, PaperGenerator
from spinegraph.parts.role import profile_of

Score = Callable[[Embed], float]  # how good a fit is by labels that it may see; higher is better
Fit = Callable[[Graph, int, int, Score | None], Embed]

# Raise a number by hand when a change of the code or of a default changes the method's vectors: cells stored
# with another version are measured again. `make soak` measures some stored cells again and compares.
SPINE_VERSION = 5  # SPINE with its defaults, one part of it, and without learning
PAPER_VERSION = 3  # the rows with the paper's settings
_VERSIONS = {
    "random W_M": 4,  # of the paper's method
    "raw features": 1,
    "T F": 1,
    "PCA of T F": 1,
    "log degree": 1,  # read T and the features, train nothing
    "Random": 1,
    "HOPE": 1,
    "SDNE": 1,
    "GraphSAGE": 1,
    "GAT": 1,
    "twins": 3,  # compares with SPINE
    "SPINE without learning": 4,
    "SPINE, role": 4,
    "node2vec": 2,
    "struc2vec": 1,
    "n+s": 2,
    "n+s+f": 2,
}
PAPER = "SPINE (paper's settings)"
_OURS: dict[str, dict[str, Any]] = {  # row: settings other than the defaults of SPINE
    "SPINE": {},
    "SPINE without learning": {"learning": False},
}
_PAPERS: dict[str, dict[str, Any]] = {  # the same of SPINE.paper
    PAPER: {},
    "SPINE-p (paper's settings)": {"auxiliary_init": "node2vec"},
}
_RANDOM = "random W_M"  # the paper's method with a random matrix of the trained one's size
_ROLE = "SPINE, role"  # one part of SPINE's vectors
BY_WALKS = " by walks"  # ends the row of a control whose T is counted on walks
CONTROLS = ("raw features", "T F", "PCA of T F", _RANDOM)
_UNTRAINED = ("raw features", "T F", "PCA of T F", "log degree")
_BASELINES = ("HOPE", "node2vec", "struc2vec", "n+s", "n+s+f")
_NEURAL = ("SDNE", "GraphSAGE")


@dataclass(frozen=True)
class Method:
    """One row of the tables.

    Attributes
    ----------
    fit : callable (graph, dim, seed, score) -> Embed
        ``score``, where it is not None, may choose when to stop. The result of a transductive method takes
        only the graph that it was fitted on.
    is_random : bool
        Whether the result depends on the seed.
    is_slow : bool
        Three seeds instead of ten.
    """

    fit: Fit
    is_random: bool = True
    is_slow: bool = False


def method(name: str, *, several: bool = False) -> Method:
    """Return the method of a row; ``several`` where it is fitted on a union of networks, without a place."""
    if name in _PAPERS:
        return paper_method(_PAPERS[name])
    if name == _RANDOM:
        return Method(_fit_random_matrix)
    if name in _OURS or name == _ROLE:
        parts = {"parts": ("content", "role")} if several else {}
        return Method(_fit_ours(_OURS.get(name, {}) | parts, "role" if name == _ROLE else None))
    control = name.removesuffix(BY_WALKS)
    if control in _UNTRAINED:
        return Method(_fit_control(control, by_walks := name != control), is_random=by_walks)
    if name == "Random":
        return Method(_fit_random)
    if name in _BASELINES:
        from paper.baselines import METHODS

        return METHODS[name]
    if name in _NEURAL:
        from paper.neural import METHODS as NEURAL_METHODS

        return NEURAL_METHODS[name]
    raise ParameterError(f"no row is called {name!r}; known: {', '.join(known_rows())}")


def known_rows() -> list[str]:
    """Return the names of all rows that have vectors."""
    return [*_OURS, _ROLE, *_PAPERS, _RANDOM, *_UNTRAINED, "Random", *_BASELINES, *_NEURAL]


def version_of(name: str) -> int:
    """Return the version of a row's method."""
    if name.endswith("(paper's settings)"):
        return PAPER_VERSION
    return _VERSIONS.get(name.removesuffix(BY_WALKS), SPINE_VERSION)


def shared_fit(name: str) -> str:
    """Name what a row shares with others: walks, a fit of SPINE, or T."""
    if name in ("node2vec", "struc2vec", "n+s", "n+s+f"):
        return "walks"
    if name.removesuffix(BY_WALKS) in _UNTRAINED:
        return f"T{BY_WALKS}" if name.endswith(BY_WALKS) else "T"
    return {_ROLE: "SPINE", _RANDOM: PAPER}.get(name, name)


def paper_method(settings: Mapping[str, Any]) -> Method:
    """Return the paper's method with some settings."""

    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        return _fit_paper(graph, seed, tuple(sorted({**settings, "dim": dim}.items()))).embed

    return Method(fit)


def _fit_random_matrix(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    generator = _fit_paper(graph, seed, (("dim", dim),))
    drawn = np.random.default_rng([seed, 99]).standard_normal(generator.weights.shape)
    drawn *= np.linalg.norm(generator.weights) / np.linalg.norm(drawn)
    return replace(generator, weights=drawn.astype(np.float32)).embed


@lru_cache(maxsize=2)
def _fit_paper(graph: Graph, seed: int, settings: tuple[tuple[str, Any], ...]) -> PaperGenerator:
    """Fit the paper's method once, for its own row and the control beside it."""
    # One thread, so that several runs can share a machine.
    model = SPINE.paper(**{"threads": 1, **dict(settings), "seed": seed}).fit(graph, vectors=False)
    generator: PaperGenerator = model.generator_
    return generator


def _fit_ours(settings: Mapping[str, Any], part: str | None) -> Fit:
    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        embed, parts = _fit_spine(graph, seed, tuple(sorted({**settings, "dim": dim}.items())))
        return embed if part is None else lambda other: embed(other)[:, parts[part]]

    return fit


@lru_cache(maxsize=2)
def _fit_spine(
    graph: Graph, seed: int, settings: tuple[tuple[str, Any], ...]
) -> tuple[Embed, dict[str, slice]]:
    """Fit SPINE once, for all rows that read its vectors."""
    model = SPINE(**{"threads": 1, **dict(settings), "seed": seed}).fit(graph, vectors=False)

    @cache
    def embed(other: Graph) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpineWarning)  # other networks are meant to be unlike
            return model.transform(other).vectors

    return embed, model.generator_.parts


def _fit_control(control: str, by_walks: bool) -> Fit:
    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        return _fit_controls(graph, dim, seed if by_walks else 0, by_walks)[control]

    return fit


@lru_cache(maxsize=2)
def _fit_controls(graph: Graph, dim: int, seed: int, by_walks: bool) -> dict[str, Embed]:
    """Return what can be made of features and of T without training."""
    rpr_method = "walks" if by_walks else "push"
    config = PaperConfig(continuation=0.7, k=30, rpr_method=rpr_method, seed=seed, threads=1)
    inputs = Inputs.of(graph, config)

    @cache
    def smoothed(other: Graph) -> Any:
        operator, features = inputs.smoothed(other, profile_of(other, config))
        return operator @ features

    return {
        "raw features": lambda other: inputs.encoder.transform(other.features),  # type: ignore[union-attr]
        "T F": smoothed,
        "PCA of T F": _principal(smoothed, graph, dim),
        "log degree": lambda other: np.log1p(other.degrees)[:, None],
    }


def _principal(smoothed: Embed, train: Graph, dim: int) -> Embed:
    """Return the function from a graph to components of T F along the training graph's main directions."""

    @cache
    def directions() -> tuple[Any, Any]:
        values = dense(smoothed(train))
        center = values.mean(axis=0)
        return center, randomized_svd(values - center, min(dim, *values.shape), n_iter=7, random_state=0)[2].T

    def components(graph: Graph) -> Any:
        center, along = directions()
        return (dense(smoothed(graph)) - center) @ along

    return components


def _fit_random(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    def embed(other: Graph) -> Any:
        return np.random.default_rng([seed, len(other)]).standard_normal((len(other), dim))

    return embed


def transductive(graph: Graph, vectors: Any) -> Embed:
    """Return a function that gives the vectors of one graph, and of no other."""

    def embed(other: Graph) -> Any:
        assert other is graph, "a transductive method has vectors of its own graph alone"
        return vectors

    return embed


def accelerator() -> str:
    """Return the Torch device that baselines are trained on: a GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
