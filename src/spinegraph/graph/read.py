"""Reads a graph from a file: an edge list, table, matrix, GraphML or store."""

import logging
import os
from collections.abc import Sequence

import pyarrow as pa

from spinegraph.errors import GraphFormatError, ParameterError
from spinegraph.graph.edge_files import (
    EdgeOptions,
    FileContents,
    read_graphml,
    read_npz_network,
    read_parquet_edges,
    read_text_edges,
)
from spinegraph.graph.edges import Reciprocal
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.feature_files import Extra, Missing, join_features, read_features
from spinegraph.graph.files import opened
from spinegraph.graph.graph import Graph
from spinegraph.graph.store import is_store, open_store

logger = logging.getLogger(__name__)

Path = str | os.PathLike[str]
_READERS = {
    "text": read_text_edges,
    "parquet": read_parquet_edges,
    "npz": read_npz_network,
    "xml": read_graphml,
}


def read_graph(
    path: Path,
    features: Path | None = None,
    *,
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
    extra: Extra = "error",
    encoder: FeatureEncoder | None = None,
) -> Graph:
    r"""Read a graph from a file, and its node features from another.

    Edges come as text (commas, tabs, semicolons or white space), Parquet, npz (``edges`` and ``num_nodes``,
    or SciPy's sparse matrix) or GraphML, any of them gzipped; the kind is detected from the first bytes.
    GraphML needs ``pip install 'spinegraph[graphs]'``. A store's folder (see ``open_store``) is opened as it
    is. Node names are integers where every name is one as usually written, else text. They are sorted; npz
    and GraphML, which list their nodes, keep their order.

    Parameters
    ----------
    path : path
        The edge file; ``-`` is the standard input.
    features : path, optional
        Node features as npz, npy, CSV, TSV, Parquet or GraphML. A table is joined by its column of names; a
        bare matrix has row ``i`` for node ``i``. Numbers are taken as they are; a table with other columns
        goes through a :class:`~spinegraph.graph.encoder.FeatureEncoder`.
    columns : two or three names or positions, optional
        Source, target and perhaps weight. By default columns with usual titles (source, target, from, to and
        the like), else the first two.
    weighted : bool, optional
        By default weights are read from a column titled weight, and from the third column of text without
        titles where that holds numbers. True takes the third column whatever its title; False reads none.
    header : bool, optional
        Whether the first line of text holds titles. By default it does when the titles are usual ones or
        stand above integers.
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
    missing : {"error", "zero"}
        With "zero", nodes without a feature row get zeros, and rows without a node are left out.
    extra : {"error", "isolated"}
        With "isolated", feature rows that name no node make nodes without edges.
    encoder : FeatureEncoder, optional
        Encodes the features; fitted on them if it is not fitted yet. By default a table with columns other
        than numbers gets one of its own. The graph holds it as ``encoder`` and a model fitted on it as
        ``table_encoder_``: pass ``encoder=model.table_encoder_`` to encode other files the same way.

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
    if is_store(path):
        return open_whole_store(path, features)
    options = EdgeOptions(columns, weighted, header, delimiter, comments, names, num_nodes)
    contents = read_joined(
        path, features, options, node_column=node_column, missing=missing, extra=extra, encoder=encoder
    )
    for note in contents.notes:
        logger.info("%s: %s", contents.path, note)
    return build_graph(contents, directed=directed, reciprocal=reciprocal)


def open_whole_store(path: Path, features: Path | None) -> Graph:
    """Open a store, which holds its own features; a feature file beside it is an error."""
    if features is not None:
        raise ParameterError(
            f"{os.fspath(path)}: is a store, which holds its features; build it with them "
            "(spine data build --features), or pass the edges as a file"
        )
    return open_store(os.fspath(path))


def read_joined(
    path: Path,
    features: Path | None,
    options: EdgeOptions,
    *,
    node_column: str | int | None = None,
    missing: Missing = "error",
    extra: Extra = "error",
    encoder: FeatureEncoder | None = None,
) -> FileContents:
    """Read an edge file and join the features of another; arguments as in :func:`read_graph`."""
    contents = read_contents(path, options)
    if features is None:
        return contents
    rows = read_features(features, node_column)
    return join_features(contents, rows, missing=missing, extra=extra, encoder=encoder)


def read_contents(path: Path, options: EdgeOptions | None = None) -> FileContents:
    """Read what an edge file holds, before edges are merged, dropped or made symmetric."""
    with opened(path) as source:
        kind, name = source.kind, source.path
    if kind not in _READERS:
        raise GraphFormatError(f"{name}: holds a bare array, which is no edge list; pass it as features=...")
    options = options or EdgeOptions()
    if options.columns is not None and kind not in ("text", "parquet"):
        raise ParameterError(f"{name}: columns go with tables, not with npz and GraphML files")
    contents = _READERS[kind](path, options)
    # Arrow keeps freed memory for itself; building the graph needs it more.
    pa.default_memory_pool().release_unused()
    return contents


def build_graph(contents: FileContents, *, directed: bool = False, reciprocal: Reciprocal = "error") -> Graph:
    """Build the graph of a file's contents; an error names the file."""
    try:
        graph = Graph.from_edges(
            contents.edges,
            num_nodes=len(contents.names),
            weights=contents.weights,
            features=contents.features,
            names=contents.names,
            feature_names=contents.feature_names,
            directed=directed or contents.directed,
            reciprocal=reciprocal,
        )
    except GraphFormatError as fault:
        raise type(fault)(f"{contents.path}: {fault}") from fault
    return graph._encoded_by(contents.encoder)
