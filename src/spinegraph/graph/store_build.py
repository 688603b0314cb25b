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
    MISSING_ZERO,
    Missing,
    is_number,
    is_numeric,
    join_features,
    mismatch,
    name_column,
    names_like,
    read_features,
    table_matrix,
)
from spinegraph.graph.files import STANDARD_INPUT, opened
from spinegraph.graph.fingerprint import computed_fingerprint
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few
from spinegraph.graph.store import (
    ENCODING,
    FILES,
    Entry,
    Header,
    StoredNames,
    chunks,
    entry_of,
    graph_of,
    map_array,
    open_store,
    require_store_place,
    write_features,
    write_store,
)

Progress = Callable[[str, int, int], None]

MIN_MEMORY = 256 * 2**20
_PROCESS_MEMORY = 192 * 2**20  # the interpreter, its libraries and one block of the file
# Bytes that sorting takes for a listed edge, without and with a weight; names are copied a few times.
_PER_EDGE, _PER_WEIGHTED_EDGE, _COPIES_OF_NAMES = 72, 144, 4
_BYTES_PER_NAME, _BYTES_PER_ENTRY = 400, 80  # in memory while they are merged
_MIN_WINDOW = 16
_ROWS = 2**20  # row pointers written at a time
_BATCH = 2**14  # feature rows read at a time
_EXAMPLES = 6
_JOURNAL = "journal.json"


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
    which takes a few times the size of the result. The same call resumes a build that was interrupted or ran
    out of disk; the store appears when it is complete.

    Parameters
    ----------
    edges : path
        CSV, TSV, white space or Parquet, plain or gzipped. npz and GraphML are read into memory.
    folder : path
        The store; an existing one is replaced.
    features : path, optional
        Node features, as in ``read_graph``. Parquet whose columns are numbers is read in bounded memory;
        other kinds are read into memory.
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
    if not isinstance(memory, int) or memory < MIN_MEMORY:
        raise ParameterError(f"memory must be at least {MIN_MEMORY:,} bytes (256 MiB); got {memory!r}")
    if encoder is not None and not encoder.is_fitted:
        raise ParameterError("encoder must be fitted, so that it encodes other files the same way")
    options = EdgeOptions(columns, weighted, header, delimiter, comments, names, num_nodes)
    if STANDARD_INPUT in (os.fspath(edges), features and os.fspath(features)):
        raise ParameterError("a store is built from files, which may be read again after a stop; got -")
    store, report_progress = Path(folder), progress or (lambda stage, done, total: None)
    require_store_place(store)
    how = {"directed": directed, "reciprocal": reciprocal, "node_column": node_column, "missing": missing}
    with opened(edges) as source:
        kind = source.kind
    if features is not None:
        with opened(features):  # fail early where it cannot be read
            pass
    if kind not in ("text", "parquet"):
        from spinegraph.graph.read import read_graph

        report_progress("reading", 0, 0)
        write_store(read_graph(edges, features, **asdict(options), **how, encoder=encoder), store)  # type: ignore[arg-type]
        return open_store(store)
    if features is not None and num_nodes is None:
        options = replace(options, num_nodes=_unnamed_rows(features))
    job: dict[str, Any] = {
        "version": 2,  # of the temporary files: others are removed, not resumed
        "edges": _identity(edges),
        "features": features and _identity(features),
        "encoder": None if encoder is None else encoder.state()[0],
        "options": repr(options),
        **how,
    }
    work = BuildFolder(store, job)
    with work.explained():
        _build(work, edges, options, memory - _PROCESS_MEMORY, report_progress, directed, reciprocal)
        if features is not None and work.result("features") is None:
            _add_features(work, features, report_progress, node_column, missing, encoder)
        report_progress("checksums", 0, 0)
        report = _finish(work)
    warn_of_losses(report, stacklevel=2)
    return open_store(store)


