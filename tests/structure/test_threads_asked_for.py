"""The number of threads that was asked for is the number that every step of a stage gets."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

from spinegraph import Graph, made
from spinegraph.kernels import runtime as kernel_threads
from spinegraph.structure import pagerank as pagerank_module
from spinegraph.structure.columns import COLUMNS, structural_columns
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import similar_nodes
from spinegraph.structure.smoothing import Smoother, multiply

KARATE = made.karate()
WEIGHTED = Graph.from_edges([(0, 1), (1, 2), (2, 0)], weights=[1, 2, 3])
ROWS = np.full((4, 2), 0.5, np.float32)
OTHERS = [[1, 2], [0, 3], [0, -1], [1, -1]]
HALF = csr_array(np.full((4, 4), 0.25, np.float32))


STAGES = {
    "push": lambda threads: rooted_pagerank(KARATE, k=3, threads=threads),
    "walks": lambda threads: rooted_pagerank(KARATE, k=3, method="walks", threads=threads),
    "weighted walks": lambda threads: rooted_pagerank(WEIGHTED, k=3, method="walks", threads=threads),
    "operator": lambda threads: profile().operator(threads),
    "columns": lambda threads: structural_columns(KARATE, threads=threads),
    "columns of neighbours": lambda threads: structural_columns(
        KARATE, names=("overlap_10",), threads=threads
    ),
    "columns of a profile": lambda threads: structural_columns(
        KARATE, profile=profile(), names=COLUMNS, threads=threads
    ),
    "similar": lambda threads: similar_nodes(ROWS, OTHERS, threads=threads),
    "multiply": lambda threads: multiply(HALF, ROWS, threads),
    "smoothed": lambda threads: Smoother.of(KARATE, 0.5, threads=threads).smooth(
        np.eye(34, dtype=np.float32)
    ),
    "rows": lambda threads: Smoother.of(KARATE, 0.5, threads=threads).rows(np.arange(3)),
}


@cache
def profile():  # not when tests are collected: it compiles
    return rooted_pagerank(KARATE, k=10)


@pytest.mark.parametrize("stage", STAGES)
def test_every_step_gets_the_threads_that_were_asked_for(stage, monkeypatch):
    profile()  # asks for all threads
    asked, original = [], kernel_threads.thread_count

    def noting(threads):
        asked.append(threads)
        return original(threads)

    monkeypatch.setattr(kernel_threads, "thread_count", noting)
    monkeypatch.setattr(pagerank_module, "thread_count", noting)
    for threads in (1, 3, None):
        asked.clear()
        STAGES[stage](threads)
        assert asked
        assert set(asked) == {threads}
