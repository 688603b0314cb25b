"""Which kind a column is, from its type and a few plain counts."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spinegraph.errors import ParameterError
from spinegraph.graph.encode_values import is_moment, is_number, is_span, is_text

KINDS = ("number", "category", "hashed", "boolean", "date", "count", "raw", "text", "skip")

_MANY_COUNTS = 16  # that many mostly empty columns are one matrix of counts spread over a table
_LONG_TEXT = 40  # mean characters
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def choose_kinds(
    columns: Mapping[str, pa.Array], overrides: Mapping[str, str], max_levels: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Return every column's kind, and the reason for each that is left out without the user's word.

    Examples
    --------
    >>> table = {"age": pa.array([30, 41]), "note": pa.array([None, None])}
    >>> choose_kinds(table, {"age": "raw"}, max_levels=64)
    ({'age': 'raw', 'note': 'skip'}, {'note': 'it holds no value at all'})
    """
    if strange := [name for name in overrides if name not in columns]:
        raise ParameterError(
            f"columns names {strange[0]!r}, which the table does not have; "
            f"it has {', '.join(list(columns)[:10])}"
        )
    kinds, reasons = {}, {}
    for name, column in columns.items():
        kinds[name], reason = (overrides[name], "") if name in overrides else choose_kind(column, max_levels)
        if reason:
            reasons[name] = reason
    counts = [name for name in columns if name not in overrides and _is_mostly_zero(columns[name])]
    if len(counts) >= _MANY_COUNTS:
        kinds |= dict.fromkeys(counts, "count")
    return kinds, reasons


def choose_kind(column: pa.Array, max_levels: int) -> tuple[str, str]:
    """Return a column's kind and, for one that is left out ("text", "skip"), why.

    Examples
    --------
    >>> choose_kind(pa.array(["north", "south", "north"]), max_levels=64)
    ('category', '')
    >>> choose_kind(pa.array([0, 1, None]), max_levels=64)
    ('boolean', '')
    >>> choose_kind(pa.array([None, None]), max_levels=64)
    ('skip', 'it holds no value at all')
    """
    kind = column.type
    if len(column) == column.null_count:
        return "skip", "it holds no value at all"
    if pa.types.is_boolean(kind):
        return "boolean", ""
    if is_number(kind):
        return _number_kind(column), ""
    if is_moment(kind):
        return "date", ""
    if is_span(kind):
        return "number", ""
    if is_text(kind):
        return _text_kind(column.drop_null(), max_levels)
    return "skip", f"values of type {kind} have no encoding"


def _is_mostly_zero(column: pa.Array) -> bool:
    """Say whether a column is numbers from 0 up without gaps, at least half of them 0."""
    if not is_number(column.type) or column.null_count:
        return False
    values = np.asarray(column.cast(pa.float64(), safe=False))
    return bool(values.min() >= 0 and np.count_nonzero(values) <= len(values) / 2)


def _number_kind(column: pa.Array) -> str:
    """Return "boolean" where numbers are all 0 or 1, else "number"."""
    values = np.asarray(pc.drop_null(column).cast(pa.float64(), safe=False))
    values = values[~np.isnan(values)]
    return "boolean" if len(values) and bool(np.isin(values, (0.0, 1.0)).all()) else "number"


def _text_kind(column: pa.Array, max_levels: int) -> tuple[str, str]:
    """Return the kind of strings without gaps."""
    if pc.all(pc.match_substring_regex(column, _DATE)).as_py():
        return "date", ""
    distinct = pc.count_distinct(column).as_py()
    length = pc.mean(pc.utf8_length(column)).as_py()
    if length > _LONG_TEXT:
        return "text", f"it looks like free text ({length:.0f} characters on average)"
    if distinct > 20 and distinct > 0.9 * len(column):
        return "text", f"almost every value differs ({distinct} distinct in {len(column)} rows)"
    return ("category" if distinct <= max_levels else "hashed"), ""
