"""The graph: CSR arrays, node names and node features, frozen and checked once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.checks import (
    Features,
    as_feature_names,
    as_features,
    as_weights,
    check_adjacency,
    frozen,
    frozen_features,
)
from spinegraph.graph.convert.methods import Conversions
from spinegraph.graph.edges import EdgeReport, Reciprocal, clean_edges, warn_of_losses
from spinegraph.graph.listing import read_listing
from spinegraph.graph.names import NameIndex, as_names
from spinegraph.graph.rows import row_sums, rows_at
from spinegraph.kernels.adjacency import Adjacency, position_type

if TYPE_CHECKING:
    from spinegraph.graph.encode import FeatureEncoder
    from spinegraph.graph.overlay import Overlay


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Conversions):
    """An undirected graph with named nodes, optional edge weights and optional node features.

    Build one with :meth:`from_edges`, a converter or a reader; the constructor itself takes clean CSR arrays
    and refuses others. Arrays are read-only.

    Parameters
    ----------
    indptr : int64 array (n + 1,)
        Where each node's row begins in ``indices``.
    indices : int32 or int64 array (nnz,)
        Neighbours, sorted within rows, both directions of every edge, no self-loops.
    weights : float32 array (nnz,), optional
        Edge weights above 0, the same in both directions.
    names : array (n,), optional
        Unique names: int64, or objects such as str; 0 .. n-1 unless given.
    features : csr_array or array (n, f), optional
        Node features as float32, without NaN or infinity.
    feature_names : tuple of str (f,), optional
        Column names.
    report : EdgeReport, optional
        What cleaning did when the graph was built from edges.

    Attributes
    ----------
    store : Path or None
        The folder that the arrays are memory maps of, for a graph of ``open_store``.
    encoder : FeatureEncoder or None
        What made the features of a table, for a graph of ``read_graph``: other files are read alike by it.

    Examples
    --------
    >>> Graph(np.array([0, 1, 2]), np.array([1, 0]))
    Graph(2 nodes, 1 edge)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    weights: NDArray[np.float32] | None = None
    names: NDArray[Any] = None  # type: ignore[assignment]
    features: Features | None = None
    feature_names: tuple[str, ...] | None = None
    report: EdgeReport | None = None
    store: Path | None = field(default=None, init=False)
    encoder: "FeatureEncoder | None" = field(default=None, init=False)
    known_fingerprint: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        indptr, indices = np.ascontiguousarray(self.indptr), np.ascontiguousarray(self.indices)
        names = np.arange(max(len(indptr) - 1, 0)) if self.names is None else as_names(self.names)
        with np.errstate(over="ignore"):  # infinite weights are refused below
            weights = None if self.weights is None else np.ascontiguousarray(self.weights, dtype=np.float32)
        check_adjacency(indptr, indices, weights, names)
        features = None if self.features is None else as_features(self.features, names)
        feature_names = as_feature_names(self.feature_names, features)
        self._set(indptr, indices, weights, names, features, feature_names, self.report)

    @classmethod
    def _trusted(
        cls,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        weights: NDArray[Any] | None,
        names: NDArray[Any],
        features: Features | None = None,
        feature_names: tuple[str, ...] | None = None,
        report: EdgeReport | None = None,
    ) -> "Graph":
        """Wrap arrays whose rules the caller has just established, without checking them again."""
        graph = object.__new__(cls)
        graph._set(indptr, indices, weights, names, features, feature_names, report)
        return graph

    def _set(
        self,
        indptr: NDArray[Any],
        indices: NDArray[Any],
        weights: NDArray[Any] | None,
        names: NDArray[Any],
        features: Features | None,
        feature_names: tuple[str, ...] | None,
        report: EdgeReport | None,
    ) -> None:
        index_type = position_type(len(names))
        values = {
            "indptr": frozen(indptr.astype(np.int64, copy=False)),
            "indices": frozen(indices.astype(index_type, copy=False)),
            "weights": None if weights is None else frozen(weights),
            "names": frozen(names),
            "features": frozen_features(features),
            "feature_names": feature_names,
            "report": report,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        num_nodes: int | None = None,
        weights: Any = None,
        features: Any = None,
        names: Iterable[Any] | None = None,
        *,
        feature_names: Iterable[str] | None = None,
        directed: bool = False,
        reciprocal: Reciprocal = "error",
    ) -> "Graph":
        """Build a graph from listed edges, between positions or between names.

        Edges (u, v) and (v, u) are one edge. Self-loops and edges of weight 0 are dropped with a warning.
        Without weights an edge counts once however often it is listed; with weights, repeats in one direction
        add, and the two directions count once where they agree.

        Parameters
        ----------
        edges : array or list of pairs (m, 2)
            Integers are positions 0 .. num_nodes-1, unless integer ``names`` are given without ``num_nodes``.
            Anything else is names.
        num_nodes : int, optional
            Number of nodes; by default the largest position plus one.
        weights : array (m,), optional
            One finite weight per listed edge, not negative.
        features : array or sparse matrix (n, f), optional
            One row per node, in the order of the names.
        names : sequence (n,), optional
            Node names in graph order; by default positions, or names in order of appearance.
        feature_names : sequence of str (f,), optional
            Column names.
        directed : bool
            Whether edges are one-way; then they are made symmetric, with a warning.
        reciprocal : {"error", "sum", "mean", "max"}
            How (u, v) and (v, u) of different weight become one edge.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob"), ("bob", "cy")], weights=[1, 2])
        Graph(3 nodes, 2 edges, weighted, names 'ann', 'bob', ...)
        """
        sources, targets, found = read_listing(edges, num_nodes, names)
        return cls._from_positions(
            sources,
            targets,
            found,
            weights,
            features,
            feature_names,
            directed=directed,
            reciprocal=reciprocal,
            stacklevel=2,
        )

    @classmethod
    def _from_positions(
        cls,
        sources: NDArray[Any],
        targets: NDArray[Any],
        names: NDArray[Any],
        weights: Any = None,
        features: Any = None,
        feature_names: Iterable[str] | None = None,
        *,
        directed: bool = False,
        reciprocal: Reciprocal = "error",
        stacklevel: int = 1,
    ) -> "Graph":
        """Build a graph from positions (m,) that are in range and names (n,) that are checked.

        Warnings point ``stacklevel`` frames above this one.
        """
        if not len(names):
            raise GraphFormatError("a graph has at least one node; got none")
        numbers = None if weights is None else as_weights(weights, sources, targets, names)
        clean = clean_edges(sources, targets, names, numbers, directed=directed, reciprocal=reciprocal)
        table = None if features is None else as_features(features, names)
        columns = as_feature_names(feature_names, table)
        warn_of_losses(clean.report, stacklevel=stacklevel + 1)
        return cls._trusted(clean.indptr, clean.indices, clean.weights, names, table, columns, clean.report)

    def _encoded_by(self, encoder: "FeatureEncoder | None") -> "Graph":
        """Note what made the features of a graph that nobody else has seen yet."""
        object.__setattr__(self, "encoder", encoder)
        return self

    def __len__(self) -> int:
        return len(self.names)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a graph of a store as the store's path: other processes map the same files."""
        from spinegraph.graph.store import open_store

        return super().__reduce_ex__(protocol) if self.store is None else (open_store, (self.store,))

    def __repr__(self) -> str:
        count = self.num_edges
        parts = [f"{len(self)} node{'s' * (len(self) != 1)}", f"{count} edge{'s' * (count != 1)}"]
        if self.weights is not None:
            parts.append("weighted")
        if self.features is not None:
            kind = "dense" if isinstance(self.features, np.ndarray) else "sparse"
            width = self.features.shape[1]
            parts.append(f"{width} {kind} feature{'s' * (width != 1)}")
        if self.names.dtype == object:
            parts.append(f"names {', '.join(map(repr, self.names[:2]))}{', ...' * (len(self) > 2)}")
        return f"Graph({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from spinegraph.graph.html import graph_html

        return graph_html(self)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return len(self)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.indices) // 2

    @property
    def has_features(self) -> bool:
        """Whether nodes carry features."""
        return self.features is not None

    @property
    def num_features(self) -> int:
        """Number of features per node, 0 without any."""
        return 0 if self.features is None else int(self.features.shape[1])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""
        return frozen(np.diff(self.indptr))

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the weights at each node, (n,); the degree in an unweighted graph."""
        return frozen(row_sums(self.indptr, self.weights))

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex(self.names)

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of the given nodes in the graph's order.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob"), ("bob", "cy")]).positions(["cy", "ann"])
        array([2, 0])
        """
        return self._name_index.positions(names)

    def neighbors(self, name: Any) -> NDArray[Any]:
        """Return the names of a node's neighbours, in graph order.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob"), ("bob", "cy")]).neighbors("bob")
        array(['ann', 'cy'], dtype=object)
        """
        position = int(self.positions([name])[0])
        found: NDArray[Any] = self.names[self.indices[self.indptr[position] : self.indptr[position + 1]]]
        return found

    def adjacency(self) -> Adjacency:
        """Return the arrays that kernels read.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).adjacency().indices.tolist()
        [1, 0]
        """
        return Adjacency.of(self.indptr, self.indices, self.weights)

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of the nodes at the given positions, (len(positions), f).

        Examples
        --------
        >>> Graph.from_edges([(0, 1)], features=[[1.0], [2.0]]).feature_rows(np.array([1])).tolist()
        [[2.0]]
        """
        if self.features is None:
            raise MissingFeaturesError("this graph has no features; with_features(...) gives it some")
        return rows_at(self.features, np.asarray(positions))

    def degrees_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of neighbours of the nodes at the given positions.

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 2)]).degrees_at(np.array([1, 0]))
        array([2, 1])
        """
        return self.indptr[positions + 1] - self.indptr[positions]

    def with_features(self, features: Any, feature_names: Iterable[str] | None = None) -> "Graph":
        """Return the same graph with other features, (n, f), or without any (None).

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).with_features([[1.0, 0.0], [0.0, 1.0]])
        Graph(2 nodes, 1 edge, 2 dense features)
        """
        table = None if features is None else as_features(features, self.names)
        columns = as_feature_names(feature_names, table)
        return self._trusted(self.indptr, self.indices, self.weights, self.names, table, columns, self.report)

    def subgraph(self, names: Iterable[Any]) -> "Graph":
        """Return the graph of the named nodes, in the order given, and the edges among them.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob"), ("bob", "cy")]).subgraph(["cy", "bob"])
        Graph(2 nodes, 1 edge, names 'cy', 'bob')
        """
        from spinegraph.graph.change import subgraph

        return subgraph(self, names)

    def relabel(self, names: Mapping[Any, Any] | Iterable[Any]) -> "Graph":
        """Return the same graph under other names: one per node, or a mapping from old to new.

        Nodes that a mapping leaves out keep their name.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).relabel(["ann", "bob"]).neighbors("ann").tolist()
        ['bob']
        """
        from spinegraph.graph.change import relabel

        return relabel(self, names)

    @staticmethod
    def union(graphs: Sequence["Graph"], keys: Sequence[Any] | None = None) -> "Graph":
        """Return the disjoint union of graphs: no edge crosses.

        Names must differ between the graphs. Where all are plain positions they are numbered on; with
        ``keys``, one per graph, names become ``(key, name)``. Unweighted edges weigh 1 beside weighted ones.

        Examples
        --------
        >>> pair = Graph.from_edges([(0, 1)])
        >>> Graph.union([pair, pair])
        Graph(4 nodes, 2 edges)
        """
        from spinegraph.graph.change import union

        return union(graphs, keys)

    def overlay(
        self, names: Iterable[Any], edges: Any, features: Any = None, weights: Any = None
    ) -> "Overlay":
        """Return this graph plus new nodes and edges between names, without a copy of its arrays.

        The arguments are those of :meth:`Overlay.add`.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], [("cy", "ann")]).neighbors("ann").tolist()
        ['bob', 'cy']
        """
        from spinegraph.graph.overlay import Overlay

        return Overlay.of(self)._add(names, edges, features, weights, stacklevel=2)

    def with_nodes(
        self, names: Iterable[Any], edges: Any, features: Any = None, weights: Any = None
    ) -> "Graph":
        """Return a new graph with added nodes and edges between names.

        The arguments are those of :meth:`Overlay.add`.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).with_nodes(["cy"], [("cy", "ann")])
        Graph(3 nodes, 2 edges, names 'ann', 'bob', ...)
        """
        from spinegraph.graph.overlay import Overlay

        return Overlay.of(self)._add(names, edges, features, weights, stacklevel=2).materialize()
