"""How much of an airport's activity class its structural columns tell, beside log degree alone.

Micro-F1 of one-vs-rest logistic regression over 100 random 80/20 splits that all rows share; C by five-fold
cross-validation inside the training labels. Prints JSON: for each network and row the mean of the chosen C's
cross-validated score inside the training labels, and the test mean and deviation.
"""

import json
import os
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinegraph import Graph
from spinegraph.structure.columns import structural_columns

SPLITS = 100
STRENGTHS = (0.01, 0.1, 1, 10, 100, 1000)


def micro_f1(values, labels, splits=SPLITS):
    rng = np.random.default_rng(0)
    inside, test = [], []
    for _ in range(splits):
        order = rng.permutation(len(labels))
        held, kept = np.split(order, [round(0.2 * len(labels))])
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        scores = [cross_val_score(_probe(c), values[kept], labels[kept], cv=folds).mean() for c in STRENGTHS]
        inside.append(max(scores))
        probe = _probe(STRENGTHS[int(np.argmax(scores))]).fit(values[kept], labels[kept])
        test.append(probe.score(values[held], labels[held]))
    return {
        "inside": round(np.mean(inside), 3),
        "test": round(np.mean(test), 3),
        "deviation": round(np.std(test), 3),
    }


def _probe(strength):
    return make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression(C=strength, max_iter=2000)))


def main():
    folder = Path(os.environ.get("SPINEGRAPH_DATA", "../shared/data"))
    found = {}
    for name in ("airports_brazil", "airports_europe"):
        with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
            graph = Graph.from_edges(data["edges"], num_nodes=int(data["num_nodes"]))
            labels = data["labels"]
        values = structural_columns(graph).values
        found[name] = {"columns": micro_f1(values, labels), "log degree": micro_f1(values[:, :1], labels)}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
