"""``spine demo``: what SPINE does, on a synthetic organisation, in less than a minute."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from spinegraph.apps.demo import ALL_INPUTS, FOLDS, MODEL, REPORT, Agreement, Demo, LookAlikes, Person, Score

NEXT_STEPS = """\
import spinegraph as sg
graph = sg.read_graph("edges.csv", "people.csv")
model = sg.SPINE(seed=0).fit(graph)
model.embeddings_["ann"]           # her vector
read_alike = model.table_encoder_  # knows the columns of people.csv
later = sg.read_graph("later.csv", "people_later.csv", encoder=read_alike)
model.transform(later).save("vectors.parquet")  # unseen; no retraining
model.save("model")                # back with sg.SPINE.load("model")
"""
OWN_DATA = (
    "spine fit edges.csv --features people.csv -o model",
    "spine similar model ann",
    "spine report model",
)
_WIDTH = 71  # of the reasons, indented in a terminal of 80
_CLOSE = 0.005  # less than this apart is parity


def print_demo(demo: Demo, console: Console | None = None) -> None:
    """Print the table, the look-alikes and what to try next."""
    console = console or Console(highlight=False)
    fitted, unseen = demo.fitted, demo.unseen
    console.print("[bold]Two made organisations[/bold], nothing downloaded")
    console.print(
        f"  fitted  {fitted.people} people, {fitted.ties:,} ties, profiles of {demo.words} words, "
        f"{demo.departments} departments, {demo.roles} roles"
    )
    console.print(
        f"  unseen  {unseen.people} other people, {unseen.ties:,} ties; "
        "vectors by transform, nothing retrained\n"
    )
    console.print(f"[bold]Right answers read off {demo.dim} numbers a person[/bold], in %")
    console.print(Padding(_scores(demo.scores), (0, 0, 1, 2), expand=False))
    console.print(Padding(_protocol(demo.scores), (0, 0, 1, 2)), style="dim")
    _print_alike(demo.alike, demo.agreement, console)
    _print_next(demo, console)


def _print_next(demo: Demo, console: Console) -> None:
    if demo.folder is not None:
        console.print("[bold]Written[/bold]")
        console.print(
            f"  {demo.folder}/{REPORT}  map, roles, look-alikes: open it in a browser", soft_wrap=True
        )
        console.print(f"  {demo.folder}/{MODEL}  ask it further:", soft_wrap=True)
        console.print(f"    spine similar {demo.folder}/{MODEL} '{demo.alike.of.name}'", soft_wrap=True)
        console.print(f"    spine roles {demo.folder}/{MODEL}\n", soft_wrap=True)
    console.print("[bold]On your own data[/bold]")
    for line in OWN_DATA:
        console.print(f"  {line}")
    console.print("\n  or in Python", style="dim")
    for line in NEXT_STEPS.splitlines():
        console.print(
            Text("  ") + Syntax("", "python", theme="ansi_dark").highlight(line), soft_wrap=True, end=""
        )


def _scores(scores: tuple[Score, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    for title in ("departments\nfitted", "\nunseen", "roles\nfitted", "\nunseen"):
        table.add_column(title, justify="right")
    for score in scores:
        values = (score.community, score.community_unseen, score.role, score.role_unseen)
        style = "bold" if score is scores[0] else "dim" if score is scores[-1] else ""
        table.add_row(escape(score.vectors), *map(_percent, values), style=style)
    return table


def _percent(value: float | None) -> str:
    return "cannot" if value is None else f"{100 * value:.1f}"


def _protocol(scores: tuple[Score, ...]) -> str:
    protocol = (
        f"By logistic regression. fitted: {FOLDS}-fold cross-validation; unseen: it learned from labels "
        "of the fitted organisation only. Raw features: the words of a profile; T F: words averaged around a "
        "person by rooted PageRank. Roles show in ties alone; one leader, bridge and fringe in ten has those "
        "of a member. node2vec has no vectors for people it was not trained on."
    )
    control = next((score for score in scores if score.vectors == ALL_INPUTS), None)
    if control is None:
        return protocol
    spine, other = _mean(scores[0]), _mean(control)
    verdict = "at parity with" if abs(spine - other) < _CLOSE else "above" if spine > other else "below"
    return (
        f"{protocol} Learning must beat a PCA of what it reads: on this easy network SPINE is {verdict} it, "
        f"{100 * spine:.1f} and {100 * other:.1f} on average. Real networks: docs/study.md."
    )


def _mean(score: Score) -> float:
    values = (score.community, score.community_unseen, score.role, score.role_unseen)
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


def _print_alike(alike: LookAlikes, agreement: Agreement, console: Console) -> None:
    person = alike.of
    console.print(f"[bold]Who in the unseen organisation is like {person.name}?[/bold]")
    ties = f"{person.ties} ties, {_acquainted(person)} know each other"
    console.print(f"        {person.role}, {person.department}; {ties}")
    for found in alike.found:
        other = found.person
        console.print(
            f"  {found.similarity:.2f}  [bold]{other.name}[/bold], {other.role}, {other.department}"
        )
        for reason in found.reasons:
            for line in textwrap.wrap(reason, _WIDTH):
                console.print(f"        {line}", markup=False)
    console.print(
        f"  Everybody's nearest vector over there is of the same department in "
        f"{100 * agreement.department:.0f} %,\n  of the same role in {100 * agreement.role:.0f} %.\n",
        style="dim",
    )


def _acquainted(person: Person) -> str:
    return f"{100 * person.acquainted:.0f} % of which" if person.acquainted else "none of which"


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
    from spinegraph.apps.cli.options import shown_progress
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

    print_demo(found)