def _build(
    work: "BuildFolder",
    edges: str | Path,
    options: EdgeOptions,
    memory: int,
    progress: Progress,
    directed: bool,
    reciprocal: Reciprocal,
) -> None:
    """Write names, rows and weights; skips steps that are finished."""
    if work.result("scan") is None:
        try:
            _scan(work, edges, options, memory, progress)
        except NotIntegersError:  # far down the file: read it again with text names
            work.restart()
            _scan(work, edges, replace(options, names="text"), memory, progress)
    scan = work.result("scan")
    if work.result("names") is None:
        if options.num_nodes is None:
            _merge_names(work, memory, progress)
        else:
            with Output(work.files / "names.bin") as file:
                for start in range(0, options.num_nodes, _ROWS):
                    file.add(np.arange(start, min(start + _ROWS, options.num_nodes)))
            work.finish_step("names", count=options.num_nodes, kind="range")
    n = work.result("names")["count"]
    if n > MAX_NODES:
        raise GraphFormatError(f"a graph holds at most {MAX_NODES} nodes; got {n}")
    for run in range(scan["runs"]):
        progress("sorting edges", run, scan["runs"])
        if work.result(f"sorted {run}") is None:
            _sort_run(work, run, n, is_weighted=scan["is_weighted"])
    if work.result("rows") is None:
        try:
            report = _merge_rows(work, n, memory, progress, directed=directed, reciprocal=reciprocal)
        except GraphFormatError as fault:
            raise GraphFormatError(f"{os.fspath(edges)}: {fault}") from fault
        work.finish_step("rows", **asdict(report))


def _finish(work: "BuildFolder") -> EdgeReport:
    """Write the header, and let the store appear."""
    report = EdgeReport(**work.result("rows"))
    joined = work.result("features") or {"width": None, "titles": None, "files": {}}
    files = _entries(work.files) | {
        name: Entry(entry["dtype"], tuple(entry["shape"]), entry["digest"])
        for name, entry in joined["files"].items()
    }
    titles = None if joined["titles"] is None else tuple(joined["titles"])
    header = Header(work.result("names")["kind"], True, joined["width"], titles, report, "", files)
    arrays = {name: map_array(work.files / name, entry) for name, entry in files.items()}
    replace(header, fingerprint=computed_fingerprint(graph_of(header, arrays))).write(work.files)
    work.finish()
    return report


def _entries(folder: Path) -> dict[str, Entry]:
    """Return the entries of the files written so far, without features."""
    names = [name for name in FILES if not name.startswith("features") and (folder / name).exists()]
    return {name: entry_of(folder / name, FILES[name][1][0]) for name in names}


def _identity(path: str | Path) -> list[Any]:
    """Return what distinguishes versions of a file."""
    about = os.stat(path)
    return [os.path.abspath(path), about.st_size, about.st_mtime_ns]


class BuildFolder:
    """The hidden folder ``.NAME.building`` with the unfinished parts of a store.

    ``job`` says what is built from what; unfinished parts of another job are removed.
    """

    def __init__(self, store: Path, job: dict[str, Any]) -> None:
        self.store = store.resolve()
        self.folder = self.store.with_name(f".{self.store.name}.building")
        self.files = self.folder / "store"
        self._resume = f"finished steps are kept in {self.folder}: make space and run the same again"
        with self.explained():
            make_folder(self.files)
            try:
                self._journal: Any = json.loads((self.folder / _JOURNAL).read_bytes())
            except (OSError, ValueError):
                self._journal = None
            if not isinstance(self._journal, dict) or self._journal.get("job") != job:
                self._journal = {"job": job}
                self.restart()

    def path(self, name: str) -> Path:
        """Return the path of a temporary file."""
        return self.folder / name

    def result(self, step: str) -> Any:
        """Return the result of a finished step, else None."""
        return self._journal.get(step)

    def finish_step(self, step: str, **result: Any) -> None:
        """Record that a step is finished and its files are on disk."""
        self._journal[step] = result
        with whole_file(self.folder / _JOURNAL) as partial:
            partial.write_text(json.dumps(self._journal), encoding="utf-8")

    def restart(self) -> None:
        """Forget every step, and remove its files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        make_folder(self.files)
        self._journal = {"job": self._journal["job"]}

    def finish(self) -> None:
        """Move the finished files to the store's path, and remove the folder."""
        put_in_place(self.files, self.store)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the error of a full disk into one that says how to resume."""
        try:
            yield
        except OutputError as fault:
            if self._resume in str(fault):
                raise
            raise OutputError(f"{fault}; {self._resume}") from fault
        except SpineError:
            raise
        except OSError as fault:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            raise OutputError(f"{self.store}: cannot be written ({reason}); {self._resume}") from fault


class Output:
    """A file that arrays are appended to; it is on disk when it is closed."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.open("wb")

    def add(self, array: NDArray[Any]) -> None:
        """Append an array's bytes."""
        for chunk in chunks(array):
            self._file.write(np.ascontiguousarray(chunk).data)

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *fault: Any) -> None:
        self._file.close()
        if fault[0] is None:
            sync(self._path)


