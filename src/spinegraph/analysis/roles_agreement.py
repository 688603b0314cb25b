"""How far roles agree with labels that somebody knows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.errors import ParameterError


@dataclass(frozen=True)
class Agreement:
    """Roles beside labels.

    Attributes
    ----------
    nodes : int
        Those that have a label.
    nmi, ari : float
        Normalised mutual information and adjusted Rand index: 0 by chance, 1 for the same groups.
    labels : tuple of str
        Most frequent first.
    counts : tuple of tuples of int
        Nodes of each label (rows) in each role (columns).
    """

    nodes: int
    nmi: float
    ari: float
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def agreement(roles: NDArray[np.int64], labels: NDArray[Any], count: int | None = None) -> Agreement:
    """Compare roles with labels.

    Parameters
    ----------
    roles : int array (n,)
    labels : array (n,)
        None, -1 or "" where unknown.
    count : int, optional
        How many roles there are; the largest that occurs by default.

    Examples
    --------
    >>> agreement(np.array([0, 0, 1, 1]), np.array(["a", "a", "b", None], dtype=object)).ari
    1.0
    """
    if np.ndim(labels) != 1 or len(labels) != len(roles):
        raise ParameterError(f"labels must be one per node, {len(roles)}; got shape {np.shape(labels)}")
    known = np.array([value not in (None, -1, "") for value in np.asarray(labels, dtype=object).tolist()])
    if not known.any():
        raise ParameterError("no node has a label; check that the names of the labels are those of the nodes")
    texts = np.array([str(value) for value in np.asarray(labels, dtype=object)[known].tolist()])
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    told = roles[known]
    names, codes, sizes = np.unique(texts, return_inverse=True, return_counts=True)
    count = int(roles.max()) + 1 if count is None else count
    table = np.zeros((len(names), count), dtype=np.int64)
    np.add.at(table, (codes, told), 1)
    order = np.argsort(-sizes, kind="stable")
    return Agreement(
        int(known.sum()),
        float(normalized_mutual_info_score(texts, told)),
        float(adjusted_rand_score(texts, told)),
        tuple(names[order].tolist()),
        tuple(tuple(row) for row in table[order].tolist()),
    )
