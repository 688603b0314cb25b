"""Synthetic networks: small shapes, random graphs, and organisations with planted roles."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.kernels.adjacency import position_type

__all__ = ["Planted", "barbell", "karate", "planted", "random_graph"]


@cache
def _listed() -> dict[str, Any]:
    """Return the ties of the karate club, and the departments, words and names of synthetic organisations."""
    text = (files("spinegraph.graph") / "made.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def barbell(clique: int, bridge: int = 0) -> Graph:
    """Return two cliques joined by a path of ``bridge`` nodes; 2 * clique + bridge nodes in all.

    Nodes 0 .. clique-1 are one clique; then come the path and the other clique.

    Examples
    --------
    >>> barbell(5, bridge=1)
    Graph(11 nodes, 22 edges)
    """
    _at_least("clique", clique, 1)
    _at_least("bridge", bridge, 0)
    one = np.column_stack(np.triu_indices(clique, k=1))  # (clique * (clique - 1) / 2, 2)
    path = np.arange(clique - 1, clique + bridge)
    edges = np.concatenate([one, np.column_stack([path, path + 1]), one + clique + bridge])
    return Graph.from_edges(edges, num_nodes=2 * clique + bridge)


def karate() -> Graph:
    """Return Zachary's karate club: 34 members, 78 ties.

    Examples
    --------
    >>> karate()
    Graph(34 nodes, 78 edges)
    """
    # Zachary (1977): a member, then those they met outside the club; 0 is the instructor, 33 the president.
    rows = _listed()["karate"]
    return Graph.from_edges(np.array([(member, other) for member, *others in rows for other in others]))


def random_graph(
    num_nodes: int,
    edges_per_node: float,
    seed: int = 0,
    features: int | None = None,
    heavy_tailed: bool = False,
) -> Graph:
    """Return a graph with random edges, for measuring speed.

    Parameters
    ----------
    num_nodes : int
    edges_per_node : float
        Edges drawn per node; the mean degree is about twice that, since few are drawn more than once.
    seed : int
    features : int, optional
        Columns of sparse 0/1 features, with up to ten ones per row.
    heavy_tailed : bool
        Draw nodes in proportion to a Pareto variable, so that degrees follow a power law with an exponent
        near 2.5; hubs are at random positions.

    Examples
    --------
    >>> graph = random_graph(1000, edges_per_node=10, seed=3, features=50)
    >>> graph.num_edges > 9_800, graph.features.shape
    (True, (1000, 50))
    """
    _at_least("num_nodes", num_nodes, 1)
    if edges_per_node < 0:
        raise ParameterError(f"edges_per_node must be at least 0; got {edges_per_node!r}")
    rng = np.random.default_rng(seed)
    count = 0 if num_nodes == 1 else round(num_nodes * edges_per_node)
    ends = np.empty((count, 2), dtype=position_type(num_nodes))
    if heavy_tailed:
        reach = np.cumsum((1.0 - rng.random(num_nodes)) ** (-1 / 1.5))
        for column in ends.T:
            column[:] = np.searchsorted(reach, rng.random(count) * reach[-1], side="right")
        ends = ends[ends[:, 0] != ends[:, 1]]
    else:
        ends[:, 0] = rng.integers(num_nodes, size=count)
        ends[:, 1] = rng.integers(max(num_nodes - 1, 1), size=count)
        ends[:, 1] += ends[:, 1] >= ends[:, 0]  # skips the node itself, so that no self-loop is drawn
    table = None if features is None else _random_features(num_nodes, features, rng)
    return Graph.from_edges(ends, num_nodes=num_nodes, features=table)


def _random_features(num_nodes: int, columns: int, rng: np.random.Generator) -> sp.csr_array:
    """Return features (n, columns) with up to ten ones per row."""
    _at_least("features", columns, 1)
    ones = min(10, columns)
    chosen = rng.integers(columns, size=(num_nodes, ones), dtype=np.int32)
    pointers = np.arange(num_nodes + 1, dtype=np.int64) * ones
    matrix = sp.csr_array((np.ones(chosen.size, np.float32), chosen.ravel(), pointers), (num_nodes, columns))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _at_least(name: str, value: int, least: int) -> None:
    if not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be an integer >= {least}; got {value!r}")


ROLES = ("leader", "bridge", "member", "fringe")
LEADER, BRIDGE, MEMBER, FRINGE = range(4)

_SHARE = {LEADER: 0.06, BRIDGE: 0.08, FRINGE: 0.16}  # of a department; the rest are members
_TEAM = 9  # people
_OWN_WORDS, _BORROWED_WORDS = 10, 4
_EMPTY_PROFILES = 0.05

Ties = NDArray[np.int64]  # (m, 2)


@dataclass(frozen=True, eq=False)
class Planted:
    """A synthetic organisation and the ground truth about its people.

    Attributes
    ----------
    graph : Graph
        People by name, ties between them, and the words of their profiles as sparse 0/1 features.
    community : int64 array (n,)
        Each person's department, an index into ``community_names``.
    role : int64 array (n,)
        Each person's role, an index into ``role_names``.
    community_names, role_names : tuple of str

    Examples
    --------
    >>> planted(communities=3, size=20, seed=1).role_names
    ('leader', 'bridge', 'member', 'fringe')
    """

    graph: Graph
    community: NDArray[np.int64]
    role: NDArray[np.int64]
    community_names: tuple[str, ...]
    role_names: tuple[str, ...] = ROLES


class _People(NamedTuple):
    """All people, department by department: first the teams, then bridges, then the fringe."""

    department: NDArray[np.int64]  # (n,)
    role: NDArray[np.int64]  # (n,) as labelled
    acts: NDArray[np.int64]  # (n,) the role that ties follow, or MEMBER if the role does not show
    team_start: NDArray[np.int64]  # (n,) first person of one's team; bridges and fringe have none
    team_size: NDArray[np.int64]  # (n,)
    pool_start: NDArray[np.int64]  # (communities,) first person of a department
    pool_size: NDArray[np.int64]  # (communities,) people there who are not at the fringe


def planted(
    communities: int = 8,
    size: int = 75,
    *,
    feature_noise: float = 0.5,
    role_strength: float = 0.9,
    seed: int = 0,
    topics_seed: int = 0,
) -> Planted:
    """Make an organisation of departments with topics, each with leaders, bridges, members and a fringe.

    Another ``seed`` with the same ``communities`` and ``topics_seed`` gives an unseen organisation from the
    same process: other people and ties, but the same departments, words and topics. The words of a person
    depend on the department only, never on the role. ``docs/made.md`` describes the process in full.

    Parameters
    ----------
    communities : int
        Number of departments.
    size : int
        Mean number of people per department; sizes vary.
    feature_noise : float in [0, 1]
        Probability that a word of a profile is drawn from all words rather than the department's topic.
    role_strength : float in [0, 1]
        Probability that a person's ties follow the role; otherwise they are those of a member.
    seed : int
    topics_seed : int

    Examples
    --------
    >>> here, elsewhere = planted(seed=0), planted(seed=1)
    >>> here.graph.feature_names == elsewhere.graph.feature_names
    True
    >>> here.community_names[:2]
    ('Engineering', 'Research')
    """
    _at_least("communities", communities, 1)
    _at_least("size", size, 10)
    for name, share in (("feature_noise", feature_noise), ("role_strength", role_strength)):
        if not 0 <= share <= 1:
            raise ParameterError(f"{name} must be from 0 to 1; got {share!r}")
    # Separate random streams, so that other topics or more noise do not change people, ties and names.
    rng, profile_rng, name_rng = (np.random.default_rng([seed, stream]) for stream in (1, 2, 3))
    people = _hire(communities, size, role_strength, rng)
    draws = _member_ties, _leader_ties, _bridge_ties, _fringe_ties
    ties = np.concatenate([draw(people, rng) for draw in draws])
    words, topics = _topics(communities, np.random.default_rng([topics_seed, 4]))
    profiles = _profiles(people.department, topics, feature_noise, profile_rng)
    n = len(people.role)
    order = rng.permutation(n)  # position i holds person order[i], so that positions reveal nothing
    edges, names = np.argsort(order)[ties[ties[:, 0] != ties[:, 1]]], _names(n, name_rng)
    graph = Graph.from_edges(edges, num_nodes=n, names=names, features=profiles[order], feature_names=words)
    titles = list(_listed()["departments"])[:communities]
    titles += [f"Department {number + 1}" for number in range(len(titles), communities)]
    return Planted(graph, people.department[order], people.role[order], tuple(titles))


def _hire(communities: int, size: int, role_strength: float, rng: np.random.Generator) -> _People:
    """Fill departments of varying size with people, and assign roles and teams."""
    uneven = np.exp(0.45 * rng.standard_normal(communities))
    sizes = np.maximum(8, np.round(size * communities * uneven / uneven.sum())).astype(np.int64)
    department = np.repeat(np.arange(communities), sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = rng.permutation(len(department))  # a random order of people inside each department
    rank = np.lexsort((rank, department))
    within = np.empty(len(department), dtype=np.int64)
    within[rank] = np.arange(len(department)) - starts[department[rank]]
    share = (within + 0.5) / sizes[department]
    role = np.full(len(department), MEMBER)
    # Added in this order: sum() of Python 3.12 and newer rounds differently, and one person is on the border.
    role[share < _SHARE[LEADER] + _SHARE[BRIDGE] + _SHARE[FRINGE]] = FRINGE
    role[share < _SHARE[LEADER] + _SHARE[BRIDGE]] = BRIDGE
    role[(share < _SHARE[LEADER]) | (within == 0)] = LEADER
    acts = np.where(rng.random(len(role)) < role_strength, role, MEMBER)
    row = (acts == BRIDGE) + 2 * (acts == FRINGE)
    order = np.lexsort((row, department))
    role, acts, row = role[order], acts[order], row[order]
    pool = np.bincount(department[row < 2], minlength=communities)
    in_teams = np.bincount(department[row == 0], minlength=communities)
    seated = in_teams[department]  # (n,) people in teams of one's department
    teams = np.maximum(1, np.round(seated / _TEAM)).astype(np.int64)
    seat = np.arange(len(role)) - starts[department]
    number = np.minimum(seat * teams // np.maximum(seated, 1), teams - 1)
    first, beyond = -(-number * seated // teams), -(-(number + 1) * seated // teams)
    return _People(department, role, acts, starts[department] + first, beyond - first, starts, pool)


def _draw(people: _People, departments: Ties, rng: np.random.Generator) -> Ties:
    """Draw a person who is not at the fringe from each of some departments (m,)."""
    room = people.pool_size[departments]
    return people.pool_start[departments] + (rng.random(len(departments)) * room).astype(np.int64)


def _member_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie members mostly to their team, sometimes to their department, rarely to others."""
    members = np.flatnonzero(people.acts == MEMBER)
    team = np.repeat(members, 1 + rng.poisson(2.6, len(members)))
    near = np.repeat(members, rng.poisson(0.7, len(members)))
    far = np.repeat(members, rng.poisson(0.1, len(members)))
    elsewhere = rng.integers(len(people.pool_size), size=len(far))
    seat, others = team - people.team_start[team], people.team_size[team] - 1
    mates = (seat + 1 + (rng.random(len(team)) * others).astype(np.int64)) % (others + 1)
    colleagues = _draw(people, people.department[near], rng)
    partners = [people.team_start[team] + mates, colleagues, _draw(people, elsewhere, rng)]
    return np.column_stack([np.concatenate([team, near, far]), np.concatenate(partners)])


