"""FeatureEncoder: tables of mixed columns as sparse float32 features, fitted once and applied to others."""

import hashlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
)
from spinegraph.graph.edges import row_sums
from spinegraph.graph.tables import (
    as_table,
    booleans_of,
    is_date,
    is_duration,
    is_number,
    is_text,
    labels_of,
    numbers_of,
    plain,
    seconds_of,
)

FORMAT, VERSION = "spinegraph.encoder", 1
KINDS = ("number", "category", "hashed", "boolean", "date", "count", "raw", "text", "skip")
SCALINGS = ("auto", "row", "row_sum", "column", "none")
MAX_HASH_WIDTH = 2**20
MAX_DEVIATIONS = 1e6  # keeps a value of 1e300 finite in float32 without touching real outliers
_CHUNK = 2**22  # values read at a time
_MANY_COUNTS = 16  # that many mostly empty columns are one matrix of counts spread over a table
_LONG_TEXT = 40  # mean characters
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$"
_EXAMPLES = 3

Matrix: TypeAlias = Any  # scipy.sparse.csr_array or NDArray[np.float32]: SciPy has no types


@dataclass(frozen=True)
class EncodingReport:
    """Missing, unknown and extra values that an encoder met.

    Attributes
    ----------
    rows : int
    missing : dict of column to count
        Gaps, which were filled.
    unknown : dict of column to count
        Categories never seen while fitting; their features are all 0.
    examples : dict of column to a few of its unknown categories
    extra : tuple of columns that the encoder does not know and ignored

    Examples
    --------
    >>> encoder = FeatureEncoder().fit({"team": ["north", "south"]})
    >>> encoder.transform_report({"team": ["north", "east"]})[1].unknown
    {'team': 1}
    """

    rows: int
    missing: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: tuple[str, ...] = ()


