"""Reads what a user passes as edges: pairs of positions or pairs of names."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError, UnknownNodeError
from spinegraph.graph.edges import MOST_NODES
from spinegraph.graph.names import NameIndex, as_names, in_order_of_appearance

ROOMY = 2**24  # up to here, node ids may leave any gaps


def read_listing(
    edges: Any, num_nodes: int | None = None, names: Iterable[Any] | None = None
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]], NDArray[Any]]:
    """Return sources, targets (positions, (m,)) and node names (n,) of listed edges.

    Integers are positions when ``num_nodes`` is given or when no name is an integer; else they are names.

    Examples
    --------
    >>> read_listing([("ann", "bob")], names=["bob", "ann"])
    (array([1]), array([0]), array(['bob', 'ann'], dtype=object))
    """
    pairs = as_pairs(edges, has_names=names is not None)
    known = None if names is None else as_names(names)
    if num_nodes is not None and (not isinstance(num_nodes, int | np.integer) or num_nodes < 1):
        raise GraphFormatError(f"num_nodes must be a whole number of at least 1; got {num_nodes!r}")
    if known is not None and num_nodes is not None and len(known) != num_nodes:
        raise GraphFormatError(f"num_nodes is {num_nodes} but {len(known)} names were given")
    if np.issubdtype(pairs.dtype, np.integer) and (
        known is None or num_nodes is not None or not _any_whole(known)
    ):
        given = len(known) if known is not None else num_nodes
        n = _require_in_range(pairs, None if given is None else int(given))
        pairs = pairs.astype(np.int64) if pairs.dtype == np.uint64 else pairs
        return pairs[:, 0], pairs[:, 1], np.arange(n) if known is None else known
    if known is None:
        if num_nodes is not None:
            raise GraphFormatError(
                "num_nodes goes with edges between positions; for named edges pass names=..."
            )
        known, flat = in_order_of_appearance(pairs.ravel())
    else:
        flat = _positions(known, pairs)
    return flat[::2], flat[1::2], known


def as_pairs(edges: Any, *, has_names: bool) -> NDArray[Any]:
    """Return edges as an (m, 2) array of integers or objects.

    Examples
    --------
    >>> as_pairs([("ann", 3)], has_names=False)
    array([['ann', 3]], dtype=object)
    """
    if issparse(edges):
        raise GraphFormatError("edges must be pairs; for an adjacency matrix use Graph.from_scipy(matrix)")
    pairs = np.asarray(edges) if hasattr(edges, "__array__") else _pairs_of_rows(list(edges))
    if pairs.size == 0 and pairs.shape in ((0,), (0, 0), (0, 2)):
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        hint = "; pass edges.T" if pairs.ndim == 2 and pairs.shape[0] == 2 else ""
        raise GraphFormatError(
            f"edges must have shape (m, 2), a source and a target a row; got {pairs.shape}{hint}"
        )
    if np.issubdtype(pairs.dtype, np.integer) or pairs.dtype == object:
        return pairs
    if pairs.dtype.kind in "US" or has_names:
        return pairs.astype(object)
    raise GraphFormatError(
        f"edges must hold integers (positions) or names; got dtype {pairs.dtype}. "
        "Convert whole numbers with .astype(int)"
    )


def matrix_entries(
    matrix: Any, weighted: bool | None = None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return sources, targets and weights of an adjacency matrix's entries, each direction one.

    What SciPy stores several times at one place adds. Weights are None unless ``weighted``, by default
    unless every entry other than 0 is 1; then entries of 0 that are stored are left out.

    Examples
    --------
    >>> matrix_entries(np.array([[0, 1], [1, 0]]))
    (array([0, 1]...), array([1, 0]...), None)
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


def _pairs_of_rows(rows: list[Any]) -> NDArray[Any]:
    """Return listed rows as (m, 2): int64 where all are whole numbers, float64 where all are numbers."""
    try:
        # Objects: as text, one long name would make every entry as wide.
        pairs = np.array(rows, dtype=object)
    except ValueError:  # names that are sequences, beside some that are not
        pairs = _row_by_row(rows)
    if rows and pairs.shape != (len(rows), 2):
        pairs = _row_by_row(rows)
    kinds = set(map(type, pairs.ravel().tolist()))
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        with suppress(OverflowError):  # such numbers can be names still
            return pairs.astype(np.int64)
    if kinds and all(issubclass(kind, int | float | np.number) for kind in kinds):
        return pairs.astype(np.float64)
    return pairs


def _row_by_row(rows: list[Any]) -> NDArray[Any]:
    """Return an (m, 2) object array of rows whose names may be sequences themselves."""
    pairs = np.empty((len(rows), 2), dtype=object)
    for place, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) != 2:
            hint = (
                "; pass weights apart, as weights=[...]" if hasattr(row, "__len__") and len(row) == 3 else ""
            )
            raise GraphFormatError(f"edges[{place}] must be a pair (source, target); got {row!r}{hint}")
        pairs[place, 0], pairs[place, 1] = row
    return pairs


def _any_whole(names: NDArray[Any]) -> bool:
    return names.dtype == np.int64 or any(isinstance(name, int | np.integer) for name in names)


def _require_in_range(pairs: NDArray[Any], n: int | None) -> int:
    """Return the number of nodes after a check that every position is one of theirs."""
    if n is not None and n > MOST_NODES:
        raise GraphFormatError(f"a graph holds at most {MOST_NODES} nodes; got {n}")
    if not len(pairs):
        if not n:
            raise GraphFormatError(
                "a graph has at least one node; pass num_nodes=... or names=... beside empty edges"
            )
        return n
    largest = int(pairs.max())
    if n is None:
        n = largest + 1
        if (n > ROOMY and n > 64 * pairs.size) or n > MOST_NODES:
            raise GraphFormatError(
                f"the largest node id is {largest}, with only {len(pairs)} edges; without names, ids are "
                f"positions 0 .. num_nodes-1. Pass names=np.unique(edges) to read them as names, "
                f"or num_nodes={n}"
            )
    if largest >= n or int(pairs.min()) < 0:
        place, side = np.argwhere((pairs < 0) | (pairs >= n))[0].tolist()
        raise GraphFormatError(
            f"edges[{place}, {side}] is {int(pairs[place, side])}; with {n} nodes, positions are 0 .. {n - 1}"
        )
    return n


def _positions(names: NDArray[Any], pairs: NDArray[Any]) -> NDArray[np.int64]:
    flat = pairs.ravel()
    try:
        return NameIndex(names).positions(flat)
    except UnknownNodeError as error:
        raise GraphFormatError(f"edges: {error}. Add what is missing to names=...") from error
