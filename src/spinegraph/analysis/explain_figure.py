"""An explanation as a figure: shares of the similarity, columns, and profiles with the path between them."""

from typing import Any

import numpy as np

from spinegraph.analysis.explain import Explanation
from spinegraph.analysis.explain_parts import CONTENT, PLACE, STRUCTURE
from spinegraph.analysis.explain_words import column_title
from spinegraph.analysis.plot_style import (
    ACCENT,
    COLORS,
    LINE,
    OTHER,
    WARM,
    new_figure,
    quiet_axis,
    safe_text,
)

_COLUMNS = 8
_COLORS = {CONTENT: COLORS[0], PLACE: COLORS[2], STRUCTURE: COLORS[4]}
_SIGNS = (("makes them alike", ACCENT), ("sets them apart", WARM))
_LEAST = 1e-3  # of DTW: below it values count as nothing; a logarithmic axis needs an end


def explanation_figure(found: Explanation) -> Any:
    """Return a Plotly figure of an explanation.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.analysis.explain import explain
    >>> club = made.karate()
    >>> figure = explanation_figure(explain(club, SPINE(dim=8, steps=5).fit(club).generator_, 0, 33))
    >>> len(figure.data) > 4
    True
    """
    alike, apart = (f"<span style='color:{color}'>{text}</span>" for text, color in _SIGNS)
    figure = new_figure(
        [*_parts(found), *_columns(found), *_profiles(found)],
        height=900,
        barmode="relative",
        margin={"l": 150, "r": 20, "t": 40, "b": 48},
        legend={"orientation": "h", "x": 0, "y": 0.375, "yanchor": "bottom"},
        annotations=[
            _heading("Where the similarity comes from; what is missing to 1 is pale", 1.0),
            _heading(f"What {alike}, and what {apart}", 0.79),
            _heading("Profiles, matched step by step", 0.42),
        ],
    )
    ticks = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
    figure.update_layout(
        yaxis={"domain": [0.86, 0.985], "autorange": "reversed"},
        xaxis={"anchor": "y", "tickformat": ".2f"},
        yaxis2={**quiet_axis(), "domain": [0.5, 0.775], "autorange": "reversed", "anchor": "x2"},
        xaxis2={**quiet_axis(), "anchor": "y2", "tickformat": ".2f"},
        yaxis3={**quiet_axis(), "domain": [0.0, 0.37], "type": "log", "anchor": "x3", "tickvals": ticks},
        xaxis3={**quiet_axis(), "anchor": "y3"},
    )
    figure.update_layout(yaxis3_tickformat=".1%", yaxis3_title_text="share of the walk's time")
    figure.update_layout(xaxis3_title_text="places, most visited first")
    return figure


def _heading(text: str, height: float) -> dict[str, Any]:
    return {
        "text": f"<b>{text}</b>",
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": height,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 14},
    }


def _parts(found: Explanation) -> list[Any]:
    import plotly.graph_objects as go

    names = [part.name for part in found.parts]
    colors = [_COLORS.get(name, OTHER) for name in names]
    shared = {"y": names, "orientation": "h", "showlegend": False, "xaxis": "x", "yaxis": "y"}
    return [
        go.Bar(
            x=[part.alike for part in found.parts],
            marker={"color": colors},
            text=[f"{part.alike:.3f}" for part in found.parts],
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.3f} of the similarity<extra></extra>",
            **shared,
        ),
        go.Bar(
            x=[max(part.apart, 0) for part in found.parts],
            marker={"color": colors, "opacity": 0.25},
            hovertemplate="%{y}: %{x:.3f} is missing to 1<extra></extra>",
            **shared,
        ),
    ]


def _columns(found: Explanation) -> list[Any]:
    import plotly.graph_objects as go

    alike, apart = found.columns.shared(_COLUMNS), found.columns.apart(_COLUMNS)
    titles = list(dict.fromkeys(safe_text(column_title(column.name)) for column in [*alike, *apart]))
    bars = []
    for (name, color), columns, sign in zip(_SIGNS, (alike, apart), (1, -1), strict=True):
        values = {safe_text(column_title(c.name)): sign * (c.alike if sign > 0 else c.apart) for c in columns}
        bars.append(
            go.Bar(
                x=[values.get(title, 0) for title in titles],
                y=titles,
                orientation="h",
                name=name,
                showlegend=False,
                marker={"color": color},
                xaxis="x2",
                yaxis="y2",
                hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            )
        )
    return bars


def _profiles(found: Explanation) -> list[Any]:
    import plotly.graph_objects as go

    path = found.warping.path
    used = path.max(axis=0) + 1  # places beyond are zero for both
    heights = np.maximum(found.profiles, _LEAST)
    # One trace for all links: pairs of ends, parted by gaps.
    gaps = np.full(len(path), np.nan)
    link_x = np.column_stack([path[:, 0] + 1, path[:, 1] + 1, gaps]).ravel()
    link_y = np.column_stack([heights[0, path[:, 0]], heights[1, path[:, 1]], gaps]).ravel()
    axes = {"xaxis": "x3", "yaxis": "y3"}
    links = go.Scatter(
        x=link_x,
        y=link_y,
        mode="lines",
        line={"color": LINE, "width": 1.5},
        name="matched",
        hoverinfo="skip",
        **axes,
    )
    lines = [
        go.Scatter(
            x=np.arange(1, count + 1),
            y=heights[place, :count],
            mode="lines+markers",
            name=safe_text(name),
            line={"color": color, "width": 2},
            marker={"size": 7},
            hovertemplate="place %{x}: %{y:.4f}<extra></extra>",
            **axes,
        )
        for place, (name, count, color) in enumerate(
            ((found.a.name, used[0], ACCENT), (found.b.name, used[1], WARM))
        )
    ]
    return [links, *lines]