def _leader_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie leaders to a heavy-tailed share of their department, to each other there and to peers elsewhere."""
    leaders = np.flatnonzero(people.acts == LEADER)
    home = people.department[leaders]
    reach = 7 * (1.0 - rng.random(len(leaders))) ** (-1 / 1.8)  # Pareto
    reach = np.minimum(reach, 0.8 * people.pool_size[home]).astype(np.int64)
    below = np.repeat(leaders, reach)
    peers = np.repeat(leaders, 1 + rng.poisson(1.5, len(leaders)))
    colleagues = _draw(people, people.department[below], rng)
    others = leaders[rng.integers(max(len(leaders), 1), size=len(peers))]
    return np.column_stack([np.concatenate([below, peers]), np.concatenate([colleagues, others])])


def _bridge_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie bridges to two or three people of their own department and of each of one or two others."""
    bridges, communities = np.flatnonzero(people.acts == BRIDGE), len(people.pool_size)
    home, elsewhere = people.department[bridges], communities - 1
    first = rng.integers(max(elsewhere, 1), size=len(bridges))
    second = (first + 1 + rng.integers(max(elsewhere - 1, 1), size=len(bridges))) % max(elsewhere, 1)
    wide = rng.random(len(bridges)) < 0.5
    spans = [(bridges, home)]
    if elsewhere >= 1:
        spans.append((bridges, (home + 1 + first) % communities))
    if elsewhere >= 2:
        spans.append((bridges[wide], ((home + 1 + second) % communities)[wide]))
    ties = []
    for who, where in spans:
        each = rng.integers(2, 4, size=len(who))
        partners = _draw(people, np.repeat(where, each), rng)
        ties.append(np.column_stack([np.repeat(who, each), partners]))
    return np.concatenate(ties)


