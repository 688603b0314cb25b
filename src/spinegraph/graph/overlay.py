"""Overlay: a graph plus nodes and edges added and removed since, without a copy of the base."""

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
    row_entries,
    row_sums,
    rows_at,
    stacked,
    sum_repeats,
    warn_of_losses,
)
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import (
    UNHASHABLE,
    as_array,
    as_names,
    concatenated,
    first_few,
    quoted,
    require_known,
)
from spinegraph.kernels.adjacency import Adjacency, Way

REMOVED = 0  # row of every removed node; it is empty
MAX_WASTE = 1 << 16  # entries of replaced rows that are kept, at least, before a patch is compacted


@dataclass(frozen=True, eq=False, repr=False)
class Overlay:
    """A base graph with nodes and edges added and removed since, frozen; it reads like a graph.

    Rows that a change touches are stored whole beside the base; all others are the base's own. A change costs
    the rows it touches and four bytes per node. Overlays that come from one another share memory, and none
    of them ever changes: a reader may keep one while others are made.

    A removed node keeps its position, without edges, so no other node moves; a name that joins again gets
    a new one. Make an overlay with :meth:`Graph.overlay`, and further ones with :meth:`add` and
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
        Positions whose rows the last change replaced, removed nodes aside; ascending.
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
        """Return an overlay that changes nothing yet.

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
        """Number of nodes, isolated ones included and removed ones not: at most ``len(overlay)``."""
        return len(self.standing)

    @cached_property
    def standing(self) -> NDArray[np.int64]:
        """Positions of the nodes that were not removed, ascending."""
        return frozen(np.flatnonzero(self.patch.row_ids != REMOVED))

    @property
    def num_edges(self) -> int:
        """Number of edges; two directions of a directed graph are two."""
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
        """Number of features per node, 0 without any."""
        return self.base.num_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names of the features, where known."""
        return self.base.feature_names

    @cached_property
    def names(self) -> NDArray[Any]:
        """Names at all positions, (n,): the base's, then the added, removed nodes included."""
        return frozen(concatenated(self.base.names, as_array(self.added.tolist())))

    @cached_property
    def features(self) -> Features | None:
        """Features of all nodes, (n, f); this copies the base's, :meth:`feature_rows` does not."""
        if self.base.features is None or self.added_rows is None:
            return None
        return stacked([self.base.features, self.added_rows.matrix()])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""
        return frozen(self._patched_values(self.base.degrees, np.diff(self.patch.indptr.values)))

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the weights at each node, (n,); the degree in an unweighted graph."""
        rows = self.patch.rows
        return frozen(self._patched_values(self.base.strengths, row_sums(rows.indptr, rows.weights)))

    @cached_property
    def out_degrees(self) -> NDArray[np.int64]:
        """Number of edges from each node, (n,)."""
        return self._of_way("outward", self.base.out_degrees, entry_counts)

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        """Number of edges to each node, (n,)."""
        return self._of_way("inward", self.base.in_degrees, entry_counts)

    @cached_property
    def out_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges from each node, (n,)."""
        return self._of_way("outward", self.base.out_strengths, row_sums)

    @cached_property
    def in_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges to each node, (n,)."""
        return self._of_way("inward", self.base.in_strengths, row_sums)

    def _of_way(self, way: str, of_base: NDArray[Any], count: Any) -> NDArray[Any]:
        """Return degrees or strengths of one direction; those of both where edges have none."""
        rows = self.patch.rows
        if not self.directed:
            return self.degrees if count is entry_counts else self.strengths
        return frozen(self._patched_values(of_base, count(rows.indptr, getattr(rows, way))))

    def _patched_values(self, of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        """Return one value per node, from the patch where it has a row and from the base elsewhere."""
        values = np.zeros(len(self), dtype=of_base.dtype)
        values[: len(self.base)] = of_base
        is_patched = self.patch.row_ids >= 0
        values[is_patched] = of_patch[self.patch.row_ids[is_patched]]
        return values

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of the given nodes; added nodes follow the base's."""
        wanted = as_array(names)
        found = self.find(wanted)
        require_known(found, wanted, self.base.names)
        return found

    def find(self, names: Iterable[Any], new: dict[Any, int] | None = None) -> NDArray[np.int64]:
        """Return the positions of the given nodes; those of ``new``, or -1, for unknown ones."""
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
        """Return the position of one node, -1 where there is none of that name."""
        position = self.base._name_index.find_one(name)
        is_in_base = position >= 0 and self.patch.row_ids[position] != REMOVED
        return position if is_in_base else self._added_position(name)

    def _added_position(self, name: Any) -> int:
        index = self.added.find(name)
        position = len(self.base) + index
        return position if index >= 0 and self.patch.row_ids[position] != REMOVED else -1

    def names_at(self, positions: Iterable[int]) -> list[Any]:
        """Return the names at some positions, at their cost alone."""
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
        return self.patch.lengths_at(positions)

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
        order = np.empty(len(positions), dtype=np.int64)
        order[np.argsort(~is_base, kind="stable")] = np.arange(len(positions))
        return rows_at(blocks, order)

    def adjacency(self, way: Way = "both") -> Adjacency:
        """Return the arrays that kernels read: the base's own, and the patch."""
        base, rows = self.base.adjacency(way), self.patch.rows
        weights = {"both": rows.weights, "along": rows.outward, "against": rows.inward}[way]
        return Adjacency.of(*base[:3], self.patch.row_ids, rows.indptr, rows.indices, weights)

    def add(
        self,
        names: Iterable[Any] = (),
        edges: Any = (),
        features: Any = None,
        weights: Any = None,
        *,
        reciprocal: Reciprocal = "error",
    ) -> "Overlay":
        """Return an overlay with more nodes and edges; this one stays as it is.

        Parameters
        ----------
        names : sequence (a,)
            Names of new nodes.
        edges : pairs of names (m, 2)
            Between any nodes, known or new; where the graph is directed, from the first to the second. An
            edge that is there already stays one edge; its weight grows.
        features : array or sparse matrix (a, f)
            One row per new node; needed exactly when the graph has features.
        weights : array (m,)
            Needed exactly when the graph is weighted.
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
        """Do what :meth:`add` says; warnings point at the caller's caller."""
        new, weighted = as_names(names), self.base.weights is not None
        known = new[self.find(new) >= 0]
        if len(known):
            raise GraphFormatError(f"{len(known)} new names are in the graph already: {first_few(known)}")
        pairs = as_pairs(edges, has_names=True)
        total = len(self) + len(new)
        ends = self.find(pairs.ravel(), dict(zip(new.tolist(), range(len(self), total), strict=True)))
        require_known(ends, pairs.ravel(), self.base.names, "edges: ")
        if not weighted and weights is not None:
            raise GraphFormatError("the graph is unweighted; leave weights out, or build it with weights")
        if weighted and weights is None and len(pairs):
            raise GraphFormatError("the graph is weighted; pass weights=..., one per added edge")
        touched = np.union1d(ends, np.arange(len(self), total))
        touched_names = concatenated(as_array(self.names_at(touched[touched < len(self)])), new)
        sources, targets = np.searchsorted(touched, ends).reshape(-1, 2).T
        numbers = None
        if weighted:
            numbers = as_weights(() if weights is None else weights, sources, targets, touched_names)
        ways = self.directed, False, reciprocal
        clean, report = clean_edges(sources, targets, touched_names, numbers, *ways)
        changed = replace(
            self,
            added_rows=self._features_plus(features, new),
            patch=self.patch.with_edges(touched, clean, total),
            added=self.added.plus(new.tolist()),
            touched=touched,
            report=report,
        )
        warn_of_losses(report, stacklevel=3)
        return changed

    def _features_plus(self, features: Any, new: NDArray[Any]) -> "AddedFeatures | None":
        width = self.num_features
        if self.added_rows is None:
            if features is not None:
                raise MissingFeaturesError("the graph has no features; leave features out here too")
            return None
        if features is None:
            if len(new):
                raise MissingFeaturesError(
                    f"the graph has {width} features per node; "
                    f"pass features=... with a row for each of the {len(new)} new nodes"
                )
            return self.added_rows
        rows = as_features(features, new)
        if rows.shape[1] != width:
            raise MissingFeaturesError(
                f"the graph has {width} features per node, new nodes {rows.shape[1]}; "
                "pass the same columns in the same order"
            )
        return self.added_rows.plus(rows)

    def remove(self, names: Iterable[Any] = (), edges: Any = ()) -> "Overlay":
        """Return an overlay without some nodes and their edges, and without some edges; this one stays.

        Parameters
        ----------
        names : sequence (r,)
            Nodes to remove.
        edges : pairs of names (m, 2)
            Edges to remove; each must be there, in either direction where the graph is undirected.

        Examples
        --------
        >>> star = Overlay.of(Graph.from_edges([(0, 1), (0, 2), (0, 3)])).remove([3], [(1, 0)])
        >>> star.num_nodes, star.num_edges, star.degrees.tolist(), star.standing.tolist()
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
            source, target = self.names_at(missing[0])
            raise GraphFormatError(
                f"{len(missing)} edges to remove are not in the graph, for example "
                f"({quoted(source)}, {quoted(target)}); remove edges that are there"
            )
        back = ends[:, 1] * total + ends[:, 0]
        kept = ~np.isin(rows.indices, removed)
        if rows.outward is None or rows.inward is None:
            kept &= ~np.isin(keys, np.concatenate((there, back)))
        else:
            out, into = (
                np.where(np.isin(keys, gone), np.float32(0), way)
                for gone, way in ((there, rows.outward), (back, rows.inward))
            )
            rows = rows.with_ways(out, into)
            kept &= (out > 0) | (into > 0)
        lengths = np.bincount(np.searchsorted(touched, sources[kept]), minlength=len(touched))
        left = rows.chosen(pointers(lengths), kept)
        patch = self.patch.without(removed) if len(removed) else self.patch
        return replace(self, patch=patch.with_rows(touched, left, total), touched=touched, report=None)

    def branch(self) -> "Overlay":
        """Return the same overlay with memory of its own, so that additions to it cost no other overlay time.

        Use it for what is only tried out; it costs a copy of what was added since the base.

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
        if not len(self.standing):
            raise GraphFormatError("a graph has at least one node; every node of this overlay was removed")
        rows = self.rows_at(self.standing)
        new_position = np.full(len(self), -1, dtype=np.int64)
        new_position[self.standing] = np.arange(len(self.standing))
        features = None if self.base.features is None else self.feature_rows(self.standing)
        rows = rows._replace(indices=new_position[rows.indices])
        return Graph._trusted(rows, self.names[self.standing], features, self.feature_names, self.report)


