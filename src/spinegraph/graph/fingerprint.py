"""A fingerprint of a graph's content: equal data, equal text."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import issparse

from spinegraph.graph.graph import Graph

_PIECE = 2**20  # entries at a time: a memory-mapped array is never whole in memory


def fingerprint(graph: Graph) -> str:
    """Return 32 hexadecimal digits that depend on links, weights, names, features and their column names.

    A store has its fingerprint in its header.
    """
    return computed_fingerprint(graph) if graph.known_fingerprint is None else graph.known_fingerprint


def computed_fingerprint(graph: Graph) -> str:
    """Return the fingerprint, read from all the data."""
    digest = blake2b(digest_size=16)
    features: Any = graph.features
    parts = [graph.indptr, graph.indices, graph.weights]
    if graph.outward is not None:
        parts.append(graph.outward)
    if issparse(features):
        parts += [features.indptr, features.indices, features.data]
    else:
        parts.append(features)
    for part in parts:
        empty = np.zeros(0) if part is None else part
        digest.update(f"{None if part is None else part.shape}|".encode())
        for piece in _pieces(empty):
            # Index arrays may be of 32 or 64 bits and mean the same.
            whole = piece.astype(np.int64, copy=False) if piece.dtype.kind == "i" else piece
            digest.update(np.ascontiguousarray(whole).data)
    digest.update(f"{None if features is None else features.shape}|{graph.feature_names}|".encode(*_ANY_TEXT))
    for number, piece in enumerate(_pieces(graph.names)):
        if graph.names.dtype == object:
            text = "\0".join(map(_text, piece.tolist()))
            digest.update(("\0" * (number > 0) + text).encode(*_ANY_TEXT))
        else:
            digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()


_ANY_TEXT = ("utf-8", "surrogatepass")


def _pieces(array: Any) -> Iterator[Any]:
    """Yield an array in pieces of about a million entries."""
    rows = max(_PIECE // max(int(np.prod(array.shape[1:])), 1), 1)
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def _text(name: Any) -> str:
    """Return a name as text, the same for NumPy's text and integers as for Python's."""
    if isinstance(name, str):
        return repr(str(name))
    if isinstance(name, tuple):
        return f"({', '.join(map(_text, name))})"
    return repr(name.item() if isinstance(name, np.generic) else name)
