"""The case study: test nodes of Cora that node2vec and GraphSAGE both get wrong, and their twins."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import Values
from paper.item import DIM, Item, Measure
from paper.method import Embed
from paper.protocols import load
from paper.rows import row
from spinegraph.analysis.evaluation import probe
from spinegraph.graph.datasets import Dataset
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import pair_distances

_PEERS = ("node2vec", "GraphSAGE")
_FEW, _TWINS, _SHOWN = 2, 5, 3


def measure(case: str, name: str, seed: int) -> Values:
    """Find the nodes, their twins, and how often twins share a node's class."""
    data = load(case)
    assert data.labels is not None
    assert data.test is not None
    predicted = {peer: classified(data, peer, seed) for peer in (*_PEERS, "SPINE")}
    labels, test, degrees = data.labels, data.test, data.graph.degrees
    wrong = {peer: found != labels[test] for peer, found in predicted.items()}
    both = test[wrong[_PEERS[0]] & wrong[_PEERS[1]]]
    either = test[wrong[_PEERS[0]] | wrong[_PEERS[1]]]
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

    found = _probe(data, row(name).fit(data.graph, DIM, seed, score)(data.graph), data.test)
    classes: NDArray[np.int64] = found.classes[found.scores.argmax(axis=1)]
    return classes


def _probe(data: Dataset, vectors: Any, asked: Any) -> Any:
    return probe(vectors, data.labels, data.train, data.val, asked)  # type: ignore[arg-type]


def structural_twins(profiles: NDArray[np.float32], node: int) -> NDArray[np.int64]:
    """Return the nodes whose profiles (n, k) are nearest to a node's by DTW, nearest first."""
    others = np.setdiff1d(np.arange(len(profiles)), [node])
    apart = pair_distances(profiles, np.column_stack([np.full(len(others), node), others]), threads=1)
    return others[np.lexsort((others, apart))[:_TWINS]]


def shown(data: Dataset, node: int, twins: NDArray[np.int64]) -> dict[str, Any]:
    """Return a node, its twins, and the classes and links of their surroundings as plain numbers."""
    return {"node": surroundings(data, node), "twins": [surroundings(data, int(twin)) for twin in twins]}


def surroundings(data: Dataset, node: int, most: int = 40) -> dict[str, Any]:
    """Return a node with its neighbours and some of theirs: positions, classes, and links by place."""
    graph, labels = data.graph, data.labels
    assert labels is not None
    near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    far = [graph.indices[graph.indptr[other] : graph.indptr[other + 1]] for other in near]
    beyond = np.setdiff1d(np.concatenate([*far, np.empty(0, np.int64)]), [node, *near]).astype(np.int64)
    nodes = np.concatenate([[node], near, beyond[: max(most - len(near) - 1, 0)]]).astype(np.int64)
    place = {int(other): number for number, other in enumerate(nodes)}
    ends = [
        [place[int(one)], place[int(other)]]
        for one in nodes
        for other in graph.indices[graph.indptr[one] : graph.indptr[one + 1]]
        if int(other) in place and one < other
    ]
    return {
        "nodes": nodes.tolist(),
        "classes": labels[nodes].tolist(),
        "hops": [0, *[1] * len(near), *[2] * (len(nodes) - 1 - len(near))],
        "links": ends,
        "beyond": len(beyond),
    }


def _version(case: str, name: str) -> str:
    return "+".join(row(peer).version for peer in (*_PEERS, "SPINE"))


ITEMS = {
    "case-study": Item(
        "case-study",
        "Case study: nodes of Cora that node2vec and GraphSAGE both get wrong",
        ("cora",),
        ("twins",),
        measure,
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
        version_of=_version,
        most_seeds=3,
        is_drawn=False,
    )
}
