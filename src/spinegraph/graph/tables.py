"""Conversion of tables of any library to Arrow tables, and of their columns to NumPy values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError

_ARROW_FAULTS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def as_table(data: Any) -> pa.Table:
    """Return a table of any library, a dict of columns or a list of dicts as an Arrow table.

    Column names must be unique. Anything with the Arrow PyCapsule interface works too. The index of a pandas
    DataFrame is left out. In a list of dicts, missing keys are missing values. NaN counts as missing.
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
        raise GraphFormatError(f"column names must be unique; got {twice[0]!r} more than once")
    return table


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    made = {str(name): _column(str(name), values) for name, values in columns.items()}
    if len(made) < len(columns):
        raise GraphFormatError("column names must also differ as text, unlike '1' and 1")
    lengths = {name: len(column) for name, column in made.items()}
    if len(set(lengths.values())) > 1:
        raise GraphFormatError(f"columns must have the same length; got {lengths}")
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
            table, text = pa.table(data), pa.large_string()  # Arrow supports string views of polars poorly
            kinds = [text if pa.types.is_string_view(kind) else kind for kind in table.schema.types]
            return table.cast(pa.schema(zip(table.column_names, kinds, strict=True)))
    except _ARROW_FAULTS as fault:
        if getattr(getattr(data, "columns", None), "is_unique", False):  # pandas
            return _from_columns(dict(data))
        raise GraphFormatError(f"columns must have unique names and one type each: {fault}") from fault
    message = "expected an Arrow table, a pandas or polars DataFrame, a dict of columns or a list of dicts;"
    raise GraphFormatError(f"{message} got {type(data).__name__}")


def _column(name: str, values: Any) -> pa.ChunkedArray:
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise GraphFormatError(f"column {name!r}: expected a sequence of values, got {values!r:.80}")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise GraphFormatError(f"column {name!r}: expected one dimension, got shape {values.shape}")
    values = values if hasattr(values, "__len__") else list(values)
    try:
        made = pa.array(values, from_pandas=True)
    except _ARROW_FAULTS as fault:
        if str not in (kinds := set(map(type, values))) or kinds - {str, int, float, bool, type(None)}:
            raise GraphFormatError(f"column {name!r}: values must have one type: {fault}") from fault
        made = pa.array(map(_text, values))
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array without dictionary encoding."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # without chunks, or too large for one array
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


STYLES = (".", ",", "day", "month")  # of numbers, by the decimal mark, and of dates, by what comes first
ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
_GAPS = ("", "-", "--", "?", "na", "n/a", "#n/a", "nan", "null", "none", "unknown")
_WHOLE = "[+-]?(?:0|[1-9][0-9]*|[1-9][0-9]{{0,2}}(?:[{}' \xa0\u202f][0-9]{{3}})+)"
_POINT = re.compile(rf"(?:{_WHOLE.format(',')}(?:\.[0-9]*)?|[+-]?\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_COMMA = re.compile(rf"(?:{_WHOLE.format('.')}(?:,[0-9]*)?|[+-]?,[0-9]+)(?:[eE][+-]?[0-9]+)?")
NUMBERS = {".": _POINT, ",": _COMMA}
CURRENCY = "[$€£¥₹%]|EUR|USD|GBP|CHF"
_UNIT = re.compile(rf"^([+-]?)(?:{CURRENCY})\s*|\s*(?:{CURRENCY})$")
_DAY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})([T ]\d{2}:\d{2}(?::\d{2})?)?")


