"""Dynamic time warping of plain vectors, read as sequences."""

import numpy as np

from spinegraph.kernels.compiled import compiled


@compiled
def vector_dtw(vectors, pairs, found):
    """Write the DTW distance of each pair of rows, local cost |a - b|, into ``found`` (m,)."""
    length = vectors.shape[1]
    above, here = np.empty(length + 1), np.empty(length + 1)
    for number in range(len(pairs)):
        first, second = vectors[pairs[number, 0]], vectors[pairs[number, 1]]
        above[:] = np.inf
        above[0] = 0.0
        for i in range(length):
            here[0] = np.inf
            for j in range(length):
                here[j + 1] = abs(first[i] - second[j]) + min(above[j], above[j + 1], here[j])
            above, here = here, above
        found[number] = above[length]
