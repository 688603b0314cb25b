"""What is evaluated: a model's vectors or those of a file, and the controls beside them."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError, SpineWarning
from spinegraph.estimator import SPINE
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.inputs import Inputs, profile_of

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
    """Return a model's vectors of a graph's nodes and those of its controls, which learn nothing.

    Examples
    --------
    >>> from spinegraph import made
    >>> barbell = made.barbell(6)
    >>> model = SPINE(dim=64, steps=2).fit(barbell)
    >>> list(model_rows(model, barbell, lambda *moment: None))[:4]
    ['SPINE', 'raw features', 'T F', 'PCA of T F']
    """
    from spinegraph.reproduce.controls import methods

    train = model.graph_ if isinstance(model.graph_, Graph) else graph
    embed = methods(model, train, model.config_.seed, role=True)
    width = model.generator_.inputs.num_through
    if max(len(train), len(graph)) * width > _MOST_VALUES:
        embed = {name: made for name, made in embed.items() if "T F" not in name}
        _warn_of_width(len(graph), width)
    rows = {}
    for done, (name, made) in enumerate(embed.items()):
        progress("vectors and their controls", done, len(embed))
        rows[name] = made(graph)
    return rows


def file_rows(vectors: NDArray[np.float32], graph: Graph | None) -> Rows:
    """Return vectors of a file and, where their network is at hand, controls made with default settings.

    Examples
    --------
    >>> sorted(file_rows(np.eye(3, dtype=np.float32), Graph.from_edges([(0, 1), (1, 2)])))
    ['PCA of T F', 'T F', 'log degree', 'vectors']
    """
    from spinegraph.reproduce.controls import principal

    rows: Rows = {"vectors": vectors}
    if graph is None:
        return rows
    config = Config()
    profile = profile_of(graph, config)
    inputs = Inputs.of(graph, config, None, profile)
    if inputs.encoder is not None:
        rows["raw features"] = inputs.encoder.transform(graph.features)
    if len(graph) * inputs.num_through <= _MOST_VALUES:
        rows["T F"] = inputs.smoothed(graph, profile).matrix()
        rows["PCA of T F"] = principal(lambda graph: rows["T F"], graph, vectors.shape[1])(graph)
    else:
        _warn_of_width(len(graph), inputs.num_through)
    return {**rows, "log degree": np.log1p(graph.degrees)[:, None]}


def _warn_of_width(nodes: int, columns: int) -> None:
    warnings.warn(
        f"{nodes:,} nodes times {columns:,} columns are too many for the controls made of T F; left out. "
        "Evaluate a part of the network to have them",
        SpineWarning,
        stacklevel=3,
    )
