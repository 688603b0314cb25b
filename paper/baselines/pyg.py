"""What the baselines take from PyG, and graphs as it reads them."""

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinegraph.errors import MissingPackageError
from spinegraph.graph.graph import Graph

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of PyG's own scripts, which nothing here uses
    try:
        from torch_geometric.nn import DeepGraphInfomax, GATConv, GCNConv, SAGEConv
    except ImportError as missing:
        raise MissingPackageError(
            "GraphSAGE, GAT and DGI need PyG: pip install 'spinegraph[reproduce]'"
        ) from missing

__all__ = ["DeepGraphInfomax", "GATConv", "GCNConv", "SAGEConv", "as_matrix", "pyg_inputs"]


def pyg_inputs(graph: Graph, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return dense features with rows of unit length, (n, f), and the adjacency as a sparse CSR tensor.

    The sparse tensor makes PyG aggregate by one product instead of a gathered row for each edge, which is
    what makes the denser networks feasible here.
    """
    given: Any = graph.features
    dense = np.array(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float32)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    edges = np.stack([graph.indices, np.repeat(np.arange(len(graph)), graph.degrees)])
    return torch.from_numpy(dense).to(device), as_matrix(edges, len(graph)).to(device)


def as_matrix(edges: NDArray[Any], n: int) -> Tensor:
    """Return edges (2, e), from the first row's nodes to the second's, as a sparse CSR tensor (n, n)."""
    order = np.lexsort((edges[0], edges[1]))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(edges[1], minlength=n))]).astype(np.int64)
    indices, ones = torch.from_numpy(edges[0][order].astype(np.int64)), torch.ones(edges.shape[1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(indptr), indices, ones, (n, n), check_invariants=False
        )
