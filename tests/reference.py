"""Slow, exact oracles: what the fast code is tested against."""

import numpy as np


def dtw(row_a: np.ndarray, row_b: np.ndarray) -> float:
    """Dynamic time warping by the textbook recursion, float64; local cost max/min - 1 of values plus 1e-3."""
    a, b = np.asarray(row_a, dtype=np.float64) + 1e-3, np.asarray(row_b, dtype=np.float64) + 1e-3
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0
    for i in range(len(a)):
        for j in range(len(b)):
            cost = max(a[i], b[j]) / min(a[i], b[j]) - 1
            table[i + 1, j + 1] = cost + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return float(table[-1, -1])
