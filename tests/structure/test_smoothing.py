"""T F kept as two factors: products in either order, and its main directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, issparse

from spinegraph.structure import pagerank as smoothing
from spinegraph.structure.pagerank import Smoothed, multiply, principal_directions, signed

seeds = st.integers(0, 2**32 - 1)


def some(rows, columns, seed, filled=0.5):
    """A matrix with some entries zero."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < filled)
    return values.astype(np.float32)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.booleans(), seeds)
def test_products_are_those_of_the_dense_matrix(roots, nodes, width, sparse, seed):
    operator, features = some(roots, nodes, seed), some(nodes, 4, seed + 1)
    smoothed = Smoothed(csr_array(operator), csr_array(features) if sparse else features)
    whole = operator.astype(float) @ features
    assert smoothed.shape == (roots, 4)
    assert issparse(smoothed.matrix()) == sparse
    for found, expected in (
        (smoothed.times(right := some(4, width, seed + 2, 1)), whole @ right),
        (smoothed.transposed_times(left := some(roots, width, seed + 3, 1)), whole.T @ left),
    ):
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("roots", "width", "is_smoothed"),
    [
        # T has 8 entries a row, F 10: 80 sums a root for T F, then 10 (dense) times the width.
        # The other way: F times the width once, 1000 in all, then 8 times the width a root.
        (1, 8, True),
        (2, 8, True),
        (50, 8, True),
        (99, 8, False),
        (100, 8, False),
        (1, 1, True),
        (20, 1, False),
    ],
)
def test_the_cheaper_order_is_taken(roots, width, is_smoothed, monkeypatch):
    operator = np.zeros((roots, 100), np.float32)
    operator[:, :8] = 0.125
    features = some(100, 10, 0, filled=1)
    asked = []
    original = smoothing.multiply
    monkeypatch.setattr(
        smoothing, "multiply", lambda left, *rest: asked.append(left.shape) or original(left, *rest)
    )
    right = some(10, width, 1, 1)
    for given_features in (features, csr_array(features)):
        asked.clear()
        found = Smoothed(csr_array(operator), given_features).times(right)
        np.testing.assert_allclose(found, operator @ features @ right, atol=1e-4)
        assert asked == ([(roots, 10)] if is_smoothed else [(100, 10), (roots, 100)])


def test_sparse_features_count_by_their_entries():
    # One entry a row: T F costs 8 a root, and T F itself has at most 8 entries a row.
    operator = csr_array(np.full((3000, 8), 0.125, np.float32))
    operator.resize(3000, 1000)
    features = csr_array((np.ones(1000, np.float32), np.zeros(1000, int), np.arange(1001)), shape=(1000, 500))
    assert Smoothed(operator, features)._is_cheaper_smoothed(64)
    assert not Smoothed(operator, features.toarray())._is_cheaper_smoothed(64)


@pytest.mark.parametrize("form", [np.asarray, csr_array, csc_array])
def test_any_form_and_type_comes_out_as_dense_float32(form):
    left, right = some(5, 4, 0).astype(float), np.asfortranarray(some(4, 3, 1).astype(float))
    for threads in (None, 1, 3):
        found = multiply(form(left), right, threads)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, left @ right, atol=1e-5)


@given(st.integers(1, 60), st.integers(1, 50), st.integers(1, 8), seeds)
def test_main_directions_are_the_singular_vectors(rows, columns, count, seed):
    rng = np.random.default_rng(seed)
    rank = min(rows, columns)
    left = np.linalg.qr(rng.standard_normal((rows, rank)))[0]
    right = np.linalg.qr(rng.standard_normal((columns, rank)))[0]
    whole = (left * 0.6 ** np.arange(rank)) @ right.T
    smoothed = Smoothed(csr_array(np.eye(rows, dtype=np.float32)), whole.astype(np.float32))
    found = principal_directions(smoothed, count, seed=seed % 7)
    assert found.shape[1] == min(count, rank)
    np.testing.assert_allclose(np.abs(found.T @ right[:, :count]), np.eye(found.shape[1]), atol=2e-2)
    assert (np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0) > 0).all()


def test_close_directions_take_the_rounds_and_the_room_there_are():
    # Forty values fall off slowly: without rounds, or without spare directions, the fifth would be blurred.
    rng = np.random.default_rng(0)
    right = np.linalg.qr(rng.standard_normal((80, 40)))[0]
    whole = np.linalg.qr(rng.standard_normal((200, 40)))[0] * 0.93 ** np.arange(40) @ right.T
    smoothed = Smoothed(csr_array(np.eye(200, dtype=np.float32)), whole.astype(np.float32))
    found = principal_directions(smoothed, 5, seed=0)
    assert (np.abs((found * right[:, :5]).sum(axis=0)) > 0.99).all()


def test_the_seed_settles_directions_that_nothing_else_does():
    smoothed = Smoothed(csr_array(np.eye(60, dtype=np.float32)), np.eye(60, dtype=np.float32))
    first, again, other = (principal_directions(smoothed, 2, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(again, first)
    assert np.abs(other - first).max() > 1e-3
    np.testing.assert_allclose(first.T @ first, np.eye(2), atol=1e-5)


def test_what_has_no_direction_gets_none():
    empty = Smoothed(csr_array(np.eye(3, dtype=np.float32)), np.zeros((3, 2), np.float32))
    assert principal_directions(empty, 2, seed=0).shape == (2, 0)
    tiny = Smoothed(csr_array(np.eye(3, dtype=np.float32)), np.diag([3e-9, 2e-9, 1e-9]).astype(np.float32))
    np.testing.assert_allclose(abs(principal_directions(tiny, 2, seed=0)), np.eye(3)[:, :2], atol=1e-3)
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
    principal_directions(Smoothed(csr_array(np.eye(3, dtype=np.float32)), np.eye(3, dtype=np.float32)), 1, 5)
    assert drawn == [[5, 17]]
    assert smoothing._orthonormal(np.eye(2, dtype=np.float32)).dtype == np.float32