def parse_texts(column: pa.Array, kind: str | None = None, written: str = "") -> tuple[pa.Array, str, str]:
    """Return texts as numbers or as ISO 8601 dates if all of them except gaps are that, in the same style.

    Also returns the style, if it matters, and why texts were not parsed if only a few of them failed.
    """
    if not is_text(column.type) or kind in ("category", "text", "hashed", "ignore"):
        return column, "", ""
    coded, reason = column.dictionary_encode(), ""
    texts = [text.strip() for text in coded.dictionary.to_pylist()]
    known = [text for text in texts if text.lower() not in _GAPS]
    if kind and texts and not known:
        return pa.nulls(len(column), pa.float64()), written, ""
    styles = [written] if written else {None: STYLES, "date": STYLES[2:]}.get(kind, STYLES[:2])
    for style in (
        style for style in styles if any(read_value(text, style) is not None for text in known[:100])
    ):
        found = {text: read_value(text, style) for text in known}
        units = {"".join(re.findall(r"[^\d\s.,'eE+-]", text)) for text in known if style in NUMBERS}
        mixed = units - {""} if len(units - {""}) > 1 or units == {"", "%"} else ()
        odd = [text for text in known if found[text] is None] or [*mixed]
        other = [
            text for text in known if style == "day" != written and found[text] != read_value(text, "month")
        ]
        if 0 < len(odd) < min(len(column) / 20, len(known) / 2):
            reason = (
                f"read as words because of {', '.join(map(repr, odd[:3]))}; if those are gaps, empty them"
            )
        elif other and not odd and all(read_value(text, "month") for text in other):
            return column, "", f"read as words, since {other[0]!r} may begin with the day or the month"
        if not odd:
            read = pa.array([found.get(text) for text in texts]).take(coded.indices)
            return plain(pa.chunked_array([read])), style if style != "day" or other else "", ""
    return column, "", reason


def read_value(text: str, style: str) -> float | str | None:
    """Parse a number or, as ISO 8601, a date that is written in a style; None for other texts."""
    if style in NUMBERS:
        bare = _UNIT.sub(r"\1", text)
        is_number = NUMBERS[style].fullmatch(bare)
        return float(re.sub(f"[^0-9eE{style}+-]", "", bare).replace(",", ".")) if is_number else None
    found = _DAY.fullmatch(text)
    if not found or (style == "month" and found[2] == "."):
        return text if re.match(ISO_DATE, text) else None
    day, month = found.group(1, 3) if style == "day" else found.group(3, 1)
    with suppress(ValueError):
        return datetime.fromisoformat(f"{found[4]}-{month:0>2}-{day:0>2}{found[5] or ''}").isoformat()
    return None


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
        texts = [str(value) for value in column.to_pylist() if str(value).strip().lower() not in _GAPS]
        odd = [text for text in texts if read_value(text, ".") is None is read_value(text, ",")]
        found = f"got {[*odd, *texts][0]!r:.60}; correct it, or empty it if it is a gap"
        raise GraphFormatError(f"column {name!r}: expected numbers, {found}") from fault
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise GraphFormatError(f"column {name!r}, row {row}: {values[row]} is not finite; leave gaps empty")
    return values


def seconds_of(column: pa.Array, name: str) -> NDArray[np.float64]:
    """Return dates as seconds since 1970 in UTC, float64 (n,), NaN if missing.

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
    """Return booleans as 0 and 1, float64 (n,), NaN if missing."""
    texts, codes = labels_of(column, name)
    wrong = [text for text in texts if text.lower() not in _BOOLEANS]
    if wrong:
        raise GraphFormatError(f"column {name!r}: a boolean must be true, false, 1 or 0; got {wrong[0]!r}")
    return np.array([float(_BOOLEANS[text.lower()]) for text in texts] + [np.nan])[codes]


def labels_of(column: pa.Array, name: str) -> tuple[list[str], NDArray[np.int64]]:
    """Return the texts of a column's distinct values, and each row's index among them, -1 if missing.

    3, 3.0 and "3" are the same label, since a column may come from JSON or from a data frame, which turns
    integers with gaps into floats.
    """
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise GraphFormatError(f"column {name!r}: expected single values, got {kind}")
    if pa.types.is_null(kind):
        return [], np.full(len(column), -1, dtype=np.int64)
    if getattr(kind, "unit", None) == "ns":  # Python's datetime has microseconds only
        wanted = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.int64()
        column = column.cast(wanted, safe=False)
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
        message = f"column {name!r}: expected an ISO 8601 date such as 2024-05-31 or 2024-05-31T09:30:00Z;"
        raise GraphFormatError(f"{message} got {text!r:.60}") from fault
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _ticks(column: pa.Array) -> pa.Array:
    return (column.cast(pa.int32()) if pa.types.is_time32(column.type) else column).cast(pa.int64())


def _floats(column: pa.Array) -> NDArray[np.float64]:
    filled = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan"))
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64)
