"""Familiarity: what the training data looked like, and a warning with numbers for data unlike it."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.errors import UnfamiliarDataWarning

_ODD_SHARE = 0.2  # of nodes, before it is worth a word


@dataclass(frozen=True)
class Familiarity:
    """What was seen in training.

    Attributes
    ----------
    num_nodes : int
    smallest_degree, largest_degree : int
    empty_share : float
        Share of nodes whose features are all zero.
    blank_columns : tuple of int
        Feature columns that were zero for every node: the generator knows nothing of them.
    """

    num_nodes: int
    smallest_degree: int
    largest_degree: int
    empty_share: float
    blank_columns: tuple[int, ...]

    def __len__(self) -> int:
        return self.num_nodes

    @classmethod
    def of(cls, graph: Any) -> "Familiarity":
        """Describe a training graph.

        >>> from spinegraph import Graph
        >>> Familiarity.of(Graph.from_edges([(0, 1), (1, 2)])).largest_degree
        2
        """
        degrees = graph.degrees
        empty, blank = 0.0, tuple[int, ...]()
        if graph.has_features:
            empty = float(np.mean(_filled(graph.features, axis=1) == 0))
            blank = tuple(np.flatnonzero(_filled(graph.features, axis=0) == 0).tolist())
        return cls(len(graph), int(degrees.min()), int(degrees.max()), empty, blank)

    def warn(self, graph: Any, positions: NDArray[np.int64] | None = None) -> None:
        """Warn once, with numbers and advice, when a graph lies outside what was seen."""
        odd = self.oddities(graph, positions)
        if odd:
            warnings.warn(
                f"{'; '.join(odd)}. Vectors are defined but may mean little: refit with such data included.",
                UnfamiliarDataWarning,
                stacklevel=3,
            )

    def oddities(self, graph: Any, positions: NDArray[np.int64] | None = None) -> list[str]:
        """Say, one sentence part each, how the nodes differ from those of training."""
        degrees = graph.degrees if positions is None else graph.degrees_at(positions)
        if not len(degrees):
            return []
        odd = []
        outside = (degrees < self.smallest_degree) | (degrees > self.largest_degree)
        if outside.mean() > _ODD_SHARE or degrees.max() > 2 * max(self.largest_degree, 1):
            odd.append(
                f"{int(outside.sum())} of {len(degrees)} nodes have a degree outside the "
                f"{self.smallest_degree} to {self.largest_degree} seen in training, up to {degrees.max()}"
            )
        if graph.has_features:
            rows = graph.features if positions is None else graph.feature_rows(positions)
            odd += self._feature_oddities(rows)
        return odd

    def _feature_oddities(self, rows: Any) -> list[str]:
        odd = []
        filled = _filled(rows, axis=1)
        # As many as three deviations more than chance: one empty node of one is no news where half were.
        chance = 3 * np.sqrt(self.empty_share * (1 - self.empty_share) / len(filled))
        if np.mean(filled == 0) > self.empty_share + max(_ODD_SHARE, chance):
            odd.append(
                f"{int((filled == 0).sum())} of {len(filled)} nodes have empty features, "
                f"{self.empty_share:.0%} had in training"
            )
        if self.blank_columns and filled.sum():
            unknown = _filled(rows, axis=0)[list(self.blank_columns)].sum() / filled.sum()
            if unknown > _ODD_SHARE:
                odd.append(f"{unknown:.0%} of feature values lie in columns that were empty in training")
        return odd

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def _filled(features: Any, axis: int) -> NDArray[np.int64]:
    """Count values that are not zero."""
    if issparse(features):
        filled = features.data != 0
        if axis == 0:
            return np.bincount(features.indices[filled], minlength=features.shape[1])
        rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
        return np.bincount(rows[filled], minlength=features.shape[0])
    return np.asarray(np.count_nonzero(features, axis=axis))
