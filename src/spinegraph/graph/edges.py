"""From raw edge listings to clean symmetric CSR arrays, with a count of all that was merged or dropped."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from spinegraph.errors import DirectedInputWarning, EdgeCleaningWarning, GraphFormatError, ParameterError
from spinegraph.graph.names import quoted
from spinegraph.graph.rows import pointers

Reciprocal = Literal["error", "sum", "mean", "max"]
MOST_NODES = 2**31 - 1  # a pair of node positions and its direction share one int64 key


@dataclass(frozen=True)
class EdgeReport:
    """What became of the listed edges: ``listed`` is the sum of the next five counts.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> print(Graph.from_edges([(0, 1), (1, 0), (1, 2), (1, 2)]).report)
    4 listed edges gave 2 edges: 1 repeat and 1 reciprocal listing merged.
    """

    listed: int
    edges: int
    self_loops: int = 0
    zero_weights: int = 0
    repeated: int = 0
    reciprocal: int = 0
    one_way: int = 0
    """Edges of directed input that had no edge back; 0 for undirected input."""

    def __str__(self) -> str:
        """Say what happened in one sentence."""
        dropped = _listed((self.self_loops, "self-loop"), (self.zero_weights, "zero-weight listing"))
        merged = _listed((self.repeated, "repeat"), (self.reciprocal, "reciprocal listing"))
        one_way = _listed((self.one_way, "one-way edge"))
        clauses = [
            f"{counts} {what}"
            for counts, what in ((dropped, "dropped"), (merged, "merged"), (one_way, "made symmetric"))
            if counts
        ]
        head = f"{_count(self.listed, 'listed edge')} gave {_count(self.edges, 'edge')}"
        return f"{head}: {', '.join(clauses)}." if clauses else f"{head}."


class CleanEdges(NamedTuple):
    """Symmetric CSR arrays and the report of how they came about."""

    indptr: NDArray[np.int64]  # (n + 1,)
    indices: NDArray[np.int32]  # (nnz,) sorted within rows
    weights: NDArray[np.float32] | None  # (nnz,)
    report: EdgeReport


def clean_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    names: NDArray[Any],
    weights: NDArray[Any] | None = None,
    *,
    directed: bool = False,
    reciprocal: Reciprocal = "error",
) -> CleanEdges:
    """Merge listed edges into symmetric CSR arrays by the package's rules.

    Unweighted, an edge counts once however often and in whichever direction it is listed. Weighted, listings
    in one direction add; the two directions count once where they agree (to float32 precision) and are an
    error where they do not, unless ``reciprocal`` says how to combine every such pair. Self-loops and
    listings of weight 0 are dropped.

    Parameters
    ----------
    sources, targets : integer arrays (m,)
        Positions in 0 .. n-1; already checked.
    names : array (n,)
        Node names, for messages.
    weights : float array (m,), optional
        Finite and not negative; already checked.
    directed : bool
        Whether the listings are one-way; then edges without a way back are counted and warned about.
    reciprocal : {"error", "sum", "mean", "max"}
        How two directions of different weight become one edge.

    Examples
    --------
    >>> clean = clean_edges(np.array([0, 1]), np.array([1, 2]), np.arange(3))
    >>> clean.indptr.tolist(), clean.indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    if reciprocal not in ("error", "sum", "mean", "max"):
        raise ParameterError(f"reciprocal must be one of 'error', 'sum', 'mean', 'max'; got {reciprocal!r}")
    n, listed = len(names), len(sources)
    if n > MOST_NODES:
        raise GraphFormatError(f"a graph holds at most {MOST_NODES} nodes; got {n}")
    kept, self_loops, zero_weights = _worth_keeping(sources, targets, weights)
    keys, sums = _directed_edges(sources, targets, weights, kept, n)
    one_direction = len(keys)
    # Keys that differ in the last bit alone are the two directions of one edge.
    backward = np.flatnonzero((keys[1:] ^ keys[:-1]) == 1) + 1
    combined = None if sums is None else combine_directions(keys, sums, backward, names, reciprocal)
    if len(backward):
        keys = np.delete(keys, backward)
    keys >>= 1
    edges = len(keys)
    above, high = _halves(keys, n)
    del keys  # the largest array by now
    report = EdgeReport(
        listed=listed,
        edges=edges,
        self_loops=self_loops,
        zero_weights=zero_weights,
        repeated=listed - self_loops - zero_weights - one_direction,
        reciprocal=len(backward),
        one_way=edges - len(backward) if directed else 0,
    )
    return CleanEdges(*_symmetric(above, high, combined), report)


def warn_of_losses(report: EdgeReport, stacklevel: int) -> None:
    """Warn of what a user may not expect to lose: directions, self-loops and edges of weight 0."""
    if report.one_way:
        warnings.warn(
            f"{_count(report.one_way, 'directed edge')} made symmetric; directed walks are out of scope",
            DirectedInputWarning,
            stacklevel=stacklevel + 1,
        )
    dropped = _listed((report.self_loops, "self-loop"), (report.zero_weights, "zero-weight listing"))
    if dropped:
        message = f"{dropped} dropped of {_count(report.listed, 'listed edge')}"
        warnings.warn(message, EdgeCleaningWarning, stacklevel=stacklevel + 1)


