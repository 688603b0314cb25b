"""Node names: conversion, checks and look-up."""

import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, ParameterError, UnknownNodeError

MAX_COMPARED = 5_000  # names that an unknown name is compared with, few enough for calls in a loop
UNHASHABLE = "node names must be hashable, such as str or int"


def as_names(values: Iterable[Any]) -> NDArray[Any]:
    """Return unique node names as an int64 array or as an object array of hashables."""
    names = as_array(values)
    repeated: list[Any] = []
    if names.dtype == np.int64:
        if not is_range(names):
            ordered = np.sort(names)
            repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist()
    else:
        for position, name in enumerate(names):
            if name is None or (isinstance(name, float) and math.isnan(name)):
                raise GraphFormatError(f"names[{position}] is {name!r}; every node needs a name")
        try:
            repeated = [name for name, count in Counter(names.tolist()).items() if count > 1]
        except TypeError as error:
            raise GraphFormatError(f"{UNHASHABLE}: {error}") from error
    if repeated:
        raise GraphFormatError(f"node names must be unique; given more than once: {first_few(repeated)}")
    return names


def in_order_of_appearance(values: Iterable[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct names in order of appearance, and the position of each value among them."""
    array = as_array(values)
    if array.dtype == np.int64:
        found, first, inverse = np.unique(array, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return found[order], np.argsort(order)[inverse]
    try:
        index = {name: position for position, name in enumerate(dict.fromkeys(array.tolist()))}
    except TypeError as error:
        raise GraphFormatError(f"{UNHASHABLE}: {error}") from error
    return as_names(index), np.fromiter(map(index.__getitem__, array.tolist()), np.int64, len(array))


def is_range(names: NDArray[Any]) -> bool:
    """Return whether the names are 0, 1, ... n-1 in this order."""
    return names.dtype == np.int64 and bool((names == np.arange(len(names))).all())


def draw_keys(names: Iterable[Any]) -> NDArray[np.uint64]:
    """Return a number for each name to seed random draws: a whole number itself, or a digest of another name.

    So draws depend on the name only, not on the node's position or on other nodes.
    """
    listed = as_array(names)
    if listed.dtype == np.int64:
        return listed.astype(np.uint64)
    return np.array([_draw_key(name) for name in listed.tolist()], dtype=np.uint64)


def _draw_key(name: Any) -> int:
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name) % 2**64
    text = repr(str(name) if isinstance(name, str) else name).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


class NameIndex:
    """Finds the positions of node names; needs no table if the names are 0 .. n-1.

    Parameters
    ----------
    names : array (n,)
    order : int64 array (n,), optional
        Positions in the order of ascending integer names; None if names ascend.
    covers_range : bool, optional
        Whether integer names are 0 .. n-1; determined unless given.
    """

    def __init__(
        self, names: NDArray[Any], order: NDArray[np.int64] | None = None, covers_range: bool | None = None
    ) -> None:
        self._names, self._order = names, order
        self._range = is_range(names) if covers_range is None else covers_range
        self._table: dict[Any, int] | None = None
        if names.dtype != np.int64:
            self._table = {name: position for position, name in enumerate(names)}
        elif covers_range is None and not self._range:
            self._order = np.argsort(names)

    def find(self, wanted: Iterable[Any]) -> NDArray[np.int64]:
        """Return the position of each name, -1 if unknown."""
        array = as_array(wanted)
        if self._table is not None:
            try:
                return np.fromiter((self._table.get(name, -1) for name in array), np.int64, len(array))
            except TypeError as error:
                raise GraphFormatError(f"{UNHASHABLE}: {error}") from error
        if array.dtype != np.int64:
            return np.fromiter((self._find_one(name) for name in array), np.int64, len(array))
        if self._range:
            return np.where((array >= 0) & (array < len(self._names)), array, -1)
        found = np.searchsorted(self._names, array, sorter=self._order)
        found = np.minimum(found, len(self._names) - 1)
        found = found if self._order is None else self._order[found]
        return np.where(self._names[found] == array, found, -1)

    def find_one(self, name: Any) -> int:
        """Return the position of one name, -1 if unknown."""
        return self._table.get(name, -1) if self._table is not None else self._find_one(name)

    def positions(self, wanted: Iterable[Any]) -> NDArray[np.int64]:
        """Return the position of each name; unknown names raise an error."""
        array = as_array(wanted)
        found = self.find(array)
        require_known(found, array, self._names)
        return found

    def _find_one(self, name: Any) -> int:
        is_whole = isinstance(name, int | np.integer) or (isinstance(name, float) and name.is_integer())
        if not is_whole or not -(2**63) <= int(name) < 2**63:
            return -1
        if self._range:
            return int(name) if 0 <= name < len(self._names) else -1
        return int(self.find(np.array([int(name)], dtype=np.int64))[0])


def require_known(found: NDArray[Any], wanted: NDArray[Any], names: NDArray[Any], title: str = "") -> None:
    """Raise if names were not found (-1), with the first few of them and suggestions."""
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        listed, text = first_few(wanted[unknown[:6]]), str(wanted[unknown[0]]) if len(unknown) == 1 else ""
        what = f"{len(unknown)} of {len(found)} names are not in the graph: {listed}"
        what = f"no node {listed} in the graph" if len(found) == 1 else what
        raise UnknownNodeError(f"{title}{what}; {suggestion(text, names[:MAX_COMPARED].tolist())}")


def suggestion(text: str, names: list[Any]) -> str:
    """Suggest names similar to a text (equal up to leading zeros, close, or longer), or show examples."""
    text, folded = text.casefold(), {str(name).casefold(): name for name in reversed(names)}
    equal = [fold for fold in folded if text and fold.lstrip("0") == text.lstrip("0")]
    longer = [fold for fold in reversed(folded) if text and fold.startswith(text)]
    some = [*folded][: max(50, 400 * len(folded) // max(len(text), 20) ** 2)]  # long ones take longer
    close = [*dict.fromkeys([*equal, *get_close_matches(text, some), *longer])][:3]
    if close:
        return f"did you mean {first_few(folded[fold] for fold in close)}?"
    return f"names look like {first_few(names[:4], 3)}"


def first_few(names: Iterable[Any], most: int = 5) -> str:
    """Return the first few names, for messages."""
    listed = [quoted(name) for name in islice(names, most + 1)]
    return ", ".join([*listed[:most], "..."] if len(listed) > most else listed)


def quoted(name: Any) -> str:
    """Return a name as shown in messages."""
    return repr(name.item() if isinstance(name, np.generic) else name)


def as_array(values: Iterable[Any]) -> NDArray[Any]:
    """Return a 1-d int64 array if all values are whole numbers that fit, else an object array."""
    if isinstance(values, str | bytes):
        raise ParameterError(f"pass a list of names, such as [{values!r}]; got {values!r}")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise GraphFormatError(f"names must be one-dimensional; got shape {values.shape}")
        if values.dtype == bool:
            raise ParameterError("expected names, got a mask of True and False; pass names[mask]")
        if values.dtype == object:
            return _whole_numbers(values.tolist(), values)
        if values.dtype.kind in "iu" and (values.dtype != np.uint64 or not (values >> 63).any()):
            return values.astype(np.int64, copy=False)
        values = values.tolist()
    return _whole_numbers(list(values), None)


def concatenated(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Concatenate names: int64 if both are, else objects."""
    if not len(first) or not len(second):
        return first if not len(second) else second
    return np.concatenate((first, second))


def _whole_numbers(listed: list[Any], array: NDArray[Any] | None) -> NDArray[Any]:
    kinds = set(map(type, listed))
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        with suppress(OverflowError):
            return np.array(listed, dtype=np.int64)
    return np.fromiter(listed, dtype=object, count=len(listed)) if array is None else array
