"""HOPE (Ou et al., KDD 2016) on the rooted PageRank matrix: its best approximation of low rank.

The singular vectors of S = (1 - b)(I - bP)^-1 by ARPACK, which needs products with S alone: two sparse
triangular solves. Half of the dimensions are a node's left vector, half its right one, as in the paper. With
b = 0.5, which the SPINE paper gives for its walks, HOPE has 65 % on Cora and 49 % on Citeseer; 0.99 was the
best of six values on both networks' validation nodes.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import LinearOperator, splu, svds

from paper.method import Embed, Method, Score, of_one_graph
from spinegraph.graph.graph import Graph


def hope(graph: Graph, dim: int = 200, *, continuation: float = 0.99) -> NDArray[np.float32]:
    """Return float32 vectors (n, dim): U sqrt(s) beside V sqrt(s), the largest singular values first."""
    n, rank = len(graph), min(dim // 2, len(graph) - 1)
    system = csc_array(eye_array(n) - continuation * transition(graph))
    factors = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    operator = LinearOperator(
        (n, n),
        matvec=lambda vector: (1 - continuation) * factors.solve(vector.ravel()),
        rmatvec=lambda vector: (1 - continuation) * factors.solve(vector.ravel(), "T"),
        dtype=np.float64,
    )
    left, sizes, right = svds(operator, k=rank, v0=np.ones(n), solver="arpack")
    order, roots = np.argsort(-sizes), np.sqrt(np.sort(sizes)[::-1])
    return np.hstack([left[:, order] * roots, right[order].T * roots]).astype(np.float32)


def transition(graph: Graph) -> csr_array:
    """Return P (n, n); a node without neighbours stays where it is."""
    n = len(graph)
    values = np.ones(len(graph.indices)) if graph.weights is None else graph.weights.astype(np.float64)
    adjacency = csr_array((values, graph.indices, graph.indptr), shape=(n, n))
    totals = np.asarray(adjacency.sum(axis=1)).ravel()
    scaled = diags_array(1 / np.where(totals > 0, totals, 1)) @ adjacency
    return csr_array(scaled + diags_array((totals == 0).astype(np.float64)))


def _fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
    return of_one_graph(graph, hope(graph, dim))


METHOD = Method("HOPE", 1, _fit, is_inductive=False, is_drawn=False)
