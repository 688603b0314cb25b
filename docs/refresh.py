"""Write into the pages what the code decides: settings, commands, faults, and the demo's table.

Run by hand after defaults have changed: ``python docs/refresh.py``. The tests say when that is needed.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

from spinegraph.apps.cli.app import COMMANDS, load
from spinegraph.apps.cli.demo import run_demo
from spinegraph.config import Config, PaperConfig

ROOT = Path(__file__).parent.parent
LIST = re.compile(r"(?<=<!-- commands -->\n).*?(?=<!-- end of commands -->)", re.DOTALL)
EXAMPLE = re.compile(r"^Example: (spine .+(?:\n.+)*)", re.MULTILINE)
TABLE = re.compile(r"(?<=<!-- demo table -->\n).*?(?=<!-- end of demo table -->)", re.DOTALL)


def examples(name: str) -> list[str]:
    """Return the examples in the help of a command and of its subcommands."""
    command = load(name)
    texts = [one.help or "" for one in (command, *getattr(command, "commands", {}).values())]
    return [" ".join(found.split()) for text in texts for found in EXAMPLE.findall(text)]


def parameters(page: str) -> str:
    """Return the page with its tables of settings: those of SPINE by groups, those of SPINE.paper in one."""
    begin, _, paper = page.partition("<!-- settings -->\n")
    paper = paper[paper.index("## SPINE.paper") :].partition("<!-- paper -->\n")[0]
    lines = []
    for group, settings in groupby(fields(Config), key=lambda field: field.metadata["group"]):
        lines += [f"## {group}", "", *_table(settings), ""]
    listed = "\n".join(_table(fields(PaperConfig)))
    return f"{begin}<!-- settings -->\n" + "\n".join([*lines, f"{paper}<!-- paper -->\n{listed}\n"])


def _table(settings: Iterable[Any]) -> list[str]:
    lines = ["| setting | default | what it changes | when to touch it |", "|---|---|---|---|"]
    for field in settings:
        about = field.metadata
        lines += [f"| `{field.name}` | {field.default!r} | {about['help']} | {about['when']} |"]
    return lines


def commands(page: str) -> str:
    """Return the page with the table of commands, each with the examples of its help."""
    lines = ["| command | what it does | example |", "|---|---|---|"]
    for name, purpose in COMMANDS.items():
        shown = "<br>".join(f"`{example}`" for example in examples(name))
        lines += [f"| `{name}` | {purpose} | {shown} |"]
    return LIST.sub(lambda found: "".join(f"{line}\n" for line in lines), page)


def counts(page: str) -> str:
    """Return the page with the numbers of faults injected and of inputs tried."""
    for name, unit in (("faults", "faults injected"), ("fuzz", "inputs tried")):
        found = json.loads((ROOT / "tests" / "faults" / f"{name}.json").read_text())
        rows = {key: value["inputs"] if isinstance(value, dict) else value for key, value in found.items()}
        lines = [f"| | {unit} |", "|---|--:|", *(f"| {key} | {value:,} |" for key, value in rows.items())]
        lines.append(f"| **in all** | **{sum(rows.values()):,}** |")
        pattern = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)
        page = pattern.sub("".join(f"{line}\n" for line in lines), page)
    return page


def demo_table(demo: dict[str, Any]) -> str:
    """Return the demo's scores as a table of Markdown."""
    titles = ("vectors", "departments, fitted", "departments, unseen", "roles, fitted", "roles, unseen")
    lines = [f"| {' | '.join(titles)} |", "|---" + "|--:" * 4 + "|"]
    for place, score in enumerate(demo["scores"]):
        name, *values = score.values()
        cells = [name, *("cannot" if value is None else f"{100 * value:.1f}" for value in values)]
        lines.append(f"| {' | '.join(f'**{cell}**' if place == 0 else cell for cell in cells)} |")
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    page, index = ROOT / "docs" / "parameters.md", ROOT / "docs" / "index.md"
    page.write_text(parameters(page.read_text()))
    command = ROOT / "docs" / "command.md"
    command.write_text(commands(command.read_text()))
    reliability = ROOT / "docs" / "reliability.md"
    reliability.write_text(counts(reliability.read_text()))
    table = demo_table(run_demo(lambda stage, done, total: None))
    index.write_text(TABLE.sub(lambda found: table, index.read_text()))
