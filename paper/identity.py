"""Structural identity: mirrored and perturbed networks, correlation with structural distance, the case study.

Mirrors are copies of FB-686. Pm are the distances of mirrored pairs, Pa those of linked ones; a method that
keeps structural identity has E[Pa] well above E[Pm].

The correlation is that of vector distance with structural distance over edges. By the paper's definition
structural distance is DTW of the profiles (exact to push's tolerance, k = 20, continuation 0.5); the
reference code takes DTW of the same vectors whose Euclidean distance it compares with.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from paper.cells import DIM, Item, Measure, Values
from paper.methods import PAPER, method
from paper.probe import probe
from paper.protocols import connected_users, lengths, links, load, mirror_network, perturbed
from spinegraph.analysis.baselines import Embed, dense
from spinegraph.graph.datasets import Dataset
from spinegraph.graph.graph import Graph
from spinegraph.kernels.runtime import compiled
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import as_rows, comparison

_EXACT = 1e-5  # of the mean Pa: float32's rounding, not a distance
_QUANTILES = np.linspace(0, 1, 41)
_CORRELATIONS = {"citeseer": (0.72, 0.74), "cora": (0.77, 0.79), "pubmed": (0.78, 0.84)}
_MAX_SEQUENCE = 256  # columns up to which vectors are compared as sequences
PEERS = ("node2vec", "GraphSAGE")  # of the case study
_FEW, _TWINS, _SHOWN = 2, 5, 3
_OURS = ("SPINE", "SPINE, role", PAPER)
_CONTROLS = ("T F", "T F by walks", "PCA of T F", "random W_M", "raw features", "log degree")
_RATIO = (Measure("ratio", "E[Pa] / E[Pm]", digits=2),)


def distances(vectors: Any, graph: Graph, pairs: NDArray[np.int64]) -> Values:
    """Return the means of Pm and Pa, their ratio (None where Pm is 0) and their quantiles."""
    values = dense(vectors).astype(np.float64)
    mirrored, linked = lengths(values, pairs), lengths(values, links(graph))
    is_exact = mirrored.max() <= _EXACT * linked.mean()
    return {
        "ratio": None if is_exact else float(linked.mean() / mirrored.mean()),
        "Pm": float(mirrored.mean()),
        "Pa": float(linked.mean()),
        "largest Pm over mean Pa": float(mirrored.max() / linked.mean()),
        "quantiles of Pm": [float(f"{value:.4g}") for value in np.quantile(mirrored, _QUANTILES)],
        "quantiles of Pa": [float(f"{value:.4g}") for value in np.quantile(linked, _QUANTILES)],
    }


def measure_mirrors(case: str, name: str, seed: int) -> Values:
    """Fit on both copies and compare distances."""
    union, pairs = mirror_network(case, seed)
    return distances(method(name, several=True).fit(union, DIM, seed, None)(union), union, pairs)


def measure_unseen_mirrors(case: str, name: str, seed: int) -> Values:
    """Fit on two perturbed copies and compare distances between two others, inferred."""
    graph, keep = connected_users(), float(case.split()[1])
    copies = [perturbed(graph, keep=keep, seed=4 * seed + copy) for copy in range(4)]
    train, test = (Graph.union(copies[at : at + 2], keys=(0, 1)) for at in (0, 2))
    pairs = np.column_stack([np.arange(len(graph)), len(graph) + np.arange(len(graph))])
    return distances(method(name, several=True).fit(train, DIM, seed, None)(test), test, pairs)


@cache
def structural_distances(name: str) -> NDArray[np.float32]:
    """Return the structural distance of every edge's ends, (m,)."""
    graph = load(name).graph
    profile = rooted_pagerank(graph, k=20, continuation=0.5, threads=1)
    return comparison("dtw", as_rows(profile.weights, "profiles"))(*np.ascontiguousarray(links(graph).T))


