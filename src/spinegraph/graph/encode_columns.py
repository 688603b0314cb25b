"""Fitted columns: what a FeatureEncoder learned about one column of a table, and how it replays it."""

import hashlib
import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.encode_matrix import FARTHEST
from spinegraph.graph.encode_values import labels_of, numbers_of, seconds_of, truths_of

_READERS = {
    "number": numbers_of,
    "raw": numbers_of,
    "count": numbers_of,
    "date": seconds_of,
    "boolean": truths_of,
}
_EXAMPLES = 3


class Block(NamedTuple):
    """The encoded columns (n, w) of one table column, and what was odd about its values."""

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

    KINDS: ClassVar[tuple[str, ...]] = tuple(_READERS)
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
        if self.kind in ("number", "date"):
            with np.errstate(over="ignore"):
                filled = np.clip((filled - self.mean) / self.scale, -FARTHEST, FARTHEST)
        columns = [filled, gaps] if self.has_gaps else [filled]
        with np.errstate(over="ignore"):
            dense = np.column_stack(columns).astype(np.float32)
        if not np.isfinite(dense).all():
            raise GraphFormatError(f"column {self.name!r}: a value does not fit in 32-bit floats")
        return Block(sp.csr_array(dense), missing=int(gaps.sum()))

    @property
    def num_features(self) -> int:
        """Count the features."""
        return 1 + self.has_gaps

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name the features."""
        return (self.name, f"{self.name} is missing") if self.has_gaps else (self.name,)

    @classmethod
    def _read(cls, name: str, kind: str, column: pa.Array) -> NDArray[np.float64]:
        """Read and check values."""
        values = _READERS[kind](column, name)
        if kind in cls.WITHOUT_GAPS and np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise GraphFormatError(
                f"column {name!r}, row {row}: a {kind} column may have no gaps; fill them or choose 'number'"
            )
        if kind == "count" and (values < 0).any():
            row = int(np.flatnonzero(values < 0)[0])
            raise GraphFormatError(
                f"column {name!r}, row {row}: a count is at least 0; got {values[row]:g}; choose 'number'"
            )
        return values


@dataclass(frozen=True)
class CategoryColumn:
    """A column with few distinct values: one 0/1 feature for each, all 0 for a value never seen."""

    name: str
    levels: tuple[str, ...]
    has_gaps: bool = False
    kind: ClassVar[str] = "category"

    @classmethod
    def fit(cls, name: str, column: pa.Array) -> "CategoryColumn":
        """Learn the levels of a column."""
        texts, codes = labels_of(column, name)
        return cls(name, tuple(texts), has_gaps=bool((codes < 0).any()))

    def encode(self, column: pa.Array) -> Block:
        """Encode a column (n,) as (n, levels) or, if it had gaps, (n, levels + 1)."""
        texts, codes = labels_of(column, self.name)
        place = {level: number for number, level in enumerate(self.levels)}
        targets = np.array([place.get(text, -1) for text in texts] + [-1], dtype=np.int64)[codes]
        gaps = codes < 0
        unknown = (targets < 0) & ~gaps
        examples = tuple(texts[code] for code in np.unique(codes[unknown])[:_EXAMPLES])
        targets = np.where(gaps & self.has_gaps, len(self.levels), targets)
        return Block(_one_hot(targets, self.num_features), int(gaps.sum()), int(unknown.sum()), examples)

    @property
    def num_features(self) -> int:
        """Count the features."""
        return len(self.levels) + self.has_gaps

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name the features."""
        return _with_gap(self.name, [f"{self.name} = {level}" for level in self.levels], self.has_gaps)


@dataclass(frozen=True)
class HashedColumn:
    """A column with many distinct values: each falls into one of ``width`` 0/1 features by its hash."""

    name: str
    width: int
    has_gaps: bool = False
    kind: ClassVar[str] = "hashed"

    @classmethod
    def fit(cls, name: str, column: pa.Array, width: int) -> "HashedColumn":
        """Learn whether a column has gaps; the hash is fixed."""
        return cls(name, width, has_gaps=bool((labels_of(column, name).codes < 0).any()))

    def encode(self, column: pa.Array) -> Block:
        """Encode a column (n,) as (n, width) or, if it had gaps, (n, width + 1)."""
        texts, codes = labels_of(column, self.name)
        gaps = codes < 0
        targets = np.array([bucket(text, self.width) for text in texts] + [-1], dtype=np.int64)[codes]
        targets = np.where(gaps & self.has_gaps, self.width, targets)
        return Block(_one_hot(targets, self.num_features), int(gaps.sum()))

    @property
    def num_features(self) -> int:
        """Count the features."""
        return self.width + self.has_gaps

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name the features."""
        return _with_gap(
            self.name, [f"{self.name} # {number}" for number in range(self.width)], self.has_gaps
        )


FittedColumn = NumericColumn | CategoryColumn | HashedColumn


def fit_column(name: str, kind: str, column: pa.Array, hash_width: int) -> FittedColumn:
    """Learn a column of a kind that is kept."""
    if kind == CategoryColumn.kind:
        return CategoryColumn.fit(name, column)
    if kind == HashedColumn.kind:
        return HashedColumn.fit(name, column, hash_width)
    return NumericColumn.fit(name, kind, column)


def bucket(text: str, width: int) -> int:
    """Return the bucket of a text: BLAKE2b, so the same on every machine, unlike Python's own hash.

    Examples
    --------
    >>> bucket("Lisbon", 256) == bucket("Lisbon", 256) < 256
    True
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % width


def column_state(column: FittedColumn) -> dict[str, Any]:
    """Return what was learned as plain JSON values."""
    state: dict[str, Any] = {"name": column.name, "kind": column.kind, "has_gaps": column.has_gaps}
    if isinstance(column, NumericColumn):
        state |= {"mean": column.mean, "scale": column.scale}
    elif isinstance(column, CategoryColumn):
        state["levels"] = list(column.levels)
    else:
        state["width"] = column.width
    return state


def _one_hot(targets: NDArray[np.int64], width: int) -> sp.csr_array:
    """Return (n, width) with a 1 at each row's target; a row with target -1 stays empty."""
    rows = targets >= 0
    indptr = np.concatenate([[0], np.cumsum(rows)])
    return sp.csr_array((np.ones(indptr[-1], np.float32), targets[rows], indptr), shape=(len(targets), width))


def _with_gap(name: str, names: list[str], has_gaps: bool) -> tuple[str, ...]:
    """Add the name of the missing level."""
    return (*names, f"{name} is missing") if has_gaps else tuple(names)
