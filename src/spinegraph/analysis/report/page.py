"""The report: findings as one HTML file with its scripts and figures inside."""

import json
import os
from collections import Counter
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph import __version__
from spinegraph.analysis import plots
from spinegraph.analysis.plots import COLORS, RING_COLORS, SCALE, Coloring, shorten
from spinegraph.analysis.report.findings import Findings, Note, Progress, gather
from spinegraph.atomic import make_folder, whole_file

_MAX_SENTENCES = 6


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "SPINE report",
    labels: NDArray[Any] | None = None,
    label_title: str = "label",
    color: str | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Write a report on a model as one HTML file that opens offline, whole or not at all.

    Parameters
    ----------
    model : SPINE
        Fitted, with its training data.
    path : path
        The folder is made where it is missing.
    title : str
    labels : array (n,), optional
        One per node; None where there is none.
    label_title : str
        What the labels are called.
    color : str, optional
        What colours the map first: ``"role"``, the labels' title, or the name of any column.
    progress : callable (stage, done, total), optional

    Returns
    -------
    Findings
        All that the report shows.
    """
    report = progress or (lambda stage, done, total: None)
    found = gather(model, report, labels=labels, label_title=label_title, color=color)
    report("writing the page", 0, 0)
    text = _page(model, found, title)
    make_folder(Path(path).resolve().parent)
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return found


# The page is complete, and the browser fetches nothing.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; worker-src blob:"
)


def _page(model: Any, found: Findings, title: str) -> str:
    """Return the report as one HTML document."""
    from plotly.offline import get_plotlyjs

    assets = files("spinegraph.analysis.report")
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: spine report</title>
<style>{style}</style>
</head>
<body>
<header><div class="inside">
<h1>{escape(title)}</h1>
<div class="lead">Where every node lives and what role it plays, by SPINE: nodes with like surroundings and
like roles have like vectors.</div>
{_tiles(model, found)}
<nav><a href="#data-notes">Data</a><a href="#map-section">Map</a><a href="#roles">Roles</a>
<a href="#look-alikes">Look-alikes</a><a href="#fit">Fit</a></nav>
</div></header>
<main>
{_body(model, found)}
<footer>Made by spinegraph {escape(__version__)}. This file is complete: it opens without a network.</footer>
</main>
<script type="application/json" id="data">{_json(_data(model, found))}</script>
<script>{get_plotlyjs()}</script>
<script>{script}</script>
</body>
</html>
"""


def _body(model: Any, found: Findings) -> str:
    key = " ".join(
        f'<span class="key"><span class="ring" style="background:{color}"></span>{meaning}</span>'
        for color, meaning in zip(RING_COLORS, ("the node", "its neighbours", "two steps away"), strict=True)
    )
    settings = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in model.config_.to_json().items()
    )
    sampled = ""
    if len(found.shown) < len(found.graph):
        sampled = f"Shown are {len(found.shown):,} nodes, drawn at random from {len(found.graph):,}."
    return f"""<section id="data-notes"><h2>What to know about the data</h2>
{_notes_list(found.notes)}</section>
<section id="map-section"><h2>Map</h2>
<p class="reading">Each dot is a node; dots that are close have like vectors. Distances across the whole map
and the axes mean little. {sampled}</p>
<div class="controls"><label>Colour <select id="color"></select></label>
<span id="finder"><label>Find <input id="find" type="search" placeholder="name of a node" autocomplete="off">
</label> <span id="found"></span></span></div>
<noscript><p>The figures need JavaScript, which is off.</p></noscript>
<div id="map" class="figure map"></div></section>
<section id="roles"><h2>Roles</h2>
<p class="reading">Groups of nodes with the same position in the network, wherever they live. A node may play
several; it is counted where it fits best.</p>
{_role_cards(found)}</section>
<section id="look-alikes"><h2>Look-alikes</h2>
<p class="reading">A typical node of a role and the node most like it that is not beside it, with the network
around each: {key}.</p>
{_example_cards(found)}</section>
<section id="fit"><h2>Fit</h2><div class="pair">
<div><h3>Loss</h3><p class="reading">{_loss_in_words(model.history_)}</p>
<div id="loss" class="figure"></div></div>
<div><h3>Structural against embedding distance</h3><p class="reading">{_pairs_in_words(found)}</p>
<div id="distances" class="figure"></div></div>
</div></section>
<details><summary>Settings of the model</summary>
<div class="settings"><table>{settings}</table></div></details>"""


def _loss_in_words(history: list[Any]) -> str:
    if len(history) < 2:
        return "The history of training is too short to draw."
    first, last = history[0], history[-1]
    same = abs(last.held_out_loss - last.loss) < 0.05 * abs(last.held_out_loss)
    end = "Both end together: no overfitting." if same else "Held-out pairs end apart from the rest."
    return (
        f"On pairs that training never sees it went from {first.held_out_loss:.3f} to "
        f"{last.held_out_loss:.3f} in {last.step:,} steps. {end}"
    )


def _pairs_in_words(found: Findings) -> str:
    near, far = (found.pairs.only(is_near).rank_correlation() for is_near in (True, False))
    return (
        "Do nodes whose surroundings differ have vectors that differ? Rank correlation "
        f"{near:.2f} for nodes within two steps, {far:.2f} for others. Bands hold the middle half of pairs."
    )


