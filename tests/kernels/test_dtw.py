import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from spinegraph.kernels.dtw import copy_owned, dtw_distances, owned_slots

values = st.one_of(st.just(0.0), st.floats(0, 1, width=32), st.floats(0, 2**-13, width=32))


@st.composite
def tables(draw, max_rows=5, max_k=7):
    """Float32 rows (n, k) that descend, many with zeros at their end."""
    k = draw(st.integers(1, max_k))
    rows = draw(st.lists(st.lists(values, min_size=k, max_size=k), min_size=1, max_size=max_rows))
    return -np.sort(-np.array(rows, dtype=np.float32), axis=1)


def every_pair(rows):
    left, right = (grid.ravel() for grid in np.indices((len(rows), len(rows))))
    return left, right


def dtw(rows, left, right, ends=None):
    ends = np.full(len(rows), rows.shape[1]) if ends is None else ends
    return dtw_distances(rows, rows, ends, ends, left, right)


@given(tables())
def test_distances_are_the_textbook_recursions_within_1e_5_relative(rows):
    left, right = every_pair(rows)
    exact = [reference.dtw(rows[i], rows[j]) for i, j in zip(left, right, strict=True)]
    np.testing.assert_allclose(dtw(rows, left, right), exact, rtol=1e-5, atol=1e-12)


@given(tables(), st.data())
def test_leaving_out_common_zeros_changes_no_bit(rows, data):
    left, right = every_pair(rows)
    ends = np.array([data.draw(st.integers((row > 0).sum(), rows.shape[1])) for row in rows])
    np.testing.assert_array_equal(dtw(rows, left, right, ends), dtw(rows, left, right))


@given(tables())
def test_distance_is_symmetric_to_the_bit_and_zero_on_itself(rows):
    left, right = every_pair(rows)
    distances = dtw(rows, left, right).reshape(len(rows), len(rows))
    np.testing.assert_array_equal(distances, distances.T)
    assert not np.diagonal(distances).any()


@pytest.mark.parametrize("pairs", [0, 1, 127, 128, 129, 257])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_any_number_of_pairs_fills_its_lanes(pairs, k):
    rng = np.random.default_rng(pairs)
    rows = -np.sort(-rng.dirichlet(np.full(k, 0.3), size=9).astype(np.float32), axis=1)
    rows[rows < 0.2] = 0  # pairs of many lengths, in any order
    left, right = rng.integers(0, 9, (2, pairs))
    exact = [reference.dtw(rows[i], rows[j]) for i, j in zip(left, right, strict=True)]
    np.testing.assert_allclose(dtw(rows, left, right, (rows > 0).sum(axis=1)), exact, rtol=1e-5, atol=1e-12)


def test_distances_agree_with_dtaidistance_on_random_rows():
    innerdistance = pytest.importorskip("dtaidistance.innerdistance")
    dtaidistance = pytest.importorskip("dtaidistance.dtw")

    class Ratio(innerdistance.CustomInnerDist):
        @staticmethod
        def inner_dist(x, y):
            return max(x, y) / min(x, y) - 1

        @staticmethod
        def result(x):
            return x

        @staticmethod
        def inner_val(x):
            return x

    rng = np.random.default_rng(0)
    rows = -np.sort(-rng.dirichlet(np.full(20, 0.2), size=8).astype(np.float32), axis=1)
    left, right = every_pair(rows)
    shifted = rows.astype(np.float64) + 1e-3
    theirs = [
        dtaidistance.distance(shifted[i], shifted[j], inner_dist=Ratio, use_c=False)
        for i, j in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(dtw(rows, left, right), theirs, rtol=1e-5, atol=1e-12)


@given(st.integers(1, 7), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_every_pair_has_one_owner_and_reaches_both_rows(n, c, seed):
    rng = np.random.default_rng(seed)
    table = np.full((n, c), np.iinfo(np.int32).max, dtype=np.int32)
    for node in range(n):
        others = np.delete(np.arange(n), node)
        named = np.sort(rng.permutation(others)[: rng.integers(0, c + 1)])
        table[node, : len(named)] = named
    slots = owned_slots(table, 0, n)
    pairs = [frozenset((int(slot) // c, int(table.ravel()[slot]))) for slot in slots]
    wanted = {frozenset((node, int(other))) for node in range(n) for other in table[node] if other < n}
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == wanted
    values = np.full((n, c), np.nan)
    values.reshape(-1)[slots] = [min(pair) * 10 + max(pair) for pair in pairs]
    copy_owned(table, values, 0, n)
    for node in range(n):
        for slot in range(c):
            other = int(table[node, slot])
            assert other >= n or values[node, slot] == min(node, other) * 10 + max(node, other)