def sequence_distances(vectors: NDArray[Any], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the DTW distance of the vectors of every edge's ends, (m,), local cost |a - b|."""
    found = np.empty(len(edges))
    vector_dtw(vectors.astype(np.float64), edges, found)
    return found


def measure_correlation(case: str, name: str, seed: int) -> Values:
    """Return Pearson and Spearman by both definitions; by the second only where vectors are short."""
    graph = load(case).graph
    edges = links(graph)
    vectors = dense(method(name).fit(graph, DIM, seed, None)(graph))
    apart = lengths(vectors, edges)
    found = {
        "Pearson": float(pearsonr(apart, structural_distances(case)).statistic),
        "Spearman": float(spearmanr(apart, structural_distances(case)).statistic),
    }
    if 1 < vectors.shape[1] <= _MAX_SEQUENCE:
        own = sequence_distances(vectors, edges)
        found["Pearson by the code"] = float(pearsonr(apart, own).statistic)
        found["Spearman by the code"] = float(spearmanr(apart, own).statistic)
    return found


@compiled
def vector_dtw(vectors, pairs, found):
    """Write the DTW distance of each pair of rows, local cost |a - b|, into ``found`` (m,)."""
    length = vectors.shape[1]
    above, here = np.empty(length + 1), np.empty(length + 1)
    for number in range(len(pairs)):
        first, second = vectors[pairs[number, 0]], vectors[pairs[number, 1]]
        above[:] = np.inf
        above[0] = 0.0
        for i in range(length):
            here[0] = np.inf
            for j in range(length):
                here[j + 1] = abs(first[i] - second[j]) + min(above[j], above[j + 1], here[j])
            above, here = here, above
        found[number] = above[length]


def measure_case_study(case: str, name: str, seed: int) -> Values:
    """Find the nodes, their twins, and how often twins share a node's class."""
    data = load(case)
    assert data.labels is not None
    assert data.test is not None
    predicted = {peer: classified(data, peer, seed) for peer in (*PEERS, "SPINE")}
    labels, test, degrees = data.labels, data.test, data.graph.degrees
    wrong = {peer: found != labels[test] for peer, found in predicted.items()}
    both = test[wrong[PEERS[0]] & wrong[PEERS[1]]]
    either = test[wrong[PEERS[0]] | wrong[PEERS[1]]]
    profile = rooted_pagerank(data.graph, k=20, continuation=0.5, threads=1)
    twins = {int(node): structural_twins(profile.weights, node) for node in both}
    same = np.mean([np.mean(labels[found] == labels[node]) for node, found in twins.items()])
    saved = np.isin(both, test[~wrong["SPINE"]])
    few = [int(node) for node in both[saved] if degrees[node] <= _FEW]
    many = sorted((int(node) for node in both[saved]), key=lambda node: -degrees[node])
    shares = np.bincount(labels[labels >= 0]) / (labels >= 0).sum()
    return {
        "wrong by both": len(both),
        "of these right by SPINE": float(saved.mean()),
        "nodes with at most 2 neighbours": float((degrees <= _FEW).mean()),
        "the same among test nodes": float((degrees[test] <= _FEW).mean()),
        "the same among those misclassified": float((degrees[either] <= _FEW).mean()),
        "twins of the node's class": float(same),
        "the same by chance": float(np.mean([shares[labels[node]] for node in both])),
        "few": [shown(data, node, twins[node]) for node in few[:_SHOWN]],
        "many": [shown(data, node, twins[node][:3]) for node in many[:_SHOWN]],
    }


def classified(data: Dataset, name: str, seed: int) -> NDArray[np.int64]:
    """Return the classes that a probe on a row's vectors gives to the test nodes, (t,)."""
    assert data.labels is not None

    def score(embed: Embed) -> float:
        return _probe(data, embed(data.graph), data.val).accuracy  # type: ignore[no-any-return]

    found = _probe(data, method(name).fit(data.graph, DIM, seed, score)(data.graph), data.test)
    classes: NDArray[np.int64] = found.classes[found.scores.argmax(axis=1)]
    return classes


def _probe(data: Dataset, vectors: Any, asked: Any) -> Any:
    return probe(vectors, data.labels, data.train, data.val, asked)  # type: ignore[arg-type]


def structural_twins(profiles: NDArray[np.float32], node: int) -> NDArray[np.int64]:
    """Return the nodes whose profiles (n, k) are nearest to a node's by DTW, nearest first."""
    others = np.setdiff1d(np.arange(len(profiles)), [node])
    apart = comparison("dtw", as_rows(profiles, "profiles"))(np.full(len(others), node), others)
    return others[np.lexsort((others, apart))[:_TWINS]]


def shown(data: Dataset, node: int, twins: NDArray[np.int64]) -> dict[str, Any]:
    """Return a node, its twins, and the classes and links of their surroundings as plain numbers."""
    return {"node": surroundings(data, node), "twins": [surroundings(data, int(twin)) for twin in twins]}


def surroundings(data: Dataset, node: int, max_nodes: int = 40) -> dict[str, Any]:
    """Return a node with its neighbours and some of theirs.

    ``links`` are pairs of indices into ``nodes``; ``beyond`` counts the nodes at two hops.
    """
    graph, labels = data.graph, data.labels
    assert labels is not None
    near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    far = [graph.indices[graph.indptr[other] : graph.indptr[other + 1]] for other in near]
    beyond = np.setdiff1d(np.concatenate([*far, np.empty(0, np.int64)]), [node, *near]).astype(np.int64)
    nodes = np.concatenate([[node], near, beyond[: max(max_nodes - len(near) - 1, 0)]]).astype(np.int64)
    index = {int(other): number for number, other in enumerate(nodes)}
    ends = [
        [index[int(one)], index[int(other)]]
        for one in nodes
        for other in graph.indices[graph.indptr[one] : graph.indptr[one + 1]]
        if int(other) in index and one < other
    ]
    return {
        "nodes": nodes.tolist(),
        "classes": labels[nodes].tolist(),
        "hops": [0, *[1] * len(near), *[2] * (len(nodes) - 1 - len(near))],
        "links": ends,
        "beyond": len(beyond),
    }


ITEMS = {
    "mirror": Item(
        "mirror",
        "Figure: FB-686 and its mirror image",
        ("equal", "shuffled"),
        (*_OURS, *_CONTROLS, "struc2vec"),
        measure_mirrors,
        _RATIO,
        {
            ("SPINE", "equal", "ratio"): 13.40,
            (PAPER, "equal", "ratio"): 13.40,
            ("struc2vec", "equal", "ratio"): 5.72,
        },
        quick=(*_OURS, "T F", "T F by walks", "random W_M", "raw features"),
    ),
    "perturbation": Item(
        "perturbation",
        "Figure: FB-686 under edge removal and changing content",
        tuple(f"perturbed {keep / 10}" for keep in range(9, 1, -1)),
        (*_OURS, *_CONTROLS, "struc2vec"),
        measure_mirrors,
        _RATIO,
        figure_only=("SPINE", PAPER),
        quick=("SPINE", "SPINE, role", "T F", "raw features"),
        quick_cases=("perturbed 0.9", "perturbed 0.5", "perturbed 0.2"),
    ),
    "mirror-inductive": Item(
        "mirror-inductive",
        "Figure: two perturbed copies of FB-686 train, two others are inferred",
        ("perturbed 0.2",),
        (*_OURS, "GraphSAGE", "T F", "PCA of T F", "random W_M", "raw features", "log degree"),
        measure_unseen_mirrors,
        _RATIO,
        figure_only=("SPINE", PAPER, "GraphSAGE"),
        quick=("SPINE", "SPINE, role", "GraphSAGE", "T F", "raw features"),
    ),
    "correlation": Item(
        "correlation",
        "Table: correlation of vector distance with structural distance",
        tuple(_CORRELATIONS),
        (*_OURS, "T F", "PCA of T F", "random W_M", "raw features", "log degree"),
        measure_correlation,
        (
            Measure("Pearson", "Pearson, by the paper's definition", digits=2),
            Measure("Spearman", "Spearman, by the paper's definition", digits=2),
            Measure("Pearson by the code", "Pearson, as the reference code computes it", digits=2),
            Measure("Spearman by the code", "Spearman, as the reference code computes it", digits=2),
        ),
        {
            (name, case, key): value
            for name in ("SPINE", PAPER)
            for case, values in _CORRELATIONS.items()
            for key, value in zip(("Pearson", "Spearman"), values, strict=True)
        },
        quick=("SPINE", "SPINE, role", "T F", "log degree"),
        quick_cases=("citeseer", "cora"),
        smoke=("cora", "SPINE"),
        is_random=False,
    ),
    "case-study": Item(
        "case-study",
        "Case study: nodes of Cora that node2vec and GraphSAGE both get wrong",
        ("cora",),
        ("twins",),
        measure_case_study,
        (
            Measure("wrong by both", "test nodes that both get wrong", digits=0),
            Measure("of these right by SPINE", "of these right by SPINE, %", 100),
            Measure("nodes with at most 2 neighbours", "nodes with at most 2 neighbours, %", 100),
            Measure(
                "the same among those misclassified",
                "the same among test nodes that either gets wrong, %",
                100,
            ),
            Measure("the same among test nodes", "the same among all test nodes, %", 100),
            Measure("twins of the node's class", "structural twins of the node's class, %", 100),
            Measure("the same by chance", "the same for nodes drawn at random, %", 100),
        ),
        {
            ("twins", "cora", "nodes with at most 2 neighbours"): 38.3,
            ("twins", "cora", "the same among those misclassified"): 50.7,
        },
        max_seeds=3,
        is_random=False,
    ),
}
