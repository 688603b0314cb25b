"""Familiarity: what the training data looked like, and a warning with numbers for data unlike it."""

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.errors import UnfamiliarDataWarning

_ODD_SHARE = 0.2  # of nodes, before it is worth a word
_PIECE = 2**18  # nodes looked at a time
_GLANCE = 1_000  # weights


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
    is_weighted : bool or None
        Whether edges had different weights; None for a model saved before this was noted.
    """

    num_nodes: int
    smallest_degree: int
    largest_degree: int
    empty_share: float
    blank_columns: tuple[int, ...]
    is_weighted: bool | None = None

    def __len__(self) -> int:
        return self.num_nodes

    @classmethod
    def of(cls, graph: Any) -> "Familiarity":
        """Describe a training graph.

        >>> from spinegraph import Graph
        >>> Familiarity.of(Graph.from_edges([(0, 1), (1, 2)])).largest_degree
        2
        """
        extremes = [(int(some.min()), int(some.max())) for some in _degrees(graph, None)]
        empty, blank = 0.0, tuple[int, ...]()
        if graph.has_features:
            rows, columns = _filled(graph.features)
            empty = float(np.mean(rows == 0))
            blank = tuple(np.flatnonzero(columns == 0).tolist())
        smallest, largest = min(low for low, _ in extremes), max(high for _, high in extremes)
        return cls(len(graph), smallest, largest, empty, blank, _has_weights(graph))

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
        count = len(graph) if positions is None else len(positions)
        if not count:
            return []
        odd, outside, largest = [], 0, 0
        for some in _degrees(graph, positions):
            outside += int(((some < self.smallest_degree) | (some > self.largest_degree)).sum())
            largest = max(largest, int(some.max()))
        if outside > _ODD_SHARE * count or largest > 2 * max(self.largest_degree, 1):
            odd.append(
                f"{outside} of {count} nodes have a degree outside the "
                f"{self.smallest_degree} to {self.largest_degree} seen in training, up to {largest}"
            )
        if self.is_weighted is not None and _has_weights(graph) != self.is_weighted:
            seen, given = ("weights", "none") if self.is_weighted else ("no weights", "some")
            odd.append(f"edges had {seen} in training, these have {given}")
        if graph.has_features:
            rows = graph.features if positions is None else graph.feature_rows(positions)
            odd += self._feature_oddities(rows)
        return odd

    def _feature_oddities(self, rows: Any) -> list[str]:
        odd = []
        filled, columns = _filled(rows)
        # As many as three deviations more than chance: one empty node of one is no news where half were.
        chance = 3 * np.sqrt(self.empty_share * (1 - self.empty_share) / len(filled))
        if np.mean(filled == 0) > self.empty_share + max(_ODD_SHARE, chance):
            odd.append(
                f"{int((filled == 0).sum())} of {len(filled)} nodes have empty features, "
                f"{self.empty_share:.0%} had in training"
            )
        if self.blank_columns and filled.sum():
            unknown = columns[list(self.blank_columns)].sum() / filled.sum()
            if unknown > _ODD_SHARE:
                odd.append(f"{unknown:.0%} of feature values lie in columns that were empty in training")
        return odd

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def _degrees(graph: Any, positions: NDArray[np.int64] | None) -> Iterator[NDArray[np.int64]]:
    """Yield the degrees of some nodes, or of all, a piece at a time: a graph may be larger than memory."""
    count = len(graph) if positions is None else len(positions)
    for start in range(0, count, _PIECE):
        some = np.arange(start, min(start + _PIECE, count))
        yield graph.degrees_at(some if positions is None else positions[some])


def _has_weights(graph: Any) -> bool:
    """Say whether edges have different weights, by a look at the first; equal ones are as good as none."""
    weights = getattr(graph, "base", graph).weights
    return weights is not None and bool((weights[:_GLANCE] != weights[:1]).any())


def _filled(features: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the values that are not zero in each row and in each column."""
    rows, width = features.shape
    per_row, per_column = np.zeros(rows, dtype=np.int32), np.zeros(width, dtype=np.int64)
    for start in range(0, rows, _PIECE):
        stop = min(start + _PIECE, rows)
        if not issparse(features):
            is_filled = features[start:stop] != 0
            per_row[start:stop], per_column = is_filled.sum(axis=1), per_column + is_filled.sum(axis=0)
            continue
        first, last = features.indptr[start], features.indptr[stop]
        is_filled = features.data[first:last] != 0
        lengths = np.diff(features.indptr[start : stop + 1])
        of = np.repeat(np.arange(stop - start), lengths)[is_filled]
        per_row[start:stop] = np.bincount(of, minlength=stop - start)
        per_column += np.bincount(features.indices[first:last][is_filled], minlength=width)
    return per_row, per_column
