"""Balance of structure and content in a vector, where the user leaves it open."""

from dataclasses import replace
from typing import Any

from spinegraph.config import Config
from spinegraph.graph.encode import FeatureEncoder
from spinegraph.structure.affinity import affinity

_UNKNOWN = 0.1  # too few edges to tell
_MOST = 0.5
_NO_SIGN = 0.99  # features that may as well have been dealt out at random
_DEVIATIONS = 3.0
_ODDS = 0.25  # of structure against content where half of the strength is there


def balanced(config: Config, graph: Any) -> Config:
    """Return the settings with a ``structural_share``: more, the less the features tell about links.

    With strength h of ``affinity``, structure stands to content as 0.25 ((1 - h) / h)^2 to 1, at most as 1
    to 1; as 99 to 1 where the features have no visible relation to the links at all. Without features there
    is no channel beside them.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> balanced(Config(), Graph.from_edges([(0, 1)])).structural_share
    0.0
    """
    if config.structural_share is not None:
        return config
    if not graph.has_features:
        return replace(config, structural_share=0.0)
    encoder = FeatureEncoder.for_matrix(graph.features, config.feature_scaling, graph.feature_names)
    found = affinity(graph, lambda rows: encoder.transform(graph.feature_rows(rows)), config.seed)
    if found is None:
        return replace(config, structural_share=_UNKNOWN)
    if found.deviations < _DEVIATIONS:
        return replace(config, structural_share=_NO_SIGN)
    odds = _ODDS * ((1 - found.strength) / max(found.strength, 1e-6)) ** 2
    return replace(config, structural_share=min(odds / (1 + odds), _MOST))
