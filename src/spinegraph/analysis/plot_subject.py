"""What a figure needs from a fitted model, or from the part that was given instead of one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.inputs import profile_of
from spinegraph.structure.columns import COLUMNS, structural_columns
from spinegraph.structure.rooted_pagerank import rooted_pagerank

_MORE = ("degree", "clustering", "log_triangles")


def graph_of(subject: Any, *, needed: bool = True) -> Any:
    """Return the graph of a model, several as one of names (number, name), or the graph itself.

    Examples
    --------
    >>> graph_of(Graph.from_edges([(0, 1)]))
    Graph(2 nodes, 1 edge)
    """
    found = subject if hasattr(subject, "adjacency") else getattr(subject, "graph_", None)
    if isinstance(found, list):
        return Graph.union(found, keys=range(len(found)))
    if found is None and needed:
        if hasattr(subject, "generator_"):
            raise ParameterError("this model was saved without its training graph; give a graph instead")
        raise ParameterError(f"give a fitted SPINE or a Graph; got {_kind(subject)}")
    return found


def embeddings_of(subject: Any) -> Embeddings:
    """Return the vectors of a model, those of several graphs one after the other, or the vectors given.

    Examples
    --------
    >>> embeddings_of(Embeddings(np.arange(2), np.eye(2)))
    Embeddings(2 nodes, 2 dimensions)
    """
    found = subject if isinstance(subject, Embeddings) else getattr(subject, "embeddings_", None)
    if isinstance(found, list):
        return Embeddings(graph_of(subject).names, np.concatenate([each.vectors for each in found]))
    if found is None:
        if hasattr(subject, "generator_"):
            raise ParameterError(
                "this model was saved without its vectors; give transform(graph) of it instead"
            )
        raise ParameterError(f"give a fitted SPINE or Embeddings; got {_kind(subject)}")
    return found


def history_of(subject: Any) -> list[Any]:
    """Return the training history of a model, or the one given.

    Examples
    --------
    >>> history_of([])
    []
    """
    found = getattr(subject, "history_", subject)
    if not isinstance(found, list):
        raise ParameterError(f"give a fitted SPINE or its history_; got {_kind(subject)}")
    return found


def profile_rows(subject: Any, nodes: list[Any] | None) -> NDArray[np.float32]:
    """Return the profiles (r, k) of some nodes, or of all, with a model's settings or the defaults.

    Examples
    --------
    >>> profile_rows(Graph.from_edges([(0, 1), (1, 2)]), [1]).shape
    (1, 20)
    """
    graph = graph_of(subject)
    positions = None if nodes is None else graph.positions(nodes)
    config = getattr(subject, "config_", None)
    if config is None:
        return rooted_pagerank(graph, roots=positions).weights
    return profile_of(graph, config, positions).weights


def column_of(graph: Any, name: str) -> NDArray[Any]:
    """Return one column by name, (n,): a feature, or a structural column.

    Examples
    --------
    >>> column_of(Graph.from_edges([(0, 1)], features=[[1], [2]], feature_names=["age"]), "age").tolist()
    [1.0, 2.0]
    """
    features = graph.feature_names or ()
    if name in features:
        column = graph.features[:, [features.index(name)]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    if name == "degree":
        return np.asarray(graph.degrees)
    if has_column(graph, name):
        return structural_columns(graph, names=(name,)).values[:, 0]
    some = ", ".join([*features[:5], "degree", *COLUMNS[:3]])
    raise ParameterError(
        f"color must be a column, or one value per node; no column {name!r} among {some}, ..."
    )


def has_column(graph: Any, name: str) -> bool:
    """Say whether there is such a feature or structural column.

    Examples
    --------
    >>> has_column(Graph.from_edges([(0, 1)]), "log_degree")
    True
    """
    return name in (graph.feature_names or ()) or name in (*COLUMNS, *_MORE)


def _kind(subject: Any) -> str:
    is_unfitted = hasattr(subject, "fit")
    return f"{type(subject).__name__} that is not fitted" if is_unfitted else type(subject).__name__