class FeatureEncoder:
    """Turn a table of mixed columns, or a matrix of numbers, into features for the nodes.

    Numbers and dates are standardised, booleans become 0 and 1, categories one 0/1 feature each, or a
    hashed one where there are many; counts are scaled by row to unit length; a gap is filled (mean, or
    a level of its own) and marked by a feature ``"<column> is missing"`` if the column had gaps while
    fitting. Text-like columns are left out with a warning. A category never seen has all features 0.

    Parameters
    ----------
    columns : dict of column to kind, optional
        Overrides: "number", "category", "hashed", "boolean", "date", "count", "raw" (untouched numbers),
        "text" or "skip" (both left out). Columns not named get a kind from their type and values.
    max_levels : int
        A string column with more distinct values is hashed.
    hash_width : int
        Features that a hashed column gets.
    scaling : {"auto", "row", "row_sum", "column", "none"}
        For a matrix. "auto" takes "row" (unit Euclidean length) where it is sparse without negative
        values, as word counts or TF-IDF are, else "column" (standardised); "none" leaves it untouched.
    extra : {"error", "ignore"}
        What to do with columns that were not there while fitting.

    Attributes
    ----------
    feature_names_ : tuple of str (f,)
    kinds_ : dict of column to kind
        Every column of the table, those left out too.
    scaling_ : str or None
        What "auto" chose for a matrix.

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
        hash_width: int = 256,
        scaling: str = "auto",
        extra: Literal["error", "ignore"] = "error",
    ) -> None:
        self.columns = columns
        self.max_levels = max_levels
        self.hash_width = hash_width
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
            raise ParameterError(f"feature_names must name {fitted.width} columns; got {len(names)} names")
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
        plains = {name: plain(table[name]) for name in table.column_names}
        kinds, reasons = _choose_kinds(plains, self.columns or {}, self.max_levels)
        for name, reason in reasons.items():
            way_in = f"To include it, pass columns={{{name!r}: 'hashed'}} or 'category'; to be silent, "
            warnings.warn(
                f"column {name!r} is left out: {reason}. "
                f"{way_in if kinds[name] == 'text' else 'To be silent, pass columns='}{{{name!r}: 'skip'}}",
                SkippedColumnWarning,
                stacklevel=2,
            )
        kept = [name for name, kind in kinds.items() if kind not in ("text", "skip")]
        if not kept:
            raise GraphFormatError(f"no column is left to encode; left out: {', '.join(map(repr, kinds))}")
        columns: list[NumericColumn | LabelColumn] = [
            LabelColumn.fit(name, kinds[name], plains[name], self.hash_width)
            if kinds[name] in ("category", "hashed")
            else NumericColumn.fit(name, kinds[name], plains[name])
            for name in kept
        ]
        # Counts come last, side by side, since they are scaled together.
        columns.sort(key=lambda column: column.kind == "count")
        self._fitted = Fitted(tuple(columns), {name: kinds[name] for name in kinds if name not in kept})
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
        """Encode like ``transform``, and report gaps, unknown categories and extra columns.

        Examples
        --------
        >>> encoder = FeatureEncoder().fit({"age": [30.0, 40.0]})
        >>> encoder.transform_report({"age": [50.0, None]})[1].missing
        {'age': 1}
        """
        fitted = self._need_fitted()
        if fitted.matrix is not None:
            matrix = fitted.matrix.apply(data)
            return matrix, EncodingReport(rows=matrix.shape[0])
        table = as_table(data)
        if table.num_rows == 0:
            return sp.csr_array((0, fitted.num_features), dtype=np.float32), EncodingReport(rows=0)
        extra = self._match_columns(fitted, table.column_names)
        blocks = {column.name: column.encode(plain(table[column.name])) for column in fitted.columns}
        report = EncodingReport(
            rows=table.num_rows,
            missing={name: block.missing for name, block in blocks.items() if block.missing},
            unknown={name: block.unknown for name, block in blocks.items() if block.unknown},
            examples={name: block.examples for name, block in blocks.items() if block.unknown},
            extra=extra,
        )
        return _assemble(fitted.columns, blocks), report

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
        """Whether the features have names of their own, rather than numbers."""
        fitted = self._need_fitted()
        return fitted.matrix is None or fitted.matrix_names is not None

    @property
    def kinds_(self) -> dict[str, str]:
        """Kind of every column; empty for a matrix."""
        fitted = self._need_fitted()
        return {column.name: column.kind for column in fitted.columns} | dict(fitted.left_out)

    @property
    def scaling_(self) -> str | None:
        """Scaling of a matrix, "auto" resolved; None for a table."""
        matrix = self._need_fitted().matrix
        return None if matrix is None else matrix.scaling

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self._need_fitted().num_features

    @property
    def column_of_feature(self) -> NDArray[np.int64]:
        """Number of the table column that each feature comes from, (f,); all counts are one column."""
        columns = self._need_fitted().columns
        first = next((i for i, column in enumerate(columns) if column.kind == "count"), 0)
        numbers = [first if column.kind == "count" else i for i, column in enumerate(columns)]
        return np.repeat(numbers, [column.num_features for column in columns])

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted encoder as JSON values and arrays.

        Examples
        --------
        >>> meta, arrays = FeatureEncoder().fit({"age": [30.0, 40.0]}).state()
        >>> FeatureEncoder.from_state(meta, arrays).transform({"age": [50.0]}).toarray().tolist()
        [[3.0]]
        """
        return _write_state(self._need_fitted(), self.extra)

    @classmethod
    def from_state(cls, meta: Any, arrays: Mapping[str, NDArray[Any]]) -> "FeatureEncoder":
        """Build an encoder from ``state()``; anything wrong with it is a ModelFormatError.

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
        """Return whether another encoder makes the same columns of every table.

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
                raise ParameterError(f"column {name!r}: a kind is one of {', '.join(KINDS)}; got {kind!r}")
        for setting, largest in (("max_levels", 2**20), ("hash_width", MAX_HASH_WIDTH)):
            value = getattr(self, setting)
            if not isinstance(value, int | np.integer) or not 1 <= value <= largest:
                raise ParameterError(f"{setting} must be an integer from 1 to {largest}; got {value!r}")
        if self.scaling not in SCALINGS:
            raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}; got {self.scaling!r}")
        if self.extra not in ("error", "ignore"):
            raise ParameterError(f"extra must be 'error' or 'ignore'; got {self.extra!r}")

    def _match_columns(self, fitted: "Fitted", found: Sequence[str]) -> tuple[str, ...]:
        """Check that the fitted columns are there; return those that are not known."""
        needed = [column.name for column in fitted.columns]
        absent = [name for name in needed if name not in set(found)]
        known = {*needed, *fitted.left_out}
        extra = tuple(name for name in found if name not in known)
        if absent or (extra and self.extra == "error"):
            wrong = [f"missing {', '.join(map(repr, absent[:5]))}"] if absent else []
            wrong += [f"not known {', '.join(map(repr, extra[:5]))}"] if extra else []
            raise MissingFeaturesError(
                f"the table must have the columns that the encoder was fitted on ({len(needed)}): "
                f"{'; '.join(wrong)}. For missing values pass the column with gaps; to ignore columns "
                "that are not known, set extra='ignore'"
            )
        return extra


