"""Why two nodes are alike, or not: in words, and in numbers that add up."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

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

CONTENT, PLACE, STRUCTURE, NOTHING = "content", "place", "structure", "nothing"


@dataclass(frozen=True)
class Part:
    """What one part of the inputs does to the similarity of two nodes.

    Attributes
    ----------
    name : str
        ``"content"``, ``"place"`` or ``"structure"``; ``"nothing"`` stands for two zero vectors.
    alike : float
        Its share of the cosine; all parts add up to it.
    weight : float
        Its share of the two vectors; all parts add up to 1.
    """

    name: str
    alike: float
    weight: float

    @property
    def apart(self) -> float:
        """Its share of what is missing to a cosine of 1."""
        return self.weight - self.alike


@dataclass(frozen=True)
class Column(Part):
    """What one input column does to the similarity of two nodes.

    Attributes
    ----------
    values : pair of float
        What the generator reads for the first and for the second node.
    is_structural : bool
        Whether the column is made from structure alone.
    """

    values: tuple[float, float]
    is_structural: bool


@dataclass(frozen=True, eq=False)
class Columns:
    """What all the input columns do that are not 0 for both nodes, as arrays.

    Attributes
    ----------
    names : array of str (p,)
    values : float64 array (2, p)
    alike, weight : float64 arrays (p,)
    is_structural : bool array (p,)
    """

    names: NDArray[Any]
    values: NDArray[np.float64]
    alike: NDArray[np.float64]
    weight: NDArray[np.float64]
    is_structural: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.names)

    def shared(self, most: int, *, structural: bool | None = None) -> list[Column]:
        """Return the columns that both nodes have and that add most; all, or (no) structural ones."""
        both = self.values[0] * self.values[1] > 0
        return self._leading(self.alike, both & self._of_kind(structural), most)

    def apart(self, most: int, *, structural: bool | None = None) -> list[Column]:
        """Return the columns that set the two nodes apart most; all, or (no) structural ones."""
        return self._leading(self.weight - self.alike, self._of_kind(structural), most)

    def structural(self) -> list[Column]:
        """Return the structural columns, in order."""
        return [self._column(place) for place in np.flatnonzero(self.is_structural)]

    def _of_kind(self, structural: bool | None) -> NDArray[np.bool_]:
        return np.ones(len(self), bool) if structural is None else self.is_structural == structural

    def _leading(self, score: NDArray[Any], chosen: NDArray[np.bool_], most: int) -> list[Column]:
        places = np.flatnonzero(chosen & (score > 0))
        order = np.argsort(-score[places], kind="stable")[:most]
        return [self._column(place) for place in places[order]]

    def _column(self, place: Any) -> Column:
        one, other = self.values[:, place].tolist()
        return Column(
            str(self.names[place]),
            float(self.alike[place]),
            float(self.weight[place]),
            (one, other),
            bool(self.is_structural[place]),
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two vectors taken apart.

    Attributes
    ----------
    cosine : float
        A zero vector points in a direction of its own: 1 to another one, 0 to all others.
    parts : tuple of Part
        Content, place and structure, those that the model has.
    columns : Columns
        Every input that is not 0 for both, in the generator's order.
    overlap : float
        Share of what both see that lies at the same nodes, from 0 to 1.
    """

    cosine: float
    parts: tuple[Part, ...]
    columns: Columns
    overlap: float