@dataclass(frozen=True, eq=False)
class Patch:
    """Replaced and added rows of a base graph, and which node each belongs to.

    Rows are only ever appended, so that patches share them. Rows that no node refers to any more are dropped
    when they outweigh the others.
    """

    base: Graph
    row_ids: NDArray[np.int32]  # (n_total,) row of the patch, -1 where the base's row is valid, or REMOVED
    indptr: "AppendOnlyArray"
    indices: "AppendOnlyArray"
    values: "dict[str, AppendOnlyArray]"  # weights, outward and inward, as in ``Rows``
    waste: int = 0  # entries of rows that were replaced

    @classmethod
    def empty(cls, base: Graph) -> "Patch":
        """Return a patch that changes nothing."""
        values = {name: AppendOnlyArray(np.zeros(0, np.float32)) for name in base._rows.values}
        row_ids = np.full(len(base), -1, dtype=np.int32)
        indices = AppendOnlyArray(np.zeros(0, base.indices.dtype))
        return cls(base, row_ids, AppendOnlyArray(np.zeros(2, np.int64)), indices, values)

    @property
    def rows(self) -> Rows:
        """All rows, those that were replaced included."""
        values = {name: each.values for name, each in self.values.items()}
        return Rows(self.indptr.values, self.indices.values, **values)

    def copy(self) -> "Patch":
        """Return the same patch with memory of its own."""
        values = {name: each.copy() for name, each in self.values.items()}
        return replace(self, indptr=self.indptr.copy(), indices=self.indices.copy(), values=values)

    def lengths_at(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the degrees of the given nodes, at their cost alone."""
        row_ids, indptr = self.row_ids[nodes], self.indptr.values
        is_base = row_ids < 0
        of_base, of_patch = nodes[is_base], row_ids[~is_base]
        lengths = np.empty(len(nodes), dtype=np.int64)
        lengths[is_base] = self.base.indptr[of_base + 1] - self.base.indptr[of_base]
        lengths[~is_base] = indptr[of_patch + 1] - indptr[of_patch]
        return lengths

    def rows_at(self, nodes: NDArray[np.int64]) -> Rows:
        """Return the valid rows of the given nodes, from the patch or else from the base."""
        row_ids, rows, base = self.row_ids[nodes], self.rows, self.base
        is_base = row_ids < 0
        lengths = self.lengths_at(nodes)
        from_base = np.repeat(is_base, lengths)
        base_entries = row_entries(base.indptr, nodes[is_base])
        patch_entries = row_entries(rows.indptr, row_ids[~is_base])

        def gathered(of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
            values = np.empty(len(from_base), dtype=of_base.dtype)
            values[from_base] = of_base[base_entries]
            values[~from_base] = of_patch[patch_entries]
            return values

        values = {name: gathered(each, rows.values[name]) for name, each in base._rows.values.items()}
        return Rows(pointers(lengths), gathered(base.indices, rows.indices), **values)

    def with_rows(self, nodes: NDArray[np.int64], rows: Rows, total: int) -> "Patch":
        """Return a patch of ``total`` nodes in which the given nodes have the given rows."""
        first, known = len(self.indptr) - 1, nodes[nodes < len(self.row_ids)]
        row_ids = np.full(total, -1, dtype=np.int32)
        row_ids[: len(self.row_ids)] = self.row_ids
        row_ids[nodes] = np.arange(first, first + len(nodes), dtype=np.int32)
        values = {name: each.plus(rows.values[name]) for name, each in self.values.items()}
        changed = Patch(
            self.base,
            frozen(row_ids),
            self.indptr.plus(rows.indptr[1:] + len(self.indices)),
            self.indices.plus(rows.indices),
            values,
            self.waste + self._entries_held(known),
        )
        is_wasteful = changed.waste > max(MAX_WASTE, len(changed.indices) // 2)
        return changed._compacted() if is_wasteful else changed

    def without(self, nodes: NDArray[np.int64]) -> "Patch":
        """Return a patch in which the given nodes are removed; edges to them are left to the caller."""
        row_ids = self.row_ids.copy()
        row_ids[nodes] = REMOVED
        return replace(self, row_ids=frozen(row_ids), waste=self.waste + self._entries_held(nodes))

    def with_edges(self, touched: NDArray[np.int64], clean: Rows, total: int) -> "Patch":
        """Return a patch of ``total`` nodes with more edges; the weight of one that is there already grows.

        ``touched`` (t,) are positions, ascending, those of new nodes included; ``clean`` are the edges among
        them, by their index in ``touched``.
        """
        now = self.rows_at(touched[touched < len(self.row_ids)])  # new nodes come last, without rows
        present = np.repeat(np.arange(len(now.indptr) - 1), np.diff(now.indptr))
        added = np.repeat(np.arange(len(touched)), np.diff(clean.indptr))
        listed = np.concatenate((present * total + now.indices, added * total + touched[clean.indices]))

        def summed(old: Any, new: Any) -> Any:
            sums = sum_repeats(listed, np.concatenate((old, new)))[1]
            if sums is not None and sums.max(initial=0) > np.finfo(np.float32).max:
                raise GraphFormatError(
                    f"a weight grows to {sums.max():g}, more than float32 holds; scale them down"
                )
            return None if sums is None else sums.astype(np.float32)

        values = {name: summed(old, clean.values[name]) for name, old in now.values.items()}
        keys = np.unique(listed)
        lengths = np.bincount(keys // total, minlength=len(touched))
        merged = Rows(pointers(lengths), (keys % total).astype(now.indices.dtype), **values)
        if merged.outward is not None and merged.inward is not None:
            most = np.float32(np.inf if merged.weights is not None else 1)
            merged = merged.with_ways(np.minimum(merged.outward, most), np.minimum(merged.inward, most))
        return self.with_rows(touched, merged, total)

    def _entries_held(self, nodes: NDArray[np.int64]) -> int:
        """Return how many entries of the patch belong to the given nodes."""
        row_ids, indptr = self.row_ids[nodes], self.indptr.values
        held = row_ids[row_ids > REMOVED]
        return int((indptr[held + 1] - indptr[held]).sum())

    def _compacted(self) -> "Patch":
        """Return the same patch without the rows that were replaced."""
        held = np.flatnonzero(self.row_ids > REMOVED)
        rows, row_ids = self.rows_at(held), self.row_ids.copy()
        row_ids[held] = np.arange(1, len(held) + 1, dtype=np.int32)
        values = {name: AppendOnlyArray(each) for name, each in rows.values.items()}
        indptr = AppendOnlyArray(np.concatenate(([0], rows.indptr)))
        return Patch(self.base, frozen(row_ids), indptr, AppendOnlyArray(rows.indices), values)


class AddedNames:
    """Names of added nodes, in order of joining; a name may join again after its node was removed.

    Overlays share the list and the table of indices; an index counts where the own list has the name there.
    """

    __slots__ = ("_joined", "_names")

    def __init__(self) -> None:
        self._names = AppendOnlyArray(np.zeros(0, object))
        self._joined: dict[Any, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> Any:
        return self._names.values[index]

    def plus(self, names: Sequence[Any]) -> "AddedNames":
        """Return these names and more; growing twice from the same names gives two lists."""
        if not len(names):
            return self
        longer = AddedNames()
        longer._names = self._names.plus(np.fromiter(names, object, len(names)))
        longer._joined = self._joined if longer._names.shares(self._names) else self._joined.copy()
        for index, name in enumerate(names, len(self)):
            longer._joined[name] = (*longer._joined.get(name, ()), index)
        return longer

    def branch(self) -> "AddedNames":
        """Return the same names, to grow independently of these."""
        made = AddedNames()
        made._names, made._joined = self._names.copy(), self._joined.copy()
        return made

    def find(self, name: Any) -> int:
        """Return the index at which a name joined last, -1 where it never did."""
        for index in sorted(self._joined.get(name, ()), reverse=True):
            if index < len(self) and self[index] == name:
                return index
        return -1

    def tolist(self) -> list[Any]:
        """Return the names as a list."""
        listed: list[Any] = self._names.values.tolist()
        return listed


class AddedFeatures:
    """Feature rows (a, f) of added nodes, dense or sparse like the base's."""

    __slots__ = ("_origin", "_parts", "_width")

    def __init__(self, rows: Features) -> None:
        self._width = rows.shape[1]
        self._origin: tuple[ref[_Buffer], int] | None = None  # of which these are a copy, up to so many rows
        parts: tuple[Any, ...] = (rows,)
        if issparse(rows):
            parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)
        self._parts = tuple(map(AppendOnlyArray, parts))

    def plus(self, rows: Features) -> "AddedFeatures":
        """Return these rows and more; dense rows become sparse where these are, and the other way round."""
        if len(self._parts) == 1:
            return self._of([self._parts[0].plus(rows.toarray() if issparse(rows) else rows)])
        indptr, indices, data = self._parts
        more = csr_array(rows)
        shifted = more.indptr[1:] + len(indices)
        return self._of([indptr.plus(shifted), indices.plus(more.indices), data.plus(more.data)])

    def __len__(self) -> int:
        return len(self._parts[0]) - (len(self._parts) > 1)

    def num_common(self, other: "AddedFeatures") -> int:
        """Return how many leading rows are surely those of other ones."""
        if self._parts[0].shares(other._parts[0]):
            return min(len(self), len(other))
        is_copy = self._origin is not None and self._origin[0]() is other._parts[0]._buffer
        return min(self._origin[1], len(other)) if is_copy and self._origin is not None else 0

    def copy(self) -> "AddedFeatures":
        """Return the same rows, to grow independently of these."""
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

    The first array to grow from this one writes behind its end; a second one gets a copy. No array ever sees
    a value change, so readers need no lock.
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
        """Return an array with more values behind these, at their cost alone."""
        buffer, length = self._buffer, self._length + len(more)
        if not len(more):
            return self
        with buffer.lock:
            is_end = buffer.used == self._length
            if is_end:
                buffer.write(more)
        if not is_end:
            return self.copy().plus(more)
        longer = object.__new__(AppendOnlyArray)
        longer._buffer, longer._length = buffer, length
        return longer

    def shares(self, other: "AppendOnlyArray") -> bool:
        """Return whether another array has the same memory."""
        return self._buffer is other._buffer

    def copy(self) -> "AppendOnlyArray":
        """Return the same values with memory of their own."""
        return AppendOnlyArray(self._buffer.room[: self._length].copy())


class _Buffer:
    """Memory of which the first ``used`` values are written; it doubles when it is full."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.room, self.used, self.lock = values, len(values), Lock()

    def write(self, more: Any) -> None:
        start, stop = self.used, self.used + len(more)
        if stop > len(self.room):
            room = np.empty((max(2 * start, stop, 16), *self.room.shape[1:]), dtype=self.room.dtype)
            room[:start] = self.room[:start]
            self.room = room
        self.room[start:stop] = more
        self.used = stop
