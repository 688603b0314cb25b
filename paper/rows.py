"""Every row of the tables by name, with the version that its cells carry."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from paper.method import Embed, Method, Score
from paper.protocols import fitted
from spinegraph.analysis.baselines import CONTROLS, methods
from spinegraph.config import Config
from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph

FIT_VERSION = 3  # of what SPINE computes with given settings: raised when its vectors change otherwise
CORE = "823c8d06ffec"  # the training code that this version goes with; a test compares it
INPUT_VERSION = 1  # the same for controls that read T and the features alone
_UNTRAINED = ("raw features", "T F", "PCA of T F", "log degree")
_INPUT_SETTINGS = (
    *("dim", "k", "continuation", "rpr_method", "tolerance", "threshold", "walks", "walk_length"),
    *("feature_scaling", "structural_columns"),
)
_PAPER = {name: value for name, value in Config.paper().to_json().items() if value != getattr(Config, name)}
VARIANTS: dict[str, dict[str, Any]] = {  # row: settings other than the defaults
    "SPINE": {},
    "SPINE-p": {"auxiliary_init": "node2vec"},
    "SPINE (paper's settings)": _PAPER,
    "SPINE-p (paper's settings)": {**_PAPER, "auxiliary_init": "node2vec"},
    "SPINE by walks": {"rpr_method": "walks"},
}
_CONTROLS_OF = {"": "SPINE", " by walks": "SPINE by walks"}  # a control has the T of the row it stands beside


def row(name: str) -> Method:
    """Return the method of a row."""
    if name in VARIANTS:
        return spine_row(name, VARIANTS[name])
    for ending, beside in _CONTROLS_OF.items():
        control = name.removesuffix(ending) if ending else name
        if control in (*CONTROLS, "log degree"):
            return control_row(name, control, VARIANTS[beside])
    if name not in _BASELINES:
        raise ParameterError(f"no row is called {name!r}; known: {', '.join(known_rows())}")
    return _BASELINES[name]()


def known_rows() -> list[str]:
    """Return the names of all rows that have vectors."""
    return [*VARIANTS, *CONTROLS, "log degree", *_BASELINES]


def spine_row(name: str, settings: Mapping[str, Any]) -> Method:
    """Return SPINE with some settings; its version follows from all of them."""
    return Method(name, FIT_VERSION, _reader("SPINE", settings), settings=_all_settings(settings))


def control_row(name: str, control: str, settings: Mapping[str, Any]) -> Method:
    """Return a control with the T and the scaling of SPINE with some settings."""
    is_drawn = control == "random W_M" or settings.get("rpr_method") == "walks"
    number, every = FIT_VERSION, _all_settings(settings)
    if control in _UNTRAINED:
        number, every = INPUT_VERSION, {key: every[key] for key in _INPUT_SETTINGS}
    return Method(name, number, _reader(control, settings), is_drawn=is_drawn, settings=every)


def _all_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in Config(**settings).deciding().items() if name != "seed"}


def _reader(control: str, settings: Mapping[str, Any]) -> Callable[[Graph, int, int, Score | None], Embed]:
    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        return _fitted_rows(graph, seed, tuple(sorted({**settings, "dim": dim}.items())))[control]

    return fit


@lru_cache(maxsize=2)
def _fitted_rows(graph: Graph, seed: int, settings: tuple[tuple[str, Any], ...]) -> dict[str, Embed]:
    """Fit once for all rows that stand side by side."""
    return methods(fitted(graph, seed, dict(settings)), graph, seed, role=True)


def _random(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    def embed(other: Graph) -> Any:
        return np.random.default_rng([seed, len(other)]).standard_normal((len(other), dim))

    return embed


def _walks(name: str) -> Callable[[], Method]:
    def load() -> Method:
        from paper.baselines import combined

        return {
            "node2vec": combined.NODE2VEC,
            "struc2vec": combined.STRUC2VEC,
            "n+s": combined.BOTH,
            "n+s+f": combined.WITH_FEATURES,
        }[name]

    return load


def _sdne() -> Method:
    from paper.baselines.sdne import METHOD

    return METHOD


def _hope() -> Method:
    from paper.baselines.hope import METHOD

    return METHOD


def _graphsage() -> Method:
    from paper.baselines.graphsage import METHOD

    return METHOD


_BASELINES: dict[str, Callable[[], Method]] = {
    "Random": lambda: Method("Random", 1, _random),
    **{name: _walks(name) for name in ("node2vec", "struc2vec", "n+s", "n+s+f")},
    "SDNE": _sdne,
    "HOPE": _hope,
    "GraphSAGE": _graphsage,
}
