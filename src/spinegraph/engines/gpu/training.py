"""Training on a device: batches stay there, and a step is recorded once and replayed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinegraph.config import Config
from spinegraph.engines.gpu.graph import as_tensor
from spinegraph.learning.objective import Views, objective
from spinegraph.learning.sampling import ATTEMPTS, TRAINING, PairSampler
from spinegraph.learning.training import Trainer

_DROPOUT = 7  # stream of random numbers
_MAX_STEPS, _MAX_PAIRS = 256, 1 << 24  # drawn together


class DeviceTrainer(Trainer):
    """Trains as ``Trainer`` does, with pairs drawn on the device and steps that the host does not wait for.

    Parameters
    ----------
    inputs : float32 array (m, f)
    start : float32 array (f, d)
    sampler : PairSampler
    config : Config
        Its ``device`` is where training runs.
    """

    def __init__(
        self, inputs: NDArray[np.float32], start: NDArray[np.float32], sampler: PairSampler, config: Config
    ) -> None:
        super().__init__(inputs, start, sampler, config)
        self._pairs = DevicePairs(sampler, self.device)
        # On the matrices of the parent class, whose own optimizers are not used: they cannot be recorded.
        self._optimizers = {
            "weights": Adam(self.weights.detach(), config.learning_rate),
            "auxiliary": Adam(self.auxiliary.detach(), config.learning_rate),
        }
        block, size = self._pairs.steps_together, 2 * config.batch_size + config.negative_samples
        self._block = -1  # whose batches are drawn
        self._next = torch.zeros(1, dtype=torch.int64, device=self.device)  # of the block's batches
        self._batches = torch.zeros(block, size, dtype=torch.int64, device=self.device)
        self._masks = torch.ones(block, len(start), device=self.device)
        self._last_loss = torch.zeros((), device=self.device)
        self._replay: Callable[[], None] | None = None

    def _step(self, step: int) -> Tensor:
        if self._replay is None:
            self._replay = self._recorded()
        block, index = divmod(step, self._pairs.steps_together)
        if block != self._block:
            self._draw(block, index)
        self._replay()
        return self._last_loss

    def _recorded(self) -> Callable[[], None]:
        """Return a function that runs the next step: on CUDA a recording of it."""
        if self.device.type != "cuda":
            return self._run_step
        state = [*self._tensors().values(), *(adam.steps for adam in self._optimizers.values())]
        before = [tensor.clone() for tensor in state]
        stream = torch.cuda.Stream(self.device)
        self._draw(0, 0)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):  # libraries allocate at their first call, which no recording may do
            for _ in range(2):
                self._next.zero_()
                self._run_step()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        recording = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recording):
            self._run_step()
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)
        self._block = -1
        return recording.replay

    def _draw(self, block: int, index: int) -> None:
        """Draw the batches of a block of steps, and go to the one at ``index``."""
        self._batches.copy_(self._pairs.draw(block))
        if self.config.dropout > 0:
            chances = self._pairs.random(self._masks.shape, self._pairs.generator(_DROPOUT, block))
            self._masks.copy_((chances >= self.config.dropout) / (1 - self.config.dropout))
        self._next.fill_(index)
        self._block = block

    def _run_step(self) -> None:
        config = self.config
        assert self._dense is not None
        nodes = self._batches.index_select(0, self._next)[0]  # (2b + s,)
        weights = self.weights.detach().requires_grad_()
        auxiliary = self.auxiliary.detach()[nodes].requires_grad_()
        kept = weights
        if config.dropout > 0:
            kept = weights * self._masks.index_select(0, self._next).T
        made = self._activation(self._dense[nodes] @ kept)  # (2b + s, d), Eq. 4
        parts = [config.batch_size, config.batch_size, config.negative_samples]
        loss = objective(
            Views(*made.split(parts)),
            Views(*auxiliary.split(parts)),
            lambda1=config.lambda1,
            lambda2=config.lambda2,
            weight=config.negatives,
        )
        for_weights, for_auxiliary = torch.autograd.grad(loss, (weights, auxiliary))
        self._optimizers["weights"].step(for_weights)
        self._optimizers["auxiliary"].step_rows(nodes, for_auxiliary)
        self._last_loss.copy_(loss.detach())
        self._next += 1

    def _tensors(self) -> dict[str, Tensor]:
        """Name what a checkpoint holds."""
        best = {} if self._best is None else {"best": self._best}
        return best | {
            f"{kind}{suffix}": tensor
            for kind, adam in self._optimizers.items()
            for suffix, tensor in (("", adam.values), ("_mean", adam.mean), ("_square", adam.square))
        }

    def _set_steps(self, steps: int) -> None:
        for adam in self._optimizers.values():
            adam.steps.fill_(steps)


class DevicePairs:
    """Draws batches of pairs on a device, by the chances of a ``PairSampler``."""

    def __init__(self, sampler: PairSampler, device: torch.device) -> None:
        self.config, self.device = sampler.config, device
        self._walks = as_tensor(sampler.walks, device).long()
        self._num_nodes, self._held_out = len(sampler.corpus.nodes), as_tensor(sampler.held_out, device)
        self._edges = as_tensor(sampler.edges, device)
        self._structural = as_tensor(sampler.structural, device)
        if len(self._structural) and sampler.similar is not None:
            self._similar = as_tensor(sampler.similar.nodes, device).long()
            self._cumulative = as_tensor(sampler.cumulative, device).double()
        self._negatives = as_tensor(sampler.cumulative_negatives, device)
        self.steps_together = max(1, min(_MAX_STEPS, _MAX_PAIRS // self.config.batch_size))

    def draw(self, block: int) -> Tensor:
        """Return anchors, positives and negatives of a block of steps, int64 (steps, 2b + s)."""
        config, draw = self.config, self.generator(TRAINING, block)
        shape = self.steps_together, config.batch_size
        if not len(self._walks):
            anchors, positives = self._alike(shape, draw)
        else:
            anchors, positives = self._local(shape, draw)
            if len(self._structural) and config.structural_rate > 0:
                chosen = self.random(shape, draw) < config.structural_rate
                alike = self._alike(shape, draw)
                anchors = torch.where(chosen, alike[0], anchors)
                positives = torch.where(chosen, alike[1], positives)
        chances = self.random((self.steps_together, config.negative_samples), draw)
        negatives = torch.searchsorted(self._negatives, chances, right=True)
        return torch.cat([anchors, positives, negatives.clamp_max(len(self._negatives) - 1)], dim=1)

    def generator(self, stage: int, block: int) -> torch.Generator:
        """Return the random numbers of a block of steps, which follow from (seed, stage, block)."""
        seed = np.random.SeedSequence([self.config.seed, stage, block]).generate_state(1, np.uint64)[0]
        return torch.Generator(device=self.device).manual_seed(int(seed >> np.uint64(1)))

    def random(self, shape: Any, draw: torch.Generator) -> Tensor:
        """Return uniform random numbers, float64."""
        return torch.rand(shape, generator=draw, device=self.device, dtype=torch.float64)

    def _local(self, shape: tuple[int, int], draw: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two nodes at most ``window`` apart on one walk; drawn again as ``PairSampler`` does."""
        walks, length = self._walks, self._walks.shape[1]
        reach = min(self.config.window, max(length - 1, 1))
        left = right = torch.zeros(shape, dtype=torch.int64, device=self.device)
        again = torch.ones(shape, dtype=torch.bool, device=self.device)
        for _ in range(ATTEMPTS):
            line = torch.randint(len(walks), shape, generator=draw, device=self.device)
            gap = torch.randint(1, reach + 1, shape, generator=draw, device=self.device)
            first = (self.random(shape, draw) * (length - gap)).long()
            left = torch.where(again, walks[line, first], left)
            right = torch.where(again, walks[line, first + gap], right)
            keys = torch.minimum(left, right) * self._num_nodes + torch.maximum(left, right)
            again = (left == right) | torch.isin(keys, self._held_out)
        chosen = self._edges[torch.randint(len(self._edges), shape, generator=draw, device=self.device)]
        left = torch.where(again, chosen // self._num_nodes, left)
        right = torch.where(again, chosen % self._num_nodes, right)
        turned = self.random(shape, draw) < 0.5
        return torch.where(turned, right, left), torch.where(turned, left, right)

    def _alike(self, shape: tuple[int, int], draw: torch.Generator) -> tuple[Tensor, Tensor]:
        """Nodes and candidates of theirs, drawn by similarity."""
        chosen = torch.randint(len(self._structural), shape, generator=draw, device=self.device)
        anchors = self._structural[chosen]
        cumulative = self._cumulative[anchors]  # (steps, b, c)
        choice = (cumulative < self.random((*shape, 1), draw) * cumulative[..., -1:]).sum(-1)
        return anchors, self._similar[anchors, choice.clamp_max(cumulative.shape[-1] - 1)]


_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_MAX_COMPARED = 4096


class Adam:
    """``torch.optim.Adam`` for all rows of a matrix, ``SparseAdam`` for some; both can be recorded.

    ``values`` (r, c) are changed in place.
    """

    def __init__(self, values: Tensor, rate: float) -> None:
        self.values, self.rate = values, rate
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)
        self.steps = torch.zeros((), device=values.device)

    def step(self, gradient: Tensor) -> None:
        """Update all rows."""
        first, second = self._corrections()
        self.mean.lerp_(gradient, 1 - _BETA1)
        self.square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
        self.values.sub_(self.mean / (self.square.sqrt() / second.sqrt() + _EPSILON) * (self.rate / first))

    def step_rows(self, rows: Tensor, gradient: Tensor) -> None:
        """Update some rows (p,), repeats allowed, by gradients (p, c)."""
        first, second = self._corrections()
        total = _summed(rows, gradient)
        mean = self.mean[rows].lerp(total, 1 - _BETA1)
        square = (self.square[rows] * _BETA2).addcmul(total, total, value=1 - _BETA2)
        move = mean / (square.sqrt() + _EPSILON) * (self.rate * second.sqrt() / first)
        # Repeats write the same numbers, so their order does not matter.
        values = self.values[rows] - move
        self.mean[rows], self.square[rows], self.values[rows] = mean, square, values

    def _corrections(self) -> tuple[Tensor, Tensor]:
        self.steps += 1
        return 1 - _BETA1**self.steps, 1 - _BETA2**self.steps


def _summed(rows: Tensor, gradient: Tensor) -> Tensor:
    """Return for each row the sum of the gradients of all its repeats, (p, c)."""
    if len(rows) <= _MAX_COMPARED:  # no atomic sums, whose order would differ from run to run
        return (rows[:, None] == rows).to(gradient.dtype) @ gradient
    ordered, order = rows.sort()
    group = torch.cat([order.new_zeros(1), (ordered[1:] != ordered[:-1]).long().cumsum(0)])
    group = torch.empty_like(group).scatter_(0, order, group)
    return torch.zeros_like(gradient).index_add_(0, group, gradient)[group]
