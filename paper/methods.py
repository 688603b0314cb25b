"""The methods that fill the rows of the tables: SPINE and its variants, controls, baselines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from spinegraph.analysis.baselines import CONTROLS, Embed, methods
from spinegraph.config import Config
from spinegraph.errors import ParameterError
from spinegraph.estimator import SPINE
from spinegraph.graph.graph import Graph

Score = Callable[[Embed], float]  # how good a fit is by labels that it may see; higher is better
Fit = Callable[[Graph, int, int, Score | None], Embed]

# Raise a number by hand when a change of the code or of a default changes the method's vectors: cells stored
# with another version are measured again. `make soak` measures some stored cells again and compares.
SPINE_VERSION = 3  # SPINE, its variants and "random W_M"
_VERSIONS = {
    "raw features": 1,
    "T F": 1,
    "PCA of T F": 1,
    "log degree": 1,  # read T and the features, train nothing
    "Random": 1,
    "HOPE": 1,
    "SDNE": 1,
    "GraphSAGE": 1,
    "GAT": 1,
    "twins": 1,
    "node2vec": 2,
    "struc2vec": 1,
    "n+s": 2,
    "n+s+f": 2,
}
_PAPER = {name: value for name, value in Config.paper().to_json().items() if value != getattr(Config, name)}
VARIANTS: dict[str, dict[str, Any]] = {  # row: settings other than the defaults
    "SPINE": {},
    "SPINE-p": {"auxiliary_init": "node2vec"},
    "SPINE (paper's settings)": _PAPER,
    "SPINE-p (paper's settings)": {**_PAPER, "auxiliary_init": "node2vec"},
    "SPINE by walks": {"rpr_method": "walks"},
}
_ALL_CONTROLS = (*CONTROLS, "log degree")
_BASELINES = ("HOPE", "node2vec", "struc2vec", "n+s", "n+s+f")
_NEURAL = ("SDNE", "GraphSAGE")
BY_WALKS = " by walks"  # ending of a control whose T is counted on walks


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


def method(name: str) -> Method:
    """Return the method of a row."""
    if name in VARIANTS:
        return spine(VARIANTS[name])
    control = name.removesuffix(BY_WALKS)
    if control in _ALL_CONTROLS:
        by_walks = name != control
        settings = VARIANTS["SPINE by walks" if by_walks else "SPINE"]
        return Method(_fit_row(control, settings), is_random=control == "random W_M" or by_walks)
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
    return [*VARIANTS, *_ALL_CONTROLS, "Random", *_BASELINES, *_NEURAL]


def version_of(name: str) -> int:
    """Return the version of a row's method."""
    return _VERSIONS.get(name.removesuffix(BY_WALKS), SPINE_VERSION)


def spine(settings: Mapping[str, Any]) -> Method:
    """Return SPINE with some settings."""
    return Method(_fit_row("SPINE", settings))


def fitted(graph: Graph | list[Graph], seed: int, settings: Mapping[str, Any]) -> SPINE:
    """Return the model, fitted with one thread so that several runs can share a machine."""
    return SPINE(**{"threads": 1, **settings, "seed": seed}).fit(graph)


def _fit_row(row: str, settings: Mapping[str, Any]) -> Fit:
    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        return _fit_rows(graph, seed, tuple(sorted({**settings, "dim": dim}.items())))[row]

    return fit


@lru_cache(maxsize=2)
def _fit_rows(graph: Graph, seed: int, settings: tuple[tuple[str, Any], ...]) -> dict[str, Embed]:
    """Fit SPINE once, for its own row and for the controls beside it."""
    return methods(fitted(graph, seed, dict(settings)).generator_, graph, seed, role=True)


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
