"""Conversion of other libraries' graphs to and from Graph, as its methods."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse

from spinegraph.errors import GraphFormatError, MissingFeaturesError, MissingPackageError, ParameterError
from spinegraph.graph.edges import Features, Reciprocal, matrix_entries, read_listing
from spinegraph.graph.names import as_array, as_names, first_few, in_order_of_appearance, is_range

if TYPE_CHECKING:
    import igraph
    import networkx
    import pyarrow as pa

    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.graph import Graph

Missing = Literal["fill", "zero"]


def as_graph(data: Any, encoder: "FeatureEncoder | None" = None) -> Any:
    """Return another library's graph, or a table of edges, as a Graph; return anything else as it is.

    Node attributes, except those that begin with an underscore, become features by ``encoder``, which is
    fitted on them if it is not fitted yet.

    >>> as_graph({"source": ["ann"], "target": ["bob"]})
    Graph(2 nodes, 1 edge, names 'ann', 'bob')
    """
    from spinegraph.graph.encoder import FeatureEncoder

    libraries = {kind.__module__.partition(".")[0] for kind in type(data).__mro__}
    for library, convert in (("networkx", from_networkx), ("igraph", from_igraph)):
        if library in libraries:
            return convert(data, feature_attributes=None, encoder=encoder or FeatureEncoder())
    if "torch_geometric" in libraries:
        return from_pyg(data)
    if issparse(data):
        return from_scipy(data)
    if "pandas" in libraries or isinstance(data, Mapping) or hasattr(data, "__arrow_c_stream__"):
        return from_dataframe(data)
    return data


def _built(*given: Any, stacklevel: int = 3) -> "Graph":
    from spinegraph.graph.graph import Graph

    return Graph._from_positions(*given, stacklevel=stacklevel)


def from_networkx(
    graph: "networkx.Graph",
    weight: str | None = "weight",
    feature_attributes: Sequence[str] | None = (),
    *,
    missing: Missing = "fill",
    directed: bool = False,
    reciprocal: Reciprocal = "error",
    encoder: "FeatureEncoder | None" = None,
) -> "Graph":
    """Convert a NetworkX graph of any kind; its nodes become the names.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Weights of parallel edges are summed.
    weight : str, optional
        Edge attribute of the weights, 1 for edges without it; if no edge has it, the graph is unweighted.
    feature_attributes : sequence of str, optional
        Node attributes to use as feature columns; None uses all. Numbers are used as they are; other values,
        and gaps, go through a FeatureEncoder, which the graph holds as ``encoder``.
    missing : {"fill", "zero"}
        Value for nodes that lack an attribute: what an encoder fills in, or 0 (numbers are then sparse).
    directed : bool
        Whether to keep directions; otherwise a directed graph is made symmetric, with a warning.
    reciprocal : {"error", "sum", "mean", "max"}
        As in :meth:`Graph.from_edges`.
    encoder : FeatureEncoder, optional
        Encodes the attributes; fitted on them if it is not fitted yet.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> import networkx as nx
    >>> Graph.from_networkx(nx.path_graph(3))
    Graph(3 nodes, 2 edges)
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed", "is_multigraph")):
        raise GraphFormatError(f"expected a NetworkX graph; got {type(graph).__name__}")
    names = list(graph.nodes)
    index = {name: position for position, name in enumerate(names)}
    listed = graph.edges(data=weight, default=None) if weight else ((*e[:2], None) for e in graph.edges())
    edges = [(index[source], index[target], value) for source, target, value in listed]
    ends = np.array([pair for *pair, _ in edges], dtype=np.int64).reshape(-1, 2)
    rows = [data for _, data in graph.nodes(data=True)]
    if feature_attributes is None:
        feature_attributes = _public(attribute for data in rows for attribute in data)
    columns = {attribute: [data.get(attribute) for data in rows] for attribute in feature_attributes}
    weights = [value for *_, value in edges]
    directions = directed, graph.is_directed(), reciprocal
    return _from_attributes(ends, names, weights, columns, missing, directions, encoder)