def _worth_keeping(
    sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None
) -> tuple[NDArray[np.bool_] | None, int, int]:
    """Return which listings count (None: all), and how many are self-loops and of weight 0."""
    loops = sources == targets
    self_loops = int(np.count_nonzero(loops))
    zero_weights = 0
    if weights is not None:
        # A weight too small for float32 is 0 in the graph, so it is treated as 0 here.
        with np.errstate(over="ignore"):  # what is too large is named when directions are combined
            zeros = (weights.astype(np.float32) == 0) & ~loops
        zero_weights = int(np.count_nonzero(zeros))
        loops |= zeros
    return (~loops if self_loops or zero_weights else None), self_loops, zero_weights


def _directed_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[Any] | None,
    kept: NDArray[np.bool_] | None,
    n: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the distinct directed edges as sorted keys ``(low * n + high) * 2 + (source > target)``."""
    keys = np.minimum(sources, targets).astype(np.int64, copy=False)
    keys *= n - 1
    keys += sources  # low * (n - 1) + low + high, without a temporary array for high
    keys += targets
    keys <<= 1
    keys |= sources > targets
    if kept is not None:
        keys, weights = keys[kept], None if weights is None else weights[kept]
    return sum_repeats(keys, weights)


def sum_repeats(
    keys: NDArray[np.int64], weights: NDArray[Any] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the distinct keys, sorted, and the sums of their weights; without weights, sorts in place.

    Examples
    --------
    >>> sum_repeats(np.array([7, 3, 7]), np.array([1.0, 2.0, 0.5]))
    (array([3, 7]), array([2. , 1.5]))
    """
    if weights is None:
        keys.sort()
        is_first = _starts(keys)
        return (keys if is_first.all() else keys[is_first]), None
    order = np.argsort(keys, kind="stable")  # stable: sums do not depend on the sort's whims
    keys, weights = keys[order], weights[order]
    starts = np.flatnonzero(_starts(keys))
    sums = np.add.reduceat(weights, starts, dtype=np.float64) if len(starts) else np.zeros(0)
    return keys[starts], sums


def _starts(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the first of each run of equal keys."""
    starts = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=starts[1:])
    return starts


def combine_directions(
    keys: NDArray[np.int64],
    weights: NDArray[np.float64],
    backward: NDArray[np.int64],
    names: NDArray[Any],
    reciprocal: Reciprocal,
) -> NDArray[np.float32]:
    """Make one float32 weight of the two directions of each edge."""
    there, back = weights[backward - 1], weights[backward]
    if reciprocal == "sum":
        there = there + back
    elif reciprocal == "max":
        there = np.maximum(there, back)
    else:
        if reciprocal == "error":
            _require_equal(keys, there, back, backward, names)
        there = there / 2 + back / 2
    weights[backward - 1] = there
    weights = np.delete(weights, backward)
    if len(weights) and weights.max() > np.finfo(np.float32).max:
        low, high = divmod(int(np.delete(keys, backward)[weights.argmax()] >> 1), len(names))
        raise GraphFormatError(
            f"the weight of edge ({quoted(names[low])}, {quoted(names[high])}) is {weights.max():g}, "
            f"more than float32 holds ({np.finfo(np.float32).max:g}); scale the weights down"
        )
    return weights.astype(np.float32)


def _require_equal(
    keys: NDArray[np.int64],
    there: NDArray[np.float64],
    back: NDArray[np.float64],
    backward: NDArray[np.int64],
    names: NDArray[Any],
) -> None:
    """Refuse pairs whose two directions differ by more than float32 rounding."""
    unequal = np.flatnonzero(np.abs(there - back) > 1e-6 * np.maximum(there, back))
    if len(unequal):
        first = unequal[0]
        low, high = divmod(int(keys[backward[first]] >> 1), len(names))
        source, target = quoted(names[low]), quoted(names[high])
        raise GraphFormatError(
            f"{_count(len(unequal), 'edge')} listed in both directions with different weights, for example "
            f"({source}, {target}) with {there[first]:g} and ({target}, {source}) with "
            f"{back[first]:g}; pass reciprocal='sum', 'mean' or 'max' to say how to combine them"
        )


def _halves(keys: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return how many larger neighbours each node has (n,), and these; overwrites ``low * n + high``."""
    high = np.empty(len(keys), dtype=np.int32)
    np.remainder(keys, n, out=high, casting="unsafe")
    keys //= n
    return np.bincount(keys, minlength=n), high


def _symmetric(
    above: NDArray[np.int64], high: NDArray[np.int32], weights: NDArray[np.float32] | None
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32] | None]:
    """Return the CSR arrays of both directions of edges that are given from their smaller end."""
    n = len(above)
    carried = np.ones(len(high), np.int8) if weights is None else weights
    turned = csr_array((carried, high, pointers(above)), shape=(n, n)).tocsc()
    below = np.diff(turned.indptr)  # (n,) smaller neighbours
    # Each row is its smaller neighbours, then its larger ones, and both parts are sorted already.
    is_above = np.repeat(np.tile([False, True], n), np.column_stack((below, above)).ravel())  # (nnz,)
    return (
        pointers(above + below),
        _interleaved(is_above, high, turned.indices.astype(np.int32, copy=False)),
        None if weights is None else _interleaved(is_above, weights, turned.data),
    )


def _interleaved(is_above: NDArray[np.bool_], above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    """Lay the two parts out in row order."""
    whole = np.empty(len(is_above), dtype=above.dtype)
    whole[is_above] = above
    whole[~is_above] = below
    return whole


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(*counts: tuple[int, str]) -> str:
    return " and ".join(_count(number, noun) for number, noun in counts if number)
