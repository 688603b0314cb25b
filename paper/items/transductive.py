"""Table 1: accuracy on the public split."""

from paper.cells import Values
from paper.item import DIM, Item, Measure
from paper.method import Embed
from paper.protocols import load, once
from paper.rows import row
from spinegraph.analysis.baselines import CONTROLS
from spinegraph.analysis.evaluation import probe

_CASES = ("citeseer", "cora", "pubmed")
_PAPER = {
    "node2vec": (47.2, 69.8, 70.3),
    "struc2vec": (41.1, 64.2, 60.7),
    "n+s": (42.7, 68.3, 67.1),
    "n+s+f": (57.0, 73.7, 67.3),
    "SDNE": (45.2, 68.7, 69.1),
    "HOPE": (46.1, 67.2, 69.4),
    "GraphSAGE": (52.6, 79.8, 75.2),
    "GAT": (72.5, 83.0, 79.0),
    "SPINE": (72.6, 83.7, 78.5),
    "SPINE-p": (73.8, 82.2, 82.2),
}


def measure(case: str, name: str, seed: int) -> Values:
    """Return the accuracy of one row, C chosen on the validation nodes; GAT classifies by itself."""
    data = load(case)
    if name == "GAT":
        from paper.baselines.gat import gat

        assert data.labels is not None
        classes = gat(data, seed)
        right = {
            part: classes[at] == data.labels[at] for part, at in (("test", data.test), ("val", data.val))
        }
        return {"accuracy": float(right["test"].mean()), "validation": float(right["val"].mean())}

    def score(embed: Embed) -> float:
        return once(probe, embed(data.graph), data.labels, data.train, data.val, data.val).accuracy

    embed = row(name).fit(data.graph, DIM, seed, score)
    found = once(probe, embed(data.graph), data.labels, data.train, data.val, data.test)
    return {"accuracy": found.accuracy, "validation": found.val_accuracy, "C": found.C}


def _version(case: str, name: str) -> str:
    if name == "GAT":
        return "1"
    return row(name).version


ITEMS = {
    "table1": Item(
        "table1",
        "Table 1: transductive node classification",
        _CASES,
        (
            *("node2vec", "struc2vec", "n+s", "n+s+f", "SDNE", "HOPE", "GraphSAGE", "GAT"),
            *("SPINE", "SPINE-p", "SPINE (paper's settings)", "SPINE-p (paper's settings)"),
            *("Random", *CONTROLS),
        ),
        measure,
        (Measure("accuracy", "test accuracy, %", 100),),
        {
            (name, case, "accuracy"): value
            for name, values in _PAPER.items()
            for case, value in zip(_CASES, values, strict=True)
        },
        version_of=_version,
        quick=("HOPE", "SPINE", "SPINE-p", "Random", *CONTROLS),
        quick_cases=("citeseer", "cora"),
        smoke=("cora", "HOPE"),
        is_drawn=False,
    )
}
