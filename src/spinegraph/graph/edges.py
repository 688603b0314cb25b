"""From raw lists of edges to clean symmetric CSR arrays, with counts of what was merged or dropped."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse, vstack

from spinegraph.errors import (
    DirectedInputWarning,
    EdgeCleaningWarning,
    GraphFormatError,
    MissingFeaturesError,
    ParameterError,
    UnknownNodeError,
)
from spinegraph.graph.names import NameIndex, as_array, as_names, in_order_of_appearance, quoted

Features = Any  # csr_array (float32) or NDArray[np.float32], shape (n, f)
Reciprocal = Literal["error", "sum", "mean", "max"]
MAX_NODES = 2**31 - 1  # so that two node positions and a direction fit in one int64 key
GAPS_ALLOWED_BELOW = 2**24  # below this, integer ids may have any gaps


def read_listing(
    edges: Any, num_nodes: int | None = None, names: Iterable[Any] | None = None
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]], NDArray[Any]]:
    """Return sources and targets (positions, (m,)) and node names (n,) of listed edges.

    Integers are positions if ``num_nodes`` is given or no name is an integer; otherwise they are names.
    """
    pairs = as_pairs(edges, has_names=names is not None)
    known = None if names is None else as_names(names)
    if num_nodes is not None and (not isinstance(num_nodes, int | np.integer) or num_nodes < 1):
        raise GraphFormatError(f"num_nodes must be a whole number of at least 1; got {num_nodes!r}")
    if known is not None and num_nodes is not None and len(known) != num_nodes:
        raise GraphFormatError(f"num_nodes is {num_nodes} but {len(known)} names were given")
    if np.issubdtype(pairs.dtype, np.integer) and (
        known is None
        or num_nodes is not None
        or not (known.dtype == np.int64 or any(isinstance(name, int | np.integer) for name in known))
    ):
        given = len(known) if known is not None else num_nodes
        n = _require_in_range(pairs, None if given is None else int(given))
        pairs = pairs.astype(np.int64) if pairs.dtype == np.uint64 else pairs
        return pairs[:, 0], pairs[:, 1], np.arange(n) if known is None else known
    if known is None:
        if num_nodes is not None:
            raise GraphFormatError("num_nodes is for edges of positions; for named edges pass names=...")
        known, flat = in_order_of_appearance(pairs.ravel())
    else:
        try:
            flat = NameIndex(known).positions(pairs.ravel())
        except UnknownNodeError as error:
            raise GraphFormatError(f"edges: {error}. Add the missing names to names=...") from error
    return flat[::2], flat[1::2], known


def _require_in_range(pairs: NDArray[Any], n: int | None) -> int:
    """Return the number of nodes, and raise if a position is out of range."""
    if n is not None and n > MAX_NODES:
        raise GraphFormatError(f"a graph holds at most {MAX_NODES} nodes; got {n}")
    if not len(pairs):
        if not n:
            raise GraphFormatError("a graph needs at least one node; pass num_nodes=... or names=... too")
        return n
    largest = int(pairs.max())
    if n is None:
        n = largest + 1
        if (n > GAPS_ALLOWED_BELOW and n > 64 * pairs.size) or n > MAX_NODES:
            raise GraphFormatError(
                f"the largest node id is {largest}, with only {len(pairs)} edges; ids without names are "
                f"positions 0 .. num_nodes-1. Pass names=np.unique(edges) for names, or num_nodes={n}"
            )
    if largest >= n or int(pairs.min()) < 0:
        row, side = np.argwhere((pairs < 0) | (pairs >= n))[0].tolist()
        raise GraphFormatError(
            f"edges[{row}, {side}] is {int(pairs[row, side])}; with {n} nodes, positions are 0 .. {n - 1}"
        )
    return n


def as_pairs(edges: Any, *, has_names: bool) -> NDArray[Any]:
    """Return edges as an (m, 2) array of integers or objects."""
    if issparse(edges):
        raise GraphFormatError("edges must be pairs; for an adjacency matrix use Graph.from_scipy(matrix)")
    pairs = np.asarray(edges) if hasattr(edges, "__array__") else _pairs_of_rows(list(edges))
    if pairs.size == 0 and pairs.shape in ((0,), (0, 0), (0, 2)):
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        hint = "; pass edges.T" if pairs.ndim == 2 and pairs.shape[0] == 2 else ""
        raise GraphFormatError(f"edges must be (m, 2), source and target per row; got {pairs.shape}{hint}")
    if np.issubdtype(pairs.dtype, np.integer) or pairs.dtype == object:
        return pairs
    if pairs.dtype.kind in "US" or has_names:
        return pairs.astype(object)
    raise GraphFormatError(
        f"edges must hold integers (positions) or names; got dtype {pairs.dtype}. Convert with .astype(int)"
    )


def _pairs_of_rows(rows: list[Any]) -> NDArray[Any]:
    """Return rows as (m, 2): int64 if all are whole numbers, float64 if all are numbers, else objects."""
    try:
        # As objects, because in a text array one long name would make every entry as wide.
        pairs = np.array(rows, dtype=object)
    except ValueError:  # some names are sequences and others are not
        pairs = _row_by_row(rows)
    if rows and pairs.shape != (len(rows), 2):
        pairs = _row_by_row(rows)
    flat = as_array(pairs.ravel())
    if flat.dtype == np.int64:
        return flat.reshape(-1, 2)
    kinds = set(map(type, flat.tolist()))
    if kinds and all(issubclass(kind, int | float | np.number) for kind in kinds):
        return pairs.astype(np.float64)
    return pairs


def _row_by_row(rows: list[Any]) -> NDArray[Any]:
    """Return rows as an (m, 2) object array; names may be sequences themselves."""
    pairs = np.empty((len(rows), 2), dtype=object)
    for at, row in enumerate(rows):
        length = 0 if isinstance(row, str | bytes) or not hasattr(row, "__len__") else len(row)
        if length != 2:
            hint = "; pass weights separately, as weights=[...]" if length == 3 else ""
            raise GraphFormatError(f"edges[{at}] must be a pair (source, target); got {row!r}{hint}")
        pairs[at, 0], pairs[at, 1] = row
    return pairs


def matrix_entries(
    matrix: Any, weighted: bool | None = None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return sources, targets and weights of an adjacency matrix's entries, one per direction.

    Duplicate entries are summed. Weights are None unless ``weighted``, which is False by default if every
    non-zero entry is 1; stored zeros are then left out.
    """
    rows = csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    entries = rows.tocoo()
    sources, targets = entries.coords
    is_edge = entries.data != 0
    if (entries.data[is_edge] != 1).any() if weighted is None else weighted:
        return sources, targets, entries.data
    return sources[is_edge], targets[is_edge], None


