"""Training on a device: batches stay there, a step is recorded and replayed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import logsigmoid

from spinegraph.config import Config
from spinegraph.learning.checkpoint import TrainingRecord
from spinegraph.learning.objective import contrast

if TYPE_CHECKING:
    from spinegraph.learning.checkpoint import Checkpoints, TrainingState


TRAINING, HELD_OUT, PRETRAINING = 1, 2, 3  # as in learning/sampling.py
_CORPUS, _HELD_OUT_SHARE, _TRIES = 101, 0.05, 8
_STEPS, _PLACES = 256, 1 << 24  # at most, drawn together


class DevicePairs:
    """Draws batches of pairs that follow the distribution of ``learning.sampling.PairSampler``.

    Parameters
    ----------
    walks : int64 tensor (w, l)
        Places of training nodes; -1 after a dead end.
    similar : (int64 tensor (m, c), float32 tensor (m, c)), optional
        Structural candidates by place, padded with -1, and how likely each is.
    degrees : int64 tensor (m,)
    config : Config
    """

    def __init__(
        self, walks: Tensor, similar: tuple[Tensor, Tensor] | None, degrees: Tensor, config: Config
    ) -> None:
        self.config, self.num_nodes, self.device = config, len(degrees), degrees.device
        self.num_edges = int(degrees.sum()) // 2
        walkable = walks[walks[:, 1] >= 0] if walks.shape[1] > 1 else walks[:0]
        held = min(int(np.ceil(len(walkable) * _HELD_OUT_SHARE)), max(len(walkable) - 1, 0))
        shuffled = np.random.default_rng([config.seed, _CORPUS, 1]).permutation(len(walkable))
        order = torch.from_numpy(shuffled).to(self.device)
        self._walks = {True: walkable[order[:held]], False: walkable[order[held:]]}
        self._similar = similar
        self._structural = torch.empty(0, dtype=torch.int64, device=self.device)
        if similar is not None and similar[0].shape[1]:
            self._structural = (similar[1].sum(1) > 0).nonzero().ravel()
            self._ladder = similar[1].double().cumsum(1)
        chances = degrees.double() ** 0.75
        chances = chances if float(chances.sum()) > 0 else torch.ones_like(chances)
        self._negative_ladder = (chances / chances.sum()).cumsum(0)
        self.steps_together = max(1, min(_STEPS, _PLACES // config.batch_size))

    @property
    def can_draw(self) -> bool:
        """Whether there is any pair at all."""
        return len(self._walks[False]) > 0 or len(self._structural) > 0

    def draw(
        self, block: int, stage: int = TRAINING, steps: int | None = None, size: int | None = None
    ) -> Tensor:
        """Return the places of a block of steps, (steps, 2 b + s), which follow from (seed, stage, block)."""
        config = self.config
        steps, size = steps or self.steps_together, size or config.batch_size
        draw = self.generator(stage, block)
        walks = self._walks[stage == HELD_OUT]
        walks = walks if len(walks) else self._walks[False]
        rate = 0.0 if stage == PRETRAINING or not len(self._structural) else config.structural_rate
        shape = (steps, size)
        if not len(walks):
            anchors, positives = self._alike(shape, draw)
        else:
            anchors, positives = self._local(walks, shape, draw)
            if rate > 0:
                chosen = self._random(shape, draw) < rate
                alike = self._alike(shape, draw)
                anchors, positives = (
                    torch.where(chosen, *two) for two in zip(alike, (anchors, positives), strict=True)
                )
        chances = self._random((steps, config.negative_samples), draw)
        negatives = torch.searchsorted(self._negative_ladder, chances, right=True)
        return torch.cat([anchors, positives, negatives.clamp_max(self.num_nodes - 1)], dim=1)

    def generator(self, stage: int, block: int) -> torch.Generator:
        """Return random numbers of their own for a block of steps."""
        seed = np.random.SeedSequence([self.config.seed, stage, block]).generate_state(1, np.uint64)[0]
        return torch.Generator(device=self.device).manual_seed(int(seed >> np.uint64(1)))

    def _random(self, shape: Any, draw: torch.Generator) -> Tensor:
        return torch.rand(shape, generator=draw, device=self.device, dtype=torch.float64)

    def _local(self, walks: Tensor, shape: tuple[int, int], draw: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two places at most ``window`` apart on one walk; again where they hold one node."""
        length = walks.shape[1]
        reach = min(self.config.window, max(length - 1, 1))
        left = right = torch.zeros(shape, dtype=torch.int64, device=self.device)
        for attempt in range(_TRIES):
            line = torch.randint(len(walks), shape, generator=draw, device=self.device)
            # On the last try neighbouring places, which never hold one node.
            far = 1 if attempt == _TRIES - 1 else reach
            gap = torch.randint(1, far + 1, shape, generator=draw, device=self.device)
            first = (self._random(shape, draw) * (length - gap)).long()
            again = left == right
            left = torch.where(again, walks[line, first], left)
            right = torch.where(again, walks[line, first + gap], right)
        turned = self._random(shape, draw) < 0.5
        return torch.where(turned, right, left), torch.where(turned, left, right)

    def _alike(self, shape: tuple[int, int], draw: torch.Generator) -> tuple[Tensor, Tensor]:
        """Nodes and candidates of theirs, drawn by similarity."""
        assert self._similar is not None
        chosen = torch.randint(len(self._structural), shape, generator=draw, device=self.device)
        anchors = self._structural[chosen]
        ladder = self._ladder[anchors]  # (steps, b, c)
        choice = (ladder < self._random((*shape, 1), draw) * ladder[..., -1:]).sum(-1)
        return anchors, self._similar[0][anchors, choice.clamp_max(ladder.shape[-1] - 1)]


