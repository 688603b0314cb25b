"""Two coordinates per node, so that near vectors are near on paper; and drawings of neighbourhoods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from spinegraph.errors import MissingPackageError, ParameterError
from spinegraph.graph.graph import GraphLike
from spinegraph.kernels.adjacency import Adjacency

Points = NDArray[np.float32]
Placer = Callable[[Points, int], Points]

_LANDMARKS = 2_000
_AROUND = 8  # landmarks that place a point
_NEIGHBORS = 10
_CELLS = 12  # cells searched for a point's neighbours
_ROUNDS = 150
_STRANGERS = 10  # random points that push a point away, each round
_EACH_FOR = 40  # one stranger stands for every so many points in all
_RATE = 0.1
_FARTHEST = 40.0  # of a move, before the rate
_WIDTH = 60.0  # of the map while points move: neighbours are then about 1 apart
_BLOCK = 4_096


def spread_around_landmarks(points: Points, place: Placer, seed: int) -> Points:
    """Place a sample by ``place``, the other points beside their nearest landmarks, and let all settle.

    Parameters
    ----------
    points : float32 array (n, d)
    place : callable (points, seed) -> (m, 2)
        A careful way for few points.
    seed : int

    Returns
    -------
    float32 array (n, 2)
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(len(points))[:_LANDMARKS])
    landmarks = points[chosen]
    placed = place(landmarks, seed)  # (m, 2)
    nearest, squared = nearest_rows(points, landmarks, min(_AROUND, len(landmarks)))
    scale = np.maximum(squared[:, [squared.shape[1] // 2]], 1e-9)
    pull = np.exp(-2 * squared / scale)
    pull /= pull.sum(axis=1, keepdims=True)
    start = np.einsum("nm,nmc->nc", pull, placed[nearest])
    neighbors = _neighbors_in_cells(points, landmarks, nearest[:, 0])
    return _settle(start * (_WIDTH / max(float(start.std()), 1e-12)), neighbors, rng)


def nearest_rows(points: Points, others: Points, count: int) -> tuple[NDArray[np.int64], Points]:
    """Return the nearest ``count`` rows of ``others`` for each point, and squared distances."""
    found = np.empty((len(points), count), np.int64)
    squared = np.empty((len(points), count), np.float32)
    lengths = (others * others).sum(axis=1)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        away = lengths - 2 * block @ others.T  # (b, m) less the block's own squared lengths
        near = np.argpartition(away, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(away, near, axis=1), axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        found[start : start + _BLOCK] = near
        own = (block * block).sum(axis=1, keepdims=True)
        squared[start : start + _BLOCK] = np.maximum(np.take_along_axis(away, near, axis=1) + own, 0)
    return found, squared


def _neighbors_in_cells(points: Points, landmarks: Points, cell: NDArray[Any]) -> NDArray[np.int64]:
    """Find neighbours (n, k) among points of the same and the nearest cells; a few are missed."""
    order = np.argsort(cell, kind="stable")
    ends = np.searchsorted(cell[order], np.arange(len(landmarks) + 1))
    members = [order[ends[place] : ends[place + 1]] for place in range(len(landmarks))]
    close = nearest_rows(landmarks, landmarks, min(_CELLS, len(landmarks)))[0]
    found = np.repeat(np.arange(len(points))[:, None], _NEIGHBORS, axis=1)  # oneself where there are too few
    lengths = (points * points).sum(axis=1)
    for place, mine in enumerate(members):
        if not len(mine):
            continue
        near = np.concatenate([members[other] for other in close[place]])
        count = min(_NEIGHBORS, len(near) - 1)
        for start in range(0, len(mine), _BLOCK):
            some = mine[start : start + _BLOCK]
            away = lengths[near] - 2 * points[some] @ points[near].T
            away[some[:, None] == near] = np.inf
            if count > 0:
                found[some, :count] = near[np.argpartition(away, count - 1, axis=1)[:, :count]]
    return found


def _settle(places: Points, neighbors: NDArray[np.int64], rng: np.random.Generator) -> Points:
    """Draw points to their neighbours and push them from strangers, less and less."""
    places = places.astype(np.float32)
    push = np.float32(2 * len(places) / _EACH_FOR)
    for done in range(_ROUNDS):
        rate = np.float32(_RATE * (1 - done / _ROUNDS))
        towards = places[neighbors] - places[:, None]  # (n, k, 2)
        squared = np.einsum("nkc,nkc->nk", towards, towards)
        move = np.einsum("nkc,nk->nc", towards, 2 / (1 + squared))
        strangers = rng.integers(len(places), size=(len(places), _STRANGERS))
        away = places[strangers] - places[:, None]
        squared = np.einsum("nkc,nkc->nk", away, away)
        move -= np.einsum("nkc,nk->nc", away, push / ((0.01 + squared) * (1 + squared)))
        places += rate * np.clip(move, -_FARTHEST, _FARTHEST)
    return places


Method = Literal["auto", "tsne", "landmarks", "pca", "umap"]

_METHODS = ("auto", "tsne", "landmarks", "pca", "umap")
_MOST_TSNE = 3_000  # about seven seconds; beyond, landmarks are placed so and the rest around them
_LEAST_TSNE = 6
_KEPT = 50  # principal directions: distances hardly change and every product is cheaper
_ITERATIONS = 500  # on Cora 1,000 keep no more neighbours
_PERPLEXITY = 30.0


def layout(vectors: ArrayLike, *, method: Method = "auto", seed: int = 0) -> Points:
    """Place vectors in the plane so that those at a small angle are near each other.

    The same vectors and seed give the same map. Axes have no meaning of their own; the map is centred and
    scaled to deviate by 1 along the wider one.

    Parameters
    ----------
    vectors : array (n, d)
        Finite.
    method : str
        ``"tsne"``: scikit-learn's, the best for few points. ``"landmarks"``: t-SNE of 2,000 points, the
        others placed around the nearest of them and moved towards their neighbours; the quickest for many.
        ``"pca"``: the two principal directions. ``"umap"``: by ``pip install 'spinegraph[umap]'``.
        ``"auto"``: t-SNE up to 3,000 points, landmarks beyond.
    seed : int

    Returns
    -------
    float32 array (n, 2)

    Examples
    --------
    >>> corners = np.repeat(np.eye(3), 5, axis=0)
    >>> places = layout(corners)
    >>> apart = np.linalg.norm(places[:, None] - places, axis=2)
    >>> bool(apart[0, 1:5].max() < apart[0, 5:].min())
    True
    """
    points = _as_points(vectors)
    if method not in _METHODS:
        raise ParameterError(f"method must be one of {', '.join(map(repr, _METHODS))}; got {method!r}")
    if method == "auto":
        method = "tsne" if len(points) <= _MOST_TSNE else "landmarks"
    if method != "umap" and len(np.unique(points[:_MOST_TSNE], axis=0)) < _LEAST_TSNE:
        method = "pca"
    if method == "umap":
        return _scaled(_umap(points, seed))
    principal = _principal(points, 2 if method == "pca" else _KEPT)
    if method == "pca":
        return _scaled(principal)
    if method == "tsne":
        return _scaled(tsne(principal, seed))
    return _scaled(spread_around_landmarks(principal, tsne, seed))


def tsne(points: Points, seed: int) -> Points:
    """Return scikit-learn's t-SNE of points (n, d), for small n.

    Examples
    --------
    >>> tsne(np.eye(9, dtype=np.float32), seed=0).shape
    (9, 2)
    """
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    # A start of principal directions makes the large shape of the map the same for every seed.
    model = TSNE(perplexity=perplexity, init=_start(points), max_iter=_ITERATIONS, random_state=seed)
    return cast(Points, model.fit_transform(points))


def _as_points(vectors: ArrayLike) -> Points:
    """Return rows of length one, so that distance is angle; a row of zeros stays."""
    given = np.asarray(vectors, dtype=np.float32)
    if given.ndim != 2 or not given.shape[1]:
        raise ParameterError(f"vectors must be (n, d) with d >= 1; got shape {given.shape}")
    if not np.isfinite(given).all():
        raise ParameterError("vectors must be finite; got NaN or infinity")
    length = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    return (given / np.where(length > 0, length, 1)).astype(np.float32)


def _principal(points: Points, count: int) -> Points:
    """Project on the leading principal directions (n, count), or fewer where there are fewer; one sign."""
    if not len(points):
        return np.zeros((0, count), np.float32)
    centred = points - points.mean(axis=0)
    directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))[1][:, ::-1][:, :count]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    found = np.zeros((len(points), max(2, directions.shape[1])), np.float32)
    found[:, : directions.shape[1]] = centred @ directions.astype(np.float32)
    return found


def _start(points: Points) -> Points:
    start = points[:, :2] / max(float(points[:, 0].std()), 1e-12) * 1e-4
    return np.ascontiguousarray(start, dtype=np.float32)


def _umap(points: Points, seed: int) -> Points:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of its own choices
        try:
            import umap
        except ImportError:
            raise MissingPackageError(
                "method 'umap' needs umap-learn: pip install 'spinegraph[umap]'"
            ) from None
        neighbors = min(15, len(points) - 1)
        if neighbors < 2:
            return _principal(points, 2)
        model: Any = umap.UMAP(n_neighbors=neighbors, init="random", random_state=seed, n_jobs=1)
        return np.asarray(model.fit_transform(points), dtype=np.float32)


def _scaled(places: Points) -> Points:
    if not len(places):
        return np.zeros((0, 2), np.float32)
    centred = places - places.mean(axis=0)
    scaled: Points = (centred / max(float(centred.std(axis=0).max()), 1e-12)).astype(np.float32)
    return scaled


_EGO_ROUNDS = 120
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
    """

    nodes: NDArray[np.int64]
    hops: NDArray[np.int64]
    edges: NDArray[np.int64]
    places: NDArray[np.float64]
    left_out: int


def ego_network(graph: GraphLike, node: Any, *, radius: int = 2, most: int = 40) -> Ego:
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
    for _ in range(_EGO_ROUNDS):
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
