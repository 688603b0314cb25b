"""The report: what a model found, as one self-contained HTML file."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from spinegraph import __version__
from spinegraph.analysis import plots
from spinegraph.analysis.explain import MEANING, Explanation, explain, plural
from spinegraph.analysis.layout import layout
from spinegraph.analysis.roles import RoleAssignment, Roles
from spinegraph.analysis.search import Search
from spinegraph.atomic import make_folder, whole_file
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.graph.describe import Description, describe
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few
from spinegraph.parts.paper import AnyGenerator

Progress = Callable[[str, int, int], None]  # stage, done, total (0 if unknown)

MAX_ON_MAP = 20_000  # nodes: a browser draws them at once, and the file stays small
_MAX_COLUMNS = 12
_MAX_EXAMPLES = 4
_TYPICAL_TRIED, _MATCHES_TRIED = 8, 100
_READABLE_DEGREES = (2, 24)  # degrees of nodes whose neighbourhood makes a readable drawing
_MUCH = 0.05  # share that warrants a warning rather than a remark
_HUB = 0.2  # share of all nodes that a hub is linked to


@dataclass(frozen=True)
class Note:
    """One remark on the data."""

    level: Literal["warning", "remark"]  # "warning" where results may suffer, "remark" otherwise
    text: str  # what was found, in numbers
    advice: str  # what it means for the results


@dataclass(frozen=True, eq=False)
class Example:
    """Two nodes that are alike, and why."""

    role: int
    a: Any
    b: Any
    score: float  # mean of the cosines of the parts
    explanation: Explanation


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The content of a report."""

    graph: Graph
    embeddings: Embeddings
    notes: list[Note]
    roles: Roles
    assignment: RoleAssignment
    shown: NDArray[np.int64]  # (m,), positions of the nodes on the map: all, or a sample
    coordinates: NDArray[np.float32]  # (m, 2)
    colorings: list[plots.Coloring]  # of the nodes on the map; the first is the default
    labels: NDArray[Any] | None  # (n,)
    label_title: str
    examples: list[Example]

    def __repr__(self) -> str:
        counts = f"{plural(len(self.roles), 'role')}, {plural(len(self.notes), 'note')}"
        return f"Findings({plural(len(self.graph), 'node')}, {counts}, {plural(len(self.examples), 'pair')})"


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "SPINE report",
    labels: Any = None,
    label_title: str = "label",
    color: str | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Findings:
    """Write a report on a fitted model as one HTML file, whole or not at all; see ``SPINE.report``."""
    require_page(path)
    report = progress or (lambda stage, done, total: None)
    graph, embeddings, generator = plots.graph_of(model), plots.embeddings_of(model), model.generator_
    labels = None if labels is None else _per_node(labels, graph.names)
    is_known = color in (None, "role") or (labels is not None and color == label_title)
    chosen = [] if is_known else [(str(color), plots.column_of(graph, str(color)))]
    report("finding roles", 0, 0)
    roles = Roles.find(graph, generator, embeddings, seed=seed)
    assignment = roles.assign(graph, generator, embeddings=embeddings)
    report("looking for look-alikes", 0, 0)
    examples = find_examples(graph, generator, Search(embeddings), assignment)
    report("drawing the map", 0, 0)
    shown = np.arange(len(graph))
    if len(shown) > MAX_ON_MAP:
        shown = np.sort(np.random.default_rng(seed).permutation(len(shown))[:MAX_ON_MAP])
    coordinates = layout(embeddings.vectors[shown], seed=seed)
    colorings = [plots.color_nodes("role", assignment.roles[shown], groups=tuple(roles.titles))]
    if labels is not None:
        colorings.append(plots.color_nodes(label_title, labels[shown]))
    columns = chosen + [each for each in _columns(graph, generator) if each[0] != color]
    colorings += [plots.color_nodes(name, values[shown]) for name, values in columns]
    colorings.sort(key=lambda each: each.title != color)
    remarks = notes(graph, describe(graph, labels), embeddings)
    places = shown, coordinates, colorings
    found = Findings(graph, embeddings, remarks, roles, assignment, *places, labels, label_title, examples)
    report("writing the page", 0, 0)
    text = _page(model, found, title)
    make_folder(Path(path).resolve().parent)
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return found


