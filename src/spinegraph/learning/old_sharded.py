"""To be removed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.sparse import check_sparse_tensor_invariants

from spinegraph.config import Config
from spinegraph.learning.sampling import PairBatch, PairSampler
from spinegraph.learning.training import Trainer

SHARDS = 8
Gather = Callable[[Tensor], Tensor]  # own shards' rows -> those of all shards, in order


def own_shards(worker: int, workers: int) -> range:
    """Return the shards that one of several workers computes."""
    most = -(-SHARDS // workers)
    return range(min(worker * most, SHARDS), min((worker + 1) * most, SHARDS))


class ShardedTrainer(Trainer):
    """Trains as ``Trainer`` does, but for rounding: gradients are summed shard by shard.

    Every worker holds all of W_M, W_S and Adam's moments. What is exchanged in a step is the gradients; were
    rows of W_S held by one worker each, the rows themselves would have to be exchanged as well.

    Parameters
    ----------
    inputs, start, sampler, config
        As in ``Trainer``; the same for every worker.
    own : range
        Shards that this worker computes, see ``own_shards``.
    gather : callable
        Takes rows (own shards, size), returns those of all shards (SHARDS, size), in order.
    """

    def __init__(
        self,
        inputs: Any,
        start: NDArray[np.float32],
        sampler: PairSampler,
        config: Config,
        own: range = range(SHARDS),
        gather: Gather = lambda rows: rows,
    ) -> None:
        super().__init__(inputs, start, sampler, config)
        self._own, self._gather = own, gather

    def _step(self, step: int) -> float:
        batch = self.sampler.draw(step)
        parts = [_part(batch, shard) for shard in range(SHARDS)]
        largest = max(map(_rows, parts))
        width, size = self.weights.shape[1], self.weights.numel()
        mine = torch.zeros((len(self._own), 1 + size + largest * width))
        for row, shard in zip(mine, self._own, strict=True):
            if len(parts[shard].anchors):
                self._write(row, parts[shard], len(batch.anchors), step)
        found = self._gather(mine)  # (SHARDS, 1 + size + largest d)
        dense, rows = torch.zeros(size), []
        for row, part in zip(found, parts, strict=True):
            dense += row[1 : 1 + size]
            rows.append(row[1 + size :].reshape(largest, width)[: _rows(part)])
        places = torch.from_numpy(np.concatenate([_places(part) for part in parts]))
        self.weights.grad = dense.reshape(self.weights.shape)
        # Torch 2.11 warns where this is an argument.
        with check_sparse_tensor_invariants(enable=False):  # type: ignore[no-untyped-call]
            self.auxiliary.grad = torch.sparse_coo_tensor(places[None], torch.cat(rows), self.auxiliary.shape)
        self._adam.step()
        self._sparse_adam.step()  # type: ignore[no-untyped-call]
        return float(np.sum(found[:, 0].numpy(), dtype=np.float64))

    def _write(self, row: Tensor, part: PairBatch, size: int, step: int) -> None:
        """Write a shard's loss and gradients: its share of the batch's, which is a mean over pairs."""
        loss = self._loss(part, step) * (len(part.anchors) / size)
        dense, sparse = torch.autograd.grad(loss, [self.weights, self.auxiliary])
        row[0] = loss.detach()
        row[1 : 1 + dense.numel()] = dense.reshape(-1)
        values = sparse._values().reshape(-1)  # one row for each of _places(part)
        row[1 + dense.numel() :][: len(values)] = values


def _part(batch: PairBatch, shard: int) -> PairBatch:
    cut = [len(batch.anchors) * end // SHARDS for end in (shard, shard + 1)]
    return PairBatch(batch.anchors[slice(*cut)], batch.positives[slice(*cut)], batch.negatives)


def _places(part: PairBatch) -> NDArray[np.int64]:
    if not len(part.anchors):
        return part.anchors
    return np.concatenate([part.anchors, part.positives, part.negatives])


def _rows(part: PairBatch) -> int:
    return len(_places(part))
