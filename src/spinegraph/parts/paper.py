"""The paper's generator: smoothed features times a trained matrix (Eq. 4), with NumPy and SciPy only."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse

from spinegraph.config import PaperConfig
from spinegraph.errors import MissingFeaturesError, ModelFormatError
from spinegraph.graph.encoder import FeatureEncoder
from spinegraph.graph.graph import GraphLike
from spinegraph.parts.content import encode, require_features
from spinegraph.parts.generator import Generator, Known, Vectors
from spinegraph.parts.role import profile_of
from spinegraph.structure.columns import structural_columns
from spinegraph.structure.pagerank import RootedPageRank
from spinegraph.structure.smoothing import multiply

Positions = NDArray[np.int64] | None  # of some nodes; None for all
Profile = RootedPageRank | None  # of these nodes; None to compute it
_BOUND = np.float32(2)  # of structural columns, in standard deviations


@dataclass(frozen=True)
class TrainingRecord:
    """An entry of the training history: losses after a number of steps.

    Attributes
    ----------
    step : int
        Steps done.
    loss : float
        Objective on the last training batch.
    held_out_loss : float
        Objective on held-out pairs.
    """

    step: int
    loss: float
    held_out_loss: float


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a generator: features; in models of version 0.1.0 also structural columns."""

    config: PaperConfig  # its structural settings determine T
    encoder: FeatureEncoder | None  # scales the features; None if a model reads structural columns only
    columns: tuple[str, ...] = ()  # (s,)
    mean: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # (s,), in training
    scale: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))  # (s,), in training
    columns_smoothed: bool = False  # whether T smooths the columns like features
    columns_direct: bool = False  # whether the columns are also inputs without smoothing
    norm_power: float = 0.0  # smoothed content is divided by this power of its length; 0 without features

    @classmethod
    def of(cls, graph: GraphLike, config: PaperConfig) -> "Inputs":
        """Fit the scaling of a graph's features."""
        if not graph.has_features:
            raise MissingFeaturesError(
                "the paper's method needs features, but the graph has none; pass some, or fit SPINE()"
            )
        encoder = FeatureEncoder.for_matrix(graph.features, config.feature_scaling, graph.feature_names)
        return cls(config, encoder)

    @property
    def num_smoothed(self) -> int:
        """Number of rows of W_M whose inputs T smooths."""
        features = 0 if self.encoder is None else self.encoder.num_features
        return features + len(self.columns) * self.columns_smoothed

    def structural(self, graph: GraphLike, positions: Positions = None, profile: Profile = None) -> Vectors:
        """Return the standardised structural columns (r, s) of all nodes or some."""
        profile = profile_of(graph, self.config, positions) if profile is None else profile
        columns = structural_columns(
            graph, positions, profile=profile, names=self.columns, threads=self.config.threads
        ).values
        # Softly bounded, so that columns of a network unlike the training one do not dominate.
        return _BOUND * np.tanh((columns - self.mean) / (self.scale * _BOUND))

    def around(self, graph: GraphLike, positions: Positions = None, profile: Profile = None) -> Any:
        """Return F, the inputs that T smooths, of all nodes or some; sparse stays sparse."""
        parts = []
        if self.encoder is not None:
            parts.append(encode(self.encoder, graph, positions))
        if self.columns_smoothed:
            parts.append(self.structural(graph, positions, profile))
        if len(parts) == 1:
            return parts[0]
        if any(issparse(part) for part in parts):
            return csr_array(hstack([csr_array(part) for part in parts], format="csr", dtype=np.float32))
        return np.hstack(parts)

    def smoothed(
        self, graph: GraphLike, profile: RootedPageRank, positions: Positions = None
    ) -> tuple[csr_array, Any]:
        """Return T (r, m) for the nodes of a profile, and F (m, f) of the nodes that T reads."""
        operator = profile.operator(self.config.threads)
        if positions is None:
            return operator, self.around(graph, None, profile)
        seen, indices = np.unique(operator.indices, return_inverse=True)
        local = csr_array((operator.data, indices, operator.indptr), shape=(len(profile), len(seen)))
        return local, self.around(graph, seen.astype(np.int64))


_ACTIVATIONS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "identity": lambda values: values,
    "relu": lambda values: np.maximum(values, 0),
    "elu": lambda values: np.where(values > 0, values, np.expm1(np.minimum(values, 0))).astype(np.float32),
    "tanh": np.tanh,
}