def _per_node(labels: Any, names: NDArray[Any]) -> NDArray[Any]:
    """Return labels (n,); a dict or an indexed pandas Series is joined by name."""
    index = type(getattr(labels, "index", None))
    if index.__module__.startswith("pandas") and index.__name__ != "RangeIndex":
        labels = labels.dropna().to_dict()
    if isinstance(labels, Mapping):
        if labels.keys().isdisjoint(names.tolist()):
            raise ParameterError(f"labels fit no node: {first_few(labels)}; nodes are {first_few(names, 3)}")
        labels = [labels.get(name) for name in names.tolist()]
    found = np.asarray(labels, dtype=object)
    if found.shape != names.shape:
        raise ParameterError(
            f"labels must have one entry for each of the {len(names)} nodes, in order, or be a dict by name; "
            f"got shape {found.shape}"
        )
    return found


def _columns(graph: Graph, generator: Any) -> list[tuple[str, NDArray[Any]]]:
    """Return, by title, structural columns and the features that vary most as the model reads them."""
    listed = [
        ("neighbours (logarithm)", np.log1p(graph.degrees)),
        ("neighbours that are linked", plots.column_of(graph, "clustering").astype(np.float64)),
    ]
    if graph.features is None or graph.feature_names is None or generator.encoder is None:
        return listed
    read = generator.encoder.transform(graph.features)
    mean, square = (np.asarray(part.mean(axis=0), np.float64).ravel() for part in (read, read * read))
    names = [graph.feature_names[index] for index in np.argsort(mean**2 - square, kind="stable")]
    return listed + [(name, plots.column_of(graph, name).astype(np.float64)) for name in names[:_MAX_COLUMNS]]


def notes(graph: Graph, description: Description, embeddings: Embeddings) -> list[Note]:
    """Return remarks on a graph and its vectors, warnings first."""
    found = [
        Note("warning" if share >= _MUCH else "remark", text, advice)
        for share, text, advice in _remarks(graph, description, embeddings)
    ]
    return sorted(found, key=lambda note: note.level != "warning")


def _remarks(graph: Graph, found: Description, embeddings: Embeddings) -> Iterator[tuple[float, str, str]]:
    """Yield the share of the data concerned, what was found, and what it means for the results."""
    nodes = found.nodes
    if found.isolated:
        text = f"{_of(found.isolated, nodes)} {'has' if found.isolated == 1 else 'have'} no neighbours."
        yield found.isolated / nodes, text, "Their content comes from their own features alone."
    pieces = found.components - found.isolated
    outside = nodes - found.largest_component - found.isolated
    if pieces >= 2:
        text = f"{_of(outside, nodes)} with neighbours are outside the largest."
        text = f"The network falls into {pieces:,} unconnected pieces; {text}"
        yield outside / nodes, text, "Nodes in different pieces are compared by content and role only."
    hub = found.degree_largest / max(nodes - 1, 1)
    if hub >= _HUB and nodes >= 50:
        text = f"{found.best_connected} is linked to {100 * hub:.0f} % of all nodes."
        yield hub, text, "Most nodes are then two steps from each other; consider leaving that node out."
    if found.features is None:
        yield 0, "The nodes have no features.", "The vectors have no content part."
    elif found.features.empty_rows:
        empty = found.features.empty_rows
        text = f"{_of(empty, nodes)} have no non-zero feature."
        yield empty / nodes, text, "Their content comes from the features around them."
    if graph.features is not None:
        ends = [getattr(graph.features, end)(axis=0) for end in ("min", "max")]
        low, high = (np.ravel(end.toarray() if issparse(end) else end) for end in ends)
        constant = int(np.count_nonzero(low == high))
        if constant:
            columns = _of(constant, graph.features.shape[1], "feature columns")
            yield 0, f"{columns} are the same for every node.", "They distinguish no nodes."
    counts = np.unique(embeddings.vectors.round(5), axis=0, return_counts=True)[1]
    same = int(counts[counts > 1].sum())
    if same:
        text = f"{_of(same, len(embeddings))} share their vector with another node."
        advice = "Nothing in the data tells these apart: same features, same surroundings."
        yield same / len(embeddings), text, advice
    if found.labels is not None and found.labels.unlabelled:
        text = f"{_of(found.labels.unlabelled, nodes)} have no label."
        yield 0, text, "Labels only colour the map."
    report = graph.report
    if report is not None and (report.listed != report.edges or report.one_way):
        lost = (report.self_loops + report.zero_weights) / max(report.listed, 1)
        how = "Each directed link counts once." if graph.directed else "Links are read as undirected."
        yield lost, str(report), how


