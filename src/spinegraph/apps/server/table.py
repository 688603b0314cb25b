"""The nodes' own columns, as the user wrote them: read from the table, or decoded from the features."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph.apps.server.live import Name, Snapshot
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.tables import is_date, is_number

Values = list[float | str | None]
_NUMBERS = ("number", "raw", "count")
_DAY = 86_400  # seconds
_ALL_SHOWN = 60  # columns; of a wider matrix only those that are not 0 are in a row


class NodeTable:
    """Values of the nodes' columns: numbers and text, None for gaps; dates are ISO 8601.

    ``written`` (n, c) is the table as the user has it, in the order of the graph's nodes. Nodes that it does
    not have, and all nodes without it, get what the features hold. ``kinds`` says of every column whether it
    is a "number", "date", "boolean", "category" or "text", and of a column that nothing here holds "lost".
    """

    def __init__(self, graph: Graph, encoder: FeatureEncoder | None, written: pa.Table | None = None) -> None:
        self._encoder = None if encoder is None or not encoder.kinds_ else encoder
        self._rows: dict[Name, int] = {}
        self._columns: dict[str, Values] = {}
        self._numbers = {}  # of feature columns without a table
        if self._encoder is not None:
            self.kinds = {name: _kind(kind) for name, kind in self._encoder.kinds_.items()}
        else:
            names = graph.feature_names or tuple(f"feature {number}" for number in range(graph.num_features))
            self._numbers = {name: number for number, name in enumerate(names)}
            self.kinds = dict.fromkeys(names, "number")
        if written is not None:
            self._rows = {name: row for row, name in enumerate(graph.names.tolist())}
            for name in written.column_names:
                kind, values = written[name].type, written[name].to_pylist()
                known = self.kinds.get(name, "text")
                own = "number" if is_number(kind) else "date" if is_date(kind) else "category"
                self.kinds[name] = own if own != "category" or known in ("text", "lost", "number") else known
                self._columns[name] = [_plain(value, self.kinds[name]) for value in values]

    def fields(self) -> list[dict[str, Any]]:
        """Return the columns that a new node's row may have: name, kind, levels and a typical value."""
        if self._encoder is None:
            return []
        typical = self._decoded(np.zeros((1, self._encoder.num_features), np.float32), self.kinds)
        return [
            {
                "name": name,
                "kind": "text" if kind == "hashed" else _kind(kind),
                "levels": [
                    feature.removeprefix(f"{name} = ")
                    for feature in self._encoder.feature_names_
                    if kind == "category" and feature.startswith(f"{name} = ")
                ],
                "typical": typical[name][0] if name in typical and kind in ("number", "date") else None,
            }
            for name, kind in self._encoder.kinds_.items()
            if kind not in ("text", "skip")
        ]

    def column(self, snapshot: Snapshot, name: str) -> Values:
        """Return a column's values of all nodes, in the order of ``overlay.standing``."""
        overlay = snapshot.overlay
        found = self._held(snapshot, overlay.standing, [name]).get(name, [None] * len(overlay.standing))
        written = self._columns.get(name)
        if written is None:
            return found
        rows = [self._rows.get(node) for node in snapshot.names()]
        return [value if row is None else written[row] for value, row in zip(found, rows, strict=True)]

    def row(self, snapshot: Snapshot, name: Name, position: int) -> dict[str, float | str | None]:
        """Return a node's values by column; columns that nothing here holds are left out."""
        found = {
            column: values[0]
            for column, values in self._held(snapshot, np.array([position]), self.kinds).items()
        }
        if name in self._rows:
            found |= {column: values[self._rows[name]] for column, values in self._columns.items()}
        if len(self._numbers) > _ALL_SHOWN:
            return {column: value for column, value in found.items() if value}
        return {column: found[column] for column in self.kinds if column in found}

    def _held(self, snapshot: Snapshot, positions: NDArray[Any], names: Collection[str]) -> dict[str, Values]:
        """Return what the features of some nodes hold of some columns."""
        if not snapshot.overlay.has_features:
            return {}
        features = snapshot.overlay.feature_rows(positions)
        if self._encoder is not None:
            return self._decoded(features, names)
        wanted = [self._numbers[name] for name in names if name in self._numbers]
        some = features[:, wanted].toarray() if issparse(features) else features[:, wanted]
        return dict(zip(names, some.T.astype(np.float64).tolist(), strict=False))

    def _decoded(self, features: Any, names: Collection[str]) -> dict[str, Values]:
        if self._encoder is None:
            return {}
        found = self._encoder.inverse_transform(features, names)
        return {name: _listed(values, self._encoder.kinds_[name]) for name, values in found.items()}


def _kind(kind: str) -> str:
    """Return the kind of a column that was encoded, as readers are told."""
    if kind in _NUMBERS:
        return "number" if kind != "count" else "lost"
    return "lost" if kind in ("hashed", "text", "skip") else kind


def _listed(values: NDArray[Any], kind: str) -> Values:
    if values.dtype == object:
        return list(values.tolist())
    if kind == "boolean":
        return [None if value != value else "yes" if value else "no" for value in values.tolist()]
    if kind == "date":
        return [None if value != value else _date(value) for value in values.tolist()]
    return [None if value != value else value for value in values.tolist()]


def _date(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return when.date().isoformat() if seconds % _DAY == 0 else when.isoformat()


def _plain(value: Any, kind: str) -> float | str | None:
    """Return a value of the user's table as JSON holds it."""
    if value is None or value != value:
        return None
    if kind == "number":
        return float(value) if abs(value) < float("inf") else None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
