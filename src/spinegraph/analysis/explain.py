"""Why two nodes are alike, or not: in words, and in shares that add up to their similarity."""

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.analysis.baselines import dense
from spinegraph.analysis.search import Match, Search
from spinegraph.config import PARTS
from spinegraph.embeddings import Embeddings, Parts, part_weights
from spinegraph.errors import ParameterError
from spinegraph.graph.describe import TableResult, data_frame, html_table
from spinegraph.graph.encoder import OTHER
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.names import quoted
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.parts.content import Content, encode, smoothers
from spinegraph.parts.paper import AnyGenerator, PaperGenerator
from spinegraph.parts.role import PROFILE, Role, names_of, role_columns, smoothed_degrees
from spinegraph.parts.role import Surroundings as RoleSurroundings
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.similarity import comparison

Floats = NDArray[np.float64]
Weights = Mapping[str, float] | None  # of parts

CONTENT, PLACE, ROLE, NOTHING = "content", "place", "role", "nothing"
HOPS = 3
_NAMED_NEIGHBORS = 5
_TOLERANCE = 1e-6  # of similarities that count as equal in a rank
_COLUMNS, _SHOWN_COLUMNS = 12, 6  # listed in the JSON, and in tables
_BAR = 24  # characters
ORDINARY = "ordinary"


@dataclass(frozen=True)
class Part:
    """What one part of the vectors adds to the similarity of two nodes."""

    name: str  # "content", "place" or "role"; "nothing" stands for zero vectors
    cosine: float  # of the part alone; 0 where it is zero at one of the nodes
    weight: float  # in the mean; 0 where it is zero at both, so that it does not count
    share: float  # weight times cosine over the sum of weights: shares add up to the similarity
    is_zero: tuple[bool, bool] = (False, False)  # at the first and at the second node


@dataclass(frozen=True)
class Column:
    """What one input column adds to the similarity of two nodes."""

    name: str
    alike: float  # what it adds; may be negative
    weight: float  # what it would add if the second node were like the first, and the other way round
    # At both nodes, as the generator reads it; of a table, 0 where it is closer to 0 than the mean.
    values: tuple[float, float]
    is_structural: bool  # whether the column is made from structure alone

    @property
    def apart(self) -> float:
        """How much it takes away."""
        return self.weight - self.alike