def from_igraph(
    graph: "igraph.Graph",
    weight: str | None = "weight",
    feature_attributes: Sequence[str] | None = (),
    *,
    missing: Missing = "fill",
    directed: bool = False,
    reciprocal: Reciprocal = "error",
    encoder: "FeatureEncoder | None" = None,
) -> "Graph":
    """Convert an igraph Graph; names are the vertex attribute "name" or, without it, positions.

    The other arguments are those of :meth:`Graph.from_networkx`.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> import igraph
    >>> Graph.from_igraph(igraph.Graph.Ring(4))
    Graph(4 nodes, 4 edges)
    """
    if not all(hasattr(graph, name) for name in ("vs", "es", "get_edgelist", "is_directed")):
        raise GraphFormatError(f"expected an igraph Graph; got {type(graph).__name__}")
    n, attributes = graph.vcount(), graph.vs.attributes()
    names = graph.vs["name"] if "name" in attributes else np.arange(n)
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    if feature_attributes is None:
        feature_attributes = _public(attribute for attribute in attributes if attribute != "name")
    known = {attribute: graph.vs[attribute] for attribute in attributes}
    columns = {attribute: known.get(attribute, [None] * n) for attribute in feature_attributes}
    weights = graph.es[weight] if weight in graph.es.attributes() else []
    directions = directed, graph.is_directed(), reciprocal
    return _from_attributes(ends, names, weights, columns, missing, directions, encoder)


def _check_missing(missing: str) -> None:
    if missing not in ("fill", "zero"):
        raise ParameterError(f"missing must be 'fill' or 'zero'; got {missing!r}")


def _public(attributes: Iterable[Any]) -> list[str]:
    """Return the distinct attributes in order, without those that begin with an underscore."""
    return [name for name in dict.fromkeys(attributes) if not str(name).startswith("_")]


def _from_attributes(
    ends: NDArray[np.int64],
    names: Iterable[Any],
    weights: Sequence[Any],
    columns: Mapping[str, Sequence[Any]],
    missing: Missing,
    directions: tuple[bool, bool, Reciprocal],
    encoder: "FeatureEncoder | None",
) -> "Graph":
    """Build a graph from edges (m, 2), weights and node attributes, with None for missing values."""
    _check_missing(missing)
    checked = as_names(names)
    numbers = None
    if any(value is not None for value in weights):
        numbers = [1 if value is None else value for value in weights]  # NetworkX's own default
    features = feature_names = None
    if columns:
        features, feature_names, encoder = _features(columns, missing, encoder)
        features = csr_array(features) if missing == "zero" else features
    graph = _built(*ends.T, checked, numbers, features, feature_names, *directions, stacklevel=4)
    return graph._encoded_by(encoder if columns else None)


