"""A fingerprint of a graph's content: equal data, equal text."""

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import issparse


def fingerprint(graph: Any) -> str:
    """Return 32 hexadecimal digits that depend on links, weights, features and names.

    >>> from spinegraph import Graph
    >>> fingerprint(Graph.from_edges([(0, 1)])) == fingerprint(Graph.from_edges([(1, 0), (0, 1)]))
    True
    """
    digest = blake2b(digest_size=16)
    parts = [graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.weights]
    if issparse(graph.features):
        parts += [
            graph.features.indptr.astype(np.int64),
            graph.features.indices.astype(np.int64),
            graph.features.data,
        ]
    else:
        parts.append(graph.features)
    for part in parts:
        digest.update(b"-" if part is None else np.ascontiguousarray(part).data)
        digest.update(b"|")
    if graph.names.dtype == object:
        digest.update("\0".join(map(repr, graph.names.tolist())).encode())
    else:
        digest.update(np.ascontiguousarray(graph.names).data)
    return digest.hexdigest()
