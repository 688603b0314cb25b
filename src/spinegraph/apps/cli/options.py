"""Shared by several commands: options, progress, tables and output files."""

import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields
from datetime import timedelta
from functools import wraps
from pathlib import Path
from shlex import join
from typing import Annotated, Any, Literal

import typer
from rich import progress as bars
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from spinegraph.config import PARTS, Config, PaperConfig, check_weights
from spinegraph.errors import ParameterError, SpineWarning

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that fit or SPINE.save wrote.")]
Preset = Annotated[
    Literal["default", "paper"],
    typer.Option("--preset", help="paper: the paper's own method and values, some of which may be changed."),
]
STANDARD_OUTPUT = "-"
_MIN_CUT = 12  # fewest characters that the last column of a table is cut to


def read_parts(text: str) -> tuple[str, ...]:
    """Parse a list of parts such as ``content,role``."""
    names = tuple(name.strip() for name in text.split(","))
    if not set(names) <= set(PARTS):
        raise typer.BadParameter(f"expected some of {', '.join(PARTS)}, such as content,role; got {text!r}")
    return names


def read_weights(text: str) -> dict[str, float]:
    """Parse weights such as ``role=2,place=0.5``."""
    listed = [item.partition("=") for item in text.split(",")]
    try:
        fault, found = check_weights({name.strip(): float(number) for name, _, number in listed})
    except ValueError:
        fault = "not a number"
    if fault:
        raise typer.BadParameter(
            f"expected numbers >= 0 for {', '.join(PARTS)}, not all 0, such as role=2,place=0.5; got {text!r}"
        )
    return dict(found)


