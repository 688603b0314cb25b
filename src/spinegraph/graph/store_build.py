"""Builds a store from an edge file of any size in bounded memory, sorted by DuckDB on disk."""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinegraph.atomic import explained, make_folder, whole_folder
from spinegraph.errors import (
    GraphFormatError,
    MissingFeaturesError,
    OutputError,
    ParameterError,
    SpineError,
    SpineWarning,
)
from spinegraph.graph.describe import computed_fingerprint
from spinegraph.graph.edge_files import (
    MAX_WEIGHT,
    EdgeOptions,
    NotHeaderError,
    interruptible,
    literal,
    open_listing,
    open_parquet,
    warn_of_header,
)
from spinegraph.graph.edges import (
    MAX_NODES,
    EdgeReport,
    Reciprocal,
    as_features,
    check_directions,
    combine_directions,
    split_directions,
    sum_repeats,
    warn_of_losses,
)
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import (
    MISSING_ZERO,
    Missing,
    align_features,
    encoded,
    is_number,
    is_numeric,
    mismatch,
    name_column,
    names_like,
    read_features,
    table_matrix,
)
from spinegraph.graph.files import STANDARD_INPUT, Opened, opened
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few
from spinegraph.graph.read import edge_options, read_graph
from spinegraph.graph.store import (
    FILES,
    Entry,
    Header,
    StoredNames,
    entry_of,
    graph_of,
    map_array,
    open_store,
    require_store_place,
    write_chunks,
    write_features,
    write_store,
)

Progress = Callable[[str, int, int], None]

MIN_MEMORY = 256 * 2**20
_PROCESS_MEMORY = 160 * 2**20  # the interpreter and its libraries
_SHARE = 0.6  # of the rest for DuckDB, which takes somewhat more than it is allowed
_ENTRIES = 2**18  # sorted entries merged at a time
_ROWS = 2**20  # row pointers written at a time
_BATCH = 2**14  # feature rows read at a time
_EXAMPLES = 6
_BLANKS = (
    " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
)
_BLANKS += "\u200a\u2028\u2029\u202f\u205f\u3000"