def compare(
    graph: GraphLike, generator: Generator, positions: NDArray[np.int64], profile: RootedPageRank
) -> Comparison:
    """Take the vectors of two nodes apart.

    Parameters
    ----------
    graph : Graph or Overlay
    generator : Generator
    positions : int64 array (2,)
    profile : RootedPageRank
        Of the two.
    """
    inputs = generator.inputs
    values, shared, overlap = _inputs(graph, generator, positions, profile)
    used = np.flatnonzero(values.any(axis=0) | (shared != 0))
    values, shared, rows = values[:, used], shared[used], generator.weights[used].astype(np.float64)  # (p, d)
    names, is_structural = np.array(inputs.names, dtype=object)[used], used >= _num_features(generator)
    is_past = used >= inputs.num_through
    beside = values[:, is_past] @ rows[is_past]  # (2, d)
    before = values[:, ~is_past] @ rows[~is_past]  # (2, d)
    content = generator.activated(before.astype(np.float32)).astype(np.float64)
    lengths = np.sqrt(np.square(content + beside).sum(axis=1, keepdims=True))
    if not lengths.all():
        return _of_nothing(lengths, names, values, is_structural, overlap)
    slopes = np.divide(content, before, out=np.ones_like(before), where=before != 0) / lengths
    unit = (content + beside) / lengths

    def along(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what a unit of each input adds along two unit vectors (2, d): (2, p)."""
        found: NDArray[np.float64] = (slopes * vectors) @ rows.T
        found[:, is_past] = (vectors / lengths) @ rows[is_past].T
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
    return Comparison(float(np.clip(unit[0] @ unit[1], -1, 1)), parts, columns, overlap)


def _inputs(
    graph: GraphLike, generator: Generator, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return what the generator reads for two nodes (2, f), of that what it reads at the same nodes (f,)."""
    inputs = generator.inputs
    operator = profile.operator()  # (2, n)
    seen, places = np.unique(operator.indices, return_inverse=True)  # (t,)
    around = inputs.around(graph, seen.astype(np.int64))  # (t, through)
    seeing = np.zeros((2, len(seen)), dtype=np.float32)
    seeing[np.repeat([0, 1], np.diff(operator.indptr)), places] = operator.data
    both = seeing.min(axis=0)  # (t,)
    past = inputs.structural(graph, positions, profile) if inputs.past else np.zeros((2, 0), np.float32)
    values = np.hstack([_dense(seeing @ around), past]).astype(np.float64)
    shared = np.hstack([_dense(both[None] @ around)[0], np.zeros(past.shape[1])])
    return values, shared, float(both.sum())


def _of_nothing(
    lengths: NDArray[np.float64],
    names: NDArray[Any],
    values: NDArray[np.float64],
    is_structural: NDArray[np.bool_],
    overlap: float,
) -> Comparison:
    """Compare vectors of which one at least is zero: no input has a share in it."""
    cosine = 0.0 if lengths.any() else 1.0
    none = np.zeros(len(names))
    columns = Columns(names, values, none, none, is_structural)
    return Comparison(cosine, (Part(NOTHING, cosine, 1.0),), columns, overlap)


def _num_features(generator: Generator) -> int:
    encoder = generator.inputs.encoder
    return 0 if encoder is None else encoder.num_features


def _dense(matrix: Any) -> NDArray[Any]:
    found: NDArray[Any] = csr_array(matrix).toarray() if issparse(matrix) else np.asarray(matrix)
    return found


HOPS = 3
_NAMED = 5


@dataclass(frozen=True)
class Standing:
    """What a node's surroundings look like.

    Attributes
    ----------
    name : str
        As it is printed.
    degree : int
    hops : tuple of int (3,)
        Nodes within 1, 2 and 3 links, without the node itself.
    clustering : float
        Share of the pairs of neighbours that are linked.
    neighbor_degree : float
        Geometric mean of 1 + the neighbours' degrees, less 1.
    """

    name: str
    degree: int
    hops: tuple[int, ...]
    clustering: float
    neighbor_degree: float


@dataclass(frozen=True)
class Relation:
    """How two nodes lie to each other.

    Attributes
    ----------
    links_apart : int or None
        Links on the shortest way, None where it has more than 6.
    common : int
        Neighbours of both.
    common_names : tuple of str
        The first five of them.
    """

    links_apart: int | None
    common: int
    common_names: tuple[str, ...]


def standing(
    graph: GraphLike, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[Standing, Standing, Relation]:
    """Describe two nodes and how they lie to each other."""
    adjacency = graph.adjacency()
    levels = [_levels(adjacency, int(root)) for root in positions]
    described = structural_columns(
        graph, positions, profile=profile, names=("clustering", "neighbor_log_degree_mean"), threads=1
    ).values
    one, other = (
        Standing(
            shown(name),
            int((level == 1).sum()),
            tuple(int(((level > 0) & (level <= hop)).sum()) for hop in range(1, HOPS + 1)),
            float(numbers[0]),
            float(np.expm1(numbers[1])),
        )
        for name, level, numbers in zip(graph.names[positions].tolist(), levels, described, strict=True)
    )
    return one, other, _relation(graph, *levels)


def shown(name: Any) -> str:
    """Return a node's name as it is printed: the text itself, without quotes."""
    if isinstance(name, tuple):
        return ":".join(map(shown, name))
    return name if isinstance(name, str) else quoted(name)


def _relation(graph: GraphLike, one: NDArray[np.int8], other: NDArray[np.int8]) -> Relation:
    reached = (one >= 0) & (other >= 0)
    apart = int((one[reached] + other[reached]).min()) if reached.any() else None
    common = np.flatnonzero((one == 1) & (other == 1))
    return Relation(apart, len(common), tuple(shown(name) for name in graph.names[common[:_NAMED]].tolist()))


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


_SHOWN = 4
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


def sentences(found: Explanation) -> list[str]:
    """Return the explanation in sentences: the verdict, its parts, content, place, role."""
    return [
        sentence
        for sentence in (_verdict(found), _origin(found), *_content(found), _place(found), _role(found))
        if sentence
    ]


def column_title(name: str) -> str:
    """Return what an input column holds, in words; a feature's own name as it is."""
    around = name.removeprefix("around: ")
    title = _NAMED_COLUMNS.get(around, around)
    return title if around == name else f"{title} (around)"


def percent(share: float) -> str:
    """Return a share in %."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def difference(ratio: float) -> str:
    """Return how far two values differ, the larger over the smaller less 1 being given."""
    return f"by {percent(ratio)}" if ratio < 1 else f"by a factor of {1 + ratio:.1f}"


def short_difference(ratio: float) -> str:
    """Return the same as ``difference`` for a table."""
    return f"x {1 + ratio:.1f}" if ratio >= 1 else "< 1 %" if ratio < 0.005 else f"{100 * ratio:.0f} %"


def titled(name: str) -> str:
    """Return a node's name as a sentence has it: numbers are called nodes."""
    return f"node {name}" if name.lstrip("-").replace(":", "").isdecimal() else name


def _verdict(found: Explanation) -> str:
    similarity = found.similarity
    if found.parts[0].name == NOTHING:
        which = "both vectors are" if similarity else "one of the vectors is"
        return _begun(f"{_both(found)} cannot be compared by what they hold: {which} zero.")
    how = next((word for least, word in _ALIKE if similarity >= least), "not alike")
    verdict = f"{_both(found)} are {how}: their similarity is {similarity:.2f}, 1 being the same"
    return _begun(f"{verdict} and 0 unrelated.{_nearer(found, found.rank)}")


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
    told = _listed([f"{part.alike:.2f} is {part.name} ({_MEANING[part.name]})" for part in giving])
    less = _listed([f"{part.name} ({_MEANING[part.name]}) takes {-part.alike:.2f} away" for part in taking])
    return f"Of the {found.similarity:.2f}, {told}{'; ' * bool(less)}{less}."


def _content(found: Explanation) -> Iterator[str]:
    shared = found.columns.shared(_SHOWN)
    if shared and found.similarity >= _ALIKE[-1][0]:
        yield f"What makes them alike most: {_titles(shared)}."
    apart = found.columns.apart(_SHOWN)
    if apart and found.similarity < _ALIKE[1][0]:
        yield _apart(found, apart)


def _apart(found: Explanation, columns: Sequence[Column]) -> str:
    told = []
    for place, name in enumerate((found.a.name, found.b.name)):
        more = [column for column in columns if column.values[place] > column.values[1 - place]]
        if more:
            told.append(f"{_titles(more)} (more at {titled(name)})")
    return f"What sets them apart most: {'; '.join(told)}." if told else ""


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
    """Judge by how far the profiles differ, and by how many are closer where that is known."""
    step, share = found.step_difference, 1.0 if found.role_rank is None else found.role_rank.share
    if step <= 0.05 or share <= 0.01:
        return "play nearly the same role"
    return "play similar roles" if step <= 0.15 or share <= 0.1 else "play different roles"


def _titles(columns: Sequence[Column]) -> str:
    titles = [column_title(column.name) for column in columns]
    return "; ".join(titles) if any("," in title for title in titles) else _listed(titles)


def _both(found: Explanation) -> str:
    return f"{titled(found.a.name)} and {titled(found.b.name)}"


def _begun(text: str) -> str:
    """Begin a sentence; a name stays as it is."""
    return f"N{text[1:]}" if text.startswith("node ") else text


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
