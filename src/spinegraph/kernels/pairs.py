"""Unordered pairs in a table of candidates: which slot computes a pair, and which copies it."""

import numpy as np

from spinegraph.kernels.compiled import compiled


@compiled
def _slot_of(row, node):
    """Place of ``node`` in an ascending row, or -1."""
    slot = np.searchsorted(row, node)
    return slot if slot < len(row) and row[slot] == node else -1


@compiled
def owned_slots(candidates, start, stop):
    """Flat slots of rows ``start`` to ``stop`` that compute their pair, int64 (m,).

    Rows of ``candidates`` (n, c) ascend, with values of n and more for "none" at their end. A pair that is in
    both nodes' rows belongs to the smaller node's.
    """
    n, c = candidates.shape
    slots = np.empty((stop - start) * c, np.int64)
    found = 0
    for node in range(start, stop):
        for slot in range(c):
            other = candidates[node, slot]
            if other >= n:
                break
            if node < other or _slot_of(candidates[other], node) < 0:
                slots[found] = node * c + slot
                found += 1
    return slots[:found]


@compiled
def copy_owned(candidates, values, start, stop):
    """Fill ``values`` (n, c) of rows ``start`` to ``stop`` where another row owns the pair, in place."""
    c = candidates.shape[1]
    for node in range(start, stop):
        for slot in range(c):
            other = candidates[node, slot]
            if other >= node:
                break
            mirror = _slot_of(candidates[other], node)
            if mirror >= 0:
                values[node, slot] = values[other, mirror]
