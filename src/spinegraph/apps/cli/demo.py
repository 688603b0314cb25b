"""``spine demo``: what SPINE does, on a made organisation, in less than a minute."""

from typing import Annotated

import typer


def demo(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Fit SPINE on a made organisation, embed another one that it never saw, and show what the vectors hold.

    Nothing is downloaded and nothing is written.

    Example: spine demo
    """
    from spinegraph.apps.cli.progress import shown_progress

    with shown_progress() as report:
        report("loading PyTorch", 0, 0)
        from spinegraph.apps.demo import run_demo

        found = run_demo(report)
    if json:
        from dataclasses import asdict
        from json import dumps

        typer.echo(dumps(asdict(found), indent=2))
        return
    from spinegraph.apps.cli.demo_view import print_demo

    print_demo(found)
