"""Training of W_M: Adam on the biased objective, in the principal subspace of T F or in all of its space."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor
from torch.nn import functional

from spinegraph.config import Config
from spinegraph.errors import ParameterError
from spinegraph.generator import activate, shortened
from spinegraph.kernels.runtime import thread_count
from spinegraph.learning.checkpoint import Checkpoints, TrainingRecord, TrainingState
from spinegraph.learning.objective import Views, first_auxiliary, objective
from spinegraph.learning.sampling import HELD_OUT, PairBatch, PairSampler, TrainingData
from spinegraph.structure.pagerank import Smoothed, principal_directions, signed


def usable_device(name: str) -> torch.device:
    """Return the Torch device of this name, or say why it cannot be used."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        reason = str(fault).split("\n")[0][:200]
        raise ParameterError(f"device {name!r} cannot be used here: {reason}; use device='cpu'") from fault
    return device


_lock = Lock()
_here = local()
_before: list[int] = []  # how many there were, of each that is inside


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Let Torch use so many threads inside, and as many as before outside."""
    count = thread_count(threads)
    with _lock:
        is_nested = getattr(_here, "is_inside", False)
        # Of fits side by side each sees what the others set, so the first alone knows how it was.
        before = _before[0] if _before and not is_nested else torch.get_num_threads()
        _before.append(before)
        _here.is_inside = True
        torch.set_num_threads(count)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(before)
            _here.is_inside = is_nested
            _before.remove(before)


Progress = Callable[[str, int, int], None]  # stage, done, of how many
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": functional.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
}
_EVALUATE_EVERY = 25
_HELD_OUT_PAIRS = 2048
LEAST_SQUARE = 1e-10  # mean square of vectors that differ by more than rounding
_START_NORM = 0.3  # mean norm of a vector at the start: in the sigmoid's steep part


def train(
    inputs: Any,
    start: NDArray[np.float32],
    sampler: PairSampler,
    config: Config,
    checkpoints: Checkpoints | None = None,
    progress: Progress | None = None,
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
    """Train a matrix in this process, and return it with the history; see ``Trainer``."""
    return Trainer(inputs, start, sampler, config).train(checkpoints, progress)


class _SparseRows(torch.autograd.Function):
    """Rows of a sparse matrix times W_M, multiplied by SciPy both ways."""

    @staticmethod
    def forward(ctx: Any, rows: Any, weights: Tensor) -> Tensor:  # type: ignore[override]
        ctx.rows, ctx.device = rows, weights.device
        return torch.from_numpy(rows @ weights.detach().cpu().numpy()).to(weights.device)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, torch.from_numpy(ctx.rows.T @ gradient.cpu().numpy()).to(ctx.device)


class Trainer:
    """Trains a matrix that turns inputs (m, f) into vectors (m, d).

    Parameters
    ----------
    inputs : csr_array or float32 array (m, f)
        One row per training node.
    start : float32 array (f, d)
        First value of the matrix.
    sampler : PairSampler
    config : Config
    """

    def __init__(self, inputs: Any, start: NDArray[np.float32], sampler: PairSampler, config: Config) -> None:
        self.config, self.sampler, self.device = config, sampler, usable_device(config.device)
        # A few edges are soon learned by heart and the content forgotten: each is met so often at most.
        self.steps = int(min(config.steps, np.ceil(config.passes * sampler.num_edges / config.batch_size)))
        self._sparse = inputs if issparse(inputs) else None
        self._dense = None if issparse(inputs) else torch.from_numpy(inputs).to(self.device)
        self.weights = torch.from_numpy(start.copy()).to(self.device).requires_grad_()
        auxiliary = first_auxiliary(inputs.shape[0], start.shape[1], sampler, config)
        self.auxiliary = torch.from_numpy(auxiliary).to(self.device).requires_grad_()
        self._adam = torch.optim.Adam([self.weights], lr=config.learning_rate)
        self._sparse_adam = torch.optim.SparseAdam([self.auxiliary], lr=config.learning_rate)
        self._activation = ACTIVATIONS[config.activation]

    def train(
        self, checkpoints: Checkpoints | None = None, progress: Progress | None = None
    ) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
        """Train all steps, or until held-out pairs stop improving; return the matrix and the history."""
        history, first = list[TrainingRecord](), 0
        if checkpoints is not None and (state := checkpoints.latest(self._shapes(), self.steps)) is not None:
            first, history = self._restore(state)
        if progress is not None:
            progress("training", first, self.steps)
        for step in range(first, self.steps if self.sampler.can_draw else 0):
            if self._has_stalled(history):
                break
            loss = self._step(step)
            done = step + 1
            if done % _EVALUATE_EVERY == 0 or done == self.steps:
                history.append(TrainingRecord(done, float(loss), self.held_out_loss()))
                if progress is not None:
                    progress("training", done, self.steps)
            if checkpoints is not None and checkpoints.is_due(done):
                checkpoints.save(self._state(done, history))
        return self.weights.detach().cpu().numpy(), history

    def _has_stalled(self, history: list[TrainingRecord]) -> bool:
        """Say whether the last ``patience`` evaluations were no better than the best one before them."""
        losses = [moment.held_out_loss for moment in history]
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

    def held_out_loss(self) -> float:
        """Objective on pairs of walks that training never sees."""
        with torch.no_grad():
            return float(self._loss(self.sampler.draw(0, HELD_OUT, _HELD_OUT_PAIRS), None))

    def _loss(self, batch: PairBatch, step: int | None) -> Tensor:
        config, b = self.config, len(batch.anchors)
        places = np.concatenate([batch.anchors, batch.positives, batch.negatives])
        made = self._made(places, step)  # (2b + s, d)
        kept = functional.embedding(torch.from_numpy(places).to(self.device), self.auxiliary, sparse=True)
        return objective(
            Views(made[:b], made[b : 2 * b], made[2 * b :]),
            Views(kept[:b], kept[b : 2 * b], kept[2 * b :]),
            lambda1=config.lambda1,
            lambda2=config.lambda2,
            weight=config.negatives,
        )

    def _made(self, places: NDArray[np.int64], step: int | None) -> Tensor:
        """Vectors of the nodes at some places, Eq. 4; in a training step with some inputs left out."""
        weights = self.weights
        if step is not None and self.config.dropout > 0:
            rng = np.random.default_rng([self.config.seed, 7, step])
            kept = (rng.random((weights.shape[0], 1)) >= self.config.dropout) / (1 - self.config.dropout)
            weights = weights * torch.from_numpy(kept.astype(np.float32)).to(self.device)
        if self._sparse is not None:
            product = _SparseRows.apply(self._sparse[places], weights)  # type: ignore[no-untyped-call]
        else:
            assert self._dense is not None
            product = self._dense[torch.from_numpy(places).to(self.device)] @ weights
        return self._activation(product)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Name the arrays of a state, and their shapes."""
        kinds = {"weights": tuple(self.weights.shape), "auxiliary": tuple(self.auxiliary.shape)}
        return {f"{kind}{part}": shape for kind, shape in kinds.items() for part in ("", "_mean", "_square")}

    def _state(self, step: int, history: list[TrainingRecord]) -> TrainingState:
        dense, sparse = self._adam.state[self.weights], self._sparse_adam.state[self.auxiliary]
        tensors = {
            "weights": self.weights,
            "auxiliary": self.auxiliary,
            "weights_mean": dense["exp_avg"],
            "weights_square": dense["exp_avg_sq"],
            "auxiliary_mean": sparse["exp_avg"],
            "auxiliary_square": sparse["exp_avg_sq"],
        }
        arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
        return TrainingState(step, arrays, [(line.step, line.loss, line.held_out_loss) for line in history])

    def _restore(self, state: TrainingState) -> tuple[int, list[TrainingRecord]]:
        tensors = {name: torch.from_numpy(array).to(self.device) for name, array in state.arrays.items()}
        with torch.no_grad():
            self.weights.copy_(tensors["weights"])
            self.auxiliary.copy_(tensors["auxiliary"])
        self._adam.state[self.weights] = {
            "step": torch.tensor(float(state.step)),
            "exp_avg": tensors["weights_mean"],
            "exp_avg_sq": tensors["weights_square"],
        }
        self._sparse_adam.state[self.auxiliary] = {
            "step": state.step,
            "exp_avg": tensors["auxiliary_mean"],
            "exp_avg_sq": tensors["auxiliary_square"],
        }
        return state.step, [TrainingRecord(*line) for line in state.history]


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
    basis *= _scale(smoothed.times(basis))
    return basis, _turn(basis.shape[1], dim, config)


