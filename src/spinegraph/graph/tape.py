"""Values that only grow, shared by everybody who holds a beginning of them."""

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.checks import frozen

_LEAST_ROOM = 16


class _Tape:
    """The room behind heads: what is written once is never changed, so readers need no lock."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.room = values
        self.used = len(values)
        self.lock = Lock()


class Head:
    """The first values of a growing array.

    Heads that grow from one another share their room: the first to grow writes behind its own end, a second
    one that grows from the same head gets a copy. No head ever sees a value change.

    Parameters
    ----------
    values : array (length, ...)

    Examples
    --------
    >>> first = Head(np.array([1, 2]))
    >>> second, other = first.plus([3]), first.plus([4])
    >>> first.values.tolist(), second.values.tolist(), other.values.tolist()
    ([1, 2], [1, 2, 3], [1, 2, 4])
    """

    __slots__ = ("_length", "_tape")

    def __init__(self, values: NDArray[Any]) -> None:
        self._tape, self._length = _Tape(values), len(values)

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        """The values, read-only."""
        return frozen(self._tape.room[: self._length])

    def plus(self, more: Any) -> "Head":
        """Return a head with more values behind these, at their cost alone."""
        tape, length = self._tape, self._length + len(more)
        if not len(more):
            return self
        with tape.lock:
            is_end = tape.used == self._length
            if is_end:
                if length > len(tape.room):
                    tape.room = _roomier(tape.room[: self._length], length)
                tape.room[self._length : length] = more
                tape.used = length
        if not is_end:
            return self.copy().plus(more)
        grown = object.__new__(Head)
        grown._tape, grown._length = tape, length
        return grown

    def copy(self) -> "Head":
        """Return a head of the same values with room of its own."""
        return Head(self._tape.room[: self._length].copy())


def _roomier(values: NDArray[Any], least: int) -> NDArray[Any]:
    room = np.empty((max(2 * len(values), least, _LEAST_ROOM), *values.shape[1:]), dtype=values.dtype)
    room[: len(values)] = values
    return room
