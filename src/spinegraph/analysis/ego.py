"""The small network around a node, and where to draw its nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from spinegraph.errors import ParameterError
from spinegraph.kernels.adjacency import Adjacency

_ROUNDS = 120
_OUTWARD = 4.0  # how much more a node's distance to the root counts than one between two others


@dataclass(frozen=True, eq=False)
class Ego:
    """The nodes around a root, the edges among them, and places for a drawing.

    Attributes
    ----------
    nodes : int64 array (m,)
        Positions in the graph; the root first.
    hops : int64 array (m,)
        Steps from the root.
    edges : int64 array (e, 2)
        Pairs of places in ``nodes``.
    places : float64 array (m, 2)
        The root at the origin, one unit per hop where that can be had.
    left_out : int
        Nodes within the radius that are not shown.

    Examples
    --------
    >>> from spinegraph import made
    >>> ego_network(made.karate(), 11).nodes.tolist()[:2]
    [11, 0]
    """

    nodes: NDArray[np.int64]
    hops: NDArray[np.int64]
    edges: NDArray[np.int64]
    places: NDArray[np.float64]
    left_out: int


def ego_network(graph: Any, node: Any, *, radius: int = 2, most: int = 40) -> Ego:
    """Gather the nodes within some steps of a node and draw them by their distances.

    Where there are too many, nearer nodes go first, and of one ring those of larger degree.

    Parameters
    ----------
    graph : Graph or Overlay
    node : name
    radius : int
        Steps.
    most : int
        Nodes shown.

    Examples
    --------
    >>> from spinegraph import made
    >>> ego = ego_network(made.barbell(4, bridge=1), 4, radius=1)
    >>> ego.hops.tolist(), ego.edges.tolist()
    ([0, 1, 1], [[0, 1], [0, 2]])
    """
    for name, value in (("radius", radius), ("most", most)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"{name} must be a whole number of at least 1; got {value!r}")
    root = int(graph.positions([node])[0])
    degrees, adjacency = graph.degrees, graph.adjacency()
    nodes, hops, left_out = [root], [0], 0
    ring, seen = [root], {root}
    for hop in range(1, radius + 1):
        around = set(adjacency.neighbors(np.array(ring, np.int64))[1].tolist()) - seen
        seen |= around
        kept = sorted(around, key=lambda place: (-int(degrees[place]), place))[: most - len(nodes)]
        left_out += len(around) - len(kept)
        nodes += kept
        hops += [hop] * len(kept)
        ring = sorted(kept)
    edges = _edges_among(adjacency, nodes)
    return Ego(np.array(nodes), np.array(hops), edges, _draw(len(nodes), edges), left_out)


def _edges_among(adjacency: Adjacency, nodes: list[int]) -> NDArray[np.int64]:
    place_of = {node: place for place, node in enumerate(nodes)}
    indptr, others = adjacency.neighbors(np.array(nodes))
    places = np.repeat(np.arange(len(nodes)), np.diff(indptr)).tolist()
    found = [
        (place, place_of[other])
        for place, other in zip(places, others.tolist(), strict=True)
        if place < place_of.get(other, -1)
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _draw(count: int, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Place nodes so that distances on paper are steps in the network, by stress majorisation.

    Every round replaces each node's place by the mean of where the others would have it, weighted by
    1 / steps squared. The root stays in the middle.
    """
    if count == 1:
        return np.zeros((1, 2))
    linked = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    steps = shortest_path(linked, directed=False, unweighted=True)
    steps[~np.isfinite(steps)] = 3
    weight = 1 / np.maximum(steps, 1) ** 2
    weight[0] *= _OUTWARD
    weight[:, 0] *= _OUTWARD
    np.fill_diagonal(weight, 0)
    places = _around_the_root(steps)
    for _ in range(_ROUNDS):
        between = places[:, None] - places  # (m, m, 2)
        length = np.linalg.norm(between, axis=2)
        wanted = steps / np.maximum(length, 1e-9)
        targets = places[None] + between * wanted[:, :, None]  # where each other node would have a node
        places = np.einsum("ij,ijc->ic", weight, targets) / weight.sum(axis=1, keepdims=True)
        places -= places[0]
    return places


def _around_the_root(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Start on rings, nodes that are near each other side by side by the first two axes of scaling."""
    centred = -0.5 * steps**2
    centred = centred - centred.mean(axis=0) - centred.mean(axis=1, keepdims=True) + centred.mean()
    vectors = np.linalg.eigh(centred)[1][:, ::-1][:, :2]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    angle = np.arctan2(vectors[:, -1], vectors[:, 0]) if vectors.shape[1] > 1 else np.zeros(len(steps))
    # Equal angles would stay equal for ever: an even turn by rank parts them, and uses the whole circle.
    rank = np.argsort(np.argsort(angle[1:], kind="stable"), kind="stable")
    turn = np.concatenate([[0.0], 2 * np.pi * rank / max(len(steps) - 1, 1)])
    places: NDArray[np.float64] = steps[0][:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return places
