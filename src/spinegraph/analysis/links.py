"""Link prediction: edges are hidden, vectors come from the rest, and hidden edges must outrank non-edges."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.analysis.evaluation import probe, ranking_auc
from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph

_MOST_TRAINING = 5000  # edges that teach the Hadamard probe
_TRIES = 100


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes, one half of them edges.

    Attributes
    ----------
    nodes : int64 array (p, 2)
        Positions.
    is_edge : bool array (p,)
    """

    nodes: NDArray[np.int64]
    is_edge: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HiddenEdges:
    """A network without some of its edges, and pairs to ask about.

    Attributes
    ----------
    graph : Graph
        What is left; every node is still there.
    train : Pairs
        Edges that are left, and as many non-edges: these may teach a classifier.
    val, test : Pairs
        Hidden edges, and as many non-edges of the whole network.
    """

    graph: Graph
    train: Pairs
    val: Pairs
    test: Pairs


@dataclass(frozen=True)
class LinkScore:
    """How well hidden edges are told from non-edges.

    Attributes
    ----------
    vectors : str
        Which vectors, or which measure of the network.
    by : str
        ``dot``, ``cosine``, ``hadamard`` (a logistic regression on products, its C chosen on the validation
        pairs), or ``itself``.
    auc, average_precision : float
        On the test pairs, of which half are edges.
    """

    vectors: str
    by: str
    auc: float
    average_precision: float


def hide_edges(graph: Graph, share: float = 0.1, *, seed: int = 0) -> HiddenEdges:
    """Hide a share of a network's edges for the test, and half as many for validation.

    Examples
    --------
    >>> from spinegraph import made
    >>> hidden = hide_edges(made.barbell(10), 0.2)
    >>> hidden.graph.num_edges, len(hidden.val.nodes), len(hidden.test.nodes)
    (64, 18, 36)
    """
    if not 0 < share <= 0.5:
        raise ParameterError(f"the share of hidden edges must be above 0 and at most 0.5; got {share!r}")
    rng = np.random.default_rng([seed, 31])
    sources = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    once = np.flatnonzero(sources < graph.indices)
    edges = np.column_stack([sources[once], graph.indices[once]]).astype(np.int64)  # (m, 2), lower node first
    num_test, num_val = round(share * len(edges)), max(1, round(share * len(edges) / 2))
    if not num_test or num_test + num_val >= len(edges):
        raise ParameterError(f"{len(edges)} edges are too few to hide {share:.0%} and learn from the rest")
    free = len(graph) * (len(graph) - 1) // 2 - len(edges)
    if free <= num_test + num_val:
        raise ParameterError(
            f"{free} pairs of nodes have no edge, {num_test + num_val + 1} are needed beside as many hidden "
            "edges; the network is too dense, hide a smaller share"
        )
    order = rng.permutation(len(edges))
    test, val, rest = np.split(order, [num_test, num_test + num_val])
    taught = rest[: min(_MOST_TRAINING, free - num_test - num_val)]
    others = _non_edges(graph, edges, num_test + num_val + len(taught), rng)
    rest = np.sort(rest)
    left = Graph.from_edges(
        edges[rest],
        num_nodes=len(graph),
        weights=None if graph.weights is None else graph.weights[once][rest],
        features=graph.features,
        names=graph.names,
        feature_names=graph.feature_names,
    )
    parts = np.split(others, [num_test, num_test + num_val])
    asked = [_pairs(edges[some], other) for some, other in zip((test, val, taught), parts, strict=True)]
    return HiddenEdges(replace(left, report=None), asked[2], asked[1], asked[0])


def score_links(name: str, vectors: Any, hidden: HiddenEdges) -> list[LinkScore]:
    """Score the test pairs by dot product, by cosine, and by a probe on Hadamard products.

    Parameters
    ----------
    name : str
        Of the vectors.
    vectors : array or sparse matrix (n, d)
        Made from ``hidden.graph`` alone.
    hidden : HiddenEdges

    Examples
    --------
    >>> from spinegraph import made
    >>> hidden = hide_edges(made.barbell(10), 0.2)
    >>> sides = np.eye(2)[[0] * 10 + [1] * 10]
    >>> [score.by for score in score_links("sides", sides, hidden) if score.auc > 0.9]
    ['dot', 'cosine', 'hadamard']
    """
    pairs = (hidden.train, hidden.val, hidden.test)
    products = [_products(vectors, part.nodes) for part in pairs]
    dots = np.asarray(products[2].sum(axis=1)).ravel()
    lengths = np.sqrt(np.asarray(_products(vectors, None).sum(axis=1)).ravel())
    norms = lengths[hidden.test.nodes].prod(axis=1)
    stacked: Any = np.vstack(products) if not issparse(products[0]) else _stacked(products)
    ends = np.cumsum([len(part.nodes) for part in pairs])
    rows = np.split(np.arange(ends[2]), ends[:2])
    is_edge = np.concatenate([part.is_edge for part in pairs]).astype(np.int64)
    probed = probe(stacked, is_edge, rows[0], rows[1], rows[2]).scores[:, 1]
    scored = {"dot": dots, "cosine": dots / np.where(norms > 0, norms, 1), "hadamard": probed}
    return [_score(name, by, hidden.test, values) for by, values in scored.items()]


