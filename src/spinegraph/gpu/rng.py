"""The random numbers of kernels/rng.py on a device: a draw follows from seed, stage, key and its number."""

import torch
from torch import Tensor

ROOTED_WALKS = 1
PLAIN_WALKS = 2
_LOW = 0xFFFFFFFF


def _signed(number: int) -> int:
    """Return 64 bits as Torch holds them."""
    return (number + 2**63) % 2**64 - 2**63


_GAMMA = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xBF58476D1CE4E5B9)
_SECOND = _signed(0x94D049BB133111EB)


def _mix(point: Tensor) -> Tensor:
    point = (point ^ _down(point, 30)) * _FIRST
    point = (point ^ _down(point, 27)) * _SECOND
    return point ^ _down(point, 31)


def _down(bits: Tensor, by: int) -> Tensor:
    """Shift as if there were no sign."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def stream_starts(seed: int, stage: int, keys: Tensor) -> Tensor:
    """Return where the stream of each key starts, int64 (r,).

    >>> few, many = stream_starts(7, 1, torch.tensor([3])), stream_starts(7, 1, torch.tensor([9, 3]))
    >>> bool(few[0] == many[1])
    True
    """
    start = torch.full_like(keys, _signed(seed % 2**64))
    for part in (torch.full_like(keys, stage), keys):
        start = _mix(start + _GAMMA * _mix(part + _GAMMA))
    return start


def draws(starts: Tensor, number: Tensor | int) -> tuple[Tensor, Tensor]:
    """Return draw ``number`` (from 1) of each stream: its high and its low 32 bits, int64."""
    found = _mix(starts + _GAMMA * number)
    return _down(found, 32), found & _LOW
