"""n+s and n+s+f: node2vec and struc2vec side by side, and features with them.

Every block is scaled to unit mean row norm, so that none drowns another.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from paper.baselines import struc2vec
from paper.method import Embed, Method, Score, of_one_graph
from spinegraph.analysis import baselines as node2vec
from spinegraph.graph.graph import Graph


@lru_cache(maxsize=4)
def walk_vectors(name: str, graph: Graph, dim: int, seed: int) -> NDArray[np.float32]:
    """Return node2vec's or struc2vec's vectors (n, dim); several rows read them, so the last are kept."""
    if name == "node2vec":
        return node2vec.node2vec(graph, dim, seed)
    return struc2vec.struc2vec(graph, dim, seed)


def beside(blocks: list[Any]) -> Any:
    """Return matrices side by side, each scaled to unit mean row norm; one sparse block makes all sparse."""
    scaled = [block / max(float(np.sqrt((block**2).sum(axis=1)).mean()), 1e-12) for block in blocks]
    if any(issparse(block) for block in scaled):
        return csr_array(hstack([csr_array(block) for block in scaled]))
    return np.hstack(scaled)


def _row(name: str, parts: tuple[str, ...], number: int) -> Method:
    def fit(graph: Graph, dim: int, seed: int, score: Score | None) -> Embed:
        found = [walk_vectors(part, graph, dim, seed) for part in parts if part != "features"]
        if "features" in parts:
            found.append(graph.features)  # type: ignore[arg-type]
        return of_one_graph(graph, found[0] if len(found) == 1 else beside(found))

    return Method(name, number, fit, is_inductive=False, is_slow=True)


NODE2VEC = _row("node2vec", ("node2vec",), 2)
STRUC2VEC = _row("struc2vec", ("struc2vec",), 1)
BOTH = _row("n+s", ("node2vec", "struc2vec"), 2)
WITH_FEATURES = _row("n+s+f", ("node2vec", "struc2vec", "features"), 2)
