"""How commands read networks and models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinegraph.analysis.explain import shown
from spinegraph.analysis.plots import embeddings_of, graph_of
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError, UnknownNodeError
from spinegraph.estimator import SPINE
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few

if TYPE_CHECKING:
    from spinegraph.graph.edge_files import FileContents
    from spinegraph.graph.encoder import FeatureEncoder


_PANEL = "Reading"


class Missing(StrEnum):
    """What becomes of nodes without features."""

    error = "error"
    zero = "zero"


class Extra(StrEnum):
    """What becomes of features without a node."""

    error = "error"
    isolated = "isolated"


class Reciprocal(StrEnum):
    """How two directions of unequal weight become one edge."""

    error = "error"
    sum = "sum"
    mean = "mean"
    max = "max"


@dataclass(frozen=True)
class Reading:
    """How network files are read; see ``read_graph``."""

    columns: tuple[str | int, ...] | None
    weighted: bool | None
    header: bool | None
    delimiter: str | None
    num_nodes: int | None
    missing: str
    extra: str
    reciprocal: str

    def contents(
        self, edges: Path, features: Path | None, encoder: "FeatureEncoder | None" = None
    ) -> "FileContents":
        """Read an edge file and the features of its nodes; a table of mixed columns goes through encoder."""
        from spinegraph.graph.edge_files import EdgeOptions
        from spinegraph.graph.read import read_joined

        options = EdgeOptions(
            self.columns, self.weighted, self.header, self.delimiter, num_nodes=self.num_nodes
        )
        return read_joined(
            edges,
            features,
            options,
            missing=self.missing,  # type: ignore[arg-type]
            extra=self.extra,  # type: ignore[arg-type]
            encoder=encoder,
        )

    def build_options(self) -> dict[str, Any]:
        """Return these settings as ``build_store`` takes them."""
        from spinegraph.errors import ParameterError

        if self.extra != "error":
            raise ParameterError("--extra isolated goes with files that are read whole; leave it out")
        names = ("columns", "weighted", "header", "delimiter", "num_nodes", "missing", "reciprocal")
        return {name: getattr(self, name) for name in names}

    def graph(self, contents: "FileContents") -> "Graph":
        """Build the graph of a file's contents."""
        from spinegraph.graph.read import build_graph

        return build_graph(contents, reciprocal=self.reciprocal)  # type: ignore[arg-type]

    def network(self, edges: Path, features: Path | None, encoder: "FeatureEncoder | None" = None) -> "Graph":
        """Read one network, or open a store."""
        from spinegraph.graph.read import open_whole_store
        from spinegraph.graph.store import is_store

        if is_store(edges):
            return open_whole_store(edges, features)
        return known_features(self.graph(self.contents(edges, features, encoder)), features, encoder)


def reading(
    columns: Annotated[
        str | None,
        typer.Option(help="Source, target and perhaps weight: who,whom or 0,1,2.", rich_help_panel=_PANEL),
    ] = None,
    weighted: Annotated[
        bool | None,
        typer.Option(
            "--weighted/--unweighted", help="Read weights, or leave them out.", rich_help_panel=_PANEL
        ),
    ] = None,
    header: Annotated[
        bool | None, typer.Option(help="Whether the first line is titles.", rich_help_panel=_PANEL)
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="What parts the fields.", rich_help_panel=_PANEL)
    ] = None,
    num_nodes: Annotated[
        int | None, typer.Option(help="Nodes are 0 .. this number - 1.", rich_help_panel=_PANEL)
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Nodes without features.", rich_help_panel=_PANEL)
    ] = Missing.error,
    extra: Annotated[
        Extra, typer.Option(help="Features without a node.", rich_help_panel=_PANEL)
    ] = Extra.error,
    reciprocal: Annotated[
        Reciprocal, typer.Option(help="Two directions of unequal weight.", rich_help_panel=_PANEL)
    ] = Reciprocal.error,
) -> Reading:
    """Return how files are to be read."""
    parts = None if columns is None else tuple(_column(part.strip()) for part in columns.split(","))
    return Reading(
        parts, weighted, header, delimiter, num_nodes, missing.value, extra.value, reciprocal.value
    )


def known_features(graph: "Graph", features: Path | None, encoder: "FeatureEncoder | None") -> "Graph":
    """Refuse a graph whose table had to be encoded anew: its columns do not mean what the model learned."""
    if encoder is None and graph.encoder is not None:
        from spinegraph.errors import ParameterError

        raise ParameterError(
            f"{features}: holds columns other than numbers, and the model knows no encoder of tables: it was "
            "fitted without features or on numbers; pass the same columns as numbers, or fit on the table"
        )
    return graph


def read_several(
    files: Sequence[Path], features: Sequence[Path], how: Reading, told: Callable[[str, int, int], None]
) -> "tuple[list[Graph], FeatureEncoder | None]":
    """Read networks to be fitted together, and learn one encoder where their features are mixed tables.

    Parameters
    ----------
    files : list of paths
        Of edges.
    features : list of paths
        None, or one for each file of edges.
    how : Reading
    told : callable (stage, done, total)

    Returns
    -------
    graphs, encoder or None
    """
    from spinegraph.errors import ParameterError

    if features and len(features) != len(files):
        raise ParameterError(
            f"{len(features)} files of features for {len(files)} of edges; give --features once for each, "
            "in the same order, or not at all"
        )
    told("reading", 0, len(files))
    encoder = _fitted_encoder(features)
    found = []
    for place, edges in enumerate(files):
        found.append(how.network(edges, features[place] if features else None, encoder))
        told("reading", place + 1, len(files))
    return found, encoder


