"""Look-alikes worth drawing: for each role a typical node and the node most like it elsewhere."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spinegraph.analysis.explain import Explanation, explain
from spinegraph.analysis.roles import RoleAssignment
from spinegraph.analysis.search import Search
from spinegraph.generator import Generator
from spinegraph.structure.distances import pair_distances
from spinegraph.structure.profile import RootedPageRank

_EXAMPLES = 4
_TRIED = 8  # typical nodes of a role
_MATCHES = 25
_DRAWN = (2, 24)  # neighbours of a node that makes a readable drawing


@dataclass(frozen=True, eq=False)
class Example:
    """Two nodes that are alike, and why.

    Attributes
    ----------
    role : int
    a, b : names
    score : float
        Cosine of the vectors.
    explanation : Explanation
    """

    role: int
    a: Any
    b: Any
    score: float
    explanation: Explanation


def find_examples(
    graph: Any,
    generator: Generator,
    search: Search,
    profile: RootedPageRank,
    assignment: RoleAssignment,
    count: int = _EXAMPLES,
) -> list[Example]:
    """Find for the commonest roles a typical node, and the node most like it that is not beside it.

    Most alike is who has the largest cosine, less where the profiles differ.

    Parameters
    ----------
    graph : Graph
    generator : Generator
    search : Search
        Over the vectors of all nodes.
    profile : RootedPageRank
        Of all nodes.
    assignment : RoleAssignment
        Of all nodes.
    count : int

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> from spinegraph.analysis.roles import Roles
    >>> graph = made.barbell(6, bridge=3)
    >>> model = SPINE(dim=8, steps=5).fit(graph)
    >>> roles = Roles.find(graph, model.generator_).assign(graph, model.generator_)
    >>> profile = model.generator_.inputs.profile(graph)
    >>> found = find_examples(graph, model.generator_, Search(model.embeddings_), profile, roles, count=1)
    >>> found[0].score > 0.9
    True
    """
    found: list[Example] = []
    used: set[int] = set()
    for role in np.argsort(-assignment.shares(), kind="stable").tolist():
        pairs = _pairs(graph, search, profile, assignment, role, used)
        if not pairs or len(found) == count:
            continue
        best = max(pairs, key=lambda pair: (pair.is_apart, pair.likeness))
        used |= {best.one, best.other}
        a, b = graph.names[[best.one, best.other]].tolist()
        reasons = explain(graph, generator, a, b, embeddings=search)
        found.append(Example(role, a, b, best.cosine, reasons))
    return sorted(found, key=lambda example: example.role)


class _Pair(NamedTuple):
    one: int
    other: int
    cosine: float
    is_apart: bool  # more than two steps, and of one role
    likeness: float


def _pairs(
    graph: Any,
    search: Search,
    profile: RootedPageRank,
    assignment: RoleAssignment,
    role: int,
    used: set[int],
) -> list[_Pair]:
    """Return typical nodes of a role, each with the nodes whose vectors are nearest."""
    typical = graph.positions(assignment.examples(role, len(graph)))
    least, most = _DRAWN
    fits = (graph.degrees[typical] >= least) & (graph.degrees[typical] <= most)
    typical = [one for one in (typical[fits] if fits.any() else typical).tolist() if one not in used]
    found = []
    for one in typical[:_TRIED]:
        near = _within_two(graph, one)
        for match in search.similar(graph.names[one], n=_MATCHES):
            other = int(graph.positions([match.name])[0])
            if other in used:
                continue
            is_apart = other not in near and assignment.roles[other] == role
            step = float(pair_distances(profile.weights, [[one, other]])[0]) / profile.k
            found.append(_Pair(one, other, match.score, bool(is_apart), match.score / (1 + step)))
    return found


def _within_two(graph: Any, node: int) -> set[int]:
    ring = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
    beyond = (graph.indices[graph.indptr[place] : graph.indptr[place + 1]].tolist() for place in ring)
    return {node, *ring, *(other for row in beyond for other in row)}
