"""Baselines to compare vectors with: controls that learn nothing, and node2vec."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.config import Config
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.kernels.walks import train_negative, uniform_walks
from spinegraph.parts.content import scaling_of
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.smoothing import Smoother, main_directions, multiply

Vectors = NDArray[np.float32]
Embed = Callable[[Graph], Any]  # from a graph to the vectors of all its nodes, (n, d), possibly sparse
_CONTINUATION = 0.9  # of smoothing
_MAX_COLUMNS = 256  # of hop means; wider features are reduced to their main directions
_NODE2VEC_NODES, _NODE2VEC_DIM = 10_000, 128  # most nodes it is run on, and its default dimension
TRANSDUCTIVE = ("spectral", "node2vec")  # these have no vectors for another network


def controls(
    train: Graph,
    dim: int,
    encoder: FeatureEncoder | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Embed]:
    """Return the baselines that a sceptic would try first: name -> function from a graph to vectors.

    With features: ``plain columns`` as the encoder scales them; ``columns + hop means``, which adds their
    means over one hop and over two; ``smoothed columns``, the ``dim`` main directions of features smoothed
    with a continuation of 0.9. Always: ``structural columns``, standardised; ``spectral`` and, up to 10,000
    nodes and 128 dimensions, ``node2vec``, which see links alone; ``log degree``. An ``encoder`` is fitted
    unless given. Directions and scales are fitted on ``train``.
    """
    rows: dict[str, Embed] = {}
    if train.has_features:
        scaling = scaling_of(train, Config())
        known = encoder or FeatureEncoder.for_matrix(train.features, scaling, train.feature_names)

        def plain(graph: Graph) -> Any:
            return known.transform(graph.features)

        rows["plain columns"] = plain
        rows["columns + hop means"] = hop_means(plain, train, seed, threads)
        rows["smoothed columns"] = principal(plain, train, dim, seed, threads)

    def structural(graph: Graph) -> Vectors:
        return structural_columns(graph, threads=threads).values

    @cache
    def scale() -> tuple[Any, Any]:
        found = structural(train)
        deviation = found.std(axis=0)
        return found.mean(axis=0), np.where(deviation > 1e-6, deviation, 1)

    rows["structural columns"] = lambda graph: (structural(graph) - scale()[0]) / scale()[1]
    rows["spectral"] = lambda graph: spectral(graph, dim, seed, threads)
    if len(train) <= _NODE2VEC_NODES:
        rows["node2vec"] = lambda graph: node2vec(graph, min(dim, _NODE2VEC_DIM), seed, epochs=1)
    rows["log degree"] = lambda graph: np.log1p(graph.degrees)[:, None]
    return rows


def hop_means(plain: Embed, train: Graph, seed: int = 0, threads: int | None = None) -> Embed:
    """Return a function from a graph to its features and their means over one hop and over two.

    More than 256 columns are replaced by their components along the training graph's main directions.
    """

    @cache
    def directions() -> Vectors:
        features = plain(train)
        features_T = features.T.tocsr() if issparse(features) else features.T
        times, transposed = (partial(multiply, each, threads=threads) for each in (features, features_T))
        return main_directions(times, transposed, features.shape[1], min(_MAX_COLUMNS, len(train)), seed)[0]

    def means(graph: Graph) -> Vectors:
        features = plain(graph)
        is_wide = features.shape[1] > _MAX_COLUMNS
        own = multiply(features, directions(), threads) if is_wide else dense(features)
        links = _links(graph)
        links.data /= np.repeat(np.maximum(graph.strengths, 1e-12), np.diff(graph.indptr)).astype(np.float32)
        near = multiply(links, own, threads)
        return np.hstack([own, near, multiply(links, near, threads)])

    return means


def spectral(graph: Graph, dim: int, seed: int = 0, threads: int | None = None) -> Vectors:
    """Return float32 vectors (n, dim): leading eigenvectors of the degree-normalised adjacency matrix."""
    links = _links(graph)
    scale = 1 / np.sqrt(np.maximum(graph.strengths, 1e-12))
    links.data *= np.repeat(scale, np.diff(graph.indptr)) * scale[links.indices]

    def times(right: Vectors) -> Vectors:
        return (right + multiply(links, right, threads)) * np.float32(0.5)  # no eigenvalue is negative

    found, values = main_directions(times, times, len(graph), min(dim, len(graph)), seed, rounds=8)
    return np.asarray(found * values * np.sqrt(len(graph)), np.float32)


def _links(graph: Graph) -> csr_array:
    weights = np.ones(len(graph.indices)) if graph.weights is None else graph.weights
    return csr_array((weights.astype(np.float32), graph.indices, graph.indptr), shape=(len(graph),) * 2)


def principal(plain: Embed, train: Graph, dim: int, seed: int = 0, threads: int | None = None) -> Embed:
    """Return a function from a graph to smoothed features along the training graph's main directions.

    ``plain`` returns the features of a graph; only their products with a few directions are smoothed.
    """

    def smoother(graph: Graph) -> Smoother:
        return Smoother.of(graph, _CONTINUATION, symmetric=True, threads=threads)

    @cache
    def directions() -> tuple[Vectors, Vectors]:
        features, smooth = plain(train), smoother(train).smooth
        features_T = features.T.tocsr() if issparse(features) else features.T

        def times(right: Vectors) -> Vectors:
            found = smooth(multiply(features, right, threads))
            found -= found.mean(axis=0)
            return found

        def transposed(left: Vectors) -> Vectors:
            return multiply(features_T, smooth(left - left.mean(axis=0)), threads)  # this T is symmetric

        width = features.shape[1]
        along = main_directions(times, transposed, width, min(dim, width, len(train)), seed, rounds=4)[0]
        return along, smooth(multiply(features, along, threads)).mean(axis=0)

    def components(graph: Graph) -> Vectors:
        along, mean = directions()
        return smoother(graph).smooth(multiply(plain(graph), along, threads)) - mean

    return components


def dense(matrix: Any) -> Vectors:
    """Return a matrix as a float32 array."""
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix, dtype=np.float32)


_WALKS, _WALK_LENGTH, _WINDOW, _NEGATIVES, _RATE = 10, 40, 5, 5, 0.025
_NOISE_TABLE = 1_000_000  # entries that nodes share in proportion to count^0.75, as in word2vec


def node2vec(graph: Graph, dim: int = 200, seed: Any = 0, *, epochs: int | None = None) -> Vectors:
    """Return float32 vectors (n, dim) in which nodes that meet on walks are near, from links alone.

    p and q are 1. As in word2vec: a window of random size around each centre, plain gradient steps one pair
    at a time, and a learning rate that falls linearly to a 250th. One thread, so that the same seed gives the
    same vectors.
    """
    walk_rng, rng = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    n, passes = len(graph), epochs or (5 if len(graph) <= 10_000 else 2)
    roots = np.tile(np.arange(n), _WALKS)
    walks = uniform_walks(graph.indptr, graph.indices, roots, _WALK_LENGTH, walk_rng)
    counts = np.bincount(walks[walks >= 0].ravel(), minlength=n)
    vectors = ((rng.random((n, dim)) - 0.5) / dim).astype(np.float32)
    contexts = np.zeros((n, dim), dtype=np.float32)
    cumulative = np.cumsum(counts**0.75)
    at = (np.arange(_NOISE_TABLE) + 0.5) / _NOISE_TABLE * cumulative[-1]
    table = np.minimum(np.searchsorted(cumulative, at, side="right"), n - 1).astype(np.int32)
    for epoch in range(passes):
        shuffled = walks[rng.permutation(len(walks))]
        span = (_RATE * (1 - epoch / passes), _RATE * (1 - (epoch + 1) / passes))
        train_negative(shuffled, vectors, contexts, table, _NEGATIVES, _WINDOW, span, _RATE / 250, rng)
    return vectors
