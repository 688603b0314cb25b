"""New nodes and edges of a request as a change, by the rules of the graph at hand."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.apps.server.changes import Change, Name, feature_rows
from spinegraph.apps.server.directory import alias
from spinegraph.apps.server.problems import ProblemError
from spinegraph.apps.server.schemas import Edge, Link, NewNode, NewNodes
from spinegraph.errors import SpineError
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import quoted
from spinegraph.graph.overlay import Overlay


def require_new(body: NewNode | NewNodes, overlay: Overlay) -> None:
    """Refuse a name that is there already, or is given twice, or that a path could not tell from another."""
    seen: set[Name] = set()
    for where, node in _nodes(body):
        other = alias(node.name)
        if other is not None and (other in seen or overlay.position(other) >= 0):
            detail = f"{where}.name: paths write {quoted(node.name)} like node {quoted(other)}; rename it"
            raise ProblemError(409, detail, field=f"{where}.name", rule="names that differ as text")
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
    table : FeatureEncoder, optional
        What made the graph's features of a table: features by name are then a row of that table.

    Examples
    --------
    >>> reader = Reader(Graph.from_edges([("ann", "bob")]))
    >>> reader.nodes(NewNode(name="cy", edges=["ann"])).edges
    [('cy', 'ann')]
    """

    def __init__(self, graph: Graph, table: FeatureEncoder | None = None) -> None:
        self.is_weighted = graph.weights is not None
        self.columns: dict[str, int] | None = None
        if graph.features is not None:
            names = graph.feature_names or tuple(map(str, range(graph.features.shape[1])))
            self.columns = {name: place for place, name in enumerate(names)}
        self.table = None if self.columns is None else table

    def nodes(self, body: NewNode | NewNodes) -> Change:
        """Return new nodes and their edges as one change."""
        edges, weights = [], []
        for where, node in _nodes(body):
            for number, link in enumerate(node.edges):
                target, weight = (link.to, link.weight) if isinstance(link, Link) else (link, None)
                self._require_edge(node.name, target, weight, f"{where}.edges.{number}")
                edges.append((node.name, target))
                weights.append(weight)
        names = [node.name for _, node in _nodes(body)]
        rows = self._rows([(f"{where}.features", node.features) for where, node in _nodes(body)])
        return Change("add", names, edges, self._weights(weights), rows)

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

    def _rows(self, given: list[tuple[str, Any]]) -> list[tuple[list[int], list[float]]] | None:
        if self.columns is None:
            for where, row in given:
                if row is not None:
                    detail = f"{where}: nodes of this graph have no features; leave them out"
                    raise ProblemError(422, detail, field=where, rule="no features")
            return None
        if self.table is None:
            return feature_rows([self._row(row, where, self.columns) for where, row in given])
        told = [(where, row) for where, row in given if isinstance(row, dict)]
        encoded = iter(_encoded(told, self.table) if told else ())
        return feature_rows(
            [
                next(encoded) if isinstance(row, dict) else self._row(row, where, self.columns)
                for where, row in given
            ]
        )

    def _row(self, given: Any, where: str, columns: dict[str, int]) -> NDArray[np.float32]:
        what = "column names and numbers" if self.table is None else "columns of the model's table"
        rule = f"{len(columns)} numbers, or an object of {what}"
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
            _require_column(name, columns, where)
            if isinstance(value, bool) or not isinstance(value, int | float):
                detail = f"{where}: column {quoted(name[:80])} takes a number; got {quoted(value)}"
                raise ProblemError(422, detail, field=where, rule="numbers")
            row[columns[name]] = value
        return row


def _encoded(told: list[tuple[str, dict[str, Any]]], table: FeatureEncoder) -> NDArray[np.float32]:
    """Return rows of the table that a model was fitted on as features (r, f); what is left out is a gap."""
    for where, row in told:
        for name in row:
            _require_column(name, table.kinds_, where)
    needed = [name for name, kind in table.kinds_.items() if kind not in ("text", "skip")]
    try:
        made = table.transform([{name: row.get(name) for name in needed} for _, row in told])
    except SpineError as error:
        where = told[0][0] if len(told) == 1 else "body.nodes"
        raise ProblemError(422, f"{where}: {error}", field=where, rule="a row of the table") from error
    rows: NDArray[np.float32] = made.toarray() if issparse(made) else made
    return rows


def _require_column(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        detail = f"{where}: no column {quoted(name[:80])}; GET /v1/features lists them"
        raise ProblemError(422, detail, field=where, rule="a known column")
