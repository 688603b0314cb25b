"""Figures, as ``sg.plot``: a map of vectors, twins side by side, profiles, the loss, and two distances."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from spinegraph.analysis.explain import CONTENT, PLACE, STRUCTURE, Explanation, column_title
from spinegraph.analysis.layout import Ego, Method, ego_network, layout
from spinegraph.analysis.search import unit_rows
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.generator import profile_of
from spinegraph.graph.graph import Graph
from spinegraph.kernels.dtw import OFFSET
from spinegraph.structure.columns import COLUMNS, structural_columns
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.similarity import pair_distances, warping

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
    """Return text that Plotly shows as it is: it would read tags in it; long text is cut."""
    text = "".join(sign if sign.isprintable() else " " for sign in str(value))
    text = text if len(text) <= most else text[: most - 1] + "…"
    for sign, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, written)
    return text


def new_figure(traces: list[Any], **layout: Any) -> Any:
    """Return a Plotly figure in the package's style."""
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
    """Say whether values are measured, rather than names of groups: whole numbers of few kinds are names."""
    if values.dtype.kind == "f":
        return True
    return values.dtype.kind in "iu" and len(np.unique(values)) > len(COLORS)


_UNKNOWN = "not known"


@dataclass(frozen=True, eq=False)
class Coloring:
    """One colouring of the nodes.

    Attributes
    ----------
    title : str
    values : float64 array (n,), or None for groups
        Measured; NaN where not known.
    codes : int64 array (n,), or None for values
        Each node's place in ``groups``.
    groups, colors : tuple of str
        Names of the groups and their colours; larger groups first.
    """

    title: str
    values: NDArray[np.float64] | None
    codes: NDArray[np.int64] | None
    groups: tuple[str, ...] = ()
    colors: tuple[str, ...] = ()


def coloring(title: str, values: Any, *, groups: tuple[str, ...] | None = None) -> Coloring:
    """Read values (n,) as measured numbers, or as groups; the smallest of many groups become one.

    Parameters
    ----------
    title : str
    values : array (n,)
        Floats are measured; text, booleans and whole numbers of at most 12 kinds are groups. With ``groups``,
        each node's place in them.
    groups : tuple of str, optional
        Names of groups in a fixed order.
    """
    given = np.asarray(values)
    if given.ndim != 1:
        raise ParameterError(f"a colouring is one value per node (n,); got shape {given.shape}")
    if groups is not None:
        colors = tuple(COLORS[place % len(COLORS)] for place in range(len(groups)))
        return Coloring(title, None, given.astype(np.int64), tuple(groups), colors)
    if is_numeric(given):
        return Coloring(title, given.astype(np.float64), None)
    texts = [_UNKNOWN if value is None or value == "" else str(value) for value in given.tolist()]
    return _grouped(title, texts)


def _grouped(title: str, texts: list[str]) -> Coloring:
    counts = Counter(texts)
    unknown = counts.pop(_UNKNOWN, 0)
    ranked = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    shown = ranked if len(ranked) <= len(COLORS) else ranked[: len(COLORS) - 1]
    groups, colors = list(shown), list(COLORS[: len(shown)])
    rest = len(ranked) - len(shown)
    if rest:
        groups.append(f"{rest} other groups")
        colors.append(OTHER)
    place_of = {name: place for place, name in enumerate(shown)}
    if unknown:
        place_of[_UNKNOWN] = len(groups)
        groups.append(_UNKNOWN)
        colors.append(OTHER)
    codes = np.array([place_of.get(text, len(shown)) for text in texts], dtype=np.int64)
    return Coloring(title, None, codes, tuple(groups), tuple(colors))


_PAIRS = 20_000
_BINS = 12
_BESIDE = 5
_LEAST = 8  # pairs in a bin worth a point