@dataclass(frozen=True, eq=False)
class Columns:
    """Contributions of all input columns that are not 0 at both nodes, as arrays.

    Those of a part add up to its share, except for random features and the mean of a matrix's content. A
    table's features count after subtracting their mean: what nearly all nodes have makes no two of them
    alike. Role has one more column, "ordinary": its constant dimension over the length of the part.
    """

    names: NDArray[Any]  # (p,)
    values: Floats  # (2, p)
    alike: Floats  # (p,)
    weight: Floats  # (p,)
    is_structural: NDArray[np.bool_]  # (p,)

    def shared(self, count: int, *, structural: bool | None = None) -> list[Column]:
        """Return the columns that both nodes have and that add most: all, or (non-)structural ones only."""
        says = [name != ORDINARY and not name.endswith(f" = {OTHER}") for name in self.names.tolist()]
        chosen = (self.values[0] * self.values[1] > 0) & np.array(says, bool)
        if structural is not None:
            chosen &= self.is_structural == structural
        return self._largest(np.where(chosen, self.alike, 0), count)

    def apart(self, count: int) -> list[Column]:
        """Return the columns that set the two nodes apart most."""
        return self._largest(self.weight - self.alike, count)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of all columns: what each adds and takes away, and its two values."""
        taken = self.weight - self.alike
        listed = {"adds": self.alike, "takes": taken, "first": self.values[0], "second": self.values[1]}
        part = np.where(self.is_structural, ROLE, CONTENT)
        return data_frame({"part": part, **listed}, [column_title(name) for name in self.names])

    def _largest(self, score: Floats, count: int) -> list[Column]:
        order = np.argsort(-score, kind="stable")[:count]
        return [self[index] for index in order[score[order] > 0]]

    def __getitem__(self, index: Any) -> Column:
        values = tuple(self.values[:, index].tolist())
        numbers = float(self.alike[index]), float(self.weight[index])
        return Column(str(self.names[index]), *numbers, values, bool(self.is_structural[index]))


@dataclass(frozen=True)
class Surroundings:
    """A node and its surroundings."""

    name: str  # as printed
    degree: int
    hops: tuple[int, ...]  # (3,), nodes within 1, 2 and 3 links, without the node itself
    clustering: float  # share of the pairs of neighbours that are linked
    neighbor_degree: float  # geometric mean of 1 + the neighbours' degrees, less 1

    def numbers(self) -> dict[str, str]:
        """Return the numbers as text, by title."""
        return {
            "neighbours": f"{self.degree:,}",
            "nodes within 2 links": f"{self.hops[1]:,}",
            "nodes within 3 links": f"{self.hops[2]:,}",
            "pairs of neighbours that are linked": percent(self.clustering) if self.degree > 1 else "-",
            "neighbours of a neighbour, typically": f"{self.neighbor_degree:.1f}" if self.degree else "-",
        }


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


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why two nodes are alike, or not; prints as sentences.

    Attributes
    ----------
    a, b : Surroundings
        Name, degree, nodes within 1, 2 and 3 links, clustering, neighbours' degree.
    relation : Relation
        Links between the two, and neighbours in common.
    similarity : float
        Mean of the cosines of the parts, the score of ``Search``. A zero vector has a cosine of 1 to another
        zero vector and of 0 to all others.
    parts : tuple of Part
        What content, place and role add to it.
    overlap : float
        Share of the surroundings that both nodes have in common.
    columns : Columns
        What every input column adds, as arrays.
    profiles : float32 array (2, k)
    profile_difference : float
        Distance of the profiles by dynamic time warping, divided by their length.
    rank : Rank or None
        Rank of the second node by similarity to the first; None without embeddings.
    same_network : bool or None
        Whether the graph is the training network; in another one nodes have no place. None without place.
    """

    a: Surroundings
    b: Surroundings
    relation: Relation
    similarity: float
    parts: tuple[Part, ...]
    overlap: float
    columns: Columns
    profiles: NDArray[np.float32]
    profile_difference: float
    rank: Rank | None = None
    same_network: bool | None = None

    @property
    def words(self) -> list[str]:
        """The explanation in sentences, the most important first."""
        listed = (_verdict(self), _origin(self), _no_place(self), *_content(self), _place(self), _role(self))
        return [sentence for sentence in listed if sentence]

    def tables(self) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
        """Return the numbers behind the words: heading, titles and rows of each table."""
        alike, apart = self.columns.shared(_SHOWN_COLUMNS), self.columns.apart(_SHOWN_COLUMNS)
        largest = max([*(column.alike for column in alike), *(column.apart for column in apart), 1e-9])
        parts, takes = list[tuple[str, ...]](), list[tuple[str, ...]]()
        for part in self.parts:
            cosine = "zero" if any(part.is_zero) else f"{part.cosine:z.3f}"
            parts.append((part.name, cosine, f"{part.weight:g}", f"{part.share:z.3f}", _bar(part.share)))
        parts.append(("together", "", "", f"{self.similarity:z.3f}", ""))
        adds = [(column_title(c.name), f"{c.alike:z.3f}", _bar(c.alike / largest)) for c in alike]
        for c in apart:
            more = "" if c.values[0] == c.values[1] else (self.a, self.b)[c.values[0] < c.values[1]].name
            takes.append((column_title(c.name), f"{c.apart:z.3f}", _bar(c.apart / largest), more))
        beside = self.b.numbers()
        numbers = [(title, text, beside[title]) for title, text in self.a.numbers().items()]
        found: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
            ("Where the similarity comes from", ("part", "cosine", "weight", "adds", ""), parts),
            ("What makes them alike", ("column", "adds", ""), [*adds]),
            ("What sets them apart", ("column", "takes", "", "more of it at"), takes),
            ("Side by side", ("", self.a.name, self.b.name), [*numbers]),
        ]
        return [table for table in found if table[2]]

    def __repr__(self) -> str:
        return "\n".join(textwrap.fill(sentence, 88) for sentence in self.words)

    def _repr_html_(self) -> str:
        tables = "".join(html_table(heading, rows, titles) for heading, titles, rows in self.tables())
        return f"<p>{'<br>'.join(map(escape, self.words))}</p>{tables}"

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of what each part adds; see ``columns.to_pandas()`` for columns."""
        values = {key: [getattr(part, key) for part in self.parts] for key in ("cosine", "weight", "share")}
        return data_frame(values, [part.name for part in self.parts])

    def to_json(self) -> dict[str, Any]:
        """Return words and numbers as plain values, with the most important columns only."""
        columns = {
            "shared_columns": self.columns.shared(_COLUMNS),
            "apart_columns": self.columns.apart(_COLUMNS),
            "structural_columns": [self.columns[at] for at in np.flatnonzero(self.columns.is_structural)],
        }
        return {
            "words": self.words,
            "a": asdict(self.a),
            "b": asdict(self.b),
            "relation": asdict(self.relation),
            "similarity": self.similarity,
            "rank": self.rank and asdict(self.rank),
            "parts": [asdict(part) for part in self.parts],
            "same_network": self.same_network,
            "overlap": self.overlap,
            **{key: [{**asdict(one), "apart": one.apart} for one in found] for key, found in columns.items()},
            "profiles": self.profiles.tolist(),
            "profile_difference": self.profile_difference,
        }


def explain(
    graph: GraphLike,
    generator: AnyGenerator,
    a: Any,
    b: Any,
    *,
    embeddings: Embeddings | Search | None = None,
    weights: Weights = None,
    known: NDArray[np.int64] | None = None,
) -> Explanation:
    """Explain why two nodes of a graph are alike, or not.

    Parameters
    ----------
    graph : Graph or Overlay
    generator : Generator or PaperGenerator
    a, b : names of two nodes
    embeddings : Embeddings or Search, optional
        Of all nodes, for the rank among them. Pass a Search, by all parts with the same weights, to explain
        many pairs quickly.
    weights : dict of part to float, optional
        Weights of the parts in the similarity, 1 by default.
    known : int64 array (n,), optional
        ``generator.known(graph)``; computed unless given.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> club = made.karate()
    >>> model = SPINE(dim=8).fit(club)
    >>> found = explain(club, model.generator_, 0, 33, embeddings=model.embeddings_)
    >>> print(found.words[0])
    Node 0 and node 33 are ...
    >>> found.a.degree, found.b.degree, found.relation.links_apart
    (16, 17, 2)
    """
    generator.require_features(graph)
    positions = graph.positions([a, b])
    if positions[0] == positions[1]:
        raise ParameterError(f"an explanation needs two nodes; got {a!r} twice")
    known = generator.known(graph) if known is None else known
    vectors = generator.embed_some(graph, positions, known).astype(np.float64)
    parts, scale = _parts(vectors, generator.parts, part_weights(generator.parts, weights))
    own = generator.profile(graph, positions)
    distance = float(comparison("dtw", own.weights)(np.array([0]), np.array([1]))[0])
    if isinstance(embeddings, Embeddings):
        embeddings = Search(embeddings, weights=weights, exact=True)
    rank = None
    if embeddings is not None:
        nearness, (one, other) = embeddings.cosines(a), map(embeddings.embeddings.position, (a, b))
        nearer = np.flatnonzero(nearness > nearness[other] + _TOLERANCE)
        rank = Rank(int((nearer != one).sum()), len(nearness) - 1)
    return Explanation(
        *_surroundings(graph, positions, own),
        sum(part.share for part in parts),
        parts,
        float(own.operator()[[0]].minimum(own.operator()[[1]]).sum()),
        _columns(graph, generator, positions, own, {part.name: scale * part.weight for part in parts}),
        own.weights,
        distance / max(int(own.weights.any(axis=0).sum()), 1),
        rank,
        None if PLACE not in generator.parts else known is not None and bool((known >= 0).any()),
    )


_SHARED_COLUMNS = 2  # shown, of those that two nodes share
_BY = ("all", *PARTS)


@dataclass(frozen=True, eq=False, repr=False)
class Similar(TableResult, Sequence[Match]):
    """The nodes most like a node, best first: a sequence of ``Match`` that prints as a table.

    Attributes
    ----------
    node : name
    by : str
        What was compared: ``"all"`` parts or one of them.
    matches : list of Match
    reasons : list of Explanation
        Why the node and each match are alike; computed on first access.
    """

    node: Any
    by: str
    matches: list[Match]
    explained: Callable[[Any], Explanation]  # from a match's name
    weights: Weights = None  # of the parts, 1 where not given

    def __len__(self) -> int:
        return len(self.matches)

    def __getitem__(self, index: Any) -> Any:
        return self.matches[index]

    @cached_property
    def reasons(self) -> list[Explanation]:
        """Why the node and each match are alike."""
        return [self.explained(match.name) for match in self.matches]

    @property
    def parts(self) -> list[str]:
        """Parts of the vectors."""
        return [part.name for part in max((reason.parts for reason in self.reasons), key=len, default=())]

    def table(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]], str]:
        """Return heading, titles, rows and note of the printed table."""
        parts, rows = self.parts, []
        for match, reason in zip(self.matches, self.reasons, strict=True):
            cosine = {part.name: "-" if all(part.is_zero) else f"{part.cosine:z.2f}" for part in reason.parts}
            row = [f"{match.score:z.3f}", shown(match.name), *(cosine.get(part, "") for part in parts)]
            row += [f"{reason.b.degree:,}", f"{reason.relation.links_apart or '> 6'}"]
            rows.append((*row, self._alike_in(reason)))
        given = "".join(f", {part} times {weight:g}" for part, weight in (self.weights or {}).items())
        by = f"all parts{given}" if self.by == "all" else self.by
        heading = f"Most like {titled(shown(self.node))}, by {by}"
        titles = ("score", "node", *parts, "links", "apart", "alike in")
        if not rows:
            return heading, titles, rows, "none: it is the only node"
        score = "cosine of that part"
        if self.by == "all":
            score = f"{'weighted ' * bool(self.weights)}mean of the cosines of the parts"
        own = f"links: how many that node has; {self.reasons[0].a.name} has {self.reasons[0].a.degree:,}"
        note = f"score: {score}, 1 being the same\n{own}; apart: links between the two"
        return heading, titles, rows, note

    def _alike_in(self, reason: Explanation) -> str:
        if self.by == PLACE:
            common = reason.relation.common
            is_linked = "linked" if reason.relation.links_apart == 1 else ""
            return f"{plural(common, 'neighbour')} in common" if common else is_linked
        is_structural = self.by == ROLE or CONTENT not in self.parts
        columns = reason.columns.shared(_SHARED_COLUMNS, structural=is_structural)
        return ", ".join(column_title(column.name) for column in columns)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row per match, indexed by name."""
        found = self.reasons
        cosines = [{part.name: part.cosine for part in reason.parts} for reason in found]
        columns: dict[str, Any] = {"score": [match.score for match in self.matches]}
        columns |= {part: [each.get(part, np.nan) for each in cosines] for part in self.parts}
        columns["neighbors"] = [reason.b.degree for reason in found]
        columns["links_apart"] = [reason.relation.links_apart for reason in found]
        columns["alike_in"] = list(map(self._alike_in, found))
        table = data_frame(columns, [match.name for match in self.matches])
        return table.astype({"links_apart": "Int64"}).rename_axis("node")

    def to_json(self) -> dict[str, Any]:
        """Return names, scores and reasons as plain values."""
        listed = [
            {
                "name": shown(match.name),
                "score": match.score,
                "similarity": found.similarity,
                "parts": {part.name: part.share for part in found.parts},
                "neighbors": found.b.degree,
                "links_apart": found.relation.links_apart,
                "profile_difference": found.profile_difference,
                "shared": [column.name for column in found.columns.shared(_SHARED_COLUMNS)],
            }
            for match, found in zip(self.matches, self.reasons, strict=True)
        ]
        return {"node": shown(self.node), "by": self.by, "similar": listed}


