"""Reads edge tables kept as Parquet, batch by batch."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from spinegraph.errors import GraphFormatError, SpineError
from spinegraph.graph.files.columns import EdgeOptions, choose_columns
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.files.listings import Listings, named
from spinegraph.graph.files.source import opened
from spinegraph.graph.files.text_blocks import arrow_stream, shown

_BATCH = 2**18
# A run of equal values packs to almost nothing, so the size of a file does not bound its rows: this does.
_FREE_ROWS, _MOST_ROWS_PER_BYTE = 2**24, 200


def read_parquet_edges(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read an edge table; integer columns give integer names, others text.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
    ...     parquet.write_table(pa.table({"source": [7, 5], "target": [5, 9]}), file.name)
    ...     read_parquet_edges(file.name, EdgeOptions()).edges.tolist()
    [[1, 0], [0, 2]]
    """
    with opened(path) as source:
        for listings in scan_parquet(source.stream, source.path, options):  # noqa: B007
            pass
    names, edges, weights = listings.take()
    if not len(names):
        raise GraphFormatError(f"{source.path}: holds no edges; {listings.note}")
    return FileContents(source.path, named(names), edges, weights=weights, notes=(listings.note,))


def scan_parquet(stream: BinaryIO, path: str, options: EdgeOptions, skip: int = 0) -> Iterator[Listings]:
    """Read an edge table batch by batch, and yield after each what was collected since it was last taken.

    Parameters and values are those of :func:`~spinegraph.graph.files.text_edges.scan_text`.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> parquet.write_table(pa.table({"source": [7, 5], "target": [5, 9]}), stream)
    >>> [len(found) for found in scan_parquet(stream, "tiny.parquet", EdgeOptions())]
    [0, 2]
    """
    with open_parquet(stream, path) as file:
        titles = list(file.schema_arrow.names)
        columns = choose_columns(titles, len(titles), options, path)
        wanted = [
            titles[place] for place in (columns.source, columns.target, columns.weight) if place is not None
        ]
        if len(set(wanted)) < len(wanted) or any(titles.count(title) > 1 for title in wanted):
            raise GraphFormatError(f"{path}: two columns are both called {wanted[0]!r}; rename one")
        types = [file.schema_arrow.field(title).type for title in wanted[:2]]
        is_integer = options.names != "text" and all(map(_is_integer, types))
        if options.num_nodes is not None and not is_integer:
            raise GraphFormatError(f"{path}: num_nodes goes with integer columns; got {types[0]}, {types[1]}")
        if options.names == "integer" and not is_integer:
            raise GraphFormatError(
                f"{path}: columns {wanted[0]!r} and {wanted[1]!r} are {types[0]} and {types[1]}, but "
                "names='integer'; cast them first"
            )
        note = f"Parquet; {columns.note}; names are {'integer' if is_integer else 'text'}"
        listings = Listings(
            is_integer=is_integer, is_weighted=len(wanted) == 3, num_nodes=options.num_nodes, note=note
        )
        yield listings
        first_row = 0
        for place, batch in enumerate(file.iter_batches(batch_size=_BATCH, columns=wanted)):
            if place >= skip:
                batch.validate(full=True)  # Parquet itself does not check that text is UTF-8
                reader = _Batch(batch, first_row, path, options.num_nodes)
                sources, targets = (reader.names(title, as_integers=is_integer) for title in wanted[:2])
                listings.add(sources, targets, reader.weights(wanted[2]) if len(wanted) == 3 else None)
            listings.blocks, first_row = place + 1, first_row + len(batch)
            yield listings


@contextmanager
def open_parquet(stream: BinaryIO, path: str) -> Iterator[Any]:
    """Open a Parquet file whose number of rows is in proportion to its size; damage is a GraphFormatError.

    Examples
    --------
    >>> import io
    >>> with open_parquet(io.BytesIO(b"PAR1 junk"), "tiny.parquet") as file:
    ...     pass
    Traceback (most recent call last):
    ...
    spinegraph.errors.GraphFormatError: tiny.parquet: damaged or cut-off Parquet ...
    """
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        with _of_arrow(stream) as source, parquet.ParquetFile(source) as file:
            rows = file.metadata.num_rows
            if rows > max(_FREE_ROWS, _MOST_ROWS_PER_BYTE * size):
                raise GraphFormatError(
                    f"{path}: {rows:,} rows in {size:,} bytes, more than {_MOST_ROWS_PER_BYTE} a byte; "
                    "if you trust it, write it as several files or as CSV"
                )
            yield file
    except SpineError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
        raise GraphFormatError(
            f"{path}: damaged or cut-off Parquet ({shown(str(fault), 150)}); fetch or write it again"
        ) from fault


def _of_arrow(stream: BinaryIO) -> Any:
    """Return a file or bytes as what Arrow's threads may hold on to; see ``arrow_stream``."""
    return arrow_stream([stream.read()]) if isinstance(stream, io.BytesIO) else pa.OSFile(stream.name)


class _Batch:
    """Some rows of an edge table, each column checked as it is taken."""

    def __init__(self, batch: Any, first_row: int, path: str, num_nodes: int | None) -> None:
        self._batch, self._first_row, self._path, self._num_nodes = batch, first_row, path, num_nodes

    def names(self, title: str, *, as_integers: bool) -> Any:
        """Return a column of node names, an int64 array or an Arrow array of text."""
        column = self._batch[title]
        if column.null_count:
            self._fail(
                title,
                int(np.argmax(column.is_null().to_numpy(False))),
                "is empty; every edge needs two names",
            )
        if as_integers:
            values = self._cast(column, pa.int64(), title).to_numpy()
            n = self._num_nodes
            if n is not None and len(values) and (values.min() < 0 or values.max() >= n):
                place = int(np.argmax((values < 0) | (values >= n)))
                self._fail(
                    title,
                    place,
                    f"is {values[place]}, out of range; with num_nodes={n}, ids are 0 .. {n - 1}",
                )
            return values
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if not is_text and not _is_integer(column.type):
            raise GraphFormatError(
                f"{self._path}: column {title!r} is {column.type}; names are integers or text: cast it first"
            )
        text = self._cast(column, pa.large_string(), title)
        blank = pc.equal(pc.utf8_trim_whitespace(text), "").to_numpy(False)
        if blank.any():
            self._fail(title, int(blank.argmax()), "is blank; every edge needs two names")
        return text

    def weights(self, title: str) -> NDArray[np.float64]:
        """Return a column of weights."""
        column = self._batch[title]
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise GraphFormatError(
                f"{self._path}: weight column {title!r} is {column.type}, not numbers; cast it first"
            )
        values: NDArray[np.float64] = self._cast(column, pa.float64(), title).to_numpy(False)
        wrong = ~((values >= 0) & (values <= np.finfo(np.float32).max))
        if wrong.any():
            place = int(wrong.argmax())
            self._fail(
                title, place, f"is {column[place]}; weights are finite numbers, 0 or more, that fit float32"
            )
        return values

    def _cast(self, column: Any, kind: Any, title: str) -> Any:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as fault:
            raise GraphFormatError(
                f"{self._path}: column {title!r} does not fit {kind}: {shown(str(fault), 100)}"
            ) from fault

    def _fail(self, title: str, place: int, rule: str) -> NoReturn:
        raise GraphFormatError(f"{self._path}: row {self._first_row + place}: {title!r} {rule}")


def _is_integer(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind))
