"""Walks whose step depends on the node before the last, as node2vec takes them."""

import numpy as np

from spinegraph.kernels.compiled import compiled


@compiled
def second_order_walks(indptr, indices, roots, walk_length, back, away, rng):
    """Walk from each root, int32 (r, walk_length); -1 after a root without neighbours.

    Having come from t to v, a neighbour x of v is taken with weight ``back`` if it is t, 1 if it is a
    neighbour of t, and ``away`` otherwise: drawn evenly and refused in proportion, so no table is built.
    """
    most = max(back, max(away, 1.0))
    walks = np.full((len(roots), walk_length), -1, dtype=np.int32)
    for number in range(len(roots)):
        node = roots[number]
        before = -1
        walks[number, 0] = node
        start, stop = indptr[node], indptr[node + 1]
        for place in range(1, walk_length):
            if start == stop:
                break
            while True:
                drawn = indices[start + int(rng.random() * (stop - start))]
                if before < 0 or rng.random() * most < _weight(indptr, indices, before, drawn, back, away):
                    break
            before, node = node, drawn
            walks[number, place] = node
            start, stop = indptr[node], indptr[node + 1]
    return walks


@compiled
def _weight(indptr, indices, before, drawn, back, away):
    if drawn == before:
        return back
    low, high = indptr[before], indptr[before + 1]
    place = low + np.searchsorted(indices[low:high], drawn)
    return 1.0 if place < high and indices[place] == drawn else away
