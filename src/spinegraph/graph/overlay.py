"""Overlay: a base graph with nodes and edges added and removed, without a copy of the base."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.edges import (
    EdgeReport,
    Features,
    Reciprocal,
    Rows,
    as_features,
    as_pairs,
    as_weights,
    clean_edges,
    entry_counts,
    frozen,
    pointers,
    row_sums,
    rows_at,
    stacked,
    sum_repeats,
    warn_of_losses,
)
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import UNHASHABLE, as_array, as_names, concatenated, first_few, require_known
from spinegraph.kernels.adjacency import Adjacency, Direction

REMOVED = 0  # row id of every removed node; this row is empty
MAX_WASTE = 1 << 16  # unused entries that are kept before a patch may be compacted


@dataclass(frozen=True, eq=False, repr=False)
class Overlay:
    """A base graph with nodes and edges added and removed; immutable, and usable like a graph.

    Rows that a change touches are stored separately as a whole; all others are those of the base. A change
    costs the rows it touches and four bytes per node. Overlays derived from each other share memory, and none
    of them ever changes, so a reader may keep one while others are made.

    A removed node keeps its position, without edges, so no other node moves; a name that is added again gets
    a new position. Make an overlay with :meth:`Graph.overlay`, and further ones with :meth:`add` and
    :meth:`remove`.

    Parameters
    ----------
    base : Graph
    added : AddedNames
        Names of the added nodes; their positions follow the base's.
    patch : Patch
        The rows that differ from the base's.
    added_rows : AddedFeatures, optional
    touched : int64 array (t,)
        Positions whose rows the last change replaced, except removed nodes; ascending.
    report : EdgeReport, optional
        What cleaning did to the last addition.

    Examples
    --------
    >>> base = Graph.from_edges([("ann", "bob")])
    >>> overlay = base.overlay(["cy"], [("cy", "ann")]).add(edges=[("cy", "bob")])
    >>> overlay, overlay.neighbors("cy").tolist()
    (Overlay(3 nodes, 3 edges, 1 node added to Graph(2 nodes, 1 edge, names 'ann', 'bob')), ['ann', 'bob'])
    """

    base: Graph
    added: "AddedNames"
    patch: "Patch"
    added_rows: "AddedFeatures | None" = None
    touched: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    report: EdgeReport | None = None

    @classmethod
    def of(cls, base: Graph) -> "Overlay":
        """Return an overlay without changes.

        Examples
        --------
        >>> len(Overlay.of(Graph.from_edges([(0, 1)])))
        2
        """
        rows = None if base.features is None else AddedFeatures(base.feature_rows(np.zeros(0, np.int64)))
        return cls(base, AddedNames(), Patch.empty(base), rows)

    def __len__(self) -> int:
        return len(self.patch.row_ids)

    def __repr__(self) -> str:
        added, count, removed = len(self.added), self.num_edges, len(self) - self.num_nodes
        nodes = f"{self.num_nodes} node{'s' * (self.num_nodes != 1)}, {count} edge{'s' * (count != 1)}"
        more = f", {removed} removed" * bool(removed)
        return f"Overlay({nodes}, {added} node{'s' * (added != 1)} added to {self.base}{more})"

    @property
    def num_nodes(self) -> int:
        """Number of nodes, including isolated but not removed ones: at most ``len(overlay)``."""
        return len(self.remaining)

    @cached_property
    def remaining(self) -> NDArray[np.int64]:
        """Positions of the nodes that were not removed, ascending."""
        return frozen(np.flatnonzero(self.patch.row_ids != REMOVED))

    @property
    def num_edges(self) -> int:
        """Number of edges; in a directed graph, two directions are two edges."""
        return int(self.out_degrees.sum()) // (1 if self.directed else 2)

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.base.directed

    @property
    def has_features(self) -> bool:
        """Whether nodes carry features."""
        return self.base.has_features

    @property
    def num_features(self) -> int:
        """Number of features per node, 0 if there are none."""
        return self.base.num_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names of the features, if known."""
        return self.base.feature_names

    @cached_property
    def names(self) -> NDArray[Any]:
        """Names at all positions, (n,): the base's, then the added ones, including removed nodes."""
        return frozen(concatenated(self.base.names, as_array(self.added.tolist())))

    @cached_property
    def features(self) -> Features | None:
        """Features of all nodes, (n, f); this copies those of the base, :meth:`feature_rows` does not."""
        if self.base.features is None or self.added_rows is None:
            return None
        return stacked([self.base.features, self.added_rows.matrix()])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""
        return frozen(self._patched_values(self.base.degrees, np.diff(self.patch.indptr.values)))

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the edge weights at each node, (n,); the degree in an unweighted graph."""
        rows = self.patch.rows
        return frozen(self._patched_values(self.base.strengths, row_sums(rows.indptr, rows.weights)))

    @cached_property
    def out_degrees(self) -> NDArray[np.int64]:
        """Number of edges from each node, (n,)."""
        return self._directed_values("outward", self.base.out_degrees, entry_counts)

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        """Number of edges to each node, (n,)."""
        return self._directed_values("inward", self.base.in_degrees, entry_counts)

    @cached_property
    def out_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges from each node, (n,)."""
        return self._directed_values("outward", self.base.out_strengths, row_sums)

    @cached_property
    def in_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges to each node, (n,)."""
        return self._directed_values("inward", self.base.in_strengths, row_sums)

    def _directed_values(self, flow: str, of_base: NDArray[Any], count: Any) -> NDArray[Any]:
        """Return degrees or strengths in one direction, or undirected ones if edges have no direction."""
        rows = self.patch.rows
        if not self.directed:
            return self.degrees if count is entry_counts else self.strengths
        return frozen(self._patched_values(of_base, count(rows.indptr, getattr(rows, flow))))

    def _patched_values(self, of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        """Return one value per node, from the patch where it has a row and from the base elsewhere."""
        values = np.zeros(len(self), dtype=of_base.dtype)
        values[: len(self.base)] = of_base
        is_patched = self.patch.row_ids >= 0
        values[is_patched] = of_patch[self.patch.row_ids[is_patched]]
        return values

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of named nodes; added nodes follow those of the base."""
        wanted = as_array(names)
        found = self.find(wanted)
        require_known(found, wanted, self.base.names)
        return found

    def find(self, names: Iterable[Any], new: dict[Any, int] | None = None) -> NDArray[np.int64]:
        """Return the positions of named nodes; for unknown ones those in ``new``, or -1."""
        wanted = as_array(names)
        found = self.base._name_index.find(wanted)
        found[(found >= 0) & (self.patch.row_ids[found] == REMOVED)] = -1
        for at in np.flatnonzero(found < 0):
            try:
                found[at] = self._added_position(wanted[at])
            except TypeError as error:
                raise GraphFormatError(f"{UNHASHABLE}: {error}") from error
            if found[at] < 0 and new is not None:
                found[at] = new.get(wanted[at], -1)
        return found

    def position(self, name: Any) -> int:
        """Return the position of a node, or -1 if there is none of that name."""
        position = self.base._name_index.find_one(name)
        is_in_base = position >= 0 and self.patch.row_ids[position] != REMOVED
        return position if is_in_base else self._added_position(name)

    def _added_position(self, name: Any) -> int:
        index = self.added.find(name)
        position = len(self.base) + index
        return position if index >= 0 and self.patch.row_ids[position] != REMOVED else -1

    def names_at(self, positions: Iterable[int]) -> list[Any]:
        """Return the names at some positions, at a cost in proportion to their number."""
        start, names = len(self.base), self.base.names
        listed = positions.tolist() if isinstance(positions, np.ndarray) else positions
        found = [names[at] if at < start else self.added[at - start] for at in listed]
        return [int(name) if isinstance(name, np.int64) else name for name in found]

    def neighbors(self, name: Any) -> NDArray[Any]:
        """Return the names of a node's neighbours, in graph order."""
        row = self.rows_at(self.positions([name])).indices
        return as_array(self.names_at(row)) if len(row) else self.base.names[:0]

    def rows_at(self, positions: NDArray[np.int64]) -> Rows:
        """Return the neighbours of the nodes at the given positions."""
        return self.patch.rows_at(positions)

    def degrees_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of neighbours of the nodes at the given positions."""
        starts, stops = self.adjacency().bounds(positions)
        return np.asarray(stops - starts)

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of the nodes at the given positions, (len(positions), f)."""
        positions = np.asarray(positions)
        is_base = positions < len(self.base)
        if is_base.all():
            return self.base.feature_rows(positions)
        if self.added_rows is None:
            raise MissingFeaturesError("this graph has no features")
        added = rows_at(self.added_rows.matrix(), positions[~is_base] - len(self.base))
        if not is_base.any():
            return added
        blocks = stacked([self.base.feature_rows(positions[is_base]), added])
        return rows_at(blocks, np.argsort(np.argsort(~is_base, kind="stable")))

    def adjacency(self, way: Direction = "both") -> Adjacency:
        """Return the arrays that kernels read: the base's own, and the patch."""
        return self.patch.adjacency(way)

    def add(
        self,
        names: Iterable[Any] = (),
        edges: Any = (),
        features: Any = None,
        weights: Any = None,
        *,
        reciprocal: Reciprocal = "error",
    ) -> "Overlay":
        """Return an overlay with more nodes and edges; this one stays unchanged.

        Parameters
        ----------
        names : sequence (a,)
            Names of new nodes.
        edges : pairs of names (m, 2)
            Between any nodes, existing or new; if the graph is directed, from the first to the second. An
            existing edge stays one edge, and its weight grows.
        features : array or sparse matrix (a, f)
            One row per new node; required if and only if the graph has features.
        weights : array (m,)
            Required if and only if the graph is weighted.
        reciprocal : {"error", "sum", "mean", "max"}
            As in :meth:`Graph.from_edges`.

        Examples
        --------
        >>> Overlay.of(Graph.from_edges([(0, 1)])).add([2], [(2, 0)]).degrees.tolist()
        [2, 1, 1]
        """
        return self._add(names, edges, features, weights, reciprocal)

    def _add(
        self, names: Iterable[Any], edges: Any, features: Any, weights: Any, reciprocal: Reciprocal = "error"
    ) -> "Overlay":
        """Implement :meth:`add`; warnings point at the caller's caller."""
        new, weighted = as_names(names), self.base.weights is not None
        known = new[self.find(new) >= 0]
        if len(known):
            raise GraphFormatError(f"{len(known)} new names are already in the graph: {first_few(known)}")
        pairs = as_pairs(edges, has_names=True)
        total = len(self) + len(new)
        ends = self.find(pairs.ravel(), dict(zip(new.tolist(), range(len(self), total), strict=True)))
        require_known(ends, pairs.ravel(), self.base.names, "edges: ")
        if not weighted and weights is not None:
            raise GraphFormatError("the graph is unweighted; leave out weights, or build it with weights")
        if weighted and weights is None and len(pairs):
            raise GraphFormatError("the graph is weighted; pass weights=..., one per added edge")
        touched = np.union1d(ends, np.arange(len(self), total))
        touched_names = concatenated(as_array(self.names_at(touched[touched < len(self)])), new)
        sources, targets = np.searchsorted(touched, ends).reshape(-1, 2).T
        numbers = None
        if weighted:
            numbers = as_weights(() if weights is None else weights, sources, targets, touched_names)
        directions = self.directed, False, reciprocal
        clean, report = clean_edges(sources, targets, touched_names, numbers, *directions)
        rows, patch = self._features_plus(features, new), self.patch.with_edges(touched, clean, total)
        added = self.added.plus(new.tolist())
        changed = replace(self, added=added, added_rows=rows, patch=patch, touched=touched, report=report)
        warn_of_losses(report, stacklevel=3)
        return changed

    def _features_plus(self, features: Any, new: NDArray[Any]) -> "AddedFeatures | None":
        width = self.num_features
        if self.added_rows is None:
            if features is not None:
                raise MissingFeaturesError("the graph has no features; leave out features here too")
            return None
        if features is None:
            if len(new):
                raise MissingFeaturesError(
                    f"the graph has {width} features per node; pass features=... with a row for each new "
                    f"node ({len(new)}), such as numpy.zeros(({len(new)}, {width})) if nothing is known"
                )
            return self.added_rows
        rows = as_features(features, new)
        if rows.shape[1] != width:
            raise MissingFeaturesError(
                f"the graph has {width} features, new nodes {rows.shape[1]}; pass the same columns in order"
            )
        return self.added_rows.plus(rows)

    def remove(self, names: Iterable[Any] = (), edges: Any = ()) -> "Overlay":
        """Return an overlay without some nodes and their edges, and without some edges.

        Parameters
        ----------
        names : sequence (r,)
            Nodes to remove.
        edges : pairs of names (m, 2)
            Edges to remove; each must exist, in either direction if the graph is undirected.

        Examples
        --------
        >>> star = Overlay.of(Graph.from_edges([(0, 1), (0, 2), (0, 3)])).remove([3], [(1, 0)])
        >>> star.num_nodes, star.num_edges, star.degrees.tolist(), star.remaining.tolist()
        (3, 1, [1, 0, 1, 0], [0, 1, 2])
        """
        removed, total = np.unique(self.positions(names)), len(self)
        ends = self.positions(as_pairs(edges, has_names=True).ravel()).reshape(-1, 2)
        near = self.rows_at(removed).indices
        touched = np.setdiff1d(np.concatenate((near, ends.ravel())).astype(np.int64), removed)
        rows = self.rows_at(touched)
        sources = np.repeat(touched, np.diff(rows.indptr))
        keys, there = sources * total + rows.indices, ends[:, 0] * total + ends[:, 1]
        listed = keys if rows.outward is None else keys[rows.outward > 0]
        missing = ends[~np.isin(ends, removed).any(axis=1) & ~np.isin(there, listed)]
        if len(missing):
            shown = f"for example ({first_few(self.names_at(missing[0]))}); remove existing edges"
            raise GraphFormatError(f"{len(missing)} edges to remove are not in the graph, {shown}")
        back = ends[:, 1] * total + ends[:, 0]
        kept = ~np.isin(rows.indices, removed)
        if rows.outward is None or rows.inward is None:
            kept &= ~np.isin(keys, np.concatenate((there, back)))
        else:
            out = np.where(np.isin(keys, there), np.float32(0), rows.outward)
            into = np.where(np.isin(keys, back), np.float32(0), rows.inward)
            rows = rows.with_directions(out, into)
            kept &= (out > 0) | (into > 0)
        lengths = np.bincount(np.searchsorted(touched, sources[kept]), minlength=len(touched))
        left = rows.chosen(pointers(lengths), kept)
        patch = self.patch.without(removed) if len(removed) else self.patch
        return replace(self, patch=patch.with_rows(touched, left, total), touched=touched, report=None)

    def branch(self) -> "Overlay":
        """Return the same overlay with memory of its own, so that additions to it do not slow other overlays.

        Use it to try things out; it costs a copy of what was added to the base.

        Examples
        --------
        >>> tried = Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).branch().add(["what if"], [])
        >>> len(tried)
        4
        """
        rows = None if self.added_rows is None else self.added_rows.copy()
        return replace(self, added=self.added.branch(), patch=self.patch.copy(), added_rows=rows)

    def materialize(self) -> Graph:
        """Return a plain graph with the same nodes, edges, weights and features; removed nodes are left out.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).materialize()
        Graph(3 nodes, 2 edges)
        """
        if not len(self.remaining):
            raise GraphFormatError("a graph needs at least one node; every node of this overlay was removed")
        rows = self.rows_at(self.remaining)
        new_position = np.full(len(self), -1, dtype=np.int64)
        new_position[self.remaining] = np.arange(len(self.remaining))
        features = None if self.base.features is None else self.feature_rows(self.remaining)
        rows = rows._replace(indices=new_position[rows.indices])
        names, encoder = self.names[self.remaining], self.base.encoder
        return Graph._trusted(rows, names, features, self.feature_names, self.report, encoder)