def _features(
    columns: Any, missing: Missing, encoder: "FeatureEncoder | None"
) -> "tuple[Features, Sequence[str] | None, FeatureEncoder | None]":
    """Return the features (n, f) of a table of node attributes, their names, and the encoder, if any."""
    import pyarrow as pa

    from spinegraph.graph.feature_files import FeatureFile, encoded, is_number
    from spinegraph.graph.tables import as_table

    table = as_table(columns)
    for at, (title, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        if missing == "zero" and (is_number(column.type) or pa.types.is_null(column.type)):
            table = table.set_column(at, title, column.cast(pa.float64(), safe=False).fill_null(0.0))
    return encoded(FeatureFile("nodes", table, feature_names=tuple(table.column_names)), encoder)


def to_networkx(graph: "Graph", weight: str = "weight", *, features: bool = True) -> Any:
    """Return a networkx.Graph or DiGraph; features become node attributes, of sparse ones only non-zeros.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> Graph.from_edges([("ann", "bob")], weights=[2]).to_networkx()["ann"]["bob"]["weight"]
    2.0
    """
    package = optional_package("networkx")
    made = package.DiGraph() if graph.directed else package.Graph()
    names = graph.names.tolist()
    if features and graph.features is not None:
        made.add_nodes_from(zip(names, _attributes_of(graph), strict=True))
    else:
        made.add_nodes_from(names)
    sources, targets, weights = _edges(graph)
    pairs = ((names[source], names[target]) for source, target in zip(sources, targets, strict=True))
    if weights is None:
        made.add_edges_from(pairs)
    else:
        weighted = ((*pair, value) for pair, value in zip(pairs, weights.tolist(), strict=True))
        made.add_weighted_edges_from(weighted, weight=weight)
    return made


def to_igraph(graph: "Graph", weight: str = "weight", *, features: bool = True) -> Any:
    """Return an igraph.Graph with names as "name" and each feature column as a vertex attribute.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> Graph.from_edges([("ann", "bob")]).to_igraph().vs["name"]
    ['ann', 'bob']
    """
    sources, targets, weights = _edges(graph)
    pairs = np.column_stack((sources, targets)).tolist()
    made = optional_package("igraph").Graph(n=len(graph), edges=pairs, directed=graph.directed)
    if not is_range(graph.names):
        made.vs["name"] = graph.names.tolist()
    if weights is not None:
        made.es[weight] = weights.tolist()
    if features and graph.features is not None:
        columns, rows = _column_names(graph), list(_attributes_of(graph))
        if "name" in columns:
            message = "igraph keeps node names in the attribute 'name', which is also a feature here; pass"
            raise GraphFormatError(f"{message} features=False, or rename it with with_features(...)")
        for column in columns:
            made.vs[column] = [row.get(column) for row in rows]
    return made


def _attributes_of(graph: "Graph") -> Iterator[dict[str, float]]:
    """Yield each node's features by name; for sparse features only the stored entries."""
    columns, features = _column_names(graph), graph.features
    if isinstance(features, np.ndarray):
        yield from (dict(zip(columns, row, strict=True)) for row in features.tolist())
    elif features is not None:
        for start, stop in pairwise(features.indptr.tolist()):
            stored = zip(features.indices[start:stop], features.data[start:stop].tolist(), strict=True)
            yield {columns[column]: value for column, value in stored}


def _edges(graph: "Graph") -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]:
    """Return sources, targets and weights of every edge once; undirected edges with source before target."""
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    is_listed, weights = rows < graph.indices, graph.weights
    if graph.outward is not None:
        is_listed, weights = graph.outward > 0, None if weights is None else graph.outward
    return rows[is_listed], graph.indices[is_listed], None if weights is None else weights[is_listed]


def _column_names(graph: "Graph") -> list[str]:
    """Return one name per feature column, made up if unknown."""
    names = list(graph.feature_names or (f"feature_{column}" for column in range(graph.num_features)))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"feature names must be unique to become columns; {twice!r} occurs more than once. Pass"
        raise GraphFormatError(f"{message} others by with_features(features, feature_names=...)")
    return names


def from_pyg(data: Any, *, directed: bool = False, reciprocal: Reciprocal = "error") -> "Graph":
    """Convert PyTorch Geometric ``Data``: edge_index and, if present, x, edge_weight and names.

    Edges that are listed in one direction only are made symmetric, with a warning, unless ``directed``.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> data = Graph.from_edges([(0, 1)], features=[[1, 2], [3, 4]]).to_pyg()
    >>> Graph.from_pyg(data)
    Graph(2 nodes, 1 edge, 2 dense features)
    """
    if hasattr(data, "node_types"):
        raise GraphFormatError("expected a PyG Data object; got HeteroData; pass data.to_homogeneous()")
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None or not hasattr(edge_index, "detach"):
        raise GraphFormatError(f"expected a PyG Data with edge_index; got {type(data).__name__} without one")
    features = None if getattr(data, "x", None) is None else _tensor_features(data.x)
    weights, names = getattr(data, "edge_weight", None), getattr(data, "names", None)
    num_nodes = None
    if features is not None:
        num_nodes = int(features.shape[0])
    elif "num_nodes" in data:  # otherwise PyG would guess it with a warning
        num_nodes = int(data.num_nodes)
    elif names is not None:
        num_nodes = len(names)  # edge_index holds positions even if names are whole numbers
    sources, targets, names = read_listing(_array(edge_index).T, num_nodes, names)
    weights = None if weights is None else _array(weights)
    rest = directed, True, reciprocal  # PyG lists both directions of an undirected edge
    return _built(sources, targets, names, weights, features, getattr(data, "feature_names", None), *rest)


