"""Rows that many snapshots share: a change copies the few blocks it touches."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.checks import frozen

SIZE = 128  # rows a block: small to copy, large enough that a product over all blocks costs little more


class Chunks:
    """A matrix (n, d) that never changes; changed ones share the blocks that are the same.

    Examples
    --------
    >>> rows = Chunks.of(np.zeros((300, 2), np.float32))
    >>> changed = rows.replaced(np.array([299, 300]), np.ones((2, 2), np.float32), 301)
    >>> len(rows), len(changed), changed.take(np.array([0, 300])).tolist()
    (300, 301, [[0.0, 0.0], [1.0, 1.0]])
    """

    __slots__ = ("_blocks", "_length", "width")

    def __init__(self, blocks: list[NDArray[np.float32]], length: int, width: int) -> None:
        self._blocks, self._length, self.width = blocks, length, width

    @classmethod
    def of(cls, matrix: NDArray[np.float32]) -> "Chunks":
        """Cut a matrix into blocks."""
        empty = cls([], 0, matrix.shape[1])
        return empty.replaced(np.arange(len(matrix)), matrix, len(matrix))

    def __len__(self) -> int:
        return self._length

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return some rows, (r, d)."""
        if len(positions) == 1:
            return np.array(self._blocks[positions[0] // SIZE][positions % SIZE])
        rows = np.empty((len(positions), self.width), np.float32)
        numbers = positions // SIZE
        bounds = np.concatenate((np.flatnonzero(np.diff(numbers, prepend=-1)), [len(positions)])).tolist()
        for start, stop in pairwise(bounds):
            rows[start:stop] = self._blocks[numbers[start]][positions[start:stop] % SIZE]
        return rows

    def replaced(self, positions: NDArray[np.int64], rows: NDArray[np.float32], length: int) -> "Chunks":
        """Return a matrix of ``length`` rows with some rows replaced; rows that are new and not given are 0.

        Parameters
        ----------
        positions : int64 array (r,)
            Ascending.
        rows : float32 array (r, d)
        length : int
            Not below the present one.
        """
        blocks = list(self._blocks)
        while len(blocks) * SIZE < length:
            blocks.append(frozen(np.zeros((SIZE, self.width), np.float32)))
        numbers = positions // SIZE
        bounds = np.concatenate((np.flatnonzero(np.diff(numbers, prepend=-1)), [len(positions)])).tolist()
        for start, stop in pairwise(bounds):
            block = blocks[numbers[start]].copy()
            block[positions[start:stop] % SIZE] = rows[start:stop]
            blocks[numbers[start]] = frozen(block)
        return Chunks(blocks, length, self.width)

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Return the rows block after block, (<= SIZE, d) each."""
        for number, block in enumerate(self._blocks):
            yield block[: self._length - number * SIZE]

    def products(self, vector: NDArray[np.float32], start: int = 0) -> NDArray[np.float32]:
        """Return the product of every row from ``start`` on with a vector (d,), (n - start,)."""
        first = start // SIZE
        found = np.empty((len(self._blocks) - first) * SIZE, np.float32)
        for number, block in enumerate(self._blocks[first:]):
            np.dot(block, vector, out=found[number * SIZE : (number + 1) * SIZE])
        return found[start - first * SIZE : self._length - first * SIZE]

    def matrix(self) -> NDArray[np.float32]:
        """Return all rows in one piece, a copy."""
        whole = np.concatenate([*self._blocks, np.zeros((0, self.width), np.float32)])
        return whole[: self._length]
