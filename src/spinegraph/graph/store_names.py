"""Text names that stay on disk: decoded when they are asked for, found by binary search."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.names import as_array, require_known

_PIECE = 2**16  # names decoded at a time
_SCAN_SHARE = 32  # from one name asked for in so many on, reading all in order beats searching for each
ENCODING = ("utf-8", "surrogatepass")  # a lone surrogate is legal in a Python str


class StoredNames:
    """Names (n,) as UTF-8 bytes and where each ends; reads like an object array of str.

    Parameters
    ----------
    text : uint8 array
    ends : int64 array (n,)

    Examples
    --------
    >>> names = StoredNames(np.frombuffer(b"annbob", np.uint8), np.array([3, 6]))
    >>> names[1], names[:1], names.tolist()
    ('bob', array(['ann'], dtype=object), ['ann', 'bob'])
    """

    dtype = np.dtype(object)
    ndim = 1

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._text, self._ends = text, ends

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def shape(self) -> tuple[int]:
        """Number of names, as arrays tell it."""
        return (len(self),)

    @property
    def size(self) -> int:
        """Number of names."""
        return len(self)

    def __getitem__(self, place: Any) -> Any:
        """Return one name, or an object array of those at a slice, positions or a mask."""
        if isinstance(place, int | np.integer):
            position = int(place) + (len(self) if place < 0 else 0)
            if not 0 <= position < len(self):
                raise IndexError(f"position {place} of {len(self)} names")
            return self.encoded(position).decode(*ENCODING)
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            found = (
                self._between(start, max(stop, start)) if step == 1 else self[np.arange(start, stop, step)]
            )
            return found if step != 1 else _objects(found)
        positions = np.asarray(place)
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        return _objects([self[position] for position in positions.tolist()])

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _PIECE):
            yield from self._between(start, min(start + _PIECE, len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return _objects(self.tolist()) if dtype is None else _objects(self.tolist()).astype(dtype)

    def __eq__(self, other: object) -> Any:
        return np.asarray(self) == np.asarray(other)

    def __ne__(self, other: object) -> Any:
        return np.asarray(self) != np.asarray(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"StoredNames({len(self):,} names)"

    def tolist(self) -> list[str]:
        """Return all names."""
        return list(self)

    def astype(self, dtype: Any, copy: bool = True) -> NDArray[Any]:
        """Return all names as an array in memory."""
        return np.asarray(self, dtype=dtype)

    def encoded(self, position: int) -> bytes:
        """Return one name as bytes, whose order is that of the text."""
        start = int(self._ends[position - 1]) if position else 0
        return self._text[start : int(self._ends[position])].tobytes()

    def _between(self, start: int, stop: int) -> list[str]:
        if stop <= start:
            return []
        first = int(self._ends[start - 1]) if start else 0
        ends = (self._ends[start:stop] - first).tolist()
        raw = self._text[first : first + ends[-1]].tobytes()
        return [raw[a:b].decode(*ENCODING) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


class StoredNameIndex:
    """Finds the positions of stored text names without a table in memory.

    Parameters
    ----------
    names : StoredNames
    order : int64 array (n,), optional
        Positions in ascending order of the names; None where the names ascend themselves.

    Examples
    --------
    >>> names = StoredNames(np.frombuffer(b"bobann", np.uint8), np.array([3, 6]))
    >>> StoredNameIndex(names, np.array([1, 0])).find(["ann", "cy"])
    array([ 1, -1])
    """

    def __init__(self, names: StoredNames, order: NDArray[np.int64] | None = None) -> None:
        self._names, self._order = names, order

    def find(self, wanted: Iterable[Any]) -> NDArray[np.int64]:
        """Return the position of each name, -1 where it is unknown."""
        listed = as_array(wanted)
        if len(listed) * _SCAN_SHARE >= len(self._names) > 0:
            return self._find_by_scan(listed.tolist())
        return np.fromiter(map(self.find_one, listed.tolist()), np.int64, len(listed))

    def find_one(self, name: Any) -> int:
        """Return the position of one name, -1 where it is unknown."""
        if not isinstance(name, str):
            return -1
        encoded, low, high = name.encode(*ENCODING), 0, len(self._names)
        while low < high:
            middle = (low + high) // 2
            if self._names.encoded(self._position(middle)) < encoded:
                low = middle + 1
            else:
                high = middle
        if low == len(self._names):
            return -1
        position = self._position(low)
        return position if self._names.encoded(position) == encoded else -1

    def positions(self, wanted: Iterable[Any]) -> NDArray[np.int64]:
        """Return the position of each name; an unknown one is an error."""
        array = as_array(wanted)
        found = self.find(array)
        require_known(found, array, self._names)  # type: ignore[arg-type]
        return found

    def _position(self, rank: int) -> int:
        return rank if self._order is None else int(self._order[rank])

    def _find_by_scan(self, wanted: list[Any]) -> NDArray[np.int64]:
        """Go through all names in order and look each piece's share of the sorted wanted ones up in it."""
        found = np.full(len(wanted), -1, dtype=np.int64)
        places = sorted(
            (place for place, name in enumerate(wanted) if isinstance(name, str)), key=wanted.__getitem__
        )
        asked = [wanted[place] for place in places]
        for start in range(0, len(self._names) if asked else 0, _PIECE):
            stop = min(start + _PIECE, len(self._names))
            positions = np.arange(start, stop) if self._order is None else self._order[start:stop]
            names = self._names[start:stop] if self._order is None else self._names[positions]
            first, last = bisect_left(asked, names[0]), bisect_right(asked, names[-1])
            if first < last:
                table = dict(zip(names.tolist(), positions.tolist(), strict=True))
                for place, name in zip(places[first:last], asked[first:last], strict=True):
                    found[place] = table.get(name, -1)
        return found


def _objects(names: list[str]) -> NDArray[Any]:
    return np.fromiter(names, dtype=object, count=len(names))