def to_pyg(graph: "Graph") -> Any:
    """Return PyTorch Geometric ``Data`` with both directions of each undirected edge; ``x`` is dense.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> Graph.from_edges([(0, 1)]).to_pyg().edge_index.tolist()
    [[0, 1], [1, 0]]
    """
    data = optional_package("torch_geometric.data").Data()
    import torch

    entries = graph.to_scipy().tocoo()
    data.edge_index = torch.from_numpy(np.stack(entries.coords).astype(np.int64))  # (2, nnz)
    data.num_nodes = len(graph)
    if graph.weights is not None:
        data.edge_weight = torch.from_numpy(entries.data)
    if graph.features is not None:
        is_dense = isinstance(graph.features, np.ndarray)
        data.x = torch.from_numpy(graph.features.copy() if is_dense else graph.features.toarray())
    if not is_range(graph.names):
        data.names = graph.names.tolist()
    if graph.feature_names is not None:
        data.feature_names = list(graph.feature_names)
    return data


def _tensor_features(x: Any) -> Any:
    if str(x.layout) == "torch.strided":
        return _array(x)
    entries = x.to_sparse_coo().coalesce()
    coords = _array(entries.indices())
    return csr_array(coo_array((_array(entries.values()), (coords[0], coords[1])), shape=tuple(x.shape)))


