"""Which pairs are drawn: local ones, structural ones, negatives, and when."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from spinegraph import Graph
from spinegraph.config import PaperConfig
from spinegraph.learning.sampling import (
    HELD_OUT,
    PRETRAINING,
    TRAINING,
    Corpus,
    PairSampler,
    gather_corpus,
)
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import SimilarNodes, candidates, similar_nodes


def config(**changes):
    small = {"batch_size": 64, "negative_samples": 16, "local_walks": 3, "local_walk_length": 8, "window": 3}
    return PaperConfig(**{**small, "threads": 1, **changes}).check()


def sampler_of(graph, settings):
    corpus = gather_corpus(graph, settings)
    degrees = graph.degrees[corpus.nodes]
    profile = rooted_pagerank(graph, k=5, roots=corpus.nodes, threads=1)
    near = candidates(degrees, profile.weights, "all")
    return PairSampler(corpus, similar_nodes(profile, near, threads=1), degrees, settings)


def near_on_walks(walks, window):
    """Every pair of nodes that some walk meets at most ``window`` steps apart."""
    pairs = set()
    for walk in walks.tolist():
        for place, node in enumerate(walk):
            pairs |= {frozenset((node, other)) for other in walk[place + 1 : place + 1 + window]}
    return pairs


@given(strategies.graphs(min_nodes=2), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 3))
def test_an_anchor_is_never_its_own_positive_and_all_are_nodes(graph, rate, step):
    sampler = sampler_of(graph, config(structural_rate=rate))
    assert sampler.can_draw  # two nodes are each other's structural candidates, even without edges
    for stage in (TRAINING, HELD_OUT):
        batch = sampler.draw(step, stage)
        assert (batch.anchors != batch.positives).all()
        assert (len(batch.anchors), len(batch.positives), len(batch.negatives)) == (64, 64, 16)
        for places in (batch.anchors, batch.positives, batch.negatives):
            assert places.dtype == np.int64
            assert places.min() >= 0
            assert places.max() < len(graph)


def test_a_single_node_has_no_pairs():
    assert not sampler_of(Graph.from_edges([], num_nodes=1), config()).can_draw


@given(strategies.connected_graphs(min_nodes=3), st.integers(1, 4))
def test_local_positives_are_near_on_a_walk(graph, window):
    settings = config(structural_rate=0.0, window=window)
    near = near_on_walks(gather_corpus(graph, settings).walks, window)
    batch = sampler_of(graph, settings).draw(0)
    drawn = {frozenset(pair) for pair in zip(batch.anchors.tolist(), batch.positives.tolist(), strict=True)}
    assert drawn <= near


def test_local_pairs_meet_every_distance_and_both_directions():
    path = Graph.from_edges([(i, i + 1) for i in range(30)])
    batch = sampler_of(path, config(structural_rate=0.0, batch_size=4000, window=3)).draw(0)
    steps = batch.positives - batch.anchors
    assert set(np.unique(steps).tolist()) == {-3, -2, -1, 1, 2, 3}
    assert abs(np.mean(steps > 0) - 0.5) < 0.05


def test_structural_positives_are_drawn_by_similarity():
    weights = np.array([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    nodes = np.array([[1, 2, 3], [0, 2, -1], [3, -1, -1], [-1, -1, -1]])
    corpus = Corpus(np.arange(4), np.full((4, 8), -1, np.int32))
    settings = config(structural_rate=1.0, batch_size=30_000)
    batch = PairSampler(corpus, SimilarNodes(nodes, weights), np.zeros(4), settings).draw(0)
    assert set(batch.anchors.tolist()) == {0, 1, 2}
    for anchor, row in enumerate(weights[:3]):
        positives = batch.positives[batch.anchors == anchor]
        assert abs(len(positives) / 30_000 - 1 / 3) < 0.02
        for place, chance in enumerate(row):
            if nodes[anchor, place] >= 0:
                assert abs(np.mean(positives == nodes[anchor, place]) - chance) < 0.02


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.9, 1.0])
def test_the_structural_rate_is_the_share_of_structural_pairs(rate):
    # Two far ends that are alike: a local pair stays on its side, a structural one need not.
    sides = [(i, i + 1) for i in range(9)] + [(i, i + 1) for i in range(10, 19)]
    graph = Graph.from_edges(sides)
    settings = config(structural_rate=rate, batch_size=5000)
    mirrored = np.concatenate([np.arange(10, 20), np.arange(10)])[:, None]
    similar = SimilarNodes(mirrored, np.ones((20, 1), np.float32))
    batch = PairSampler(gather_corpus(graph, settings), similar, graph.degrees, settings).draw(0)
    crossing = (batch.anchors < 10) != (batch.positives < 10)
    assert abs(crossing.mean() - rate) < 0.03


def test_isolated_nodes_get_structural_positives():
    graph = Graph.from_edges([(0, 1), (1, 2)], num_nodes=6)
    batch = sampler_of(graph, config(structural_rate=0.5, batch_size=500)).draw(0)
    assert {3, 4, 5} <= set(batch.anchors.tolist())
    assert {3, 4, 5} <= set(batch.positives.tolist())


def test_without_edges_every_pair_is_structural_and_negatives_are_uniform():
    graph = Graph.from_edges([], num_nodes=5)
    batch = sampler_of(graph, config(structural_rate=0.0, negative_samples=5000)).draw(0)
    shares = np.bincount(batch.negatives, minlength=5) / 5000
    assert np.abs(shares - 0.2).max() < 0.03


def test_negatives_follow_degree_to_the_three_quarters():
    star = Graph.from_edges([(0, i) for i in range(1, 17)] + [(1, 2)])
    batch = sampler_of(star, config(negative_samples=50_000)).draw(0)
    expected = star.degrees**0.75 / (star.degrees**0.75).sum()
    found = np.bincount(batch.negatives, minlength=len(star)) / 50_000
    assert np.abs(found - expected).max() < 0.01


def test_a_batch_depends_on_seed_stage_and_step_alone():
    graph = Graph.from_edges([(i, (i + 1) % 12) for i in range(12)])
    one, other = (sampler_of(graph, config()) for _ in range(2))
    other.draw(3)
    for stage in (TRAINING, HELD_OUT, PRETRAINING):
        np.testing.assert_array_equal(one.draw(5, stage).anchors, other.draw(5, stage).anchors)
        np.testing.assert_array_equal(one.draw(5, stage).negatives, other.draw(5, stage).negatives)
    different = [
        one.draw(5),
        one.draw(6),
        one.draw(5, PRETRAINING),
        sampler_of(graph, config(seed=1)).draw(5),
    ]
    assert len({batch.anchors.tobytes() for batch in different}) == 4


def test_threads_change_no_walk():
    graph = Graph.from_edges([(i, (i + 1) % 30) for i in range(30)] + [(0, 7), (3, 20)])
    one, two = (gather_corpus(graph, config(threads=threads)) for threads in (1, 2))
    np.testing.assert_array_equal(one.walks, two.walks)


@given(strategies.graphs(min_nodes=3), st.integers(0, 3))
def test_held_out_edges_are_edges_and_never_trained_on(graph, step):
    sampler = sampler_of(graph, config(structural_rate=0.0))
    adjacent = {frozenset(pair) for pair in zip(*graph.to_scipy().nonzero(), strict=True)}
    held = {frozenset(divmod(int(key), len(graph))) for key in sampler.held_out}
    assert held <= adjacent
    if not held:
        return
    drawn = sampler.draw(step, HELD_OUT)
    assert {frozenset(pair) for pair in zip(drawn.anchors, drawn.positives, strict=True)} <= held
    trained = sampler.draw(step)
    assert not {frozenset(pair) for pair in zip(trained.anchors, trained.positives, strict=True)} & held


def test_one_edge_in_twenty_is_held_out():
    walks = np.arange(200, dtype=np.int32).reshape(100, 2)
    sampler = PairSampler(Corpus(np.arange(200), walks), None, np.ones(200), config(window=1))
    trained = {int(node) // 2 for step in range(100) for node in sampler.draw(step).anchors}
    held = {int(node) // 2 for step in range(20) for node in sampler.draw(step, HELD_OUT).anchors}
    assert len(held) == 5
    assert len(trained) == 95
    assert not trained & held


def test_a_single_walk_is_trained_on():
    walk = np.array([[0, 1, 2, 1]], dtype=np.int32)
    sampler = PairSampler(Corpus(np.arange(3), walk), None, np.ones(3), config())
    assert sampler.can_draw
    assert len(sampler.draw(0).anchors) == len(sampler.draw(0, HELD_OUT).anchors) == 64


def test_pretraining_draws_local_pairs_alone():
    sides = Graph.from_edges([(0, 1), (1, 2), (3, 4), (4, 5)])
    batch = sampler_of(sides, config(structural_rate=1.0)).draw(0, PRETRAINING)
    assert ((batch.anchors < 3) == (batch.positives < 3)).all()


@pytest.mark.parametrize("most", [2, 20, 50, 119])
def test_a_large_graph_trains_on_so_many_nodes_at_most(most):
    graph = Graph.from_edges([(i, (i + 1) % 120) for i in range(120)])
    settings = config(training_nodes=most, local_walk_length=8)
    corpus = gather_corpus(graph, settings)
    assert max(2, most - 8) <= len(corpus.nodes) <= most
    assert (np.diff(corpus.nodes) > 0).all()
    visited = corpus.walks[corpus.walks >= 0]
    assert set(np.unique(visited).tolist()) == set(range(len(corpus.nodes)))
    steps = np.abs(np.diff(corpus.nodes[corpus.walks], axis=1))
    assert np.isin(steps, [1, 119]).all()  # places in the corpus are the nodes that the walk met
    assert sampler_of(graph, settings).can_draw


def test_every_node_is_walked_from_where_all_take_part():
    graph = Graph.from_edges([(0, 1), (1, 2)], num_nodes=5)
    corpus = gather_corpus(graph, config(local_walks=4))
    assert np.bincount(corpus.walks[:, 0]).tolist() == [4] * 5
    assert (corpus.walks[np.isin(corpus.walks[:, 0], [3, 4]), 1:] == -1).all()
