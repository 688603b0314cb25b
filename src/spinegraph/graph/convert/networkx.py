"""NetworkX graphs to and from Graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spinegraph.errors import GraphFormatError
from spinegraph.graph.align import Missing
from spinegraph.graph.convert.attributes import attributes_of, features_from_attributes
from spinegraph.graph.convert.packages import optional_package
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import as_names
from spinegraph.graph.rows import each_edge_once


def from_networkx(
    graph: Any,
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