def _fringe_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie the fringe to one or two people of the department."""
    fringe = np.flatnonzero(people.acts == FRINGE)
    ends = np.repeat(fringe, rng.integers(1, 3, size=len(fringe)))
    return np.column_stack([ends, _draw(people, people.department[ends], rng)])


def _topics(communities: int, rng: np.random.Generator) -> tuple[list[str], NDArray[np.float64]]:
    """Return the words, and the distribution of each department over them, (communities, words)."""
    listed = list(_listed()["departments"].values())[:communities]
    for number in range(len(listed), communities):
        listed.append([f"topic-{number + 1}-{word + 1}" for word in range(_OWN_WORDS)])
    words = [word for own in listed for word in own] + _listed()["common"]
    zipf = 1.0 / np.arange(1, _OWN_WORDS + 1)
    topics = np.zeros((communities, len(words)))
    for number in range(communities):
        own = number * _OWN_WORDS + rng.permutation(_OWN_WORDS)
        topics[number, own] = zipf
        # Departments overlap: each borrows some words from another one.
        lender = (number + rng.integers(1, max(communities, 2))) % communities
        borrowed = lender * _OWN_WORDS + rng.permutation(_OWN_WORDS)[:_BORROWED_WORDS]
        topics[number, borrowed] += 0.3
    return words, topics / topics.sum(axis=1, keepdims=True)


def _profiles(
    department: NDArray[np.int64], topics: NDArray[np.float64], noise: float, rng: np.random.Generator
) -> sp.csr_array:
    """Draw the words of each profile, 0/1 (n, words); one profile in twenty is empty."""
    n, width = len(department), topics.shape[1]
    counts = (3 + rng.poisson(4, n)) * (rng.random(n) >= _EMPTY_PROFILES)
    person = np.repeat(np.arange(n), counts)
    word = rng.integers(width, size=len(person))
    topical = rng.random(len(person)) >= noise
    # One search over the cumulative distributions of all departments, laid end to end.
    cumulative = (np.cumsum(topics, axis=1) + np.arange(len(topics))[:, None]).ravel()
    drawn = department[person[topical]] + rng.random(int(topical.sum())) * (1 - 1e-9)
    word[topical] = np.minimum(np.searchsorted(cumulative, drawn, side="right"), cumulative.size - 1) % width
    profiles = sp.csr_array((np.ones(len(person), np.float32), (person, word)), shape=(n, width))
    profiles.data[:] = 1.0
    return profiles


def _names(n: int, rng: np.random.Generator) -> list[str]:
    """Return n different person names in random order."""
    first, last = _listed()["first_names"], _listed()["last_names"]
    plain = len(first) * len(last)
    # Beyond all pairs of first and last name, a middle initial and then a number make names unique.
    numbers = np.concatenate([rng.permutation(plain), np.arange(plain, max(n, plain))])[:n]
    names = []
    for number in numbers.tolist():
        round_, pair = divmod(number, plain)
        initial = "" if round_ == 0 else f" {chr(ord('A') + (round_ - 1) % 26)}."
        again = "" if round_ <= 26 else f" {1 + (round_ - 1) // 26}"
        names.append(f"{first[pair % len(first)]}{initial} {last[pair // len(first)]}{again}")
    return names
