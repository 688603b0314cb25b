"""What an overlay tells: the read interface of a graph, over a base and the rows that differ from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.added import AddedFeatures, AddedNames
from spinegraph.graph.checks import Features, frozen
from spinegraph.graph.edges import EdgeReport
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import UNHASHABLE, as_array, concatenated, require_known
from spinegraph.graph.patch import REMOVED, Patch, row_lengths, rows_of
from spinegraph.graph.rows import row_sums, rows_at, rows_of_two, stacked
from spinegraph.kernels.adjacency import Adjacency


@dataclass(frozen=True, eq=False, repr=False)
class OverlayReading:
    """The parts of an overlay and all that is read from them; :class:`Overlay` adds what makes further ones.

    Examples
    --------
    >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).num_edges
    2
    """

    base: Graph
    added: AddedNames
    patch: Patch
    added_rows: AddedFeatures | None = None
    touched: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    report: EdgeReport | None = None

    def __len__(self) -> int:
        return len(self.patch.places)

    @property
    def num_nodes(self) -> int:
        """Number of nodes, isolated ones included and removed ones not: at most ``len(overlay)``."""
        return len(self.standing)

    @cached_property
    def standing(self) -> NDArray[np.int64]:
        """Positions of the nodes that were not removed, ascending."""
        return frozen(np.flatnonzero(self.patch.places != REMOVED))

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.degrees.sum()) // 2

    @property
    def has_features(self) -> bool:
        """Whether nodes carry features."""
        return self.base.has_features

    @property
    def num_features(self) -> int:
        """Number of features per node, 0 without any."""
        return self.base.num_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Column names of the features, where known."""
        return self.base.feature_names

    @cached_property
    def names(self) -> NDArray[Any]:
        """Names at all positions, (n,): the base's, then the added, removed nodes included."""
        return frozen(concatenated(self.base.names, self.added.array()))

    @cached_property
    def features(self) -> Features | None:
        """Features of all nodes, (n, f); this copies the base's, :meth:`feature_rows` does not."""
        if self.base.features is None or self.added_rows is None:
            return None
        return stacked([self.base.features, self.added_rows.matrix()])

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of each node, (n,)."""
        return frozen(self._patched_values(self.base.degrees, np.diff(self.patch.indptr.values)))

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """Sum of the weights at each node, (n,); the degree in an unweighted graph."""
        rows = self.patch.rows
        return frozen(self._patched_values(self.base.strengths, row_sums(rows.indptr, rows.weights)))

    def positions(self, names: Iterable[Any]) -> NDArray[np.int64]:
        """Return the positions of the given nodes; added nodes follow the base's.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], []).positions(["cy", "ann"])
        array([2, 0])
        """
        wanted = as_array(names)
        found = self.find(wanted)
        require_known(found, wanted, self.base.names)
        return found

    def neighbors(self, name: Any) -> NDArray[Any]:
        """Return the names of a node's neighbours, in graph order.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], [("cy", "ann")]).neighbors("ann").tolist()
        ['bob', 'cy']
        """
        row = rows_of(self.base, self.patch, self.positions([name])).indices
        return as_array(self.names_at(row)) if len(row) else self.base.names[:0]

    def feature_rows(self, positions: NDArray[np.int64]) -> Features:
        """Return the features of the nodes at the given positions, (len(positions), f).

        Examples
        --------
        >>> base = Graph.from_edges([(0, 1)], features=[[1.0], [2.0]])
        >>> base.overlay([2], [(2, 0)], features=[[3.0]]).feature_rows(np.array([2, 0])).tolist()
        [[3.0], [1.0]]
        """
        positions = np.asarray(positions)
        is_base = positions < len(self.base)
        if is_base.all():
            return self.base.feature_rows(positions)
        if self.added_rows is None:
            raise MissingFeaturesError("this graph has no features")
        if not is_base.any():
            return rows_at(self.added_rows.matrix(), positions - len(self.base))
        return rows_of_two(self.base.features, self.added_rows.matrix(), positions)

    def degrees_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of neighbours of the nodes at the given positions, without a look at the others.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).degrees_at(np.array([2, 0]))
        array([1, 2])
        """
        return row_lengths(self.base, self.patch, positions)

    def adjacency(self) -> Adjacency:
        """Return the arrays that kernels read: the base's own, and the patch.

        Examples
        --------
        >>> Graph.from_edges([(0, 1)]).overlay([2], [(2, 0)]).adjacency().rows.tolist()
        [1, -1, 2]
        """
        base, rows = self.base, self.patch.rows
        return Adjacency.of(
            base.indptr,
            base.indices,
            base.weights,
            self.patch.places,
            rows.indptr,
            rows.indices,
            rows.weights,
        )

    def find(self, names: Iterable[Any], new: dict[Any, int] | None = None) -> NDArray[np.int64]:
        """Return the positions of the given nodes, or what ``new`` says of others, or -1.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], []).remove(["ann"]).find(["cy", "ann"])
        array([ 2, -1])
        """
        wanted, places, start = as_array(names), self.patch.places, len(self.base)
        found = self.base._name_index.find(wanted)
        found[(found >= 0) & (places[found] == REMOVED)] = -1
        for at in np.flatnonzero(found < 0):
            name = wanted[at]
            try:
                place = self.added.find(name) + start
            except TypeError as error:
                raise GraphFormatError(f"{UNHASHABLE}: {error}") from error
            if place >= start and places[place] != REMOVED:
                found[at] = place
            elif new is not None:
                found[at] = new.get(name, -1)
        return found

    def position(self, name: Any) -> int:
        """Return the position of one node, -1 where there is none of that name.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], []).position("cy")
        2
        """
        places, place = self.patch.places, self.base._name_index.find_one(name)
        if place >= 0 and places[place] != REMOVED:
            return place
        place = self.added.find(name) + len(self.base)
        return place if place >= len(self.base) and places[place] != REMOVED else -1

    def names_at(self, positions: Iterable[int]) -> list[Any]:
        """Return the names at some positions, without a look at the others.

        Examples
        --------
        >>> Graph.from_edges([("ann", "bob")]).overlay(["cy"], []).names_at([2, 0])
        ['cy', 'ann']
        """
        start, names = len(self.base), self.base.names
        listed = positions.tolist() if isinstance(positions, np.ndarray) else positions
        plain = names.dtype == np.int64
        return [
            (int(names[place]) if plain else names[place])
            if place < start
            else self.added.at(np.array([place - start]))[0]
            for place in listed
        ]

    def _patched_values(self, of_base: NDArray[Any], of_patch: NDArray[Any]) -> NDArray[Any]:
        """Return one value per node, from the patch where it has a row and from the base elsewhere."""
        values = np.zeros(len(self), dtype=of_base.dtype)
        values[: len(self.base)] = of_base
        is_patched = self.patch.places >= 0
        values[is_patched] = of_patch[self.patch.places[is_patched]]
        return values
