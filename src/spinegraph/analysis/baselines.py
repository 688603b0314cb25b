"""Baselines: controls that learn nothing, and node2vec."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import randomized_svd

from spinegraph.generator import Generator
from spinegraph.graph.graph import Graph
from spinegraph.kernels.skipgram import second_order_walks, train_negative

Embed = Callable[[Graph], Any]  # from a graph to the vectors of all its nodes, (n, d), perhaps sparse
CONTROLS = ("raw features", "T F", "PCA of T F", "PCA of T F + columns", "random W_M")


def methods(generator: Generator, train: Graph, seed: int, role: bool = False) -> dict[str, Embed]:
    """Return row name -> function from a graph to the vectors of all its nodes: SPINE's and its controls.

    ``T F`` is the smoothed input. ``PCA of T F`` has at most as many columns as SPINE's vectors. With
    ``+ columns`` the structural columns that are not smoothed are appended at the share that the model gives
    them: the model without its learning. ``random W_M`` has the shape and size of the fitted one, and its
    columns. ``role`` adds the logarithm of the degree. ``train`` is the network that the model was fitted on.
    """
    inputs = generator.inputs

    @cache
    def smoothed(graph: Graph) -> Any:
        return inputs.matrix(graph)[:, : inputs.num_smoothed]

    def raw(graph: Graph) -> Any:
        return (
            inputs.structural(graph) if inputs.encoder is None else inputs.encoder.transform(graph.features)
        )

    rows: dict[str, Embed] = {"SPINE": generator.embed, "raw features": raw, "T F": smoothed}
    rows["PCA of T F"] = principal(smoothed, train, generator.dim)
    if inputs.columns_direct:
        content = principal(smoothed, train, generator.dim - inputs.num_direct)
        share = float(inputs.config.structural_share or 0.0)

        @cache
        def scale() -> np.float64:
            parts = (content, inputs.structural)
            squares = [float(np.square(part(train)).sum(axis=1).mean()) for part in parts]
            return np.float64(np.sqrt(share / max(1 - share, 1e-6) * squares[0] / max(squares[1], 1e-12)))

        rows["PCA of T F + columns"] = lambda graph: np.hstack(
            [content(graph), scale() * inputs.structural(graph)]
        )
    rows["random W_M"] = replace(generator, weights=_random_weights(generator, seed)).embed
    if role:
        rows["log degree"] = lambda graph: np.log1p(graph.degrees)[:, None]
    return rows


def principal(smoothed: Embed, train: Graph, dim: int) -> Embed:
    """Return the function from a graph to components of T F along the training graph's main directions."""

    @cache
    def directions() -> tuple[Any, Any]:
        values = dense(smoothed(train))
        center = values.mean(axis=0)
        return center, randomized_svd(values - center, min(dim, *values.shape), n_iter=7, random_state=0)[2].T

    def components(graph: Graph) -> NDArray[np.float32]:
        center, along = directions()
        found: NDArray[np.float32] = (dense(smoothed(graph)) - center) @ along
        return found

    return components


def dense(matrix: Any) -> NDArray[np.float32]:
    """Return a matrix as a float32 array."""
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float32)


def _random_weights(generator: Generator, seed: int) -> NDArray[np.float32]:
    """Return W_M with its trained entries drawn at random, of the same mean square."""
    weights = generator.weights.copy()
    trained = weights[: generator.inputs.num_smoothed]
    drawn = np.random.default_rng([seed, 99]).standard_normal(trained.shape) * (trained != 0)
    trained[:] = drawn * (np.linalg.norm(trained) / max(float(np.linalg.norm(drawn)), 1e-12))
    return weights


def node2vec(
    graph: Graph,
    dim: int = 200,
    seed: Any = 0,
    *,
    p: float = 1.0,
    q: float = 1.0,
    walks: int = 10,
    walk_length: int = 40,
    window: int = 5,
    epochs: int | None = None,
) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim) in which nodes that meet on walks are near.

    Parameters
    ----------
    graph : Graph
        Edge weights and features are not read.
    p, q : float
        A step back weighs 1 / p, a step to a neighbour of the node before 1, one further away 1 / q.
    epochs : int, optional
        Passes over the walks.
    """
    walk_seed, vector_seed = np.random.SeedSequence(seed).spawn(2)
    paths = biased_walks(graph, walks, walk_length, p, q, np.random.default_rng(walk_seed))
    passes = epochs or (5 if len(graph) <= 10_000 else 2)
    return _skip_gram(paths, len(graph), dim, window, passes, np.random.default_rng(vector_seed))


def biased_walks(
    graph: Graph, walks: int, walk_length: int, p: float, q: float, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return walks from every node, int32 (walks * n, walk_length)."""
    roots = np.tile(np.arange(len(graph)), walks)
    found: NDArray[np.int32] = second_order_walks(
        graph.indptr, graph.indices, roots, walk_length, 1 / p, 1 / q, rng
    )
    return found


_NOISE_TABLE = 1_000_000  # entries that nodes share in proportion to count^0.75, as in word2vec
_NEGATIVES = 5
_RATE = 0.025


def _skip_gram(
    walks: NDArray[np.int32], num_nodes: int, dim: int, window: int, epochs: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return float32 vectors (num_nodes, dim) of the nodes on walks (w, length), -1 where one ends early.

    word2vec's own settings: a window of random size up to ``window`` around each centre, plain gradient
    steps one pair at a time, their rate falling linearly to a 250th of it. One thread, so the same seed gives
    the same vectors.
    """
    counts = np.bincount(walks[walks >= 0].ravel(), minlength=num_nodes)
    vectors = ((rng.random((num_nodes, dim)) - 0.5) / dim).astype(np.float32)
    contexts = np.zeros((num_nodes, dim), dtype=np.float32)
    cumulative = np.cumsum(counts**0.75)
    at = (np.arange(_NOISE_TABLE) + 0.5) / _NOISE_TABLE * cumulative[-1]
    table = np.minimum(np.searchsorted(cumulative, at, side="right"), num_nodes - 1).astype(np.int32)
    for epoch in range(epochs):
        shuffled = walks[rng.permutation(len(walks))]
        span = (_RATE * (1 - epoch / epochs), _RATE * (1 - (epoch + 1) / epochs))
        train_negative(shuffled, vectors, contexts, table, _NEGATIVES, window, span, _RATE / 250, rng)
    return vectors