def neighbour_scores(hidden: HiddenEdges) -> list[LinkScore]:
    """Score the test pairs by what needs no vectors: common neighbours, Adamic-Adar, product of degrees.

    Examples
    --------
    >>> from spinegraph import made
    >>> [score.vectors for score in neighbour_scores(hide_edges(made.barbell(10), 0.2))]
    ['common neighbours', 'Adamic-Adar', 'preferential attachment']
    """
    graph, ask = hidden.graph, hidden.test
    n, degrees = len(graph), graph.degrees.astype(np.float64)
    ties = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    rare = 1 / np.log(np.maximum(degrees, 2))
    rarely = csr_array((rare[graph.indices], graph.indices, graph.indptr), shape=(n, n))
    lower, upper = ask.nodes.T
    measures = {
        "common neighbours": np.asarray(ties[lower].multiply(ties[upper]).sum(axis=1)).ravel(),
        "Adamic-Adar": np.asarray(rarely[lower].multiply(ties[upper]).sum(axis=1)).ravel(),
        "preferential attachment": degrees[lower] * degrees[upper],
    }
    return [_score(name, "itself", ask, values) for name, values in measures.items()]


def average_precision(positive: ArrayLike, scores: ArrayLike) -> float:
    """Return the mean precision over the ranks of the positives; equal scores are one rank.

    Parameters
    ----------
    positive : bool array (n,)
    scores : float array (n,)

    Examples
    --------
    >>> round(average_precision([True, False, True], [3.0, 2.0, 1.0]), 3)
    0.833
    """
    is_positive, values = np.asarray(positive, dtype=bool), np.asarray(scores, dtype=np.float64)
    if not is_positive.any():
        raise ParameterError("average precision needs positives; got none")
    order = np.argsort(-values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)  # last place of each rank
    found = np.cumsum(is_positive[order])[ends]
    return float((np.diff(found, prepend=0) * found / (ends + 1)).sum() / found[-1])


def _score(name: str, by: str, pairs: Pairs, values: NDArray[np.float64]) -> LinkScore:
    return LinkScore(name, by, ranking_auc(pairs.is_edge, values), average_precision(pairs.is_edge, values))


def _pairs(edges: NDArray[np.int64], others: NDArray[np.int64]) -> Pairs:
    return Pairs(np.vstack([edges, others]), np.arange(len(edges) + len(others)) < len(edges))


def _products(vectors: Any, nodes: NDArray[np.int64] | None) -> Any:
    """Return the products of two nodes' vectors, entry by entry; of every node with itself for None."""
    rows: Any = csr_array(vectors, dtype=np.float64) if issparse(vectors) else np.asarray(vectors, np.float64)
    one, other = (rows, rows) if nodes is None else (rows[nodes[:, 0]], rows[nodes[:, 1]])
    return csr_array(one.multiply(other)) if issparse(rows) else one * other


def _stacked(parts: list[Any]) -> Any:
    from scipy.sparse import vstack

    return csr_array(vstack(parts, format="csr"))


def _non_edges(
    graph: Graph, edges: NDArray[np.int64], count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw distinct pairs of nodes that no edge joins, (count, 2)."""
    n = len(graph)
    taken = np.sort(edges[:, 0] * n + edges[:, 1])
    found = np.empty(0, np.int64)
    for _ in range(_TRIES):
        drawn = np.sort(rng.integers(n, size=(2 * count, 2)), axis=1)
        drawn = drawn[drawn[:, 0] < drawn[:, 1]]
        found = np.unique(np.concatenate([found, drawn[:, 0] * n + drawn[:, 1]]))
        found = found[~np.isin(found, taken, assume_unique=True)]
        if len(found) >= count:
            break
    else:  # nearly complete: list what is left
        lower, upper = np.triu_indices(n, 1)
        found = np.setdiff1d(lower * n + upper, taken, assume_unique=True)
    chosen = rng.permutation(found)[:count]
    return np.column_stack([chosen // n, chosen % n])
