"""Slow, exact oracles: what the fast code is tested against."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array


def dtw(row_a: np.ndarray, row_b: np.ndarray) -> float:
    """Dynamic time warping by the textbook recursion, float64; local cost max/min - 1 of values plus 1e-3."""
    a, b = np.asarray(row_a, dtype=np.float64) + 1e-3, np.asarray(row_b, dtype=np.float64) + 1e-3
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0
    for i in range(len(a)):
        for j in range(len(b)):
            cost = max(a[i], b[j]) / min(a[i], b[j]) - 1
            table[i + 1, j + 1] = cost + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return float(table[-1, -1])


def transition_matrix(graph: Any) -> np.ndarray:
    """P (n, n), float64: steps in proportion to edge weight; a node without neighbours steps to itself."""
    matrix = np.zeros((len(graph), len(graph)))
    for node in range(len(graph)):
        row = slice(graph.indptr[node], graph.indptr[node + 1])
        weights = np.ones(row.stop - row.start) if graph.weights is None else graph.weights[row]
        matrix[node, graph.indices[row]] = weights
        if weights.size == 0:
            matrix[node, node] = 1
    return matrix / matrix.sum(axis=1, keepdims=True)


def rooted_pagerank(graph: Any, continuation: float) -> np.ndarray:
    """Every row of (1-b)(I-bP)^-1 by a linear solve, (n, n)."""
    identity = np.eye(len(graph))
    return (1 - continuation) * np.linalg.solve(
        (identity - continuation * transition_matrix(graph)).T, identity
    ).T


def smoothing(graph: Any, continuation: float, symmetric: bool) -> np.ndarray:
    """T = (1 - b) (I - b S)^-1 (n, n), float64.

    S is P, or, symmetric, steps with a loop of the mean edge weight at every node, divided by the roots of
    both ends' sums of weights.
    """
    step = transition_matrix(graph)
    if symmetric:
        loops = graph.strengths / np.maximum(graph.degrees, 1)
        sums = np.where(graph.degrees > 0, graph.strengths + loops, 1.0)
        weights = step * np.where(graph.degrees > 0, graph.strengths, 1)[:, None]
        step = (weights + np.diag(loops)) / np.sqrt(sums[:, None] * sums)
    return (1 - continuation) * np.linalg.inv(np.eye(len(graph)) - continuation * step)


def walk_expectation(graph: Any, continuation: float, walk_length: int) -> np.ndarray:
    """Expected share of the positions of a rooted walk of finite length at each node, (n roots, n)."""
    step, identity = transition_matrix(graph), np.eye(len(graph))
    at, total = identity, np.zeros_like(identity)
    for _ in range(walk_length):
        total += at
        at = continuation * at @ step + (1 - continuation) * identity
    return total / walk_length


def shared_ties_operator(values: np.ndarray, k: int, tie: float = 1e-9) -> np.ndarray:
    """T (r, n) from all values (r, n), row i rooted at i: ties at the k-th place share what is left."""
    operator = np.zeros_like(values)
    for root, row in enumerate(values):
        positive = np.flatnonzero(row > 0)
        if len(positive) <= k:
            operator[root] = row / row.sum()
            continue
        largest = -np.sort(-row)[:k]
        above = np.flatnonzero(row > largest[-1] + tie)
        tied = positive[np.abs(row[positive] - largest[-1]) <= tie]
        if len(above) + len(tied) > 4 * k:
            above, tied = (above, tied[:0]) if len(above) else (np.array([root]), tied[:0])
        operator[root, above] = row[above]
        operator[root, tied] = largest[len(above) :].sum() / max(len(tied), 1)
        operator[root] /= operator[root].sum()
    return operator


def unscaled(profile: Any) -> np.ndarray:
    """A profile's values before scaling, (r, n); 0 where a node is not among the k largest."""
    values = np.zeros((len(profile), profile.num_nodes))
    for row in range(len(profile)):
        kept = profile.nodes[row] >= 0
        values[row, profile.nodes[row, kept]] = profile.weights[row, kept] * profile.mass[row]
    return values


