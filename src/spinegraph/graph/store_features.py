"""Last stage of building a store: feature rows brought into its nodes' order, by name, on disk."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinegraph.atomic import explained
from spinegraph.errors import GraphFormatError, MissingFeaturesError, SpineWarning
from spinegraph.graph.align import Missing
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.files.feature_tables import name_column
from spinegraph.graph.files.features import is_number, is_plain, join_features, names_like, read_features
from spinegraph.graph.files.parquet_edges import open_parquet
from spinegraph.graph.files.source import opened
from spinegraph.graph.names import first_few
from spinegraph.graph.store import write_features
from spinegraph.graph.store_files import entry_of
from spinegraph.graph.store_header import Entry
from spinegraph.graph.store_scan import Progress

_BATCH = 2**14
_MOST_SHOWN = 6
_ZEROS = 2**22  # bytes written at a time


def add_features(
    features: str | Path,
    graph: Any,
    folder: Path,
    *,
    node_column: str | int | None = None,
    missing: Missing = "error",
    encoder: FeatureEncoder | None = None,
    told: Progress,
) -> tuple[int, tuple[str, ...] | None, dict[str, Entry]]:
    """Write the features of a file as those of a graph's nodes; returns their number, names and files.

    Parquet whose columns are numbers is read a batch at a time; anything else is read whole.
    """
    told("joining features", 0, len(graph))
    if encoder is None:
        titles = _from_parquet(features, graph, folder, node_column, missing, told)
        if titles is not None:
            entry = entry_of(folder / "features.bin", np.float32, (len(titles),))
            return len(titles), titles, {"features.bin": entry}
    found = read_features(features, node_column)
    if encoder is None and not is_plain(found.data):
        other = [field.name for field in found.data.schema if not is_number(field.type)]
        raise MissingFeaturesError(
            f"{found.path}: {first_few(other, 3)} hold other than numbers; a store keeps numbers alone: pass "
            "the encoder that makes numbers of them, encoder=FeatureEncoder().fit(table), or leave them out"
        )
    names = graph.names if isinstance(graph.names, np.ndarray) else np.asarray(graph.names)
    contents = FileContents(str(features), names, np.zeros((0, 2), np.int64))
    joined = join_features(contents, found, missing=missing, encoder=encoder)
    files: dict[str, Entry] = {}
    width = write_features(_float32(joined.features), folder, files)
    return width or 0, joined.feature_names, files


def bare_rows(features: str | Path) -> int | None:
    """Return the number of rows of a matrix without names, which says how many nodes there are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file, np.eye(3)), file.flush()
    ...     bare_rows(file.name)
    (None, None)
    3
    """
    with opened(features) as source:
        if source.kind not in ("npy", "npz"):
            return None
    found = read_features(features)
    return int(found.data.shape[0]) if found.names is None and found.data.ndim == 2 else None


def _float32(matrix: Any) -> Any:
    if isinstance(matrix, np.ndarray):
        return np.ascontiguousarray(matrix, dtype=np.float32)
    matrix = matrix.astype(np.float32)
    matrix.sum_duplicates()
    return matrix


def _reserve(path: Path, size: int) -> None:
    """Make a file of zeros and take its room at once: a full disk is an error here, a crash in a map."""
    with explained(path), path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
            return
        for start in range(0, size, _ZEROS):  # macOS and Windows
            file.write(bytes(min(_ZEROS, size - start)))


def _from_parquet(
    features: str | Path,
    graph: Any,
    folder: Path,
    node_column: str | int | None,
    missing: Missing,
    told: Progress,
) -> tuple[str, ...] | None:
    """Write the rows of a Parquet table of numbers one batch after the other; None where it is no such."""
    with opened(features) as source:
        if source.kind != "parquet":
            return None
        with open_parquet(source.stream, source.path) as file:
            schema = file.schema_arrow
            place = name_column(schema.names, node_column, source.path)
            columns = [field for number, field in enumerate(schema) if number != place]
            if not columns or not all(is_number(field.type) for field in columns):
                return None
            titles = tuple(field.name for field in columns)
            rows = _Rows(graph, folder / "features.bin", titles, source.path, missing)
            done = 0
            for batch in file.iter_batches(batch_size=_BATCH):
                rows.add(batch.column(place), batch.drop_columns([schema.names[place]]), done)
                done += len(batch)
                told("joining features", min(done, len(graph)), len(graph))
            rows.finish()
            return titles


class _Rows:
    """A matrix (n, f) on disk, filled by named rows in any order."""

    def __init__(
        self, graph: Any, path: Path, titles: tuple[str, ...], source: str, missing: Missing
    ) -> None:
        self._graph, self._titles, self._source, self._missing = graph, titles, source, missing
        self._is_filled = np.zeros(len(graph), dtype=bool)
        self._unknown: list[Any] = []
        self._unknown_count = 0
        _reserve(path, 4 * len(graph) * len(titles))
        self._matrix = np.memmap(path, np.float32, "r+", shape=(len(graph), len(titles)))

    def add(self, names: Any, table: Any, first_row: int) -> None:
        wanted = self._names(names, first_row)
        places = self._graph._name_index.find(wanted)
        values = self._values(table, first_row)
        unknown = np.flatnonzero(places < 0)
        self._unknown += wanted[unknown[:_MOST_SHOWN]].tolist()
        self._unknown_count += len(unknown)
        known = np.flatnonzero(places >= 0)
        order = known[np.argsort(places[known], kind="stable")]  # ascending: pages of the map are met once
        found = places[order]
        twice = self._is_filled[found]
        twice[1:] |= found[1:] == found[:-1]
        if twice.any():
            raise MissingFeaturesError(
                f"{self._source}: feature rows: node names must be unique; given more than once: "
                f"{first_few(self._graph.names[found[twice][:_MOST_SHOWN]])}"
            )
        self._is_filled[found] = True
        self._matrix[found] = values[order]

    def finish(self) -> None:
        clauses = []
        empty = np.flatnonzero(~self._is_filled)
        if len(empty):
            some = first_few(self._graph.names[empty[:_MOST_SHOWN]])
            clauses.append(f"{len(empty)} of {len(self._graph)} nodes have no feature row: {some}")
        if self._unknown_count:
            clauses.append(f"{self._unknown_count} feature rows name no node: {first_few(self._unknown)}")
        if clauses and self._missing == "error":
            raise MissingFeaturesError(
                f"{self._source}: {'; '.join(clauses)}; pass missing='zero' to give nodes without a row "
                "zeros and to leave other rows out"
            )
        if self._unknown_count:
            warnings.warn(
                f"{self._source}: {'; '.join(clauses)}; such rows are left out", SpineWarning, stacklevel=7
            )
        self._matrix.flush()

    def _names(self, column: Any, first_row: int) -> NDArray[Any]:
        if column.null_count:
            raise GraphFormatError(f"{self._source}: rows {first_row} and on: a row has no name")
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not pa.types.is_integer(column.type):
            column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        names = column.to_numpy(zero_copy_only=False)
        return names_like(self._graph.names, names if names.dtype.kind in "iu" else names.astype(object))

    def _values(self, table: Any, first_row: int) -> NDArray[np.float32]:
        values = np.empty((table.num_rows, len(self._titles)), np.float32)
        with np.errstate(over="ignore"):  # what overflows to infinity is named below
            for place, column in enumerate(table.columns):
                values[:, place] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            row, place = wrong[0].tolist()
            raise GraphFormatError(
                f"{self._source}: row {first_row + row}: column {self._titles[place]!r}: "
                f"{table.column(place)[row].as_py()} is not a finite float32 number; fill it first"
            )
        return values
