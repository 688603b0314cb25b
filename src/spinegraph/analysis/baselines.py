"""Baselines: controls that learn nothing, and node2vec."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.config import Config
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.kernels.walks import second_order_walks, train_negative
from spinegraph.parts.content import scaling_of
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.smoothing import Smoother, main_directions, multiply

Embed = Callable[[Graph], Any]  # from a graph to the vectors of all its nodes, (n, d), perhaps sparse
_CONTINUATION = 0.9  # of smoothing
_MAX_COLUMNS = 256  # of hop means; of more, the main directions
_MAX_WALKED, _WALKED_DIM = 10_000, 128  # nodes up to which node2vec is tried, and its own default dimension
TRANSDUCTIVE = ("spectral", "node2vec")  # made of one network alone, without vectors for another


def controls(
    train: Graph,
    dim: int,
    encoder: FeatureEncoder | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Embed]:
    """Return row name -> function from a graph to vectors that a sceptic would try first.

    With features: ``plain columns``, as the encoder scales them; ``columns + hop means``, beside them their
    means over neighbours and over neighbours' neighbours; ``smoothed columns``, the main directions of
    features smoothed at a continuation of 0.9, as many as ``dim``. Always ``structural columns``,
    standardised, ``spectral`` and ``node2vec``, which see links alone, and ``log degree``; node2vec up to
    10,000 nodes and 128 dimensions, for its time. An ``encoder`` is fitted unless given. Directions and
    scales are those of ``train``.
    """
    rows: dict[str, Embed] = {}
    if train.has_features:
        known = encoder or FeatureEncoder.for_matrix(
            train.features, scaling_of(train, Config()), train.feature_names
        )

        def plain(graph: Graph) -> Any:
            return known.transform(graph.features)

        rows["plain columns"] = plain
        rows["columns + hop means"] = hop_means(plain, train, seed, threads)
        rows["smoothed columns"] = principal(plain, train, dim, seed, threads)

    def structural(graph: Graph) -> NDArray[np.float32]:
        return structural_columns(graph, threads=threads).values

    @cache
    def scale() -> tuple[Any, Any]:
        found = structural(train)
        deviation = found.std(axis=0)
        return found.mean(axis=0), np.where(deviation > 1e-6, deviation, 1)

    rows["structural columns"] = lambda graph: (structural(graph) - scale()[0]) / scale()[1]
    rows["spectral"] = lambda graph: spectral(graph, dim, seed, threads)
    if len(train) <= _MAX_WALKED:
        rows["node2vec"] = lambda graph: node2vec(graph, min(dim, _WALKED_DIM), seed, epochs=1)
    rows["log degree"] = lambda graph: np.log1p(graph.degrees)[:, None]
    return rows


def hop_means(plain: Embed, train: Graph, seed: int = 0, threads: int | None = None) -> Embed:
    """Return the function from a graph to features, their means over one hop, and over two.

    Of more than 256 columns, the components along the training graph's main directions take their place.
    """

    @cache
    def directions() -> NDArray[np.float32]:
        features = plain(train)
        turned = features.T.tocsr() if issparse(features) else features.T
        return main_directions(
            lambda right: multiply(features, right, threads),
            lambda left: multiply(turned, left, threads),
            features.shape[1],
            min(_MAX_COLUMNS, len(train)),
            seed,
        )[0]

    def means(graph: Graph) -> NDArray[np.float32]:
        features = plain(graph)
        is_wide = features.shape[1] > _MAX_COLUMNS
        own = multiply(features, directions(), threads) if is_wide else dense(features)
        links = _links(graph)
        links.data /= np.repeat(np.maximum(graph.strengths, 1e-12), np.diff(graph.indptr)).astype(np.float32)
        near = multiply(links, own, threads)
        return np.hstack([own, near, multiply(links, near, threads)])

    return means


def spectral(graph: Graph, dim: int, seed: int = 0, threads: int | None = None) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim): leading eigenvectors of the degree-normalised adjacency matrix."""
    links = _links(graph)
    scale = 1 / np.sqrt(np.maximum(graph.strengths, 1e-12))
    links.data *= np.repeat(scale, np.diff(graph.indptr)) * scale[links.indices]

    def times(right: NDArray[np.float32]) -> NDArray[np.float32]:
        return (right + multiply(links, right, threads)) * np.float32(0.5)  # no eigenvalue is negative

    found, values = main_directions(times, times, len(graph), min(dim, len(graph)), seed, rounds=8)
    return np.asarray(found * values * np.sqrt(len(graph)), np.float32)


def _links(graph: Graph) -> csr_array:
    weights = np.ones(len(graph.indices)) if graph.weights is None else graph.weights
    return csr_array((weights.astype(np.float32), graph.indices, graph.indptr), shape=(len(graph),) * 2)


def principal(plain: Embed, train: Graph, dim: int, seed: int = 0, threads: int | None = None) -> Embed:
    """Return the function from a graph to smoothed features along the training graph's main directions.

    ``plain`` returns the features of a graph. All of them are never smoothed, but few products.
    """

    def smoother(graph: Graph) -> Smoother:
        return Smoother.of(graph, _CONTINUATION, symmetric=True, threads=threads)

    @cache
    def directions() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        features, smooth = plain(train), smoother(train).smooth
        turned = features.T.tocsr() if issparse(features) else features.T

        def times(right: NDArray[np.float32]) -> NDArray[np.float32]:
            found = smooth(multiply(features, right, threads))
            found -= found.mean(axis=0)
            return found

        def transposed(left: NDArray[np.float32]) -> NDArray[np.float32]:
            return multiply(turned, smooth(left - left.mean(axis=0)), threads)  # this T is symmetric

        width = features.shape[1]
        along = main_directions(times, transposed, width, min(dim, width, len(train)), seed, rounds=4)[0]
        return along, smooth(multiply(features, along, threads)).mean(axis=0)

    def components(graph: Graph) -> NDArray[np.float32]:
        along, mean = directions()
        return smoother(graph).smooth(multiply(plain(graph), along, threads)) - mean

    return components


def dense(matrix: Any) -> NDArray[np.float32]:
    """Return a matrix as a float32 array."""
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float32)


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
    """Return float32 vectors (n, dim) in which nodes that meet on walks are near, from links alone.

    A step back weighs 1 / p, a step to a neighbour of the node before 1, one further away 1 / q.
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
    return np.asarray(second_order_walks(graph.indptr, graph.indices, roots, walk_length, 1 / p, 1 / q, rng))


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
