"""Training on a device without a word to the host: batches lie there, a step is recorded and replayed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spinegraph.config import Config
from spinegraph.gpu.adam import Adam
from spinegraph.gpu.objective import objective
from spinegraph.gpu.pairs import HELD_OUT, PRETRAINING, DevicePairs
from spinegraph.learning.history import Moment
from spinegraph.learning.objective import contrast

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingState

Progress = Callable[[str, int, int], None]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "relu": functional.relu,
    "elu": functional.elu,
    "tanh": torch.tanh,
}
_EVALUATE_EVERY, _HELD_OUT_PAIRS = 25, 2048
_SPREAD, _PRETRAINING_RATE, _DROPOUT = 0.1, 0.01, 7


class DeviceTrainer:
    """Trains a matrix that turns inputs (m, f) into vectors (m, d), as ``learning.training.Trainer`` does.

    Parameters
    ----------
    inputs : float32 tensor (m, f)
    start : float32 tensor (f, d)
    pairs : DevicePairs
    config : Config
    """

    def __init__(self, inputs: Tensor, start: Tensor, pairs: DevicePairs, config: Config) -> None:
        self.config, self.pairs, self.inputs = config, pairs, inputs
        self.steps = int(min(config.steps, np.ceil(config.passes * pairs.num_edges / config.batch_size)))
        self.steps *= pairs.can_draw
        self._weights = Adam(start.clone(), config.learning_rate)
        self._auxiliary = Adam(self._first_auxiliary(len(inputs), start.shape[1]), config.learning_rate)
        self._activation = ACTIVATIONS[config.activation]
        device, block = inputs.device, pairs.steps_together
        self._at = torch.zeros(1, dtype=torch.int64, device=device)  # of the block's batches, the next
        self._batches = torch.zeros(
            block, 2 * config.batch_size + config.negative_samples, dtype=torch.int64, device=device
        )
        self._masks = torch.ones(block, len(start), device=device)
        self._losses = torch.zeros(block, device=device)
        self._held_out: Tensor | None = None
        cross = 1 - config.lambda1 - config.lambda2
        self._shares = torch.tensor([[config.lambda1, cross], [cross, config.lambda2]], device=device)

    def train(
        self, checkpoints: "Checkpoints | None" = None, progress: Progress | None = None
    ) -> tuple[Tensor, list[Moment]]:
        """Train all steps, or until held-out pairs stop improving; return the matrix and the history."""
        history, done = list[Moment](), 0
        if checkpoints is not None and (state := checkpoints.latest(self._shapes(), self.steps)) is not None:
            done, history = self._restore(state)
        if progress is not None:
            progress("training", done, self.steps)
        first, together = done, self.pairs.steps_together
        run = self._recorded() if done < self.steps else None
        waiting = list[tuple[int, Tensor, Tensor]]()  # losses still on the device
        for step in range(first, self.steps):
            if self._has_stalled(history) or run is None:
                break
            if step == first or step % together == 0:
                self._prepare(step)
            run()
            done = step + 1
            if done % _EVALUATE_EVERY and done != self.steps:
                continue
            waiting.append((done, self._losses[step % together].clone(), self._held_out_loss()))
            if progress is not None:
                progress("training", done, self.steps)
            if checkpoints is not None or self.config.patience is not None:
                history, waiting = history + _moments(waiting), []
            if checkpoints is not None and checkpoints.is_due(done):
                checkpoints.save(self._state(done, history))
        return self._weights.values, history + _moments(waiting)

    def _recorded(self) -> Callable[[], None]:
        """Return a function that does the next step: on CUDA a recording of it."""
        if self.inputs.device.type != "cuda":
            return self._step
        state = [*self._tensors().values(), self._weights.steps, self._auxiliary.steps, self._at]
        before = [tensor.clone() for tensor in state]
        stream = torch.cuda.Stream(self.inputs.device)
        stream.wait_stream(torch.cuda.current_stream(self.inputs.device))
        self._prepare(0)
        with torch.cuda.stream(stream):  # libraries allocate at their first call, which no recording may do
            for _ in range(2):
                self._at.zero_()
                self._step()
        torch.cuda.current_stream(self.inputs.device).wait_stream(stream)
        recording = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recording):
            self._step()
        for tensor, kept in zip(state, before, strict=True):
            tensor.copy_(kept)
        return recording.replay

    def _prepare(self, step: int) -> None:
        """Draw the batches of the block that a step is in, and go to that step."""
        block, place = divmod(step, self.pairs.steps_together)
        self._batches.copy_(self.pairs.draw(block))
        if self.config.dropout > 0:
            draw = self.pairs.generator(_DROPOUT, block)
            chances = torch.rand(self._masks.shape, generator=draw, device=self._masks.device)
            self._masks.copy_((chances >= self.config.dropout) / (1 - self.config.dropout))
        self._at.fill_(place)

    def _step(self) -> None:
        places = self._batches.index_select(0, self._at)[0]
        weights = self._weights.values.detach().requires_grad_()
        auxiliary = self._auxiliary.values[places].requires_grad_()
        mask = self._masks.index_select(0, self._at).T if self.config.dropout > 0 else None
        loss = self._loss(places, weights if mask is None else weights * mask, auxiliary)
        for_weights, for_auxiliary = torch.autograd.grad(loss, (weights, auxiliary))
        self._weights.step(for_weights)
        self._auxiliary.step_rows(places, for_auxiliary)
        self._losses.index_copy_(0, self._at, loss.detach()[None])
        self._at += 1

    def _loss(self, places: Tensor, weights: Tensor, auxiliary: Tensor) -> Tensor:
        config = self.config
        b = (len(places) - config.negative_samples) // 2
        made = self._activation(self.inputs[places] @ weights)  # (2b + s, d), Eq. 4
        return objective(torch.stack([made, auxiliary]), b, self._shares, config.negatives)

    def _held_out_loss(self) -> Tensor:
        """Objective on pairs of walks that training never sees."""
        if self._held_out is None:
            self._held_out = self.pairs.draw(0, HELD_OUT, 1, _HELD_OUT_PAIRS)[0]
        with torch.no_grad():
            auxiliary = self._auxiliary.values[self._held_out]
            return self._loss(self._held_out, self._weights.values, auxiliary)

    def _has_stalled(self, history: list[Moment]) -> bool:
        """Say whether the last ``patience`` evaluations were no better than the best one before them."""
        losses, patience = [moment.held_out_loss for moment in history], self.config.patience
        return bool(losses) and patience is not None and len(losses) > losses.index(min(losses)) + patience

    def _first_auxiliary(self, num_nodes: int, dim: int) -> Tensor:
        """Return the first W_S (m, d): random, or learned from local pairs alone (SPINE-p)."""
        config, device = self.config, self.inputs.device
        rng = np.random.default_rng([config.seed, 13])
        values = torch.from_numpy((rng.standard_normal((num_nodes, dim)) * _SPREAD).astype(np.float32)).to(
            device
        )
        if config.auxiliary_init == "random" or not self.pairs.can_draw:
            return values
        adam, b, s = Adam(values, _PRETRAINING_RATE), config.batch_size, config.negative_samples
        for first in range(0, config.steps, self.pairs.steps_together):
            batches = self.pairs.draw(first // self.pairs.steps_together, PRETRAINING)
            for places in batches[: config.steps - first]:
                rows = values[places].requires_grad_()
                loss = contrast(rows[:b], rows[b:-s], rows[-s:], config.negatives)
                adam.step_rows(places, torch.autograd.grad(loss, rows)[0])
        return values

    def _tensors(self) -> dict[str, Tensor]:
        """Name what a state holds."""
        kinds = {"weights": self._weights, "auxiliary": self._auxiliary}
        parts = {"": "values", "_mean": "mean", "_square": "square"}
        return {
            f"{kind}{end}": getattr(adam, part) for kind, adam in kinds.items() for end, part in parts.items()
        }

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in self._tensors().items()}

    def _state(self, step: int, history: list[Moment]) -> "TrainingState":
        from spinegraph.learning.checkpoint import TrainingState

        arrays = {name: tensor.cpu().numpy() for name, tensor in self._tensors().items()}
        return TrainingState(step, arrays, [(line.step, line.loss, line.held_out_loss) for line in history])

    def _restore(self, state: "TrainingState") -> tuple[int, list[Moment]]:
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(state.arrays[name]))
        for adam in (self._weights, self._auxiliary):
            adam.steps.fill_(state.step)
        return state.step, [Moment(*line) for line in state.history]


def _moments(waiting: list[tuple[int, Tensor, Tensor]]) -> list[Moment]:
    """Fetch losses from the device, all at once."""
    if not waiting:
        return []
    losses = torch.stack([torch.stack([loss, held]) for _, loss, held in waiting]).tolist()
    return [Moment(step, *both) for (step, _, _), both in zip(waiting, losses, strict=True)]
