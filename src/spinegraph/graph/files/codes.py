"""Turns the node names of an edge file, block by block, into positions among the sorted distinct names."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_SPARE = 2**22  # a table of this many node ids costs nothing worth mention


class IntegerNames:
    """Collects integer endpoints, then numbers the distinct ones in ascending order.

    Examples
    --------
    >>> endpoints = IntegerNames()
    >>> endpoints.add(np.array([30, 10]), np.array([10, 20]))
    >>> names, edges = endpoints.finish()
    >>> names.tolist(), edges.tolist()
    ([10, 20, 30], [[2, 0], [0, 1]])
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._low, self._high, self._count = 2**63 - 1, -(2**63), 0

    def add(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take the endpoints of one block, (b,) each."""
        if not len(sources):
            return
        low = min(int(sources.min()), int(targets.min()))
        high = max(int(sources.max()), int(targets.max()))
        dtype = np.int32 if low >= -(2**31) and high < 2**31 else np.int64  # half the memory where it fits
        self._blocks.append((sources.astype(dtype), targets.astype(dtype)))
        self._low, self._high = min(self._low, low), max(self._high, high)
        self._count += len(sources)

    def finish_positions(self) -> NDArray[np.int32]:
        """Return the edges (m, 2) where names are positions already; the blocks are given up."""
        return self._joined(np.int64(0))

    def finish(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the names (n,), ascending, and the edges (m, 2) as positions; the blocks are given up."""
        if not self._count:
            return np.zeros(0, np.int64), np.zeros((0, 2), np.int32)
        span, low = self._high - self._low + 1, np.int64(self._low)
        if span > max(_SPARE, min(4 * self._count, 2**31)):
            return self._finish_sparse()
        present = np.zeros(span, dtype=bool)
        for sources, targets in self._blocks:
            present[sources - low] = True
            present[targets - low] = True
        names = np.flatnonzero(present)
        edges = self._joined(low)
        if len(names) < span:
            rank = np.cumsum(present, dtype=np.int32) - np.int32(1)
            for column in edges.T:
                column[:] = rank[column]
        return names + low, edges

    def _joined(self, low: np.int64) -> NDArray[np.int32]:
        """Return all endpoints less ``low`` as one (m, 2) array whose columns are contiguous."""
        edges, start = np.empty((2, self._count), np.int32), 0
        while self._blocks:
            sources, targets = self._blocks.pop(0)
            end = start + len(sources)
            np.subtract(sources, low, out=edges[0, start:end], casting="unsafe")
            np.subtract(targets, low, out=edges[1, start:end], casting="unsafe")
            start = end
        return edges.T

    def _finish_sparse(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        coder = DistinctNames()
        while self._blocks:
            sources, targets = self._blocks.pop(0)
            coder.add(pa.array(sources.astype(np.int64)), pa.array(targets.astype(np.int64)))
        return coder.finish()


class DistinctNames:
    """Collects endpoints of any Arrow type, then numbers the distinct ones in ascending order.

    Examples
    --------
    >>> endpoints = DistinctNames()
    >>> endpoints.add(pa.array(["cy", "ann"]), pa.array(["ann", "bob"])).to_pylist()
    ['cy', 'ann', 'bob']
    >>> names, edges = endpoints.finish()
    >>> names.tolist(), edges.tolist()
    (['ann', 'bob', 'cy'], [[2, 0], [0, 1]])
    """

    def __init__(self) -> None:
        self._codes: list[NDArray[np.int32]] = []  # (2, b) codes into the block's own names
        self._names: list[Any] = []

    def add(self, sources: Any, targets: Any) -> Any:
        """Take the endpoints of one block, (b,) each, and return the block's distinct names."""
        both = pa.chunked_array([*_chunks(sources), *_chunks(targets)])
        if not len(both):
            return both
        both = both.unify_dictionaries() if pa.types.is_dictionary(both.type) else both.dictionary_encode()
        codes = [chunk.indices.to_numpy() for chunk in both.chunks]
        self._codes.append(np.concatenate(codes).astype(np.int32, copy=False).reshape(2, -1))
        self._names.append(both.chunk(both.num_chunks - 1).dictionary)
        return self._names[-1]

    def finish(self) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the names (n,), ascending, and the edges (m, 2) as positions; the blocks are given up."""
        found, edges = self.finish_text()
        names = found.to_numpy(zero_copy_only=False)
        return names if names.dtype == np.int64 and len(names) else names.astype(object), edges

    def finish_text(self) -> tuple[Any, NDArray[np.int32]]:
        """Return what ``finish`` does, the names still as an Arrow array."""
        if not self._codes:
            return pa.array([], pa.large_string()), np.zeros((0, 2), np.int32)
        merged = pa.chunked_array([_trimmed(names) for names in self._names]).dictionary_encode()
        self._names.clear()
        distinct = merged.chunk(merged.num_chunks - 1).dictionary
        order = pc.sort_indices(distinct)
        rank = np.empty(len(distinct), np.int32)
        rank[order.to_numpy()] = np.arange(len(distinct), dtype=np.int32)
        edges, start = np.empty((2, sum(codes.shape[1] for codes in self._codes)), np.int32), 0
        for chunk in merged.chunks:
            codes = self._codes.pop(0)
            end = start + codes.shape[1]
            edges[:, start:end] = rank[chunk.indices.to_numpy()][codes]
            start = end
        return distinct.take(order), edges.T


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _trimmed(names: Any) -> Any:
    """Return text names without the white space around them, in a type that may grow beyond 2 GiB."""
    is_text = pa.types.is_string(names.type) or pa.types.is_large_string(names.type)
    return pc.utf8_trim_whitespace(names).cast(pa.large_string()) if is_text else names
