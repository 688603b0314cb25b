"""How a kernel finds a node's row of neighbours.

Kernels take an Adjacency as a plain tuple, so that no class of ours is part of their cache, and take it apart
before their loops: reading an array out of a tuple counts references, with atomic instructions that cost more
than a step of a walk.
"""

import numpy as np

from spinegraph.kernels.compiled import compiled


@compiled
def row_of(indptr, rows, patch_indptr, node):
    """Return the bounds of a node's row and whether they point into the patch: (start, stop, patched)."""
    if rows.size > 0:
        row = rows[node]
        if row >= 0:
            return patch_indptr[row], patch_indptr[row + 1], True
    return indptr[node], indptr[node + 1], False


@compiled
def row_strength(weights, start, stop):
    """Add up the weights of a row."""
    strength = 0.0
    for edge in range(start, stop):
        strength += np.float64(weights[edge])
    return strength
