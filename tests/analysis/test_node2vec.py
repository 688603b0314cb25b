"""node2vec, the baseline, on small graphs where what it does is known."""

import numpy as np
import pytest

from spinegraph import Graph, made
from spinegraph.analysis.baselines import node2vec
from spinegraph.kernels.walks import uniform_walks


def test_walks_go_to_each_neighbour_equally_often():
    star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    walks = uniform_walks(star.indptr, star.indices, np.zeros(3000, np.int64), 4, np.random.default_rng(1))
    assert (walks[:, 2] == 0).all()
    for step in (1, 3):
        assert np.bincount(walks[:, step])[1:] / 3000 == pytest.approx(np.full(3, 1 / 3), abs=0.03)


def test_neighbours_embed_together_and_isolated_nodes_are_kept():
    graph = Graph.union([made.barbell(6), Graph.from_edges(np.zeros((0, 2), int), num_nodes=1)])
    vectors = node2vec(graph, dim=16, seed=0)
    assert np.isfinite(vectors).all()
    units = vectors[:12] / np.linalg.norm(vectors[:12], axis=1, keepdims=True)
    cosines = units @ units.T
    assert cosines[:6, :6].mean() > cosines[:6, 6:].mean()
    assert np.array_equal(vectors, node2vec(graph, dim=16, seed=0))
