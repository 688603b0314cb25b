"""Node classification: Table 1 (transductive), Table 2 (inductive), PPI, and two parameter studies."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import DIM, Item, Measure, Values
from paper.methods import CONTROLS, PAPER, Method, Score, method, paper_method
from paper.originals import load_ppi
from paper.probe import probe
from paper.protocols import Removal, load, once, probe_multilabel
from spinegraph.analysis.baselines import Embed
from spinegraph.graph.graph import Graph

Networks = dict[str, tuple[Graph, NDArray[Any]]]  # split -> graph and labels (n, 121)
_CITATIONS = ("citeseer", "cora", "pubmed")
_RATES = (20, 40, 60, 80)
_MAX_TRAIN, _MAX_VAL = 1000, 500  # kept nodes whose labels may tell a method when to stop
_TISSUES = {"PPI": (20, 2, 2), "subPPI": (3, 0, 1)}  # networks that train, choose C, test
_F1 = (Measure("micro", "micro-F1, %", 100), Measure("macro", "macro-F1, %", 100))
_OURS = ("SPINE", "SPINE without learning", PAPER)  # rows beside the paper's SPINE

_TABLE1 = {
    "node2vec": (47.2, 69.8, 70.3),
    "struc2vec": (41.1, 64.2, 60.7),
    "n+s": (42.7, 68.3, 67.1),
    "n+s+f": (57.0, 73.7, 67.3),
    "SDNE": (45.2, 68.7, 69.1),
    "HOPE": (46.1, 67.2, 69.4),
    "GraphSAGE": (52.6, 79.8, 75.2),
    "GAT": (72.5, 83.0, 79.0),
    "SPINE": (72.6, 83.7, 78.5),
    PAPER: (72.6, 83.7, 78.5),
    "SPINE-p (paper's settings)": (73.8, 82.2, 82.2),
}
_TABLE2 = {
    ("Random", "citeseer"): (19.5, 20.4, 16.7, 17.7),
    ("raw features", "citeseer"): (63.9, 62.2, 60.3, 57.7),
    ("GraphSAGE", "citeseer"): (58.5, 53.9, 47.8, 41.4),
    ("SPINE", "citeseer"): (75.4, 72.1, 71.5, 68.7),
    ("Random", "cora"): (18.8, 22.0, 19.1, 20.1),
    ("raw features", "cora"): (66.6, 64.7, 64.6, 59.6),
    ("GraphSAGE", "cora"): (73.1, 66.4, 58.8, 48.6),
    ("SPINE", "cora"): (86.7, 84.1, 82.1, 77.9),
    ("Random", "pubmed"): (38.5, 39.8, 39.3, 38.9),
    ("raw features", "pubmed"): (75.7, 75.4, 74.6, 72.9),
    ("GraphSAGE", "pubmed"): (79.9, 79.4, 78.2, 76.4),
    ("SPINE", "pubmed"): (85.7, 83.7, 83.0, 78.8),
}
_LAMBDAS = {  # lambda_1, lambda_2: micro-F1, macro-F1 of the paper
    (0.2, 0.2): (47.1, 32.0),
    (0.2, 0.4): (47.0, 31.4),
    (0.2, 0.6): (46.6, 30.5),
    (0.4, 0.2): (47.2, 32.1),
    (0.4, 0.4): (47.8, 30.5),
    (0.6, 0.2): (46.7, 31.2),
    (1.0, 0.0): (45.4, 30.4),
}


def measure_transductive(case: str, name: str, seed: int) -> Values:
    """Return the accuracy of one row, C chosen on the validation nodes; GAT classifies by itself."""
    data = load(case)
    if name == "GAT":
        from paper.neural import gat

        assert data.labels is not None
        classes = gat(data, seed)
        right = {
            part: classes[at] == data.labels[at] for part, at in (("test", data.test), ("val", data.val))
        }
        return {"accuracy": float(right["test"].mean()), "validation": float(right["val"].mean())}

    def score(embed: Embed) -> float:
        return once(probe, embed(data.graph), data.labels, data.train, data.val, data.val).accuracy

    embed = method(name).fit(data.graph, DIM, seed, score)
    found = once(probe, embed(data.graph), data.labels, data.train, data.val, data.test)
    return {"accuracy": found.accuracy, "validation": found.val_accuracy, "C": found.C}


def measure_inductive(case: str, name: str, seed: int) -> Values:
    """Return the accuracy on removed nodes, with all their links and (``strict``) with those to kept ones."""
    network, rate = case.split()
    removal = Removal.draw(load(network), int(rate), seed)
    embed = method(name).fit(removal.train, DIM, seed, _kept_score(removal, seed))
    return dict(removal.accuracies(embed, seed))


def _kept_score(removal: Removal, seed: int) -> Score:
    """Return a score on the kept nodes: how well the labels of some predict those of others."""
    labels = removal.labels[removal.kept]
    order = np.random.default_rng([seed, 77]).permutation(np.flatnonzero(labels >= 0))
    cut = min(_MAX_VAL, len(order) // 5)
    val, train = order[:cut], order[cut : cut + _MAX_TRAIN]

    def score(embed: Embed) -> float:
        return probe(embed(removal.train), labels, train, val, val, Cs=(1.0, 100.0)).accuracy

    return score


@cache
def networks(name: str) -> Networks:
    """Return the training, validation and test networks of ``PPI`` or ``subPPI``, each as one graph.

    subPPI has no validation network: a fifth of its training nodes chooses C there.
    """
    parts = load_ppi()
    by_split = {
        split: [part for part in parts if len(getattr(part, split))] for split in ("train", "val", "test")
    }
    found = {}
    for split, count in zip(by_split, _TISSUES[name], strict=True):
        chosen = by_split[split][:count]
        if chosen:
            graph = Graph.union([part.graph for part in chosen], keys=range(len(chosen)))
            found[split] = graph, np.concatenate([part.labels for part in chosen])
    return found


def scores(name: str, fitted_by: Method, seed: int) -> Values:
    """Return micro- and macro-F1 of one method on the test networks."""
    found = networks(name)
    train, labels = found["train"]
    embed = fitted_by.fit(train, DIM, seed, _tissue_score(name, seed))
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


def _tissue_score(name: str, seed: int) -> Score:
    """Return a score on 4,000 training nodes: how well the labels of half predict those of the others."""
    graph, labels = networks(name)["train"]
    order = np.random.default_rng([seed, 8]).permutation(len(graph))
    train, val = order[:2000], order[2000:4000]

    def score(embed: Embed) -> float:
        vectors = embed(graph)
        known = (vectors[val], labels[val])
        return probe_multilabel((vectors[train], labels[train]), known, known, Cs=(1.0,)).micro

    return score


def measure_ppi(case: str, name: str, seed: int) -> Values:
    """Return the F1 scores of one row."""
    return scores(case, method(name, several=True), seed)


def _with_settings(case: str) -> Method:
    """Return the paper's method with the settings of a case, such as ``alpha 0.2`` or ``lambda 0.4 0.2``."""
    kind, *values = case.split()
    if kind == "alpha":
        return paper_method({"structural_rate": float(values[0])})
    return paper_method({"lambda1": float(values[0]), "lambda2": float(values[1])})


