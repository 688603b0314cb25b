"""Reading networks, labels and models for the commands."""

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spinegraph.errors import GraphFormatError, ParameterError, UnknownNodeError

if TYPE_CHECKING:
    from spinegraph.embeddings import Embeddings
    from spinegraph.estimator import SPINE
    from spinegraph.graph.edge_files import FileContents
    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.graph import Graph


_MAX_COMPARED = 50_000  # names that a misspelt name is compared with


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Reading")


LabelColumn = Annotated[str | None, typer.Option(help="Column of labels; default label, class or role.")]


@dataclass(frozen=True)
class Reading:
    """Options for reading network files; see ``read_graph``."""

    source: Annotated[str | None, _option("Column of sources: a title, or a position from 0.")] = None
    target: Annotated[str | None, _option("Column of targets.")] = None
    weight: Annotated[str | None, _option("Column of weights.")] = None
    weighted: Annotated[bool | None, _option("Whether to read weights.", "--weighted/--unweighted")] = None
    header: Annotated[bool | None, _option("Whether the first line is a header.")] = None
    delimiter: Annotated[str | None, _option("Field separator.")] = None
    num_nodes: Annotated[int | None, _option("Number of nodes; their names are 0, 1, ...")] = None
    node_column: Annotated[str | None, _option("Column of node names in the feature table.")] = None
    column: Annotated[
        list[str] | None, _option("Kind of a feature column: zip=ignore or about=text; repeatable.")
    ] = None
    directed: Annotated[bool, _option("Edges have a direction, from source to target.", "--directed")] = False
    reciprocal: Annotated[
        Literal["error", "sum", "mean", "max"], _option("How to combine two directions of unequal weight.")
    ] = "error"

    def arguments(self) -> dict[str, Any]:
        """Return the options as arguments of ``read_graph``."""
        given = {field.name: getattr(self, field.name) for field in fields(Reading) if field.name != "column"}
        for name in ("source", "target", "weight", "node_column"):
            if (given[name] or "").isdecimal():
                given[name] = int(given[name])
        return given

    def encoder(self) -> "FeatureEncoder | None":
        """Return an unfitted encoder if --column asks for one."""
        from spinegraph.graph.encoder import FeatureEncoder

        pairs = [text.rpartition("=")[::2] for text in self.column or ()]
        wrong = next((name for name, kind in pairs if not name or not kind), None)
        if wrong is not None:
            raise typer.BadParameter("expected NAME=KIND, such as about=text", param_hint="--column")
        return FeatureEncoder(dict(pairs)) if pairs else None

    def network_for(self, model: "SPINE", edges: Path, features: Path | None) -> "Graph":
        """Read a network like the one a model was fitted on: with its encoder, directed or not."""
        directed = getattr(model.generator_, "directed", self.directed)
        if self.directed and not directed:
            raise ParameterError(
                "the model was fitted on undirected links; leave out --directed; pass --reciprocal if the "
                "two directions of a link have unequal weights"
            )
        return replace(self, directed=directed).network(edges, features, model.table_encoder_)

    def network(self, edges: Path, features: Path | None, encoder: "FeatureEncoder | None" = None) -> "Graph":
        """Read a network or open a store; tables that are not numbers without gaps need an encoder."""
        graph = self.read(edges, features, encoder)[1]
        if encoder is None and graph.encoder is not None and graph.store is None:
            raise ParameterError(
                f"{features or edges}: holds gaps or columns other than numbers, and the model has no table "
                "encoder: it was fitted without features or on numbers; pass the same columns as numbers "
                "without gaps, or fit on the table"
            )
        return graph

    def read(
        self,
        edges: Path | None,
        features: Path | None,
        encoder: "FeatureEncoder | None" = None,
        query: str | None = None,
        database: Path | None = None,
    ) -> "tuple[FileContents, Graph]":
        """Read a network or open a store; returns the contents of the files, and the graph."""
        from spinegraph.graph import read
        from spinegraph.graph.edge_files import EdgeOptions, FileContents
        from spinegraph.graph.store import is_store

        given = self.arguments()
        node_column = given.pop("node_column")
        directions = {"directed": given.pop("directed"), "reciprocal": given.pop("reciprocal")}
        if edges is not None and query is None and is_store(edges):
            graph = read.open_whole_store(edges, features)
            note = "a store" if graph.report is None else f"a store; {graph.report}"
            return FileContents(str(edges), graph.names, graph.indices[:0], notes=(note,)), graph
        options = EdgeOptions(**given)
        source = read.edge_source(edges, query, database)
        contents = read.read_joined(source, features, options, node_column=node_column, encoder=encoder)
        return contents, read.build_graph(contents, **directions)


