"""Smoothing: T exact to the tolerance, by products and by walks, whatever the threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import strategies
from spinegraph import Graph, made
from spinegraph.kernels.sparse import times_vector
from spinegraph.structure import smoothing
from spinegraph.structure.smoothing import EARLY, Smoother, main_directions, row_products

reaches = st.sampled_from([0.1, 0.5, 0.9])


@given(strategies.graphs(max_nodes=12, features=False), reaches, st.booleans(), st.sampled_from([0.1, 1e-3]))
def test_products_are_the_exact_smoothing_within_the_tolerance(graph, reach, symmetric, tolerance):
    exact = reference.smoothing(graph, reach, symmetric)
    values = np.random.default_rng(len(graph)).uniform(-1, 1, (len(graph), 3)).astype(np.float32)
    smoother = Smoother.of(graph, reach, symmetric=symmetric, tolerance=tolerance)
    weights = np.where(graph.degrees > 0, graph.strengths + smoother.loops, 1)[:, None]
    if symmetric:
        weights = np.ones_like(weights)  # root degrees divide values before and multiply them after
    error, moved = (
        np.sqrt((weights * np.square(each - exact @ values)).sum(axis=0))
        for each in (smoother.smooth(values), values)
    )
    assert (error <= tolerance * moved + 1e-4 * np.sqrt(weights.max())).all()


@given(strategies.graphs(max_nodes=12, features=False), reaches, st.booleans())
def test_rows_of_some_nodes_are_those_of_the_products(graph, reach, symmetric):
    smoother = Smoother.of(graph, reach, symmetric=symmetric, tolerance=1e-4)
    roots = np.arange(0, len(graph), 2)
    whole = smoother.smooth(np.eye(len(graph), dtype=np.float32))
    np.testing.assert_allclose(smoother.rows(roots).toarray(), whole[roots], atol=2e-3)
    found, early = smoother._walks(roots)
    exact = reference.smoothing(graph, reach, symmetric)[roots]
    walked = ~(early > EARLY)
    sums = np.abs(found.toarray() - exact).sum(axis=1)
    if not symmetric:
        assert (sums[walked] <= 2 * early[walked] + 1e-4).all()


def test_walks_on_a_large_network_agree_with_the_products():
    graph = made.random_graph(4000, 8, seed=3)
    values = np.random.default_rng(0).standard_normal((4000, 8)).astype(np.float32)
    for symmetric in (False, True):
        smoother = Smoother.of(graph, 0.5, symmetric=symmetric, tolerance=1e-3)
        found, early = smoother._walks(np.arange(40))
        assert early.max() < EARLY
        np.testing.assert_allclose(found @ values, smoother.smooth(values)[:40], atol=0.02)


def test_a_row_does_not_depend_on_the_others():
    graph = made.random_graph(500, 6, seed=1)
    smoother = Smoother.of(graph, 0.9, symmetric=True)
    together, alone = smoother.rows(np.array([3, 8, 400])), smoother.rows(np.array([8]))
    np.testing.assert_array_equal(together.toarray()[1], alone.toarray()[0])
    values = np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
    right = np.random.default_rng(1).standard_normal((30, 7)).astype(np.float32)
    np.testing.assert_array_equal(row_products(values, right)[4], row_products(values[4:5], right)[0])


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_do_not_change_a_bit(threads):
    graph = made.random_graph(3000, 6, seed=2)
    values = np.random.default_rng(0).standard_normal((3000, 70)).astype(np.float32)
    one, many = (Smoother.of(graph, 0.9, threads=count) for count in (1, threads))
    np.testing.assert_array_equal(one.smooth(values), many.smooth(values))
    np.testing.assert_array_equal(one.rows(np.arange(9)).toarray(), many.rows(np.arange(9)).toarray())


def test_an_overlay_is_smoothed_like_the_grown_graph():
    graph = made.random_graph(60, 4, seed=1)
    grown = graph.overlay(["a", "b"], [("a", 0), ("a", "b"), ("b", 7)])
    values = np.random.default_rng(0).standard_normal((62, 4)).astype(np.float32)
    expected = Smoother.of(grown.materialize(), 0.7).smooth(values)
    np.testing.assert_allclose(Smoother.of(grown, 0.7).smooth(values), expected, atol=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_an_overlay_are_those_of_its_base_corrected(symmetric, weighted):
    rng = np.random.default_rng(0)
    edges = rng.integers(400, size=(1600, 2))
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    weights = rng.random(len(edges)) + 0.1 if weighted else None
    graph = Graph.from_edges(edges, num_nodes=400, weights=weights)
    new = list(range(400, 430))
    links = [(node, int(other)) for node in new[:-1] for other in rng.choice(node, 3, replace=False)]
    overlay = graph.overlay(new, links, weights=rng.random(len(links)) + 0.1 if weighted else None)
    overlay = overlay.remove([7, 8], [tuple(edges[200].tolist())])  # the last new node has no neighbours
    values = rng.random((430, 5), np.float32)
    before, after = (Smoother.of(each, 0.9, symmetric=symmetric, tolerance=1e-4) for each in (graph, overlay))
    known = before.smooth(values[:400]) / before.root_degrees
    some = np.setdiff1d(np.arange(429, -1, -4), [7, 8])
    found = after.corrected(overlay, some, known, lambda positions: values[positions])
    expected = after.smooth(values)[some]
    moved = np.linalg.norm(expected - values[some], axis=1).mean()
    assert np.linalg.norm(found - expected, axis=1).max() < 0.02 * moved
    np.testing.assert_allclose(found[-1], values[429], rtol=1e-6)
    alone = after.corrected(overlay, some[3:4], known, lambda positions: values[positions])
    np.testing.assert_array_equal(alone[0], found[3])


def test_nodes_without_neighbours_keep_their_values():
    graph = Graph.from_edges([(0, 1)], num_nodes=4)
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    for symmetric in (False, True):
        found = Smoother.of(graph, 0.9, symmetric=symmetric, tolerance=1e-4).smooth(values)
        np.testing.assert_allclose(found[2:], values[2:], atol=1e-3)


def test_another_device_can_solve():
    graph, calls = made.karate(), []

    def solve(smoother, values):
        calls.append(values.shape)
        return Smoother._solve(smoother, values)

    values = np.eye(34, dtype=np.float32)
    with smoothing.solved_by(solve):
        found = Smoother.of(graph, 0.5).smooth(values)
    assert calls == [(34, 34)]
    np.testing.assert_array_equal(found, Smoother.of(graph, 0.5).smooth(values))


def test_main_directions_are_those_of_the_decomposition():
    rng = np.random.default_rng(0)
    matrix = (rng.standard_normal((80, 6)) * 2.0 ** -np.arange(6)) @ rng.standard_normal((6, 30))
    matrix = matrix.astype(np.float32)
    found, values = main_directions(lambda x: matrix @ x, lambda x: matrix.T @ x, 30, 4, seed=0)
    _, exact, right = np.linalg.svd(matrix)
    np.testing.assert_allclose(values, exact[:4], rtol=1e-3)
    np.testing.assert_allclose(np.abs(np.sum(found.T * right[:4], axis=1)), 1, atol=1e-3)


@given(rows=st.integers(0, 40), width=st.integers(1, 70), seed=st.integers(0, 99))
def test_rows_times_a_vector_are_sums_of_products(rows, width, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((rows, width)).astype(np.float32)
    vector, found = rng.standard_normal(width).astype(np.float32), np.empty(rows, np.float32)
    times_vector(matrix, vector, found)
    expected = [sum(float(a) * float(b) for a, b in zip(row, vector, strict=True)) for row in matrix]
    np.testing.assert_allclose(found, expected, atol=1e-5 * width)
