"""The biased skip-gram objective, Eq. 5 and 6, of both kinds of vectors at once: fewer operations."""

from torch import Tensor
from torch.nn.functional import logsigmoid


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

    Examples
    --------
    >>> import torch
    >>> round(objective(torch.ones(2, 3, 1), 1, torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 0.0).item(), 4)
    0.3133
    """
    anchors, positives, negatives = vectors[:, :b], vectors[:, b : 2 * b], vectors[:, 2 * b :]
    pull = logsigmoid((anchors[:, None] * positives).sum(3)).mean(2)  # (2, 2, b, d) -> (2, 2)
    scores = anchors.flatten(0, 1) @ negatives.flatten(0, 1).T  # (2 b, 2 s)
    push = logsigmoid(-scores).view(2, b, 2, -1).mean((1, 3))  # (2, 2)
    return -((pull + weight * push) * shares).sum()
