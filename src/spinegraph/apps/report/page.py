"""The page: findings as one HTML file with its scripts and figures inside."""

import json
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from spinegraph import __version__
from spinegraph.analysis import plots
from spinegraph.analysis.coloring import Coloring
from spinegraph.analysis.plot_nodes import RING_COLORS
from spinegraph.analysis.plot_style import FONT, INK, SCALE
from spinegraph.apps.report.cards import example_cards, notes_list, role_cards, settings_table, tiles
from spinegraph.apps.report.findings import Findings

# The page needs nothing from anywhere, and the browser is told to fetch nothing.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; worker-src blob:"
)


def page(model: Any, found: Findings, title: str) -> str:
    """Return the report as one HTML document.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.apps.report.findings import gather
    >>> model = SPINE(dim=8, steps=5).fit(made.karate())
    >>> page(model, gather(model, lambda *moment: None), "karate")[:15]
    '<!DOCTYPE html>'
    """
    from plotly.offline import get_plotlyjs

    assets = files("spinegraph.apps.report")
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
{_head(model, found, title)}
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


def _head(model: Any, found: Findings, title: str) -> str:
    return f"""<header><div class="inside">
<h1>{escape(title)}</h1>
<div class="lead">Where every node lives and what role it plays, by SPINE: nodes with like surroundings and
like roles have like vectors.</div>
{tiles(model, found)}
<nav><a href="#data-notes">Data</a><a href="#map-section">Map</a><a href="#roles">Roles</a>
<a href="#look-alikes">Look-alikes</a><a href="#fit">Fit</a></nav>
</div></header>"""


def _body(model: Any, found: Findings) -> str:
    return f"""<section id="data-notes"><h2>What to know about the data</h2>
{notes_list(found.notes)}</section>
<section id="map-section"><h2>Map</h2>
<p class="reading">Each dot is a node; dots that are close have like vectors. Distances across the whole map
and the axes mean little. {_sampled(found)}</p>
<div class="controls"><label>Colour <select id="color"></select></label>
<span id="finder"><label>Find <input id="find" type="search" placeholder="name of a node" autocomplete="off">
</label> <span id="found"></span></span></div>
<noscript><p>The figures need JavaScript, which is off.</p></noscript>
<div id="map" class="figure map"></div></section>
<section id="roles"><h2>Roles</h2>
<p class="reading">Groups of nodes that stand alike in the network, wherever they live. A node may play
several; it is counted where it fits best.</p>
{role_cards(found)}</section>
<section id="look-alikes"><h2>Look-alikes</h2>
<p class="reading">A typical node of a role and the node most like it that is not beside it, with the network
around each: {_key()}.</p>
{example_cards(found)}</section>
<section id="fit"><h2>Fit</h2><div class="pair">
<div><h3>Loss</h3><p class="reading">{_loss_in_words(model.history_)}</p>
<div id="loss" class="figure"></div></div>
<div><h3>Structural against embedding distance</h3><p class="reading">{_pairs_in_words(found)}</p>
<div id="distances" class="figure"></div></div>
</div></section>
<details><summary>Settings of the model</summary>{settings_table(model)}</details>"""


def _key() -> str:
    meanings = zip(RING_COLORS, ("the node", "its neighbours", "two steps away"), strict=True)
    return " ".join(
        f'<span class="key"><span class="ring" style="background:{color}"></span>{meaning}</span>'
        for color, meaning in meanings
    )


def _sampled(found: Findings) -> str:
    if len(found.shown) == len(found.graph):
        return ""
    return f"Shown are {len(found.shown):,} nodes, drawn at random from {len(found.graph):,}."


def _loss_in_words(history: list[Any]) -> str:
    if len(history) < 2:
        return "The history of training is too short to draw."
    first, last = history[0], history[-1]
    gap = last.held_out_loss - last.loss
    same = abs(gap) < 0.05 * abs(last.held_out_loss)
    end = (
        "Both end together: nothing was learned by heart."
        if same
        else "Pairs held out end apart from the rest."
    )
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
    for place, example in enumerate(found.examples):
        figures[f"twins-{place}"] = plots.twins(found.graph, example.a, example.b)
    for figure in figures.values():
        figure.update_layout(height=None, autosize=True)
    layout = plots.map(found.embeddings, places=np.zeros((len(found.embeddings), 2))).layout
    return {
        "map": {
            "x": _rounded(found.places[:, 0]),
            "y": _rounded(found.places[:, 1]),
            "names": [str(name) for name in found.graph.names[found.shown].tolist()],
            "roles": found.assignment.roles[found.shown].tolist(),
            "colorings": [_coloring(each) for each in found.colorings],
        },
        "roles": found.roles.titles,
        "scale": SCALE,
        "layout": {
            "font": {"family": FONT, "size": 13, "color": INK},
            "hoverlabel": layout.hoverlabel.to_plotly_json(),
        },
        "figures": {name: json.loads(figure.to_json()) for name, figure in figures.items()},
    }


def _coloring(found: Coloring) -> dict[str, Any]:
    if found.values is not None:
        return {"title": found.title, "values": _rounded(found.values, 4)}
    assert found.codes is not None
    return {
        "title": found.title,
        "codes": found.codes.tolist(),
        "groups": list(found.groups),
        "colors": list(found.colors),
    }


def _rounded(values: Any, digits: int = 3) -> list[float | None]:
    return [round(value, digits) if np.isfinite(value) else None for value in np.asarray(values).tolist()]


def _json(value: Any) -> str:
    """Return JSON that may stand inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
