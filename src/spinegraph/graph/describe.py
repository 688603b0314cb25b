"""Descriptions of a graph: in numbers, for notebooks, against the training graph, and as a fingerprint."""

import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError, UnfamiliarDataWarning
from spinegraph.graph.convert import optional_package
from spinegraph.graph.edges import pieces
from spinegraph.graph.graph import Graph, GraphLike


@dataclass(frozen=True)
class DegreeBin:
    """How many nodes have a degree from ``low`` to ``high``."""

    low: int
    high: int
    nodes: int


@dataclass(frozen=True)
class FeatureSummary:
    """Number and kind of the feature columns, share of non-zero values, and number of all-zero rows."""

    columns: int
    kind: str
    density: float
    empty_rows: int


@dataclass(frozen=True)
class LabelSummary:
    """Nodes per label, most frequent first, and how many nodes have none."""

    counts: tuple[tuple[str, int], ...]
    unlabelled: int
    several_per_node: bool


@dataclass(frozen=True)
class Description:
    """A graph in numbers."""

    nodes: int
    edges: int
    weights: tuple[float, float] | None  # smallest and largest; None for an unweighted graph
    components: int
    largest_component: int
    isolated: int
    degree_median: float
    degree_mean: float
    degree_largest: int
    best_connected: str  # the name of a node of the largest degree
    degrees: tuple[DegreeBin, ...]  # degrees 0, 1, 2-3, 4-7 and so on
    features: FeatureSummary | None
    labels: LabelSummary | None


def describe(graph: Graph, labels: NDArray[Any] | None = None) -> Description:
    """Describe a graph in numbers.

    ``labels`` has one label per node (n,), with -1, None, NaN or "" for none, or one 0/1 column per label.

    >>> found = describe(Graph.from_edges([("ann", "bob"), ("bob", "cy")]))
    >>> found.components, found.degree_largest, found.best_connected
    (1, 2, 'bob')
    """
    degrees, weights = graph.degrees, graph.weights
    linked = np.ones(len(graph.indices), np.int8)
    matrix = csr_array((linked, graph.indices, graph.indptr), shape=(len(graph), len(graph)))
    from scipy.sparse.csgraph import connected_components  # slow to import, and loading needs this module

    components, member_of = connected_components(matrix, directed=False)
    return Description(
        nodes=len(graph),
        edges=graph.num_edges,
        weights=None if weights is None or not len(weights) else (float(weights.min()), float(weights.max())),
        components=int(components),
        largest_component=int(np.bincount(member_of).max()),
        isolated=int(np.count_nonzero(degrees == 0)),
        degree_median=float(np.median(degrees)),
        degree_mean=float(degrees.mean()),
        degree_largest=int(degrees.max()),
        best_connected=str(graph.names[int(degrees.argmax())]),
        degrees=_degree_bins(degrees),
        features=None if graph.features is None else _feature_summary(graph.features),
        labels=None if labels is None else _label_summary(np.asarray(labels), len(graph)),
    )


def _degree_bins(degrees: NDArray[np.int64]) -> tuple[DegreeBin, ...]:
    """Count nodes by degree in bins that double in width: 0, 1, 2-3, 4-7, ..."""
    # The exponent of frexp is the number of binary digits: 0 for 0, 1 for 1, 2 for 2 and 3, ...
    counts = np.bincount(np.frexp(degrees.astype(np.float64))[1])
    return tuple(
        DegreeBin(2 ** (digits - 1) if digits else 0, 2**digits - 1, int(counts[digits]))
        for digits in range(int(np.flatnonzero(counts)[0]), len(counts))
    )


def _feature_summary(features: Any) -> FeatureSummary:
    (filled, _), (rows, columns) = _filled(features), features.shape
    density = float(filled.sum()) / max(rows * columns, 1)
    kind = "sparse" if issparse(features) else "dense"
    return FeatureSummary(columns, kind, density, empty_rows=int(np.count_nonzero(filled == 0)))


def _label_summary(labels: NDArray[Any], n: int) -> LabelSummary:
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise GraphFormatError(f"labels must have shape ({n},) or ({n}, c); got {labels.shape}")
    if labels.ndim == 2:
        per_label = np.count_nonzero(labels, axis=0)
        order = np.argsort(-per_label, kind="stable")
        counts = tuple((str(label), int(per_label[label])) for label in order)
        return LabelSummary(counts, int(np.count_nonzero(~labels.astype(bool).any(axis=1))), True)
    known = [value for value in labels.tolist() if value not in (None, "", -1) and value == value]
    return LabelSummary(tuple(Counter(map(str, known)).most_common()), n - len(known), False)


