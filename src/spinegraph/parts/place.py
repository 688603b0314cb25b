"""The place part: where in the training network a node is, from the positions of the nodes around it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.config import Config
from spinegraph.errors import ParameterError
from spinegraph.graph.edges import row_sums
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.overlay import Overlay
from spinegraph.kernels.sparse import sparse_times_dense
from spinegraph.structure.pagerank import rooted_pagerank
from spinegraph.structure.smoothing import Smoother, chosen_entries, main_directions, multiply

KNOWN_MASS = 0.05  # weight of T on nodes with a position, below which a node has no place
_SAMPLE = 1_000  # links by which the training network is recognised
_SAME = 0.5  # share of these links that must exist
CONTINUATION, LENGTH = 0.95, 40  # of the walks that positions are made from
_WALKS, _VISITED = 200, 300  # most walks from a node, and most visited nodes that are kept
_STEPS, _ENTRIES = 1.6e8, 6e6  # approximate totals of steps and kept nodes, which limit large networks
ROUNDS = 3  # of the decomposition
_NODES_PER_DIMENSION = 8  # at least
_MANY_NODES = ((30_000, 96), (200_000, 64))  # above this many nodes, at most this many dimensions
MAX_POSITIONS = 500_000  # nodes, those with most neighbours; the others get a place from nodes around them
_HIDDEN, _FEW_LINKS, _MAX_PAIRS = 0.2, 100, 100_000  # links, for measuring the strength of place
_CHECK_WIDTH, _CHECK_WALKS = 32, 50
_USUAL_STRENGTH = 0.7
_POSITIONS = 51  # stage of the random draws
Positions = Callable[[Graph, int, Config], NDArray[np.float32]]  # graph, width, settings -> (n, p)


@dataclass(frozen=True, eq=False)
class Place:
    """Positions of the training network's nodes; a node's place is the mean of those around it.

    Attributes
    ----------
    names : array (n,)
        The training nodes with links; if more than ``MAX_POSITIONS``, those with most neighbours.
    positions : float32 array (n, p)
    links : int64 array (s, 2)
        A sample of links, by which the training network is recognised.
    dim : int
        Length of this part; dimensions beyond p are 0.
    """

    names: NDArray[Any]
    positions: NDArray[np.float32]
    links: NDArray[np.int64]
    dim: int
    _last: list[Any] = field(default_factory=list, repr=False)  # the last result of _recognised

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": []}

    @classmethod
    def fit(cls, graph: Graph, width: int, config: Config, positions: "Positions") -> "Place":
        """Fit positions of a graph's nodes, scaled so that places have mean 0 and mean square 1."""
        num_linked = int(np.count_nonzero(graph.degrees))
        count = min(num_linked or len(graph), MAX_POSITIONS)
        if count < len(graph):  # nodes without links have no place
            graph = graph.with_features(None).subgraph(graph.names[_largest(graph.degrees, count)])
        near = Smoother.of(graph, config.near, tolerance=config.tolerance, threads=config.threads)
        found = near.smooth(positions(graph, width, config))  # smoothed, because walks are noisy
        places = near.smooth(found)
        mean = places.mean(axis=0)
        places -= mean
        square = sum(float(np.einsum("ij,ij->", some, some)) for some in np.array_split(places, 64))
        found -= mean
        found *= np.float32(1 / (np.sqrt(square / max(len(graph), 1)) or 1)) if num_linked else 0
        return cls(graph.names, found, _some_links(graph, config.seed), width)

    def smoothed(self, near: Smoother, known: NDArray[np.int64], columns: slice) -> NDArray[np.float32]:
        """Return some columns (n, c) of this part for all nodes, given their training positions (n,)."""
        return _means(near.smooth(self.at(known, columns)))

    def embed_some(self, near: csr_array, known: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return this part (r, d) of some nodes, given their rows of T_near (r, n), and ``known`` (n,)."""
        at = known[near.indices]
        indptr, _, data = chosen_entries(near, at >= 0)
        sums = sparse_times_dense(indptr, at[at >= 0], data, np.ascontiguousarray(self.positions), 1)
        return self.embed_values(np.column_stack([sums, row_sums(indptr, data)]).astype(np.float32))

    def embed_values(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return this part (r, d) of some nodes, given rows of T_near times what :meth:`at` returns."""
        found = np.zeros((len(values), self.dim), np.float32)
        found[:, : self.positions.shape[1]] = _means(values)
        return found

    def at(self, known: NDArray[np.int64], columns: slice = slice(None)) -> NDArray[np.float32]:
        """Return columns of the positions of nodes, or 0, and a last column: 1 if there is one, else 0."""
        some = self.positions[:, columns]
        values = np.zeros((len(known), some.shape[1] + 1), np.float32)
        is_known = known >= 0
        values[is_known, :-1], values[is_known, -1] = some[known[is_known]], 1
        return values

    def known(self, graph: GraphLike, *, sure: bool = False) -> NDArray[np.int64] | None:
        """Return each node's training position, or -1, (n,); None if a graph is not the training network.

        It is if at least half of the sampled training links between its nodes exist, or if the caller is
        ``sure``.
        """
        if not len(self.positions):
            if sure:
                raise ParameterError("same_network=True needs positions, which this model was saved without")
            return None
        base: Any = graph.base if isinstance(graph, Overlay) else graph
        found, is_same = self._recognised(base)
        if not (is_same or sure):
            return None
        known = np.full(len(graph), -1, np.int64)
        known[: len(base)] = found
        if isinstance(graph, Overlay) and graph.num_nodes < len(graph):
            known[np.setdiff1d(np.arange(len(graph)), graph.remaining)] = -1
        return known

    def _recognised(self, graph: Graph) -> tuple[NDArray[np.int64], bool]:
        """Return each node's training position, or -1, (n,), and whether the training links exist."""
        for last, known, is_same in self._last:  # at most one; read once, since other threads may replace it
            if last() is graph:
                return known, is_same
        n = len(self.names)
        if len(graph) >= n and np.array_equal(np.asarray(graph.names[:n]), self.names):
            there = np.arange(n)
        else:
            there = graph._name_index.find(self.names)
        is_there = there >= 0
        known = np.full(len(graph), -1, np.int64)
        known[there[is_there]] = np.flatnonzero(is_there)
        ends = there[self.links]
        ends = ends[(ends >= 0).all(axis=1)]
        if len(ends):
            is_same = bool(_are_linked(graph, ends).mean() >= _SAME)
        else:
            is_same = not len(self.links) and bool(is_there.all())
        self._last[:] = [(ref(graph), known, is_same)]
        return known, is_same


def _largest(values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the sorted indices of the ``count`` largest values, the first ones among equals."""
    limit = np.partition(values, len(values) - count)[len(values) - count]
    is_chosen = values > limit
    is_chosen[np.flatnonzero(values == limit)[: count - int(is_chosen.sum())]] = True
    return np.flatnonzero(is_chosen)


def _means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide sums of positions (n, d) by the known mass, the last column; 0 if that is too small."""
    mass = values[:, -1:]
    return np.where(mass >= KNOWN_MASS, values[:, :-1] / np.maximum(mass, KNOWN_MASS), 0)


def _some_links(graph: Graph, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng([seed, _POSITIONS])
    count = len(graph.indices)
    entries = np.sort(rng.choice(count, min(_SAMPLE, count), replace=False, shuffle=False))
    sources = np.searchsorted(graph.indptr, entries, side="right") - 1
    return np.stack([sources, graph.indices[entries]], axis=1).astype(np.int64)


def _are_linked(graph: Graph, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pairs of positions (m, 2) are links."""
    found = np.zeros(len(ends), bool)
    for row, (source, target) in enumerate(ends.tolist()):
        start, stop = graph.indptr[source], graph.indptr[source + 1]
        at = start + np.searchsorted(graph.indices[start:stop], target)
        found[row] = at < stop and graph.indices[at] == target
    return found


def strength(graph: Graph, config: Config) -> float:
    """Return how well place predicts links, from 0 to 1.

    A fifth of the links is hidden. (1 + strength) / 2 is the probability that the ends of a hidden link are
    closer in place than an end of it and an end of another hidden link, so that popular nodes do not help.
    """
    if len(graph) > config.training_nodes or graph.num_edges < _FEW_LINKS:
        return _USUAL_STRENGTH
    rng = np.random.default_rng([config.seed, _POSITIONS, 1])
    rest, left, right = hidden_links(graph, _HIDDEN, rng)
    near = Smoother.of(rest, config.near, tolerance=config.tolerance, threads=config.threads)
    found = near.smooth(positions(rest, _CHECK_WIDTH, config, _CHECK_WALKS))
    is_swapped = rng.random(len(left)) < 0.5
    left, right = np.where(is_swapped, right, left), np.where(is_swapped, left, right)
    return max(0.0, 2 * share_nearer(found - found.mean(axis=0), left, right, rng.permutation(right)) - 1)


def hidden_links(
    graph: Graph, share: float, rng: np.random.Generator
) -> tuple[Graph, NDArray[np.int64], NDArray[np.int64]]:
    """Return a graph without a random share of its links, and both ends of the hidden links."""
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    once = np.flatnonzero(rows < graph.indices)
    is_hidden = rng.random(len(once)) < share
    hidden, rest = once[is_hidden], only_links(graph, once[~is_hidden])
    if len(hidden) > _MAX_PAIRS:
        hidden = rng.choice(hidden, _MAX_PAIRS, replace=False)
    return rest, rows[hidden], graph.indices[hidden].astype(np.int64)


def only_links(graph: Graph, kept: NDArray[np.int64]) -> Graph:
    """Return a graph with only the links ``kept``, given as entries of ``indices`` with the higher node."""
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    weights = graph.weights
    if graph.outward is not None:
        pairs = np.zeros(len(rows), bool)
        pairs[kept] = True
        transposed = csr_array((pairs, graph.indices, graph.indptr), shape=(len(graph), len(graph))).T.tocsr()
        kept = np.flatnonzero((pairs | transposed.data) & (graph.outward > 0))
        weights = None if weights is None else graph.outward
    return Graph.from_edges(
        np.stack([rows[kept], graph.indices[kept].astype(np.int64)], axis=1),
        num_nodes=len(graph),
        weights=None if weights is None else weights[kept],
        directed=graph.directed,
    )


def share_nearer(
    values: NDArray[np.float32], left: NDArray[np.int64], right: NDArray[np.int64], other: NDArray[np.int64]
) -> float:
    """Return how often the cosine of left and right is above that of left and other; ties count half."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit = values / np.where(lengths > 0, lengths, 1)
    linked, random = (np.einsum("ij,ij->i", unit[left], unit[ends]) for ends in (right, other))
    return float((linked > random).mean() + (linked == random).mean() / 2) if len(left) else 0.5


class Plan(NamedTuple):
    """How positions are made: walks per node, most visited nodes to keep per node, and dimensions."""

    walks: int
    visited: int
    width: int

    @classmethod
    def of(cls, n: int, width: int, most_walks: int = _WALKS) -> "Plan":
        """Return the plan for n nodes; small networks get fewer dimensions, and large ones 96 or 64."""
        walks = int(np.clip(_STEPS / (LENGTH * max(n, 1)), 10, most_walks))
        visited = int(np.clip(_ENTRIES / max(n, 1), 30, _VISITED))
        limits = [limit for many, limit in _MANY_NODES if n > many]
        return cls(walks, visited, min([width, *limits, max(n // _NODES_PER_DIMENSION, 2), n]))


def positions(graph: Graph, width: int, config: Config, most_walks: int = _WALKS) -> NDArray[np.float32]:
    """Return positions (n, p) of a graph's nodes, factorising how often walks from one visit another.

    The matrix holds log(share of visits / the visited node's share of links) if above 0. There are at most
    ``width`` dimensions, fewer in small networks, and 96 or 64 in large ones.
    """
    n = len(graph)
    plan = Plan.of(n, width, most_walks)
    profile = rooted_pagerank(
        graph,
        k=min(plan.visited, n),
        continuation=CONTINUATION,
        method="walks",
        walks=plan.walks,
        walk_length=LENGTH,
        seed=config.seed,
        threads=config.threads,
    )
    strengths = np.where(graph.strengths > 0, graph.strengths, 1)
    shares = np.maximum(strengths / strengths.sum(), 1e-30).astype(np.float32)  # so that ratios stay finite
    matrix = _ratios(profile, shares)
    transposed = matrix.T.tocsr()

    def times(right: NDArray[np.float32]) -> NDArray[np.float32]:
        both = multiply(matrix, right, config.threads) + multiply(transposed, right, config.threads)
        return np.asarray(both / np.float32(2))

    directions, values = main_directions(times, times, n, plan.width, config.seed, ROUNDS)
    return np.asarray(times(directions) / np.sqrt(np.maximum(values, 1e-6)).astype(np.float32))


def _ratios(profile: Any, shares: NDArray[np.float32]) -> csr_array:
    """Return the logarithms of visits over expected visits if above 0, as a sparse (n, n)."""
    n, k = profile.nodes.shape
    nodes = profile.nodes.reshape(-1)
    values = (profile.weights * profile.mass[:, None].astype(np.float32)).reshape(-1)
    with np.errstate(divide="ignore"):
        values = np.log(values / shares[np.maximum(nodes, 0)])
    is_kept = (nodes >= 0) & (values > 0)
    indptr = np.concatenate([[0], np.cumsum(is_kept.reshape(n, k).sum(axis=1))])
    return csr_array((values[is_kept], nodes[is_kept], indptr), shape=(n, n))
