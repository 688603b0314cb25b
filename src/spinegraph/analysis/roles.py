"""Roles: soft groups of nodes with similar positions in their networks.

Four numbers describe a node: its degree, what share of its neighbours know each other, its degree relative to
theirs, and how many communities they belong to. A Gaussian mixture over these numbers gives the roles. The
numbers mean the same in every network, so roles found in one can be assigned in another. Clusters of the role
part of vectors agree less with planted roles (ARI .5; here .9, and .7 without communities).
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import entr, logsumexp, softmax

from spinegraph.analysis.explain import percent, plural, shown
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ModelFormatError, ParameterError, UnknownNodeError
from spinegraph.graph.describe import TableResult, data_frame
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.names import MAX_COMPARED, suggestion
from spinegraph.graph.overlay import Overlay
from spinegraph.kernels.runtime import one_blas_thread
from spinegraph.parts.paper import AnyGenerator
from spinegraph.structure.columns import structural_columns

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

# Measures of a node: log(1 + degree), share of pairs of neighbours that are linked, neighbours' mean
# log(1 + degree), communities they belong to, and the same with one more neighbour in the largest community.
DEGREE, CLUSTERING, NEIGHBOR_DEGREE, SPAN, SMOOTHED_SPAN = range(5)
_STRUCTURAL = ("log_degree", "clustering", "neighbor_log_degree_mean")
# Coordinates computed from the measures; roles are groups in this space.
NEIGHBORS, ACQUAINTED, PROMINENCE, COMMUNITIES = range(4)
COORDINATES = ("neighbors", "acquainted", "prominence", "communities")
_MIN_SCALES = (0.25, 0.08, 0.25, 0.25)  # smaller standard deviations are taken for noise
_PRIOR_PAIRS = 6  # pairs of neighbours that the network's mean clustering counts as

MAX_ROLES = 12  # each has a title and a colour of its own
MAX_TRIED = 6  # roles, if their number is not given
_WIDE = 0.5  # standard deviation of log(1 + degree) from which there are at least two roles
_UNUSUAL = 0.01  # share of the first network's nodes that count as unlike any role


@dataclass(frozen=True)
class Typical:
    """Typical numbers of a role, or of a whole network."""

    share: float  # of the nodes
    neighbors: int  # median
    neighbors_low: int  # the middle 80 % are between these two
    neighbors_high: int
    # Mean share of pairs of neighbours that know each other; None if no node has two neighbours.
    acquainted: float | None
    connected: float  # neighbours of a neighbour (geometric mean)
    communities: float | None  # mean number that neighbours belong to; None if communities are unknown

    @classmethod
    def of(cls, measures: Floats, weights: Floats) -> "Typical":
        """Average the measures (n, 3 or 5) of nodes, weighted by their membership in the role, (n,)."""
        degrees = np.rint(np.expm1(measures[:, DEGREE])).astype(np.int64)
        order = np.argsort(degrees, kind="stable")
        cumulative = np.cumsum(weights[order])
        at = np.searchsorted(cumulative, np.array([0.1, 0.5, 0.9]) * cumulative[-1])
        low, median, high = degrees[order[np.minimum(at, len(order) - 1)]].tolist()
        with_pairs, linked = weights * (degrees >= 2), weights * (degrees >= 1)
        acquainted = communities = None
        if with_pairs.sum() > 1e-9:
            acquainted = float(with_pairs @ measures[:, CLUSTERING] / with_pairs.sum())
        connected = linked @ measures[:, NEIGHBOR_DEGREE] / linked.sum() if linked.sum() > 1e-9 else 0.0
        if measures.shape[1] > SPAN:
            communities = float(linked @ measures[:, SPAN] / max(linked.sum(), 1e-9))
        share = float(weights.sum() / len(measures))
        return cls(share, median, low, high, acquainted, float(np.expm1(connected)), communities)


@dataclass(frozen=True, eq=False)
class RoleAssignment:
    """The roles of some nodes.

    Attributes
    ----------
    names : array (n,)
    memberships : float64 array (n, r)
        Probabilities; rows sum to 1.
    roles : int64 array (n,)
        The most likely role of each node.
    typicality : float64 array (n,)
        Log density of the node; the higher, the more typical.
    is_strange : bool array (n,)
        Whether the node is less typical than 99 % of those that the roles were found on.
    measures : float64 array (n, 3 or 5)
        The numbers that describe each node; see ``node_measures``.
    """

    names: NDArray[Any]
    memberships: Floats
    roles: NDArray[np.int64]
    typicality: Floats
    is_strange: NDArray[np.bool_]
    measures: Floats

    def examples(self, role: int, count: int = 3) -> list[Any]:
        """Return the names of the most typical nodes of a role, the clearest first."""
        members = np.flatnonzero(self.roles == role)
        certainty = np.minimum(self.memberships[members, role], 0.95)  # beyond that, typicality decides
        order = np.lexsort((-self.typicality[members].round(6), -certainty.round(6)))
        return list(self.names[members[order[:count]]].tolist())

    def shares(self) -> Floats:
        """Return the share of the nodes with each most likely role, (r,)."""
        counts = np.bincount(self.roles, minlength=self.memberships.shape[1])
        return np.asarray(counts / max(len(self.roles), 1))


@dataclass(frozen=True, eq=False)
class Roles:
    """Roles found in one network, with titles and descriptions; they can be assigned in any other.

    Attributes
    ----------
    titles, descriptions : list of str
        A short name, and what sets the role apart.
    typical : list of Typical
        Typical numbers of each role.
    scores : dict {number of roles: criterion}
        Integrated completed likelihood, lower is better; empty if the number was given.
    mixture : Mixture
        Over standardised coordinates.
    usual : float
        The network's mean clustering, towards which that of nodes with few neighbours is shrunk.
    mean, scale : float64 array (c,)
        Mean and scale of the coordinates.
    communities : Communities or None
        Regions of the content part; None if there are none or the model has no content.
    least_typical : float
        Log density below which a node fits no role.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> graph = made.barbell(10, bridge=5)
    >>> generator = SPINE(dim=8).fit(graph).generator_
    >>> roles = Roles.find(graph, generator)
    >>> roles.titles
    ['well connected', 'clique member', 'chain']
    >>> roles.assign(graph, generator, nodes=[0, 9, 12]).roles.tolist()
    [1, 0, 2]
    """

    titles: list[str]
    descriptions: list[str]
    typical: list[Typical]
    scores: dict[int, float]
    mixture: "Mixture"
    usual: float
    mean: Floats
    scale: Floats
    communities: "Communities | None"
    least_typical: float

    def __len__(self) -> int:
        return len(self.titles)

    @classmethod
    def find(
        cls,
        graph: GraphLike,
        generator: AnyGenerator,
        embeddings: Embeddings | None = None,
        *,
        count: int | None = None,
        seed: int = 0,
    ) -> "Roles":
        """Find the roles of a network.

        Communities are regions of the content part, so they need features. Outside the content, directions
        and weights of edges are ignored.

        Parameters
        ----------
        graph : Graph
        generator : Generator or PaperGenerator
        embeddings : Embeddings, optional
            The generator's vectors of all nodes, if already computed.
        count : int, optional
            Number of roles, 1 to 12; by default the smallest from 1 to 6 whose integrated completed
            likelihood (BIC plus twice the entropy of the memberships) is within 2 of the best. At least 2 if
            degrees vary widely.
        seed : int
        """
        if count is not None and (isinstance(count, bool | float) or count not in range(1, MAX_ROLES + 1)):
            raise ParameterError(f"count must be a whole number from 1 to {MAX_ROLES}; got {count!r}")
        content = _content(graph, generator, embeddings)
        communities = None if content is None else find_communities(neighbors_of(graph), content, seed)
        measures = node_measures(graph, generator, communities, None, content)
        several = measures[:, DEGREE] > np.log(2.5)  # two neighbours or more
        usual = float(measures[several, CLUSTERING].mean()) if several.any() else 0.0
        rows = coordinates(measures, usual)
        linked = measures[:, DEGREE] > 0
        # Isolated nodes have a role of their own: a few of them would otherwise hide what sets others apart.
        others = int(linked.any() and not linked.all() and count != 1)
        some = rows[linked] if others else rows
        mean, scale = some.mean(axis=0), np.maximum(some.std(axis=0), _MIN_SCALES[: rows.shape[1]])
        points = (rows - mean) / scale
        unique, counts = distinct(points[linked] if others else points)
        scores: dict[int, float] = {}
        if count is None:
            is_wide = bool(some[:, NEIGHBORS].std() >= _WIDE)
            mixture, tried = choose_mixture(unique, counts, seed, least=2 if is_wide else 1)
            scores = {number + others: score for number, score in tried.items()}
        elif count <= len(unique) + others:
            mixture = fit_mixture(unique, counts, count - others, seed)
        else:
            most = len(unique) + others
            raise ParameterError(f"count must be at most {most}, the distinct positions; got {count}")
        if others:
            mixture = mixture.beside(points[~linked], float(1 - linked.mean()))
        order = np.lexsort((mixture.means[:, 1], -mixture.means[:, 0]))  # largest degree first
        mixture = Mixture(mixture.shares[order], mixture.means[order], mixture.variances[order])
        memberships = mixture.memberships(points)
        typical = [Typical.of(measures, weights) for weights in memberships.T]
        # Roles are compared with the rest of the linked nodes, isolated nodes with all.
        among = [linked | (not others or role.neighbors_high == 0) for role in typical]
        pairs = [(nodes, weights[nodes]) for nodes, weights in zip(among, memberships.T, strict=True)]
        contrasts = np.array([_contrast(points[nodes], weights) for nodes, weights in pairs])
        rest = [Typical.of(measures[nodes], 1 - weights) for nodes, weights in pairs]
        words = [describe(*each) for each in zip(typical, rest, contrasts, strict=True)]
        found = choose_titles(contrasts, typical), words, typical, scores, mixture, usual, mean, scale
        return cls(*found, communities, float(np.quantile(mixture.log_density(points), _UNUSUAL)))

    def assign(
        self,
        graph: GraphLike,
        generator: AnyGenerator,
        nodes: Iterable[Any] | None = None,
        *,
        embeddings: Embeddings | None = None,
    ) -> RoleAssignment:
        """Assign these roles to nodes of any network.

        Parameters
        ----------
        graph : Graph or Overlay
        generator : Generator or PaperGenerator
            The one that the roles were found with.
        nodes : iterable of names, optional
            Only these; reads no more than lies within two steps of them.
        embeddings : Embeddings, optional
            The generator's vectors of all nodes, if already computed.
        """
        known, part = self.communities, generator.parts.get("content", slice(0, 0))
        if known is not None and known.centers.shape[1] != part.stop - part.start:
            raise ParameterError("the roles were found with another model; find them again with this model")
        positions = None if nodes is None else graph.positions(nodes)
        if nodes is None and isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            positions = graph.remaining  # without removed nodes
        content = None if embeddings is None else _content(graph, generator, embeddings)
        measures = node_measures(graph, generator, known, positions, content)
        points = (coordinates(measures, self.usual) - self.mean) / self.scale
        memberships, density = self.mixture.memberships(points), self.mixture.log_density(points)
        names = graph.names if positions is None else graph.names[positions]
        is_strange = density < self.least_typical - 1e-9
        return RoleAssignment(names, memberships, memberships.argmax(axis=1), density, is_strange, measures)

    def to_json(self) -> dict[str, Any]:
        """Return the roles as plain values; ``from_json`` reads them."""
        return {
            **{name: getattr(self, name) for name in ("titles", "descriptions", "usual", "least_typical")},
            "typical": [asdict(each) for each in self.typical],
            "scores": {str(count): score for count, score in self.scores.items()},
            "mixture": {name: array.tolist() for name, array in vars(self.mixture).items()},
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "communities": self.communities
            and {name: array.tolist() for name, array in vars(self.communities).items()},
        }

    @classmethod
    def from_json(cls, meta: Any) -> "Roles":
        """Read what ``to_json`` returned.

        Examples
        --------
        >>> Roles.from_json({"titles": []})
        Traceback (most recent call last):
        spinegraph.errors.ModelFormatError: roles: KeyError('descriptions') in the description of roles
        """
        try:
            titles, descriptions = list(map(str, meta["titles"])), list(map(str, meta["descriptions"]))
            typical = [Typical(**each) for each in meta["typical"]][: len(titles)]  # older files add all
            given = dict(meta["mixture"])
            variances = _numbers(given.pop("variances"), 1 / _MAX_VALUE)
            scale = _numbers(meta["scale"], 1 / _MAX_VALUE)
            mixture = Mixture(**{name: _numbers(some) for name, some in given.items()}, variances=variances)
            mean, known = _numbers(meta["mean"]), meta["communities"]
            scores = {int(count): float(score) for count, score in meta["scores"].items()}
            if mixture.means.shape != (len(titles), len(mean)) or len(typical) != len(titles):
                raise ValueError(f"{len(titles)} titles, {mixture.means.shape} means")
            communities = known and Communities(_numbers(known["centers"]), np.array(known["member_of"], int))
            usual, least = float(meta["usual"]), float(meta["least_typical"])
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise ModelFormatError(f"roles: {fault!r:.80} in the description of roles") from fault
        found = titles, descriptions, typical, scores, mixture, usual, mean, scale
        return cls(*found, communities, least)


_MAX_VALUE = 1e30  # larger numbers in a file would overflow when squared or divided


def _numbers(values: Any, least: float = -_MAX_VALUE) -> Floats:
    array = np.array(values, dtype=np.float64)
    if not ((array >= least) & (array <= _MAX_VALUE)).all():
        raise ValueError(f"a number is not from {least:g} to {_MAX_VALUE:g}")
    return array


def _content(graph: GraphLike, generator: AnyGenerator, embeddings: Embeddings | None) -> Vectors | None:
    """Return the content part (n, d) of all nodes, or None if the model has none."""
    if "content" not in generator.parts:
        return None
    columns = generator.parts["content"]
    if embeddings is None:
        return generator.embed(graph)[:, columns]
    if embeddings.dim != generator.dim or not np.array_equal(embeddings.names, graph.names):
        raise ParameterError(f"embeddings must have all nodes in order, in {generator.dim} dimensions")
    return embeddings.vectors[:, columns]


def _contrast(points: Floats, weights: Floats) -> Floats:
    """Return by how many standard deviations members are above the rest in each coordinate, (c,)."""
    rest = 1 - weights
    if rest.sum() < 1e-9:
        return np.zeros(points.shape[1])
    return np.asarray(weights @ points / max(weights.sum(), 1e-12) - rest @ points / rest.sum())


_EXAMPLES = 3
_SURE = 0.8  # membership from which a node clearly belongs to one role


@dataclass(frozen=True, eq=False, repr=False)
class NodeRoles(TableResult):
    """The roles of a network's nodes; prints as a table of roles, and ``to_pandas`` lists every node.

    Attributes
    ----------
    is_simplified : bool
        Whether the network has directions or weights, which its neighbours are counted without.
    roles : Roles
        Titles and descriptions, found in the training network.
    assigned : RoleAssignment
        Which node plays which role, with probabilities.
    shares_at_home : float64 array (r,) or None
        Shares of the roles in the training network, if this is another network.
    """

    edges: int
    is_simplified: bool
    roles: Roles
    assigned: RoleAssignment
    shares_at_home: Floats | None = None

    def __len__(self) -> int:
        return len(self.assigned.names)

    @property
    def counts(self) -> list[int]:
        """Number of nodes in each role."""
        return list(np.bincount(self.assigned.roles, minlength=len(self.roles)).tolist())

    @property
    def typical(self) -> list[Typical]:
        """Typical numbers of each role in this network, and then of all its nodes."""
        weights = [*self.assigned.memberships.T, np.ones(len(self))]
        return [Typical.of(self.assigned.measures, each) for each in weights]

    @property
    def sure(self) -> float:
        """Share of nodes whose membership in one role is 80 % or more."""
        return float((self.assigned.memberships.max(axis=1) >= _SURE).mean())

    def __getitem__(self, node: Any) -> str:
        """Return the title of a node's most likely role."""
        found = np.flatnonzero(self.assigned.names == node)
        if len(found) != 1:
            hint = suggestion(str(node), self.assigned.names[:MAX_COMPARED].tolist())
            raise UnknownNodeError(f"no node {node!r}; {hint}")
        return self.roles.titles[int(self.assigned.roles[found[0]])]

    def table(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]], str]:
        """Return heading, titles, rows and notes of the printed table."""
        found, home, shares = self.roles, self.shares_at_home, self.assigned.shares()
        has_communities, is_away = found.communities is not None, home is not None
        at_home, rows = shares if home is None else home, list[tuple[str, ...]]()
        named = [*zip(found.titles, self.counts, shares, at_home, strict=True), ("all", len(self), 1, 1)]
        for (title, count, share, share_at_home), typical in zip(named, self.typical, strict=True):
            low, high = typical.neighbors_low, typical.neighbors_high
            spread = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            row = [title, f"{count:,}", percent(share), *[percent(share_at_home)] * is_away]
            typically = [f"{typical.neighbors:,} ({spread})"]
            typically += ["-" if typical.acquainted is None else f"{100 * typical.acquainted:.0f} %"]
            typically += [f"{typical.communities or 0:.1f}"] * has_communities
            rows.append((*row, *(typically if count else ["-"] * len(typically))))
        heading = f"{plural(len(found), 'role')} of {plural(len(self), 'node')}"
        titles = ("role", "nodes", "share", *["in training"] * is_away, "neighbours", "know each other")
        return heading, (*titles, *["communities"] * has_communities), rows, "\n".join(self._notes())

    def _notes(self) -> Iterator[str]:
        scores, count = self.roles.scores, len(self.roles)
        for role, (title, words) in enumerate(zip(self.roles.titles, self.roles.descriptions, strict=True)):
            like = ", ".join(map(shown, self.assigned.examples(role, _EXAMPLES)))
            yield f"{title}: {words}{f'; such as {like}' * bool(like)}"
        yield "Neighbours: the median, and the middle 80 %; they know each other if an edge joins them."
        if self.is_simplified:
            yield "Neighbours count the same, whatever the directions and weights of their edges."
        if self.roles.communities is not None:
            yield f"Communities: {len(self.roles.communities)} groups of nodes with similar content."
        if count > 1:
            yield f"Roles are soft: {percent(self.sure)} of the nodes belong to one role by 80 % or more."
        if len(scores) > 1:
            most = "; more are not tried" if count == max(scores) else ""
            yield f"From {min(scores)} to {max(scores)} roles, {count} fit the nodes best{most}."
        if self.shares_at_home is not None:
            strange = percent(float(self.assigned.is_strange.mean()))
            yield f"{strange} of these nodes fit no role; in the training network it was 1 %."
            yield "The numbers in the table are of these nodes, the descriptions of the training network."

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of every node's role and its memberships."""
        titles = np.array(self.roles.titles, dtype=object)
        shares = dict(zip(self.roles.titles, self.assigned.memberships.T, strict=True))
        return data_frame({"role": titles[self.assigned.roles], **shares}, self.assigned.names)

    def to_json(self) -> dict[str, Any]:
        """Return the printed content as plain values."""
        columns = {"title": self.roles.titles, "description": self.roles.descriptions, "nodes": self.counts}
        columns |= {"share": self.assigned.shares().tolist()}
        columns |= {} if self.shares_at_home is None else {"share_at_home": self.shares_at_home.tolist()}
        columns |= {"typical": [asdict(typical) for typical in self.typical[:-1]]}
        columns |= {"examples": [self.assigned.examples(role, _EXAMPLES) for role in range(len(self.roles))]}
        listed = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        found = {"nodes": len(self), "edges": self.edges, "roles": listed, "sure": self.sure}
        criterion = {str(number): score for number, score in self.roles.scores.items()}
        unlike = float(self.assigned.is_strange.mean())
        return {**found, "unlike_every_role": unlike, "criterion": criterion}


