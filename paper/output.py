"""What a run leaves beside its cells: JSON, Markdown and figures of each item."""

import json
from pathlib import Path

from paper.cells import Cells
from paper.figures import draw
from paper.item import Item
from paper.tables import markdown, summary
from spinegraph.atomic import whole_file


def write_item(item: Item, folder: str | Path) -> list[Path]:
    """Write ``ITEM.json``, ``ITEM.md`` and its figures from the folder's cells, and return the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cells = Cells(folder)
    figures = draw(item, cells, folder)
    text = f"# {item.title}\n\n{markdown(item, cells)}\n"
    if figures:
        text += f"\n![{item.title}]({item.name}.png)\n"
    files = [folder / f"{item.name}.json", folder / f"{item.name}.md"]
    contents = json.dumps(summary(item, cells), indent=1) + "\n", text
    for file, content in zip(files, contents, strict=True):
        with whole_file(file) as partial:
            partial.write_text(content, encoding="utf-8")
    return [*files, *figures]