@dataclass(frozen=True)
class Fitted:
    """The fitted columns of a table, or the scaling of a matrix."""

    columns: "tuple[NumericColumn | LabelColumn, ...]" = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    matrix: "MatrixScaling | None" = None
    matrix_names: tuple[str, ...] | None = None

    @property
    def num_features(self) -> int:  # noqa: D102
        return self.matrix.width if self.matrix else sum(column.num_features for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:  # noqa: D102
        if self.matrix is None:
            return tuple(name for column in self.columns for name in column.feature_names)
        return self.matrix_names or tuple(f"feature {number}" for number in range(self.matrix.width))


def _choose_kinds(
    columns: Mapping[str, pa.Array], overrides: Mapping[str, str], max_levels: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Return every column's kind, and the reason for each that is left out by default."""
    if unknown := [name for name in overrides if name not in columns]:
        raise ParameterError(
            f"columns names {unknown[0]!r}, which the table does not have; "
            f"it has {', '.join(list(columns)[:10])}"
        )
    kinds, reasons, counts = dict(overrides), {}, []
    for name, column in columns.items():
        if name in overrides:
            continue
        kinds[name], reason = _choose_kind(column, max_levels)
        if reason:
            reasons[name] = reason
        if is_number(column.type) and not column.null_count:
            values = np.asarray(column.cast(pa.float64(), safe=False))
            counts += [name] if values.min() >= 0 and np.count_nonzero(values) <= len(values) / 2 else []
    if len(counts) >= _MANY_COUNTS:
        kinds |= dict.fromkeys(counts, "count")
    return {name: kinds[name] for name in columns}, reasons


def _choose_kind(column: pa.Array, max_levels: int) -> tuple[str, str]:
    """Return a column's kind and, for one that is left out ("text", "skip"), why."""
    kind, values = column.type, column.drop_null()
    if not len(values):
        return "skip", "it holds no value at all"
    if is_number(kind):
        numbers = np.asarray(values.cast(pa.float64(), safe=False))
        numbers = numbers[~np.isnan(numbers)]
        return "boolean" if len(numbers) and np.isin(numbers, (0.0, 1.0)).all() else "number", ""
    if not is_text(kind):
        for known, is_kind in (("boolean", pa.types.is_boolean), ("date", is_date), ("number", is_duration)):
            if is_kind(kind):
                return known, ""
        return "skip", f"values of type {kind} have no encoding"
    if pc.all(pc.match_substring_regex(values, _DATE)).as_py():
        return "date", ""
    distinct, length = pc.count_distinct(values).as_py(), pc.mean(pc.utf8_length(values)).as_py()
    if length > _LONG_TEXT:
        return "text", f"it looks like free text ({length:.0f} characters on average)"
    if distinct > 20 and distinct > 0.9 * len(values):
        return "text", f"almost every value differs ({distinct} distinct in {len(values)} rows)"
    return ("category" if distinct <= max_levels else "hashed"), ""


class Block(NamedTuple):
    """The encoded columns (n, w) of one table column, and counts of its missing and unknown values."""

    matrix: sp.csr_array
    missing: int
    unknown: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers, dates, booleans, counts or raw values: one feature, two if it had gaps."""

    name: str
    kind: str
    mean: float = 0.0
    scale: float = 1.0
    has_gaps: bool = False

    KINDS: ClassVar[tuple[str, ...]] = ("number", "raw", "count", "date", "boolean")
    WITHOUT_GAPS: ClassVar[tuple[str, ...]] = ("raw", "count")

    @classmethod
    def fit(cls, name: str, kind: str, column: pa.Array) -> "NumericColumn":
        """Learn mean and scale from a column."""
        values = cls._read(name, kind, column)
        known = values[~np.isnan(values)]
        if kind in cls.WITHOUT_GAPS:
            return cls(name, kind)
        # A power of two is taken out first, which costs no digit, so that squares cannot overflow.
        exponent = math.frexp(np.abs(known).max(initial=0.0))[1]
        small = np.ldexp(known, -exponent) if len(known) else np.ones(1)
        mean, spread = math.ldexp(small.mean(), exponent), float(small.std())
        scale = 1.0 if kind == "boolean" else math.ldexp(spread, exponent)
        if spread <= 1e-12:
            # Rounding gives a constant column a tiny spread; dividing by it would blow noise up.
            mean, scale = float(known[0]) if len(known) else 0.0, 1.0
        return cls(name, kind, mean, scale, has_gaps=len(known) < len(values))

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
            raise GraphFormatError(f"column {self.name!r}: a value does not fit in 32-bit floats")
        return Block(sp.csr_array(dense), missing=int(gaps.sum()))

    @property
    def num_features(self) -> int:  # noqa: D102
        return 1 + self.has_gaps

    @property
    def feature_names(self) -> tuple[str, ...]:  # noqa: D102
        return (self.name, f"{self.name} is missing") if self.has_gaps else (self.name,)

    @classmethod
    def _read(cls, name: str, kind: str, column: pa.Array) -> NDArray[np.float64]:
        read = {"date": seconds_of, "boolean": booleans_of}.get(kind, numbers_of)
        values = read(column, name)
        if kind in cls.WITHOUT_GAPS and np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise GraphFormatError(
                f"column {name!r}, row {row}: a {kind} column has no gaps; choose 'number'"
            )
        if kind == "count" and (values < 0).any():
            row = int(np.flatnonzero(values < 0)[0])
            raise GraphFormatError(f"column {name!r}, row {row}: a count of {values[row]:g}; choose 'number'")
        return values


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels: one 0/1 feature for each of a few levels, or ``width`` of them for hashed labels.

    A category that was not seen while fitting has all features 0.
    """

    name: str
    kind: str  # "category" or "hashed"
    width: int
    levels: tuple[str, ...] = ()
    has_gaps: bool = False

    @classmethod
    def fit(cls, name: str, kind: str, column: pa.Array, hash_width: int) -> "LabelColumn":
        """Learn the levels of a column, and whether it has gaps."""
        texts, codes = labels_of(column, name)
        levels = tuple(texts) if kind == "category" else ()
        return cls(
            name,
            kind,
            len(levels) if kind == "category" else hash_width,
            levels,
            has_gaps=bool((codes < 0).any()),
        )

    def encode(self, column: pa.Array) -> Block:
        """Encode a column (n,) as (n, width) or, if it had gaps, (n, width + 1)."""
        texts, codes = labels_of(column, self.name)
        if self.kind == "hashed":
            features = [bucket(text, self.width) for text in texts]
        else:
            index = {level: number for number, level in enumerate(self.levels)}
            features = [index.get(text, -1) for text in texts]
        targets = np.array([*features, -1], dtype=np.int64)[codes]
        gaps = codes < 0
        unknown = (targets < 0) & ~gaps
        examples = tuple(texts[code] for code in np.unique(codes[unknown])[:_EXAMPLES])
        targets = np.where(gaps & self.has_gaps, self.width, targets)
        is_known = targets >= 0
        indptr = np.concatenate([[0], np.cumsum(is_known)])
        parts = np.ones(indptr[-1], np.float32), targets[is_known], indptr
        matrix = sp.csr_array(parts, shape=(len(targets), self.num_features))
        return Block(matrix, int(gaps.sum()), int(unknown.sum()), examples)

    @property
    def num_features(self) -> int:  # noqa: D102
        return self.width + self.has_gaps

    @property
    def feature_names(self) -> tuple[str, ...]:  # noqa: D102
        names = [f"{self.name} = {level}" for level in self.levels]
        if self.kind == "hashed":
            names = [f"{self.name} # {number}" for number in range(self.width)]
        return (*names, f"{self.name} is missing") if self.has_gaps else tuple(names)


def bucket(text: str, width: int) -> int:
    """Return the bucket of a text: BLAKE2b, so the same on every machine, unlike Python's own hash."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % width


def _assemble(columns: Sequence[NumericColumn | LabelColumn], blocks: Mapping[str, Block]) -> sp.csr_array:
    """Put the blocks side by side, counts scaled by row."""
    counts = [blocks[column.name].matrix for column in columns if column.kind == "count"]
    others = [blocks[column.name].matrix for column in columns if column.kind != "count"]
    if counts:
        others.append(_scale_rows(sp.hstack(counts, format="csr"), "row"))
    return sp.csr_array(sp.hstack(others, format="csr"), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class MatrixScaling:
    """How a matrix (n, f) is scaled.

    "row" divides each row by its Euclidean length, "row_sum" by its sum of absolute values; rows of zeros
    stay. "column" standardises each column, without centring a sparse matrix, since that would fill it.
    "none" leaves every value as it is.
    """

    scaling: str
    width: int  # f
    mean: NDArray[np.float64] | None = None  # (f,), of "column"; None where the matrix was sparse
    scale: NDArray[np.float64] | None = None  # (f,), of "column"

    @classmethod
    def fit(cls, matrix: Any, scaling: str = "auto") -> "MatrixScaling":
        """Choose the scaling and learn what it needs."""
        if scaling not in SCALINGS:
            raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}; got {scaling!r}")
        checked = _check_matrix(matrix)
        if scaling == "auto":
            scaling = "row" if _looks_like_counts(checked) else "column"
        width, rows = checked.shape[1], max(checked.shape[0], 1)
        if scaling != "column":
            return cls(scaling, width)
        mean, squares = None, np.zeros(width)
        if sp.issparse(checked):
            chunks = zip(_chunks(checked.indices, _CHUNK), _chunks(checked.data, _CHUNK), strict=True)
            for columns, values in chunks:
                squares += np.bincount(columns, values.astype(np.float64) ** 2, minlength=width)
            scale = np.sqrt(squares / rows)
        else:
            mean = checked.sum(axis=0, dtype=np.float64) / rows
            for chunk in _chunks(checked, _CHUNK // max(width, 1)):
                squares += ((chunk - mean) ** 2).sum(axis=0)
            scale = np.sqrt(squares / rows)
            # A constant column has a spread of rounding errors only.
            scale[scale <= 1e-7 * np.abs(mean)] = 1.0
        scale[scale == 0] = 1.0
        return cls(scaling, width, mean, scale)

    def apply(self, matrix: Any) -> Matrix:
        """Scale a matrix (n, f): dense stays dense and sparse stays sparse."""
        checked = _check_matrix(matrix)
        if checked.shape[1] != self.width:
            raise MissingFeaturesError(
                f"the encoder was fitted on {self.width} features per node, this matrix has "
                f"{checked.shape[1]}; pass the same columns in the same order"
            )
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


def _chunks(array: NDArray[Any], rows: int) -> Iterator[NDArray[Any]]:
    """Yield some rows at a time: an array may be a memory map larger than memory."""
    for start in range(0, len(array), max(rows, 1)):
        yield array[start : start + max(rows, 1)]


def _clipped(values: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.clip(values, -MAX_DEVIATIONS, MAX_DEVIATIONS).astype(np.float32)


def _check_matrix(matrix: Any) -> Matrix:
    """Return finite numbers (n, f) as float32: CSR if they were sparse, else a C-contiguous array."""
    sparse = sp.issparse(matrix)
    found: Any = np.asarray(matrix) if not sparse else matrix
    if sparse and not isinstance(matrix, sp.csr_array):
        found = sp.csr_array(matrix)
    if found.ndim != 2 or found.dtype.kind not in "biuf":
        shown = f"{found.dtype} of shape {found.shape}"
        raise GraphFormatError(f"a feature matrix must hold numbers in two dimensions; got {shown}")
    with np.errstate(over="ignore"):
        found = found.astype(np.float32, copy=False)
    if not all(np.isfinite(chunk).all() for chunk in _chunks(found.data if sparse else found, _CHUNK)):
        if sparse:
            entry = int(np.flatnonzero(~np.isfinite(found.data))[0])
            row, column = int(np.searchsorted(found.indptr, entry, side="right") - 1), found.indices[entry]
        else:
            row, column = np.argwhere(~np.isfinite(found))[0]
        raise GraphFormatError(
            f"features must be finite 32-bit floats; row {row}, column {column} is not (NaN, infinite or too "
            "large). Fill gaps first, or pass a table, whose missing values an encoder fills"
        )
    return found if sparse else np.ascontiguousarray(found)


def _looks_like_counts(matrix: Matrix) -> bool:
    """Return whether a matrix is like word counts: no negative value and, if dense, at least half zeros."""
    if sp.issparse(matrix):
        return bool(matrix.nnz == 0 or matrix.data.min() >= 0)
    return bool(matrix.size and matrix.min() >= 0 and np.count_nonzero(matrix) <= matrix.size / 2)


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


def _write_state(fitted: Fitted, extra: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return a fitted encoder as JSON values and arrays."""
    meta: dict[str, Any] = {"format": FORMAT, "version": VERSION, "extra": extra}
    if fitted.matrix is None:
        columns = [_column_state(column) for column in fitted.columns]
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


def _column_state(column: NumericColumn | LabelColumn) -> dict[str, Any]:
    state: dict[str, Any] = {"name": column.name, "kind": column.kind, "has_gaps": column.has_gaps}
    if isinstance(column, NumericColumn):
        return state | {"mean": column.mean, "scale": column.scale}
    return state | ({"width": column.width} if column.kind == "hashed" else {"levels": list(column.levels)})


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
    if any(not isinstance(name, str) or kind not in ("text", "skip") for name, kind in left_out.items()):
        raise ModelFormatError("encoder: left_out must map columns to 'text' or 'skip'")
    names = [column.name for column in columns]
    if not names or len({*names, *left_out}) < len(names) + len(left_out):
        raise ModelFormatError("encoder: columns must be there and have distinct names")
    are_counts = [column.kind == "count" for column in columns]
    if are_counts != sorted(are_counts):
        raise ModelFormatError("encoder: count columns must come last")
    return Fitted(columns, left_out), extra


def _read_matrix(state: JsonObject, arrays: Mapping[str, NDArray[Any]]) -> Fitted:
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


def _read_column(state: JsonObject) -> NumericColumn | LabelColumn:
    name, has_gaps = state.get("name", str), state.get("has_gaps", bool)
    kind = state.one_of("kind", *NumericColumn.KINDS, "category", "hashed")
    if kind == "hashed":
        return LabelColumn(name, kind, state.whole("width", 1, MAX_HASH_WIDTH), (), has_gaps)
    if kind == "category":
        levels = tuple(state.list_of("levels", str))
        if len(set(levels)) < len(levels):
            raise ModelFormatError(f"encoder column {name!r}: levels must differ")
        return LabelColumn(name, kind, len(levels), levels, has_gaps)
    mean, scale = state.number("mean"), state.number("scale")
    if scale <= 0:
        raise ModelFormatError(f"encoder column {name!r}: scale must be above 0; got {scale!r}")
    if has_gaps and kind in NumericColumn.WITHOUT_GAPS:
        raise ModelFormatError(f"encoder column {name!r}: a {kind} column has no gaps")
    return NumericColumn(name, kind, mean, scale, has_gaps)
