"""FeatureEncoder: a table of mixed columns as sparse float32 features, fitted once and replayed."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError, SkippedColumnWarning
from spinegraph.graph.encode_choice import KINDS, choose_kinds
from spinegraph.graph.encode_columns import Block, FittedColumn, fit_column
from spinegraph.graph.encode_matrix import SCALINGS, Matrix, MatrixScaling, scale_rows
from spinegraph.graph.encode_state import WIDEST_HASH, Fitted, read_state, write_state
from spinegraph.graph.encode_values import plain
from spinegraph.graph.table import as_table


@dataclass(frozen=True)
class EncodingReport:
    """What was odd about the values that an encoder met.

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
        encoder = cls(scaling=scaling)
        fitted = MatrixScaling.fit(matrix, scaling)
        if feature_names is not None and len(feature_names) != fitted.width:
            raise ParameterError(
                f"feature_names must name {fitted.width} columns; got {len(feature_names)} names"
            )
        encoder._fitted = Fitted(
            matrix=fitted, matrix_names=None if feature_names is None else tuple(feature_names)
        )
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
        kinds, reasons = choose_kinds(plains, self.columns or {}, self.max_levels)
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
        columns = [fit_column(name, kinds[name], plains[name], self.hash_width) for name in kept]
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
        """Encode like ``transform`` and say what was odd: gaps, unknown categories, extra columns.

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
        """Say whether the encoder has learned from data yet."""
        return self._fitted is not None

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Name the features, in order."""
        return self._need_fitted().feature_names

    @property
    def has_names(self) -> bool:
        """Say whether the features carry names of the user's, rather than numbers."""
        fitted = self._need_fitted()
        return fitted.matrix is None or fitted.matrix_names is not None

    @property
    def kinds_(self) -> dict[str, str]:
        """Name every column's kind; empty for a matrix."""
        fitted = self._need_fitted()
        return {column.name: column.kind for column in fitted.columns} | dict(fitted.left_out)

    @property
    def scaling_(self) -> str | None:
        """Name the scaling that a matrix gets, "auto" resolved; None for a table."""
        matrix = self._need_fitted().matrix
        return None if matrix is None else matrix.scaling

    @property
    def num_features(self) -> int:
        """Count the features."""
        return self._need_fitted().num_features

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that was learned, as JSON values and as arrays.

        Examples
        --------
        >>> meta, arrays = FeatureEncoder().fit({"age": [30.0, 40.0]}).state()
        >>> FeatureEncoder.from_state(meta, arrays).transform({"age": [50.0]}).toarray().tolist()
        [[3.0]]
        """
        return write_state(self._need_fitted(), self.extra)

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
        fitted, extra = read_state(meta, arrays)
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

    def _need_fitted(self) -> Fitted:
        """Return what was learned."""
        if self._fitted is None:
            raise ParameterError("the encoder is not fitted yet; call fit(table) first")
        return self._fitted

    def _check_parameters(self) -> None:
        """Check every setting."""
        for name, kind in (self.columns or {}).items():
            if kind not in KINDS:
                raise ParameterError(
                    f"the kind of column {name!r} must be one of {', '.join(KINDS)}; got {kind!r}"
                )
        for setting, largest in (("max_levels", 2**20), ("hash_width", WIDEST_HASH)):
            value = getattr(self, setting)
            if not isinstance(value, int | np.integer) or not 1 <= value <= largest:
                raise ParameterError(f"{setting} must be an integer from 1 to {largest}; got {value!r}")
        if self.scaling not in SCALINGS:
            raise ParameterError(f"scaling must be one of {', '.join(SCALINGS)}; got {self.scaling!r}")
        if self.extra not in ("error", "ignore"):
            raise ParameterError(f"extra must be 'error' or 'ignore'; got {self.extra!r}")

    def _match_columns(self, fitted: Fitted, found: Sequence[str]) -> tuple[str, ...]:
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


def _assemble(columns: Sequence[FittedColumn], blocks: Mapping[str, Block]) -> sp.csr_array:
    """Put the blocks side by side, counts scaled by row."""
    counts = [blocks[column.name].matrix for column in columns if column.kind == "count"]
    others = [blocks[column.name].matrix for column in columns if column.kind != "count"]
    if counts:
        others.append(scale_rows(sp.hstack(counts, format="csr")))
    return sp.csr_array(sp.hstack(others, format="csr"), dtype=np.float32)
