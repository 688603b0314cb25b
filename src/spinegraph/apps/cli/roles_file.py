"""Every node's roles as a file: a table, or JSON with the roles themselves."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinegraph.analysis.explain_standing import shown
from spinegraph.atomic import whole_file

if TYPE_CHECKING:
    from spinegraph.apps.cli.roles_view import RoleFindings

ENDINGS = (".csv", ".parquet", ".json")


def write_roles(output: Path, found: "RoleFindings") -> None:
    """Write one row per node, whole or not at all: its name, its role, and its share in every role."""
    if str(output) == "-":
        _write_csv(sys.stdout, found)
        return
    with whole_file(output) as partial:
        if output.suffix == ".parquet":
            _write_parquet(partial, found)
        elif output.suffix == ".json":
            _write_json(partial, found)
        else:
            with partial.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, found)


def _rows(found: "RoleFindings") -> Iterator[tuple[str, str, list[float]]]:
    told = found.told
    for name, role, shares in zip(
        told.names.tolist(), told.roles.tolist(), told.memberships.tolist(), strict=True
    ):
        yield shown(name), found.roles.titles[role], shares


def _write_csv(file: Any, found: "RoleFindings") -> None:
    table = csv.writer(file, lineterminator="\n")
    table.writerow(("node", "role", *found.roles.titles))
    for name, role, shares in _rows(found):
        table.writerow((name, role, *(f"{share:.4f}" for share in shares)))


def _write_parquet(path: Path, found: "RoleFindings") -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    told = found.told
    names = told.names if told.names.dtype == np.int64 else [shown(name) for name in told.names.tolist()]
    columns = [pa.array(names), pa.array([role for _, role, _ in _rows(found)])]
    columns += [pa.array(shares) for shares in told.memberships.T]
    parquet.write_table(pa.table(columns, names=["node", "role", *found.roles.titles]), path)


def _write_json(path: Path, found: "RoleFindings") -> None:
    import json

    nodes = [
        {"node": name, "role": role, "memberships": [round(share, 4) for share in shares]}
        for name, role, shares in _rows(found)
    ]
    text = json.dumps({"roles": found.roles.to_json(), "nodes": nodes}, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
