"""Tables of any library as Arrow tables, and their columns as NumPy values."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError

_ARROW_FAULTS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def as_table(data: Any) -> pa.Table:
    """Return a table of any library, a dict of columns or a list of dicts as an Arrow table; names differ.

    Anything with the Arrow PyCapsule interface works too. The index of a pandas DataFrame is left out. In a
    list of dicts, a key that a row lacks is a missing value. NaN counts as missing.
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
        raise GraphFormatError(f"column names must differ; there are several {twice[0]!r}")
    return table


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    made = {str(name): _column(str(name), values) for name, values in columns.items()}
    if len(made) < len(columns):
        raise GraphFormatError("column names must differ also as text, such as '1' and 1")
    lengths = {name: len(column) for name, column in made.items()}
    if len(set(lengths.values())) > 1:
        raise GraphFormatError(f"columns must have one length; got {lengths}")
    return pa.table(made)


def _from_rows(rows: Sequence[Any]) -> pa.Table:
    names: dict[Any, None] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise GraphFormatError(f"row {number}: expected a dict of column to value, got {row!r:.80}")
        names.update(dict.fromkeys(row))
    return _from_columns({name: [row.get(name) for row in rows] for name in names})


def _from_frame(data: Any) -> pa.Table:
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


_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array without dictionary encoding."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # no chunk at all, or more than one array can hold
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    return whole.cast(pa.large_string()) if is_text(whole.type) else whole


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_date(kind: pa.DataType) -> bool:
    """Return whether a type holds dates or times."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_duration(kind: pa.DataType) -> bool:
    """Return whether a type holds times of day or durations."""
    return bool(pa.types.is_time(kind) or pa.types.is_duration(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def numbers_of(column: pa.Array, name: str) -> NDArray[np.float64]:
    """Return a column as float64 (n,), NaN where a value is missing; times and durations in seconds."""
    kind = column.type
    if is_duration(kind):
        return _floats(_ticks(column)) / _UNITS[kind.unit]
    if is_date(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise GraphFormatError(f"column {name!r}: expected numbers, got {kind}")
    try:
        values = _floats(column.cast(pa.float64(), safe=False))
    except pa.ArrowException as fault:
        raise GraphFormatError(f"column {name!r}: expected numbers: {fault}") from fault
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise GraphFormatError(f"column {name!r}, row {row}: {values[row]} is not finite; leave gaps empty")
    return values


def seconds_of(column: pa.Array, name: str) -> NDArray[np.float64]:
    """Return dates as seconds since 1970 in UTC, float64 (n,), NaN where missing.

    Strings are read as ISO 8601, numbers as seconds.
    """
    kind = column.type
    if pa.types.is_date32(kind):
        return _floats(column.cast(pa.int32())) * 86400.0
    if is_date(kind):
        return _floats(_ticks(column)) / (1e3 if pa.types.is_date64(kind) else _UNITS[kind.unit])
    if not is_text(kind):
        return numbers_of(column, name)
    texts, codes = labels_of(column, name)
    seconds = np.array([_seconds(text, name) for text in texts] + [np.nan])
    return seconds[codes]


def booleans_of(column: pa.Array, name: str) -> NDArray[np.float64]:
    """Return booleans as 0 and 1, float64 (n,), NaN where missing."""
    texts, codes = labels_of(column, name)
    wrong = [text for text in texts if text.lower() not in _BOOLEANS]
    if wrong:
        raise GraphFormatError(f"column {name!r}: a boolean is true, false, 1 or 0; got {wrong[0]!r}")
    return np.array([float(_BOOLEANS[text.lower()]) for text in texts] + [np.nan])[codes]


def labels_of(column: pa.Array, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the texts of a column's distinct values and each row's index among them, -1 where it is missing.

    3, 3.0 and "3" are one label: the same column may come as JSON on one day and, on another, from a data
    frame, which turns integers with gaps into floats.
    """
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise GraphFormatError(f"column {name!r}: expected single values, got {kind}")
    if pa.types.is_null(kind):
        return [], np.full(len(column), -1, dtype=np.int64)
    if getattr(kind, "unit", None) == "ns":  # Python's own datetime stops at microseconds
        column = column.cast(
            pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.int64(), safe=False
        )
    coded = column.dictionary_encode()
    values = [_text(value) for value in coded.dictionary.to_pylist()]
    codes = pc.fill_null(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    texts = sorted(set(values) - {None})  # type: ignore[type-var]
    index = {text: number for number, text in enumerate(texts)}
    merged = np.array([index.get(value, -1) for value in values] + [-1], dtype=np.int64)
    return texts, merged[codes]  # type: ignore[return-value]


def _text(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _seconds(text: str, name: str) -> float:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as fault:
        raise GraphFormatError(
            f"column {name!r}: expected an ISO 8601 date such as 2024-05-31 or 2024-05-31T09:30:00Z; "
            f"got {text!r:.60}"
        ) from fault
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _ticks(column: pa.Array) -> pa.Array:
    return (column.cast(pa.int32()) if pa.types.is_time32(column.type) else column).cast(pa.int64())


def _floats(column: pa.Array) -> NDArray[np.float64]:
    filled = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan"))
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64)
