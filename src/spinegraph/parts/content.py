"""The content part: what a node and the nodes around it are about, from features."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
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
from spinegraph.parts.place import hidden_links, share_nearer
from spinegraph.structure.smoothing import (
    Smoother,
    chosen_entries,
    main_directions,
    multiply,
    row_products,
    signed,
)

OWN, NEAR, FAR = 0.3, 0.7, 1.0  # shares of a node's own features, of those near it and of those far around
WAYS = 0.5  # share of those near it along directed edges, and of those against them
MAX_UNSCALED = 1e15  # of a feature that nothing scales: its square stays in float32's range
_MAX_DIRECTIONS = 256  # of the features, that are smoothed
_WHOLE_SHARE = 2 / 3  # of the room that features beside text may take as they are
_LENGTH_POWER = 0.5  # content of features that are directions is divided by this power of its length
_HIDDEN = 0.5  # share of the links that are hidden in a round of learning
_ROUNDS = 4
_KEPT = 0.2  # a direction that links do not share at all keeps this share of its length
_FEW_LINKS = 2_000  # with so many links, half of what is learned is applied
_LEARNING, _RAMPS = 41, 42  # stages of the random draws
_ROWS, _VALUES = 65_536, 1 << 22  # of dense features, computed at a time: bounds memory


@dataclass(frozen=True, eq=False)
class Content:
    """A linear map of a node's own features F, of T_near F and of T_far F.

    Of a directed graph also of F near a node along edges and against them.

    Attributes
    ----------
    encoder : FeatureEncoder
        Scales the features.
    directions : float32 array (f, r)
        Compress the features.
    mixing : float32 array (3 or 5, r, d)
        Of own, near and far compressed features, and of those along and against directed edges.
    offset : float32 array (d,)
        Subtracted: the mean.
    scale : float
    ramps : Ramps or None
        Fill the part where it has more room than the map needs.
    num_whole : int
        How many leading dimensions are a node's own features as they are; 0 for a model that was read.
    """

    encoder: FeatureEncoder
    directions: NDArray[np.float32]
    mixing: NDArray[np.float32]
    offset: NDArray[np.float32]
    scale: float = 1.0
    ramps: "Ramps | None" = None
    num_whole: int = 0
    _kept: "_Kept" = field(default_factory=lambda: _Kept(), repr=False)

    @property
    def dim(self) -> int:
        """Length of this part."""
        return len(self.offset) + (0 if self.ramps is None else len(self.ramps.offset))

    @property
    def can_learn(self) -> bool:
        """Whether directions had to be chosen; where all are kept there is nothing to gain."""
        count, r, d = self.mixing.shape
        return bool(self.num_whole < d < count * r)

    @property
    def length_power(self) -> float:
        """Power of the length that content is divided by: features scaled by row are directions."""
        return _LENGTH_POWER if self.encoder.scaling_ in ("row", "row_sum") else 0.0

    @classmethod
    def fit(
        cls, graph: Graph, width: int, config: Config, encoder: FeatureEncoder | None = None
    ) -> "Content":
        """Fit the map on a graph, without learning.

        Principal directions of own, near and far features together; where the part is as wide as the
        encoded features but for words of text, those are kept as they are, beside principal directions of own
        words and of the rest. ``encoder`` scales the features; fitted on the graph's unless given.
        """
        if encoder is None:
            encoder = FeatureEncoder.for_matrix(
                graph.features, scaling_of(graph, config), graph.feature_names
            )
        around = smoothers(graph, config)
        features = encode(encoder, graph)
        table = graph.encoder
        words = np.zeros(encoder.num_features, bool) if table is None or table.scaling_ else table.is_word
        directions = _compression(features, around[1], column_scale(graph, features), words, config.seed)
        whole = int((~words).sum())
        own = multiply(features, directions, config.threads)
        blocks = [own, *(each.smooth(own) for each in around)]
        shares = (OWN, NEAR, FAR, WAYS, WAYS)[: len(blocks)]
        scales = [share / _root_mean_square(block) for share, block in zip(shares, blocks, strict=True)]
        blocks = [scale * block for scale, block in zip(scales, blocks, strict=True)]
        r, count = directions.shape[1], len(blocks)
        if count * r <= width:
            mixing = np.eye(count * r, dtype=np.float32)
            whole = 0
        elif whole <= (_WHOLE_SHARE if words.any() else 1) * width:
            # Half of the rest is for a node's own words, which numbers and categories around it would drown.
            own_words = min(r - whole, (width - whole) // 2)
            first = whole + own_words
            mixing = np.zeros((count * r, width), np.float32)
            mixing[:whole, :whole] = np.eye(whole)
            mixing[whole:r, whole:first] = principal(blocks[0][:, whole:], own_words)
            mixing[r:, first:] = principal(np.hstack(blocks[1:]), width - first)
        else:
            mixing, whole = principal(np.hstack(blocks), width), 0
        mixing = mixing.reshape(count, r, -1) * np.array(scales, np.float32)[:, None, None]
        weighed = (block @ part / scale for block, part, scale in zip(blocks, mixing, scales, strict=True))
        values: NDArray[np.float32] = sum(weighed, np.zeros((), np.float32))
        found = cls(encoder, directions, mixing, values.mean(axis=0), num_whole=whole)
        if width > values.shape[1]:
            ramps = Ramps.fit(values - found.offset, width - values.shape[1], config.seed)
            found = replace(found, ramps=ramps)
        return found._scaled(values)

    def _scaled(self, values: NDArray[np.float32]) -> "Content":
        """Return this part scaled to a mean square of 1, given values (m, d) before the offset."""
        found = replace(self, scale=1.0).finished(values)
        return replace(self, scale=float(1 / _root_mean_square(found)))

    def smoothed(
        self, graph: GraphLike, around: "tuple[Smoother, ...]", columns: slice
    ) -> NDArray[np.float32]:
        """Return some columns (n, c) of the map's values of all nodes, before the offset."""
        maps, threads = [self.directions @ part[:, columns] for part in self.mixing], around[0].threads
        products: Iterator[NDArray[np.float32]]
        if len(graph) <= _ROWS:
            whole = self._times_features(graph, np.hstack(maps), threads)
            products = iter(np.split(whole, len(maps), axis=1))
        else:  # one after the other: bounds memory
            products = (self._times_features(graph, each, threads) for each in maps)
        found = next(products)
        for each, part, values in zip(around, self.mixing[1:], products, strict=True):
            used = part[:, columns].any(axis=0)
            first = int(used.argmax()) // 8 * 8  # of eight together the bits stay the same
            if used.any():  # those before stay 0
                found[:, first:] += each.smooth(values[:, first:], overwrite=True)
        return np.asarray(found)

    def _times_features(
        self, graph: GraphLike, maps: NDArray[np.float32], threads: int | None
    ) -> NDArray[np.float32]:
        """Return the features of all nodes times maps (f, c), some rows at a time."""
        found = np.empty((len(graph), maps.shape[1]), np.float32)
        is_sparse = issparse(graph.feature_rows(np.arange(0)))
        rows = _ROWS if is_sparse else min(_ROWS, max(1, _VALUES // max(len(maps), 1)))
        for start in range(0, len(graph), rows):
            some = np.arange(start, min(start + rows, len(graph)))
            found[some[0] : some[-1] + 1] = multiply(encode(self.encoder, graph, some), maps, threads)
        return found

    def compressed(self, graph: GraphLike, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the compressed features (m, r) of some nodes; a row does not depend on the others."""
        return row_products(encode(self.encoder, graph, positions), self.directions)

    def reader(self, graph: GraphLike) -> "CompressedFeatures":
        """Return the compressed features of a graph's nodes, to be read at the cost of those asked for."""
        require_features(self.encoder, graph)
        return CompressedFeatures(self, graph)

    def embed_some(self, blocks: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return this part (m, d) of nodes: compressed features (m, r) of own, near, far and so on."""
        products = map(row_products, blocks, self.mixing)
        return self.finished(sum(products, np.zeros((), np.float32)))

    def finished(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return this part (r, d) of nodes, given the map's values."""
        values = values - self.offset
        if self.ramps is not None:
            values = self.ramps.beside(values)
        if self.length_power:
            lengths = np.sqrt(np.einsum("ij,ij->i", values, values))
            values *= (np.where(lengths > 0, lengths, 1) ** np.float32(-self.length_power))[:, None]
        values *= np.float32(self.scale)
        return values

    def require_features(self, graph: GraphLike) -> None:
        """Refuse a graph whose features are not those the model was fitted with."""
        require_features(self.encoder, graph)


class CompressedFeatures:
    """Compressed features of the nodes of a graph, or of an overlay's base and of what was added to it.

    They are computed when they are first read, and kept as long as the graph lives.
    """

    def __init__(self, content: Content, graph: GraphLike) -> None:
        base: Any = graph.base if isinstance(graph, Overlay) else graph
        self._content, self._base = content, base
        self._kept = content._kept.of(base, content.directions.shape[1])
        self._added = self._kept.of_added(graph, content) if isinstance(graph, Overlay) else None

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return those of some nodes, (m, r)."""
        is_base = positions < len(self._base)
        self._keep(positions[is_base])
        if self._added is None or is_base.all():
            return np.asarray(self._kept.rows[positions])
        found = np.empty((len(positions), self._added.shape[1]), np.float32)
        found[is_base] = self._kept.rows[positions[is_base]]
        found[~is_base] = self._added[positions[~is_base] - len(self._base)]
        return found

    def product(self, rows: csr_array) -> NDArray[np.float32]:
        """Return rows (m, n) times those of all nodes, (m, r)."""
        is_base, is_read = rows.indices < len(self._base), np.zeros(len(self._base), bool)
        is_read[rows.indices[is_base]] = True
        self._keep(np.flatnonzero(is_read))
        if self._added is None or is_base.all():
            return multiply(rows, self._kept.rows, 1)
        sums = sparse_times_dense(*chosen_entries(rows, is_base), self._kept.rows, 1)
        indptr, indices, data = chosen_entries(rows, ~is_base)
        # One sum in order, so that its bits do not depend on which nodes are the base's.
        return sparse_times_dense(indptr, indices - len(self._base), data, self._added, 1, out=sums)

    def _keep(self, positions: NDArray[np.int64]) -> None:
        missing = positions[~self._kept.is_kept[positions]]
        if len(missing):
            self._kept.rows[missing] = self._content.compressed(self._base, missing)
            self._kept.is_kept[missing] = True


class _Rows:
    """Compressed features (n, width) of one graph, and of what its overlays added.

    ``is_kept`` (n,) tells which were computed; those never written take no memory.
    """

    def __init__(self, count: int, width: int) -> None:
        self.rows, self.is_kept = np.empty((count, width), np.float32), np.zeros(count, bool)
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


class _Kept:
    """The rows of graphs that are in use."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Graph, _Rows] = WeakKeyDictionary()

    def of(self, graph: Graph, width: int) -> _Rows:
        """Return those of a graph."""
        found = self._of.get(graph)
        return self._of.setdefault(graph, _Rows(len(graph), width)) if found is None else found

    def __reduce__(self) -> Any:
        return _Kept, ()


@dataclass(frozen=True, eq=False)
class Ramps:
    """Random combinations of values, cut off at 0: a linear model on them sees how values act together.

    Attributes
    ----------
    matrix : float32 array (d, e)
    offset : float32 array (e,)
    """

    matrix: NDArray[np.float32]
    offset: NDArray[np.float32]

    @classmethod
    def fit(cls, values: NDArray[np.float32], count: int, seed: int) -> "Ramps":
        """Draw ``count`` combinations of values (n, d), each about as long as a value."""
        rng = np.random.default_rng([seed, _RAMPS])
        deviation = values.std(axis=0, dtype=np.float64)
        matrix = rng.standard_normal((values.shape[1], count))
        matrix /= np.where(deviation > 1e-9, deviation, np.inf)[:, None] * np.sqrt(max(values.shape[1], 1))
        length = np.sqrt(np.square(deviation).mean()) / 0.6  # the deviation of half a normal variable
        offset = rng.standard_normal(count) / 2
        return cls((length * matrix).astype(np.float32), (length * offset).astype(np.float32))

    def scaled(self, factor: float) -> "Ramps":
        """Return the ramps with another length."""
        return Ramps(np.float32(factor) * self.matrix, np.float32(factor) * self.offset)

    def beside(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return values (r, d) and their combinations side by side, (r, d + e)."""
        return np.hstack([values, np.maximum(row_products(values, self.matrix) + self.offset, 0)])


def learn(content: Content, graph: Graph, config: Config) -> "tuple[Content, Learned]":
    """Turn content so that directions count by how well they predict links that were hidden.

    Own features that are kept as they are stay so. Rounds hide half of the links, smooth on the rest, and
    compare the ends of the hidden ones. The agreement of a direction x is 1 - E(x_i - x_j)^2 / (2 E x^2) over
    these links; its length is multiplied by it, at least by a fifth. With few links less of this is applied;
    nothing, where links of a last round are not better distinguished from pairs of other links' ends.
    """
    rng = np.random.default_rng([config.seed, _LEARNING])
    first = content.num_whole
    apart = spread = np.zeros(())
    for _ in range(_ROUNDS):
        left, right, values = _hide(content, graph, rng, config)
        ends, difference = np.concatenate([values[left], values[right]]), values[left] - values[right]
        apart = apart + difference[:, first:].T.astype(np.float64) @ difference[:, first:] / (2 * len(left))
        spread = spread + np.cov(ends[:, first:].T.astype(np.float64))
    share = graph.num_edges / (graph.num_edges + _FEW_LINKS)
    turn = np.eye(values.shape[1], dtype=np.float32)
    turn[first:, first:] *= 1 - share
    turn[first:, first:] += share * _turn(np.atleast_2d(apart) / _ROUNDS, np.atleast_2d(spread) / _ROUNDS)
    left, right, values = _hide(content, graph, rng, config)
    other = rng.permutation(right)  # as popular as the true ends
    before, after = (share_nearer(each, left, right, other) for each in (values, values @ turn))
    if after <= before:
        return content, Learned(before, before)
    found = replace(content, mixing=content.mixing @ turn, offset=content.offset @ turn)
    return found._scaled(_values(found, graph, config)), Learned(before, after)


@dataclass(frozen=True)
class Learned:
    """How often the ends of a hidden link are more alike than ends of two, before and after learning."""

    before: float
    after: float


def _hide(
    content: Content, graph: Graph, rng: np.random.Generator, config: Config
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Hide half of the links; return their ends, and content (n, d) smoothed on the others, centred."""
    rest, left, right = hidden_links(graph, _HIDDEN, rng)
    values = _values(content, rest, config)
    return left, right, values - values.mean(axis=0)


def _values(content: Content, graph: Graph, config: Config) -> NDArray[np.float32]:
    return content.smoothed(graph, smoothers(graph, config), slice(None))


def _turn(apart: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrix (d, d) that multiplies each direction by its share of agreement."""
    values, vectors = np.linalg.eigh(spread + 0.01 * np.trace(spread) / len(spread) * np.eye(len(spread)))
    values = np.maximum(values, 1e-12)  # where all nodes have the same content
    whiten, color = (vectors * values**-0.5) @ vectors.T, (vectors * values**0.5) @ vectors.T
    disagreement, axes = np.linalg.eigh(whiten @ apart @ whiten)
    agreement = np.clip(1 - disagreement, 0, 1)
    return np.asarray(whiten @ (axes * (_KEPT + (1 - _KEPT) * agreement)) @ axes.T @ color)


def smoothers(graph: GraphLike, config: Config) -> tuple[Smoother, ...]:
    """Return T_near and T_far of a graph, and of a directed one T_near along edges and against them."""
    settings: dict[str, Any] = {"tolerance": config.tolerance, "threads": config.threads}
    near = Smoother.of(graph, config.near, **settings)
    far = Smoother.of(graph, config.far, symmetric=True, **settings)
    if not graph.directed:
        return near, far
    along, against = (Smoother.of(graph, config.near, way, **settings) for way in DIRECTIONS)
    return near, far, along, against


def encode(encoder: FeatureEncoder, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> Any:
    """Return the scaled features of all nodes or of some; sparse stays sparse."""
    require_features(encoder, graph)
    rows: Any = graph.features if positions is None else graph.feature_rows(positions)
    if encoder.scaling_ == "none":
        values: Any = rows.data if issparse(rows) else rows
        largest = float(max(values.max(initial=0), -values.min(initial=0)))
        if largest > MAX_UNSCALED:
            raise ParameterError(
                f"features may be up to {MAX_UNSCALED:g} where feature_scaling='none'; "
                f"got {largest:g}; scale them down, or fit with feature_scaling='auto'"
            )
    return encoder.transform(rows)


def scaling_of(graph: Graph, config: Config) -> str:
    """Return how features are scaled: those of a table are already, each by its own kind."""
    is_table = graph.encoder is not None and graph.encoder.scaling_ is None
    return "none" if is_table and config.feature_scaling == "auto" else config.feature_scaling


def column_scale(graph: Graph, features: Any) -> NDArray[np.float32]:
    """Return a factor for every feature (f,): those of one table column get a variance of 1 together.

    So the fifty values of a category count as much as one number. Features of a matrix stay as they are.
    """
    if graph.encoder is None or graph.encoder.scaling_ is not None:
        return np.ones(features.shape[1], np.float32)
    mean = np.asarray(features.mean(axis=0), np.float64).ravel()
    square = features.multiply(features) if issparse(features) else np.square(features)
    variance = np.maximum(np.asarray(square.mean(axis=0), np.float64).ravel() - mean**2, 0)
    groups = graph.encoder.column_of_feature
    total = np.bincount(groups, variance)
    return (1 / np.sqrt(np.where(total > 1e-12, total, 1)))[groups].astype(np.float32)


def _compression(
    features: Any,
    far: Smoother,
    scale: NDArray[np.float32],
    words: NDArray[np.bool_],
    seed: int,
) -> NDArray[np.float32]:
    """Return at most 256 directions (f, r) of the features and of their means over two steps around.

    Features that are no words come first and stay as they are, where there are few.
    """
    f, plain = features.shape[1], np.flatnonzero(~words)
    if f <= _MAX_DIRECTIONS:
        return np.diag(scale)[:, np.argsort(words, kind="stable")]
    if len(plain) > _WHOLE_SHARE * _MAX_DIRECTIONS:
        plain = plain[:0]
    threads, turned = far.threads, features.T.tocsr() if issparse(features) else features.T
    short = replace(far, tolerance=0.5)  # few products: all that matters here are the main directions
    scale = scale[:, None]
    factor = scale.copy()
    factor[plain] = 0

    def times(right: NDArray[np.float32]) -> NDArray[np.float32]:
        own = multiply(features, factor * right, threads)
        return np.vstack([OWN * own, short.smooth(own)])

    def transposed(left: NDArray[np.float32]) -> NDArray[np.float32]:
        own, around = np.split(left, 2)
        return factor * multiply(turned, OWN * own + short.smooth(around), threads)

    found = main_directions(times, transposed, f, _MAX_DIRECTIONS - len(plain), seed, rounds=1)[0]
    return np.hstack([np.eye(f, dtype=np.float32)[:, plain] * scale, factor * found])


def principal(values: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Return the ``count`` principal directions (d, count) of values (n, d)."""
    centred = values - values.mean(axis=0)
    vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))[1]
    return signed(vectors[:, ::-1][:, :count])


def _root_mean_square(values: NDArray[np.float32]) -> float:
    """Return the root of the mean square length of rows, 1 for none."""
    return float(np.sqrt(np.square(values, dtype=np.float64).sum() / max(len(values), 1))) or 1.0


def require_features(encoder: FeatureEncoder, graph: GraphLike) -> None:
    """Refuse a graph whose features are not those that an encoder was fitted with."""
    wanted, found = encoder.num_features, graph.num_features
    if found != wanted:
        raise MissingFeaturesError(
            f"the model was fitted with {wanted} features per node, this graph has {found}; "
            "pass the same columns in the same order"
        )
    names = graph.feature_names
    if names is None or not encoder.has_names:
        return
    other = [
        f"{new!r} where {old!r} was"
        for new, old in zip(names, encoder.feature_names_, strict=True)
        if new != old
    ]
    if other:
        raise MissingFeaturesError(
            f"{len(other)} feature columns differ from the fitted ones: {', '.join(other[:3])}; "
            "pass the same columns in the same order"
        )
