"""The role part: what a node looks like from its links only, at several scales."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.config import Config, PaperConfig
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.names import draw_keys
from spinegraph.graph.overlay import Overlay
from spinegraph.kernels.adjacency import DIRECTIONS
from spinegraph.parts.content import RandomFeatures, principal, smoothers
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.pagerank import RootedPageRank, rooted_pagerank
from spinegraph.structure.smoothing import Smoother, multiply, row_products

COLUMNS = (
    *("log_degree", "log_mean_weight", "log_smaller_neighbors", "log_h_index", "clustering"),
    *("neighbor_log_degree_mean", "neighbor_log_degree_deviation", "overlap_10", "overlap_25", "overlap_50"),
    "spread",
)
AROUND = ("second_log_degree_mean", "near_log_degree", "near_log_degree_deviation")
PROFILE = tuple(f"log_profile_{i + 1}" for i in range(20))
DIRECTED = (
    *("log_out_degree", "log_in_degree", "reciprocity", "balance"),
    *("successors_log_out_degree", "successors_log_in_degree"),
    *("predecessors_log_out_degree", "predecessors_log_in_degree"),
    *("along_log_out_degree", "along_log_in_degree", "against_log_out_degree", "against_log_in_degree"),
)
# The profile determines distances, most of all its first value (how much of a walk returns).
_FIRST, _OTHERS = 1.5, 0.6
_DIRECTED = 1.0  # of all columns about directions together
BOUND = np.float32(5)  # of a column, in standard deviations
_RANDOM_LENGTH = 0.1  # of all random features, relative to the columns
PUSH_TOLERANCE, PUSH_THRESHOLD = 0.05, 5e-5
ROUNDING = np.float32(1e-5)  # relative rounding error of a mean square
_CONSTANT = 3e38  # scale of a constant column; anything divided by it is 0
_MIN_WIDTH = 4  # dimensions from which one is used for the constant
_ROWS = 65_536  # nodes at a time, to bound memory
_log_degrees: WeakKeyDictionary[GraphLike, NDArray[np.float32]] = WeakKeyDictionary()


def profile_of(
    graph: GraphLike, config: Config | PaperConfig, positions: NDArray[np.int64] | None = None
) -> RootedPageRank:
    """Return the profiles of all nodes, or of some, with the settings of a config."""
    reach = (
        (config.near, PUSH_TOLERANCE, PUSH_THRESHOLD)
        if isinstance(config, Config)
        else (config.continuation, config.tolerance, config.threshold)
    )
    keys = None
    if config.rpr_method == "walks":  # seeded by names, since positions may change
        keys = draw_keys(graph.names if positions is None else graph.names[positions])
    return rooted_pagerank(
        graph,
        k=config.k,
        continuation=reach[0],
        method=config.rpr_method,  # type: ignore[arg-type]
        tolerance=reach[1],
        threshold=reach[2],
        walks=config.walks,
        walk_length=config.walk_length,
        seed=config.seed,
        roots=positions,
        keys=keys,
        threads=config.threads,
    )


@dataclass(frozen=True, eq=False)
class Role:
    """Structural columns, standardised with the mean and scale of the training nodes.

    Attributes
    ----------
    mean, scale : float32 array (s,)
    rotation : float32 array (s, d)
    constant : float
        One more dimension with the same value for all nodes, so that ordinary nodes, which are near the mean,
        have the same direction and cosines tell them from others. 0 in very short parts.
    random_features : RandomFeatures or None
        Fill dimensions beyond the number of columns.
    """

    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    rotation: NDArray[np.float32]
    constant: float = 0.0
    random_features: RandomFeatures | None = None

    @property
    def dim(self) -> int:
        """Length of this part."""
        more = 0 if self.random_features is None else len(self.random_features.offset)
        return int(self.rotation.shape[1]) + more + (self.constant > 0)

    @classmethod
    def fit(cls, columns: NDArray[np.float32], width: int, seed: int) -> "Role":
        """Fit means and scales on columns (m, s); with fewer dimensions, principal directions are kept."""
        mean, deviation = columns.mean(axis=0, dtype=np.float64), columns.std(axis=0, dtype=np.float64)
        scale = np.where(deviation > 1e-5, deviation, _CONSTANT).astype(np.float32)
        weights = np.diag(_weights(len(scale)))
        role = cls(mean.astype(np.float32), scale, weights)
        constant = float(width >= _MIN_WIDTH)
        width -= int(constant)
        if width < len(scale):
            role = replace(role, rotation=weights @ principal(role.embed(columns), width))
        values = role.embed(columns)
        length = np.sqrt(np.square(values, dtype=np.float64).sum() / max(len(values), 1))
        length = length if length > 1e-6 else 1.0  # all nodes are alike, up to rounding
        role = replace(role, rotation=(role.rotation / length).astype(np.float32))
        if width > len(scale):
            more = RandomFeatures.fit(role.embed(columns), width - len(scale), seed)
            more = more.scaled(_RANDOM_LENGTH * (len(scale) / (width - len(scale))) ** 0.5)
            role = replace(role, random_features=more)
        return replace(role, constant=constant)

    def embed(self, columns: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return this part (r, d) of nodes with columns (r, s)."""
        # Softly bounded, so that columns of a network unlike the training one do not dominate.
        bounded = BOUND * np.tanh((columns - self.mean) / self.scale / BOUND)
        values = row_products(bounded, self.rotation)
        values = values if self.random_features is None else self.random_features.append_to(values)
        if not self.constant:
            return values
        return np.hstack([values, np.full((len(values), 1), self.constant, np.float32)])


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Values of surrounding nodes that role columns need."""

    neighbor_means: NDArray[np.float32]  # (n,) mean log degree of a node's neighbours
    # (r, 2) means by T_near of log degrees and of their squares; for a directed graph (r, 6), with means of
    # log out- and in-degrees by T_near along edges and against them.
    near: NDArray[np.float32]

    @classmethod
    def of(cls, graph: GraphLike, around: tuple[Smoother, ...]) -> "Surroundings":
        """Return the values for all nodes, given T_near, T_far and the directed smoothers."""
        logarithms = log_degrees(graph)
        means = [
            _neighbor_means(graph.adjacency().neighbors(some), logarithms) for some in _blocks(len(graph))
        ]
        return cls(np.concatenate([*means, np.zeros(0, np.float32)]), all_smoothed_degrees(graph, around))

    @classmethod
    def of_some(
        cls, graph: GraphLike, positions: NDArray[np.int64], near: NDArray[np.float32]
    ) -> "Surroundings":
        """Return the values that some nodes need; for ``near`` see ``smoothed_degrees``."""
        logarithms = log_degrees(graph)
        around = np.unique(graph.adjacency().neighbors(positions)[1]).astype(np.int64)
        means = np.zeros(len(graph), np.float32)
        means[around] = _neighbor_means(graph.adjacency().neighbors(around), logarithms)
        return cls(means, near)


def all_smoothed_degrees(graph: GraphLike, around: tuple[Smoother, ...]) -> NDArray[np.float32]:
    """Return smoothed log degrees of all nodes, given T_near, T_far and the directed smoothers."""
    near, _, *directed = around
    smoothed = [near.smooth(moments(log_degrees(graph)))]
    return np.hstack([*smoothed, *(each.smooth(log_both(graph)) for each in directed)])


def smoothed_degrees(graph: GraphLike, near: csr_array, directed: list[csr_array]) -> NDArray[np.float32]:
    """Return smoothed log degrees of some nodes, given their rows of T_near and of the directed smoothers."""
    smoothed = [multiply(near, moments(log_degrees(graph)), 1)]
    return np.hstack([*smoothed, *(multiply(each, log_both(graph), 1) for each in directed)])


def moments(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return values (n,) and their squares, (n, 2)."""
    return np.stack([values, values**2], axis=1)


