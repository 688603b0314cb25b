"""What a row of a table is: a way to get vectors, with a version."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spinegraph.analysis.baselines import Embed
from spinegraph.graph.graph import Graph

Score = Callable[[Embed], float]  # how good a fit is by labels that it may see; higher is better


@dataclass(frozen=True)
class Method:
    """One row of the tables.

    Attributes
    ----------
    name : str
        As the tables print it.
    number : int
        Raised by hand whenever the method's vectors change for another reason than its settings.
    fit : callable (graph, dim, seed, score) -> Embed
        ``score``, where it is not None, may choose when to stop. What a transductive method returns takes no
        other graph than the one it was fitted on.
    is_inductive : bool
        Whether unseen nodes can be embedded.
    is_drawn : bool
        Whether the result depends on the seed.
    is_slow : bool
        Three seeds instead of ten.
    settings : mapping
        Part of the version.
    """

    name: str
    number: int
    fit: Callable[[Graph, int, int, Score | None], Embed]
    is_inductive: bool = True
    is_drawn: bool = True
    is_slow: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Name the code and the settings that a result depends on."""
        if not self.settings:
            return str(self.number)
        text = json.dumps(dict(self.settings), sort_keys=True)
        return f"{self.number}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def of_one_graph(graph: Graph, vectors: Any) -> Embed:
    """Return what a transductive method knows: the vectors of its own graph."""

    def embed(other: Graph) -> Any:
        assert other is graph, "a transductive method has vectors of its own graph alone"
        return vectors

    return embed


def accelerator() -> str:
    """Return the Torch device that baselines are trained on: a GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
