"""New nodes and edges of a request as a change, by the rules of the graph at hand."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.apps.server.changes import Change, Name, feature_rows
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.schemas import Edge, Link, NewNode, NewNodes
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import quoted
from spinegraph.graph.overlay import Overlay


def require_new(body: NewNode | NewNodes, overlay: Overlay) -> None:
    """Refuse a name that is there already, or is given twice."""
    seen: set[Name] = set()
    for where, node in _nodes(body):
        if overlay.position(node.name) >= 0:
            detail = f"{where}.name: node {quoted(node.name)} is there already"
            raise ProblemError(409, detail, field=f"{where}.name", rule="new names")
        if node.name in seen:
            detail = f"{where}.name: {quoted(node.name)} is given twice"
            raise ProblemError(422, detail, field=f"{where}.name", rule="each name once")
        seen.add(node.name)


def require_known(body: NewNode | NewNodes | list[Edge], overlay: Overlay) -> None:
    """Refuse an edge to a name that is neither in the graph nor new."""
    new: set[Name] = set()
    if isinstance(body, list):
        ends = [(f"body.edges.{place}.source", edge.source) for place, edge in enumerate(body)]
        ends += [(f"body.edges.{place}.target", edge.target) for place, edge in enumerate(body)]
    else:
        new = {node.name for _, node in _nodes(body)}
        ends = [
            (f"{where}.edges.{place}", link.to if isinstance(link, Link) else link)
            for where, node in _nodes(body)
            for place, link in enumerate(node.edges)
        ]
    for where, name in ends:
        if name not in new and overlay.position(name) < 0:
            detail = f"{where}: no node {quoted(name)}; add it first, or in the same request"
            raise ProblemError(404, detail, field=where, rule="a name in the graph")


def _nodes(body: NewNode | NewNodes) -> list[tuple[str, NewNode]]:
    if isinstance(body, NewNodes):
        return [(f"body.nodes.{place}", node) for place, node in enumerate(body.nodes)]
    return [("body", body)]


class Reader:
    """Reads requests: what breaks a rule of this graph is a problem that names the field.

    Parameters
    ----------
    graph : Graph
        Any with the same features and weights, or none.

    Examples
    --------
    >>> reader = Reader(Graph.from_edges([("ann", "bob")]))
    >>> reader.nodes(NewNode(name="cy", edges=["ann"])).edges
    [('cy', 'ann')]
    """

    def __init__(self, graph: Graph) -> None:
        self.is_weighted = graph.weights is not None
        self.columns: dict[str, int] | None = None
        if graph.features is not None:
            names = graph.feature_names or tuple(map(str, range(graph.features.shape[1])))
            self.columns = {name: place for place, name in enumerate(names)}

    def nodes(self, body: NewNode | NewNodes) -> Change:
        """Return new nodes and their edges as one change."""
        edges, weights, rows = [], [], []
        for where, node in _nodes(body):
            for number, link in enumerate(node.edges):
                target, weight = (link.to, link.weight) if isinstance(link, Link) else (link, None)
                self._require_edge(node.name, target, weight, f"{where}.edges.{number}")
                edges.append((node.name, target))
                weights.append(weight)
            rows.append(self._row(node.features, f"{where}.features"))
        features = None if self.columns is None else feature_rows([row for row in rows if row is not None])
        names = [node.name for _, node in _nodes(body)]
        return Change("add", names, edges, self._weights(weights), features)

    def edges(self, edges: list[Edge]) -> Change:
        """Return new edges as one change."""
        for place, edge in enumerate(edges):
            self._require_edge(edge.source, edge.target, edge.weight, f"body.edges.{place}")
        pairs = [(edge.source, edge.target) for edge in edges]
        weights = self._weights([edge.weight for edge in edges])
        return Change("add", [], pairs, weights, None if self.columns is None else [])

    def _weights(self, weights: list[Any]) -> list[float] | None:
        return [float(weight) for weight in weights] if self.is_weighted else None

    def _require_edge(self, source: Name, target: Name, weight: float | None, where: str) -> None:
        if source == target:
            raise ProblemError(
                422, f"{where}: links {quoted(source)} to itself", field=where, rule="no loops"
            )
        if self.is_weighted != (weight is not None):
            rule = f"edges of this graph {'need a' if self.is_weighted else 'have no'} weight"
            raise ProblemError(422, f"{where}: {rule}", field=where, rule=rule)

    def _row(self, given: Any, where: str) -> NDArray[np.float32] | None:
        columns = self.columns
        if columns is None:
            if given is not None:
                detail = f"{where}: nodes of this graph have no features; leave them out"
                raise ProblemError(422, detail, field=where, rule="no features")
            return None
        rule = f"{len(columns)} numbers, or an object of column names and numbers"
        if given is None:
            raise ProblemError(422, f"{where}: is missing; send {rule}", field=where, rule=rule)
        row = np.zeros(len(columns), np.float32)
        if isinstance(given, list):
            if len(given) != len(columns):
                detail = f"{where}: got {len(given)} numbers; send {rule}"
                raise ProblemError(422, detail, field=where, rule=rule)
            row[:] = given
            return row
        for name, value in given.items():
            if name not in columns:
                detail = f"{where}: no column {quoted(name[:80])}; GET /v1/features lists them"
                raise ProblemError(422, detail, field=where, rule="a known column")
            row[columns[name]] = value
        return row
