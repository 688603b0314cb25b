"""PPI: fitted on 20 tissues, C chosen on 2, asked about 2 that nobody saw. Labels are approximate."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import Values
from paper.item import DIM, Item, Measure
from paper.method import Embed, Method, Score
from paper.rows import row
from spinegraph.analysis.evaluation import probe_multilabel
from spinegraph.graph import datasets
from spinegraph.graph.graph import Graph

Networks = dict[str, tuple[Graph, NDArray[Any]]]  # part -> graph and labels (n, 121)
_SIZES = {"PPI": (20, 2, 2), "subPPI": (3, 0, 1)}
_SOME = 2000

F1 = (Measure("micro", "micro-F1, %", 100), Measure("macro", "macro-F1, %", 100))


@cache
def networks(name: str) -> Networks:
    """Return the training, validation and test networks of ``PPI`` or ``subPPI``, each as one graph.

    subPPI has no validation network: a fifth of its training nodes chooses C there.
    """
    parts = datasets.load_ppi()
    by_split = {
        split: [part for part in parts if len(getattr(part, split))] for split in ("train", "val", "test")
    }
    found = {}
    for split, most in zip(by_split, _SIZES[name], strict=True):
        chosen = by_split[split][:most]
        if chosen:
            graph = Graph.union([part.graph for part in chosen], keys=range(len(chosen)))
            found[split] = graph, np.concatenate([part.labels for part in chosen])
    return found


def scores(name: str, method: Method, seed: int) -> Values:
    """Return micro- and macro-F1 of one method on the test networks."""
    found = networks(name)
    train, labels = found["train"]
    embed = method.fit(train, DIM, seed, inner_score(name, seed))
    order = np.random.default_rng([seed, 7]).permutation(len(train))
    vectors = embed(train)
    if "val" in found:
        parts = {split: (embed(graph), known) for split, (graph, known) in found.items() if split != "train"}
        seen, val = (vectors, labels), parts["val"]
    else:
        cut = len(order) // 5
        parts = {"test": (embed(found["test"][0]), found["test"][1])}
        seen, val = ((vectors[at], labels[at]) for at in (order[cut:], order[:cut]))
    result = probe_multilabel(seen, val, parts["test"])
    return {"micro": result.micro, "macro": result.macro, "C": result.C, "validation": result.val_micro}


def inner_score(name: str, seed: int) -> Score:
    """Return how well some training nodes' labels predict others': what may tell a method when to stop."""
    graph, labels = networks(name)["train"]
    order = np.random.default_rng([seed, 8]).permutation(len(graph))
    train, val = order[:_SOME], order[_SOME : 2 * _SOME]

    def score(embed: Embed) -> float:
        vectors = embed(graph)
        known = (vectors[val], labels[val])
        return probe_multilabel((vectors[train], labels[train]), known, known, Cs=(1.0,)).micro

    return score


def measure(case: str, name: str, seed: int) -> Values:
    """Return the F1 scores of one row."""
    return scores(case, row(name), seed)


ITEMS = {
    "ppi": Item(
        "ppi",
        "Figure: node classification on PPI (approximate labels: compare rows, do not quote)",
        ("PPI",),
        (
            "Random",
            "raw features",
            "GraphSAGE",
            "SPINE",
            "SPINE (paper's settings)",
            "T F",
            "PCA of T F",
            "PCA of T F + columns",
            "random W_M",
        ),
        measure,
        F1,
        figure_only=("Random", "raw features", "GraphSAGE", "SPINE"),
        quick=("raw features",),
        smoke=("subPPI", "raw features"),
        most_seeds=3,
    )
}
