"""Names and features of nodes that joined a graph, growing without a copy of those that came before."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.graph.checks import Features
from spinegraph.graph.names import as_array
from spinegraph.graph.tape import Head


class _Shelf:
    """Names in order of joining, the latest place of each, and the place before it of one that came back."""

    def __init__(self, parent: "AddedNames | None") -> None:
        self.parent = parent
        self.start = 0 if parent is None else len(parent)
        self.names: list[Any] = []
        self.latest: dict[Any, int] = {}
        self.earlier: dict[int, int] = {}
        self.lock = Lock()

    def append(self, names: Sequence[Any]) -> None:
        for name in names:
            place = self.start + len(self.names)
            self.names.append(name)
            if name in self.latest:
                self.earlier[place] = self.latest[name]
            self.latest[name] = place


class AddedNames:
    """Names of added nodes, in order of joining; a name may join again after its node was removed.

    Examples
    --------
    >>> names = AddedNames().plus(["ann", "bob"])
    >>> grown = names.plus(["cy"])
    >>> grown.find("cy"), names.find("cy"), grown.array()
    (2, -1, array(['ann', 'bob', 'cy'], dtype=object))
    """

    __slots__ = ("_length", "_shelf")

    def __init__(self, parent: "AddedNames | None" = None) -> None:
        self._shelf = _Shelf(parent)
        self._length = self._shelf.start

    def __len__(self) -> int:
        return self._length

    def plus(self, names: Sequence[Any]) -> "AddedNames":
        """Return these names and more; growing twice from the same names gives two lists."""
        if not len(names):
            return self
        shelf = self._shelf
        with shelf.lock:
            is_end = shelf.start + len(shelf.names) == self._length
            if is_end:
                shelf.append(names)
        if not is_end:
            return self.branch().plus(names)
        grown = object.__new__(AddedNames)
        grown._shelf, grown._length = shelf, self._length + len(names)
        return grown

    def branch(self) -> "AddedNames":
        """Return the same names, to grow apart from these."""
        if self._shelf.parent is None:
            return AddedNames(self)
        return AddedNames().plus(self.listed())  # a chain of two is as long as chains get

    def find(self, name: Any) -> int:
        """Return the place where a name joined last, -1 where it never did."""
        shelf = self._shelf
        place = shelf.latest.get(name, -1)
        while place >= self._length:
            place = shelf.earlier.get(place, -1)
        if place < 0 and shelf.parent is not None:
            return shelf.parent.find(name)
        return place

    def listed(self) -> list[Any]:
        """Return the names as a list."""
        shelf = self._shelf
        before = [] if shelf.parent is None else shelf.parent.listed()
        return before + shelf.names[: self._length - shelf.start]

    def array(self) -> NDArray[Any]:
        """Return the names as int64 where all are whole numbers, else as objects."""
        return as_array(self.listed())

    def at(self, places: NDArray[np.int64]) -> list[Any]:
        """Return the names at some places."""
        shelf = self._shelf
        return [
            shelf.names[place - shelf.start] if place >= shelf.start else shelf.parent.at([place])[0]  # type: ignore[union-attr, arg-type]
            for place in places
        ]


class AddedFeatures:
    """Feature rows of added nodes, dense or sparse like the base's.

    Parameters
    ----------
    rows : csr_array or array (a, f)

    Examples
    --------
    >>> rows = AddedFeatures(np.zeros((0, 2), np.float32)).plus(np.ones((1, 2), np.float32))
    >>> len(rows), rows.matrix().tolist()
    (1, [[1.0, 1.0]])
    """

    __slots__ = ("_parts", "_width")

    def __init__(self, rows: Features) -> None:
        self._width = rows.shape[1]
        if issparse(rows):
            indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            self._parts: tuple[Head, ...] = (Head(indptr), Head(indices), Head(rows.data))
        else:
            self._parts = (Head(rows),)

    def __len__(self) -> int:
        return len(self._parts[0]) - (len(self._parts) > 1)

    def plus(self, rows: Features) -> "AddedFeatures":
        """Return these rows and more; what is kept sparse takes dense rows, and the other way round."""
        if len(self._parts) == 1:
            return self._of((self._parts[0].plus(rows.toarray() if issparse(rows) else rows),))
        indptr, indices, data = self._parts
        more = csr_array(rows)
        return self._of(
            (indptr.plus(more.indptr[1:] + len(indices)), indices.plus(more.indices), data.plus(more.data))
        )

    def copy(self) -> "AddedFeatures":
        """Return the same rows, to grow apart from these."""
        return self._of(tuple(part.copy() for part in self._parts))

    def matrix(self) -> Features:
        """Return all rows, (a, f)."""
        if len(self._parts) == 1:
            return self._parts[0].values
        indptr, indices, data = (part.values for part in self._parts)
        return csr_array((data, indices, indptr), shape=(len(self), self._width))

    def _of(self, parts: tuple[Head, ...]) -> "AddedFeatures":
        made = object.__new__(AddedFeatures)
        made._parts, made._width = parts, self._width
        return made
