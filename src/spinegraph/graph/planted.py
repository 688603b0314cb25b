"""A made organisation: departments that share topics, and people whose roles are planted in their ties."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinegraph.errors import ParameterError
from spinegraph.graph.graph import Graph
from spinegraph.graph.planted_words import COMMON, DEPARTMENTS, FIRST_NAMES, LAST_NAMES

ROLES = ("leader", "bridge", "member", "fringe")
LEADER, BRIDGE, MEMBER, FRINGE = range(4)

_SHARE = {LEADER: 0.06, BRIDGE: 0.08, FRINGE: 0.16}  # of a department; the rest are members
_TEAM = 9  # people
_OWN_WORDS, _BORROWED_WORDS = 10, 4
_EMPTY_PROFILES = 0.05

Ties = NDArray[np.int64]  # (m, 2)


@dataclass(frozen=True, eq=False)
class Planted:
    """A made organisation and what is known about its people.

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
    """Everybody, department by department: first the teams, then bridges, then the fringe."""

    department: NDArray[np.int64]  # (n,)
    role: NDArray[np.int64]  # (n,) as labelled
    acts: NDArray[np.int64]  # (n,) as wired: a role, or MEMBER where the role does not show
    team_start: NDArray[np.int64]  # (n,) first person of the own team; bridges and fringe are in none
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
    """Make an organisation: departments with topics, and leaders, bridges, members and fringe inside.

    Another ``seed`` with the same ``communities`` and ``topics_seed`` gives an unseen organisation from the
    same process: other people and ties, the same departments, words and topics. The words a person uses
    depend on the department alone, never on the role. How it is made in full: ``docs/made.md``.

    Parameters
    ----------
    communities : int
        Departments.
    size : int
        Mean people in a department; departments are of uneven size.
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
    for name, count, least in (("communities", communities, 1), ("size", size, 10)):
        if not isinstance(count, int | np.integer) or count < least:
            raise ParameterError(f"{name} must be an integer of at least {least}; got {count!r}")
    for name, share in (("feature_noise", feature_noise), ("role_strength", role_strength)):
        if not 0 <= share <= 1:
            raise ParameterError(f"{name} must be from 0 to 1; got {share!r}")
    # Streams of their own: other topics or more noise leave people, ties and names as they are.
    rng, profile_rng, name_rng = (np.random.default_rng([seed, stream]) for stream in (1, 2, 3))
    people = _hire(communities, size, role_strength, rng)
    ties = np.concatenate(
        [
            _member_ties(people, rng),
            _leader_ties(people, rng),
            _bridge_ties(people, rng),
            _fringe_ties(people, rng),
        ]
    )
    words, topics = _topics(communities, np.random.default_rng([topics_seed, 4]))
    profiles = _profiles(people.department, topics, feature_noise, profile_rng)
    n = len(people.role)
    order = rng.permutation(n)  # place i holds person order[i]: position tells nothing
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    graph = Graph.from_edges(
        place[ties[ties[:, 0] != ties[:, 1]]],
        num_nodes=n,
        names=_names(n, name_rng),
        features=profiles[order],
        feature_names=words,
    )
    titles = [*DEPARTMENTS, *(f"Department {number + 1}" for number in range(len(DEPARTMENTS), communities))]
    return Planted(graph, people.department[order], people.role[order], tuple(titles[:communities]))


def _hire(communities: int, size: int, role_strength: float, rng: np.random.Generator) -> _People:
    """Fill uneven departments with people, give out roles and seat everybody in teams."""
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
    # Added one by one: the sum of Python 3.12 and newer rounds otherwise, and somebody stands at the border.
    role[share < _SHARE[LEADER] + _SHARE[BRIDGE] + _SHARE[FRINGE]] = FRINGE
    role[share < _SHARE[LEADER] + _SHARE[BRIDGE]] = BRIDGE
    role[(share < _SHARE[LEADER]) | (within == 0)] = LEADER
    acts = np.where(rng.random(len(role)) < role_strength, role, MEMBER)
    row = (acts == BRIDGE) + 2 * (acts == FRINGE)
    order = np.lexsort((row, department))
    role, acts, row = role[order], acts[order], row[order]
    pool = np.bincount(department[row < 2], minlength=communities)
    in_teams = np.bincount(department[row == 0], minlength=communities)
    seated = in_teams[department]  # (n,) in teams of the own department
    teams = np.maximum(1, np.round(seated / _TEAM)).astype(np.int64)
    seat = np.arange(len(role)) - starts[department]
    number = np.minimum(seat * teams // np.maximum(seated, 1), teams - 1)
    first, beyond = -(-number * seated // teams), -(-(number + 1) * seated // teams)
    return _People(department, role, acts, starts[department] + first, beyond - first, starts, pool)


def _draw(start: Ties, size: Ties, rng: np.random.Generator) -> Ties:
    """Draw one person from each run of ``size`` people at ``start``."""
    return start + (rng.random(len(start)) * size).astype(np.int64)


def _member_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie members mostly to their team, sometimes to their department, seldom to anybody else."""
    members = np.flatnonzero(people.acts == MEMBER)
    team = np.repeat(members, 1 + rng.poisson(2.6, len(members)))
    near = np.repeat(members, rng.poisson(0.7, len(members)))
    far = np.repeat(members, rng.poisson(0.1, len(members)))
    elsewhere = rng.integers(len(people.pool_size), size=len(far))
    seat, others = team - people.team_start[team], people.team_size[team] - 1
    partners = [
        people.team_start[team]
        + (seat + 1 + (rng.random(len(team)) * others).astype(np.int64)) % (others + 1),
        _draw(people.pool_start[people.department[near]], people.pool_size[people.department[near]], rng),
        _draw(people.pool_start[elsewhere], people.pool_size[elsewhere], rng),
    ]
    return np.column_stack([np.concatenate([team, near, far]), np.concatenate(partners)])


