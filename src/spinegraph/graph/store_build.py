"""Builds a store from an edge file of any size in bounded memory, by sorting on disk."""

import json
import os
import shutil
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinegraph.atomic import explained, make_folder, put_in_place, sync, whole_file
from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    OutputError,
    ParameterError,
    SpineError,
    SpineWarning,
)
from spinegraph.graph.edge_files import (
    EdgeCollector,
    EdgeOptions,
    FileContents,
    NotIntegersError,
    open_parquet,
    scan_parquet,
    scan_text,
)
from spinegraph.graph.edges import (
    MAX_NODES,
    EdgeReport,
    Reciprocal,
    combine_directions,
    sum_repeats,
    warn_of_losses,
)
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import (
    Missing,
    is_number,
    is_numeric,
    join_features,
    name_column,
    names_like,
    read_features,
)
from spinegraph.graph.files import STANDARD_INPUT, opened
from spinegraph.graph.fingerprint import computed_fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few, quoted
from spinegraph.graph.store import (
    ENCODING,
    FILES,
    Entry,
    Header,
    StoredNames,
    entry_of,
    graph_of,
    map_array,
    open_store,
    pieces,
    require_store_place,
    write_features,
    write_store,
)

_JOURNAL = "journal.json"


class Workplace:
    """The unfinished parts of a store, kept until it is whole.

    Parameters
    ----------
    store : Path
        The store to be built; the workplace is the hidden folder ``.NAME.building`` beside it.
    job : dict
        What is built from what; unfinished parts of another job are removed.
    """

    def __init__(self, store: Path, job: dict[str, Any]) -> None:
        self.store = store.resolve()
        self.folder = self.store.with_name(f".{self.store.name}.building")
        with self.explained():
            make_folder(self.folder)
            self._notes = self._read()
            if self._notes.get("job") != job:
                self._begin(job)
            self.files = self.folder / "store"
            self.files.mkdir(exist_ok=True)

    def path(self, name: str) -> Path:
        """Return where a part lies."""
        return self.folder / name

    def noted(self, step: str) -> Any:
        """Return what was noted of a finished step, or None."""
        return self._notes.get(step)

    def note(self, step: str, **facts: Any) -> None:
        """Note that a step is finished: what it wrote is on disk."""
        self._notes[step] = facts
        with whole_file(self.folder / _JOURNAL) as partial:
            partial.write_text(json.dumps(self._notes), encoding="utf-8")

    def begin_anew(self) -> None:
        """Forget every step, and remove what it wrote."""
        self._begin(self._notes["job"])
        self.files.mkdir(exist_ok=True)

    def finish(self) -> None:
        """Let the finished files take the store's place, and remove the workplace."""
        put_in_place(self.files, self.store)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what a full disk raises into an error that says how to go on."""
        try:
            yield
        except OutputError as fault:
            if self._way_on in str(fault):
                raise
            raise OutputError(f"{fault}; {self._way_on}") from fault
        except SpineError:
            raise
        except OSError as fault:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            raise OutputError(f"{self.store}: cannot be written ({reason}); {self._way_on}") from fault

    @property
    def _way_on(self) -> str:
        return f"what is finished is kept in {self.folder}: make space and run the same again to go on"

    def _begin(self, job: dict[str, Any]) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        make_folder(self.folder)
        self._notes = {"job": job}

    def _read(self) -> dict[str, Any]:
        try:
            notes = json.loads((self.folder / _JOURNAL).read_bytes())
        except (OSError, ValueError):
            return {}
        return notes if isinstance(notes, dict) else {}


def put(path: Path, array: NDArray[Any]) -> None:
    """Write an array's bytes and bring them to disk."""
    with Output(path) as file:
        for piece in pieces(array):
            file.add(piece)


class Output:
    """A file that arrays are appended to and that is on disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("wb")

    def add(self, array: NDArray[Any]) -> None:
        """Append an array's bytes."""
        if array.size:
            self._file.write(np.ascontiguousarray(array).data)

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *fault: Any) -> None:
        self._file.close()
        if fault[0] is None:
            sync(self._path)


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


