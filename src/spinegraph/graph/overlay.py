"""A graph plus what was added and removed since, read by kernels without a copy of the base."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spinegraph.errors import GraphFormatError
from spinegraph.graph.added import AddedFeatures, AddedNames
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.graph import Graph
from spinegraph.graph.overlay_changes import grown, shrunk
from spinegraph.graph.overlay_reading import OverlayReading
from spinegraph.graph.patch import empty_patch, rows_of


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
