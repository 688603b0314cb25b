"""Adam whose every number stays on the device, so that steps can be recorded and replayed."""

import torch
from torch import Tensor

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_MOST_COMPARED = 4096


class Adam:
    """The state of one matrix: what ``torch.optim.Adam`` does to all rows, ``SparseAdam`` to some.

    Parameters
    ----------
    values : float32 tensor (r, c)
        Changed in place.
    rate : float

    Examples
    --------
    >>> matrix = torch.zeros(2, 1)
    >>> Adam(matrix, rate=0.5).step(torch.ones(2, 1))
    >>> matrix.round(decimals=3).tolist()
    [[-0.5], [-0.5]]
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
