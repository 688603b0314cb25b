"""A model on the command line: its network, its vectors, and nodes as people type them."""

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from spinegraph.analysis.explain_standing import shown
from spinegraph.analysis.plot_subject import embeddings_of, graph_of
from spinegraph.apps.cli.reading import known_features
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError, UnknownNodeError
from spinegraph.estimator import SPINE
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few

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
