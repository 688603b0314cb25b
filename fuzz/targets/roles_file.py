"""Roles as JSON; what is read is assigned."""

import json
from pathlib import Path

from fuzz.outcome import Target

from spinegraph.analysis.roles import Roles
from spinegraph.estimator import SPINE
from spinegraph.graph.made import barbell

_GRAPH = barbell(6, bridge=3)
_MODEL = SPINE(dim=3, steps=1, k=4, threads=1).fit(_GRAPH)
SEEDS = [
    json.dumps(Roles.find(_GRAPH, _MODEL.generator_, _MODEL.embeddings_, count=2).to_json()).encode(),
    b"{}",
]


def begin(folder: Path) -> Target:
    """Return a function that reads roles and assigns them."""

    def target(data: bytes) -> None:
        try:
            meta = json.loads(data)
        except (ValueError, RecursionError):
            return
        roles = Roles.from_json(meta)
        found = roles.assign(_GRAPH, _MODEL.generator_, _GRAPH.names[:3].tolist())
        assert found.memberships.shape == (3, len(roles.titles))

    return target
