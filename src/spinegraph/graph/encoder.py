"""FeatureEncoder: encodes tables of mixed columns as sparse float32 features; fitted once, then applied."""

import hashlib
import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.atomic import JsonObject
from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    ModelFormatError,
    ParameterError,
    SkippedColumnWarning,
    SpineWarning,
    UnfamiliarDataWarning,
)
from spinegraph.graph.edges import as_features, pieces, row_sums
from spinegraph.graph.tables import (
    ISO_DATE,
    STYLES,
    as_table,
    booleans_of,
    is_date,
    is_duration,
    is_number,
    is_text,
    labels_of,
    numbers_of,
    parse_texts,
    plain,
    seconds_of,
)

FORMAT, VERSION = "spinegraph.encoder", 1
KINDS = ("number", "category", "text", "boolean", "date", "count", "raw", "ignore")
SCALINGS = ("auto", "row", "row_sum", "column", "none")
OTHER, NO_ROW = "other", "no row in the table"
MAX_WIDTH = 2**20  # features of one column
MAX_DEVIATIONS = 1e6  # keeps a value of 1e300 finite in float32, without affecting real outliers
_FEW_VALUES, _FAR = 5, 10.0  # values from which a column is compared with the fitted one, and deviations
_CHUNK = 2**22  # values read at a time
_MANY_COUNTS = 16  # mostly empty columns from which they are taken for one matrix of counts
_SAMPLE = 1_000  # values whose words are counted to decide whether a column is text
_CHARACTERS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Chinese and Japanese, written without spaces
_WORD = re.compile(rf"[{_CHARACTERS}]|[^\W{_CHARACTERS}]{{2,}}")
_BETWEEN_SPACES = re.compile(rf"[{_CHARACTERS}]|[^\s{_CHARACTERS}]+")
_KEPT = "columns={NAME: 'category'} keeps it"

Matrix: TypeAlias = Any  # scipy.sparse.csr_array or NDArray[np.float32]: SciPy has no types


@dataclass(frozen=True)
class EncodingReport:
    """Missing and unknown values that an encoder found.

    Attributes
    ----------
    missing : dict of column to count
        Gaps, which were filled.
    unknown : dict of column to count
        Categories not seen while fitting, and texts without a known word; their features are all 0.

    Examples
    --------
    >>> encoder = FeatureEncoder().fit({"team": ["north", "south"]})
    >>> encoder.transform_report({"team": ["north", "east"]})[1].unknown
    {'team': 1}
    """

    missing: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)


