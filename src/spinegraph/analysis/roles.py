"""Roles: soft groups of nodes with the same position in their networks."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.atomic import JsonObject
from spinegraph.embeddings import Embeddings
from spinegraph.errors import ModelFormatError, ParameterError
from spinegraph.generator import Generator
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.overlay import Overlay
from spinegraph.structure.columns import structural_columns

Rows = NDArray[np.float64]

# Added to every variance: values are counts and shares, so no group is narrower than 0.4 deviations.
BLUR = 0.15
MOST = 6  # groups that are tried; more than that nobody keeps in mind
_STARTS, _SHORT, _LONG, _STILL = 12, 60, 300, 1e-7
_NO_BETTER = 2.0  # of the criterion: then the smaller number will do
_ROWS = 4_000  # that a fit reads at most


@dataclass(frozen=True, eq=False)
class Mixture:
    """Groups with a share each, and columns that vary independently inside a group.

    Attributes
    ----------
    shares : float64 array (g,)
        Sum to 1.
    means, variances : float64 array (g, c)
    """

    shares: Rows
    means: Rows
    variances: Rows

    def __len__(self) -> int:
        return len(self.shares)

    def log_joint(self, rows: Rows) -> Rows:
        """Return log(share times density) of every row in every group, (n, g)."""
        precisions = 1 / self.variances
        distances = (
            np.square(rows) @ precisions.T
            - 2 * rows @ (self.means * precisions).T
            + (np.square(self.means) * precisions).sum(axis=1)
        )
        sizes = np.log(2 * np.pi * self.variances).sum(axis=1)
        joint: Rows = np.log(self.shares) - 0.5 * (distances + sizes)
        return joint

    def log_density(self, rows: Rows) -> NDArray[np.float64]:
        """Return the log density of every row, (n,)."""
        return _log_sum(self.log_joint(rows))

    def memberships(self, rows: Rows) -> Rows:
        """Return the probability of every group given a row, (n, g); rows sum to 1."""
        joint = self.log_joint(rows)
        found = np.exp(joint - joint.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def ordered(self, order: NDArray[np.int64]) -> "Mixture":
        """Return the same groups in another order."""
        return Mixture(self.shares[order], self.means[order], self.variances[order])


def distinct(rows: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return the different rows in sorted order and how often each occurs: node order leaves no trace.

    Of more than 4,000 rows, as many are taken at even distances of the sorted order.
    """
    rows = rows.round(6)
    if len(rows) > _ROWS:
        rows = rows[np.lexsort(rows.T[::-1])][np.linspace(0, len(rows) - 1, _ROWS).astype(np.int64)]
    found, counts = np.unique(rows, axis=0, return_counts=True)
    return found, counts.astype(np.float64)


def fit_mixture(rows: Rows, counts: NDArray[np.float64], groups: int, seed: int = 0) -> Mixture:
    """Fit so many groups by expectation maximisation, the best of twelve starts.

    The best has the best completed likelihood, not the highest likelihood: that would be the spikiest.

    Parameters
    ----------
    rows : float64 array (m, c)
        Different rows, as ``distinct`` gives them.
    counts : float64 array (m,)
        How often each occurs.
    groups, seed : int
    """
    starts = _STARTS if groups > 1 else 1
    drawn = (_start(rows, counts, groups, np.random.default_rng([seed, groups, n])) for n in range(starts))
    short = [_climb(rows, counts, start, _SHORT) for start in drawn]
    best = min(short, key=lambda mixture: completed_likelihood(mixture, rows, counts))
    return _climb(rows, counts, best, _LONG)


def choose_mixture(
    rows: Rows, counts: NDArray[np.float64], seed: int = 0
) -> tuple[Mixture, dict[int, float]]:
    """Fit 1 to 6 groups and keep the number whose integrated completed likelihood is best.

    Returns
    -------
    Mixture, {groups: criterion}
        The smallest number within 2 of the best. The criterion is BIC plus twice the entropy of the
        memberships, lower is better: a further group has to explain the rows better *and* be told apart.
    """
    tried = {groups: fit_mixture(rows, counts, groups, seed) for groups in range(1, min(MOST, len(rows)) + 1)}
    scores = {groups: completed_likelihood(mixture, rows, counts) for groups, mixture in tried.items()}
    enough = min(scores.values()) + _NO_BETTER
    return next(mixture for groups, mixture in tried.items() if scores[groups] <= enough), scores


def completed_likelihood(mixture: Mixture, rows: Rows, counts: NDArray[np.float64]) -> float:
    """Return BIC plus twice the entropy of the memberships; lower is better."""
    groups, columns = mixture.means.shape
    joint = mixture.log_joint(rows)
    likelihood = float(counts @ _log_sum(joint))
    memberships = mixture.memberships(rows)
    entropy = -float(counts @ (memberships * np.log(np.maximum(memberships, 1e-300))).sum(axis=1))
    free = groups - 1 + 2 * groups * columns
    return float(-2 * likelihood + free * np.log(counts.sum()) + 2 * entropy)


