"""What a file was understood to hold, before it becomes a Graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinegraph.graph.encode import FeatureEncoder


@dataclass(frozen=True, eq=False)
class FileContents:
    """Edges as positions among names, and whatever else the file tells.

    Attributes
    ----------
    path : str
    names : int64 or object array (n,)
    edges : integer array (m, 2)
        Positions in 0 .. n-1, as listed: nothing is merged or dropped yet.
    weights : float32 array (m,), optional
    features : float32 CSR or dense array (n, f), optional
    feature_names : tuple of str (f,), optional
    encoder : FeatureEncoder, optional
        What made the features of a table.
    labels : array (n,) or (n, c), optional
    directed : bool
        Whether the file says that its edges go one way, or lists both ways of those that do not.
    notes : tuple of str
        What was understood, one sentence each.
    """

    path: str
    names: NDArray[Any]
    edges: NDArray[np.integer[Any]]
    weights: NDArray[np.float32] | None = None
    features: Any = None
    feature_names: tuple[str, ...] | None = None
    encoder: FeatureEncoder | None = None
    labels: NDArray[Any] | None = None
    directed: bool = False
    notes: tuple[str, ...] = ()
