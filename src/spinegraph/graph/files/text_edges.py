"""Reads edge lists written as text: commas, tabs or white space, plain or gzip, by blocks through Arrow."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.columns import EdgeOptions
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.files.listings import Listings, named
from spinegraph.graph.files.source import opened
from spinegraph.graph.files.text_blocks import LONGEST_LINE, WHITESPACE, Block, arrow_stream, blocks, plain
from spinegraph.graph.files.text_faults import NotIntegersError, explain_fault
from spinegraph.graph.files.text_layout import Layout, find_layout, first_lines

_LARGEST_WEIGHT = float(np.finfo(np.float32).max)


def read_text_edges(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    r"""Read an edge list; names are integers where every name in the file is one, else text.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
    ...     size = file.write(b"source,target\n7,5\n5,9\n"), file.flush()
    ...     read_text_edges(file.name, EdgeOptions()).names.tolist()
    [5, 7, 9]
    """
    try:
        with opened(path) as source:
            return _read(source.stream, source.path, options)
    except NotIntegersError:
        # Far down the file stands a name that is no integer, so all names are text: read it again as such.
        with opened(path) as source:
            return _read(source.stream, source.path, replace(options, names="text"))


def _read(stream: BinaryIO, path: str, options: EdgeOptions) -> FileContents:
    for listings in scan_text(stream, path, options):  # noqa: B007 it is the last that counts
        pass
    names, edges, weights = listings.take()
    if not len(names):
        raise GraphFormatError(
            f"{path}: holds a header but no edges; expected 'source target' lines below it"
        )
    return FileContents(path, named(names), edges, weights=weights, notes=(listings.note,))


def scan_text(stream: BinaryIO, path: str, options: EdgeOptions, skip: int = 0) -> Iterator[Listings]:
    r"""Read an edge list block by block, and yield after each what was collected since it was last taken.

    Parameters
    ----------
    stream, path
        An open file and its name for messages.
    options : EdgeOptions
    skip : int
        So many blocks are passed over unread.

    Examples
    --------
    >>> import io
    >>> [len(found) for found in scan_text(io.BytesIO(b"a b\nb c\n"), "tiny.txt", EdgeOptions())]
    [2]
    """
    found = blocks(stream, path)
    first = next((block for block in found if first_lines(block, path, options.comments)), None)
    if first is None:
        raise GraphFormatError(
            f"{path}: holds no edges, only comments or blank lines; expected 'source target' lines"
        )
    layout = find_layout(first, path, options)
    reader = _BlockReader(layout)
    for place, block in enumerate(chain([first], found)):
        fault = None
        try:
            if place >= skip:
                reader.take(block)
        except (pa.ArrowInvalid, _BlockError) as error:
            fault = str(error)
        if fault is not None:
            explain_fault(block, layout, fault)
        reader.listings.blocks = place + 1
        yield reader.listings


class _BlockReader:
    """Parses block after block by one layout and keeps endpoints and weights."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.listings = Listings(
            is_integer=layout.names == "integer",
            is_weighted=layout.columns.weight is not None,
            num_nodes=layout.options.num_nodes,
            note=layout.note,
        )
        titles = [f"other {place}" for place in range(layout.width)]
        titles[layout.columns.source], titles[layout.columns.target] = "source", "target"
        if layout.columns.weight is not None:
            titles[layout.columns.weight] = "weight"
        quote: str | bool = False if layout.delimiter == WHITESPACE else '"'
        self._reading = csv.ReadOptions(column_names=titles, block_size=2 * LONGEST_LINE)
        self._parsing = csv.ParseOptions(
            delimiter=layout.delimiter, quote_char=quote, ignore_empty_lines=False
        )

    def take(self, block: Block) -> None:
        """Keep what a block holds, or raise without a place: :func:`explain_fault` finds that."""
        layout = self._layout
        data = plain(block.data, layout.delimiter, layout.options.comments)
        if layout.begins_with_header(block):
            data = data[data.index(b"\n") + 1 :]
        if not data:
            return
        is_weighted, is_integer = self.listings.is_weighted, self.listings.is_integer
        kind = pa.int64() if is_integer else pa.dictionary(pa.int32(), pa.string())
        table = self._parse(data, kind, is_weighted)
        sources, targets = table["source"], table["target"]
        weights = _checked_weights(table["weight"].to_numpy()) if is_weighted else None
        if not is_integer:
            _require_names(self.listings.add(sources, targets, weights))
            return
        if _may_be_padded(data, layout.delimiter):
            _require_unpadded(self._parse(data, pa.string(), False))
        ids = sources.to_numpy(), targets.to_numpy()
        _require_in_range(*ids, layout.options.num_nodes)
        self.listings.add(*ids, weights)

    def _parse(self, data: bytes, name_type: Any, is_weighted: bool) -> Any:
        types = {"source": name_type, "target": name_type} | ({"weight": pa.float64()} if is_weighted else {})
        converting = csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
        )
        table = csv.read_csv(arrow_stream([data]), self._reading, self._parsing, converting)
        if len(table) != data.count(b"\n"):
            raise _BlockError("a quote is not closed on its line")
        return table


def _may_be_padded(data: bytes, delimiter: str) -> bool:
    """Return whether some field begins like 007, -007 or 0x1f, in one pass over the bytes."""
    text = np.frombuffer(b"\n" + data, np.uint8)  # (b,); the last byte is a line feed
    before, after = text[:-2], text[2:]
    is_begin = np.isin(before, np.frombuffer(f'\n "-{delimiter}'.encode(), np.uint8))
    is_begin &= text[1:-1] == ord("0")
    return bool(np.isin(after[is_begin], np.frombuffer(b"0123456789xX", np.uint8)).any())


def _require_unpadded(table: Any) -> None:
    """Refuse integers that would lose what they say as numbers: 007 is not 7."""
    for side in ("source", "target"):
        if pc.any(pc.match_substring_regex(table[side], r"^\s*-?0[0-9xX]")).as_py():
            raise _BlockError("a name is not an integer")


def _require_in_range(sources: NDArray[np.int64], targets: NDArray[np.int64], n: int | None) -> None:
    for ids in (sources, targets):
        if n is not None and len(ids) and (ids.min() < 0 or ids.max() >= n):
            raise _BlockError("a node id is out of range")


def _require_names(names: Any) -> None:
    if len(names) and pc.any(pc.equal(pc.utf8_trim_whitespace(names), "")).as_py():
        raise _BlockError("a name is empty")
    if len(names) and pc.any(pc.match_substring(names, "\n")).as_py():
        raise _BlockError("a quote is not closed on its line")


def _checked_weights(weights: NDArray[np.float64]) -> NDArray[np.float32]:
    # NaN fails the first comparison, so one pass finds every kind of bad weight.
    if not ((weights >= 0) & (weights <= _LARGEST_WEIGHT)).all():
        raise _BlockError("a weight is negative, not finite or too large")
    return weights.astype(np.float32)


class _BlockError(Exception):
    """A block that breaks a rule; the slow scan says where."""