def _start(rows: Rows, counts: NDArray[np.float64], groups: int, rng: np.random.Generator) -> Mixture:
    """Draw means far from each other (k-means++)."""
    means = rows[[rng.choice(len(rows), p=counts / counts.sum())]]
    while len(means) < groups:
        distances = np.square(rows[:, None] - means).sum(axis=2).min(axis=1) * counts
        means = np.vstack([means, rows[rng.choice(len(rows), p=distances / distances.sum())]])
    return Mixture(np.full(groups, 1 / groups), means, np.ones(means.shape))


def _climb(rows: Rows, counts: NDArray[np.float64], mixture: Mixture, steps: int) -> Mixture:
    """Take steps of expectation maximisation until the likelihood stands still."""
    squares, total, before = np.square(rows), counts.sum(), -np.inf
    for _ in range(steps):
        joint = mixture.log_joint(rows)
        log_density = _log_sum(joint)
        likelihood = float(counts @ log_density) / total
        if abs(likelihood - before) < _STILL:
            break
        before = likelihood
        parts = np.exp(joint - log_density[:, None]) * counts[:, None]  # (m, g)
        sizes = np.maximum(parts.sum(axis=0), 1e-9)
        means = (parts.T @ rows) / sizes[:, None]
        variances = np.maximum((parts.T @ squares) / sizes[:, None] - np.square(means), 0) + BLUR
        mixture = Mixture(sizes / sizes.sum(), means, variances)
    return mixture


def _log_sum(joint: Rows) -> NDArray[np.float64]:
    largest = joint.max(axis=1)
    found: NDArray[np.float64] = largest + np.log(np.exp(joint - largest[:, None]).sum(axis=1))
    return found


Floats = NDArray[np.float64]

_CENTERS, _NODES_PER_CENTER = 64, 5
_SAMPLE, _COMMUNITY_STARTS, _ROUNDS = 4_000, 2, 15


@dataclass(frozen=True, eq=False)
class Communities:
    """Regions of the vectors, each around one or several centres.

    Attributes
    ----------
    centers : float64 array (k, d)
        Unit vectors.
    member_of : int64 array (k,)
        The community of each centre, from 0 on.
    """

    centers: Floats
    member_of: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.member_of.max()) + 1

    def nearest(self, gathered: Floats) -> NDArray[np.int64]:
        """Return the community of each row by its direction, (n,); -1 for a row of zeros."""
        nearest = self.member_of[(gathered @ self.centers.T).argmax(axis=1)]
        return np.where(np.any(gathered, axis=1), nearest, -1)


def gather(own: NDArray[Any], ties: csr_array, vectors: NDArray[Any]) -> Floats:
    """Return directions (r, d) of nodes and, as much again, of their neighbours on average.

    A neighbourhood says more surely than a node alone which community it belongs to.

    Parameters
    ----------
    own : float array (r, d)
    ties : csr_array (r, n)
        0/1: neighbours of these nodes.
    vectors : float array (n, d)
        Rows of nodes that are nobody's neighbour are not read.
    """
    degrees = np.maximum(np.diff(ties.indptr), 1)[:, None]
    gathered: Floats = _unit(own) + (ties @ _unit(vectors)) / degrees
    return gathered