def find_roles(
    graph: Graph,
    generator: AnyGenerator,
    embeddings: Embeddings,
    other: Graph | None = None,
    other_embeddings: Embeddings | None = None,
    *,
    count: int | None = None,
    seed: int = 0,
) -> NodeRoles:
    """Find the roles of a network and assign them to its nodes, or to those of another network."""
    roles = Roles.find(graph, generator, embeddings, count=count, seed=seed)
    assigned = roles.assign(graph, generator, embeddings=embeddings)
    here, found, home = graph, assigned, None
    if other is not None:
        here, found = other, roles.assign(other, generator, embeddings=other_embeddings)
        home = assigned.shares()
    return NodeRoles(here.num_edges, here.directed or here.weights is not None, roles, found, home)


def node_measures(
    graph: GraphLike,
    generator: AnyGenerator,
    communities: "Communities | None",
    positions: NDArray[np.int64] | None = None,
    content: Vectors | None = None,
) -> Floats:
    """Return the measures of some nodes (r, 5), or (r, 3) without communities.

    Communities are counted by Simpson's number, 1 / sum of squared shares: a stray neighbour counts little.
    Only what lies within two steps of ``positions`` (r,) is read; ``content`` (n, d) of all nodes saves time.
    """
    columns = structural_columns(graph, positions, names=_STRUCTURAL, threads=generator.config.threads).values
    if communities is None:
        return columns.astype(np.float64)
    links = neighbors_of(graph, positions)
    seen = np.unique(links.indices).astype(np.int64)
    around = neighbors_of(graph, seen)
    if content is None and positions is None:
        content = _content(graph, generator, None)
    if content is None:
        needed = np.union1d(seen, around.indices).astype(np.int64)
        content = generator.embed_some(graph, needed)[:, generator.parts["content"]]
        own = content[np.searchsorted(needed, seen)]
        columns_of = np.searchsorted(needed, around.indices)
        around = csr_array((around.data, columns_of, around.indptr), shape=(len(seen), len(needed)))
    else:
        own = content[seen]
    member_of = np.full(links.shape[1], -1, dtype=np.int64)
    member_of[seen] = communities.nearest(gather(own, around, content))
    rows, ends = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr)), member_of[links.indices]
    cells, shape = (rows * len(communities) + ends)[ends >= 0], (links.shape[0], len(communities))
    table = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    squares, totals = np.square(table).sum(axis=1), table.sum(axis=1)
    smoothed = np.square(totals + 1) / (squares + 2 * table.max(axis=1) + 1)
    return np.column_stack([columns, np.square(totals) / np.maximum(squares, 1), smoothed])