def as_weights(
    weights: Any, sources: NDArray[Any], targets: NDArray[Any], names: NDArray[Any]
) -> NDArray[np.floating[Any]]:
    """Return one finite, non-negative weight per listed edge as a float array (m,)."""
    array = np.asarray(weights)
    if array.shape != (len(sources),):
        raise GraphFormatError(f"weights must be one per listed edge, ({len(sources)},); got {array.shape}")
    if array.dtype.kind not in "biufO":
        raise GraphFormatError(f"weights must be numbers; got dtype {array.dtype}")
    if array.dtype.kind != "f":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise GraphFormatError(f"weights must be numbers: {error}") from error
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        at = int(wrong.argmax())
        source, target = quoted(names[sources[at]]), quoted(names[targets[at]])
        found = f"weights[{at}] of edge ({source}, {target}) is {array[at].item()!r}"
        raise GraphFormatError(f"{found}; weights must be finite and not negative")
    return array


@dataclass(frozen=True)
class EdgeReport:
    """What cleaning did with the listed edges: ``listed`` is the sum of the next five counts."""

    listed: int
    edges: int
    self_loops: int = 0
    zero_weights: int = 0
    repeated: int = 0
    reciprocal: int = 0
    one_way: int = 0
    """Edges of directed input without an edge back; 0 for undirected input."""

    def __str__(self) -> str:
        """Return a summary in one sentence."""
        dropped = _listed((self.self_loops, "self-loop"), (self.zero_weights, "zero-weight listing"))
        merged = _listed((self.repeated, "repeat"), (self.reciprocal, "reciprocal listing"))
        one_way = _listed((self.one_way, "one-way edge"))
        found = (dropped, "dropped"), (merged, "merged"), (one_way, "made symmetric")
        clauses = [f"{counts} {what}" for counts, what in found if counts]
        head = f"{_count(self.listed, 'listed edge')} gave {_count(self.edges, 'edge')}"
        return f"{head}: {', '.join(clauses)}." if clauses else f"{head}."


