"""Training of W_M: Adam on the biased objective, in the inputs' principal subspace or in all of their space.

With ``start="principal"`` the matrix is W_M = V M, V being the leading principal directions of the inputs: M is
small, so a step costs the same however many columns the features have, and what V leaves out is noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor
from torch.nn import functional as F

from spinegraph.config import Config
from spinegraph.learning.auxiliary import first_auxiliary
from spinegraph.learning.checkpoint import Checkpoints, TrainingState
from spinegraph.learning.objective import Views, objective
from spinegraph.learning.sampling import HELD_OUT, PairBatch, PairSampler

Progress = Callable[[str, int, int], None]  # stage, done, of how many
_ACTIVATIONS = {"identity": lambda x: x, "relu": F.relu, "elu": F.elu, "tanh": torch.tanh}
_EVALUATE_EVERY = 25
_HELD_OUT_PAIRS = 2048
_START_NORM = 0.3  # mean norm of a vector at the start: in the sigmoid's steep part


@dataclass(frozen=True)
class Moment:
    """One line of the training history: losses after so many steps."""

    step: int
    loss: float
    held_out_loss: float


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
        self.config, self.sampler, self.device = config, sampler, torch.device(config.device)
        self._sparse = inputs if issparse(inputs) else None
        self._dense = None if issparse(inputs) else torch.from_numpy(inputs).to(self.device)
        self.weights = torch.from_numpy(start.copy()).to(self.device).requires_grad_()
        auxiliary = first_auxiliary(inputs.shape[0], start.shape[1], sampler, config)
        self.auxiliary = torch.from_numpy(auxiliary).to(self.device).requires_grad_()
        self._adam = torch.optim.Adam([self.weights], lr=config.learning_rate)
        self._sparse_adam = torch.optim.SparseAdam([self.auxiliary], lr=config.learning_rate)
        self._activation = _ACTIVATIONS[config.activation]

    def train(
        self, checkpoints: Checkpoints | None = None, progress: Progress | None = None
    ) -> tuple[NDArray[np.float32], list[Moment]]:
        """Train all steps, or until held-out pairs stop improving; return the matrix and the history."""
        config, history, first = self.config, list[Moment](), 0
        if checkpoints is not None and (state := checkpoints.latest()) is not None:
            first, history = self._restore(state)
        best = min((moment.held_out_loss for moment in history), default=float("inf"))
        waited = sum(1 for moment in reversed(history) if moment.held_out_loss > best)
        for step in range(first, config.steps if self.sampler.can_draw else 0):
            loss = self._step(step)
            done = step + 1
            if done % _EVALUATE_EVERY == 0 or done == config.steps:
                history.append(Moment(done, loss, self.held_out_loss()))
                waited = 0 if history[-1].held_out_loss < best else waited + 1
                best = min(best, history[-1].held_out_loss)
                if progress is not None:
                    progress("training", done, config.steps)
            if checkpoints is not None and checkpoints.is_due(done):
                checkpoints.save(self._state(done, history))
            if config.patience is not None and waited >= config.patience:
                break
        return self.weights.detach().cpu().numpy(), history

    def _step(self, step: int) -> float:
        loss = self._loss(self.sampler.draw(step), step)
        self._adam.zero_grad()
        self._sparse_adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        self._sparse_adam.step()
        return float(loss.detach())

    def held_out_loss(self) -> float:
        """Objective on pairs of walks that training never sees."""
        with torch.no_grad():
            return float(self._loss(self.sampler.draw(0, HELD_OUT, _HELD_OUT_PAIRS), None))

    def _loss(self, batch: PairBatch, step: int | None) -> Tensor:
        config, b = self.config, len(batch.anchors)
        places = np.concatenate([batch.anchors, batch.positives, batch.negatives])
        made = self._made(places, step)  # (2b + s, d)
        kept = F.embedding(torch.from_numpy(places).to(self.device), self.auxiliary, sparse=True)
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
            product = _SparseRows.apply(self._sparse[places], weights)
        else:
            assert self._dense is not None
            product = self._dense[torch.from_numpy(places).to(self.device)] @ weights
        return self._activation(product)

    def _state(self, step: int, history: list[Moment]) -> TrainingState:
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

    def _restore(self, state: TrainingState) -> tuple[int, list[Moment]]:
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
        return state.step, [Moment(*line) for line in state.history]


def first_weights(inputs: Any, dim: int, config: Config) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return where training starts: a basis V (f, r) and a matrix M (r, d), W_M being V M.

    ``principal``: V are the leading principal directions of the inputs, scaled so that vectors start at one
    norm; M keeps their inner products. ``random``: V is None in effect, M a random (f, d) matrix.
    """
    rng = np.random.default_rng([config.seed, 11])
    num_inputs = inputs.shape[1]
    if config.start == "random":
        bound = np.sqrt(6 / (num_inputs + dim))
        return np.empty((0, 0), np.float32), rng.uniform(-bound, bound, (num_inputs, dim)).astype(np.float32)
    basis = principal_directions(inputs, min(dim, *inputs.shape), config.seed)  # (f, r)
    square = float(np.mean(np.square(_dense(inputs @ basis)).sum(axis=1)))
    basis *= 1 / np.sqrt(max(square, 1e-12))
    turn = np.linalg.qr(rng.standard_normal((dim, basis.shape[1])))[0].T  # (r, d), orthonormal rows
    return basis, (_START_NORM * turn).astype(np.float32)


def principal_directions(inputs: Any, count: int, seed: int) -> NDArray[np.float32]:
    """Return the leading right singular vectors (f, count) of the inputs, without densifying them."""
    from sklearn.utils.extmath import randomized_svd

    _, _, directions = randomized_svd(inputs, count, n_oversamples=20, n_iter=4, random_state=seed % 2**32)
    return np.ascontiguousarray(directions.T, dtype=np.float32)


def _dense(values: Any) -> NDArray[np.float32]:
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float32)
