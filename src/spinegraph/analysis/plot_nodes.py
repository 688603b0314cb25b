"""A few nodes: the small networks around them, and their profiles."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from spinegraph.analysis.ego import Ego, ego_network
from spinegraph.analysis.plot_style import ACCENT, COLORS, INK, LINE, WARM, bare_axis, new_figure, safe_text
from spinegraph.analysis.plot_subject import graph_of, profile_rows
from spinegraph.structure.warping import warping

RING_COLORS = (WARM, ACCENT, "#a9bfd4")
_RING_SIZES = (17, 11, 7)


def twins(subject: Any, a: Any, b: Any, *, radius: int = 2, most: int = 40) -> Any:
    """Draw the small networks around two nodes side by side.

    Parameters
    ----------
    subject : SPINE or Graph
    a, b : names
    radius, most : int
        Steps from the node, and nodes shown, as in ``ego_network``.

    Examples
    --------
    >>> import spinegraph as sg
    >>> figure = sg.plot.twins(sg.made.barbell(5, bridge=1), 0, 8)
    >>> [note.text for note in figure.layout.annotations]
    ['0', '8']
    """
    graph = graph_of(subject)
    egos = [ego_network(graph, node, radius=radius, most=most) for node in (a, b)]
    boxes = [(ego.places.min(axis=0), ego.places.max(axis=0)) for ego in egos]
    reach = 0.56 * max(1.0, *(float((high - low).max()) for low, high in boxes))  # one scale for both
    traces = [trace for side, ego in enumerate(egos) for trace in _ego_traces(ego, graph, side)]
    figure = new_figure(traces, height=320, showlegend=False, margin={"l": 4, "r": 4, "t": 32, "b": 4})
    for side, node in enumerate((a, b)):
        axis, span = ("" if side == 0 else "2"), ([0.0, 0.48] if side == 0 else [0.52, 1.0])
        x, y = (boxes[side][0] + boxes[side][1]) / 2
        figure.update_layout(
            {
                f"xaxis{axis}": {**bare_axis(), "domain": span, "range": [x - reach, x + reach]},
                f"yaxis{axis}": {
                    **bare_axis(),
                    "anchor": f"x{axis}",
                    "scaleanchor": f"x{axis}",
                    "range": [y - reach, y + reach],
                },
            }
        )
        figure.add_annotation(
            text=safe_text(node),
            x=sum(span) / 2,
            y=1,
            xref="paper",
            yref="paper",
            xanchor="center",
            yanchor="bottom",
            showarrow=False,
            font={"size": 14, "color": INK},
        )
    return figure


def _ego_traces(ego: Ego, graph: Any, side: int) -> list[Any]:
    import plotly.graph_objects as go

    axes = {} if side == 0 else {"xaxis": "x2", "yaxis": "y2"}
    ends = np.full((len(ego.edges), 3, 2), np.nan)
    ends[:, :2] = ego.places[ego.edges]
    lines = ends.reshape(-1, 2)
    ring = np.minimum(ego.hops, len(RING_COLORS) - 1)
    order = np.argsort(-ring, kind="stable")  # the root is drawn last, on top
    degrees = graph.degrees[ego.nodes]
    texts = [
        f"{safe_text(graph.names[node])}<br>{degree} neighbours" + (f", {hop} steps away" if hop else "")
        for node, degree, hop in zip(ego.nodes.tolist(), degrees.tolist(), ego.hops.tolist(), strict=True)
    ]
    edges = go.Scatter(
        x=lines[:, 0],
        y=lines[:, 1],
        mode="lines",
        line={"color": "#c3ccd5", "width": 1},
        hoverinfo="skip",
        **axes,
    )
    nodes = go.Scatter(
        x=ego.places[order, 0],
        y=ego.places[order, 1],
        text=[texts[place] for place in order],
        mode="markers",
        marker={
            "size": [_RING_SIZES[ring[place]] for place in order],
            "color": [RING_COLORS[ring[place]] for place in order],
            "line": {"color": "#ffffff", "width": 1.2},
            "opacity": 1,
        },
        hovertemplate="%{text}<extra></extra>",
        **axes,
    )
    return [edges, nodes]


def profile(subject: Any, nodes: Iterable[Any]) -> Any:
    """Draw the profiles of some nodes: the values of rooted PageRank around each, largest first.

    Between two nodes thin lines show which values dynamic time warping matched.

    Parameters
    ----------
    subject : SPINE or Graph
        A model's own settings, or the defaults of ``rooted_pagerank``.
    nodes : iterable of names

    Examples
    --------
    >>> import spinegraph as sg
    >>> [trace.name for trace in sg.plot.profile(sg.made.karate(), [0, 33]).data][-2:]
    ['0', '33']
    """
    import plotly.graph_objects as go

    listed = list(nodes)
    rows = profile_rows(subject, listed)
    shown = np.where(rows > 0, rows, np.nan)
    traces = []
    if len(listed) == 2:
        traces.append(_matches(rows))
    traces += [
        go.Scatter(
            x=np.arange(1, rows.shape[1] + 1),
            y=row,
            name=safe_text(node),
            mode="lines+markers",
            line={"color": COLORS[place % len(COLORS)], "width": 2},
            marker={"size": 6},
            hovertemplate="place %{x}: %{y:.3f}<extra>" + safe_text(node) + "</extra>",
        )
        for place, (node, row) in enumerate(zip(listed, shown, strict=True))
    ]
    figure = new_figure(traces, height=320, legend={"orientation": "h", "y": 1.12, "x": 0})
    figure.update_xaxes(title_text="place, the nearest first")
    figure.update_yaxes(title_text="share of the walker's time", type="log", exponentformat="none")
    return figure


def _matches(rows: Any) -> Any:
    import plotly.graph_objects as go

    steps = warping(*rows).path
    ends = np.full((len(steps), 3, 2), np.nan)
    for side in (0, 1):
        ends[:, side, 0] = steps[:, side] + 1
        values = rows[side][steps[:, side]]
        ends[:, side, 1] = np.where(values > 0, values, np.nan)
    lines = ends.reshape(-1, 2)
    return go.Scatter(
        x=lines[:, 0],
        y=lines[:, 1],
        mode="lines",
        line={"color": LINE, "width": 1},
        name="matched",
        hoverinfo="skip",
        showlegend=False,
    )
