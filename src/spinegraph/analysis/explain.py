"""Why two nodes are alike, or not: in words, and in shares that add up to their similarity."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.analysis.search import Search, StructuralSearch
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ParameterError
from spinegraph.generator import Generator
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.names import quoted
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import Warping, warping

Floats = NDArray[np.float64]

CONTENT, PLACE, STRUCTURE, NOTHING = "content", "place", "structure", "nothing"
HOPS = 3
_NAMED_NEIGHBORS = 5
_TOLERANCE = 1e-6  # of similarities that count as equal in a rank
_COLUMNS = 12  # listed in the JSON


@dataclass(frozen=True)
class Part:
    """What one part of the inputs contributes to the similarity of two nodes."""

    name: str  # "content", "place" or "structure"; "nothing" stands for two zero vectors
    alike: float  # its share of the cosine; all parts add up to it
    weight: float  # its share of the two vectors; all parts add up to 1

    @property
    def apart(self) -> float:
        """Its share of what is missing to a cosine of 1."""
        return self.weight - self.alike


@dataclass(frozen=True)
class Column(Part):
    """What one input column contributes to the similarity of two nodes."""

    values: tuple[float, float]  # what the generator reads for the first and for the second node
    is_structural: bool  # whether the column is made from structure alone

    def to_json(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {**asdict(self), "apart": self.apart}


@dataclass(frozen=True, eq=False)
class Columns:
    """Contributions of all input columns that are not 0 for both nodes, as arrays."""

    names: NDArray[Any]  # (p,)
    values: Floats  # (2, p)
    alike: Floats  # (p,)
    weight: Floats  # (p,)
    is_structural: NDArray[np.bool_]  # (p,)

    def shared(self, count: int, *, structural: bool | None = None) -> list[Column]:
        """Return the columns that both nodes have and that add most; all, or only (non-)structural ones."""
        chosen = self.values[0] * self.values[1] > 0
        if structural is not None:
            chosen &= self.is_structural == structural
        return self._largest(np.where(chosen, self.alike, 0), count)

    def apart(self, count: int) -> list[Column]:
        """Return the columns that set the two nodes apart most."""
        return self._largest(self.weight - self.alike, count)

    def structural(self) -> list[Column]:
        """Return the structural columns, in order."""
        return [self._column(index) for index in np.flatnonzero(self.is_structural)]

    def _largest(self, score: Floats, count: int) -> list[Column]:
        order = np.argsort(-score, kind="stable")[:count]
        return [self._column(index) for index in order[score[order] > 0]]

    def _column(self, index: Any) -> Column:
        one, other = self.values[:, index].tolist()
        return Column(
            str(self.names[index]),
            float(self.alike[index]),
            float(self.weight[index]),
            (one, other),
            bool(self.is_structural[index]),
        )


@dataclass(frozen=True)
class Surroundings:
    """A node and what lies around it."""

    name: str  # as it is printed
    degree: int
    hops: tuple[int, ...]  # (3,), nodes within 1, 2 and 3 links, without the node itself
    clustering: float  # share of the pairs of neighbours that are linked
    neighbor_degree: float  # geometric mean of 1 + the neighbours' degrees, less 1


@dataclass(frozen=True)
class Relation:
    """How two nodes are linked."""

    links_apart: int | None  # links on the shortest path, None where it has more than 6
    common: int  # neighbours of both
    common_names: tuple[str, ...]  # the first five of them


@dataclass(frozen=True)
class Rank:
    """How many other nodes are nearer to the first node than the second is."""

    nearer: int
    others: int  # nodes other than the first

    @property
    def share(self) -> float:
        """Share of the other nodes that are nearer, from 0 to 1."""
        return self.nearer / max(self.others - 1, 1)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why two nodes are alike, or not.

    Attributes
    ----------
    a, b : Surroundings
        Name, degree, nodes within 1, 2, 3 links, clustering, neighbours' degree.
    relation : Relation
        Links between the two, neighbours in common.
    similarity : float
        Cosine of the two vectors. A zero vector has a cosine of 1 to another one and of 0 to all others.
    parts : tuple of Part
        Shares of content, place and structure; see :mod:`spinegraph.analysis.explain`.
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
    """

    a: Surroundings
    b: Surroundings
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
        listed = (_verdict(self), _origin(self), *_content(self), _place(self), _role(self))
        return [sentence for sentence in listed if sentence]

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
            "shared_columns": [column.to_json() for column in self.columns.shared(_COLUMNS)],
            "apart_columns": [column.to_json() for column in self.columns.apart(_COLUMNS)],
            "structural_columns": [column.to_json() for column in self.columns.structural()],
            "profiles": self.profiles.tolist(),
            "warping": {
                "path": self.warping.path.tolist(),
                "costs": self.warping.costs.tolist(),
                "distance": self.warping.distance,
                "step_difference": self.step_difference,
            },
            "role_rank": None if self.role_rank is None else asdict(self.role_rank),
        }


