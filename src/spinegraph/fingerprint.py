"""A fingerprint of a graph's content: equal data, equal text."""

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import issparse


def fingerprint(graph: Any) -> str:
    """Return 32 hexadecimal digits that depend on links, weights, names, features and their column names.

    >>> from spinegraph import Graph
    >>> fingerprint(Graph.from_edges([(0, 1)])) == fingerprint(Graph.from_edges([(1, 0), (0, 1)]))
    True
    """
    digest = blake2b(digest_size=16)
    features = graph.features
    parts = [graph.indptr, graph.indices, graph.weights]
    if issparse(features):
        parts += [features.indptr, features.indices, features.data]
    else:
        parts.append(features)
    for part in parts:
        # Index arrays may be of 32 or 64 bits and mean the same.
        array = np.zeros(0) if part is None else part.astype(np.int64) if part.dtype.kind == "i" else part
        digest.update(f"{None if part is None else array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).data)
    digest.update(f"{None if features is None else features.shape}|{graph.feature_names}|".encode(*_ANY_TEXT))
    if graph.names.dtype == object:
        digest.update("\0".join(map(_text, graph.names.tolist())).encode(*_ANY_TEXT))
    else:
        digest.update(np.ascontiguousarray(graph.names).data)
    return digest.hexdigest()


_ANY_TEXT = ("utf-8", "surrogatepass")


def _text(name: Any) -> str:
    """Write a name down, the same for NumPy's kinds of text and integers as for Python's."""
    if isinstance(name, str):
        return repr(str(name))
    if isinstance(name, tuple):
        return f"({', '.join(map(_text, name))})"
    return repr(name.item() if isinstance(name, np.generic) else name)