def first_places(
    places: NDArray[np.float32], config: Config
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return scaled principal coordinates (m, h), and a matrix (h, h) that keeps inner products."""
    scaled = np.ascontiguousarray(places * _scale(places))
    return scaled, _turn(places.shape[1], places.shape[1], config)


def _scale(vectors: NDArray[np.float32]) -> np.float32:
    """Return what makes the mean square of vectors 1, where they have any."""
    square = float(np.square(vectors).sum(axis=1).mean())
    return np.float32(1 / np.sqrt(square if square > LEAST_SQUARE else 1))


def _turn(rows: int, columns: int, config: Config) -> NDArray[np.float32]:
    """Return a random matrix that turns vectors and gives them the norm of the start."""
    rng = np.random.default_rng([config.seed, 11])
    turn = np.linalg.qr(rng.standard_normal((columns, rows)))[0].T  # orthonormal rows
    return np.ascontiguousarray(_START_NORM * turn, dtype=np.float32)


Training = Callable[
    [Any, NDArray[np.float32], PairSampler, Config, Checkpoints | None, Progress | None],
    tuple[NDArray[np.float32], list[TrainingRecord]],
]
_MOST_STRUCTURAL = 0.25  # of the dimensions
CONTENT_SQUARE = 2.0  # mean square of what went through T; sets how far a probe's penalty reaches


def learn(
    lesson: TrainingData,
    config: Config,
    states: Checkpoints | None = None,
    progress: Progress | None = None,
    train: Training = train,
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
    """Return W_M, (f + s, d), and the training history.

    The leading dimensions hold what went through T: the leading half of its principal directions trained, and
    all of them as they were, so that what training forgets is still there (see ``_merged``); their mean
    square is 2. The structural columns that go past T have dimensions of their own, untrained, so that
    structural identity has a place that unlike content cannot crowd out; their size is set so that they hold
    ``structural_share`` of a vector's mean square.

    Parameters
    ----------
    lesson : TrainingData
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
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
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
