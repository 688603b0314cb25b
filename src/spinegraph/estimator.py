"""SPINE: the method, and the class that users touch."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.embeddings import Embeddings
from spinegraph.engines.engine import engine_for
from spinegraph.errors import ParameterError
from spinegraph.generator import Generator, Inputs
from spinegraph.graph.describe import TrainingStats
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.fingerprint import fingerprint
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.names import as_array
from spinegraph.graph.overlay import Overlay

if TYPE_CHECKING:
    from spinegraph.learning.training import Progress

_SETTINGS = tuple(field.name for field in fields(Config))
Self = TypeVar("Self", bound="SPINE")


class SPINE:
    """Vectors of nodes that keep both neighbourhood and role, for seen and unseen nodes and networks.

    Takes every setting of ``Config`` as a keyword; they are checked at ``fit``, as scikit-learn does.

    Attributes
    ----------
    embeddings_ : Embeddings, or a list of them after fitting a list of graphs
        None after a fit with ``vectors=False``.
    generator_ : Generator
        All that ``transform`` needs.
    history_ : list of TrainingRecord
        Losses during training.
    config_ : Config
        The settings in use; what was left open has a value.
    familiarity_ : TrainingStats
        What the training data looked like, so that ``transform`` can warn of data unlike it.
    fingerprint_ : str
        Of the training data.
    table_encoder_ : FeatureEncoder or None
        Turns tables of new nodes into features, if ``fit`` was given one.
    graph_ : Graph, or a list of them
        The training data; like ``embeddings_``, None after loading a model that was saved without it.

    Examples
    --------
    >>> from spinegraph import SPINE, Graph
    >>> ring = Graph.from_edges([(i, (i + 1) % 12) for i in range(12)])
    >>> model = SPINE(dim=8, steps=20).fit(ring)
    >>> model.embeddings_
    Embeddings(12 nodes, 8 dimensions)
    >>> grown = ring.with_nodes(["new"], [("new", 0), ("new", 1)])
    >>> model.transform(grown, nodes=["new"])["new"].shape
    (8,)
    """

    __signature__ = inspect.Signature(
        [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            for field in fields(Config)
        ]
    )

    def __init__(self, **settings: Any) -> None:
        self._require_known(settings)
        for name, value in {**Config().to_json(), **settings}.items():
            setattr(self, name, value)

    @classmethod
    def paper(cls: type[Self], **changes: Any) -> Self:
        """Return an estimator with the paper's values.

        >>> SPINE.paper().structural_rate
        0.5
        """
        cls._require_known(changes)
        return cls(**Config.paper(**changes).to_json())

    def fit(
        self: Self,
        graph: Graph | Sequence[Graph],
        y: None = None,
        *,
        encoder: FeatureEncoder | None = None,
        checkpoint: str | Path | None = None,
        progress: "Progress | None" = None,
        vectors: bool = True,
    ) -> Self:
        """Learn a generator from one network, or from several together.

        Parameters
        ----------
        graph : Graph, or list of Graphs
        y : None
            Ignored; labels choose nothing.
        encoder : FeatureEncoder, optional
            The fitted encoder that made the graph's features of a table; by default the graph's own. It is
            kept as ``table_encoder_`` and saved with the model: tables of new nodes are encoded alike.
        checkpoint : path, optional
            Folder for the state of training. A run that was stopped goes on from there and ends with the
            same vectors.
        progress : callable (stage, done, total), optional
        vectors : bool
            Whether to embed the training nodes. False leaves ``embeddings_`` None: for a store (see
            ``open_store``) whose vectors would not fit in memory, and go to a folder instead.
        """
        from spinegraph.learning.checkpoint import Checkpoints
        from spinegraph.learning.sampling import PairSampler, TrainingData, balanced, gather_corpus

        config = Config(**self.get_params()).check()
        graph = graph if isinstance(graph, Graph) else _listed(graph)
        whole = graph if isinstance(graph, Graph) else Graph.union(graph, keys=range(len(graph)))
        config, engine = balanced(config, whole), engine_for(config)
        encoder = encoder or whole.encoder
        _require_same_features(encoder, whole)
        data = fingerprint(whole)
        states = None if checkpoint is None else Checkpoints.of_fit(checkpoint, data, config)

        told = progress or (lambda stage, done, total: None)
        told("walks", 0, 0)
        corpus = gather_corpus(whole, config)  # every node, or a sample of a large network
        nodes = None if len(corpus.nodes) == len(whole) else corpus.nodes
        told("rooted PageRank", 0, 0)
        profile = engine.profile(whole, config, nodes)
        inputs = Inputs.of(whole, config, nodes, profile)
        degrees = whole.degrees_at(corpus.nodes)
        told("structural twins", 0, 0)
        similar = engine.similar(profile, degrees, config)
        sampler = PairSampler(corpus, similar, degrees, config)
        told("features around every node", 0, 0)
        past = inputs.structural(whole, nodes, profile) if inputs.past else None
        smoothed = inputs.smoothed(whole, profile, nodes)  # T F
        lesson = TrainingData(smoothed, past, sampler, inputs.norm_power)
        weights, history = engine.learn(lesson, config, states, told)
        generator, embeddings = Generator(inputs, weights), None
        if vectors:
            told("embedding", 0, 0)
            found = engine.embed(generator, whole, profile if nodes is None else None)
            embeddings = _parted(graph, found)

        # Nothing before this line: a fit that is interrupted leaves the model as it was.
        self.config_, self.fingerprint_, self.history_ = config, data, history
        self.generator_, self.table_encoder_ = generator, encoder
        self.familiarity_ = TrainingStats.of(whole)
        self.graph_, self.embeddings_ = graph, embeddings
        return self

    def fit_transform(self, graph: Graph | Sequence[Graph], y: None = None) -> Embeddings | list[Embeddings]:
        """Fit, and return the training nodes' vectors."""
        self.fit(graph)
        return self.embeddings_  # type: ignore[return-value]

    def transform(self, graph: GraphLike, nodes: Iterable[Any] | None = None) -> Embeddings:
        """Return vectors of the nodes of any network with the fitted features.

        Parameters
        ----------
        graph : Graph or Overlay
        nodes : iterable of names, optional
            Embed just these, at their cost alone.

        Warns
        -----
        UnfamiliarDataWarning
            When degrees or features lie outside what the model was fitted on.
        """
        generator: Generator = self._fitted("generator_")
        _require_graph(graph)
        if generator.inputs.encoder is not None:
            generator.inputs.require_features(graph)
            _require_same_encoder(self.table_encoder_, getattr(graph, "encoder", None))
        positions: NDArray[np.int64] | None = None
        if nodes is not None:
            positions = graph.positions(_several(nodes))
        elif isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            positions = graph.standing
        self.familiarity_.warn(graph, positions)
        if positions is None and isinstance(graph, Graph):
            place = replace(self.config_, engine=self.engine, address=self.address, device="cpu")  # type: ignore[attr-defined]
            return Embeddings(graph.names, engine_for(place.check()).embed(generator, graph))
        if nodes is not None and positions is not None and isinstance(graph, Overlay):
            names = as_array(graph.names_at(positions))  # all of an overlay's names would cost a copy
        else:
            names = graph.names if positions is None else graph.names[positions]
        return Embeddings(names, generator.embed(graph, positions))

    def save(self, folder: str | Path, *, data: bool = True) -> None:
        """Write the model to a folder, with the training graph and vectors unless ``data=False``."""
        from spinegraph.storage.model_folder import save

        self._fitted("generator_")
        save(self, Path(folder), data=data)

    @classmethod
    def load(cls: type[Self], folder: str | Path) -> Self:
        """Read a model that ``save`` wrote; nothing in the folder is ever executed."""
        from spinegraph.storage.model_folder import load

        return load(cls, Path(folder))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        return {name: getattr(self, name) for name in _SETTINGS}

    def set_params(self: Self, **settings: Any) -> Self:
        """Change settings; they take effect at the next ``fit``."""
        self._require_known(settings)
        for name, value in settings.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {name: value for name, value in self.get_params().items() if value != getattr(Config, name)}
        inside = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        state = f" fitted on {len(self.familiarity_)} nodes" if hasattr(self, "generator_") else ""
        return f"SPINE({inside}){state}"

    def _repr_html_(self) -> str:
        from spinegraph.embeddings import model_html

        return model_html(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "generator_")

    def _fitted(self, name: str) -> Any:
        if not hasattr(self, "generator_"):
            from spinegraph.errors import NotFittedError

            raise NotFittedError("this SPINE is not fitted yet; call fit(graph) or SPINE.load(folder) first")
        return getattr(self, name)

    @staticmethod
    def _require_known(settings: dict[str, Any]) -> None:
        for name in settings:
            if name not in _SETTINGS:
                near = get_close_matches(name, _SETTINGS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_SETTINGS)}"
                raise ParameterError(f"SPINE has no setting {name!r}; {hint}")


