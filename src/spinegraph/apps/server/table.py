"""The nodes' own columns, as the user wrote them: read from the table, or decoded from the features."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

from spinegraph.apps.server.live import Name, Snapshot
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.graph.tables import is_date, is_number

Values = list[float | str | None]
_NUMBERS = ("number", "raw", "count")
_FIELDS = {"hashed": "text"}
_DAY = 86_400  # seconds
_ALL_SHOWN = 60  # columns; of a wider matrix only those that are not 0 are in a row


class NodeTable:
    """Values of the nodes' columns: numbers and text, None for gaps; dates are ISO 8601.

    ``written`` (n, c) is the table as the user has it, in the order of the graph's nodes. Nodes that it does
    not have, and all nodes without it, get what the features hold. ``kinds`` says of every column whether it
    is a "number", "date", "boolean", "category" or "text", and of a column that nothing here holds "lost".
    """

    def __init__(self, graph: Graph, encoder: FeatureEncoder | None, written: pa.Table | None = None) -> None:
        # What a model folder keeps of the encoder: kinds, means, scales and levels.
        meta = {} if encoder is None else encoder.state()[0]
        self._encoded = [_EncodedColumn.of(about) for about in meta.get("columns", ())]
        self._rows: dict[Name, int] = {}
        self._columns: dict[str, Values] = {}
        self._numbers = {}  # of feature columns without a table
        if encoder is not None and self._encoded:
            held = {column.name: column.shown_kind for column in self._encoded}
            self.kinds = {name: held.get(name, "lost") for name in encoder.kinds_}
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
        width = sum(column.width for column in self._encoded)
        typical = self._decoded(np.zeros((1, width), np.float32), self.kinds)
        return [
            {
                "name": column.name,
                "kind": "number" if column.kind in _NUMBERS else _FIELDS.get(column.kind, column.kind),
                "levels": column.levels,
                "typical": typical[column.name][0] if column.kind in ("number", "date") else None,
            }
            for column in self._encoded
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
        if self._encoded:
            return self._decoded(features, names)
        wanted = [self._numbers[name] for name in names if name in self._numbers]
        some = features[:, wanted].toarray() if issparse(features) else features[:, wanted]
        return dict(zip(names, some.T.astype(np.float64).tolist(), strict=False))

    def _decoded(self, features: Any, names: Collection[str]) -> dict[str, Values]:
        matrix, found, stop = csc_array(features), {}, 0
        for column in self._encoded:
            start, stop = stop, stop + column.width
            if column.name in names and column.shown_kind != "lost":
                found[column.name] = _listed(column.decode(matrix[:, start:stop].toarray()), column.kind)
        return found


@dataclass(frozen=True)
class _EncodedColumn:
    """A column of the table as the encoder keeps it."""

    name: str
    kind: str
    width: int  # features
    has_gaps: bool
    levels: list[str]
    mean: float
    scale: float

    @classmethod
    def of(cls, about: dict[str, Any]) -> "_EncodedColumn":
        levels, words = about.get("levels", []), about.get("words", [])
        width = about.get("width") or (1 if "mean" in about else len(levels) + len(words))
        has_gaps = about["has_gaps"]
        mean, scale = about.get("mean", 0.0), about.get("scale", 1.0)
        return cls(about["name"], about["kind"], width + has_gaps, has_gaps, levels, mean, scale)

    @property
    def shown_kind(self) -> str:
        """The kind of its values; "lost" where features do not tell them: counts are scaled by row."""
        if self.kind in ("number", "raw"):
            return "number"
        return self.kind if self.kind in ("boolean", "category", "date") else "lost"

    def decode(self, block: NDArray[np.float32]) -> NDArray[Any]:
        """Return the values (n,) that were encoded as a block (n, width): NaN or None for gaps."""
        if self.kind == "category":
            known = block[:, : len(self.levels)]
            codes = np.where(known.any(axis=1), known.argmax(axis=1), -1)
            return np.array([*self.levels, None], dtype=object)[codes]
        values = block[:, 0].astype(np.float64)
        if self.kind in ("number", "date"):
            # To the digits that float32 keeps: what was written as 52000 comes back as that.
            step = self.scale * max(np.abs(values).max(initial=0), 1e-3) * 2.0**-23
            values = np.round(values * self.scale + self.mean, math.floor(-math.log10(step)))
        return np.where(block[:, -1] > 0, np.nan, values) if self.has_gaps else values


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
