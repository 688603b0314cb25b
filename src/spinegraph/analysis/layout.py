"""Coordinates for maps, on which similar vectors are close, and for drawings of neighbourhoods."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from threadpoolctl import threadpool_limits

from spinegraph.errors import MissingPackageError, ParameterError
from spinegraph.graph.graph import GraphLike
from spinegraph.structure.pagerank import as_whole
from spinegraph.structure.smoothing import signed

Points = NDArray[np.float32]
Method = Literal["auto", "tsne", "landmarks", "pca", "umap"]

_MAX_TSNE = 3_000  # about seven seconds; beyond, only landmarks are placed by t-SNE
_MIN_TSNE = 6
_PRINCIPAL = 50  # directions kept for t-SNE: distances hardly change and every product is cheaper
_ITERATIONS = 500  # on Cora, 1,000 preserve no more neighbours
_PERPLEXITY, _FEW_POINTS = 30.0, 1_000


def layout(vectors: ArrayLike, *, method: Method = "auto", seed: int = 0) -> Points:
    """Place vectors in the plane so that vectors at a small angle are close to each other.

    The same vectors and seed give the same map. The axes have no meaning; the map is centred and scaled to a
    standard deviation of 1 along the wider axis.

    Parameters
    ----------
    vectors : array (n, d)
        Finite.
    method : str
        ``"tsne"``: scikit-learn's, best for few points. ``"landmarks"``: t-SNE of 2,000 points; the others
        are placed around the nearest of these and moved towards their neighbours; quickest for many points.
        ``"pca"``: two principal components. ``"umap"``: needs ``pip install 'spinegraph[umap]'``.
        ``"auto"``: t-SNE up to 3,000 points, landmarks beyond.
    seed : int

    Returns
    -------
    float32 array (n, 2)

    Examples
    --------
    >>> corners = np.repeat(np.eye(3), 5, axis=0)
    >>> coordinates = layout(corners)
    >>> apart = np.linalg.norm(coordinates[:, None] - coordinates, axis=2)
    >>> bool(apart[0, 1:5].max() < apart[0, 5:].min())
    True
    """
    given = np.asarray(vectors, dtype=np.float32)
    if given.ndim != 2 or not given.shape[1] or not np.isfinite(given).all():
        raise ParameterError(f"vectors must be (n, d), d >= 1, and finite; got shape {given.shape}")
    if method not in get_args(Method):
        raise ParameterError(f"method must be one of {get_args(Method)}; got {method!r}")
    length = np.linalg.norm(given.astype(np.float64), axis=1, keepdims=True)
    points = (given / np.where(length > 0, length, 1)).astype(np.float32)  # distance is angle
    if not len(points):
        return np.zeros((0, 2), np.float32)
    if method == "auto":
        method = "tsne" if len(points) <= _MAX_TSNE else "landmarks"
    if method != "umap" and len(np.unique(points[:_MAX_TSNE], axis=0)) < _MIN_TSNE:
        method = "pca"
    if method == "umap":
        found = _umap(points, seed)
    elif method == "pca":
        found = _principal(points, 2)
    else:
        principal = _principal(points, _PRINCIPAL)
        found = _tsne(principal, seed) if method == "tsne" else _landmarks(principal, seed)
    centred = found - found.mean(axis=0)
    return np.asarray(centred / max(float(centred.std(axis=0).max()), 1e-12), dtype=np.float32)


def _principal(points: Points, count: int) -> Points:
    """Return the leading principal components (n, count), or as many as there are, with fixed signs."""
    centred = points - points.mean(axis=0)
    directions = signed(np.linalg.eigh((centred.T @ centred).astype(np.float64))[1][:, ::-1][:, :count])
    found = np.zeros((len(points), max(2, directions.shape[1])), np.float32)
    found[:, : directions.shape[1]] = centred @ directions
    return found


def _tsne(points: Points, seed: int) -> Points:
    from sklearn.manifold import TSNE

    # Starting from principal components gives the map the same overall shape for every seed.
    start = np.ascontiguousarray(points[:, :2] / max(float(points[:, 0].std()), 1e-12) * 1e-4, np.float32)
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    model = TSNE(perplexity=perplexity, init=start, max_iter=_ITERATIONS, random_state=seed)
    # On few points threads gain nothing, and on a busy machine they wait for each other for seconds.
    with threadpool_limits(1 if len(points) <= _FEW_POINTS else None):
        return cast(Points, model.fit_transform(points))


def _umap(points: Points, seed: int) -> Points:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UMAP warns about its own choices
        try:
            import umap
        except ImportError:
            raise MissingPackageError("'umap' needs umap-learn: pip install 'spinegraph[umap]'") from None
        neighbors = min(15, len(points) - 1)
        if neighbors < 2:
            return _principal(points, 2)
        model: Any = umap.UMAP(n_neighbors=neighbors, init="random", random_state=seed, n_jobs=1)
        return np.asarray(model.fit_transform(points), dtype=np.float32)


_NUM_LANDMARKS = 2_000
_LANDMARKS_PER_POINT = 8
_NEIGHBORS, _CELLS = 10, 12  # neighbours of a point, and cells searched for them
_ROUNDS, _RATE, _MAX_MOVE = 150, 0.1, 40.0  # moves are limited before they are multiplied by the rate
_REPELLING = 10  # random points that push a point away in each round
_POINTS_PER_REPELLING = 40  # points that each of them stands for
_WIDTH = 60.0  # of the map while points move, so that neighbours are about 1 apart
_BLOCK = 4_096


def _landmarks(points: Points, seed: int) -> Points:
    """Place landmarks by t-SNE and the other points near their nearest landmarks, then move all; (n, 2)."""
    rng = np.random.default_rng(seed)
    landmarks = points[np.sort(rng.permutation(len(points))[:_NUM_LANDMARKS])]
    placed = _tsne(landmarks, seed)  # (m, 2)
    distances, nearest = _nearest(points, landmarks, _LANDMARKS_PER_POINT)
    squared = distances**2
    scale = np.maximum(squared[:, [squared.shape[1] // 2]], 1e-9)
    pull = np.exp(-2 * squared / scale)
    pull /= pull.sum(axis=1, keepdims=True)
    start = np.einsum("nm,nmc->nc", pull, placed[nearest])
    neighbors = _neighbors_in_cells(points, landmarks, nearest[:, 0])
    coordinates: Points = (start * (_WIDTH / max(float(start.std()), 1e-12))).astype(np.float32)
    push = np.float32(2 * len(points) / _POINTS_PER_REPELLING)
    for done in range(_ROUNDS):
        rate = np.float32(_RATE * (1 - done / _ROUNDS))
        towards = coordinates[neighbors] - coordinates[:, None]  # (n, k, 2)
        squared = np.einsum("nkc,nkc->nk", towards, towards)
        move = np.einsum("nkc,nk->nc", towards, 2 / (1 + squared))
        others = rng.integers(len(points), size=(len(points), _REPELLING))
        away = coordinates[others] - coordinates[:, None]
        squared = np.einsum("nkc,nkc->nk", away, away)
        move -= np.einsum("nkc,nk->nc", away, push / ((0.01 + squared) * (1 + squared)))
        coordinates += rate * np.clip(move, -_MAX_MOVE, _MAX_MOVE)
    return coordinates


def _nearest(points: Points, others: Points, count: int) -> tuple[Points, NDArray[np.int64]]:
    """Return the distances (n, count) to the nearest rows of ``others``, and their indices."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=min(count, len(others)), algorithm="brute").fit(others)
    return cast(tuple[Points, NDArray[np.int64]], found.kneighbors(points))