def find_communities(ties: csr_array, vectors: NDArray[np.float32], seed: int = 0) -> Communities | None:
    """Find communities: many small regions of like vectors, joined while that keeps more ties inside.

    Parameters
    ----------
    ties : csr_array (n, n)
    vectors : float32 array (n, d)
    seed : int

    Returns
    -------
    Communities or None
        Regions by spherical k-means, joined greedily by modularity. None where all end up in one.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # several BLAS threads may round differently
        gathered = gather(vectors, ties, vectors)
        # Sorted along a fixed direction before draws are made, so that node order leaves no trace.
        along = gathered @ np.random.default_rng(0).standard_normal(vectors.shape[1])
        order = np.argsort(along, kind="stable")
        sample = order[np.linspace(0, len(order) - 1, min(len(order), _SAMPLE)).astype(np.int64)]
        points = _unit(gathered[sample])
        points = points[np.any(points, axis=1)]
        count = min(_CENTERS, len(points) // _NODES_PER_CENTER)
        if count < 2:
            return None
        centers = _spherical_means(points, count, seed)
        apart = Communities(centers, np.arange(count))
        joined = join(tie_shares(ties, apart.nearest(gathered), count))
    return Communities(centers, joined) if joined.max() > 0 else None


def tie_shares(ties: csr_array, member_of: NDArray[np.int64], count: int) -> Floats:
    """Return the shares of ties between communities, (count, count); nodes of community -1 do not count."""
    ends = np.repeat(member_of, np.diff(ties.indptr)), member_of[ties.indices]
    known = (ends[0] >= 0) & (ends[1] >= 0)
    cells = ends[0][known] * count + ends[1][known]
    table = np.bincount(cells, minlength=count**2).reshape(count, count)
    return np.asarray(table / max(table.sum(), 1))


def join(shares: Floats) -> NDArray[np.int64]:
    """Join two communities at a time, those that gain most modularity, while any do; return who is whose."""
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


def _spherical_means(points: Floats, count: int, seed: int) -> Floats:
    best, found, ones = -np.inf, points[:count], np.ones(len(points))
    places = np.arange(len(points))
    for start in range(_COMMUNITY_STARTS):
        rng = np.random.default_rng([seed, count, start])
        centers = points[[rng.integers(len(points))]]
        away = 1 - points @ centers[0]
        while len(centers) < count:
            chances = np.maximum(away, 1e-12)
            centers = np.vstack([centers, points[rng.choice(len(points), p=chances / chances.sum())]])
            away = np.minimum(away, 1 - points @ centers[-1])
        for _ in range(_ROUNDS):
            member_of = (points @ centers.T).argmax(axis=1)
            sums = csr_array((ones, (member_of, places)), shape=(count, len(points))) @ points
            moved = np.where(np.any(sums, axis=1)[:, None], _unit(sums), centers)
            if np.allclose(moved, centers, atol=1e-6):
                break
            centers = moved
        kept = float((points @ centers.T).max(axis=1).sum())
        if kept > best:
            best, found = kept, centers
    return found


def _unit(vectors: NDArray[Any]) -> Floats:
    wide = vectors.astype(np.float64)
    unit: Floats = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    return unit


# Numbers of a node: log(1 + degree), share of pairs of neighbours that are tied, neighbours' mean
# log(1 + degree), communities they belong to, and the same with one more neighbour in the main one.
DEGREE, CLUSTERING, AROUND, SPAN, STEADY_SPAN = range(5)
# Coordinates of a node's place, made of them.
NEIGHBORS, ACQUAINTED, PROMINENCE, COMMUNITIES = range(4)
COLUMNS = ("neighbors", "acquainted", "prominence", "communities")
# Less than this is no difference between roles, even where a whole network differs by no more.
LEAST_SCALE = (0.25, 0.08, 0.25, 0.25)
_STRUCTURAL = ("log_degree", "clustering", "neighbor_log_degree_mean")
_DOUBT = 6  # pairs of neighbours that the network's usual clustering counts for


def coordinates(numbers: Floats, usual: float) -> Floats:
    """Return where nodes stand, (n, 4) of numbers (n, 5), or (n, 3) of (n, 3) without communities.

    Neighbours (log); how far they know each other, drawn towards ``usual`` where there are few of them, so
    that one tie between two neighbours is no clique; how the own degree stands to theirs (log ratio);
    communities.
    """
    degrees = np.expm1(numbers[:, DEGREE])
    pairs = degrees * (degrees - 1) / 2
    acquainted = (pairs * numbers[:, CLUSTERING] + _DOUBT * usual) / (pairs + _DOUBT)
    prominence = numbers[:, DEGREE] - numbers[:, AROUND]
    return np.column_stack([numbers[:, DEGREE], acquainted, prominence, numbers[:, STEADY_SPAN:]])


def usual_clustering(numbers: Floats) -> float:
    """Return the mean clustering of nodes that have two neighbours or more."""
    some = numbers[:, DEGREE] > np.log(2.5)
    return float(numbers[some, CLUSTERING].mean()) if some.any() else 0.0


def signature(
    graph: GraphLike,
    generator: Generator,
    communities: Communities | None,
    positions: NDArray[np.int64] | None = None,
    vectors: NDArray[np.float32] | None = None,
) -> Floats:
    """Return the numbers of some nodes (r, 5), or (r, 3) where there are no communities to count.

    Communities are counted by Simpson's number, 1 / sum of squared shares: one stray neighbour counts little.

    Parameters
    ----------
    graph : Graph or Overlay
    generator : Generator
    communities : Communities, optional
    positions : int64 array (r,), optional
        Every node by default; else these, their neighbours and the neighbours of those are visited.
    vectors : float32 array (n, d), optional
        Of all nodes, where they are at hand.
    """
    threads = generator.inputs.config.threads
    found = structural_columns(graph, positions, names=_STRUCTURAL, threads=threads).values
    columns = found.astype(np.float64)
    if communities is None:
        return columns
    ties = neighbors_of(graph, positions)
    seen = np.unique(ties.indices).astype(np.int64)
    around = neighbors_of(graph, seen)
    if vectors is None:
        needed = np.union1d(seen, around.indices).astype(np.int64)
        near = generator.embed(graph, None if len(needed) == len(graph) else needed)
        around = _narrowed(around, needed)
        own = near[np.searchsorted(needed, seen)]
    else:
        near, own = vectors, vectors[seen]
    member_of = np.full(ties.shape[1], -1, dtype=np.int64)
    member_of[seen] = communities.nearest(gather(own, around, near))
    return np.column_stack([columns, _spanned(ties, member_of, len(communities))])


def _narrowed(ties: csr_array, kept: NDArray[np.int64]) -> csr_array:
    """Leave out the columns of nodes that nobody asked for."""
    places = np.searchsorted(kept, ties.indices)
    return csr_array((ties.data, places, ties.indptr), shape=(ties.shape[0], len(kept)))


def neighbors_of(graph: GraphLike, positions: NDArray[np.int64] | None = None) -> csr_array:
    """Return neighbours of some nodes as a 0/1 matrix (r, n), of a Graph or an Overlay."""
    adjacency = graph.adjacency()
    if positions is None and not adjacency.rows.size:
        indptr, indices = adjacency.indptr, adjacency.indices
    else:
        nodes = np.arange(adjacency.num_nodes) if positions is None else positions
        indptr, indices = adjacency.neighbors(nodes)
    ones = np.ones(len(indices), dtype=np.float32)
    return csr_array((ones, indices, indptr), shape=(len(indptr) - 1, adjacency.num_nodes))


def _spanned(ties: csr_array, member_of: NDArray[np.int64], count: int) -> Floats:
    rows = np.repeat(np.arange(ties.shape[0]), np.diff(ties.indptr))
    ends = member_of[ties.indices]
    known = ends >= 0
    cells = rows[known] * count + ends[known]
    table = np.bincount(cells, minlength=ties.shape[0] * count).reshape(-1, count).astype(np.float64)
    squares, totals = np.square(table).sum(axis=1), table.sum(axis=1)
    # One more neighbour in the main community.
    steady = np.square(totals + 1) / (squares + 2 * table.max(axis=1) + 1)
    return np.column_stack([np.square(totals) / np.maximum(squares, 1), steady])


_APART = 0.5  # deviations from the rest that are worth a word


@dataclass(frozen=True)
class Typical:
    """Typical numbers of a role, or of a whole network.

    Attributes
    ----------
    share : float
        Of the nodes.
    neighbors, neighbors_low, neighbors_high : int
        Median, and the middle 80 %.
    acquainted : float or None
        Mean share of pairs of neighbours that know each other; None where nobody has two neighbours.
    connected : float
        Neighbours of a neighbour (geometric mean).
    communities : float or None
        Mean number that neighbours belong to; None where communities are unknown.
    """

    share: float
    neighbors: int
    neighbors_low: int
    neighbors_high: int
    acquainted: float | None
    connected: float
    communities: float | None

    @classmethod
    def of(cls, rows: NDArray[np.float64], weights: NDArray[np.float64]) -> "Typical":
        """Sum up numbers (n, 3 or 5), each node counted as much as it belongs to the role, (n,)."""
        degrees = np.rint(np.expm1(rows[:, DEGREE])).astype(np.int64)
        low, middle, high = _quantiles(degrees, weights, (0.1, 0.5, 0.9))
        pairs = weights * (degrees >= 2)
        some = weights * (degrees >= 1)
        acquainted = float(pairs @ rows[:, CLUSTERING] / pairs.sum()) if pairs.sum() > 1e-9 else None
        connected = some @ rows[:, AROUND] / some.sum() if some.sum() > 1e-9 else 0.0
        communities = None
        if rows.shape[1] > SPAN:
            communities = float(some @ rows[:, SPAN] / max(some.sum(), 1e-9))
        share = float(weights.sum() / len(rows))
        return cls(share, middle, low, high, acquainted, float(np.expm1(connected)), communities)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return asdict(self)


def describe(role: Typical, rest: Typical, apart: NDArray[np.float64]) -> str:
    """Say in one sentence what sets a role apart.

    Parameters
    ----------
    role, rest : Typical
        Of the role, and of the rest of the network.
    apart : float64 array (c,)
        By how many deviations the role's columns lie above the rest's.
    """
    if role.neighbors_high == 0:
        return "no neighbours at all"
    text = _neighbors(role, rest, apart[NEIGHBORS]) + _acquainted(role, rest, apart[ACQUAINTED])
    if role.communities is not None and role.neighbors >= 2:
        beside = _beside(f"{rest.communities:.1f}", apart[COMMUNITIES])
        spans = role.communities >= 1.15
        text += f", spans {role.communities:.1f} communities" if spans else ", all in one community"
        text += f" ({beside})" if beside else ""
    if role.neighbors >= 1:
        text += _prominence(role, apart[PROMINENCE])
    return text


def _neighbors(role: Typical, rest: Typical, apart: float) -> str:
    beside = _beside(str(rest.neighbors), apart)
    if role.neighbors == role.neighbors_high == 1:
        return f"a single neighbour ({beside})" if beside else "a single neighbour"
    if role.neighbors == 0:
        return f"hardly any neighbours ({beside})" if beside else "hardly any neighbours"
    some = "many" if apart >= _APART else "few" if apart <= -_APART else "a usual number of"
    return f"{some} neighbours (typically {role.neighbors}{f'; {beside}' if beside else ''})"


def _acquainted(role: Typical, rest: Typical, apart: float) -> str:
    if role.acquainted is None or role.neighbors < 2:
        return ""
    words = ("that hardly know each other", "of which few know each other", "of which some know each other")
    word = (*words, "that mostly know each other")[int(np.searchsorted((0.1, 0.25, 0.55), role.acquainted))]
    beside = _beside("-" if rest.acquainted is None else f"{100 * rest.acquainted:.0f} %", apart)
    return f" {word} ({100 * role.acquainted:.0f} %{f'; {beside}' if beside else ''})"


def _prominence(role: Typical, apart: float) -> str:
    if apart >= _APART and role.neighbors > role.connected:
        return f"; the neighbours have fewer themselves (about {role.connected:.0f})"
    if apart <= -_APART and role.neighbors < role.connected:
        who = "that neighbour has" if role.neighbors == role.neighbors_high == 1 else "the neighbours have"
        return f"; {who} more (about {role.connected:.0f})"
    return ""


def _beside(value: str, apart: float) -> str:
    return f"elsewhere {value}" if abs(apart) >= _APART else ""


def _quantiles(
    values: NDArray[np.int64], weights: NDArray[np.float64], shares: tuple[float, ...]
) -> list[int]:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return [int(values[order[min(place, len(order) - 1)]]) for place in places.tolist()]


class _Title(NamedTuple):
    """A title, its pattern in deviations from the rest of the network, and what has to hold."""

    name: str
    pattern: tuple[float, float, float, float]  # neighbors, acquainted, prominence, communities
    holds: Callable[[Typical, Floats], bool]


def _knows_neighbours(role: Typical) -> float:
    return role.acquainted or 0.0


_TITLES = (
    _Title(
        "hub",
        (2.0, -0.6, 2.0, 0.3),
        lambda role, apart: apart[NEIGHBORS] > 0.5 and _stands_out(role) and role.share < 0.4,
    ),
    _Title(
        "bridge",
        (0.3, -0.8, 0.2, 2.2),
        lambda role, apart: len(apart) > COMMUNITIES and apart[COMMUNITIES] > 0.5 and _spans(role),
    ),
    _Title(
        "broker",
        (0.6, -1.2, 0.6, 0.8),
        lambda role, apart: (
            apart[ACQUAINTED] < -0.3 and _knows_neighbours(role) < 0.25 and role.neighbors >= 3
        ),
    ),
    _Title(
        "clique member",
        (0.3, 1.6, 0.0, -0.4),
        lambda role, apart: apart[ACQUAINTED] > 0.3 and _knows_neighbours(role) > 0.4 and role.neighbors >= 3,
    ),
    _Title(
        "small circle",
        (-0.6, 1.5, -0.6, -0.5),
        lambda role, apart: (
            apart[ACQUAINTED] > 0.3 and _knows_neighbours(role) > 0.5 and apart[NEIGHBORS] < 0
        ),
    ),
    _Title(
        "core member",
        (0.9, 0.5, 0.5, 0.0),
        lambda role, apart: apart[NEIGHBORS] > 0.25 and _knows_neighbours(role) > 0.2 and role.share < 0.4,
    ),
    _Title("member", (0.4, 0.2, 0.1, -0.4), lambda role, apart: apart[NEIGHBORS] > -0.5),
    _Title(
        "satellite",
        (-1.0, -0.3, -2.0, -0.4),
        lambda role, apart: apart[NEIGHBORS] < -0.25 and role.connected > 4 * role.neighbors,
    ),
    _Title("periphery", (-1.6, -0.3, -1.4, -0.5), lambda role, apart: apart[NEIGHBORS] < -0.25),
    _Title(
        "chain",
        (-1.2, -1.6, -0.4, -0.2),
        lambda role, apart: role.neighbors <= 3 and role.connected < 4.5 and _knows_neighbours(role) < 0.1,
    ),
    _Title(
        "go-between",
        (-0.4, -0.8, -0.4, 0.5),
        lambda role, apart: 2 <= role.neighbors <= 4 and _knows_neighbours(role) < 0.2,
    ),
    _Title("outer member", (-0.4, 0.0, -0.5, 0.0), lambda role, apart: apart[NEIGHBORS] < 0),
)
MOST_TITLES = len(_TITLES)


def titles(apart: Floats, typical: list[Typical]) -> list[str]:
    """Give every role a different short title, of those that hold the one whose pattern is nearest.

    Parameters
    ----------
    apart : float64 array (g, c)
        By how many deviations a role's coordinates lie above the rest's.
    typical : list of Typical (g,)
    """
    from scipy.optimize import linear_sum_assignment

    if len(apart) == 1:
        return ["isolated" if typical[0].neighbors_high == 0 else "member"]
    patterns = np.array([title.pattern[: apart.shape[1]] for title in _TITLES])
    costs = np.square(np.clip(apart, -3, 3)[:, None] - patterns).sum(axis=2)  # (g, titles)
    holds = np.array(
        [[title.holds(role, row) for title in _TITLES] for role, row in zip(typical, apart, strict=True)]
    )
    _, chosen = linear_sum_assignment(np.where(holds, costs, costs + 1e3))
    return [
        "isolated" if role.neighbors_high == 0 else _TITLES[title].name if fits[title] else f"role {place}"
        for place, (role, title, fits) in enumerate(zip(typical, chosen, holds, strict=True), start=1)
    ]


def _stands_out(role: Typical) -> bool:
    return role.neighbors > role.connected


def _spans(role: Typical) -> bool:
    return (role.communities or 0.0) > 1.3


_STRANGE = 0.01  # the share of the first network's nodes that count as unlike any role


@dataclass(frozen=True, eq=False)
class RoleAssignment:
    """Which nodes play which role.

    Attributes
    ----------
    names : array (n,)
    memberships : float64 array (n, r)
        Probabilities; rows sum to 1.
    roles : int64 array (n,)
        The likeliest role of each node.
    typicality : float64 array (n,)
        Log density of the node; the higher, the more it is like others.
    is_strange : bool array (n,)
        Nodes less typical than 99 % of those that the roles were found on.
    """

    names: NDArray[Any]
    memberships: NDArray[np.float64]
    roles: NDArray[np.int64]
    typicality: NDArray[np.float64]
    is_strange: NDArray[np.bool_]

    def examples(self, role: int, count: int = 3) -> list[Any]:
        """Name the most typical nodes of a role, the clearest first."""
        members = np.flatnonzero(self.roles == role)
        sure = np.minimum(self.memberships[members, role], 0.95)  # beyond that, how typical counts
        order = np.lexsort((-self.typicality[members].round(6), -sure.round(6)))
        return list(self.names[members[order[:count]]].tolist())

    def shares(self) -> NDArray[np.float64]:
        """Return the share of the nodes that each role is the likeliest of, (r,)."""
        counts = np.bincount(self.roles, minlength=self.memberships.shape[1])
        return np.asarray(counts / max(len(self.roles), 1))


@dataclass(frozen=True, eq=False)
class Roles:
    """Roles found on one network, with words for them, that can be told on any other.

    Attributes
    ----------
    titles, descriptions : list of str
        A short name, and what sets the role apart.
    typical : list of Typical
        Typical numbers of each role.
    whole : Typical
        Typical numbers of the network.
    scores : dict {number of roles: criterion}
        Integrated completed likelihood, lower is better; empty where the number was given.
    mixture : Mixture
        Over standardised coordinates.
    usual : float
        The network's mean clustering, that of nodes with few neighbours is drawn to it.
    mean, scale : float64 array (c,)
        Of the coordinates.
    communities : Communities or None
        As regions of the vectors; None where there are none, or the model reads no features.
    least_typical : float
        Log density below which a node is like none of the roles.

    Examples
    --------
    >>> from spinegraph import SPINE, made
    >>> graph = made.barbell(10, bridge=5)
    >>> generator = SPINE(dim=8, steps=5).fit(graph).generator_
    >>> roles = Roles.find(graph, generator)
    >>> roles.titles
    ['core member', 'clique member', 'chain']
    >>> roles.assign(graph, generator, nodes=[0, 9, 12]).roles.tolist()
    [1, 0, 2]
    """

    titles: list[str]
    descriptions: list[str]
    typical: list[Typical]
    whole: Typical
    scores: dict[int, float]
    mixture: Mixture
    usual: float
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    communities: Communities | None
    least_typical: float

    def __len__(self) -> int:
        return len(self.titles)

    @classmethod
    def find(
        cls,
        graph: GraphLike,
        generator: Generator,
        embeddings: Embeddings | None = None,
        *,
        count: int | None = None,
        seed: int = 0,
    ) -> "Roles":
        """Find the roles of a network.

        A node is known by how many neighbours it has, how far they know each other, how its degree stands to
        theirs, and, where the model reads features, to how many communities they belong; communities are
        regions of the vectors. Over these numbers lies a mixture of Gaussians. Edge weights are not read.

        Parameters
        ----------
        graph : Graph
        generator : Generator
        embeddings : Embeddings, optional
            The generator's vectors of all nodes, where they are at hand.
        count : int, optional
            How many roles; by default the smallest number from 1 to 6 that is within 2 of the best integrated
            completed likelihood: BIC, and twice the entropy of the memberships.
        seed : int
        """
        _require_count(count)
        vectors = _vectors(graph, generator, embeddings)
        communities = None if vectors is None else find_communities(neighbors_of(graph), vectors, seed)
        numbers = signature(graph, generator, communities, None, vectors)
        usual = usual_clustering(numbers)
        rows = coordinates(numbers, usual)
        mean, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), LEAST_SCALE[: rows.shape[1]])
        places = (rows - mean) / scale
        different, counts = distinct(places)
        scores: dict[int, float] = {}
        if count is None:
            mixture, scores = choose_mixture(different, counts, seed)
        elif count > len(different):
            raise ParameterError(
                f"count must be at most {len(different)}, the different places of this network; got {count}"
            )
        else:
            mixture = fit_mixture(different, counts, count, seed)
        # From the centre of the network to its rim.
        mixture = mixture.ordered(np.lexsort((mixture.means[:, 1], -mixture.means[:, 0])))
        memberships = mixture.memberships(places)
        apart = np.array([_apart(places, weights) for weights in memberships.T])
        typical = [Typical.of(numbers, weights) for weights in memberships.T]
        rest = [Typical.of(numbers, 1 - weights) for weights in memberships.T]
        words = [describe(*each) for each in zip(typical, rest, apart, strict=True)]
        whole = Typical.of(numbers, np.ones(len(numbers)))
        least = float(np.quantile(mixture.log_density(places), _STRANGE))
        return cls(
            titles(apart, typical),
            words,
            typical,
            whole,
            scores,
            mixture,
            usual,
            mean,
            scale,
            communities,
            least,
        )

    def assign(
        self,
        graph: GraphLike,
        generator: Generator,
        nodes: Iterable[Any] | None = None,
        *,
        embeddings: Embeddings | None = None,
    ) -> RoleAssignment:
        """Tell the roles of nodes of any network, without finding them anew.

        Parameters
        ----------
        graph : Graph or Overlay
        generator : Generator
            Of the model that the roles were found with.
        nodes : iterable of names, optional
            Just these, at the cost of them and of what is two steps around.
        embeddings : Embeddings, optional
            The generator's vectors of all nodes, where they are at hand.
        """
        known = self.communities
        if known is not None and known.centers.shape[1] != generator.dim:
            raise ParameterError(
                f"the roles were found with vectors of {known.centers.shape[1]} dimensions, this model "
                f"makes {generator.dim}; find them again with this model"
            )
        positions = None if nodes is None else graph.positions(nodes)
        if nodes is None and isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            positions = graph.standing  # those that were removed play no role
        vectors = None if embeddings is None else _vectors(graph, generator, embeddings)
        numbers = signature(graph, generator, known, positions, vectors)
        places = (coordinates(numbers, self.usual) - self.mean) / self.scale
        memberships = self.mixture.memberships(places)
        density = self.mixture.log_density(places)
        names = graph.names if positions is None else graph.names[positions]
        strange = density < self.least_typical - 1e-9
        return RoleAssignment(names, memberships, memberships.argmax(axis=1), density, strange)

    def to_json(self) -> dict[str, Any]:
        """Return the roles as plain values; ``from_json`` reads them."""
        return {
            "columns": list(COLUMNS[: len(self.mean)]),
            "roles": [
                {"title": title, "description": words, "typical": typical.to_json()}
                for title, words, typical in zip(self.titles, self.descriptions, self.typical, strict=True)
            ],
            "whole": self.whole.to_json(),
            "scores": {str(count): score for count, score in self.scores.items()},
            "shares": self.mixture.shares.tolist(),
            "means": self.mixture.means.tolist(),
            "variances": self.mixture.variances.tolist(),
            "usual": self.usual,
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "communities": None
            if self.communities is None
            else {
                "centers": self.communities.centers.tolist(),
                "member_of": self.communities.member_of.tolist(),
            },
            "least_typical": self.least_typical,
        }

    @classmethod
    def from_json(cls, meta: Any) -> "Roles":
        """Read what ``to_json`` returned, trusting none of it.

        Examples
        --------
        >>> Roles.from_json({"columns": []})
        Traceback (most recent call last):
        spinegraph.errors.ModelFormatError: roles: columns must be the first 3 or 4 of neighbors, acquainted,
        prominence, communities; got []
        """
        return cls(**read_parts(meta))


def _vectors(
    graph: GraphLike, generator: Generator, embeddings: Embeddings | None
) -> NDArray[np.float32] | None:
    """Return the vectors of all nodes, or None where they hold no place: a model that reads no features."""
    if generator.inputs.encoder is None:
        return None
    if embeddings is None:
        return generator.embed(graph)
    if embeddings.vectors.shape != (len(graph), generator.dim):
        raise ParameterError(
            f"embeddings must be of all {len(graph)} nodes in {generator.dim} dimensions; "
            f"got shape {embeddings.vectors.shape}"
        )
    if not np.array_equal(embeddings.names, graph.names):
        raise ParameterError("embeddings must be of the graph's nodes in their order; got other names")
    return embeddings.vectors


def _apart(places: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how many deviations those who belong lie above those who do not, (c,)."""
    rest = 1 - weights
    if rest.sum() < 1e-9:
        return np.zeros(places.shape[1])
    return np.asarray(weights @ places / max(weights.sum(), 1e-12) - rest @ places / rest.sum())


