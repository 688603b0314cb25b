"""Other libraries' graphs to and from Graph; users meet these as its methods."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse

from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    MissingPackageError,
    ParameterError,
    SkippedColumnWarning,
)
from spinegraph.graph.edge_files import EdgeColumns, EdgeOptions, choose_columns
from spinegraph.graph.edges import Features, Reciprocal, each_edge_once, matrix_entries, read_listing
from spinegraph.graph.feature_files import Missing, align_features
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import as_array, as_names, first_few, in_order_of_appearance, is_range, quoted
from spinegraph.graph.tables import as_table, plain

if TYPE_CHECKING:
    import igraph
    import networkx


def optional_package(name: str) -> ModuleType:
    """Return a package that the user may or may not have, or say how to install it."""
    try:
        with warnings.catch_warnings():
            # What a package has to say about its own imports is not for our caller.
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        raise MissingPackageError(
            f"{package} is needed here and could not be loaded ({error}); pip install {package}"
        ) from error


def features_from_attributes(
    columns: Mapping[str, Sequence[Any]], names: NDArray[Any], missing: Missing
) -> Features:
    """Return features (n, f) from one sequence of numbers per attribute, None where a node lacks it.

    With ``missing="zero"`` a gap is 0 and the result is sparse.
    """
    if missing not in ("error", "zero"):
        raise ParameterError(f"missing must be one of 'error', 'zero'; got {missing!r}")
    numbers = np.zeros((len(columns), len(names)))
    is_given = np.zeros((len(columns), len(names)), dtype=bool)
    for place, (attribute, values) in enumerate(columns.items()):
        gaps = np.array([value is None for value in values], dtype=bool)
        if gaps.any() and missing == "error":
            raise MissingFeaturesError(
                f"{gaps.sum()} of {len(names)} nodes have no attribute {attribute!r}: "
                f"{first_few(names[gaps])}; pass missing='zero' to count it as 0 there"
            )
        for node, value in enumerate(values):
            if value is not None:
                numbers[place, node] = _number(value, attribute, names[node])
        is_given[place] = ~gaps
    if missing == "error":
        return numbers.T.astype(np.float32)
    column, row = np.nonzero(is_given & (numbers != 0))
    return csr_array(
        coo_array((numbers[column, row], (row, column)), shape=numbers.T.shape), dtype=np.float32
    )


def attributes_of(
    features: Features, feature_names: tuple[str, ...] | None
) -> tuple[list[str], Iterator[dict[str, float]]]:
    """Return attribute names, and each node's attributes; of sparse features the entries that are there."""
    columns = column_names(feature_names, features.shape[1])
    if isinstance(features, np.ndarray):
        return columns, (dict(zip(columns, row, strict=True)) for row in features.tolist())
    bounds = zip(features.indptr[:-1].tolist(), features.indptr[1:].tolist(), strict=True)
    return columns, (
        {
            columns[at]: value
            for at, value in zip(features.indices[a:b], features.data[a:b].tolist(), strict=True)
        }
        for a, b in bounds
    )


