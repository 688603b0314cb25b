"""Reads a graph from a file, a table or a query."""

import logging
import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.graph.edge_files import (
    EdgeOptions,
    FileContents,
    Query,
    collect,
    open_listing,
    read_graphml,
    read_npz_network,
)
from spinegraph.graph.edges import MAX_NODES, Reciprocal, read_listing
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import join_features, read_features
from spinegraph.graph.files import opened
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import is_store, open_store

logger = logging.getLogger(__name__)

Path = str | os.PathLike[str]


def read_graph(
    edges: Any = None,
    features: Any = None,
    *,
    query: str | None = None,
    database: Path | None = None,
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

    Edges come as text (commas, tabs, semicolons or white space), Parquet, JSON lines, a DuckDB file, npz
    (``edges`` and ``num_nodes``, or SciPy's sparse matrix) or GraphML, any of them packed by gzip or zstd;
    the kind is detected from the first bytes. GraphML needs ``pip install 'spinegraph[graphs]'``. A store's
    folder (see ``open_store``) is opened as it is. Node names are integers where every name is one as usually
    written, else text. They are sorted; npz and GraphML, which list their nodes, keep their order.

    Parameters
    ----------
    edges : path or table
        The edge file (``-`` is the standard input), or an Arrow table, a pandas or polars DataFrame, a dict
        of columns or a list of dicts.
    features : path, table or matrix, optional
        Node features as npz, npy, CSV, TSV, Parquet, JSON lines or GraphML, or a table in memory. A table is
        joined by its column of names; a bare matrix has row ``i`` for node ``i``. Numbers without gaps are
        taken as they are; any other table goes through a
        :class:`~spinegraph.graph.encoder.FeatureEncoder`. Rows that name no node become nodes without edges,
        nodes without a row get gaps; a warning counts each.
    query : str, optional
        SQL whose result is the edges, instead of ``edges``.
    database : path, optional
        The DuckDB file that ``query`` is asked of.
    source, target, weight : str or int, optional
        Columns by title or position; titles imply a header. By default the ends are columns with usual titles
        (source, target, from, to and the like), else the first two; the weight is a column of numbers titled
        weight, amount or the like. Other columns are left out.
    weighted : bool, optional
        By default weights are read from such a column, and from the third column of text without titles where
        that holds numbers that are no time stamps and not below 0. True takes the third column whatever its
        title; False reads none.
    header : bool, optional
        Whether the first line of text holds titles. By default it does when its words are usual titles, when
        it has words where the lines below have numbers, or when its words occur in neither end column again;
        a warning tells of the last.
    delimiter : str, optional
        Field separator of text; ``" "`` is any white space.
    comments : sequence of str
        Lines of text that begin with one of these are skipped.
    names : {"integer", "text"}, optional
        What node names are.
    num_nodes : int, optional
        Nodes are 0 .. num_nodes-1, listed in an edge or not.
    directed, reciprocal
        As in :meth:`Graph.from_edges <spinegraph.graph.graph.Graph.from_edges>`.
    node_column : str or int, optional
        The column of node names in a feature table; by default one titled node, id or name, else the first.
    encoder : FeatureEncoder, optional
        Encodes the features; fitted on them if it is not fitted yet. By default a table with gaps or with
        columns other than numbers gets one of its own. The graph holds it as ``encoder`` and a model fitted
        on it as ``table_encoder_``: pass ``encoder=model.table_encoder_`` to encode other files the same way.

    Raises
    ------
    GraphFormatError
        The file breaks a rule; the message names file and line, the text, the rule and a way out.
    MissingFileError
        There is no such file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     size = file.write("source,target,weight\nann,bob,2\nbob,cy,1\n"), file.flush()
    ...     read_graph(file.name)
    Graph(3 nodes, 2 edges, weighted, names 'ann', 'bob', ...)
    """
    options = edge_options(
        *(source, target, weight),
        weighted=weighted,
        header=header,
        delimiter=delimiter,
        comments=comments,
        names=names,
        num_nodes=num_nodes,
    )
    if isinstance(edges, str | os.PathLike) and query is None and is_store(edges):
        return open_whole_store(edges, features)
    contents = read_joined(
        edge_source(edges, query, database), features, options, node_column=node_column, encoder=encoder
    )
    for note in contents.notes:
        logger.info("%s: %s", contents.path, note)
    return build_graph(contents, directed=directed, reciprocal=reciprocal)


def edge_options(
    source: str | int | None, target: str | int | None, weight: str | int | None, **others: Any
) -> EdgeOptions:
    """Return the options of reading edges, as :func:`read_graph` takes them."""
    columns = (source, target, weight)
    return EdgeOptions(None if columns == (None, None, None) else columns, **others)


def edge_source(edges: Any, query: str | None, database: Path | None) -> Any:
    """Return what edges are read from, where exactly one of a source and a query is given."""
    if (edges is None) == (query is None):
        raise ParameterError("pass either edges (a file or a table) or query='select ...', and one of them")
    if query is None and database is not None:
        raise ParameterError("database goes with query='select source, target from ...'; pass a query")
    return edges if query is None else Query(query, database)


def open_whole_store(path: Path, features: Any) -> Graph:
    """Open a store, which holds its own features; a feature file beside it is an error."""
    if features is not None:
        raise ParameterError(
            f"{os.fspath(path)}: is a store, which holds its features; build it with them "
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
    """Read edges and join the features of another file; arguments as in :func:`read_graph`."""
    contents = read_contents(edges, options)
    if features is None:
        return contents
    return join_features(contents, read_features(features, node_column), encoder)


def read_contents(edges: Any, options: EdgeOptions | None = None) -> FileContents:
    """Read what an edge file, table or query holds, before edges are merged, dropped or made symmetric."""
    options = options or EdgeOptions()
    if not isinstance(edges, str | os.PathLike):
        with open_listing(edges, options) as listing:
            return collect(listing)
    with opened(edges) as source:
        if source.kind == "npy":
            raise GraphFormatError(
                f"{source.path}: holds a bare array, which is no edge list; pass it as features=..."
            )
        if source.kind in ("npz", "xml"):
            if options.columns is not None:
                raise ParameterError(f"{source.path}: columns go with tables, not with npz and GraphML files")
            return (read_npz_network if source.kind == "npz" else read_graphml)(edges, options)
        with open_listing(source, options) as listing:
            contents = collect(listing)
    # Arrow keeps freed memory for itself; building the graph needs it more.
    pa.default_memory_pool().release_unused()
    return contents


def build_graph(contents: FileContents, *, directed: bool = False, reciprocal: Reciprocal = "error") -> Graph:
    """Build the graph of a file's contents; an error names the file."""
    given: dict[str, Any] = {
        "weights": contents.weights,
        "features": contents.features,
        "feature_names": contents.feature_names,
        "directed": directed,
        "one_way": contents.directed,
        "reciprocal": reciprocal,
    }
    n, names = len(contents.names), contents.names
    try:
        if contents.is_checked and n <= MAX_NODES:
            sources, targets = contents.edges.T
        else:
            sources, targets, names = read_listing(contents.edges, n, names)
        graph = Graph._from_positions(sources, targets, names, **given, stacklevel=3)
    except GraphFormatError as fault:
        raise type(fault)(f"{contents.path}: {fault}") from fault
    return graph._encoded_by(contents.encoder)
