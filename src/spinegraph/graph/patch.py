"""Rows that replace rows of a base graph, and nodes added to it, without a copy of the base."""

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError
from spinegraph.graph.edges import CleanEdges, Features, frozen, pointers, row_places
from spinegraph.graph.names import as_array

if TYPE_CHECKING:
    from spinegraph.graph.graph import Graph


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
    """Names of added nodes, in order of joining; a name may join again after its node was removed."""

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


REMOVED = 0  # the row of nodes that are gone; it is empty
_MOST_WASTE = 1 << 16  # entries of replaced rows that are no reason yet to write the others anew


class Rows(NamedTuple):
    """Some rows of neighbours in CSR form."""

    indptr: NDArray[np.int64]  # (p + 1,)
    indices: NDArray[Any]  # (entries,) positions in the whole graph
    weights: NDArray[np.float32] | None  # (entries,)


class Patch(NamedTuple):
    """Replaced and added rows of a base graph, and which node each belongs to.

    Rows are only ever written behind the others, so that patches share them; what nobody points to any more
    is dropped when it outweighs the rest.
    """

    places: NDArray[np.int32]  # (n_total,) row of the patch, -1 where the base row stands, or REMOVED
    indptr: Head
    indices: Head
    weights: Head | None
    waste: int  # entries of rows that were replaced

    @property
    def rows(self) -> Rows:
        """All rows, those that were replaced included."""
        weights = None if self.weights is None else self.weights.values
        return Rows(self.indptr.values, self.indices.values, weights)

    def copy(self) -> "Patch":
        """Return the same patch with room of its own."""
        weights = None if self.weights is None else self.weights.copy()
        return self._replace(indptr=self.indptr.copy(), indices=self.indices.copy(), weights=weights)


def empty_patch(base: "Graph") -> Patch:
    """Return a patch that changes nothing."""
    weights = None if base.weights is None else Head(np.zeros(0, np.float32))
    places = np.full(len(base), -1, dtype=np.int32)
    return Patch(places, Head(np.zeros(2, np.int64)), Head(np.zeros(0, base.indices.dtype)), weights, 0)


def rows_of(base: "Graph", patch: Patch, nodes: NDArray[np.int64]) -> Rows:
    """Return the rows of the given nodes as they stand, from the patch or else from the base."""
    places, rows = patch.places[nodes], patch.rows
    is_base = places < 0
    of_base, of_patch = nodes[is_base], places[~is_base]
    lengths = row_lengths(base, patch, nodes)
    from_base = np.repeat(is_base, lengths)
    base_entries = row_places(base.indptr, of_base)
    patch_entries = row_places(rows.indptr, of_patch)

    def gathered(of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        values = np.empty(len(from_base), dtype=of_base.dtype)
        values[from_base] = of_base[base_entries]
        values[~from_base] = of_patch[patch_entries]
        return values

    weights = None
    if base.weights is not None and rows.weights is not None:
        weights = gathered(base.weights, rows.weights)
    return Rows(pointers(lengths), gathered(base.indices, rows.indices), weights)


def row_lengths(base: "Graph", patch: Patch, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the degrees of the given nodes, without a look at the others."""
    places, indptr = patch.places[nodes], patch.indptr.values
    is_base = places < 0
    of_base, of_patch = nodes[is_base], places[~is_base]
    lengths = np.empty(len(nodes), dtype=np.int64)
    lengths[is_base] = base.indptr[of_base + 1] - base.indptr[of_base]
    lengths[~is_base] = indptr[of_patch + 1] - indptr[of_patch]
    return lengths


def with_rows(base: "Graph", patch: Patch, nodes: NDArray[np.int64], rows: Rows, total: int) -> Patch:
    """Return a patch in which the given nodes have the given rows, of ``total`` nodes from now on."""
    first, before = len(patch.indptr) - 1, patch.places[nodes[nodes < len(patch.places)]]
    places = np.full(total, -1, dtype=np.int32)
    places[: len(patch.places)] = patch.places
    places[nodes] = np.arange(first, first + len(nodes), dtype=np.int32)
    indptr, replaced = patch.indptr.values, before[before > REMOVED]
    grown = Patch(
        frozen(places),
        patch.indptr.plus(rows.indptr[1:] + len(patch.indices)),
        patch.indices.plus(rows.indices),
        None if patch.weights is None or rows.weights is None else patch.weights.plus(rows.weights),
        patch.waste + int((indptr[replaced + 1] - indptr[replaced]).sum()),
    )
    is_wasteful = grown.waste > max(_MOST_WASTE, len(grown.indices) // 2)
    return _rewritten(base, grown) if is_wasteful else grown


def without_nodes(patch: Patch, nodes: NDArray[np.int64]) -> Patch:
    """Return a patch in which the given nodes are gone; edges that led to them are the caller's."""
    places, held = patch.places.copy(), patch.places[nodes]
    places[nodes] = REMOVED
    indptr, held = patch.indptr.values, held[held > REMOVED]
    waste = patch.waste + int((indptr[held + 1] - indptr[held]).sum())
    return patch._replace(places=frozen(places), waste=waste)


def patched(base: "Graph", patch: Patch, touched: NDArray[np.int64], clean: CleanEdges, total: int) -> Patch:
    """Return a patch in which the touched nodes' rows have the given edges as well.

    Parameters
    ----------
    touched : int64 array (t,)
        Positions, ascending; those of new nodes included.
    clean : CleanEdges
        Added edges among the touched nodes, by their place in ``touched``.
    total : int
        Number of nodes from now on.
    """
    known = touched[touched < len(patch.places)]
    merged = _with_edges(rows_of(base, patch, known), touched, clean, total)
    return with_rows(base, patch, touched, merged, total)


def _rewritten(base: "Graph", patch: Patch) -> Patch:
    """Return the same patch without the rows that were replaced."""
    held = np.flatnonzero(patch.places > REMOVED)
    rows = rows_of(base, patch, held)
    places = patch.places.copy()
    places[held] = np.arange(1, len(held) + 1, dtype=np.int32)
    weights = None if rows.weights is None else Head(rows.weights)
    indptr = Head(np.concatenate(([0], rows.indptr)))
    return Patch(frozen(places), indptr, Head(rows.indices), weights, 0)


def _with_edges(now: Rows, touched: NDArray[np.int64], clean: CleanEdges, total: int) -> Rows:
    """Merge added edges into rows; the weight of an edge that is there already grows."""
    present = np.repeat(
        np.arange(len(now.indptr) - 1), np.diff(now.indptr)
    )  # new nodes come last, without rows
    added = np.repeat(np.arange(len(touched)), np.diff(clean.indptr))
    keys = np.concatenate((present * total + now.indices, added * total + touched[clean.indices]))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    keys = keys[starts]
    weights = None
    if now.weights is not None and clean.weights is not None:
        listed = np.concatenate((now.weights, clean.weights))[order]
        sums = np.add.reduceat(listed, starts, dtype=np.float64) if len(starts) else np.zeros(0)
        if len(sums) and sums.max() > np.finfo(np.float32).max:
            raise GraphFormatError(
                f"a weight grows to {sums.max():g}, more than float32 holds; scale them down"
            )
        weights = sums.astype(np.float32)
    lengths = np.bincount(keys // total, minlength=len(touched))
    return Rows(pointers(lengths), (keys % total).astype(now.indices.dtype), weights)
