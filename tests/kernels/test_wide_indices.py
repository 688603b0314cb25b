"""Graphs of 2**31 nodes and more have int64 indices; the uncompiled run reads such arrays, small ones."""

from dataclasses import dataclass

import numba
import numpy as np
import pytest

from spinegraph import made
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.walks import plain_walks
from spinegraph.structure.pagerank import rooted_pagerank

pytestmark = pytest.mark.skipif(
    not numba.config.DISABLE_JIT, reason="half a minute to compile; the uncompiled run covers it"
)


@dataclass
class Wide:
    """The karate club with int64 indices."""

    def adjacency(self) -> Adjacency:
        graph = made.karate()
        return Adjacency.of(graph.indptr, graph.indices.astype(np.int64))


@pytest.mark.parametrize("method", ["push", "walks"])
def test_wide_indices_give_the_same_profile(method):
    wide = rooted_pagerank(Wide(), k=5, method=method, roots=[0, 9], walks=3)
    narrow = rooted_pagerank(made.karate(), k=5, method=method, roots=[0, 9], walks=3)
    assert wide.nodes.dtype == wide.tied_nodes.dtype == np.int64
    np.testing.assert_array_equal(wide.nodes, narrow.nodes)
    np.testing.assert_array_equal(wide.weights, narrow.weights)


def test_wide_indices_give_the_same_plain_walks():
    wide = plain_walks(Wide().adjacency(), np.array([0, 33]), 2, 5, seed=1)
    assert wide.dtype == np.int64
    np.testing.assert_array_equal(
        wide, plain_walks(made.karate().adjacency(), np.array([0, 33]), 2, 5, seed=1)
    )
