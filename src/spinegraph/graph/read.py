"""Reads a graph from a file, a table or a query into memory, or a graph of any size into a store."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinegraph.atomic import make_folder, output_errors, whole_folder
from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError
from spinegraph.graph.describe import computed_fingerprint
from spinegraph.graph.edge_files import (
    EdgeOptions,
    FileContents,
    Loaded,
    Query,
    as_integer,
    collect,
    identifier,
    literal,
    open_listing,
    open_parquet,
    read_graphml,
    read_npz_network,
    trim,
    warn_of_header,
    warn_of_shared_ids,
)
from spinegraph.graph.edges import (
    MAX_NODES,
    EdgeReport,
    Reciprocal,
    as_features,
    check_directions,
    merge_listings,
    warn_of_losses,
)
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import (
    OTHER_COLUMN,
    align_features,
    encoded,
    is_number,
    is_numeric,
    join_features,
    name_column,
    no_common_name,
    other_columns,
    read_features,
    row_names,
    warn_of_rows,
)
from spinegraph.graph.files import STANDARD_INPUT, Opened, naming, opened
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import NameIndex, first_few, quoted
from spinegraph.graph.store import (
    FILES,
    Header,
    StoredNameIndex,
    StoredNames,
    entry_of,
    graph_of,
    is_store,
    map_array,
    open_store,
    require_store_place,
    write_array,
    write_chunks,
    write_features,
    write_store,
    write_text,
)

logger = logging.getLogger(__name__)

Source = str | os.PathLike[str]
Progress = Callable[[str, int, int], None]

MIN_MEMORY = 256 * 2**20
_PROCESS_MEMORY = 160 * 2**20  # of the interpreter and its libraries
_SHARE = 0.6  # of the remaining memory for DuckDB, which uses somewhat more than its limit
_ENTRIES = 2**18  # sorted entries merged at a time
_EXAMPLES = 6


def read_graph(
    edges: Any = None,
    features: Any = None,
    *,
    query: str | None = None,
    database: Source | None = None,
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
    encoder: FeatureEncoder | None = None,
) -> Graph:
    r"""Read a graph from a file, a table in memory or a query, and its node features from another.

    Edges may be text (commas, tabs, semicolons or white space), Parquet, JSON lines, a DuckDB file, npz
    (``edges`` and ``num_nodes``, or a SciPy sparse matrix) or GraphML, with or without gzip or zstd; the kind
    is detected from the first bytes. GraphML needs ``pip install 'spinegraph[graphs]'``. The folder of a
    store (see ``open_store``) is opened as it is. Node names are integers if all are (7, but not 007), else
    text. They are sorted; npz and GraphML, which list their nodes, keep their order.

    Parameters
    ----------
    edges : path or table
        The edge file (``-`` is standard input), or an Arrow table, a pandas or polars DataFrame, a dict of
        columns or a list of dicts.
    features : path, table or matrix, optional
        Node features as npz, npy, CSV, TSV, Parquet, JSON lines or GraphML, or a table in memory. A table is
        joined by its column of names; a matrix without names has row ``i`` for node ``i``. Numbers without
        gaps are used as they are; any other table goes through a
        :class:`~spinegraph.graph.encoder.FeatureEncoder`. Rows that match no node become isolated nodes, and
        nodes without a row get gaps, each with a warning.
    query : str, optional
        SQL whose result is the edges, instead of ``edges``.
    database : path, optional
        The DuckDB file to run ``query`` on.
    source, target, weight : str or int, optional
        Columns by title or position; titles imply a header. By default the ends are columns with usual titles
        (source, target, from, to and similar), else the first two; the weight is a column of numbers titled
        weight, amount or similar. Other columns are left out.
    weighted : bool, optional
        By default weights are read from such a column, or from the third column of text without titles if it
        holds numbers that are neither time stamps nor below 0. True uses the third column whatever its title;
        False ignores weights.
    header : bool, optional
        Whether the first line of text holds titles. By default it does if its words are usual titles, if it
        has words where the lines below have numbers, or if its words do not occur again in either end column;
        in the last case there is a warning.
    delimiter : str, optional
        Field separator of text; ``" "`` is any white space.
    comments : sequence of str
        Lines of text that begin with one of these are skipped.
    names : {"integer", "text"}, optional
        Type of node names.
    num_nodes : int, optional
        Nodes are 0 .. num_nodes-1, whether or not they occur in an edge.
    directed, reciprocal
        As in :meth:`Graph.from_edges <spinegraph.graph.graph.Graph.from_edges>`.
    node_column : str or int, optional
        The column of node names in a feature table; by default one titled node, id or name, or else the
        first, that has nodes of the edges.
    encoder : FeatureEncoder, optional
        Encodes the features; fitted on them if it is not fitted yet. By default a table with gaps or with
        columns other than numbers gets a new encoder. The graph holds it as ``encoder``, and a fitted model
        as ``table_encoder_``: pass ``encoder=model.table_encoder_`` to encode other files the same way.

    Raises
    ------
    GraphFormatError
        The file breaks a rule; the message gives file and line, the text, the rule and a way out.
    MissingFileError
        The file does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     size = file.write("source,target,weight\nann,bob,2\nbob,cy,1\n"), file.flush()
    ...     read_graph(file.name)
    Graph(3 nodes, 2 edges, weighted, names 'ann', 'bob', ...)
    """
    options = EdgeOptions(source, target, weight, weighted, header, delimiter, comments, names, num_nodes)
    if isinstance(edges, str | os.PathLike) and query is None and is_store(edges):
        return open_whole_store(edges, features)
    given = edge_source(edges, query, database)
    contents = read_joined(given, features, options, node_column=node_column, encoder=encoder)
    for note in contents.notes:
        logger.info("%s: %s", contents.path, note)
    return build_graph(contents, directed=directed, reciprocal=reciprocal)


def edge_source(edges: Any, query: str | None, database: Source | None) -> Any:
    """Return what to read edges from; raises unless either a source or a query is given."""
    if (edges is None) == (query is None):
        raise ParameterError("pass either edges (a file or a table) or query='select ...'")
    if query is None and database is not None:
        raise ParameterError("database needs query='select source, target from ...'; pass a query")
    return edges if query is None else Query(query, database)


def open_whole_store(path: Source, features: Any) -> Graph:
    """Open a store, which has its own features; raises if a feature file is given too."""
    if features is not None:
        raise ParameterError(
            f"{os.fspath(path)}: is a store, which has its own features; build it with features "
            "(spine data build --features), or pass the edges as a file"
        )
    return open_store(os.fspath(path))


def read_joined(
    edges: Any,
    features: Any,
    options: EdgeOptions,
    *,
    node_column: str | int | None = None,
    encoder: FeatureEncoder | None = None,
) -> FileContents:
    """Read edges and join features from another file; arguments as in :func:`read_graph`."""
    contents = read_contents(edges, options)
    if features is None:
        return contents
    return join_features(contents, read_features(features, node_column, contents.names), encoder)


def read_contents(edges: Any, options: EdgeOptions | None = None) -> FileContents:
    """Read an edge file, table or query, before edges are merged, dropped or made symmetric."""
    options = options or EdgeOptions()
    if not isinstance(edges, str | os.PathLike):
        with open_listing(edges, options) as listing:
            return collect(listing)
    with opened(edges) as source:
        if source.kind == "npy":
            raise GraphFormatError(f"{source.path}: an npy array is no edge list; pass it as features=...")
        if source.kind in ("npz", "xml"):
            if any(column is not None for column in options.columns):
                raise ParameterError(f"{source.path}: npz and GraphML files have no columns; leave these out")
            return (read_npz_network if source.kind == "npz" else read_graphml)(edges, options)
        with open_listing(source, options) as listing:
            contents = collect(listing)
    # Arrow keeps freed memory, which building the graph needs.
    pa.default_memory_pool().release_unused()
    return contents


def build_graph(contents: FileContents, *, directed: bool = False, reciprocal: Reciprocal = "error") -> Graph:
    """Build the graph of a file's contents; errors name the file."""
    sources, targets = contents.edges.T
    found = contents.names, contents.weights, contents.features, contents.feature_names
    directions = directed, contents.directed, reciprocal
    with naming(contents.path):
        graph = Graph._from_positions(sources, targets, *found, *directions, stacklevel=3)
    return graph._encoded_by(contents.encoder)


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
    encoder: FeatureEncoder | None = None,
) -> Graph:
    r"""Build a store from an edge file that need not fit in memory, and open it.

    The graph is the same as from ``read_graph``: same names in the same (ascending) order, same edges,
    weights, report and warnings. DuckDB sorts the edges in a hidden folder next to the store, which takes a
    few times the size of the result. The store appears once it is complete; files of an interrupted build
    are removed.

    Parameters
    ----------
    edges : path
        CSV, TSV, white space, JSON lines, Parquet or a DuckDB file. npz and GraphML are read into memory.
    folder : path
        Folder of the store; an existing store is replaced.
    features : path, optional
        Node features. Parquet with columns of numbers is read in bounded memory; other kinds are read into
        memory as a whole.
    memory : int
        Bytes to use, at least 256 MiB, in addition to what the features need.
    progress : callable (stage, done, total), optional
    source, target, weight, weighted, header, delimiter, comments, names, num_nodes
    directed, reciprocal, node_column
        As in ``read_graph``.
    encoder : FeatureEncoder, optional
        A fitted encoder; required if features have gaps or columns other than numbers. A store does not save
        it: pass it again in ``fit(store, encoder=encoder)``.

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
    options = EdgeOptions(source, target, weight, weighted, header, delimiter, comments, names, num_nodes)
    if STANDARD_INPUT in (os.fspath(edges), features and os.fspath(features)):
        raise ParameterError("a store is built from files, not from standard input; write it to a file first")
    store, report_progress = Path(folder), progress or (lambda stage, done, total: None)
    require_store_place(store)
    if features is not None:
        rows = _unnamed_rows(features)  # fails early if they cannot be read
        options = options if num_nodes is not None else replace(options, num_nodes=rows)
    with opened(edges) as opened_edges:
        if opened_edges.kind in ("npz", "npy", "xml"):
            report_progress("reading", 0, 0)
            chosen: Any = {"weighted": weighted, "names": names, "num_nodes": num_nodes}
            chosen |= {"directed": directed, "reciprocal": reciprocal, "node_column": node_column}
            write_store(read_graph(edges, features, **chosen, encoder=encoder), store)
            return open_store(store)
        make_folder(store.resolve().parent)
        given = (memory, report_progress, features, directed, reciprocal, node_column, encoder)
        with whole_folder(store) as partial:
            made = _Build(partial, *given).write(opened_edges, options)
            report_progress("checksums", 0, 0)
            arrays = {name: map_array(partial / name, entry) for name, entry in made.files.items()}
            fingerprint = computed_fingerprint(graph_of(made, arrays))
            replace(made, fingerprint=fingerprint).write(partial)
    if made.report is not None:
        warn_of_losses(made.report, stacklevel=2)
    return open_store(store)


@dataclass(eq=False)
class _Build:
    """Writes a store to a folder; arguments as in :func:`build_store`."""

    folder: Path
    memory: int
    progress: Progress
    features: str | Path | None
    directed: bool
    reciprocal: Reciprocal
    node_column: str | int | None
    encoder: FeatureEncoder | None

    def write(self, source: Opened, options: EdgeOptions) -> Header:
        """Write the files of a store except its header, which is returned."""
        work = self.folder / "work"
        work.mkdir()
        allowed = int(_SHARE * (self.memory - _PROCESS_MEMORY))
        with open_listing(source, options, allowed, str(work)) as self._listing:
            self.progress("reading edges", 0, 0)
            found = self._listing.load()
            if found.names > MAX_NODES:
                at_most = f"a graph holds at most {MAX_NODES} nodes; got {found.names}"
                raise GraphFormatError(f"{self._listing.path}: {at_most}")
            self.progress("sorting names", 0, 0)
            kind = self._write_names(found)
            warn_of_header(self._listing, stacklevel=4)
            shared = "SELECT count(*) FROM (SELECT a FROM spine_edges INTERSECT SELECT b FROM spine_edges)"
            names, count = _stored_names(self.folder), lambda: int(self._listing.first(shared)[0])
            warn_of_shared_ids(self._listing.titles, names, count, stacklevel=4)
            self.progress("sorting edges", 0, found.listed)
            report = self._write_rows(found)
            written = [name for name in FILES if (self.folder / name).exists()]
            files = {name: entry_of(self.folder / name, FILES[name][1][0]) for name in written}
            made = Header(kind, True, None, None, report, "", files)
            if self.features is not None:
                self.progress("joining features", 0, found.names)
                made = self._join_features(self.features, made)
        shutil.rmtree(work)
        return made

    def _rows(self, query: str) -> Iterator[Any]:
        return self._listing.batches(query, _ENTRIES)

    def _write_names(self, found: Loaded) -> str:
        """Write the names in ascending order and return their kind."""
        batches = (batch.column(0) for batch in self._rows("SELECT n FROM spine_names"))
        with output_errors(self.folder):
            if found.are_integers:
                write_chunks(self.folder / "names.bin", (batch.to_numpy() for batch in batches), np.int64)
                return "range" if found.are_range else "integer"
            write_text(batches, self.folder)
        return "text"

    def _write_rows(self, found: Loaded) -> EdgeReport:
        """Write indptr, indices and weights in both directions, and count what was merged or dropped."""
        is_weighted, directed, n = self._listing.weight is not None, self.directed, found.names
        weight, zero = (", w", "w = 0") if is_weighted else ("", "false")
        loops, zeros = self._listing.first(
            f"SELECT count(*) FILTER (a = b), count(*) FILTER (a <> b AND {zero}) FROM spine_edges"
        )
        # The last bit of a key is the direction that an edge was listed in.
        both = f"unnest([(x * {n} + y) * 2 + (x > y)::INT, (y * {n} + x) * 2 + (x > y)::INT]) AS k{weight}"
        pairs = self._listing.pairs(found)
        ordered = f"SELECT {both} FROM ({pairs}) WHERE x <> y AND NOT {zero} ORDER BY k{weight}"
        names = _stored_names(self.folder)
        one_way = entries = 0
        done, total = 0, 2 * (found.listed - loops - zeros)
        with (
            output_errors(self.folder),
            (self.folder / "indices.bin").open("wb") as columns,
            (self.folder / ("weights.bin" if is_weighted else "work/none")).open("wb") as numbers,
            (self.folder / ("outward.bin" if directed else "work/out")).open("wb") as outward,
            (self.folder / ("inward.bin" if directed else "work/in")).open("wb") as inward,
        ):
            # Written and not only mapped, so that a full disk is an error here.
            write_array(self.folder / "indptr.bin", np.broadcast_to(np.int64(0), (n + 1,)))
            starts = np.memmap(self.folder / "indptr.bin", np.int64, "r+")
            for keys, sums in _whole_groups(self._rows(ordered), is_weighted):
                done += len(keys)
                with naming(self._listing.path):
                    merged = merge_listings(keys, sums, names, directed, self.reciprocal)
                keys, weights, flows, found_ways = merged
                one_way += found_ways
                if weights is not None:
                    numbers.write(weights.tobytes())
                if flows is not None:
                    # The first column is for edges that were listed with the smaller node first.
                    from_row = (keys // n > keys % n).astype(np.int64)
                    outward.write(flows[np.arange(len(keys)), from_row].tobytes())
                    inward.write(flows[np.arange(len(keys)), 1 - from_row].tobytes())
                columns.write((keys % n).astype(np.int32).tobytes())
                rows = keys // n
                first = np.flatnonzero(np.diff(rows, prepend=-1))
                starts[rows[first] + 1] += np.diff(first, append=len(rows))
                entries += len(keys)
                self.progress("merging edges", min(done, total), total)
            np.cumsum(starts, out=starts)
            starts.flush()
        edges, two_way = (one_way // 2, 0) if directed else (entries // 2, (one_way - entries) // 2)
        repeated = found.listed - loops - zeros - one_way // 2
        return EdgeReport(found.listed, edges, loops, zeros, repeated, two_way)

    def _join_features(self, path: str | Path, made: Header) -> Header:
        """Write features: DuckDB joins and orders Parquet of numbers; others are read into memory."""
        if self.encoder is None:
            with opened(path) as source:
                if source.kind == "parquet":
                    with open_parquet(source.stream, source.path) as file:
                        some = pa.Table.from_batches(islice(file.iter_batches(1000), 1), file.schema_arrow)
                    stored = _stored_names(self.folder)
                    is_text = made.names == "text"
                    index = StoredNameIndex(stored) if is_text else NameIndex(stored, covers_range=False)
                    position = name_column(some, self.node_column, source.path, stored, index)
                    node, rest = some.column_names[position], some.remove_column(position).schema
                    if rest.names and all(field.name.strip() and is_number(field.type) for field in rest):
                        return self._join_parquet(source, node, rest.names, made)
        names = np.asarray(_stored_names(self.folder))
        found = read_features(path, self.node_column, names)
        if self.encoder is None and not is_numeric(found.data):
            raise MissingFeaturesError(
                f"{found.path}: {first_few(other_columns(found.data), 3)} have gaps or are not numbers, but "
                "a store holds numbers; leave them out or, in Python, pass encoder=FeatureEncoder().fit(...)"
            )
        rows = None if found.names is None else row_names(found, names)
        matrix, titles, _ = encoded(found, self.encoder)
        with naming(found.path):
            if rows is not None:
                matrix = align_features(names, rows, matrix)
            matrix = as_features(matrix, names)
        files = dict(made.files)
        width = write_features(matrix, self.folder, files)
        return replace(made, num_features=width, feature_names=titles, files=files)

    def _join_parquet(self, source: Opened, node: str, titles: list[str], made: Header) -> Header:
        name = identifier(node)
        key = trim(f"CAST({name} AS VARCHAR)")
        key = key if made.names == "text" else as_integer(key)
        columns = [f"TRY_CAST({identifier(title)} AS FLOAT) AS f{i}" for i, title in enumerate(titles)]
        table = f"read_parquet({literal(source.file)})"
        self._listing.execute(
            f"CREATE TEMP VIEW rows AS SELECT {key} AS n, {name} AS raw, {', '.join(columns)} FROM {table}"
        )
        examples = f"SELECT count(*), list(n)[:{_EXAMPLES}] FROM"
        gaps, _ = self._listing.first(f"{examples} (SELECT raw AS n FROM rows WHERE raw IS NULL)")
        twice, repeated = self._listing.first(
            f"{examples} (SELECT n FROM rows JOIN spine_names USING (n) GROUP BY n HAVING count(*) > 1)"
        )
        unused, strangers = self._listing.first(
            f"{examples} (SELECT raw AS n FROM rows ANTI JOIN spine_names USING (n))"
        )
        empty, without = self._listing.first(f"{examples} (FROM spine_names ANTI JOIN rows USING (n))")
        if gaps:
            raise GraphFormatError(f"{source.path}: {gaps} rows lack a name in {node!r}; every row needs one")
        if twice:
            raise MissingFeaturesError(
                f"{source.path}: node names must be unique; given more than once: {first_few(repeated)}"
            )
        if empty == made.num_nodes:
            rows = self._listing.execute(f"SELECT {name} AS raw FROM {table}")["raw"].to_numpy()
            none = no_common_name(rows, _stored_names(self.folder))
            raise MissingFeaturesError(f"{source.path}: column {node!r}: {none}; {OTHER_COLUMN}")
        warn_of_rows(f"{empty} of {made.num_nodes}", without or (), str(unused), strangers or ())
        values = ", ".join(f"CASE WHEN rows.n IS NULL THEN 0 ELSE f{i} END" for i in range(len(titles)))
        joined = f"SELECT {values} FROM spine_names LEFT JOIN rows USING (n) ORDER BY spine_names.rowid"
        done, path = 0, self.folder / "features.bin"
        with output_errors(self.folder), path.open("wb") as output:
            for batch in self._rows(joined):
                matrix = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
                wrong = np.argwhere(~np.isfinite(matrix))
                if len(wrong):
                    row, number = wrong[0].tolist()
                    lacking = quoted(_stored_names(self.folder)[done + row])
                    message = f"column {titles[number]!r} has no finite float32 number; fill gaps first"
                    raise GraphFormatError(f"{source.path}: node {lacking}: {message}")
                output.write(matrix.astype(np.float32).tobytes())
                done += len(matrix)
                self.progress("joining features", done, done)
        files = {**made.files, path.name: entry_of(path, np.float32, (len(titles),))}
        return replace(made, num_features=len(titles), feature_names=tuple(titles), files=files)


def _stored_names(folder: Path) -> Any:
    if (folder / "names.bin").exists():
        return np.memmap(folder / "names.bin", np.int64, "r")
    text, ends = folder / "names_text.bin", folder / "names_ends.bin"
    return StoredNames(np.memmap(text, np.uint8, "r"), np.memmap(ends, np.int64, "r"))


def _whole_groups(
    batches: Iterator[Any], is_weighted: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64] | None]]:
    """Yield sorted keys and weights in pieces, with all entries of an edge in the same piece."""
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


def _unnamed_rows(features: str | Path) -> int | None:
    """Return the number of rows of a matrix without names, which is the number of nodes."""
    with opened(features) as source:
        if source.kind not in ("npy", "npz"):
            return None
    found = read_features(features)
    return int(found.data.shape[0]) if found.names is None and found.data.ndim == 2 else None
