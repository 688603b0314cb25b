"""Figures, as ``sg.plot``: a map of vectors, and two neighbourhoods side by side."""

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.analysis.layout import Ego, Method, ego_network, layout
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.structure.columns import COLUMNS, structural_columns

__all__ = ["map", "twins"]

FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, LINE = "#1f2933", "#d5dbe1"
ACCENT, WARM = "#2f5d8a", "#d1603d"
# For roles and other categories: the colours of the explorer's page (apps/explorer/styles/colors.css).
COLORS = (
    *("#2b6cb8", "#d2622f", "#2f8a57", "#8455b8", "#a87a00", "#c23a79"),
    *("#1f8793", "#7d6550", "#5160cc", "#6f7d12", "#a8353a", "#4c6a7d"),
)
OTHER = "#b9c2cb"
SCALE = ((0.0, "#f0e6b0"), (0.25, "#8fc9a4"), (0.5, "#3c97a0"), (0.75, "#2f5d8a"), (1.0, "#2a2158"))
RING_COLORS = (WARM, ACCENT, "#a9bfd4")
_RING_SIZES = (17, 11, 7)
STYLE: dict[str, Any] = {
    "template": "none",
    "font": {"family": FONT, "size": 13, "color": INK},
    "paper_bgcolor": "#ffffff",
    "plot_bgcolor": "#ffffff",
    "hoverlabel": {"font": {"family": FONT, "size": 12}, "bgcolor": "#ffffff", "bordercolor": LINE},
    "legend": {"font": {"size": 12}, "itemsizing": "constant"},
}
_HIDDEN_AXIS = {"visible": False, "showgrid": False, "zeroline": False}


def __dir__() -> list[str]:
    return __all__


def map(
    subject: Any,
    color: Any = None,
    *,
    by: str = "all",
    places: ArrayLike | None = None,
    method: Method = "auto",
    seed: int = 0,
) -> Any:
    """Draw a map of all nodes on which similar vectors are close.

    Parameters
    ----------
    subject : SPINE or Embeddings
        A fitted model, or vectors alone.
    color : array (n,) or str, optional
        One value per node: numbers become a colour scale, text becomes groups. Or, for a model, ``"role"`` or
        the name of a column: a feature or a structural column such as ``"log_degree"``, the default.
    by : str
        ``"all"`` parts of the vectors, or the name of one.
    places : array (n, 2), optional
        Coordinates, if already computed; by default from ``layout`` with ``method`` and ``seed``.

    Examples
    --------
    >>> import spinegraph as sg
    >>> vectors = sg.Embeddings(np.array(["ann", "bob", "cy"], dtype=object), np.eye(3, dtype=np.float32))
    >>> len(sg.plot.map(vectors, color=["east", "west", "west"]).data)
    2
    """
    from plotly.graph_objects import Figure

    embeddings = embeddings_of(subject)
    drawn = embeddings if by == "all" else embeddings.part(by)
    where = layout(drawn.vectors, method=method, seed=seed) if places is None else np.asarray(places)
    if color is None and graph_of(subject, needed=False) is not None:
        color = "log_degree"
    if color is None:
        coloring = color_nodes("nodes", np.zeros(len(embeddings), np.int64), groups=("nodes",))
    elif isinstance(color, str) and color == "role" and hasattr(subject, "roles"):
        found = subject.roles()
        coloring = color_nodes(color, found.assigned.roles, groups=tuple(found.roles.titles))
    elif isinstance(color, str):
        coloring = color_nodes(color, column_of(graph_of(subject), color))
    else:
        coloring = color_nodes("", color)
    values: Any = coloring.codes if coloring.values is None else coloring.values
    if where.shape != (len(embeddings), 2) or np.shape(values) != (len(embeddings),):
        raise ParameterError(
            f"places must be ({len(embeddings)}, 2) and color one value for each of {len(embeddings)} nodes; "
            f"got {where.shape} and {np.size(values)} values"
        )
    traces = _map_traces(where, [safe_text(name) for name in embeddings], coloring)
    figure = Figure(traces).update_layout(STYLE, height=560, margin={"l": 8, "r": 8, "t": 34, "b": 8})
    figure.update_xaxes(**_HIDDEN_AXIS)
    figure.update_yaxes(**_HIDDEN_AXIS, scaleanchor="x")
    return figure


