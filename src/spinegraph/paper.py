"""The paper's method: a matrix trained so that a node's smoothed features predict similar nodes."""

from collections.abc import Sequence
from dataclasses import fields
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

from spinegraph.config import PaperConfig
from spinegraph.embeddings import embeddings_per_graph
from spinegraph.estimator import SPINE, _one_graph, _require_same_features
from spinegraph.graph.describe import TrainingStats, fingerprint
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph
from spinegraph.parts.paper import Inputs, PaperGenerator, TrainingRecord
from spinegraph.parts.role import profile_of
from spinegraph.structure.similarity import candidates, similar_nodes

if TYPE_CHECKING:
    from spinegraph.engines.shards import Progress


class PaperSPINE(SPINE):
    """The paper's generator, trained with the paper's objective; ``SPINE.paper`` makes one.

    Its vectors have one part, content; it needs features.

    Parameters
    ----------
    PaperConfig

    Attributes
    ----------
    history_ : list of TrainingRecord
        Losses during training; the other attributes are those of SPINE.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> model = SPINE.paper(dim=8, steps=50).fit(made.planted(seed=0).graph)
    >>> model.embeddings_
    Embeddings(599 nodes, 8 dimensions: content 8)
    >>> [record.step for record in model.history_]
    [25, 50]
    """

    __signature__ = Signature(  # each setting and its default is declared in PaperConfig alone
        [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(PaperConfig)
        ]
    )
    _config: ClassVar[Any] = PaperConfig
    _few: ClassVar[int] = 1 << 62  # each node costs the same, alone or in the whole graph
    config_: Any
    generator_: Any
    history_: list[TrainingRecord]

    def __init__(self, **settings: Any) -> None:
        vars(self).update(PaperConfig().to_json(), **self.__signature__.bind(**settings).kwargs)

    def fit(
        self,
        graph: Graph | Sequence[Graph],
        y: None = None,
        *,
        encoder: FeatureEncoder | None = None,
        progress: "Progress | None" = None,
        vectors: bool = True,
    ) -> Self:
        """Train a generator on one network, or on several together; see ``SPINE.fit``."""
        from spinegraph.learning.sampling import PairSampler, gather_corpus
        from spinegraph.learning.training import learn

        report_progress = progress or (lambda stage, done, total: None)
        config = PaperConfig(**self.get_params()).check()
        graph, whole = _one_graph(graph)
        encoder = encoder or whole.encoder
        _require_same_features(encoder, whole)
        inputs = Inputs.of(whole, config)

        report_progress("walks", 0, 0)
        corpus = gather_corpus(whole, config)  # every node, or a sample of a large network
        nodes = None if len(corpus.nodes) == len(whole) else corpus.nodes
        report_progress("rooted PageRank", 0, 0)
        profile = profile_of(whole, config, nodes)
        report_progress("structural twins", 0, 0)
        degrees = whole.degrees_at(corpus.nodes)
        near = candidates(degrees, profile.weights, config.candidates)  # type: ignore[arg-type]
        similar = similar_nodes(profile, near, config.similarity, threads=config.threads)  # type: ignore[arg-type]
        report_progress("features around every node", 0, 0)
        operator, features = inputs.smoothed(whole, profile, nodes)
        sampler = PairSampler(corpus, similar, degrees, config)
        weights, history = learn(operator @ features, sampler, config, report_progress)
        generator, embeddings = PaperGenerator(inputs, weights), None
        if vectors:
            report_progress("embedding", 0, 0)
            found = generator.embed(whole, profile=profile if nodes is None else None)
            embeddings = embeddings_per_graph(graph, found, generator.parts)

        # Attributes are set only from here on: an interrupted fit leaves the model as it was.
        self.config_, self.fingerprint_, self.history_ = config, fingerprint(whole), history
        self.generator_, self.table_encoder_ = generator, encoder
        self.familiarity_ = TrainingStats.of(whole)
        self.graph_, self.embeddings_ = graph, embeddings
        return self


def _documented(each: Any) -> str:
    """Format a setting as a docstring parameter."""
    choices, about = each.metadata["choices"], each.metadata["help"]
    kind = f"{{{', '.join(map(repr, choices))}}}" if choices else getattr(each.type, "__name__", each.type)
    return f"    {each.name} : {kind}\n        {about[0].upper()}{about[1:]}.\n"


# Each setting, its default and its help are declared in PaperConfig alone.
_settings = "".join(map(_documented, fields(PaperConfig)))
PaperSPINE.__doc__ = str(PaperSPINE.__doc__).replace("    PaperConfig\n", _settings)
