"""Rooted PageRank against exact solutions; products of matrices, and their main directions."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from paper.protocols import mirrored
from scipy.sparse import csc_array, csr_array, issparse

import reference
import strategies
from spinegraph import Graph, datasets, made
from spinegraph.errors import ParameterError
from spinegraph.kernels.push import NO_BUDGET
from spinegraph.structure import pagerank as pagerank_module
from spinegraph.structure.pagerank import as_roots, rooted_pagerank
from spinegraph.structure.smoothing import main_directions, multiply, orthonormal, signed

DATA = Path(os.environ.get("SPINEGRAPH_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="SPINEGRAPH_DATA does not name a folder")
methods = pytest.mark.parametrize("method", ["push", "walks"])
continuations = st.sampled_from([0.3, 0.5, 0.85])


def assert_same(found, expected):
    for column in ("nodes", "weights", "mass", "kept", "tied_indptr", "tied_nodes"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))


@given(strategies.graphs(), st.integers(1, 14), continuations, st.sampled_from(["push", "walks"]))
def test_profiles_descend_sum_to_one_and_are_padded(graph, k, continuation, method):
    profile = rooted_pagerank(graph, k=k, continuation=continuation, method=method, walks=3, walk_length=9)
    assert profile.nodes.shape == profile.weights.shape == (len(graph), k)
    assert profile.weights.dtype == np.float32
    np.testing.assert_allclose(profile.weights.sum(axis=1), 1, rtol=1e-5)
    assert (np.diff(profile.weights, axis=1) <= 1e-7).all()
    np.testing.assert_array_equal(profile.nodes == -1, profile.weights == 0)
    assert ((profile.mass > 0) & (profile.mass <= 1 + 1e-9)).all()
    for row in profile.nodes:
        assert len(set(row[row >= 0])) == (row >= 0).sum()


@given(strategies.graphs(), st.integers(1, 6), continuations)
def test_push_holds_the_largest_exact_values(graph, k, continuation):
    profile = rooted_pagerank(graph, k=k, continuation=continuation, tolerance=1e-9)
    exact = reference.rooted_pagerank(graph, continuation)
    largest = -np.sort(-exact, axis=1)[:, :k]
    np.testing.assert_allclose(profile.mass, largest.sum(axis=1), atol=1e-8)
    padded = np.zeros((len(graph), k))
    padded[:, : largest.shape[1]] = largest / largest.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(profile.weights, padded, atol=1e-6)
    rows = np.arange(len(graph))[:, None]
    held = exact[rows, profile.nodes] * (profile.nodes >= 0)
    np.testing.assert_allclose(held, padded * largest.sum(axis=1, keepdims=True), atol=1e-7)


@given(strategies.graphs(max_nodes=12), st.integers(1, 5), continuations)
def test_the_operator_shares_ties_at_the_last_place(graph, k, continuation):
    profile = rooted_pagerank(graph, k=k, continuation=continuation, tolerance=1e-12)
    exact = reference.rooted_pagerank(graph, continuation)
    # Of differences near the definition's 1e-9 only the found values could decide.
    gaps = np.abs(exact[:, :, None] - exact[:, None, :])
    assume(not ((gaps > 1e-10) & (gaps < 1e-8)).any())
    exact[exact < 1e-10] = 0
    found = profile.operator()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), reference.shared_ties_operator(exact, k), atol=1e-6)


@pytest.mark.parametrize("continuation", [0.3, 0.5, 0.85])
def test_visits_are_shared_as_the_definition_says(continuation):
    # A long walk that returns to its root now and then: the shares of its visits tend to the exact values.
    graph = made.karate()
    found = rooted_pagerank(
        graph, k=34, continuation=continuation, method="walks", roots=[5], walks=400, walk_length=1000
    )
    exact = reference.some_rooted_pageranks(graph, np.array([5]), continuation)[0]
    shares = np.zeros(34)
    shares[found.nodes[0][found.nodes[0] >= 0]] = found.weights[0][found.nodes[0] >= 0]
    np.testing.assert_allclose(shares, exact, atol=0.005)


@pytest.mark.parametrize(("leaves", "expected"), [(7, 7), (8, 0)])
def test_a_tied_group_that_is_too_long_is_dropped(leaves, expected):
    star = Graph.from_edges([(0, leaf) for leaf in range(1, leaves + 1)])
    profile = rooted_pagerank(star, k=2, roots=[0])
    row = profile.operator().toarray()[0]
    assert (row[1:] > 0).sum() == expected
    np.testing.assert_allclose(row[0], profile.weights[0, 0] if expected else 1, rtol=1e-6)
    np.testing.assert_allclose(row.sum(), 1, rtol=1e-6)


@given(
    strategies.graphs_and_orders(max_nodes=12, features=True),
    st.integers(1, 8),
    continuations,
    st.sampled_from([0.1, 1e-3, 1e-6]),
)
def test_relabelling_permutes_weights_and_smoothed_features(case, k, continuation, tolerance):
    graph, order = case
    relabelled = strategies.permuted(graph, order)
    one, other = (
        rooted_pagerank(g, k=k, continuation=continuation, tolerance=tolerance) for g in (graph, relabelled)
    )
    np.testing.assert_allclose(other.weights, one.weights[order], atol=1e-6)
    np.testing.assert_allclose(other.mass, one.mass[order], atol=1e-9)
    smoothed = strategies.dense_features(one.smooth(graph.features))
    again = strategies.dense_features(other.smooth(relabelled.features))
    np.testing.assert_allclose(again, smoothed[order], atol=1e-6)


def mirror_gap(graph):
    """Largest difference of T F between mirrored nodes."""
    union, pairs = mirrored(graph)
    smoothed = strategies.dense_features(rooted_pagerank(union).smooth(union.features))
    return np.abs(smoothed[pairs[:, 0]] - smoothed[pairs[:, 1]]).max()


def test_mirrored_karate_members_get_equal_smoothed_features():
    features = np.random.default_rng(0).random((34, 5), dtype=np.float32)
    assert mirror_gap(made.karate().with_features(features)) < 1e-6


@pytest.mark.data
@needs_data
def test_mirrored_nodes_of_fb_686_get_equal_smoothed_features():
    assert mirror_gap(datasets.load("fb686", DATA).graph) < 1e-6


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(("name", "least"), [("cora", 0.998), ("citeseer", 0.996), ("pubmed", 0.999)])
def test_the_default_tolerance_finds_the_exact_top_20(name, least):
    graph = datasets.load(name, DATA).graph
    roots = np.random.default_rng(0).choice(len(graph), 200, replace=False)
    exact = reference.some_rooted_pageranks(graph, roots, 0.5)
    assert reference.overlap(rooted_pagerank(graph, roots=roots), exact) >= least


def test_smoothing_keeps_sparse_features_sparse_and_dense_ones_dense():
    profile = rooted_pagerank(made.karate(), k=5)
    dense = np.random.default_rng(0).integers(0, 2, (34, 4)).astype(np.float32)
    smoothed = profile.smooth(csr_array(dense))
    assert issparse(smoothed)
    assert smoothed.dtype == np.float32
    assert isinstance(profile.smooth(dense), np.ndarray)
    np.testing.assert_allclose(smoothed.toarray(), profile.smooth(dense), atol=1e-6)
    np.testing.assert_allclose(smoothed.toarray(), profile.operator().toarray() @ dense, atol=1e-6)


@methods
@pytest.mark.parametrize("weighted", [False, True])
def test_an_overlay_gives_what_the_whole_graph_gives(method, weighted):
    rng = np.random.default_rng(3)
    edges = np.unique(np.sort(rng.integers(0, 30, (60, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    base = Graph.from_edges(edges, num_nodes=30, weights=rng.random(len(edges)) + 0.5 if weighted else None)
    overlay = base.overlay(
        [30, 31, 32], [(30, 0), (30, 4), (31, 30), (2, 9)], weights=[1.0, 2.0, 0.5, 3.0] if weighted else None
    )
    for tolerance in (0.2, 1e-6):
        expected = rooted_pagerank(overlay.materialize(), k=6, method=method, tolerance=tolerance)
        assert_same(rooted_pagerank(overlay, k=6, method=method, tolerance=tolerance), expected)


@methods
def test_memory_mapped_arrays_give_what_arrays_give(method, tmp_path):
    graph = made.karate()
    mapped = []
    for name in ("indptr", "indices"):
        np.save(tmp_path / name, getattr(graph, name))
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    assert_same(
        rooted_pagerank(Graph(*mapped), k=4, method=method), rooted_pagerank(graph, k=4, method=method)
    )


@methods
def test_a_graph_without_edges_gives_every_node_itself(method):
    graph = Graph.from_edges(np.zeros((0, 2), dtype=int), num_nodes=3)
    profile = rooted_pagerank(graph, k=2, method=method)
    np.testing.assert_array_equal(profile.nodes, [[0, -1], [1, -1], [2, -1]])
    np.testing.assert_array_equal(profile.weights, [[1, 0]] * 3)
    np.testing.assert_array_equal(profile.mass, 1)
    np.testing.assert_array_equal(profile.operator().toarray(), np.eye(3))


@methods
def test_no_roots_give_no_rows(method):
    profile = rooted_pagerank(made.karate(), k=3, method=method, roots=[])
    assert profile.nodes.shape == (0, 3)
    assert profile.operator().shape == (0, 34)
    assert profile.smooth(np.ones((34, 2), dtype=np.float32)).shape == (0, 2)


@methods
def test_node_0_is_a_root_like_any_other(method):
    pair = rooted_pagerank(Graph.from_edges([(0, 1)]), k=2, method=method, walks=2000)
    np.testing.assert_allclose(pair.weights[0], pair.weights[1], atol=0.01)
    assert pair.nodes.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"continuation": 0}, "continuation must be strictly between 0 and 1; got 0"),
        ({"continuation": 1.0}, "continuation must be strictly between 0 and 1; got 1.0"),
        ({"continuation": float("nan")}, "continuation must be"),
        ({"continuation": "half"}, "continuation must be"),
        ({"k": 0}, "k must be a whole number >= 1; got 0"),
        ({"k": 2.5}, "k must be a whole number >= 1; got 2.5"),
        ({"k": True}, "k must be a whole number"),
        ({"method": "power"}, "method must be one of 'push', 'walks'; got 'power'"),
        ({"tolerance": 0}, "tolerance must be strictly between 0 and 1; got 0"),
        ({"tolerance": -1e-3}, "tolerance must be"),
        ({"tolerance": 1}, "tolerance must be"),
        ({"threshold": -0.1}, "^threshold must be between 0 and 1; got -0.1$"),
        ({"threshold": 1.5}, "^threshold must be between 0 and 1; got 1.5$"),
        ({"threshold": "some"}, "^threshold must be between 0 and 1; got 'some'$"),
        ({"roots": [34]}, r"roots must be from 0 to 33; got \[34\]"),
        ({"roots": [3, -1]}, r"roots must be from 0 to 33; got \[-1\]"),
        ({"roots": [0.5]}, "roots must be a list of node positions; got float64"),
        ({"roots": ["ann"]}, "pass graph.positions"),
        ({"roots": [True] * 34}, "roots must be a list of node positions; got bool"),
        ({"roots": 3}, "roots must be a list of node positions"),
        ({"method": "walks", "walks": 0}, "walks must be a whole number >= 1; got 0"),
        ({"method": "walks", "walk_length": 0}, "walk_length must be a whole number >= 1; got 0"),
        ({"method": "walks", "seed": -1}, "seed must be a whole number >= 0; got -1"),
        ({"method": "walks", "seed": None}, "seed must be a whole number >= 0; got None"),
        (
            {"method": "walks", "roots": [1], "keys": [1, 2]},
            r"keys must be integers \(1,\)",
        ),
        ({"method": "walks", "roots": [1], "keys": [0.5]}, "keys must be integers"),
        ({"threads": 0}, "threads must be a whole number >= 1"),
    ],
)
def test_bad_settings_are_refused_by_name_and_value(settings, message):
    with pytest.raises(ParameterError, match=message):
        rooted_pagerank(made.karate(), **settings)


@pytest.mark.compiled
def test_the_first_call_in_a_fresh_process_finds_compiled_kernels():
    rooted_pagerank(made.karate())
    code = (
        "from spinegraph import made, rooted_pagerank; from spinegraph.kernels.push import push_roots;"
        "rooted_pagerank(made.karate()); stats = push_roots.stats;"
        "print(len(stats.cache_hits), stats.cache_misses)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["1", "Counter()"]


def test_only_pushing_leaves_mass_unassigned():
    pushed = rooted_pagerank(made.karate(), tolerance=0.01)
    assert pushed.unassigned.shape == (34,)
    assert (pushed.unassigned <= 0.01).all()
    assert pushed.unassigned.max() > 0
    assert rooted_pagerank(made.karate(), method="walks").unassigned is None


def test_features_of_eight_bytes_are_smoothed_as_four():
    profile = rooted_pagerank(made.karate(), k=4)
    for features in (np.ones((34, 2)), csr_array(np.ones((34, 2)))):
        assert profile.smooth(features).dtype == np.float32


@methods
def test_what_is_not_said_is_the_documented_default(method):
    graph = made.karate()
    said = {"k": 20, "continuation": 0.5, "tolerance": 1e-4, "threshold": 0.0}
    said |= {"walks": 10, "walk_length": 40, "seed": 0, "roots": range(34), "keys": range(34), "threads": 1}
    assert_same(rooted_pagerank(graph, method=method), rooted_pagerank(graph, method=method, **said))
    assert_same(rooted_pagerank(graph), rooted_pagerank(graph, method="push"))
    others = {"walks": 11, "walk_length": 41, "seed": 1} if method == "walks" else {"tolerance": 1.1e-4}
    for name, value in {**others, "continuation": 0.51}.items():
        other = rooted_pagerank(graph, method=method, **{name: value})
        assert not np.array_equal(other.mass, rooted_pagerank(graph, method=method).mass), name


def test_roots_are_positions_of_eight_bytes():
    assert as_roots(None, 3).dtype == np.int64
    assert as_roots(np.array([1, 2], np.int8), 3).dtype == np.int64
    assert as_roots([], 3).dtype == np.int64
    assert as_roots(np.arange(6)[::2], 6).flags.c_contiguous
    with pytest.raises(ParameterError, match=r"^roots must be from 0 to 2; got \[3, -1, 5\]$"):
        as_roots([3, 0, -1, 5, 9], 3)
    with pytest.raises(
        ParameterError,
        match=r"^roots must be a list of node positions; got int64 of shape \(1, 1\)\. "
        r"For names, pass graph\.positions\(names\)\.$",
    ):
        as_roots([[1]], 3)


def test_every_array_of_a_profile_has_the_type_it_says():
    found = rooted_pagerank(Graph.from_edges([(0, leaf) for leaf in range(1, 5)]), k=2)
    assert found.nodes.dtype == found.tied_nodes.dtype == found.kept.dtype == np.int32
    assert found.tied_indptr.dtype == np.int64
    assert len(found.tied_nodes) > 0
    assert rooted_pagerank(made.karate(), k=34, roots=[0]).tied_nodes.dtype == np.int32


def test_the_operator_says_that_its_columns_ascend_and_they_do():
    operator = rooted_pagerank(made.karate(), k=5).operator()
    assert operator.has_sorted_indices
    for start, stop in zip(operator.indptr, operator.indptr[1:], strict=False):
        assert (np.diff(operator.indices[start:stop]) > 0).all()


@pytest.mark.parametrize(("threshold", "sweeps"), [(0.0, True), (1e-3, False), (1.0, False)])
def test_roots_that_a_threshold_bounds_are_pushed_without_sweeps(threshold, sweeps, monkeypatch):
    budgets, push = [], pagerank_module.push_roots

    def noting(arrays, n, roots, continuation, goal, threshold, budget, *rest):
        budgets.append(budget)
        push(arrays, n, roots, continuation, goal, threshold, budget, *rest)

    monkeypatch.setattr(pagerank_module, "push_roots", noting)
    rooted_pagerank(made.karate(), threshold=threshold, threads=1)
    assert [budget < NO_BUDGET for budget in budgets] == [sweeps]


def test_tables_for_weighted_steps_are_made_for_all_the_steps_there_are(monkeypatch):
    steps, original = [], pagerank_module.alias_tables
    monkeypatch.setattr(
        pagerank_module, "alias_tables", lambda *given: steps.append(given[1]) or original(*given)
    )
    rooted_pagerank(made.karate(), method="walks", roots=[1, 2, 3], walks=5, walk_length=7)
    assert steps == [3 * 5 * 7]


def test_keys_keep_all_their_digits():
    close = np.array([2**63 + 1, 2**63 + 3], dtype=np.uint64)
    found = rooted_pagerank(made.karate(), method="walks", roots=[0, 0], keys=close)
    assert not np.array_equal(found.weights[0], found.weights[1])


seeds = st.integers(0, 2**32 - 1)


def some(rows, columns, seed, filled=0.5):
    """A matrix with some entries zero."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < filled)
    return values.astype(np.float32)