@dataclass(frozen=True, eq=False)
class Patch:
    """Replaced and added rows of a base graph, and the node of each.

    Rows are only ever appended, so that patches can share them. Unused rows are dropped once they outweigh
    the others.
    """

    base: Graph
    row_ids: NDArray[np.int32]  # (n_total,) row of the patch, or -1 if the base's row is valid, or REMOVED
    indptr: "AppendOnlyArray"
    indices: "AppendOnlyArray"
    values: "dict[str, AppendOnlyArray]"  # weights, outward and inward, as in ``Rows``
    waste: int = 0  # entries of replaced rows

    @classmethod
    def empty(cls, base: Graph) -> "Patch":
        """Return a patch without changes."""
        values = {name: AppendOnlyArray(np.zeros(0, np.float32)) for name in base._rows.values}
        row_ids = np.full(len(base), -1, dtype=np.int32)
        indices = AppendOnlyArray(np.zeros(0, base.indices.dtype))
        return cls(base, row_ids, AppendOnlyArray(np.zeros(2, np.int64)), indices, values)

    @property
    def rows(self) -> Rows:
        """All rows, including replaced ones."""
        values = {name: each.values for name, each in self.values.items()}
        return Rows(self.indptr.values, self.indices.values, **values)

    def copy(self) -> "Patch":
        """Return the same patch with memory of its own."""
        values = {name: each.copy() for name, each in self.values.items()}
        return replace(self, indptr=self.indptr.copy(), indices=self.indices.copy(), values=values)

    def adjacency(self, way: Direction) -> Adjacency:
        """Return the arrays that kernels read: the base's own, and the patch."""
        base, rows = self.base.adjacency(way), self.rows
        weights = {"both": rows.weights, "along": rows.outward, "against": rows.inward}[way]
        return Adjacency.of(*base[:3], self.row_ids, rows.indptr, rows.indices, weights)

    @cached_property
    def undirected(self) -> Adjacency:
        """The adjacency for walks in both directions."""
        return self.adjacency("both")

    def rows_at(self, nodes: NDArray[np.int64]) -> Rows:
        """Return the current rows of some nodes, from the patch or else from the base."""
        base, rows, adjacency = self.base._rows, self.rows, self.undirected
        indptr, entries = adjacency.entries(nodes)
        indices, patched = adjacency.gathered(entries, base.indices, rows.indices), rows.values
        values = {name: adjacency.gathered(entries, one, patched[name]) for name, one in base.values.items()}
        return Rows(indptr, indices, **values)

    def with_rows(self, nodes: NDArray[np.int64], rows: Rows, total: int) -> "Patch":
        """Return a patch for ``total`` nodes in which some nodes have new rows."""
        first, known = len(self.indptr) - 1, nodes[nodes < len(self.row_ids)]
        row_ids = np.full(total, -1, dtype=np.int32)
        row_ids[: len(self.row_ids)] = self.row_ids
        row_ids[nodes] = np.arange(first, first + len(nodes), dtype=np.int32)
        values = {name: each.plus(rows.values[name]) for name, each in self.values.items()}
        indptr = self.indptr.plus(rows.indptr[1:] + len(self.indices))
        indices, waste = self.indices.plus(rows.indices), self.waste + self._entries_held(known)
        changed = Patch(self.base, frozen(row_ids), indptr, indices, values, waste)
        return changed._compacted() if changed.waste > max(MAX_WASTE, len(changed.indices) // 2) else changed

    def without(self, nodes: NDArray[np.int64]) -> "Patch":
        """Return a patch in which some nodes are removed; the caller removes edges to them."""
        row_ids = self.row_ids.copy()
        row_ids[nodes] = REMOVED
        return replace(self, row_ids=frozen(row_ids), waste=self.waste + self._entries_held(nodes))

    def with_edges(self, touched: NDArray[np.int64], clean: Rows, total: int) -> "Patch":
        """Return a patch for ``total`` nodes with more edges; the weights of existing edges grow.

        ``touched`` (t,) holds positions, ascending, including those of new nodes; ``clean`` holds the edges
        among them, by index in ``touched``.
        """
        now = self.rows_at(touched[touched < len(self.row_ids)])  # new nodes come last, without rows
        present = np.repeat(np.arange(len(now.indptr) - 1), np.diff(now.indptr))
        added = np.repeat(np.arange(len(touched)), np.diff(clean.indptr))
        listed = np.concatenate((present * total + now.indices, added * total + touched[clean.indices]))

        def summed(old: Any, new: Any) -> Any:
            sums = sum_repeats(listed, np.concatenate((old, new)))[1]
            if sums is not None and sums.max(initial=0) > np.finfo(np.float32).max:
                raise GraphFormatError(f"a weight grows to {sums.max():g}, beyond float32; scale them down")
            return None if sums is None else sums.astype(np.float32)

        values = {name: summed(old, clean.values[name]) for name, old in now.values.items()}
        keys = np.unique(listed)
        lengths = np.bincount(keys // total, minlength=len(touched))
        merged = Rows(pointers(lengths), (keys % total).astype(now.indices.dtype), **values)
        if merged.outward is not None and merged.inward is not None:
            most = np.float32(np.inf if merged.weights is not None else 1)
            merged = merged.with_directions(np.minimum(merged.outward, most), np.minimum(merged.inward, most))
        return self.with_rows(touched, merged, total)

    def _entries_held(self, nodes: NDArray[np.int64]) -> int:
        """Return the number of entries of the patch that belong to some nodes."""
        row_ids, indptr = self.row_ids[nodes], self.indptr.values
        held = row_ids[row_ids > REMOVED]
        return int((indptr[held + 1] - indptr[held]).sum())

    def _compacted(self) -> "Patch":
        """Return the same patch without replaced rows."""
        held = np.flatnonzero(self.row_ids > REMOVED)
        rows, row_ids = self.rows_at(held), self.row_ids.copy()
        row_ids[held] = np.arange(1, len(held) + 1, dtype=np.int32)
        values = {name: AppendOnlyArray(each) for name, each in rows.values.items()}
        indptr = AppendOnlyArray(np.concatenate(([0], rows.indptr)))
        return Patch(self.base, frozen(row_ids), indptr, AppendOnlyArray(rows.indices), values)


@dataclass(frozen=True, eq=False, slots=True)
class AddedNames:
    """Names of added nodes, in order of addition; a name may be added again after its node was removed.

    Overlays share the list and the table of indices; an index is valid if this list has the name there.
    """

    _names: "AppendOnlyArray" = field(default_factory=lambda: AppendOnlyArray(np.zeros(0, object)))
    _joined: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> Any:
        return self._names.values[index]

    def plus(self, names: Sequence[Any]) -> "AddedNames":
        """Return these names with more appended; appending twice to the same names gives two lists."""
        if not len(names):
            return self
        longer = self._names.plus(np.fromiter(names, object, len(names)))
        joined = self._joined if longer.shares(self._names) else self._joined.copy()
        for index, name in enumerate(names, len(self)):
            joined[name] = (*joined.get(name, ()), index)
        return AddedNames(longer, joined)

    def branch(self) -> "AddedNames":
        """Return the same names, to which others can be appended independently."""
        return AddedNames(self._names.copy(), self._joined.copy())

    def find(self, name: Any) -> int:
        """Return the index at which a name was added last, or -1."""
        for index in sorted(self._joined.get(name, ()), reverse=True):
            if index < len(self) and self[index] == name:
                return index
        return -1

    def tolist(self) -> list[Any]:
        """Return the names as a list."""
        return list(self._names.values.tolist())


class AddedFeatures:
    """Feature rows (a, f) of added nodes, dense or sparse like the base's."""

    __slots__ = ("_origin", "_parts", "_width")

    def __init__(self, rows: Features) -> None:
        self._width = rows.shape[1]
        self._origin: tuple[ref[_Buffer], int] | None = None  # the buffer this is a copy of, up to some row
        parts: tuple[Any, ...] = (rows,)
        if issparse(rows):
            parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        self._parts = tuple(map(AppendOnlyArray, parts))

    def plus(self, rows: Features) -> "AddedFeatures":
        """Return these rows with more appended, which become sparse or dense like these."""
        if len(self._parts) == 1:
            return self._of([self._parts[0].plus(rows.toarray() if issparse(rows) else rows)])
        indptr, indices, data = self._parts
        more = csr_array(rows)
        shifted = more.indptr[1:] + len(indices)
        return self._of([indptr.plus(shifted), indices.plus(more.indices), data.plus(more.data)])

    def __len__(self) -> int:
        return len(self._parts[0]) - (len(self._parts) > 1)

    def num_common(self, other: "AddedFeatures") -> int:
        """Return the number of leading rows that are known to equal those of another instance."""
        if self._parts[0].shares(other._parts[0]):
            return min(len(self), len(other))
        is_copy = self._origin is not None and self._origin[0]() is other._parts[0]._buffer
        return min(self._origin[1], len(other)) if is_copy and self._origin is not None else 0

    def copy(self) -> "AddedFeatures":
        """Return the same rows, to which others can be appended independently."""
        return self._of([part.copy() for part in self._parts])

    def matrix(self) -> Features:
        """Return all rows, (a, f)."""
        if len(self._parts) == 1:
            return self._parts[0].values
        indptr, indices, data = (part.values for part in self._parts)
        return csr_array((data, indices, indptr), shape=(len(indptr) - 1, self._width))

    def _of(self, parts: "list[AppendOnlyArray]") -> "AddedFeatures":
        made = object.__new__(AddedFeatures)
        made._parts, made._width, made._origin = tuple(parts), self._width, self._origin
        if not parts[0].shares(self._parts[0]):
            made._origin = ref(self._parts[0]._buffer), len(self)
        return made


class AppendOnlyArray:
    """The first values of a growing buffer, which other arrays may share.

    The first array to be extended from this one writes behind its end; a second one gets a copy. No value
    that an array can see ever changes, so readers need no lock.
    """

    __slots__ = ("_buffer", "_length")

    def __init__(self, values: NDArray[Any]) -> None:
        self._buffer, self._length = _Buffer(values), len(values)

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        """The values, read-only."""
        return frozen(self._buffer.room[: self._length])

    def plus(self, more: Any) -> "AppendOnlyArray":
        """Return an array with more values appended, at a cost in proportion to their number."""
        buffer, start, stop = self._buffer, self._length, self._length + len(more)
        if not len(more):
            return self
        with buffer.lock:
            if buffer.used == start:
                if stop > len(buffer.room):
                    shape = max(2 * start, stop, 16), *buffer.room.shape[1:]
                    room = np.empty(shape, buffer.room.dtype)
                    room[:start] = buffer.room[:start]
                    buffer.room = room  # filled before any reader sees it
                buffer.room[start:stop] = more
                buffer.used = stop
                longer = object.__new__(AppendOnlyArray)
                longer._buffer, longer._length = buffer, stop
                return longer
        return self.copy().plus(more)

    def shares(self, other: "AppendOnlyArray") -> bool:
        """Return whether another array shares the memory."""
        return self._buffer is other._buffer

    def copy(self) -> "AppendOnlyArray":
        """Return the same values with memory of their own."""
        return AppendOnlyArray(self._buffer.room[: self._length].copy())


class _Buffer:
    """Memory in which the first ``used`` values are written; it doubles when full."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.room, self.used, self.lock = values, len(values), Lock()
