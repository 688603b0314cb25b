"""``spine report``: what a model found, as one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from spinegraph.estimator import SPINE


def report(
    model: Annotated[Path, typer.Argument(help="A folder that fit or SPINE.save wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("report.html"),
    labels: Annotated[
        Path | None, typer.Option(help="Node labels to colour by: a table of names and labels.")
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(help="Colours the map first: role, a feature, degree, or a column of the labels file."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page; the model's name otherwise.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no words.")] = False,
) -> None:
    """Write one page about a model: map, roles, look-alikes, fit and data quality. It opens offline.

    Example: spine report model -o report.html
    """
    from contextlib import nullcontext

    from spinegraph.apps.cli.options import shown_progress
    from spinegraph.atomic import require_writable
    from spinegraph.errors import ParameterError
    from spinegraph.estimator import SPINE

    require_writable(output)
    fitted = SPINE.load(model)
    if fitted.graph_ is None:
        raise ParameterError(
            f"{model}: the model was saved without its network, which a report shows; save it with data=True"
        )
    column, values = _labels(fitted, labels, color)
    from spinegraph.analysis.report.page import write_report

    with nullcontext() if quiet or json else shown_progress() as progress:
        found = write_report(
            fitted,
            output,
            title=title or model.resolve().name,
            labels=values,
            label_title=column,
            color=color,
            progress=progress,
        )
    if json:
        _print_json(output, found)
    elif not quiet:
        warnings = sum(note.level == "warning" for note in found.notes)
        about = f"; {warnings} thing{'s' * (warnings != 1)} to know about the data" if warnings else ""
        typer.echo(f"{output}: {len(found.graph):,} nodes, {len(found.roles)} roles{about}")


def _labels(model: "SPINE", path: Path | None, color: str | None) -> tuple[str, Any]:
    """Return the title and values of the labels: of the column that is to colour the map, if it is theirs."""
    if path is None:
        return "label", None
    from spinegraph.analysis.plots import graph_of, has_column
    from spinegraph.graph.feature_files import read_labels

    graph = graph_of(model)
    is_theirs = color is not None and color not in ("role", "label") and not has_column(graph, color)
    column = color if is_theirs else None
    return column or "label", read_labels(path, graph.names, label_column=column)


def _print_json(output: Path, found: Any) -> None:
    from dataclasses import asdict
    from json import dumps

    about = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "nodes": len(found.graph),
        "on_map": len(found.shown),
        "colors": [coloring.title for coloring in found.colorings],
        "roles": [
            {"title": title, "description": words}
            for title, words in zip(found.roles.titles, found.roles.descriptions, strict=True)
        ],
        "look_alikes": [
            {"a": str(each.a), "b": str(each.b), "cosine": each.score, "words": each.explanation.words}
            for each in found.examples
        ],
        "notes": [asdict(note) for note in found.notes],
    }
    typer.echo(dumps(about, indent=2, ensure_ascii=False))
