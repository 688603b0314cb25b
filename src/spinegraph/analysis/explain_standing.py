"""Where two nodes stand: how much lies within a few links of each, and how far apart they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.names import quoted
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.profile import RootedPageRank

HOPS = 3
_NAMED = 5


@dataclass(frozen=True)
class Standing:
    """What a node's surroundings look like.

    Attributes
    ----------
    name : str
        As it is printed.
    degree : int
    hops : tuple of int (3,)
        Nodes within 1, 2 and 3 links, without the node itself.
    clustering : float
        Share of the pairs of neighbours that are linked.
    neighbor_degree : float
        Geometric mean of 1 + the neighbours' degrees, less 1.

    Examples
    --------
    >>> Standing("ann", 2, (2, 3, 3), 0.0, 1.5).degree
    2
    """

    name: str
    degree: int
    hops: tuple[int, ...]
    clustering: float
    neighbor_degree: float


@dataclass(frozen=True)
class Relation:
    """How two nodes lie to each other.

    Attributes
    ----------
    links_apart : int or None
        Links on the shortest way, None where it has more than 6.
    common : int
        Neighbours of both.
    common_names : tuple of str
        The first five of them.

    Examples
    --------
    >>> Relation(1, 0, ()).links_apart
    1
    """

    links_apart: int | None
    common: int
    common_names: tuple[str, ...]


def standing(
    graph: Any, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[Standing, Standing, Relation]:
    """Describe two nodes and how they lie to each other.

    Examples
    --------
    >>> from spinegraph import made, rooted_pagerank
    >>> path, pair = made.barbell(1, bridge=3), np.array([0, 4])
    >>> one, other, relation = standing(path, pair, rooted_pagerank(path, k=5, roots=pair))
    >>> one.hops, relation.links_apart
    ((1, 2, 3), 4)
    """
    adjacency = graph.adjacency()
    levels = [_levels(adjacency, int(root)) for root in positions]
    described = structural_columns(
        graph, positions, profile=profile, names=("clustering", "neighbor_log_degree_mean"), threads=1
    ).values
    one, other = (
        Standing(
            shown(name),
            int((level == 1).sum()),
            tuple(int(((level > 0) & (level <= hop)).sum()) for hop in range(1, HOPS + 1)),
            float(numbers[0]),
            float(np.expm1(numbers[1])),
        )
        for name, level, numbers in zip(graph.names[positions].tolist(), levels, described, strict=True)
    )
    return one, other, _relation(graph, *levels)


def shown(name: Any) -> str:
    """Return a node's name as it is printed: the text itself, without quotes.

    Examples
    --------
    >>> shown("ann"), shown(3), shown((0, "ann"))
    ('ann', '3', '0:ann')
    """
    if isinstance(name, tuple):
        return ":".join(map(shown, name))
    return name if isinstance(name, str) else quoted(name)


def _relation(graph: Any, one: NDArray[np.int8], other: NDArray[np.int8]) -> Relation:
    reached = (one >= 0) & (other >= 0)
    apart = int((one[reached] + other[reached]).min()) if reached.any() else None
    common = np.flatnonzero((one == 1) & (other == 1))
    return Relation(apart, len(common), tuple(shown(name) for name in graph.names[common[:_NAMED]].tolist()))


def _levels(adjacency: Adjacency, root: int) -> NDArray[np.int8]:
    """Return how many links away each node is (n,), -1 beyond the last hop."""
    level = np.full(adjacency.num_nodes, -1, dtype=np.int8)
    level[root] = 0
    frontier = np.array([root])
    for hop in range(1, HOPS + 1):
        near = adjacency.neighbors(frontier)[1].astype(np.int64)
        near = near[level[near] < 0]
        level[near] = hop
        frontier = np.unique(near)
    return level