def column_names(feature_names: tuple[str, ...] | None, count: int) -> list[str]:
    """Return one name per feature column, made up where they are not known."""
    names = [f"feature_{place}" for place in range(count)] if feature_names is None else list(feature_names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphFormatError(
            f"feature names must differ to become columns; {twice!r} is there more than once. "
            "Pass others with with_features(features, feature_names=...)"
        )
    return names


def _number(value: Any, attribute: str, name: Any) -> float:
    if not isinstance(value, int | float | np.number | np.bool_) or isinstance(value, np.complexfloating):
        raise GraphFormatError(
            f"attribute {attribute!r} of node {quoted(name)} is {value!r}, not a number; "
            "leave it out of feature_attributes, or encode it with FeatureEncoder"
        )
    return float(value)


def from_igraph(
    graph: "igraph.Graph",
    weight: str | None = "weight",
    feature_attributes: Sequence[str] = (),
    *,
    missing: Missing = "error",
    reciprocal: Reciprocal = "error",
    stacklevel: int = 1,
) -> Graph:
    """Convert; see :meth:`Graph.from_igraph`."""
    if not all(hasattr(graph, name) for name in ("vs", "es", "get_edgelist", "is_directed")):
        raise GraphFormatError(f"expected an igraph Graph; got {type(graph).__name__}")
    n, attributes = graph.vcount(), graph.vs.attributes()
    names = as_names(graph.vs["name"]) if "name" in attributes else np.arange(n)
    edges = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    features = None
    if feature_attributes:
        columns = {
            attribute: graph.vs[attribute] if attribute in attributes else [None] * n
            for attribute in feature_attributes
        }
        features = features_from_attributes(columns, names, missing)
    return Graph._from_positions(
        edges[:, 0],
        edges[:, 1],
        names,
        _weights(graph, weight),
        features,
        feature_attributes or None,
        directed=graph.is_directed(),
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def _weights(graph: "igraph.Graph", weight: str | None) -> list[Any] | None:
    """Return one weight per edge, 1 where an edge lacks it; None where all do."""
    listed = graph.es[weight] if weight in graph.es.attributes() else []
    if all(value is None for value in listed):
        return None
    return [1 if value is None else value for value in listed]


def to_igraph(graph: Graph, weight: str = "weight", *, features: bool = True) -> Any:
    """Convert; see :meth:`Graph.to_igraph`."""
    sources, targets, weights = each_edge_once(graph.indptr, graph.indices, graph.weights)
    made = optional_package("igraph").Graph(n=len(graph), edges=np.column_stack((sources, targets)).tolist())
    if not is_range(graph.names):
        made.vs["name"] = graph.names.tolist()
    if weights is not None:
        made.es[weight] = weights.tolist()
    if features and graph.features is not None:
        columns, rows = attributes_of(graph.features, graph.feature_names)
        if "name" in columns:
            raise GraphFormatError(
                "igraph keeps node names in the attribute 'name', which is a feature here as well; "
                "pass features=False, or rename the column with with_features(...)"
            )
        values = list(rows)
        for column in columns:
            made.vs[column] = [row.get(column) for row in values]
    return made


def from_networkx(
    graph: "networkx.Graph",
    weight: str | None = "weight",
    feature_attributes: Sequence[str] = (),
    *,
    missing: Missing = "error",
    reciprocal: Reciprocal = "error",
    stacklevel: int = 1,
) -> Graph:
    """Convert; see :meth:`Graph.from_networkx`."""
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed", "is_multigraph")):
        raise GraphFormatError(f"expected a NetworkX graph; got {type(graph).__name__}")
    listed = list(graph.nodes)
    names = as_names(listed)
    place = {name: position for position, name in enumerate(listed)}
    edges = (
        list(graph.edges(data=weight, default=None)) if weight else [(*e[:2], None) for e in graph.edges()]
    )
    weights = None
    if any(value is not None for _, _, value in edges):
        weights = [1 if value is None else value for _, _, value in edges]  # NetworkX's own default
    features = None
    if feature_attributes:
        columns = {
            attribute: [data.get(attribute) for _, data in graph.nodes(data=True)]
            for attribute in feature_attributes
        }
        features = features_from_attributes(columns, names, missing)
    return Graph._from_positions(
        np.fromiter((place[source] for source, _, _ in edges), np.int64, len(edges)),
        np.fromiter((place[target] for _, target, _ in edges), np.int64, len(edges)),
        names,
        weights,
        features,
        feature_attributes or None,
        directed=graph.is_directed(),
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def to_networkx(graph: Graph, weight: str = "weight", *, features: bool = True) -> Any:
    """Convert; see :meth:`Graph.to_networkx`."""
    made = optional_package("networkx").Graph()
    names = graph.names.tolist()
    if features and graph.features is not None:
        _, rows = attributes_of(graph.features, graph.feature_names)
        made.add_nodes_from(zip(names, rows, strict=True))
    else:
        made.add_nodes_from(names)
    sources, targets, weights = each_edge_once(graph.indptr, graph.indices, graph.weights)
    pairs = ((names[source], names[target]) for source, target in zip(sources, targets, strict=True))
    if weights is None:
        made.add_edges_from(pairs)
    else:
        made.add_weighted_edges_from(
            ((*pair, value) for pair, value in zip(pairs, weights.tolist(), strict=True)), weight=weight
        )
    return made


def from_pyg(data: Any, *, reciprocal: Reciprocal = "error", stacklevel: int = 1) -> Graph:
    """Convert; see :meth:`Graph.from_pyg`."""
    if hasattr(data, "node_types"):
        raise GraphFormatError("expected a PyG Data object; got HeteroData, pass data.to_homogeneous()")
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None or not hasattr(edge_index, "detach"):
        raise GraphFormatError(
            f"expected a PyG Data object with edge_index; got {type(data).__name__} without one"
        )
    features = None if getattr(data, "x", None) is None else _features(data.x)
    weights, names = getattr(data, "edge_weight", None), getattr(data, "names", None)
    num_nodes = _num_nodes(data, features)
    if num_nodes is None and names is not None:
        num_nodes = len(names)  # edge_index holds positions, also where names are whole numbers
    sources, targets, names = read_listing(_array(edge_index).T, num_nodes, names)
    return Graph._from_positions(
        sources,
        targets,
        names,
        None if weights is None else _array(weights),
        features,
        getattr(data, "feature_names", None),
        directed=True,  # PyG lists both directions of an undirected edge
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def to_pyg(graph: Graph, *, sparse: bool = False) -> Any:
    """Convert; see :meth:`Graph.to_pyg`."""
    data = optional_package("torch_geometric.data").Data()
    import torch

    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    data.edge_index = torch.from_numpy(np.stack((rows, graph.indices)))  # (2, nnz) int64
    data.num_nodes = len(graph)
    if graph.weights is not None:
        data.edge_weight = torch.from_numpy(graph.weights.copy())
    if isinstance(graph.features, np.ndarray):
        data.x = torch.from_numpy(graph.features.copy())
    elif graph.features is not None and sparse:
        entries = coo_array(graph.features)
        coords = torch.from_numpy(np.stack(entries.coords).astype(np.int64))  # (2, nnz)
        values = torch.from_numpy(entries.data.copy())
        # Torch 2.11 warns where this is an argument.
        with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
            data.x = torch.sparse_coo_tensor(coords, values, entries.shape)
    elif graph.features is not None:
        data.x = torch.from_numpy(graph.features.toarray())
    if not is_range(graph.names):
        data.names = graph.names.tolist()
    if graph.feature_names is not None:
        data.feature_names = list(graph.feature_names)
    return data


def _num_nodes(data: Any, features: Any) -> int | None:
    """Return the number of nodes where the data says it; PyG would guess it with a warning."""
    if features is not None:
        return int(features.shape[0])
    stated = "num_nodes" in data
    return int(data.num_nodes) if stated else None


def _features(x: Any) -> Any:
    if str(x.layout) == "torch.strided":
        return _array(x)
    entries = x.to_sparse_coo().coalesce()
    coords = _array(entries.indices())
    return csr_array(coo_array((_array(entries.values()), (coords[0], coords[1])), shape=tuple(x.shape)))


def _array(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point() and tensor.element_size() < 4:  # bfloat16 has no NumPy twin
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
    reciprocal: Reciprocal = "error",
    stacklevel: int = 1,
) -> Graph:
    """Convert; see :meth:`Graph.from_scipy`."""
    shape = np.shape(matrix) if not issparse(matrix) else matrix.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise GraphFormatError(f"an adjacency matrix has shape (n, n) with n of at least 1; got {shape}")
    if not issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.dtype.kind not in "biuf":
        raise GraphFormatError(f"an adjacency matrix holds real numbers; got dtype {matrix.dtype}")
    found = np.arange(shape[0]) if names is None else as_names(names)
    if len(found) != shape[0]:
        raise GraphFormatError(f"{len(found)} names for a matrix of shape {shape}")
    sources, targets, weights = matrix_entries(matrix, weighted)
    return Graph._from_positions(
        sources,
        targets,
        found,
        weights,
        features,
        feature_names,
        directed=True,  # entries without their mirror are what makes a matrix directed
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def to_scipy(graph: Graph) -> csr_array:
    """Convert; see :meth:`Graph.to_scipy`."""
    data = np.ones(len(graph.indices), np.float32) if graph.weights is None else graph.weights
    return csr_array((data, graph.indices, graph.indptr), shape=(len(graph),) * 2, copy=True)


Kind = Literal["pandas", "polars", "arrow"]


def from_dataframe(
    edges: Any,
    source: str | None = None,
    target: str | None = None,
    weight: str | bool | None = None,
    *,
    nodes: Any = None,
    node: str | None = None,
    features: Sequence[str] | None = None,
    missing: Missing = "error",
    directed: bool = False,
    reciprocal: Reciprocal = "error",
    stacklevel: int = 1,
) -> Graph:
    """Convert; see :meth:`Graph.from_dataframe`."""
    table = as_table(edges)
    chosen = _edge_columns(table, source, target, weight)
    ends = [_names(table, place, "edges") for place in (chosen.source, chosen.target)]
    weights = None if chosen.weight is None else _numbers(table, chosen.weight, "edges")
    rows, matrix, columns = _node_table(nodes, node, features, stacklevel + 1)
    names, codes = _numbered([rows, *ends])
    if nodes is not None:
        matrix = align_features(names, rows.names[rows.codes], matrix, missing)
    sources, targets = codes[len(rows.codes) :].reshape(-1, 2).T
    return Graph._from_positions(
        sources,
        targets,
        names,
        weights,
        matrix if columns else None,
        columns or None,
        directed=directed,
        reciprocal=reciprocal,
        stacklevel=stacklevel + 1,
    )


def to_dataframe(graph: Graph, kind: Kind = "pandas", table: Literal["edges", "nodes"] = "edges") -> Any:
    """Convert; see :meth:`Graph.to_dataframe`."""
    if kind not in ("pandas", "polars", "arrow"):
        raise ParameterError(f"kind must be one of 'pandas', 'polars', 'arrow'; got {kind!r}")
    if table not in ("edges", "nodes"):
        raise ParameterError(f"table must be one of 'edges', 'nodes'; got {table!r}")
    made = _edges_table(graph) if table == "edges" else _nodes_table(graph)
    if kind == "arrow":
        return made
    package = optional_package(kind)
    return made.to_pandas() if kind == "pandas" else package.from_arrow(made)


class _Names(NamedTuple):
    """A column of names: the distinct ones, and which of them each row holds."""

    names: NDArray[Any]  # (distinct,) int64 or objects
    codes: NDArray[Any]  # (rows,)


def _edge_columns(
    table: pa.Table, source: str | None, target: str | None, weight: str | bool | None
) -> EdgeColumns:
    """Return which columns hold source, target and weight, by the rules of edge files."""
    if (source is None) != (target is None):
        raise ParameterError(f"pass source and target together; got source={source!r}, target={target!r}")
    if table.num_columns < 2:
        raise GraphFormatError(f"edges need two columns, a source and a target; got {table.column_names}")
    titles, weighted = table.column_names, False if weight is False else None
    columns: list[str] | None = None if source is None or target is None else [source, target]
    chosen = choose_columns(titles, len(titles), EdgeOptions(columns, weighted), "edges")
    if not isinstance(weight, str):
        return chosen
    columns = [titles[chosen.source], titles[chosen.target], weight]
    return choose_columns(titles, len(titles), EdgeOptions(columns), "edges")


def _node_table(
    nodes: Any, node: str | None, features: Sequence[str] | None, stacklevel: int
) -> tuple[_Names, Any, list[str]]:
    """Return node names in table order, their features (r, f) and the columns these come from."""
    if nodes is None:
        if node is not None or features is not None:
            raise ParameterError("node and features name columns of a node table; pass nodes=... as well")
        return _Names(np.zeros(0, dtype=object), np.zeros(0, dtype=np.int64)), None, []
    table = as_table(nodes)
    if not table.num_columns:
        raise GraphFormatError("nodes need a column of names; the table has no columns")
    name_column = node if node is not None else table.column_names[0]
    names = _names(table, _place(table, name_column), "nodes")
    if features is None:
        others = [column for column in table.column_names if column != name_column]
        features = [column for column in others if _is_number(table.schema.field(column).type)]
        skipped = [column for column in others if column not in features]
        if skipped:
            warnings.warn(
                f"nodes: columns {', '.join(map(repr, skipped))} are not numbers and were left out; "
                "FeatureEncoder turns such columns into features",
                SkippedColumnWarning,
                stacklevel=stacklevel + 1,
            )
    columns = list(features)
    matrix = np.empty((len(table), len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        with np.errstate(over="ignore"):  # infinity is refused when the graph is built
            matrix[:, place] = _numbers(table, _place(table, column), "nodes")
    return names, matrix, columns


def _place(table: pa.Table, column: str) -> int:
    if column not in table.column_names:
        raise GraphFormatError(f"nodes have no column {column!r}; the columns are {table.column_names}")
    return int(table.column_names.index(column))


def _names(table: pa.Table, place: int, which: str) -> _Names:
    values, title = table.column(place), f"{which}: column {table.column_names[place]!r}"
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise GraphFormatError(f"{title} has no name in row {row}; every node needs one")
    if pa.types.is_floating(values.type):
        raise GraphFormatError(
            f"{title} holds {values.type}, which makes no good names; convert it to integers or strings"
        )
    if pa.types.is_nested(values.type):
        return _Names(*in_order_of_appearance(values.to_pylist()))
    coded = plain(values).dictionary_encode()
    return _Names(as_array(coded.dictionary.to_pylist()), coded.indices.to_numpy())


def _numbered(parts: list[_Names]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return all names in order of appearance, nodes first and then edge by edge, and all codes."""
    merged, codes = in_order_of_appearance([name for part in parts for name in part.names.tolist()])
    first_code = np.cumsum([0, *(len(part.names) for part in parts)])
    nodes, sources, targets = (
        codes[start:][part.codes] if len(part.codes) else np.zeros(0, np.int64)
        for start, part in zip(first_code, parts, strict=False)
    )
    order, places = in_order_of_appearance(
        np.concatenate((nodes, np.column_stack((sources, targets)).ravel()))
    )
    return merged[order.astype(np.int64)], places


def _numbers(table: pa.Table, place: int, which: str) -> NDArray[Any]:
    values, title = table.column(place), f"{which}: column {table.column_names[place]!r}"
    if not _is_number(values.type):
        raise GraphFormatError(f"{title} must hold numbers; got {values.type}")
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise GraphFormatError(
            f"{title} has no value in row {row}; fill gaps first, or let FeatureEncoder mark them"
        )
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _edges_table(graph: Graph) -> pa.Table:
    sources, targets, weights = each_edge_once(graph.indptr, graph.indices, graph.weights)
    names = _name_column(graph)
    columns = {"source": names.take(pa.array(sources)), "target": names.take(pa.array(targets))}
    if weights is not None:
        columns["weight"] = pa.array(weights)
    return pa.table(columns)


def _nodes_table(graph: Graph) -> pa.Table:
    columns = {"node": _name_column(graph)}
    if graph.features is not None:
        listed = column_names(graph.feature_names, graph.features.shape[1])
        if "node" in listed:
            raise GraphFormatError(
                "a feature is called 'node' like the column of names; rename it with with_features(...)"
            )
        dense = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
        columns |= {name: pa.array(dense[:, place]) for place, name in enumerate(listed)}
    return pa.table(columns)


def _name_column(graph: Graph) -> pa.Array:
    try:
        return pa.array(graph.names)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise GraphFormatError(
            f"node names must be of one simple type to fill a column: {error}; relabel(...) first"
        ) from error
