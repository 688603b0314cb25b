"""How ``spine fit`` shows what it did."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spinegraph.analysis.classes import ClassScore
from spinegraph.apps.cli.evaluate_view import print_classes


def fit_facts(
    model: Any, output: Path, first_step: int | None, scores: Sequence[ClassScore] | None
) -> dict[str, Any]:
    """Return what was fitted, as JSON holds it."""
    graphs = model.graph_ if isinstance(model.graph_, list) else [model.graph_]
    features = graphs[0].features
    facts: dict[str, Any] = {
        "model": str(output),
        "networks": len(graphs),
        "nodes": sum(len(graph) for graph in graphs),
        "edges": sum(graph.num_edges for graph in graphs),
        "features": 0 if features is None else int(features.shape[1]),
        "encoded": model.table_encoder_ is not None,
        "dim": model.generator_.dim,
        "resumed_from": first_step or None,
        "steps": model.history_[-1].step if model.history_ else 0,
        "held_out_loss": [round(moment.held_out_loss, 6) for moment in model.history_],
        "settings": model.config_.to_json(),
    }
    if scores is not None:
        facts["classes"] = [asdict(score) for score in scores]
    return facts


def print_fit(
    facts: dict[str, Any],
    files: Sequence[str],
    scores: Sequence[ClassScore] | None,
    console: Console | None = None,
) -> None:
    """Print a model's size, its training, and what to do next with its ``files``, as embed takes them.

    Examples
    --------
    >>> facts = {"model": "m", "networks": 1, "nodes": 5, "edges": 4, "features": 0, "encoded": False}
    >>> facts |= {"dim": 8, "resumed_from": None, "steps": 50, "held_out_loss": [1.3, 1.2]}
    >>> print_fit(facts, ["edges.csv", "--features", "people.csv"], None, Console(width=70))
    m
      nodes     5, edges 4
      features  none; structure alone
      vectors   8 dimensions
      training  50 steps; held-out loss 1.300 to 1.200
    <BLANKLINE>
    Next
      spine embed m edges.csv --features people.csv -o vectors.parquet
    ...
    """
    console = console or Console(highlight=False)
    console.print(f"[bold]{escape(facts['model'])}[/bold]", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    several = f" in {facts['networks']} networks" if facts["networks"] > 1 else ""
    grid.add_row("  nodes", f"{facts['nodes']:,}{several}, edges {facts['edges']:,}")
    table = ", encoded from a table" if facts["encoded"] else ""
    columns = f"{facts['features']:,} columns{table}" if facts["features"] else "none; structure alone"
    grid.add_row("  features", columns)
    grid.add_row("  vectors", f"{facts['dim']} dimensions")
    grid.add_row("  training", _training(facts))
    console.print(grid)
    console.print()
    if scores is not None:
        print_classes(scores, console)
    console.print("[bold]Next[/bold]")
    for words in (
        ["embed", facts["model"], *files, "-o", "vectors.parquet"],
        ["evaluate", facts["model"], "--labels", "LABELS"],
        ["similar", facts["model"], "NODE"],
    ):
        console.print(f"  spine {join(words)}", markup=False, soft_wrap=True)


def _training(facts: dict[str, Any]) -> str:
    losses = facts["held_out_loss"]
    if not losses:
        return "no steps: there was nothing to learn from pairs"
    resumed = f", resumed after {facts['resumed_from']}" if facts["resumed_from"] else ""
    return f"{facts['steps']} steps{resumed}; held-out loss {losses[0]:.3f} to {losses[-1]:.3f}"
