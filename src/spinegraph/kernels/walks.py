"""Random walks: visit counts of walks that return to their root, and plain walks.

A rooted walk is a chain of excursions from its root. All excursions of a few roots advance together, one step
at a time: the steps of one round wait for memory at once, not one after the other.
"""

import numba
import numpy as np

from spinegraph.kernels.counter import count_visits, new_counter
from spinegraph.kernels.rng import GAMMA, mix
from spinegraph.kernels.rows import row_of
from spinegraph.kernels.steps import step

# Steps planned together: enough to hide the memory's latency, few enough to stay in the nearest cache.
_TOGETHER = 1600


@numba.njit(cache=True, nogil=True)
def walk_roots(adjacency, sums, roots, starts, walks, walk_length, threshold, top, tied_nodes):
    """Count visits of rooted walks and write the k most visited of each root into its row of ``top``.

    ``starts`` (r,) are the roots' random streams; a walk goes on when 32 random bits are below ``threshold``.
    ``top`` and ``tied_nodes`` are as in ``keep_top``; returns how many tied nodes were written.
    """
    most = walks * (walk_length - 1)
    group = max(1, _TOGETHER // max(most, 1))
    bits = np.empty(group * most + 1, dtype=np.uint32)
    fresh = np.empty(group * most + 1, dtype=np.uint8)
    visits = np.empty(group * most + 1, dtype=adjacency.indices.dtype)
    heads = np.empty(group * most + 1, dtype=np.int64)
    ends = np.empty(group, dtype=np.int64)
    counter = new_counter(walks * walk_length, visits)
    used = 0
    for first in range(0, roots.size, group):
        last = min(first + group, roots.size)
        waiting = 0
        steps = 0
        for row in range(first, last):
            start, stop, _ = row_of(adjacency, roots[row])
            # A root without neighbours never leaves; no other node without neighbours can be reached.
            if stop > start:
                steps, waiting = _plan(
                    roots[row], starts[row], walks, walk_length, threshold,
                    bits, fresh, visits, heads, steps, waiting,
                )  # fmt: skip
            ends[row - first] = steps
        fresh[steps] = 1
        _advance(adjacency, sums, bits, fresh, visits, heads, waiting)
        steps = 0
        for row in range(first, last):
            seen = visits[steps : ends[row - first]]
            used = count_visits(counter, roots[row], walks * walk_length, seen, row, top, tied_nodes, used)
            steps = ends[row - first]
    return used


@numba.njit(cache=True, nogil=True)
def _plan(root, stream, walks, walk_length, threshold, bits, fresh, visits, heads, steps, waiting):
    """Draw where one root's walks go on and where they return; (steps, waiting) with this root's added.

    Only steps that go on are written: their random bits, and whether they leave the root (``fresh``, listed
    in ``heads``) or follow the step before them.
    """
    for _ in range(walks):
        leaves = np.int64(1)
        for _ in range(walk_length - 1):
            stream += GAMMA
            draw = mix(stream)
            goes = np.int64((draw >> np.uint64(32)) < threshold)
            bits[steps] = np.uint32(draw & np.uint64(0xFFFFFFFF))
            fresh[steps] = leaves
            visits[steps] = root
            heads[waiting] = steps
            waiting += goes & leaves
            steps += goes
            leaves = 1 - goes
    return steps, waiting


@numba.njit(cache=True, nogil=True)
def _advance(adjacency, sums, bits, fresh, visits, heads, waiting):
    """Take every planned step; ``visits`` then holds where each arrives."""
    while waiting > 0:
        ahead = np.int64(0)
        for i in range(waiting):
            at = heads[i]
            node = step(adjacency, sums, visits[at], bits[at])
            visits[at] = node
            follows = 1 - np.int64(fresh[at + 1])
            visits[at + follows] = node
            heads[ahead] = at + 1
            ahead += follows
        waiting = ahead


@numba.njit(cache=True, nogil=True)
def plain_walk_rows(adjacency, sums, roots, starts, walks, out):
    """Write walks without return into ``out`` (r * walks, length); -1 after a node without neighbours."""
    length = out.shape[1]
    for row in range(roots.size):
        start, stop, _ = row_of(adjacency, roots[row])
        for walk in range(walks):
            out[row * walks + walk, 0] = roots[row]
        if start == stop:
            out[row * walks : (row + 1) * walks, 1:] = -1
            continue
        stream = starts[row]
        for position in range(1, length):
            for walk in range(row * walks, (row + 1) * walks):
                stream += GAMMA
                out[walk, position] = step(
                    adjacency, sums, out[walk, position - 1], np.uint32(mix(stream) >> np.uint64(32))
                )