def _of(count: int, total: int, what: str = "nodes") -> str:
    share = 100 * count / max(total, 1)
    return f"{count:,} of {total:,} {what} ({share:{'.2g' if share < 10 else '.0f'}} %)"


def find_examples(
    graph: Graph, generator: AnyGenerator, search: Search, assignment: RoleAssignment
) -> list[Example]:
    """Return, for the most common roles, a typical node and the node most like it that is not close to it."""
    found: list[Example] = []
    known, adjacency, used = generator.known(graph), graph.adjacency(), set[int]()
    low, high = _READABLE_DEGREES
    for role in np.argsort(-assignment.shares(), kind="stable").tolist():
        typical = graph.positions(assignment.examples(role, len(graph)))
        fits = (graph.degrees[typical] >= low) & (graph.degrees[typical] <= high)
        listed = [one for one in (typical[fits] if fits.any() else typical).tolist() if one not in used]
        pairs = []  # more than two steps apart: whether of the same role, similarity, positions
        for one in listed[:_TYPICAL_TRIED]:
            ring = adjacency.neighbors(np.array([one]))[1].astype(np.int64)
            near = {one, *ring.tolist(), *adjacency.neighbors(ring)[1].tolist(), *used}
            for match in search.similar(graph.names[one], n=_MATCHES_TRIED):
                other = int(graph.positions([match.name])[0])
                if other not in near:
                    pairs.append((bool(assignment.roles[other] == role), match.score, one, other))
        if not pairs or len(found) == _MAX_EXAMPLES:
            continue
        _, score, one, other = max(pairs, key=lambda pair: pair[:2])
        used |= {one, other}
        a, b = graph.names[[one, other]].tolist()
        reasons = explain(graph, generator, a, b, embeddings=search, known=known)
        found.append(Example(role, a, b, score, reasons))
    return sorted(found, key=lambda example: example.role)


_MAX_SENTENCES = 6


