"""First stage of building a store: an edge file of any size becomes runs that fit in memory, each on disk."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.columns import EdgeOptions
from spinegraph.graph.files.listings import Listings
from spinegraph.graph.files.parquet_edges import scan_parquet
from spinegraph.graph.files.source import opened
from spinegraph.graph.files.text_edges import scan_text
from spinegraph.graph.files.text_faults import NotIntegersError
from spinegraph.graph.store_work import Workplace, put

Progress = Callable[[str, int, int], None]
# Bytes that sorting takes for a listed edge, without and with a weight; names are copied a few times.
_PER_EDGE, _PER_WEIGHTED_EDGE, _COPIES_OF_NAMES = 72, 144, 4


def scan_edges(work: Workplace, edges: str | Path, options: EdgeOptions, room: int, told: Progress) -> None:
    """Read an edge file into runs: sorted distinct names, edges among them, weights.

    A run is noted when it is on disk; a scan that was stopped goes on after the last one.
    """
    try:
        _scan(work, edges, options, room, told)
    except NotIntegersError:
        # Far down the file stands a name that is no integer, so all names are text: read it again as such.
        work.begin_anew()
        _scan(work, edges, replace(options, names="text"), room, told)


def _scan(work: Workplace, edges: str | Path, options: EdgeOptions, room: int, told: Progress) -> None:
    count, listed, blocks = 0, 0, 0
    while (run := work.noted(f"run {count}")) is not None:
        count, listed, blocks = count + 1, listed + run["listed"], run["blocks"]
    if count and work.noted(f"run {count - 1}")["names"] == "text":
        options = replace(options, names="text")
    with opened(edges) as source:
        scan = scan_text if source.kind == "text" else scan_parquet
        for listings in scan(source.stream, source.path, options, blocks):
            told("reading edges", listed + len(listings), 0)
            if _cost(listings) >= room:
                listed += len(listings)
                _write_run(work, count, listings)
                count += 1
        if len(listings):
            listed += len(listings)
            _write_run(work, count, listings)
            count += 1
        if not listed:
            raise GraphFormatError(f"{source.path}: holds no edges; {listings.note}")
    work.note("scan", runs=count, listed=listed, is_weighted=listings.is_weighted, note=listings.note)


def _cost(listings: Listings) -> int:
    each = _PER_WEIGHTED_EDGE if listings.is_weighted else _PER_EDGE
    return len(listings) * each + listings.name_bytes * _COPIES_OF_NAMES


def _write_run(work: Workplace, place: int, listings: Listings) -> None:
    listed, blocks = len(listings), listings.blocks
    names, found, weights = listings.take()
    with work.explained():
        _put_run(work, place, names, found, weights)
        work.note(f"run {place}", listed=listed, blocks=blocks, names=_kind(names))
    pa.default_memory_pool().release_unused()


def _put_run(
    work: Workplace, place: int, names: Any, found: NDArray[Any], weights: NDArray[np.float32] | None
) -> None:
    kind = _kind(names)
    if kind == "integer":
        put(work.path(f"{place}.names"), names)
    elif kind == "text":
        for suffix, part in zip(("text", "ends"), text_parts(names), strict=True):
            put(work.path(f"{place}.{suffix}"), part)
    put(work.path(f"{place}.edges"), np.asarray(found.T, dtype=np.int32))
    if weights is not None:
        put(work.path(f"{place}.weights"), weights)


def _kind(names: Any) -> str:
    return "range" if isinstance(names, range) else "integer" if isinstance(names, np.ndarray) else "text"


def text_parts(names: Any) -> Iterator[NDArray[Any]]:
    """Return the bytes of an Arrow array of text, and where each name ends.

    Examples
    --------
    >>> [part.tolist() for part in text_parts(pa.array(["a", "bc"]))]
    [[97, 98, 99], [1, 3]]
    """
    whole = names.cast(pa.large_string())
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    raw = np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8)
    yield raw[ends[0] : ends[-1]]
    yield ends[1:] - ends[0]