def explain(
    graph: GraphLike,
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
    >>> found.a.degree, found.b.degree, found.relation.links_apart
    (16, 17, 2)
    """
    if generator.inputs.encoder is not None:
        generator.inputs.require_features(graph)
    positions = graph.positions([a, b])
    if positions[0] == positions[1]:
        raise ParameterError(f"an explanation needs two nodes; got {a!r} twice")
    own = generator.inputs.profile(graph, positions)
    cosine, parts, columns, overlap = _compare(graph, generator, positions, own)
    roles = StructuralSearch(graph, profile) if isinstance(profile, RootedPageRank) else profile
    search = Search(embeddings, exact=True) if isinstance(embeddings, Embeddings) else embeddings
    return Explanation(
        *_surroundings(graph, positions, own),
        cosine,
        parts,
        overlap,
        columns,
        own.weights,
        warping(*own.weights),
        None if search is None else _rank(search.cosines(a), search.positions([a, b])),
        None if roles is None else _rank(-roles.distances(a), positions),
    )


def _rank(nearness: NDArray[np.float32], positions: NDArray[np.int64]) -> Rank:
    nearer = nearness > nearness[positions[1]] + _TOLERANCE
    nearer[positions[0]] = False
    return Rank(int(nearer.sum()), len(nearness) - 1)


def _compare(
    graph: GraphLike, generator: Generator, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[float, tuple[Part, ...], Columns, float]:
    """Return the cosine of two nodes' vectors, its shares by part and by column, and the overlap."""
    inputs = generator.inputs
    values, shared, overlap = _inputs(graph, generator, positions, profile)
    used = np.flatnonzero(values.any(axis=0) | (shared != 0))
    values, shared, rows = values[:, used], shared[used], generator.weights[used].astype(np.float64)  # (p, d)
    names = np.array(inputs.names, dtype=object)[used]
    is_structural = used >= (0 if inputs.encoder is None else inputs.encoder.num_features)
    is_direct = used >= inputs.num_smoothed  # not smoothed
    direct = values[:, is_direct] @ rows[is_direct]  # (2, d)
    before = values[:, ~is_direct] @ rows[~is_direct]  # (2, d)
    content = generator.activated(before.astype(np.float32)).astype(np.float64)
    lengths = np.linalg.norm(content + direct, axis=1, keepdims=True)
    if not lengths.all():  # no input has a share in a zero vector
        cosine, none = 0.0 if lengths.any() else 1.0, np.zeros(len(names))
        columns = Columns(names, values, none, none, is_structural)
        return cosine, (Part(NOTHING, cosine, 1.0),), columns, overlap
    # The activation counts as the factor output / input at each node, so that contributions add up.
    slopes = np.divide(content, before, out=np.ones_like(before), where=before != 0) / lengths
    unit = (content + direct) / lengths

    def along(vectors: Floats) -> Floats:
        """Return what one unit of each input adds along two unit vectors (2, d): (2, p)."""
        found: Floats = (slopes * vectors) @ rows.T
        found[:, is_direct] = (vectors / lengths) @ rows[is_direct].T
        return found

    to_other, to_own = along(unit[::-1]), along(unit)
    elsewhere = values - shared
    groups = {PLACE: np.broadcast_to(shared, values.shape)}
    if inputs.encoder is not None:
        groups = {CONTENT: elsewhere * ~is_structural, **groups}
    if inputs.columns:
        groups[STRUCTURE] = elsewhere * is_structural
    parts = tuple(
        Part(name, float((group * to_other).sum() / 2), float((group * to_own).sum() / 2))
        for name, group in groups.items()
    )
    alike, weight = (values * to_other).sum(axis=0) / 2, (values * to_own).sum(axis=0) / 2
    columns = Columns(names, values, alike, weight, is_structural)
    return float(np.clip(unit[0] @ unit[1], -1, 1)), parts, columns, overlap


def _inputs(
    graph: GraphLike, generator: Generator, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[Floats, Floats, float]:
    """Return the inputs of two nodes (2, f), what of them lies at the same nodes (f,), and the overlap."""
    inputs = generator.inputs
    operator = profile.operator()  # (2, n)
    seen, columns = np.unique(operator.indices, return_inverse=True)  # (t,)
    around = inputs.around(graph, seen.astype(np.int64))  # (t, through)
    weights = np.zeros((2, len(seen)), dtype=np.float32)
    weights[np.repeat([0, 1], np.diff(operator.indptr)), columns] = operator.data
    both = weights.min(axis=0)  # (t,)
    direct = (
        inputs.structural(graph, positions, profile)
        if inputs.columns_direct
        else np.zeros((2, 0), np.float32)
    )
    values = np.hstack([weights @ around, direct]).astype(np.float64)
    shared = np.hstack([both @ around, np.zeros(direct.shape[1])])
    return values, shared, float(both.sum())


def _surroundings(
    graph: GraphLike, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[Surroundings, Surroundings, Relation]:
    """Describe what lies around two nodes, and how they are linked."""
    adjacency = graph.adjacency()
    one, other = levels = [_levels(adjacency, int(root)) for root in positions]
    measured = structural_columns(
        graph, positions, profile=profile, names=("clustering", "neighbor_log_degree_mean"), threads=1
    ).values
    a, b = (
        Surroundings(
            shown(name),
            int((level == 1).sum()),
            tuple(int(((level > 0) & (level <= hop)).sum()) for hop in range(1, HOPS + 1)),
            float(clustering),
            float(np.expm1(neighbor_degree)),
        )
        for name, level, (clustering, neighbor_degree) in zip(
            graph.names[positions].tolist(), levels, measured, strict=True
        )
    )
    reached = (one >= 0) & (other >= 0)
    links = int((one[reached] + other[reached]).min()) if reached.any() else None
    common = np.flatnonzero((one == 1) & (other == 1))
    names = graph.names[common[:_NAMED_NEIGHBORS]].tolist()
    return a, b, Relation(links, len(common), tuple(map(shown, names)))


def _levels(adjacency: Adjacency, root: int) -> NDArray[np.int8]:
    """Return how many links away each node is (n,), -1 beyond the last hop."""
    level = np.full(adjacency.num_nodes, -1, dtype=np.int8)
    level[root] = 0
    frontier = np.array([root])
    for hop in range(1, HOPS + 1):
        near = adjacency.neighbors(frontier)[1].astype(np.int64)
        near = near[level[near] < 0]
        level[near] = hop
        frontier = np.unique(near)
    return level


_COLUMNS_IN_WORDS = 4
_ALIKE = ((0.9, "nearly the same"), (0.7, "much alike"), (0.45, "alike in part"), (0.2, "a little alike"))
_MEANING = {
    CONTENT: "what describes the nodes around them",
    PLACE: "nodes that both have around them",
    STRUCTURE: "the shape of the links around them",
}
_NAMED_COLUMNS = {
    "log_degree": "number of neighbours",
    "log_mean_weight": "strength of links",
    "log_smaller_neighbors": "neighbours with far fewer links",
    "log_h_index": "well-linked neighbours",
    "overlap_10": "circles shared with the least close neighbours",
    "overlap_25": "circles shared with less close neighbours",
    "overlap_50": "circles shared with neighbours",
    "spread": "how widely a walk spreads",
    "log_profile_3": "pull of the closest nodes",
    "log_profile_10": "pull of nodes further off",
}


def shown(name: Any) -> str:
    """Return a node's name as it is printed: the text itself, without quotes."""
    if isinstance(name, tuple):
        return ":".join(map(shown, name))
    return name if isinstance(name, str) else quoted(name)


def column_title(name: str) -> str:
    """Return what an input column holds, in words; a feature's own name as it is."""
    around = name.removeprefix("around: ")
    title = _NAMED_COLUMNS.get(around, around)
    return title if around == name else f"{title} (around)"


def percent(share: float) -> str:
    """Return a share in %."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def difference(ratio: float) -> str:
    """Return in words how far two values differ, given the larger over the smaller less 1."""
    return f"by {percent(ratio)}" if ratio < 1 else f"by a factor of {1 + ratio:.1f}"


def short_difference(ratio: float) -> str:
    """Return the same as ``difference`` for a table."""
    return f"x {1 + ratio:.1f}" if ratio >= 1 else "< 1 %" if ratio < 0.005 else f"{100 * ratio:.0f} %"


def titled(name: str) -> str:
    """Return a node's name for a sentence: numbers become "node 7"."""
    return f"node {name}" if name.lstrip("-").replace(":", "").isdecimal() else name


def _verdict(found: Explanation) -> str:
    similarity, both = found.similarity, f"{titled(found.a.name)} and {titled(found.b.name)}"
    if both.startswith("node "):
        both = f"N{both[1:]}"
    if found.parts[0].name == NOTHING:
        which = "both vectors are" if similarity else "one of the vectors is"
        return f"{both} cannot be compared by what they hold: {which} zero."
    how = next((word for least, word in _ALIKE if similarity >= least), "not alike")
    verdict = f"{both} are {how}: their similarity is {similarity:.2f}, 1 being the same and 0 unrelated."
    return verdict + _nearer(found, found.rank)


def _nearer(found: Explanation, rank: Rank | None) -> str:
    if rank is None:
        return ""
    a, b, others = titled(found.a.name), titled(found.b.name), f"{rank.others:,}"
    if not rank.nearer:
        return f" Of the {others} other nodes none is more like {a}."
    count = f"{rank.nearer:,} {'is' if rank.nearer == 1 else 'are'}"
    yet = " Yet of" if found.similarity >= _ALIKE[1][0] and rank.share > 0.1 else " Of"
    if rank.share < 0.1:
        return f"{yet} the {others} other nodes only {count} more like {a}."
    return f"{yet} the {others} other nodes {count} more like {a} than {b} is."


def _origin(found: Explanation) -> str:
    parts = sorted((p for p in found.parts if p.name != NOTHING), key=lambda part: -part.alike)
    if not parts:
        return ""
    if found.similarity < _ALIKE[-1][0]:
        agreeing = [
            f"{part.name}, {percent(part.weight)} of their vectors, gives {part.alike:.2f}"
            for part in parts
            if part.weight >= 0.005
        ]
        return f"Hardly anything agrees: {'; '.join(agreeing)}."
    giving = [part for part in parts if part.alike >= 0.005]
    taking = [part for part in parts if part.alike <= -0.005]
    more = _listed([f"{part.alike:.2f} is {part.name} ({_MEANING[part.name]})" for part in giving])
    less = _listed([f"{part.name} ({_MEANING[part.name]}) takes {-part.alike:.2f} away" for part in taking])
    return f"Of the {found.similarity:.2f}, {more}{'; ' * bool(less)}{less}."


def _content(found: Explanation) -> Iterator[str]:
    shared = found.columns.shared(_COLUMNS_IN_WORDS)
    if shared and found.similarity >= _ALIKE[-1][0]:
        yield f"What makes them alike most: {_titles(shared)}."
    if found.similarity < _ALIKE[1][0]:
        apart, sides = found.columns.apart(_COLUMNS_IN_WORDS), []
        for side, name in enumerate((found.a.name, found.b.name)):
            more = [column for column in apart if column.values[side] > column.values[1 - side]]
            if more:
                sides.append(f"{_titles(more)} (more at {titled(name)})")
        if sides:
            yield f"What sets them apart most: {'; '.join(sides)}."


def _place(found: Explanation) -> str:
    apart, common = found.relation.links_apart, found.relation.common
    if apart is None:
        return "They are far from each other, more than 6 links or no way at all, and share no surroundings."
    where = "They are linked" if apart == 1 else f"They are {apart} links apart"
    if common:
        names = ", ".join(found.relation.common_names) + (
            ", ..." if common > len(found.relation.common_names) else ""
        )
        where += f", with {_count(common, 'neighbour')} in common ({names})"
    if found.overlap < 0.005:
        return f"{where}, and what lies around one hardly reaches the other."
    return f"{where}, and {percent(found.overlap)} of what lies around one lies around the other."


def _role(found: Explanation) -> str:
    a, b = found.a, found.b
    if a.degree == b.degree:
        ties = f"both have {_count(a.degree, 'neighbour')}"
    else:
        ties = f"{titled(a.name)} has {_count(a.degree, 'neighbour')}, {titled(b.name)} has {b.degree:,}"
    if min(a.degree, b.degree) > 1:
        ties += f"; {_linked(a.clustering, b.clustering)}"
    if max(a.degree, b.degree) > 0:
        ties += f"; within 3 links lie {a.hops[-1]:,} and {b.hops[-1]:,} nodes"
    profile = f"Their profiles differ {difference(found.step_difference)} a step"
    if found.warping.distance < 1e-4:
        profile = "Their profiles are the same"
    rank = found.role_rank
    if rank is not None:
        nearer = f"{percent(rank.share)} of the other nodes are" if rank.nearer else "no other node is"
        profile += f"; {nearer} closer to {titled(a.name)} in this respect"
    return f"They {_role_word(found)}: {ties}. {profile}."


def _linked(one: float, other: float) -> str:
    if percent(one) != percent(other):
        return f"{percent(one)} and {percent(other)} of the pairs of these are linked"
    if one in (0.0, 1.0):
        return "all of these are linked to each other" if one else "no two of these are linked"
    return f"{percent(one)} of the pairs of these are linked, here and there"


def _role_word(found: Explanation) -> str:
    """Judge by how far the profiles differ, and by how many nodes are closer where that is known."""
    step, share = found.step_difference, 1.0 if found.role_rank is None else found.role_rank.share
    if step <= 0.05 or share <= 0.01:
        return "play nearly the same role"
    return "play similar roles" if step <= 0.15 or share <= 0.1 else "play different roles"


def _titles(columns: Sequence[Column]) -> str:
    titles = [column_title(column.name) for column in columns]
    return "; ".join(titles) if any("," in title for title in titles) else _listed(titles)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
