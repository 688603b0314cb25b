"""Generator: turns features and structure into vectors, by NumPy and SciPy alone (Eq. 4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import ModelFormatError
from spinegraph.inputs import Inputs
from spinegraph.structure.profile import RootedPageRank


def activate(values: NDArray[np.float32], activation: str) -> NDArray[np.float32]:
    """Apply the activation of Eq. 4.

    >>> activate(np.array([-1.0, 2.0], dtype=np.float32), "relu")
    array([0., 2.], dtype=float32)
    """
    if activation == "relu":
        return np.maximum(values, 0)
    if activation == "tanh":
        return np.tanh(values)
    if activation == "elu":
        return np.where(values > 0, values, np.expm1(np.minimum(values, 0))).astype(np.float32)
    return values


def shortened(vectors: NDArray[np.float32], power: float) -> NDArray[np.float32]:
    """Divide every vector by a power of its length; zero vectors stay.

    >>> shortened(np.array([[0.0, 4.0], [0.0, 0.0]], dtype=np.float32), 0.5)
    array([[0., 2.],
           [0., 0.]], dtype=float32)
    """
    if power == 0:
        return vectors
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    scale = np.where(lengths > 0, lengths, 1) ** np.float32(-power)
    return vectors * scale[:, None]


@dataclass(frozen=True, eq=False)
class Generator:
    """The trained part of SPINE: e = activation(x W_M), x being the input of a node.

    Structural columns that go past T are added as they are; what comes through T is also divided by a power
    of its length, ``norm_power``: the fewer neighbours a node has the less is averaged and the longer it is,
    which would tell sparse networks from dense ones.

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
        rows = self.inputs.num_through + self.inputs.num_past
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
        graph: Any,
        positions: NDArray[np.int64] | None = None,
        *,
        profile: RootedPageRank | None = None,
        columns: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        """Return vectors (r, d) of all nodes, or of those at some positions at their cost alone.

        ``profile`` of these nodes, and ``columns`` (n, s), ``inputs.structural`` of all nodes, save computing
        them again where they are at hand.
        """
        profile = self.inputs.profile(graph, positions) if profile is None else profile
        through = self.inputs.num_through
        vectors = self.activated(
            self.inputs.smoothed(graph, profile, positions, columns).times(self.weights[:through])
        )
        if self.inputs.past:
            vectors += self.inputs.structural(graph, positions, profile) @ self.weights[through:]
        return vectors

    def activated(self, content: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what becomes of T F W_M, (r, d): Eq. 4's activation, then the power of the length."""
        return shortened(activate(content, self.activation), self.inputs.norm_power)
