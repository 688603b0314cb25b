"""Nodes and edges that join an overlay or leave it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import GraphFormatError, MissingFeaturesError
from spinegraph.graph.added import AddedFeatures
from spinegraph.graph.checks import as_features, as_weights
from spinegraph.graph.edges import Reciprocal, clean_edges, warn_of_losses
from spinegraph.graph.listing import as_pairs
from spinegraph.graph.names import as_array, as_names, concatenated, first_few, quoted, require_known
from spinegraph.graph.patch import Rows, patched, rows_of, with_rows, without_nodes
from spinegraph.graph.rows import pointers

if TYPE_CHECKING:
    from spinegraph.graph.overlay import Overlay


def grown(
    overlay: "Overlay",
    names: Iterable[Any],
    edges: Any,
    features: Any,
    weights: Any,
    reciprocal: Reciprocal,
    *,
    stacklevel: int,
) -> "Overlay":
    """Return an overlay with more nodes and edges, as :meth:`Overlay.add` says.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> base = Graph.from_edges([(0, 1)]).overlay([], [])
    >>> grown(base, [2], [(2, 0)], None, None, "error", stacklevel=1).touched.tolist()
    [0, 2]
    """
    new = as_names(names)
    known = new[overlay.find(new) >= 0]
    if len(known):
        raise GraphFormatError(f"{len(known)} new names are in the graph already: {first_few(known)}")
    pairs = as_pairs(edges, has_names=True)
    total = len(overlay) + len(new)
    ends = overlay.find(pairs.ravel(), dict(zip(new.tolist(), range(len(overlay), total), strict=True)))
    require_known(ends, pairs.ravel(), overlay.base.names, "edges: ")
    touched = np.union1d(ends, np.arange(len(overlay), total))
    sources, targets = np.searchsorted(touched, ends).reshape(-1, 2).T
    old = as_array(overlay.names_at(touched[touched < len(overlay)]))
    touched_names = concatenated(old, new)
    _require_fitting(overlay, weights, len(sources))
    numbers = None
    if overlay.base.weights is not None:
        numbers = as_weights(() if weights is None else weights, sources, targets, touched_names)
    clean = clean_edges(sources, targets, touched_names, numbers, reciprocal=reciprocal)
    rows = _grown_features(overlay, features, new)
    patch = patched(overlay.base, overlay.patch, touched, clean, total)
    warn_of_losses(clean.report, stacklevel=stacklevel + 1)
    added = overlay.added.plus(new.tolist())
    return replace(overlay, added=added, patch=patch, added_rows=rows, touched=touched, report=clean.report)


def shrunk(overlay: "Overlay", names: Iterable[Any], edges: Any) -> "Overlay":
    """Return an overlay without some nodes and edges, as :meth:`Overlay.remove` says.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> shrunk(Graph.from_edges([(0, 1), (1, 2)]).overlay([], []), [0], []).touched.tolist()
    [1]
    """
    gone, total = np.unique(overlay.positions(names)), len(overlay)
    ends = overlay.positions(as_pairs(edges, has_names=True).ravel()).reshape(-1, 2)
    near = rows_of(overlay.base, overlay.patch, gone).indices
    touched = np.setdiff1d(np.concatenate((near, ends.ravel())).astype(np.int64), gone)
    rows = rows_of(overlay.base, overlay.patch, touched)
    sources = np.repeat(touched, np.diff(rows.indptr))
    keys, there = sources * total + rows.indices, ends[:, 0] * total + ends[:, 1]
    missing = ends[~np.isin(ends, gone).any(axis=1) & ~np.isin(there, keys)]
    if len(missing):
        source, target = overlay.names_at(missing[0])
        raise GraphFormatError(
            f"{len(missing)} edges to remove are not in the graph, for example "
            f"({quoted(source)}, {quoted(target)}); remove edges that are there"
        )
    dropped = np.concatenate((there, ends[:, 1] * total + ends[:, 0]))
    kept = ~(np.isin(rows.indices, gone) | np.isin(keys, dropped))
    lengths = np.bincount(np.searchsorted(touched, sources[kept]), minlength=len(touched))
    weights = None if rows.weights is None else rows.weights[kept]
    left = Rows(pointers(lengths), rows.indices[kept], weights)
    patch = without_nodes(overlay.patch, gone) if len(gone) else overlay.patch
    patch = with_rows(overlay.base, patch, touched, left, total)
    return replace(overlay, patch=patch, touched=touched, report=None)


def _require_fitting(overlay: "Overlay", weights: Any, num_edges: int) -> None:
    if overlay.base.weights is None and weights is not None:
        raise GraphFormatError("the graph is unweighted; leave weights out, or build it with weights")
    if overlay.base.weights is not None and weights is None and num_edges:
        raise GraphFormatError("the graph is weighted; pass weights=..., one per added edge")


def _grown_features(overlay: "Overlay", features: Any, new: NDArray[Any]) -> AddedFeatures | None:
    present, width = (
        overlay.added_rows,
        0 if overlay.base.features is None else overlay.base.features.shape[1],
    )
    if present is None:
        if features is not None:
            raise MissingFeaturesError("the graph has no features; leave features out here too")
        return None
    if features is None:
        if len(new):
            raise MissingFeaturesError(
                f"the graph has {width} features per node; "
                f"pass features=... with a row for each of the {len(new)} new nodes"
            )
        return present
    rows = as_features(features, new)
    if rows.shape[1] != width:
        raise MissingFeaturesError(
            f"the graph has {width} features per node, new nodes {rows.shape[1]}; "
            "pass the same columns in the same order"
        )
    return present.plus(rows)
