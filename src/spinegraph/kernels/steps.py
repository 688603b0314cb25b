"""One step of a walk: a neighbour in proportion to edge weight, from 32 random bits.

Without weights that is one multiplication. With weights it is a binary search in the row's running sums.
Those are filled in when a row is first visited, so that a walk from ten roots never reads the whole graph.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.threads import run_blocks


class RunningSums(NamedTuple):
    """Sums of weights along each row; all arrays are empty for a graph without weights.

    Attributes
    ----------
    filled : uint8 array (n,)
        1 where the node's row is filled in.
    base, patch : float32 arrays
        Beside ``weights`` and ``patch_weights`` of the adjacency.
    """

    filled: NDArray[np.uint8]
    base: NDArray[np.float32]
    patch: NDArray[np.float32]


def running_sums(adjacency: Adjacency, visits: int, threads: int | None) -> tuple[RunningSums, int | None]:
    """Make the sums for about ``visits`` steps, and say on how many threads they may be taken.

    Many visits: every row is filled in at once, then only read. Few: rows are filled in as one thread
    comes by, and memory is claimed only there.
    """
    sums = RunningSums(
        np.zeros(adjacency.num_nodes if adjacency.has_weights else 0, dtype=np.uint8),
        np.empty(adjacency.weights.size, dtype=np.float32),
        np.empty(adjacency.patch_weights.size, dtype=np.float32),
    )
    if not adjacency.has_weights:
        return sums, threads
    if visits < adjacency.indices.size:
        return sums, 1
    run_blocks(
        lambda first, last: fill_rows(adjacency, sums, first, last),
        adjacency.num_nodes,
        block=1 << 14,
        threads=threads,
    )
    return sums, threads


@numba.njit(cache=True, nogil=True)
def fill_row(adjacency, sums, node):
    """Write the running sums of one row."""
    start, stop, patched = row_of(adjacency, node)
    weights = adjacency.patch_weights if patched else adjacency.weights
    target = sums.patch if patched else sums.base
    total = 0.0
    for edge in range(start, stop):
        total += weights[edge]
        target[edge] = total
    sums.filled[node] = 1


@numba.njit(cache=True, nogil=True)
def fill_rows(adjacency, sums, first, last):
    """Write the running sums of the rows ``first .. last - 1``."""
    for node in range(first, last):
        fill_row(adjacency, sums, node)


@numba.njit(cache=True, nogil=True)
def step(adjacency, sums, node, bits):
    """Return the neighbour of ``node`` that 32 random bits choose; the node must have one."""
    start, stop, patched = row_of(adjacency, node)
    if sums.filled.size == 0:
        edge = start + np.int64((np.uint64(bits) * np.uint64(stop - start)) >> np.uint64(32))
    else:
        if sums.filled[node] == 0:
            fill_row(adjacency, sums, node)
        edge = _search(sums.patch if patched else sums.base, start, stop, bits)
    return adjacency.patch_indices[edge] if patched else adjacency.indices[edge]


@numba.njit(cache=True, nogil=True)
def _search(sums, start, stop, bits):
    """First edge of the row whose running sum exceeds its share of the total."""
    target = np.float64(sums[stop - 1]) * (np.float64(bits) * 2.0**-32)
    last = stop - 1
    while start < last:
        middle = (start + last) >> 1
        if sums[middle] > target:
            last = middle
        else:
            start = middle + 1
    return start
