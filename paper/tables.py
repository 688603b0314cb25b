"""Stored cells as numbers and as Markdown, the paper's beside ours, and the page about all items."""

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper.cells import Item, Measure, Results

EXACT = "exact"  # a ratio whose lower part is zero
_JUDGED = {  # item: measures by which SPINE is compared with every row; higher is better
    "table1": ("accuracy",),
    "table2": ("accuracy", "strict"),
    "ppi": ("micro", "macro"),
    "mirror": ("ratio",),
    "perturbation": ("ratio",),
    "mirror-inductive": ("ratio",),
    "correlation": ("Pearson",),
}


def summary(item: Item, results: Results) -> dict[str, Any]:
    """Return every row of an item as plain values, JSON can hold them: paper, mean, deviation, seeds."""
    rows = []
    for case in item.cases:
        for name in item.rows:
            found = results.seeds(item.name, case, name)
            for measure in item.measures if found else ():
                if any(measure.key in values for values in found.values()):
                    rows.append(_entry(item, case, name, measure, found))
    return {"item": item.name, "title": item.title, "rows": rows}


def _entry(item: Item, case: str, name: str, measure: Measure, found: dict[int, Any]) -> dict[str, Any]:
    found = {seed: entry for seed, entry in found.items() if measure.key in entry}
    values = [entry[measure.key] for entry in found.values()]
    numbers = [measure.scale * value for value in values if value is not None]
    return {
        "case": case,
        "row": name,
        "measure": measure.key,
        "paper": item.paper.get((name, case, measure.key)),
        "mean": float(np.mean(numbers)) if len(numbers) == len(values) else EXACT,
        "deviation": float(np.std(numbers, ddof=1)) if len(numbers) == len(values) > 1 else None,
        "seeds": sorted(found),
        "values": [measure.scale * value if value is not None else EXACT for value in values],
    }


def markdown(item: Item, results: Results) -> str:
    """Return an item's tables: one per measure and network, methods down, settings across."""
    entries = summary(item, results)["rows"]
    if not entries:
        return "*No cell of this item has been measured yet.*"
    known = {(entry["measure"], entry["row"], entry["case"]): entry for entry in entries}
    if len(item.cases) == 1:
        return _one_case(item, known)
    parts = []
    for measure in item.measures:
        for network, cases in _by_network(item.cases).items():
            rows = [name for name in item.rows if any((measure.key, name, case) in known for case in cases)]
            if rows:
                title = measure.title if network == "" else f"{network}: {measure.title}"
                parts += [f"**{title}**", _table(item, measure, cases, rows, known)]
    return "\n\n".join(parts)


def _one_case(item: Item, known: dict[tuple[str, str, str], Any]) -> str:
    """Return the table of a single data set: methods down, measures across; or one method's measures down."""
    (case,) = item.cases
    rows = [
        name for name in item.rows if any((measure.key, name, case) in known for measure in item.measures)
    ]
    columns = [
        [_paper(item, measure, name, case), _text(known.get((measure.key, name, case)), measure)]
        for name in rows
        for measure in item.measures
    ]
    if len(item.rows) == 1:
        lines = [["", "paper", "ours"], ["---", "--:", "--:"]]
        lines += [[measure.title, *pair] for measure, pair in zip(item.measures, columns, strict=True)]
    else:
        wide = len(item.measures)
        heads = [[f"{measure.title}: paper", "ours"] for measure in item.measures]
        lines = [["method", *(text for head in heads for text in head)], ["---", *["--:"] * (2 * wide)]]
        for number, name in enumerate(rows):
            lines.append(
                [name, *(text for pair in columns[number * wide : (number + 1) * wide] for text in pair)]
            )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(entry: dict[str, Any] | None, measure: Measure) -> str:
    return "" if entry is None else _ours(entry, measure)


def _by_network(cases: Sequence[str]) -> dict[str, list[str]]:
    """Return cases of two words by their first, others together."""
    found: dict[str, list[str]] = {}
    for case in cases:
        found.setdefault(case.split()[0] if " " in case else "", []).append(case)
    return found


def _table(
    item: Item, measure: Measure, cases: list[str], rows: list[str], known: dict[tuple[str, str, str], Any]
) -> str:
    """Return one table: lines are methods, or settings where those are many and methods few."""
    has_paper = any((name, case, measure.key) in item.paper for name in rows for case in cases)
    has_paper = has_paper or any(name in item.figure_only for name in rows)
    best = {case: _best([known.get((measure.key, name, case)) for name in rows]) for case in cases}
    head, rule = ["method"], ["---"]
    for case in cases:
        label = case.split(maxsplit=1)[-1]
        head += [f"{label}, paper", f"{label}, ours"] if has_paper else [label]
        rule += ["--:", "--:"] if has_paper else ["--:"]
    lines = [head, rule]
    for name in rows:
        line = [name]
        for case in cases:
            entry = known.get((measure.key, name, case))
            if has_paper:
                line.append(_paper(item, measure, name, case))
            text = _text(entry, measure)
            is_best = entry is not None and entry["mean"] == best[case] and len(rows) > 1
            line.append(f"**{text}**" if is_best else text)
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _paper(item: Item, measure: Measure, name: str, case: str) -> str:
    value = item.paper.get((name, case, measure.key))
    if value is not None:
        return f"{value:.{measure.digits}f}"
    return "figure only" if name in item.figure_only else ""


