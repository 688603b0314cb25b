"""Training of W_M: Adam on the biased objective, in the principal subspace of T F or in all of its space."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor
from torch.nn import functional

from spinegraph.config import Config
from spinegraph.errors import ParameterError
from spinegraph.generator import activate, divide_by_length
from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord, TrainingState
from spinegraph.learning.objective import Views, first_auxiliary, objective
from spinegraph.learning.sampling import HELD_OUT, PairBatch, PairSampler, TrainingData
from spinegraph.structure.pagerank import Smoothed, principal_directions, signed

Progress = Callable[[str, int, int], None]  # stage, done, of how many
# Inputs (m, f), start (f, d), sampler, config, checkpoints, progress -> the trained matrix and the history.
Training = Callable[
    [Any, NDArray[np.float32], PairSampler, Config, Checkpoints | None, Progress | None],
    tuple[NDArray[np.float32], list[TrainingRecord]],
]
CONTENT_SQUARE = 2.0  # mean square of smoothed content; sets how far a probe's penalty reaches
_MAX_STRUCTURAL = 0.25  # share of the dimensions that structural columns may have
_ROUNDING_SQUARE = 1e-10  # mean square of vectors that differ by rounding alone
_START_NORM = 0.3  # mean norm of a vector at the start: in the sigmoid's steep part
_EVALUATE_EVERY = 25
_HELD_OUT_PAIRS = 2048
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": functional.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
}


def train(
    inputs: Any,
    start: NDArray[np.float32],
    sampler: PairSampler,
    config: Config,
    checkpoints: Checkpoints | None = None,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
    """Train a matrix in this process; see ``Trainer``."""
    return Trainer(inputs, start, sampler, config).train(checkpoints, progress)


def learn(
    data: TrainingData,
    config: Config,
    checkpoints: Checkpoints | None = None,
    progress: Progress | None = None,
    train: Training = train,
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
    """Return W_M, (f + s, d), and the training history.

    The leading dimensions hold smoothed content: the leading half of its principal directions trained, and
    all of them untrained, so that nothing is lost by training (see ``_mix``); their mean square is 2. Direct
    structural columns have untrained dimensions of their own, so that content cannot crowd out structural
    identity; they are scaled to hold ``structural_share`` of a vector's mean square. ``train`` runs steps.
    """
    smoothed, direct, power = data.smoothed, data.direct, data.norm_power
    channel = _channel(direct, config)  # (s, c)
    content_dim = config.dim - channel.shape[1]
    # The order in which Torch sums in a matrix product depends on the number of threads.
    with one_torch_thread():
        trained, history = _train_content(
            smoothed, content_dim, data.sampler, config, checkpoints, progress, train
        )  # (f, r)
    vectors = smoothed.times(trained)
    has_content = _mean_square(vectors) > _ROUNDING_SQUARE
    square = 1.0
    if has_content:
        square = _mean_square(divide_by_length(activate(vectors, config.activation), power))
    if has_content and config.activation == "identity" and power < 1:
        trained *= np.float32((CONTENT_SQUARE / square) ** (0.5 / (1 - power)))
        square = CONTENT_SQUARE

    width, share = smoothed.shape[1], float(config.structural_share or 0)
    weights = np.zeros((width + channel.shape[0], config.dim), dtype=np.float32)
    weights[:width, : trained.shape[1]] = trained
    if direct is not None:
        wanted = square * share / max(1 - share, 1e-6)
        found = _mean_square(direct @ channel)
        factor = np.float32(np.sqrt(wanted / found if found > _ROUNDING_SQUARE else wanted))
        weights[width:, content_dim:] = channel * factor
    return weights, history


def _channel(direct: NDArray[np.float32] | None, config: Config) -> NDArray[np.float32]:
    """Return how structural columns fill their dimensions, (s, c): directly, or by principal directions."""
    if direct is None:
        return np.empty((0, 0), dtype=np.float32)
    width = max(0, min(direct.shape[1], int(config.dim * _MAX_STRUCTURAL)))
    if width == direct.shape[1]:
        return np.eye(width, dtype=np.float32)
    _, vectors = np.linalg.eigh(direct.T @ direct)
    return signed(vectors[:, ::-1][:, :width])


def _train_content(
    smoothed: Smoothed,
    dim: int,
    sampler: PairSampler,
    config: Config,
    checkpoints: Checkpoints | None,
    progress: Progress | None,
    train: Training,
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
    """Return the matrix for smoothed content, (f, r) with r at most dim, and the training history."""
    if config.start == "random" or config.kept == 0:
        basis, start = first_weights(smoothed, dim, config)
        reduced = smoothed.matrix() if basis is None else smoothed.times(basis)
        trained, history = train(reduced, start, sampler, config, checkpoints, progress)
        return trained if basis is None else basis @ trained, history
    directions = principal_directions(smoothed, min(dim, *smoothed.shape), config.seed)  # (f, r)
    coordinates = smoothed.times(directions)  # (m, r)
    # Only the leading half is trained: what lies beyond teaches noise, though labels may need it.
    half = (coordinates.shape[1] + 1) // 2
    leading = coordinates[:, :half]
    leading = np.ascontiguousarray(leading * _unit_scale(leading))
    trained, history = train(leading, _rotation(half, half, config), sampler, config, checkpoints, progress)
    return directions @ _mix(coordinates, trained, config.kept), history


def first_weights(
    smoothed: Smoothed, dim: int, config: Config
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32]]:
    """Return where training starts: a basis V (f, r), or None for all of the space, and a matrix M (r, d).

    ``principal``: V are the leading principal directions of T F, scaled so that vectors start at one norm,
    and M keeps their inner products. ``random``: M is a random (f, d) matrix.
    """
    rows, columns = smoothed.shape
    if config.start == "random":
        bound = np.sqrt(6 / (columns + dim))
        rng = np.random.default_rng([config.seed, 11])
        return None, rng.uniform(-bound, bound, (columns, dim)).astype(np.float32)
    basis = principal_directions(smoothed, min(dim, rows, columns), config.seed)  # (f, r)
    basis *= _unit_scale(smoothed.times(basis))
    return basis, _rotation(basis.shape[1], dim, config)


def _rotation(rows: int, columns: int, config: Config) -> NDArray[np.float32]:
    """Return a random rotation (rows, columns) that gives vectors the norm of the start."""
    rng = np.random.default_rng([config.seed, 11])
    rotation = np.linalg.qr(rng.standard_normal((columns, rows)))[0].T  # orthonormal rows
    return np.ascontiguousarray(_START_NORM * rotation, dtype=np.float32)


def _mix(coordinates: NDArray[np.float32], trained: NDArray[np.float32], kept: float) -> NDArray[np.float32]:
    """Return a matrix (r, r) whose inner products are a mixture of the trained and the untrained ones.

    With x the coordinates of nodes along the principal directions, of which the leading h were scaled and
    trained to A, (h, h), and both sides scaled to a mean square of 1, inner products become
    (1 - kept) x A A' x' + kept x x'. So nothing is lost by training, at no cost in dimensions, and the
    columns of the result are the vectors' own principal directions.
    """
    spread = coordinates.T.astype(np.float64) @ coordinates / len(coordinates)  # (r, r)
    if np.trace(spread) <= _ROUNDING_SQUARE:
        return np.eye(len(spread), dtype=np.float32)
    inner = np.zeros_like(spread)
    half = len(trained)
    inner[:half, :half] = trained.astype(np.float64) @ trained.T
    inner, untrained = (
        matrix / max(float(np.einsum("ij,ij->", matrix, spread)), _ROUNDING_SQUARE)
        for matrix in (inner, np.eye(len(spread)))
    )
    values, vectors = np.linalg.eigh((1 - kept) * inner + kept * untrained)
    root = vectors * np.sqrt(np.maximum(values, 0))
    _, rotation = np.linalg.eigh(root.T @ spread @ root)
    return signed((root @ rotation)[:, ::-1])


def _mean_square(vectors: NDArray[np.float32]) -> float:
    return float(np.square(vectors).sum(axis=1).mean())


def _unit_scale(vectors: NDArray[np.float32]) -> np.float32:
    """Return the factor that makes the mean square of vectors 1, unless they are all 0."""
    square = _mean_square(vectors)
    return np.float32(1 / np.sqrt(square if square > _ROUNDING_SQUARE else 1))


class Trainer:
    """Trains a matrix, first ``start`` (f, d), that turns inputs (m, f), sparse or dense, into vectors."""

    def __init__(self, inputs: Any, start: NDArray[np.float32], sampler: PairSampler, config: Config) -> None:
        self.config, self.sampler, self.device = config, sampler, usable_device(config.device)
        # Few edges overfit: each is met so often at most.
        self.steps = int(min(config.steps, np.ceil(config.passes * sampler.num_edges / config.batch_size)))
        self._sparse: Any = inputs if issparse(inputs) else None
        self._dense = None if issparse(inputs) else torch.from_numpy(inputs).to(self.device)
        self.weights = torch.from_numpy(start.copy()).to(self.device).requires_grad_()
        auxiliary = first_auxiliary(inputs.shape[0], start.shape[1], sampler, config)
        self.auxiliary = torch.from_numpy(auxiliary).to(self.device).requires_grad_()
        self._adam = torch.optim.Adam([self.weights], lr=config.learning_rate)
        self._sparse_adam = torch.optim.SparseAdam([self.auxiliary], lr=config.learning_rate)
        for _, matrix, adam in self._optimized():  # what Torch would set at the first step
            adam.state[matrix] = {key: torch.zeros_like(matrix) for key in ("exp_avg", "exp_avg_sq")}
        Trainer._set_steps(self, 0)  # of these optimizers, whatever a subclass has
        self._activation = ACTIVATIONS[config.activation]
        self._best = None if config.patience is None else self.weights.detach().clone()

    def train(
        self, checkpoints: Checkpoints | None = None, progress: Progress | None = None
    ) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
        """Train all steps, or until held-out pairs stop improving; return the matrix and the history.

        With ``patience`` the matrix is the one with the lowest held-out loss.
        """
        report_progress = progress or (lambda stage, done, total: None)
        history, first = list[TrainingRecord](), 0
        shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors().items()}
        if checkpoints is not None and (state := checkpoints.latest(shapes, self.steps)) is not None:
            first, history = self._restore(state)
        report_progress("training", first, self.steps)
        for step in range(first, self.steps if self.sampler.can_draw else 0):
            if self._has_stalled(history):
                break
            loss = self._step(step)
            done = step + 1
            if done % _EVALUATE_EVERY == 0 or done == self.steps:
                history.append(TrainingRecord(done, float(loss), self.held_out_loss()))
                if self._best is not None and history[-1] == min(history, key=lambda at: at.held_out_loss):
                    self._best.copy_(self.weights.detach())
                report_progress("training", done, self.steps)
            if checkpoints is not None and checkpoints.is_due(done):
                checkpoints.save(self._state(done, history))
        best = self._best if self._best is not None and history else self.weights.detach()
        return best.cpu().numpy(), history

    def held_out_loss(self) -> float:
        """Return the objective on held-out pairs."""
        with torch.no_grad():
            return float(self._loss(self.sampler.draw(0, HELD_OUT, _HELD_OUT_PAIRS), None))

    def _has_stalled(self, history: list[TrainingRecord]) -> bool:
        """Tell whether the last ``patience`` evaluations were no better than the best one before them."""
        losses = [record.held_out_loss for record in history]
        patience = self.config.patience
        return bool(losses) and patience is not None and len(losses) > losses.index(min(losses)) + patience

    def _step(self, step: int) -> Tensor:
        loss = self._loss(self.sampler.draw(step), step)
        self._adam.zero_grad()
        self._sparse_adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._sparse_adam.step()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _loss(self, batch: PairBatch, step: int | None) -> Tensor:
        config, b = self.config, len(batch.anchors)
        nodes = np.concatenate([batch.anchors, batch.positives, batch.negatives])
        made = self._vectors(nodes, step)  # (2b + s, d)
        auxiliary = functional.embedding(torch.from_numpy(nodes).to(self.device), self.auxiliary, sparse=True)
        return objective(
            Views(made[:b], made[b : 2 * b], made[2 * b :]),
            Views(auxiliary[:b], auxiliary[b : 2 * b], auxiliary[2 * b :]),
            lambda1=config.lambda1,
            lambda2=config.lambda2,
            weight=config.negatives,
        )

    def _vectors(self, nodes: NDArray[np.int64], step: int | None) -> Tensor:
        """Return vectors of training nodes, Eq. 4; in a training step with dropout."""
        weights = self.weights
        if step is not None and self.config.dropout > 0:
            rng = np.random.default_rng([self.config.seed, 7, step])
            mask = (rng.random((weights.shape[0], 1)) >= self.config.dropout) / (1 - self.config.dropout)
            weights = weights * torch.from_numpy(mask.astype(np.float32)).to(self.device)
        if self._dense is not None:
            product = self._dense[torch.from_numpy(nodes).to(self.device)] @ weights
        else:
            product = _SparseProduct.apply(self._sparse[nodes], weights)  # type: ignore[no-untyped-call]
        return self._activation(product)

    def _tensors(self) -> dict[str, Tensor]:
        """Name the tensors of a checkpoint."""
        tensors = dict[str, Tensor]()
        for name, matrix, adam in self._optimized():
            state = adam.state[matrix]
            tensors |= {name: matrix, f"{name}_mean": state["exp_avg"], f"{name}_square": state["exp_avg_sq"]}
        return tensors if self._best is None else tensors | {"best": self._best}

    def _optimized(self) -> tuple[tuple[str, Tensor, torch.optim.Optimizer], ...]:
        return ("weights", self.weights, self._adam), ("auxiliary", self.auxiliary, self._sparse_adam)

    def _set_steps(self, steps: int) -> None:
        """Set how many steps the optimizers have taken."""
        self._adam.state[self.weights]["step"] = torch.tensor(float(steps))
        self._sparse_adam.state[self.auxiliary]["step"] = steps

    def _state(self, step: int, history: list[TrainingRecord]) -> TrainingState:
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in self._tensors().items()}
        return TrainingState(step, arrays, [astuple(record) for record in history])

    def _restore(self, state: TrainingState) -> tuple[int, list[TrainingRecord]]:
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(torch.from_numpy(state.arrays[name]))
        self._set_steps(state.step)
        return state.step, [TrainingRecord(*line) for line in state.history]


class _SparseProduct(torch.autograd.Function):
    """Rows of a sparse matrix times W_M, multiplied by SciPy in both directions."""

    @staticmethod
    def forward(ctx: Any, rows: Any, weights: Tensor) -> Tensor:  # type: ignore[override]
        ctx.rows, ctx.device = rows, weights.device
        return torch.from_numpy(rows @ weights.detach().cpu().numpy()).to(weights.device)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, torch.from_numpy(ctx.rows.T @ gradient.cpu().numpy()).to(ctx.device)


def usable_device(name: str) -> torch.device:
    """Return the Torch device of this name, or raise an error that says why it cannot be used."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        reason = str(fault).split("\n")[0][:200]
        raise ParameterError(f"device {name!r} cannot be used here: {reason}; use device='cpu'") from fault
    return device


_lock = Lock()
_before: list[int] = []  # threads of Torch before the first of the fits under way, once for each


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let Torch use one thread inside, and as many as before outside, also where fits overlap."""
    with _lock:
        _before.append(_before[0] if _before else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            torch.set_num_threads(1 if _before else before)