def graph_html(graph: Graph) -> str:
    """Return the HTML summary of a graph for notebooks."""
    degrees, weights, features = graph.degrees, graph.weights, graph.features
    weigh, columns = "1 each", "none"
    if weights is not None and len(weights):
        weigh = f"{weights.min():g} to {weights.max():g}"
    if features is not None:
        names = ", ".join((graph.feature_names or ())[:5])
        kind = f"sparse, {features.nnz:,} values" if issparse(features) else "dense"
        more = ", ..." if names and graph.num_features > 5 else ""
        columns = f"{graph.num_features:,}, {kind}{': ' if names else ''}{names}{more}"
    rows: list[tuple[object, ...]] = [
        ("neighbours", f"median {np.median(degrees):g}, at most {degrees.max():,}"),
        ("isolated nodes", f"{np.count_nonzero(degrees == 0):,}"),
        ("edge weights", weigh),
        ("features", columns),
        ("names", ", ".join(map(str, graph.names[:5].tolist())) + ", ..." * (len(graph) > 5)),
    ]
    if graph.report is not None:
        rows.append(("cleaning", graph.report))
    return html_table(f"Graph: {len(graph):,} nodes, {graph.num_edges:,} edges", rows)


def html_table(title: str, rows: Iterable[tuple[object, ...]], head: tuple[object, ...] = ()) -> str:
    """Return a titled HTML table, the first column in grey, with an optional head; all text is escaped."""
    lines = [_html_row(head, "th")] * bool(head) + [_html_row(row, "td") for row in rows]
    return f"<div><b>{_html_text(title)}</b><table>{''.join(lines)}</table></div>"


def _html_row(values: tuple[object, ...], tag: str) -> str:
    style = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"
    cells = [
        f'<{tag} style="{style}{"" if column else ";opacity:.65"}">{_html_text(value)}</{tag}>'
        for column, value in enumerate(values)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _html_text(value: object) -> str:
    text = str(value)
    return escape(text if len(text) <= 120 else text[:119] + "…")


_WIDTH = 100  # characters per line in a terminal


class TableResult(ABC):
    """Base class of results that print as a table, in terminals and notebooks."""

    @abstractmethod
    def table(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]], str]:
        """Return a heading, the titles of columns, rows of text, and a note."""

    def __repr__(self) -> str:
        heading, titles, rows, note = self.table()
        table = [titles, *rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(titles))]
        is_text = [any(any(map(str.isalpha, row[column])) for row in rows) for column in range(len(titles))]
        forms = [f"{{:{'<' if text else '>'}{width}}}" for text, width in zip(is_text, widths, strict=True)]
        lines = ["  ".join(forms).format(*row).rstrip() for row in table]
        cut = [line if len(line) <= _WIDTH - 2 else f"{line[: _WIDTH - 3]}…" for line in lines if rows]
        notes = [fill(line, _WIDTH, subsequent_indent="  ") for line in note.splitlines()]
        return "\n".join([heading, *(f"  {line}" for line in cut), *notes])

    def _repr_html_(self) -> str:
        heading, titles, rows, note = self.table()
        table = html_table(heading, rows, titles if rows else ())
        lines = "<br>".join(map(escape, note.splitlines()))
        return f"{table}<small>{lines}</small>" if note else table


def data_frame(columns: Mapping[str, Any], index: Any = None) -> Any:
    """Return columns as a pandas DataFrame, or raise an error that says how to install pandas."""
    pd = optional_package("pandas")
    if index is not None and len(index) and isinstance(index[0], tuple):
        index = pd.Index(list(index), tupleize_cols=False)
    return pd.DataFrame(dict(columns), index=index)


_UNUSUAL_SHARE = 0.2  # of nodes, above which there is a warning
_PIECE = 2**18  # nodes read at a time
_WAYS_OUT = {
    "edges had weights in training, but these have none": "if any exist, name their column with weight=...",
    "edges had no weights in training, but these do": "pass weighted=False to ignore them",
}


