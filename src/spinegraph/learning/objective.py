"""The biased skip-gram objective, Eq. 5 and 6."""

from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import logsigmoid


class Views(NamedTuple):
    """One kind of embedding of a batch: of its anchors, positives (b, d) and negatives (s, d)."""

    anchors: Tensor
    positives: Tensor
    negatives: Tensor


def contrast(anchors: Tensor, positives: Tensor, negatives: Tensor, weight: float) -> Tensor:
    """Skip-gram term J with shared negatives, Eq. 5; mean over the batch.  (b, d), (b, d), (s, d) -> ().

    >>> import torch
    >>> one = torch.ones(1, 1)
    >>> round(contrast(one, one, one, weight=0.0).item(), 4)  # -log sigmoid(1)
    0.3133
    """
    pull = logsigmoid((anchors * positives).sum(dim=1))  # (b,)
    push = logsigmoid(-anchors @ negatives.T).mean(dim=1)  # (b, s) -> (b,)
    return -(pull + weight * push).mean()


def objective(made: Views, auxiliary: Views, *, lambda1: float, lambda2: float, weight: float) -> Tensor:
    """Pairwise objective of SPINE, Eq. 6: both kinds alone, and each against the other."""
    cross = 1 - lambda1 - lambda2
    return (
        lambda1 * contrast(made.anchors, made.positives, made.negatives, weight)
        + lambda2 * contrast(auxiliary.anchors, auxiliary.positives, auxiliary.negatives, weight)
        + cross * contrast(made.anchors, auxiliary.positives, auxiliary.negatives, weight)
        + cross * contrast(auxiliary.anchors, made.positives, made.negatives, weight)
    )
