"""Smoothing: each node's weighted mean of values around it, T = (1 - b) (I - b P)^-1 exact to a tolerance.

P is one step of a walk, b the probability that it continues. A whole graph needs a few products of P with the
values of all nodes. A few nodes use the walks from them if these are short, else the same products. Walks
along directed edges, or against them, end at nodes without a next edge.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from spinegraph.graph.graph import GraphLike
from spinegraph.graph.overlay import Overlay
from spinegraph.kernels import smoothing as kernels
from spinegraph.kernels.adjacency import Adjacency, Direction
from spinegraph.kernels.runtime import one_blas_thread, run_blocks
from spinegraph.kernels.sparse import sparse_times_dense

Values = NDArray[np.float32]
Positions = NDArray[np.int64]
_ROWS_PER_BLOCK, _VALUES_PER_BLOCK = 512, 1 << 16  # at least, since starting a thread costs as much
_COLUMNS = 72  # smoothed at a time, so that memory is bounded by three arrays of this width
_QUICK = 2_000_000  # steps along edges that take about a millisecond
_MIN_WALKERS = 1e-6  # share of walkers per neighbour below which walks stop at a node
_MIN_WALKERS_CORRECTED = 3e-4  # the same if values of a base graph are corrected, which loses little
EARLY = 0.1  # share of walkers that may stop early
_ROOTS, _ROOTS_PER_BLOCK = 64, 8  # rows computed by products at a time, and by one thread


@dataclass(frozen=True, eq=False)
class Smoother:
    """The smoothing matrix T of a graph, for one probability of continuing.

    Attributes
    ----------
    adjacency : Adjacency
    degrees : int64 array (n,)
    strengths : float64 array (n,)
        Sums of edge weights.
    continuation : float
        Probability b that the walk continues, which determines how far a node looks.
    symmetric : bool
        Whether a node's own value takes part in every step, and values are divided by the square root of the
        degree before and multiplied by it after, as in graph convolutions; else plain means.
    tolerance : float
        Largest error by products, relative to how far smoothing moves the values: a root mean square over
        nodes, weighted by the sum of their edge weights.
    threads : int, optional
        The result does not depend on it.
    opposite : Adjacency, optional
        The steps the other way, if walks follow directions.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> Smoother.of(path, 0.5).smooth(np.array([[1], [0], [0]], np.float32)).round(2).ravel()
    array([0.58, 0.17, 0.08], dtype=float32)
    """

    adjacency: Adjacency
    degrees: NDArray[np.int64]
    strengths: NDArray[np.float64]
    continuation: float
    symmetric: bool = False
    tolerance: float = 0.01
    threads: int | None = None
    opposite: Adjacency | None = None

    @classmethod
    def of(cls, graph: GraphLike, continuation: float, way: Direction = "both", **more: Any) -> "Smoother":
        """Return T of a graph for walks along edges, against them or both; ``more`` are attributes."""
        adjacency = graph.adjacency(way)
        if way == "both":
            return cls(adjacency, graph.degrees, graph.strengths, continuation, **more)
        if way == "along":
            sums, opposite = (graph.out_degrees, graph.out_strengths), graph.adjacency("against")
        else:
            sums, opposite = (graph.in_degrees, graph.in_strengths), graph.adjacency("along")
        return cls(adjacency, *sums, continuation, opposite=opposite, **more)

    @cached_property
    def loops(self) -> Values:
        """Weight of every node's step to itself, (n,): its mean edge weight, or 0."""
        if not self.symmetric:
            return np.zeros(len(self.degrees), np.float32)
        return (self.strengths / np.maximum(self.degrees, 1)).astype(np.float32)

    @cached_property
    def inverse(self) -> Values:
        """Reciprocal of the weight of all steps from a node, (n,); 0 for nodes without neighbours."""
        total = self.strengths + self.loops
        return np.divide(1, total, out=np.zeros(len(total)), where=self.degrees > 0).astype(np.float32)

    @cached_property
    def root_degrees(self) -> Values:
        """Square root of the weight of all steps from a node, (n, 1); 1 without neighbours or symmetry."""
        if not self.symmetric:
            return np.ones((len(self.degrees), 1), np.float32)
        return np.sqrt(np.where(self.degrees > 0, self.strengths + self.loops, 1))[:, None].astype(np.float32)

    @property
    def num_products(self) -> int:
        """Products after which the error of the iteration is below the tolerance."""
        if self.opposite is not None:
            return max(1, int(np.ceil(np.log(self.tolerance) / np.log(self.continuation))))
        growth = 1 / self.continuation + np.sqrt(1 / self.continuation**2 - 1)
        return max(1, int(np.ceil(np.log(2 / self.tolerance) / np.log(growth))))

    @property
    def is_quick(self) -> bool:
        """Whether a row of T by products takes about a millisecond."""
        return self.num_products * self.adjacency.num_entries <= _QUICK

    def smooth(self, values: Values, *, overwrite: bool = False) -> Values:
        """Return T times the values (n, d) of all nodes, (n, d); ``overwrite`` them to save memory.

        A fit on a GPU solves on the device; see ``solved_by``.
        """
        solve = _solver.get() or Smoother._solve
        if values.shape[1] > _COLUMNS:
            out = np.empty(values.shape, np.float32)
            for start in range(0, values.shape[1], _COLUMNS):
                out[:, start : start + _COLUMNS] = self.smooth(values[:, start : start + _COLUMNS])
            return out
        values = np.ascontiguousarray(values, np.float32)
        if not self.symmetric:
            return solve(self, values)
        found = solve(self, np.divide(values, self.root_degrees, out=values if overwrite else None))
        found *= self.root_degrees
        return found

    def _solve(self, values: Values) -> Values:
        """Solve (I - b P) y = (1 - b) values by Chebyshev iteration, or plain iteration if directed."""
        b = self.continuation
        walk = self.adjacency, self.inverse, self.loops
        block = max(_ROWS_PER_BLOCK, _VALUES_PER_BLOCK // max(values.shape[1], 1))

        def advance(factor: float, now: Values, before: Values, out: Values) -> None:
            rates = factor * b, factor * (1 - b), 1 - factor

            def task(start: int, stop: int) -> None:
                kernels.step(*walk, now, values, before, rates, start, stop, out)

            run_blocks(task, len(values), block=block, threads=self.threads)

        before, now = values.copy(), np.empty_like(values)
        advance(1.0, before, before, now)
        for factor in self.factors():
            advance(factor, now, before, before)
            before, now = now, before
        return now

    def factors(self) -> Iterator[float]:
        """Yield the factor of every step of the iteration except the first, whose factor is 1."""
        b, factor = self.continuation, 1.0
        for number in range(1, self.num_products):
            if self.opposite is not None:
                yield 1.0
                continue
            factor = 2 / (2 - b * b) if number == 1 else 1 / (1 - b * b * factor / 4)
            yield factor

    def rows(self, roots: Positions) -> csr_array:
        """Return the rows of T (r, n) of some nodes, at a cost in proportion to their number.

        By walks, at most a share ``EARLY`` of a row differs from T; small graphs, and nodes whose walks are
        too long, use the products of ``smooth``.
        """
        if not len(roots):
            return csr_array((0, len(self.degrees)), dtype=np.float32)
        by_products = np.ones(len(roots), bool)
        if not self.is_quick:
            found, early = self._walks(roots)
            by_products = early > EARLY
            if not by_products.any():
                return found
        others = roots[by_products]
        exact = [self._exact(others[start : start + _ROOTS]) for start in range(0, len(others), _ROOTS)]
        if by_products.all():
            return exact[0] if len(exact) == 1 else csr_array(vstack(exact, format="csr"))
        order = np.argsort(np.concatenate([np.flatnonzero(~by_products), np.flatnonzero(by_products)]))
        return csr_array(vstack([found[~by_products], *exact], format="csr")[order])

    def _exact(self, roots: Positions) -> csr_array:
        """Return rows of T by products, given that T is symmetric up to scaling by degrees."""
        n, count, b = len(self.degrees), len(roots), self.continuation
        scale = np.where(self.degrees > 0, self.strengths + self.loops, 1).astype(np.float32)
        scale = np.sqrt(scale) if self.symmetric else scale
        found = np.empty((count, n), np.float32)
        opposite = (self.adjacency if self.opposite is None else self.opposite).flat()
        walk = opposite.indptr, opposite.indices, opposite.weights, self.inverse, self.loops
        factors = np.array([1.0, *self.factors()])

        def task(start: int, stop: int) -> None:
            room = np.empty((2, n), np.float32)
            for row in range(start, stop):
                root = roots[row]
                values = kernels.solve_for(*walk, root, 1 / scale[root], b, factors, room)
                np.multiply(values, scale, out=found[row])

        run_blocks(task, count, block=_ROOTS_PER_BLOCK, threads=self.threads)
        indices = np.tile(np.arange(n, dtype=np.int32), count)
        return csr_array((found.ravel(), indices, np.arange(count + 1) * n), shape=(count, n))

    def corrected(
        self, overlay: Overlay, roots: Positions, before: Values, values: Callable[[Positions], Values]
    ) -> Values:
        """Return rows of T values (r, d) of some nodes of an overlay, at a cost proportional to their number.

        ``before`` (m, d) is T values of the base graph, divided by the square roots of degrees if this is
        symmetric; ``values`` returns the values (p, d) of some positions. Let z be ``before``, and for added
        nodes the mean of their neighbours'. Then T values is z + (I - b P)^-1 r with
        r = (1 - b) values + b P z - z, which is 0 unless a node's links changed. So short walks suffice.
        """
        b, scale = self.continuation, self.root_degrees
        rows, _ = self._walks(roots, _MIN_WALKERS_CORRECTED)
        is_changed = overlay.patch.row_ids[rows.indices] >= 0
        changed = np.unique(rows.indices[is_changed]).astype(np.int64)
        around = overlay.rows_at(changed)
        read = np.unique(np.concatenate([changed, around.indices, roots]))
        guess = self._guess(overlay, read, before)
        total = sparse_times_dense(
            around.indptr,
            np.searchsorted(read, around.indices),
            np.ones(len(around.indices), np.float32) if around.weights is None else around.weights,
            guess,
            1,
        )
        own, alone = guess[np.searchsorted(read, changed)], self.degrees[changed] == 0
        total += np.where(alone, 1, self.loops[changed])[:, None].astype(np.float32) * own
        total *= np.float32(b) * np.where(alone, 1, self.inverse[changed])[:, None].astype(np.float32)
        residual = (total - own) * scale[changed] + np.float32(1 - b) * values(changed)
        indptr, indices, data = chosen_entries(rows, is_changed)
        found = sparse_times_dense(indptr, np.searchsorted(changed, indices), data, residual, 1)
        return np.asarray(found / np.float32(1 - b) + guess[np.searchsorted(read, roots)] * scale[roots])

    def _guess(self, overlay: Overlay, positions: Positions, before: Values) -> Values:
        """Return the values ``before`` of base nodes, and for added nodes the mean of their neighbours'."""
        first = int(np.searchsorted(positions, len(before)))
        around = overlay.rows_at(positions[first:])
        is_base = around.indices < len(before)
        indptr = np.concatenate([[0], np.cumsum(is_base)])[around.indptr]
        counts = np.diff(indptr)
        data = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
        means = sparse_times_dense(indptr, around.indices[is_base], data, before, 1)
        return np.concatenate([before[positions[:first]], means])

    def _walks(self, roots: Positions, least: float = _MIN_WALKERS) -> tuple[csr_array, NDArray[np.float64]]:
        """Return rows of T by walks, and the share of each that stopped early."""
        n, walk = len(self.degrees), (self.adjacency, self.inverse, self.loops)
        early = np.zeros(len(roots))

        def task(start: int, stop: int) -> tuple[Any, ...]:
            walkers, indptr = kernels.new_walkers(n), np.zeros(stop - start + 1, np.int64)
            size, done = 1 << 15, 0
            indices, data = np.empty(size, np.int32), np.empty(size)
            while True:
                rest = roots[start + done : stop], self.continuation, least, walkers
                out = indptr[done:], indices, data, early[start + done : stop]
                done += kernels.walks_from(*walk, *rest, *out)
                if done == stop - start:
                    return indptr, indices[: indptr[-1]], data[: indptr[-1]].astype(np.float32)
                indices, data = (np.concatenate([each, np.empty_like(each)]) for each in (indices, data))

        parts = run_blocks(task, len(roots), block=64, threads=self.threads)
        ends = np.cumsum([0, *(part[0][-1] for part in parts)])
        indptr = np.concatenate([[0], *(part[0][1:] + end for part, end in zip(parts, ends, strict=False))])
        indices, data = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        if self.symmetric:
            scale = self.root_degrees[:, 0]
            data = data * np.repeat(scale[roots], np.diff(indptr)) / scale[indices]
        return csr_array((data, indices, indptr), shape=(len(roots), n)), early


_solver: ContextVar[Callable[[Smoother, Values], Values] | None] = ContextVar("solver", default=None)


@contextmanager
def solved_by(solve: Callable[[Smoother, Values], Values]) -> Iterator[None]:
    """Let another device solve (I - b P) y = (1 - b) values inside this context."""
    token = _solver.set(solve)
    try:
        yield
    finally:
        _solver.reset(token)


def chosen_entries(
    rows: csr_array, is_chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[Any], Values]:
    """Return indptr, indices and data of some entries of a matrix; much faster than SciPy for a few rows."""
    indptr = np.concatenate([[0], np.cumsum(is_chosen)])[rows.indptr]
    return indptr, rows.indices[is_chosen], rows.data[is_chosen].astype(np.float32, copy=False)


def multiply(left: Any, right: Values, threads: int | None = None) -> Values:
    """Return left @ right as dense float32: by BLAS if left is dense, by our own threads if it is sparse."""
    right = np.ascontiguousarray(right, dtype=np.float32)
    if not issparse(left):
        with one_blas_thread():
            return np.asarray(left @ right, dtype=np.float32)
    rows = left if isinstance(left, csr_array) else csr_array(left)
    data = rows.data.astype(np.float32, copy=False)
    return sparse_times_dense(rows.indptr, rows.indices, data, right, threads)


def row_products(left: Any, right: Values) -> Values:
    """Return left @ right; unlike with BLAS, the bits of a row do not depend on the other rows."""
    if issparse(left):
        return multiply(left, right, 1)
    rows, columns = left.shape
    indptr, indices = np.arange(rows + 1) * columns, np.tile(np.arange(columns, dtype=np.int32), rows)
    right = np.ascontiguousarray(right, dtype=np.float32)
    return sparse_times_dense(indptr, indices, left.astype(np.float32, copy=False).ravel(), right, 1)


def main_directions(
    multiply: Any, transposed: Any, width: int, count: int, seed: int, rounds: int = 2
) -> tuple[Values, NDArray[np.float64]]:
    """Return the leading right singular vectors (width, count) of a matrix and its singular values (count,).

    By random projection. ``multiply`` returns the matrix times columns (width, c), and ``transposed`` its
    transpose times such a product.
    """
    size = min(count + 16, width)
    rng = np.random.default_rng([seed, 17])
    found = rng.standard_normal((width, size)).astype(np.float32)
    for _ in range(rounds):
        found = transposed(orthonormal(multiply(orthonormal(found))))
    found = orthonormal(found)
    small = multiply(found)
    values, vectors = np.linalg.eigh(small.T.astype(np.float64) @ small)
    directions = found @ vectors[:, ::-1][:, :count]
    return signed(directions), np.sqrt(np.maximum(values[::-1][:count], 0))


def signed(directions: NDArray[np.floating[Any]]) -> Values:
    """Return directions (f, r) with signs such that the largest entry of each is positive.

    Both signs are valid, and which one results depends on rounding, so on the number of BLAS threads.
    """
    if not directions.size:
        return np.ascontiguousarray(directions, dtype=np.float32)
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.ascontiguousarray(directions * np.sign(largest), dtype=np.float32)


def orthonormal(columns: Values) -> Values:
    """Return an orthonormal basis of the columns' span, main directions first, by their Gram matrix."""
    values, vectors = np.linalg.eigh(columns.T.astype(np.float64) @ columns)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > max(1e-10 * values.max(initial=0), 1e-300)
    return np.asarray(columns @ (vectors[:, kept] / np.sqrt(values[kept])), dtype=np.float32)