@dataclass(frozen=True)
class Network(Reading):
    """The network that a command uses a model on, and how to read its files."""

    graph: Annotated[
        Path | None, typer.Option(metavar="EDGES", help="Another network instead of the fitted one.")
    ] = None
    features: Annotated[Path | None, typer.Option(metavar="FILE", help="With --graph: its features.")] = None

    def open(
        self,
        folder: Path,
        advice: str = "pass --graph EDGES, and --features FILE if it reads features",
        *,
        single: bool = False,
    ) -> "ModelNodes":
        """Load a model, and the network given by --graph or else the one it was fitted on.

        ``advice`` ends the error about a model that was saved without its network, or with several.
        """
        from spinegraph.analysis.plots import graph_of
        from spinegraph.estimator import SPINE

        model = SPINE.load(folder)
        if self.graph is not None:
            return ModelNodes(folder, model, self.network_for(model, self.graph, self.features), False)
        if self.features is not None:
            raise ParameterError("--features needs --graph; pass the edges too")
        if model.graph_ is None or (single and isinstance(model.graph_, list)):
            what = f"with {len(model.graph_)} networks" if model.graph_ else "without its network"
            raise ParameterError(f"{folder}: the model was saved {what}; {advice}")
        return ModelNodes(folder, model, graph_of(model), True)


def given_options(how: Reading) -> list[str]:
    """Return the options that differ from their defaults, as on the command line."""
    typed: list[str] = []
    for field in sorted(fields(how), key=lambda field: field.name not in ("graph", "features")):
        value, name = getattr(how, field.name), field.name.replace("_", "-")
        if value == field.default:
            continue
        if value is False:
            typed.append({"weighted": "--unweighted"}.get(name, f"--no-{name}"))
            continue
        for one in value if isinstance(value, list) else [value]:
            typed += [f"--{name}"] if one is True else [f"--{name}", str(one)]
    return typed


def read_known(
    path: Path, names: Any, label_column: str | None = None, node_column: str | int | None = None
) -> Any:
    """Return labels (n,) of named nodes as text, None if unknown, from a table or a network's npz."""
    import numpy as np

    from spinegraph.graph.feature_files import read_labels
    from spinegraph.graph.files import opened
    from spinegraph.graph.read import read_contents

    with opened(path) as source:
        is_npz = source.kind == "npz"
    if not is_npz:
        with suppress(ParameterError):  # the table of labels may not have that column
            return read_labels(path, names, label_column=label_column, node_column=node_column)
        return read_labels(path, names, label_column=label_column)
    contents = read_contents(path)
    if contents.labels is None or contents.labels.ndim != 1:
        raise GraphFormatError(f"{path}: has no array 'labels' with one label per node")
    known = dict(zip(contents.names.tolist(), contents.labels.tolist(), strict=True))
    found = np.empty(len(names), dtype=object)
    found[:] = [None if known.get(node) in (None, -1) else str(known[node]) for node in names.tolist()]
    return found


@dataclass(frozen=True, eq=False)
class ModelNodes:
    """A model, a network, and the network's vectors.

    Several networks that a model was fitted on are one graph here, with names (index, name).
    """

    folder: Path
    model: "SPINE"
    graph: "Graph"
    is_fitted: bool  # whether the graph is the one that the model was fitted on

    @cached_property
    def embeddings(self) -> "Embeddings":
        """The network's vectors."""
        from spinegraph.analysis.plots import embeddings_of

        return embeddings_of(self.model) if self.is_fitted else self.model.transform(self.graph)

    def find(self, text: str) -> Any:
        """Return the name of the node that a text refers to, or raise an error that suggests close names.

        A number is also tried as an integer. With several networks, ``1:ann`` is ann in the second one;
        ``ann`` is enough if only one network has it.
        """
        from spinegraph.analysis.explain import shown
        from spinegraph.graph.names import suggestion

        readings = [_readings(text)]
        if self.is_fitted and isinstance(self.model.graph_, list):
            key, _, rest = text.partition(":")
            readings.append([(int(key), name) for name in _readings(rest)] if key.isdecimal() else [])
            readings.append([(part, name) for part in range(len(self.model.graph_)) for name in readings[0]])
        matches = ([name for name in names if name in self.embeddings] for names in readings)
        found = next(filter(None, matches), [])
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownNodeError(
                f"{text!r} could be {len(found)} nodes of {self.folder}; choose one of "
                f"{', '.join(shown(name) for name in islice(found, 5))}"
            )
        hint = suggestion(text, [shown(name) for name in self.graph.names[:_MAX_COMPARED].tolist()])
        raise UnknownNodeError(f"no node {text!r} among the {len(self.graph):,} of {self.folder}; {hint}")


def _readings(text: str) -> list[Any]:
    from spinegraph.graph.edge_files import is_integer

    return [text, int(text)] if is_integer(text) else [text]