@dataclass(frozen=True)
class TrainingStats:
    """Statistics of the training graph, to warn of data that differs from it."""

    num_nodes: int
    smallest_degree: int
    largest_degree: int
    empty_share: float  # of nodes whose features are all zero
    blank_columns: tuple[int, ...]  # features that were zero for every node: nothing was learned about them
    is_weighted: bool | None = None  # whether weights differed; None for models saved without this field

    def __len__(self) -> int:
        return self.num_nodes

    @classmethod
    def of(cls, graph: GraphLike) -> "TrainingStats":
        """Return the statistics of a training graph."""
        extremes = [(int(some.min()), int(some.max())) for some in _degrees(graph, None)]
        empty, blank = 0.0, tuple[int, ...]()
        if graph.has_features:
            rows, columns = _filled(graph.features)
            empty = float(np.mean(rows == 0))
            blank = tuple(np.flatnonzero(columns == 0).tolist())
        smallest, largest = min(low for low, _ in extremes), max(high for _, high in extremes)
        return cls(len(graph), smallest, largest, empty, blank, _has_weights(graph))

    def warn(self, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> None:
        """Warn once, with numbers and advice, if a graph differs from the training graph."""
        found = "; ".join(self.differences(graph, positions))
        if found:
            way_out = _WAYS_OUT.get(found, "refit with such data included")
            message = f"{found}. Vectors may be unreliable: {way_out}."
            warnings.warn(message, UnfamiliarDataWarning, stacklevel=3)

    def differences(self, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> list[str]:
        """Return clauses on how the nodes differ from those of the training graph."""
        count = len(graph) if positions is None else len(positions)
        if not count:
            return []
        found, outside, largest = [], 0, 0
        for some in _degrees(graph, positions):
            outside += int(((some < self.smallest_degree) | (some > self.largest_degree)).sum())
            largest = max(largest, int(some.max()))
        if outside > _UNUSUAL_SHARE * count or largest > 2 * max(self.largest_degree, 1):
            seen = f"{self.smallest_degree} to {self.largest_degree} seen in training"
            found.append(f"{outside} of {count} nodes have a degree outside the {seen}, up to {largest}")
        if self.is_weighted is not None and _has_weights(graph) != self.is_weighted:
            found.append([*_WAYS_OUT][not self.is_weighted])
        if not graph.has_features:
            return found
        filled, columns = _filled(graph.features if positions is None else graph.feature_rows(positions))
        # Or three deviations above chance: a single empty node means little if half of them were empty.
        chance = 3 * np.sqrt(self.empty_share * (1 - self.empty_share) / len(filled))
        if np.mean(filled == 0) > self.empty_share + max(_UNUSUAL_SHARE, chance):
            empty = f"{int((filled == 0).sum())} of {len(filled)} nodes have empty features"
            found.append(f"{empty}, compared with {self.empty_share:.0%} in training")
        if self.blank_columns and filled.sum():
            unknown = columns[list(self.blank_columns)].sum() / filled.sum()
            if unknown > _UNUSUAL_SHARE:
                found.append(f"{unknown:.0%} of feature values are in columns that were empty in training")
        return found


def _degrees(graph: GraphLike, positions: NDArray[np.int64] | None) -> Iterator[NDArray[np.int64]]:
    """Yield the degrees of some nodes, or of all, in pieces, since a graph may be larger than memory."""
    count = len(graph) if positions is None else len(positions)
    for start in range(0, count, _PIECE):
        some = np.arange(start, min(start + _PIECE, count))
        yield graph.degrees_at(some if positions is None else positions[some])


def _has_weights(graph: GraphLike) -> bool:
    """Return whether edges have different weights; equal weights count as none."""
    base: Any = getattr(graph, "base", graph)
    weights = base.weights
    return weights is not None and any(bool((some != weights[0]).any()) for some in pieces(weights))


def _filled(features: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the non-zero values in each row and in each column."""
    rows, width = features.shape
    if issparse(features) and all(some.all() for some in pieces(features.data)):
        counts = (np.bincount(some, minlength=width) for some in pieces(features.indices))
        return np.diff(features.indptr), sum(counts, np.zeros(width, np.int64))
    per_row, per_column = np.zeros(rows, dtype=np.int32), np.zeros(width, dtype=np.int64)
    for start in range(0, rows, _PIECE):
        is_filled = features[start : start + _PIECE] != 0
        per_row[start : start + _PIECE] = is_filled.sum(axis=1)
        per_column += is_filled.sum(axis=0)
    return per_row, per_column


_ANY_TEXT = ("utf-8", "surrogatepass")


def fingerprint(graph: Graph) -> str:
    """Return 32 hexadecimal digits that depend on links, weights, names, features and their column names.

    For a store it is read from the header.
    """
    return computed_fingerprint(graph) if graph.known_fingerprint is None else graph.known_fingerprint


def computed_fingerprint(graph: Graph) -> str:
    """Return the fingerprint, computed from all the data."""
    digest = blake2b(digest_size=16)
    features: Any = graph.features
    parts = [graph.indptr, graph.indices, graph.weights]
    parts += [] if graph.outward is None else [graph.outward]
    parts += [features.indptr, features.indices, features.data] if issparse(features) else [features]
    for part in parts:
        empty = np.zeros(0) if part is None else part
        digest.update(f"{None if part is None else part.shape}|".encode())
        for piece in pieces(empty):
            # Index arrays may have 32 or 64 bits and mean the same.
            whole = piece.astype(np.int64, copy=False) if piece.dtype.kind == "i" else piece
            digest.update(np.ascontiguousarray(whole).data)
    digest.update(f"{None if features is None else features.shape}|{graph.feature_names}|".encode(*_ANY_TEXT))
    for number, piece in enumerate(pieces(graph.names)):
        if graph.names.dtype == object:
            text = "\0".join(map(_text, piece.tolist()))
            digest.update(("\0" * (number > 0) + text).encode(*_ANY_TEXT))
        else:
            digest.update(np.ascontiguousarray(piece).data)
    return digest.hexdigest()


def _text(name: Any) -> str:
    """Return a name as text, the same for text and integers of NumPy as for those of Python."""
    if isinstance(name, str):
        return repr(str(name))
    if isinstance(name, tuple):
        return f"({', '.join(map(_text, name))})"
    return repr(name.item() if isinstance(name, np.generic) else name)
