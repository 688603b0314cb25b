"""From inputs and pairs to W_M: what is trained, and the structural channel beside it."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spinegraph.config import Config
from spinegraph.generator import activate
from spinegraph.learning.checkpoint import Checkpoints
from spinegraph.learning.history import Moment
from spinegraph.learning.sampling import PairSampler
from spinegraph.learning.threads import torch_threads
from spinegraph.learning.training import Progress, Trainer, first_weights
from spinegraph.structure.smoothing import Smoothed, multiply

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

    The first dimensions are trained on what went through T. The structural columns that go past T keep
    dimensions of their own, untrained, so that structural identity has a place that unlike content cannot
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
    channel = _channel(past, config)
    dim = config.dim - channel.shape[1]
    states = None if checkpoint is None else Checkpoints(checkpoint, _run_name(data, config))
    with torch_threads(config.threads):
        basis, start = first_weights(smoothed, dim, config)
        reduced = smoothed.matrix() if basis is None else smoothed.times(basis)
        trained, history = Trainer(reduced, start, sampler, config).train(states, progress)
    content = activate(multiply(reduced, trained), config.activation)
    trained = trained if basis is None else basis @ trained

    weights = np.zeros((trained.shape[0] + channel.shape[0], config.dim), dtype=np.float32)
    weights[: trained.shape[0], :dim] = trained
    if past is not None:
        square = np.square(past @ channel).sum(axis=1).mean()
        share = config.structural_share
        wanted = share / max(1 - share, 1e-6) * max(float(np.square(content).sum(axis=1).mean()), 1e-6)
        weights[trained.shape[0] :, dim:] = channel * np.sqrt(wanted / max(square, 1e-12))
    return weights, history


def _channel(past: NDArray[np.float32] | None, config: Config) -> NDArray[np.float32]:
    """Return how structural columns fill their dimensions, (s, c): as they are, or by main directions."""
    if past is None:
        return np.empty((0, 0), dtype=np.float32)
    most = max(0, min(past.shape[1], int(config.dim * _MOST_STRUCTURAL)))
    if most == past.shape[1]:
        return np.eye(most, dtype=np.float32)
    _, vectors = np.linalg.eigh(past.T @ past)
    return np.ascontiguousarray(vectors[:, ::-1][:, :most], dtype=np.float32)


def _run_name(data: str, config: Config) -> str:
    settings = {name: value for name, value in config.to_json().items() if name not in ("threads", "device")}
    return f"{data} {json.dumps(settings, sort_keys=True)}"