class FeatureEncoder:
    """Encode a table of mixed columns, or a matrix of numbers, as features of nodes.

    Numbers and dates are standardised, booleans become 0 and 1, categories one 0/1 feature for each of their
    most common values and one for all others, text the TF-IDF of its words; counts are scaled by row to unit
    length. A gap is filled with the mean (for categories and text with 0) and marked by a feature ``"<column>
    is missing"`` if the column had gaps while fitting; a row without any value by ``"no row in the table"``.
    Identifier columns, with a different word in almost every row, are ignored with a warning. An unseen
    category counts as one of the others or, if there are none, has all features 0.

    Parameters
    ----------
    columns : dict of column to kind, optional
        Overrides: "number", "category", "text", "boolean", "date", "count", "raw" (unchanged numbers) or
        "ignore". Other columns get a kind from their type and values.
    max_levels : int
        Most values of a category that get a feature each.
    max_words : int
        Most words of a text column that get a feature each: those in most rows, but at most in half of them.
    scaling : {"auto", "row", "row_sum", "column", "none"}
        For a matrix. "auto" means "row" (unit Euclidean length) if it is sparse without negative values, like
        word counts or TF-IDF, else "column" (standardised); "none" leaves it unchanged.
    extra : {"error", "ignore"}
        What to do with columns that were not present while fitting.

    Attributes
    ----------
    feature_names_ : tuple of str (f,)
    kinds_ : dict of column to kind
        Every column of the table, including ignored ones.
    scaling_ : str or None
        The scaling of a matrix, with "auto" resolved.

    Examples
    --------
    >>> people = {"team": ["north", "south", "north"], "age": [30, 40, None]}
    >>> encoder = FeatureEncoder().fit(people)
    >>> encoder.feature_names_
    ('team = north', 'team = south', 'age', 'age is missing')
    >>> encoder.transform([{"team": "south", "age": 45}]).toarray().tolist()
    [[0.0, 1.0, 2.0, 0.0]]
    """

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        *,
        max_levels: int = 64,
        max_words: int = 2000,
        scaling: str = "auto",
        extra: Literal["error", "ignore"] = "error",
    ) -> None:
        self.columns = columns
        self.max_levels = max_levels
        self.max_words = max_words
        self.scaling = scaling
        self.extra = extra
        self._fitted: Fitted | None = None

    @classmethod
    def for_matrix(
        cls, matrix: Any, scaling: str = "auto", feature_names: Sequence[str] | None = None
    ) -> "FeatureEncoder":
        """Return an encoder fitted on a matrix (n, f) of numbers, dense or sparse.

        Examples
        --------
        >>> FeatureEncoder.for_matrix([[3.0, 5.0], [5.0, 5.0]]).transform([[5.0, 5.0]]).tolist()
        [[1.0, 0.0]]
        """
        encoder, fitted = cls(scaling=scaling), MatrixScaling.fit(matrix, scaling)
        names = None if feature_names is None else tuple(feature_names)
        if names is not None and len(names) != fitted.width:
            raise ParameterError(f"feature_names must have {fitted.width} names; got {len(names)}")
        encoder._fitted = Fitted(matrix=fitted, matrix_names=names)
        return encoder

    def fit(self, data: Any) -> "FeatureEncoder":
        """Learn kinds, levels, means and scales from a table (n rows) or a matrix (n, f).

        Examples
        --------
        >>> FeatureEncoder({"floor": "category"}).fit({"floor": [1, 2, 1]}).feature_names_
        ('floor = 1', 'floor = 2')
        """
        self._check_parameters()
        if isinstance(data, np.ndarray) or sp.issparse(data):
            self._fitted = Fitted(matrix=MatrixScaling.fit(data, self.scaling))
            return self
        table = as_table(data)
        if table.num_rows == 0:
            raise GraphFormatError("an encoder cannot be fitted on a table without rows")
        overrides = self.columns or {}
        plains, written, doubts = {}, dict[str, str](), dict[str, str]()
        for name in table.column_names:
            kind = overrides.get(name, "category" if pa.types.is_dictionary(table[name].type) else None)
            plains[name], written[name], doubts[name] = parse_texts(plain(table[name]), kind)
        kinds, reasons = _choose_kinds(plains, overrides, self.max_levels)
        kept = [name for name, kind in kinds.items() if kind != "ignore"]
        rows, is_row = _rows_with_values({name: plains[name] for name in kept})
        columns: list[Column] = []
        for name, column in rows.items():
            if kinds[name] == "category":
                columns.append(LabelColumn.fit(name, column, self.max_levels))
            elif kinds[name] == "text":
                columns.append(TextColumn.fit(name, column, self.max_words))
            else:
                columns.append(NumericColumn.fit(name, kinds[name], column, written[name]))
        texts = [each for each in columns if isinstance(each, TextColumn) and each.name not in overrides]
        for text in texts:
            if max(text.rows_with, default=0) < 2:
                reasons[text.name] = f"no word of it is in two rows; {_KEPT}"
        columns = [column for column in columns if column.name not in reasons]
        for name, reason in reasons.items():
            kinds[name], reason = "ignore", doubts.pop(name) or reason
            hint = f"{reason}; columns={{NAME: 'ignore'}} silences this warning".replace("NAME", repr(name))
            warnings.warn(f"column {name!r} is left out: {hint}", SkippedColumnWarning, stacklevel=2)
        for name in filter(doubts.get, doubts):
            warnings.warn(f"column {name!r} is {doubts[name]}", SpineWarning, stacklevel=2)
        if not columns:
            raise GraphFormatError(f"no column is left to encode; left out: {', '.join(map(repr, kinds))}")
        # Counts come last, next to each other, because they are scaled together.
        columns.sort(key=lambda column: column.kind == "count")
        ignored = tuple(name for name, kind in kinds.items() if kind == "ignore")
        self._fitted = Fitted(tuple(columns), ignored, missing_rows=not is_row.all())
        return self

    def transform(self, data: Any) -> Matrix:
        """Encode a table or matrix like the fitted one as float32 (n, f): CSR, or dense for a dense matrix.

        Examples
        --------
        >>> encoder = FeatureEncoder().fit({"age": [30.0, 40.0]})
        >>> encoder.transform({"age": [50.0]}).toarray().tolist()
        [[3.0]]
        """
        return self.transform_report(data)[0]

    def fit_transform(self, data: Any) -> Matrix:
        """Fit on ``data`` and encode it.

        Examples
        --------
        >>> FeatureEncoder().fit_transform({"remote": [True, False]}).toarray().tolist()
        [[1.0], [0.0]]
        """
        return self.fit(data).transform(data)

    def transform_report(self, data: Any) -> tuple[Matrix, EncodingReport]:
        """Encode like ``transform``, and report gaps and unknown categories.

        Examples
        --------
        >>> encoder = FeatureEncoder().fit({"age": [30.0, 40.0]})
        >>> encoder.transform_report({"age": [50.0, None]})[1].missing
        {'age': 1}
        """
        fitted = self._need_fitted()
        if fitted.matrix is not None:
            return fitted.matrix.apply(data), EncodingReport()
        table = as_table(data)
        if table.num_rows == 0:
            return sp.csr_array((0, fitted.num_features), dtype=np.float32), EncodingReport()
        self._match_columns(fitted, table.column_names)
        styles = {each.name: (each.kind, getattr(each, "written", "")) for each in fitted.columns}
        read = {name: parse_texts(plain(table[name]), *style)[0] for name, style in styles.items()}
        rows, is_row = _rows_with_values(read)
        blocks = {column.name: column.encode(rows[column.name]) for column in fitted.columns}
        missing = {name: block.missing + int((~is_row).sum()) for name, block in blocks.items()}
        report = EncodingReport(
            {name: count for name, count in missing.items() if count},
            {name: block.unknown for name, block in blocks.items() if block.unknown},
        )
        if unlike := "; ".join(f"{name}: {block.unlike}" for name, block in blocks.items() if block.unlike):
            message = f"columns differ from those the encoder was fitted on: {unlike}"
            warnings.warn(message, UnfamiliarDataWarning, stacklevel=3)
        parts = [blocks[column.name].matrix for column in fitted.columns if column.kind != "count"]
        if len(parts) < len(blocks):  # counts come last, and are scaled together by row
            counts = [blocks[column.name].matrix for column in fitted.columns[len(parts) :]]
            parts.append(_scale_rows(sp.hstack(counts, format="csr"), "row"))
        if fitted.missing_rows:
            parts.append(sp.csr_array((int(is_row.sum()), 1), dtype=np.float32))
        matrix = sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.float32)
        if not is_row.all():
            matrix = sp.vstack([matrix, fitted.empty_row], format="csr")
            matrix = matrix[np.where(is_row, np.cumsum(is_row) - 1, matrix.shape[0] - 1)]
        return sp.csr_array(matrix), report

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder is fitted."""
        return self._fitted is not None

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return self._need_fitted().feature_names

    @property
    def has_names(self) -> bool:
        """Whether the features have names rather than numbers."""
        fitted = self._need_fitted()
        return fitted.matrix is None or fitted.matrix_names is not None

    @property
    def kinds_(self) -> dict[str, str]:
        """Kind of every column; empty for a matrix."""
        fitted = self._need_fitted()
        return {each.name: each.kind for each in fitted.columns} | dict.fromkeys(fitted.ignored, "ignore")

    @property
    def summary_(self) -> list[str]:
        """The kind of each column of a table, as text."""
        merged = {each.name: getattr(each, "merged", 0) for each in self._need_fitted().columns}
        more = {name: f" ({count} values share one column)" for name, count in merged.items() if count}
        kinds = {name: kind.replace("ignore", "left out") for name, kind in self.kinds_.items()}
        return [f"{name} {kind}{more.get(name, '')}" for name, kind in kinds.items()]

    @property
    def scaling_(self) -> str | None:
        """Scaling of a matrix, with "auto" resolved; None for a table."""
        matrix = self._need_fitted().matrix
        return None if matrix is None else matrix.scaling

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self._need_fitted().num_features

    @property
    def column_of_feature(self) -> NDArray[np.int64]:
        """Index of the table column that each feature comes from, (f,); all counts are one column.

        The feature that marks missing rows belongs to the first column.
        """
        fitted = self._need_fitted()
        first = next((i for i, column in enumerate(fitted.columns) if column.kind == "count"), 0)
        numbers = [first if column.kind == "count" else i for i, column in enumerate(fitted.columns)]
        found = np.repeat(numbers, [column.num_features for column in fitted.columns])
        return np.append(found, found[:1]) if fitted.missing_rows else found

    @property
    def is_word(self) -> NDArray[np.bool_]:
        """Whether each feature, (f,), is a word of a text column."""
        columns = self._need_fitted().columns
        words = [isinstance(column, TextColumn) for column in columns]
        found = np.repeat(words, [column.num_features for column in columns])
        return np.append(found, np.zeros(self.num_features - len(found), bool))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted encoder as JSON values and arrays.

        Examples
        --------
        >>> meta, arrays = FeatureEncoder().fit({"age": [30.0, 40.0]}).state()
        >>> FeatureEncoder.from_state(meta, arrays).transform({"age": [50.0]}).toarray().tolist()
        [[3.0]]
        """
        fitted, meta = self._need_fitted(), {"format": FORMAT, "version": VERSION, "extra": self.extra}
        if fitted.matrix is None:
            columns = [
                {key: list(value) if isinstance(value, tuple) else value for key, value in state.items()}
                for state in (asdict(column) | {"kind": column.kind} for column in fitted.columns)
            ]
            known = {"columns": columns, "left_out": dict.fromkeys(fitted.ignored, "ignore")}
            return {**meta, "source": "table", **known, "missing_rows": fitted.missing_rows}, {}
        names = None if fitted.matrix_names is None else list(fitted.matrix_names)
        about = asdict(fitted.matrix)
        arrays = {key: values for key in ("mean", "scale") if (values := about.pop(key)) is not None}
        return {**meta, "source": "matrix", **about, "names": names}, arrays

    @classmethod
    def from_state(cls, meta: Any, arrays: Mapping[str, NDArray[Any]]) -> "FeatureEncoder":
        """Build an encoder from ``state()``; raises ModelFormatError if anything is wrong with it.

        Examples
        --------
        >>> FeatureEncoder.from_state({"format": "other"}, {})
        Traceback (most recent call last):
            ...
        spinegraph.errors.ModelFormatError: encoder: format must be 'spinegraph.encoder'; got 'other'
        """
        fitted, extra = _read_state(meta, arrays)
        encoder = cls(extra=extra)
        encoder._fitted = fitted
        return encoder

    def is_like(self, other: "FeatureEncoder") -> bool:
        """Return whether another encoder encodes every table in the same way.

        Examples
        --------
        >>> young = FeatureEncoder().fit({"age": [30.0, 40.0]})
        >>> young.is_like(FeatureEncoder().fit({"age": [60.0, 70.0]}))
        False
        """
        if self is other:
            return True
        (meta, arrays), (others, other_arrays) = self.state(), other.state()
        return (meta, arrays.keys()) == (others, other_arrays.keys()) and all(
            np.array_equal(values, other_arrays[name]) for name, values in arrays.items()
        )

    def _need_fitted(self) -> "Fitted":
        if self._fitted is None:
            raise ParameterError("the encoder is not fitted yet; call fit(table) first")
        return self._fitted

    def _check_parameters(self) -> None:
        for name, kind in (self.columns or {}).items():
            if kind not in KINDS:
                raise ParameterError(f"column {name!r}: kind must be one of {', '.join(KINDS)}; got {kind!r}")
        for setting in ("max_levels", "max_words"):
            value = getattr(self, setting)
            if not isinstance(value, int | np.integer) or not 1 <= value <= MAX_WIDTH:
                raise ParameterError(f"{setting} must be an integer from 1 to {MAX_WIDTH}; got {value!r}")
        if self.scaling not in SCALINGS:
            raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}; got {self.scaling!r}")
        if self.extra not in ("error", "ignore"):
            raise ParameterError(f"extra must be 'error' or 'ignore'; got {self.extra!r}")

    def _match_columns(self, fitted: "Fitted", found: Sequence[str]) -> None:
        """Raise if fitted columns are missing, or if there are others that are not ignored."""
        needed = [column.name for column in fitted.columns]
        absent = [name for name in needed if name not in set(found)]
        known = {*needed, *fitted.ignored}
        extra = [name for name in found if name not in known]
        if absent or (extra and self.extra == "error"):
            wrong = [f"missing {', '.join(map(repr, absent[:5]))}"] if absent else []
            wrong += [f"unknown {', '.join(map(repr, extra[:5]))}"] if extra else []
            message = f"the table must have the {len(needed)} columns that the encoder was fitted on"
            way_out = "For missing values pass a column of gaps; leave unknown columns out"
            raise MissingFeaturesError(f"{message}; {'; '.join(wrong)}. {way_out}")


