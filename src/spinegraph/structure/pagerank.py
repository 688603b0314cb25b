"""Rooted PageRank of all nodes or some: by pushing (exact to a tolerance) or by counting walks."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import GraphLike
from spinegraph.kernels.push import NO_BUDGET, ROOM, Top, push_budget, push_goal, push_roots
from spinegraph.kernels.runtime import run_blocks, thread_count
from spinegraph.kernels.sparse import operator_rows
from spinegraph.kernels.walks import ROOTED_WALKS, alias_tables, stream_starts, walk_roots

Method = Literal["push", "walks"]
_ROOTS_PER_BLOCK = 1024
_ROWS_PER_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class RootedPageRank:
    """The k largest rooted-PageRank values of each root, and the nodes they belong to.

    Attributes
    ----------
    nodes : int32 array (r, k)
        The nodes, by descending value, ties broken arbitrarily; -1 where ``weights`` is 0.
    weights : float32 array (r, k)
        Their values, descending, each row scaled to sum 1. Ties do not affect them.
    mass : float64 array (r,)
        Sum of each row before scaling.
    num_nodes : int
        Nodes of the graph, n.
    kept : int32 array (r,)
        Number of leading nodes that the operator uses unchanged.
    tied_indptr : int64 array (r + 1,)
    tied_nodes : int32 array
        Per row, the nodes that tie at the k-th position and share the weight after ``kept``.
    unassigned : float64 array (r,), optional
        By push: the probability mass left over. Values are never too large, and too small by at most this.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> from spinegraph.structure.pagerank import rooted_pagerank
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> profile = rooted_pagerank(star, k=2)
    >>> profile.weights.shape, profile.operator().shape
    ((4, 2), (4, 4))
    >>> profile.operator().toarray()[0].round(3)  # one position, shared by three leaves
    array([0.857, 0.048, 0.048, 0.048], dtype=float32)
    """

    nodes: NDArray[Any]
    weights: NDArray[np.float32]
    mass: NDArray[np.float64]
    num_nodes: int
    kept: NDArray[np.int32]
    tied_indptr: NDArray[np.int64]
    tied_nodes: NDArray[Any]
    unassigned: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self.nodes)

    @property
    def k(self) -> int:
        """Length of each profile."""
        return int(self.nodes.shape[1])

    def operator(self, threads: int | None = None) -> csr_array:
        """Return T as a sparse float32 matrix (r, n); rows sum to 1.

        Rows equal ``nodes`` and ``weights``, except if values tie at the k-th position: then the tied nodes
        share the remaining weight equally, which is the mean over all ways to break the tie. A tied group
        that would make a row longer than 4k is left out and the row rescaled; a row that would then be empty
        contains the root alone.
        """
        indptr = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(self.kept + np.diff(self.tied_indptr), out=indptr[1:])
        indices = np.empty(indptr[-1], dtype=self.nodes.dtype)
        data = np.empty(indptr[-1], dtype=np.float32)
        profile = (self.nodes, self.weights, self.kept, self.tied_indptr, self.tied_nodes)

        def fill(start: int, stop: int) -> None:
            operator_rows(profile, indptr, start, stop, indices, data)

        run_blocks(fill, len(self), block=_ROWS_PER_BLOCK, threads=threads)
        operator = csr_array((data, indices, indptr), shape=(len(self), self.num_nodes))
        operator.has_sorted_indices = True
        return operator

    def smooth(self, features: Any) -> Any:
        """Return T F (r, f), each root's weighted mean of features (n, f) around it; sparse stays sparse."""
        kind = csr_array if issparse(features) else np.asarray
        return self.operator() @ kind(features, dtype=np.float32)


