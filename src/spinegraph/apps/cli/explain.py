"""``spine explain``: why two nodes are alike, or not."""

import math
from collections.abc import Iterator
from html import escape as html_escape
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spinegraph.analysis.explain import (
    CONTENT,
    PLACE,
    STRUCTURE,
    Explanation,
    column_title,
    difference,
    percent,
    short_difference,
    titled,
)
from spinegraph.analysis.plots import FONT, INK, LINE, QUIET, explanation_figure
from spinegraph.atomic import whole_file

_WIDTH = 100
_BAR, _HALF = 28, 24
_COLUMNS, _STEPS = 6, 14
_OFFSET = 1e-3  # of DTW: below it values count as nothing
_COLORS = {CONTENT: "cyan", PLACE: "green", STRUCTURE: "magenta"}
_NEAR, _FAR = 0.1, 0.5  # relative differences up to which a step is matched well, or still passes


def print_explanation(
    found: Explanation, console: Console | None = None, *, words_only: bool = False
) -> None:
    """Print an explanation: words first, numbers after."""
    console = console or Console(highlight=False)
    if console.width > _WIDTH:
        console.width = _WIDTH
    if words_only:
        for sentence in found.words:
            console.print(escape(sentence))
        return
    first, *more = (sentence.replace(" %", "\u00a0%") for sentence in found.words)
    console.print(Text(f"{first}\n", style="bold"))
    for sentence in more:
        console.print(Padding(Text(sentence), (0, 0, 1, 2)))
    _print_section(console, "Where the similarity comes from", _parts(found))
    shared, apart = _columns(found)
    if shared.row_count:
        _print_section(console, "What makes them alike", shared)
    if apart.row_count:
        _print_section(console, "What sets them apart", apart)
    _print_section(console, "Side by side", _numbers(found))
    _print_section(console, "Profiles, matched step by step", Group(*_profile(found)))


def _print_section(console: Console, title: str, body: Table | Group) -> None:
    console.print(f"[bold]{title}[/bold]")
    console.print(Padding(body, (0, 0, 1, 2), expand=False))


def _parts(found: Explanation) -> Table:
    table = _table("", "alike", "apart", "of the vectors", "")
    largest = max(part.weight for part in found.parts)
    for part in found.parts:
        color = _COLORS.get(part.name, "white")
        bar = Text(_bar(max(part.alike, 0) / largest, _BAR), style=color)
        bar.append("░" * round(max(part.apart, 0) / largest * _BAR), style="dim")
        numbers = _decimals(part.alike), _decimals(part.apart), percent(part.weight)
        table.add_row(Text(part.name, style=color), *numbers, bar)
    table.add_row(
        "together", f"{found.similarity:.3f}", f"{1 - found.similarity:.3f}", "100 %", "", style="bold"
    )
    return table


def _columns(found: Explanation) -> tuple[Table, Table]:
    shared, apart = found.columns.shared(_COLUMNS), found.columns.apart(_COLUMNS)
    largest = max([*(column.alike for column in shared), *(column.apart for column in apart), 1e-9])
    tables = _table("", "adds", ""), _table("", "takes", "", "more of it at")
    for column in shared:
        name, bar = escape(column_title(column.name)), _bar(column.alike / largest, _BAR)
        tables[0].add_row(
            name,
            f"{column.alike:.3f}",
            Text(bar, style=_COLORS[STRUCTURE if column.is_structural else CONTENT]),
        )
    for column in apart:
        name, bar = escape(column_title(column.name)), _bar(column.apart / largest, _BAR)
        more = found.a.name if column.values[0] > column.values[1] else found.b.name
        tables[1].add_row(name, f"{column.apart:.3f}", Text(bar, style="yellow"), escape(more))
    return tables


def _numbers(found: Explanation) -> Table:
    a, b = found.a, found.b
    table = _table("", escape(a.name), escape(b.name))
    table.add_row("neighbours", f"{a.degree:,}", f"{b.degree:,}")
    for hop in range(2, len(a.hops) + 1):
        table.add_row(f"nodes within {hop} links", f"{a.hops[hop - 1]:,}", f"{b.hops[hop - 1]:,}")
    linked = [percent(node.clustering) if node.degree > 1 else "-" for node in (a, b)]
    table.add_row("pairs of neighbours that are linked", *linked)
    around = [f"{node.neighbor_degree:.1f}" if node.degree else "-" for node in (a, b)]
    table.add_row("neighbours of a neighbour, typically", *around)
    return table


