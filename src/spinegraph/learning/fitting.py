"""From inputs and pairs to W_M: what is trained, and the structural channel beside it."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinegraph import __version__
from spinegraph.config import Config
from spinegraph.generator import activate
from spinegraph.learning.checkpoint import Checkpoints
from spinegraph.learning.history import Moment
from spinegraph.learning.sampling import PairSampler
from spinegraph.learning.threads import torch_threads
from spinegraph.learning.training import LEAST_SQUARE, Progress, Trainer, first_weights
from spinegraph.structure.smoothing import Smoothed, multiply, principal_directions, signed

_MOST_STRUCTURAL = 0.25  # of the dimensions


def learn(
    smoothed: Smoothed,
    past: NDArray[np.float32] | None,
    sampler: PairSampler,
    config: Config,
    data: str,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float32], list[Moment]]:
    """Return W_M, (f + s, d), and the training history.

    The first dimensions are trained on what went through T; the next stay at its principal directions, of the
    same size, so that what training forgets is still there. The structural columns that go past T have
    dimensions of their own, untrained too, so that structural identity has a place that unlike content cannot
    crowd out; their size is set so that they hold ``structural_share`` of a vector's mean square.

    Parameters
    ----------
    smoothed : Smoothed (m, f)
        T F of the training nodes.
    past : float32 array (m, s), optional
    sampler : PairSampler
    config : Config
    data : str
        Fingerprint of the training data; a checkpoint of other data or settings is passed over.
    """
    channel = _channel(past, config)  # (s, c)
    content = config.dim - channel.shape[1]
    num_kept = 0 if config.start == "random" else int(config.kept * content)
    states = None if checkpoint is None else Checkpoints(checkpoint, _run_name(data, config))
    # One thread: the order in which Torch sums in a matrix product depends on how many there are.
    with torch_threads(1):
        basis, start = first_weights(smoothed, content - num_kept, config)
        reduced = smoothed.matrix() if basis is None else smoothed.times(basis)
        trained, history = Trainer(reduced, start, sampler, config).train(states, progress)
    square = _mean_square(activate(multiply(reduced, trained), config.activation))
    square = square if square > LEAST_SQUARE else 1.0  # no content at all: structure alone sets the size

    through, learned = smoothed.shape[1], trained.shape[1]
    weights = np.zeros((through + channel.shape[0], config.dim), dtype=np.float32)
    weights[:through, :learned] = trained if basis is None else basis @ trained
    if num_kept:
        directions = principal_directions(smoothed, min(num_kept, *smoothed.shape), config.seed)
        block = weights[:through, learned : learned + directions.shape[1]]
        block[:] = directions * _factor(smoothed.times(directions), square)
        square *= 2
    if past is not None:
        share = config.structural_share / max(1 - config.structural_share, 1e-6)
        weights[through:, content:] = channel * _factor(past @ channel, share * square)
    return weights, history


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


def _run_name(data: str, config: Config) -> str:
    settings = {name: value for name, value in config.to_json().items() if name not in ("threads", "device")}
    return f"{__version__} {data} {json.dumps(settings, sort_keys=True)}"
