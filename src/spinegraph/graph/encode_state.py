"""What a FeatureEncoder learned, to JSON and arrays and back; what comes back is trusted in nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import ModelFormatError
from spinegraph.graph.encode_columns import (
    CategoryColumn,
    FittedColumn,
    HashedColumn,
    NumericColumn,
    column_state,
)
from spinegraph.graph.encode_matrix import SCALINGS, MatrixScaling
from spinegraph.json_object import JsonObject

FORMAT, VERSION = "spinegraph.encoder", 1
WIDEST_HASH = 2**20


@dataclass(frozen=True)
class Fitted:
    """The fitted columns of a table, or the scaling of a matrix."""

    columns: tuple[FittedColumn, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    matrix: MatrixScaling | None = None
    matrix_names: tuple[str, ...] | None = None

    @property
    def num_features(self) -> int:
        """Count the features without naming them."""
        return self.matrix.width if self.matrix else sum(int(column.num_features) for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name the features, in order."""
        if self.matrix is None:
            return tuple(name for column in self.columns for name in column.feature_names)
        return self.matrix_names or tuple(f"feature {number}" for number in range(self.matrix.width))


def write_state(fitted: Fitted, extra: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what was learned as JSON values and arrays."""
    meta: dict[str, Any] = {"format": FORMAT, "version": VERSION, "extra": extra}
    if fitted.matrix is None:
        columns = [column_state(column) for column in fitted.columns]
        return meta | {"source": "table", "columns": columns, "left_out": dict(fitted.left_out)}, {}
    names = None if fitted.matrix_names is None else list(fitted.matrix_names)
    meta |= {
        "source": "matrix",
        "scaling": fitted.matrix.scaling,
        "width": fitted.matrix.width,
        "names": names,
    }
    learned = {"mean": fitted.matrix.mean, "scale": fitted.matrix.scale}
    return meta, {key: values for key, values in learned.items() if values is not None}


def read_state(meta: Any, arrays: Mapping[str, NDArray[Any]]) -> tuple[Fitted, Literal["error", "ignore"]]:
    """Check a state and return what was learned and the rule for extra columns."""
    state = JsonObject(meta, "encoder")
    state.one_of("format", FORMAT)
    state.one_of("version", VERSION)
    extra = state.one_of("extra", "error", "ignore")
    if state.one_of("source", "table", "matrix") == "matrix":
        return _read_matrix(state, arrays), extra
    columns = tuple(
        _read_column(JsonObject(each, "encoder column")) for each in state.list_of("columns", dict)
    )
    left_out = state.get("left_out", dict)
    if any(not isinstance(name, str) or kind not in ("text", "skip") for name, kind in left_out.items()):
        raise ModelFormatError("encoder: left_out must map columns to 'text' or 'skip'")
    names = [column.name for column in columns]
    if not names or len({*names, *left_out}) < len(names) + len(left_out):
        raise ModelFormatError("encoder: columns must be there and have distinct names")
    if [column.kind == "count" for column in columns] != sorted(column.kind == "count" for column in columns):
        raise ModelFormatError("encoder: count columns must come last")
    return Fitted(columns, left_out), extra


def _read_matrix(state: JsonObject, arrays: Mapping[str, NDArray[Any]]) -> Fitted:
    """Check the scaling of a matrix."""
    scaling, width = state.one_of("scaling", *SCALINGS[1:]), state.whole("width", 0, 2**31 - 1)
    names = None if state.meta.get("names") is None else tuple(state.list_of("names", str))
    if names is not None and len(names) != width:
        raise ModelFormatError(f"encoder: names must name {width} columns; got {len(names)}")
    if scaling != "column":
        return Fitted(matrix=MatrixScaling(scaling, width), matrix_names=names)
    scale, mean = arrays.get("scale"), arrays.get("mean")
    for key, values in ({"scale": scale} | ({} if mean is None else {"mean": mean})).items():
        if values is None or values.shape != (width,) or values.dtype != np.float64:
            raise ModelFormatError(f"encoder: the array {key!r} must hold {width} floats")
        if not np.isfinite(values).all() or (key == "scale" and not (values > 0).all()):
            raise ModelFormatError(f"encoder: the array {key!r} must be finite, and scale above 0")
    return Fitted(matrix=MatrixScaling(scaling, width, mean, scale), matrix_names=names)


def _read_column(state: JsonObject) -> FittedColumn:
    """Check one column."""
    name, has_gaps = state.get("name", str), state.get("has_gaps", bool)
    kind = state.one_of("kind", *NumericColumn.KINDS, CategoryColumn.kind, HashedColumn.kind)
    if kind == HashedColumn.kind:
        return HashedColumn(name, state.whole("width", 1, WIDEST_HASH), has_gaps)
    if kind == CategoryColumn.kind:
        levels = tuple(state.list_of("levels", str))
        if len(set(levels)) < len(levels):
            raise ModelFormatError(f"encoder column {name!r}: levels must differ")
        return CategoryColumn(name, levels, has_gaps)
    mean, scale = state.number("mean"), state.number("scale")
    if scale <= 0:
        raise ModelFormatError(f"encoder column {name!r}: scale must be above 0; got {scale!r}")
    if has_gaps and kind in NumericColumn.WITHOUT_GAPS:
        raise ModelFormatError(f"encoder column {name!r}: a {kind} column has no gaps")
    return NumericColumn(name, kind, mean, scale, has_gaps)
