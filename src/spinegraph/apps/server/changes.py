"""Changes: what the log holds, as values and as text."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.graph.overlay import Overlay

Name = str | int


@dataclass(frozen=True)
class Change:
    """Nodes and edges that come together, or go together.

    Attributes
    ----------
    kind : {"add", "remove"}
    names : list
    edges : list of pairs of names
    weights : list of float or None
        Of added edges, where the graph is weighted.
    features : list of (columns, values), or None
        One sparse row per added node, where the graph has features.

    Examples
    --------
    >>> change = Change("add", ["cy"], [("cy", "ann")])
    >>> Change.from_text(change.to_text()) == change
    True
    """

    kind: str
    names: list[Name] = field(default_factory=list)
    edges: list[tuple[Name, Name]] = field(default_factory=list)
    weights: list[float] | None = None
    features: list[tuple[list[int], list[float]]] | None = None

    def apply(self, overlay: Overlay) -> Overlay:
        """Return the overlay with this change."""
        if self.kind == "remove":
            return overlay.remove(self.names, self.edges)
        return overlay.add(self.names, self.edges, self._matrix(overlay), self.weights)

    def _matrix(self, overlay: Overlay) -> csr_array | None:
        if self.features is None or overlay.base.features is None:
            return None
        lengths = [len(columns) for columns, _ in self.features]
        indices = np.array([column for columns, _ in self.features for column in columns], np.int32)
        data = np.array([value for _, values in self.features for value in values], np.float32)
        width = overlay.base.features.shape[1]
        indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        return csr_array((data, indices, indptr), shape=(len(self.names), width))

    def to_text(self) -> str:
        """Return the change as JSON; numbers come back exactly."""
        whole: dict[str, Any] = {"kind": self.kind, "names": self.names, "edges": self.edges}
        if self.weights is not None:
            whole["weights"] = self.weights
        if self.features is not None:
            whole["features"] = self.features
        return json.dumps(whole, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Change":
        """Read what ``to_text`` wrote."""
        whole = json.loads(text)
        features = whole.get("features")
        return cls(
            whole["kind"],
            whole["names"],
            [(source, target) for source, target in whole["edges"]],
            whole.get("weights"),
            None if features is None else [(columns, values) for columns, values in features],
        )


def feature_rows(rows: list[NDArray[np.float32]]) -> list[tuple[list[int], list[float]]]:
    """Return dense rows (f,) as columns and values that are not zero.

    Examples
    --------
    >>> feature_rows([np.array([0, 2.5], np.float32)])
    [([1], [2.5])]
    """
    found = []
    for row in rows:
        columns = np.flatnonzero(row)
        found.append((columns.tolist(), row[columns].tolist()))
    return found