def _leader_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie leaders to a heavy-tailed share of their department, to each other there and to peers elsewhere."""
    leaders = np.flatnonzero(people.acts == LEADER)
    home = people.department[leaders]
    reach = 7 * (1.0 - rng.random(len(leaders))) ** (-1 / 1.8)  # Pareto
    reach = np.minimum(reach, 0.8 * people.pool_size[home]).astype(np.int64)
    below = np.repeat(leaders, reach)
    at = people.department[below]
    peers = np.repeat(leaders, 1 + rng.poisson(1.5, len(leaders)))
    partners = [
        _draw(people.pool_start[at], people.pool_size[at], rng),
        leaders[rng.integers(max(len(leaders), 1), size=len(peers))],
    ]
    return np.column_stack([np.concatenate([below, peers]), np.concatenate(partners)])


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
        ends, at = np.repeat(who, each), np.repeat(where, each)
        ties.append(np.column_stack([ends, _draw(people.pool_start[at], people.pool_size[at], rng)]))
    return np.concatenate(ties)


def _fringe_ties(people: _People, rng: np.random.Generator) -> Ties:
    """Tie the fringe to one or two people of the department."""
    fringe = np.flatnonzero(people.acts == FRINGE)
    ends = np.repeat(fringe, rng.integers(1, 3, size=len(fringe)))
    at = people.department[ends]
    return np.column_stack([ends, _draw(people.pool_start[at], people.pool_size[at], rng)])


def _topics(communities: int, rng: np.random.Generator) -> tuple[list[str], NDArray[np.float64]]:
    """Return the words and each department's distribution over them, (communities, words)."""
    listed = [text.split() for text in DEPARTMENTS.values()][:communities]
    for number in range(len(listed), communities):
        listed.append([f"topic-{number + 1}-{place + 1}" for place in range(_OWN_WORDS)])
    words = [word for own in listed for word in own] + COMMON.split()
    zipf = 1.0 / np.arange(1, _OWN_WORDS + 1)
    topics = np.zeros((communities, len(words)))
    for number in range(communities):
        own = number * _OWN_WORDS + rng.permutation(_OWN_WORDS)
        topics[number, own] = zipf
        # Departments overlap: each borrows some words of another one.
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
    # One search over all departments' cumulated distributions, laid end to end.
    ladder = (np.cumsum(topics, axis=1) + np.arange(len(topics))[:, None]).ravel()
    drawn = department[person[topical]] + rng.random(int(topical.sum())) * (1 - 1e-9)
    word[topical] = np.minimum(np.searchsorted(ladder, drawn, side="right"), ladder.size - 1) % width
    profiles = sp.csr_array((np.ones(len(person), np.float32), (person, word)), shape=(n, width))
    profiles.data[:] = 1.0
    return profiles


def _names(n: int, rng: np.random.Generator) -> list[str]:
    """Return n different person-like names in random order."""
    first, last = FIRST_NAMES.split(), LAST_NAMES.split()
    plain = len(first) * len(last)
    # Past the plain pairs, a middle initial and then a number keep names apart.
    numbers = np.concatenate([rng.permutation(plain), np.arange(plain, max(n, plain))])[:n]
    names = []
    for number in numbers.tolist():
        round_, pair = divmod(number, plain)
        initial = "" if round_ == 0 else f" {chr(ord('A') + (round_ - 1) % 26)}."
        again = "" if round_ <= 26 else f" {1 + (round_ - 1) // 26}"
        names.append(f"{first[pair % len(first)]}{initial} {last[pair // len(first)]}{again}")
    return names