def similar(
    graph: GraphLike,
    generator: AnyGenerator,
    embeddings: Embeddings,
    node: Any,
    *,
    by: str = "all",
    n: int = 10,
    weights: Weights = None,
) -> Similar:
    """Find the nodes most like a node of a graph; the arguments are those of ``SPINE.similar``."""
    graph.positions([node])  # raises for an unknown node
    search = search_by(embeddings, by=by, weights=weights, exact=True)  # an index does not pay for one query
    if by == PLACE and not embeddings.part(PLACE)[node].any():
        message = "no links to nodes that were there at the fit; search by content or by role"
        raise ParameterError(f"{node!r} has no place: {message}")
    matches = search.similar(node, n)
    known = cache(lambda: generator.known(graph))

    def explained(other: Any) -> Explanation:
        return explain(graph, generator, node, other, weights=weights, known=known())

    return Similar(node, by, matches, explained, weights)


def search_by(embeddings: Embeddings, *, by: str, weights: Weights, exact: bool | None = None) -> Search:
    """Return a search by all parts of the vectors, or by one, which they must have."""
    if by not in _BY:
        raise ParameterError(f"by must be one of {', '.join(map(repr, _BY))}; got {by!r}")
    if by == PLACE and PLACE in embeddings.parts and not embeddings.part(PLACE).vectors.any():
        where = "another network" if embeddings.same_network is False else "a model saved without place"
        raise ParameterError(f"nodes of {where} have no place; search by content or by role")
    return Search(embeddings, by=by, weights=weights, exact=exact)


