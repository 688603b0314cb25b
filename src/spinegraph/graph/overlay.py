"""A graph plus what was added since, read by kernels without a copy of the base."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.checks import Features, as_features, as_weights, frozen
from spinegraph.graph.edges import EdgeReport, Reciprocal, clean_edges, warn_of_losses
from spinegraph.graph.graph import Graph
from spinegraph.graph.listing import as_pairs
from spinegraph.graph.names import NameIndex, as_array, as_names, first_few, require_known
from spinegraph.graph.patch import Patch, empty_patch, patched, rows_of
from spinegraph.graph.rows import row_sums, stacked
from spinegraph.kernels.adjacency import Adjacency


@dataclass(frozen=True, eq=False, repr=False)
class Overlay:
    """A base graph with added nodes and edges, frozen; it reads like a graph.

    Rows that an addition touches are kept whole beside the base; all others are the base's own. Make one
    with :meth:`Graph.overlay`, and further ones with :meth:`add`.

    Parameters
    ----------
    base : Graph
    added_names : array (a,)
        Names of the added nodes; their positions follow the base's.
    patch : Patch
        The rows that differ from the base's.
    added_features : csr_array or array (a, f), optional
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
    added_names: NDArray[Any]
    patch: Patch
    added_features: Features | None = None
    report: EdgeReport | None = None

    @classmethod
    def of(cls, base: Graph) -> "Overlay":
        """Return an overlay that adds nothing yet.

        Examples
        --------
        >>> len(Overlay.of(Graph.from_edges([(0, 1)])))
        2
        """
        features = None if base.features is None else base.feature_rows(np.zeros(0, np.int64))
        return cls(base, np.zeros(0, base.names.dtype), empty_patch(base), features)

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
        new = as_names(names)
        known = new[_find(self.base, self._added_index, new) >= 0]
        if len(known):
            raise GraphFormatError(f"{len(known)} new names are in the graph already: {first_few(known)}")
        grown = _concatenated(self.added_names, new)
        pairs = as_pairs(edges, has_names=True)
        ends = _find(self.base, NameIndex(grown), as_array(pairs.ravel()))
        require_known(ends, pairs.ravel(), self.base.names, "edges: ")
        total = len(self.base) + len(grown)
        touched = np.union1d(ends, np.arange(len(self), total))
        sources, targets = np.searchsorted(touched, ends).reshape(-1, 2).T
        touched_names = _names_at(self.base, grown, touched)
        self._require_fitting(weights, len(sources))
        numbers = None
        if self.base.weights is not None:
            numbers = as_weights(() if weights is None else weights, sources, targets, touched_names)
        clean = clean_edges(sources, targets, touched_names, numbers, reciprocal=reciprocal)
        patch = patched(self.base, self.patch, touched, clean, total)
        grown_features = self._grown_features(features, new)
        warn_of_losses(clean.report, stacklevel=stacklevel + 1)
        return Overlay(self.base, frozen(grown), patch, grown_features, clean.report)

    def materialize(self) -> Graph:
        """Return a plain graph with the same nodes, edges, weights and features.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).materialize()
        Graph(3 nodes, 2 edges)
        """
        rows = rows_of(self.base, self.patch, np.arange(len(self)))
        return Graph._trusted(
            rows.indptr,
            rows.indices,
            rows.weights,
            self.names,
            self.features,
            self.feature_names,
            self.report,
        )

    def __len__(self) -> int:
        return len(self.patch.places)

    def __repr__(self) -> str:
        added, count = len(self.added_names), self.num_edges
        nodes = f"{len(self)} node{'s' * (len(self) != 1)}, {count} edge{'s' * (count != 1)}"
        return f"Overlay({nodes}, {added} node{'s' * (added != 1)} added to {self.base})"

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return len(self)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.degrees.sum()) // 2

    @property
    def has_features(self) -> bool:
        """Whether nodes carry features."""
        return self.base.has_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names of the features, where known."""
        return self.base.feature_names

    @cached_property
    def names(self) -> NDArray[Any]:
        """Names of all nodes, (n,): the base's, then the added."""
        return frozen(_concatenated(self.base.names, self.added_names))

    @cached_property
    def features(self) -> Features | None:
        """Features of all nodes, (n, f); this copies the base's, :meth:`feature_rows` does not."""
        return None if self.base.features is None else stacked([self.base.features, self.added_features])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""
        return frozen(self._patched_values(self.base.degrees, np.diff(self.patch.rows.indptr)))

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the weights at each node, (n,); the degree in an unweighted graph."""
        rows = self.patch.rows
        return frozen(self._patched_values(self.base.strengths, row_sums(rows.indptr, rows.weights)))

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of the given nodes; added nodes follow the base's.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], []).positions(["cy", "ann"])
        array([2, 0])
        """
        wanted = as_array(names)
        found = _find(self.base, self._added_index, wanted)
        require_known(found, wanted, self.base.names)
        return found

    def neighbors(self, name: Any) -> NDArray[Any]:
        """Return the names of a node's neighbours, in graph order.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], [("cy", "ann")]).neighbors("ann").tolist()
        ['bob', 'cy']
        """
        found: NDArray[Any] = self.names[rows_of(self.base, self.patch, self.positions([name])).indices]
        return found

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of the nodes at the given positions, (len(positions), f).

        Examples
        --------
        >>> base = Graph.from_edges([(0, 1)], features=[[1.0], [2.0]])
        >>> base.overlay([2], [(2, 0)], features=[[3.0]]).feature_rows(np.array([2, 0])).tolist()
        [[3.0], [1.0]]
        """
        positions = np.asarray(positions)
        is_base = positions < len(self.base)
        if is_base.all():
            return self.base.feature_rows(positions)
        if self.added_features is None:
            raise MissingFeaturesError("this graph has no features")
        added = self.added_features[positions[~is_base] - len(self.base)]
        order = np.argsort(np.concatenate((np.flatnonzero(is_base), np.flatnonzero(~is_base))))
        return stacked([self.base.feature_rows(positions[is_base]), added])[order]

    def adjacency(self) -> Adjacency:
        """Return the arrays that kernels read: the base's own, and the patch.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).adjacency().rows.tolist()
        [0, -1, 1]
        """
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

    @cached_property
    def _added_index(self) -> NameIndex:
        return NameIndex(self.added_names)

    def _patched_values(self, of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        """Return one value per node, from the patch where it has a row and from the base elsewhere."""
        values = np.zeros(len(self), dtype=of_base.dtype)
        values[: len(self.base)] = of_base
        is_patched = self.patch.places >= 0
        values[is_patched] = of_patch[self.patch.places[is_patched]]
        return values

    def _require_fitting(self, weights: Any, num_edges: int) -> None:
        if self.base.weights is None and weights is not None:
            raise GraphFormatError("the graph is unweighted; leave weights out, or build it with weights")
        if self.base.weights is not None and weights is None and num_edges:
            raise GraphFormatError("the graph is weighted; pass weights=..., one per added edge")

    def _grown_features(self, features: Any, new: NDArray[Any]) -> Features | None:
        if self.base.features is None:
            if features is not None:
                raise MissingFeaturesError("the graph has no features; leave features out here too")
            return None
        if features is None:
            if len(new):
                raise MissingFeaturesError(
                    f"the graph has {self.base.features.shape[1]} features per node; "
                    f"pass features=... with a row for each of the {len(new)} new nodes"
                )
            return self.added_features
        rows = as_features(features, new)
        if rows.shape[1] != self.base.features.shape[1]:
            raise MissingFeaturesError(
                f"the graph has {self.base.features.shape[1]} features per node, new nodes {rows.shape[1]}; "
                "pass the same columns in the same order"
            )
        return stacked([self.added_features, rows])


def _find(base: Graph, added: NameIndex, wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Return positions in the base, or behind it, or -1."""
    found = base._name_index.find(wanted)
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        behind = added.find(wanted[unknown])
        found[unknown] = np.where(behind < 0, -1, behind + len(base))
    return found


def _names_at(base: Graph, added_names: NDArray[Any], positions: NDArray[np.int64]) -> NDArray[Any]:
    is_base = positions < len(base)
    return _concatenated(base.names[positions[is_base]], added_names[positions[~is_base] - len(base)])


def _concatenated(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return names one after the other: int64 where both are, else objects."""
    if not len(second):
        return first
    if not len(first):
        return second
    if first.dtype != second.dtype:
        first, second = first.astype(object), second.astype(object)
    return np.concatenate((first, second))
