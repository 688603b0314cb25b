"""How figures look: one font, quiet axes, colours that stay apart for most eyes and in print."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, QUIET, LINE, PALE = "#1f2933", "#66727f", "#d5dbe1", "#eef1f4"
ACCENT, WARM = "#2f5d8a", "#d1603d"
# For categories; neighbours in the list differ in lightness as well as in hue.
COLORS = (
    "#2f6fa7",
    "#e08e2c",
    "#3f9b6a",
    "#b8475b",
    "#7d63b3",
    "#5bb5c5",
    "#8c6d4f",
    "#d987b5",
    "#93a53a",
    "#4a4e69",
    "#f2c14e",
    "#8fa6b8",
)
OTHER = "#b9c2cb"
SCALE = ((0.0, "#f0e6b0"), (0.25, "#8fc9a4"), (0.5, "#3c97a0"), (0.75, "#2f5d8a"), (1.0, "#2a2158"))


def safe_text(value: object, most: int = 60) -> str:
    """Return text that Plotly shows as it is: it would read tags in it; long text is cut.

    Examples
    --------
    >>> safe_text("<b>ann</b> & co")
    '&lt;b&gt;ann&lt;/b&gt; &amp; co'
    """
    text = "".join(sign if sign.isprintable() else " " for sign in str(value))
    text = text if len(text) <= most else text[: most - 1] + "…"
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, written)
    return text


def new_figure(traces: list[Any], **layout: Any) -> Any:
    """Return a Plotly figure in the package's style.

    Examples
    --------
    >>> new_figure([], height=200).layout.height
    200
    """
    import plotly.graph_objects as go

    figure = go.Figure(traces)
    figure.update_layout(
        template="none",
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        margin={"l": 56, "r": 16, "t": 36 if "title" in layout else 12, "b": 48},
        hoverlabel={"font": {"family": FONT, "size": 12}, "bgcolor": "#ffffff", "bordercolor": LINE},
        legend={"font": {"size": 12}, "itemsizing": "constant"},
        colorway=list(COLORS),
    )
    figure.update_xaxes(**quiet_axis())
    figure.update_yaxes(**quiet_axis())
    figure.update_layout(**layout)
    return figure


def quiet_axis() -> dict[str, Any]:
    """Return the settings of an axis that does not shout."""
    return {
        "gridcolor": PALE,
        "linecolor": LINE,
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": LINE,
        "tickfont": {"size": 11, "color": QUIET},
        "title_font": {"size": 12, "color": QUIET},
        "title_standoff": 8,
    }


def bare_axis() -> dict[str, Any]:
    """Return the settings of an axis of a map: none of it is seen."""
    return {"visible": False, "showgrid": False, "zeroline": False}


def is_numeric(values: NDArray[Any]) -> bool:
    """Say whether values are measured, rather than names of groups: whole numbers of few kinds are names.

    Examples
    --------
    >>> is_numeric(np.array([0.5, 1.5])), is_numeric(np.array([0, 1, 1])), is_numeric(np.array(["a"]))
    (True, False, False)
    """
    if values.dtype.kind == "f":
        return True
    return values.dtype.kind in "iu" and len(np.unique(values)) > len(COLORS)