def _neighbors_in_cells(points: Points, landmarks: Points, cell: NDArray[Any]) -> NDArray[np.int64]:
    """Find neighbours (n, k) among the points of the same cell and the nearest ones; a few are missed."""
    order = np.argsort(cell, kind="stable")
    members = np.split(order, np.searchsorted(cell[order], np.arange(1, len(landmarks))))
    close = _nearest(landmarks, landmarks, _CELLS)[1]
    found = np.repeat(np.arange(len(points))[:, None], _NEIGHBORS, axis=1)  # padded with the point itself
    lengths = (points * points).sum(axis=1)
    for own, cells in zip(members, close, strict=True):
        near = np.concatenate([members[other] for other in cells])
        count = min(_NEIGHBORS, len(near) - 1)
        for start in range(0, len(own) if count > 0 else 0, _BLOCK):
            some = own[start : start + _BLOCK]
            away = lengths[near] - 2 * points[some] @ points[near].T
            away[some[:, None] == near] = np.inf
            found[some, :count] = near[np.argpartition(away, count - 1, axis=1)[:, :count]]
    return found


_EGO_ROUNDS = 120
_ROOT_WEIGHT = 4.0  # weight of distances to the root, relative to other distances


@dataclass(frozen=True, eq=False)
class Ego:
    """The nodes around a root, the edges among them, and coordinates for a drawing."""

    nodes: NDArray[np.int64]  # (m,), positions in the graph; the root first
    hops: NDArray[np.int64]  # (m,), steps from the root
    edges: NDArray[np.int64]  # (e, 2), pairs of indices into nodes
    coordinates: NDArray[np.float64]  # (m, 2), the root at the origin, about one unit per hop
    left_out: int  # nodes within the radius that are not shown