def _require_count(count: int | None) -> None:
    is_whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if count is not None and not (is_whole and 1 <= count <= MOST_TITLES):
        raise ParameterError(
            f"count must be a whole number from 1 to {MOST_TITLES}, or None for the best of 1 to {MOST}; "
            f"got {count!r}"
        )


_LARGEST = 1e30  # nothing that was measured comes near it; beyond, squares and quotients overflow


def read_parts(meta: Any) -> dict[str, Any]:
    """Return the fields of Roles from what ``Roles.to_json`` returned, each value checked."""
    given = JsonObject(meta, "roles")
    columns = given.list_of("columns", str)
    if len(columns) < len(COLUMNS) - 1 or tuple(columns) != COLUMNS[: len(columns)]:
        raise ModelFormatError(
            f"roles: columns must be the first 3 or 4 of {', '.join(COLUMNS)}; got {columns}"
        )
    width, has_communities = len(columns), len(columns) == len(COLUMNS)
    listed = [JsonObject(role, "roles: role") for role in given.list_of("roles", dict)]
    if not 1 <= len(listed) <= MOST_TITLES:
        raise ModelFormatError(f"roles: expected 1 to {MOST_TITLES} roles; got {len(listed)}")
    return {
        "titles": [role.get("title", str) for role in listed],
        "descriptions": [role.get("description", str) for role in listed],
        "typical": [_typical(role.get("typical", dict)) for role in listed],
        "whole": _typical(given.get("whole", dict)),
        "scores": _scores(JsonObject(given.get("scores", dict), "roles: scores")),
        "mixture": Mixture(
            _above_zero(given, "shares", (len(listed),)),
            _matrix(given, "means", (len(listed), width)),
            _above_zero(given, "variances", (len(listed), width)),
        ),
        "usual": _share(given, "usual"),
        "mean": _matrix(given, "mean", (width,)),
        "scale": _above_zero(given, "scale", (width,)),
        "communities": _communities(given) if has_communities else None,
        "least_typical": given.number("least_typical"),
    }


