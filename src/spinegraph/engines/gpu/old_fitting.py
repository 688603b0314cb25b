"""To be removed."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.training import ACTIVATIONS, DevicePairs, DeviceTrainer
from spinegraph.learning.checkpoint import TrainingRecord

# As in learning/fitting.py and learning/training.py.
_MOST_STRUCTURAL, CONTENT_SQUARE, _LEAST_SQUARE, _START_NORM = 0.25, 2.0, 1e-10, 0.3


def learn(
    inputs: Tensor,
    past: Tensor | None,
    pairs: DevicePairs,
    config: Config,
    power: float,
) -> tuple[Tensor, list[TrainingRecord]]:
    """Return W_M, (f + s, d), and the training history; see ``learning.fitting.learn``.

    Parameters
    ----------
    inputs : float32 tensor (m, f)
        T F of the training nodes.
    past : float32 tensor (m, s), optional
    pairs : DevicePairs
    config : Config
        With a ``structural_share``.
    power : float
        Power of the length that the generator divides content by.
    """
    with _one_thread():
        channel = _channel(past, config)  # (s, c)
        content = config.dim - channel.shape[1]
        trained, history = _trained(inputs, content, pairs, config)  # (f, r)
    vectors = inputs @ trained
    has_content = _mean_square(vectors) > _LEAST_SQUARE
    size = _mean_square(shortened(ACTIVATIONS[config.activation](vectors), power)) if has_content else 1.0
    if has_content and config.activation == "identity" and power < 1:
        trained = trained * (CONTENT_SQUARE / size) ** (0.5 / (1 - power))
        size = CONTENT_SQUARE
    through, share = inputs.shape[1], float(config.structural_share or 0)
    weights = inputs.new_zeros(through + len(channel), config.dim)
    weights[:through, : trained.shape[1]] = trained
    if past is not None:
        wanted = size * share / max(1 - share, 1e-6)
        found = _mean_square(past @ channel)
        weights[through:, content:] = channel * (wanted / found if found > _LEAST_SQUARE else wanted) ** 0.5
    return weights, history


def shortened(vectors: Tensor, power: float) -> Tensor:
    """Divide every vector by a power of its length; zero vectors stay."""
    if power == 0:
        return vectors
    lengths = vectors.norm(dim=1, keepdim=True)
    return vectors * torch.where(lengths > 0, lengths, 1.0) ** -power


def _trained(
    inputs: Tensor, dim: int, pairs: DevicePairs, config: Config
) -> tuple[Tensor, list[TrainingRecord]]:
    """Return the matrix for what went through T, (f, r) with r at most dim, and the training history."""
    rows, columns = inputs.shape
    if config.start == "random":
        bound, rng = np.sqrt(6 / (columns + dim)), np.random.default_rng([config.seed, 11])
        start = _tensor(rng.uniform(-bound, bound, (columns, dim)), inputs)
        return DeviceTrainer(inputs, start, pairs, config).train()
    directions = principal_directions(inputs, min(dim, rows, columns), config.seed)  # (f, r)
    places = inputs @ directions  # (m, r)
    if config.kept == 0:
        scale = _scale(places)
        start = _turn(directions.shape[1], dim, config, inputs)
        trained, history = DeviceTrainer(places * scale, start, pairs, config).train()
        return directions * scale @ trained, history
    half = (places.shape[1] + 1) // 2
    leading = places[:, :half] * _scale(places[:, :half])
    start = _turn(half, half, config, inputs)
    trained, history = DeviceTrainer(leading.contiguous(), start, pairs, config).train()
    return directions @ _merged(places, trained, config.kept), history


def principal_directions(inputs: Tensor, count: int, seed: int) -> Tensor:
    """Return the leading right singular vectors (f, count) of a matrix (m, f), by random projection."""
    rows, columns = inputs.shape
    width = min(count + 20, rows, columns)
    found = inputs @ _tensor(np.random.default_rng([seed, 17]).standard_normal((columns, width)), inputs)
    for _ in range(3):
        found = inputs.T @ _orthonormal(found)
        found = inputs @ _orthonormal(found)
    return _signed(_orthonormal(inputs.T @ _orthonormal(found))[:, :count])


def _orthonormal(columns: Tensor) -> Tensor:
    """Return an orthonormal basis of the columns' span, main directions first, by their small Gram matrix."""
    values, vectors = _eigh(columns.double().T @ columns.double())
    kept = values > max(1e-10 * float(values.max()) if len(values) else 0.0, 1e-300)
    return (columns.double() @ (vectors[:, kept] / values[kept].sqrt())).float()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let the host use one thread: its matrices are so small that more of them only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and vectors, largest first; on the host, which is quicker for so small a matrix."""
    values, vectors = torch.linalg.eigh(matrix.cpu())
    return values.flip(0).to(matrix.device), vectors.flip(1).to(matrix.device)


def _signed(directions: Tensor) -> Tensor:
    """Return directions (f, r) turned so that each one's largest entry is positive."""
    if not directions.numel():
        return directions.float()
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return (directions * largest.sign()).float().contiguous()


def _merged(places: Tensor, trained: Tensor, kept: float) -> Tensor:
    """Return (r, r): inner products are a mixture of the trained ones and those at the start."""
    spread = places.double().T @ places.double() / len(places)
    plain = torch.eye(len(spread), dtype=torch.float64, device=places.device)
    if float(spread.trace()) <= _LEAST_SQUARE:
        return plain.float()
    inner, half = torch.zeros_like(spread), len(trained)
    inner[:half, :half] = trained.double() @ trained.double().T
    inner, plain = (matrix / (matrix * spread).sum().clamp_min(_LEAST_SQUARE) for matrix in (inner, plain))
    values, vectors = _eigh((1 - kept) * inner + kept * plain)
    root = vectors * values.clamp_min(0).sqrt()
    return _signed(root @ _eigh(root.T @ spread @ root)[1])


def _channel(past: Tensor | None, config: Config) -> Tensor:
    """Return how structural columns fill their dimensions, (s, c): as they are, or by main directions."""
    if past is None:
        return torch.empty(0, 0)
    most = max(0, min(past.shape[1], int(config.dim * _MOST_STRUCTURAL)))
    if most == past.shape[1]:
        return torch.eye(most, device=past.device)
    return _signed(_eigh(past.T @ past)[1][:, :most])


def _scale(vectors: Tensor) -> float:
    """Return what makes the mean square of vectors 1, where they have any."""
    square = _mean_square(vectors)
    return float((square if square > _LEAST_SQUARE else 1.0) ** -0.5)


def _turn(rows: int, columns: int, config: Config, like: Tensor) -> Tensor:
    """Return a random matrix that turns vectors and gives them the norm of the start."""
    random = np.random.default_rng([config.seed, 11]).standard_normal((columns, rows))
    return _tensor(_START_NORM * torch.linalg.qr(torch.from_numpy(random))[0].T.numpy(), like)


def _mean_square(vectors: Tensor) -> float:
    return float(vectors.square().sum(1).mean())


def _tensor(array: np.ndarray, like: Tensor) -> Tensor:  # type: ignore[type-arg]
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)).to(like.device)
