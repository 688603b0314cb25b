"""The merging rules, against a dictionary that applies them one listing at a time."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinegraph import Graph
from spinegraph.errors import DirectedInputWarning, EdgeCleaningWarning, GraphFormatError, ParameterError
from spinegraph.graph.edges import EdgeReport, clean_edges
from strategies import dense_adjacency

COMBINE = {"sum": sum, "mean": lambda pair: sum(pair) / 2, "max": max}


@st.composite
def listings(draw, weighted):
    """Any pairs of 1 to 6 nodes: self-loops, repeats, zero weights; weights are exact in float32."""
    n = draw(st.integers(1, 6))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=25))
    weights = [draw(st.integers(0, 4)) / 4 for _ in edges] if weighted else None
    return n, np.array(edges, dtype=np.int64).reshape(-1, 2), weights


def merged(edges, weights, reciprocal):
    """Weights by unordered pair, from sums by direction."""
    directions = defaultdict(Fraction)
    for place, (source, target) in enumerate(edges.tolist()):
        if source != target and (weights is None or weights[place] > 0):
            directions[source, target] += 1 if weights is None else Fraction(weights[place])
    result = {}
    for (source, target), there in directions.items():
        back = directions.get((target, source))
        if weights is None:
            result[frozenset((source, target))] = 1
        elif back is None:
            result[frozenset((source, target))] = there
        elif reciprocal == "error" and there != back:
            return None
        else:
            result[frozenset((source, target))] = COMBINE.get(reciprocal, max)([there, back])
    return result


@pytest.mark.filterwarnings("ignore::spinegraph.errors.EdgeCleaningWarning")
@pytest.mark.parametrize("reciprocal", ["error", "sum", "mean", "max"])
@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data())
def test_listings_merge_by_the_rules(data, weighted, reciprocal):
    n, edges, weights = data.draw(listings(weighted))
    expected = merged(edges, weights, reciprocal)
    if expected is None:
        with pytest.raises(
            GraphFormatError, match="pass reciprocal='sum', reciprocal='mean' or reciprocal='max'"
        ):
            Graph.from_edges(edges, num_nodes=n, weights=weights, reciprocal=reciprocal)
        return
    graph = Graph.from_edges(edges, num_nodes=n, weights=weights, reciprocal=reciprocal)
    matrix = np.zeros((n, n))
    for pair, weight in expected.items():
        source, target = pair
        matrix[source, target] = matrix[target, source] = weight
    np.testing.assert_array_equal(dense_adjacency(graph), matrix)
    assert (graph.weights is None) == (weights is None)
    Graph(graph.indptr, graph.indices, graph.weights)  # the constructor checks every rule


@pytest.mark.filterwarnings("ignore::spinegraph.errors.EdgeCleaningWarning")
@given(listings(weighted=True))
def test_the_report_accounts_for_every_listing(case):
    n, edges, weights = case
    report = Graph.from_edges(edges, num_nodes=n, weights=weights, reciprocal="max").report
    parts = report.edges + report.self_loops + report.zero_weights + report.repeated + report.reciprocal
    assert report.listed == len(edges) == parts
    assert report.self_loops == int((edges[:, 0] == edges[:, 1]).sum())


@given(st.data())
def test_the_order_of_listings_does_not_matter(data):
    n, edges, _ = data.draw(listings(weighted=False))
    order = data.draw(st.permutations(range(len(edges))))
    first, report = clean_edges(edges[:, 0], edges[:, 1], np.arange(n))
    second, same = clean_edges(edges[order][:, 0], edges[order][:, 1], np.arange(n))
    assert report == same
    np.testing.assert_array_equal(first.indices, second.indices)


def test_unweighted_stays_unweighted_however_often_an_edge_is_listed():
    graph = Graph.from_edges([(0, 1), (0, 1), (1, 0), (1, 2)])
    assert graph.weights is None
    assert graph.num_edges == 2
    assert graph.report == EdgeReport(listed=4, edges=2, repeated=1, reciprocal=1)


def test_weights_in_one_direction_add():
    assert Graph.from_edges([(0, 1), (0, 1)], weights=[1, 2.5]).weights.tolist() == [3.5, 3.5]


def test_equal_weights_in_both_directions_count_once():
    assert Graph.from_edges([(0, 1), (1, 0)], weights=[2, 2]).weights.tolist() == [2, 2]


def test_sums_that_differ_by_rounding_alone_are_equal():
    edges = [(0, 1)] * 3 + [(1, 0)] * 3
    graph = Graph.from_edges(edges, weights=[0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    assert graph.weights == pytest.approx([0.6, 0.6])


def test_unequal_weights_in_both_directions_are_an_error_that_names_a_pair_and_both_values():
    edges = [("ann", "bob"), ("bob", "ann"), ("bob", "cy")]
    with pytest.raises(GraphFormatError) as caught:
        Graph.from_edges(edges, weights=[1, 2, 3])
    message = str(caught.value)
    assert "edges are listed in both directions with different weights" in message
    assert "('ann', 'bob') with 1 and ('bob', 'ann') with 2" in message
    assert "pass reciprocal='sum', reciprocal='mean' or reciprocal='max'" in message


@pytest.mark.parametrize(("reciprocal", "weight"), [("sum", 5), ("mean", 2.5), ("max", 3)])
def test_unequal_weights_combine_as_told(reciprocal, weight):
    graph = Graph.from_edges([(0, 1), (1, 0)], weights=[2, 3], reciprocal=reciprocal)
    assert graph.weights.tolist() == [weight, weight]


def test_self_loops_and_zero_weights_are_dropped_counted_and_warned_about():
    with pytest.warns(
        EdgeCleaningWarning, match="1 self-loop and 2 zero-weight listings dropped of 4 listed"
    ):
        graph = Graph.from_edges([(0, 0), (0, 1), (1, 2), (2, 1)], weights=[1, 1, 0, 0])
    assert graph.report == EdgeReport(listed=4, edges=1, self_loops=1, zero_weights=2)
    assert graph.degrees.tolist() == [1, 1, 0]


def test_a_weight_too_small_for_float32_counts_as_zero():
    with pytest.warns(EdgeCleaningWarning, match="1 zero-weight listing"):
        assert Graph.from_edges([(0, 1)], weights=[1e-60]).num_edges == 0


def test_a_weight_too_large_for_float32_is_refused():
    with pytest.raises(GraphFormatError, match=r"edge \(0, 1\) is 6e\+38, more than float32 can hold"):
        Graph.from_edges([(0, 1), (0, 1)], weights=[3e38, 3e38])


def test_directed_input_is_made_symmetric_and_says_so():
    matrix = np.zeros((4, 4))
    matrix[[0, 1, 2, 3], [1, 2, 3, 2]] = 1
    with pytest.warns(
        DirectedInputWarning, match="2 directed edges made symmetric; directed=True keeps directions"
    ):
        graph = Graph.from_scipy(matrix)
    assert graph.degrees.tolist() == [1, 2, 2, 1]
    assert graph.report.one_way == 2


def test_directed_input_with_every_way_back_needs_no_warning():
    assert Graph.from_edges([(0, 1), (1, 0)], directed=True).report.one_way == 0


def test_harmless_duplicates_give_no_warning():
    Graph.from_edges([(0, 1), (0, 1), (1, 0)])  # warnings are errors here


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (EdgeReport(listed=1, edges=1), "1 listed edge gave 1 edge."),
        (
            EdgeReport(listed=9, edges=2, self_loops=1, zero_weights=2, repeated=3, reciprocal=1, one_way=1),
            "9 listed edges gave 2 edges: 1 self-loop and 2 zero-weight listings dropped, "
            "3 repeats and 1 reciprocal listing merged, 1 one-way edge made symmetric.",
        ),
    ],
)
def test_the_report_is_one_sentence(report, sentence):
    assert str(report) == sentence


def test_an_unknown_way_to_combine_is_refused():
    with pytest.raises(
        ParameterError, match="reciprocal must be one of 'error', 'sum', 'mean', 'max'; got 'min'"
    ):
        Graph.from_edges([(0, 1)], reciprocal="min")


def test_a_warning_points_at_the_line_that_built_the_graph():
    with pytest.warns(EdgeCleaningWarning) as caught:
        Graph.from_edges([(0, 0), (0, 1)])
    assert caught[0].filename == __file__


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64, np.int64])
def test_any_integer_dtype_will_do(dtype):
    graph = Graph.from_edges(np.array([[0, 1], [100, 1]], dtype=dtype))
    assert graph.neighbors(1).tolist() == [0, 100]
