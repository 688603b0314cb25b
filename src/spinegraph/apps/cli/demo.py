"""``spine demo``: SPINE fitted on a synthetic organisation and applied to an unseen one."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from spinegraph.apps.cli import options as cli

if TYPE_CHECKING:
    from spinegraph.graph.synthetic import Planted

NEXT_STEPS = """\
import spinegraph as sg
graph = sg.read_graph("edges.csv", "people.csv")
model = sg.SPINE().fit(graph)
print(model.similar("ann", by="role"))  # or "content", "place", "all"
model.report("report.html")             # map, roles, look-alikes
model.save("model")                     # back with sg.SPINE.load("model")
"""
OWN_DATA = (
    "spine fit edges.csv --features people.csv -o model",
    "spine similar model ann --by role",
    "spine report model",
    "spine explore model",
)
Vectors = tuple[Any, Any]  # of the fitted and of the unseen organisation; None for unseen if impossible
_FOLDS, _ALIKE = 5, 3
_COLUMNS = ("community", "community_unseen", "role", "role_unseen")  # of the scores
_REPORT, _MODEL = "report.html", "model"
_THREADS = 1  # two are no faster on 600 people


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the results.")] = Path("demo"),
    json: cli.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Fit SPINE on a synthetic organisation, embed an unseen one, and show what the vectors know.

    Nothing is downloaded. The folder gets the model, and report.html, which opens in any browser.

    Example: spine demo
    """
    from spinegraph.atomic import require_writable

    require_writable(output / _REPORT)
    cli.require_free(output / _MODEL, is_replaced=(output / _REPORT).exists())
    with cli.shown_progress(quiet=quiet or json) as report:
        found = run_demo(report, output)
    if json:
        cli.print_json(found)
    else:
        print_demo(found)


def run_demo(
    progress: cli.Report, folder: Path | None = None, *, communities: int = 8, size: int = 75, **settings: Any
) -> dict[str, Any]:
    """Fit SPINE on one synthetic organisation, embed another, and return what the vectors know.

    A report and the model go to ``folder``. ``communities`` and ``size`` are those of ``planted``. Scores
    are accuracies of a linear classifier: by cross-validation in the fitted organisation, and None in the
    unseen one if a method has no vectors for it. ``alike`` has the people nearest to one bridge by each part,
    in the unseen organisation, or by place in the fitted one.
    """
    from threadpoolctl import threadpool_limits

    from spinegraph.analysis.baselines import TRANSDUCTIVE, controls, dense
    from spinegraph.analysis.report import write_report
    from spinegraph.embeddings import unit_length
    from spinegraph.estimator import SPINE
    from spinegraph.graph.synthetic import BRIDGE, planted

    with threadpool_limits(_THREADS):
        progress("making two organisations", 0, 0)
        here, there = (planted(communities, size, seed=seed) for seed in (0, 1))
        progress("SPINE: preparing (the first run compiles)", 0, 0)
        model = SPINE(**{"threads": _THREADS, **settings})
        model.fit(here.graph, progress=lambda stage, *done: progress(f"SPINE: {stage}", *done))
        progress("embedding the unseen organisation", 0, 0)
        known, unseen = model.transform(here.graph), model.transform(there.graph)
        rows: dict[str, Vectors] = {"SPINE": (known.vectors, unseen.vectors)}
        for part in known.parts:
            elsewhere = None if part == "place" else unseen.part(part).vectors
            rows[f"SPINE, {part} alone"] = known.part(part).vectors, elsewhere
        others = controls(here.graph, known.dim, model.generator_.encoder, threads=_THREADS)
        for done, (name, made) in enumerate(others.items()):
            progress("other methods", done, len(others))
            elsewhere = None if name in TRANSDUCTIVE else dense(made(there.graph))
            rows[name] = dense(made(here.graph)), elsewhere
        pairs, scores = ((here.community, there.community), (here.role, there.role)), {}
        for done, (name, both) in enumerate(rows.items()):
            progress("fitting a linear classifier", done, len(rows))
            choices = _weightings(both, known.parts) if name == "SPINE" else [both]
            scores[name] = [found for pair in pairs for found in _accuracies(choices, *pair)]
        largest = [(labels == np.bincount(pair[0]).argmax()).mean() for pair in pairs for labels in pair]
        scores["largest class"] = [*map(float, largest)]
        alike: dict[str, Any] = {"of": _person(here, bridge := int(np.flatnonzero(here.role == BRIDGE)[0]))}
        for part in known.parts:
            # Nodes of another organisation have no place, so by place it is the fitted one.
            where, found = (here, known) if part == "place" else (there, unseen)
            cosines = unit_length(known.part(part).vectors) @ unit_length(found.part(part).vectors).T
            if part == "place":
                np.fill_diagonal(cosines, -np.inf)
            alike[part] = [
                {"person": _person(where, other), "similarity": float(cosines[bridge, other])}
                for other in np.argsort(-cosines[bridge], kind="stable")[:_ALIKE].tolist()
            ]
        if folder is not None:
            departments = np.array(here.community_names, dtype=object)[here.community]
            write_report(
                model,
                folder / _REPORT,
                title="A synthetic organisation",
                labels=departments,
                label_title="department",
                progress=lambda stage, *done: progress(f"report: {stage}", *done),
            )
            model.save(folder / _MODEL)
    return {
        "fitted": _size(here),
        "unseen": _size(there),
        "parts": {name: part.stop - part.start for name, part in known.parts.items()},
        "scores": [{"vectors": name} | dict(zip(_COLUMNS, row, strict=True)) for name, row in scores.items()],
        "alike": alike,
        "folder": None if folder is None else str(folder),
    }


