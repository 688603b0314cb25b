"""Search for similar nodes: those whose vectors, or one part of them, are nearest to a node's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinegraph.embeddings import Embeddings, unit_length
from spinegraph.errors import MissingPackageError, ParameterError
from spinegraph.structure.pagerank import as_roots, as_whole

Vectors = NDArray[np.float32]
EXACT_UP_TO = 20_000  # nodes
_DECIMALS = 6
_ROUNDING = 1e-4  # relative tolerance; distances are float32
_SAMPLE = 200
# usearch's parameters: on vectors of 81,306 nodes the index finds 99.7 % of the nearest ten.
_CONNECTIVITY, _EXPANSION_ADD, _EXPANSION_SEARCH = 16, 64, 128
_BATCH = 4_096  # vectors added at once

Progress = Callable[[int, int], None]  # done, total
Weights = Mapping[str, float] | None  # of parts


@dataclass(frozen=True)
class Match:
    """A node that is similar to another one.

    Attributes
    ----------
    name : hashable
    score : float
        Higher is more similar.
    """

    name: Any
    score: float


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest nodes of one node (n,), or of several (m, n), nearest first."""

    positions: NDArray[np.int64]
    scores: NDArray[np.float64]


class Search:
    """Search for nodes by the cosine of their vectors, or of one part of them; thread-safe.

    With parts, the score is the mean of their cosines: see ``Embeddings.weighted``. The cosine of a zero
    vector is 1 to another zero vector and 0 to all others. Scores are rounded to six decimals, and nodes of
    equal score come in graph order.

    Parameters
    ----------
    embeddings : Embeddings
    by : str
        ``"all"`` parts, or the name of one.
    weights : dict of part to float, optional
        Weights of the parts in the mean, 1 by default.
    exact : bool, optional
        Compare with every node instead of using usearch's index. By default up to 20,000 nodes, and always if
        usearch is not installed.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)
    >>> search = Search(Embeddings(np.array(["ann", "bob", "cy"], dtype=object), vectors))
    >>> search.similar("ann", n=1)
    [Match(name='cy', score=0.707107)]
    """

    def __init__(
        self, embeddings: Embeddings, *, by: str = "all", weights: Weights = None, exact: bool | None = None
    ) -> None:
        self.embeddings, self.by, self.weights = embeddings, by, weights
        self._unit = unit_rows(embeddings.weighted(by, weights).vectors)  # (n, d + 1)
        if exact is None:
            exact = len(embeddings) <= EXACT_UP_TO or not can_index()
        self.exact, self._index = exact, None if exact else new_index(self._unit)

    def __len__(self) -> int:
        return len(self.embeddings)

    def similar(self, node: Any, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes most like a node, best first; never the node itself."""
        position = self.embeddings.position(node)
        return self._matches(self._nearest(self._unit[position], as_whole("n", n), position, self.exact))

    def similar_to(self, vector: ArrayLike, n: int = 10) -> list[Match]:
        """Return the ``n`` nodes whose vectors are most like a given vector (d,) of all parts.

        Examples
        --------
        >>> Search(Embeddings(np.array([7, 8]), np.eye(2, dtype=np.float32))).similar_to([0, 3], n=1)
        [Match(name=8, score=1.0)]
        """
        given = np.asarray(vector, dtype=np.float32)
        if given.shape != (self.embeddings.dim,) or not np.isfinite(given).all():
            raise ParameterError(
                f"vector must be {self.embeddings.dim} finite numbers; got shape {given.shape}"
                + (" with NaN or infinity" if given.shape == (self.embeddings.dim,) else "")
            )
        one = Embeddings(np.zeros(1, np.int64), given[None], self.embeddings.parts)
        query = unit_rows(one.weighted(self.by, self.weights).vectors)[0]
        return self._matches(self._nearest(query, as_whole("n", n), None, self.exact))

    def neighbors(
        self, positions: ArrayLike | None = None, n: int = 10, *, progress: Progress | None = None
    ) -> Nearest:
        """Return the ``n`` nodes most like each of some nodes, or of all: the answers of ``similar``.

        Rows (m, n) are padded with -1 and 0 if fewer nodes are found.

        Examples
        --------
        >>> search = Search(Embeddings(np.array([7, 8, 9]), np.eye(3, dtype=np.float32)))
        >>> search.neighbors(n=1).positions.tolist()
        [[1], [0], [0]]
        """
        return self._batch(as_roots(positions, len(self)), as_whole("n", n), self.exact, progress)

    def recall(self, n: int = 10, *, sample: int = _SAMPLE, seed: int = 0) -> float:
        """Return the share of the true ``n`` nearest that is found, over a sample of nodes; 1 if exact.

        A node as near as the true ones counts as found, since vectors may be equal.
        """
        if self.exact:
            return 1.0
        rng = np.random.default_rng(seed)
        positions = np.sort(rng.choice(len(self), min(sample, len(self)), replace=False))
        found, true = (self._batch(positions, n, exact, None).scores for exact in (False, True))
        return float((found >= true[:, -1:] - _ROUNDING * np.abs(true[:, -1:])).mean())

    def _batch(self, positions: NDArray[np.int64], n: int, exact: bool, progress: Progress | None) -> Nearest:
        shape = len(positions), min(n, max(len(self) - 1, 0))
        found = Nearest(np.full(shape, -1), np.zeros(shape))
        for row, position in enumerate(positions.tolist()):
            one = self._nearest(self._unit[position], n, position, exact)
            found.positions[row, : len(one.positions)] = one.positions
            found.scores[row, : len(one.scores)] = one.scores
            if progress is not None and (row + 1) % 100 == 0:
                progress(row + 1, len(positions))
        return found

    def _matches(self, found: Nearest) -> list[Match]:
        names = self.embeddings.names[found.positions].tolist()
        return [Match(name, score) for name, score in zip(names, found.scores.tolist(), strict=True)]

    def cosines(self, node: Any) -> Vectors:
        """Return the cosine of a node's vector to every node's, (n,); 1 to itself."""
        position = self.embeddings.position(node)
        found: Vectors = np.clip(self._unit @ self._unit[position], -1, 1)
        found[position] = 1
        return found

    def _nearest(self, query: Vectors, n: int, excluded: int | None, exact: bool) -> Nearest:
        if self._index is not None and not exact:
            wanted = min(n + (excluded is not None), len(self))
            near = np.sort(self._index.search(query, 2 * wanted).keys.astype(np.int64))
            return ordered(self._unit, near if excluded is None else near[near != excluded], query, n)
        rough = self._unit @ query  # by BLAS, so the last bits of equal rows may differ
        if excluded is not None:
            rough[excluded] = -np.inf
        n = min(n, len(rough) - (excluded is not None))
        if not n:
            return Nearest(np.zeros(0, np.int64), np.zeros(0))
        slack = 2 * len(query) * np.finfo(np.float32).eps + 10.0**-_DECIMALS  # bounds both rounding errors
        cut = np.partition(rough, len(rough) - n)[len(rough) - n] - slack
        return ordered(self._unit, np.flatnonzero(rough >= cut), query, n)


def unit_rows(vectors: Vectors) -> Vectors:
    """Return vectors of length 1, (n, d + 1): the last column is 1 if the vector is zero, else 0."""
    unit = unit_length(vectors)
    return np.asarray(np.column_stack([unit, ~unit.any(axis=1)]))


def ordered(unit: Vectors, near: NDArray[np.int64], query: NDArray[Any], n: int) -> Nearest:
    """Return the best ``n`` of some rows, by a product whose bits are the same for equal rows."""
    scores = np.round((unit[near] * query.astype(np.float64)).sum(axis=1), _DECIMALS).clip(-1, 1)
    order = np.argsort(-scores, kind="stable")[:n]
    return Nearest(near[order], scores[order])


def can_index() -> bool:
    """Return whether usearch is installed."""
    return find_spec("usearch") is not None


def new_index(unit: Vectors, threads: int = 0, is_wanted: Callable[[], bool] = lambda: True) -> Any:
    """Return usearch's index of unit vectors (n, d), by their positions.

    ``threads`` is the number of threads, 0 for all. The build stops early once ``is_wanted`` returns False.
    """
    try:
        from usearch.index import Index
    except ImportError as error:
        way_out = "pip install 'spinegraph[search]', or pass exact=True"
        raise MissingPackageError(f"an index needs usearch: {way_out}") from error
    index = Index(
        ndim=unit.shape[1],
        metric="ip",
        dtype="bf16",  # half the time of float32 at the same recall; matches are then ordered exactly
        connectivity=_CONNECTIVITY,
        expansion_add=_EXPANSION_ADD,
        expansion_search=_EXPANSION_SEARCH,
    )
    for start in range(0, len(unit), _BATCH):
        if is_wanted():
            some = np.arange(start, min(start + _BATCH, len(unit)))
            index.add(some, unit[some], threads=threads)
    return index