def _put(path: Path, array: NDArray[Any]) -> None:
    with Output(path) as file:
        file.add(array)


# Step 1: read the edges into runs of sorted distinct names, edges among them, and weights.


def _scan(
    work: BuildFolder, edges: str | Path, options: EdgeOptions, memory: int, progress: Progress
) -> None:
    """Read an edge file into runs; resumes after the last run on disk."""
    count, listed, blocks = 0, 0, 0
    while (run := work.result(f"run {count}")) is not None:
        count, listed, blocks = count + 1, listed + run["listed"], run["blocks"]
    if count and work.result(f"run {count - 1}")["names"] == "text":
        options = replace(options, names="text")
    with opened(edges) as source:
        scan = scan_text if source.kind == "text" else scan_parquet
        for found in scan(source.stream, source.path, options, blocks):
            progress("reading edges", listed + len(found), 0)
            if _cost(found) >= memory:
                listed += len(found)
                _write_run(work, count, found)
                count += 1
        if len(found):
            listed += len(found)
            _write_run(work, count, found)
            count += 1
        if not listed:
            raise GraphFormatError(f"{source.path}: holds no edges; {found.note}")
    work.finish_step("scan", runs=count, listed=listed, is_weighted=found.is_weighted, note=found.note)


def _cost(found: EdgeCollector) -> int:
    each = _PER_WEIGHTED_EDGE if found.is_weighted else _PER_EDGE
    return len(found) * each + found.name_bytes * _COPIES_OF_NAMES


def _write_run(work: BuildFolder, run: int, found: EdgeCollector) -> None:
    listed, blocks = len(found), found.blocks
    names, edges, weights = found.take()
    kind = "range" if isinstance(names, range) else "integer" if isinstance(names, np.ndarray) else "text"
    with work.explained():
        if kind == "integer":
            _put(work.path(f"{run}.names"), names)
        elif kind == "text":
            _put_text(work, run, names)
        _put(work.path(f"{run}.edges"), np.asarray(edges.T, dtype=np.int32))
        if weights is not None:
            _put(work.path(f"{run}.weights"), weights)
        work.finish_step(f"run {run}", listed=listed, blocks=blocks, names=kind)
    pa.default_memory_pool().release_unused()


def _put_text(work: BuildFolder, run: int, names: Any) -> None:
    """Write the bytes of an Arrow array of text, and the end of each name."""
    names = names.cast(pa.large_string())
    _, offsets, text = names.buffers()
    ends = np.frombuffer(offsets, np.int64)[names.offset : names.offset + len(names) + 1]
    raw = np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8)
    _put(work.path(f"{run}.text"), raw[ends[0] : ends[-1]])
    _put(work.path(f"{run}.ends"), ends[1:] - ends[0])


# Step 2: merge the names of all runs.


