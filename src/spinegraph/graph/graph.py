"""Graph: immutable CSR arrays, node names and node features, checked once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError
from spinegraph.graph import convert
from spinegraph.graph.edges import (
    EdgeReport,
    Features,
    Reciprocal,
    Rows,
    as_feature_names,
    as_features,
    as_weights,
    check_adjacency,
    clean_edges,
    entry_counts,
    frozen,
    frozen_features,
    pointers,
    read_listing,
    row_entries,
    row_sums,
    rows_at,
    stacked,
    warn_of_losses,
)
from spinegraph.graph.names import NameIndex, as_names, first_few, is_range
from spinegraph.kernels.adjacency import Adjacency, Direction, position_type

if TYPE_CHECKING:
    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.overlay import Overlay


class GraphLike(Protocol):
    """Interface of :class:`Graph`, in memory or of a store, and of :class:`Overlay`.

    Nodes are addressed by position, 0 .. len(graph) - 1. Removed nodes of an overlay keep their positions.
    """

    def __len__(self) -> int: ...

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""

    @property
    def names(self) -> NDArray[Any]:
        """Node names, (n,)."""

    @property
    def features(self) -> Features | None:
        """Node features, (n, f)."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names of the features, (f,)."""

    @property
    def has_features(self) -> bool:
        """Whether nodes have features."""

    @property
    def num_features(self) -> int:
        """Number of features per node."""

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""

    @property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the weights at each node, (n,)."""

    @property
    def out_degrees(self) -> NDArray[np.int64]:
        """Number of edges from each node, (n,)."""

    @property
    def in_degrees(self) -> NDArray[np.int64]:
        """Number of edges to each node, (n,)."""

    @property
    def out_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges from each node, (n,)."""

    @property
    def in_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges to each node, (n,)."""

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of named nodes."""

    def degrees_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the degrees of some nodes."""

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of some nodes."""

    def adjacency(self, way: Direction = "both") -> Adjacency:
        """Return the arrays that kernels read, for walks in both directions, along edges or against them."""


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph with named nodes, optional edge weights, directions and node features.

    Build one with :meth:`from_edges`, a converter or a reader; the constructor itself accepts clean CSR
    arrays only. Arrays are read-only.

    Parameters
    ----------
    indptr : int64 array (n + 1,)
        Where each node's row begins in ``indices``.
    indices : int32 or int64 array (nnz,)
        Neighbours in either direction, sorted within rows, without self-loops.
    weights : float32 array (nnz,), optional
        Edge weights above 0, the same at both ends; the larger one of two directions.
    names : array (n,), optional
        Unique names: int64, or objects such as str; 0 .. n-1 by default.
    features : csr_array or array (n, f), optional
        Node features as float32, without NaN or infinity.
    feature_names : tuple of str (f,), optional
        Column names.
    report : EdgeReport, optional
        What cleaning did when the graph was built from edges.
    outward, inward : float32 arrays (nnz,), optional
        Of a directed graph, the weight of the edge to each neighbour and of the edge from it: 0 if there is
        none, 1 in an unweighted graph.

    Attributes
    ----------
    store : Path or None
        The folder whose files the arrays map, for a graph from ``open_store``.
    encoder : FeatureEncoder or None
        The encoder that made the features from a table; pass it to ``read_graph`` for other files.

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
    outward: NDArray[np.float32] | None = None
    inward: NDArray[np.float32] | None = None
    store: Path | None = field(default=None, init=False)
    encoder: "FeatureEncoder | None" = field(default=None, init=False)
    known_fingerprint: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        indptr, indices = np.ascontiguousarray(self.indptr), np.ascontiguousarray(self.indices)
        names = np.arange(max(len(indptr) - 1, 0)) if self.names is None else as_names(self.names)
        with np.errstate(over="ignore"):  # infinite weights are refused below
            weights = None if self.weights is None else np.ascontiguousarray(self.weights, dtype=np.float32)
        flows = [
            None if flow is None else np.ascontiguousarray(flow, dtype=np.float32)
            for flow in (self.outward, self.inward)
        ]
        rows = Rows(indptr, indices, weights, *flows)
        check_adjacency(rows, names)
        features = None if self.features is None else as_features(self.features, names)
        columns = as_feature_names(self.feature_names, features)
        checked = self._trusted(rows, names, features, columns, self.report)
        self.__dict__.update(checked.__dict__)

    @classmethod
    def _trusted(
        cls,
        rows: Rows,
        names: NDArray[Any],
        features: Features | None = None,
        feature_names: tuple[str, ...] | None = None,
        report: EdgeReport | None = None,
        encoder: "FeatureEncoder | None" = None,
    ) -> "Graph":
        """Wrap arrays that are known to be valid, without checks."""
        graph = object.__new__(cls)
        values = {name: getattr(rows, name) for name in ("weights", "outward", "inward")}
        graph.__dict__.update(
            {name: None if each is None else frozen(each) for name, each in values.items()},
            indptr=frozen(rows.indptr.astype(np.int64, copy=False)),
            indices=frozen(rows.indices.astype(position_type(len(names)), copy=False)),
            names=frozen(names),
            features=frozen_features(features),
            feature_names=feature_names,
            report=report,
            encoder=encoder,
        )
        return graph

    @property
    def _rows(self) -> Rows:
        return Rows(self.indptr, self.indices, self.weights, self.outward, self.inward)

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

        Edges (u, v) and (v, u) are one edge, unless directed. Self-loops and edges of weight 0 are dropped
        with a warning. Without weights an edge counts once, however often it is listed. Weights of repeats
        in one direction are summed, and the two directions count once if they agree.

        Parameters
        ----------
        edges : array or list of pairs (m, 2)
            Integers are positions 0 .. num_nodes-1, unless integer ``names`` are given without ``num_nodes``.
            Anything else is a name.
        num_nodes : int, optional
            Number of nodes; by default the largest position plus one.
        weights : array (m,), optional
            One finite, non-negative weight per listed edge.
        features : array or sparse matrix (n, f), optional
            One row per node, in the order of the names.
        names : sequence (n,), optional
            Node names in graph order; by default positions, or the names in order of appearance.
        feature_names : sequence of str (f,), optional
            Column names.
        directed : bool
            Whether edges lead from the first node to the second; vectors then tell senders from receivers.
        reciprocal : {"error", "sum", "mean", "max"}
            How to combine (u, v) and (v, u) of different weights.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob"), ("bob", "cy")], weights=[1, 2])
        Graph(3 nodes, 2 edges, weighted, names 'ann', 'bob', ...)
        """
        sources, targets, found = read_listing(edges, num_nodes, names)
        given = weights, features, feature_names, directed, False, reciprocal
        return cls._from_positions(sources, targets, found, *given, stacklevel=2)

    @classmethod
    def _from_positions(
        cls,
        sources: NDArray[Any],
        targets: NDArray[Any],
        names: NDArray[Any],
        weights: Any = None,
        features: Any = None,
        feature_names: Iterable[str] | None = None,
        directed: bool = False,
        one_way: bool = False,
        reciprocal: Reciprocal = "error",
        *,
        stacklevel: int = 1,
    ) -> "Graph":
        """Build a graph from positions (m,) that are in range and names (n,) that are checked.

        ``one_way`` says that the edges come from a directed graph, so making them symmetric loses directions.
        Warnings point ``stacklevel`` frames above this one.
        """
        if not len(names):
            raise GraphFormatError("a graph needs at least one node; got none")
        numbers = None if weights is None else as_weights(weights, sources, targets, names)
        rows, report = clean_edges(sources, targets, names, numbers, directed, one_way, reciprocal)
        table = None if features is None else as_features(features, names)
        columns = as_feature_names(feature_names, table)
        warn_of_losses(report, stacklevel=stacklevel + 1)
        return cls._trusted(rows, names, table, columns, report)

    def _encoded_by(self, encoder: "FeatureEncoder | None") -> "Graph":
        """Set the encoder of a new graph and return the graph."""
        object.__setattr__(self, "encoder", encoder)
        return self

    def __len__(self) -> int:
        return len(self.names)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a graph of a store as the store's path, so that other processes map the same files."""
        from spinegraph.graph.store import open_store

        return super().__reduce_ex__(protocol) if self.store is None else (open_store, (self.store,))

    def __repr__(self) -> str:
        count = self.num_edges
        kind = "directed " if self.directed else ""
        parts = [f"{len(self)} node{'s' * (len(self) != 1)}", f"{count} {kind}edge{'s' * (count != 1)}"]
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
        from spinegraph.graph.describe import graph_html

        return graph_html(self)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included."""
        return len(self)

    @cached_property
    def num_edges(self) -> int:
        """Number of edges; in a directed graph, two directions are two edges."""
        return len(self.indices) // 2 if self.outward is None else int(np.count_nonzero(self.outward))

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.outward is not None

    def to_undirected(self) -> "Graph":
        """Return the same graph without directions.

        Examples
        --------
        >>> Graph.from_edges([(0, 1), (1, 0)], directed=True).to_undirected()
        Graph(2 nodes, 1 edge)
        """
        return self._with(outward=None, inward=None)

    def _with(self, **changed: Any) -> "Graph":
        """Return the graph with some attributes changed."""
        found = object.__new__(Graph)
        names = ("indptr", "indices", "weights", "names", "features", "feature_names", "report", "encoder")
        found.__dict__.update({name: getattr(self, name) for name in (*names, "outward", "inward")} | changed)
        return found

    @property
    def has_features(self) -> bool:
        """Whether nodes carry features."""
        return self.features is not None

    @property
    def num_features(self) -> int:
        """Number of features per node, 0 if there are none."""
        return 0 if self.features is None else int(self.features.shape[1])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""
        return frozen(np.diff(self.indptr))

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the edge weights at each node, (n,); the degree in an unweighted graph."""
        return frozen(row_sums(self.indptr, self.weights))

    @cached_property
    def out_degrees(self) -> NDArray[np.int64]:
        """Number of edges from each node, (n,)."""
        return self.degrees if self.outward is None else entry_counts(self.indptr, self.outward)

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        """Number of edges to each node, (n,)."""
        return self.degrees if self.inward is None else entry_counts(self.indptr, self.inward)

    @cached_property
    def out_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges from each node, (n,)."""
        return self.strengths if self.outward is None else frozen(row_sums(self.indptr, self.outward))

    @cached_property
    def in_strengths(self) -> NDArray[np.float64]:
        """Sum of the weights of edges to each node, (n,)."""
        return self.strengths if self.inward is None else frozen(row_sums(self.indptr, self.inward))

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex(self.names)

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of named nodes.

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

    def adjacency(self, way: Direction = "both") -> Adjacency:
        """Return the arrays that kernels read, for walks in both directions, along edges or against them.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).adjacency().indices.tolist()
        [1, 0]
        """
        weights = {"both": self.weights, "along": self.outward, "against": self.inward}[way]
        return Adjacency.of(self.indptr, self.indices, weights)

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of the nodes at the given positions, (len(positions), f).

        Examples
        --------
        >>> Graph.from_edges([(0, 1)], features=[[1.0], [2.0]]).feature_rows(np.array([1])).tolist()
        [[2.0]]
        """
        if self.features is None:
            raise MissingFeaturesError("this graph has no features; add some with with_features(...)")
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
        return self._with(features=frozen_features(table), feature_names=columns, encoder=None)

    def subgraph(self, names: Iterable[Any]) -> "Graph":
        """Return the graph of some nodes, in the order of the names, and the edges among them.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob"), ("bob", "cy")]).subgraph(["cy", "bob"])
        Graph(2 nodes, 1 edge, names 'cy', 'bob')
        """
        kept = self.positions(names)
        n = len(kept)
        if not n:
            raise GraphFormatError("a graph needs at least one node; got no names for the subgraph")
        found, counts = np.unique(kept, return_counts=True)
        if len(found) < n:
            twice = first_few(self.names[found[counts > 1][:6]])
            raise GraphFormatError(f"names must be unique; given more than once: {twice}")
        entries = row_entries(self.indptr, kept)
        parts = entries, self.indices[entries], pointers(self.degrees_at(kept))
        numbered = csr_array(parts, shape=(n, len(self)))[:, kept]
        numbered.sort_indices()
        rows = self._rows.chosen(numbered.indptr, numbered.data)._replace(indices=numbered.indices)
        features = None if self.features is None else self.feature_rows(kept)
        return self._trusted(rows, self.names[kept], features, self.feature_names, encoder=self.encoder)

    def relabel(self, names: Mapping[Any, Any] | Iterable[Any]) -> "Graph":
        """Return the same graph with other names: one per node, or a mapping from old to new.

        Nodes that a mapping leaves out keep their names.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).relabel(["ann", "bob"]).neighbors("ann").tolist()
        ['bob']
        """
        if isinstance(names, Mapping):
            listed = self.names.tolist()
            for position, name in zip(self.positions(list(names)).tolist(), names.values(), strict=True):
                listed[position] = name
            names = listed
        renamed = as_names(names)
        if len(renamed) != len(self):
            raise GraphFormatError(f"relabel needs one name per node; got {len(renamed)} for {len(self)}")
        return self._with(names=frozen(renamed))

    @staticmethod
    def union(graphs: Sequence["Graph"], keys: Sequence[Any] | None = None) -> "Graph":
        """Return the disjoint union of graphs.

        Names must differ between the graphs. If all names are positions, they are renumbered; with ``keys``,
        one per graph, names become ``(key, name)``. Unweighted edges get weight 1 if other graphs have
        weights. Directed and undirected graphs cannot be combined.

        Examples
        --------
        >>> pair = Graph.from_edges([(0, 1)])
        >>> Graph.union([pair, pair])
        Graph(4 nodes, 2 edges)
        """
        graphs = list(graphs)
        if not graphs:
            raise GraphFormatError("union needs at least one graph; got none")
        if len({graph.directed for graph in graphs}) > 1:
            raise GraphFormatError("cannot combine directed and undirected graphs; use to_undirected()")
        starts = np.cumsum([0, *map(len, graphs)])
        weights = None
        if any(graph.weights is not None for graph in graphs):
            ones = (np.ones(len(graph.indices), np.float32) for graph in graphs)
            listed = [one if g.weights is None else g.weights for g, one in zip(graphs, ones, strict=True)]
            weights = np.concatenate(listed)
        rows = Rows(
            pointers(np.concatenate([graph.degrees for graph in graphs])),
            np.concatenate([graph.indices + start for graph, start in zip(graphs, starts, strict=False)]),
            weights,
            np.concatenate([graph.outward for graph in graphs]) if graphs[0].directed else None,
            np.concatenate([graph.inward for graph in graphs]) if graphs[0].directed else None,
        )
        features, columns = _joined_features(graphs)
        names = _joined_names(graphs, keys)
        return Graph._trusted(rows, names, features, columns, encoder=_joined_encoder(graphs))

    def overlay(
        self, names: Iterable[Any], edges: Any, features: Any = None, weights: Any = None
    ) -> "Overlay":
        """Return this graph with new nodes and edges between names, without a copy of its arrays.

        The arguments are those of :meth:`Overlay.add`.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], [("cy", "ann")]).neighbors("ann").tolist()
        ['bob', 'cy']
        """
        from spinegraph.graph.overlay import Overlay

        return Overlay.of(self)._add(names, edges, features, weights)

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

        return Overlay.of(self)._add(names, edges, features, weights).materialize()

    def to_scipy(self) -> csr_array:
        """Return the adjacency matrix (n, n) as float32 csr_array; entries are 1 if unweighted.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).to_scipy().toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        data = np.ones(len(self.indices), np.float32) if self.weights is None else self.weights
        data = data if self.outward is None else self.outward
        found = csr_array((data, self.indices, self.indptr), shape=(len(self),) * 2, copy=True)
        found.eliminate_zeros()
        return found

    from_networkx = staticmethod(convert.from_networkx)
    from_igraph = staticmethod(convert.from_igraph)
    from_pyg = staticmethod(convert.from_pyg)
    from_scipy = staticmethod(convert.from_scipy)
    from_dataframe = staticmethod(convert.from_dataframe)
    to_networkx = convert.to_networkx
    to_igraph = convert.to_igraph
    to_pyg = convert.to_pyg
    to_dataframe = convert.to_dataframe


def _joined_encoder(graphs: list[Graph]) -> "FeatureEncoder | None":
    known = [graph.encoder for graph in graphs if graph.encoder is not None]
    if not all(encoder.is_like(known[0]) for encoder in known):
        raise ParameterError(
            "the graphs' tables were encoded separately, so their columns mean different things; read them "
            "with one encoder: encoder = FeatureEncoder(), then read_graph(..., encoder=encoder) for each"
        )
    return known[0] if len(known) == len(graphs) else None


def _joined_names(graphs: list[Graph], keys: Sequence[Any] | None) -> NDArray[Any]:
    if keys is not None:
        if len(keys) != len(graphs):
            raise ParameterError(f"keys must hold one key per graph; got {len(keys)} for {len(graphs)}")
        keyed = zip(keys, graphs, strict=True)
        return as_names((key, name) for key, graph in keyed for name in graph.names.tolist())
    if all(is_range(graph.names) for graph in graphs):
        return np.arange(sum(map(len, graphs)))
    try:
        return as_names([name for graph in graphs for name in graph.names.tolist()])
    except GraphFormatError as error:
        raise GraphFormatError(f"{error}. Pass keys=[...] for names (key, name), or relabel first") from error


def _joined_features(graphs: list[Graph]) -> tuple[Features | None, tuple[str, ...] | None]:
    widths = {graph.num_features for graph in graphs}
    if widths == {0} and not all(graph.has_features for graph in graphs):
        return None, None
    columns = {graph.feature_names for graph in graphs}
    if len(widths) > 1 or len(columns) > 1:
        found = sorted(widths) if len(widths) > 1 else "the same number under different names"
        raise MissingFeaturesError(
            f"graphs of a union need the same feature columns; got {found}. Use with_features(...)"
        )
    return stacked([graph.features for graph in graphs]), columns.pop()