@dataclass(frozen=True, eq=False)
class ComparedPairs:
    """Distances of sampled pairs of nodes.

    Attributes
    ----------
    structural : array (m,)
        DTW distance of the profiles.
    apart : array (m,)
        1 - cosine of the vectors.
    is_near : bool array (m,)
        Whether the nodes are at most two steps apart.
    """

    structural: NDArray[Any]
    apart: NDArray[Any]
    is_near: NDArray[np.bool_]

    def only(self, near: bool) -> "ComparedPairs":
        """Return the pairs that are near, or those that are not."""
        chosen = self.is_near == near
        return ComparedPairs(self.structural[chosen], self.apart[chosen], self.is_near[chosen])

    def rank_correlation(self) -> float:
        """Return Spearman's correlation of the two distances; 0 where either is constant."""
        from scipy.stats import rankdata

        ranks = [rankdata(values) for values in (self.structural, self.apart)]
        if len(ranks[0]) < 2 or any(np.ptp(rank) == 0 for rank in ranks):
            return 0.0
        return float(np.corrcoef(*ranks)[0, 1])

    def quartiles(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Cut the pairs into bins of equal count by structure: its middle, and quartiles of ``apart``."""
        if len(self.structural) < _LEAST:
            none = np.zeros(0)
            return none, none, none, none
        bins = min(_BINS, len(self.structural) // _LEAST)
        edges = np.unique(np.quantile(self.structural, np.linspace(0, 1, bins + 1)))
        bin_of = np.clip(np.searchsorted(edges, self.structural, side="right") - 1, 0, max(len(edges) - 2, 0))
        rows = []
        for place in np.unique(bin_of):
            mine = bin_of == place
            rows.append([np.median(self.structural[mine]), *np.quantile(self.apart[mine], (0.25, 0.5, 0.75))])
        middle, low, median, high = np.array(rows).T
        return middle, low, median, high


def compare_pairs(
    graph: Graph,
    embeddings: Embeddings,
    weights: NDArray[np.float32],
    *,
    pairs: int = _PAIRS,
    seed: int = 0,
) -> ComparedPairs:
    """Sample pairs of nodes and measure both distances.

    A third of the pairs is at most two steps apart, a third alike in degree and profile, a third random.

    Parameters
    ----------
    graph : Graph
    embeddings : Embeddings
        Of its nodes, in its order.
    weights : array (n, k)
        Profiles of its nodes.
    pairs : int
        How many are drawn; a node drawn with itself is left out.
    seed : int
    """
    rng = np.random.default_rng(seed)
    third = pairs // 3
    near = _two_steps(graph, rng, third)
    anywhere = rng.integers(len(graph), size=(pairs - 2 * third, 2))
    far = np.concatenate([_alike(graph.degrees, weights, rng, third), anywhere])
    both = np.concatenate([near, far])
    is_near = np.concatenate([np.ones(len(near), bool), _within_two(graph, far)])
    different = both[:, 0] != both[:, 1]
    both, is_near = both[different], is_near[different]
    unit = unit_rows(embeddings.vectors)
    cosine = np.einsum("md,md->m", unit[both[:, 0]], unit[both[:, 1]])
    return ComparedPairs(pair_distances(weights, both), np.clip(1 - cosine, 0, 2), is_near)


def _alike(
    degrees: NDArray[Any], weights: NDArray[Any], rng: np.random.Generator, count: int
) -> NDArray[np.int64]:
    """Draw nodes that are close to each other in the order of degree and profile."""
    line = np.lexsort((np.log(weights + OFFSET).mean(axis=1), degrees))
    first = rng.integers(len(line), size=count)
    second = np.clip(first + rng.integers(-_BESIDE, _BESIDE + 1, size=count), 0, len(line) - 1)
    return np.column_stack([line[first], line[second]])


def _two_steps(graph: Graph, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw a node that has neighbours, one of them, and half of the time a neighbour of that."""
    linked = np.flatnonzero(graph.degrees > 0)
    if not len(linked):
        return np.zeros((0, 2), np.int64)
    start = rng.choice(linked, count)
    first = _random_neighbor(graph, start, rng)
    second = _random_neighbor(graph, first, rng)
    return np.column_stack([start, np.where(rng.random(count) < 0.5, first, second)])


def _random_neighbor(graph: Graph, nodes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    degrees = graph.degrees[nodes]
    drawn = graph.indptr[nodes] + (rng.random(len(nodes)) * degrees).astype(np.int64)
    return np.asarray(graph.indices[drawn], dtype=np.int64)


def _within_two(graph: Graph, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of each pair whether one is the other's neighbour or shares one with it."""
    ones = np.ones(len(graph.indices), np.int32)
    linked = csr_array((ones, graph.indices, graph.indptr), shape=(len(graph), len(graph)))
    left, right = linked[pairs[:, 0]], linked[pairs[:, 1]]
    places = csr_array(
        (np.ones(len(pairs), np.int32), (np.arange(len(pairs)), pairs[:, 1])), shape=left.shape
    )
    shared = np.asarray(left.multiply(right).sum(axis=1)).ravel()
    direct = np.asarray(left.multiply(places).sum(axis=1)).ravel()
    found: NDArray[np.bool_] = (shared > 0) | (direct > 0)
    return found


_MORE = ("degree", "clustering", "log_triangles")


def graph_of(subject: Any, *, needed: bool = True) -> Any:
    """Return the graph of a model, several as one of names (number, name), or the graph itself."""
    found = subject if hasattr(subject, "adjacency") else getattr(subject, "graph_", None)
    if isinstance(found, list):
        return Graph.union(found, keys=range(len(found)))
    if found is None and needed:
        if hasattr(subject, "generator_"):
            raise ParameterError("this model was saved without its training graph; give a graph instead")
        raise ParameterError(f"give a fitted SPINE or a Graph; got {_kind(subject)}")
    return found


def embeddings_of(subject: Any) -> Embeddings:
    """Return the vectors of a model, those of several graphs one after the other, or the vectors given."""
    found = subject if isinstance(subject, Embeddings) else getattr(subject, "embeddings_", None)
    if isinstance(found, list):
        return Embeddings(graph_of(subject).names, np.concatenate([each.vectors for each in found]))
    if found is None:
        if hasattr(subject, "generator_"):
            raise ParameterError(
                "this model was saved without its vectors; give transform(graph) of it instead"
            )
        raise ParameterError(f"give a fitted SPINE or Embeddings; got {_kind(subject)}")
    return found


def history_of(subject: Any) -> list[Any]:
    """Return the training history of a model, or the one given."""
    found = getattr(subject, "history_", subject)
    if not isinstance(found, list):
        raise ParameterError(f"give a fitted SPINE or its history_; got {_kind(subject)}")
    return found


def profile_rows(subject: Any, nodes: list[Any] | None) -> NDArray[np.float32]:
    """Return the profiles (r, k) of some nodes, or of all, with a model's settings or the defaults."""
    graph = graph_of(subject)
    positions = None if nodes is None else graph.positions(nodes)
    config = getattr(subject, "config_", None)
    if config is None:
        return rooted_pagerank(graph, roots=positions).weights
    return profile_of(graph, config, positions).weights


def column_of(graph: Graph, name: str) -> NDArray[Any]:
    """Return one column by name, (n,): a feature, or a structural column."""
    features = graph.feature_names or ()
    if name in features and graph.features is not None:
        column = graph.features[:, [features.index(name)]]
        return np.asarray(column.toarray() if hasattr(column, "toarray") else column).ravel()
    if name == "degree":
        return np.asarray(graph.degrees)
    if has_column(graph, name):
        return structural_columns(graph, names=(name,)).values[:, 0]
    some = ", ".join([*features[:5], "degree", *COLUMNS[:3]])
    raise ParameterError(
        f"color must be a column, or one value per node; no column {name!r} among {some}, ..."
    )


def has_column(graph: Graph, name: str) -> bool:
    """Say whether there is such a feature or structural column."""
    return name in (graph.feature_names or ()) or name in (*COLUMNS, *_MORE)


def _kind(subject: Any) -> str:
    is_unfitted = hasattr(subject, "fit")
    return f"{type(subject).__name__} that is not fitted" if is_unfitted else type(subject).__name__


def loss(subject: Any) -> Any:
    """Draw the loss during training, on training pairs and on pairs that training never sees.

    Parameters
    ----------
    subject : SPINE, or list of TrainingRecord

    Examples
    --------
    >>> from spinegraph.learning.checkpoint import TrainingRecord
    >>> [trace.name for trace in loss([TrainingRecord(25, 1.2, 1.3), TrainingRecord(50, 1.0, 1.2)]).data]
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
    >>> from spinegraph.analysis.plots import ComparedPairs
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
    boxes = [(ego.coordinates.min(axis=0), ego.coordinates.max(axis=0)) for ego in egos]
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


def _ego_traces(ego: Ego, graph: Graph, side: int) -> list[Any]:
    import plotly.graph_objects as go

    axes = {} if side == 0 else {"xaxis": "x2", "yaxis": "y2"}
    ends = np.full((len(ego.edges), 3, 2), np.nan)
    ends[:, :2] = ego.coordinates[ego.edges]
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
        x=ego.coordinates[order, 0],
        y=ego.coordinates[order, 1],
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


_COLUMNS = 8
_COLORS = {CONTENT: COLORS[0], PLACE: COLORS[2], STRUCTURE: COLORS[4]}
_SIGNS = (("makes them alike", ACCENT), ("sets them apart", WARM))
_SMALLEST_SHARE = 1e-3  # of DTW: below it values count as nothing; a logarithmic axis needs an end


def explanation_figure(found: Explanation) -> Any:
    """Return a Plotly figure of an explanation."""
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
    heights = np.maximum(found.profiles, _SMALLEST_SHARE)
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


__all__ = ["distances", "loss", "map", "profile", "twins"]