def build_store(
    edges: str | Path,
    folder: str | Path,
    *,
    features: str | Path | None = None,
    memory: int = 2 * 2**30,
    progress: Progress | None = None,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
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
    report and warnings. DuckDB sorts the edges in a hidden folder beside the store, which takes a few times
    the size of the result; the store appears when it is complete, and what an interrupted build wrote is
    removed.

    Parameters
    ----------
    edges : path
        CSV, TSV, white space, JSON lines, Parquet or a DuckDB file. npz and GraphML are read into memory.
    folder : path
        The store; an existing one is replaced.
    features : path, optional
        Node features. Parquet whose columns are numbers is read in bounded memory; other kinds are read into
        memory.
    memory : int
        Bytes to work with, at least 256 MiB, beside what the features need.
    progress : callable (stage, done, total), optional
    source, target, weight, weighted, header, delimiter, comments, names, num_nodes
    directed, reciprocal, node_column
        As in ``read_graph``.
    missing : {"error", "zero"}
        With "zero", nodes without a feature row get zeros, and rows without a node are left out.
    encoder : FeatureEncoder, optional
        Fitted; needed where features have gaps or other columns than numbers.

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
    check_directions(directed, reciprocal)
    options = edge_options(
        *(source, target, weight),
        weighted=weighted,
        header=header,
        delimiter=delimiter,
        comments=comments,
        names=names,
        num_nodes=num_nodes,
    )
    if STANDARD_INPUT in (os.fspath(edges), features and os.fspath(features)):
        raise ParameterError("a store is built from files, which are read more than once; got -")
    store, report_progress = Path(folder), progress or (lambda stage, done, total: None)
    require_store_place(store)
    if features is not None:
        with opened(features):  # fail early where it cannot be read
            pass
        if num_nodes is None:
            options = replace(options, num_nodes=_unnamed_rows(features))
    with opened(edges) as opened_edges:
        if opened_edges.kind in ("npz", "npy", "xml"):
            report_progress("reading", 0, 0)
            chosen: Any = {"weighted": weighted, "names": names, "num_nodes": num_nodes}
            chosen |= {"directed": directed, "reciprocal": reciprocal, "node_column": node_column}
            write_store(read_graph(edges, features, **chosen, encoder=encoder), store)
            return open_store(store)
        make_folder(store.resolve().parent)
        with whole_folder(store) as partial:
            build = _Build(partial, memory, report_progress, directed, reciprocal)
            try:
                kind, report = build.edges(opened_edges, options)
            except NotHeaderError:
                opened_edges.stream.seek(0)
                kind, report = build.edges(opened_edges, replace(options, header=False))
            width, titles, files = None, None, _entries(partial)
            if features is not None:
                graph = graph_of(Header(kind, True, None, None, None, "", files), _mapped(partial, files))
                joined = _add_features(
                    graph, features, partial, report_progress, node_column, missing, encoder
                )
                width, titles, more = joined
                files |= more
            report_progress("checksums", 0, 0)
            made = Header(kind, True, width, titles, report, "", files)
            replace(made, fingerprint=computed_fingerprint(graph_of(made, _mapped(partial, files)))).write(
                partial
            )
    warn_of_losses(report, stacklevel=2)
    return open_store(store)


def _mapped(folder: Path, files: dict[str, Entry]) -> dict[str, NDArray[Any]]:
    return {name: map_array(folder / name, entry) for name, entry in files.items()}


def _entries(folder: Path) -> dict[str, Entry]:
    """Return the entries of the files written so far, without features."""
    names = [name for name in FILES if not name.startswith("features") and (folder / name).exists()]
    return {name: entry_of(folder / name, FILES[name][1][0]) for name in names}


class _Build:
    """Writes names, rows and weights of a store to a folder."""

    def __init__(
        self, folder: Path, memory: int, progress: Progress, directed: bool, reciprocal: Reciprocal
    ) -> None:
        self._folder, self._memory, self._progress = folder, memory, progress
        self._directed, self._reciprocal = directed, reciprocal

    def edges(self, source: Opened, options: EdgeOptions) -> tuple[str, EdgeReport]:
        """Write everything but features; returns the kind of names and what became of the listed edges."""
        work = self._folder / "work"
        work.mkdir()
        try:
            allowed = int(_SHARE * (self._memory - _PROCESS_MEMORY))
            with open_listing(source, options, allowed, str(work)) as listing:
                self._listing = listing
                self._progress("reading edges", 0, 0)
                listed = self._read()
                self._progress("sorting names", 0, 0)
                kind, n = self._write_names()
                warn_of_header(listing, stacklevel=4)
                self._progress("sorting edges", 0, listed)
                return kind, self._write_rows(listed, n)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _run(self, query: str) -> None:
        try:
            interruptible(self._listing.database, lambda: self._listing.database.execute(query))
        except SpineError:
            raise
        except Exception as fault:
            self._explain(fault)

    def _rows(self, query: str) -> Iterator[Any]:
        """Yield Arrow batches of a query."""
        database = self._listing.database
        try:
            reader = interruptible(database, lambda: database.sql(query).to_arrow_reader(_ENTRIES))
            while (batch := interruptible(database, lambda: next(reader, None))) is not None:
                yield batch
        except SpineError:
            raise
        except Exception as fault:
            self._explain(fault)

    def _explain(self, fault: Exception) -> NoReturn:
        text = str(fault)
        if "No space left" in text or "max_temp_directory_size" in text or "Out of Memory" in text:
            reason = "out of memory; allow more" if "Out of Memory" in text else "No space left on device"
            raise OutputError(
                f"{self._folder.parent}: a store cannot be written there ({reason}); nothing was changed: "
                "make space and run the same again"
            ) from fault
        self._listing.explain(text)

    def _read(self) -> int:
        """Read the listed edges into a table, check them, and return their number."""
        listing = self._listing
        ends = listing.ends(as_integers=listing.kind == "integer" and not listing.is_text)
        if listing.kind != "integer" or listing.is_text:
            ends = f"trim({ends[0]}, {literal(_BLANKS)})", f"trim({ends[1]}, {literal(_BLANKS)})"
        weight = "" if listing.weight is None else f", TRY_CAST({listing.weight} AS DOUBLE) AS w"
        query = f"SELECT {ends[0]} AS a, {ends[1]} AS b{weight} FROM {listing.relation()}"
        self._run(f"CREATE TEMP TABLE edges AS {query}")
        ((listed, named),) = listing.database.sql(
            "SELECT count(*), count(a) + count(b) FROM edges"
        ).fetchall()
        if named < 2 * listed:
            listing.explain("a name is empty")
        if weight:
            rule = f"count(*) FILTER (WHERE w IS NULL OR isnan(w) OR w < 0 OR w > {MAX_WEIGHT!r}) FROM edges"
            if listing.database.sql(f"SELECT {rule}").fetchall()[0][0]:
                listing.explain("a weight is negative, not finite or too large")
        if not listed:
            raise GraphFormatError(f"{listing.path}: holds no edges; {listing.note}")
        return int(listed)

    def _write_names(self) -> tuple[str, int]:
        """Write the names in ascending order; returns their kind and number."""
        listing, database = self._listing, self._listing.database
        self._run("CREATE TEMP TABLE found AS SELECT DISTINCT unnest([a, b]) AS n FROM edges")
        is_integer = listing.kind == "integer" and not listing.is_text
        if not is_integer:
            usual = "regexp_full_match(n, '-?(0|[1-9][0-9]{0,18})') AND TRY_CAST(n AS BIGINT) IS NOT NULL"
            query = f"SELECT bool_or(n = '' OR contains(n, chr(10))), bool_and({usual}) FROM found"
            ((is_bad, is_integer),) = database.sql(query).fetchall()
            if is_bad:
                listing.explain("a name is empty, or a quote is not closed on its line")
            if listing.guessed_header is not None:
                words = ", ".join(map(literal, listing.guessed_header))
                if database.sql(f"SELECT count(*) FROM found WHERE n IN ({words})").fetchall()[0][0]:
                    raise NotHeaderError
            if listing.kind == "integer" and not is_integer:
                listing.explain("a name is not an integer")
            is_integer = is_integer and listing.kind != "text" and listing.is_text
            if is_integer:
                self._run("ALTER TABLE found ALTER n TYPE BIGINT")
                for end in "ab":
                    self._run(f"ALTER TABLE edges ALTER {end} TYPE BIGINT")
        # The order of rows is the order of names, so that a row's number is a name's position.
        if listing.num_nodes is not None:
            n = listing.num_nodes
            query = f"SELECT count(*) FROM found WHERE n < 0 OR n >= {n}"
            if database.sql(query).fetchall()[0][0]:
                listing.explain("a node id is out of range")
            self._run(f"CREATE TEMP TABLE names AS SELECT range AS n FROM range({n})")
        else:
            self._run("CREATE TEMP TABLE names AS SELECT DISTINCT n FROM found ORDER BY n")
        self._run("DROP TABLE found")
        ((n, first, last),) = database.sql("SELECT count(*), min(n), max(n) FROM names").fetchall()
        if n > MAX_NODES:
            raise GraphFormatError(f"{listing.path}: a graph holds at most {MAX_NODES} nodes; got {n}")
        self._is_range = is_integer and first == 0 and last == n - 1
        if is_integer:
            parts = (batch.column(0).to_numpy() for batch in self._rows("SELECT n FROM names"))
            with explained(self._folder):
                write_chunks(self._folder / "names.bin", parts, np.int64)
            return "range" if self._is_range else "integer", int(n)
        with (
            explained(self._folder),
            (self._folder / "names_text.bin").open("wb") as text,
            (self._folder / "names_ends.bin").open("wb") as ends,
        ):
            size = 0
            for batch in self._rows("SELECT n FROM names"):
                column = batch.column(0).cast(pa.large_string())
                _, offsets, data = column.buffers()
                marks = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
                text.write(data[int(marks[0]) : int(marks[-1])])
                ends.write((marks[1:] - marks[0] + size).tobytes())
                size += int(marks[-1] - marks[0])
        return "text", int(n)

    def _write_rows(self, listed: int, n: int) -> EdgeReport:
        """Write indptr, indices and weights in both directions; counts what was merged or dropped."""
        database, is_weighted = self._listing.database, self._listing.weight is not None
        weight = ", w" if is_weighted else ""
        if self._is_range:
            pairs = f"SELECT a AS x, b AS y{weight} FROM edges"
        else:
            pairs = f"SELECT p.rowid AS x, q.rowid AS y{weight} FROM edges "
            pairs += "JOIN names AS p ON p.n = a JOIN names AS q ON q.n = b"
        zero = "w = 0" if is_weighted else "false"
        query = f"SELECT count(*) FILTER (WHERE a = b), count(*) FILTER (WHERE a <> b AND {zero}) FROM edges"
        ((loops, zeros),) = database.sql(query).fetchall()
        # The last bit of a key says which direction an edge was listed in.
        both = f"unnest([(x * {n} + y) * 2 + (x > y)::INT, (y * {n} + x) * 2 + (x > y)::INT]) AS k{weight}"
        ordered = f"SELECT {both} FROM ({pairs}) WHERE x <> y AND NOT {zero} ORDER BY k{weight}"
        names = _stored_names(self._folder)
        one_way = both_ways = entries = 0
        pointers = _Pointers(n)
        done, total = 0, 2 * (listed - loops - zeros)
        with (
            explained(self._folder),
            (self._folder / "indices.bin").open("wb") as columns,
            (self._folder / "indptr.bin").open("wb") as starts,
            (self._folder / ("weights.bin" if is_weighted else "work/none")).open("wb") as numbers,
            (self._folder / ("outward.bin" if self._directed else "work/out")).open("wb") as outward,
            (self._folder / ("inward.bin" if self._directed else "work/in")).open("wb") as inward,
        ):
            for keys, sums in _whole_groups(self._rows(ordered), is_weighted):
                done += len(keys)
                keys, added = sum_repeats(keys, sums)
                # Keys that differ in the last bit alone are the two directions of one edge.
                backward = np.flatnonzero((keys[1:] ^ keys[:-1]) == 1) + 1
                one_way, both_ways = one_way + len(keys), both_ways + len(backward)
                flows = split_directions(keys, added, backward) if self._directed else None
                if added is not None:
                    try:
                        rule: Reciprocal = "max" if self._directed else self._reciprocal
                        merged = combine_directions(keys, added, backward, names, rule)
                    except GraphFormatError as fault:
                        raise GraphFormatError(f"{self._listing.path}: {fault}") from fault
                    numbers.write(merged.tobytes())
                keys = np.delete(keys, backward) >> 1
                if flows is not None:
                    # The first column is of edges that were listed with the smaller node first.
                    from_row = (keys // n > keys % n).astype(np.int64)
                    outward.write(flows[np.arange(len(keys)), from_row].tobytes())
                    inward.write(flows[np.arange(len(keys)), 1 - from_row].tobytes())
                columns.write((keys % n).astype(np.int32).tobytes())
                for part in pointers.add(keys // n):
                    starts.write(part.tobytes())
                entries += len(keys)
                self._progress("merging edges", min(done, total), total)
            for part in pointers.finish():
                starts.write(part.tobytes())
        return EdgeReport(
            listed=listed,
            edges=one_way // 2 if self._directed else entries // 2,
            self_loops=loops,
            zero_weights=zeros,
            repeated=listed - loops - zeros - one_way // 2,
            reciprocal=0 if self._directed else both_ways // 2,
        )


def _stored_names(folder: Path) -> Any:
    if (folder / "names.bin").exists():
        return np.memmap(folder / "names.bin", np.int64, "r")
    text, ends = folder / "names_text.bin", folder / "names_ends.bin"
    return StoredNames(np.memmap(text, np.uint8, "r"), np.memmap(ends, np.int64, "r"))


def _whole_groups(
    batches: Iterator[Any], is_weighted: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64] | None]]:
    """Yield sorted keys and weights in pieces, all listings of an edge in one piece."""
    held: list[Any] = [np.zeros(0, np.int64), np.zeros(0)]
    for batch in batches:
        keys = np.concatenate([held[0], batch.column(0).to_numpy()])
        weights = np.concatenate([held[1], batch.column(1).to_numpy()]) if is_weighted else held[1]
        if not len(keys):
            continue
        cut = int(np.searchsorted(keys, keys[-1] >> 1 << 1))
        if cut:
            yield keys[:cut], weights[:cut] if is_weighted else None
        held = [keys[cut:], weights[cut:] if is_weighted else weights]
    if len(held[0]):
        yield held[0], held[1] if is_weighted else None


class _Pointers:
    """Gives the start of each row, from the ascending rows of entries that come in pieces."""

    def __init__(self, n: int) -> None:
        self._n, self._next, self._entries = n, 0, 0

    def add(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        if len(rows):
            yield from self._until(rows, int(rows[-1]))
            self._entries += len(rows)

    def finish(self) -> Iterator[NDArray[np.int64]]:
        return self._until(np.zeros(0, np.int64), self._n)

    def _until(self, rows: NDArray[np.int64], last: int) -> Iterator[NDArray[np.int64]]:
        while self._next <= last:
            stop = min(self._next + _ROWS, last + 1)
            yield self._entries + np.searchsorted(rows, np.arange(self._next, stop))
            self._next = stop


def _add_features(
    graph: Graph,
    path: str | Path,
    folder: Path,
    progress: Progress,
    node_column: str | int | None,
    missing: Missing,
    encoder: FeatureEncoder | None,
) -> tuple[int | None, tuple[str, ...] | None, dict[str, Entry]]:
    """Write the features of a file; Parquet of numbers is read batch by batch, anything else whole.

    Returns their number, their names and the entries of the files written.
    """
    progress("joining features", 0, len(graph))
    if encoder is None:
        titles = _add_parquet(path, graph, folder / "features.bin", node_column, missing, progress)
        if titles is not None:
            return (
                len(titles),
                titles,
                {"features.bin": entry_of(folder / "features.bin", np.float32, (len(titles),))},
            )
    found = read_features(path, node_column)
    if encoder is None and not is_numeric(found.data):
        other = [
            name
            for name, column in zip(found.data.column_names, found.data.columns, strict=True)
            if not is_numeric(pa.table([column], [name]))
        ]
        raise MissingFeaturesError(
            f"{found.path}: {first_few(other, 3)} hold gaps or other than numbers; a store keeps numbers "
            "alone: pass encoder=FeatureEncoder().fit(table), or leave these columns out"
        )
    matrix, titles, _ = encoded(found, encoder)
    names = np.asarray(graph.names)
    try:
        if found.names is not None:
            matrix = align_features(names, names_like(names, found.names), matrix, missing)
        matrix = as_features(matrix, names)
    except SpineError as fault:
        raise type(fault)(f"{found.path}: {fault}") from fault
    written: dict[str, Entry] = {}
    return write_features(matrix, folder, written), titles, written


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
