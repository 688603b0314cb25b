"""Whole rows that stand in for rows of a base graph, and rows of nodes it does not have."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.edges import CleanEdges
from spinegraph.graph.rows import pointers, row_places

if TYPE_CHECKING:
    from spinegraph.graph.graph import Graph


class Rows(NamedTuple):
    """Some rows of neighbours in CSR form."""

    indptr: NDArray[np.int64]  # (p + 1,)
    indices: NDArray[Any]  # (entries,) positions in the whole graph
    weights: NDArray[np.float32] | None  # (entries,)


class Patch(NamedTuple):
    """Replaced and added rows of a base graph, and which node each belongs to."""

    places: NDArray[np.int32]  # (n_total,) row of the patch, or -1 where the base row stands
    rows: Rows


def empty_patch(base: "Graph") -> Patch:
    """Return a patch that changes nothing.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> empty_patch(Graph.from_edges([(0, 1)])).places.tolist()
    [-1, -1]
    """
    weights = None if base.weights is None else np.zeros(0, np.float32)
    nothing = Rows(np.zeros(1, np.int64), np.zeros(0, base.indices.dtype), weights)
    return Patch(np.full(len(base), -1, dtype=np.int32), nothing)


def rows_of(base: "Graph", patch: Patch, nodes: NDArray[np.int64]) -> Rows:
    """Return the rows of the given nodes as they stand, from the patch or else from the base.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> base = Graph.from_edges([(0, 1), (1, 2)])
    >>> rows_of(base, empty_patch(base), np.array([1])).indices.tolist()
    [0, 2]
    """
    places = patch.places[nodes]
    is_base = places < 0
    lengths = np.empty(len(nodes), dtype=np.int64)
    lengths[is_base] = base.degrees[nodes[is_base]]
    lengths[~is_base] = np.diff(patch.rows.indptr)[places[~is_base]]
    from_base = np.repeat(is_base, lengths)
    base_entries = row_places(base.indptr, nodes[is_base])
    patch_entries = row_places(patch.rows.indptr, places[~is_base])

    def gathered(of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        values = np.empty(len(from_base), dtype=of_base.dtype)
        values[from_base] = of_base[base_entries]
        values[~from_base] = of_patch[patch_entries]
        return values

    weights = None
    if base.weights is not None and patch.rows.weights is not None:
        weights = gathered(base.weights, patch.rows.weights)
    return Rows(pointers(lengths), gathered(base.indices, patch.rows.indices), weights)


def patched(base: "Graph", patch: Patch, touched: NDArray[np.int64], clean: CleanEdges, total: int) -> Patch:
    """Return a patch in which the touched nodes' rows have the given edges as well.

    Parameters
    ----------
    touched : int64 array (t,)
        Positions, ascending; those of new nodes included.
    clean : CleanEdges
        Added edges among the touched nodes, by their place in ``touched``.
    total : int
        Number of nodes from now on.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> from spinegraph.graph.edges import clean_edges
    >>> base, touched = Graph.from_edges([(0, 1), (1, 2)]), np.array([0, 2])
    >>> added = clean_edges(np.array([0]), np.array([1]), touched)
    >>> patch = patched(base, empty_patch(base), touched, added, total=3)
    >>> patch.places.tolist(), patch.rows.indices.tolist()
    ([0, -1, 1], [1, 2, 0, 1])
    """
    known = touched[touched < len(patch.places)]
    now = rows_of(base, patch, known)
    merged = _with_edges(now, touched, clean, total)
    is_replaced = np.zeros(total, dtype=bool)
    is_replaced[touched] = True
    places = np.full(total, -1, dtype=np.int32)
    places[: len(patch.places)] = patch.places
    kept = np.flatnonzero((places >= 0) & ~is_replaced)
    before = rows_of(base, patch, kept)
    weights = None
    if before.weights is not None and merged.weights is not None:
        weights = np.concatenate((before.weights, merged.weights))
    places[kept] = np.arange(len(kept))
    places[touched] = np.arange(len(kept), len(kept) + len(touched))
    indptr = np.concatenate((before.indptr, merged.indptr[1:] + before.indptr[-1]))
    return Patch(places, Rows(indptr, np.concatenate((before.indices, merged.indices)), weights))


def _with_edges(now: Rows, touched: NDArray[np.int64], clean: CleanEdges, total: int) -> Rows:
    """Merge added edges into rows; the weight of an edge that is there already grows."""
    present = np.repeat(
        np.arange(len(now.indptr) - 1), np.diff(now.indptr)
    )  # new nodes come last, without rows
    added = np.repeat(np.arange(len(touched)), np.diff(clean.indptr))
    keys = np.concatenate((present * total + now.indices, added * total + touched[clean.indices]))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    keys = keys[starts]
    weights = None
    if now.weights is not None and clean.weights is not None:
        listed = np.concatenate((now.weights, clean.weights))[order]
        sums = np.add.reduceat(listed, starts, dtype=np.float64) if len(starts) else np.zeros(0)
        if len(sums) and sums.max() > np.finfo(np.float32).max:
            raise GraphFormatError(
                f"a weight grows to {sums.max():g}, more than float32 holds; scale them down"
            )
        weights = sums.astype(np.float32)
    lengths = np.bincount(keys // total, minlength=len(touched))
    return Rows(pointers(lengths), (keys % total).astype(now.indices.dtype), weights)