def role_columns(
    graph: GraphLike,
    config: Config,
    positions: NDArray[np.int64],
    around: Surroundings,
    profile: RootedPageRank | None = None,
) -> NDArray[np.float32]:
    """Return the columns (r, s) of some nodes, in the order of ``names_of``.

    ``around.near`` and ``profile`` have one row for each node; ``profile`` is computed unless given.
    """
    profile = profile_of(graph, config, positions) if profile is None else profile
    columns = structural_columns(
        graph, positions, profile=profile, names=COLUMNS + PROFILE, threads=config.threads
    )
    own, ranked = np.split(columns.values, [len(COLUMNS)], axis=1)
    second = _neighbor_means(graph.adjacency().neighbors(positions), around.neighbor_means)
    mean, square, *directed_means = around.near.T
    deviation = np.sqrt(np.maximum((1 - ROUNDING) * square - mean**2, 0))
    directed = [*directed_columns(graph, positions), *directed_means] if graph.directed else []
    return np.column_stack([own, second, mean, deviation, *directed, ranked]).astype(np.float32)


def columns_of(graph: GraphLike, config: Config, positions: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the columns (r, s) of some nodes, by smoothing over the whole graph."""
    near = all_smoothed_degrees(graph, smoothers(graph, config))[positions]
    return role_columns(graph, config, positions, Surroundings.of_some(graph, positions, near))


def names_of(directed: bool) -> tuple[str, ...]:
    """Return the column names for an undirected or a directed graph."""
    return COLUMNS + AROUND + (DIRECTED if directed else ()) + PROFILE


def directed_columns(graph: GraphLike, positions: NDArray[np.int64]) -> list[NDArray[np.floating[Any]]]:
    """Return the first columns (8, r) of ``DIRECTED``."""
    out, into, all_of = (
        each[positions] for each in (graph.out_degrees, graph.in_degrees, graph.degrees.astype(np.float64))
    )
    flows = [each[positions] for each in (graph.out_strengths, graph.in_strengths)]
    total = flows[0] + flows[1]
    balance = (flows[0] - flows[1]) / np.where(total > 0, total, 1)
    logarithms = log_both(graph)
    around = [
        _neighbor_means(graph.adjacency(way).steps(positions), values)
        for way in DIRECTIONS
        for values in logarithms.T
    ]
    both_ways = (out + into - all_of) / np.maximum(all_of, 1)
    return [np.log1p(out), np.log1p(into), both_ways, balance, *around]


def _weights(count: int) -> NDArray[np.float32]:
    """Return the weight of each column; the squares of those of the profile add up to 1."""
    directed = count - len(names_of(directed=False))
    others = count - len(PROFILE) - directed
    groups = [
        np.full(others, _OTHERS / np.sqrt(others)),
        np.full(directed, _DIRECTED / np.sqrt(directed or 1)),
    ]
    profile = np.array([_FIRST, *[1] * (len(PROFILE) - 1)])
    return np.concatenate([*groups, profile / np.linalg.norm(profile)]).astype(np.float32)


def log_degrees(graph: GraphLike) -> NDArray[np.float32]:
    """Return log(1 + degree) of all nodes, (n,)."""
    found = _log_degrees.get(graph)
    if found is not None:
        return found
    if isinstance(graph, Overlay):
        found = np.zeros(len(graph), np.float32)
        found[: len(graph.base)] = log_degrees(graph.base)
        is_patched = graph.patch.row_ids >= 0
        found[is_patched] = np.log1p(graph.degrees[is_patched])
    else:
        found = np.log1p(graph.degrees).astype(np.float32)
    _log_degrees[graph] = found
    return found


def log_both(graph: GraphLike) -> NDArray[np.float32]:
    """Return the log out- and in-degrees, (n, 2)."""
    return np.log1p(np.stack([graph.out_degrees, graph.in_degrees], axis=1)).astype(np.float32)


def _blocks(n: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, n, _ROWS):
        yield np.arange(start, min(start + _ROWS, n))


def _neighbor_means(
    rows: tuple[NDArray[np.int64], NDArray[Any]], values: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the mean of values (n,) over each of r rows of neighbours, (r,), or 0 for empty rows."""
    indptr, neighbors = rows
    found = np.zeros(len(indptr) - 1)
    has_any = indptr[1:] > indptr[:-1]
    if has_any.any():  # each row is summed separately, so its bits do not depend on other nodes
        sums = np.add.reduceat(values[neighbors].astype(np.float64), indptr[:-1][has_any])
        found[has_any] = sums / np.diff(indptr)[has_any]
    return found.astype(np.float32)