def _array(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:  # NumPy has no bfloat16
        tensor = tensor.float()
    array: NDArray[Any] = tensor.numpy()
    return array


def from_scipy(
    matrix: Any,
    features: Any = None,
    names: Iterable[Any] | None = None,
    *,
    feature_names: Iterable[str] | None = None,
    weighted: bool | None = None,
    directed: bool = False,
    reciprocal: Reciprocal = "error",
) -> "Graph":
    """Convert an adjacency matrix (n, n), sparse or dense.

    Parameters
    ----------
    matrix : sparse matrix or array (n, n)
        A symmetric matrix gives each edge once, with its weight; an asymmetric one is made symmetric, with a
        warning, unless ``directed``. Duplicate entries are summed, as in SciPy itself.
    features, names, feature_names, directed, reciprocal
        As in :meth:`Graph.from_edges`.
    weighted : bool, optional
        Whether entries are weights; by default, unless all non-zero entries are 1.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> from scipy.sparse import csr_array
    >>> Graph.from_scipy(csr_array([[0, 2.5], [2.5, 0]])).weights.tolist()
    [2.5, 2.5]
    """
    matrix = matrix if issparse(matrix) else np.asarray(matrix)
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise GraphFormatError(f"an adjacency matrix must have shape (n, n) with n >= 1; got {shape}")
    if matrix.dtype.kind not in "biuf":
        raise GraphFormatError(f"an adjacency matrix must hold real numbers; got dtype {matrix.dtype}")
    found = np.arange(shape[0]) if names is None else as_names(names)
    if len(found) != shape[0]:
        raise GraphFormatError(f"got {len(found)} names for a matrix of shape {shape}; pass one per row")
    sources, targets, weights = matrix_entries(matrix, weighted)
    directions = directed, True, reciprocal  # the matrix is directed if entries lack their mirror
    return _built(sources, targets, found, weights, features, feature_names, *directions)


def from_dataframe(
    edges: Any,
    source: str | None = None,
    target: str | None = None,
    weight: str | bool | None = None,
    *,
    nodes: Any = None,
    node: str | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "fill",
    directed: bool = False,
    reciprocal: Reciprocal = "error",
    encoder: "FeatureEncoder | None" = None,
) -> "Graph":
    """Convert a table of edges, with or without a table of nodes: pandas, polars, Arrow or a dict.

    Integers in the tables are names. Nodes come in the order of ``nodes`` or, without it, of appearance.

    Parameters
    ----------
    edges : table (m rows)
    source, target : str, optional
        Columns of the ends; by default those with usual titles ("source" and "target", "from" and
        "to", ...), or else the first two.
    weight : str or False, optional
        Column of the weights; by default one titled "weight" or similar, if any. False ignores it.
    nodes : table, optional
        One row per node: its name and its features.
    node : str, optional
        Column of the names in ``nodes``; by default a pandas index of names, or the column titled node, id
        or name, or else the first.
    features : sequence of str, optional
        Feature columns of ``nodes``; by default all. Numbers are used as they are; other columns, and gaps,
        go through a FeatureEncoder, which the graph holds as ``encoder``.
    missing : {"fill", "zero"}
        Features of a node of ``edges`` without a row in ``nodes``: what an encoder fills in, or zeros.
    directed, reciprocal
        As in :meth:`Graph.from_edges`.
    encoder : FeatureEncoder, optional
        As in :meth:`Graph.from_networkx`.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> edges = {"source": ["ann", "bob"], "target": ["bob", "cy"]}
    >>> nodes = {"node": ["ann", "bob", "cy"], "age": [31, 45, 28]}
    >>> Graph.from_dataframe(edges, nodes=nodes)
    Graph(3 nodes, 2 edges, 1 dense feature, names 'ann', 'bob', ...)
    """
    import pyarrow as pa

    from spinegraph.graph.edge_files import EdgeOptions, choose_columns, samples, warn_of_shared_ids
    from spinegraph.graph.feature_files import no_common_name
    from spinegraph.graph.tables import as_table, numbers_of, parse_texts, plain

    _check_missing(missing)
    table = as_table(edges)
    titles, weights = table.column_names, None
    if (source is None) != (target is None):
        raise ParameterError(f"pass source and target together; got source={source!r}, target={target!r}")
    if len(titles) < 2:
        raise GraphFormatError(f"a table of edges needs two columns, source and target; got {titles}")
    named = weight if isinstance(weight, str) else None
    options = EdgeOptions(source, target, named, weighted=False if weight is False else None)
    chosen = choose_columns(titles, len(titles), options, "edges", samples(table))
    one, other = (_names(table, titles[column], "edges") for column in (chosen.source, chosen.target))
    if chosen.weight is not None:
        texts = parse_texts(plain(table.column(chosen.weight)), "number")[0]
        weights = numbers_of(texts, titles[chosen.weight])
    ends = _numbered(pa.array([], pa.null()), one, other)[0] if nodes is not None else None
    rows, columns = _node_table(nodes, node, features, ends)
    names, codes = _numbered(rows, one, other)
    matrix, feature_names = None, None
    if nodes is not None:
        listed = codes[: len(rows)]  # 0, 1, ... if names are unique, since nodes come first
        twice = np.diff(np.maximum.accumulate(listed), prepend=-1) == 0
        if twice.any():
            given = first_few(names[listed[twice]])
            raise MissingFeaturesError(f"nodes: names must be unique; given more than once: {given}")
        if len(rows) and len(one) and codes[len(rows) :].min() >= len(rows):
            message = no_common_name(names[: len(rows)], names[len(rows) :])
            raise MissingFeaturesError(f"nodes: {message}; choose the column of names with node=...")
        if columns.num_columns:
            row_of = np.arange(len(names))
            taken = columns.take(pa.array(row_of, mask=row_of >= len(rows)))
            matrix, feature_names, encoder = _features(taken, missing, encoder)
    sources, targets = codes[len(rows) :].reshape(2, -1)
    warn_of_shared_ids(chosen.titles, names, lambda: len(np.intersect1d(sources, targets)), stacklevel=3)
    directions = directed, False, reciprocal
    graph = _built(sources, targets, names, weights, matrix, feature_names, *directions)
    return graph._encoded_by(None if matrix is None else encoder)


def to_dataframe(
    graph: "Graph",
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
    if kind not in ("pandas", "polars", "arrow"):
        raise ParameterError(f"kind must be one of 'pandas', 'polars', 'arrow'; got {kind!r}")
    if table not in ("edges", "nodes"):
        raise ParameterError(f"table must be one of 'edges', 'nodes'; got {table!r}")
    import pyarrow as pa

    try:
        names = pa.array(graph.names)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise GraphFormatError(
            f"node names must be of one simple type to form a column: {error}; use relabel(...) first"
        ) from error
    if table == "edges":
        sources, targets, weights = _edges(graph)
        columns = {"source": names.take(pa.array(sources)), "target": names.take(pa.array(targets))}
        columns |= {} if weights is None else {"weight": pa.array(weights)}
    else:
        columns = {"node": names}
        listed = _column_names(graph)
        if "node" in listed:
            raise GraphFormatError("the name 'node' of a feature is taken; rename it with with_features(...)")
        if graph.features is not None:
            dense = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
            columns |= {name: pa.array(values) for name, values in zip(listed, dense.T, strict=True)}
    made = pa.table(columns)
    if kind == "arrow":
        return made
    package = optional_package(kind)
    return made.to_pandas() if kind == "pandas" else package.from_arrow(made)


def optional_package(name: str) -> ModuleType:
    """Import an optional package, or raise an error with the pip command."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the package's own imports
            return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        wanted = "'spinegraph[graphs]'" if package in ("networkx", "pandas", "polars") else package
        raise MissingPackageError(
            f"{package} is needed here and could not be imported ({error}); pip install {wanted}"
        ) from error


def _node_table(
    nodes: Any, node: str | None, features: Sequence[str] | None, ends: NDArray[Any] | None
) -> "tuple[pa.Array, pa.Table]":
    """Return the node names in table order, and the columns of their features (r rows)."""
    import pyarrow as pa

    from spinegraph.graph.feature_files import name_column, named_table

    if nodes is None:
        if node is not None or features is not None:
            raise ParameterError("node and features are columns of a node table; pass nodes=... too")
        return pa.array([], pa.null()), None
    table = named_table(nodes, integers=False)
    if not table.num_columns:
        raise GraphFormatError("the table of nodes needs a column of names; it has no columns")
    titles = table.column_names
    title = node if node is not None else titles[name_column(table, None, "nodes", ends)]
    names = _names(table, title, "nodes")
    if features is None:
        features = [column for column in titles if column != title]
    return names, pa.table({column: _column(table, column, "nodes") for column in features})


def _column(table: "pa.Table", name: str, which: str) -> Any:
    if name not in table.column_names:
        raise GraphFormatError(f"{which} have no column {name!r}; the columns are {table.column_names}")
    return table.column(name)


def _names(table: "pa.Table", column: str, which: str) -> "pa.Array":
    import pyarrow as pa

    from spinegraph.graph.tables import plain

    values, title = _column(table, column, which), f"{which}: column {column!r}"
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        way_out = f"drop such rows, in pandas by {which}.dropna(subset=[{column!r}])"
        raise GraphFormatError(f"{title} has no name in row {row}, but every node needs one; {way_out}")
    if pa.types.is_floating(values.type):
        with suppress(pa.ArrowInvalid):  # 1.0 and 2.0 are 1 and 2
            return plain(values.cast(pa.int64()))
        raise GraphFormatError(f"{title} holds {values.type}; convert names to integers or strings")
    return plain(values)


def _numbered(
    nodes: "pa.Array", sources: "pa.Array", targets: "pa.Array"
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return all names in order of appearance, nodes first and then edge by edge, and the codes of all."""
    import pyarrow as pa

    n, m = len(nodes), len(sources)
    order = np.concatenate((np.arange(n), n + np.arange(2 * m).reshape(2, m).T.ravel()))
    parts = [part for part in (nodes, sources, targets) if len(part)]
    if len({part.type for part in parts}) == 1 and not pa.types.is_nested(parts[0].type):
        coded = pa.concat_arrays(parts).take(pa.array(order)).dictionary_encode()
        names, found = as_array(coded.dictionary.to_pylist()), coded.indices.to_numpy()
    else:
        listed = [value for part in parts for value in part.to_pylist()]
        names, found = in_order_of_appearance([listed[at] for at in order.tolist()])
    codes = np.empty(len(order), np.int64)
    codes[order] = found
    return names, codes
