"""Bounds on how far rooted PageRank moved since it was last computed: which roots a change affects.

Let P be the steps of a walk and P' those after a change, which differ in the rows of a few nodes u. From
pi_i = (1 - b) e_i (I - b P)^-1 follows pi'_i - pi_i = b pi_i (P' - P) (I - b P')^-1, so

    |pi'_i - pi_i|_1  <=  sum over u of pi_i(u) w(u),     w(u) = b / (1 - b) |P'_u - P_u|_1.

An additional edge of a node of degree d changes its row by 2 / (d + 1), so changes at a hub affect few roots.
Pushing w back along edges gives the sum for all roots at once, at a cost that does not grow with the graph.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.graph.edges import Rows
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.overlay import REMOVED, Overlay
from spinegraph.kernels.push import push_back
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.smoothing import Positions

# Share of the tolerance for change not yet pushed back; the rest is for change that has reached a root.
_LEFT = 0.125
# Columns computed from the degrees of a node's neighbours, and from the links between them.
_DEGREES = "log_smaller_neighbors", "log_h_index", "neighbor_log_degree_mean", "neighbor_log_degree_deviation"
_LINKS = ("clustering", "overlap_10", "overlap_25", "overlap_50")


class Drift:
    """A bound, for every root, on how far its rooted PageRank moved since it was last computed.

    The bound of root i is ``moved[i]`` plus the largest of ``pending``, which is kept below an eighth of the
    tolerance. :meth:`change` returns the roots whose bound would exceed the tolerance.
    """

    def __init__(self, num_nodes: int, continuation: float, tolerance: float) -> None:
        self.continuation, self.tolerance = continuation, tolerance
        self.moved = np.zeros(num_nodes)  # (n,) change that has reached each root
        self.pending = np.zeros(num_nodes)  # (n,) change still to be pushed back
        self._marks = np.zeros(num_nodes, np.uint8)

    def __len__(self) -> int:
        return len(self.moved)

    def bounds(self) -> NDArray[np.float64]:
        """Return the bound of every root, (n,)."""
        return np.asarray(self.moved + self.pending.max(initial=0.0))

    def change(self, before: Overlay, after: Overlay) -> Positions:
        """Return the positions of roots to recompute, ascending, after one ``add`` or ``remove``."""
        old = after.touched[after.touched < len(before)]
        weight = row_changes(before.rows_at(old), after.rows_at(old))
        weight *= self.continuation / (1 - self.continuation)
        reached = self.reach(before, old, weight)
        if more := len(after) - len(self):
            self.moved = np.concatenate((self.moved, np.zeros(more)))
            self.pending = np.concatenate((self.pending, np.zeros(more)))
            self._marks = np.zeros(len(after), np.uint8)
        # Nodes whose row changed are always recomputed: their columns change with their degree.
        stale = np.union1d(reached[self.is_over(reached)], after.touched)
        return self.reset(stale[after.patch.row_ids[stale] != REMOVED])

    def reach(self, graph: GraphLike, nodes: Positions, weight: NDArray[np.float64]) -> Positions:
        """Push a change of given weight at some nodes back to the roots it affects; return these."""
        self.pending[nodes] += weight
        bound = _LEFT * self.tolerance
        starts = nodes[self.pending[nodes] > bound]
        if not len(starts):
            return np.zeros(0, np.int64)
        changes = self.pending, self.moved, self._marks
        return np.asarray(push_back(graph.adjacency(), starts, *changes, self.continuation, bound))

    def is_over(self, roots: Positions) -> NDArray[np.bool_]:
        """Return which roots may have a bound above the tolerance."""
        return np.asarray(self.moved[roots] > (1 - _LEFT) * self.tolerance)

    def reset(self, roots: Positions) -> Positions:
        """Reset the bound of roots that are recomputed."""
        self.moved[roots] = 0
        return roots


class NeighborDrift:
    """A bound on how far a node's structural columns moved because its neighbours' links changed.

    Columns depend on a node's own row and its neighbours' rows. Columns that count or average neighbours'
    degrees are compared before and after. If c links of a neighbour are new or gone, the share of common
    neighbours with it moves by at most c / (d - 1), d being the larger of the two degrees. A link between two
    of a node's k neighbours moves its clustering by 2 / (k (k - 1)). If these bounds exceed the tolerance,
    all columns are compared. The moves add up in ``moved``. Effects on nodes two links away are not tracked.
    """

    def __init__(self, num_nodes: int, tolerance: float) -> None:
        self.tolerance = tolerance
        self.moved = np.zeros(num_nodes)

    def change(self, before: Overlay, after: Overlay) -> Positions:
        """Return the neighbours of touched nodes to recompute, ascending, after some changes."""
        self.moved = np.concatenate((self.moved, np.zeros(len(after) - len(self.moved))))
        old = after.touched[after.touched < len(before)]
        rows = after.rows_at(old)
        is_there, was_there = (_matrix(each, len(after)) for each in (rows, before.rows_at(old)))
        changed = abs(is_there - was_there)
        links, logarithms = changed.sum(axis=1), np.zeros(len(old))
        if after.directed:
            pairs = ((before.out_degrees, after.out_degrees), (before.in_degrees, after.in_degrees))
            links = np.maximum(links, sum(np.abs(new[old] - one[old]) for one, new in pairs))
            logarithms = sum(np.abs(np.log1p(new[old]) - np.log1p(one[old])) for one, new in pairs)
        counts, near = np.diff(rows.indptr), rows.indices.astype(np.int64)
        smaller = np.minimum(before.degrees_at(old), after.degrees_at(old))
        degrees = np.maximum(after.degrees_at(near), np.repeat(smaller, counts))
        directed = np.bincount(near, np.repeat(logarithms, counts), minlength=len(after))
        shares = np.repeat(links, counts) / np.maximum(degrees - 1, 1)
        shares = np.bincount(near, shares, minlength=len(after))
        if (between := changed[:, old]).nnz:
            triangles = (between @ is_there).multiply(is_there).sum(axis=0) / 2
            shares = shares + triangles / np.maximum(after.degrees * (after.degrees - 1) / 2, 1)
        near = np.unique(near)
        near = near[near < len(before)]  # the others are new
        moves = shares[near] + _moves(before, after, near, _DEGREES)
        is_over = (self.moved + directed)[near] + moves > self.tolerance
        moves[is_over] = _moves(before, after, near[is_over], _DEGREES + _LINKS)
        self.moved[near] += directed[near] + moves
        return self.reset(near[self.moved[near] > self.tolerance])

    def reset(self, nodes: Positions) -> Positions:
        """Reset the bound of nodes that are recomputed."""
        self.moved[nodes] = 0
        return nodes


def reads_neighbors(column: str) -> bool:
    """Return whether a structural column of a node depends on its neighbours' rows."""
    return column not in ("log_degree", "log_mean_weight", "spread") and not column.startswith("log_profile")