@dataclass(frozen=True, eq=False)
class PaperGenerator:
    """The paper's generator, e = activation(x W_M), where x is a node's row of T F; also for models of 0.1.0.

    Those also divide the content by a power of its length, and add structural columns without smoothing.
    """

    inputs: Inputs
    weights: Vectors  # W_M (f + s, d); finite

    def __post_init__(self) -> None:
        """Check that the matrix fits its inputs."""
        rows = self.inputs.num_smoothed + len(self.inputs.columns) * self.inputs.columns_direct
        if self.weights.ndim != 2 or self.weights.shape[0] != rows:
            raise ModelFormatError(f"W_M must have one row per input, {rows}; got shape {self.weights.shape}")
        if not np.isfinite(self.weights).all():
            raise ModelFormatError("W_M must be finite; got NaN or infinity")

    @property
    def config(self) -> PaperConfig:
        """The settings."""
        return self.inputs.config

    @property
    def encoder(self) -> FeatureEncoder | None:
        """The encoder that scales the features, if there are any."""
        return self.inputs.encoder

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.weights.shape[1])

    @property
    def parts(self) -> dict[str, slice]:
        """The columns of its one part: content, or role if it reads structure only."""
        return {"role" if self.encoder is None else "content": slice(0, self.dim)}

    def with_config(self, **changes: Any) -> "PaperGenerator":
        """Return the same generator with other settings."""
        return replace(self, inputs=replace(self.inputs, config=replace(self.config, **changes).check()))

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that vectors depend on, as JSON values and arrays."""
        inputs = self.inputs
        encoder, arrays = (None, {}) if inputs.encoder is None else inputs.encoder.state()
        about: dict[str, Any] = {"settings": self.config.deciding(), "encoder": encoder}
        about |= {"structural_columns": list(inputs.columns), "through": inputs.columns_smoothed}
        about |= {"past": inputs.columns_direct, "norm_power": inputs.norm_power}
        own = {"weights": self.weights, "structural_mean": inputs.mean, "structural_scale": inputs.scale}
        return about, own | {f"encoder.{key}": array for key, array in arrays.items()}

    def require_features(self, graph: GraphLike) -> None:
        """Raise if the features of a graph are not those the model was fitted with."""
        if self.encoder is not None:
            require_features(self.encoder, graph)

    def profile(self, graph: GraphLike, positions: Positions = None) -> RootedPageRank:
        """Return the profiles of all nodes, or of some; T is made from them."""
        return profile_of(graph, self.config, positions)

    def known(self, graph: GraphLike, same_network: bool | None = None) -> None:
        """Return None: these vectors have no place."""

    def embed(self, graph: GraphLike, known: Known = None, *, profile: Profile = None) -> Vectors:
        """Return the vectors (n, d) of all nodes; their profiles are computed unless given."""
        return self._vectors(graph, self.profile(graph) if profile is None else profile)

    def embed_some(self, graph: GraphLike, positions: NDArray[np.int64], known: Known = None) -> Vectors:
        """Return the vectors (r, d) of some nodes, at a cost in proportion to their number."""
        return self._vectors(graph, self.profile(graph, positions), positions)

    def _vectors(self, graph: GraphLike, profile: RootedPageRank, positions: Positions = None) -> Vectors:
        width, threads = self.inputs.num_smoothed, self.config.threads
        # For some nodes by sparse products: the last bits of a dense one depend on its number of rows.
        kind: Any = np.asarray if positions is None else csr_array
        operator, features = self.inputs.smoothed(graph, profile, positions)
        features = features if issparse(features) else kind(features)
        content = multiply(features, self.weights[:width], threads)
        vectors = self.activated(multiply(operator, content, threads))
        if self.inputs.columns_direct:
            columns = kind(self.inputs.structural(graph, positions, profile))
            vectors += multiply(columns, self.weights[width:], threads)
        return vectors

    def activated(self, content: Vectors) -> Vectors:
        """Apply the activation of Eq. 4 to T F W_M, (r, d), then divide by a power of the length."""
        vectors, power = _ACTIVATIONS[self.config.activation](content), self.inputs.norm_power
        if power == 0:
            return vectors
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        return vectors * (np.where(lengths > 0, lengths, 1) ** np.float32(-power))[:, None]


AnyGenerator = Generator | PaperGenerator