def some_rooted_pageranks(graph: Any, roots: np.ndarray, continuation: float) -> np.ndarray:
    """Some rows of the exact matrix of a larger graph without weights, (r, n), by the power series."""
    n, degrees = len(graph), np.diff(graph.indptr)
    incoming = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(n, n))
    term = np.zeros((n, len(roots)))
    term[roots, np.arange(len(roots))] = 1 - continuation
    total = term.copy()
    while term.max() > 1e-15:
        stays = (degrees == 0)[:, None] * term
        term = continuation * (incoming @ (term / np.maximum(degrees, 1)[:, None]) + stays)
        total += term
    return total.T


def overlap(profile: Any, exact: np.ndarray) -> float:
    """Mean share of each row's exact k largest that the profile found; tied nodes count as right."""
    last = -np.sort(-exact, axis=1)[:, profile.k - 1, None]
    rows = np.arange(len(profile))[:, None]
    held = np.where(profile.nodes >= 0, exact[rows, profile.nodes], 0)
    right = ((held > 0) & (held >= last - 1e-9)).sum(axis=1)
    return float(np.mean(right / np.minimum((exact > 0).sum(axis=1), profile.k)))


def log_sigmoid(score: float) -> float:
    """Logarithm of 1 / (1 + exp(-score)), in float64, exact for large scores of either sign."""
    return -float(np.logaddexp(0, -score))


def contrast(anchors: np.ndarray, positives: np.ndarray, negatives: np.ndarray, weight: float) -> float:
    """J of Eq. 5, pair by pair and negative by negative; the negatives' mean weighs ``weight``."""
    total = 0.0
    for anchor, positive in zip(anchors, positives, strict=True):
        pushed = [log_sigmoid(-float(anchor @ negative)) for negative in negatives]
        total += log_sigmoid(float(anchor @ positive)) + weight * sum(pushed) / len(pushed)
    return -total / len(anchors)


def contrast_of_links(change: np.ndarray, left: np.ndarray, right: np.ndarray, same: np.ndarray) -> float:
    """Mean over links i of -log of the share of exp(10 cosine) that its own end has among the ends j.

    Values x are moved to x + x M; j of the same node as i are left out, but for i itself.
    """
    total = 0.0
    for i in range(len(left)):
        cosines = {}
        for j in range(len(right)):
            one, other = left[i] + left[i] @ change, right[j] + right[j] @ change
            if j == i or not same[i, j]:
                cosines[j] = float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
        total -= 10 * cosines[i] - np.log(sum(np.exp(10 * cosine) for cosine in cosines.values()))
    return total / len(left)


def resemblance(graph: Any, features: np.ndarray, nodes: np.ndarray, other: np.ndarray) -> float:
    """Return how often a node is nearer to its neighbours' mean than to another node's."""
    center, count = features.mean(axis=0), 0.0
    for node, stranger in zip(nodes, other, strict=True):
        own, products = features[node] - center, []
        for each in (node, stranger):
            around = graph.indices[graph.indptr[each] : graph.indptr[each + 1]]
            mean = features[around].mean(axis=0) - center
            products.append(own @ mean / max(np.linalg.norm(mean), 1e-6))
        nearer = products[0] - products[1]
        count += 0.5 if abs(nearer) < 1e-5 * np.linalg.norm(own) else nearer > 0
    return float(count / len(nodes))


def objective(made: Any, auxiliary: Any, lambda1: float, lambda2: float, weight: float) -> float:
    """Eq. 6: e-e, s-s, e-s and s-e, each with negatives of its second kind; each kind is three arrays."""
    total = 0.0
    for share, first, second in (
        (lambda1, made, made),
        (lambda2, auxiliary, auxiliary),
        (1 - lambda1 - lambda2, made, auxiliary),
        (1 - lambda1 - lambda2, auxiliary, made),
    ):
        total += share * contrast(first[0], second[1], second[2], weight)
    return total


def slope(function: Any, place: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Gradient of a function of one float64 array, by central differences."""
    gradient = np.zeros_like(place)
    for index in np.ndindex(place.shape):
        kept = place[index]
        place[index] = kept + step
        above = function()
        place[index] = kept - step
        gradient[index] = (above - function()) / (2 * step)
        place[index] = kept
    return gradient