def require_page(path: str | os.PathLike[str]) -> None:
    """Raise unless a path ends in .html or .htm."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"{path}: a report is an HTML page; choose a name that ends in .html")


def _page(model: Any, found: Findings, title: str) -> str:
    """Return the report as one HTML document."""
    from plotly.offline import get_plotlyjs

    page, style, script = (
        (files("spinegraph.analysis") / f"report.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "css", "js")
    )
    rings = zip(plots.RING_COLORS, ("the node", "its neighbours", "two steps away"), strict=True)
    key = " ".join(
        f'<span class="key"><span class="ring" style="background:{color}"></span>{meaning}</span>'
        for color, meaning in rings
    )
    settings = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in model.config_.to_json().items()
    )
    sampled = ""
    if len(found.shown) < len(found.graph):
        sampled = f"The map shows {len(found.shown):,} nodes, drawn at random from {len(found.graph):,}."
    return Template(page).substitute(
        title=escape(title),
        style=style,
        tiles=_tiles(found),
        notes=_notes_list(found.notes),
        sampled=sampled,
        roles=_role_cards(found),
        key=key,
        examples=_example_cards(found),
        fit=_parts_in_words(model.generator_),
        settings=settings,
        version=escape(__version__),
        data=_json(_data(found)),
        plotly=get_plotlyjs(),
        script=script,
    )


def _parts_in_words(generator: AnyGenerator) -> str:
    widths = {name: part.stop - part.start for name, part in generator.parts.items()}
    listed = ", ".join(f"{width} for {name} ({MEANING[name]})" for name, width in widths.items())
    words = f"A vector has {generator.dim:,} numbers: {listed}."
    learned = getattr(generator, "learned", None)
    if learned is None:
        return words
    after = f"and {learned.after:.1f} times after learning"
    if learned.after <= learned.before:
        after = "and learning found nothing better"
    before = f"By content, hidden links are predicted {learned.before:.1f} times as well as by chance"
    return f"{words} {before}, {after}."


def _data(found: Findings) -> dict[str, Any]:
    figures = {}
    for number, example in enumerate(found.examples):
        figure = plots.twins(found.graph, example.a, example.b).update_layout(height=None, autosize=True)
        figures[f"twins-{number}"] = json.loads(figure.to_json())
    return {
        "map": {
            "x": _rounded(found.coordinates[:, 0]),
            "y": _rounded(found.coordinates[:, 1]),
            "names": [str(name) for name in found.graph.names[found.shown].tolist()],
            "roles": found.assignment.roles[found.shown].tolist(),
            "colorings": [_coloring(each) for each in found.colorings],
        },
        "roles": found.roles.titles,
        "scale": plots.SCALE,
        "layout": {"font": plots.STYLE["font"], "hoverlabel": plots.STYLE["hoverlabel"]},
        "figures": figures,
    }


def _coloring(found: plots.Coloring) -> dict[str, Any]:
    if found.values is not None:
        return {"title": found.title, "values": _rounded(found.values, 4)}
    assert found.codes is not None
    codes, groups, colors = found.codes.tolist(), list(found.groups), list(found.colors)
    return {"title": found.title, "codes": codes, "groups": groups, "colors": colors}


def _rounded(values: Any, digits: int = 3) -> list[float | None]:
    return [round(value, digits) if np.isfinite(value) else None for value in np.asarray(values).tolist()]


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _tiles(found: Findings) -> str:
    graph, roles = found.graph, len(found.roles)
    counts = {"nodes": len(graph), "edges": graph.num_edges, "features": graph.num_features}
    counts |= {"dimensions": found.embeddings.dim, "role" if roles == 1 else "roles": roles}
    items = "".join(f"<li><b>{count:,}</b><span>{name}</span></li>" for name, count in counts.items())
    return f'<ul class="tiles">{items}</ul>'


def _notes_list(notes: list[Note]) -> str:
    if not notes:
        return "<p>Nothing stands out: one connected piece, no gaps, nothing merged or dropped.</p>"
    items = "".join(
        f'<li class="{note.level}">{escape(note.text)} <em>{escape(note.advice)}</em></li>' for note in notes
    )
    return f'<ul class="notes">{items}</ul>'


def _role_cards(found: Findings) -> str:
    """Return one card per role: title, what sets it apart, typical numbers and nodes."""
    shares = found.assignment.shares()
    cards = []
    for role, (title, words) in enumerate(zip(found.roles.titles, found.roles.descriptions, strict=True)):
        color = plots.COLORS[role % len(plots.COLORS)]
        count = int(np.count_nonzero(found.assignment.roles == role))
        cards.append(
            f'<div class="card"><h3><i style="background:{color}"></i>{escape(title)}'
            f"<small>{plural(count, 'node')}, {100 * shares[role]:.1f} %</small></h3>"
            f'<div class="bar"><i style="width:{100 * shares[role]:.1f}%;background:{color}"></i></div>'
            f"<p>{escape(words[:1].upper() + words[1:])}.</p>{_numbers(found, role)}</div>"
        )
    kind = "cards even" if len(cards) in (2, 4) else "cards"
    return f'<div class="{kind}">{"".join(cards)}</div>'


def _numbers(found: Findings, role: int) -> str:
    """Return a role's typical nodes and, with labels, the most common label of its nodes."""
    rows = {"typical": ", ".join(map(plots.shorten, found.assignment.examples(role))) or "none"}
    labels = np.array([]) if found.labels is None else found.labels
    known = np.array([label not in (None, "") for label in labels.tolist()], dtype=bool)
    mine = labels[known & (found.assignment.roles == role)] if known.any() else known
    if len(mine):
        label, count = Counter(map(str, mine.tolist())).most_common(1)[0]
        overall = 100 * np.mean([str(other) == label for other in labels[known].tolist()])
        share = f"{100 * count / len(mine):.0f} % (of all nodes {overall:.0f} %)"
        rows[f"most common {found.label_title}"] = f"{plots.shorten(label)}, {share}"
    listed = (f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in rows.items())
    return f"<dl>{''.join(listed)}</dl>"


def _example_cards(found: Findings) -> str:
    """Return one card per look-alike: two small networks and the reasons."""
    if not found.examples:
        return "<p>All similar nodes are within two steps of each other here.</p>"
    cards = []
    for number, example in enumerate(found.examples):
        one, other = (escape(plots.shorten(name)) for name in (example.a, example.b))
        reasons = "".join(f"<li>{escape(words)}</li>" for words in example.explanation.words[:_MAX_SENTENCES])
        color = plots.COLORS[example.role % len(plots.COLORS)]
        part = max(example.explanation.parts, key=lambda part: part.share)
        most = f", mostly by {part.name}" if len(example.explanation.parts) > 1 else ""
        title = escape(found.roles.titles[example.role])
        cards.append(
            f'<div class="twins"><h3><i style="background:{color}"></i>{title}: {one} and {other}'
            f"<small>similarity {example.score:.2f}{most}</small></h3>"
            f'<div id="twins-{number}" class="figure"></div><ul>{reasons}</ul></div>'
        )
    return "".join(cards)
