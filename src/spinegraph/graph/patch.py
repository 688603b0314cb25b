"""Whole rows that stand in for rows of a base graph, and rows of nodes it does not have."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.checks import frozen
from spinegraph.graph.edges import CleanEdges
from spinegraph.graph.rows import pointers, row_places
from spinegraph.graph.tape import Head

if TYPE_CHECKING:
    from spinegraph.graph.graph import Graph

REMOVED = 0  # the row of nodes that are gone; it is empty
_MOST_WASTE = 1 << 16  # entries of replaced rows that are no reason yet to write the others anew


class Rows(NamedTuple):
    """Some rows of neighbours in CSR form."""

    indptr: NDArray[np.int64]  # (p + 1,)
    indices: NDArray[Any]  # (entries,) positions in the whole graph
    weights: NDArray[np.float32] | None  # (entries,)


class Patch(NamedTuple):
    """Replaced and added rows of a base graph, and which node each belongs to.

    Rows are only ever written behind the others, so that patches share them; what nobody points to any more
    is dropped when it outweighs the rest.
    """

    places: NDArray[np.int32]  # (n_total,) row of the patch, -1 where the base row stands, or REMOVED
    indptr: Head
    indices: Head
    weights: Head | None
    waste: int  # entries of rows that were replaced

    @property
    def rows(self) -> Rows:
        """All rows, those that were replaced included."""
        weights = None if self.weights is None else self.weights.values
        return Rows(self.indptr.values, self.indices.values, weights)

    def copy(self) -> "Patch":
        """Return the same patch with room of its own."""
        weights = None if self.weights is None else self.weights.copy()
        return self._replace(indptr=self.indptr.copy(), indices=self.indices.copy(), weights=weights)


def empty_patch(base: "Graph") -> Patch:
    """Return a patch that changes nothing.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> empty_patch(Graph.from_edges([(0, 1)])).places.tolist()
    [-1, -1]
    """
    weights = None if base.weights is None else Head(np.zeros(0, np.float32))
    places = np.full(len(base), -1, dtype=np.int32)
    return Patch(places, Head(np.zeros(2, np.int64)), Head(np.zeros(0, base.indices.dtype)), weights, 0)


def rows_of(base: "Graph", patch: Patch, nodes: NDArray[np.int64]) -> Rows:
    """Return the rows of the given nodes as they stand, from the patch or else from the base.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> base = Graph.from_edges([(0, 1), (1, 2)])
    >>> rows_of(base, empty_patch(base), np.array([1])).indices.tolist()
    [0, 2]
    """
    places, rows = patch.places[nodes], patch.rows
    is_base = places < 0
    of_base, of_patch = nodes[is_base], places[~is_base]
    lengths = row_lengths(base, patch, nodes)
    from_base = np.repeat(is_base, lengths)
    base_entries = row_places(base.indptr, of_base)
    patch_entries = row_places(rows.indptr, of_patch)

    def gathered(of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        values = np.empty(len(from_base), dtype=of_base.dtype)
        values[from_base] = of_base[base_entries]
        values[~from_base] = of_patch[patch_entries]
        return values

    weights = None
    if base.weights is not None and rows.weights is not None:
        weights = gathered(base.weights, rows.weights)
    return Rows(pointers(lengths), gathered(base.indices, rows.indices), weights)


def row_lengths(base: "Graph", patch: Patch, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the degrees of the given nodes, without a look at the others.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> base = Graph.from_edges([(0, 1), (1, 2)])
    >>> row_lengths(base, empty_patch(base), np.array([1, 0])).tolist()
    [2, 1]
    """
    places, indptr = patch.places[nodes], patch.indptr.values
    is_base = places < 0
    of_base, of_patch = nodes[is_base], places[~is_base]
    lengths = np.empty(len(nodes), dtype=np.int64)
    lengths[is_base] = base.indptr[of_base + 1] - base.indptr[of_base]
    lengths[~is_base] = indptr[of_patch + 1] - indptr[of_patch]
    return lengths


def with_rows(base: "Graph", patch: Patch, nodes: NDArray[np.int64], rows: Rows, total: int) -> Patch:
    """Return a patch in which the given nodes have the given rows, of ``total`` nodes from now on.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> base = Graph.from_edges([(0, 1)])
    >>> lonely = Rows(np.zeros(3, np.int64), np.zeros(0, np.int32), None)
    >>> with_rows(base, empty_patch(base), np.array([0, 1]), lonely, 2).places.tolist()
    [1, 2]
    """
    first, before = len(patch.indptr) - 1, patch.places[nodes[nodes < len(patch.places)]]
    places = np.full(total, -1, dtype=np.int32)
    places[: len(patch.places)] = patch.places
    places[nodes] = np.arange(first, first + len(nodes), dtype=np.int32)
    indptr, replaced = patch.indptr.values, before[before > REMOVED]
    grown = Patch(
        frozen(places),
        patch.indptr.plus(rows.indptr[1:] + len(patch.indices)),
        patch.indices.plus(rows.indices),
        None if patch.weights is None or rows.weights is None else patch.weights.plus(rows.weights),
        patch.waste + int((indptr[replaced + 1] - indptr[replaced]).sum()),
    )
    is_wasteful = grown.waste > max(_MOST_WASTE, len(grown.indices) // 2)
    return _rewritten(base, grown) if is_wasteful else grown


def without_nodes(patch: Patch, nodes: NDArray[np.int64]) -> Patch:
    """Return a patch in which the given nodes are gone; edges that led to them are the caller's.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> without_nodes(empty_patch(Graph.from_edges([(0, 1)])), np.array([1])).places.tolist()
    [-1, 0]
    """
    places, held = patch.places.copy(), patch.places[nodes]
    places[nodes] = REMOVED
    indptr, held = patch.indptr.values, held[held > REMOVED]
    waste = patch.waste + int((indptr[held + 1] - indptr[held]).sum())
    return patch._replace(places=frozen(places), waste=waste)


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
    ([1, -1, 2], [1, 2, 0, 1])
    """
    known = touched[touched < len(patch.places)]
    merged = _with_edges(rows_of(base, patch, known), touched, clean, total)
    return with_rows(base, patch, touched, merged, total)


def _rewritten(base: "Graph", patch: Patch) -> Patch:
    """Return the same patch without the rows that were replaced."""
    held = np.flatnonzero(patch.places > REMOVED)
    rows = rows_of(base, patch, held)
    places = patch.places.copy()
    places[held] = np.arange(1, len(held) + 1, dtype=np.int32)
    weights = None if rows.weights is None else Head(rows.weights)
    indptr = Head(np.concatenate(([0], rows.indptr)))
    return Patch(frozen(places), indptr, Head(rows.indices), weights, 0)


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
