"""Node names: kinds, lookups and the joins of feature rows by name."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from spinegraph import SPINE, Graph, made
from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    ParameterError,
    SpineWarning,
    UnknownNodeError,
)
from spinegraph.graph.edge_files import is_integer
from spinegraph.graph.feature_files import FeatureFile, align_features, row_names
from spinegraph.graph.names import NameIndex, as_array, as_names, in_order_of_appearance, suggestion
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
    assert str(caught.value) == "2 of 3 names are not in the graph: 1, 2; names look like '1', '2', '3', ..."
    assert isinstance(caught.value, KeyError)


def test_one_name_in_place_of_a_list_is_refused():
    with pytest.raises(ParameterError, match=r"pass a list of names, such as \['ann'\]"):
        NameIndex(as_names(["ann"])).positions("ann")


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.booleans(), st.data())
def test_feature_rows_come_in_the_order_of_the_nodes(row_names, sparse, data):
    names = data.draw(st.permutations(row_names))
    matrix = np.array([[name, 1] for name in row_names], dtype=np.float32)
    found = align_features(np.array(names), np.array(row_names), csr_array(matrix) if sparse else matrix)
    assert isinstance(found, np.ndarray) != sparse
    assert dense_features(found)[:, 0].tolist() == names


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_nodes_without_a_row_get_zeros_with_a_warning(kind):
    names = np.array(["a", "b", "c"], dtype=object)
    with pytest.warns(SpineWarning, match="1 of 3 nodes have no feature row and get zeros: 'b'"):
        found = align_features(names, as_names(["c", "a"]), kind([[1, 2], [3, 4]]))
    assert dense_features(found).tolist() == [[3, 4], [0, 0], [1, 2]]


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_no_rows_at_all_are_all_zeros(kind):
    with pytest.warns(SpineWarning, match="2 of 2 nodes have no feature row"):
        found = align_features(np.arange(2), np.arange(0), kind(np.zeros((0, 3))))
    assert dense_features(found).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_rows_that_match_no_node_are_left_out_with_a_warning():
    with pytest.warns(SpineWarning, match="1 of 2 feature rows match no node and are left out: 'z'"):
        found = align_features(as_names(["a"]), as_names(["a", "z"]), np.array([[1], [2]]))
    assert found.tolist() == [[1]]


def test_feature_rows_of_one_name_are_refused():
    with pytest.raises(
        MissingFeaturesError, match="rows: node names must be unique; given more than once: 'a'"
    ):
        row_names(FeatureFile("rows", np.zeros((3, 2)), as_array(["a", "b", "a"])), as_names(["a", "b"]))


def test_as_many_names_as_rows_are_needed():
    with pytest.raises(MissingFeaturesError, match=r"got \(3, 2\) and 2 names"):
        row_names(FeatureFile("rows", np.zeros((3, 2)), as_names(["a", "b"])), as_names(["a", "b"]))


def test_a_mask_in_place_of_names_is_refused():
    graph = Graph.from_edges([(0, 1), (1, 2)])
    for call in (graph.positions, graph.subgraph, NameIndex(graph.names).find):
        with pytest.raises(ParameterError, match=r"got a mask of True and False; pass names\[mask\]"):
            call(graph.degrees > 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0001", "did you mean '00001', "),
        ("00001x", "did you mean '00001', "),
        ("an", "did you mean 'Anna', 'Ann Lee'?"),
        ("zz", "names look like '00001', '00002', '00003', ..."),
    ],
)
def test_names_that_a_text_may_mean(text, words):
    names = [f"{number:05}" for number in range(1, 12)] + ["Ann Lee", "Anna"]
    assert suggestion(text, names).startswith(words)


def test_an_unknown_name_is_refused_as_quickly_where_names_are_long():
    rng = np.random.default_rng(0)
    names = ["".join(letters) for letters in rng.choice(list("ACGT"), (5000, 190)).tolist()]
    graph, began = Graph.from_edges(list(pairwise(names))), time.process_time()
    with pytest.raises(UnknownNodeError, match="names look like"):
        graph.positions(["".join(rng.choice(list("ACGT"), 190).tolist())])
    with pytest.raises(UnknownNodeError, match=f"did you mean '{names[-1]}'"):
        graph.subgraph(names[-30:]).positions([f"{names[-1][:-1]}?"])
    assert time.process_time() - began < 1  # seconds, for a loop over names


def test_one_unknown_node_is_named_with_those_that_are_close():
    graph = made.barbell(4, bridge=1).relabel([f"{number:05}" for number in range(9)])
    model = SPINE(dim=8).fit(graph)
    for ask in (graph.neighbors, model.similar, model.embeddings_.position, model.roles().__getitem__):
        with pytest.raises(UnknownNodeError, match=r"^no (node|vector for) '0004'.*; did you mean '00004', "):
            ask("0004")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", True),
        ("-7", True),
        ("0", True),
        ("-0", False),
        ("007", False),
        ("+7", False),
        (str(2**63), False),
    ],
)
def test_a_name_is_an_integer_only_in_its_usual_form(text, expected):
    assert is_integer(text) is expected
