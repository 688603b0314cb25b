"""Evaluation of vectors: node classification, link prediction and clustering.

Nodes are classified by logistic regression, whose penalty is chosen on validation nodes or by
cross-validation, never on test labels.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.kernels.runtime import one_blas_thread
from spinegraph.parts.place import only_links

Floats = NDArray[np.float64]
Nodes = ArrayLike  # positions

GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
_DENSE_FROM = 0.05  # share of non-zeros from which dense products are quicker


@dataclass(frozen=True, eq=False)
class ProbeResult:
    """How well a classifier did on test nodes.

    Attributes
    ----------
    accuracy : float
        Share of test nodes classified correctly; one class per node, so this is also the micro-F1.
    C : float
        The inverse penalty that was chosen; the smallest where several are equally good.
    val_accuracy : float
        Accuracy on the nodes that C was chosen on.
    auc : float or None
        For two classes, the probability that a node of the second class is ranked above one of the first.
    classes : int array (c,)
        Classes among the training nodes.
    scores : float64 array (t, c)
        Decision values of the test nodes.
    """

    accuracy: float
    C: float
    val_accuracy: float
    auc: float | None
    classes: NDArray[np.int64]
    scores: Floats


@one_blas_thread()
def probe(
    vectors: Any, labels: ArrayLike, train: Nodes, val: Nodes, test: Nodes, Cs: Sequence[float] = GRID
) -> ProbeResult:
    """Classify test nodes by their vectors; C is the one that does best on validation nodes.

    Parameters
    ----------
    vectors : array or sparse matrix (n, d)
    labels : int array (n,)
        Read at train, val and test only; others may be unknown (-1).
    train, val, test : int arrays of positions
    Cs : sequence of float
        Inverse penalties to choose from, ascending.

    Examples
    --------
    >>> line = np.arange(12.0)[:, None]
    >>> probe(line, np.arange(12) // 6, train=[0, 1, 10, 11], val=[3, 8], test=[2, 5, 6, 9]).accuracy
    1.0
    """
    rows, known, (train, val, test) = _checked(vectors, labels, train, val, test)
    path = _path(rows[train], known[train], rows[val], known[val], Cs)
    C, accuracy = max(zip(Cs, path, strict=True), key=lambda pair: pair[1])
    return _result(rows, known, train, test, C, accuracy)


@one_blas_thread()
def probe_cv(
    vectors: Any,
    labels: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    folds: int = 3,
    seed: int = 0,
    Cs: Sequence[float] = GRID,
) -> ProbeResult:
    """Classify test nodes by their vectors; C is chosen by cross-validation inside the training nodes.

    Parameters
    ----------
    vectors : array or sparse matrix (n, d)
    labels : int array (n,)
        Read at train and test only.
    train, test : int arrays of positions
    folds : int
        Parts of the training nodes, stratified by class.
    seed : int
        Decides which node is in which fold.
    Cs : sequence of float

    Examples
    --------
    >>> line = np.arange(12.0)[:, None]
    >>> probe_cv(line, np.arange(12) // 6, train=[0, 1, 3, 8, 10, 11], test=[2, 5, 6, 9]).accuracy
    1.0
    """
    rows, known, (train, test) = _checked(vectors, labels, train, test)
    X, y = rows[train], known[train]
    fold_of, right = folds_by_class(y, folds, seed), np.zeros(len(Cs))
    for fold in range(folds):
        inside, outside = fold_of != fold, fold_of == fold
        right += _path(X[inside], y[inside], X[outside], y[outside], Cs) * outside.sum() / len(y)
    best = int(right.argmax())
    return _result(rows, known, train, test, Cs[best], float(right[best]))


def folds_by_class(labels: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold (n,) of every node, stratified by class."""
    order, fold_of = np.random.default_rng(seed).permutation(len(labels)), np.empty(len(labels), np.int64)
    fold_of[order[np.argsort(labels[order], kind="stable")]] = np.arange(len(labels)) % folds
    return fold_of


def _fit(X: Any, y: NDArray[np.int64], C: float, before: Any = None) -> Any:
    """Fit a regression, warm-started from one with another C."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = before or LogisticRegression(warm_start=True, max_iter=1000, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(C=C).fit(X, y)


def _path(X: Any, y: Any, val_X: Any, val_y: Any, Cs: Sequence[float]) -> Floats:
    """Return the validation accuracy with every C, each regression warm-started from the one before."""
    model, found = None, []
    for C in Cs:
        model = _fit(X, y, C, model)
        found.append((model.predict(val_X) == val_y).mean())
    return np.array(found)


def _result(rows: Any, labels: NDArray[np.int64], train: Any, test: Any, C: float, val: float) -> ProbeResult:
    """Return the result on the test nodes with the chosen C."""
    from sklearn.metrics import roc_auc_score

    model = _fit(rows[train], labels[train], C)
    scores, classes = model.decision_function(rows[test]), model.classes_
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    auc = None
    if len(classes) == 2 and np.isin(classes, labels[test]).all():
        auc = float(roc_auc_score(labels[test] == classes[1], scores[:, 1]))
    accuracy = float((classes[scores.argmax(axis=1)] == labels[test]).mean())
    return ProbeResult(accuracy, float(C), float(val), auc, classes, scores)


def _checked(
    vectors: Any, labels: ArrayLike, *given: ArrayLike
) -> tuple[Any, NDArray[np.int64], list[NDArray[np.int64]]]:
    """Return the vectors, sparse only where that is quicker, and the labels, checked at the given nodes."""
    rows: Any = csr_array(vectors, dtype=np.float64) if issparse(vectors) else np.asarray(vectors, np.float64)
    if issparse(rows) and rows.nnz > _DENSE_FROM * rows.shape[0] * rows.shape[1]:
        rows = rows.toarray()
    known, parts = np.asarray(labels), [np.asarray(part, np.int64) for part in given]
    if known.shape != rows.shape[:1]:
        raise ParameterError(f"labels must be one per vector, {rows.shape[:1]}; got {known.shape}")
    unknown = int((known[np.concatenate(parts)] < 0).sum())
    if unknown:
        raise ParameterError(f"{unknown} of the nodes have no known label (-1); leave them out")
    if len(np.unique(known[parts[0]])) < 2:
        raise ParameterError("training nodes must have at least two classes")
    return rows, known.astype(np.int64), parts


@dataclass(frozen=True)
class ClassScore:
    """How well some vectors classify nodes."""

    vectors: str  # which vectors
    # Mean and standard deviation over splits of the share of test nodes that are classified correctly.
    accuracy: float
    deviation: float
    # The inverse penalty chosen on validation nodes, per split; empty where nothing was fitted.
    C: tuple[float, ...] = ()


def class_numbers(labels: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Return labels as numbers, -1 where unknown, and the classes in order."""
    classes = sorted({str(label) for label in labels.tolist() if label is not None})
    number_of = {name: number for number, name in enumerate(classes)}
    numbers = [-1 if label is None else number_of[str(label)] for label in labels.tolist()]
    return np.array(numbers, np.int64), classes


def random_split(labels: NDArray[np.int64], train: float, val: float, seed: int) -> list[NDArray[np.int64]]:
    """Split the labelled nodes at random into train, val and test, with these shares of every class.

    Every class gives at least one node to training; what is left goes to validation and test.
    """
    if not (0 < train < 1 and 0 < val < 1 and train + val < 1):
        raise ParameterError(f"training and validation shares must leave some for test; got {train}, {val}")
    rng = np.random.default_rng([seed, 23])
    count = int(labels.max(initial=-1)) + 1
    parts: list[list[NDArray[np.int64]]] = []  # per class
    for number in range(count):
        nodes = rng.permutation(np.flatnonzero(labels == number))
        num_train = max(1, min(round(train * len(nodes)), len(nodes) - 2))
        num_val = max(1, min(round(val * len(nodes)), len(nodes) - num_train - 1))
        parts.append(np.split(nodes, [num_train, num_train + num_val]))
    found = [np.concatenate(part) for part in zip(*parts, strict=True)]
    if count < 2 or min(map(len, found)) == 0:
        known = int((labels >= 0).sum())
        raise ParameterError(f"{known} labelled nodes in {count} classes are too few; label three per class")
    return found


def score_classes(
    rows: Mapping[str, Any],
    labels: NDArray[np.int64],
    *,
    train: float = 0.2,
    val: float = 0.1,
    repeats: int = 5,
    seed: int = 0,
) -> list[ClassScore]:
    """Classify nodes by each of several vectors on the same splits; the last row is the largest class.

    Parameters
    ----------
    rows : dict of name to array or sparse matrix (n, d)
    labels : int array (n,)
        -1 where unknown.
    train, val : float
        Shares of every class; the rest is tested.
    repeats : int
        Random splits.
    seed : int

    Examples
    --------
    >>> labels = np.repeat([0, 1], 20)
    >>> for score in score_classes({"telling": labels[:, None], "empty": np.zeros((40, 1))}, labels):
    ...     print(score.vectors, score.accuracy)
    telling 1.0
    empty 0.5
    largest class 0.5
    """
    splits = [random_split(labels, train, val, seed + repeat) for repeat in range(repeats)]
    scores = []
    for name, vectors in rows.items():
        found = [probe(vectors, labels, train, val, test) for train, val, test in splits]
        accuracy = [one.accuracy for one in found]
        Cs = tuple(one.C for one in found)
        scores.append(ClassScore(name, float(np.mean(accuracy)), float(np.std(accuracy)), Cs))
    largest = [(labels[test] == np.bincount(labels[train]).argmax()).mean() for train, _, test in splits]
    return [*scores, ClassScore("largest class", float(np.mean(largest)), float(np.std(largest)))]


_MAX_TRAINING = 5000  # edges that train the Hadamard probe
_TRIES = 100


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes, one half of them edges."""

    nodes: NDArray[np.int64]  # (p, 2), positions
    is_edge: NDArray[np.bool_]  # (p,)


@dataclass(frozen=True, eq=False)
class HiddenEdges:
    """A network without some of its edges, and pairs of nodes to score."""

    graph: Graph  # with the remaining edges and all nodes
    train: Pairs  # remaining edges and as many non-edges, to train a classifier
    val: Pairs  # hidden edges and as many non-edges of the whole network
    test: Pairs


@dataclass(frozen=True)
class LinkScore:
    """How well hidden edges are told apart from non-edges."""

    vectors: str  # which vectors, or which measure of the network
    # dot, cosine, hadamard (a logistic regression on products, its C chosen on the validation
    # pairs), or itself.
    by: str
    auc: float  # on the test pairs, of which half are edges
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
        raise ParameterError(f"too few edges to hide {share:.0%} and learn from the rest: {len(edges)}")
    free = len(graph) * (len(graph) - 1) // 2 - len(edges)
    if free <= num_test + num_val:
        raise ParameterError(f"too dense: only {free} pairs of nodes have no edge; hide a smaller share")
    order = rng.permutation(len(edges))
    test, val, rest = np.split(order, [num_test, num_test + num_val])
    trained = rest[: min(_MAX_TRAINING, free - num_test - num_val)]
    others = _non_edges(len(graph), edges, num_test + num_val + len(trained), rng)
    left = only_links(graph, once[np.sort(rest)])
    parts = np.split(others, [num_test, num_test + num_val])
    asked = [
        Pairs(np.vstack([edges[some], other]), np.arange(len(some) + len(other)) < len(some))
        for some, other in zip((test, val, trained), parts, strict=True)
    ]
    left = replace(
        left, features=graph.features, names=graph.names, feature_names=graph.feature_names, report=None
    )
    return HiddenEdges(left._encoded_by(graph.encoder), asked[2], asked[1], asked[0])


@one_blas_thread()
def score_links(name: str, vectors: Any, hidden: HiddenEdges) -> list[LinkScore]:
    """Score the test pairs by dot product, by cosine, and by a probe on Hadamard products.

    Parameters
    ----------
    name : str
        Name of the vectors.
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
    rows: Any = csr_array(vectors, dtype=np.float64) if issparse(vectors) else np.asarray(vectors, np.float64)
    pairs = (hidden.train, hidden.val, hidden.test)
    nodes = np.concatenate([part.nodes for part in pairs])
    is_edge = np.concatenate([part.is_edge for part in pairs]).astype(np.int64)
    products = _products(rows[nodes[:, 0]], rows[nodes[:, 1]])
    train, val, test = np.split(np.arange(len(nodes)), np.cumsum([len(part.nodes) for part in pairs[:2]]))
    dots = np.asarray(products[test].sum(axis=1)).ravel()
    lengths = np.sqrt(np.asarray(_products(rows, rows).sum(axis=1)).ravel())
    norms = lengths[hidden.test.nodes].prod(axis=1)
    # Products of wide vectors are small; scaled, a penalty means the same for all.
    scale = np.sqrt(_products(products[train], products[train]).sum() / len(train)) or 1.0
    scored = {
        "dot": dots,
        "cosine": dots / np.where(norms > 0, norms, 1),
        "hadamard": probe(products / scale, is_edge, train, val, test).scores[:, 1],
    }
    return [_link_score(name, by, hidden.test, values) for by, values in scored.items()]


def neighbour_scores(hidden: HiddenEdges) -> list[LinkScore]:
    """Score the test pairs without vectors: common neighbours, Adamic-Adar, product of degrees."""
    graph, n = hidden.graph, len(hidden.graph)
    degrees = graph.degrees.astype(np.float64)
    rarity = 1 / np.log(np.maximum(degrees, 2))
    links, weighted = (
        csr_array((values, graph.indices, graph.indptr), shape=(n, n))
        for values in (np.ones(len(graph.indices)), rarity[graph.indices])
    )
    lower, upper = hidden.test.nodes.T
    measures = {
        "common neighbours": np.asarray(links[lower].multiply(links[upper]).sum(axis=1)).ravel(),
        "Adamic-Adar": np.asarray(weighted[lower].multiply(links[upper]).sum(axis=1)).ravel(),
        "preferential attachment": degrees[lower] * degrees[upper],
    }
    return [_link_score(name, "itself", hidden.test, values) for name, values in measures.items()]


def _link_score(name: str, by: str, pairs: Pairs, values: NDArray[np.float64]) -> LinkScore:
    from sklearn.metrics import average_precision_score, roc_auc_score

    measured = (score(pairs.is_edge, values) for score in (roc_auc_score, average_precision_score))
    return LinkScore(name, by, *map(float, measured))


def _products(one: Any, other: Any) -> Any:
    return csr_array(one.multiply(other)) if issparse(one) else one * other


def _non_edges(n: int, edges: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw distinct pairs of nodes that no edge joins, (count, 2)."""
    taken = np.sort(edges[:, 0] * n + edges[:, 1])
    found = np.empty(0, np.int64)
    for _ in range(_TRIES):
        drawn = np.sort(rng.integers(n, size=(2 * count, 2)), axis=1)
        drawn = drawn[drawn[:, 0] < drawn[:, 1]]
        found = np.unique(np.concatenate([found, drawn[:, 0] * n + drawn[:, 1]]))
        found = found[~np.isin(found, taken, assume_unique=True)]
        if len(found) >= count:
            break
    else:  # the graph is nearly complete: list all pairs
        lower, upper = np.triu_indices(n, 1)
        found = np.setdiff1d(lower * n + upper, taken, assume_unique=True)
    chosen = rng.permutation(found)[:count]
    return np.column_stack([chosen // n, chosen % n])


@dataclass(frozen=True)
class ClusterScore:
    """How well clusters of some vectors agree with the classes and the network."""

    vectors: str  # which vectors
    # With the classes of labelled nodes: normalised mutual information and adjusted Rand index.
    nmi: float | None
    ari: float | None
    modularity: float | None  # share of edges inside clusters, above what degrees alone would give


def clusters(vectors: Any, count: int, *, seed: int = 0) -> NDArray[np.int64]:
    """Return each node's cluster (n,), by k-means of vectors scaled to unit length; one column is not."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if not 2 <= count <= vectors.shape[0]:
        raise ParameterError(f"clusters must be from 2 to {vectors.shape[0]}, the node count; got {count}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct vectors than clusters
        found = KMeans(count, n_init=5, random_state=seed).fit_predict(_unit(vectors))
    return np.asarray(found, dtype=np.int64)


def modularity(graph: Graph, assignment: ArrayLike) -> float:
    """Return the modularity of a partition of a network's nodes; 0 without edges."""
    cluster_of = np.asarray(assignment, dtype=np.int64)
    weights = np.ones(len(graph.indices)) if graph.weights is None else graph.weights.astype(np.float64)
    total = float(weights.sum())  # each edge twice
    if not total:
        return 0.0
    sources = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    inside = float(weights[cluster_of[sources] == cluster_of[graph.indices]].sum()) / total
    strengths = np.bincount(cluster_of, weights=graph.strengths) / total
    return inside - float(np.square(strengths).sum())


def score_clusters(
    rows: Mapping[str, Any],
    count: int,
    *,
    labels: NDArray[np.int64] | None = None,
    graph: Graph | None = None,
    seed: int = 0,
) -> list[ClusterScore]:
    """Cluster each of several vectors, and compare with the classes and the network if given.

    Parameters
    ----------
    rows : dict of name to array or sparse matrix (n, d)
    count : int
        Number of clusters.
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
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    scores = []
    for name, vectors in rows.items():
        found = clusters(vectors, count, seed=seed)
        nmi = ari = None
        if labels is not None:
            known = labels >= 0
            nmi = float(normalized_mutual_info_score(labels[known], found[known]))
            ari = float(adjusted_rand_score(labels[known], found[known]))
        inside = None if graph is None else modularity(graph, found)
        scores.append(ClusterScore(name, nmi, ari, inside))
    return scores


def _unit(vectors: Any) -> Any:
    """Return vectors scaled to unit length; a zero vector and a single column stay as they are."""
    from sklearn.preprocessing import normalize

    if not issparse(vectors):
        rows = np.asarray(vectors, dtype=np.float64)
        return rows if rows.shape[1] == 1 else normalize(rows)
    scaled = normalize(csr_array(vectors, dtype=np.float64))
    # scikit-learn accepts 32-bit indices only
    scaled.indices, scaled.indptr = scaled.indices.astype(np.int32), scaled.indptr.astype(np.int32)
    return scaled