@pytest.mark.parametrize("form", [np.asarray, csr_array, csc_array])
def test_any_form_and_type_comes_out_as_dense_float32(form):
    left, right = some(5, 4, 0).astype(float), np.asfortranarray(some(4, 3, 1).astype(float))
    for threads in (None, 1, 3):
        found = multiply(form(left), right, threads)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, left @ right, atol=1e-5)


def directions_of(whole, count, seed=0):
    whole = whole.astype(np.float32)
    return main_directions(lambda x: whole @ x, lambda x: whole.T @ x, whole.shape[1], count, seed)


@given(st.integers(1, 60), st.integers(1, 50), st.integers(1, 8), seeds)
def test_main_directions_are_the_singular_vectors(rows, columns, count, seed):
    rng = np.random.default_rng(seed)
    rank = min(rows, columns)
    left = np.linalg.qr(rng.standard_normal((rows, rank)))[0]
    right = np.linalg.qr(rng.standard_normal((columns, rank)))[0]
    found, values = directions_of((left * 0.6 ** np.arange(rank)) @ right.T, count, seed % 7)
    assert found.shape[1] == len(values) == min(count, rank)
    np.testing.assert_allclose(np.abs(found.T @ right[:, :count]), np.eye(found.shape[1]), atol=2e-2)
    np.testing.assert_allclose(values, 0.6 ** np.arange(len(values)), atol=1e-3)
    assert (np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0) > 0).all()


