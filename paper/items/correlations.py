"""Correlation of vector distance with structural distance over edges, by two definitions.

By the paper's: structural distance is DTW of the profiles (exact to push's tolerance, k = 20, continuation
0.5). By the reference code's: DTW of the same vectors whose Euclidean distance it is held against.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, spearmanr

from paper.cells import Values
from paper.item import DIM, Item, Measure
from paper.kernels import vector_dtw
from paper.protocols import lengths, links, load
from paper.rows import row
from spinegraph.analysis.baselines import dense
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import pair_distances

_PAPER = {"citeseer": (0.72, 0.74), "cora": (0.77, 0.79), "pubmed": (0.78, 0.84)}
_WIDEST = 256  # columns up to which vectors are compared with themselves as sequences


@cache
def structural(name: str) -> NDArray[np.float32]:
    """Return the structural distance of every edge's ends, (m,)."""
    graph = load(name).graph
    profile = rooted_pagerank(graph, k=20, continuation=0.5, threads=1)
    return pair_distances(profile.weights, links(graph), threads=1)


def of_themselves(vectors: NDArray[Any], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the DTW distance of the vectors of every edge's ends, (m,), local cost |a - b|."""
    found = np.empty(len(edges))
    vector_dtw(vectors.astype(np.float64), edges, found)
    return found


def measure(case: str, name: str, seed: int) -> Values:
    """Return Pearson and Spearman by both definitions; by the second only where vectors are short."""
    graph = load(case).graph
    edges = links(graph)
    vectors = dense(row(name).fit(graph, DIM, seed, None)(graph))
    apart = lengths(vectors, edges)
    found = {
        "Pearson": float(pearsonr(apart, structural(case)).statistic),
        "Spearman": float(spearmanr(apart, structural(case)).statistic),
    }
    if 1 < vectors.shape[1] <= _WIDEST:
        own = of_themselves(vectors, edges)
        found["Pearson by the code"] = float(pearsonr(apart, own).statistic)
        found["Spearman by the code"] = float(spearmanr(apart, own).statistic)
    return found


ITEMS = {
    "correlation": Item(
        "correlation",
        "Table: correlation of vector distance with structural distance",
        tuple(_PAPER),
        (
            "SPINE",
            "SPINE (paper's settings)",
            "T F",
            "PCA of T F",
            "random W_M",
            "raw features",
            "log degree",
        ),
        measure,
        (
            Measure("Pearson", "Pearson, by the paper's definition", digits=2),
            Measure("Spearman", "Spearman, by the paper's definition", digits=2),
            Measure("Pearson by the code", "Pearson, as the reference code computes it", digits=2),
            Measure("Spearman by the code", "Spearman, as the reference code computes it", digits=2),
        ),
        {
            ("SPINE", case, key): value
            for case, values in _PAPER.items()
            for key, value in zip(("Pearson", "Spearman"), values, strict=True)
        },
        quick=("SPINE", "T F", "log degree"),
        quick_cases=("citeseer", "cora"),
        smoke=("cora", "SPINE"),
        is_drawn=False,
    )
}
