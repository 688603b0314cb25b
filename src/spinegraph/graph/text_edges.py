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
from spinegraph.graph.edge_columns import EdgeOptions
from spinegraph.graph.file_contents import FileContents
from spinegraph.graph.file_source import opened
from spinegraph.graph.node_codes import DistinctNames, IntegerNames
from spinegraph.graph.text_blocks import LONGEST_LINE, WHITESPACE, Block, blocks, plain
from spinegraph.graph.text_faults import NotIntegersError, explain_fault
from spinegraph.graph.text_layout import Layout, find_layout

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
    found = blocks(stream, path)
    first = next(found, None)
    if first is None:
        raise GraphFormatError(f"{path}: holds no edges; expected 'source target' lines")
    layout = find_layout(first, path, options)
    endpoints: IntegerNames | DistinctNames = IntegerNames() if layout.names == "integer" else DistinctNames()
    weights: list[NDArray[np.float32]] = []
    for block, table in _tables(chain([first], found), layout):
        try:
            if isinstance(endpoints, IntegerNames):
                _add_integers(endpoints, table, layout)
            else:
                _require_names(endpoints.add(table["source"], table["target"]))
            if layout.columns.weight is not None:
                weights.append(_checked_weights(table["weight"].to_numpy()))
        except _BlockError as fault:
            explain_fault(block, layout, str(fault))
    if isinstance(endpoints, IntegerNames):
        names, edges = endpoints.finish(options.num_nodes)
    else:
        names, edges = endpoints.finish()
    if not len(edges) and not len(names):
        raise GraphFormatError(
            f"{path}: holds a header but no edges; expected 'source target' lines below it"
        )
    joined = (
        np.concatenate([*weights, np.zeros(0, np.float32)]) if layout.columns.weight is not None else None
    )
    return FileContents(path, names, edges, weights=joined, notes=(layout.note,))


def _tables(found: Iterator[Block], layout: Layout) -> Iterator[tuple[Block, Any]]:
    """Yield each block with its table of the columns that matter."""
    titles = [f"other {place}" for place in range(layout.width)]
    titles[layout.columns.source], titles[layout.columns.target] = "source", "target"
    name_type = pa.int64() if layout.names == "integer" else pa.dictionary(pa.int32(), pa.string())
    types = {"source": name_type, "target": name_type}
    if layout.columns.weight is not None:
        titles[layout.columns.weight] = "weight"
        types["weight"] = pa.float64()
    reading = csv.ReadOptions(column_names=titles, block_size=2 * LONGEST_LINE)
    quote: str | bool = False if layout.delimiter == WHITESPACE else '"'
    parsing = csv.ParseOptions(delimiter=layout.delimiter, quote_char=quote, ignore_empty_lines=False)
    converting = csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
    )
    for block in found:
        data = plain(block.data, layout.delimiter, layout.options.comments)
        if layout.begins_with_header(block):
            data = data[data.index(b"\n") + 1 :]
        if not data:
            continue
        try:
            if layout.names == "integer" and _has_padded_integers(data, layout.delimiter):
                raise _BlockError("a name is not an integer")
            table = csv.read_csv(pa.BufferReader(data), reading, parsing, converting)
            if len(table) != data.count(b"\n"):
                raise _BlockError("a quote is not closed on its line")
        except (pa.ArrowInvalid, _BlockError) as fault:
            explain_fault(block, layout, str(fault))
        yield block, table


def _has_padded_integers(data: bytes, delimiter: str) -> bool:
    """Return whether some field may begin like 007 or 0x1f: as a number it would lose what it says."""
    text = np.frombuffer(b"\n" + data, np.uint8)  # every line ends in a line feed, so text[2:] is never short
    before = text[:-2]
    begins = (before == ord("\n")) | (before == ord(delimiter)) | (before == ord('"')) | (before == ord(" "))
    begins &= text[1:-1] == ord("0")
    if not begins.any():
        return False
    after = text[2:][begins]
    return bool(
        (((after >= ord("0")) & (after <= ord("9"))) | (after == ord("x")) | (after == ord("X"))).any()
    )


def _add_integers(endpoints: IntegerNames, table: Any, layout: Layout) -> None:
    sources, targets = table["source"].to_numpy(), table["target"].to_numpy()
    n = layout.options.num_nodes
    for ids in (sources, targets):
        if n is not None and len(ids) and (ids.min() < 0 or ids.max() >= n):
            raise _BlockError("a node id is out of range")
    endpoints.add(sources, targets)


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
