"""Training of W_M by Adam on the biased objective."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor
from torch.nn import functional

from spinegraph.config import PaperConfig
from spinegraph.learning.objective import Views, initial_auxiliary, objective
from spinegraph.learning.sampling import HELD_OUT, PairBatch, PairSampler
from spinegraph.parts.paper import TrainingRecord

Progress = Callable[[str, int, int], None]  # stage, done, total
_EVALUATE_EVERY = 25
_HELD_OUT_PAIRS = 2048
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": functional.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
}


def learn(
    inputs: Any, sampler: PairSampler, config: PaperConfig, progress: Progress | None = None
) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
    """Return W_M (f, d) and the training history, given inputs T F (m, f), sparse or dense."""
    # The order of summation in Torch's matrix products depends on the number of threads.
    with one_torch_thread():
        return Trainer(inputs, initial_weights(inputs.shape[1], config), sampler, config).train(progress)


def initial_weights(num_features: int, config: PaperConfig) -> NDArray[np.float32]:
    """Return the random initial W_M (f, d)."""
    bound = np.sqrt(6 / (num_features + config.dim))
    rng = np.random.default_rng([config.seed, 11])
    return rng.uniform(-bound, bound, (num_features, config.dim)).astype(np.float32)


class Trainer:
    """Trains a matrix, initially ``start`` (f, d), that maps inputs (m, f), sparse or dense, to vectors."""

    def __init__(self, inputs: Any, start: NDArray[Any], sampler: PairSampler, config: PaperConfig) -> None:
        self.config, self.sampler = config, sampler
        self._inputs: Any = inputs if issparse(inputs) else torch.from_numpy(inputs)
        self.weights = torch.from_numpy(start.copy()).requires_grad_()
        auxiliary = initial_auxiliary(inputs.shape[0], sampler, config)
        self.auxiliary = torch.from_numpy(auxiliary).requires_grad_()
        self._adam = torch.optim.Adam([self.weights], lr=config.learning_rate)
        self._sparse_adam = torch.optim.SparseAdam([self.auxiliary], lr=config.learning_rate)
        self._activation = _ACTIVATIONS[config.activation]

    def train(self, progress: Progress | None = None) -> tuple[NDArray[np.float32], list[TrainingRecord]]:
        """Train all steps, or until the held-out loss stops improving; return the matrix and the history.

        With ``patience`` the matrix is the one with the lowest held-out loss.
        """
        report_progress = progress or (lambda stage, done, total: None)
        config, history, best = self.config, list[TrainingRecord](), self.weights.detach()
        report_progress("training", 0, config.steps)
        for done in range(1, 1 + (config.steps if self.sampler.can_draw else 0)):
            losses = [record.held_out_loss for record in history]
            if config.patience and losses and len(losses) > losses.index(min(losses)) + config.patience:
                break
            loss = self._step(done - 1)
            if done % _EVALUATE_EVERY == 0 or done == config.steps:
                history.append(TrainingRecord(done, float(loss), self.held_out_loss()))
                if config.patience and history[-1] == min(history, key=lambda record: record.held_out_loss):
                    best = self.weights.detach().clone()
                report_progress("training", done, config.steps)
        return best.numpy(), history

    def held_out_loss(self) -> float:
        """Return the objective on held-out pairs."""
        with torch.no_grad():
            return float(self._loss(self.sampler.draw(0, HELD_OUT, _HELD_OUT_PAIRS), None))

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
        generated = self._vectors(nodes, step)  # (2b + s, d)
        auxiliary = functional.embedding(torch.from_numpy(nodes), self.auxiliary, sparse=True)
        views = (Views(each[:b], each[b : 2 * b], each[2 * b :]) for each in (generated, auxiliary))
        return objective(*views, lambda1=config.lambda1, lambda2=config.lambda2, weight=config.negatives)

    def _vectors(self, nodes: NDArray[np.int64], step: int | None) -> Tensor:
        """Return vectors of training nodes, Eq. 4, with dropout in a training step."""
        weights = self.weights
        if step is not None and self.config.dropout > 0:
            rng = np.random.default_rng([self.config.seed, 7, step])
            mask = (rng.random((weights.shape[0], 1)) >= self.config.dropout) / (1 - self.config.dropout)
            weights = weights * torch.from_numpy(mask.astype(np.float32))
        if issparse(self._inputs):
            product = _SparseProduct.apply(self._inputs[nodes], weights)  # type: ignore[no-untyped-call]
        else:
            product = self._inputs[torch.from_numpy(nodes)] @ weights
        return self._activation(product)


class _SparseProduct(torch.autograd.Function):
    """Product of sparse rows and W_M, with SciPy forward and backward."""

    @staticmethod
    def forward(ctx: Any, rows: Any, weights: Tensor) -> Tensor:  # type: ignore[override]
        ctx.rows = rows
        return torch.from_numpy(rows @ weights.detach().numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
        return None, torch.from_numpy(ctx.rows.T @ gradient.numpy())


_lock = Lock()
_before: list[int] = []  # Torch's threads before the first of the running fits, one entry per fit


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit Torch to one thread in this context, and restore the number after the last overlapping fit."""
    with _lock:
        _before.append(_before[0] if _before else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            torch.set_num_threads(1 if _before else before)
