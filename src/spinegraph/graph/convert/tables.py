"""Tables of edges and of nodes (pandas, polars, Arrow) to and from Graph."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, ParameterError, SkippedColumnWarning
from spinegraph.graph.align import Missing, align_features
from spinegraph.graph.convert.attributes import column_names
from spinegraph.graph.convert.packages import optional_package
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import in_order_of_appearance
from spinegraph.graph.rows import each_edge_once
from spinegraph.graph.table import as_table

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
    source_column, target_column = _end_columns(table, source, target)
    ends = [_names(table, source_column, "edges"), _names(table, target_column, "edges")]
    weights = _weights(table, weight)
    listed, rows, matrix, columns = _node_table(nodes, node, features, stacklevel + 1)
    names, places = in_order_of_appearance(_joined(listed, *ends))
    if nodes is not None:
        matrix = align_features(names, rows, matrix, missing)
    places = places[len(listed) :]
    return Graph._from_positions(
        places[: len(table)],
        places[len(table) :],
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


def _end_columns(table: pa.Table, source: str | None, target: str | None) -> tuple[str, str]:
    """Return the names of the two columns of ends: those asked for, 'source' and 'target', or first two."""
    columns = table.column_names
    if source is None and target is None:
        if {"source", "target"} <= set(columns):
            return "source", "target"
        if len(columns) < 2:
            raise GraphFormatError(f"edges need two columns, a source and a target; got {columns}")
        return columns[0], columns[1]
    if source is None or target is None:
        raise ParameterError(f"pass source and target together; got source={source!r}, target={target!r}")
    for column in (source, target):
        _require_column(table, column, "edges")
    return source, target


def _weights(table: pa.Table, weight: str | bool | None) -> NDArray[Any] | None:
    if weight is False or (weight is None and "weight" not in table.column_names):
        return None
    column = weight if isinstance(weight, str) else "weight"
    _require_column(table, column, "edges")
    return _numbers(table, column, "edges")


def _node_table(
    nodes: Any, node: str | None, features: Sequence[str] | None, stacklevel: int
) -> tuple[NDArray[Any], NDArray[Any], Any, list[str]]:
    """Return node names in table order, twice, with their features (r, f) and the columns these come from."""
    if nodes is None:
        if node is not None or features is not None:
            raise ParameterError("node and features name columns of a node table; pass nodes=... as well")
        nothing = np.zeros(0, dtype=object)
        return nothing, nothing, None, []
    table = as_table(nodes)
    if not table.num_columns:
        raise GraphFormatError("nodes need a column of names; the table has no columns")
    name_column = node if node is not None else table.column_names[0]
    _require_column(table, name_column, "nodes")
    names = _names(table, name_column, "nodes")
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
        _require_column(table, column, "nodes")
        with np.errstate(over="ignore"):  # infinity is refused when the graph is built
            matrix[:, place] = _numbers(table, column, "nodes")
    return names, names, matrix, columns


def _require_column(table: pa.Table, column: str, place: str) -> None:
    if column not in table.column_names:
        raise GraphFormatError(f"{place} have no column {column!r}; the columns are {table.column_names}")


def _names(table: pa.Table, column: str, place: str) -> NDArray[Any]:
    """Return a column of node names: int64, or objects."""
    values = table.column(column)
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise GraphFormatError(f"{place}: column {column!r} has no name in row {row}; every node needs one")
    if pa.types.is_floating(values.type):
        raise GraphFormatError(
            f"{place}: column {column!r} holds {values.type}, which makes no good names; "
            "convert it to integers or strings"
        )
    if pa.types.is_integer(values.type) and not pa.types.is_uint64(values.type):
        return np.asarray(values.to_numpy(), dtype=np.int64)
    listed = values.to_pylist()
    return np.fromiter(listed, dtype=object, count=len(listed))


def _numbers(table: pa.Table, column: str, place: str) -> NDArray[Any]:
    values = table.column(column)
    if not _is_number(values.type):
        raise GraphFormatError(f"{place}: column {column!r} must hold numbers; got {values.type}")
    if values.null_count:
        row = values.is_null().to_pylist().index(True)
        raise GraphFormatError(
            f"{place}: column {column!r} has no value in row {row}; "
            "fill gaps first, or let FeatureEncoder mark them"
        )
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _joined(*parts: NDArray[Any]) -> NDArray[Any]:
    filled = [part for part in parts if len(part)]
    if not filled:
        return np.zeros(0, dtype=object)
    kinds = {part.dtype for part in filled}
    return np.concatenate(filled if len(kinds) == 1 else [part.astype(object) for part in filled])


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
