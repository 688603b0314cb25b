"""Node names: kinds, lookups and the joins of feature rows by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from spinegraph import Graph
from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    ParameterError,
    SpineWarning,
    UnknownNodeError,
)
from spinegraph.graph.feature_files import align_features
from spinegraph.graph.names import NameIndex, as_names, in_order_of_appearance
from strategies import dense_features

some_names = st.one_of(
    st.lists(st.integers(-50, 50), min_size=1, unique=True),
    st.lists(st.text(max_size=3), min_size=1, unique=True),
    st.lists(st.one_of(st.integers(-9, 9), st.text(max_size=2)), min_size=1, unique=True),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, unique=True),
    st.integers(1, 20).map(lambda n: list(range(n))),
)


@given(some_names, st.lists(st.one_of(st.integers(-60, 60), st.text(max_size=3), st.floats(-9, 9))))
def test_lookups_agree_with_a_dictionary(names, wanted):
    expected = {name: place for place, name in enumerate(names)}
    index = NameIndex(as_names(names))
    assert index.find(wanted).tolist() == [expected.get(name, -1) for name in wanted]
    assert index.positions(names).tolist() == list(range(len(names)))


@given(some_names, st.data())
def test_names_are_numbered_in_order_of_appearance(names, data):
    listed = data.draw(st.lists(st.sampled_from(names)))
    found, places = in_order_of_appearance(listed)
    assert found.tolist() == list(dict.fromkeys(listed))
    assert [found.tolist()[place] for place in places] == listed


@pytest.mark.parametrize(
    ("given_names", "kind"),
    [
        ([2, 1], np.int64),
        (np.array([2, 1], dtype=np.uint8), np.int64),
        (np.array([2, 1], dtype=object), np.int64),
        ([np.int32(2), 1], np.int64),
        (np.array([2**63, 1], dtype=np.uint64), object),
        ([2**70, 1], object),
        (["a", "b"], object),
        (np.array(["a", "b"]), object),
        ([(0, 1), (1, 0)], object),
        ([True, "b"], object),
    ],
)
def test_whole_numbers_become_int64_and_all_else_objects(given_names, kind):
    assert as_names(given_names).dtype == kind


def test_repeated_names_are_listed():
    with pytest.raises(GraphFormatError, match="unique; given more than once: 'a', 'b'"):
        as_names(["a", "b", "a", "b", "c", "a"])
    with pytest.raises(GraphFormatError, match="unique; given more than once: 3, 7"):
        as_names([7, 3, 7, 3, 5])


@pytest.mark.parametrize(
    ("given_names", "message"),
    [
        (["a", None], r"names\[1\] is None; every node needs a name"),
        (["a", float("nan")], r"names\[1\] is nan"),
        ([["a"], ["b"]], "must be hashable"),
        (np.zeros((2, 2)), "must be one-dimensional"),
    ],
)
def test_bad_names_say_what_is_wrong(given_names, message):
    with pytest.raises(GraphFormatError, match=message):
        as_names(given_names)


def test_unhashable_names_are_refused_wherever_they_come():
    with pytest.raises(GraphFormatError, match="must be hashable"):
        NameIndex(as_names(["a"])).find([["a"]])
    with pytest.raises(GraphFormatError, match="must be hashable"):
        in_order_of_appearance([["a"]])


def test_unknown_names_are_listed_beside_some_known_ones():
    index = NameIndex(as_names(["1", "2", "3", "4"]))
    with pytest.raises(UnknownNodeError) as caught:
        index.positions([1, 2, "3"])
    assert (
        str(caught.value) == "2 of 3 names are not in the graph: 1, 2; its names look like '1', '2', '3', ..."
    )
    assert isinstance(caught.value, KeyError)


def test_one_name_in_place_of_a_list_is_refused():
    with pytest.raises(ParameterError, match=r"pass a list of names, such as \['ann'\]"):
        NameIndex(as_names(["ann"])).positions("ann")


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.booleans(), st.data())
def test_feature_rows_come_in_the_order_of_the_nodes(row_names, sparse, data):
    names = data.draw(st.permutations(row_names))
    matrix = np.array([[name, 1] for name in row_names], dtype=np.float32)
    found = align_features(np.array(names), row_names, csr_array(matrix) if sparse else matrix)
    assert isinstance(found, np.ndarray) != sparse
    assert dense_features(found)[:, 0].tolist() == names


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_nodes_without_a_row_get_zeros_when_asked(kind):
    names = np.array(["a", "b", "c"], dtype=object)
    found = align_features(names, ["c", "a"], kind([[1, 2], [3, 4]]), missing="zero")
    assert dense_features(found).tolist() == [[3, 4], [0, 0], [1, 2]]


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_no_rows_at_all_are_all_zeros_when_asked(kind):
    found = align_features(np.arange(2), [], kind(np.zeros((0, 3))), missing="zero")
    assert dense_features(found).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_rows_that_match_no_node_are_left_out_with_a_warning_when_asked():
    with pytest.warns(SpineWarning, match="1 of 2 feature rows name no node: 'z'; such rows are left out"):
        found = align_features(as_names(["a"]), ["a", "z"], [[1], [2]], missing="zero")
    assert found.tolist() == [[1]]


@pytest.mark.parametrize(
    ("row_names", "message"),
    [
        (["a"], "1 of 2 nodes have no feature row: 'b'; pass missing='zero'"),
        (["a", "b", "z"], "1 of 3 feature rows name no node: 'z'; pass missing='zero'"),
        (["a", "y"], "no feature row: 'b'; 1 of 2 feature rows name no node: 'y'; pass missing='zero'"),
        (["a", "b", "a"], "feature rows: node names must be unique; given more than once: 'a'"),
    ],
)
def test_feature_rows_that_do_not_match_are_listed(row_names, message):
    with pytest.raises(MissingFeaturesError, match=message):
        align_features(as_names(["a", "b"]), row_names, np.zeros((len(row_names), 2)))


def test_as_many_names_as_rows_are_needed():
    with pytest.raises(MissingFeaturesError, match=r"got \(3, 2\) and 2 names"):
        align_features(as_names(["a", "b"]), ["a", "b"], np.zeros((3, 2)))


def test_missing_is_one_of_two_words():
    with pytest.raises(ParameterError, match="missing must be one of 'error', 'zero'; got 'mean'"):
        align_features(as_names(["a"]), ["a"], np.zeros((1, 1)), missing="mean")


def test_a_mask_in_place_of_names_is_refused():
    graph = Graph.from_edges([(0, 1), (1, 2)])
    for call in (graph.positions, graph.subgraph, NameIndex(graph.names).find):
        with pytest.raises(ParameterError, match=r"not a mask of True and False; pass names\[mask\]"):
            call(graph.degrees > 1)
