"""Files of node labels: one label per node, found by name."""

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, ParameterError, SpineWarning
from spinegraph.graph.files.feature_tables import NamedTable, read_parquet_table, read_text_table
from spinegraph.graph.files.features import names_like
from spinegraph.graph.files.source import opened
from spinegraph.graph.names import NameIndex, as_names, first_few

_LABEL_TITLES = ("label", "labels", "class", "role", "group", "community", "target", "y")


def read_labels(
    path: str | os.PathLike[str],
    names: NDArray[Any],
    *,
    node_column: str | int | None = None,
    label_column: str | None = None,
) -> NDArray[Any]:
    r"""Read one label per node from CSV, TSV or Parquet.

    Parameters
    ----------
    path : path
        A table with a column of node names and one of labels.
    names : array (n,)
        The graph's node names.
    node_column : str or int, optional
        By default the column titled node, id or name, else the first.
    label_column : str, optional
        By default the column titled label or class, else the only other one.

    Returns
    -------
    object array (n,)
        Labels as text in the order of ``names``; None where the file has none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     size = file.write("node,label\nbob,west\n"), file.flush()
    ...     read_labels(file.name, np.array(["ann", "bob"], dtype=object)).tolist()
    [None, 'west']
    """
    with opened(path) as source:
        name, kind = source.path, source.kind
        if kind not in ("text", "parquet"):
            raise GraphFormatError(f"{name}: labels are read from CSV, TSV or Parquet; this is {kind}")
        table = read_parquet_table(source.stream, name, node_column) if kind == "parquet" else None
    found = table or read_text_table(path, node_column)
    title = _label_title(found, label_column, name)
    try:
        row_names = as_names(names_like(names, found.names.to_numpy()))
    except GraphFormatError as fault:
        raise GraphFormatError(f"{name}: {fault}") from fault
    places = NameIndex(names).find(row_names)
    unknown = row_names[places < 0]
    if len(unknown) == len(row_names):
        raise GraphFormatError(
            f"{name}: none of its {len(row_names)} names is a node of the graph; they look like "
            f"{first_few(row_names, 3)}, the graph's like {first_few(names, 3)}"
        )
    if len(unknown):
        some = first_few(unknown)
        warnings.warn(f"{name}: {len(unknown)} labels name no node: {some}", SpineWarning, stacklevel=2)
    labels = np.full(len(names), None, dtype=object)
    values = np.array([None if v is None else str(v) for v in found.table[title].to_pylist()] + [None])[:-1]
    labels[places[places >= 0]] = values[places >= 0]
    return labels


def _label_title(found: NamedTable, label_column: str | None, path: str) -> str:
    titles: list[str] = found.table.column_names
    if label_column is not None:
        if label_column not in titles:
            raise ParameterError(f"{path}: no column {label_column!r}; they are {', '.join(titles[:10])}")
        return label_column
    known = [title for wanted in _LABEL_TITLES for title in titles if title.strip().lower() == wanted]
    if not known and len(titles) != 1:
        raise GraphFormatError(
            f"{path}: no column is called label; say which of {', '.join(titles[:10])} holds the labels"
        )
    return known[0] if known else titles[0]