def _merge_names(work: BuildFolder, memory: int, progress: Progress) -> None:
    """Merge the runs' sorted names into the store's, and write the new position of each of a run's names."""
    runs = work.result("scan")["runs"]
    is_text = work.result("run 0")["names"] == "text"
    lists = [
        _stored_text(work.path(f"{run}.text"), work.path(f"{run}.ends"))
        if is_text
        else np.memmap(work.path(f"{run}.names"), np.int64, "r")
        for run in range(runs)
    ]
    window = max(memory // (_BYTES_PER_NAME * runs), _MIN_WINDOW)
    count, first, last, end = 0, None, None, 0
    with ExitStack() as stack:
        positions = [stack.enter_context(Output(work.path(f"{run}.positions"))) for run in range(runs)]
        suffixes = ("names_text.bin", "names_ends.bin") if is_text else ("names.bin",)
        outputs = [stack.enter_context(Output(work.files / name)) for name in suffixes]
        for merged, found in _merged_names(lists, window, is_text):
            for run, within in found:
                positions[run].add((within + count).astype(np.int32))
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
            progress("merging names", count, 0)
    covers_range = not is_text and first == 0 and last == count - 1
    work.finish_step("names", count=count, kind="text" if is_text else "range" if covers_range else "integer")


def _stored_text(text: Path, ends: Path) -> StoredNames:
    return StoredNames(np.memmap(text, np.uint8, "r"), np.memmap(ends, np.int64, "r"))


def _merged_names(
    lists: Sequence[Any], window: int, is_text: bool
) -> Iterator[tuple[Any, list[tuple[int, NDArray[np.int64]]]]]:
    """Yield the distinct names of sorted lists in order, some at a time, and the positions of each list's."""
    done = [0] * len(lists)
    while True:
        heads: dict[int, Any] = {
            run: names[done[run] : done[run] + window]
            for run, names in enumerate(lists)
            if done[run] < len(names)
        }
        if not heads:
            return
        pivot = min(head[-1] for head in heads.values())
        taken = {run: head[: bisect_right(head, pivot)] for run, head in heads.items()}
        if is_text:
            merged: Any = sorted(set().union(*taken.values()))
            index = {name: position for position, name in enumerate(merged)}
            found = [
                (run, np.fromiter(map(index.__getitem__, names), np.int64, len(names)))
                for run, names in taken.items()
            ]
        else:
            merged = np.unique(np.concatenate(list(taken.values())))
            found = [(run, np.searchsorted(merged, names)) for run, names in taken.items()]
        for run, names in taken.items():
            done[run] += len(names)
        yield merged, found


# Step 3: sort the edges of each run. Step 4: merge them into rows.


def _sort_run(work: BuildFolder, run: int, n: int, *, is_weighted: bool) -> None:
    """Sort a run's edges by row, in both directions; merges repeats, drops loops and weights of 0."""
    edges = np.fromfile(work.path(f"{run}.edges"), np.int32).reshape(2, -1)
    sources, targets = edges
    if work.path(f"{run}.positions").exists():
        positions = np.fromfile(work.path(f"{run}.positions"), np.int32)
        sources, targets = positions[sources], positions[targets]
    del edges
    dropped = sources == targets
    self_loops, zeros, weights = int(np.count_nonzero(dropped)), 0, None
    if is_weighted:
        weights = np.fromfile(work.path(f"{run}.weights"), np.float32)
        empty = (weights == 0) & ~dropped
        zeros = int(np.count_nonzero(empty))
        dropped |= empty
    if self_loops or zeros:
        sources, targets = sources[~dropped], targets[~dropped]
        weights = None if weights is None else weights[~dropped]
    keys = np.empty((2, len(sources)), dtype=np.int64)
    for one, other, out in ((sources, targets, keys[0]), (targets, sources, keys[1])):
        np.multiply(one, n, out=out, dtype=np.int64)
        out += other
        out <<= 1
        out |= sources > targets
    both = None if weights is None else np.concatenate([weights, weights])
    found, sums = sum_repeats(keys.ravel(), both)
    _put(work.path(f"{run}.keys"), found)
    if sums is not None:
        _put(work.path(f"{run}.sums"), sums)
    work.finish_step(f"sorted {run}", self_loops=self_loops, zeros=zeros, entries=len(found))
    for suffix in ("edges", "weights", "positions", "names", "text", "ends"):
        work.path(f"{run}.{suffix}").unlink(missing_ok=True)


def _merge_rows(
    work: BuildFolder, n: int, memory: int, progress: Progress, *, directed: bool, reciprocal: Reciprocal
) -> EdgeReport:
    """Merge the sorted runs into indptr, indices and weights; counts what was merged or dropped."""
    scan, is_text = work.result("scan"), work.result("names")["kind"] == "text"
    names: Any = (
        _stored_text(work.files / "names_text.bin", work.files / "names_ends.bin")
        if is_text
        else np.memmap(work.files / "names.bin", np.int64, "r")
    )
    runs = [work.result(f"sorted {run}") for run in range(scan["runs"])]
    window = max(memory // (_BYTES_PER_ENTRY * len(runs)), _MIN_WINDOW)
    total = sum(run["entries"] for run in runs)
    entries, one_way, both_ways, read = 0, 0, 0, 0
    with ExitStack() as stack:
        columns = stack.enter_context(Output(work.files / "indices.bin"))
        numbers = stack.enter_context(Output(work.files / "weights.bin")) if scan["is_weighted"] else None
        pointers = _Pointers(stack.enter_context(Output(work.files / "indptr.bin")), n)
        for keys, sums, count in _merged_keys(work, runs, window, is_weighted=scan["is_weighted"]):
            read += count
            # Keys that differ in the last bit alone are the two directions of one edge.
            backward = np.flatnonzero((keys[1:] ^ keys[:-1]) == 1) + 1
            one_way, both_ways = one_way + len(keys), both_ways + len(backward)
            if numbers is not None and sums is not None:
                numbers.add(combine_directions(keys, sums, backward, names, reciprocal))
            keys = np.delete(keys, backward) >> 1
            columns.add((keys % n).astype(np.int32))
            pointers.add(keys // n)
            entries += len(keys)
            progress("merging edges", read, total)
        pointers.finish()
    loops, zeros = (sum(run[what] for run in runs) for what in ("self_loops", "zeros"))
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
    work: BuildFolder, runs: Sequence[dict[str, Any]], window: int, *, is_weighted: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64] | None, int]]:
    """Yield the distinct keys of all runs in order, both directions of an edge together, and their sums."""
    held = [run for run, about in enumerate(runs) if about["entries"]]
    keys = {run: np.memmap(work.path(f"{run}.keys"), np.int64, "r") for run in held}
    sums = {run: np.memmap(work.path(f"{run}.sums"), np.float64, "r") for run in held if is_weighted}
    done = dict.fromkeys(held, 0)
    while any(done[run] < len(keys[run]) for run in held):
        ends = {run: min(done[run] + window, len(keys[run])) for run in held}
        # Below this key, nothing that belongs together lies beyond a window.
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


