"""The content part: what a node and the nodes around it are about, from their features."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.config import Config
from spinegraph.errors import MissingFeaturesError, ParameterError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import Graph, GraphLike
from spinegraph.graph.overlay import AddedFeatures, AppendOnlyArray, Overlay
from spinegraph.kernels.adjacency import DIRECTIONS
from spinegraph.kernels.sparse import sparse_times_dense
from spinegraph.parts.place import hidden_links
from spinegraph.structure.smoothing import (
    Smoother,
    chosen_entries,
    main_directions,
    multiply,
    row_products,
    signed,
)

OWN, NEAR, FAR = 0.3, 0.7, 1.0  # lengths of a node's own features, of those near it and of those far around
_OWN_ALONE, _FAR_ALONE = 1.0, 0.5  # the same if features have nothing in common with those of neighbours
_HOMOPHILOUS, _MEASURED = 0.3, 2_000  # homophily above which nothing changes; nodes it is measured on
DIRECTED = 0.5  # length of features near a node along directed edges, and of those against them
MAX_UNSCALED = 1e15  # largest unscaled feature, so that its square stays in float32's range
_CONSTANT, _MIN_VARIANCE = 1e-9, 0.02  # of a table's column; if it varies less, it is not scaled up to 1
ROUNDING = 1e-5  # length of what rounding leaves of a zero; usual lengths are about 1
_MAX_DIRECTIONS = 256  # that features are compressed to
_WHOLE_SHARE = 2 / 3  # of the dimensions that features other than words may take uncompressed
_LENGTH_POWER = 0.5  # content of row-scaled features is divided by this power of its length
_HIDDEN = 0.5  # share of the links that are hidden in a round of learning
_ROUNDS = 4  # of each of the two kinds of learning
_HELD_OUT, _TRIAL_ROUNDS = 0.2, 2  # share of the links held out in a trial of learning; rounds of the trial
_ROUGH = 0.05  # tolerance of smoothing in a round
_KEPT = 0.2  # share of its length that a direction keeps if links do not share it at all
_FEW_LINKS = 2_000  # with this many links, half of what is learned is applied
# Contrastive learning: temperature, penalty on squares, steps, learning rate, pairs per step.
_TEMPERATURE, _PENALTY, _STEPS, _RATE, _PAIRS = 0.1, 0.05, 50, 0.005, 512
_COMPARED, _TEMPERATURES = 20_000, (0.05, 0.1, 0.2, 0.5, 1.0, 1e6)  # most held-out links that are scored
_LEARNING, _RANDOM_FEATURES, _HOMOPHILY, _TRIAL = 41, 42, 43, 44  # stages of the random draws
_ROWS, _VALUES = 65_536, 1 << 22  # of dense features, computed at a time to bound memory


@dataclass(frozen=True, eq=False)
class Content:
    """A linear map of a node's own features F, of T_near F and of T_far F.

    For a directed graph, also of T_near F for walks along edges and against them.

    Attributes
    ----------
    encoder : FeatureEncoder
        Scales the features.
    directions : float32 array (f, r)
        Compress the features.
    mean : float32 array (f,)
        Subtracted from the features: their mean for a table or unscaled dense features, else 0.
    mixing : float32 array (3 or 5, r, d)
        Maps of own, near and far compressed features, and of those along and against directed edges.
    offset : float32 array (d,)
        The mean, which is subtracted.
    scale : float
    random_features : RandomFeatures or None
        Fill the dimensions that the map does not need.
    num_whole : int
        Number of leading dimensions that are a node's own features, uncompressed; 0 for a loaded model.
    homophily : float
        How much features resemble those of neighbours, from 0 to 1; 1 for a loaded model.
    """

    encoder: FeatureEncoder
    directions: NDArray[np.float32]
    mean: NDArray[np.float32]
    mixing: NDArray[np.float32]
    offset: NDArray[np.float32]
    scale: float = 1.0
    random_features: "RandomFeatures | None" = None
    num_whole: int = 0
    homophily: float = 1.0
    _cache: "_Cache" = field(default_factory=lambda: _Cache(), repr=False)

    @cached_property
    def center(self) -> NDArray[np.float32]:
        """The compressed mean, (r,)."""
        return np.asarray(row_products(self.mean[None], self.directions)[0])

    @property
    def dim(self) -> int:
        """Length of this part."""
        return len(self.offset) + (0 if self.random_features is None else len(self.random_features.offset))

    @property
    def can_learn(self) -> bool:
        """Whether directions had to be selected, and links say something about features."""
        count, r, d = self.mixing.shape
        return bool(self.num_whole < d < count * r and self.homophily > 0)

    @property
    def length_power(self) -> float:
        """Power of the length that content is divided by; 0 unless features are scaled by row."""
        return _LENGTH_POWER if self.encoder.scaling_ in ("row", "row_sum") else 0.0

    @classmethod
    def fit(
        cls, graph: Graph, width: int, config: Config, encoder: FeatureEncoder | None = None
    ) -> "Content":
        """Fit the map on a graph, without learning; see ``_layout`` for the directions it keeps.

        ``encoder`` scales the features; by default one is fitted on the graph.
        """
        if encoder is None:
            encoder = FeatureEncoder.for_matrix(
                graph.features, scaling_of(graph, config), graph.feature_names
            )
        around = smoothers(graph, config)
        features = encode(encoder, graph)
        table = None if graph.encoder is None or graph.encoder.scaling_ else graph.encoder
        words = np.zeros(encoder.num_features, bool) if table is None else table.is_word
        scale = column_scale(graph, features)
        homophily = feature_homophily(graph, features, scale, config.seed)
        shares = _shares(homophily)[: len(around) + 1]
        directions, whole = _compression(features, around[1], scale, words, shares[0], config.seed)
        # Far means of what nearly all nodes have would mostly show degrees.
        mean = np.zeros(encoder.num_features, np.float32)
        if table is not None or (encoder.scaling_ == "none" and not issparse(features)):
            mean = np.asarray(features.mean(axis=0, dtype=np.float64), np.float32).ravel()
        center = row_products(mean[None], directions)
        own = multiply(features, directions, config.threads) - center
        own *= _root_mean_square(own) > ROUNDING * np.linalg.norm(center)
        blocks = [own, *(each.smooth(own) for each in around)]
        scales = [share / _root_mean_square(block) for share, block in zip(shares, blocks, strict=True)]
        blocks = [scale * block for scale, block in zip(scales, blocks, strict=True)]
        mixing, whole = _layout(blocks, width, whole)
        mixing = mixing.reshape(len(blocks), own.shape[1], -1) * np.array(scales, np.float32)[:, None, None]
        weighed = (block @ part / scale for block, part, scale in zip(blocks, mixing, scales, strict=True))
        values: NDArray[np.float32] = sum(weighed, np.zeros((), np.float32))
        offset = values.mean(axis=0)
        found = cls(encoder, directions, mean, mixing, offset, num_whole=whole, homophily=homophily)
        if width > values.shape[1]:
            random_features = RandomFeatures.fit(values - found.offset, width - values.shape[1], config.seed)
            found = replace(found, random_features=random_features)
        return found._scaled(values)

    def _scaled(self, values: NDArray[np.float32]) -> "Content":
        """Return this part scaled to a mean square of 1, given values (m, d) before the offset."""
        found = replace(self, scale=1.0).finished(values)
        return replace(self, scale=float(1 / _root_mean_square(found)))

    def smoothed(
        self, graph: GraphLike, around: "tuple[Smoother, ...]", columns: slice
    ) -> NDArray[np.float32]:
        """Return some columns (n, c) of the map's values for all nodes, before the offset."""
        return self._smoothed(
            self._mapped(graph, columns, around[0].threads), around, columns, overwrite=True
        )

    def _smoothed(
        self,
        mapped: Iterator[NDArray[np.float32]],
        around: "tuple[Smoother, ...]",
        columns: slice,
        *,
        overwrite: bool,
    ) -> NDArray[np.float32]:
        """Return the sum of the features times each map, smoothed, (n, c)."""
        found = next(mapped) if overwrite else next(mapped).copy()
        for each, part, values in zip(around, self.mixing[1:], mapped, strict=True):
            used = part[:, columns].any(axis=0)
            first = int(used.argmax()) // 8 * 8  # in blocks of eight columns bits stay the same
            if used.any():  # earlier columns are 0
                found[:, first:] += each.smooth(values[:, first:], overwrite=overwrite)
        return np.asarray(found)

    def _mapped(self, graph: GraphLike, columns: slice, threads: int | None) -> Iterator[NDArray[np.float32]]:
        """Return an iterator over the features of all nodes times some columns of each map, (n, c)."""
        parts = [part[:, columns] for part in self.mixing]
        if len(graph) <= _ROWS:
            whole = self._times_features(graph, np.hstack(parts), threads)
            return iter(np.split(whole, len(parts), axis=1))
        # One after the other, to bound memory.
        return (self._times_features(graph, each, threads) for each in parts)

    def _times_features(
        self, graph: GraphLike, part: NDArray[np.float32], threads: int | None
    ) -> NDArray[np.float32]:
        """Return the compressed features of all nodes times a map (r, c), computed in blocks of rows."""
        maps, center = multiply(self.directions, part), self.center @ part
        found = np.empty((len(graph), maps.shape[1]), np.float32)
        is_sparse = issparse(graph.feature_rows(np.arange(0)))
        rows = _ROWS if is_sparse else min(_ROWS, max(1, _VALUES // max(len(maps), 1)))
        for start in range(0, len(graph), rows):
            some = np.arange(start, min(start + rows, len(graph)))
            rows_of = multiply(encode(self.encoder, graph, some), maps, threads)
            found[some[0] : some[-1] + 1] = rows_of - center
        return found

    def compressed(self, graph: GraphLike, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the compressed features (m, r) of some nodes; no row depends on the others."""
        return row_products(encode(self.encoder, graph, positions), self.directions) - self.center

    def reader(self, graph: GraphLike) -> "CompressedFeatures":
        """Return access to the compressed features of a graph's nodes, which are computed on demand."""
        require_features(self.encoder, graph)
        return CompressedFeatures(self, graph)

    def embed_some(self, blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return this part (m, d) of nodes, given compressed features (m, r): own, near, far and so on."""
        products = map(row_products, blocks, self.mixing)
        return self.finished(sum(products, np.zeros((), np.float32)))

    def finished(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return this part (r, d) of nodes, given the values of the map."""
        values = values - self.offset
        if self.random_features is not None:
            values = self.random_features.append_to(values)
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
        values[lengths < ROUNDING] = 0
        if self.length_power:
            values *= (np.where(lengths > 0, lengths, 1) ** np.float32(-self.length_power))[:, None]
        values *= np.float32(self.scale)
        return values

    def require_features(self, graph: GraphLike) -> None:
        """Raise if the features of a graph are not those the model was fitted with."""
        require_features(self.encoder, graph)


class CompressedFeatures:
    """Compressed features of the nodes of a graph, or of an overlay's base and added nodes.

    They are computed on first access, and cached as long as the graph exists.
    """

    def __init__(self, content: Content, graph: GraphLike) -> None:
        base: Any = graph.base if isinstance(graph, Overlay) else graph
        self._content, self._base = content, base
        self._cache = content._cache.of(base, content.directions.shape[1])
        self._added = self._cache.of_added(graph, content) if isinstance(graph, Overlay) else None

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the compressed features of some nodes, (m, r)."""
        is_base = positions < len(self._base)
        self._compute(positions[is_base])
        if self._added is None or is_base.all():
            return np.asarray(self._cache.rows[positions])
        found = np.empty((len(positions), self._added.shape[1]), np.float32)
        found[is_base] = self._cache.rows[positions[is_base]]
        found[~is_base] = self._added[positions[~is_base] - len(self._base)]
        return found

    def product(self, rows: csr_array) -> NDArray[np.float32]:
        """Return rows (m, n) times the compressed features of all nodes, (m, r)."""
        is_base, is_read = rows.indices < len(self._base), np.zeros(len(self._base), bool)
        is_read[rows.indices[is_base]] = True
        self._compute(np.flatnonzero(is_read))
        if self._added is None or is_base.all():
            return multiply(rows, self._cache.rows, 1)
        sums = sparse_times_dense(*chosen_entries(rows, is_base), self._cache.rows, 1)
        indptr, indices, data = chosen_entries(rows, ~is_base)
        # Summed in this order, so that the bits do not depend on which nodes are in the base.
        return sparse_times_dense(indptr, indices - len(self._base), data, self._added, 1, out=sums)

    def _compute(self, positions: NDArray[np.int64]) -> None:
        missing = positions[~self._cache.is_cached[positions]]
        block = max(1, _VALUES // max(self._base.num_features, 1))
        for some in (missing[start : start + block] for start in range(0, len(missing), block)):
            self._cache.rows[some] = self._content.compressed(self._base, some)
            self._cache.is_cached[some] = True


class _CachedRows:
    """Compressed features (n, width) of one graph, and of the nodes added by its overlays.

    ``is_cached`` (n,) tells which rows were computed; rows never written take no memory.
    """

    def __init__(self, count: int, width: int) -> None:
        self.rows, self.is_cached = np.empty((count, width), np.float32), np.zeros(count, bool)
        self._added: tuple[AddedFeatures | None, AppendOnlyArray] = None, AppendOnlyArray(self.rows[:0])
        self._lock = Lock()

    def of_added(self, overlay: Overlay, content: Content) -> NDArray[np.float32]:
        """Return the rows (a, width) of all added nodes."""
        added = overlay.added_rows
        assert added is not None
        with self._lock:
            before, known = self._added
            common = 0 if before is None else min(added.num_common(before), len(known))
            missing = len(overlay.base) + np.arange(common, len(added))
            if not len(missing):
                return known.values[: len(added)]
            whole = known if common == len(known) else AppendOnlyArray(known.values[:common].copy())
            found = whole.plus(content.compressed(overlay, missing))
            if whole is known:
                self._added = added, found
            return found.values


class _Cache:
    """Cached rows per graph, as long as the graph exists."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Graph, _CachedRows] = WeakKeyDictionary()

    def of(self, graph: Graph, width: int) -> _CachedRows:
        """Return the cached rows of a graph."""
        found = self._of.get(graph)
        return self._of.setdefault(graph, _CachedRows(len(graph), width)) if found is None else found

    def __reduce__(self) -> Any:
        return _Cache, ()


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """Random ReLU features, max(0, x W + b), with which a linear model can use interactions of values.

    Attributes
    ----------
    matrix : float32 array (d, e)
    offset : float32 array (e,)
    """

    matrix: NDArray[np.float32]
    offset: NDArray[np.float32]

    @classmethod
    def fit(cls, values: NDArray[np.float32], count: int, seed: int) -> "RandomFeatures":
        """Draw ``count`` combinations of values (n, d), each about as large as a value."""
        rng = np.random.default_rng([seed, _RANDOM_FEATURES])
        deviation = values.std(axis=0, dtype=np.float64)
        matrix = rng.standard_normal((values.shape[1], count))
        is_noise = deviation <= np.maximum(1e-5 * deviation.max(initial=0), 1e-9)  # of rounding
        matrix /= np.where(is_noise, np.inf, deviation)[:, None] * np.sqrt(max(values.shape[1], 1))
        length = np.sqrt(np.square(deviation).mean()) / 0.6  # the deviation of a rectified normal variable
        offset = rng.standard_normal(count) / 2
        return cls((length * matrix).astype(np.float32), (length * offset).astype(np.float32))

    def scaled(self, factor: float) -> "RandomFeatures":
        """Return the same features scaled by a factor."""
        return RandomFeatures(np.float32(factor) * self.matrix, np.float32(factor) * self.offset)

    def append_to(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return values (r, d) with their random features appended, (r, d + e)."""
        return np.hstack([values, np.maximum(row_products(values, self.matrix) + self.offset, 0)])


def learn(content: Content, graph: Graph, config: Config) -> "tuple[Content, Learned]":
    """Reweight directions of content by how well they predict hidden links.

    A trial learns without a fifth of the links. If these are not predicted better than before, nothing is
    applied; otherwise all links are used. Uncompressed own features stay unchanged.
    """
    mapped = list(content._mapped(graph, slice(None), config.threads))
    rng = np.random.default_rng([config.seed, _TRIAL])
    rest, left, right = hidden_links(graph, _HELD_OUT, rng)
    trial = _reweighting(content, rest, mapped, config, rng, _TRIAL_ROUNDS)
    values = _centred(content, rest, mapped, config)
    order = rng.permutation(len(left))
    before, after = (times_chance(each, left[order], right[order]) for each in (values, values @ trial))
    if after <= before:
        return content, Learned(before, before)
    rng = np.random.default_rng([config.seed, _LEARNING])
    found = _reweighting(content, graph, mapped, config, rng, _ROUNDS)
    content = replace(content, mixing=content.mixing @ found, offset=content.offset @ found)
    smoothed = content.smoothed(graph, smoothers(graph, config), slice(None))
    return content._scaled(smoothed), Learned(before, after)


def _reweighting(
    content: Content,
    graph: Graph,
    mapped: list[NDArray[np.float32]],
    config: Config,
    rng: np.random.Generator,
    rounds: int,
) -> NDArray[np.float32]:
    """Return the matrix (d, d) that reweights content, given its own, near and far values before smoothing.

    Each round hides half of the links, smooths on the rest, and compares the ends of hidden links. The
    agreement of a direction x is 1 - E(x_i - x_j)^2 / 2 Var(x) over these links; its length is multiplied by
    0.2 + 0.8 times the agreement. Then, in other rounds, gradient steps change directions so that cosines
    tell the ends of a link from ends of others. With few links or little homophily, less of both applies.
    """

    def hide() -> Round:
        """Hide half of the links and smooth on the rest."""
        rest, left, right = hidden_links(graph, _HIDDEN, rng)
        return Round(left, right, _centred(content, rest, mapped, config))

    first = content.num_whole
    apart, spread = np.sum([link_covariances(hide(), first) for _ in range(rounds)], axis=0)
    links = len(graph.indices) / 2
    share = content.homophily * links / (links + _FEW_LINKS)
    found = np.eye(content.mixing.shape[2], dtype=np.float32)
    found[first:, first:] *= 1 - share
    found[first:, first:] += share * _by_agreement(apart / rounds, spread / rounds)
    reweighed = []
    for _ in range(rounds):
        left, right, values = hide()
        reweighed.append(Round(left, right, (values @ found)[:, first:]))
    found[:, first:] += share * found[:, first:] @ _contrastive(reweighed, rng)
    return found


def _centred(
    content: Content, graph: Graph, mapped: list[NDArray[np.float32]], config: Config
) -> NDArray[np.float32]:
    """Return centred content (n, d), roughly smoothed on the links of a graph."""
    rough = replace(config, tolerance=max(config.tolerance, _ROUGH))
    values = content._smoothed(iter(mapped), smoothers(graph, rough), slice(None), overwrite=False)
    values -= values.mean(axis=0)
    return values


@dataclass(frozen=True)
class Learned:
    """How well held-out links are predicted before and after learning; see ``times_chance``."""

    before: float
    after: float


class Round(NamedTuple):
    """Hidden links, and content without them."""

    left: NDArray[np.int64]  # (m,) one end of each hidden link
    right: NDArray[np.int64]  # (m,) the other end
    values: NDArray[np.float32]  # (n, d) content smoothed on the other links, centred


def link_covariances(hidden: Round, first: int) -> NDArray[np.float64]:
    """Return half the mean outer square of differences over links, and the covariance of ends, (2, d, d).

    For dimensions from ``first`` on. Computed from sums over nodes, which are fewer than links.
    """
    ends = np.concatenate([hidden.left, hidden.right]), np.concatenate([hidden.right, hidden.left])
    x = hidden.values[:, first:].astype(np.float64)
    counts, total = np.bincount(ends[0], minlength=len(x)), max(len(ends[0]), 1)
    weighed, mean = counts[:, None] * x, counts @ x / total
    around = csr_array((np.ones(len(ends[0])), ends), shape=(len(x), len(x))) @ x
    square = x.T @ weighed / total
    return np.stack([square - x.T @ around / total, square - np.outer(mean, mean)])


def _by_agreement(apart: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix (d, d) that scales each direction by its agreement."""
    values, vectors = np.linalg.eigh(spread + 0.01 * np.trace(spread) / len(spread) * np.eye(len(spread)))
    values = np.maximum(values, 1e-12)  # if all nodes have the same content
    whiten, color = (vectors * values**-0.5) @ vectors.T, (vectors * values**0.5) @ vectors.T
    disagreement, axes = np.linalg.eigh(whiten @ apart @ whiten)
    agreement = np.clip(1 - disagreement, 0, 1)
    return np.asarray(whiten @ (axes * (_KEPT + (1 - _KEPT) * agreement)) @ axes.T @ color)


def _contrastive(rounds: list[Round], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a symmetric matrix M (d, d), with which cosines of x + x M tell hidden links from other pairs.

    By Adam, with each step over some links of one round.
    """
    width = rounds[0].values.shape[1]
    change, mean, square = (np.zeros((width, width), np.float32) for _ in range(3))
    for step in range(1, _STEPS + 1):
        left, right, values = rounds[step % len(rounds)]
        chosen = rng.permutation(len(left))[:_PAIRS]
        is_swapped = rng.random(len(chosen)) < 0.5
        left, right = left[chosen], right[chosen]
        left, right = np.where(is_swapped, right, left), np.where(is_swapped, left, right)
        gradient = contrastive_gradient(change, values[left], values[right], left[:, None] == left)
        gradient = gradient + gradient.T + 4 * _PENALTY * change  # of both triangles
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        size = _RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        change -= np.float32(size) * mean / (np.sqrt(square) + np.float32(1e-8))
    return change


def contrastive_gradient(
    change: NDArray[np.float32],
    left: NDArray[np.float32],
    right: NDArray[np.float32],
    same: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Return the gradient (d, d) with respect to M of the InfoNCE loss of pairs of values (b, d) and (b, d).

    The loss is the mean over i of -log softmax_j(cosine(x_i + x_i M, y_j + y_j M) / temperature) at j = i;
    pairs of the ``same`` (b, b) node are left out, except j = i.
    """
    moved = left + left @ change, right + right @ change
    lengths = [np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-9) for each in moved]
    units = [each / length for each, length in zip(moved, lengths, strict=True)]
    shares = np.exp(_log_softmax(units[0] @ units[1].T, same, _TEMPERATURE))
    shares[np.diag_indices(len(left))] -= 1
    shares /= np.float32(_TEMPERATURE * max(len(left), 1))

    def through_cosine(
        values: NDArray[np.float32],
        unit: NDArray[np.float32],
        length: NDArray[np.float32],
        by_unit: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Return one side's gradient with respect to M, given the gradient for its unit vectors."""
        inward = (unit * by_unit).sum(axis=1, keepdims=True)
        found: NDArray[np.float32] = values.T @ ((by_unit - unit * inward) / length)
        return found

    return through_cosine(left, units[0], lengths[0], shares @ units[1]) + through_cosine(
        right, units[1], lengths[1], shares.T @ units[0]
    )


def _log_softmax(
    cosines: NDArray[np.float32], same: NDArray[np.bool_], temperature: float
) -> NDArray[np.float32]:
    """Return the log probabilities (b, b) of ends, except ends of other links of the ``same`` node."""
    scores = cosines / np.float32(temperature)
    scores[same & ~np.eye(len(same), dtype=bool)] = -np.inf
    scores -= scores.max(axis=1, keepdims=True, initial=-1e9)
    found: NDArray[np.float32] = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return found


def times_chance(values: NDArray[np.float32], left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return how many times as probable as by chance true ends of links are, as a geometric mean.

    Each is compared with up to 511 other ends of links, which are equally popular. Probabilities are a
    softmax of cosines at the best temperature.
    """
    unit = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    found = np.zeros(len(_TEMPERATURES))
    count = min(len(left), _COMPARED)
    for start in range(0, count, _PAIRS):
        a, b = (each[start : min(start + _PAIRS, count)] for each in (left, right))
        cosines, same = unit[a] @ unit[b].T, a[:, None] == a
        chance = np.log(len(a) + 1 - same.sum(axis=1)).sum()
        for i, temperature in enumerate(_TEMPERATURES):
            found[i] += np.trace(_log_softmax(cosines, same, temperature)) + chance
    return float(np.exp(found.max() / max(count, 1)))


def smoothers(graph: GraphLike, config: Config) -> tuple[Smoother, ...]:
    """Return T_near and T_far of a graph and, if it is directed, T_near along edges and against them."""
    settings: dict[str, Any] = {"tolerance": config.tolerance, "threads": config.threads}
    near = Smoother.of(graph, config.near, **settings)
    far = Smoother.of(graph, config.far, symmetric=True, **settings)
    if not graph.directed:
        return near, far
    along, against = (Smoother.of(graph, config.near, way, **settings) for way in DIRECTIONS)
    return near, far, along, against


def encode(encoder: FeatureEncoder, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> Any:
    """Return the scaled features of all nodes or some; sparse stays sparse."""
    require_features(encoder, graph)
    rows: Any = graph.features if positions is None else graph.feature_rows(positions)
    if encoder.scaling_ == "none":
        values: Any = rows.data if issparse(rows) else rows
        largest = float(max(values.max(initial=0), -values.min(initial=0)))
        if largest > MAX_UNSCALED:
            raise ParameterError(
                f"features must be at most {MAX_UNSCALED:g} with feature_scaling='none'; "
                f"got {largest:g}; scale them down, or fit with feature_scaling='auto'"
            )
    return encoder.transform(rows)


def scaling_of(graph: Graph, config: Config) -> str:
    """Return how to scale features; by default those of a table are not, since the encoder has done so."""
    is_table = graph.encoder is not None and graph.encoder.scaling_ is None
    return "none" if is_table and config.feature_scaling == "auto" else config.feature_scaling


def column_scale(graph: Graph, features: Any) -> NDArray[np.float32]:
    """Return a factor per feature (f,) that scales the features of a table column to a total variance of 1.

    So the fifty values of a category count as much as one number. Columns that hardly vary count less, and
    constant columns do not count. Features of a matrix stay as they are.
    """
    if graph.encoder is None or graph.encoder.scaling_ is not None:
        return np.ones(features.shape[1], np.float32)
    # In float64, since rounding would look like variance.
    sums = [each.sum(axis=0, dtype=np.float64) for each in (features, features**2)]
    mean, square = (np.asarray(each).ravel() / max(features.shape[0], 1) for each in sums)
    groups = graph.encoder.column_of_feature
    total = np.bincount(groups, np.maximum(square - mean**2, 0))
    factor = np.where(total > _CONSTANT, 1 / np.sqrt(np.maximum(total, _MIN_VARIANCE)), 0)
    return np.asarray(factor[groups], np.float32)


def _compression(
    features: Any,
    far: Smoother,
    scale: NDArray[np.float32],
    words: NDArray[np.bool_],
    share: float,
    seed: int,
) -> tuple[NDArray[np.float32], int | None]:
    """Return at most 256 main directions (f, r) of features, weighted by ``share``, and of their far means.

    A few features other than words come first and stay uncompressed. The second result is their number, or
    None if there are too many.
    """
    f, plain = features.shape[1], np.flatnonzero(~words)
    if f <= _MAX_DIRECTIONS:
        return np.diag(scale)[:, np.argsort(words, kind="stable")], len(plain)
    kept: int | None = len(plain)
    if len(plain) > _WHOLE_SHARE * _MAX_DIRECTIONS:
        plain, kept = plain[:0], None
    threads, transpose = far.threads, features.T.tocsr() if issparse(features) else features.T
    short = replace(far, tolerance=0.5)  # few products are enough for main directions
    scale = scale[:, None]
    factor = scale.copy()
    factor[plain] = 0

    def times(right: NDArray[np.float32]) -> NDArray[np.float32]:
        own = multiply(features, factor * right, threads)
        return np.vstack([share * own, short.smooth(own)])

    def transposed(left: NDArray[np.float32]) -> NDArray[np.float32]:
        own, around = np.split(left, 2)
        return factor * multiply(transpose, share * own + short.smooth(around), threads)

    found = main_directions(times, transposed, f, _MAX_DIRECTIONS - len(plain), seed, rounds=1)[0]
    whole = np.zeros((f, len(plain)), np.float32)
    whole[plain, np.arange(len(plain))] = scale[plain, 0]
    found = np.hstack([whole, factor * found])
    return found if found.size else np.zeros((f, 1), np.float32), kept  # features without any direction


def _layout(
    blocks: list[NDArray[np.float32]], width: int, whole: int | None
) -> tuple[NDArray[np.float32], int]:
    """Return the map (b r, d) of blocks (n, r), and how many own features it and learning leave unchanged.

    If they fit, all blocks as they are. Else, if they fit, the first ``whole`` own features; half of the rest
    is for words, which smoothed numbers and categories would drown out, and half for principal directions of
    the smoothed blocks. Else principal directions of all blocks together.
    """
    r, count = blocks[0].shape[1], len(blocks)
    if count * r <= width:
        return np.eye(count * r, dtype=np.float32), 0
    if whole is None or whole > (_WHOLE_SHARE if whole < r else 1) * width:
        return principal(np.hstack(blocks), width), 0
    own_words = min(r - whole, (width - whole) // 2)
    first = whole + own_words
    mixing = np.zeros((count * r, width), np.float32)
    mixing[:whole, :whole] = np.eye(whole)
    mixing[whole:r, whole:first] = principal(blocks[0][:, whole:], own_words)
    mixing[r:, first:] = principal(np.hstack(blocks[1:]), width - first)
    return mixing, whole


def _shares(homophily: float) -> tuple[float, ...]:
    """Return the lengths of own, near and far features, and of those along and against directed edges."""
    own, far = OWN + (_OWN_ALONE - OWN) * (1 - homophily), FAR + (_FAR_ALONE - FAR) * (1 - homophily)
    return own, NEAR, far, DIRECTED, DIRECTED


def feature_homophily(graph: Graph, features: Any, scale: NDArray[np.float32], seed: int) -> float:
    """Return how much scaled features (n, f) resemble those of neighbours, from 0 to 1.

    A node is closer to the mean of its neighbours than to that of another node's neighbours with probability
    (1 + h) / 2; both means are centred and have length 1. The result is h / 0.3, at most 1.
    """
    rng = np.random.default_rng([seed, _HOMOPHILY])
    nodes = np.sort(rng.permutation(np.flatnonzero(graph.degrees))[:_MEASURED])
    indptr, neighbors = graph.adjacency().neighbors(nodes)
    counts = np.diff(indptr)
    average = csr_array((np.repeat(1 / counts, counts), neighbors, indptr), shape=(len(nodes), len(graph)))
    center = scale * np.asarray(features.mean(axis=0)).ravel()
    own, around = (each * scale for each in (features[nodes], average @ features))
    own, around = (each.tocsr() if issparse(each) else each for each in (own, around))

    def products(left: Any, right: Any) -> NDArray[np.float64]:
        """Return the dot products of centred rows, without making sparse ones dense."""
        found = left.multiply(right).sum(axis=1) if issparse(left) else np.einsum("ij,ij->i", left, right)
        return np.asarray(found - left @ center - right @ center + center @ center, np.float64)

    lengths, other = np.sqrt(np.maximum(products(around, around), 1e-12)), rng.permutation(len(nodes))
    nearer = products(own, around) / lengths - products(own, around[other]) / lengths[other]
    is_tie = np.abs(nearer) < 1e-5 * np.sqrt(np.maximum(products(own, own), 0))
    found = np.where(is_tie, 0, np.sign(nearer)).mean() if len(nodes) else 0.0
    return float(np.clip(found / _HOMOPHILOUS, 0, 1))


def principal(values: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Return the ``count`` principal directions (d, count) of values (n, d)."""
    centred = values - values.mean(axis=0)
    vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))[1]
    return signed(vectors[:, ::-1][:, :count])


def _root_mean_square(values: NDArray[np.float32]) -> float:
    """Return the root mean square length of rows, or 1 if there are none."""
    return float(np.sqrt(np.square(values, dtype=np.float64).sum() / max(len(values), 1))) or 1.0


def require_features(encoder: FeatureEncoder, graph: GraphLike) -> None:
    """Raise if the features of a graph are not those that an encoder was fitted with."""
    wanted, found = encoder.num_features, graph.num_features
    if found != wanted:
        advice = "pass the same columns in the same order" if found else "pass features with features=..."
        raise MissingFeaturesError(
            f"the model was fitted with {wanted} features per node, but this graph has {found}; {advice}"
        )
    names = graph.feature_names
    if names is None or not encoder.has_names:
        return
    other = [
        f"{new!r} instead of {old!r}"
        for new, old in zip(names, encoder.feature_names_, strict=True)
        if new != old
    ]
    if other:
        raise MissingFeaturesError(
            f"{len(other)} feature columns differ from the fitted ones: {', '.join(other[:3])}; "
            "pass the same columns in the same order"
        )
