"""The map: every node where its vector lies."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinegraph.analysis.coloring import Coloring, coloring
from spinegraph.analysis.layout import Method, layout
from spinegraph.analysis.plot_style import SCALE, bare_axis, new_figure, safe_text
from spinegraph.analysis.plot_subject import column_of, embeddings_of, graph_of
from spinegraph.errors import ParameterError


def map(
    subject: Any,
    color: Any = None,
    *,
    places: ArrayLike | None = None,
    method: Method = "auto",
    seed: int = 0,
) -> Any:
    """Draw every node where its vector lies; near vectors are near on paper.

    Parameters
    ----------
    subject : SPINE or Embeddings
        A fitted model, or vectors alone.
    color : array (n,) or str, optional
        One value per node: numbers are a scale, text is groups. Or, for a model, the name of a column: a
        feature, or a structural column such as ``"log_degree"``, which is what a model gets by default.
    places : array (n, 2), optional
        Coordinates that are at hand; otherwise ``method`` and ``seed`` make them, as in ``layout``.

    Examples
    --------
    >>> import spinegraph as sg
    >>> vectors = sg.Embeddings(np.array(["ann", "bob", "cy"], dtype=object), np.eye(3, dtype=np.float32))
    >>> len(sg.plot.map(vectors, color=["east", "west", "west"]).data)
    2
    """
    embeddings = embeddings_of(subject)
    where = layout(embeddings.vectors, method=method, seed=seed) if places is None else np.asarray(places)
    if color is None and graph_of(subject, needed=False) is not None:
        color = "log_degree"
    if color is None:
        shown = coloring("nodes", np.zeros(len(embeddings), np.int64), groups=("nodes",))
    elif isinstance(color, str):
        shown = coloring(color, column_of(graph_of(subject), color))
    else:
        shown = coloring("", color)
    colored: Any = shown.codes if shown.values is None else shown.values
    if where.shape != (len(embeddings), 2) or np.shape(colored) != (len(embeddings),):
        raise ParameterError(
            f"places must be ({len(embeddings)}, 2) and color one value for each of {len(embeddings)} nodes; "
            f"got {where.shape} and {np.size(colored)} values"
        )
    names = [safe_text(name) for name in embeddings]
    traces = _map_traces(where, names, shown)
    figure = new_figure(traces, height=560, margin={"l": 8, "r": 8, "t": 8, "b": 8})
    figure.update_xaxes(**bare_axis())
    figure.update_yaxes(**bare_axis(), scaleanchor="x")
    return figure


def _map_traces(where: Any, names: list[str], shown: Coloring) -> list[Any]:
    import plotly.graph_objects as go

    size = 7 if len(where) < 1_500 else 5 if len(where) < 10_000 else 3
    kind = go.Scatter if len(where) <= 5_000 else go.Scattergl
    if shown.values is not None:
        marker = {
            "size": size,
            "color": shown.values,
            "colorscale": SCALE,
            "showscale": True,
            "colorbar": {"title": {"text": safe_text(shown.title)}, "thickness": 10, "outlinewidth": 0},
        }
        hover = "%{text}<br>%{marker.color:.3g}<extra></extra>"
        return [
            kind(x=where[:, 0], y=where[:, 1], text=names, mode="markers", marker=marker, hovertemplate=hover)
        ]
    assert shown.codes is not None
    traces = []
    for place, (group, color) in enumerate(zip(shown.groups, shown.colors, strict=True)):
        mine = np.flatnonzero(shown.codes == place)
        traces.append(
            kind(
                x=where[mine, 0],
                y=where[mine, 1],
                text=[names[node] for node in mine],
                name=safe_text(group),
                mode="markers",
                marker={"size": size, "color": color, "opacity": 0.85},
                hovertemplate="%{text}<br>" + safe_text(group) + "<extra></extra>",
            )
        )
    return traces