def _size(planted: "Planted") -> dict[str, int]:
    return {
        "people": len(planted.graph),
        "ties": planted.graph.num_edges,
        "words": len(planted.graph.feature_names or ()),
        "departments": len(planted.community_names),
        "roles": len(planted.role_names),
    }


def _weightings(vectors: Vectors, parts: Mapping[str, slice]) -> list[Vectors]:
    """Return vectors with parts as they are, with role as long as content, and with single parts."""
    factors = [np.ones(parts["role"].stop, np.float32) for _ in range(4)]
    factors[1][parts["role"]] = 6
    factors[2][: parts["role"].start] = 0
    factors[3][parts["content"].stop :] = 0
    return [(vectors[0] * each, vectors[1] * each) for each in factors]


def _accuracies(
    choices: list[Vectors], known: NDArray[np.int64], other: NDArray[np.int64]
) -> tuple[float, float | None]:
    """Return the accuracy by cross-validation in the fitted organisation, and that of transfer to the unseen.

    One of several choices of vectors is selected by cross-validation inside the training labels.
    """
    from spinegraph.analysis.evaluation import probe_cv

    def accuracy(rows: list[Any], labels: NDArray[np.int64], train: Any, test: Any) -> float:
        found = [probe_cv(each, labels, train, test) for each in rows]
        return max(found, key=lambda one: one.val_accuracy).accuracy

    part = np.random.default_rng(0).permutation(len(known)) % _FOLDS
    right = 0.0
    for fold in range(_FOLDS):
        train, test = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        right += accuracy([fitted for fitted, _ in choices], known, train, test) * len(test)
    if choices[0][1] is None:
        return right / len(known), None
    train, test = np.split(np.arange(len(known) + len(other)), [len(known)])
    labels = np.concatenate([known, other])
    return right / len(known), accuracy([np.vstack(both) for both in choices], labels, train, test)


def _person(planted: "Planted", node: int) -> dict[str, Any]:
    """Describe a person; ``acquainted`` is the share of pairs of contacts with a tie."""
    from spinegraph.structure.columns import structural_columns

    return {
        "name": str(planted.graph.names[node]),
        "department": planted.community_names[planted.community[node]],
        "role": planted.role_names[planted.role[node]],
        "ties": int(planted.graph.degrees[node]),
        "acquainted": float(structural_columns(planted.graph, names=("clustering",)).values[node, 0]),
    }


def print_demo(demo: dict[str, Any]) -> None:
    """Print the accuracies, the most similar people and what to try next."""
    fitted, unseen, alike, folder = (demo[name] for name in ("fitted", "unseen", "alike", "folder"))
    typer.echo(
        "Two synthetic organisations, nothing downloaded\n"
        f"  fitted  {fitted['people']} people, {fitted['ties']:,} ties, profiles of {fitted['words']} words, "
        f"{fitted['departments']} departments, {fitted['roles']} roles\n"
        f"  unseen  {unseen['people']} other people, {unseen['ties']:,} ties; "
        "vectors by transform, without retraining\n"
    )
    rows = [
        (name, *("cannot" if value is None else f"{100 * value:.1f}" for value in values))
        for name, *values in (score.values() for score in demo["scores"])
    ]
    titles = ("", "departments\nfitted", "\nunseen", "roles\nfitted", "\nunseen")
    widths = ", ".join(f"{name} {width}" for name, width in demo["parts"].items())
    note = (
        f"By logistic regression. fitted: {_FOLDS}-fold cross-validation; unseen: trained on labels of the "
        f"fitted organisation only. SPINE's vectors have the parts {widths}; how much each counts is chosen "
        "by cross-validation inside the training labels. Place is zero in the unseen one, where node2vec and "
        "spectral have no vectors. Roles show in ties only. Real networks: docs/study.md."
    )
    heading = f"Accuracy of a classifier on {sum(demo['parts'].values())} numbers per person, in %"
    cli.print_table(heading, titles, rows, f"{note}\n ", bold=0)
    console = Console(highlight=False)
    person = alike["of"]
    console.print(f"[bold]Who is like {person['name']}?[/bold]\n        {_facts(person)}\n")
    for question, where, part in (
        ("about the same things", "unseen", "content"),
        ("in the same place", "fitted", "place"),
        ("playing the same role", "unseen", "role"),
    ):
        console.print(f"  {question} ({part}), in the {where} organisation")
        for one in alike[part]:
            found = one["person"]
            console.print(f"  {one['similarity']:.2f}  [bold]{found['name']}[/bold], {_facts(found)}")
        console.print()
    model = f"{folder}/{_MODEL}"
    console.print(
        "[bold]Written[/bold]\n"
        f"  {folder}/{_REPORT}  map, roles, similar nodes: open it in a browser\n"
        f"  {model}  the model, for more questions:\n    spine similar {model} '{person['name']}' --by role\n"
        f"    spine roles {model}\n    spine explore {model}  (needs pip install 'spinegraph\\[serve]')\n",
        soft_wrap=True,
    )
    console.print("\n  ".join(["[bold]On your own data[/bold]", *OWN_DATA]))
    console.print("\n  or in Python", style="dim")
    typer.echo(indent(NEXT_STEPS, "  "), nl=False)


def _facts(person: dict[str, Any]) -> str:
    ties = f"{person['ties']} tie{'s' * (person['ties'] != 1)}"
    return f"{person['role']}, {person['department']}; {ties}, {100 * person['acquainted']:.0f} % linked"
