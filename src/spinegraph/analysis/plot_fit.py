"""How a fit went: the loss, and what became of structural distances."""

from typing import Any

import numpy as np

from spinegraph.analysis.compared_pairs import ComparedPairs, compare_pairs
from spinegraph.analysis.plot_style import ACCENT, QUIET, WARM, new_figure
from spinegraph.analysis.plot_subject import embeddings_of, graph_of, history_of, profile_rows


def loss(subject: Any) -> Any:
    """Draw the loss during training, on training pairs and on pairs that training never sees.

    Parameters
    ----------
    subject : SPINE, or list of Moment

    Examples
    --------
    >>> from spinegraph.learning.history import Moment
    >>> [trace.name for trace in loss([Moment(25, 1.2, 1.3), Moment(50, 1.0, 1.2)]).data]
    ['training pairs', 'held-out pairs']
    """
    import plotly.graph_objects as go

    moments = history_of(subject)
    steps = [moment.step for moment in moments]
    traces = [
        go.Scatter(
            x=steps,
            y=values,
            name=name,
            mode="lines",
            line={"color": color, "width": width},
            hovertemplate="step %{x}: %{y:.3f}<extra>" + name + "</extra>",
        )
        for name, values, color, width in (
            ("training pairs", [moment.loss for moment in moments], "#a9bfd4", 1.5),
            ("held-out pairs", [moment.held_out_loss for moment in moments], ACCENT, 2.5),
        )
    ]
    figure = new_figure(traces, height=300, legend={"orientation": "h", "y": 1.12, "x": 0})
    figure.update_xaxes(title_text="steps")
    figure.update_yaxes(title_text="loss")
    return figure


def distances(subject: Any, pairs: ComparedPairs | None = None, *, seed: int = 0) -> Any:
    """Draw how far vectors are apart against how different the nodes' surroundings are, over sampled pairs.

    One line for nodes at most two steps apart, one for nodes farther away; bands hold the middle half.

    Parameters
    ----------
    subject : SPINE
        Not needed where ``pairs`` are given.
    pairs : ComparedPairs, optional

    Examples
    --------
    >>> from spinegraph.analysis.compared_pairs import ComparedPairs
    >>> some = np.linspace(0, 1, 100)
    >>> figure = distances(None, ComparedPairs(some, some, some > 0.5))
    >>> [trace.name for trace in figure.data if trace.showlegend is not False]
    ['farther apart', 'within two steps']
    """
    if pairs is None:
        pairs = compare_pairs(
            graph_of(subject), embeddings_of(subject), profile_rows(subject, None), seed=seed
        )
    traces = []
    for near, name, color in (
        (False, "farther apart", QUIET),
        (True, "within two steps", WARM),
    ):
        traces += _band(pairs.only(near), name, color)
    figure = new_figure(traces, height=320, legend={"orientation": "h", "y": 1.12, "x": 0})
    ticks = [0, 1, 3, 10, 30, 100, 300, 1000]
    figure.update_xaxes(
        title_text="structural distance (DTW of profiles)", tickvals=np.log1p(ticks), ticktext=ticks
    )
    figure.update_yaxes(title_text="distance of vectors (1 - cosine)", rangemode="tozero")
    return figure


def _band(pairs: ComparedPairs, name: str, color: str) -> list[Any]:
    import plotly.graph_objects as go

    middle, low, median, high = pairs.quartiles()
    shown = np.log1p(middle)  # a few pairs are very far apart, and many at 0
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    band = go.Scatter(
        x=np.concatenate([shown, shown[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},0.15)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )
    line = go.Scatter(
        x=shown,
        y=median,
        customdata=middle,
        name=name,
        mode="lines+markers",
        line={"color": color, "width": 2.5},
        marker={"size": 6},
        hovertemplate="structural %{customdata:.2f}, vectors %{y:.2f}<extra>" + name + "</extra>",
    )
    return [band, line]