def ego_network(graph: GraphLike, node: Any, *, radius: int = 2, most: int = 40) -> Ego:
    """Return the nodes within some steps of a node, with coordinates that reflect their distances.

    At most ``most`` nodes within ``radius`` steps are kept: nearer ones first, then those of larger degree.
    """
    radius, most = as_whole("radius", radius), as_whole("most", most)
    root = int(graph.positions([node])[0])
    degrees, adjacency = graph.degrees, graph.adjacency()
    nodes, hops, left_out = [root], [0], 0
    ring, seen = [root], {root}
    for hop in range(1, radius + 1):
        around = set(adjacency.neighbors(np.array(ring, np.int64))[1].tolist()) - seen
        seen |= around
        kept = sorted(around, key=lambda node: (-int(degrees[node]), node))[: most - len(nodes)]
        left_out += len(around) - len(kept)
        nodes += kept
        hops += [hop] * len(kept)
        ring = sorted(kept)
    shown, order = np.array(nodes), np.argsort(nodes)
    indptr, others = adjacency.neighbors(shown)
    ends = np.repeat(np.arange(len(shown)), np.diff(indptr))
    starts = order[np.searchsorted(shown, others, sorter=order) % len(shown)]
    edges = np.column_stack([ends, starts])[(shown[starts] == others) & (ends < starts)]
    return Ego(shown, np.array(hops), edges, _draw(len(nodes), edges), left_out)


def _draw(count: int, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return coordinates (count, 2) whose distances approximate steps in the network.

    By stress majorisation: every round moves a node to the mean of where the others want it, weighted by
    1 / steps squared. The root stays at the origin.
    """
    if count == 1:
        return np.zeros((1, 2))
    linked = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count))
    steps = shortest_path(linked, directed=False, unweighted=True)
    steps[~np.isfinite(steps)] = 3
    weight = 1 / np.maximum(steps, 1) ** 2
    weight[0] *= _ROOT_WEIGHT
    weight[:, 0] *= _ROOT_WEIGHT
    np.fill_diagonal(weight, 0)
    # Start on rings, ordered by the angle in the first two axes of classical scaling. Nodes are spread evenly
    # by rank, because equal angles would stay equal.
    scaled = -0.5 * steps**2
    scaled = scaled - scaled.mean(axis=0) - scaled.mean(axis=1, keepdims=True) + scaled.mean()
    axes = np.linalg.eigh(scaled)[1][:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(2)])
    rank = np.argsort(np.argsort(np.arctan2(axes[1:, 1], axes[1:, 0]), kind="stable"), kind="stable")
    turn = np.concatenate([[0.0], 2 * np.pi * rank / (count - 1)])
    coordinates: NDArray[np.float64] = steps[0][:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    for _ in range(_EGO_ROUNDS):
        between = coordinates[:, None] - coordinates  # (m, m, 2)
        wanted = steps / np.maximum(np.linalg.norm(between, axis=2), 1e-9)
        targets = coordinates[None] + between * wanted[:, :, None]  # where each node wants each other one
        coordinates = np.einsum("ij,ijc->ic", weight, targets) / weight.sum(axis=1, keepdims=True)
        coordinates -= coordinates[0]
    return coordinates
