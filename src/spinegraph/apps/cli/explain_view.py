"""How ``spine explain`` shows an explanation in the terminal."""

import math
from collections.abc import Iterator

from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from spinegraph.analysis.explain import Explanation
from spinegraph.analysis.explain_parts import CONTENT, PLACE, STRUCTURE
from spinegraph.analysis.explain_words import column_title, difference, percent, short_difference

_WIDTH = 100
_BAR, _HALF = 28, 24
_COLUMNS, _STEPS = 6, 14
_OFFSET = 1e-3  # of DTW: below it values count as nothing
_COLORS = {CONTENT: "cyan", PLACE: "green", STRUCTURE: "magenta"}
_NEAR, _FAR = 0.1, 0.5  # relative differences up to which a step is matched well, or still passes


def print_explanation(
    found: Explanation, console: Console | None = None, *, words_only: bool = False
) -> None:
    """Print an explanation: words first, numbers after.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.analysis.explain import explain
    >>> club = made.karate()
    >>> found = explain(club, SPINE(dim=8, steps=5).fit(club).generator_, 0, 33)
    >>> print_explanation(found, Console(width=100), words_only=True)
    Node 0 and node 33 are...
    """
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
