"""Overlay: a graph plus what was added and removed since, read by kernels without a copy of the base."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.edges import (
    EdgeReport,
    Features,
    Reciprocal,
    as_features,
    as_pairs,
    as_weights,
    clean_edges,
    frozen,
    pointers,
    row_sums,
    rows_at,
    rows_of_two,
    stacked,
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
from spinegraph.graph.patch import (
    REMOVED,
    AddedFeatures,
    AddedNames,
    Patch,
    Rows,
    empty_patch,
    patched,
    row_lengths,
    rows_of,
    with_rows,
    without_nodes,
)
from spinegraph.kernels.adjacency import Adjacency


@dataclass(frozen=True, eq=False, repr=False)
class OverlayReading:
    """The parts of an overlay and all that is read from them; see :class:`Overlay`."""

    base: Graph
    added: AddedNames
    patch: Patch
    added_rows: AddedFeatures | None = None
    touched: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    report: EdgeReport | None = None

    def __len__(self) -> int:
        return len(self.patch.places)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included and removed ones not: at most ``len(overlay)``."""
        return len(self.standing)

    @cached_property
    def standing(self) -> NDArray[np.int64]:
        """Positions of the nodes that were not removed, ascending."""
        return frozen(np.flatnonzero(self.patch.places != REMOVED))

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.degrees.sum()) // 2

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
        return frozen(concatenated(self.base.names, self.added.array()))

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

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of the given nodes; added nodes follow the base's."""
        wanted = as_array(names)
        found = self.find(wanted)
        require_known(found, wanted, self.base.names)
        return found

    def neighbors(self, name: Any) -> NDArray[Any]:
        """Return the names of a node's neighbours, in graph order."""
        row = rows_of(self.base, self.patch, self.positions([name])).indices
        return as_array(self.names_at(row)) if len(row) else self.base.names[:0]

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of the nodes at the given positions, (len(positions), f)."""
        positions = np.asarray(positions)
        is_base = positions < len(self.base)
        if is_base.all():
            return self.base.feature_rows(positions)
        if self.added_rows is None:
            raise MissingFeaturesError("this graph has no features")
        if not is_base.any():
            return rows_at(self.added_rows.matrix(), positions - len(self.base))
        return rows_of_two(self.base.features, self.added_rows.matrix(), positions)

    def degrees_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of neighbours of the nodes at the given positions."""
        return row_lengths(self.base, self.patch, positions)

    def adjacency(self) -> Adjacency:
        """Return the arrays that kernels read: the base's own, and the patch."""
        base, rows = self.base, self.patch.rows
        return Adjacency.of(
            base.indptr,
            base.indices,
            base.weights,
            self.patch.places,
            rows.indptr,
            rows.indices,
            rows.weights,
        )

    def find(self, names: Iterable[Any], new: dict[Any, int] | None = None) -> NDArray[np.int64]:
        """Return the positions of the given nodes, or what ``new`` says of others, or -1."""
        wanted, places, start = as_array(names), self.patch.places, len(self.base)
        found = self.base._name_index.find(wanted)
        found[(found >= 0) & (places[found] == REMOVED)] = -1
        for at in np.flatnonzero(found < 0):
            name = wanted[at]
            try:
                place = self.added.find(name) + start
            except TypeError as error:
                raise GraphFormatError(f"{UNHASHABLE}: {error}") from error
            if place >= start and places[place] != REMOVED:
                found[at] = place
            elif new is not None:
                found[at] = new.get(name, -1)
        return found

    def position(self, name: Any) -> int:
        """Return the position of one node, -1 where there is none of that name."""
        places, place = self.patch.places, self.base._name_index.find_one(name)
        if place >= 0 and places[place] != REMOVED:
            return place
        place = self.added.find(name) + len(self.base)
        return place if place >= len(self.base) and places[place] != REMOVED else -1

    def names_at(self, positions: Iterable[int]) -> list[Any]:
        """Return the names at some positions, without a look at the others."""
        start, names = len(self.base), self.base.names
        listed = positions.tolist() if isinstance(positions, np.ndarray) else positions
        plain = names.dtype == np.int64
        return [
            (int(names[place]) if plain else names[place])
            if place < start
            else self.added.at(np.array([place - start]))[0]
            for place in listed
        ]

    def _patched_values(self, of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        """Return one value per node, from the patch where it has a row and from the base elsewhere."""
        values = np.zeros(len(self), dtype=of_base.dtype)
        values[: len(self.base)] = of_base
        is_patched = self.patch.places >= 0
        values[is_patched] = of_patch[self.patch.places[is_patched]]
        return values


def grown(
    overlay: "Overlay",
    names: Iterable[Any],
    edges: Any,
    features: Any,
    weights: Any,
    reciprocal: Reciprocal,
    *,
    stacklevel: int,
) -> "Overlay":
    """Return an overlay with more nodes and edges, as :meth:`Overlay.add` says."""
    new = as_names(names)
    known = new[overlay.find(new) >= 0]
    if len(known):
        raise GraphFormatError(f"{len(known)} new names are in the graph already: {first_few(known)}")
    pairs = as_pairs(edges, has_names=True)
    total = len(overlay) + len(new)
    ends = overlay.find(pairs.ravel(), dict(zip(new.tolist(), range(len(overlay), total), strict=True)))
    require_known(ends, pairs.ravel(), overlay.base.names, "edges: ")
    touched = np.union1d(ends, np.arange(len(overlay), total))
    sources, targets = np.searchsorted(touched, ends).reshape(-1, 2).T
    old = as_array(overlay.names_at(touched[touched < len(overlay)]))
    touched_names = concatenated(old, new)
    _require_fitting(overlay, weights, len(sources))
    numbers = None
    if overlay.base.weights is not None:
        numbers = as_weights(() if weights is None else weights, sources, targets, touched_names)
    clean = clean_edges(sources, targets, touched_names, numbers, reciprocal=reciprocal)
    rows = _grown_features(overlay, features, new)
    patch = patched(overlay.base, overlay.patch, touched, clean, total)
    warn_of_losses(clean.report, stacklevel=stacklevel + 1)
    added = overlay.added.plus(new.tolist())
    return replace(overlay, added=added, patch=patch, added_rows=rows, touched=touched, report=clean.report)


def shrunk(overlay: "Overlay", names: Iterable[Any], edges: Any) -> "Overlay":
    """Return an overlay without some nodes and edges, as :meth:`Overlay.remove` says."""
    gone, total = np.unique(overlay.positions(names)), len(overlay)
    ends = overlay.positions(as_pairs(edges, has_names=True).ravel()).reshape(-1, 2)
    near = rows_of(overlay.base, overlay.patch, gone).indices
    touched = np.setdiff1d(np.concatenate((near, ends.ravel())).astype(np.int64), gone)
    rows = rows_of(overlay.base, overlay.patch, touched)
    sources = np.repeat(touched, np.diff(rows.indptr))
    keys, there = sources * total + rows.indices, ends[:, 0] * total + ends[:, 1]
    missing = ends[~np.isin(ends, gone).any(axis=1) & ~np.isin(there, keys)]
    if len(missing):
        source, target = overlay.names_at(missing[0])
        raise GraphFormatError(
            f"{len(missing)} edges to remove are not in the graph, for example "
            f"({quoted(source)}, {quoted(target)}); remove edges that are there"
        )
    dropped = np.concatenate((there, ends[:, 1] * total + ends[:, 0]))
    kept = ~(np.isin(rows.indices, gone) | np.isin(keys, dropped))
    lengths = np.bincount(np.searchsorted(touched, sources[kept]), minlength=len(touched))
    weights = None if rows.weights is None else rows.weights[kept]
    left = Rows(pointers(lengths), rows.indices[kept], weights)
    patch = without_nodes(overlay.patch, gone) if len(gone) else overlay.patch
    patch = with_rows(overlay.base, patch, touched, left, total)
    return replace(overlay, patch=patch, touched=touched, report=None)


def _require_fitting(overlay: "Overlay", weights: Any, num_edges: int) -> None:
    if overlay.base.weights is None and weights is not None:
        raise GraphFormatError("the graph is unweighted; leave weights out, or build it with weights")
    if overlay.base.weights is not None and weights is None and num_edges:
        raise GraphFormatError("the graph is weighted; pass weights=..., one per added edge")


def _grown_features(overlay: "Overlay", features: Any, new: NDArray[Any]) -> AddedFeatures | None:
    present, width = (
        overlay.added_rows,
        0 if overlay.base.features is None else overlay.base.features.shape[1],
    )
    if present is None:
        if features is not None:
            raise MissingFeaturesError("the graph has no features; leave features out here too")
        return None
    if features is None:
        if len(new):
            raise MissingFeaturesError(
                f"the graph has {width} features per node; "
                f"pass features=... with a row for each of the {len(new)} new nodes"
            )
        return present
    rows = as_features(features, new)
    if rows.shape[1] != width:
        raise MissingFeaturesError(
            f"the graph has {width} features per node, new nodes {rows.shape[1]}; "
            "pass the same columns in the same order"
        )
    return present.plus(rows)


@dataclass(frozen=True, eq=False, repr=False)
class Overlay(OverlayReading):
    """A base graph with nodes and edges added and removed since, frozen; it reads like a graph.

    Rows that a change touches are kept whole beside the base; all others are the base's own. A change costs
    the rows it touches and four bytes per node. Overlays that come from one another share what they have in
    common, and no one of them ever changes: a reader may keep one while others are made.

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

    @classmethod
    def of(cls, base: Graph) -> "Overlay":
        """Return an overlay that changes nothing yet.

        Examples
        --------
        >>> len(Overlay.of(Graph.from_edges([(0, 1)])))
        2
        """
        rows = None if base.features is None else AddedFeatures(base.feature_rows(np.zeros(0, np.int64)))
        return cls(base, AddedNames(), empty_patch(base), rows)

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
            Between any nodes, known or new. An edge that is there already stays one edge; its weight grows.
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
        return self._add(names, edges, features, weights, reciprocal, stacklevel=2)

    def _add(
        self,
        names: Iterable[Any],
        edges: Any,
        features: Any,
        weights: Any,
        reciprocal: Reciprocal = "error",
        *,
        stacklevel: int,
    ) -> "Overlay":
        """Do what :meth:`add` says; warnings point ``stacklevel`` frames above this one."""
        return grown(self, names, edges, features, weights, reciprocal, stacklevel=stacklevel + 1)

    def remove(self, names: Iterable[Any] = (), edges: Any = ()) -> "Overlay":
        """Return an overlay without some nodes and their edges, and without some edges; this one stays.

        Parameters
        ----------
        names : sequence (r,)
            Nodes to remove.
        edges : pairs of names (m, 2)
            Edges to remove, in either direction; each must be there.

        Examples
        --------
        >>> star = Overlay.of(Graph.from_edges([(0, 1), (0, 2), (0, 3)])).remove([3], [(1, 0)])
        >>> star.num_nodes, star.num_edges, star.degrees.tolist(), star.standing.tolist()
        (3, 1, [1, 0, 1, 0], [0, 1, 2])
        """
        return shrunk(self, names, edges)

    def branch(self) -> "Overlay":
        """Return the same overlay with room of its own: growing it never meets another's growing.

        What is made for a moment, such as a node that is only tried out, grows from a branch; this costs a
        copy of what was added since the base.

        Examples
        --------
        >>> tried = Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).branch().add(["what if"], [])
        >>> len(tried)
        4
        """
        rows = None if self.added_rows is None else self.added_rows.copy()
        return Overlay(self.base, self.added.branch(), self.patch.copy(), rows, self.touched, self.report)

    def materialize(self) -> Graph:
        """Return a plain graph with the same nodes, edges, weights and features; removed nodes are left out.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).materialize()
        Graph(3 nodes, 2 edges)
        """
        if not len(self.standing):
            raise GraphFormatError("a graph has at least one node; every node of this overlay was removed")
        whole = rows_of(self.base, self.patch, self.standing)
        place = np.full(len(self), -1, dtype=np.int64)
        place[self.standing] = np.arange(len(self.standing))
        return Graph._trusted(
            whole.indptr,
            place[whole.indices],
            whole.weights,
            self.names[self.standing],
            None if self.base.features is None else self.feature_rows(self.standing),
            self.feature_names,
            self.report,
        )

    def __repr__(self) -> str:
        added, count, gone = len(self.added), self.num_edges, len(self) - self.num_nodes
        nodes = f"{self.num_nodes} node{'s' * (self.num_nodes != 1)}, {count} edge{'s' * (count != 1)}"
        removed = f", {gone} removed" * bool(gone)
        return f"Overlay({nodes}, {added} node{'s' * (added != 1)} added to {self.base}{removed})"
