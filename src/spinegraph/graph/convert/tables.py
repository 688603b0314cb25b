"""Tables of edges and of nodes (pandas, polars, Arrow) to and from Graph."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, ParameterError, SkippedColumnWarning
from spinegraph.graph.align import Missing, align_features
from spinegraph.graph.convert.attributes import column_names
from spinegraph.graph.convert.packages import optional_package
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.encode_values import plain
from spinegraph.graph.files.columns import EdgeColumns, EdgeOptions, choose_columns
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import as_array, in_order_of_appearance
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