def read_known(path: Path, names: Any) -> Any:
    """Return labels (n,) of named nodes as text, None where unknown, from a table or a network's own npz."""
    from spinegraph.errors import GraphFormatError
    from spinegraph.graph.feature_files import read_labels
    from spinegraph.graph.files import opened
    from spinegraph.graph.read import read_contents

    with opened(path) as source:
        kind, name = source.kind, source.path
    if kind != "npz":
        return read_labels(path, names)
    contents = read_contents(path)
    if contents.labels is None or contents.labels.ndim != 1:
        raise GraphFormatError(f"{name}: holds no array 'labels' of one label per node")
    import numpy as np

    known = dict(zip(contents.names.tolist(), contents.labels.tolist(), strict=True))
    found = [known.get(node) for node in names.tolist()]
    return np.array([None if label in (None, -1) else str(label) for label in found] + [None])[:-1]


def _fitted_encoder(features: Sequence[Path]) -> "FeatureEncoder | None":
    """Learn an encoder of all tables together, where one holds other columns than numbers."""
    import pyarrow as pa

    from spinegraph.errors import GraphFormatError
    from spinegraph.graph.encoder import FeatureEncoder
    from spinegraph.graph.feature_files import is_numeric, read_features

    tables = [read_features(path).data for path in features]
    if not tables or all(is_numeric(table) for table in tables):
        return None
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as fault:
        raise GraphFormatError(f"the tables of features do not go together: {fault}") from fault
    return FeatureEncoder().fit(whole)


def _column(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


_MOST_COMPARED = 50_000
_NEAR = 3


@dataclass(frozen=True, eq=False)
class ModelNodes:
    """A model, the network asked about, and that network's vectors.

    Attributes
    ----------
    folder : Path
    model : SPINE
    graph : Graph
        One network: those of a model fitted on several lie side by side, names being (index, name).
    embeddings : Embeddings
        In its order.
    """

    folder: Path
    model: SPINE
    graph: Graph
    embeddings: Embeddings

    @classmethod
    def open(cls, folder: Path, graph: Path | None = None, features: Path | None = None) -> "ModelNodes":
        """Load a model with its training data, or with the network of a file, which it embeds."""
        model = SPINE.load(folder)
        if graph is not None:
            from spinegraph.graph.read import read_graph

            encoder = model.table_encoder_
            given = known_features(read_graph(graph, features, encoder=encoder), features, encoder)
            return cls(folder, model, given, model.transform(given))
        if features is not None:
            raise ParameterError("--features belongs to --graph; pass the edges as well")
        if model.graph_ is None:
            raise ParameterError(
                f"{folder}: the model was saved without its network; pass --graph EDGES, and --features FILE "
                "if it was fitted with features"
            )
        return cls(folder, model, graph_of(model), embeddings_of(model))

    def find(self, text: str) -> Any:
        """Return the name of the node that a text means, or say which names are near.

        Numbers are tried as such. In a model of several networks ``1:ann`` is ann of the second, and a bare
        name will do where only one network has it.
        """
        found = self._found(_readings(text))
        if not found and self._has_parts:
            key, _, rest = text.partition(":")
            found = self._found([(int(key), name) for name in _readings(rest)] if key.isdecimal() else [])
            parts = range(len(self.model.graph_))  # type: ignore[arg-type]
            found = found or self._found([(part, name) for part in parts for name in _readings(text)])
        if len(found) > 1:
            raise UnknownNodeError(
                f"{text!r} names {len(found)} nodes of {self.folder}; say which: "
                f"{', '.join(shown(name) for name in islice(found, 5))}"
            )
        if found:
            return found[0]
        raise UnknownNodeError(
            f"no node {text!r} among the {len(self.graph):,} of {self.folder}; {self._advice(text)}"
        )

    @property
    def _has_parts(self) -> bool:
        return self.graph.names.dtype == object and isinstance(self.graph.names[0], tuple)

    def _found(self, readings: list[Any]) -> list[Any]:
        return [name for name in readings if name in self.embeddings]

    def _advice(self, text: str) -> str:
        names = [shown(name) for name in self.graph.names[:_MOST_COMPARED].tolist()]
        folded = {name.casefold(): name for name in reversed(names)}
        begun = [name for fold, name in folded.items() if fold.startswith(text.casefold()) and text]
        near = begun[:_NEAR] or get_close_matches(text.casefold(), folded, n=_NEAR, cutoff=0.6)
        if near:
            return f"did you mean {first_few([folded.get(name, name) for name in near])}?"
        return f"its names look like {first_few(names[:4], most=3)}"


def _readings(text: str) -> list[Any]:
    """Return the names that a text may stand for."""
    digits = text.removeprefix("-")
    return [text, int(text)] if digits.isascii() and digits.isdecimal() and len(digits) < 20 else [text]
