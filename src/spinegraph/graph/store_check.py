"""A store read through once: every checksum, and every rule that kernels rely on."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.store_files import digest_of, pieces
from spinegraph.graph.store_header import Header
from spinegraph.graph.store_names import StoredNames

_ROWS, _NAMES = 2**18, 2**16  # looked at together
Arrays = dict[str, NDArray[Any]]


def check_content(folder: Path, header: Header, arrays: Arrays) -> None:
    """Refuse files that fail their checksum, or whose content is not that of a graph.

    Whether every edge stands in both of its rows is left to the checksum: it would take a sort.
    """
    for name, entry in header.files.items():
        if digest_of(folder / name) != entry.digest:
            raise GraphFormatError(
                f"{folder / name}: its checksum is not the header's: it was damaged or replaced; "
                "copy the whole store again, or build it again"
            )
    n = header.num_nodes
    for fault in _faults(arrays, n, header.num_features or 0):
        raise GraphFormatError(f"{folder}: {fault}; build the store again")


def _faults(arrays: Arrays, n: int, f: int) -> Iterator[str]:
    indptr, indices = arrays["indptr.bin"], arrays["indices.bin"]
    if not _rises(indptr, len(indices)):
        yield f"indptr.bin must rise from 0 to {len(indices)}"
        return
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        lengths = np.diff(indptr[start : stop + 1])
        row = indices[indptr[start] : indptr[stop]]
        rows = np.repeat(np.arange(start, stop), lengths)
        if len(row) and (row.min() < 0 or row.max() >= n):
            yield f"indices.bin must lie in 0 .. {n - 1}"
        if (row == rows).any() or ((rows[1:] == rows[:-1]) & (row[1:] <= row[:-1])).any():
            yield "rows of indices.bin must ascend, without the node itself"
    for name, low in (("weights.bin", 0.0), ("features.bin", -np.inf), ("features_data.bin", -np.inf)):
        if any(
            not (np.isfinite(piece) & (piece > low)).all() for piece in pieces(arrays.get(name, np.zeros(0)))
        ):
            yield f"{name} must be finite numbers{' above 0' * (low == 0)}"
    if "features_indptr.bin" in arrays:
        yield from _sparse_faults(arrays, f)
    yield from _name_faults(arrays, n)


def _sparse_faults(arrays: Arrays, f: int) -> Iterator[str]:
    indptr, indices = arrays["features_indptr.bin"], arrays["features_indices.bin"]
    if not _rises(indptr, len(indices)):
        yield f"features_indptr.bin must rise from 0 to {len(indices)}"
    if any(piece.min() < 0 or piece.max() >= f for piece in pieces(indices)):
        yield f"features_indices.bin must lie in 0 .. {f - 1}"


def _name_faults(arrays: Arrays, n: int) -> Iterator[str]:
    if "names_ends.bin" in arrays:
        ends = arrays["names_ends.bin"]
        if ends[0] < 0 or ends[-1] != len(arrays["names_text.bin"]) or not _ascends(ends):
            yield "names_ends.bin must rise to the length of names_text.bin"
            return
    order = arrays.get("names_order.bin")
    if order is not None:
        seen = np.zeros(n, dtype=bool)
        for piece in pieces(order):
            if piece.min() < 0 or piece.max() >= n:
                yield f"names_order.bin must lie in 0 .. {n - 1}"
                return
            seen[piece] = True
        if not seen.all():
            yield "names_order.bin must hold every position once"
            return
    if not _names_ascend(arrays, n):
        yield "names must be distinct, sound text or whole numbers, and ascend in the order that is given"


def _names_ascend(arrays: Arrays, n: int) -> bool:
    """Say whether names rise from one to the next: then none is there twice, and searches find them."""
    order, last = arrays.get("names_order.bin"), None
    is_text = "names_ends.bin" in arrays
    names: Any = StoredNames(arrays["names_text.bin"], arrays["names_ends.bin"]) if is_text else None
    for start in range(0, n, _NAMES):
        ranks = slice(start, min(start + _NAMES, n))
        places = ranks if order is None else order[ranks]
        try:
            found = (names if is_text else arrays["names.bin"])[places].tolist()
        except UnicodeDecodeError:
            return False
        listed = found if last is None else [last, *found]
        if not all(one < other for one, other in pairwise(listed)):
            return False
        last = found[-1]
    return True


def _rises(indptr: NDArray[Any], last: int) -> bool:
    return bool(indptr[0] == 0 and indptr[-1] == last) and _ascends(indptr)


def _ascends(values: NDArray[Any]) -> bool:
    starts = range(0, len(values), _ROWS)
    return all((np.diff(values[start : start + _ROWS + 1]) >= 0).all() for start in starts)