@dataclass(frozen=True)
class Fitted:
    """The fitted columns of a table, or the scaling of a matrix."""

    columns: "tuple[Column, ...]" = ()
    ignored: tuple[str, ...] = ()
    missing_rows: bool = False  # whether there is a feature that marks rows without any value
    matrix: "MatrixScaling | None" = None
    matrix_names: tuple[str, ...] | None = None

    @property
    def num_features(self) -> int:  # noqa: D102
        if self.matrix is not None:
            return self.matrix.width
        return sum(column.num_features for column in self.columns) + self.missing_rows

    @property
    def feature_names(self) -> tuple[str, ...]:  # noqa: D102
        if self.matrix is None:
            names = [name for column in self.columns for name in column.feature_names]
            return (*names, *[NO_ROW] * self.missing_rows)
        return self.matrix_names or tuple(f"feature {number}" for number in range(self.matrix.width))

    @property
    def empty_row(self) -> sp.csr_array:
        """Features (1, f) of a row without any value."""
        gap, zero = pa.nulls(1), sp.csr_array((1, 1), dtype=np.float32)
        are_whole = [column.kind in NumericColumn.WITHOUT_GAPS for column in self.columns]
        columns = zip(self.columns, are_whole, strict=True)
        blocks = [zero if is_whole else column.encode(gap).matrix for column, is_whole in columns]
        blocks += [sp.csr_array(np.ones((1, 1), np.float32))] * self.missing_rows
        return sp.csr_array(sp.hstack(blocks, format="csr"))


