"""RootedPageRank: where a node stands, as the values and nodes nearest to it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from spinegraph.kernels.products import operator_rows
from spinegraph.kernels.threads import run_blocks

_ROWS_PER_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class RootedPageRank:
    """The k largest rooted-PageRank values of each root, and the nodes that hold them.

    Attributes
    ----------
    nodes : int32 array (r, k)
        One choice of the nodes, by descending value; -1 where ``weights`` is 0.
    weights : float32 array (r, k)
        Their values, descending, each row scaled to sum 1. The same whatever the ties.
    mass : float64 array (r,)
        Sum of each row before scaling.
    num_nodes : int
        Nodes of the graph, n.
    kept : int32 array (r,)
        How many leading places the operator takes as they are.
    tied_indptr : int64 array (r + 1,)
    tied_nodes : int32 array
        Per row, the nodes that tie at the k-th place and share the places after ``kept``.
    unassigned : float64 array (r,), optional
        By push: the probability mass left over. No value is too large, none too small by more than this.

    Examples
    --------
    >>> from spinegraph import Graph
    >>> from spinegraph.structure.rooted_pagerank import rooted_pagerank
    >>> star = Graph.from_edges([(0, 1), (0, 2), (0, 3)])
    >>> profile = rooted_pagerank(star, k=2)
    >>> profile.weights.shape, profile.operator().shape
    ((4, 2), (4, 4))
    >>> profile.operator().toarray()[0].round(3)  # one place, shared by three leaves
    array([0.857, 0.048, 0.048, 0.048], dtype=float32)
    """

    nodes: NDArray[Any]
    weights: NDArray[np.float32]
    mass: NDArray[np.float64]
    num_nodes: int
    kept: NDArray[np.int32]
    tied_indptr: NDArray[np.int64]
    tied_nodes: NDArray[Any]
    unassigned: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self.nodes)

    @property
    def k(self) -> int:
        """Length of each profile."""
        return int(self.nodes.shape[1])

    def operator(self, threads: int | None = None) -> csr_array:
        """Return T as a sparse float32 matrix (r, n); rows sum to 1.

        Rows equal ``nodes`` and ``weights``, except where values tie at the k-th place: there the tied nodes
        share what is left equally, which is the mean over all ways to break the tie. A tied group that would
        make a row longer than 4k is left out and the row rescaled; a row that would then be empty is the root
        alone.
        """
        indptr = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(self.kept + np.diff(self.tied_indptr), out=indptr[1:])
        indices = np.empty(indptr[-1], dtype=self.nodes.dtype)
        data = np.empty(indptr[-1], dtype=np.float32)
        profile = (self.nodes, self.weights, self.kept, self.tied_indptr, self.tied_nodes)

        def fill(start: int, stop: int) -> None:
            operator_rows(profile, indptr, start, stop, indices, data)

        run_blocks(fill, len(self), block=_ROWS_PER_BLOCK, threads=threads)
        operator = csr_array((data, indices, indptr), shape=(len(self), self.num_nodes))
        operator.has_sorted_indices = True
        return operator

    def smooth(self, features: Any) -> Any:
        """Return T F, each root's weighted mean of the features around it; sparse stays sparse.

        Parameters
        ----------
        features : csr_array or array (n, f)

        Returns
        -------
        csr_array or float32 array (r, f)
        """
        if issparse(features):
            return self.operator() @ csr_array(features, dtype=np.float32)
        return self.operator() @ np.asarray(features, dtype=np.float32)