def test_close_directions_take_the_rounds_and_the_room_there_are():
    # Forty values fall off slowly: without rounds, or without spare directions, the fifth would be blurred.
    rng = np.random.default_rng(0)
    right = np.linalg.qr(rng.standard_normal((80, 40)))[0]
    whole = np.linalg.qr(rng.standard_normal((200, 40)))[0] * 0.93 ** np.arange(40) @ right.T
    found, _ = directions_of(whole, 5)
    assert (np.abs((found * right[:, :5]).sum(axis=0)) > 0.98).all()


def test_the_seed_settles_directions_that_nothing_else_does():
    first, again, other = (directions_of(np.eye(60), 2, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(again, first)
    assert np.abs(other - first).max() > 1e-3
    np.testing.assert_allclose(first.T @ first, np.eye(2), atol=1e-5)


def test_what_has_no_direction_gets_none():
    assert directions_of(np.zeros((3, 2)), 2)[0].shape == (2, 0)
    tiny, _ = directions_of(np.diag([3e-9, 2e-9, 1e-9]), 2)
    np.testing.assert_allclose(abs(tiny), np.eye(3)[:, :2], atol=1e-3)
    assert signed(np.zeros((0, 3))).shape == (0, 3)
    assert signed(np.zeros((3, 0))).dtype == np.float32


def test_signs_are_those_of_the_largest_entries():
    found = signed(np.array([[-2.0, 1.0, 0.5], [1.0, -3.0, 4.0]]))
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.tolist() == [[2, -1, 0.5], [-1, 3, 4]]
    assert signed(np.zeros((2, 1))).tolist() == [[0], [0]]


def test_numbers_are_rounded_before_they_are_multiplied():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((6, 50)), rng.standard_normal((50, 3))
    for form in (np.asarray, csr_array):
        found = multiply(form(left), right)
        np.testing.assert_array_equal(found, multiply(form(left), right.astype(np.float32)))
    np.testing.assert_array_equal(found, multiply(csr_array(left.astype(np.float32)), right))


def test_directions_are_drawn_by_seed_and_stage(monkeypatch):
    drawn, original = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: drawn.append(seed) or original(seed))
    directions_of(np.eye(3), 1, 5)
    assert drawn == [[5, 17]]
    assert orthonormal(np.eye(2, dtype=np.float32)).dtype == np.float32