def _rows_with_values(columns: Mapping[str, pa.Array]) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
    """Return the rows that have a value in some column, and a mask of them, (n,).

    For a single column all rows are returned, including gaps.
    """
    values = [~np.asarray(column.is_null(nan_is_null=True)) for column in columns.values()]
    found = np.ones(len(values[0]) if values else 0, bool)
    if len(values) > 1:
        found = np.logical_or.reduce(values)
    if found.all():
        return dict(columns), found
    return {name: column.filter(pa.array(found)) for name, column in columns.items()}, found


def _choose_kinds(
    columns: Mapping[str, pa.Array], overrides: Mapping[str, str], max_levels: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kind of every column, and the reason for each column that is ignored by default."""
    if unknown := [name for name in overrides if name not in columns]:
        raise ParameterError(f"columns: the table has {', '.join(list(columns)[:10])}; got {unknown[0]!r}")
    kinds, reasons, counts = dict(overrides), {}, []
    read = {name: column for name, column in columns.items() if overrides.get(name) != "ignore"}
    for name, column in _rows_with_values(read)[0].items():
        if name in overrides:
            continue
        kinds[name], reason = _choose_kind(column, max_levels)
        if reason:
            reasons[name] = reason
        if len(column) and is_number(column.type) and not column.null_count:
            values = np.asarray(column.cast(pa.float64(), safe=False))
            counts += [name] if values.min() >= 0 and np.count_nonzero(values) <= len(values) / 2 else []
    if len(counts) >= _MANY_COUNTS:
        kinds |= dict.fromkeys(counts, "count")
    return {name: kinds[name] for name in columns}, reasons


def _choose_kind(column: pa.Array, max_levels: int) -> tuple[str, str]:
    """Return a column's kind and, if it is ignored, the reason."""
    kind, values = column.type, column.drop_null()
    if not len(values):
        return "ignore", "it has no values"
    if is_number(kind):
        numbers = np.asarray(values.cast(pa.float64(), safe=False))
        numbers = numbers[~np.isnan(numbers)]
        return "boolean" if len(numbers) and np.isin(numbers, (0.0, 1.0)).all() else "number", ""
    if not is_text(kind):
        for known, is_kind in (("boolean", pa.types.is_boolean), ("date", is_date), ("number", is_duration)):
            if is_kind(kind):
                return known, ""
        return "ignore", f"values of type {kind} cannot be encoded"
    if pc.all(pc.match_substring_regex(values, ISO_DATE)).as_py():
        return "date", ""
    texts, rows = values.unique(), len(values)
    distinct, some = len(texts), texts[:_SAMPLE].to_pylist()
    if distinct <= min(max_levels, rows / 2):
        return "category", ""
    words = sum(len(_BETWEEN_SPACES.findall(text)) for text in some) / len(some)
    are_names = distinct > 20 and distinct > 0.9 * rows
    if words >= 1.5:
        return ("text" if words >= 3 or distinct > max_levels or are_names else "category"), ""
    if are_names:
        return "ignore", f"{distinct} of {rows} values differ, so it looks like an identifier; {_KEPT}"
    return "category", ""


class Block(NamedTuple):
    """The features (n, w) of one table column, and counts of its missing and unknown values."""

    matrix: sp.csr_array
    missing: int
    unknown: int = 0
    unlike: str = ""  # how it differs from the fitted column


def _unseen(texts: list[str], unknown: NDArray[np.int64], given: int, limit: float, rule: str) -> str:
    """Return a clause on unknown values if they are more than a share ``limit`` of those given."""
    if given < _FEW_VALUES or len(unknown) <= limit * given:
        return ""
    return f"{len(unknown):,} of {given:,} values {rule}, such as {texts[unknown[0]]!r:.60}"


class _Features:
    """Names of a column's features: its own, and one for gaps if it had any."""

    name: str
    has_gaps: bool

    @property
    def _own_names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (*self._own_names, *[f"{self.name} is missing"] * self.has_gaps)

    @property
    def num_features(self) -> int:
        return len(self._own_names) + self.has_gaps


@dataclass(frozen=True)
class NumericColumn(_Features):
    """A column of numbers, dates, booleans, counts or raw values: one feature, two if it had gaps."""

    name: str
    kind: str
    mean: float = 0.0
    scale: float = 1.0
    has_gaps: bool = False
    written: str = ""  # how numbers or dates in text were written, if known

    KINDS: ClassVar[tuple[str, ...]] = ("number", "raw", "count", "date", "boolean")
    WITHOUT_GAPS: ClassVar[tuple[str, ...]] = ("raw", "count")

    @classmethod
    def fit(cls, name: str, kind: str, column: pa.Array, written: str = "") -> "NumericColumn":
        """Learn mean and scale from a column."""
        values = cls._read(name, kind, column)
        known = values[~np.isnan(values)]
        if kind in cls.WITHOUT_GAPS:
            return cls(name, kind, written=written)
        # Divided by a power of two first, which loses no digits, so that squares cannot overflow.
        exponent = math.frexp(np.abs(known).max(initial=0.0))[1]
        small = np.ldexp(known, -exponent) if len(known) else np.ones(1)
        mean, spread = math.ldexp(small.mean(), exponent), float(small.std())
        scale = 1.0 if kind == "boolean" else math.ldexp(spread, exponent)
        if spread <= 1e-12:
            # Rounding gives a constant column a tiny deviation; dividing by it would amplify noise.
            mean, scale = float(known[0]) if len(known) else 0.0, 1.0
        return cls(name, kind, mean, scale, len(known) < len(values), written)

    def encode(self, column: pa.Array) -> Block:
        """Encode a column (n,) as (n, 1) or (n, 2)."""
        values = self._read(self.name, self.kind, column)
        gaps = np.isnan(values)
        filled = np.where(gaps, self.mean, values)
        with np.errstate(over="ignore"):
            if self.kind in ("number", "date"):
                filled = np.clip((filled - self.mean) / self.scale, -MAX_DEVIATIONS, MAX_DEVIATIONS)
            dense = np.column_stack([filled, gaps] if self.has_gaps else [filled]).astype(np.float32)
        if not np.isfinite(dense).all():
            raise GraphFormatError(f"column {self.name!r}: a value does not fit in float32; scale it down")
        given, unlike = values[~gaps], ""
        usual = np.median(given) if self.kind == "number" and len(given) >= _FEW_VALUES else self.mean
        if (away := abs(float(usual) - self.mean) / self.scale) > _FAR:
            shown = f"{float(f'{usual:.6g}'):,.15g} is {away:,.0f} deviations from the mean in training"
            unlike = f"its median {shown} (another unit?)"
        return Block(sp.csr_array(dense), int(gaps.sum()), unlike=unlike)

    @classmethod
    def _read(cls, name: str, kind: str, column: pa.Array) -> NDArray[np.float64]:
        read = {"date": seconds_of, "boolean": booleans_of}.get(kind, numbers_of)
        values = read(column, name)
        if kind in cls.WITHOUT_GAPS and np.isnan(values).any():
            row = int(np.isnan(values).argmax())
            raise GraphFormatError(f"column {name!r}, row {row}: gap in a {kind} column; use kind 'number'")
        if kind == "count" and (values < 0).any():
            row = int(np.flatnonzero(values < 0)[0])
            raise GraphFormatError(f"column {name!r}, row {row}: count {values[row]:g}; use kind 'number'")
        return values


@dataclass(frozen=True)
class LabelColumn(_Features):
    """A column of labels: one 0/1 feature for each level, the last of which may stand for all others.

    Version 0.1.0 hashed labels to ``width`` features if there were many.
    """

    name: str
    kind: str  # "category" or "hashed"
    width: int
    levels: tuple[str, ...] = ()
    has_gaps: bool = False
    has_other: bool = False
    merged: int = 0  # values that were merged while fitting, if known

    @classmethod
    def fit(cls, name: str, column: pa.Array, max_levels: int) -> "LabelColumn":
        """Learn the most common levels of a column, and whether it has gaps."""
        texts, codes = labels_of(column, name)
        levels, has_other = tuple(texts), len(texts) > max_levels
        if has_other:
            commonest = np.argsort(-np.bincount(codes[codes >= 0]), kind="stable")[:max_levels]
            levels = (*(texts[code] for code in sorted(commonest) if texts[code] != OTHER), OTHER)
        merged = len(texts) - len(levels) + 1 if has_other else 0
        return cls(name, "category", len(levels), levels, bool((codes < 0).any()), has_other, merged)

    def encode(self, column: pa.Array) -> Block:
        """Encode a column (n,) as (n, width) or, if it had gaps, (n, width + 1)."""
        texts, codes = labels_of(column, self.name)
        if self.kind == "hashed":
            features = [bucket(text, self.width) for text in texts]
        else:
            index, other = {level: i for i, level in enumerate(self.levels)}, self.width - 1
            features = [index.get(text, other if self.has_other else -1) for text in texts]
        targets = np.array([*features, -1], dtype=np.int64)[codes]
        gaps = codes < 0
        unknown = codes[(targets < 0) & ~gaps]
        targets = np.where(gaps & self.has_gaps, self.width, targets)
        is_known = targets >= 0
        indptr = np.concatenate([[0], np.cumsum(is_known)])
        parts = np.ones(indptr[-1], np.float32), targets[is_known], indptr
        matrix = sp.csr_array(parts, shape=(len(targets), self.num_features))
        unlike = _unseen(texts, unknown, len(codes) - int(gaps.sum()), 0.2, "were not seen in training")
        return Block(matrix, int(gaps.sum()), len(unknown), unlike)

    @property
    def _own_names(self) -> tuple[str, ...]:
        if self.kind == "hashed":
            return tuple(f"{self.name} # {number}" for number in range(self.width))
        return tuple(f"{self.name} = {level}" for level in self.levels)


@dataclass(frozen=True)
class TextColumn(_Features):
    """A column of text: TF-IDF of its words, as scikit-learn's TfidfVectorizer computes it.

    Words have two or more letters, in lower case; Chinese and Japanese are read character by character.
    """

    name: str
    words: tuple[str, ...]  # sorted
    rows_with: tuple[int, ...]  # number of rows that contain each word
    rows: int  # number of rows with text
    has_gaps: bool = False
    kind: ClassVar[str] = "text"

    @classmethod
    def fit(cls, name: str, column: pa.Array, max_words: int) -> "TextColumn":
        """Learn the words of a column that are in two rows or more, but in at most half of them."""
        texts, codes = labels_of(column, name)
        rows_of = np.bincount(codes[codes >= 0], minlength=len(texts))
        rows, counts = int(rows_of.sum()), Counter[str]()
        for text, count in zip(texts, rows_of.tolist(), strict=True):
            for word in set(words_of(text)):
                counts[word] += count
        usual = [word for word, count in counts.items() if 2 <= count <= max(rows / 2, 2)]
        words = sorted(sorted(usual or counts, key=lambda word: (-counts[word], word))[:max_words])
        return cls(name, tuple(words), tuple(counts[word] for word in words), rows, bool((codes < 0).any()))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def encode(self, column: pa.Array) -> Block:
        """Encode a column (n,) as (n, words) or, if it had gaps, (n, words + 1)."""
        texts, codes = labels_of(column, self.name)
        indices, counts, indptr = list[int](), list[int](), [0]
        for text in texts:
            found = Counter(self._index[word] for word in words_of(text) if word in self._index)
            indices += sorted(found)
            counts += [found[number] for number in sorted(found)]
            indptr.append(len(indices))
        inverse = np.log((1 + self.rows) / (1 + np.array(self.rows_with, np.float64))) + 1
        columns = np.array(indices, np.int32)
        gap = int(self.has_gaps)  # the row for gaps comes last, so that -1 selects it
        parts = (
            np.append(np.array(counts, np.float64) * inverse[columns], [1.0] * gap),
            np.append(columns, np.full(gap, len(self.words), np.int32)),
            np.append(indptr, len(indices) + gap),
        )
        shape = (len(texts) + 1, self.num_features)
        matrix = _scale_rows(sp.csr_array(parts, shape=shape), "row")
        unknown, missing = codes[(np.diff(matrix.indptr) == 0)[codes] & (codes >= 0)], int((codes < 0).sum())
        unlike = _unseen(texts, unknown, len(codes) - missing, 1 - 1e-9, "have no word seen in training")
        return Block(matrix[codes], missing, len(unknown), unlike)

    @property
    def _own_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {word}" for word in self.words)


Column: TypeAlias = NumericColumn | LabelColumn | TextColumn


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case: audits, of, 12, invoices in "Audits of 12 invoices, é"."""
    return _WORD.findall(text.lower())


def bucket(text: str, width: int) -> int:
    """Return the bucket of a text by BLAKE2b, which is the same on every machine, unlike Python's hash."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % width


@dataclass(frozen=True, eq=False)
class MatrixScaling:
    """How a matrix (n, f) is scaled.

    "row" divides each row by its Euclidean length, "row_sum" by its sum of absolute values; zero rows stay
    zero. "column" standardises each column, but does not centre a sparse matrix, which would make it dense.
    "none" changes nothing.
    """

    scaling: str
    width: int  # f
    mean: NDArray[np.float64] | None = None  # (f,), of "column"; None if the matrix was sparse
    scale: NDArray[np.float64] | None = None  # (f,), of "column"

    @classmethod
    def fit(cls, matrix: Any, scaling: str = "auto") -> "MatrixScaling":
        """Choose the scaling and learn its parameters."""
        if scaling not in SCALINGS:
            raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}; got {scaling!r}")
        checked = as_features(matrix)
        if scaling == "auto":  # "row" if like word counts: none below 0 and, if dense, half of them zeros
            values, limit = checked, checked.size / 2 or -1.0
            if sp.issparse(checked):
                values, limit = checked.data, np.inf
            are_counts = np.count_nonzero(values) <= limit and values.min(initial=0) >= 0
            scaling = "row" if are_counts else "column"
        width, rows = checked.shape[1], max(checked.shape[0], 1)
        if scaling != "column":
            return cls(scaling, width)
        mean, squares = None, np.zeros(width)
        if sp.issparse(checked):
            chunks = zip(pieces(checked.indices, _CHUNK), pieces(checked.data, _CHUNK), strict=True)
            for columns, values in chunks:
                squares += np.bincount(columns, values.astype(np.float64) ** 2, minlength=width)
            scale = np.sqrt(squares / rows)
        else:
            mean = checked.sum(axis=0, dtype=np.float64) / rows
            for chunk in pieces(checked, _CHUNK):
                squares += ((chunk - mean) ** 2).sum(axis=0)
            scale = np.sqrt(squares / rows)
            # The deviation of a constant column is rounding error.
            scale[scale <= 1e-7 * np.abs(mean)] = 1.0
        scale[scale == 0] = 1.0
        return cls(scaling, width, mean, scale)

    def apply(self, matrix: Any) -> Matrix:
        """Scale a matrix (n, f); dense stays dense and sparse stays sparse."""
        checked = as_features(matrix)
        if (width := checked.shape[1]) != self.width:
            message = f"the encoder was fitted on {self.width} features per node, but this matrix has {width}"
            raise MissingFeaturesError(f"{message}; pass the same columns in the same order")
        if self.scaling == "none":
            return checked.copy()
        if self.scale is None:
            return _scale_rows(checked, self.scaling)
        with np.errstate(over="ignore"):
            if sp.issparse(checked) and self.mean is None:
                scaled = checked.copy()
                scaled.data = _clipped(checked.data / self.scale[checked.indices])
                return scaled
            dense = checked.toarray() if sp.issparse(checked) else checked
            return _clipped((dense - (0.0 if self.mean is None else self.mean)) / self.scale)