def _parts(vectors: Floats, parts: Parts, weights: Mapping[str, float]) -> tuple[tuple[Part, ...], float]:
    """Return the parts of two vectors (2, d), and the factor that makes weight times cosine a share.

    It is 1 over the sum of the weights that count or, if a part is zero at one node only, over the root of
    the product of both nodes' sums, as in the cosine of ``Embeddings.weighted``.
    """
    found, at = list[Part](), np.zeros(2)
    for name, columns in parts.items():
        lengths = np.linalg.norm(vectors[:, columns], axis=1)
        cosine = 0.0
        if lengths.all():
            cosine = float(np.clip(vectors[0, columns] @ vectors[1, columns] / lengths.prod(), -1, 1))
        weight = weights[name] * bool(lengths.any())
        found.append(Part(name, cosine, weight, 0.0, (not lengths[0], not lengths[1])))
        at += weight * (lengths > 0)
    if not at.all():
        alike = float(not at.any())
        return (Part(NOTHING, alike, 1.0, alike, (not at[0], not at[1])),), 0.0
    scale = float(1 / np.sqrt(at.prod()))
    return tuple(replace(part, share=scale * part.weight * part.cosine) for part in found), scale


def _columns(
    graph: GraphLike,
    generator: AnyGenerator,
    positions: NDArray[np.int64],
    profile: RootedPageRank,
    factors: Mapping[str, float],
) -> Columns:
    """Return what columns add to the similarity, given the factor of each part's cosine in it."""
    if isinstance(generator, PaperGenerator):
        return _NO_COLUMNS  # its matrix mixes all columns
    found, rows = [_NO_COLUMNS], [each.rows(positions) for each in smoothers(graph, generator.config)]
    if generator.content is not None:
        found.append(_content_columns(graph, generator.content, positions, rows, factors.get(CONTENT, 0)))
    if generator.role is not None:
        degrees = smoothed_degrees(graph, rows[0], rows[2:])
        around = RoleSurroundings.of_some(graph, positions, degrees)
        values = role_columns(graph, generator.config, positions, around, profile)
        found.append(_role_columns(generator.role, values, factors.get(ROLE, 0)))
    names = [field.name for field in fields(Columns)]
    return Columns(*(np.concatenate([getattr(each, name) for each in found], axis=-1) for name in names))


