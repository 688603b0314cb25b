"""Training graphs as plain arrays of a model folder, and back."""

from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.errors import GraphFormatError, ModelFormatError
from spinegraph.graph.edges import EdgeReport
from spinegraph.graph.graph import Graph
from spinegraph.graph.names import first_few, is_range

Arrays = Mapping[str, NDArray[Any]]


def graph_arrays(graph: Graph) -> dict[str, NDArray[Any]]:
    """Return all that a graph holds as arrays of numbers.

    Text is kept as UTF-8 bytes and where each piece ends; names 0 .. n-1 are not kept.

    Examples
    --------
    >>> sorted(graph_arrays(Graph.from_edges([("ann", "bob")])))
    ['indices', 'indptr', 'names.ends', 'names.text', 'report']
    """
    arrays = {"indptr": graph.indptr, "indices": graph.indices}
    if graph.weights is not None:
        arrays["weights"] = graph.weights
    if graph.names.dtype != np.int64:
        arrays |= _named(graph.names.tolist())
    elif not is_range(graph.names):
        arrays["names"] = graph.names
    features: Any = graph.features
    if issparse(features):
        arrays |= {f"features.{part}": getattr(features, part) for part in ("data", "indices", "indptr")}
        arrays["features.shape"] = np.array(features.shape, dtype=np.int64)
    elif features is not None:
        arrays["features"] = features
    if graph.feature_names is not None:
        arrays |= _packed("feature_names", list(graph.feature_names))
    if graph.report is not None:
        arrays["report"] = np.array(astuple(graph.report), dtype=np.int64)
    return arrays


def graph_of(arrays: Arrays) -> Graph:
    """Build the graph of ``graph_arrays``; arrays that are not those of a graph raise a SpineError.

    Examples
    --------
    >>> graph_of(graph_arrays(Graph.from_edges([("ann", "bob")], weights=[2])))
    Graph(2 nodes, 1 edge, weighted, names 'ann', 'bob')
    """
    columns = _unpacked(arrays, "feature_names") if "feature_names.ends" in arrays else None
    return Graph(
        _required(arrays, "indptr", "i"),
        _required(arrays, "indices", "i"),
        arrays.get("weights"),
        _names(arrays),  # type: ignore[arg-type]
        _features(arrays),
        None if columns is None else tuple(columns),
        _report(arrays),
    )


def _report(arrays: Arrays) -> EdgeReport | None:
    if "report" not in arrays:
        return None
    counts, wanted = arrays["report"], len(fields(EdgeReport))
    if counts.dtype != np.int64 or counts.shape != (wanted,) or counts.min() < 0:
        raise ModelFormatError(f"report must be {wanted} counts; got {counts.dtype} {counts.shape}")
    return EdgeReport(*counts.tolist())


def _named(names: list[Any]) -> dict[str, NDArray[Any]]:
    is_whole = [isinstance(name, int | np.integer) and not isinstance(name, bool) for name in names]
    other = [
        name for name, whole in zip(names, is_whole, strict=True) if not (whole or isinstance(name, str))
    ]
    if other:
        raise GraphFormatError(
            f"in files node names are text or whole numbers; got {first_few(other, 3)}. Give the graph such "
            "names before fitting, graph.relabel(map(str, graph.names)), or save with data=False"
        )
    arrays = _packed("names", list(map(str, names)))
    if any(is_whole):
        arrays["names.whole"] = np.array(is_whole, dtype=np.uint8)
    return arrays


def _names(arrays: Arrays) -> Any:
    if "names.ends" not in arrays:
        return arrays.get("names")
    names: list[Any] = _unpacked(arrays, "names")
    whole = arrays.get("names.whole", np.zeros(len(names), np.uint8))
    if whole.shape != (len(names),):
        raise ModelFormatError(f"names.whole must hold one mark per name; got shape {whole.shape}")
    return [int(name) if marked else name for name, marked in zip(names, whole.tolist(), strict=True)]


def _features(arrays: Arrays) -> Any:
    if "features.indptr" not in arrays:
        return arrays.get("features")
    data, indices, indptr, shape = (
        _required(arrays, f"features.{part}", kinds)
        for part, kinds in (("data", "f"), ("indices", "i"), ("indptr", "i"), ("shape", "i"))
    )
    if shape.shape != (2,) or (shape < 0).any():
        raise ModelFormatError(f"features.shape must be two numbers, 0 or more; got {shape.tolist()!r:.60}")
    rows, columns = shape.tolist()
    # Checked before SciPy's compiled code walks along them.
    rises = len(indptr) == rows + 1 and indptr[0] == 0 and (indptr[1:] >= indptr[:-1]).all()
    if not rises or not indptr[-1] == len(data) == len(indices):
        raise ModelFormatError(f"features.indptr must rise from 0 to {len(data)} in {rows} steps")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise ModelFormatError(f"features.indices must lie in 0 .. {columns - 1}")
    return csr_array((data, indices, indptr), shape=(rows, columns))


def _packed(key: str, texts: list[str]) -> dict[str, NDArray[Any]]:
    # A lone surrogate is legal in a Python str, so it must survive.
    pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return {f"{key}.text": np.frombuffer(b"".join(pieces), np.uint8), f"{key}.ends": ends}


def _unpacked(arrays: Arrays, key: str) -> list[str]:
    text, ends = _required(arrays, f"{key}.text", "u"), _required(arrays, f"{key}.ends", "i")
    bounds = np.concatenate([[0], ends])
    if text.dtype != np.uint8 or (np.diff(bounds) < 0).any() or bounds[-1] != len(text):
        raise ModelFormatError(f"{key}.ends must ascend to the length of {key}.text, {len(text)} bytes")
    raw = text.tobytes()
    return [
        raw[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _required(arrays: Arrays, key: str, kinds: str) -> NDArray[Any]:
    found = arrays.get(key)
    if found is None or found.ndim != 1 or found.dtype.kind not in kinds:
        what = "none" if found is None else f"{found.dtype} {found.shape}"
        raise ModelFormatError(
            f"{key} must be a row of {'floats' if kinds == 'f' else 'integers'}; got {what}"
        )
    return found
