"""``spine demo``: what SPINE does, on a synthetic organisation, in less than a minute."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from spinegraph.apps.cli.options import Json, plain_table, print_json, shown_progress

if TYPE_CHECKING:
    from spinegraph.apps.demo import Demo, Score

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
_PARITY = 0.005


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the report and model.")] = Path(
        "demo"
    ),
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Fit SPINE on a synthetic organisation, embed an unseen one, and show what the vectors hold.

    Nothing is downloaded. The folder gets report.html, which opens in any browser, and the model.

    Example: spine demo
    """
    from spinegraph.atomic import require_writable

    require_writable(output / "report.html")
    with shown_progress(quiet=quiet or json) as report:
        report("loading PyTorch", 0, 0)
        from spinegraph.apps.demo import run_demo

        found = run_demo(report, output)
    if json:
        print_json(asdict(found))
    else:
        print_demo(found)


def print_demo(demo: "Demo", console: Console | None = None) -> None:
    """Print the accuracies, the most similar people and what to try next."""
    console = console or Console(highlight=False)
    fitted, unseen = demo.fitted, demo.unseen
    console.print("[bold]Two synthetic organisations[/bold], nothing downloaded")
    console.print(
        f"  fitted  {fitted.people} people, {fitted.ties:,} ties, profiles of {demo.words} words, "
        f"{demo.departments} departments, {demo.roles} roles"
    )
    console.print(
        f"  unseen  {unseen.people} other people, {unseen.ties:,} ties; "
        "vectors by transform, nothing retrained\n"
    )
    console.print(f"[bold]Accuracy of a classifier on {demo.dim} numbers a person[/bold], in %")
    _print_scores(demo.scores, console)
    _print_alike(demo, console)
    _print_next(demo, console)


def _print_scores(scores: "tuple[Score, ...]", console: Console) -> None:
    from spinegraph.apps.demo import ALL_INPUTS, FOLDS

    def values(score: "Score") -> tuple[float | None, ...]:
        return score.community, score.community_unseen, score.role, score.role_unseen

    def mean(score: "Score") -> float:
        known = [value for value in values(score) if value is not None]
        return sum(known) / len(known)

    table = plain_table("", "departments\nfitted", "\nunseen", "roles\nfitted", "\nunseen")
    for score in scores:
        style = "bold" if score is scores[0] else "dim" if score is scores[-1] else ""
        cells = ("cannot" if value is None else f"{100 * value:.1f}" for value in values(score))
        table.add_row(escape(score.vectors), *cells, style=style)
    console.print(Padding(table, (0, 0, 1, 2), expand=False))
    spine, control = mean(scores[0]), next(mean(one) for one in scores if one.vectors == ALL_INPUTS)
    verdict = "at parity with" if abs(spine - control) < _PARITY else "above" if spine > control else "below"
    note = (
        f"By logistic regression. fitted: {FOLDS}-fold cross-validation; unseen: trained on labels of the "
        "fitted organisation only. Raw features: the words of a profile; T F: words averaged around a "
        "person by rooted PageRank. Roles show in ties alone; one leader, bridge and fringe in ten has those "
        "of a member. node2vec has no vectors for people it was not trained on. Learning must beat a PCA of "
        f"what it reads: on this easy network SPINE is {verdict} it, {100 * spine:.1f} and "
        f"{100 * control:.1f} on average. Real networks: docs/study.md."
    )
    console.print(Padding(note, (0, 0, 1, 2)), style="dim")


def _print_alike(demo: "Demo", console: Console) -> None:
    person, agreement = demo.alike.of, demo.agreement
    console.print(f"[bold]Who in the unseen organisation is like {person.name}?[/bold]")
    share = f"{100 * person.acquainted:.0f} % of which" if person.acquainted else "none of which"
    console.print(f"        {person.role}, {person.department}; {person.ties} ties, {share} know each other")
    for found in demo.alike.found:
        other = found.person
        console.print(
            f"  {found.similarity:.2f}  [bold]{other.name}[/bold], {other.role}, {other.department}"
        )
        for reason in found.reasons:
            for line in textwrap.wrap(reason, _WIDTH):
                console.print(f"        {line}", markup=False)
    console.print(
        f"  The nearest vector over there is of the same department for {100 * agreement.department:.0f} % "
        f"of the people,\n  of the same role for {100 * agreement.role:.0f} %.\n",
        style="dim",
    )


def _print_next(demo: "Demo", console: Console) -> None:
    from spinegraph.apps.demo import MODEL, REPORT

    if demo.folder is not None:
        model, person = f"{demo.folder}/{MODEL}", demo.alike.of.name
        console.print("[bold]Written[/bold]")
        for line in (
            f"  {demo.folder}/{REPORT}  map, roles, similar nodes: open it in a browser",
            f"  {model}  ask it more:",
            f"    spine similar {model} '{person}'",
            f"    spine roles {model}\n",
        ):
            console.print(line, soft_wrap=True)
    console.print("[bold]On your own data[/bold]")
    for line in OWN_DATA:
        console.print(f"  {line}")
    console.print("\n  or in Python", style="dim")
    python = Syntax("", "python", theme="ansi_dark")
    for line in NEXT_STEPS.splitlines():
        console.print(Text("  ") + python.highlight(line), soft_wrap=True, end="")
