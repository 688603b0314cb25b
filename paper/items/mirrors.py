"""Structural identity on FB-686: mirrored, perturbed, and across networks.

Pm are the distances of mirrored pairs, Pa those of linked ones; a method that keeps structural identity has
E[Pa] well above E[Pm].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.cells import Values
from paper.item import DIM, Item, Measure
from paper.protocols import connected_users, lengths, links, mirror_network
from paper.rows import row
from spinegraph.analysis.baselines import dense
from spinegraph.graph import synthetic as made
from spinegraph.graph.graph import Graph

_EXACT = 1e-5  # of the mean Pa: float32's rounding, not a distance
_QUANTILES = np.linspace(0, 1, 41)
_ROWS = ("SPINE", "SPINE by walks", "T F", "T F by walks", "PCA of T F", "random W_M", "raw features")
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


def measure(case: str, name: str, seed: int) -> Values:
    """Fit on both copies and compare distances."""
    union, pairs = mirror_network(case, seed)
    return distances(row(name).fit(union, DIM, seed, None)(union), union, pairs)


def measure_inductive(case: str, name: str, seed: int) -> Values:
    """Fit on two perturbed copies and compare distances between two others, inferred."""
    graph, keep = connected_users(), float(case.split()[1])
    copies = [made.perturbed(graph, keep=keep, seed=4 * seed + copy) for copy in range(4)]
    train, test = (Graph.union(copies[at : at + 2], keys=(0, 1)) for at in (0, 2))
    pairs = np.column_stack([np.arange(len(graph)), len(graph) + np.arange(len(graph))])
    return distances(row(name).fit(train, DIM, seed, None)(test), test, pairs)


ITEMS = {
    "mirror": Item(
        "mirror",
        "Figure: FB-686 and its mirror image",
        ("equal", "shuffled"),
        (*_ROWS, "log degree", "struc2vec"),
        measure,
        _RATIO,
        {("SPINE", "equal", "ratio"): 13.40, ("struc2vec", "equal", "ratio"): 5.72},
        quick=("SPINE", "SPINE by walks", "T F", "T F by walks", "random W_M", "raw features"),
    ),
    "perturbation": Item(
        "perturbation",
        "Figure: FB-686 under edge removal and changing content",
        tuple(f"perturbed {keep / 10}" for keep in range(9, 1, -1)),
        (*_ROWS, "log degree", "struc2vec"),
        measure,
        _RATIO,
        figure_only=("SPINE",),
        quick=("SPINE", "T F", "raw features"),
        quick_cases=("perturbed 0.9", "perturbed 0.5", "perturbed 0.2"),
    ),
    "mirror-inductive": Item(
        "mirror-inductive",
        "Figure: two perturbed copies of FB-686 train, two others are inferred",
        ("perturbed 0.2",),
        (
            "SPINE",
            "SPINE by walks",
            "GraphSAGE",
            "T F",
            "PCA of T F",
            "random W_M",
            "raw features",
            "log degree",
        ),
        measure_inductive,
        _RATIO,
        figure_only=("SPINE", "GraphSAGE"),
        quick=("SPINE", "GraphSAGE", "T F", "raw features"),
    ),
}
