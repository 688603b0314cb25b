"""Walks, structural twins and balance on a device against the CPU's."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import reference
from spinegraph import Config, made
from spinegraph.engines.gpu import old_balance as balance
from spinegraph.engines.gpu import old_corpus as corpus
from spinegraph.engines.gpu.engine import similar, walks
from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.engines.gpu.old_made import random_graph
from spinegraph.kernels.walks import plain_walks
from spinegraph.learning.sampling import balanced, gather_corpus
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import candidates, similar_nodes
from strategies import graphs

PROFILES = arrays.arrays(np.float32, (4, 7), elements=st.floats(0, 1, width=32))
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@given(graphs(weighted=False), st.integers(0, 2**40))
@settings(max_examples=30, deadline=None)
def test_plain_walks_without_weights_are_the_cpus_own(graph, seed):
    roots = np.arange(len(graph))
    expected = plain_walks(graph.adjacency(), roots, 2, 5, seed, threads=1)
    found = walks.plain_walks(DeviceGraph.of(graph, "cpu"), torch.from_numpy(roots), 2, 5, seed)
    np.testing.assert_array_equal(found, expected)


@given(graphs(weighted=False), st.integers(1, 6), st.integers(0, 2**40))
@settings(max_examples=30, deadline=None)
def test_counted_walks_without_weights_are_the_cpus_own(graph, k, seed):
    how = {"k": k, "continuation": 0.6, "walks": 3, "walk_length": 6, "seed": seed}
    expected = rooted_pagerank(graph, method="walks", **how, threads=1)
    found = walks.count_walks(DeviceGraph.of(graph, "cpu"), torch.arange(len(graph)), **how)
    np.testing.assert_array_equal(found.nodes, expected.nodes)
    np.testing.assert_allclose(found.operator().dense(), expected.operator().toarray(), atol=1e-7)


@pytest.mark.parametrize("device", DEVICES)
def test_steps_follow_the_weights(device):
    indptr = torch.tensor([0, 3, 4, 5, 6], device=device)
    indices = torch.tensor([1, 2, 3, 0, 0, 0], dtype=torch.int32, device=device)
    star = DeviceGraph(indptr, indices, torch.tensor([1.0, 2.0, 5.0, 1.0, 2.0, 5.0], device=device))
    bits = torch.arange(0, 2**32, 2**20, device=device)
    found = walks.step(star, torch.zeros_like(bits), bits)
    shares = torch.bincount(found, minlength=4).double() / len(bits)
    assert shares.tolist() == pytest.approx([0, 1 / 8, 2 / 8, 5 / 8], abs=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@given(weights=PROFILES)
@settings(max_examples=40, deadline=None)
def test_warping_is_that_of_the_textbook(device, weights):
    rows = np.sort(weights, axis=1)[:, ::-1].copy()
    left, right = np.indices((4, 4)).reshape(2, -1)
    found = similar.distances(*(torch.from_numpy(part).to(device) for part in (rows, left, right)))
    expected = [reference.dtw(rows[a], rows[b]) for a, b in zip(left, right, strict=True)]
    np.testing.assert_allclose(found.cpu(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine"])
@pytest.mark.parametrize("method", ["profile", "degree", "all"])
def test_twins_are_those_of_the_cpu(method, metric):
    graph = made.karate()
    profile = rooted_pagerank(graph, k=6, threads=1)
    near = candidates(graph.degrees, profile.weights, method)
    expected = similar_nodes(profile, near, metric, threads=1)
    weights = torch.from_numpy(profile.weights)
    found = similar.candidates(torch.from_numpy(graph.degrees), weights, method)
    nodes, chances = similar.similar_nodes(weights, found, metric)
    np.testing.assert_array_equal(nodes, expected.nodes)
    np.testing.assert_allclose(chances, expected.weights, atol=1e-6)


@pytest.mark.parametrize("most", [10_000, 150, 5])
def test_the_corpus_is_the_cpus_own(most):
    graph, config = made.random_graph(300, 3), Config(training_nodes=most, local_walks=2, seed=3, threads=1)
    expected = gather_corpus(graph, config)
    found = corpus.gather_corpus(DeviceGraph.of(graph, "cpu"), config)
    np.testing.assert_array_equal(found.nodes, expected.nodes)
    np.testing.assert_array_equal(found.walks, expected.walks)


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_balance_is_that_of_the_cpu(shuffled):
    graph = made.planted(seed=1).graph
    if shuffled:
        graph = graph.with_features(graph.features[np.random.default_rng(0).permutation(len(graph))])
    device = DeviceGraph.of(graph, "cpu", graph.features)
    expected = balanced(Config(feature_scaling="none"), graph).structural_share
    assert balance.balanced(Config(), device).structural_share == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("heavy_tailed", [False, True])
def test_a_made_graph_is_symmetric_without_loops_or_repeats(heavy_tailed):
    graph = random_graph(200, 3, features=15, heavy_tailed=heavy_tailed, device="cpu")
    rows = torch.repeat_interleave(torch.arange(200), graph.degrees)
    links = set(zip(rows.tolist(), graph.indices.tolist(), strict=True))
    assert len(links) == len(graph.indices)
    assert all(a != b and (b, a) in links for a, b in links)
    np.testing.assert_allclose(graph.features.dense().norm(dim=1), 1, atol=1e-6)


def test_the_room_loads_neither_numba_nor_scipy_nor_arrow():
    code = (
        "import sys, spinegraph.engines.gpu.old_model, spinegraph.engines.gpu.old_made\n"
        "assert not {'numba', 'scipy', 'pyarrow', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