def _best(entries: list[Any]) -> Any:
    means = [entry["mean"] for entry in entries if entry is not None]
    return EXACT if EXACT in means else max(means, default=None)


def _ours(entry: dict[str, Any], measure: Measure) -> str:
    """Return a row's mean and deviation, with the number of seeds."""
    if entry["mean"] == EXACT:
        return EXACT
    text = f"{entry['mean']:.{measure.digits}f}"
    if entry["deviation"] is not None:
        text += f" ± {entry['deviation']:.{measure.digits}f}"
    return f"{text} ({len(entry['seeds'])})"


def paired(item: Item, results: Results, measure: Measure, beside: str = "SPINE") -> list[dict[str, Any]]:
    """Return, for each case and row, how far ``beside`` is above it over the seeds that both have.

    A row that needs no seed is held against every one. ``verdict`` is above or below where the mean
    difference is more than its standard error, else level; one seed decides nothing.
    """
    found = []
    for case in item.cases:
        one = results.seeds(item.name, case, beside)
        for name in item.rows:
            other = results.seeds(item.name, case, name)
            if name == beside or not one or not other:
                continue
            seeds = [seed for seed in one if seed in other or item.seeds(name, "full") == 1]
            fallback = next(iter(other.values()))
            pairs = [
                (one[seed].get(measure.key), other.get(seed, fallback).get(measure.key)) for seed in seeds
            ]
            differences = [a - b for a, b in pairs if a is not None and b is not None]
            if len(differences) < 2:
                continue
            mean = measure.scale * float(np.mean(differences))
            error = measure.scale * float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
            verdict = "above" if mean > error else "below" if mean < -error else "level"
            found.append(
                {
                    "case": case,
                    "row": name,
                    "mean": mean,
                    "error": error,
                    "verdict": verdict,
                    "seeds": len(differences),
                }
            )
    return found


def page(items: Iterable[Item], results: Results, path: Path) -> str:
    """Return the page about all items as Markdown; links to figures are relative to ``path``, the page."""
    items = list(items)
    figures = Path(os.path.relpath(results.folder.absolute(), path.absolute().parent)).as_posix()
    parts = [notes("introduction"), coverage(items, results)]
    for item in items:
        parts += [f"## {item.title}", notes(item.name), markdown(item, results)]
        if (results.folder / f"{item.name}.svg").exists():
            parts.append(f"![{item.title}]({figures}/{item.name}.png)")
        parts.append(verdicts(item, results))
    parts.append(notes("departures"))
    return "\n\n".join(part for part in parts if part) + "\n"


def notes(name: str) -> str:
    """Return the text about an item: what the paper and its code do, what we found."""
    path = Path(__file__).with_name("notes") / f"{name}.md"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def coverage(items: Iterable[Item], results: Results) -> str:
    """Return the table of how many cells of a full run are measured."""
    lines = ["| item | cells of a full run | measured |", "|---|--:|--:|"]
    for item in items:
        wanted = item.cells("full")
        lines.append(f"| `{item.name}` | {len(wanted)} | {sum(map(results.has, wanted))} |")
    return "\n".join(lines)


def verdicts(item: Item, results: Results) -> str:
    """Return the table of rows that SPINE does not exceed, paired over seeds."""
    measures = {measure.key: measure for measure in item.measures}
    lines = []
    for key in _JUDGED.get(item.name, ()):
        found = paired(item, results, measures[key])
        rows = [entry for entry in found if not entry["row"].startswith("SPINE")]
        if not rows:
            continue
        for entry in rows:
            if entry["verdict"] == "above":
                continue
            lines.append(
                f"| {entry['case']} | {measures[key].title} | {entry['row']} | {entry['mean']:+.2f} ± "
                f"{entry['error']:.2f} | {entry['verdict']} | {entry['seeds']} |"
            )
        above = sum(entry["verdict"] == "above" for entry in rows)
        lines.append(f"| | {measures[key].title} | *above in {above} of {len(rows)} comparisons* | | | |")
    if not lines:
        return ""
    head = [
        "**Rows that SPINE does not exceed** (SPINE minus the row, paired over seeds, with standard error)",
        "",
    ]
    head += ["| case | measure | row | difference | SPINE is | seeds |", "|---|---|---|--:|---|--:|"]
    return "\n".join([*head, *lines])
