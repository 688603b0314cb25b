"""Generator: turns features and structure into vectors, by NumPy and SciPy alone (Eq. 4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from spinegraph.config import Config
from spinegraph.errors import MissingFeaturesError, ModelFormatError, ParameterError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import GraphLike
from spinegraph.graph.names import draw_keys
from spinegraph.structure.columns import COLUMNS, structural_columns
from spinegraph.structure.pagerank import RootedPageRank, Smoothed, rooted_pagerank

_BOUND = np.float32(2)  # of structural columns, in standard deviations
MAX_UNSCALED = 1e15  # of a feature that nothing scales: its square stays in float32's range
# Beside features these are enough for structural identity. Uninformative columns overfit.
_BESIDE_FEATURES = ("log_degree", "log_profile_3")


def profile_of(
    graph: GraphLike, config: Config, positions: NDArray[np.int64] | None = None
) -> RootedPageRank:
    """Return the profile of all nodes, or of some, with the settings of a config."""
    keys = None
    if config.rpr_method == "walks":  # drawn by names, which outlive positions
        keys = draw_keys(graph.names if positions is None else graph.names[positions])
    return rooted_pagerank(
        graph,
        k=config.k,
        continuation=config.continuation,
        method=config.rpr_method,  # type: ignore[arg-type]
        tolerance=config.tolerance,
        threshold=config.threshold,
        walks=config.walks,
        walk_length=config.walk_length,
        seed=config.seed,
        roots=positions,
        keys=keys,
        threads=config.threads,
    )


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a generator reads: which features, which structural columns, and how they are scaled."""

    config: Config  # its structural settings decide T
    encoder: FeatureEncoder | None  # scales the features; None when the generator uses structure alone
    columns: tuple[str, ...]  # structural columns in use
    mean: NDArray[np.float32]  # (s,) of the structural columns in training
    scale: NDArray[np.float32]  # (s,)
    columns_smoothed: bool  # whether T smooths the structural columns like features ...
    columns_direct: bool  # ... or they are added as they are

    @classmethod
    def of(
        cls, graph: GraphLike, config: Config, nodes: NDArray[np.int64] | None, profile: RootedPageRank
    ) -> "Inputs":
        """Fit the scales: of a graph's features, and of the structural columns of some nodes."""
        return cls.fit(graph, config, nodes, profile)[0]

    @classmethod
    def fit(
        cls, graph: GraphLike, config: Config, nodes: NDArray[np.int64] | None, profile: RootedPageRank
    ) -> tuple["Inputs", NDArray[np.float32] | None]:
        """Return what ``of`` returns, and the standardised structural columns (r, s), where it uses any."""
        kind = config.structural_columns
        if kind == "auto":
            kind = "past" if graph.has_features else "through"
        if kind in ("none", "past") and not graph.has_features:
            raise MissingFeaturesError(
                f"the graph has no features and structural_columns={kind!r} leaves nothing to learn from; "
                "pass features, or structural_columns='auto'"
            )
        encoder = None
        if graph.has_features:
            encoder = FeatureEncoder.for_matrix(graph.features, config.feature_scaling, graph.feature_names)
        columns = () if kind == "none" else _BESIDE_FEATURES if graph.has_features else COLUMNS
        mean, scale = np.zeros(len(columns), np.float32), np.ones(len(columns), np.float32)
        values = _columns(graph, nodes, profile, columns, config) if columns else None
        if values is not None:
            mean, deviation = values.mean(axis=0), values.std(axis=0)
            scale = np.where(deviation > 1e-6, deviation, 1).astype(np.float32)
        inputs = cls(config, encoder, columns, mean, scale, kind == "through", kind == "past")
        return inputs, None if values is None else inputs._standardised(values)

    @property
    def norm_power(self) -> float:
        """Power of the length that content is divided by; lengths of structural columns have a meaning."""
        return 0.0 if self.encoder is None else self.config.norm_power

    @property
    def num_smoothed(self) -> int:
        """Rows of W_M whose inputs T smooths."""
        features = 0 if self.encoder is None else self.encoder.num_features
        return features + len(self.columns) * self.columns_smoothed

    @property
    def num_direct(self) -> int:
        """Rows of W_M whose inputs T does not smooth."""
        return len(self.columns) * self.columns_direct

    @property
    def names(self) -> tuple[str, ...]:
        """Name every row of W_M."""
        features = () if self.encoder is None else self.encoder.feature_names_
        smoothed = tuple(f"around: {name}" for name in self.columns * self.columns_smoothed)
        return (*features, *smoothed, *self.columns * self.columns_direct)

    def profile(self, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> RootedPageRank:
        """Return the profile that makes up T."""
        return profile_of(graph, self.config, positions)

    def structural(
        self,
        graph: GraphLike,
        positions: NDArray[np.int64] | None = None,
        profile: RootedPageRank | None = None,
    ) -> NDArray[np.float32]:
        """Return the standardised structural columns (r, s) of some nodes."""
        profile = self.profile(graph, positions) if profile is None else profile
        return self._standardised(_columns(graph, positions, profile, self.columns, self.config))

    def _standardised(self, columns: NDArray[np.float32]) -> NDArray[np.float32]:
        # Softly bounded: a network unlike the training one must not dominate the vectors.
        return _BOUND * np.tanh((columns - self.mean) / (self.scale * _BOUND))

    def around(
        self,
        graph: GraphLike,
        positions: NDArray[np.int64] | None = None,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> Any:
        """Return F, the inputs that T smooths, one row per node; sparse stays sparse.

        ``columns`` (n, s), standardised and of all nodes, are computed unless given.
        """
        parts = []
        if self.encoder is not None:
            self.require_features(graph)
            rows: Any = graph.features if positions is None else graph.feature_rows(positions)
            if self.config.feature_scaling == "none":
                values: Any = rows.data if issparse(rows) else rows
                largest = float(max(values.max(initial=0), -values.min(initial=0)))
                if largest > MAX_UNSCALED:
                    raise ParameterError(
                        f"features may be up to {MAX_UNSCALED:g} where feature_scaling='none'; "
                        f"got {largest:g}; scale them down, or fit with feature_scaling='auto'"
                    )
            parts.append(self.encoder.transform(rows))
        if self.columns_smoothed and columns is not None:
            parts.append(columns if positions is None else columns[positions])
        elif self.columns_smoothed:
            parts.append(self.structural(graph, positions, profile))
        return _beside(parts)

    def smoothed(
        self,
        graph: GraphLike,
        profile: RootedPageRank,
        positions: NDArray[np.int64] | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> Smoothed:
        """Return T F of the nodes whose profile is given, reading only the rows that T needs."""
        threads = self.config.threads
        operator = profile.operator(threads)
        if positions is None:
            return Smoothed(operator, self.around(graph, None, profile, columns), threads)
        seen, indices = np.unique(operator.indices, return_inverse=True)
        local = csr_array((operator.data, indices, operator.indptr), shape=(len(profile), len(seen)))
        return Smoothed(local, self.around(graph, seen.astype(np.int64), None, columns), threads)

    def matrix(self, graph: GraphLike, positions: NDArray[np.int64] | None = None) -> Any:
        """Return the generator's whole input [T F | columns], (r, f + s): what W_M multiplies."""
        profile = self.profile(graph, positions)
        parts = [self.smoothed(graph, profile, positions).matrix()]
        if self.columns_direct:
            parts.append(self.structural(graph, positions, profile))
        return _beside(parts)

    def require_features(self, graph: GraphLike) -> None:
        """Refuse a graph whose features are not those the model was fitted with."""
        assert self.encoder is not None
        wanted = self.encoder.num_features
        found = graph.num_features
        if found != wanted:
            raise MissingFeaturesError(
                f"the model was fitted with {wanted} features per node, this graph has {found}; "
                "pass the same columns in the same order"
            )
        names = graph.feature_names
        if names is None or not self.encoder.has_names:
            return
        other = [
            f"{new!r} where {old!r} was"
            for new, old in zip(names, self.encoder.feature_names_, strict=True)
            if new != old
        ]
        if other:
            raise MissingFeaturesError(
                f"{len(other)} feature columns differ from the fitted ones: {', '.join(other[:3])}; "
                "pass the same columns in the same order"
            )


def _columns(
    graph: GraphLike,
    positions: NDArray[np.int64] | None,
    profile: RootedPageRank,
    names: tuple[str, ...],
    config: Config,
) -> NDArray[np.float32]:
    return structural_columns(graph, positions, profile=profile, names=names, threads=config.threads).values


def _beside(parts: list[Any]) -> Any:
    """Put matrices side by side; one sparse part makes all sparse."""
    if len(parts) == 1:
        return parts[0]
    if any(issparse(part) for part in parts):
        return csr_array(hstack([csr_array(part) for part in parts], format="csr", dtype=np.float32))
    return np.hstack(parts)


def activate(values: NDArray[np.float32], activation: str) -> NDArray[np.float32]:
    """Apply the activation of Eq. 4."""
    if activation == "relu":
        return np.maximum(values, 0)
    if activation == "tanh":
        return np.tanh(values)
    if activation == "elu":
        return np.where(values > 0, values, np.expm1(np.minimum(values, 0))).astype(np.float32)
    return values


def divide_by_length(vectors: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """Divide every vector by a power of its length; zero vectors stay."""
    if power == 0:
        return vectors
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    scale = np.where(lengths > 0, lengths, 1) ** np.float32(-power)
    return vectors * scale[:, None]


@dataclass(frozen=True, eq=False)
class Generator:
    """The trained part of SPINE: e = activation(x W_M), x being the input of a node.

    Smoothed content is also divided by a power of its length, ``norm_power``: the fewer neighbours a node
    has, the less is averaged and the longer the content is, which would set sparse networks apart from dense.
    Direct structural columns are added as they are.

    Attributes
    ----------
    inputs : Inputs
    weights : float32 array (f + s, d)
        W_M; finite.
    """

    inputs: Inputs
    weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Check that the matrix fits its inputs."""
        rows = self.inputs.num_smoothed + self.inputs.num_direct
        if self.weights.ndim != 2 or self.weights.shape[0] != rows:
            raise ModelFormatError(f"W_M must have one row per input, {rows}; got shape {self.weights.shape}")
        if not np.isfinite(self.weights).all():
            raise ModelFormatError("W_M must be finite; got NaN or infinity")

    @property
    def activation(self) -> str:
        """Name the activation."""
        return self.inputs.config.activation

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.weights.shape[1])

    def embed(
        self,
        graph: GraphLike,
        positions: NDArray[np.int64] | None = None,
        *,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return vectors (r, d) of all nodes, or of those at some positions at their cost alone.

        ``profile`` of these nodes, and ``columns`` (n, s), ``inputs.structural`` of all nodes, are computed
        unless given.
        """
        profile = self.inputs.profile(graph, positions) if profile is None else profile
        width = self.inputs.num_smoothed
        content = self.inputs.smoothed(graph, profile, positions, columns).times(self.weights[:width])
        vectors = self.activated(content)
        if self.inputs.columns_direct and columns is not None:
            vectors += (columns if positions is None else columns[positions]) @ self.weights[width:]
        elif self.inputs.columns_direct:
            vectors += self.inputs.structural(graph, positions, profile) @ self.weights[width:]
        return vectors

    def activated(self, content: NDArray[np.float32]) -> NDArray[np.float32]:
        """Apply Eq. 4's activation to T F W_M, (r, d), then divide by the power of the length."""
        return divide_by_length(activate(content, self.activation), self.inputs.norm_power)