Weights = Annotated[
    Any,
    typer.Option(
        "--weights",
        parser=read_weights,
        metavar="PART=NUMBER,...",
        help="How much parts count, 1 by default: role=2,place=0.5.",
        show_default=False,
    ),
]


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the parameters of other functions to a command as options, and pass it what each one returns."""
    shared = {name: list(inspect.signature(make).parameters.values()) for name, make in makers.items()}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**given: Any) -> Any:
            made = {
                name: make(**{option.name: given.pop(option.name) for option in shared[name]})
                for name, make in makers.items()
            }
            return command(**given, **made)

        own = [one for one in inspect.signature(command).parameters.values() if one.name not in makers]
        options = [*own, *(one for options in shared.values() for one in options)]
        named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
        run.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return run

    return decorate


def some_settings(*names: str) -> Callable[..., dict[str, Any]]:
    """Return a function that takes some settings as options and returns those that were given."""

    def given(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    options = [_setting(field, None) for field in fields(Config) if field.name in names]
    given.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return given


def settings(preset: str = "default", **given: Any) -> Config | PaperConfig:
    """Return the settings of a preset with the given values."""
    changes = {name: value for name, value in given.items() if value is not None}
    if preset != "paper":
        return Config(**changes).check()
    for name in changes:
        if name not in _PAPER:
            option = f"--{name.replace('_', '-')}"
            raise ParameterError(f"{option} is not a setting of the paper's method; leave it out")
    return PaperConfig(**changes).check()


def _setting(field: Field[Any], panel: str | None) -> inspect.Parameter:
    """Return the option for one setting, None unless given."""
    choices, text = field.metadata["choices"], field.metadata["help"].replace("`", "")
    kind: Any = field.type if choices is None else Literal[choices]
    parser, metavar = _PARSERS.get(field.name, (None, None))
    if parser is not None:
        kind, text = str, text.partition(": {")[0]
    if choices is None:
        text = f"{text[0].upper()}{text[1:]}"
    else:
        text = f"{', '.join(choices[:-1])} or {choices[-1]}: {text}"
    default = "" if field.default is None else f" Default {_shown(field.default)}."
    paper = _PAPER.get(field.name, field.default)
    name = field.name.replace("_", "-")
    option = typer.Option(
        f"--{name}/--no-{name}" if kind is bool else f"--{name}",
        help=f"{text}.{default}{f' Paper {_shown(paper)}.' * (paper != field.default)}",
        metavar=metavar or ("NAME" if choices or kind in (str, str | None) else "NUMBER"),
        parser=parser,
        show_default=False,
        rich_help_panel=panel,
    )
    return _keyword(field.name, Annotated[kind | None, option], None)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_PARSERS = {"parts": (read_parts, "PART,..."), "weights": (read_weights, "PART=NUMBER,...")}
_PAPER = {field.name: field.default for field in fields(PaperConfig)}
settings.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        _keyword("preset", Preset, "default"),
        *(_setting(field, f"Settings: {field.metadata['group'].lower()}") for field in fields(Config)),
    ]
)


Report = Callable[[str, int, int], None]  # stage, done, total (0 if unknown)
_LINE_EVERY = 10.0  # seconds between lines within a stage


@contextmanager
def shown_progress(console: Console | None = None, *, quiet: bool = False) -> Iterator[Report]:
    """Yield a callback that shows the stages of a long job: a bar on a terminal, lines elsewhere.

    With ``quiet`` nothing is shown, not even notes.
    """
    console = console or Console(stderr=True, highlight=False)
    if quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpineWarning)
            yield lambda stage, done, total: None
    elif console.is_terminal:
        times = bars.TaskProgressColumn(), bars.TimeElapsedColumn(), bars.TimeRemainingColumn()
        stage = bars.SpinnerColumn(), bars.TextColumn("{task.description}"), bars.BarColumn(bar_width=24)
        with bars.Progress(*stage, *times, console=console, transient=True) as progress:
            yield _bar_callback(progress)
    else:
        yield _line_callback(console)


def _bar_callback(progress: bars.Progress) -> Report:
    """Return a callback that shows the current stage as a bar."""
    current, task = "", progress.add_task("")

    def report(stage: str, done: int, total: int) -> None:
        nonlocal current, task
        if stage != current:
            progress.remove_task(task)
            current, task = stage, progress.add_task(stage, total=None)
        progress.update(task, completed=done, total=total or None)

    return report


def _line_callback(console: Console) -> Report:
    """Return a callback that prints a line when a stage begins and every ten seconds while it lasts."""
    start = time.perf_counter()
    current, began, printed, first = "", start, start, 0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal current, began, printed, first
        now, text = time.perf_counter(), stage
        if stage != current:
            current, began, first = stage, now, done
        elif done < total and now - printed >= _LINE_EVERY:
            left = (now - began) * (total - done) / max(done - first, 1)
            text = f"{stage}: {done:,} of {total:,}, {timedelta(seconds=round(left))} left"
        else:
            return
        printed = now
        console.print(f"{now - start:5.1f} s  {text}", markup=False, soft_wrap=True)

    return report


def print_json(facts: Any, *, err: bool = False) -> None:
    """Print plain values as JSON."""
    from json import dumps

    typer.echo(dumps(facts, indent=2, ensure_ascii=False), err=err)


def print_table(
    heading: str, titles: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", *, bold: int = -1
) -> None:
    """Print a titled table with a note; text is left-aligned, and the last column is cut to the terminal.

    ``bold`` is the index of a row to emphasise.
    """
    console = Console(highlight=False)
    if heading:
        console.print(f"[bold]{escape(heading)}[/bold]", soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = list(zip(titles, *rows, strict=True)) if rows else []
    for title, *cells in columns:
        words = sum(any(sign.isalpha() or sign == "█" for sign in cell) for cell in cells)
        is_text = 2 * words > sum(map(bool, cells))
        table.add_column(escape(title), justify="left" if is_text else "right", overflow="fold")
    widths = [max(1, *(len(line) for cell in column for line in cell.split("\n"))) for column in columns]
    is_file = not console.is_terminal and "COLUMNS" not in os.environ  # then nothing is cut
    wide = Console(highlight=False, width=sum(widths) + 2 * len(widths) + 2) if is_file else console
    left = max(wide.width - 2 - sum(widths[:-1]) - 2 * len(widths[:-1]), _MIN_CUT)
    for number, (*cells, last) in enumerate(rows):
        cut = last if len(last) <= left else f"{last[: left - 1]}…"
        table.add_row(*map(escape, (*cells, cut or " ")), style="bold" if number == bold else "")
    if rows:
        wide.print(Padding(table, (0, 0, 1, 2), expand=False))
    for line in note.splitlines():
        console.print(Padding(escape(line).replace(" %", "\u00a0%"), (0, 0, 0, 2)))


def print_facts(name: str, facts: dict[str, str]) -> None:
    """Print a name and facts about it."""
    console = Console(highlight=False)
    if name:
        console.print(f"[bold]{escape(name)}[/bold]", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    for title, text in facts.items():
        grid.add_row(f"  {title}", escape(text))
    console.print(grid)


def print_next(*commands: Sequence[str]) -> None:
    """Print commands to try next, ready to paste."""
    typer.echo("\n".join(["Next:", *(f"  spine {join(words)}" for words in commands)]))


def require_free(folder: Path, *, is_replaced: bool) -> None:
    """Raise if a folder already holds a model, unless it is to be replaced."""
    from spinegraph.storage.model_folder import CONFIG, require_replaceable

    require_replaceable(folder)
    if not is_replaced and (folder / CONFIG).exists():
        raise ParameterError(f"{folder}: holds a model; add --force to replace it, or name another --output")


def write_table(output: str | Path, columns: dict[str, Any]) -> None:
    """Write columns as Parquet or CSV atomically; ``-`` prints CSV."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    from spinegraph.atomic import whole_file

    table = pa.table(columns)
    if str(output) == STANDARD_OUTPUT:
        csv.write_csv(table, sys.stdout.buffer)
        return
    with whole_file(output) as partial:
        write: Any = parquet.write_table if Path(output).suffix == ".parquet" else csv.write_csv
        write(table, partial)