def measure_parameters(case: str, name: str, seed: int) -> Values:
    """Return the F1 scores on subPPI's test network."""
    return scores("subPPI", _with_settings(case), seed)


ITEMS = {
    "table1": Item(
        "table1",
        "Table 1: transductive node classification",
        _CITATIONS,
        (
            *("node2vec", "struc2vec", "n+s", "n+s+f", "SDNE", "HOPE", "GraphSAGE", "GAT"),
            *(*_OURS, "SPINE-p (paper's settings)", "Random", *CONTROLS),
        ),
        measure_transductive,
        (Measure("accuracy", "test accuracy, %", 100),),
        {
            (name, case, "accuracy"): value
            for name, values in _TABLE1.items()
            for case, value in zip(_CITATIONS, values, strict=True)
        },
        quick=("HOPE", *_OURS, "Random", *CONTROLS),
        quick_cases=("citeseer", "cora"),
        smoke=("cora", "HOPE"),
        is_random=False,
    ),
    "table2": Item(
        "table2",
        "Table 2: inductive node classification",
        tuple(f"{network} {rate}" for network in _CITATIONS for rate in _RATES),
        ("GraphSAGE", *_OURS, "Random", *CONTROLS),
        measure_inductive,
        (
            Measure("accuracy", "accuracy, %, removed nodes with all their links", 100),
            Measure("strict", "accuracy, %, the stricter variant: links to kept nodes only", 100),
        ),
        {
            (name, f"{network} {rate}", "accuracy"): value
            for (row, network), values in _TABLE2.items()
            for name in ((row, PAPER) if row == "SPINE" else (row,))
            for rate, value in zip(_RATES, values, strict=True)
        },
        quick=("SPINE", "raw features", "PCA of T F"),
        quick_cases=("cora 20", "cora 80", "citeseer 80"),
        smoke=("cora 80", "SPINE"),
    ),
    "ppi": Item(
        "ppi",
        "Figure: node classification on PPI (approximate labels: compare rows, do not quote)",
        ("PPI",),
        ("Random", "raw features", "GraphSAGE", *_OURS, "T F", "PCA of T F", "random W_M"),
        measure_ppi,
        _F1,
        figure_only=("Random", "raw features", "GraphSAGE", "SPINE", PAPER),
        quick=("raw features",),
        smoke=("subPPI", "raw features"),
        max_seeds=3,
    ),
    "alpha": Item(
        "alpha",
        "Figure: effect of alpha on subPPI (approximate labels)",
        tuple(f"alpha {alpha:.1f}" for alpha in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (PAPER,),
        measure_parameters,
        _F1,
        figure_only=(PAPER,),
        quick_cases=("alpha 0.0", "alpha 1.0"),
    ),
    "lambda": Item(
        "lambda",
        "Table: effects of lambda_1 and lambda_2 on subPPI (approximate labels)",
        tuple(f"lambda {first} {second}" for first, second in _LAMBDAS),
        (PAPER,),
        measure_parameters,
        _F1,
        {
            (PAPER, f"lambda {first} {second}", key): value
            for (first, second), values in _LAMBDAS.items()
            for key, value in zip(("micro", "macro"), values, strict=True)
        },
        quick_cases=("lambda 0.4 0.2", "lambda 1.0 0.0"),
    ),
}
