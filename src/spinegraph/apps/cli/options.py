"""Options that several commands share, progress, and output files."""

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import Field, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from spinegraph.atomic import require_writable
from spinegraph.config import Config
from spinegraph.errors import MissingFileError, ParameterError, SpineWarning

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]


class Preset(StrEnum):
    """Where settings start."""

    default = "default"
    paper = "paper"


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of other functions; what each makes of them is one argument."""
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


def settings(preset: Preset = Preset.default, **given: Any) -> Config:
    """Return the settings that options ask for: those of a preset, changed where a value is given."""
    changes = {name: value for name, value in given.items() if value is not None}
    return (Config.paper if preset == Preset.paper else Config)(**changes).check()


def _setting(field: Field[Any], group: str | None) -> inspect.Parameter:
    """Return the option of one setting; None is no value."""
    name, chosen = field.name, field.metadata["choices"]
    kind: Any = field.type if chosen is None else _one_of(name, chosen)
    values = [_shown(value) for value in (field.default, field.metadata["paper"])]
    default = values[0] if values[0] == values[1] else f"{values[0]}; paper {values[1]}"
    text = field.metadata["help"].replace("`", "")
    if chosen is not None:
        text = f"{', '.join(chosen[:-1])} or {chosen[-1]}: {text}"
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        help=f"{text[0].upper() if chosen is None else text[0]}{text[1:]}. Default {default}.",
        metavar="NAME" if kind in (str, str | None) or chosen is not None else "NUMBER",
        show_default=False,
        rich_help_panel=group,
    )
    return _keyword(name, Annotated[kind | None, option], None)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _one_of(name: str, chosen: tuple[str, ...]) -> Any:
    return StrEnum(name, {choice: choice for choice in chosen})  # type: ignore[misc]


def _lower_first(text: str) -> str:
    return text[0].lower() + text[1:]


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


_PRESET = typer.Option("--preset", help="Begin with these values; other options change them.")
settings.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        _keyword("preset", Annotated[Preset, _PRESET], Preset.default),
        *(_setting(field, f"Settings: {_lower_first(field.metadata['group'])}") for field in fields(Config)),
    ]
)


Report = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)
_LINE_EVERY = 10.0  # seconds, within a stage


@contextmanager
def shown_progress(console: Console | None = None, *, quiet: bool = False) -> Iterator[Report]:
    """Show the stages of a long job: give it the callable that this yields.

    With ``quiet`` nothing is shown, and no notes either.
    """
    if quiet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpineWarning)
            yield lambda stage, done, total: None
        return
    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), _Pace())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


def pace(done: float, total: float, seconds: float) -> str:
    """Say how far a stage is, how fast it goes and how long it will take."""
    if not total:
        return _spoken(seconds)
    text = f"{done:,.0f} of {total:,.0f}"
    if not done or seconds < 0.5:
        return text
    rate = done / seconds
    shown = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s" if rate >= 1 else f"{1 / rate:.2g} s each"
    return f"{text}, {shown}, {_spoken((total - done) / rate)} left"


def _spoken(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Pace(ProgressColumn):
    """What ``pace`` says of a task."""

    def render(self, task: Task) -> Text:
        begun = task.fields.get("begun", 0)
        seconds = task.elapsed or 0.0
        if not task.total:
            return Text(pace(0, 0, seconds), style="progress.elapsed")
        rest = pace(task.completed - begun, task.total - begun, seconds).partition(", ")[2]
        text = f"{task.completed:,.0f} of {task.total:,.0f}"
        return Text(f"{text}, {rest}" if rest else text, style="progress.elapsed")


class _Lines:
    """One line when a stage begins, and one now and then while it lasts."""

    def __init__(self, console: Console) -> None:
        self._console, self._start, self._stage = console, time.perf_counter(), ""
        self._begun, self._shown, self._first = self._start, self._start, 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if stage != self._stage:
            self._stage, self._begun, self._first = stage, now, done
            self._print(stage, now)
        elif total and done < total and now - self._shown >= _LINE_EVERY:
            rest = pace(done - self._first, total - self._first, now - self._begun).partition(", ")[2]
            self._print(f"{stage}: {done:,} of {total:,}, {rest}", now)

    def _print(self, text: str, now: float) -> None:
        self._shown = now
        self._console.print(f"{now - self._start:5.1f} s  {text}", markup=False, soft_wrap=True)


class _Bar:
    """One bar, of the stage at hand."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._stage = progress, ""
        self._task = progress.add_task("")

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._progress.remove_task(self._task)  # a total that is known cannot be forgotten
            self._task = self._progress.add_task(stage, total=None, begun=done)
        self._progress.update(self._task, completed=done, total=total or None)


STANDARD_OUTPUT = "-"


def require_output(output: str | Path, endings: tuple[str, ...], what: str) -> None:
    """Refuse an ending that is not known, and a folder that is not there or may not be written to."""
    path = Path(output)
    if str(output) == STANDARD_OUTPUT:
        return
    if path.suffix not in endings:
        raise ParameterError(f"{output}: {what} are written as {', '.join(endings)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {path.parent}; make it first")
    require_writable(path)


CheckpointFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Save the state of training here, to go on after a stop.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the newest state in that folder.")]


def require_checkpoint(checkpoint: Path | None, resume: bool) -> None:
    """Refuse --resume without a folder, and a folder with states of training without --resume."""
    if resume and checkpoint is None:
        raise typer.BadParameter("needs --checkpoint DIR, the folder to go on from", param_hint="--resume")
    if checkpoint is not None and not resume and _has_state(checkpoint):
        raise ParameterError(
            f"{checkpoint}: holds states of training; add --resume to go on, or name another folder"
        )


@contextmanager
def interruptible(checkpoint: Path | None) -> Iterator[None]:
    """Let an interrupt say how the run can go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_way_on(checkpoint)) from None


def _way_on(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "nothing was written; with --checkpoint DIR a stopped run can go on"
    if not _has_state(checkpoint):
        return (
            f"nothing was written, no state of training is in {checkpoint} yet; the same command begins anew"
        )
    return f"the state of training is in {checkpoint}; run the same command with --resume to go on"


def _has_state(checkpoint: Path) -> bool:
    return any(checkpoint.glob("*.safetensors"))
