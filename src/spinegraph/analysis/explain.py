"""Why two nodes are alike, or not: in words, and in numbers that add up."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.explain_parts import Column, Columns, Part, compare
from spinegraph.analysis.explain_standing import Relation, Standing, standing
from spinegraph.analysis.search import Search, StructuralSearch
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.generator import Generator
from spinegraph.structure.profile import RootedPageRank
from spinegraph.structure.warping import Warping, warping

_CLOSE = 1e-6
_COLUMNS = 12


@dataclass(frozen=True)
class Rank:
    """How many other nodes are nearer to the first node than the second is.

    Attributes
    ----------
    nearer : int
    others : int
        Nodes but for the first.

    Examples
    --------
    >>> Rank(5, 101).share
    0.05
    """

    nearer: int
    others: int

    @property
    def share(self) -> float:
        """Share of the other nodes that are nearer, from 0 to 1."""
        return self.nearer / max(self.others - 1, 1)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why two nodes are alike, or not.

    Attributes
    ----------
    a, b : Standing
        Name, degree, nodes within 1, 2, 3 links, clustering, neighbours' degree.
    relation : Relation
        Links between the two, neighbours in common.
    similarity : float
        Cosine of the two vectors.
    parts : tuple of Part
        Shares of content, place and structure; see :mod:`spinegraph.analysis.explain_parts`.
    overlap : float
        Share of what the generator reads around both that lies at the same nodes.
    columns : Columns
        What every input column adds, as arrays.
    profiles : float32 array (2, k)
    warping : Warping
        How one profile is matched to the other.
    rank : Rank or None
        Of the second node among all by similarity to the first; needs embeddings.
    role_rank : Rank or None
        The same by distance of profiles; needs the profile of all nodes.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> club = made.karate()
    >>> found = explain(club, SPINE(dim=8, steps=5).fit(club).generator_, 0, 33)
    >>> found.a.degree, found.b.degree, found.relation.links_apart
    (16, 17, 2)
    """

    a: Standing
    b: Standing
    relation: Relation
    similarity: float
    parts: tuple[Part, ...]
    overlap: float
    columns: Columns
    profiles: NDArray[np.float32]
    warping: Warping
    rank: Rank | None = None
    role_rank: Rank | None = None

    @property
    def step_difference(self) -> float:
        """Mean over the matched steps of the larger value over the smaller, less 1."""
        return self.warping.distance / len(self.warping.path)

    @property
    def shared_features(self) -> list[tuple[str, float]]:
        """Feature columns that both have and that add to the similarity, with what they add, most first."""
        return [(column.name, column.alike) for column in self.columns.shared(_COLUMNS, structural=False)]

    @property
    def words(self) -> list[str]:
        """The explanation in sentences, the most important first."""
        from spinegraph.analysis.explain_words import sentences

        return sentences(self)

    def to_json(self) -> dict[str, Any]:
        """Return words and numbers as plain values; of the columns those that matter most."""
        return {
            "words": self.words,
            "a": asdict(self.a),
            "b": asdict(self.b),
            "relation": asdict(self.relation),
            "similarity": self.similarity,
            "rank": None if self.rank is None else asdict(self.rank),
            "parts": [{**asdict(part), "apart": part.apart} for part in self.parts],
            "overlap": self.overlap,
            "shared_columns": [_plain(column) for column in self.columns.shared(_COLUMNS)],
            "apart_columns": [_plain(column) for column in self.columns.apart(_COLUMNS)],
            "structural_columns": [_plain(column) for column in self.columns.structural()],
            "profiles": [[float(value) for value in row] for row in self.profiles],
            "warping": {
                "path": self.warping.path.tolist(),
                "costs": self.warping.costs.tolist(),
                "distance": self.warping.distance,
                "step_difference": self.step_difference,
            },
            "role_rank": None if self.role_rank is None else asdict(self.role_rank),
        }


def explain(
    graph: Any,
    generator: Generator,
    a: Any,
    b: Any,
    *,
    embeddings: Embeddings | Search | None = None,
    profile: RootedPageRank | StructuralSearch | None = None,
) -> Explanation:
    """Explain why two nodes of a graph are alike, or not.

    Parameters
    ----------
    graph : Graph or Overlay
    generator : Generator
    a, b : names of two nodes
    embeddings : Embeddings or Search, optional
        Of all nodes, for the rank among them. A Search saves time where there are many questions.
    profile : RootedPageRank or StructuralSearch, optional
        Of all nodes, with the generator's settings, for the rank of the roles.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> club = made.karate()
    >>> model = SPINE(dim=8, steps=5).fit(club)
    >>> found = explain(club, model.generator_, 0, 33, embeddings=model.embeddings_)
    >>> print(found.words[0])
    Node 0 and node 33 are ...
    """
    if generator.inputs.encoder is not None:
        generator.inputs.require_features(graph)
    positions = graph.positions([a, b])
    if positions[0] == positions[1]:
        raise ParameterError(f"an explanation needs two nodes; got {a!r} twice")
    own = generator.inputs.profile(graph, positions)
    compared = compare(graph, generator, positions, own)
    one, other, relation = standing(graph, positions, own)
    roles = StructuralSearch(graph, profile) if isinstance(profile, RootedPageRank) else profile
    search = Search(embeddings, exact=True) if isinstance(embeddings, Embeddings) else embeddings
    return Explanation(
        one,
        other,
        relation,
        compared.cosine,
        compared.parts,
        compared.overlap,
        compared.columns,
        own.weights,
        warping(*own.weights),
        None if search is None else _rank(search.cosines(a), search.positions([a, b])),
        None if roles is None else _rank(-roles.distances(a), positions),
    )


def _rank(nearness: NDArray[np.float32], positions: Any) -> Rank:
    own, other = positions
    nearer = nearness > nearness[other] + _CLOSE
    nearer[own] = False
    return Rank(int(nearer.sum()), len(nearness) - 1)


def _plain(column: Column) -> dict[str, Any]:
    return {**asdict(column), "apart": column.apart}
