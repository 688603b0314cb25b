"""Graphs made from graphs: parts, new names and disjoint unions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError
from spinegraph.graph.checks import Features
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import as_names, first_few, is_range
from spinegraph.graph.rows import pointers, row_places, stacked


def subgraph(graph: Graph, names: Iterable[Any]) -> Graph:
    """Return the graph of some nodes, in the order given, and the edges among them.

    Examples
    --------
    >>> subgraph(Graph.from_edges([(0, 1), (1, 2)]), [2, 1]).names
    array([2, 1])
    """
    kept = graph.positions(names)
    if not len(kept):
        raise GraphFormatError("a graph has at least one node; got no names for the subgraph")
    place = np.full(len(graph), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    if (place[kept] != np.arange(len(kept))).any():
        twice = kept[place[kept] != np.arange(len(kept))]
        raise GraphFormatError(f"each node may be named once; repeated: {first_few(graph.names[twice[:6]])}")
    entries = row_places(graph.indptr, kept)
    columns = place[graph.indices[entries]]
    rows = np.repeat(np.arange(len(kept)), graph.degrees[kept])[columns >= 0]
    entries, columns = entries[columns >= 0], columns[columns >= 0]
    if (kept[1:] < kept[:-1]).any():  # another order than the graph's: neighbours must be sorted anew
        order = np.argsort(rows * len(kept) + columns)
        entries, columns = entries[order], columns[order]
    return Graph._trusted(
        pointers(np.bincount(rows, minlength=len(kept))),
        columns,
        None if graph.weights is None else graph.weights[entries],
        graph.names[kept],
        None if graph.features is None else graph.feature_rows(kept),
        graph.feature_names,
    )._encoded_by(graph.encoder)


def relabel(graph: Graph, names: Mapping[Any, Any] | Iterable[Any]) -> Graph:
    """Return the same graph under other node names; the arrays are shared.

    Examples
    --------
    >>> relabel(Graph.from_edges([(0, 1)]), {0: "ann"}).names
    array(['ann', 1], dtype=object)
    """
    if isinstance(names, Mapping):
        listed = graph.names.tolist()
        for position, name in zip(graph.positions(list(names)).tolist(), names.values(), strict=True):
            listed[position] = name
        names = listed
    renamed = as_names(names)
    if len(renamed) != len(graph):
        raise GraphFormatError(f"relabel needs one name per node; got {len(renamed)} for {len(graph)} nodes")
    return Graph._trusted(
        graph.indptr,
        graph.indices,
        graph.weights,
        renamed,
        graph.features,
        graph.feature_names,
        graph.report,
    )._encoded_by(graph.encoder)


def union(graphs: Sequence[Graph], keys: Sequence[Any] | None = None) -> Graph:
    """Return the disjoint union of graphs.

    Examples
    --------
    >>> pair = Graph.from_edges([(0, 1)])
    >>> union([pair, pair]).names, union([pair, pair], keys="ab").names[2]
    (array([0, 1, 2, 3]), ('b', 0))
    """
    graphs = list(graphs)
    if not graphs:
        raise GraphFormatError("union needs at least one graph; got none")
    sizes = [len(graph) for graph in graphs]
    starts = np.cumsum([0, *sizes])
    indices = np.concatenate([graph.indices + start for graph, start in zip(graphs, starts, strict=False)])
    weights = None
    if any(graph.weights is not None for graph in graphs):
        ones = [np.ones(len(graph.indices), np.float32) for graph in graphs]
        weights = np.concatenate(
            [one if graph.weights is None else graph.weights for graph, one in zip(graphs, ones, strict=True)]
        )
    features, feature_names = _joined_features(graphs)
    return Graph._trusted(
        pointers(np.concatenate([graph.degrees for graph in graphs])),
        indices,
        weights,
        _joined_names(graphs, keys),
        features,
        feature_names,
    )._encoded_by(_joined_encoder(graphs))


def _joined_encoder(graphs: list[Graph]) -> FeatureEncoder | None:
    known = [graph.encoder for graph in graphs if graph.encoder is not None]
    if not all(encoder.is_like(known[0]) for encoder in known):
        raise ParameterError(
            "the graphs' tables were encoded one by one, so that their columns do not mean the same; read "
            "them by one encoder: encoder = FeatureEncoder(), then read_graph(..., encoder=encoder) for each"
        )
    return known[0] if len(known) == len(graphs) else None


def _joined_names(graphs: list[Graph], keys: Sequence[Any] | None) -> NDArray[Any]:
    if keys is not None:
        if len(keys) != len(graphs):
            raise ParameterError(
                f"keys must hold one key per graph; got {len(keys)} for {len(graphs)} graphs"
            )
        return as_names(
            (key, name) for key, graph in zip(keys, graphs, strict=True) for name in graph.names.tolist()
        )
    if all(is_range(graph.names) for graph in graphs):
        return np.arange(sum(map(len, graphs)))
    try:
        return as_names([name for graph in graphs for name in graph.names.tolist()])
    except GraphFormatError as error:
        raise GraphFormatError(
            f"{error}. Pass keys=[...] to name nodes (key, name), or relabel first"
        ) from error


def _joined_features(graphs: list[Graph]) -> tuple[Features | None, tuple[str, ...] | None]:
    widths = {graph.num_features for graph in graphs}
    if widths == {0} and not all(graph.has_features for graph in graphs):
        return None, None
    columns = {graph.feature_names for graph in graphs}
    if len(widths) > 1 or len(columns) > 1:
        found = sorted(widths) if len(widths) > 1 else "the same numbers under different names"
        raise MissingFeaturesError(
            f"all graphs of a union need the same feature columns; got {found}. "
            "Bring them to the same columns with with_features(...)"
        )
    return stacked([graph.features for graph in graphs]), columns.pop()
