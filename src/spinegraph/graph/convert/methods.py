"""The converters as methods of Graph; each loads its code, and the other library, when it is called."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from spinegraph.graph.edges import Reciprocal

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from spinegraph.graph.align import Missing
    from spinegraph.graph.graph import Graph


class Conversions:
    """What :class:`~spinegraph.Graph` can be made from, and be turned into."""

    @staticmethod
    def from_networkx(
        graph: Any,
        weight: str | None = "weight",
        feature_attributes: Sequence[str] = (),
        *,
        missing: "Missing" = "error",
        reciprocal: Reciprocal = "error",
    ) -> "Graph":
        """Convert a NetworkX graph of any kind; names are its nodes.

        Parameters
        ----------
        graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            Directed edges are made symmetric, with a warning; weights of parallel edges add.
        weight : str, optional
            Edge attribute of the weights, 1 where an edge lacks it; without any, the graph is unweighted.
        feature_attributes : sequence of str
            Numeric node attributes to take as feature columns.
        missing : {"error", "zero"}
            With "zero" an attribute that a node lacks is 0, and features are sparse.
        reciprocal : {"error", "sum", "mean", "max"}
            As in :meth:`Graph.from_edges`.

        Examples
        --------
        >>> import networkx as nx
        >>> from spinegraph import Graph
        >>> Graph.from_networkx(nx.path_graph(3))
        Graph(3 nodes, 2 edges)
        """
        from spinegraph.graph.convert.networkx import from_networkx

        return from_networkx(
            graph, weight, feature_attributes, missing=missing, reciprocal=reciprocal, stacklevel=2
        )

    def to_networkx(self, weight: str = "weight", *, features: bool = True) -> Any:
        """Return a networkx.Graph; each feature column becomes a node attribute, non-zeros alone if sparse.

        Examples
        --------
        >>> from spinegraph import Graph
        >>> Graph.from_edges([("ann", "bob")], weights=[2]).to_networkx()["ann"]["bob"]["weight"]
        2.0
        """
        from spinegraph.graph.convert.networkx import to_networkx

        return to_networkx(self._graph, weight, features=features)

    @staticmethod
    def from_scipy(
        matrix: Any,
        features: Any = None,
        names: Iterable[Any] | None = None,
        *,
        feature_names: Iterable[str] | None = None,
        weighted: bool | None = None,
        reciprocal: Reciprocal = "error",
    ) -> "Graph":
        """Convert an adjacency matrix (n, n), sparse or dense.

        Parameters
        ----------
        matrix : sparse matrix or array (n, n)
            A symmetric one gives each edge once, with its weight; an asymmetric one is directed input.
            What is stored several times at one place adds, as in SciPy itself.
        features, names, feature_names, reciprocal
            As in :meth:`Graph.from_edges`.
        weighted : bool, optional
            Whether entries are weights; by default, unless all but 0 are 1.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> from spinegraph import Graph
        >>> Graph.from_scipy(csr_array([[0, 2.5], [2.5, 0]])).weights.tolist()
        [2.5, 2.5]
        """
        from spinegraph.graph.convert.scipy import from_scipy

        return from_scipy(
            matrix,
            features,
            names,
            feature_names=feature_names,
            weighted=weighted,
            reciprocal=reciprocal,
            stacklevel=2,
        )

    def to_scipy(self) -> "csr_array":
        """Return the adjacency matrix (n, n) as float32 csr_array; entries are 1 if unweighted.

        Examples
        --------
        >>> from spinegraph import Graph
        >>> Graph.from_edges([(0, 1)]).to_scipy().toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        from spinegraph.graph.convert.scipy import to_scipy

        return to_scipy(self._graph)

    @staticmethod
    def from_igraph(
        graph: Any,
        weight: str | None = "weight",
        feature_attributes: Sequence[str] = (),
        *,
        missing: "Missing" = "error",
        reciprocal: Reciprocal = "error",
    ) -> "Graph":
        """Convert an igraph Graph; names are the vertex attribute "name", or else positions.

        The other arguments are those of :meth:`Graph.from_networkx`.

        Examples
        --------
        >>> import igraph
        >>> from spinegraph import Graph
        >>> Graph.from_igraph(igraph.Graph.Ring(4))
        Graph(4 nodes, 4 edges)
        """
        from spinegraph.graph.convert.igraph import from_igraph

        return from_igraph(
            graph, weight, feature_attributes, missing=missing, reciprocal=reciprocal, stacklevel=2
        )

    def to_igraph(self, weight: str = "weight", *, features: bool = True) -> Any:
        """Return an igraph.Graph with names under "name" and each feature column as a vertex attribute.

        Examples
        --------
        >>> from spinegraph import Graph
        >>> Graph.from_edges([("ann", "bob")]).to_igraph().vs["name"]
        ['ann', 'bob']
        """
        from spinegraph.graph.convert.igraph import to_igraph

        return to_igraph(self._graph, weight, features=features)

    @staticmethod
    def from_pyg(data: Any, *, reciprocal: Reciprocal = "error") -> "Graph":
        """Convert PyTorch Geometric ``Data``: edge_index, and x, edge_weight, names where it has them.

        Edges that are listed in one direction alone count as directed input.

        Examples
        --------
        >>> from spinegraph import Graph
        >>> data = Graph.from_edges([(0, 1)], features=[[1, 2], [3, 4]]).to_pyg()
        >>> Graph.from_pyg(data)
        Graph(2 nodes, 1 edge, 2 dense features)
        """
        from spinegraph.graph.convert.pyg import from_pyg

        return from_pyg(data, reciprocal=reciprocal, stacklevel=2)

    def to_pyg(self, *, sparse: bool = False) -> Any:
        """Return PyTorch Geometric ``Data`` with both directions of each edge.

        Features are the dense tensor ``x``; with ``sparse``, sparse features stay a sparse COO tensor.

        Examples
        --------
        >>> from spinegraph import Graph
        >>> Graph.from_edges([(0, 1)]).to_pyg().edge_index.tolist()
        [[0, 1], [1, 0]]
        """
        from spinegraph.graph.convert.pyg import to_pyg

        return to_pyg(self._graph, sparse=sparse)

    @staticmethod
    def from_dataframe(
        edges: Any,
        source: str | None = None,
        target: str | None = None,
        weight: str | bool | None = None,
        *,
        nodes: Any = None,
        node: str | None = None,
        features: Sequence[str] | None = None,
        missing: "Missing" = "error",
        directed: bool = False,
        reciprocal: Reciprocal = "error",
    ) -> "Graph":
        """Convert a table of edges, with or without a table of nodes; pandas, polars, Arrow or a dict.

        Integers in the tables are names. Nodes come in the order of ``nodes``, else of appearance.

        Parameters
        ----------
        edges : table (m rows)
        source, target : str, optional
            Columns of the ends; by default those with usual titles ("source" and "target", "from" and
            "to" ...), or else the first two.
        weight : str or False, optional
            Column of the weights; by default "weight" or a like title where there is one. False ignores it.
        nodes : table, optional
            One row per node: its name and its features.
        node : str, optional
            Column of the names in ``nodes``; by default the first.
        features : sequence of str, optional
            Feature columns of ``nodes``; by default all of numbers or booleans, the rest with a warning.
        missing : {"error", "zero"}
            What a node of ``edges`` without a row in ``nodes`` gets: an error, or zeros.
        directed, reciprocal
            As in :meth:`Graph.from_edges`.

        Examples
        --------
        >>> from spinegraph import Graph
        >>> edges = {"source": ["ann", "bob"], "target": ["bob", "cy"]}
        >>> nodes = {"node": ["ann", "bob", "cy"], "age": [31, 45, 28]}
        >>> Graph.from_dataframe(edges, nodes=nodes)
        Graph(3 nodes, 2 edges, 1 dense feature, names 'ann', 'bob', ...)
        """
        from spinegraph.graph.convert.tables import from_dataframe

        return from_dataframe(
            edges,
            source,
            target,
            weight,
            nodes=nodes,
            node=node,
            features=features,
            missing=missing,
            directed=directed,
            reciprocal=reciprocal,
            stacklevel=2,
        )

    def to_dataframe(
        self,
        kind: Literal["pandas", "polars", "arrow"] = "pandas",
        table: Literal["edges", "nodes"] = "edges",
    ) -> Any:
        """Return a table: "edges" (source, target, weight), or "nodes" (node, and its features, dense).

        Examples
        --------
        >>> from spinegraph import Graph
        >>> Graph.from_edges([("ann", "bob")]).to_dataframe("arrow").to_pydict()
        {'source': ['ann'], 'target': ['bob']}
        """
        from spinegraph.graph.convert.tables import to_dataframe

        return to_dataframe(self._graph, kind, table)

    @property
    def _graph(self) -> "Graph":
        return cast("Graph", self)
