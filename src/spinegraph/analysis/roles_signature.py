"""What roles are told by: a few plain numbers a node, some of which need the vectors of its neighbours."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.analysis.roles_communities import Communities, gather
from spinegraph.generator import Generator
from spinegraph.structure.columns import structural_columns

# Numbers of a node: log(1 + degree), share of pairs of neighbours that are tied, neighbours' mean
# log(1 + degree), communities they belong to, and the same with one more neighbour in the main one.
DEGREE, CLUSTERING, AROUND, SPAN, STEADY_SPAN = range(5)
# Coordinates of a node's place, made of them.
NEIGHBORS, ACQUAINTED, PROMINENCE, COMMUNITIES = range(4)
COLUMNS = ("neighbors", "acquainted", "prominence", "communities")
# Less than this is no difference between roles, even where a whole network differs by no more.
LEAST_SCALE = (0.25, 0.08, 0.25, 0.25)
_STRUCTURAL = ("log_degree", "clustering", "neighbor_log_degree_mean")
_DOUBT = 6  # pairs of neighbours that the network's usual clustering counts for

Floats = NDArray[np.float64]


def coordinates(numbers: Floats, usual: float) -> Floats:
    """Return where nodes stand, (n, 4) of numbers (n, 5), or (n, 3) of (n, 3) without communities.

    Neighbours (log); how far they know each other, drawn towards ``usual`` where there are few of them, so
    that one tie between two neighbours is no clique; how the own degree stands to theirs (log ratio);
    communities.

    Examples
    --------
    >>> coordinates(np.array([[np.log(3), 1.0, np.log(3)]]), 0.3).round(2)
    array([[1.1, 0.4, 0. ]])
    """
    degrees = np.expm1(numbers[:, DEGREE])
    pairs = degrees * (degrees - 1) / 2
    acquainted = (pairs * numbers[:, CLUSTERING] + _DOUBT * usual) / (pairs + _DOUBT)
    prominence = numbers[:, DEGREE] - numbers[:, AROUND]
    return np.column_stack([numbers[:, DEGREE], acquainted, prominence, numbers[:, STEADY_SPAN:]])


def usual_clustering(numbers: Floats) -> float:
    """Return the mean clustering of nodes that have two neighbours or more."""
    some = numbers[:, DEGREE] > np.log(2.5)
    return float(numbers[some, CLUSTERING].mean()) if some.any() else 0.0


def signature(
    graph: Any,
    generator: Generator,
    communities: Communities | None,
    positions: NDArray[np.int64] | None = None,
    vectors: NDArray[np.float32] | None = None,
) -> Floats:
    """Return the numbers of some nodes (r, 5), or (r, 3) where there are no communities to count.

    Communities are counted by Simpson's number, 1 / sum of squared shares: one stray neighbour counts little.

    Parameters
    ----------
    graph : Graph or Overlay
    generator : Generator
    communities : Communities, optional
    positions : int64 array (r,), optional
        Every node by default; else these, their neighbours and the neighbours of those are visited.
    vectors : float32 array (n, d), optional
        Of all nodes, where they are at hand.
    """
    threads = generator.inputs.config.threads
    found = structural_columns(graph, positions, names=_STRUCTURAL, threads=threads).values
    columns = found.astype(np.float64)
    if communities is None:
        return columns
    ties = neighbors_of(graph, positions)
    seen = np.unique(ties.indices).astype(np.int64)
    around = neighbors_of(graph, seen)
    if vectors is None:
        needed = np.union1d(seen, around.indices).astype(np.int64)
        near = generator.embed(graph, None if len(needed) == len(graph) else needed)
        around = _narrowed(around, needed)
        own = near[np.searchsorted(needed, seen)]
    else:
        near, own = vectors, vectors[seen]
    member_of = np.full(ties.shape[1], -1, dtype=np.int64)
    member_of[seen] = communities.nearest(gather(own, around, near))
    return np.column_stack([columns, _spanned(ties, member_of, len(communities))])


def _narrowed(ties: csr_array, kept: NDArray[np.int64]) -> csr_array:
    """Leave out the columns of nodes that nobody asked for."""
    places = np.searchsorted(kept, ties.indices)
    return csr_array((ties.data, places, ties.indptr), shape=(ties.shape[0], len(kept)))


def neighbors_of(graph: Any, positions: NDArray[np.int64] | None = None) -> csr_array:
    """Return neighbours of some nodes as a 0/1 matrix (r, n), of a Graph or an Overlay."""
    adjacency = graph.adjacency()
    if positions is None and not adjacency.rows.size:
        indptr, indices = adjacency.indptr, adjacency.indices
    else:
        nodes = np.arange(adjacency.num_nodes) if positions is None else positions
        indptr, indices = adjacency.neighbors(nodes)
    ones = np.ones(len(indices), dtype=np.float32)
    return csr_array((ones, indices, indptr), shape=(len(indptr) - 1, adjacency.num_nodes))


def _spanned(ties: csr_array, member_of: NDArray[np.int64], count: int) -> Floats:
    rows = np.repeat(np.arange(ties.shape[0]), np.diff(ties.indptr))
    ends = member_of[ties.indices]
    known = ends >= 0
    cells = rows[known] * count + ends[known]
    table = np.bincount(cells, minlength=ties.shape[0] * count).reshape(-1, count).astype(np.float64)
    squares, totals = np.square(table).sum(axis=1), table.sum(axis=1)
    # One more neighbour in the main community.
    steady = np.square(totals + 1) / (squares + 2 * table.max(axis=1) + 1)
    return np.column_stack([np.square(totals) / np.maximum(squares, 1), steady])