def _communities(given: JsonObject) -> Communities:
    parts = JsonObject(given.get("communities", dict), "roles: communities")
    centers = _matrix(parts, "centers", (None, None))
    member_of = np.array(parts.list_of("member_of", int), dtype=np.int64)
    if (
        len(member_of) != len(centers)
        or not len(centers)
        or not 0 <= member_of.min() <= member_of.max() < len(centers)
    ):
        raise ModelFormatError(f"roles: member_of must name the community of each of {len(centers)} centres")
    return Communities(centers, member_of)


def _scores(given: JsonObject) -> dict[int, float]:
    wrong = [key for key in given.meta if not key.isdecimal()]
    if wrong:
        raise ModelFormatError(f"roles: scores belong to numbers of roles; got {wrong[0]!r:.60}")
    return {int(key): given.number(key) for key in given.meta}


def _share(given: JsonObject, key: str) -> float:
    value = given.number(key)
    if not 0 <= value <= 1:
        raise ModelFormatError(f"roles: {key} must be between 0 and 1; got {value}")
    return value


def _above_zero(given: JsonObject, key: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = _matrix(given, key, shape)
    if (values < 1 / _LARGEST).any():
        raise ModelFormatError(f"roles: {key} must be above 0; got {values.min()}")
    return values


def _matrix(given: JsonObject, key: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    try:
        values = np.array(given.get(key, list), dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelFormatError(f"roles: {key} must hold numbers only") from None
    fits = values.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, values.shape, strict=True)
    )
    if not fits or not (np.abs(values) <= _LARGEST).all():
        raise ModelFormatError(
            f"roles: {key} must be finite, up to {_LARGEST:g}, of shape {shape}; got shape {values.shape}"
        )
    return values


def _typical(meta: dict[str, Any]) -> Typical:
    given = JsonObject(meta, "roles: typical")
    optional = {
        name: None if given.meta.get(name) is None else given.number(name)
        for name in ("acquainted", "communities")
    }
    low, middle, high = (given.whole(f"neighbors{part}", 0, 2**62) for part in ("_low", "", "_high"))
    return Typical(
        given.number("share"),
        middle,
        low,
        high,
        optional["acquainted"],
        given.number("connected"),
        optional["communities"],
    )


@dataclass(frozen=True)
class Agreement:
    """Roles beside labels.

    Attributes
    ----------
    nodes : int
        Those that have a label.
    nmi, ari : float
        Normalised mutual information and adjusted Rand index: 0 by chance, 1 for the same groups.
    labels : tuple of str
        Most frequent first.
    counts : tuple of tuples of int
        Nodes of each label (rows) in each role (columns).
    """

    nodes: int
    nmi: float
    ari: float
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def agreement(roles: NDArray[np.int64], labels: NDArray[Any], count: int | None = None) -> Agreement:
    """Compare roles with labels.

    Parameters
    ----------
    roles : int array (n,)
    labels : array (n,)
        None, -1 or "" where unknown.
    count : int, optional
        How many roles there are; the largest that occurs by default.
    """
    if np.ndim(labels) != 1 or len(labels) != len(roles):
        raise ParameterError(f"labels must be one per node, {len(roles)}; got shape {np.shape(labels)}")
    known = np.array([value not in (None, -1, "") for value in np.asarray(labels, dtype=object).tolist()])
    if not known.any():
        raise ParameterError("no node has a label; check that the names of the labels are those of the nodes")
    texts = np.array([str(value) for value in np.asarray(labels, dtype=object)[known].tolist()])
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    told = roles[known]
    names, codes, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    count = int(roles.max()) + 1 if count is None else count
    table = np.zeros((len(names), count), dtype=np.int64)
    np.add.at(table, (codes, told), 1)
    order = np.argsort(-sizes, kind="stable")
    return Agreement(
        int(known.sum()),
        float(normalized_mutual_info_score(texts, told)),
        float(adjusted_rand_score(texts, told)),
        tuple(names[order].tolist()),
        tuple(tuple(row) for row in table[order].tolist()),
    )
