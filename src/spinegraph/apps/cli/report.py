"""``spine report``: what a model found, as one page."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spinegraph.apps.cli import options as cli
from spinegraph.errors import ParameterError


def report(
    model: cli.Model,
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("report.html"),
    labels: Annotated[Path | None, typer.Option(help="A table of names and labels to colour by.")] = None,
    color: Annotated[
        str | None,
        typer.Option(help="What colours the map at first: role, a feature, degree, or a column of labels."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page; default the model's name.")] = None,
    json: cli.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
) -> None:
    """Write one page about a model, which opens offline: map, roles, similar nodes, fit and data quality.

    Example: spine report model -o report.html
    """
    from spinegraph.analysis.plots import graph_of, has_column
    from spinegraph.analysis.report import require_page, write_report
    from spinegraph.atomic import require_writable
    from spinegraph.estimator import SPINE
    from spinegraph.graph.feature_files import read_labels

    require_page(output)
    require_writable(output)
    fitted = SPINE.load(model)
    if fitted.graph_ is None:
        raise ParameterError(f"{model}: saved without its network, which a report shows; fit it with --data")
    column, values = None, None
    if labels is not None:
        graph = graph_of(fitted)
        is_column = color is not None and color not in ("role", "label") and not has_column(graph, color)
        column = color if is_column else None
        values = read_labels(labels, graph.names, label_column=column)
    with cli.shown_progress(quiet=quiet or json) as progress:
        found = write_report(
            fitted,
            output,
            title=title or model.resolve().name,
            labels=values,
            label_title=column or "label",
            color=color,
            progress=progress,
        )
    if json:
        roles = dict(zip(found.roles.titles, found.roles.descriptions, strict=True))
        colors, notes = [each.title for each in found.colorings], [asdict(note) for note in found.notes]
        shown = {"nodes": len(found.graph), "on_map": len(found.shown), "colors": colors}
        cli.print_json({"output": str(output), **shown, "roles": roles, "notes": notes})
    elif not quiet:
        warnings = sum(note.level == "warning" for note in found.notes)
        from spinegraph.analysis.explain import plural

        about = f"; {plural(warnings, 'warning')} about the data" if warnings else ""
        typer.echo(f"{output}: {plural(len(found.graph), 'node')}, {plural(len(found.roles), 'role')}{about}")
