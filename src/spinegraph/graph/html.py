"""Values as small tables of HTML, for notebooks; everything that users named is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from spinegraph.graph.graph import Graph

_LONGEST = 120
_CELL = "text-align:left;padding:2px 14px 2px 0;vertical-align:top"


def html_table(title: str, rows: Iterable[tuple[object, ...]], head: tuple[object, ...] = ()) -> str:
    """Return a titled table: of rows whose first cell is quiet, under an optional head.

    Examples
    --------
    >>> html_table("Graph", [("nodes", "<3>")])
    '<div><b>Graph</b><table>...<td ...>&lt;3&gt;</td></tr></table></div>'
    """
    lines = "".join(_row(row, "td") for row in rows)
    titles = _row(head, "th") if head else ""
    return f"<div><b>{cell(title)}</b><table>{titles}{lines}</table></div>"


def cell(value: object) -> str:
    """Return one value as escaped text, cut where it is very long.

    Examples
    --------
    >>> cell("<b>")
    '&lt;b&gt;'
    """
    text = str(value)
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def _row(values: tuple[object, ...], tag: str) -> str:
    styles = [f"{_CELL};opacity:.65", *[_CELL] * (len(values) - 1)]
    cells = [
        f'<{tag} style="{style}">{cell(value)}</{tag}>' for style, value in zip(styles, values, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"


def graph_html(graph: "Graph") -> str:
    """Return what a graph holds.

    Examples
    --------
    >>> from spinegraph.graph.graph import Graph
    >>> "2 nodes" in graph_html(Graph.from_edges([("ann", "bob")]))
    True
    """
    degrees = graph.degrees
    isolated = int(np.count_nonzero(degrees == 0))
    rows: list[tuple[object, ...]] = [
        ("neighbours", f"in the middle {np.median(degrees):g}, at most {degrees.max():,}"),
        ("isolated nodes", f"{isolated:,}"),
        ("edges weigh", _weights(graph)),
        ("features", _features(graph)),
        ("names", ", ".join(map(str, graph.names[:5].tolist())) + ", ..." * (len(graph) > 5)),
    ]
    if graph.report is not None:
        rows.append(("cleaning", graph.report))
    return html_table(f"Graph: {len(graph):,} nodes, {graph.num_edges:,} edges", rows)


def _weights(graph: "Graph") -> str:
    if graph.weights is None or not len(graph.weights):
        return "1 each"
    return f"{graph.weights.min():g} to {graph.weights.max():g}"


def _features(graph: "Graph") -> str:
    features: Any = graph.features
    if features is None:
        return "none"
    columns = ", ".join((graph.feature_names or ())[:5])
    more = ", ..." if columns and features.shape[1] > 5 else ""
    kind = "dense" if isinstance(features, np.ndarray) else f"sparse, {features.nnz:,} values"
    return f"{features.shape[1]:,}, {kind}{': ' if columns else ''}{columns}{more}"
