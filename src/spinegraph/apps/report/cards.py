"""Parts of the page in plain HTML: figures at the top, notes, role cards, look-alikes, settings."""

from collections import Counter
from html import escape
from typing import Any

import numpy as np

from spinegraph.analysis.plot_style import COLORS
from spinegraph.apps.report.findings import Findings
from spinegraph.apps.report.quality import Note

_SENTENCES = 6


def tiles(model: Any, found: Findings) -> str:
    """Return the numbers at the top of the page."""
    features = 0 if found.graph.features is None else found.graph.features.shape[1]
    last = model.history_[-1] if model.history_ else None
    listed = [
        (f"{len(found.graph):,}", "nodes"),
        (f"{found.graph.num_edges:,}", "edges"),
        (f"{features:,}", "features"),
        (f"{found.embeddings.dim:,}", "numbers a vector"),
        (f"{len(found.roles)}", "role" if len(found.roles) == 1 else "roles"),
    ]
    if last is not None:
        listed.append((f"{last.step:,}", "training steps"))
    items = "".join(f"<li><b>{value}</b><span>{name}</span></li>" for value, name in listed)
    return f'<ul class="tiles">{items}</ul>'


def notes_list(notes: list[Note]) -> str:
    """Return the remarks on the data as a list.

    Examples
    --------
    >>> notes_list([])
    '<p>Nothing stands out: ...'
    """
    if not notes:
        return "<p>Nothing stands out: one connected piece, no gaps, nothing merged or dropped.</p>"
    items = "".join(
        f'<li class="{note.level}">{escape(note.text)} <em>{escape(note.advice)}</em></li>' for note in notes
    )
    return f'<ul class="notes">{items}</ul>'


def role_cards(found: Findings) -> str:
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
    rows = [
        (
            "neighbours",
            f"{low:,} to {high:,}, in the middle {typical.neighbors:,}" if low < high else f"{low:,}",
        )
    ]
    if typical.acquainted is not None:
        rows.append(("know each other", f"{100 * typical.acquainted:.0f} % of their pairs"))
    if typical.communities is not None:
        rows.append(("communities", f"{typical.communities:.1f} among them"))
    names = [_short(name) for name in found.assignment.examples(role)]
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
    all_in_all = np.mean([str(other) == label for other in found.labels[known].tolist()])
    return f"{_short(label)}, {100 * count / mine.sum():.0f} % (of all nodes {100 * all_in_all:.0f} %)"


def example_cards(found: Findings) -> str:
    """Return one card per look-alike: two small networks and the reasons."""
    if not found.examples:
        return "<p>No two nodes are alike enough to show.</p>"
    cards = []
    for place, example in enumerate(found.examples):
        one, other = (escape(_short(name)) for name in (example.a, example.b))
        reasons = "".join(f"<li>{escape(words)}</li>" for words in example.explanation.words[:_SENTENCES])
        color = COLORS[example.role % len(COLORS)]
        title = escape(found.roles.titles[example.role])
        cards.append(
            f'<div class="twins"><h3><i style="background:{color}"></i>{title}: {one} and {other}'
            f"<small>cosine {example.score:.2f}</small></h3>"
            f'<div id="twins-{place}" class="figure"></div><ul>{reasons}</ul></div>'
        )
    return "".join(cards)


def settings_table(model: Any) -> str:
    """Return every setting of the model and its value."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in model.config_.to_json().items()
    )
    return f'<div class="settings"><table>{rows}</table></div>'


def _short(name: object, most: int = 60) -> str:
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"
