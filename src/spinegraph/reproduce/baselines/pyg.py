"""What the baselines take from PyG, and graphs as it reads them."""

import warnings
from typing import Any

import numpy as np
import torch
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

__all__ = ["DeepGraphInfomax", "GATConv", "GCNConv", "SAGEConv", "pyg_inputs"]


def pyg_inputs(graph: Graph, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return dense features with rows of unit length, (n, f), and the adjacency as a sparse CSR tensor.

    The sparse tensor makes PyG aggregate by one product instead of a gathered row for each edge, which is
    what makes the denser networks feasible here.

    Examples
    --------
    >>> features, adjacency = pyg_inputs(Graph.from_edges([(0, 1)], features=np.eye(2, dtype=np.float32)))
    >>> features.shape, adjacency.shape
    (torch.Size([2, 2]), torch.Size([2, 2]))
    """
    given: Any = graph.features
    dense = np.array(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float32)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    indptr, indices = torch.from_numpy(graph.indptr.copy()), torch.from_numpy(graph.indices.astype(np.int64))
    ones, size = torch.ones(len(indices)), (len(graph), len(graph))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        adjacency = torch.sparse_csr_tensor(indptr, indices, ones, size, check_invariants=True)
        return torch.from_numpy(dense).to(device), adjacency.to(device)
