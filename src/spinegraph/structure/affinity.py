"""Affinity: how much the nodes' features tell about who is linked to whom. Labels play no part."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

_MOST_EDGES = 10_000
_LEAST_EDGES = 100  # fewer say nothing either way
_SHUFFLES = 10
_AFFINITY = 31  # stage of the random draws


@dataclass(frozen=True)
class Affinity:
    """How much more alike linked nodes are than unlinked ones, by the cosine of their features.

    Attributes
    ----------
    strength : float
        0: links say nothing about features; 1: a linked pair is always more alike than another pair.
    deviations : float
        How far the mean cosine over links lies above its value when features are dealt out anew, in standard
        deviations of the latter: below 3 or so it may be chance.

    Examples
    --------
    >>> Affinity(strength=0.6, deviations=40.0).strength
    0.6
    """

    strength: float
    deviations: float


def affinity(graph: Any, features_of: Any, seed: int = 0) -> Affinity | None:
    """Measure the affinity of a graph on a sample of its edges, or return None where it has too few.

    Parameters
    ----------
    graph : Graph
    features_of : callable
        From positions (r,) to their features (r, f), sparse or dense.
    seed : int

    Examples
    --------
    >>> from spinegraph import made
    >>> graph = made.planted(seed=0).graph
    >>> affinity(graph, graph.feature_rows).strength > 0.1
    True
    """
    if graph.num_edges < _LEAST_EDGES:
        return None
    rng = np.random.default_rng([seed, _AFFINITY])
    if len(graph.indices) > _MOST_EDGES:
        picked = rng.integers(len(graph.indices), size=_MOST_EDGES)
    else:
        picked = np.arange(len(graph.indices))
    ends = np.stack([np.searchsorted(graph.indptr, picked, side="right") - 1, graph.indices[picked]])
    seen, places = np.unique(ends, return_inverse=True)
    left, right = places.reshape(2, -1)
    rows = _unit(features_of(seen.astype(np.int64)))
    linked = _cosines(rows, left, right)
    elsewhere = _cosines(rows, left, right[rng.permutation(len(right))])
    dealt = []
    for _ in range(_SHUFFLES):
        order = rng.permutation(len(seen))
        dealt.append(_cosines(rows, order[left], order[right]).mean())
    above = linked.mean() - float(np.mean(dealt))
    deviation = max(float(np.std(dealt, ddof=1)), 1e-12)
    return Affinity(max(0.0, 2 * _wins(linked, elsewhere) - 1), float(above / deviation))


def _unit(features: Any) -> Any:
    """Return rows of length 1; empty ones stay empty."""
    if not issparse(features):
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        return features / np.where(lengths > 0, lengths, 1)
    rows = csr_array(features)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.repeat(1 / np.where(lengths > 0, lengths, 1), np.diff(rows.indptr))
    return csr_array((rows.data * scale, rows.indices, rows.indptr), shape=rows.shape)


def _cosines(rows: Any, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    if issparse(rows):
        return np.asarray(rows[left].multiply(rows[right]).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows[left], rows[right]), dtype=np.float64)


def _wins(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the chance that a draw of one is above a draw of the other, half of it where they are equal."""
    ordered = np.sort(other)
    below = np.searchsorted(ordered, one, side="left") + np.searchsorted(ordered, one, side="right")
    return float(below.mean() / (2 * len(other)))
