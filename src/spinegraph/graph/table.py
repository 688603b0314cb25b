"""Users' tables, whatever library holds them, as one Arrow table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spinegraph.errors import GraphFormatError

_ARROW_FAULTS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def as_table(data: Any) -> pa.Table:
    """Return ``data`` as an Arrow table whose columns have distinct names.

    Parameters
    ----------
    data : pyarrow.Table, pandas or polars DataFrame, dict of columns, or list of dicts
        Anything with the Arrow PyCapsule interface works too. The index of a pandas DataFrame is left
        out. In a list of dicts, a key that a row lacks is a missing value. NaN counts as missing.

    Examples
    --------
    >>> as_table([{"age": 31}, {"age": 45, "team": "north"}]).to_pydict()
    {'age': [31, 45], 'team': [None, 'north']}
    """
    if isinstance(data, pa.Table):
        table = data
    elif isinstance(data, Mapping):
        table = _from_columns(data)
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        table = _from_rows(data)
    else:
        table = _from_frame(data)
    names = table.column_names
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise GraphFormatError(
            f"column names must differ; {twice[0]!r} is there {names.count(twice[0])} times"
        )
    return table


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    """Build a table from named columns of one length."""
    made = {str(name): _column(str(name), values) for name, values in columns.items()}
    if len(made) < len(columns):
        raise GraphFormatError("column names must differ also as text, such as '1' and 1")
    lengths = {name: len(column) for name, column in made.items()}
    if len(set(lengths.values())) > 1:
        raise GraphFormatError(f"columns must have one length; got {lengths}")
    return pa.table(made)


def _from_rows(rows: Sequence[Any]) -> pa.Table:
    """Build a table from one mapping a row."""
    names: dict[Any, None] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise GraphFormatError(f"row {place}: expected a dict of column to value, got {row!r:.80}")
        names.update(dict.fromkeys(row))
    return _from_columns({name: [row.get(name) for row in rows] for name in names})


def _from_frame(data: Any) -> pa.Table:
    """Build a table from a data frame."""
    try:
        if type(data).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(data, preserve_index=False)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except _ARROW_FAULTS as fault:
        raise GraphFormatError(f"columns must differ by name and hold one type each: {fault}") from fault
    raise GraphFormatError(
        f"expected an Arrow table, a pandas or polars DataFrame, a dict of columns or a list of dicts; "
        f"got {type(data).__name__}"
    )


def _column(name: str, values: Any) -> pa.ChunkedArray:
    """Build one column."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise GraphFormatError(f"column {name!r}: expected a sequence of values, got {values!r:.80}")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise GraphFormatError(f"column {name!r}: expected one dimension, got shape {values.shape}")
    try:
        made = pa.array(values if hasattr(values, "__len__") else list(values), from_pandas=True)
    except _ARROW_FAULTS as fault:
        raise GraphFormatError(f"column {name!r}: values of one type are needed: {fault}") from fault
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])
