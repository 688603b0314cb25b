import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinegraph.errors import ParameterError
from spinegraph.structure import similarity as candidates_module
from spinegraph.structure.similarity import candidates, nearest_degree

degree_lists = st.lists(st.integers(0, 5), min_size=1, max_size=40)
methods = pytest.mark.parametrize("method", ["degree", "profile", "all"])


def profiles(degrees):
    """Some profile for each degree: as flat as the degree is large."""
    places = np.arange(8)
    rows = np.exp(-places[None, :] / (1 + np.array(degrees)[:, None]))
    return rows / rows.sum(axis=1, keepdims=True)


@methods
@given(degrees=degree_lists)
def test_no_node_is_its_own_candidate_and_none_is_named_twice(method, degrees):
    found = candidates(degrees, profiles(degrees), method)
    for node, row in enumerate(found):
        named = row[row >= 0].tolist()
        assert node not in named
        assert len(set(named)) == len(named)


@methods
@given(degrees=st.lists(st.integers(0, 5), min_size=2, max_size=40))
def test_every_node_is_a_candidate_of_some_node(method, degrees):
    found = candidates(degrees, profiles(degrees), method)
    assert set(range(len(degrees))) <= set(found.ravel().tolist())


@given(degree_lists, st.data())
def test_candidates_are_the_nodes_within_log2_n_places_in_the_order_of_degree(degrees, data):
    n = len(degrees)
    order = data.draw(st.permutations(range(n)))
    ranking = sorted(range(n), key=lambda node: (degrees[node], order[node]))
    side = math.ceil(math.log2(n))
    found = nearest_degree(degrees, order=order)
    assert found.shape == (n, 2 * side)
    for place, node in enumerate(ranking):
        near = ranking[max(0, place - side) : place] + ranking[place + 1 : place + 1 + side]
        assert found[node][found[node] >= 0].tolist() == near


def test_equal_degrees_are_ordered_by_profile():
    # 16 nodes of one degree and two kinds of profile, mixed: a node's nearest are of its own kind.
    kind = np.arange(16) % 2
    weights = np.where(kind[:, None] == 0, [[0.9, 0.1]], [[0.5, 0.5]])
    found = candidates(np.full(16, 3), weights, "profile")
    side = found.shape[1] // 2
    beside = found[:, side - 1 : side + 1]  # the two next to the node
    same = (kind[beside] == kind[:, None]) & (beside >= 0)
    assert same.any(axis=1).all()


def test_several_networks_share_their_candidates():
    found = candidates(np.concatenate([[1, 2, 3, 4], [1, 2, 3, 4]]), method="degree")
    assert all((row[row >= 0] >= 4).any() for row in found[:4])


def test_one_node_has_no_candidates():
    none = nearest_degree([])
    assert none.shape == (0, 0)
    assert none.dtype == np.int32
    assert candidates([0], [[1.0]], "profile").shape == (1, 0)
    assert candidates([0], method="all").shape == (1, 0)


def test_what_the_method_needs_is_asked_for():
    with pytest.raises(
        ParameterError, match=r'^method "profile" orders .*: pass weights, or method="degree"$'
    ):
        candidates([1, 1])
    with pytest.raises(ParameterError, match=r"n = 2 as degrees; got \(3, 1\)"):
        candidates([1, 1], np.ones((3, 1)))
    with pytest.raises(ParameterError, match='one of "degree", "profile", "all"; got \'some\''):
        candidates([1, 1], method="some")
    with pytest.raises(
        ParameterError, match=r'^method "all" compares .* 20001 nodes, at .*: use "profile" or "degree"$'
    ):
        candidates(np.ones(20_001), method="all")


@methods
def test_positions_are_of_four_bytes(method):
    assert candidates(np.ones(100), np.ones((100, 1)), method).dtype == np.int32


def test_a_small_network_may_have_all_and_one_node_more_may_not(monkeypatch):
    monkeypatch.setattr(candidates_module, "MAX_NODES_FOR_ALL", 5)
    assert candidates(np.ones(5), method="all").shape == (5, 4)
    with pytest.raises(ParameterError, match="got 6 nodes, at most 5 are allowed"):
        candidates(np.ones(6), method="all")
