import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
from spinegraph.errors import ParameterError
from spinegraph.structure.similarity import as_rows, pair_distances

# Rows in any order: only zeros at both rows' ends may be left out, whatever stands before them.
tables = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 5), st.integers(1, 8)),
    elements=st.one_of(st.just(0.0), st.floats(0, 1, width=32)),
)


@given(tables)
def test_dtw_is_the_textbook_recursions_on_rows_of_any_support(rows):
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    exact = [reference.dtw(rows[i], rows[j]) for i, j in pairs]
    np.testing.assert_allclose(pair_distances(rows, pairs), exact, rtol=1e-5, atol=1e-12)


@given(tables)
def test_long_tails_of_zeros_change_no_bit(rows):
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows))]
    one_zero, many = np.pad(rows, ((0, 0), (0, 1))), np.pad(rows, ((0, 0), (0, 30)))
    np.testing.assert_array_equal(pair_distances(one_zero, pairs), pair_distances(many, pairs))


@given(tables)
def test_euclidean_and_cosine_are_what_they_say(rows):
    pairs = np.stack([np.arange(len(rows)), np.arange(len(rows))[::-1]], axis=1)
    other = rows[::-1]
    euclidean = np.sqrt(((rows.astype(float) - other) ** 2).sum(axis=1))
    np.testing.assert_allclose(pair_distances(rows, pairs, "euclidean"), euclidean, rtol=1e-5, atol=1e-7)
    norms = np.linalg.norm(rows.astype(float), axis=1) * np.linalg.norm(other.astype(float), axis=1)
    usable = norms > 1e-12
    cosine = 1 - (rows.astype(float) * other).sum(axis=1)[usable] / norms[usable]
    np.testing.assert_allclose(pair_distances(rows, pairs, "cosine")[usable], cosine, atol=1e-6)


def test_a_row_of_zeros_is_at_cosine_distance_one():
    assert pair_distances([[0.0, 0.0], [1.0, 0.0]], [[0, 1]], "cosine").tolist() == [1.0]


@pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine"])
def test_no_pairs_have_no_distances(metric):
    for none in (np.zeros((0, 2)), []):
        found = pair_distances(np.ones((2, 3)), none, metric)
        assert found.shape == (0,)
        assert found.dtype == np.float32


@pytest.mark.compiled
@pytest.mark.parametrize("metric", ["dtw", "euclidean", "cosine"])
def test_threads_change_no_bit(metric):
    rng = np.random.default_rng(1)
    rows = -np.sort(-rng.dirichlet(np.full(20, 0.2), size=500), axis=1)
    pairs = rng.integers(0, 500, (60_000, 2))
    alone = pair_distances(rows, pairs, metric, threads=1)
    for threads in (2, 8):
        np.testing.assert_array_equal(pair_distances(rows, pairs, metric, threads=threads), alone)


def test_what_is_no_profile_is_refused():
    with pytest.raises(ParameterError, match=r"\(n, k\) with k >= 1; got shape \(2,\)"):
        pair_distances([1.0, 2.0], [[0, 0]])
    with pytest.raises(ParameterError, match=r"finite and >= 0; got values from -1\.0"):
        pair_distances([[-1.0]], [[0, 0]])
    with pytest.raises(ParameterError, match="finite and >= 0"):
        pair_distances([[np.nan]], [[0, 0]])
    with pytest.raises(ParameterError, match=r"^weights must be finite and >= 0; got values from 1.0 to inf"):
        pair_distances([[1.0, np.inf]], [[0, 0]])
    with pytest.raises(ParameterError, match=r"^pairs must be positions 0 to 0; got -1 to 0$"):
        pair_distances([[1.0]], [[0, -1]])
    with pytest.raises(ParameterError, match="positions 0 to 0; got 0 to 1"):
        pair_distances([[1.0]], [[0, 1]])
    with pytest.raises(ParameterError, match='one of "dtw", "euclidean", "cosine"; got \'l1\''):
        pair_distances([[1.0]], [[0, 0]], "l1")


def test_rows_are_read_only_and_of_four_bytes():
    given = np.array([[0.1, 0.2]])
    rows = as_rows(given, "rows")
    assert rows.dtype == np.float32
    assert not rows.flags.writeable
    assert given.flags.writeable
    for metric in ("dtw", "euclidean", "cosine"):
        assert pair_distances(given, [[0, 0]], metric).dtype == np.float32


def test_rows_are_compared_by_warping_unless_another_metric_is_asked_for():
    rows, pair = [[0.7, 0.3, 0.0], [0.4, 0.3, 0.3]], [[0, 1]]
    assert pair_distances(rows, pair) == pair_distances(rows, pair, "dtw")
    assert pair_distances(rows, pair) != pair_distances(rows, pair, "euclidean")


@pytest.mark.parametrize("pairs", [[[0, 0.9]], [0, 1], [[0, 1, 1]], [["0", "1"]], [[True, False]]])
def test_pairs_are_whole_numbers_two_by_two(pairs):
    with pytest.raises(ParameterError, match=r"^pairs must be whole numbers \(m, 2\); got \S+ \("):
        pair_distances(np.ones((2, 1)), pairs)
