"""Make cells of ``spine reproduce`` of what ``benchmarks.accuracy`` measured: the same draws and protocol.

Run with ``python -m benchmarks.adopt``. Adopted is only what was measured with today's default settings; a
cell that is there already stays.
"""

import argparse
import json
from pathlib import Path

from paper.cells import Cell, Cells
from paper.items import item
from paper.rows import row

ITEMS = {"transductive": "table1", "inductive": "table2"}


def adopt(path, folder):
    """Copy cells and return how many."""
    stored = json.loads(Path(path).read_text())
    cells, count = Cells(folder), 0
    for key, measures in stored["cells"].items():
        name, case, method, seed = key.split("/")
        if name not in ITEMS or not measures:
            continue
        target = item(ITEMS[name])
        if (
            method not in target.rows
            or case not in target.cases
            or not row(method).settings.items() <= stored["config"].items()
        ):
            continue
        if int(seed) >= target.seeds(method, "full"):
            continue
        cell, version = Cell(target.name, case, method, int(seed)), target.version(case, method)
        if cells.read(cell, version) is None:
            values = {measure: values[0] for measure, values in measures.items()}
            cells.write(cell, version, values, seconds=0.0)
            count += 1
    return count


def main():
    """Adopt what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).parent / "results" / "accuracy.json")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    print(f"{adopt(arguments.source, arguments.out)} cells adopted")


if __name__ == "__main__":
    main()
