"""Node attributes of NetworkX and igraph to and from feature columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from spinegraph.errors import GraphFormatError, MissingFeaturesError, ParameterError
from spinegraph.graph.align import Missing
from spinegraph.graph.checks import Features
from spinegraph.graph.names import first_few, quoted


def features_from_attributes(
    columns: Mapping[str, Sequence[Any]], names: NDArray[Any], missing: Missing
) -> Features:
    """Return features (n, f) from one sequence of numbers per attribute, None where a node lacks it.

    With ``missing="zero"`` a gap is 0 and the result is sparse.

    Examples
    --------
    >>> features_from_attributes({"age": [31, 45]}, np.array(["ann", "bob"]), "error").tolist()
    [[31.0], [45.0]]
    """
    if missing not in ("error", "zero"):
        raise ParameterError(f"missing must be one of 'error', 'zero'; got {missing!r}")
    numbers = np.zeros((len(columns), len(names)))
    is_given = np.zeros((len(columns), len(names)), dtype=bool)
    for place, (attribute, values) in enumerate(columns.items()):
        gaps = np.array([value is None for value in values], dtype=bool)
        if gaps.any() and missing == "error":
            raise MissingFeaturesError(
                f"{gaps.sum()} of {len(names)} nodes have no attribute {attribute!r}: "
                f"{first_few(names[gaps])}; pass missing='zero' to count it as 0 there"
            )
        for node, value in enumerate(values):
            if value is not None:
                numbers[place, node] = _number(value, attribute, names[node])
        is_given[place] = ~gaps
    if missing == "error":
        return numbers.T.astype(np.float32)
    column, row = np.nonzero(is_given & (numbers != 0))
    return csr_array(
        coo_array((numbers[column, row], (row, column)), shape=numbers.T.shape), dtype=np.float32
    )


def attributes_of(
    features: Features, feature_names: tuple[str, ...] | None
) -> tuple[list[str], Iterator[dict[str, float]]]:
    """Return attribute names, and each node's attributes; of sparse features the entries that are there.

    Examples
    --------
    >>> names, rows = attributes_of(np.array([[1.0, 0.0]], np.float32), None)
    >>> names, list(rows)
    (['feature_0', 'feature_1'], [{'feature_0': 1.0, 'feature_1': 0.0}])
    """
    columns = column_names(feature_names, features.shape[1])
    if isinstance(features, np.ndarray):
        return columns, (dict(zip(columns, row, strict=True)) for row in features.tolist())
    bounds = zip(features.indptr[:-1].tolist(), features.indptr[1:].tolist(), strict=True)
    return columns, (
        {
            columns[at]: value
            for at, value in zip(features.indices[a:b], features.data[a:b].tolist(), strict=True)
        }
        for a, b in bounds
    )


def column_names(feature_names: tuple[str, ...] | None, count: int) -> list[str]:
    """Return one name per feature column, made up where they are not known.

    Examples
    --------
    >>> column_names(None, 2)
    ['feature_0', 'feature_1']
    """
    names = [f"feature_{place}" for place in range(count)] if feature_names is None else list(feature_names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphFormatError(
            f"feature names must differ to become columns; {twice!r} is there more than once. "
            "Pass others with with_features(features, feature_names=...)"
        )
    return names


def _number(value: Any, attribute: str, name: Any) -> float:
    if not isinstance(value, int | float | np.number | np.bool_) or isinstance(value, np.complexfloating):
        raise GraphFormatError(
            f"attribute {attribute!r} of node {quoted(name)} is {value!r}, not a number; "
            "leave it out of feature_attributes, or encode it with FeatureEncoder"
        )
    return float(value)
