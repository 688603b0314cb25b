"""Table 2: nodes removed at random, and classified by vectors of a model that never saw them."""

import numpy as np

from paper.cells import Values
from paper.item import DIM, Item, Measure
from paper.method import Embed, Score
from paper.protocols import Removal, load
from paper.rows import row
from spinegraph.analysis.baselines import CONTROLS
from spinegraph.analysis.evaluation import probe

_RATES = (20, 40, 60, 80)
_PAPER = {
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
_MOST_TRAIN, _MOST_VAL = 1000, 500


def measure(case: str, name: str, seed: int) -> Values:
    """Return the accuracy on removed nodes, with all their links and (``strict``) with those to kept ones."""
    network, rate = case.split()
    removal = Removal.draw(load(network), int(rate), seed)
    embed = row(name).fit(removal.train, DIM, seed, inner_score(removal, seed))
    return dict(removal.accuracies(embed, seed))


def inner_score(removal: Removal, seed: int) -> Score:
    """Return how well some kept nodes' labels predict others': what may tell a method when to stop."""
    labels = removal.labels[removal.kept]
    order = np.random.default_rng([seed, 77]).permutation(np.flatnonzero(labels >= 0))
    cut = min(_MOST_VAL, len(order) // 5)
    val, train = order[:cut], order[cut : cut + _MOST_TRAIN]

    def score(embed: Embed) -> float:
        return probe(embed(removal.train), labels, train, val, val, Cs=(1.0, 100.0)).accuracy

    return score


ITEMS = {
    "table2": Item(
        "table2",
        "Table 2: inductive node classification",
        tuple(f"{network} {rate}" for network in ("citeseer", "cora", "pubmed") for rate in _RATES),
        ("GraphSAGE", "SPINE", "SPINE (paper's settings)", "Random", *CONTROLS),
        measure,
        (
            Measure("accuracy", "accuracy, %, removed nodes with all their links", 100),
            Measure("strict", "accuracy, %, the stricter variant: links to kept nodes only", 100),
        ),
        {
            (name, f"{network} {rate}", "accuracy"): value
            for (name, network), values in _PAPER.items()
            for rate, value in zip(_RATES, values, strict=True)
        },
        quick=("SPINE", "raw features", "PCA of T F"),
        quick_cases=("cora 20", "cora 80", "citeseer 80"),
        smoke=("cora 80", "SPINE"),
    )
}