def _map_traces(where: NDArray[Any], names: list[str], coloring: "Coloring") -> list[Any]:
    shared = {"type": "scatter" if len(where) <= 5_000 else "scattergl", "mode": "markers"}
    size = 7 if len(where) < 1_500 else 5 if len(where) < 10_000 else 3
    if coloring.values is not None:
        bar = {"title": {"text": safe_text(coloring.title)}, "thickness": 10, "outlinewidth": 0}
        marker = {"color": coloring.values, "colorscale": SCALE, "showscale": True, "colorbar": bar}
        trace = {"x": where[:, 0], "y": where[:, 1], "text": names, "marker": {"size": size, **marker}}
        return [{**shared, **trace, "hovertemplate": "%{text}<br>%{marker.color:.3g}<extra></extra>"}]
    assert coloring.codes is not None
    traces = []
    for code, (group, color) in enumerate(zip(coloring.groups, coloring.colors, strict=True)):
        own = np.flatnonzero(coloring.codes == code)
        hover = "%{text}<br>" + safe_text(group) + "<extra></extra>"
        trace = {"x": where[own, 0], "y": where[own, 1], "text": [names[node] for node in own]}
        look = {"name": safe_text(group), "marker": {"size": size, "color": color, "opacity": 0.85}}
        traces.append({**shared, **trace, **look, "hovertemplate": hover})
    return traces


def twins(subject: Any, a: Any, b: Any, *, radius: int = 2, most: int = 40) -> Any:
    """Draw the small networks around two nodes side by side.

    Parameters
    ----------
    subject : SPINE or Graph
    a, b : names
    radius, most : int
        Most steps from the node, and most nodes, as in ``ego_network``.

    Examples
    --------
    >>> import spinegraph as sg
    >>> figure = sg.plot.twins(sg.made.barbell(5, bridge=1), 0, 8)
    >>> [note.text for note in figure.layout.annotations]
    ['0', '8']
    """
    from plotly.subplots import make_subplots

    graph = graph_of(subject)
    egos = [ego_network(graph, node, radius=radius, most=most) for node in (a, b)]
    boxes = [(ego.coordinates.min(axis=0), ego.coordinates.max(axis=0)) for ego in egos]
    reach = 0.56 * max(1.0, *(float((high - low).max()) for low, high in boxes))  # one scale for both
    figure = make_subplots(1, 2, subplot_titles=[safe_text(a), safe_text(b)], horizontal_spacing=0.04)
    for side, (ego, (low, high)) in enumerate(zip(egos, boxes, strict=True), start=1):
        x, y = (low + high) / 2
        figure.add_traces(_ego_traces(ego, graph), rows=1, cols=side)
        figure.update_xaxes(**_HIDDEN_AXIS, range=[x - reach, x + reach], col=side)
        figure.update_yaxes(**_HIDDEN_AXIS, range=[y - reach, y + reach], scaleanchor=f"x{side}", col=side)
    figure.update_annotations(font={"size": 14, "color": INK})
    margin = {"l": 4, "r": 4, "t": 32, "b": 4}
    return figure.update_layout(STYLE, height=320, showlegend=False, margin=margin)


