import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from spinegraph.kernels.push import ROOM, Top, keep_top
from spinegraph.kernels.walks import count_visits, new_counter
from spinegraph.structure.pagerank import RootedPageRank


def kept(values: np.ndarray, k: int) -> RootedPageRank:
    """Profile of one root, node 0, from all values (n,)."""
    top, tied_nodes = Top.empty(1, k, np.int32), np.empty((1, ROOM * k), dtype=np.int32)
    nodes = np.flatnonzero(values > 0)
    keep_top(nodes, values[nodes].astype(np.float64), len(nodes), 0, top, tied_nodes)
    return profile(top, tied_nodes, len(values))


def counted(root: int, seen: list[int], positions: int, k: int, n: int) -> RootedPageRank:
    """Profile of one root from the nodes its walks arrived at."""
    top, tied_nodes = Top.empty(1, k, np.int32), np.empty((1, ROOM * k), dtype=np.int32)
    visits = np.array(seen, dtype=np.int32)
    with np.errstate(over="ignore"):
        counter = new_counter(positions, visits)
        for _ in range(2):  # the second time, the table must be as empty as the first
            count_visits(counter, root, positions, visits, 0, top, tied_nodes)
    return profile(top, tied_nodes, n)


def profile(top, tied_nodes, n):
    tied = tied_nodes[0, : top.tied[0]]
    return RootedPageRank(top.nodes, top.weights, top.mass, n, top.kept, np.array([0, len(tied)]), tied)


rows = st.lists(
    st.sampled_from([0.0, 1e-30, 1e-12, 0.01, 0.01 + 3e-10, 0.02, 0.3, 0.5]), min_size=1, max_size=40
)


@given(rows, st.integers(1, 6))
def test_the_largest_values_are_kept_and_ties_shared(values, k):
    values = np.array([0.25, *values])
    found = kept(values, k)
    largest = -np.sort(-values)[:k]
    np.testing.assert_allclose(found.mass, largest.sum())
    np.testing.assert_allclose(found.weights[0, : len(largest)], largest / largest.sum(), rtol=1e-6)
    expected = reference.shared_ties_operator(values[None, :], k)
    np.testing.assert_allclose(found.operator().toarray(), expected, atol=1e-6)


@given(st.integers(1, 400), st.integers(1, 30), st.integers(0, 1000))
def test_many_values_over_many_octaves_are_ordered(count, k, seed):
    values = np.exp(-np.random.default_rng(seed).uniform(0, 60, count))
    found = kept(values, k)
    np.testing.assert_array_equal(found.nodes[0, :count], np.argsort(-values)[:k])


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(1, 5), st.integers(1, 9))
def test_visits_are_counted_and_their_ties_shared(seen, k, stays):
    positions = len(seen) + stays
    share = np.bincount([*seen, *[0] * stays], minlength=13) / positions
    found = counted(0, seen, positions, k, 13)
    largest = -np.sort(-share)[:k]
    np.testing.assert_allclose(found.mass, largest.sum())
    np.testing.assert_allclose(found.weights[0], largest / largest.sum(), rtol=1e-6)
    np.testing.assert_allclose(
        found.operator().toarray(), reference.shared_ties_operator(share[None, :], k), atol=1e-6
    )


@pytest.mark.parametrize("found", [kept(np.full(9, 0.1), 2), counted(0, [*range(1, 9)], 9, 2, 9)])
def test_a_row_whose_every_place_ties_in_too_large_a_group_is_the_root_alone(found):
    np.testing.assert_array_equal(found.operator().toarray(), [[1, 0, 0, 0, 0, 0, 0, 0, 0]])
    np.testing.assert_allclose(found.weights, [[0.5, 0.5]])
