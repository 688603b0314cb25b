"""Look-alikes of every node as a table: node, rank, match, score."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.explain_standing import shown
from spinegraph.analysis.nearest import Nearest
from spinegraph.atomic import whole_file

ENDINGS = (".csv", ".parquet")
_TITLES = ("node", "rank", "match", "score")


def write_neighbors(output: str, names: NDArray[Any], found: Nearest) -> None:
    """Write what was found, whole or not at all; ``-`` prints CSV.

    Examples
    --------
    >>> found = Nearest(np.array([[1], [0]]), np.array([[1.0], [0.5]]))
    >>> write_neighbors("-", np.array(["ann", "bob"]), found)
    node,rank,match,score
    ann,1,bob,1.0
    bob,1,ann,0.5
    """
    if output == "-":
        _write_csv(sys.stdout, names, found)
        return
    with whole_file(output) as partial:
        if Path(output).suffix == ".parquet":
            _write_parquet(partial, names, found)
        else:
            with partial.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, names, found)


def _write_csv(file: Any, names: NDArray[Any], found: Nearest) -> None:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(_TITLES)
    listed = [shown(name) for name in names.tolist()]
    for place, (row, scores) in enumerate(zip(found.positions.tolist(), found.scores.tolist(), strict=True)):
        for rank, (match, score) in enumerate(zip(row, scores, strict=True), start=1):
            if match >= 0:
                table.writerow((listed[place], rank, listed[match], f"{score:.6g}" if score % 1 else score))


def _write_parquet(path: Path, names: NDArray[Any], found: Nearest) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kept = found.positions.ravel() >= 0
    count = found.positions.shape[1]
    listed = (
        names if names.dtype == np.int64 else np.array([shown(name) for name in names.tolist()], dtype=object)
    )
    values = (
        np.repeat(listed, count)[kept],
        np.tile(np.arange(1, count + 1), len(names))[kept],
        listed[found.positions.ravel()[kept]],
        found.scores.ravel()[kept],
    )
    parquet.write_table(pa.table([pa.array(column) for column in values], names=list(_TITLES)), path)
