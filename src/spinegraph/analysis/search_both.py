"""Nodes that are alike both ways: by vector, and by role."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.analysis.nearest import Nearest, as_count, in_batches
from spinegraph.analysis.search import Match, Progress, Search, StructuralSearch
from spinegraph.errors import ParameterError


class TwofoldSearch:
    """Nodes that rank high by vector and by role: the worse of the two ranks counts.

    The score is the share of the compared nodes that are not more alike in that worse way: 1 where nobody is
    more alike either way. Nodes of equal score come in the order of cosine, then of the graph. Large graphs'
    nodes are compared with the candidates of the structural search.

    Parameters
    ----------
    search : Search
    roles : StructuralSearch
        Of the same nodes in the same order.

    Examples
    --------
    >>> from spinegraph import Embeddings, made, rooted_pagerank
    >>> graph = made.barbell(4, bridge=1)
    >>> search = Search(Embeddings(graph.names, np.eye(9, 2, dtype=np.float32)))
    >>> TwofoldSearch(search, StructuralSearch(graph, rooted_pagerank(graph, k=5))).similar(3, n=1)
    [Match(name=5, score=1.0)]
    """

    def __init__(self, search: Search, roles: StructuralSearch) -> None:
        if len(search) != len(roles) or not np.array_equal(search.embeddings.names, roles.graph.names):
            raise ParameterError(
                f"both searches must be of the same nodes; got {len(search)} vectors and {len(roles)} nodes"
            )
        self.search, self.roles = search, roles

    def __len__(self) -> int:
        return len(self.search)

    @property
    def exact(self) -> bool:
        """Whether every node is compared."""
        return self.roles.exact

    def similar(self, node: Any, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes most like a node both ways, most alike first; never the node itself."""
        found = self._nearest(int(self.search.positions([node])[0]), as_count(n))
        names = self.search.embeddings.names[found.positions].tolist()
        return [Match(name, score) for name, score in zip(names, found.scores.tolist(), strict=True)]

    def neighbors(
        self, positions: ArrayLike | None = None, n: int = 10, *, progress: Progress | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like each of some nodes, or of all: the answers of ``similar``."""
        count = as_count(n)
        return in_batches(lambda place: self._nearest(place, count), positions, len(self), n, progress)

    def _nearest(self, place: int, n: int) -> Nearest:
        others = self.roles.candidates(place)
        name = self.search.embeddings.names[place : place + 1].tolist()[0]
        apart = np.round(-self.search.cosines(name)[others], 6)
        worse = np.maximum(_rank(apart), _rank(self.roles.distances_to(place, others)))  # (m,)
        order = np.lexsort((apart, worse))[:n]
        return Nearest(others[order], 1 - worse[order] / max(len(others), 1))


def _rank(distances: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many are strictly nearer (m,)."""
    return np.searchsorted(np.sort(distances), distances)
