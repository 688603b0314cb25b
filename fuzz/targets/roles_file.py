"""Roles as any JSON, or sound ones that were changed; what is read is assigned."""

import json
from pathlib import Path

from fuzz.inputs import json_of
from fuzz.outcome import Target

from spinegraph.analysis.roles import Roles
from spinegraph.estimator import SPINE
from spinegraph.graph.synthetic import barbell

_GRAPH = barbell(6, bridge=3)
_MODEL = SPINE(dim=3, k=4, threads=1).fit(_GRAPH)
_SOUND = Roles.find(_GRAPH, _MODEL.generator_, _MODEL.embeddings_, count=2).to_json()
SEEDS = [json.dumps(_SOUND).encode(), b"{}", b"\1", bytes(range(128, 160))]


def begin(folder: Path) -> Target:
    """Return a function that reads roles and assigns them."""

    def target(data: bytes) -> None:
        roles = Roles.from_json(json_of(data, _SOUND))
        found = roles.assign(_GRAPH, _MODEL.generator_, _GRAPH.names[:3].tolist())
        assert found.memberships.shape == (3, len(roles.titles))

    return target