def objective(vectors: Tensor, b: int, shares: Tensor, weight: float) -> Tensor:
    """Return what ``learning.objective.objective`` does.

    Parameters
    ----------
    vectors : tensor (2, 2 b + s, d)
        The generator's vectors and the auxiliary ones: of anchors, positives and negatives.
    b : int
    shares : tensor (2, 2)
        Weights of the terms J(x | y) by kind of x and of y.
    weight : float
        Of the negatives.
    """
    anchors, positives, negatives = vectors[:, :b], vectors[:, b : 2 * b], vectors[:, 2 * b :]
    pull = logsigmoid((anchors[:, None] * positives).sum(3)).mean(2)  # (2, 2, b, d) -> (2, 2)
    scores = anchors.flatten(0, 1) @ negatives.flatten(0, 1).T  # (2 b, 2 s)
    push = logsigmoid(-scores).view(2, b, 2, -1).mean((1, 3))  # (2, 2)
    return -((pull + weight * push) * shares).sum()


_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_MOST_COMPARED = 4096


class Adam:
    """The state of one matrix: what ``torch.optim.Adam`` does to all rows, ``SparseAdam`` to some.

    Parameters
    ----------
    values : float32 tensor (r, c)
        Changed in place.
    rate : float
    """

    def __init__(self, values: Tensor, rate: float) -> None:
        self.values, self.rate = values, rate
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)
        self.steps = torch.zeros((), device=values.device)

    def step(self, gradient: Tensor) -> None:
        """Move all rows."""
        first, second = self._corrections()
        self.mean.lerp_(gradient, 1 - _BETA1)
        self.square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
        self.values.sub_(self.mean / (self.square.sqrt() / second.sqrt() + _EPSILON) * (self.rate / first))

    def step_rows(self, places: Tensor, gradient: Tensor) -> None:
        """Move the rows at some places (p,), repeats allowed, by gradients (p, c)."""
        first, second = self._corrections()
        total = _summed(places, gradient)
        mean = self.mean[places].lerp(total, 1 - _BETA1)
        square = (self.square[places] * _BETA2).addcmul(total, total, value=1 - _BETA2)
        move = mean / (square.sqrt() + _EPSILON) * (self.rate * second.sqrt() / first)
        # Repeats write the same numbers, so it does not matter which of them is last.
        values = self.values[places] - move
        self.mean[places], self.square[places], self.values[places] = mean, square, values

    def _corrections(self) -> tuple[Tensor, Tensor]:
        self.steps += 1
        return 1 - _BETA1**self.steps, 1 - _BETA2**self.steps


def _summed(places: Tensor, gradient: Tensor) -> Tensor:
    """Return for each place the sum of the gradients of all its repeats, (p, c)."""
    if len(places) <= _MOST_COMPARED:  # no atomic sums, whose order would differ from run to run
        return (places[:, None] == places).to(gradient.dtype) @ gradient
    ordered, order = places.sort()
    group = torch.cat([order.new_zeros(1), (ordered[1:] != ordered[:-1]).long().cumsum(0)])
    group = torch.empty_like(group).scatter_(0, order, group)
    return torch.zeros_like(gradient).index_add_(0, group, gradient)[group]


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
    ) -> tuple[Tensor, list[TrainingRecord]]:
        """Train all steps, or until held-out pairs stop improving; return the matrix and the history."""
        history, done = list[TrainingRecord](), 0
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

    def _has_stalled(self, history: list[TrainingRecord]) -> bool:
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

    def _state(self, step: int, history: list[TrainingRecord]) -> "TrainingState":
        from spinegraph.learning.checkpoint import TrainingState

        arrays = {name: tensor.cpu().numpy() for name, tensor in self._tensors().items()}
        return TrainingState(step, arrays, [(line.step, line.loss, line.held_out_loss) for line in history])

    def _restore(self, state: "TrainingState") -> tuple[int, list[TrainingRecord]]:
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(state.arrays[name]))
        for adam in (self._weights, self._auxiliary):
            adam.steps.fill_(state.step)
        return state.step, [TrainingRecord(*line) for line in state.history]


def _moments(waiting: list[tuple[int, Tensor, Tensor]]) -> list[TrainingRecord]:
    """Fetch losses from the device, all at once."""
    if not waiting:
        return []
    losses = torch.stack([torch.stack([loss, held]) for _, loss, held in waiting]).tolist()
    return [TrainingRecord(step, *both) for (step, _, _), both in zip(waiting, losses, strict=True)]
