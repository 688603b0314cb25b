"""How claims are measured: which nodes are seen, which are asked about, and how vectors are scored.

One draw per data set, setting and seed, so that all rows of a table see the same.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from spinegraph.analysis.baselines import Embed
from spinegraph.analysis.evaluation import ProbeResult, probe, probe_cv
from spinegraph.graph import datasets
from spinegraph.graph import synthetic as made
from spinegraph.graph.datasets import Dataset
from spinegraph.graph.graph import Graph

load = cache(datasets.load)
_found: dict[bytes, ProbeResult] = {}  # rows that do not depend on the seed are probed once


def transductive_accuracy(data: Dataset, vectors: Any) -> float:
    """Return test accuracy on a public split, with C from the validation nodes."""
    return once(probe, vectors, data.labels, data.train, data.val, data.test).accuracy


@dataclass(frozen=True, eq=False)
class Removal:
    """A network some of whose nodes are removed before fitting, and asked about afterwards.

    Attributes
    ----------
    train : Graph
        What is left.
    full, strict : Graph
        The whole network; and without links between two removed nodes.
    kept, removed : int64 arrays
        Positions in ``full``.
    labels : int array (n,)
        -1 where unknown.
    """

    train: Graph
    full: Graph
    strict: Graph
    kept: NDArray[np.int64]
    removed: NDArray[np.int64]
    labels: NDArray[Any]

    @classmethod
    def draw(cls, data: Dataset, rate: int, seed: int) -> "Removal":
        """Remove ``rate`` percent of the nodes at random."""
        graph, n = data.graph, len(data.graph)
        order = np.random.default_rng([seed, rate]).permutation(n)
        removed = np.sort(order[: round(n * rate / 100)])
        kept = np.setdiff1d(np.arange(n), removed)
        assert data.labels is not None
        return cls(
            graph.subgraph(graph.names[kept]),
            graph,
            without_links_among(graph, removed),
            kept,
            removed,
            data.labels,
        )

    def accuracies(self, embed: Embed, seed: int) -> dict[str, float]:
        """Classify the removed nodes from kept labels, seeing all their links, and (``strict``) fewer.

        Training vectors come from the reduced graph, the removed nodes' from the other two.
        """
        parts = [embed(self.train), embed(self.full)[self.removed], embed(self.strict)[self.removed]]
        labels = np.concatenate([self.labels[part] for part in (self.kept, self.removed, self.removed)])
        known = np.flatnonzero(labels >= 0)
        trained, tested = known[known < len(self.kept)], known[known >= len(self.kept)]
        found = once(probe_cv, stacked(parts), labels, trained, tested, seed=seed)
        right = found.classes[found.scores.argmax(axis=1)] == labels[tested]
        is_strict = tested >= len(self.kept) + len(self.removed)
        return {"accuracy": float(right[~is_strict].mean()), "strict": float(right[is_strict].mean())}


def mirror_network(case: str, seed: int) -> tuple[Graph, NDArray[np.int64]]:
    """Return FB-686 beside a mirrored copy, and who mirrors whom, (n, 2).

    ``case`` is ``equal``, ``shuffled`` (features over both copies) or ``perturbed S``: each edge of each copy
    kept with probability S and a feature of each node moved.
    """
    graph = connected_users()
    n = len(graph)
    if case.startswith("perturbed"):
        keep = float(case.split()[1])
        copies = [made.perturbed(graph, keep=keep, seed=2 * seed + copy) for copy in (0, 1)]
        return Graph.union(copies, keys=(0, 1)), np.column_stack([np.arange(n), n + np.arange(n)])
    union, pairs = made.mirrored(graph, seed=seed)
    if case == "shuffled":
        order = np.random.default_rng([seed, 5]).permutation(2 * n)
        union = union.with_features(union.feature_rows(order), union.feature_names)
    return union, pairs


def connected_users() -> Graph:
    """Return FB-686 without its two isolated nodes: the paper's 168."""
    graph = load("fb686").graph
    return graph.subgraph(graph.names[graph.degrees > 0])


def once(measure: Callable[..., ProbeResult], vectors: Any, *arguments: Any, **options: Any) -> ProbeResult:
    """Return a probe's result, from memory where it has seen the same vectors and nodes."""
    digest = hashlib.blake2b(repr(sorted(options.items())).encode())
    matrix = [vectors.data, vectors.indices, vectors.indptr] if issparse(vectors) else [vectors]
    for array in (*matrix, *arguments):
        digest.update(np.ascontiguousarray(array).tobytes())
    key = digest.digest()
    if key not in _found:
        _found[key] = measure(vectors, *arguments, **options)
    return _found[key]


def links(graph: Graph) -> NDArray[np.int64]:
    """Return every edge once, as positions (m, 2)."""
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    is_first = rows < graph.indices
    return np.column_stack([rows[is_first], graph.indices[is_first]])


def lengths(vectors: NDArray[Any], pairs: NDArray[np.int64]) -> NDArray[Any]:
    """Return Euclidean distances (m,)."""
    found: NDArray[Any] = np.linalg.norm(vectors[pairs[:, 0]] - vectors[pairs[:, 1]], axis=1)
    return found


def without_links_among(graph: Graph, removed: NDArray[np.int64]) -> Graph:
    """Return the graph without edges between two removed nodes."""
    edges = links(graph)
    gone = np.isin(edges, removed).all(axis=1)
    return Graph.from_edges(
        edges[~gone], num_nodes=len(graph), features=graph.features, feature_names=graph.feature_names
    ).relabel(graph.names)


def stacked(parts: list[Any]) -> Any:
    """Return matrices one above the other."""
    return vstack(parts, format="csr") if issparse(parts[0]) else np.vstack(parts)