def _profile(found: Explanation) -> Iterator[Table | Text]:
    yield Text(
        "A walk that starts at a node and keeps going back there: which share of its time it spends at the "
        "node itself, at the place it visits most next, and so on. Bars grow with the logarithm; green "
        "differs by up to 10 %, yellow by up to 50 %, red by more; a place that is matched again is pale.",
        style="dim",
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column(escape(found.a.name), justify="right")
    table.add_column("", justify="right", width=_HALF)
    table.add_column("", justify="left", width=_HALF)
    table.add_column(escape(found.b.name), justify="right")
    table.add_column("differ by", justify="right")
    steps = list(zip(found.warping.path.tolist(), found.warping.costs.tolist(), strict=True))
    before = (-1, -1)
    for (i, j), cost in steps[:_STEPS]:
        one, other = float(found.profiles[0, i]), float(found.profiles[1, j])
        color = "green" if cost <= _NEAR else "yellow" if cost <= _FAR else "red"
        # A place that is matched again is the same place: its bar stays pale.
        paints = [f"{color} dim" if old == new else color for old, new in zip(before, (i, j), strict=True)]
        table.add_row(
            Text(f"{100 * one:.1f} %", style="dim" if before[0] == i else ""),
            Text(_bar(_height(one), _HALF, flipped=True), style=paints[0]),
            Text(_bar(_height(other), _HALF), style=paints[1]),
            Text(f"{100 * other:.1f} %", style="dim" if before[1] == j else ""),
            short_difference(cost),
        )
        before = (i, j)
    yield table
    rest = [cost for _, cost in steps[_STEPS:]]
    if rest:
        yield Text(
            f"{len(rest)} more steps, which differ {difference(sum(rest) / len(rest))} on average",
            style="dim",
        )


def _decimals(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # no -0.000


def _height(value: float) -> float:
    """Return the length of a bar from 0 to 1: equal differences are equal ratios, as DTW counts them."""
    return math.log1p(value / _OFFSET) / math.log1p(1 / _OFFSET)


def _bar(share: float, width: int, *, flipped: bool = False) -> str:
    """Return a bar in eighths of a character, in halves where it grows to the left."""
    if flipped:
        halves = round(2 * width * share)
        return "▐" * (halves % 2) + "█" * (halves // 2)
    eighths = round(8 * width * share)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, title in enumerate(titles):
        is_number = place > 0 and title and title != "more of it at"
        table.add_column(title, justify="right" if is_number else "left", overflow="fold")
    return table


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
    title = html_escape(f"Why {titled(found.a.name)} and {titled(found.b.name)} are alike, or not")
    first, *more = (html_escape(sentence) for sentence in found.words)
    words = f'<p class="first">{first}</p>' + "".join(f"<p>{sentence}</p>" for sentence in more)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1>{words}{figure}<footer>{_FOOTER}</footer></body></html>"
    )
    with whole_file(path) as partial:
        partial.write_text(page, encoding="utf-8")


def explain(
    model: Annotated[Path, typer.Argument(help="A folder that fit or SPINE.save wrote.")],
    a: Annotated[str, typer.Argument(help="A node's name; 1:ann is ann of the second network.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Write words and figures to this file; it opens offline.")
    ] = None,
    graph: Annotated[Path | None, typer.Option(help="Edges of another network that holds the nodes.")] = None,
    features: Annotated[Path | None, typer.Option(help="With --graph: its node features.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the words alone.")] = False,
) -> None:
    """Say why two nodes are alike, or not: in words first, then in numbers.

    Example: spine explain model ann bob --html why.html
    """
    from spinegraph.analysis.explain import explain as explained
    from spinegraph.apps.cli.reading import ModelNodes

    nodes = ModelNodes.open(model, graph, features)
    first, second = nodes.find(a), nodes.find(b)
    generator = nodes.model.generator_
    found = explained(
        nodes.graph,
        generator,
        first,
        second,
        embeddings=nodes.embeddings,
        profile=generator.inputs.profile(nodes.graph),
    )
    if html is not None:
        write_page(found, html)
    if json:
        from json import dumps

        typer.echo(dumps(found.to_json(), indent=2, ensure_ascii=False))
        return

    print_explanation(found, words_only=quiet)
    if html is not None and not quiet:
        typer.echo(f"Figures: {html}")