def _cost(listings: EdgeCollector) -> int:
    each = _PER_WEIGHTED_EDGE if listings.is_weighted else _PER_EDGE
    return len(listings) * each + listings.name_bytes * _COPIES_OF_NAMES


def _write_run(work: Workplace, place: int, listings: EdgeCollector) -> None:
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
    """Return the bytes of an Arrow array of text, and where each name ends."""
    whole = names.cast(pa.large_string())
    _, offsets, text = whole.buffers()
    ends = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    raw = np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8)
    yield raw[ends[0] : ends[-1]]
    yield ends[1:] - ends[0]


_BYTES_PER_NAME, _BYTES_PER_ENTRY = 400, 80  # in memory while they are merged
_LEAST_WINDOW = 16
_ROWS_AT_A_TIME = 2**20


def merge_names(work: Workplace, room: int, told: Progress) -> None:
    """Merge the runs' sorted names into the store's, and write where each of a run's names went."""
    runs = work.noted("scan")["runs"]
    is_text = work.noted("run 0")["names"] == "text"
    lists = [_names_of(work, run, is_text) for run in range(runs)]
    window = max(room // (_BYTES_PER_NAME * runs), _LEAST_WINDOW)
    count, first, last, end = 0, None, None, 0
    with ExitStack() as stack:
        places = [stack.enter_context(Output(work.path(f"{run}.places"))) for run in range(runs)]
        suffixes = ("names_text.bin", "names_ends.bin") if is_text else ("names.bin",)
        outputs = [stack.enter_context(Output(work.files / name)) for name in suffixes]
        for merged, found in _merged_names(lists, window, is_text):
            for run, within in found:
                places[run].add((within + count).astype(np.int32))
            if is_text:
                encoded = [name.encode(*ENCODING) for name in merged]
                ends = end + np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
                outputs[0].add(np.frombuffer(b"".join(encoded), np.uint8))
                outputs[1].add(ends)
                end = int(ends[-1])
            else:
                outputs[0].add(merged)
                first, last = int(merged[0]) if first is None else first, int(merged[-1])
            count += len(merged)
            told("merging names", count, 0)
    covers_range = not is_text and first == 0 and last == count - 1
    work.note("names", count=count, kind="text" if is_text else "range" if covers_range else "integer")


def _names_of(work: Workplace, run: int, is_text: bool) -> Any:
    if not is_text:
        return np.memmap(work.path(f"{run}.names"), np.int64, "r")
    ends = np.memmap(work.path(f"{run}.ends"), np.int64, "r")
    return StoredNames(np.memmap(work.path(f"{run}.text"), np.uint8, "r"), ends)


def _merged_names(
    lists: Sequence[Any], window: int, is_text: bool
) -> Iterator[tuple[Any, list[tuple[int, NDArray[np.int64]]]]]:
    """Yield the distinct names of sorted lists in order, some at a time, and where each list's names went."""
    done = [0] * len(lists)
    while True:
        heads = {
            run: names[done[run] : done[run] + window].tolist()
            if is_text
            else names[done[run] : done[run] + window]
            for run, names in enumerate(lists)
            if done[run] < len(names)
        }
        if not heads:
            return
        pivot = min(head[-1] for head in heads.values())
        taken = {run: head[: bisect_right(head, pivot)] for run, head in heads.items()}
        if is_text:
            merged: Any = sorted(set().union(*taken.values()))
            table = {name: place for place, name in enumerate(merged)}
            found = [
                (run, np.fromiter(map(table.__getitem__, names), np.int64, len(names)))
                for run, names in taken.items()
            ]
        else:
            merged = np.unique(np.concatenate(list(taken.values())))
            found = [(run, np.searchsorted(merged, names)) for run, names in taken.items()]
        for run, names in taken.items():
            done[run] += len(names)
        yield merged, found


def sort_run(work: Workplace, run: int, n: int, *, is_weighted: bool) -> None:
    """Sort a run's edges by row, once from either end; repeats are merged, loops and weights of 0 dropped."""
    edges = np.fromfile(work.path(f"{run}.edges"), np.int32).reshape(2, -1)
    sources, targets = edges
    if work.path(f"{run}.places").exists():
        places = np.fromfile(work.path(f"{run}.places"), np.int32)
        sources, targets = places[sources], places[targets]
    del edges
    loops = sources == targets
    self_loops, zeros, weights = int(np.count_nonzero(loops)), 0, None
    if is_weighted:
        weights = np.fromfile(work.path(f"{run}.weights"), np.float32)
        empty = (weights == 0) & ~loops
        zeros = int(np.count_nonzero(empty))
        loops |= empty
    if self_loops or zeros:
        sources, targets = sources[~loops], targets[~loops]
        weights = None if weights is None else weights[~loops]
    keys = np.empty((2, len(sources)), dtype=np.int64)
    for one, other, out in ((sources, targets, keys[0]), (targets, sources, keys[1])):
        np.multiply(one, n, out=out, dtype=np.int64)
        out += other
        out <<= 1
        out |= sources > targets
    both = None if weights is None else np.concatenate([weights, weights])
    found, sums = sum_repeats(keys.ravel(), both)
    _put_sorted(work, run, found, sums)
    work.note(f"sorted {run}", self_loops=self_loops, zeros=zeros, entries=len(found))
    for suffix in ("edges", "weights", "places", "names", "text", "ends"):
        work.path(f"{run}.{suffix}").unlink(missing_ok=True)


def _put_sorted(work: Workplace, run: int, keys: NDArray[np.int64], sums: NDArray[np.float64] | None) -> None:
    with Output(work.path(f"{run}.keys")) as file:
        file.add(keys)
    if sums is not None:
        with Output(work.path(f"{run}.sums")) as file:
            file.add(sums)


def merge_rows(
    work: Workplace, n: int, names: Any, room: int, told: Progress, *, directed: bool, reciprocal: Reciprocal
) -> EdgeReport:
    """Merge the sorted runs into indptr, indices and weights; returns the report of all that was merged."""
    scan = work.noted("scan")
    sorted_runs = [work.noted(f"sorted {run}") for run in range(scan["runs"])]
    window = max(room // (_BYTES_PER_ENTRY * scan["runs"]), _LEAST_WINDOW)
    total = sum(run["entries"] for run in sorted_runs)
    entries, one_way, both_ways, read = 0, 0, 0, 0
    with ExitStack() as stack:
        columns = stack.enter_context(Output(work.files / "indices.bin"))
        numbers = stack.enter_context(Output(work.files / "weights.bin")) if scan["is_weighted"] else None
        pointers = _Pointers(stack.enter_context(Output(work.files / "indptr.bin")), n)
        for keys, sums, count in _merged_keys(work, sorted_runs, window, is_weighted=scan["is_weighted"]):
            read += count
            # Keys that differ in the last bit alone are the two directions of one edge.
            backward = np.flatnonzero((keys[1:] ^ keys[:-1]) == 1) + 1
            one_way, both_ways = one_way + len(keys), both_ways + len(backward)
            if numbers is not None and sums is not None:
                _require_equal(keys, sums, backward, names, reciprocal)
                combined = combine_directions(
                    keys, sums, backward, names, "mean" if reciprocal == "error" else reciprocal
                )
                numbers.add(combined)
            keys = np.delete(keys, backward) >> 1
            columns.add((keys % n).astype(np.int32))
            pointers.add(keys // n)
            entries += len(keys)
            told("merging edges", read, total)
        pointers.finish()
    loops, zeros = (sum(run[what] for run in sorted_runs) for what in ("self_loops", "zeros"))
    reciprocals = both_ways // 2
    return EdgeReport(
        listed=scan["listed"],
        edges=entries // 2,
        self_loops=loops,
        zero_weights=zeros,
        repeated=scan["listed"] - loops - zeros - one_way // 2,
        reciprocal=reciprocals,
        one_way=entries // 2 - reciprocals if directed else 0,
    )


def _merged_keys(
    work: Workplace, runs: Sequence[dict[str, Any]], window: int, *, is_weighted: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64] | None, int]]:
    """Yield the distinct keys of all runs in order, both directions of an edge together, and their sums."""
    held = [run for run, about in enumerate(runs) if about["entries"]]
    keys = {run: np.memmap(work.path(f"{run}.keys"), np.int64, "r") for run in held}
    sums = {run: np.memmap(work.path(f"{run}.sums"), np.float64, "r") for run in held if is_weighted}
    done = dict.fromkeys(held, 0)
    while any(done[run] < len(keys[run]) for run in held):
        ends = {run: min(done[run] + window, len(keys[run])) for run in held}
        # Up to here, nothing that belongs together lies beyond a window.
        limits = [int(keys[run][ends[run] - 1]) >> 1 << 1 for run in held if ends[run] < len(keys[run])]
        limit = min(limits, default=None)
        parts, weights = [], []
        for run in held:
            start, stop = done[run], ends[run]
            if limit is not None:
                stop = start + int(np.searchsorted(keys[run][start:stop], limit))
            parts.append(keys[run][start:stop])
            weights += [sums[run][start:stop]] if is_weighted else []
            done[run] = stop
        together = np.concatenate(parts)
        found, added = sum_repeats(together, np.concatenate(weights) if is_weighted else None)
        yield found, added, sum(map(len, parts))


def _require_equal(
    keys: NDArray[np.int64],
    sums: NDArray[np.float64],
    backward: NDArray[np.int64],
    names: Any,
    reciprocal: str,
) -> None:
    there, back = sums[backward - 1], sums[backward]
    unequal = np.flatnonzero(np.abs(there - back) > 1e-6 * np.maximum(there, back))
    if reciprocal == "error" and len(unequal):
        first = unequal[0]
        one, other = (
            quoted(names[int(place)]) for place in divmod(int(keys[backward[first]] >> 1), len(names))
        )
        raise GraphFormatError(
            f"an edge is listed in both directions with different weights: ({one}, {other}) with "
            f"{there[first]:g} and ({other}, {one}) with {back[first]:g}; pass reciprocal='sum', 'mean' or "
            "'max' to say how to combine them"
        )


class _Pointers:
    """Writes where each row begins, from the ascending rows of entries that come in pieces."""

    def __init__(self, output: Output, n: int) -> None:
        self._output, self._n, self._next, self._entries = output, n, 0, 0

    def add(self, rows: NDArray[np.int64]) -> None:
        if len(rows):
            self._write(rows, int(rows[-1]))
            self._entries += len(rows)

    def finish(self) -> None:
        self._write(np.zeros(0, np.int64), self._n)

    def _write(self, rows: NDArray[np.int64], last: int) -> None:
        while self._next <= last:
            stop = min(self._next + _ROWS_AT_A_TIME, last + 1)
            self._output.add(self._entries + np.searchsorted(rows, np.arange(self._next, stop)))
            self._next = stop


_BATCH = 2**14
_MOST_SHOWN = 6
_ZEROS = 2**22  # bytes written at a time


def add_features(
    features: str | Path,
    graph: Graph,
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
    if encoder is None and not is_numeric(found.data):
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
    """Return the number of rows of a matrix without names, which says how many nodes there are."""
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
    graph: Graph,
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
        self, graph: Graph, path: Path, titles: tuple[str, ...], source: str, missing: Missing
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


LEAST_MEMORY = 256 * 2**20
_OF_THE_PROCESS = 192 * 2**20  # the interpreter, its libraries and one block of the file
_NAMES_AT_A_TIME = 2**18


def build_store(
    edges: str | Path,
    folder: str | Path,
    *,
    features: str | Path | None = None,
    memory: int = 2 * 2**30,
    progress: Progress | None = None,
    columns: Sequence[str | int] | None = None,
    weighted: bool | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    comments: Sequence[str] = ("#", "%"),
    names: str | None = None,
    num_nodes: int | None = None,
    directed: bool = False,
    reciprocal: Reciprocal = "error",
    node_column: str | int | None = None,
    missing: Missing = "error",
    encoder: FeatureEncoder | None = None,
) -> Graph:
    r"""Build a store from an edge file that need not fit in memory, and open it.

    The graph is the one ``read_graph`` reads: same names in the same (ascending) order, same edges, weights,
    report and warnings. The file is sorted on disk, in the hidden folder ``.NAME.building`` beside the store,
    which takes a few times the size of the result while it lasts. A build that was stopped, or ran out of
    disk, goes on when the same call is made again; the store appears when it is whole.

    Parameters
    ----------
    edges : path
        CSV, TSV, white space or Parquet, plain or gzipped. Files that are read whole anyway, npz and GraphML,
        are read and written.
    folder : path
        The store; one that is there is replaced.
    features : path, optional
        Node features, as in ``read_graph``. Parquet whose columns are numbers is read in bounded memory;
        other kinds are read whole.
    memory : int
        Bytes to work with, at least 256 MiB, beside what the features need.
    progress : callable (stage, done, total), optional
    columns, weighted, header, delimiter, comments, names, num_nodes
    directed, reciprocal, node_column, missing
        As in ``read_graph``.
    encoder : FeatureEncoder, optional
        Fitted; needed where features have other columns than numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     size = Path(place, "edges.csv").write_text("source,target\nbob,ann\nbob,cy\n")
    ...     build_store(f"{place}/edges.csv", f"{place}/store")
    Graph(3 nodes, 2 edges, names 'ann', 'bob', ...)
    """
    if not isinstance(memory, int) or memory < LEAST_MEMORY:
        raise ParameterError(f"memory must be at least {LEAST_MEMORY:,} bytes (256 MiB); got {memory!r}")
    if encoder is not None and not encoder.is_fitted:
        raise ParameterError("encoder must be fitted: the same encoder has to read other files alike")
    options = EdgeOptions(columns, weighted, header, delimiter, comments, names, num_nodes)
    _require_files(edges, features)
    store, told = Path(folder), progress or (lambda stage, done, total: None)
    require_store_place(store)
    how = {"directed": directed, "reciprocal": reciprocal, "node_column": node_column, "missing": missing}
    with opened(edges) as source:
        kind = source.kind
    if features is not None:
        with opened(features):  # that it can be read at all, before anything is built
            pass
    if kind not in ("text", "parquet"):
        from spinegraph.graph.read import read_graph

        told("reading", 0, 0)
        write_store(read_graph(edges, features, **asdict(options), **how, encoder=encoder), store)  # type: ignore[arg-type]
        return open_store(store)
    if features is not None and num_nodes is None and (rows := bare_rows(features)) is not None:
        options = replace(options, num_nodes=rows)
    state = None if encoder is None else encoder.state()[0]
    job: dict[str, Any] = {
        "edges": _identity(edges),
        "features": features and _identity(features),
        "encoder": state,
    }
    job |= {"options": repr(options), **how}
    work = Workplace(store, job)
    with work.explained():
        _build(work, edges, options, features, memory - _OF_THE_PROCESS, told, how, encoder)
    return open_store(store)


def _build(
    work: Workplace,
    edges: str | Path,
    options: EdgeOptions,
    features: str | Path | None,
    room: int,
    told: Progress,
    how: dict[str, Any],
    encoder: FeatureEncoder | None,
) -> None:
    if work.noted("scan") is None:
        scan_edges(work, edges, options, room, told)
    if work.noted("names") is None:
        if options.num_nodes is None:
            merge_names(work, room, told)
        else:
            _write_range(work, options.num_nodes)
    scan, names = work.noted("scan"), work.noted("names")
    n = names["count"]
    if n > MAX_NODES:
        raise GraphFormatError(f"a graph holds at most {MAX_NODES} nodes; got {n}")
    for run in range(scan["runs"]):
        told("sorting edges", run, scan["runs"])
        if work.noted(f"sorted {run}") is None:
            sort_run(work, run, n, is_weighted=scan["is_weighted"])
    if work.noted("rows") is None:
        try:
            report = merge_rows(
                work, n, _names(work), room, told, directed=how["directed"], reciprocal=how["reciprocal"]
            )
        except GraphFormatError as fault:
            raise GraphFormatError(f"{os.fspath(edges)}: {fault}") from fault
        work.note("rows", **asdict(report))
    _finish(work, features, how, encoder, told)


def _finish(
    work: Workplace,
    features: str | Path | None,
    how: dict[str, Any],
    encoder: FeatureEncoder | None,
    told: Progress,
) -> None:
    """Join the features, take every checksum, and let the store appear."""
    names, report = work.noted("names"), EdgeReport(**work.noted("rows"))
    if features is not None and work.noted("features") is None:
        chosen = {"node_column": how["node_column"], "missing": how["missing"], "encoder": encoder}
        graph = _bare_graph(work)
        width, titles, found = add_features(features, graph, work.files, told=told, **chosen)
        entries = {name: asdict(entry) for name, entry in found.items()}
        work.note("features", width=width, titles=titles, files=entries)
    told("checksums", 0, 0)
    joined = work.noted("features") or {"width": None, "titles": None, "files": {}}
    files = _entries(work.files) | {
        name: Entry(entry["dtype"], tuple(entry["shape"]), entry["digest"])
        for name, entry in joined["files"].items()
    }
    titles = None if joined["titles"] is None else tuple(joined["titles"])
    header = Header(names["kind"], True, joined["width"], titles, report, "", files)
    arrays = {name: map_array(work.files / name, entry) for name, entry in files.items()}
    header = replace(header, fingerprint=computed_fingerprint(graph_of(header, arrays)))
    header.write(work.files)
    work.finish()
    warn_of_losses(report, stacklevel=4)


def _entries(folder: Path) -> dict[str, Entry]:
    """Return the files that are there but those of features, whose types are known."""
    names = [name for name in FILES if not name.startswith("features") and (folder / name).exists()]
    return {name: entry_of(folder / name, FILES[name][1][0]) for name in names}


def _bare_graph(work: Workplace) -> Graph:
    """Return the graph built so far, without features."""
    files = _entries(work.files)
    header = Header(work.noted("names")["kind"], True, None, None, None, "", files)
    return graph_of(header, {name: map_array(work.files / name, entry) for name, entry in files.items()})


def _names(work: Workplace) -> Any:
    """Return the names, for messages."""
    if work.noted("names")["kind"] != "text":
        return np.memmap(work.files / "names.bin", np.int64, "r")
    ends = np.memmap(work.files / "names_ends.bin", np.int64, "r")
    return StoredNames(np.memmap(work.files / "names_text.bin", np.uint8, "r"), ends)


def _write_range(work: Workplace, n: int) -> None:
    with Output(work.files / "names.bin") as file:
        for start in range(0, n, _NAMES_AT_A_TIME):
            file.add(np.arange(start, min(start + _NAMES_AT_A_TIME, n)))
    work.note("names", count=n, kind="range")


def _require_files(*paths: str | Path | None) -> None:
    for path in paths:
        if path is not None and os.fspath(path) == STANDARD_INPUT:
            raise ParameterError("a store is built from files, which may be read again after a stop; got -")


def _identity(path: str | Path) -> list[Any]:
    """Return what tells a file from another version of it."""
    about = os.stat(path)
    return [os.path.abspath(path), about.st_size, about.st_mtime_ns]
