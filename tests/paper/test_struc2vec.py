"""The struc2vec baseline is checked like our own code, so that a comparison with it is fair."""

import numpy as np
import pytest
from paper.baselines import compared_pairs, context_walks, huffman, ring_distances, struc2vec
from paper.protocols import lengths, links, mirrored

from spinegraph import Graph, made


def warping(first, second):
    """DTW distance by recursion, over (degree, how often) pairs."""
    cost = max(first[-1][0], second[-1][0]) / min(first[-1][0], second[-1][0]) - 1
    cost *= max(first[-1][1], second[-1][1])
    ways = [
        warping(one, two)
        for one, two in ((first[:-1], second), (first, second[:-1]), (first[:-1], second[:-1]))
        if one and two
    ]
    return cost + min(ways, default=0)


def ring(graph, node, hops, compressed):
    """The ordered degrees of the nodes exactly ``hops`` away, by plain breadth-first search."""
    seen, front = {node}, {node}
    for _ in range(hops):
        front = {int(other) for at in front for other in graph.neighbors(at)} - seen
        seen |= front
    degrees = sorted(int(graph.degrees[at]) + 0.5 for at in front)
    if compressed:
        return [(degree, degrees.count(degree)) for degree in sorted(set(degrees))]
    return [(degree, 1) for degree in degrees]


@pytest.mark.parametrize("compressed", [True, False])
def test_ring_distances_are_sums_of_warping_distances(compressed):
    graph = made.random_graph(9, 1.3, seed=3)
    pairs = compared_pairs(graph, all_pairs=True)
    found = ring_distances(graph, pairs, layers=9, compressed=compressed)
    for (left, right), distances in zip(pairs, found, strict=True):
        total = 0.0
        for hops, distance in enumerate(distances):
            one, two = ring(graph, left, hops, compressed), ring(graph, right, hops, compressed)
            total += warping(one, two) if one and two else np.inf
            assert distance == pytest.approx(total)


def test_fewer_layers_and_fewer_pairs_are_a_part_of_all():
    graph = made.random_graph(60, 2, seed=4)
    every, near = (compared_pairs(graph, all_pairs=all_pairs) for all_pairs in (True, False))
    assert len(near) < len(every)
    whole = dict(zip(map(tuple, every), ring_distances(graph, every, layers=60), strict=True))
    for pair, few in zip(map(tuple, near), ring_distances(graph, near, layers=3), strict=True):
        assert np.array_equal(few, whole[pair][:3])
    assert (np.abs(np.diff(graph.degrees[near], axis=1)) <= 3).all()


def test_walks_prefer_nodes_with_like_surroundings():
    graph = made.barbell(6, bridge=5)
    pairs = compared_pairs(graph, all_pairs=True)
    distances = ring_distances(graph, pairs, layers=17)
    walks = context_walks(17, pairs, distances, 20, 40, 0.3, np.random.default_rng(0))
    after_the_middle = walks[:, 1:][walks[:, :-1] == 8]
    in_cliques = np.isin(after_the_middle, [*range(5), *range(12, 17)]).mean()
    assert in_cliques < 0.3  # ten of the seventeen nodes are inner members of a clique


@pytest.mark.parametrize("all_pairs", [True, False])
def test_mirrored_nodes_of_a_barbell_embed_together(all_pairs):
    graph = made.barbell(8, bridge=7)
    n = len(graph)
    vectors = struc2vec(graph, dim=32, seed=1, all_pairs=all_pairs)
    distance = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    mirror = n - 1 - np.arange(n)
    others = ~np.eye(n, dtype=bool)
    apart = np.arange(n) != mirror  # the middle of the bridge mirrors itself
    assert distance[np.arange(n), mirror][apart].mean() < 0.5 * distance[others].mean()
    path_and_clique = distance[8:15][:, [0, 1, 21, 20]].mean()
    assert distance[np.ix_(range(7), range(15 + 1, n))].mean() < 0.5 * path_and_clique


def test_mirrored_copies_embed_nearer_than_neighbours():
    union, pairs = mirrored(made.karate(), seed=2)
    vectors = struc2vec(union, dim=32, seed=0, epochs=1)
    assert lengths(vectors, links(union)).mean() > 1.5 * lengths(vectors, pairs).mean()


def test_isolated_nodes_and_the_seed_are_kept():
    graph = Graph.from_edges(np.array([[0, 1], [1, 2]]), num_nodes=5)
    first, again = (struc2vec(graph, dim=8, seed=3, walk_length=20) for _ in range(2))
    assert first.shape == (5, 8)
    assert np.isfinite(first).all()
    assert np.array_equal(first, again)
    assert np.isfinite(struc2vec(Graph.from_edges(np.zeros((0, 2), int), num_nodes=1), dim=4)).all()


def test_huffman_codes_are_prefix_free_and_short_for_frequent_nodes():
    counts = np.array([100, 1, 1, 30, 5])
    codes, _, depths = huffman(counts)
    words = ["".join(map(str, codes[node, : depths[node]][::-1])) for node in range(5)]
    assert not any(a != b and b.startswith(a) for a in words for b in words)
    assert depths[0] == 1
    assert sum(2.0**-depth for depth in depths.tolist()) == 1
