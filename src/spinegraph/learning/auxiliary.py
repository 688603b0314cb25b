"""The auxiliary matrix W_S: one free vector per training node, dropped after training."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from spinegraph.config import Config
from spinegraph.learning.objective import contrast
from spinegraph.learning.sampling import PRETRAINING, PairSampler

_SPREAD = 0.1
_PRETRAINING_RATE = 0.01


def first_auxiliary(num_nodes: int, dim: int, sampler: PairSampler, config: Config) -> NDArray[np.float32]:
    """Return the first W_S (m, d): random, or learned from local pairs alone, as node2vec does (SPINE-p)."""
    rng = np.random.default_rng([config.seed, 13])
    values = (rng.standard_normal((num_nodes, dim)) * _SPREAD).astype(np.float32)
    if config.auxiliary_init == "random" or not sampler.can_draw:
        return values
    matrix = torch.from_numpy(values).to(config.device).requires_grad_()
    adam = torch.optim.SparseAdam([matrix], lr=_PRETRAINING_RATE)
    for step in range(config.steps):
        batch = sampler.draw(step, PRETRAINING)
        places = [
            torch.from_numpy(part).to(config.device)
            for part in (batch.anchors, batch.positives, batch.negatives)
        ]
        anchors, positives, negatives = (functional.embedding(part, matrix, sparse=True) for part in places)
        loss = contrast(anchors, positives, negatives, config.negatives)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()  # type: ignore[no-untyped-call]
    return matrix.detach().cpu().numpy()
