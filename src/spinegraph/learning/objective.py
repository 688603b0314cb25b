"""The biased skip-gram objective, Eq. 5 and 6, and the auxiliary matrix W_S."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import logsigmoid

from spinegraph.config import PaperConfig
from spinegraph.learning.sampling import PRETRAINING, PairSampler

_SPREAD = 0.1  # standard deviation of a random W_S
_PRETRAINING_RATE = 0.01


class Views(NamedTuple):
    """Vectors of a batch: of its anchors, positives (b, d) and negatives (s, d)."""

    anchors: Tensor
    positives: Tensor
    negatives: Tensor


def contrast(anchors: Tensor, positives: Tensor, negatives: Tensor, weight: float) -> Tensor:
    """Skip-gram term J with shared negatives, Eq. 5; mean over the batch.  (b, d), (b, d), (s, d) -> ()."""
    pull = logsigmoid((anchors * positives).sum(dim=1))  # (b,)
    push = logsigmoid(-anchors @ negatives.T).mean(dim=1)  # (b, s) -> (b,)
    return -(pull + weight * push).mean()


def objective(generated: Views, auxiliary: Views, *, lambda1: float, lambda2: float, weight: float) -> Tensor:
    """Pairwise objective of SPINE, Eq. 6: both kinds of vectors alone, and each with the other."""
    cross = 1 - lambda1 - lambda2
    return (
        lambda1 * contrast(generated.anchors, generated.positives, generated.negatives, weight)
        + lambda2 * contrast(auxiliary.anchors, auxiliary.positives, auxiliary.negatives, weight)
        + cross * contrast(generated.anchors, auxiliary.positives, auxiliary.negatives, weight)
        + cross * contrast(auxiliary.anchors, generated.positives, generated.negatives, weight)
    )


def initial_auxiliary(num_nodes: int, sampler: PairSampler, config: PaperConfig) -> NDArray[np.float32]:
    """Return the initial W_S (m, d): random, or learned from local pairs as by node2vec (SPINE-p)."""
    rng = np.random.default_rng([config.seed, 13])
    values = (rng.standard_normal((num_nodes, config.dim)) * _SPREAD).astype(np.float32)
    if config.auxiliary_init == "random" or not sampler.can_draw:
        return values
    matrix = torch.from_numpy(values).requires_grad_()
    adam = torch.optim.SparseAdam([matrix], lr=_PRETRAINING_RATE)
    for step in range(config.steps):
        batch = sampler.draw(step, PRETRAINING)
        anchors, positives, negatives = (
            functional.embedding(torch.from_numpy(nodes), matrix, sparse=True)
            for nodes in (batch.anchors, batch.positives, batch.negatives)
        )
        loss = contrast(anchors, positives, negatives, config.negatives)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()  # type: ignore[no-untyped-call]
    return matrix.detach().numpy()
