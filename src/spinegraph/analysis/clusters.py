"""Clusters of vectors, and whether they find the classes and the communities of the network."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph

_STARTS = 5
_MOST_COMPARED = 3000  # nodes whose distances make up a silhouette


@dataclass(frozen=True)
class ClusterScore:
    """What clusters of some vectors agree with.

    Attributes
    ----------
    vectors : str
        Which vectors.
    nmi, ari : float or None
        With the classes of labelled nodes: normalised mutual information, and the adjusted Rand index.
    modularity : float or None
        Share of edges inside clusters, above what degrees alone would give.
    silhouette : float
        How much nearer a node is to its own cluster than to the next, by the vectors themselves; so it does
        not compare one kind of vectors with another.
    """

    vectors: str
    nmi: float | None
    ari: float | None
    modularity: float | None
    silhouette: float


def clusters(vectors: Any, count: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Return each node's cluster (n,), by k-means of vectors scaled to unit length; of a column as it is.

    Parameters
    ----------
    vectors : array or sparse matrix (n, d)
    count : int
        Clusters.
    seed : int

    Examples
    --------
    >>> found = clusters(np.array([[1, 0], [2, 0.1], [0, 1], [0, 3]]), 2)
    >>> found[0] == found[1], found[2] == found[3], found[0] == found[2]
    (np.True_, np.True_, np.False_)
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if not 2 <= count <= vectors.shape[0]:
        raise ParameterError(f"clusters must be 2 to the {vectors.shape[0]} nodes; got {count}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct vectors than clusters
        found = KMeans(count, n_init=_STARTS, random_state=seed).fit_predict(_unit(vectors))
    return np.asarray(found, dtype=np.int64)


def modularity(graph: Graph, assignment: ArrayLike) -> float:
    """Return the modularity of a partition of a network's nodes, 0 where there is no edge.

    Examples
    --------
    >>> from spinegraph import made
    >>> round(modularity(made.barbell(5), [0] * 5 + [1] * 5), 2)
    0.45
    """
    places = np.asarray(assignment, dtype=np.int64)
    weights = np.ones(len(graph.indices)) if graph.weights is None else graph.weights.astype(np.float64)
    total = float(weights.sum())  # each edge twice
    if not total:
        return 0.0
    sources = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    inside = float(weights[places[sources] == places[graph.indices]].sum()) / total
    strengths = np.bincount(places, weights=graph.strengths) / total
    return inside - float(np.square(strengths).sum())


def score_clusters(
    rows: Mapping[str, Any],
    count: int,
    *,
    labels: NDArray[np.int64] | None = None,
    graph: Graph | None = None,
    seed: int = 0,
) -> list[ClusterScore]:
    """Cluster each of several vectors, and compare with classes and network where they are given.

    Parameters
    ----------
    rows : dict of name to array or sparse matrix (n, d)
    count : int
        Clusters.
    labels : int array (n,), optional
        -1 where unknown.
    graph : Graph, optional
    seed : int

    Examples
    --------
    >>> labels = np.repeat([0, 1], 20)
    >>> rows = {"telling": np.eye(2)[labels]}
    >>> score_clusters(rows, 2, labels=labels)[0].nmi
    1.0
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

    scores = []
    for name, vectors in rows.items():
        found = clusters(vectors, count, seed=seed)
        nmi = ari = None
        if labels is not None:
            known = labels >= 0
            nmi = float(normalized_mutual_info_score(labels[known], found[known]))
            ari = float(adjusted_rand_score(labels[known], found[known]))
        some = np.random.default_rng([seed, 29]).permutation(len(found))[:_MOST_COMPARED]
        parted = 2 <= len(np.unique(found[some])) < len(some)
        apart = float(silhouette_score(_unit(vectors)[some], found[some])) if parted else 0.0
        inside = None if graph is None else modularity(graph, found)
        scores.append(ClusterScore(name, nmi, ari, inside, apart))
    return scores


def _unit(vectors: Any) -> Any:
    """Return vectors scaled to unit length; those that are zero stay, and so does a single column."""
    if issparse(vectors):
        rows = csr_array(vectors, dtype=np.float64)
        norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        scaled = csr_array(rows.multiply(1 / np.where(norms > 0, norms, 1)[:, None]))
        # scikit-learn takes no other indices
        scaled.indices, scaled.indptr = scaled.indices.astype(np.int32), scaled.indptr.astype(np.int32)
        return scaled
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.shape[1] == 1:
        return rows
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)
