"""node2vec's p and q on a small tree, where what they do is known."""

import numpy as np
import pytest

from spinegraph import Graph, made
from spinegraph.analysis.baselines import biased_walks, node2vec

TREE = Graph.from_edges([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)])


def share_of_returns(graph, p, q):
    walks = biased_walks(graph, 200, 20, p, q, np.random.default_rng(0))
    inner = (graph.degrees[walks[:, 1:-1]] > 1) & (walks[:, 1:-1] >= 0)
    return (walks[:, 2:] == walks[:, :-2])[inner].mean()


def test_p_decides_how_often_a_walk_returns():
    often, evenly, seldom = (share_of_returns(TREE, p, 1.0) for p in (0.1, 1.0, 10.0))
    assert often > 0.8 > evenly > 0.3 > seldom


def test_returns_have_the_probability_of_the_definition():
    walks = biased_walks(TREE, 2000, 3, 4.0, 0.5, np.random.default_rng(1))
    through = walks[(walks[:, 0] == 3) & (walks[:, 1] == 1)]
    chances = np.array([2.0, 0.25, 2.0])  # to 0, back to 3, to 4; in a tree nothing else is near 3
    found = np.array([(through[:, 2] == node).mean() for node in (0, 3, 4)])
    assert found == pytest.approx(chances / chances.sum(), abs=0.03)


def test_q_decides_whether_a_walk_stays_in_its_clique():
    graph = made.barbell(5, bridge=3)
    near, far = (biased_walks(graph, 100, 20, 1.0, q, np.random.default_rng(2)) for q in (10.0, 0.1))
    outside = [np.isin(walks[walks[:, 0] == 0], [5, 6, 7]).mean() for walks in (near, far)]
    assert outside[0] < 0.5 * outside[1]


def test_neighbours_embed_together_and_isolated_nodes_are_kept():
    graph = Graph.union([made.barbell(6), Graph.from_edges(np.zeros((0, 2), int), num_nodes=1)])
    vectors = node2vec(graph, dim=16, seed=0)
    assert np.isfinite(vectors).all()
    units = vectors[:12] / np.linalg.norm(vectors[:12], axis=1, keepdims=True)
    cosines = units @ units.T
    assert cosines[:6, :6].mean() > cosines[:6, 6:].mean()
    assert np.array_equal(vectors, node2vec(graph, dim=16, seed=0))