def _ego_traces(ego: Ego, graph: Graph) -> list[Any]:
    ends = np.full((len(ego.edges), 3, 2), np.nan)
    ends[:, :2] = ego.coordinates[ego.edges]
    ring = np.minimum(ego.hops, len(RING_COLORS) - 1)
    order = np.argsort(-ring, kind="stable")  # the root is drawn last, on top
    degrees = graph.degrees[ego.nodes]
    texts = [
        f"{safe_text(graph.names[node])}<br>{degree} neighbours" + (f", {hop} steps away" if hop else "")
        for node, degree, hop in zip(ego.nodes.tolist(), degrees.tolist(), ego.hops.tolist(), strict=True)
    ]
    sizes, colors = ([each[ring[index]] for index in order] for each in (_RING_SIZES, RING_COLORS))
    marker = {"size": sizes, "color": colors, "line": {"color": "#ffffff", "width": 1.2}, "opacity": 1}
    (edge_x, edge_y), (x, y) = ends.reshape(-1, 2).T, ego.coordinates[order].T
    line = {"line": {"color": "#c3ccd5", "width": 1}, "hoverinfo": "skip"}
    edges = {"type": "scatter", "mode": "lines", "x": edge_x, "y": edge_y, **line}
    about = {"text": [texts[index] for index in order], "hovertemplate": "%{text}<extra></extra>"}
    return [edges, {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": marker, **about}]


def safe_text(value: object, max_length: int = 60) -> str:
    """Return text that Plotly shows literally, without interpreting tags; long text is cut."""
    text = "".join(sign if sign.isprintable() else " " for sign in str(value))
    return escape(shorten(text, max_length), quote=False)


def shorten(value: object, max_length: int = 60) -> str:
    """Return a value as text, cut where it is long."""
    text = str(value)
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


_UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class Coloring:
    """A colouring of the nodes."""

    title: str
    values: NDArray[np.float64] | None  # (n,), measured; NaN where unknown
    codes: NDArray[np.int64] | None  # (n,), each node's index in groups
    groups: tuple[str, ...] = ()  # names of the groups and their colours; larger groups first
    colors: tuple[str, ...] = ()


def color_nodes(title: str, values: Any, *, groups: tuple[str, ...] | None = None) -> Coloring:
    """Return a colouring by values (n,): measured numbers, or groups, of which the smallest may be merged.

    Floats are measured; text, booleans and at most 12 different whole numbers are groups. With ``groups``,
    the values are indices into them.
    """
    given = np.asarray(values)
    if given.ndim != 1:
        raise ParameterError(f"a colouring is one value per node (n,); got shape {given.shape}")
    if groups is not None:
        colors = tuple(COLORS[code % len(COLORS)] for code in range(len(groups)))
        return Coloring(title, None, given.astype(np.int64), tuple(groups), colors)
    kind = given.dtype.kind
    if kind == "f" or (kind in "iu" and len(np.unique(given)) > len(COLORS)):
        return Coloring(title, given.astype(np.float64), None)
    texts = [_UNKNOWN if value is None or value == "" else str(value) for value in given.tolist()]
    counts = Counter(texts)
    unknown = counts.pop(_UNKNOWN, 0)
    ranked = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown = ranked if len(ranked) <= len(COLORS) else ranked[: len(COLORS) - 1]
    code_of = {name: code for code, name in enumerate(shown)}
    others = [f"{len(ranked) - len(shown)} other groups"] if len(ranked) > len(shown) else []
    if unknown:
        code_of[_UNKNOWN] = len(shown) + len(others)
        others.append(_UNKNOWN)
    codes = np.array([code_of.get(text, len(shown)) for text in texts], dtype=np.int64)
    colors = (*COLORS[: len(shown)], *[OTHER] * len(others))
    return Coloring(title, None, codes, (*shown, *others), colors)


def graph_of(subject: Any, *, needed: bool = True) -> Any:
    """Return the graph of a model, the union of several with names (index, name), or a graph as it is."""
    found = subject if hasattr(subject, "adjacency") else getattr(subject, "graph_", None)
    if isinstance(found, list):
        return Graph.union(found, keys=range(len(found)))
    if found is None and needed:
        reason = "this model was saved without its network; pass a graph, or save the model with data=True"
        raise _missing(subject, "a Graph", reason)
    return found


def embeddings_of(subject: Any) -> Embeddings:
    """Return the vectors of a model, with those of several graphs concatenated, or vectors as they are."""
    found = subject if isinstance(subject, Embeddings) else getattr(subject, "embeddings_", None)
    if isinstance(found, list):
        vectors = np.concatenate([each.vectors for each in found])
        return Embeddings(graph_of(subject).names, vectors, found[0].parts)
    if found is None:
        reason = "this model holds no vectors: it was saved without them, or fitted with vectors=False"
        raise _missing(subject, "Embeddings", f"{reason}; pass a graph, or model.transform(graph)")
    return found


def _missing(subject: Any, what: str, reason: str) -> ParameterError:
    """Return the error for a fitted model that lacks something, or for anything else."""
    kind = f"{type(subject).__name__}{' that is not fitted' * hasattr(subject, 'fit')}"
    is_fitted = hasattr(subject, "generator_")
    return ParameterError(reason if is_fitted else f"pass a fitted SPINE or {what}; got {kind}")


_MORE_COLUMNS = ("degree", "clustering", "log_triangles")


def column_of(graph: Graph, name: str) -> NDArray[Any]:
    """Return a column (n,) by name: a feature, a category of the table or a structural column."""
    features = graph.feature_names or ()
    if name in features and graph.features is not None:
        column = graph.features[:, [features.index(name)]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    if name == "degree":
        return np.asarray(graph.degrees)
    if name in _categories(graph):
        levels = [feature for feature in features if feature.startswith(f"{name} = ")]
        found = np.full(len(graph), "none", dtype=object)
        for level in levels:
            found[column_of(graph, level) > 0] = level.removeprefix(f"{name} = ")
        return found
    if has_column(graph, name):
        return structural_columns(graph, names=(name,)).values[:, 0]
    some = ", ".join([*features[:5], "degree", *COLUMNS[:3]])
    raise ParameterError(f"color must be a column or one value per node; no column {name!r} in {some}, ...")


def has_column(graph: Graph, name: str) -> bool:
    """Return whether there is a feature, a column of the table or a structural column of this name."""
    return name in (*(graph.feature_names or ()), *_categories(graph), *COLUMNS, *_MORE_COLUMNS)


def _categories(graph: Graph) -> list[str]:
    """Return the columns of the table that are categories."""
    kinds = {} if graph.encoder is None else graph.encoder.kinds_
    return [name for name, kind in kinds.items() if kind == "category"]
