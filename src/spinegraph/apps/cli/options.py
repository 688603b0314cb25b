"""What several commands share: options, progress, tables and output files."""

import csv
import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from spinegraph.config import Config
from spinegraph.errors import MissingFileError, ParameterError, SpineWarning

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that fit or SPINE.save wrote.")]
GraphFeatures = Annotated[Path | None, typer.Option(metavar="FILE", help="With --graph: its node features.")]
CheckpointFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Save training states here, to resume an interrupted run.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume from the newest state in that folder.")]
Preset = Annotated[
    Literal["default", "paper"],
    typer.Option("--preset", help="Begin with these values; other options change them."),
]
STANDARD_OUTPUT = "-"


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the parameters of other functions to a command, as options; it gets what each function returns."""
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
    """Return a function whose options are some settings; it returns those that were given."""

    def given(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    options = [_setting(field, None) for field in fields(Config) if field.name in names]
    given.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return given


def settings(preset: str = "default", **given: Any) -> Config:
    """Return the settings of a preset, changed where a value is given."""
    changes = {name: value for name, value in given.items() if value is not None}
    return (Config.paper if preset == "paper" else Config)(**changes).check()


def _setting(field: Field[Any], panel: str | None) -> inspect.Parameter:
    """Return the option of one setting; None where it is not given."""
    choices, text = field.metadata["choices"], field.metadata["help"].replace("`", "")
    kind: Any = field.type if choices is None else Literal[choices]
    if choices is None:
        text = f"{text[0].upper()}{text[1:]}"
    else:
        text = f"{', '.join(choices[:-1])} or {choices[-1]}: {text}"
    default, paper = (
        f"{value:g}" if isinstance(value, float) else str(value)
        for value in (field.default, field.metadata["paper"])
    )
    option = typer.Option(
        f"--{field.name.replace('_', '-')}",
        help=f"{text}. Default {default}{f'; paper {paper}' * (paper != default)}.",
        metavar="NAME" if choices or kind in (str, str | None) else "NUMBER",
        show_default=False,
        rich_help_panel=panel,
    )
    return _keyword(field.name, Annotated[kind | None, option], None)


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_PANELS = {field.name: f"Settings: {field.metadata['group'].lower()}" for field in fields(Config)}
settings.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        _keyword("preset", Preset, "default"),
        *(_setting(field, _PANELS[field.name]) for field in fields(Config)),
    ]
)


Report = Callable[[str, int, int], None]  # stage, done, total (0 where unknown)
_LINE_EVERY = 10.0  # seconds, within a stage


@contextmanager
def shown_progress(console: Console | None = None, *, quiet: bool = False) -> Iterator[Report]:
    """Yield a callback that shows the stages of a long job: a bar on a terminal, lines elsewhere.

    With ``quiet`` nothing is shown, and no notes either.
    """
    console = console or Console(stderr=True, highlight=False)
    if quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpineWarning)
            yield lambda stage, done, total: None
    elif console.is_terminal:
        times = (TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), *times)
        with Progress(*columns, console=console, transient=True) as progress:
            yield _bar_callback(progress)
    else:
        yield _line_callback(console)


def _bar_callback(progress: Progress) -> Report:
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
    """Return a callback that prints a line when a stage begins, and every ten seconds while it lasts."""
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


def require_checkpoint(checkpoint: Path | None, resume: bool) -> None:
    """Refuse --resume without a folder, and a folder with training states without --resume."""
    if resume and checkpoint is None:
        raise typer.BadParameter("needs --checkpoint DIR, the folder to resume from", param_hint="--resume")
    if checkpoint is not None and not resume and _has_state(checkpoint):
        raise ParameterError(
            f"{checkpoint}: holds training states; add --resume to resume, or name another folder"
        )


@contextmanager
def interruptible(checkpoint: Path | None) -> Iterator[None]:
    """Add to an interrupt how the run can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        advice = "nothing was written; with --checkpoint DIR an interrupted run can be resumed"
        if checkpoint is not None and _has_state(checkpoint):
            advice = f"the training state is in {checkpoint}; run the same command with --resume"
        raise KeyboardInterrupt(advice) from None


def _has_state(checkpoint: Path) -> bool:
    return any(checkpoint.glob("*.safetensors"))


def print_json(facts: Any, *, err: bool = False) -> None:
    """Print plain values as JSON."""
    from json import dumps

    typer.echo(dumps(facts, indent=2, ensure_ascii=False), err=err)


def plain_table(*titles: str, align: str = "", header_style: str = "bold") -> Table:
    """Return a table without lines; ``align`` has l or r for each column, by default l and then r."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=header_style)
    for title, side in zip(titles, align or f"l{'r' * (len(titles) - 1)}", strict=True):
        table.add_column(title, justify="left" if side == "l" else "right", overflow="fold")
    return table


def require_output(output: str | Path, endings: tuple[str, ...], what: str) -> None:
    """Refuse a file with an unknown ending, or in a folder that is missing or not writable."""
    from spinegraph.atomic import require_writable

    path = Path(output)
    if str(output) == STANDARD_OUTPUT:
        return
    if path.suffix not in endings:
        raise ParameterError(f"{output}: {what} are written as {', '.join(endings)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {path.parent}; make it first")
    require_writable(path)


def write_table(output: str | Path, titles: Sequence[str], columns: Sequence[Any], float_format: str) -> None:
    """Write columns as Parquet or CSV, whole or not at all; ``-`` prints CSV."""
    from spinegraph.atomic import whole_file

    def write_csv(file: Any) -> None:
        values = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
        texts = [
            [format(one, float_format) if isinstance(one, float) else one for one in column]
            for column in values
        ]
        table = csv.writer(file, lineterminator="\n")
        table.writerow(titles)
        table.writerows(zip(*texts, strict=True))

    if str(output) == STANDARD_OUTPUT:
        write_csv(sys.stdout)
        return
    with whole_file(output) as partial:
        if Path(output).suffix == ".parquet":
            import pyarrow as pa
            from pyarrow import parquet

            table = pa.table([pa.array(column) for column in columns], names=list(titles))
            parquet.write_table(table, partial)
        else:
            with partial.open("w", newline="", encoding="utf-8") as file:
                write_csv(file)
