"""GraphML files: their nodes, edges and weights, and their node attributes as a table."""

import math
import os
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from spinegraph.errors import GraphFormatError
from spinegraph.graph.files.columns import WEIGHT_NAMES, EdgeOptions
from spinegraph.graph.files.contents import FileContents
from spinegraph.graph.files.graphml_xml import GraphML, parse_graphml
from spinegraph.graph.files.source import opened, shown_name
from spinegraph.graph.files.text_blocks import shown
from spinegraph.graph.files.text_layout import NUMBER, is_integer

_ARROW_TYPES = {
    "boolean": pa.bool_(),
    **dict.fromkeys(("int", "long"), pa.int64()),
    **dict.fromkeys(("float", "double"), pa.float64()),
}


def read_graphml(path: str | os.PathLike[str], options: EdgeOptions) -> FileContents:
    """Read the nodes, edges and weights of a GraphML file; nodes keep the file's order.

    Node attributes are not read as features here, since drawing programs store positions and colours there;
    ask for them with ``read_graph(path, features=path)``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".graphml") as file:
    ...     text = '<graphml><graph edgedefault="undirected"><node id="b"/><node id="a"/></graph></graphml>'
    ...     size = file.write(text), file.flush()
    ...     read_graphml(file.name, EdgeOptions()).names.tolist()
    ['b', 'a']
    """
    with opened(path) as source:
        found = parse_graphml(source.stream, source.path)
    name = shown_name(path)
    if not found.nodes:
        raise GraphFormatError(f"{name}: holds no nodes; a graph needs at least one")
    if options.num_nodes not in (None, len(found.nodes)):
        raise GraphFormatError(
            f"{name}: holds {len(found.nodes)} nodes, but num_nodes={options.num_nodes} was asked for"
        )
    position = {node: place for place, node in enumerate(found.nodes)}
    edges = np.empty((len(found.edges), 2), np.int64)
    for row, (source_id, target_id, _, line) in enumerate(found.edges):
        for side, node in enumerate((source_id, target_id)):
            if node not in position:
                raise GraphFormatError(
                    f"{name}:{line}: an edge names node {shown(node)}, which is not in the file"
                )
            edges[row, side] = position[node]
    weights, note = _weights(found, name, options)
    names = node_names(found, name, options.names)
    notes = (f"GraphML, {'directed' if found.directed else 'undirected'}; {note}",)
    return FileContents(name, names, edges, weights=weights, directed=found.directed, notes=notes)


def node_names(found: GraphML, path: str, wanted: str | None = None) -> Any:
    """Return the node ids in file order, as integers where all of them are.

    Examples
    --------
    >>> node_names(GraphML(nodes={"7": {}, "3": {}}), "tiny.graphml")
    array([7, 3])
    """
    if wanted != "text" and all(map(is_integer, found.nodes)):
        return np.fromiter(map(int, found.nodes), np.int64, len(found.nodes))
    if wanted == "integer":
        wrong = next(node for node in found.nodes if not is_integer(node))
        raise GraphFormatError(f"{path}: node id {shown(wrong)} is not an integer, but names='integer'")
    return np.array([*found.nodes, None], dtype=object)[:-1]


def node_table(found: GraphML, path: str) -> Any:
    """Return the node attributes as an Arrow table, one row per node, by their declared types.

    Examples
    --------
    >>> from spinegraph.graph.files.graphml_xml import Attribute
    >>> age = {("node", "d0"): Attribute("age", "int")}
    >>> node_table(GraphML({"ann": {"d0": "31"}, "bob": {}}, attributes=age), "tiny.graphml").to_pydict()
    {'age': [31, None]}
    """
    columns = {}
    for (domain, key), attribute in found.attributes.items():
        if domain != "node":
            continue
        if attribute.name in columns:
            raise GraphFormatError(
                f"{path}: two node attributes are both called {shown(attribute.name)}; names must differ"
            )
        values = pa.array([data.get(key, attribute.default) for data in found.nodes.values()], pa.string())
        try:
            columns[attribute.name] = values.cast(_ARROW_TYPES.get(attribute.kind, pa.string()))
        except pa.ArrowInvalid as fault:
            raise GraphFormatError(
                f"{path}: node attribute {attribute.name!r} is declared {attribute.kind}: {str(fault)[:100]}"
            ) from fault
    if not columns:
        raise GraphFormatError(f"{path}: its nodes have no attributes, so there are no features in it")
    return pa.table(columns)


def _weights(found: GraphML, path: str, options: EdgeOptions) -> tuple[Any, str]:
    titles = {key: attribute for (domain, key), attribute in found.attributes.items() if domain == "edge"}
    used = Counter(key for _, _, data, _ in found.edges for key in data)
    keys = [key for key, attribute in titles.items() if attribute.name.lower() in WEIGHT_NAMES]
    keys = [key for key in keys if used[key] or titles[key].default is not None]
    if options.weighted is False or (not keys and not options.weighted):
        return None, "weights are not read" if keys else "no edge attribute is called weight"
    if not keys:
        raise GraphFormatError(f"{path}: weighted=True needs an edge attribute called weight; there is none")
    weights = np.empty(len(found.edges))
    for row, (_, _, data, line) in enumerate(found.edges):
        value = data.get(keys[0], titles[keys[0]].default)
        if value is None:
            raise GraphFormatError(
                f"{path}:{line}: an edge without a weight, while others have one; give it one, or a default "
                "for all; weighted=False leaves weights out"
            )
        if not NUMBER.fullmatch(value) or not 0 <= float(value) < math.inf:
            raise GraphFormatError(
                f"{path}:{line}: the weight {shown(value)} is not a finite number of 0 or more; "
                "weighted=False leaves weights out"
            )
        weights[row] = float(value)
    return weights, "weights are the edge attribute 'weight'"
