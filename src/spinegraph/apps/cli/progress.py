"""Progress on the standard error: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

Report = Callable[[str, int, int], None]  # stage, done, of how many (0 where unknown)


@contextmanager
def shown_progress(console: Console | None = None) -> Iterator[Report]:
    """Show the stages of a long job: give it the callable that this yields.

    Examples
    --------
    >>> import sys
    >>> with shown_progress(Console(file=sys.stdout)) as report:
    ...     report("reading", 0, 10)
    ...     report("reading", 10, 10)
    0.0 s  reading
    """
    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


class _Lines:
    """One line when a stage begins."""

    def __init__(self, console: Console) -> None:
        self._console, self._start, self._stage = console, time.perf_counter(), ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            seconds = time.perf_counter() - self._start
            self._console.print(f"{seconds:5.1f} s  {stage}", markup=False, soft_wrap=True)


class _Bar:
    """One bar, of the stage at hand."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._stage = progress, ""
        self._task = progress.add_task("", total=None)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage:
            self._stage = stage
            self._progress.reset(self._task, description=stage)
        self._progress.update(self._task, completed=done, total=total or None)
