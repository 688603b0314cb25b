import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinegraph import Graph
from spinegraph.kernels.walks import alias_tables, stream_starts, take_steps

weights = st.lists(st.floats(0.125, 1e6, width=32), min_size=1, max_size=30)


def star(leaf_weights: list[float] | None, leaves: int | None = None) -> Graph:
    """Node 0 and its leaves 1, 2, ..."""
    ends = np.arange(1, (leaves or len(leaf_weights)) + 1)
    return Graph.from_edges(np.stack([np.zeros_like(ends), ends], axis=1), weights=leaf_weights)


def steps_from_hub(graph: Graph, count: int, visits: int = 10**9) -> np.ndarray:
    """Where ``count`` steps arrive, with tables made for that many ``visits``."""
    adjacency = graph.adjacency()
    tables, _ = alias_tables(adjacency, visits, 1)
    nodes = np.zeros(count, dtype=np.int32)
    bits = (stream_starts(0, 9, np.arange(count)) >> np.uint64(32)).astype(np.uint32)
    with np.errstate(over="ignore"):
        take_steps(adjacency, tables, nodes, bits, count)
    return nodes


@given(weights)
def test_alias_tables_hold_the_weights_exactly(leaf_weights):
    adjacency = star(leaf_weights).adjacency()
    tables, _ = alias_tables(adjacency, 10**9, 1)
    degree = len(leaf_weights)
    chance = np.zeros(degree)
    for edge, entry in enumerate(tables[1][:degree].tolist()):
        other, threshold = entry >> 32, (entry & 0xFFFFFFFF) / 2**32
        chance[edge] += threshold / degree
        chance[other] += (1 - threshold) / degree
    expected = np.array(leaf_weights, dtype=np.float32).astype(float)
    np.testing.assert_allclose(chance, expected / expected.sum(), atol=1e-9)


@pytest.mark.parametrize("leaf_weights", [[1, 2, 3, 4, 5, 6, 7, 8], [100, 1, 1, 1, 1, 1, 1, 1], None])
def test_steps_follow_the_edge_weights(leaf_weights):
    counts = np.bincount(steps_from_hub(star(leaf_weights, leaves=8), 8000))[1:]
    expected = np.array(leaf_weights or [1] * 8) / np.sum(leaf_weights or [1] * 8) * 8000
    # Chi-square with 7 degrees of freedom: 24.3 is passed once in a thousand.
    assert ((counts - expected) ** 2 / expected).sum() < 24.3


def test_rows_filled_in_on_the_way_give_the_same_steps_as_all_at_once():
    graph = star([3, 1, 2, 8, 5, 1, 1, 9])
    tables, threads = alias_tables(graph.adjacency(), 1, 2)
    assert threads == 1
    assert not tables[0].any()
    assert alias_tables(graph.adjacency(), 10**9, 2)[0][0].all()
    np.testing.assert_array_equal(steps_from_hub(graph, 50, visits=1), steps_from_hub(graph, 50))