class Rows(NamedTuple):
    """Rows of neighbours in CSR form."""

    indptr: NDArray[np.int64]  # (n + 1,)
    indices: NDArray[Any]  # (entries,) positions in the whole graph, sorted within rows
    weights: NDArray[np.float32] | None = None  # (entries,)
    outward: NDArray[np.float32] | None = None  # (entries,) of directed edges, as in ``Graph``
    inward: NDArray[np.float32] | None = None

    @property
    def values(self) -> dict[str, NDArray[np.float32]]:
        """Those of weights, outward and inward that are not None, by name."""
        found = zip(self._fields[2:], self[2:], strict=True)
        return {name: each for name, each in found if each is not None}

    def chosen(self, indptr: NDArray[np.int64], entries: NDArray[Any]) -> "Rows":
        """Return some of the entries, with ``indptr`` as their row pointers."""
        values = {name: each[entries] for name, each in self.values.items()}
        return Rows(indptr, self.indices[entries], **values)

    def with_directions(self, outward: NDArray[np.float32], inward: NDArray[np.float32]) -> "Rows":
        """Return the rows with other directed weights; the larger of the two is the weight."""
        weights = None if self.weights is None else np.maximum(outward, inward)
        return Rows(self.indptr, self.indices, weights, outward, inward)


def clean_edges(
    sources: NDArray[Any],
    targets: NDArray[Any],
    names: NDArray[Any],
    weights: NDArray[Any] | None = None,
    directed: bool = False,
    one_way: bool = False,
    reciprocal: Reciprocal = "error",
) -> tuple[Rows, EdgeReport]:
    """Merge listed edges into symmetric CSR arrays.

    Unweighted edges count once, however often and in whichever direction they are listed. Weights listed in
    one direction are summed; the two directions count once if they agree (to float32 precision) and are an
    error if not, unless ``reciprocal`` says how to combine them. Directed edges keep both directions, and the
    larger weight for undirected walks. Self-loops and edges of weight 0 are dropped. Positions and weights
    (m,) must be checked already; ``one_way`` says that the edges come from a directed graph, so that those
    made symmetric are counted.
    """
    check_directions(directed, reciprocal)
    n, listed = len(names), len(sources)
    if n > MAX_NODES:
        raise GraphFormatError(f"a graph holds at most {MAX_NODES} nodes; got {n}")
    dropped = sources == targets
    self_loops, zero_weights = int(np.count_nonzero(dropped)), 0
    if weights is not None:
        # A weight too small for float32 would be 0 in the graph, so it is treated as 0 here.
        with np.errstate(over="ignore"):  # weights that are too large are reported in _combined
            dropped |= weights.astype(np.float32) == 0
        zero_weights = int(np.count_nonzero(dropped)) - self_loops
    if self_loops or zero_weights:
        sources, targets = sources[~dropped], targets[~dropped]
        weights = None if weights is None else weights[~dropped]
    del dropped
    rows, one_direction = (
        _linked(sources, targets, n, directed)
        if weights is None
        else _weighted(sources, targets, names, weights, directed, reciprocal)
    )
    edges = len(rows.indices) // 2
    repeated = listed - self_loops - zero_weights - one_direction
    report = EdgeReport(listed, one_direction, self_loops, zero_weights, repeated)
    if not directed:
        both_ways = one_direction - edges
        lost = edges - both_ways if one_way else 0
        report = replace(report, edges=edges, reciprocal=both_ways, one_way=lost)
    return rows, report


