"""The pinned opponent of the DTW kernel: plain float64 dynamic time warping that reuses its two rows."""

import numba
import numpy as np

from spinegraph.kernels.runtime import run_blocks


@numba.njit(cache=True, nogil=True)
def _plain(rows, pairs, distances):
    k = rows.shape[1]
    previous, current = np.empty(k + 1), np.empty(k + 1)
    for pair in range(len(pairs)):
        a, b = rows[pairs[pair, 0]], rows[pairs[pair, 1]]
        previous[:] = np.inf
        previous[0] = 0.0
        for i in range(k):
            current[0] = np.inf
            x = a[i] + 1e-3
            for j in range(k):
                y = b[j] + 1e-3
                cost = max(x, y) / min(x, y) - 1.0
                current[j + 1] = cost + min(previous[j], previous[j + 1], current[j])
            previous, current = current, previous
        distances[pair] = previous[k]


def plain_dtw(rows, pairs, threads):
    """DTW distances float64 (m,) of ``pairs`` (m, 2) of float64 ``rows`` (n, k)."""
    distances = np.empty(len(pairs))
    run_blocks(
        lambda start, stop: _plain(rows, pairs[start:stop], distances[start:stop]),
        len(pairs),
        block=16_384,
        threads=threads,
    )
    return distances
