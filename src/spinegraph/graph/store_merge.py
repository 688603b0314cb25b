"""Second stage of building a store: the runs' names merged, their edges sorted by row, the rows merged."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError
from spinegraph.graph.edges import EdgeReport, Reciprocal, combine_directions, sum_repeats
from spinegraph.graph.names import quoted
from spinegraph.graph.store_names import ENCODING, StoredNames
from spinegraph.graph.store_scan import Progress
from spinegraph.graph.store_work import Output, Workplace

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
