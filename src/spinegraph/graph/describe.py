"""What a graph is like in numbers: size, pieces, degrees, features and labels."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from spinegraph.errors import GraphFormatError
from spinegraph.graph.graph import Graph


@dataclass(frozen=True)
class DegreeBin:
    """How many nodes have a degree from ``low`` to ``high``."""

    low: int
    high: int
    nodes: int


@dataclass(frozen=True)
class FeatureSummary:
    """The features' columns, how they are kept, the share that is not zero, and rows that are all zero."""

    columns: int
    kind: str
    density: float
    empty_rows: int


@dataclass(frozen=True)
class LabelSummary:
    """Nodes per label, most frequent first, and how many nodes have none."""

    counts: tuple[tuple[str, int], ...]
    unlabelled: int
    several_per_node: bool


@dataclass(frozen=True)
class Description:
    """A graph in numbers.

    Attributes
    ----------
    nodes, edges : int
    weights : (smallest, largest), or None for an unweighted graph
    components, largest_component, isolated : int
        Connected components, nodes in the largest, nodes without neighbours.
    degree_median, degree_mean : float
    degree_largest : int
    best_connected : str
        The name of a node of the largest degree.
    degrees : tuple of DegreeBin
        Degrees 0, 1, 2-3, 4-7 and so on.
    features : FeatureSummary or None
    labels : LabelSummary or None
    """

    nodes: int
    edges: int
    weights: tuple[float, float] | None
    components: int
    largest_component: int
    isolated: int
    degree_median: float
    degree_mean: float
    degree_largest: int
    best_connected: str
    degrees: tuple[DegreeBin, ...]
    features: FeatureSummary | None
    labels: LabelSummary | None


def describe(graph: Graph, labels: NDArray[Any] | None = None) -> Description:
    """Describe a graph in numbers.

    Parameters
    ----------
    graph : Graph
    labels : array (n,) or 0/1 array (n, c), optional
        One label per node (-1, None, NaN or "" where there is none), or one column per label.

    Examples
    --------
    >>> found = describe(Graph.from_edges([("ann", "bob"), ("bob", "cy")]))
    >>> found.components, found.degree_largest, found.best_connected
    (1, 2, 'bob')
    """
    degrees = graph.degrees
    carried = np.ones(len(graph.indices), np.int8)
    matrix = csr_array((carried, graph.indices, graph.indptr), shape=(len(graph), len(graph)))
    components, member_of = connected_components(matrix, directed=False)
    weights = graph.weights
    return Description(
        nodes=len(graph),
        edges=graph.num_edges,
        weights=None if weights is None or not len(weights) else (float(weights.min()), float(weights.max())),
        components=int(components),
        largest_component=int(np.bincount(member_of).max()),
        isolated=int(np.count_nonzero(degrees == 0)),
        degree_median=float(np.median(degrees)),
        degree_mean=float(degrees.mean()),
        degree_largest=int(degrees.max()),
        best_connected=str(graph.names[int(degrees.argmax())]),
        degrees=degree_bins(degrees),
        features=None if graph.features is None else _feature_summary(graph.features),
        labels=None if labels is None else _label_summary(np.asarray(labels), len(graph)),
    )


def degree_bins(degrees: NDArray[np.int64]) -> tuple[DegreeBin, ...]:
    """Count nodes by degree in bins that double: 0, 1, 2-3, 4-7, ...

    Examples
    --------
    >>> [(found.low, found.high, found.nodes) for found in degree_bins(np.array([0, 1, 3, 3]))]
    [(0, 0, 1), (1, 1, 1), (2, 3, 2)]
    """
    # The exponent of frexp is the number of binary digits: 0 for 0, 1 for 1, 2 for 2 and 3, ...
    digits = np.frexp(degrees.astype(np.float64))[1]
    counts = np.bincount(digits)
    first = int(np.flatnonzero(counts)[0])
    return tuple(
        DegreeBin(2 ** (place - 1) if place else 0, 2**place - 1, int(counts[place]))
        for place in range(first, len(counts))
    )


def _feature_summary(features: Any) -> FeatureSummary:
    is_dense = isinstance(features, np.ndarray)
    if is_dense:
        filled = np.count_nonzero(features, axis=1)
    else:
        rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
        filled = np.bincount(rows[features.data != 0], minlength=features.shape[0])
    cells = features.shape[0] * features.shape[1]
    return FeatureSummary(
        columns=features.shape[1],
        kind="dense" if is_dense else "sparse",
        density=float(filled.sum()) / cells if cells else 0.0,
        empty_rows=int(np.count_nonzero(filled == 0)),
    )


def _label_summary(labels: NDArray[Any], n: int) -> LabelSummary:
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise GraphFormatError(f"labels must have shape ({n},) or ({n}, c); got {labels.shape}")
    if labels.ndim == 2:
        per_label = np.count_nonzero(labels, axis=0)
        order = np.argsort(-per_label, kind="stable")
        counts = tuple((str(place), int(per_label[place])) for place in order)
        return LabelSummary(counts, int(np.count_nonzero(~labels.astype(bool).any(axis=1))), True)
    known = [value for value in labels.tolist() if value not in (None, "", -1) and value == value]
    found = Counter(map(str, known)).most_common()
    return LabelSummary(tuple(found), n - len(known), False)
