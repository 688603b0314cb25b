"""Progress: bars on a terminal, lines elsewhere, silence where asked for."""

import io
import warnings

from rich.console import Console

from spinegraph.apps.cli import options
from spinegraph.apps.cli.options import shown_progress
from spinegraph.errors import SpineWarning


def test_lines_show_a_stage_once_and_a_long_one_every_ten_seconds(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(options.time, "perf_counter", lambda: clock[0])
    text = io.StringIO()
    with shown_progress(Console(file=text, width=100)) as report:
        for seconds, done in ((0, 50), (5, 75), (12, 100), (13, 110), (30, 300)):
            clock[0] = seconds
            report("training", done, 300)
        report("saving", 0, 0)
    assert text.getvalue().splitlines() == [
        "  0.0 s  training",
        " 12.0 s  training: 100 of 300, 0:00:48 left",  # resumed at 50
        " 30.0 s  saving",
    ]


def test_a_bar_has_the_stage_and_its_share():
    text = io.StringIO()
    with shown_progress(Console(file=text, force_terminal=True, width=100)) as report:
        report("training", 150, 300)
        report("saving", 0, 0)
        report("saving", 0, 0)
    training, saving = text.getvalue().split("saving", 1)
    assert "\x1b[" in training
    assert "training" in training
    assert "%" not in saving


def test_quiet_is_silent_and_has_no_notes(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with shown_progress(quiet=True) as report:
            report("training", 1, 2)
            warnings.warn("heed this", SpineWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "")
