"""Progress: bars on a terminal, lines elsewhere, silence where asked for."""

import io
import warnings

import pytest
from rich.console import Console

from spinegraph.apps.cli import options as progress
from spinegraph.apps.cli.options import pace, shown_progress
from spinegraph.errors import SpineWarning


@pytest.mark.parametrize(
    ("done", "total", "seconds", "said"),
    [
        (0, 300, 1.0, "0 of 300"),
        (150, 300, 3.0, "150 of 300, 50/s, 3 s left"),
        (3, 300, 6.0, "3 of 300, 2 s each, 9 min 54 s left"),
        (9, 300, 6.0, "9 of 300, 1.5/s, 3 min 14 s left"),
        (1, 10_000, 10.0, "1 of 10,000, 10 s each, 27 h 46 min left"),
        (0, 0, 3600.0, "1 h 0 min"),
    ],
)
def test_a_pace_is_rate_and_time_left(done, total, seconds, said):
    assert pace(done, total, seconds) == said


def test_lines_tell_of_a_stage_once_and_of_a_long_one_now_and_then(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    text = io.StringIO()
    with shown_progress(Console(file=text, width=100)) as report:
        for seconds, done in ((0, 50), (5, 75), (12, 100), (13, 110), (30, 300)):
            clock[0] = seconds
            report("training", done, 300)
        report("saving", 0, 0)
    assert text.getvalue().splitlines() == [
        "  0.0 s  training",
        " 12.0 s  training: 100 of 300, 4.2/s, 48 s left",  # resumed at 50
        " 30.0 s  saving",
    ]


def test_a_bar_has_a_stage_a_rate_and_the_time_left():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with shown_progress(console) as report:
        report("training", 0, 300)
        bar = report._progress
        task = bar.tasks[0]
        bar.update(task.id, completed=150)
        task.start_time -= 3
        shown = "".join(segment.text for segment in console.render(bar.get_renderable()))
        assert "training" in shown
        assert "150 of 300, 50/s, 3 s left" in shown
        report("saving", 0, 0)
        shown = "".join(segment.text for segment in console.render(bar.get_renderable()))
        assert "saving" in shown
        assert " of " not in shown


def test_quiet_is_silent_and_has_no_notes(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with shown_progress(quiet=True) as report:
            report("training", 1, 2)
            warnings.warn("heed this", SpineWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "")
