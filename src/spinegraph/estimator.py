"""SPINE: the method, and the class that users touch."""

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
from spinegraph.graph.describe import TrainingStats, html_table
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

    Settings are checked at ``fit``, as in scikit-learn. The defaults need no tuning; the page on settings
    says when to change one.

    Parameters
    ----------
    dim : int
        Length d of a vector.
    seed : int
        Every random draw follows from it.
    threads : int, optional
        Threads of the kernels, all cores by default; the result does not depend on it.
    device : str
        Where a fit computes: ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
    engine : {"local", "ray"}
        Who runs the stages: this process, or tasks on a Ray cluster; the vectors are the same.
    address : str, optional
        The Ray cluster: ``HOST:PORT``, ``"auto"`` for one running on this machine, ``"local"`` to start one.
        None takes RAY_ADDRESS, else ``"local"``.
    continuation : float
        Probability that a walk continues rather than returns to its root: how far a node looks.
    k : int
        Length of a profile, the structural description of a node.
    rpr_method : {"push", "walks"}
        Rooted PageRank by pushing, exact to a tolerance, or by counting visits of walks.
    tolerance : float
        Largest share of probability that push leaves unassigned.
    threshold : float
        Push also ends where every residual is at most this much per neighbour, which bounds its work.
    walks, walk_length : int
        Walks per node and their length, for ``"walks"``.
    feature_scaling : {"auto", "row", "row_sum", "column", "none"}
        How a raw feature matrix is scaled; see FeatureEncoder.
    structural_columns : {"auto", "past", "through", "none"}
        Columns made from structure: beside the smoothed features, smoothed like them, or none. ``"auto"`` is
        ``"past"`` with features and ``"through"`` without.
    structural_share : float, optional
        Share of a vector's mean square that ``"past"`` columns get. None: the less the features say about
        the links, the more.
    kept : float
        Share of the untrained inner products of T F in those of the vectors.
    norm_power : float
        Smoothed features are divided by this power of their length: 0 leaves it, 1 makes all of one length.
    activation : {"identity", "relu", "elu", "tanh"}
        Last step of the generator.
    start : {"principal", "random"}
        Where the generator's matrix starts.
    structural_rate : float
        Probability that a positive is structural rather than local.
    candidates : {"degree", "profile", "all"}
        Nodes that may be structural positives: nearest in degree, the same with ties ordered by profile, or
        all.
    similarity : {"dtw", "euclidean", "cosine"}
        How profiles are compared.
    local_walks, local_walk_length : int
        Plain walks per node and their length.
    window : int
        Distance on a walk up to which two nodes are local positives.
    negatives : float
        K, the weight of the negative term.
    negative_samples : int
        Negatives that a batch shares.
    lambda1, lambda2 : float
        Weights of the generator's own and the auxiliary's own term; the rest weighs each cross term.
    auxiliary_init : {"random", "node2vec"}
        Where the auxiliary matrix starts; ``"node2vec"`` is SPINE-p.
    batch_size, steps : int
        Pairs a step, and steps at most.
    passes : float
        Times that an edge is met on average, at most: ends training on small networks before ``steps``.
    learning_rate, dropout : float
        Adam's rate, and the share of the generator's inputs left out in a step.
    training_nodes : int
        At most this many nodes take part in training, so its cost stops growing with the network.
    patience : int, optional
        Stop after so many evaluations without a lower held-out loss; None trains all steps.

    Attributes
    ----------
    embeddings_ : Embeddings, or a list of them after fitting a list of graphs
        None after a fit with ``vectors=False``.
    generator_ : Generator
        All that ``transform`` needs.
    history_ : list of TrainingRecord
        Losses during training.
    config_ : Config
        The settings in use; those left open have a value.
    familiarity_ : TrainingStats
        Statistics of the training data, so that ``transform`` can warn of data unlike it.
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

    def __init__(
        self,
        *,
        dim: int = 200,
        seed: int = 0,
        threads: int | None = None,
        device: str = "cpu",
        engine: str = "local",
        address: str | None = None,
        continuation: float = 0.7,
        k: int = 30,
        rpr_method: str = "push",
        tolerance: float = 0.05,
        threshold: float = 5e-5,
        walks: int = 10,
        walk_length: int = 40,
        feature_scaling: str = "auto",
        structural_columns: str = "auto",
        structural_share: float | None = None,
        kept: float = 0.5,
        norm_power: float = 0.5,
        activation: str = "identity",
        start: str = "principal",
        structural_rate: float = 0.1,
        candidates: str = "profile",
        similarity: str = "dtw",
        local_walks: int = 10,
        local_walk_length: int = 40,
        window: int = 15,
        negatives: float = 1.0,
        negative_samples: int = 100,
        lambda1: float = 0.4,
        lambda2: float = 0.4,
        auxiliary_init: str = "random",
        batch_size: int = 512,
        steps: int = 300,
        passes: float = 30.0,
        learning_rate: float = 1e-3,
        dropout: float = 0.0,
        training_nodes: int = 20_000,
        patience: int | None = None,
    ) -> None:
        self.dim, self.seed, self.threads, self.device = dim, seed, threads, device
        self.engine, self.address = engine, address
        self.continuation, self.k, self.rpr_method = continuation, k, rpr_method
        self.tolerance, self.threshold = tolerance, threshold
        self.walks, self.walk_length = walks, walk_length
        self.feature_scaling, self.structural_columns = feature_scaling, structural_columns
        self.structural_share, self.kept, self.norm_power = structural_share, kept, norm_power
        self.activation, self.start = activation, start
        self.structural_rate, self.candidates, self.similarity = structural_rate, candidates, similarity
        self.local_walks, self.local_walk_length, self.window = local_walks, local_walk_length, window
        self.negatives, self.negative_samples = negatives, negative_samples
        self.lambda1, self.lambda2, self.auxiliary_init = lambda1, lambda2, auxiliary_init
        self.batch_size, self.steps, self.passes = batch_size, steps, passes
        self.learning_rate, self.dropout = learning_rate, dropout
        self.training_nodes, self.patience = training_nodes, patience

    @classmethod
    def paper(cls: type[Self], **changes: Any) -> Self:
        """Return an estimator with the paper's values.

        >>> SPINE.paper().structural_rate
        0.5
        """
        _require_known(changes)
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
            Ignored, as in scikit-learn.
        encoder : FeatureEncoder, optional
            The fitted encoder that made the graph's features from a table; by default the graph's own. It is
            kept as ``table_encoder_`` and saved with the model: tables of new nodes are encoded alike.
        checkpoint : path, optional
            Folder for the state of training. Resumes an interrupted run, which ends with the same vectors.
        progress : callable (stage, done, total), optional
        vectors : bool
            Whether to embed the training nodes. False leaves ``embeddings_`` None: for a store (see
            ``open_store``) whose vectors would not fit in memory, and go to a folder instead.
        """
        from spinegraph.learning.checkpoint import Checkpoints
        from spinegraph.learning.sampling import PairSampler, TrainingData, balanced, gather_corpus

        report_progress = progress or (lambda stage, done, total: None)
        config = Config(**self.get_params()).check()
        graph = graph if isinstance(graph, Graph) else _as_list(graph)
        whole = graph if isinstance(graph, Graph) else Graph.union(graph, keys=range(len(graph)))
        config, engine = balanced(config, whole), engine_for(config)
        encoder = encoder or whole.encoder
        _require_same_features(encoder, whole)
        data_fingerprint = fingerprint(whole)
        checkpoints = Checkpoints.of_fit(checkpoint, data_fingerprint, config) if checkpoint else None

        report_progress("walks", 0, 0)
        corpus = gather_corpus(whole, config)  # every node, or a sample of a large network
        nodes = None if len(corpus.nodes) == len(whole) else corpus.nodes
        report_progress("rooted PageRank", 0, 0)
        profile = engine.profile(whole, config, nodes)
        inputs, columns = Inputs.fit(whole, config, nodes, profile)
        report_progress("structural twins", 0, 0)
        degrees = whole.degrees_at(corpus.nodes)
        similar = engine.similar(profile, degrees, config)
        sampler = PairSampler(corpus, similar, degrees, config)
        report_progress("features around every node", 0, 0)
        all_columns = columns if nodes is None else None
        smoothed = inputs.smoothed(whole, profile, nodes, all_columns)  # T F
        direct = columns if inputs.columns_direct else None
        data = TrainingData(smoothed, direct, sampler, inputs.norm_power)
        weights, history = engine.learn(data, config, checkpoints, report_progress)
        generator, embeddings = Generator(inputs, weights), None
        if vectors:
            report_progress("embedding", 0, 0)
            found = engine.embed(generator, whole, profile if nodes is None else None, all_columns)
            embeddings = _embeddings_of(graph, found)

        # Nothing before this line: an interrupted fit leaves the model as it was.
        self.config_, self.fingerprint_, self.history_ = config, data_fingerprint, history
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
            if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
                raise ParameterError(f"nodes must be a list of names, such as [{nodes!r}]; got {nodes!r}")
            positions = graph.positions(nodes)
        elif isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            positions = graph.standing
        self.familiarity_.warn(graph, positions)
        if positions is None and isinstance(graph, Graph):
            here = replace(self.config_, engine=self.engine, address=self.address, device=self.device).check()
            return Embeddings(graph.names, engine_for(here).embed(generator, graph))
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
        _require_known(settings)
        vars(self).update(settings)
        return self

    def __repr__(self) -> str:
        state = f" fitted on {len(self.familiarity_)} nodes" if hasattr(self, "generator_") else ""
        return f"SPINE({self._changed()}){state}"

    def _changed(self) -> str:
        """Return the settings that differ from their defaults."""
        changed = {name: value for name, value in self.get_params().items() if value != getattr(Config, name)}
        return ", ".join(f"{name}={value!r}" for name, value in changed.items())

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [("settings", self._changed() or "all as by default")]
        if not hasattr(self, "generator_"):
            return html_table("SPINE, not fitted", rows)
        graphs = self.graph_ if isinstance(self.graph_, list) else [self.graph_]
        rows += [("fitted on", repr(graph)) for graph in graphs[:5] if graph is not None]
        names = self.generator_.inputs.names
        rows.append(("reads", ", ".join(names[:8]) + ", ..." * (len(names) > 8)))
        if self.history_:
            first, last = self.history_[0], self.history_[-1]
            losses = f"{first.held_out_loss:.3f} to {last.held_out_loss:.3f} on held-out pairs"
            rows.append(("training", f"{last.step:,} steps, loss {losses}"))
        rows.append(("see also", "sg.plot.map(model), sg.plot.twins(model, a, b)"))
        return html_table(f"SPINE, fitted on {len(self.familiarity_):,} nodes", rows)

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


def _as_list(graphs: Any) -> list[Graph]:
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


def _embeddings_of(graph: Graph | Sequence[Graph], vectors: Any) -> Embeddings | list[Embeddings]:
    if isinstance(graph, Graph):
        return Embeddings(graph.names, vectors)
    parts = np.split(vectors, np.cumsum([len(part) for part in graph])[:-1])
    return [Embeddings(part.names, some) for part, some in zip(graph, parts, strict=True)]