class _Pointers:
    """Writes the start of each row, from the ascending rows of entries that come in pieces."""

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
            stop = min(self._next + _ROWS, last + 1)
            self._output.add(self._entries + np.searchsorted(rows, np.arange(self._next, stop)))
            self._next = stop


# Step 5: join the features.


def _add_features(
    work: BuildFolder,
    path: str | Path,
    progress: Progress,
    node_column: str | int | None,
    missing: Missing,
    encoder: FeatureEncoder | None,
) -> None:
    """Write the features of a file; Parquet of numbers is read batch by batch, anything else whole."""
    files = _entries(work.files)
    header = Header(work.result("names")["kind"], True, None, None, None, "", files)
    graph = graph_of(header, {name: map_array(work.files / name, entry) for name, entry in files.items()})
    progress("joining features", 0, len(graph))
    titles = None
    if encoder is None:
        titles = _add_parquet(path, graph, work.files / "features.bin", node_column, missing, progress)
    written: dict[str, Entry] = {}
    if titles is not None:
        width: int | None = len(titles)
        written["features.bin"] = entry_of(work.files / "features.bin", np.float32, (len(titles),))
    else:
        found = read_features(path, node_column)
        if encoder is None and not is_numeric(found.data):
            other = [field.name for field in found.data.schema if not is_number(field.type)]
            raise MissingFeaturesError(
                f"{found.path}: {first_few(other, 3)} hold other than numbers; a store keeps numbers alone: "
                "pass encoder=FeatureEncoder().fit(table), or leave these columns out"
            )
        contents = FileContents(str(path), np.asarray(graph.names), np.zeros((0, 2), np.int64))
        joined = join_features(contents, found, missing=missing, encoder=encoder)
        width, titles = write_features(joined.features, work.files, written), joined.feature_names
    entries = {name: asdict(entry) for name, entry in written.items()}
    work.finish_step("features", width=width, titles=titles, files=entries)


