"""The page about all items: what the paper says, what we get, and where SPINE does not win."""

import os
from importlib.resources import files
from pathlib import Path

from paper.cells import Cells
from paper.item import Item
from paper.items import item
from paper.names import NAMES
from paper.tables import markdown, paired
from spinegraph.atomic import whole_file

_JUDGED = {  # item: measures by which SPINE is held against every row, higher is better
    "table1": ("accuracy",),
    "table2": ("accuracy", "strict"),
    "ppi": ("micro", "macro"),
    "mirror": ("ratio",),
    "perturbation": ("ratio",),
    "mirror-inductive": ("ratio",),
    "correlation": ("Pearson",),
}


def write_page(folder: str | Path, path: str | Path) -> None:
    """Write the page from the cells of a folder; figures are linked where they lie."""
    with whole_file(path) as partial:
        text = page(folder, _linked(Path(folder), Path(path)))
        partial.write_text(text, encoding="utf-8")


def page(folder: str | Path, figures: str) -> str:
    """Return the page as Markdown; ``figures`` is the way from the page to the folder."""
    cells = Cells(folder)
    parts = [notes("introduction"), coverage(cells)]
    for name in NAMES:
        one = item(name)
        parts += [f"## {one.title}", notes(name), markdown(one, cells)]
        if (Path(folder) / f"{name}.svg").exists():
            parts.append(f"![{one.title}]({figures}/{name}.png)")
        verdict = verdicts(one, cells)
        if verdict:
            parts.append(verdict)
    parts.append(notes("departures"))
    return "\n\n".join(part for part in parts if part) + "\n"


def notes(name: str) -> str:
    """Return what was written by hand about an item: what the paper and its code do, what we found."""
    found = files("paper") / "notes" / f"{name}.md"
    return found.read_text(encoding="utf-8").strip() if found.is_file() else ""


def coverage(cells: Cells) -> str:
    """Say how many cells of a full run are there."""
    lines = ["| item | cells of a full run | measured |", "|---|--:|--:|"]
    for name in NAMES:
        one = item(name)
        wanted = one.cells("full")
        done = sum(cells.read(cell, one.version(cell.case, cell.method)) is not None for cell in wanted)
        lines.append(f"| `{name}` | {len(wanted)} | {done} |")
    return "\n".join(lines)


def verdicts(one: Item, cells: Cells) -> str:
    """Say plainly where SPINE is not above a row, paired over seeds."""
    measures = {measure.key: measure for measure in one.measures}
    lines = []
    for key in _JUDGED.get(one.name, ()):
        found = paired(one, cells, measures[key])
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
        "**Where SPINE is not above a row** (SPINE less the row, paired over seeds, with its standard error)",
        "",
    ]
    head += ["| case | measure | row | difference | SPINE is | seeds |", "|---|---|---|--:|---|--:|"]
    return "\n".join([*head, *lines])


def _linked(folder: Path, path: Path) -> str:
    """Return the way from a page to a folder."""
    return Path(os.path.relpath(folder.absolute(), path.absolute().parent)).as_posix()