def rooted_pagerank(
    graph: GraphLike,
    *,
    k: int = 20,
    continuation: float = 0.5,
    method: Method = "push",
    tolerance: float = 1e-4,
    threshold: float = 0.0,
    walks: int = 10,
    walk_length: int = 40,
    seed: int = 0,
    roots: ArrayLike | None = None,
    keys: ArrayLike | None = None,
    threads: int | None = None,
) -> RootedPageRank:
    """Return the k largest rooted-PageRank values of each root.

    A walker starts at the root; at each step it continues to a neighbour, in proportion to edge weight, with
    probability ``continuation``, and otherwise returns to the root. The value of a node is the share of time
    spent there. The profile of a node without neighbours is the node itself.

    Parameters
    ----------
    graph : Graph or Overlay
    k : int
        Length of a profile; rows are padded if fewer nodes are reached.
    continuation : float
        Probability of continuing, strictly between 0 and 1.
    method : {"push", "walks"}
        ``push`` is deterministic and does not depend on the order of nodes. ``walks`` counts visits.
    tolerance : float
        For ``push``: the most probability mass that may stay unassigned per root, in (0, 1).
    threshold : float
        For ``push``: finish a root also when every other node's residual is at most this much per neighbour,
        in [0, 1]; ``unassigned`` of the result is the mass left then. A root visits at most
        1 / (threshold (1 - continuation)) edges besides its own, however large or dense the graph, and the
        result depends on nothing farther away.
    walks, walk_length : int
        For ``walks``: their number per root, and the nodes of each, including the root.
    seed : int
        For ``walks``; every draw depends on (seed, root) alone.
    roots : int array (r,), optional
        Positions of the roots, repeats allowed; every node by default. The cost depends on their number.
    keys : uint64 array (r,), optional
        Each root's key in the random streams; by default the root's position.
    threads : int, optional
        All cores by default. The result is the same for any number.

    Returns
    -------
    RootedPageRank
        One row per root.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> pair = Graph.from_edges([(0, 1)])
    >>> rooted_pagerank(pair, k=2, tolerance=1e-9).weights.round(4)
    array([[0.6667, 0.3333],
           [0.6667, 0.3333]], dtype=float32)
    >>> rooted_pagerank(pair, k=2, roots=[1]).nodes.tolist()
    [[1, 0]]
    """
    k, continuation = as_whole("k", k), _fraction("continuation", continuation)
    if method not in ("push", "walks"):
        raise ParameterError(f"method must be one of 'push', 'walks'; got {method!r}")
    adjacency = graph.adjacency()
    n, dtype = adjacency.num_nodes, adjacency.indices.dtype
    chosen = as_roots(roots, n)
    unassigned = np.empty(len(chosen)) if method == "push" else None
    if unassigned is not None:
        if not isinstance(threshold, int | float | np.number) or not 0 <= threshold <= 1:
            raise ParameterError(f"threshold must be between 0 and 1; got {threshold!r}")
        goal = push_goal(continuation, _fraction("tolerance", tolerance))
        # A threshold bounds a root's work, and without sweeps nothing far away changes the result.
        budget = NO_BUDGET if threshold > 0 else push_budget(adjacency, continuation, goal)
        if budget < NO_BUDGET:
            adjacency = adjacency.flat()  # sweeps read each row many times

        def fill(rows: slice, top: Top, tied_nodes: NDArray[Any]) -> None:
            bounds, left = (goal, float(threshold), budget), unassigned[rows]
            push_roots(adjacency, n, chosen[rows], continuation, *bounds, top, tied_nodes, left)
    else:
        given = chosen if keys is None else np.asarray(keys)
        if given.shape != chosen.shape or not (given.size == 0 or given.dtype.kind in "iu"):
            raise ParameterError(f"keys must be integers {chosen.shape}; got {given.dtype} {given.shape}")
        streams = stream_starts(as_whole("seed", seed, low=0), ROOTED_WALKS, given.astype(np.uint64))
        size = as_whole("walks", walks), as_whole("walk_length", walk_length)
        tables, threads = alias_tables(adjacency, len(chosen) * size[0] * size[1], threads)
        bound = np.uint64(round(continuation * 2**32))

        def fill(rows: slice, top: Top, tied_nodes: NDArray[Any]) -> None:
            walk_roots(adjacency, tables, chosen[rows], streams[rows], *size, bound, top, tied_nodes)

    top = Top.empty(len(chosen), k, dtype)

    def task(start: int, stop: int) -> NDArray[Any]:
        rows, tied_nodes = slice(start, stop), np.empty((stop - start, ROOM * k), dtype=dtype)
        fill(rows, top.rows(rows), tied_nodes)
        return tied_nodes[np.arange(ROOM * k) < top.tied[rows, None]]

    block = _ROOTS_PER_BLOCK
    if (workers := thread_count(threads)) > 1:  # every thread gets several, whatever the number of roots
        block = min(block, max(len(chosen) // (8 * workers), 16))
    tied = run_blocks(task, len(chosen), block=block, threads=threads)
    tied_indptr = np.concatenate([[0], np.cumsum(top.tied, dtype=np.int64)])
    tied_nodes = np.concatenate([*tied, np.empty(0, dtype=dtype)])
    return RootedPageRank(top.nodes, top.weights, top.mass, n, top.kept, tied_indptr, tied_nodes, unassigned)


def as_roots(roots: ArrayLike | None, num_nodes: int) -> NDArray[np.int64]:
    """Return positions of roots as int64 (r,), every node for None; raise if one is invalid."""
    if roots is None:
        return np.arange(num_nodes, dtype=np.int64)
    chosen = np.asarray(roots)
    if chosen.ndim != 1 or not (chosen.size == 0 or np.issubdtype(chosen.dtype, np.integer)):
        raise ParameterError(
            f"roots must be a list of node positions; got {chosen.dtype} of shape {chosen.shape}. "
            "For names, pass graph.positions(names)."
        )
    wrong = chosen[(chosen < 0) | (chosen >= num_nodes)]
    if wrong.size:
        raise ParameterError(f"roots must be from 0 to {num_nodes - 1}; got {wrong[:3].tolist()}")
    return np.ascontiguousarray(chosen, dtype=np.int64)


def as_whole(name: str, value: Any, low: int = 1) -> int:
    """Return a whole number of at least ``low``, or raise an error that names it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ParameterError(f"{name} must be a whole number >= {low}; got {value!r}")
    return int(value)


def _fraction(name: str, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise ParameterError(f"{name} must be strictly between 0 and 1; got {value!r}")
    return float(value)
