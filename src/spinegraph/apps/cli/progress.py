"""Progress on the standard error: a bar on a terminal, plain lines elsewhere, nothing where asked for."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from spinegraph.errors import SpineWarning

Report = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)
_LINE_EVERY = 10.0  # seconds, within a stage


@contextmanager
def shown_progress(console: Console | None = None, *, quiet: bool = False) -> Iterator[Report]:
    """Show the stages of a long job: give it the callable that this yields.

    With ``quiet`` nothing is shown, and no notes either.

    Examples
    --------
    >>> import sys
    >>> with shown_progress(Console(file=sys.stdout)) as report:
    ...     report("reading", 0, 10)
    ...     report("reading", 10, 10)
    0.0 s  reading
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
    """Say how far a stage is, how fast it goes and how long it will take.

    Examples
    --------
    >>> pace(120, 300, 4.0)
    '120 of 300, 30/s, 6 s left'
    >>> pace(0, 0, 75.0)
    '1 min 15 s'
    """
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