def _content_columns(
    graph: GraphLike, content: Content, positions: NDArray[np.int64], around: list[csr_array], factor: float
) -> Columns:
    """Return what features add: a node's own, those near it and those far around, summed."""
    features = [encode(content.encoder, graph, positions)]
    for rows in around:
        seen, indices = np.unique(rows.indices, return_inverse=True)
        local = csr_array((rows.data, indices, rows.indptr), shape=(2, len(seen)))
        features.append(local @ encode(content.encoder, graph, seen.astype(np.int64)))
    inputs = np.stack([dense(each) for each in features])  # (3 or 5, 2, f)
    mixing, directions, width = content.mixing, content.directions, len(content.offset)
    lengths = np.linalg.norm(mixing, axis=(1, 2))
    masses = np.stack([np.ones(2), *(rows.sum(axis=1) for rows in around)])
    centred = (inputs - masses[:, :, None] * content.mean).astype(np.float32)
    shown, beyond = (
        np.tensordot(lengths / (lengths.sum() or 1), each, 1) for each in (inputs, centred)
    )  # (2, f)
    inputs, shown = (
        centred,
        np.where(shown * beyond > 0, shown, 0),
    )  # two nodes that both lack a team are not alike for that
    vectors = sum(
        (each @ directions @ part for each, part in zip(inputs, mixing, strict=True)), -content.offset
    )
    vectors = vectors if content.random_features is None else content.random_features.append_to(vectors)

    def back(toward: Floats) -> Floats:
        along = toward[:, :width].astype(np.float32)
        return np.stack([(along @ part.T) @ directions.T for part in mixing])  # never (f, d)

    return _contributions(content.encoder.feature_names_, inputs, back, vectors, factor, shown)


