"""A map of vectors: two coordinates per node, so that near vectors are near on paper."""

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.analysis.landmarks import spread_around_landmarks
from spinegraph.errors import MissingPackageError, ParameterError

Method = Literal["auto", "tsne", "landmarks", "pca", "umap"]
Points = NDArray[np.float32]

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
