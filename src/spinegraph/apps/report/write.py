"""The report's door: a fitted model in, an HTML file out."""

import os
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from spinegraph.apps.report.findings import Findings, Progress, gather
from spinegraph.apps.report.page import page
from spinegraph.atomic import make_folder, whole_file


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "SPINE report",
    labels: NDArray[Any] | None = None,
    label_title: str = "label",
    color: str | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Write what a model found as one HTML file that opens offline, whole or not at all.

    Parameters
    ----------
    model : SPINE
        Fitted, with its training data.
    path : path
        The folder is made where it is missing.
    title : str
    labels : array (n,), optional
        One per node; None where there is none.
    label_title : str
        What the labels are called.
    color : str, optional
        What colours the map first: ``"role"``, the labels' title, or the name of any column.
    progress : callable (stage, done, total), optional

    Returns
    -------
    Findings
        All that the report shows.

    Examples
    --------
    >>> import tempfile
    >>> from spinegraph import SPINE, made
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     found = write_report(SPINE(dim=8, steps=5).fit(made.karate()), path, title="karate club")
    ...     path.stat().st_size < 10e6
    True
    """
    report = progress or _silent
    found = gather(model, report, labels=labels, label_title=label_title, color=color)
    report("writing the page", 0, 0)
    text = page(model, found, title)
    make_folder(Path(path).resolve().parent)
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return found


def _silent(stage: str, done: int, total: int) -> None:
    pass
