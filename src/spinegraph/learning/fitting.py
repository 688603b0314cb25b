"""From inputs and pairs to W_M: what is trained, and the structural channel beside it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.generator import activate, shortened
from spinegraph.learning.checkpoint import Checkpoints
from spinegraph.learning.history import Moment
from spinegraph.learning.lesson import Lesson
from spinegraph.learning.sampling import PairSampler
from spinegraph.learning.threads import torch_threads
from spinegraph.learning.training import LEAST_SQUARE, Progress, first_places, first_weights, train
from spinegraph.structure.smoothing import Smoothed, principal_directions, signed

Training = Callable[
    [Any, NDArray[np.float32], PairSampler, Config, Checkpoints | None, Progress | None],
    tuple[NDArray[np.float32], list[Moment]],
]
_MOST_STRUCTURAL = 0.25  # of the dimensions
CONTENT_SQUARE = 2.0  # mean square of what went through T; sets how far a probe's penalty reaches


def learn(
    lesson: Lesson,
    config: Config,
    states: Checkpoints | None = None,
    progress: Progress | None = None,
    train: Training = train,
) -> tuple[NDArray[np.float32], list[Moment]]:
    """Return W_M, (f + s, d), and the training history.

    The leading dimensions hold what went through T: the leading half of its principal directions trained, and
    all of them as they were, so that what training forgets is still there (see ``_merged``); their mean
    square is 2. The structural columns that go past T have dimensions of their own, untrained, so that
    structural identity has a place that unlike content cannot crowd out; their size is set so that they hold
    ``structural_share`` of a vector's mean square.

    Parameters
    ----------
    lesson : Lesson
    config : Config
        With a ``structural_share``.
    states : Checkpoints, optional
        A stopped run goes on from its last one.
    progress : callable (stage, done, total), optional
    train : callable
        What runs the steps, as ``training.train`` does.
    """
    smoothed, past, power = lesson.smoothed, lesson.past, lesson.power
    channel = _channel(past, config)  # (s, c)
    content = config.dim - channel.shape[1]
    # One thread: the order in which Torch sums in a matrix product depends on how many there are.
    with torch_threads(1):
        trained, history = _trained(
            smoothed, content, lesson.sampler, config, states, progress, train
        )  # (f, r)
    vectors = smoothed.times(trained)
    has_content = _mean_square(vectors) > LEAST_SQUARE  # more than rounding
    size = _mean_square(shortened(activate(vectors, config.activation), power)) if has_content else 1.0
    if has_content and config.activation == "identity" and power < 1:
        trained *= np.float32((CONTENT_SQUARE / size) ** (0.5 / (1 - power)))
        size = CONTENT_SQUARE

    through, share = smoothed.shape[1], float(config.structural_share or 0)
    weights = np.zeros((through + channel.shape[0], config.dim), dtype=np.float32)
    weights[:through, : trained.shape[1]] = trained
    if past is not None:
        wanted = size * share / max(1 - share, 1e-6)
        weights[through:, content:] = channel * _factor(past @ channel, wanted)
    return weights, history


def _trained(
    smoothed: Smoothed,
    dim: int,
    sampler: PairSampler,
    config: Config,
    states: Checkpoints | None,
    progress: Progress | None,
    train: Training,
) -> tuple[NDArray[np.float32], list[Moment]]:
    """Return the matrix for what went through T, (f, r) with r at most dim, and the training history."""
    if config.start == "random" or config.kept == 0:
        basis, start = first_weights(smoothed, dim, config)
        reduced = smoothed.matrix() if basis is None else smoothed.times(basis)
        trained, history = train(reduced, start, sampler, config, states, progress)
        return trained if basis is None else basis @ trained, history
    directions = principal_directions(smoothed, min(dim, *smoothed.shape), config.seed)  # (f, r)
    places = smoothed.times(directions)  # (m, r)
    # The leading half is trained: what lies beyond teaches noise, though labels may need it.
    half = (places.shape[1] + 1) // 2
    leading, start = first_places(places[:, :half], config)
    trained, history = train(leading, start, sampler, config, states, progress)
    return directions @ _merged(places, trained, config.kept), history


def _merged(places: NDArray[np.float32], trained: NDArray[np.float32], kept: float) -> NDArray[np.float32]:
    """Return a matrix (r, r) whose inner products are a mixture of the trained ones and those at the start.

    With x the places of nodes along the principal directions, of which the leading h were scaled and trained
    to A, (h, h), both sides of a mean square of 1, inner products become (1 - kept) x A A' x' + kept x x'. So
    what training forgets is still there, at no cost in dimensions, and the columns of the result are the
    vectors' own principal directions.
    """
    spread = places.T.astype(np.float64) @ places / len(places)  # (r, r)
    if np.trace(spread) <= LEAST_SQUARE:
        return np.eye(len(spread), dtype=np.float32)
    inner = np.zeros_like(spread)
    half = len(trained)
    inner[:half, :half] = trained.astype(np.float64) @ trained.T
    inner, plain = (
        matrix / max(float(np.einsum("ij,ij->", matrix, spread)), LEAST_SQUARE)
        for matrix in (inner, np.eye(len(spread)))
    )
    values, vectors = np.linalg.eigh((1 - kept) * inner + kept * plain)
    root = vectors * np.sqrt(np.maximum(values, 0))
    _, turn = np.linalg.eigh(root.T @ spread @ root)
    return signed((root @ turn)[:, ::-1])


def _mean_square(vectors: NDArray[np.float32]) -> float:
    return float(np.square(vectors).sum(axis=1).mean())


def _factor(vectors: NDArray[np.float32], square: float) -> np.float32:
    """Return what vectors are to be multiplied by to get a mean square of ``square``, where they have any."""
    found = _mean_square(vectors)
    return np.float32(np.sqrt(square / found if found > LEAST_SQUARE else square))


def _channel(past: NDArray[np.float32] | None, config: Config) -> NDArray[np.float32]:
    """Return how structural columns fill their dimensions, (s, c): as they are, or by main directions."""
    if past is None:
        return np.empty((0, 0), dtype=np.float32)
    most = max(0, min(past.shape[1], int(config.dim * _MOST_STRUCTURAL)))
    if most == past.shape[1]:
        return np.eye(most, dtype=np.float32)
    _, vectors = np.linalg.eigh(past.T @ past)
    return signed(vectors[:, ::-1][:, :most])
