"""igraph graphs to and from Graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spinegraph.errors import GraphFormatError
from spinegraph.graph.align import Missing
from spinegraph.graph.convert.attributes import attributes_of, features_from_attributes
from spinegraph.graph.convert.packages import optional_package
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import as_names, is_range
from spinegraph.graph.rows import each_edge_once


def from_igraph(
    graph: Any,
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


def _weights(graph: Any, weight: str | None) -> list[Any] | None:
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
