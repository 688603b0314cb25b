"""How ``spine export`` shows what it wrote, and how to query it."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from spinegraph.apps.postgres import Written

_INDEX = {"made": "HNSW by cosine, made now", "kept": "HNSW by cosine, kept", "none": "none made"}


def export_facts(written: Written) -> dict[str, Any]:
    """Return what was written, as JSON holds it."""
    return {**asdict(written), "seconds": round(written.seconds, 3), "notes": list(written.notes)}


def print_export(written: Written, console: Console | None = None) -> None:
    """Print what was written, and a query to begin with.

    Examples
    --------
    >>> counts = {"nodes": 5, "inserted": 2, "updated": 1, "unchanged": 2, "deleted": 0}
    >>> more = {"index": "made", "model": "", "seconds": 1.2, "notes": ()}
    >>> done = Written("postgresql://db/app", '"public"."people"', "vector(8)", **counts, **more)
    >>> print_export(done, Console(width=70))
    "public"."people" in postgresql://db/app
      vectors  5 of vector(8)
      rows     2 added, 1 changed, 2 as they were, 0 deleted
      index    HNSW by cosine, made now
      took     1.2 s
    <BLANKLINE>
    Ten look-alikes of a node
      SELECT name FROM "public"."people" ...
    """
    console = console or Console(highlight=False)
    console.print(f"[bold]{escape(written.table)}[/bold] in {escape(written.to)}", soft_wrap=True)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("  vectors", f"{written.nodes:,} of {written.type}")
    grid.add_row(
        "  rows",
        f"{written.inserted:,} added, {written.updated:,} changed, {written.unchanged:,} as they were, "
        f"{written.deleted:,} deleted",
    )
    grid.add_row("  index", _INDEX[written.index])
    grid.add_row("  took", f"{written.seconds:.1f} s")
    console.print(grid)
    for note in written.notes:
        console.print(f"  note: {note}", markup=False, soft_wrap=True)
    console.print("\n[bold]Ten look-alikes of a node[/bold]")
    for line in (
        f"SELECT name FROM {written.table} WHERE name <> NODE ORDER BY embedding <=>",
        f"(SELECT embedding FROM {written.table} WHERE name = NODE) LIMIT 10",
    ):
        console.print(f"  {line}", markup=False, soft_wrap=True)