def neighbors_of(graph: GraphLike, positions: NDArray[np.int64] | None = None) -> csr_array:
    """Return the neighbours of some nodes, or of all, as a 0/1 matrix (r, n)."""
    adjacency = graph.adjacency()
    indptr, indices = adjacency.neighbors(np.arange(len(graph)) if positions is None else positions)
    ones = np.ones(len(indices), dtype=np.float32)
    return csr_array((ones, indices, indptr), shape=(len(indptr) - 1, adjacency.num_nodes))


def coordinates(measures: Floats, usual: float) -> Floats:
    """Return the coordinates (n, 4) of measures (n, 5), or (n, 3) of (n, 3) without communities.

    Log degree; clustering, shrunk towards ``usual`` for few neighbours, since one link between two neighbours
    is no clique; log ratio of the node's degree to its neighbours'; communities.
    """
    degrees = np.expm1(measures[:, DEGREE])
    pairs = degrees * (degrees - 1) / 2
    acquainted = (pairs * measures[:, CLUSTERING] + _PRIOR_PAIRS * usual) / (pairs + _PRIOR_PAIRS)
    prominence = measures[:, DEGREE] - measures[:, NEIGHBOR_DEGREE]
    return np.column_stack([measures[:, DEGREE], acquainted, prominence, measures[:, SMOOTHED_SPAN:]])