def _require_same_features(encoder: FeatureEncoder | None, graph: Graph) -> None:
    found = graph.features.shape[1] if graph.features is not None else 0
    if encoder is not None and encoder.num_features != found:
        raise ParameterError(
            f"encoder makes {encoder.num_features} features, the graph has {found}; "
            "pass the encoder that made the graph's features, or none"
        )


def _require_same_encoder(fitted: FeatureEncoder | None, given: FeatureEncoder | None) -> None:
    if fitted is not None and given is not None and not given.is_like(fitted):
        raise ParameterError(
            "the graph's table was encoded by another encoder than the model's, so that its columns mean "
            "something else; read it with read_graph(..., encoder=model.table_encoder_)"
        )


def _require_graph(graph: GraphLike) -> None:
    if isinstance(graph, Graph | Overlay):
        return
    way_out = "read a file with read_graph, or convert what another package made with Graph.from_..."
    if isinstance(graph, list | tuple):
        way_out = "transform the graphs of a list one by one"
    raise ParameterError(f"transform takes a Graph or an Overlay; got {type(graph).__name__}; {way_out}")


def _several(nodes: Any) -> Iterable[Any]:
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise ParameterError(f"nodes must be a list of names, such as [{nodes!r}]; got {nodes!r}")
    return nodes


def _listed(graphs: Any) -> list[Graph]:
    if isinstance(graphs, Overlay):
        raise ParameterError(
            "fit takes a Graph or a list of Graphs; got an Overlay; pass overlay.materialize()"
        )
    listed = list(graphs) if isinstance(graphs, list | tuple | Iterator) else None
    if not listed or not all(isinstance(graph, Graph) for graph in listed):
        kinds = ", ".join(sorted({type(graph).__name__ for graph in listed or [graphs]}))
        raise ParameterError(
            f"fit takes a Graph or a list of Graphs; got {'an empty list' if listed == [] else kinds}"
        )
    return listed


def _parted(graph: Graph | Sequence[Graph], vectors: np.ndarray[Any, Any]) -> Embeddings | list[Embeddings]:
    if isinstance(graph, Graph):
        return Embeddings(graph.names, vectors)
    ends = np.cumsum([len(part) for part in graph])
    return [
        Embeddings(part.names, vectors[end - len(part) : end]) for part, end in zip(graph, ends, strict=True)
    ]