def _role_columns(role: Role, columns: NDArray[np.float32], factor: float) -> Columns:
    """Return what structural columns (2, s) add, and what the constant adds for ordinary nodes."""
    identity = np.eye(len(role.mean), dtype=np.float32)
    plain = replace(role, rotation=identity, constant=0.0, random_features=None)
    inputs, width = plain.embed(columns), role.rotation.shape[1]  # standardised and bounded
    vectors = role.embed(columns)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    shown = np.hstack([inputs, role.constant / np.where(lengths > 0, lengths, 1)])
    inputs = np.hstack([inputs, np.full((2, 1), role.constant, np.float32)])

    def back(toward: Floats) -> Floats:
        return np.hstack([toward[:, :width] @ role.rotation.T, toward[:, -1:]])[None]

    names = names_of(len(role.mean) > len(names_of(directed=False)))
    found = _contributions((*names, ORDINARY), inputs[None], back, vectors, factor, shown)
    titles = [_REST if name in PROFILE[1:] else name for name in found.names]
    first, group = np.unique(titles, return_index=True, return_inverse=True)[1:]
    sums = np.eye(len(first))[group]
    return Columns(
        np.array(titles, dtype=object)[first],
        found.values @ sums / sums.sum(axis=0),
        found.alike @ sums,
        found.weight @ sums,
        np.ones(len(first), bool),
    )


def _contributions(
    names: Sequence[str] | NDArray[Any],
    inputs: NDArray[np.float32],
    back: Callable[[Floats], Floats],
    vectors: NDArray[np.float32],
    factor: float,
    shown: Floats | NDArray[np.float32],
) -> Columns:
    """Distribute the cosine of two vectors (2, d), times a factor, over their inputs (i, 2, p).

    ``back`` returns what one unit of every input adds along given directions (2, d).
    """
    used = np.flatnonzero(inputs.any(axis=(0, 1)))
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    shares = np.zeros((2, inputs.shape[2]))
    if lengths.all():
        unit = vectors / lengths
        for share, toward in zip(shares, (unit[::-1], unit), strict=True):
            share[:] = factor / 2 * (inputs * back(toward / lengths)).sum(axis=(0, 1))
    values = np.asarray(shown, np.float64)[:, used]
    alike, weight = shares[:, used]
    return Columns(np.array(names, dtype=object)[used], values, alike, weight, np.zeros(len(used), bool))


_NO_COLUMNS = Columns(np.zeros(0, object), np.zeros((2, 0)), np.zeros(0), np.zeros(0), np.zeros(0, bool))


def _surroundings(
    graph: GraphLike, positions: NDArray[np.int64], profile: RootedPageRank
) -> tuple[Surroundings, Surroundings, Relation]:
    """Describe the surroundings of two nodes, and how they are linked."""
    adjacency = graph.adjacency()
    one, other = levels = [_levels(adjacency, int(root)) for root in positions]
    names = "clustering", "neighbor_log_degree_mean"
    measured = structural_columns(graph, positions, profile=profile, names=names, threads=1).values
    measures = zip(graph.names[positions].tolist(), levels, measured, strict=True)
    a, b = (
        Surroundings(
            shown(name),
            int((level == 1).sum()),
            tuple(int(((level > 0) & (level <= hop)).sum()) for hop in range(1, HOPS + 1)),
            float(clustering),
            float(np.expm1(neighbor_degree)),
        )
        for name, level, (clustering, neighbor_degree) in measures
    )
    reached = (one >= 0) & (other >= 0)
    links = int((one[reached] + other[reached]).min()) if reached.any() else None
    common = np.flatnonzero((one == 1) & (other == 1))
    listed = graph.names[common[:_NAMED_NEIGHBORS]].tolist()
    return a, b, Relation(links, len(common), tuple(map(shown, listed)))


