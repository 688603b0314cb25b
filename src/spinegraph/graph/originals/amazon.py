"""Amazon Photo from shchur/gnn-benchmark: products bought together, words of their reviews."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.originals.layout import Arrays, npy, pack, zip_member


def convert(path: Path) -> Arrays:
    """Convert ``amazon_electronics_photo.npz``; directions are dropped.

    Examples
    --------
    >>> convert(Path("amazon_electronics_photo.npz"))   # doctest: +SKIP
    {'edges': ...}
    """
    adjacency, content = _matrix(path, "adj").tocoo(), _matrix(path, "attr")
    labels = _array(path, "labels")
    n = adjacency.shape[0]
    if (
        adjacency.shape != (n, n)
        or content.shape[0] != n
        or labels.shape != (n,)
        or labels.dtype.kind not in "iu"
    ):
        raise GraphFormatError(
            f"{path}: adjacency {adjacency.shape}, attributes {content.shape} and labels {labels.shape} "
            "do not describe the same nodes"
        )
    return pack(np.column_stack(adjacency.coords), n, content, labels=labels.astype(np.int64))


def _array(path: Path, name: str) -> NDArray[Any]:
    """Read one array; members that hold pickled objects (names) are never touched."""
    return npy(zip_member(path, f"{name}.npy"), f"{path}: {name}")


def _matrix(path: Path, prefix: str) -> sp.csr_array:
    """Read a CSR matrix from its four arrays."""
    data, indices, indptr, shape = (
        _array(path, f"{prefix}_{part}") for part in ("data", "indices", "indptr", "shape")
    )
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (TypeError, ValueError) as fault:
        raise GraphFormatError(f"{path}: {prefix} is not a CSR matrix ({fault})") from fault
    return matrix
