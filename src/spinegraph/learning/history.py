"""The training history; apart from training, so that a model is loaded without Torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """One line of the training history: losses after so many steps.

    Attributes
    ----------
    step : int
        Steps done.
    loss : float
        Objective on the last training batch.
    held_out_loss : float
        Objective on pairs that training never sees.

    Examples
    --------
    >>> Moment(25, 1.2, 1.3).step
    25
    """

    step: int
    loss: float
    held_out_loss: float