def _levels(adjacency: Adjacency, root: int) -> NDArray[np.int8]:
    """Return how many links away each node is, (n,), or -1 beyond the last hop."""
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
_WORDS = 40  # of text columns, to choose from
_ALIKE = ((0.9, "nearly the same"), (0.7, "much alike"), (0.45, "alike in part"), (0.2, "a little alike"))
_SAME_ROLE = ((0.9, "play nearly the same role"), (0.7, "play similar roles"))
MEANING = {
    CONTENT: "what they and the nodes around them are about",
    PLACE: "where in the network they live",
    ROLE: "the shape of the links around them",
}
_REST = "profile"  # all its values but the first, together
_NAMED_COLUMNS = {
    "log_degree": "number of neighbours",
    "log_mean_weight": "strength of links",
    "log_smaller_neighbors": "neighbours with far fewer links",
    "log_h_index": "well-linked neighbours",
    "clustering": "neighbours that are linked",
    "neighbor_log_degree_mean": "links of the neighbours",
    "neighbor_log_degree_deviation": "how links of the neighbours differ",
    "second_log_degree_mean": "links two steps away",
    "near_log_degree": "links of nearby nodes",
    "near_log_degree_deviation": "how links of nearby nodes differ",
    "overlap_10": "circles shared with the least close neighbours",
    "overlap_25": "circles shared with less close neighbours",
    "overlap_50": "circles shared with neighbours",
    "spread": "how wide the surroundings are",
    "log_out_degree": "links that go out",
    "log_in_degree": "links that come in",
    "reciprocity": "links that go both ways",
    "balance": "how much more goes out than comes in",
    "successors_log_out_degree": "links that go out from nodes it links to",
    "successors_log_in_degree": "links that come in to nodes it links to",
    "predecessors_log_out_degree": "links that go out from nodes that link to it",
    "predecessors_log_in_degree": "links that come in to nodes that link to it",
    "along_log_out_degree": "links that go out further along",
    "along_log_in_degree": "links that come in further along",
    "against_log_out_degree": "links that go out further back",
    "against_log_in_degree": "links that come in further back",
    ORDINARY: "links that are ordinary in every respect",
    _REST: "the shape of the surroundings",
    "log_profile_1": "how closed the surroundings are",
}


def shown(name: Any) -> str:
    """Return a node's name for printing: the text itself, without quotes."""
    if isinstance(name, tuple):
        return ":".join(map(shown, name))
    return name if isinstance(name, str) else quoted(name)


def column_title(name: str) -> str:
    """Return what a structural column holds, in words; the name of a feature stays as it is."""
    return _NAMED_COLUMNS.get(name, name)


def percent(share: float) -> str:
    """Return a share in %; a small one is never shown as 0 %."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def _bar(share: float) -> str:
    return "█" * round(_BAR * min(max(share, 0), 1))


def titled(name: str) -> str:
    """Return a node's name for a sentence: numbers become "node 7"."""
    return f"node {name}" if name.lstrip("-").replace(":", "").isdecimal() else name


def _verdict(found: Explanation) -> str:
    similarity, both = found.similarity, f"{titled(found.a.name)} and {titled(found.b.name)}"
    both = both[0].upper() + both[1:] if both.startswith("node ") else both
    if found.parts[0].name == NOTHING:
        which = "both vectors are" if similarity else "one of the vectors is"
        return f"{both} cannot be compared: {which} zero."
    how = next((word for least, word in _ALIKE if similarity >= least), "not alike")
    verdict = f"{both} are {how}: their similarity is {similarity:z.2f}, 1 being the same and 0 unrelated."
    if found.rank is None:
        return verdict
    nearer, others = found.rank.nearer, f"the {found.rank.others:,} other nodes"
    is_far, is_are = nearer / max(found.rank.others - 1, 1) >= 0.1, "is" if nearer == 1 else "are"
    count = f"{'' if is_far else 'only '}{nearer:,} {is_are}" if nearer else "none is"
    than = f" than {titled(found.b.name)} is" * is_far
    yet = "Yet of" if is_far and similarity >= _ALIKE[1][0] else "Of"
    return f"{verdict} {yet} {others} {count} more like {titled(found.a.name)}{than}."


