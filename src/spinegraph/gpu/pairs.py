"""Pairs to learn from, drawn on a device for many steps at once."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinegraph.config import Config

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

    Examples
    --------
    >>> walks = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])
    >>> pairs = DevicePairs(walks, None, torch.tensor([1, 1]), Config(batch_size=3, negative_samples=2))
    >>> pairs.draw(0).shape  # anchors, positives, negatives of each step
    torch.Size([256, 8])
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