def _linked(sources: NDArray[Any], targets: NDArray[Any], n: int, directed: bool) -> tuple[Rows, int]:
    """Return the rows of unweighted edges, and the number of distinct directed edges."""
    listed = coo_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(n, n))
    listed.has_canonical_format = True  # not so yet: duplicates are merged below, after sorting
    there = listed.tocsc().tocsr()
    there.sum_duplicates()
    there.data[:] = 1
    back = there.T.tocsr()
    back.data[:] = 2
    both = there + back
    flows = ((both.data & 1).astype(np.float32), (both.data >> 1).astype(np.float32)) if directed else ()
    return Rows(both.indptr.astype(np.int64), both.indices, None, *flows), there.nnz


def _weighted(
    sources: NDArray[Any],
    targets: NDArray[Any],
    names: NDArray[Any],
    weights: NDArray[Any],
    directed: bool,
    reciprocal: Reciprocal,
) -> tuple[Rows, int]:
    """Return the rows of weighted edges, and the number of distinct directed edges."""
    n = len(names)
    keys = np.minimum(sources, targets).astype(np.int64) * n + np.maximum(sources, targets)
    keys = keys << 1 | (sources > targets)
    keys, combined, flows, one_direction = merge_listings(keys, weights, names, directed, reciprocal)
    # First from the smaller end of each edge, with the edge's number from 1 on; then from both ends.
    starts = pointers(np.bincount(keys // n, minlength=n))
    upper = csr_array((np.arange(1, len(keys) + 1), keys % n, starts), shape=(n, n))
    both = upper + upper.T.tocsr()
    indptr, indices, edge = both.indptr.astype(np.int64), both.indices, both.data - 1
    values = None if combined is None else combined[edge]
    if flows is None:
        return Rows(indptr, indices, values), one_direction
    is_back = (np.repeat(np.arange(n), np.diff(indptr)) > indices).astype(np.int8)
    return Rows(indptr, indices, values, flows[edge, is_back], flows[edge, 1 - is_back]), one_direction


def check_directions(directed: bool, reciprocal: Reciprocal) -> None:
    """Raise if the rule for two directions is unknown, or given although both are kept."""
    if reciprocal not in ("error", "sum", "mean", "max"):
        raise ParameterError(f"reciprocal must be one of 'error', 'sum', 'mean', 'max'; got {reciprocal!r}")
    if directed and reciprocal != "error":
        raise ParameterError(f"reciprocal={reciprocal!r} joins directions that directed=True keeps; pass one")


def merge_listings(
    keys: NDArray[np.int64],
    weights: NDArray[Any] | None,
    names: NDArray[Any],
    directed: bool,
    reciprocal: Reciprocal,
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None, NDArray[np.float32] | None, int]:
    """Merge edges that are listed more than once.

    The last bit of ``keys`` is the direction. Returns the distinct keys without it, sorted; their weights; if
    ``directed``, the weights (m, 2) from the first node to the second and back, or 1 and 0 if unweighted; and
    the number of distinct keys with the direction.
    """
    keys, sums = sum_repeats(keys, weights)
    num_listed, flows, combined = len(keys), None, None
    # Keys that differ in the last bit only are the two directions of one edge.
    backward = np.flatnonzero((keys[1:] ^ keys[:-1]) == 1) + 1
    if directed:
        is_first = np.ones(num_listed, np.int64)
        is_first[backward] = 0
        flows = np.zeros((num_listed - len(backward), 2), np.float32)
        with np.errstate(over="ignore"):  # weights that are too large are reported in _combined
            flows[np.cumsum(is_first) - 1, keys & 1] = 1 if sums is None else sums
    if sums is not None:
        combined = _combined(keys, sums, backward, names, "max" if directed else reciprocal)
    keys = np.delete(keys, backward) if len(backward) else keys
    keys >>= 1
    return keys, combined, flows, num_listed


def _combined(
    keys: NDArray[np.int64], sums: Any, backward: NDArray[Any], names: NDArray[Any], reciprocal: Reciprocal
) -> NDArray[np.float32]:
    """Combine the two directions of each edge into one float32 weight; the second is at ``backward``."""

    def ends(index: int) -> tuple[str, str]:
        low, high = divmod(int(keys[index] >> 1), len(names))
        return quoted(names[low]), quoted(names[high])

    there, back = sums[backward - 1], sums[backward]
    if reciprocal == "error":
        unequal = np.flatnonzero(np.abs(there - back) > 1e-6 * np.maximum(there, back))  # float32 rounding
        for first in unequal[:1]:
            source, target = ends(backward[first])
            shown = (
                f"({source}, {target}) with {there[first]:g} and ({target}, {source}) with {back[first]:g}"
            )
            way_out = "reciprocal='sum', reciprocal='mean' or reciprocal='max' to combine them"
            message = f"edges are listed in both directions with different weights, such as {shown}"
            raise GraphFormatError(f"{message}; pass {way_out}, or directed=True")
    combine = {"sum": np.add, "max": np.maximum}.get(reciprocal, lambda one, other: one / 2 + other / 2)
    sums[backward - 1] = combine(there, back)
    sums[backward] = 0
    if len(sums) and sums.max() > np.finfo(np.float32).max:
        source, target = ends(int(sums.argmax()))
        rule = f"more than float32 can hold ({np.finfo(np.float32).max:g}); scale the weights down"
        raise GraphFormatError(f"the weight of edge ({source}, {target}) is {sums.max():g}, {rule}")
    return np.delete(sums, backward).astype(np.float32)


def sum_repeats(
    keys: NDArray[np.int64], weights: NDArray[Any] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the distinct keys, sorted, and the sums of their weights; without weights, sorts in place."""
    if weights is None:
        keys.sort()
        is_first = _starts(keys)
        return (keys if is_first.all() else keys[is_first]), None
    order = np.argsort(keys, kind="stable")  # stable, so that sums are the same on every machine
    keys, weights = keys[order], weights[order]
    starts = np.flatnonzero(_starts(keys))
    sums = np.add.reduceat(weights, starts, dtype=np.float64) if len(starts) else np.zeros(0)
    return keys[starts], sums


def _starts(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the first of each run of equal keys."""
    starts = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=starts[1:])
    return starts


def warn_of_losses(report: EdgeReport, stacklevel: int) -> None:
    """Warn about losses that a user may not expect: directions, self-loops and edges of weight 0."""
    if report.one_way:
        message = f"{_count(report.one_way, 'directed edge')} made symmetric; directed=True keeps directions"
        warnings.warn(message, DirectedInputWarning, stacklevel=stacklevel + 1)
    dropped = _listed((report.self_loops, "self-loop"), (report.zero_weights, "zero-weight listing"))
    if dropped:
        message = f"{dropped} dropped of {_count(report.listed, 'listed edge')}"
        warnings.warn(message, EdgeCleaningWarning, stacklevel=stacklevel + 1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(*counts: tuple[int, str]) -> str:
    return " and ".join(_count(number, noun) for number, noun in counts if number)


def check_adjacency(given: Rows, names: NDArray[Any]) -> None:
    """Raise unless CSR arrays are those of a clean graph."""
    n, (indptr, indices, weights, outward, inward) = len(names), given
    if n == 0:
        raise GraphFormatError("a graph needs at least one node")
    try:
        if indices.dtype.kind not in "iu" or indptr.shape != (n + 1,):
            raise ValueError(f"{n} rows of integers; got {len(indptr) - 1} of {indices.dtype}")
        matrix = csr_array((np.ones(indices.shape, np.int8), indices, indptr), shape=(n, n))
        matrix.check_format(full_check=True)
    except ValueError as fault:
        raise GraphFormatError(f"indptr (n + 1,) and indices must form a CSR matrix: {fault}") from fault
    degrees = np.diff(indptr)
    if weights is not None:
        if weights.shape != indices.shape:
            raise GraphFormatError(f"weights must be {indices.shape} like indices; got {weights.shape}")
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise GraphFormatError("weights must be finite and > 0; Graph.from_edges drops edges of weight 0")
    rows = np.repeat(np.arange(n), degrees)
    wrong = rows == indices
    wrong[1:] |= (rows[1:] == rows[:-1]) & (indices[1:] <= indices[:-1])
    if wrong.any():
        rule = "must be sorted, without repeats and without the node itself"
        row = f"the row of node {quoted(names[rows[wrong.argmax()]])}"
        raise GraphFormatError(f"{row} {rule}; Graph.from_edges cleans any list of edges")
    values = np.ones(len(indices), np.int8) if weights is None else weights
    transposed = csr_array((values, indices, indptr), shape=(n, n)).tocsc()
    same = np.array_equal(transposed.indptr, indptr) and np.array_equal(transposed.indices, indices)
    if not same or not np.array_equal(transposed.data, values):
        rule = "the arrays must be symmetric, edge (u, v) as well as (v, u) with the same weight"
        raise GraphFormatError(f"{rule}; Graph.from_scipy(matrix) makes directed input symmetric")
    if outward is None and inward is None:
        return
    if outward is None or inward is None or not outward.shape == inward.shape == indices.shape:
        raise GraphFormatError(f"outward and inward must both have shape {indices.shape} like indices")
    transposed = csr_array((outward, indices, indptr), shape=(n, n)).tocsc()
    largest = np.maximum(outward, inward)
    is_right = (outward >= 0) & (inward >= 0) & (largest == (1 if weights is None else weights))
    if not is_right.all() or not np.array_equal(transposed.data, inward):
        raise GraphFormatError(
            "outward must hold the weight of the edge to each neighbour and inward that of the edge back, 0 "
            "if there is none; the larger one must equal the weight, or 1 without weights"
        )


def as_features(features: Any, names: NDArray[Any] | None = None) -> Features:
    """Return features as float32, sparse as csr_array and dense as C-contiguous, shape (n, f).

    Without ``names`` any number of rows is allowed.
    """
    try:
        shape = features.shape if hasattr(features, "shape") else np.shape(features)
    except ValueError as fault:  # lists of unequal lengths
        raise GraphFormatError("features must be (n, f); the rows have different lengths") from fault
    if len(shape) != 2:
        hint = "; for one column pass features.reshape(-1, 1)" if len(shape) == 1 else ""
        raise GraphFormatError(f"features must have shape (n, f), one row per node; got shape {shape}{hint}")
    if names is not None and shape[0] != len(names):
        raise MissingFeaturesError(f"{shape[0]} feature rows for {len(names)} nodes; pass one each, in order")
    array = np.asarray(features) if not issparse(features) else features
    if array.dtype.kind not in "biuf":
        way_out = "Encode tables with text, dates or gaps with FeatureEncoder first"
        raise GraphFormatError(f"features must be real numbers; got dtype {array.dtype}. {way_out}")
    with np.errstate(over="ignore"):  # overflow to infinity is reported below
        found: Any = csr_array(array, dtype=np.float32) if issparse(features) else None
        found = np.ascontiguousarray(array, dtype=np.float32) if found is None else found
    if issparse(found):
        try:
            found.check_format(full_check=True)
        except ValueError as error:
            raise GraphFormatError(f"features are not a valid sparse matrix: {error}") from error
        if not found.has_canonical_format:
            found = found.copy()
            found.sum_duplicates()
    values = found.data if issparse(found) else found
    if not all(np.isfinite(some).all() for some in pieces(values, 2**22)):
        row, column = np.argwhere(~np.isfinite(values))[0][[0, -1]].tolist()
        if issparse(found):
            row, column = int(np.searchsorted(found.indptr, row, side="right")) - 1, int(found.indices[row])
        value = found[row, column] if issparse(found) else array[row, column]
        node = "" if names is None else f" (node {quoted(names[row])})"
        raise GraphFormatError(
            f"features[{row}, {column}]{node} is {value}; features must be finite float32 numbers. "
            "Fill gaps first, or pass a table, in which FeatureEncoder fills and marks gaps"
        )
    return found


def as_feature_names(names: Iterable[Any] | None, features: Features | None) -> tuple[str, ...] | None:
    """Return column names as a tuple of str, one per feature column."""
    if names is None:
        return None
    if features is None:
        raise GraphFormatError("feature_names were given without features; pass features=... too")
    listed = tuple(map(str, names))
    if len(listed) != features.shape[1]:
        raise GraphFormatError(f"got {len(listed)} feature_names for {features.shape[1]} feature columns")
    return listed


def rows_at(features: Features, positions: NDArray[Any]) -> Features:
    """Return the feature rows at some positions; for a few, much quicker than indexing by SciPy."""
    if not issparse(features):
        return features[positions]
    entries = row_entries(features.indptr, positions)
    indptr = pointers(features.indptr[positions + 1] - features.indptr[positions])
    parts = features.data[entries], features.indices[entries], indptr
    return csr_array(parts, shape=(len(positions), features.shape[1]))


def stacked(blocks: Sequence[Features]) -> Features:
    """Stack feature rows; if one block is sparse, the result is."""
    if any(issparse(block) for block in blocks):
        return csr_array(vstack([csr_array(block) for block in blocks], format="csr"))
    return np.concatenate(blocks)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array; names of a store are returned as they are."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def frozen_features(features: Features | None) -> Features | None:
    """Return features over read-only views of the same arrays."""
    if features is None or isinstance(features, np.ndarray):
        return None if features is None else frozen(features)
    view = copy(features)  # the constructor could copy the index arrays into another dtype
    view.data, view.indices, view.indptr = frozen(view.data), frozen(view.indices), frozen(view.indptr)
    return view


def pieces(array: Any, entries: int = 2**20) -> Iterator[Any]:
    """Yield rows in pieces of about ``entries`` values, since a memory map may be larger than memory."""
    rows = max(entries // max(int(np.prod(array.shape[1:])), 1), 1)
    for start in range(0, len(array), rows):
        yield array[start : start + rows]


def row_entries(indptr: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices of the entries of some CSR rows, row by row."""
    starts, lengths = indptr[rows], indptr[rows + 1] - indptr[rows]
    shifts = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    entries: NDArray[np.int64] = shifts + np.arange(len(shifts))
    return entries


def pointers(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the CSR ``indptr`` for rows of the given lengths."""
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def row_sums(indptr: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.float64]:
    """Return the sum of each row's weights, (n,), or the number of entries without weights."""
    lengths = np.diff(indptr)
    if weights is None:
        return lengths.astype(np.float64)
    sums = np.zeros(len(lengths))
    filled = np.flatnonzero(lengths)  # for an empty row, reduceat would read the next one
    if len(filled):
        sums[filled] = np.add.reduceat(weights, indptr[filled], dtype=np.float64)
    return sums


def entry_counts(indptr: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of weights above 0 in each row, (n,)."""
    return frozen(row_sums(indptr, weights > 0).astype(np.int64))