def _origin(found: Explanation) -> str:
    parts = sorted((part for part in found.parts if part.weight), key=lambda part: -part.share)
    if len(parts) < 2:
        return ""
    if found.similarity < _ALIKE[-1][0]:
        gives = [f"{part.name} gives {part.share:z.2f}" for part in parts]
        return f"Hardly anything agrees: {_listed(gives)}."
    giving = [part for part in parts if part.share >= 0.005]
    taking = [part for part in parts if part.share <= -0.005]
    more = [f"{part.share:z.2f} is {part.name} ({MEANING[part.name]})" for part in giving]
    more[1:] = [text.replace(" is ", " ", 1) for text in more[1:]]
    less = _listed([f"{part.name} ({MEANING[part.name]}) takes {-part.share:z.2f} away" for part in taking])
    return f"Of the {found.similarity:z.2f}, {_listed(more)}{'; ' * bool(less)}{less}."


def _no_place(found: Explanation) -> str:
    place = next((part for part in found.parts if part.name == PLACE), None)
    if place is None or not any(place.is_zero):
        return ""
    if not found.same_network:
        return "Place is zero: the model was fitted on another network, or saved without place."
    where = [node for node, zero in zip((found.a, found.b), place.is_zero, strict=True) if zero]
    why = "hardly any node nearby was in the training network" if where[-1].degree else "no links"
    return f"Place is zero at {_listed([titled(node.name) for node in where])}: {why}."


def _content(found: Explanation) -> Iterator[str]:
    shared = found.columns.shared(_COLUMNS_IN_WORDS)
    if shared and found.similarity >= _ALIKE[-1][0]:
        yield f"What makes them most alike: {_titles(shared)}."
        words = dict[str, list[str]]()  # by text column, those that add most first
        for column in found.columns.shared(_WORDS, structural=False):
            text, _, word = column.name.rpartition(": ")
            if text and word.replace("_", "").isalnum():
                words.setdefault(text, []).append(word)
        for text, listed in words.items():
            few = _listed(listed[:_COLUMNS_IN_WORDS])
            yield f"Words in {text} that they, or nodes around them, share: {few}."
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
        return "They are far apart, by more than 6 links or not connected, and share no surroundings."
    where = "They are linked" if apart == 1 else f"They are {apart} links apart"
    if common:
        names = ", ".join(found.relation.common_names) + ", ..." * (common > len(found.relation.common_names))
        where += f", with {plural(common, 'neighbour')} in common ({names})"
    if found.overlap < 0.005:
        return f"{where}, and share hardly any surroundings."
    return f"{where}, and share {percent(found.overlap)} of their surroundings."


def _role(found: Explanation) -> str:
    a, b = found.a, found.b
    if a.degree == b.degree:
        ties = f"both have {plural(a.degree, 'neighbour')}"
    else:
        ties = f"{titled(a.name)} has {plural(a.degree, 'neighbour')}, {titled(b.name)} has {b.degree:,}"
    if min(a.degree, b.degree) > 1:
        shares = " and ".join(dict.fromkeys(percent(node.clustering) for node in (a, b)))
        ties += f"; {shares} of the pairs of neighbours are linked"
    if max(a.degree, b.degree) > 0:
        ties += f"; within 3 links are {a.hops[-1]:,} and {b.hops[-1]:,} nodes"
    difference = found.profile_difference
    by = percent(difference) if difference < 1 else f"a factor of {1 + difference:.1f}"
    profile = "are the same" if difference < 1e-5 else f"differ by {by} per value"
    # Without a role part, the similarity of the profiles decides.
    nearness = next((part.cosine for part in found.parts if part.name == ROLE), 1 - 2 * difference)
    how = next((word for least, word in _SAME_ROLE if nearness >= least), "play different roles")
    return f"They {how}: {ties}. Their profiles {profile}."


def _titles(columns: Sequence[Column]) -> str:
    titles = [column_title(column.name) for column in columns]
    return "; ".join(titles) if any("," in title for title in titles) else _listed(titles)


def plural(number: int, noun: str) -> str:
    """Return a number and its noun: 1 node, 2 nodes."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
