"""``spine demo``: what SPINE does, on a made organisation, in less than a minute."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the report and model.")] = Path(
        "demo"
    ),
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Fit SPINE on a made organisation, embed another one that it never saw, and show what the vectors hold.

    Nothing is downloaded. The folder gets report.html, which opens in any browser, and the model.

    Example: spine demo
    """
    from spinegraph.apps.cli.progress import shown_progress
    from spinegraph.atomic import require_writable

    require_writable(output / "report.html")
    with shown_progress(quiet=quiet or json) as report:
        report("loading PyTorch", 0, 0)
        from spinegraph.apps.demo import run_demo

        found = run_demo(report, output)
    if json:
        from dataclasses import asdict
        from json import dumps

        typer.echo(dumps(asdict(found), indent=2))
        return
    from spinegraph.apps.cli.demo_view import print_demo

    print_demo(found)
