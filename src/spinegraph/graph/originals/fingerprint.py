"""A fingerprint of a network's content that no order of nodes or columns changes.

Checksums of the publishers' files are not all known; what the converted networks must hold is. So a
download is held against this fingerprint too, whatever way the publisher packs it.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 2


def fingerprint(arrays: Mapping[str, NDArray[Any]], parts: tuple[str, ...] = ("features", "labels")) -> str:
    """Return 16 hexadecimal digits for edges and, as asked, where features are not 0, and labels.

    Each node starts from its label and the popularity of the features it has, takes in its neighbours'
    numbers twice, and the sorted numbers are hashed.

    Examples
    --------
    >>> edges = np.array([[0, 1], [1, 2]])
    >>> one = fingerprint({"edges": edges, "num_nodes": np.array(3)})
    >>> one == fingerprint({"edges": 2 - edges, "num_nodes": np.array(3)})
    True
    """
    n, edges = int(arrays["num_nodes"]), np.asarray(arrays["edges"], dtype=np.int64)
    numbers = np.ones(n, dtype=np.uint64)
    if "features" in parts and "feat_indices" in arrays:
        popularity = np.bincount(arrays["feat_indices"])
        own = _mixed(popularity[arrays["feat_indices"]])
        numbers += _sums(own, np.asarray(arrays["feat_indptr"], dtype=np.int64))
    if "labels" in parts and "labels" in arrays:
        labels = arrays["labels"].astype(np.int64)
        numbers += _mixed((labels if labels.ndim == 1 else labels.sum(axis=1)) + 2)
    ends, others = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.argsort(ends, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])
    for _ in range(_ROUNDS):
        numbers = _mixed(numbers * np.uint64(3) + _sums(_mixed(numbers)[others[order]], indptr))
    digest = hashlib.sha256(f"{n} {len(edges)} ".encode())
    digest.update(np.sort(numbers).astype("<u8").tobytes())
    return digest.hexdigest()[:16]


def _mixed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits (the finishing step of splitmix64)."""
    mixed = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _sums(values: NDArray[np.uint64], indptr: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Add up the values of each row, modulo 2**64."""
    total: NDArray[np.uint64] = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return np.asarray(total[indptr[1:]] - total[indptr[:-1]])
