"""Shards: consecutive nodes of a graph, cut alike and embedded alike by every engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.generator import Generator

ROWS = 65_536
# Nodes whose surroundings are held at a time: so many, or as many as have surroundings of about this size.
_LEAST_BLOCK, _MOST_BLOCK, _BLOCK_BYTES = 16, 32_768, 2**27
_BYTES_PER_VALUE = 16  # of a feature, while it is gathered and scaled


@dataclass(frozen=True)
class Shard:
    """Consecutive nodes of a graph, ``start`` to ``stop``."""

    index: int
    start: int
    stop: int

    @property
    def file(self) -> str:
        """Name of its part.

        >>> Shard(3, 0, 1).file
        'part-00003.parquet'
        """
        return f"part-{self.index:05d}.parquet"


def plan(num_nodes: int, rows: int = ROWS) -> list[Shard]:
    """Cut a graph's nodes into shards; the same whoever embeds them.

    >>> plan(5, rows=2)
    [Shard(index=0, start=0, stop=2), Shard(index=1, start=2, stop=4), Shard(index=2, start=4, stop=5)]
    """
    if not isinstance(rows, int | np.integer) or rows < 1:
        raise ParameterError(f"rows of a shard must be a whole number of at least 1; got {rows!r}")
    starts = range(0, num_nodes, rows)
    return [Shard(index, start, min(start + rows, num_nodes)) for index, start in enumerate(starts)]


def embed_shard(
    generator: Generator, graph: Any, shard: Shard, columns: NDArray[np.float32] | None = None
) -> Embeddings:
    """Return the vectors of one shard, in graph order, holding little beside them.

    Parameters
    ----------
    generator : Generator
    graph : Graph
    shard : Shard
    columns : float32 array (n, s), optional
        Structural columns of all nodes (see ``columns_shard``), where the generator smooths them: without
        them those of all nodes around the shard are computed again.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(5))
    >>> embed_shard(model.generator_, model.graph_, Shard(0, 0, 3))
    Embeddings(3 nodes, 4 dimensions)
    """
    vectors = np.empty((shard.stop - shard.start, generator.dim), dtype=np.float32)
    for start, stop in _blocks(shard, _rows_at_a_time(generator, graph)):
        positions = np.arange(start, stop)
        vectors[start - shard.start : stop - shard.start] = generator.embed(graph, positions, columns=columns)
    return Embeddings(graph.names[shard.start : shard.stop], vectors)


def columns_shard(generator: Generator, graph: Any, shard: Shard) -> NDArray[np.float32]:
    """Return the standardised structural columns (r, s) of one shard, for ``embed_shard``.

    >>> from spinegraph import SPINE, made
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(5))
    >>> columns_shard(model.generator_, model.graph_, Shard(0, 0, 3)).shape
    (3, 10)
    """
    inputs = generator.inputs
    parts = [inputs.structural(graph, np.arange(start, stop)) for start, stop in _blocks(shard, _MOST_BLOCK)]
    return np.concatenate(parts)


def needs_columns(generator: Generator) -> bool:
    """Say whether a generator smooths structural columns, so that shards need those of nodes elsewhere."""
    return generator.inputs.through


def _blocks(shard: Shard, rows: int) -> Iterator[tuple[int, int]]:
    for start in range(shard.start, shard.stop, rows):
        yield start, min(start + rows, shard.stop)


def _rows_at_a_time(generator: Generator, graph: Any) -> int:
    """Return how many nodes to embed at a time; it follows from the graph and the model alone."""
    features = graph.features
    values = len(generator.inputs.columns)
    if features is not None:
        values += int(features.nnz if issparse(features) else features.size) // len(graph)
    around = 4 * generator.inputs.config.k // 3  # ties make rows of T a little longer than k
    return min(max(_BLOCK_BYTES // (_BYTES_PER_VALUE * around * max(values, 1)), _LEAST_BLOCK), _MOST_BLOCK)
