"""What SPINE's rows stand beside: the same inputs without learning.

Every control has the T and the feature scaling of the fitted model; what it fits, principal directions and
the size of the structural channel, it fits on the training graph.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from spinegraph.errors import SpineWarning
from spinegraph.estimator import SPINE
from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.reproduce.method import Embed

CONTROLS = ("raw features", "T F", "PCA of T F", "PCA of T F + columns", "random W_M")


def dense(matrix: Any) -> NDArray[np.float32]:
    """Return a matrix as a float32 array.

    Examples
    --------
    >>> dense([[1, 2]])
    array([[1., 2.]], dtype=float32)
    """
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float32)


def methods(model: SPINE, train: Graph, seed: int, role: bool = False) -> dict[str, Embed]:
    """Return row name -> function from a graph to the vectors of all its nodes.

    ``T F`` is what goes through T. ``PCA of T F`` has at most as many columns as SPINE's vectors. With
    ``+ columns`` the structural columns that go past T are appended at the share that the model gives them:
    the model without its learning. ``random W_M`` has the shape and size of the fitted one, and its channel.

    Examples
    --------
    >>> ring = Graph.from_edges([(i, (i + 1) % 8) for i in range(8)], features=np.eye(8, dtype=np.float32))
    >>> rows = methods(SPINE(dim=64, steps=2).fit(ring), ring, seed=0)
    >>> sorted(rows)
    ['PCA of T F', 'PCA of T F + columns', 'SPINE', 'T F', 'random W_M', 'raw features']
    """
    generator: Generator = model.generator_
    inputs = generator.inputs
    seen: dict[int, tuple[Graph, Any]] = {}  # T F by graph: several rows read it

    def smoothed(graph: Graph) -> Any:
        if id(graph) not in seen:
            seen[id(graph)] = graph, inputs.matrix(graph)[:, : inputs.num_through]
        return seen[id(graph)][1]

    def spine(graph: Graph) -> NDArray[np.float32]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpineWarning)
            return model.transform(graph).vectors

    def raw(graph: Graph) -> Any:
        return (
            inputs.structural(graph) if inputs.encoder is None else inputs.encoder.transform(graph.features)
        )

    rows: dict[str, Embed] = {"SPINE": spine, "raw features": raw, "T F": smoothed}
    rows["PCA of T F"] = principal(smoothed, train, generator.dim)
    if inputs.past:
        content = principal(smoothed, train, generator.dim - inputs.num_past)
        rows["PCA of T F + columns"] = with_columns(content, model, train)
    random = replace(generator, weights=random_weights(generator, seed))
    rows["random W_M"] = random.embed
    if role:
        rows["log degree"] = lambda graph: np.log1p(graph.degrees)[:, None]
    return rows


def principal(smoothed: Embed, train: Graph, dim: int) -> Embed:
    """Return the function from a graph to components of T F along the training graph's main directions.

    Examples
    --------
    >>> pair = Graph.from_edges([(0, 1)])
    >>> principal(lambda graph: np.eye(2), pair, 1)(pair).shape
    (2, 1)
    """
    fitted: list[tuple[Any, Any]] = []  # on first use

    def components(graph: Graph) -> NDArray[np.float32]:
        if not fitted:
            values = dense(smoothed(train))
            centre = values.mean(axis=0)
            count = min(dim, *values.shape)
            fitted.append((centre, randomized_svd(values - centre, count, n_iter=7, random_state=0)[2].T))
        centre, directions = fitted[0]
        found: NDArray[np.float32] = (dense(smoothed(graph)) - centre) @ directions
        return found

    return components


def with_columns(content: Embed, model: SPINE, train: Graph) -> Embed:
    """Return the function that appends the structural columns at the share they have in the model."""
    inputs, share = model.generator_.inputs, float(model.config_.structural_share or 0.0)
    squares = [float(np.square(part(train)).sum(axis=1).mean()) for part in (content, inputs.structural)]
    scale = np.sqrt(share / max(1 - share, 1e-6) * squares[0] / max(squares[1], 1e-12))
    return lambda graph: np.hstack([content(graph), scale * inputs.structural(graph)])


def random_weights(generator: Generator, seed: int) -> NDArray[np.float32]:
    """Return W_M with its trained entries drawn at random, of the same mean square."""
    through = generator.inputs.num_through
    weights = generator.weights.copy()
    trained = weights[:through]
    drawn = np.random.default_rng([seed, 99]).standard_normal(trained.shape) * (trained != 0)
    weights[:through] = drawn * (np.linalg.norm(trained) / max(float(np.linalg.norm(drawn)), 1e-12))
    return weights