def _unnamed_rows(features: str | Path) -> int | None:
    """Return the number of rows of a matrix without names, which says how many nodes there are."""
    with opened(features) as source:
        if source.kind not in ("npy", "npz"):
            return None
    found = read_features(features)
    return int(found.data.shape[0]) if found.names is None and found.data.ndim == 2 else None


def _add_parquet(
    features: str | Path,
    graph: Graph,
    path: Path,
    node_column: str | int | None,
    missing: Missing,
    progress: Progress,
) -> tuple[str, ...] | None:
    """Write the rows of a Parquet table of numbers batch by batch; returns None where it is no such table."""
    with opened(features) as source:
        if source.kind != "parquet":
            return None
        with open_parquet(source.stream, source.path) as file:
            schema = file.schema_arrow
            position = name_column(schema.names, node_column, source.path)
            columns = [field for number, field in enumerate(schema) if number != position]
            if not columns or not all(is_number(field.type) for field in columns):
                return None
            rows, done = _FeatureRows(graph, path, len(columns), source.path), 0
            for batch in file.iter_batches(batch_size=_BATCH):
                rows.add(batch.column(position), batch.drop_columns([schema.names[position]]), done)
                done += len(batch)
                progress("joining features", min(done, len(graph)), len(graph))
            rows.finish(missing)
            return tuple(field.name for field in columns)


class _FeatureRows:
    """A matrix (n, f) on disk, filled by named rows in any order."""

    def __init__(self, graph: Graph, path: Path, width: int, source: str) -> None:
        self._graph, self._source = graph, source
        self._is_filled = np.zeros(len(graph), dtype=bool)
        self._unknown: list[Any] = []
        self._unknown_count = 0
        # Reserve the space now: a full disk is an error here, but a crash in a memory map.
        with explained(path), path.open("wb") as file:
            size = 4 * len(graph) * width
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            for start in range(0, 0 if hasattr(os, "posix_fallocate") else size, 2**22):  # macOS, Windows
                file.write(bytes(min(2**22, size - start)))
        self._matrix = np.memmap(path, np.float32, "r+", shape=(len(graph), width))

    def add(self, column: Any, table: Any, first_row: int) -> None:
        names = self._names(column, first_row)
        positions = self._graph._name_index.find(names)
        values = table_matrix(table, lambda row: f"{self._source}: row {first_row + row}")
        unknown = np.flatnonzero(positions < 0)
        self._unknown += names[unknown[:_EXAMPLES]].tolist()
        self._unknown_count += len(unknown)
        known = np.flatnonzero(positions >= 0)
        order = known[np.argsort(positions[known], kind="stable")]  # ascending: touches each page once
        found = positions[order]
        twice = self._is_filled[found]
        twice[1:] |= found[1:] == found[:-1]
        if twice.any():
            raise MissingFeaturesError(
                f"{self._source}: feature rows: node names must be unique; given more than once: "
                f"{first_few(self._graph.names[found[twice][:_EXAMPLES]])}"
            )
        self._is_filled[found] = True
        self._matrix[found] = values[order]

    def finish(self, missing: Missing) -> None:
        empty = np.flatnonzero(~self._is_filled)
        message = mismatch(self._graph.names, empty, str(self._unknown_count), self._unknown)
        if message and missing == "error":
            raise MissingFeaturesError(f"{self._source}: {message}{MISSING_ZERO}")
        if self._unknown_count:
            message = f"{self._source}: {message}; such rows are left out"
            warnings.warn(message, SpineWarning, stacklevel=5)
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