def _data(model: Any, found: Findings) -> dict[str, Any]:
    figures = {"loss": plots.loss(model), "distances": plots.distances(model, found.pairs)}
    for number, example in enumerate(found.examples):
        figures[f"twins-{number}"] = plots.twins(found.graph, example.a, example.b)
    for figure in figures.values():
        figure.update_layout(height=None, autosize=True)
    layout = plots.map(found.embeddings, places=np.zeros((len(found.embeddings), 2))).layout
    return {
        "map": {
            "x": _rounded(found.coordinates[:, 0]),
            "y": _rounded(found.coordinates[:, 1]),
            "names": [str(name) for name in found.graph.names[found.shown].tolist()],
            "roles": found.assignment.roles[found.shown].tolist(),
            "colorings": [_coloring(each) for each in found.colorings],
        },
        "roles": found.roles.titles,
        "scale": SCALE,
        "layout": {"font": layout.font.to_plotly_json(), "hoverlabel": layout.hoverlabel.to_plotly_json()},
        "figures": {name: json.loads(figure.to_json()) for name, figure in figures.items()},
    }


def _coloring(found: Coloring) -> dict[str, Any]:
    if found.values is not None:
        return {"title": found.title, "values": _rounded(found.values, 4)}
    assert found.codes is not None
    codes, groups, colors = found.codes.tolist(), list(found.groups), list(found.colors)
    return {"title": found.title, "codes": codes, "groups": groups, "colors": colors}


def _rounded(values: Any, digits: int = 3) -> list[float | None]:
    return [round(value, digits) if np.isfinite(value) else None for value in np.asarray(values).tolist()]


def _json(value: Any) -> str:
    """Return JSON that may stand inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _tiles(model: Any, found: Findings) -> str:
    features = 0 if found.graph.features is None else found.graph.features.shape[1]
    listed = [
        (f"{len(found.graph):,}", "nodes"),
        (f"{found.graph.num_edges:,}", "edges"),
        (f"{features:,}", "features"),
        (f"{found.embeddings.dim:,}", "numbers a vector"),
        (f"{len(found.roles)}", "role" if len(found.roles) == 1 else "roles"),
    ]
    if model.history_:
        listed.append((f"{model.history_[-1].step:,}", "training steps"))
    items = "".join(f"<li><b>{value}</b><span>{name}</span></li>" for value, name in listed)
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
        color = COLORS[role % len(COLORS)]
        count = int(np.count_nonzero(found.assignment.roles == role))
        cards.append(
            f'<div class="card"><h3><i style="background:{color}"></i>{escape(title)}'
            f"<small>{count:,} nodes, {100 * shares[role]:.1f} %</small></h3>"
            f'<div class="bar"><i style="width:{100 * shares[role]:.1f}%;background:{color}"></i></div>'
            f"<p>{escape(words[:1].upper() + words[1:])}.</p>{_numbers(found, role)}</div>"
        )
    kind = "cards even" if len(cards) in (2, 4) else "cards"
    return f'<div class="{kind}">{"".join(cards)}</div>'


def _numbers(found: Findings, role: int) -> str:
    typical = found.roles.typical[role]
    low, high = typical.neighbors_low, typical.neighbors_high
    spread = f"{low:,} to {high:,}, in the middle {typical.neighbors:,}"
    rows = [("neighbours", spread if low < high else f"{low:,}")]
    if typical.acquainted is not None:
        rows.append(("know each other", f"{100 * typical.acquainted:.0f} % of their pairs"))
    if typical.communities is not None:
        rows.append(("communities", f"{typical.communities:.1f} among them"))
    names = [shorten(name) for name in found.assignment.examples(role)]
    rows.append(("typical", ", ".join(names) or "nobody"))
    label = _commonest_label(found, role)
    if label is not None:
        rows.append((f"commonest {found.label_title}", label))
    return f"<dl>{''.join(f'<dt>{escape(key)}</dt><dd>{escape(value)}</dd>' for key, value in rows)}</dl>"


def _commonest_label(found: Findings, role: int) -> str | None:
    if found.labels is None:
        return None
    known = np.array([label not in (None, "") for label in found.labels.tolist()])
    mine = known & (found.assignment.roles == role)
    if not mine.any():
        return None
    label, count = Counter(map(str, found.labels[mine].tolist())).most_common(1)[0]
    overall = np.mean([str(other) == label for other in found.labels[known].tolist()])
    return f"{shorten(label)}, {100 * count / mine.sum():.0f} % (of all nodes {100 * overall:.0f} %)"


def _example_cards(found: Findings) -> str:
    """Return one card per look-alike: two small networks and the reasons."""
    if not found.examples:
        return "<p>No two nodes are alike enough to show.</p>"
    cards = []
    for number, example in enumerate(found.examples):
        one, other = (escape(shorten(name)) for name in (example.a, example.b))
        reasons = "".join(f"<li>{escape(words)}</li>" for words in example.explanation.words[:_MAX_SENTENCES])
        color = COLORS[example.role % len(COLORS)]
        title = escape(found.roles.titles[example.role])
        cards.append(
            f'<div class="twins"><h3><i style="background:{color}"></i>{title}: {one} and {other}'
            f"<small>cosine {example.score:.2f}</small></h3>"
            f'<div id="twins-{number}" class="figure"></div><ul>{reasons}</ul></div>'
        )
    return "".join(cards)
