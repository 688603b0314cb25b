"""Vectors that an index does not know, or knows as they were: few, so all of them are compared."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.nearest import unit_rows
from spinegraph.apps.server.chunks import Chunks
from spinegraph.apps.server.live import Snapshot


@dataclass(frozen=True, eq=False)
class Fresh:
    """Positions and their present unit vectors, in order of coming; it never changes.

    Attributes
    ----------
    positions : int64 array (m,)
    unit : Chunks (m, d + 1)
        As ``unit_rows`` makes them.
    rows : int32 array (n,)
        The row of every position known so far, -1 where it has none.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.apps.server.live import Live
    >>> model = SPINE(dim=4, steps=5).fit(made.barbell(8, bridge=4))
    >>> live = Live(model.generator_, model.graph_)
    >>> live.compute_all(model.embeddings_.vectors)
    >>> fresh = Fresh.none(live.tip).taken(live.tip, np.array([3, 12]))
    >>> fresh.candidates(unit_rows(live.tip.vector(12)[None])[0], 1)
    array([12])
    """

    positions: NDArray[np.int64]
    unit: Chunks
    rows: NDArray[np.int32]

    @classmethod
    def none(cls, snapshot: Snapshot) -> "Fresh":
        """Return an empty one."""
        unit = unit_rows(np.zeros((0, snapshot.vectors.width), np.float32))
        return cls(np.zeros(0, np.int64), Chunks.of(unit), np.full(len(snapshot.overlay), -1, np.int32))

    def __len__(self) -> int:
        return len(self.positions)

    def holds(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which positions are here."""
        found = np.zeros(len(positions), bool)
        known = positions < len(self.rows)
        found[known] = self.rows[positions[known]] >= 0
        return found

    def taken(self, snapshot: Snapshot, positions: NDArray[np.int64]) -> "Fresh":
        """Return one that holds some more positions, ascending, as they are in a snapshot."""
        more = np.full(len(snapshot.overlay) - len(self.rows), -1, np.int32)
        rows = np.concatenate((self.rows, more))
        new = positions[rows[positions] < 0]
        rows[new] = np.arange(len(self), len(self) + len(new))
        order = np.argsort(rows[positions])
        vectors = unit_rows(snapshot.vectors.take(positions))[order]
        unit = self.unit.replaced(rows[positions][order].astype(np.int64), vectors, len(self) + len(new))
        return Fresh(np.concatenate((self.positions, new)), unit, rows)

    def candidates(self, query: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """Return the positions most like a unit vector (d + 1,), in no order."""
        products = self.unit.products(query)
        if count >= len(products):
            return self.positions
        found: NDArray[np.int64] = self.positions[np.argpartition(products, -count)[-count:]]
        return found