def _clipped(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.clip(values, -MAX_DEVIATIONS, MAX_DEVIATIONS).astype(np.float32)


def _scale_rows(matrix: Matrix, scaling: str) -> Matrix:
    """Divide each row by its Euclidean length ("row") or sum of absolute values ("row_sum")."""
    sparse = sp.issparse(matrix)
    magnitudes = np.abs(matrix.data if sparse else matrix).astype(np.float64)
    if scaling == "row":
        magnitudes **= 2
    size = row_sums(matrix.indptr, magnitudes) if sparse else magnitudes.sum(axis=1)  # (n,)
    size = np.sqrt(size) if scaling == "row" else size
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    if sparse:
        data = (matrix.data * np.repeat(inverse, np.diff(matrix.indptr))).astype(np.float32)
        return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.asarray(matrix * inverse[:, None], dtype=np.float32)


def _read_state(meta: Any, arrays: Mapping[str, NDArray[Any]]) -> tuple[Fitted, Literal["error", "ignore"]]:
    """Check a state and return the fitted encoder and its rule for extra columns."""
    state = JsonObject(meta, "encoder")
    state.one_of("format", FORMAT)
    state.one_of("version", VERSION)
    extra = state.one_of("extra", "error", "ignore")
    if state.one_of("source", "table", "matrix") == "matrix":
        return _read_matrix(state, arrays), extra
    listed = state.list_of("columns", dict)
    columns = tuple(_read_column(JsonObject(column, "encoder column")) for column in listed)
    left_out = state.get("left_out", dict)
    # Version 0.1.0 left text out, and columns that the user had set to "skip".
    if any(kind not in ("ignore", "text", "skip") for kind in left_out.values()):
        raise ModelFormatError("encoder: left_out must map columns to 'ignore'")
    names = [column.name for column in columns]
    if not names or len({*names, *left_out}) < len(names) + len(left_out):
        raise ModelFormatError("encoder: there must be columns, with distinct names")
    are_counts = [column.kind == "count" for column in columns]
    if are_counts != sorted(are_counts):
        raise ModelFormatError("encoder: count columns must come last")
    missing_rows = "missing_rows" in state.meta and state.get("missing_rows", bool)
    return Fitted(columns, tuple(left_out), missing_rows), extra


def _read_matrix(state: JsonObject, arrays: Mapping[str, NDArray[Any]]) -> Fitted:
    scaling, width = state.one_of("scaling", *SCALINGS[1:]), state.whole("width", 0, 2**31 - 1)
    names = None if state.meta.get("names") is None else tuple(state.list_of("names", str))
    if names is not None and len(names) != width:
        raise ModelFormatError(f"encoder: names must have {width} entries; got {len(names)}")
    if scaling != "column":
        return Fitted(matrix=MatrixScaling(scaling, width), matrix_names=names)
    scale, mean = arrays.get("scale"), arrays.get("mean")
    for key, values in ({"scale": scale} | ({} if mean is None else {"mean": mean})).items():
        if values is None or values.shape != (width,) or values.dtype != np.float64:
            raise ModelFormatError(f"encoder: the array {key!r} must hold {width} floats")
        if not np.isfinite(values).all() or (key == "scale" and not (values > 0).all()):
            raise ModelFormatError(f"encoder: the array {key!r} must be finite, and scale above 0")
    return Fitted(matrix=MatrixScaling(scaling, width, mean, scale), matrix_names=names)


def _read_column(state: JsonObject) -> Column:
    name, has_gaps = state.get("name", str), state.get("has_gaps", bool)
    kind = state.one_of("kind", *NumericColumn.KINDS, "category", "text", "hashed")
    if kind == "hashed":
        return LabelColumn(name, kind, state.whole("width", 1, MAX_WIDTH), (), has_gaps)
    if kind in ("category", "text"):
        levels = tuple(state.list_of("levels" if kind == "category" else "words", str))
        if len(set(levels)) < len(levels):
            raise ModelFormatError(f"encoder column {name!r}: levels and words must differ")
        if kind == "text":
            rows, rows_with = state.whole("rows", 0, 2**53), tuple(state.list_of("rows_with", int))
            if len(rows_with) != len(levels) or not all(1 <= count <= rows for count in rows_with):
                raise ModelFormatError(f"encoder column {name!r}: every word must be in 1 to {rows} rows")
            return TextColumn(name, levels, rows_with, rows, has_gaps)
        has_other = "has_other" in state.meta and state.get("has_other", bool)
        merged = state.whole("merged", 0, 2**53) if "merged" in state.meta else 0
        if has_other and levels[-1:] != (OTHER,):
            raise ModelFormatError(f"encoder column {name!r}: the last level must be {OTHER!r}")
        return LabelColumn(name, kind, len(levels), levels, has_gaps, has_other, merged)
    mean, scale = state.number("mean"), state.number("scale")
    if scale <= 0:
        raise ModelFormatError(f"encoder column {name!r}: scale must be above 0; got {scale!r}")
    if has_gaps and kind in NumericColumn.WITHOUT_GAPS:
        raise ModelFormatError(f"encoder column {name!r}: a {kind} column has no gaps")
    written = state.one_of("written", "", *STYLES) if "written" in state.meta else ""
    return NumericColumn(name, kind, mean, scale, has_gaps, written)
