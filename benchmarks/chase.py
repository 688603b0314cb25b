"""The pinned opponent of the walk stage: a bare chase through random neighbours.

One walker per thread; int32 indices, a 64-bit LCG, multiply-shift instead of modulo, and no other work.
"""

import numba
import numpy as np

from spinegraph.kernels.runtime import run_blocks

_MULTIPLIER = np.uint64(6364136223846793005)
_INCREMENT = np.uint64(1442695040888963407)


@numba.njit(cache=True, nogil=True)
def _chase(indptr, indices, start, steps, seed):
    node = np.uint32(start)
    state = np.uint64(seed)
    for _ in range(steps):
        state = state * _MULTIPLIER + _INCREMENT
        first = np.uint64(indptr[node])
        degree = np.uint64(indptr[node + np.uint32(1)]) - first
        node = np.uint32(indices[first + (((state >> np.uint64(32)) * degree) >> np.uint64(32))])
    return node


def chase(graph, steps, threads):
    """Take ``steps`` steps in all, in walks of 100,000 from nodes that have neighbours."""
    starts = np.flatnonzero(graph.degrees)
    rng = np.random.default_rng(0)
    blocks = max(steps // 100_000, 1)
    chosen = rng.choice(starts, blocks)

    def task(start, stop):
        for block in range(start, stop):
            _chase(graph.indptr, graph.indices, chosen[block], 100_000, block)

    run_blocks(task, blocks, block=1, threads=threads)
    return blocks * 100_000
