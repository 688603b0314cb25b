"""Rooted PageRank of every node, or of some: by pushing (exact to a tolerance) or by counting walks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.push import push_budget, push_goal, push_roots
from spinegraph.kernels.rng import ROOTED_WALKS, stream_starts
from spinegraph.kernels.steps import alias_rows
from spinegraph.kernels.threads import run_blocks, thread_count
from spinegraph.kernels.topk import ROOM, new_top
from spinegraph.kernels.walks import walk_roots
from spinegraph.structure.profile import RootedPageRank
from spinegraph.structure.roots import as_roots

Method = Literal["push", "walks"]
DEFAULT_TOLERANCE = 1e-4
Rows = tuple[NDArray[Any], ...]
_PUSH_BLOCK = 1024
_WALK_BLOCK = 1024


def rooted_pagerank(
    graph: Any,
    *,
    k: int = 20,
    continuation: float = 0.5,
    method: Method = "push",
    tolerance: float = DEFAULT_TOLERANCE,
    threshold: float = 0.0,
    walks: int = 10,
    walk_length: int = 40,
    seed: int = 0,
    roots: ArrayLike | None = None,
    keys: ArrayLike | None = None,
    threads: int | None = None,
) -> RootedPageRank:
    """Return the k largest rooted-PageRank values of each root.

    A walker starts at the root; at each step it goes on to a neighbour, in proportion to edge weight, with
    probability ``continuation``, and otherwise returns to the root. The value of a node is the share of time
    spent there. A node without neighbours is its own whole profile.

    Parameters
    ----------
    graph : Graph or Overlay
    k : int
        Length of a profile; rows are padded where fewer nodes are reached.
    continuation : float
        Probability of going on, strictly between 0 and 1.
    method : {"push", "walks"}
        ``push`` is deterministic and does not depend on the order of nodes. ``walks`` counts visits.
    tolerance : float
        For ``push``: the most probability mass that may stay unassigned per root, in (0, 1).
    threshold : float
        For ``push``: end a root also when every other node's residual is at most this much per neighbour, in
        [0, 1], whatever mass is left; the profile's ``unassigned`` says how much. A root then passes at most
        1 / (threshold (1 - continuation)) edges besides its own, however large or dense the graph, and what
        it finds depends on nothing farther away.
    walks, walk_length : int
        For ``walks``: how many per root, and their positions, the root's first one included.
    seed : int
        For ``walks``; every draw depends on (seed, root) alone.
    roots : int array (r,), optional
        Positions of the roots, repeats allowed; every node by default. Only their work is done.
    keys : uint64 array (r,), optional
        What identifies each root's random stream; by default the root's position.
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
    k = _whole("k", k)
    continuation = _fraction("continuation", continuation)
    if method not in ("push", "walks"):
        raise ParameterError(f"method must be one of 'push', 'walks'; got {method!r}")
    adjacency = graph.adjacency()
    chosen = as_roots(roots, adjacency.num_nodes)
    if method == "push":
        tolerance = _fraction("tolerance", tolerance)
        if not isinstance(threshold, int | float | np.number) or not 0 <= threshold <= 1:
            raise ParameterError(f"threshold must be between 0 and 1; got {threshold!r}")
        return _by_push(adjacency, chosen, k, continuation, tolerance, float(threshold), threads)
    streams = stream_starts(_whole("seed", seed, least=0), ROOTED_WALKS, _keys(keys, chosen))
    length = _whole("walk_length", walk_length)
    return _by_walks(adjacency, chosen, streams, k, continuation, _whole("walks", walks), length, threads)


def _by_push(
    adjacency: Adjacency,
    roots: NDArray[np.int64],
    k: int,
    continuation: float,
    tolerance: float,
    threshold: float,
    threads: int | None,
) -> RootedPageRank:
    arrays, n = tuple(adjacency), adjacency.num_nodes
    goal = push_goal(continuation, tolerance)
    # A threshold bounds the work of a root by itself, and without sweeps its result is the root's own affair.
    budget = -1 if threshold > 0 else push_budget(adjacency, continuation, goal)
    unassigned = np.empty(len(roots))

    def fill(start: int, stop: int, top: Rows, tied_nodes: NDArray[Any]) -> None:
        some, left = roots[start:stop], unassigned[start:stop]
        push_roots(arrays, n, some, continuation, goal, threshold, budget, top, tied_nodes, left)

    return replace(_profile(adjacency, len(roots), k, fill, _PUSH_BLOCK, threads), unassigned=unassigned)


def _by_walks(
    adjacency: Adjacency,
    roots: NDArray[np.int64],
    streams: NDArray[np.uint64],
    k: int,
    continuation: float,
    walks: int,
    walk_length: int,
    threads: int | None,
) -> RootedPageRank:
    arrays = tuple(adjacency)
    tables, threads = alias_rows(adjacency, len(roots) * walks * walk_length, threads)
    threshold = np.uint64(round(continuation * 2**32))

    def fill(start: int, stop: int, top: Rows, tied_nodes: NDArray[Any]) -> None:
        some, keyed = roots[start:stop], streams[start:stop]
        walk_roots(arrays, tables, some, keyed, walks, walk_length, threshold, top, tied_nodes)

    return _profile(adjacency, len(roots), k, fill, _WALK_BLOCK, threads)


def _profile(
    adjacency: Adjacency,
    count: int,
    k: int,
    fill: Callable[[int, int, Rows, NDArray[Any]], None],
    block: int,
    threads: int | None,
) -> RootedPageRank:
    """Let ``fill`` write blocks of rows, and gather what ties in each block."""
    top = new_top(count, k, adjacency.indices.dtype)

    def task(start: int, stop: int) -> NDArray[Any]:
        tied_nodes = np.empty((stop - start, ROOM * k), dtype=adjacency.indices.dtype)
        fill(start, stop, tuple(column[start:stop] for column in top), tied_nodes)
        return tied_nodes[np.arange(ROOM * k) < top.tied[start:stop, None]]

    if (workers := thread_count(threads)) > 1:  # every thread gets several, whatever the number of roots
        block = min(block, max(count // (8 * workers), 16))
    tied = run_blocks(task, count, block=block, threads=threads)
    return RootedPageRank(
        nodes=top.nodes,
        weights=top.weights,
        mass=top.mass,
        num_nodes=adjacency.num_nodes,
        kept=top.kept,
        tied_indptr=np.concatenate([[0], np.cumsum(top.tied, dtype=np.int64)]),
        tied_nodes=np.concatenate([*tied, np.empty(0, dtype=adjacency.indices.dtype)]),
    )


def _whole(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be a whole number >= {least}; got {value!r}")
    return int(value)


def _fraction(name: str, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0 < value < 1:
        raise ParameterError(f"{name} must be strictly between 0 and 1; got {value!r}")
    return float(value)


def _keys(keys: ArrayLike | None, roots: NDArray[np.int64]) -> NDArray[np.uint64]:
    if keys is None:
        return roots.astype(np.uint64)
    given = np.asarray(keys)
    if given.shape != roots.shape or not (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
        raise ParameterError(
            f"keys must be one whole number per root, shape {roots.shape}; "
            f"got {given.dtype} of shape {given.shape}"
        )
    return given.astype(np.uint64)
