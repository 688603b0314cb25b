"""Builds a store from an edge file of any size in bounded memory, by sorting on disk."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.fingerprint import computed_fingerprint
from spinegraph.graph.align import Missing
from spinegraph.graph.edges import MOST_NODES, EdgeReport, Reciprocal, warn_of_losses
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.graph.files.columns import EdgeOptions
from spinegraph.graph.files.source import STANDARD_INPUT, opened
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import graph_of, open_store, require_store_place, write_store
from spinegraph.graph.store_features import add_features, bare_rows
from spinegraph.graph.store_files import entry_of, map_array
from spinegraph.graph.store_header import FILES, Entry, Header
from spinegraph.graph.store_merge import merge_names, merge_rows, sort_run
from spinegraph.graph.store_names import StoredNames
from spinegraph.graph.store_scan import Progress, scan_edges
from spinegraph.graph.store_work import Output, Workplace

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
    if n > MOST_NODES:
        raise GraphFormatError(f"a graph holds at most {MOST_NODES} nodes; got {n}")
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