def row_changes(before: Rows, after: Rows) -> NDArray[np.float64]:
    """Return how far the steps from each node differ: sums of absolute differences, (rows,), at most 2.

    With directed edges, the largest difference of steps along edges, against them and both ways.
    """
    width = int(max(before.indices.max(initial=-1), after.indices.max(initial=-1))) + 1
    pairs = zip(before[2:], after[2:], strict=True)  # weights, outward and inward
    directed = before.outward is not None
    found = [
        abs(_steps(after, width, new) - _steps(before, width, old)) @ np.ones(width)
        for number, (old, new) in enumerate(pairs)
        if number == 0 or directed
    ]
    return np.asarray(np.max(found, axis=0))


def _moves(before: Overlay, after: Overlay, nodes: Positions, names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the largest move of some columns of each node, (nodes,)."""
    old, new = (structural_columns(graph, nodes, names=names, threads=1).values for graph in (before, after))
    return np.asarray(np.abs(new - old).max(axis=1, initial=0), np.float64)


def _matrix(rows: Rows, width: int, weights: NDArray[np.float32] | None = None) -> csr_array:
    """Return rows of neighbours as a matrix of weights, or of ones, (rows, width)."""
    data = np.ones(len(rows.indices)) if weights is None else weights.astype(np.float64)
    return csr_array((data, rows.indices, rows.indptr), shape=(len(rows.indptr) - 1, width))


def _steps(rows: Rows, width: int, weights: NDArray[np.float32] | None) -> csr_array:
    """Return the probabilities of the steps from each node, (rows, width); 0 if its weights are all 0."""
    steps = _matrix(rows, width, weights)
    sums = np.asarray(steps.sum(axis=1))
    steps.data /= np.repeat(np.where(sums > 0, sums, 1), np.diff(rows.indptr))
    return steps