_REGIONS, _POINTS_PER_REGION = 64, 5
_MAX_SAMPLE, _MAX_ROUNDS = 4_000, 15


@dataclass(frozen=True, eq=False)
class Communities:
    """Regions of the content part, each around one or several centres."""

    centers: Floats  # (k, d), unit vectors
    member_of: NDArray[np.int64]  # (k,), the community of each centre, 0, 1, ...

    def __len__(self) -> int:
        return int(self.member_of.max()) + 1

    def nearest(self, gathered: Floats) -> NDArray[np.int64]:
        """Return the community of each row's direction, (n,); -1 for a row of zeros."""
        nearest = self.member_of[(gathered @ self.centers.T).argmax(axis=1)]
        return np.where(np.any(gathered, axis=1), nearest, -1)


def gather(own: NDArray[Any], links: csr_array, vectors: NDArray[Any]) -> Floats:
    """Return each node's direction plus the mean direction of its neighbours, (r, d).

    A neighbourhood shows the community of a node more reliably than the node itself. ``links`` (r, n) is 0/1.
    """
    degrees = np.maximum(np.diff(links.indptr), 1)[:, None]
    return np.asarray(_unit(own) + (links @ _unit(vectors)) / degrees)


def find_communities(links: csr_array, vectors: Vectors, seed: int = 0) -> Communities | None:
    """Find communities: spherical k-means regions of vectors (n, d), merged greedily while modularity grows.

    Returns None if all regions are merged into one.
    """
    with one_blas_thread():
        gathered = gather(vectors, links, vectors)
        # Sorted along a fixed direction first, so that the result does not depend on the order of nodes.
        along = gathered @ np.random.default_rng(0).standard_normal(vectors.shape[1])
        order = np.argsort(along, kind="stable")
        sample = order[np.linspace(0, len(order) - 1, min(len(order), _MAX_SAMPLE)).astype(np.int64)]
        points = _unit(gathered[sample])
        points = points[np.any(points, axis=1)]
        count = min(_REGIONS, len(points) // _POINTS_PER_REGION)
        if count < 2:
            return None
        tried = [_spherical_means(points, count, np.random.default_rng([seed, count, n])) for n in (0, 1)]
        centers = max(tried, key=lambda centers: float((points @ centers.T).max(axis=1).sum()))
        apart = Communities(centers, np.arange(count))
        joined = join(link_shares(links, apart.nearest(gathered), count))
    return Communities(centers, joined) if joined.max() > 0 else None


def link_shares(links: csr_array, member_of: NDArray[np.int64], count: int) -> Floats:
    """Return the shares of links between communities, (count, count); nodes of community -1 are ignored."""
    ends = np.repeat(member_of, np.diff(links.indptr)), member_of[links.indices]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    cells = ends[0][known] * count + ends[1][known]
    table = np.bincount(cells, minlength=count**2).reshape(count, count)
    return np.asarray(table / max(table.sum(), 1))


def join(shares: Floats) -> NDArray[np.int64]:
    """Merge the two communities that gain most modularity until none gain; return the new ones, (count,)."""
    shares = shares.copy()
    member_of, alive = np.arange(len(shares)), np.ones(len(shares), dtype=bool)
    while alive.sum() > 1:
        ends = shares.sum(axis=1)
        gains = 2 * (shares - np.outer(ends, ends))
        gains[~alive] = gains[:, ~alive] = -np.inf
        np.fill_diagonal(gains, -np.inf)
        one, other = np.unravel_index(gains.argmax(), gains.shape)
        if gains[one, other] <= 1e-12:
            break
        shares[one] += shares[other]
        shares[:, one] += shares[:, other]
        shares[other] = shares[:, other] = 0
        member_of[member_of == other] = one
        alive[other] = False
    return np.unique(member_of, return_inverse=True)[1].astype(np.int64)


def _spherical_means(points: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return the centres (count, d) of spherical k-means of unit vectors, from a k-means++ start."""
    centers = points[[rng.integers(len(points))]]
    distances = 1 - points @ centers[0]
    while len(centers) < count:
        chances = np.maximum(distances, 1e-12)
        centers = np.vstack([centers, points[rng.choice(len(points), p=chances / chances.sum())]])
        distances = np.minimum(distances, 1 - points @ centers[-1])
    columns, ones = np.arange(len(points)), np.ones(len(points))
    for _ in range(_MAX_ROUNDS):
        nearest = (points @ centers.T).argmax(axis=1)
        sums = csr_array((ones, (nearest, columns)), shape=(count, len(points))) @ points
        moved = np.where(np.any(sums, axis=1)[:, None], _unit(sums), centers)
        if np.allclose(moved, centers, atol=1e-6):
            break
        centers = moved
    return centers


def _unit(vectors: NDArray[Any]) -> Floats:
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12))


# scikit-learn's GaussianMixture takes no counts of equal rows and keeps the start of highest likelihood: with
# twelve starts it takes four times as long on Cora for a criterion of 27,193 (here 26,816; lower is better).
_VARIANCE_FLOOR = 0.15  # coordinates are counts and shares: no group is narrower than 0.4 deviations
_NARROW = 0.01  # variance of the group of isolated nodes, which are all alike
_STARTS, _SHORT_RUN, _LONG_RUN, _TOLERANCE = 12, 60, 300, 1e-7
_EQUALLY_GOOD = 2.0  # difference of the criterion up to which fewer groups are preferred
_MAX_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of Gaussians with diagonal covariances."""

    shares: Floats  # (g,), sum to 1
    means: Floats  # (g, c)
    variances: Floats  # (g, c)

    def beside(self, rows: Floats, share: float) -> "Mixture":
        """Return the mixture with one more narrow group around some rows, which have a share of all."""
        means, variances = rows.mean(axis=0), np.full(rows.shape[1], _NARROW)
        shares = np.append((1 - share) * self.shares, share)
        return Mixture(shares, np.vstack([self.means, means]), np.vstack([self.variances, variances]))

    def log_joint(self, rows: Floats) -> Floats:
        """Return log(share times density) of every row in every group, (n, g)."""
        precisions = 1 / self.variances
        distances = np.square(rows) @ precisions.T - 2 * rows @ (self.means * precisions).T
        distances += (np.square(self.means) * precisions).sum(axis=1)
        sizes = np.log(2 * np.pi * self.variances).sum(axis=1)
        return np.asarray(np.log(self.shares) - 0.5 * (distances + sizes))

    def log_density(self, rows: Floats) -> Floats:
        """Return the log density of every row, (n,)."""
        return np.asarray(logsumexp(self.log_joint(rows), axis=1))

    def memberships(self, rows: Floats) -> Floats:
        """Return the probability of every group given a row, (n, g); rows sum to 1."""
        return np.asarray(softmax(self.log_joint(rows), axis=1))


def distinct(rows: Floats) -> tuple[Floats, Floats]:
    """Return the distinct rows, sorted so that node order does not matter, and how often each occurs.

    Of more than 4,000 rows, 4,000 are taken at equal distances in sorted order.
    """
    rows = rows.round(6)
    if len(rows) > _MAX_ROWS:
        rows = rows[np.lexsort(rows.T[::-1])][np.linspace(0, len(rows) - 1, _MAX_ROWS).astype(np.int64)]
    found, counts = np.unique(rows, axis=0, return_counts=True)
    return found, counts.astype(np.float64)


def choose_mixture(
    rows: Floats, counts: Floats, seed: int = 0, *, least: int = 1
) -> tuple[Mixture, dict[int, float]]:
    """Fit ``least`` to 6 groups to distinct rows; keep the smallest number within 2 of the best criterion.

    Also returns the criterion by number. An extra group must explain the rows better *and* be separate.
    """
    numbers = range(min(least, len(rows)), min(MAX_TRIED, len(rows)) + 1)
    tried = {n: fit_mixture(rows, counts, n, seed) for n in numbers}
    scores = {n: completed_likelihood(mixture, rows, counts) for n, mixture in tried.items()}
    enough = min(scores.values()) + _EQUALLY_GOOD
    return next(mixture for n, mixture in tried.items() if scores[n] <= enough), scores


def fit_mixture(rows: Floats, counts: Floats, groups: int, seed: int = 0) -> Mixture:
    """Fit a number of groups by expectation maximisation, from the start of best completed likelihood.

    Choosing by likelihood alone would favour the most peaked groups.
    """
    starts = (_start(rows, counts, groups, seed, n) for n in range(_STARTS if groups > 1 else 1))
    tried = [_expectation_maximisation(rows, counts, start, _SHORT_RUN) for start in starts]
    best = min(tried, key=lambda mixture: completed_likelihood(mixture, rows, counts))
    return _expectation_maximisation(rows, counts, best, _LONG_RUN)


def completed_likelihood(mixture: Mixture, rows: Floats, counts: Floats) -> float:
    """Return BIC plus twice the entropy of the memberships; lower is better."""
    groups, columns = mixture.means.shape
    likelihood = counts @ mixture.log_density(rows)
    entropy = counts @ entr(mixture.memberships(rows)).sum(axis=1)
    parameters = groups - 1 + 2 * groups * columns
    return float(-2 * likelihood + parameters * np.log(counts.sum()) + 2 * entropy)


def _start(rows: Floats, counts: Floats, groups: int, seed: int, number: int) -> Mixture:
    """Draw means far from each other (k-means++)."""
    rng = np.random.default_rng([seed, groups, number])
    means = rows[[rng.choice(len(rows), p=counts / counts.sum())]]
    while len(means) < groups:
        distances = np.square(rows[:, None] - means).sum(axis=2).min(axis=1) * counts
        means = np.vstack([means, rows[rng.choice(len(rows), p=distances / distances.sum())]])
    return Mixture(np.full(groups, 1 / groups), means, np.ones(means.shape))


def _expectation_maximisation(rows: Floats, counts: Floats, mixture: Mixture, max_steps: int) -> Mixture:
    squares, total, before = np.square(rows), counts.sum(), -np.inf
    for _ in range(max_steps):
        joint = mixture.log_joint(rows)
        largest = joint.max(axis=1)
        parts = np.exp(joint - largest[:, None])  # (m, g)
        density = parts.sum(axis=1)
        likelihood = float(counts @ (np.log(density) + largest)) / total
        if abs(likelihood - before) < _TOLERANCE:
            break
        before = likelihood
        parts *= (counts / density)[:, None]
        sizes = np.maximum(parts.sum(axis=0), 1e-9)
        means = (parts.T @ rows) / sizes[:, None]
        variances = np.maximum((parts.T @ squares) / sizes[:, None] - np.square(means), 0) + _VARIANCE_FLOOR
        mixture = Mixture(sizes / sizes.sum(), means, variances)
    return mixture


_ORDINARY = 0.5  # share of the nodes from which a role is the ordinary one
# Title -> its pattern in deviations from the rest of the network (in the order of COORDINATES), and the rules
# that a role must satisfy: on its typical numbers, on "ratio" (the neighbours' degree over its own), on
# "more_..." (its deviations) and on "unusual" (how far its degrees deviate; 0 if most nodes have this role).
_TITLES: dict[str, tuple[tuple[float, float, float, float], str]] = {
    "hub": ((2.0, -0.6, 2.0, 0.3), "more_neighbors > 0.5, ratio < 1, share < 0.4"),
    "bridge": ((0.3, -0.8, 0.2, 2.2), "more_communities > 0.5, communities > 1.3"),
    "broker": ((0.6, -1.2, 0.6, 0.8), "more_acquainted < -0.3, acquainted < 0.25, neighbors > 2"),
    "clique member": ((0.3, 1.6, 0.0, -0.4), "more_acquainted > 0.3, acquainted > 0.4, neighbors > 2"),
    "small circle": ((-0.6, 1.5, -0.6, -0.5), "more_acquainted > 0.3, acquainted > 0.5, more_neighbors < 0"),
    "core member": ((0.9, 0.5, 0.5, 0.0), "more_neighbors > 0.25, acquainted > 0.2, share < 0.4"),
    "member": ((0.4, 0.2, 0.1, -0.4), "unusual < 0.5"),
    "well connected": ((1.2, 0.0, 0.8, 0.2), "more_neighbors > 0.5, share < 0.5"),
    "satellite": ((-1.0, -0.3, -2.0, -0.4), "more_neighbors < -0.25, ratio > 4"),
    "periphery": ((-1.6, -0.3, -1.4, -0.5), "more_neighbors < -0.25"),
    "chain": ((-1.2, -1.6, -0.4, -0.2), "neighbors < 4, connected < 4.5, acquainted < 0.1"),
    "go-between": ((-0.4, -0.8, -0.4, 0.5), "neighbors > 1, neighbors < 5, acquainted < 0.2"),
    "outer member": ((-0.4, 0.0, -0.5, 0.0), "more_neighbors < 0"),
}


def choose_titles(contrasts: Floats, typical: list[Typical]) -> list[str]:
    """Give every role a different title: of those whose rules it satisfies, the one with the nearest pattern.

    ``contrasts`` (g, c) are the deviations of a role's coordinates from the rest's.
    """
    from scipy.optimize import linear_sum_assignment

    if len(contrasts) == 1:
        return ["isolated" if typical[0].neighbors_high == 0 else "member"]
    patterns = np.array([pattern[: contrasts.shape[1]] for pattern, _ in _TITLES.values()])
    costs = np.square(np.clip(contrasts, -3, 3)[:, None] - patterns).sum(axis=2)  # (g, titles)
    holds = np.array([_titles_that_hold(role, row) for role, row in zip(typical, contrasts, strict=True)])
    is_isolated = np.array([role.neighbors_high == 0 for role in typical])
    costs = np.where(holds, costs, costs + 1e3) * ~is_isolated[:, None]  # they take no title from others
    _, chosen = linear_sum_assignment(costs)
    names = list(_TITLES)
    return [
        "isolated" if role.neighbors_high == 0 else names[title] if fits[title] else f"role {number}"
        for number, (role, title, fits) in enumerate(zip(typical, chosen, holds, strict=True), start=1)
    ]


def _titles_that_hold(role: Typical, contrast: Floats) -> list[bool]:
    values = {name: value or 0.0 for name, value in asdict(role).items()}
    values["ratio"] = role.connected / max(role.neighbors, 1e-9)
    values |= {f"more_{name}": value for name, value in zip(COORDINATES, contrast.tolist(), strict=False)}
    values["unusual"] = 0.0 if role.share >= _ORDINARY else abs(values["more_neighbors"])

    def is_kept(rule: str) -> bool:
        name, sign, bound = rule.split()
        value, limit = values.get(name, 0.0), float(bound)
        return value > limit if sign == ">" else value < limit

    return [all(map(is_kept, rules.split(", "))) for _, rules in _TITLES.values()]


_NOTABLE = 0.5  # deviations from the rest that a description mentions
_MANY = 1.5  # times as many neighbours as elsewhere
_ACQUAINTED_WORDS = (  # up to this share, and beyond the last
    (0.1, "that hardly know each other"),
    (0.25, "of which few know each other"),
    (0.55, "of which some know each other"),
    (np.inf, "that mostly know each other"),
)


def describe(role: Typical, rest: Typical, contrast: Floats) -> str:
    """Return a sentence on what sets a role apart from the rest of the network, given its contrast (c,)."""
    if role.neighbors_high == 0:
        return "no neighbours at all"

    def elsewhere(value: object, coordinate: int, form: str = " ({})") -> str:
        return form.format(f"elsewhere {value}") if abs(contrast[coordinate]) >= _NOTABLE else ""

    is_single, more = role.neighbors == role.neighbors_high == 1, contrast[NEIGHBORS]
    if is_single or role.neighbors == 0:
        text = "a single neighbour" if is_single else "hardly any neighbours"
        text += elsewhere(rest.neighbors, NEIGHBORS)
    else:
        some = "a usual number of"
        if abs(more) >= _NOTABLE and role.neighbors != rest.neighbors and role.share < _ORDINARY:
            larger, smaller = sorted([role.neighbors, rest.neighbors], reverse=True)
            terms = ("many", "few") if larger >= _MANY * smaller else ("more", "fewer")
            some = terms[role.neighbors < rest.neighbors]
        beside = elsewhere(rest.neighbors, NEIGHBORS, "; {}") if role.neighbors != rest.neighbors else ""
        text = f"{some} neighbours (typically {role.neighbors}{beside})"
    if role.acquainted is not None and role.neighbors >= 2:
        words = next(words for most, words in _ACQUAINTED_WORDS if role.acquainted <= most)
        other = "-" if rest.acquainted is None else f"{100 * rest.acquainted:.0f} %"
        text += f" {words} ({100 * role.acquainted:.0f} %{elsewhere(other, ACQUAINTED, '; {}')})"
    if role.communities is not None and role.neighbors >= 2:
        spans = f"spans {role.communities:.1f} communities"
        text += f", {spans if role.communities >= 1.15 else 'all in one community'}"
        text += elsewhere(f"{rest.communities:.1f}", COMMUNITIES)
    if role.neighbors >= 1:
        if contrast[PROMINENCE] >= _NOTABLE and role.neighbors > round(role.connected):
            text += f"; the neighbours have fewer themselves (about {role.connected:.0f})"
        elif contrast[PROMINENCE] <= -_NOTABLE and role.neighbors < round(role.connected):
            who = "that neighbour has" if is_single else "the neighbours have"
            text += f"; {who} more (about {role.connected:.0f})"
    return text
