"""An explanation as one page that opens offline: words, figures, numbers."""

from html import escape
from pathlib import Path

from spinegraph.analysis.explain import Explanation
from spinegraph.analysis.explain_figure import explanation_figure
from spinegraph.analysis.explain_words import titled
from spinegraph.analysis.plot_style import FONT, INK, LINE, QUIET
from spinegraph.atomic import whole_file

_STYLE = f"""
body {{ font: 16px/1.55 {FONT}; color: {INK}; max-width: 60rem; margin: 2.5rem auto; padding: 0 1.25rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; }}
p {{ margin: .5rem 0; }} p.first {{ font-size: 1.15rem; }}
footer {{ color: {QUIET}; font-size: .85rem; border-top: 1px solid {LINE}; padding-top: 1rem; }}
"""
_FOOTER = (
    "Similarity is the cosine of the two vectors. Every input of the model has a share of it, and the shares "
    "add up: <b>content</b> is what describes the nodes around each of the two, <b>place</b> what both see "
    "at the same nodes, <b>structure</b> the shape of the links. A profile is how a walk that keeps going "
    "back to its start spends its time, largest share first."
)


def write_page(found: Explanation, path: Path) -> None:
    """Write the page, whole or not at all."""
    from plotly.io import to_html

    figure = to_html(
        explanation_figure(found), include_plotlyjs=True, full_html=False, config={"displaylogo": False}
    )
    title = escape(f"Why {titled(found.a.name)} and {titled(found.b.name)} are alike, or not")
    first, *more = (escape(sentence) for sentence in found.words)
    words = f'<p class="first">{first}</p>' + "".join(f"<p>{sentence}</p>" for sentence in more)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1>{words}{figure}<footer>{_FOOTER}</footer></body></html>"
    )
    with whole_file(path) as partial:
        partial.write_text(page, encoding="utf-8")
